"""Maps as files: values on a grid, as CSV, Parquet, ``.npy`` or GeoTIFF.

=============================  ==================================================================
ending                         what is written
=============================  ==================================================================
``.csv``, ``.parquet``         a row for each place, the last column fastest: its coordinates, then
                               each layer of the map
``.npy``                       the first layer, an array with one axis for each column
``.tif``, ``.tiff``            two columns only: a band for each layer, north up, for a GIS; needs
                               rasterio
=============================  ==================================================================

Files are written aside and put into place when they are complete.
"""

from __future__ import annotations

import csv
import itertools
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError

Floats = NDArray[np.float64]

NORTH = ("lat", "latitude", "y", "north", "northing")
"""What a column is called that goes up on a map."""


@dataclass(frozen=True)
class Layers:
    """Values on a grid.

    Attributes
    ----------
    names
        Of the columns, and behind them of the layers.
    axes
        Coordinates of the places, one array for each column.
    bounds
        (low, high) of each column: the edges of the outermost cells.
    values
        The layers, each with one axis for each column.
    crs
        The coordinate system, such as ``"EPSG:4326"``, for a GIS.
    """

    names: tuple[str, ...]
    axes: tuple[Floats, ...]
    bounds: tuple[tuple[float, float], ...]
    values: tuple[Floats, ...]
    crs: str | None = None


def check_map(path: str | PathLike[str], dim: int, crs: str | None = None) -> Path:
    """Return where a map of so many columns can be written; say why not, before it is made."""
    target = Path(path)
    if target.suffix.lower() not in _WRITERS:
        raise ParameterError(
            f"a map is written to a file that ends in {', '.join(_WRITERS)}, got {target.name!r}"
        )
    raster = target.suffix.lower() in (".tif", ".tiff")
    if raster and dim != 2:
        raise ParameterError(
            f"a GeoTIFF has two columns, this map {dim}: use .csv, .parquet or .npy"
        )
    if crs is not None and not raster:
        raise ParameterError(f"crs goes with a GeoTIFF (.tif); {target.suffix} has no place for it")
    if target.is_dir():
        raise ParameterError(f"{target} is a folder; name a file to write")
    return target


def write_map(layers: Layers, path: str | PathLike[str]) -> None:
    """Write layers to a file, in the format that its name ends in."""
    target = check_map(path, len(layers.axes), layers.crs)
    with aside(target) as temporary:
        _WRITERS[target.suffix.lower()](layers, temporary)


@contextmanager
def aside(target: Path) -> Iterator[Path]:
    """Yield a name of the same ending beside a file, put into its place when it is written."""
    temporary = target.with_name(f".{secrets.token_hex(8)}{target.suffix}")
    try:
        yield temporary
        temporary.replace(target)
    except OSError as error:
        if error.errno is None:
            raise
        # Named after the file that was asked for, not our temporary one.
        raise type(error)(error.errno, error.strerror, str(target)) from None
    finally:
        temporary.unlink(missing_ok=True)


def _csv(layers: Layers, path: Path) -> None:
    """Write text: coordinates are written out once for each axis, not for each place."""
    labels = [[repr(value) for value in axis.tolist()] for axis in layers.axes]
    columns = [values.reshape(-1).tolist() for values in layers.values]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(layers.names)
        places = map(",".join, itertools.product(*labels))
        file.writelines(
            f"{place},{','.join(map(repr, numbers))}\n"
            for place, numbers in zip(places, zip(*columns, strict=True), strict=True)
        )


def _parquet(layers: Layers, path: Path) -> None:
    pa, parquet = _package("pyarrow", "Parquet"), _package("pyarrow.parquet", "Parquet")
    meshed = np.meshgrid(*layers.axes, indexing="ij")
    arrays = [pa.array(np.ravel(array)) for array in (*meshed, *layers.values)]
    parquet.write_table(pa.Table.from_arrays(arrays, names=list(layers.names)), path)


def _npy(layers: Layers, path: Path) -> None:
    with path.open("wb") as file:  # of a name, NumPy would make another
        np.save(file, layers.values[0])


def _geotiff(layers: Layers, path: Path) -> None:
    """Write bands, rows from north to south."""
    rasterio = _package("rasterio", "GeoTIFF")
    from_bounds = _package("rasterio.transform", "GeoTIFF").from_bounds
    across, up = (1, 0) if _is_northward(layers.names) else (0, 1)
    (west, east), (south, north) = layers.bounds[across], layers.bounds[up]
    width, height = len(layers.axes[across]), len(layers.axes[up])
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=width,
        height=height,
        count=len(layers.values),
        dtype="float64",
        crs=layers.crs,
        transform=from_bounds(west, south, east, north, width, height),
    ) as file:
        for band, values in enumerate(layers.values, 1):
            file.write(np.ascontiguousarray(values.transpose(up, across)[::-1]), band)
            file.set_band_description(band, layers.names[1 + band])


def _package(name: str, format_name: str) -> Any:
    """Return a module of a package that may not be there."""
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise ParameterError(
            f"{format_name} files need one more package: pip install {package}"
        ) from None


def _is_northward(names: Sequence[str]) -> bool:
    """Tell whether the first column goes up on a map, and the second does not."""
    first, second = (name.strip().lower() in NORTH for name in names[:2])
    return first and not second


_WRITERS: dict[str, Callable[[Layers, Path], Any]] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".npy": _npy,
    ".tif": _geotiff,
    ".tiff": _geotiff,
}
