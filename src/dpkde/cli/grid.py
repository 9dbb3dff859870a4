"""``dpkde grid``: a whole map from a release file, as a file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dpkde.cli import request
from dpkde.cli.exits import plain
from dpkde.cli.options import Options, whole
from dpkde.cli.progress import bar
from dpkde.cli.verb import verb
from dpkde.errors import ParameterError


@verb("grid")
def grid(
    options: Options, release: Annotated[Path, typer.Argument(help="A release file.")]
) -> None:
    """Write the KDE on a grid, with its standard error, as a file.

    Places are the centers of equal cells that cover the bounds. CSV and Parquet have a row for each
    place; .npy holds the KDE as an array; .tif is a GeoTIFF of two columns (needs rasterio).

    Example: dpkde grid trips.dpkde --shape 200x100 -o map.csv
    """
    from dpkde.release.progress import progress
    from dpkde.release.release import Release
    from dpkde.tables.maps import check_map

    published, output = Release.load(release), options["output"]
    check_map(output, published.dim, options["crs"])
    request.check_writable(output)
    names = published.columns or [f"x{k + 1}" for k in range(published.dim)]
    ends = None if options["extent"] is None else extent_of(options["extent"], names)
    with bar("asking", not options["quiet"]) as report, progress(report):
        drawn = published.grid(
            shape_of(options["shape"]), ends, assisted=False if options["plain"] else None
        )
        drawn.save(output, crs=options["crs"])


def extent_of(text: str, columns: Sequence[str]) -> list[tuple[float, float]]:
    """Return the bounds of a map that were typed."""
    names = [plain(name) for name in columns]
    typed, rest = request.without_rest(text)
    ends = request.for_each(request.pairs(typed, "extent"), rest, len(names), "--extent")
    if len(ends) != len(names):
        raise ParameterError(
            f"extent must be low:high for each of {len(names)} columns, got {text!r}"
        )
    for name, (low, high) in zip(names, ends, strict=True):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ParameterError(f"extent must be finite, got {low:g}:{high:g} for column {name}")
        if low > high:
            raise ParameterError(
                f"extent must have low below high, got {low:g}:{high:g} for column {name}: write "
                f"{high:g}:{low:g}"
            )
    return ends


def shape_of(text: str) -> int | list[int]:
    """Return a shape that was typed as 200x100, or as one number for all columns."""
    try:
        sizes = [whole(part) for part in text.lower().replace("×", "x").split("x")]
    except typer.BadParameter:
        raise ParameterError(
            f"shape must be numbers of places such as 200x100, got {text!r}"
        ) from None
    return sizes[0] if len(sizes) == 1 else sizes
