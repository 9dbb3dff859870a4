"""Maps: the same as place by place, for every family; and their files."""

from __future__ import annotations

import csv
import math
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self

import numpy as np
import pyarrow.parquet as pq
import pytest

import dpkde
from dpkde.release.maps import MOST_PLACES, Map

POINTS = np.random.default_rng(0).uniform(0, 1, size=(3000, 6))
NARROW = [(0.0, 1.0), (-0.01, 0.01), (0.0, 1.0), (-0.02, 0.02)]


def _published(dim: int = 2, **given: Any) -> dpkde.Release:
    settings: dict[str, Any] = {
        "kernel": dpkde.Gaussian(0.2),
        "bounds": [(0, 1)] * dim,
        "epsilon": 1,
        "pilot": False,
    }
    return dpkde.publish(POINTS[:, :dim], **{**settings, **given})


RELEASES: dict[str, tuple[dict[str, Any], Any]] = {
    "one axis": ({"dim": 1}, 40),
    "two axes": ({}, (13, 7)),
    "three axes": ({"dim": 3, "family": dpkde.Spline(2, 0.6)}, (5, 4, 6)),
    "per axis": ({"kernel": dpkde.Gaussian([0.1, 0.4])}, (13, 7)),
    "laplacian": ({"kernel": dpkde.Laplacian(0.2), "family": "spline"}, 9),
    "public count": ({"adjacency": "replace"}, 9),
    "delta": ({"delta": 1e-6}, 9),
    "wide noise": ({"epsilon": 0.001}, 9),
    "a line and a constant": (
        {"dim": 4, "bounds": NARROW, "family": dpkde.Spline((3, 1, 2, 0), (0.5, 9.0, 0.5, 1.0))},
        (6, 3, 5, 2),
    ),
    "an arch": (
        {"dim": 4, "bounds": NARROW, "family": dpkde.Spline((3, 1, 2, 0), 0.5, arch=900)},
        (6, 3, 5, 2),
    ),
    "nothing but narrow": (
        {"dim": 2, "bounds": [(0, 0.01)] * 2, "family": dpkde.Spline((1, 0), 9.0)},
        (4, 3),
    ),
    "a matrix": ({"kernel": dpkde.Gaussian([[0.2, 0.05], [0.05, 0.3]]), "family": "spline"}, 9),
    "a ball": ({"bounds": dpkde.Ball((0.5, 0.5), 0.5)}, 9),
    "fast gauss": ({"family": dpkde.FastGauss(order=5)}, 9),
    "fourier": ({"family": dpkde.Fourier(64)}, 9),
    "hashing": ({"kernel": dpkde.Laplacian(0.5), "family": dpkde.Hashing(16, 64)}, 9),
    "sampled": ({"alpha": 0.2, "eta": 0.1, "epsilon": 50}, 9),
    "on a grid of its own": ({"alpha": 0.2, "eta": 0.1, "simultaneous": True, "epsilon": 5}, 9),
}


@pytest.mark.parametrize("name", RELEASES)
def test_a_map_is_what_its_places_say(name: str) -> None:
    given, shape = RELEASES[name]
    release = _published(**given)
    for clip in (True, False):
        drawn = release.grid(shape, clip=clip)
        values = release.kde(drawn.points, clip=clip)
        assert drawn.values.ravel() == pytest.approx(values, rel=1e-9, abs=1e-12)
    errors = release.standard_error(drawn.points)
    assert drawn.standard_error.ravel() == pytest.approx(errors, rel=1e-9)
    assert drawn.standard_error is drawn.standard_error
    assert drawn.values.shape == drawn.shape == tuple(map(len, drawn.axes))


def test_rates_are_taken_into_account() -> None:
    """Every record counts several times where only some were kept."""
    release = _published(alpha=0.2, eta=0.1, epsilon=50)
    thinned = dpkde.Release(
        release.plan, release.table, release.count, release.privacy, rate=Fraction(1, 4)
    )
    drawn, whole = thinned.grid(5, clip=False), release.grid(5, clip=False)
    assert drawn.values == pytest.approx(4 * whole.values)
    assert drawn.standard_error.ravel() == pytest.approx(thinned.standard_error(drawn.points))


def test_places_are_the_centers_of_equal_cells() -> None:
    drawn = _published(columns=["lon", "lat"]).grid((4, 2), [(0, 8), (-1, 1)])
    assert [axis.tolist() for axis in drawn.axes] == [[1.0, 3.0, 5.0, 7.0], [-0.5, 0.5]]
    assert drawn.bounds == ((0.0, 8.0), (-1.0, 1.0))
    assert drawn.columns == ("lon", "lat")
    assert repr(drawn) == "<Map: 4×2, lon 0 to 8, lat -1 to 1>"
    assert drawn.points[:3].tolist() == [[1.0, -0.5], [1.0, 0.5], [3.0, -0.5]]
    with pytest.raises(ValueError, match="read-only"):
        drawn.values[0, 0] = 1.0


def test_values_add_up_to_an_integral() -> None:
    """Over all that the kernel reaches, the KDE integrates to the kernel's integral."""
    release = _published(epsilon=1000, bounds=[(0, 1)] * 2)
    drawn = release.grid(80, [(-1, 2)] * 2, clip=False)
    area = float(np.prod([high - low for low, high in drawn.bounds])) / drawn.values.size
    assert drawn.values.sum() * area == pytest.approx(release.kernel.integral(2), rel=0.02)


def test_a_slice_has_one_place_along_a_column() -> None:
    release = _published(3)
    drawn = release.grid((5, 1, 4), [(0, 1), (0.25, 0.25), (0, 1)])
    assert drawn.axes[1].tolist() == [0.25]
    assert drawn.values.ravel() == pytest.approx(release.kde(drawn.points), rel=1e-9)


def test_a_map_far_away_is_empty() -> None:
    release = _published()
    far = release.grid(3, [(1e6, 2e6)] * 2)
    assert not far.values.any()
    assert not far.standard_error.any()
    half = release.grid((50, 3), [(-5, 5), (0, 1)])
    assert half.values.ravel() == pytest.approx(release.kde(half.points), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("shape", "bounds", "message"),
    [
        ("9", None, "shape must be a whole number"),
        (9.0, None, "shape must be a whole number"),
        (True, None, "shape must be a whole number"),
        (None, None, "shape must be a whole number"),
        ((), None, "shape must be a whole number"),
        ((3, 2.5), None, "shape must be a whole number"),
        ((3, 2, 2), None, "shape has 3 numbers, the release 2 columns"),
        (0, None, "from 1 on"),
        (MOST_PLACES, None, "is too large"),
        (10**400, None, "is too large"),
        (3, [(0, 1)], "one .low, high. pair for each of the 2 columns"),
        (3, "box", "one .low, high. pair"),
        (3, [(0, 1), (1, 0)], "low below high"),
        (3, [(0, 1), (0, math.nan)], "finite"),
        (3, [(0, 1), (0, math.inf)], "finite"),
        (3, [(0, 1), (-1.7e308, 1.7e308)], "finite"),
        (3, [(0, 1), (2, 2)], "a slice"),
    ],
)
def test_wrong_shapes_and_bounds(shape: Any, bounds: Any, message: str) -> None:
    with pytest.raises(dpkde.ParameterError, match=message):
        _RELEASE.grid(shape, bounds)


_RELEASE = _published()


def test_where_there_is_no_map() -> None:
    unbounded = _published(bounds=None, family=dpkde.Fourier(16))
    with pytest.raises(dpkde.ParameterError, match="this release has no bounds"):
        unbounded.grid(3)
    drawn = unbounded.grid(3, [(0, 1)] * 2)
    assert drawn.values.ravel() == pytest.approx(unbounded.kde(drawn.points), rel=1e-9)
    for kernel, what in ((dpkde.Geodesic(), "directions"), (dpkde.Jaccard(), "sets")):
        release = dpkde.publish(POINTS > 0.5, kernel=kernel, epsilon=1, pilot=False)
        with pytest.raises(dpkde.ParameterError, match=f"its points are {what}"):
            release.grid(3)


@pytest.fixture
def drawn() -> Map:
    return _published(columns=["lon", "lat"]).grid((4, 3))


def test_tables_have_a_row_for_each_place(drawn: Map, tmp_path: Path) -> None:
    expected = np.column_stack([drawn.points, drawn.values.ravel(), drawn.standard_error.ravel()])
    drawn.save(tmp_path / "m.csv")
    with (tmp_path / "m.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["lon", "lat", "kde", "standard_error"]
    assert np.array_equal(np.array(rows, dtype=float), expected)
    drawn.save(tmp_path / "m.parquet")
    table = pq.read_table(tmp_path / "m.parquet")
    assert table.column_names == header
    assert np.array_equal(np.column_stack([np.asarray(c) for c in table.columns]), expected)


def test_an_array_and_what_is_there_already(drawn: Map, tmp_path: Path) -> None:
    target = tmp_path / "M.NPY"
    target.write_text("old")
    drawn.save(target)
    assert np.array_equal(np.load(target), drawn.values)
    assert [path.name for path in tmp_path.iterdir()] == ["M.NPY"]  # nothing is left beside it


def test_names_with_commas_stay_one_column(tmp_path: Path) -> None:
    _published(1, columns=['x, "east"']).grid(2).save(tmp_path / "m.csv")
    with (tmp_path / "m.csv").open(newline="") as file:
        assert next(csv.reader(file)) == ['x, "east"', "kde", "standard_error"]


def test_files_that_cannot_be_written(drawn: Map, tmp_path: Path) -> None:
    for name, message in (("m.txt", "ends in .csv"), ("m", "ends in .csv")):
        with pytest.raises(dpkde.ParameterError, match=message):
            drawn.save(tmp_path / name)
    (tmp_path / "f.csv").mkdir()
    with pytest.raises(dpkde.ParameterError, match="a folder"):
        drawn.save(tmp_path / "f.csv")
    with pytest.raises(FileNotFoundError, match=r"m\.csv"):
        drawn.save(tmp_path / "nowhere" / "m.csv")
    with pytest.raises(dpkde.ParameterError, match="crs goes with a GeoTIFF"):
        drawn.save(tmp_path / "m.csv", crs="EPSG:4326")
    with pytest.raises(dpkde.ParameterError, match="a GeoTIFF has two columns, this map 3"):
        _published(3).grid(2).save(tmp_path / "m.tif")
    assert not [path for path in tmp_path.iterdir() if path.name != "f.csv"]
    release = _published(1)
    release.save(tmp_path / "r.csv")
    with pytest.raises(dpkde.ParameterError, match="is a dpkde-release file; it is not overwr"):
        drawn.save(tmp_path / "r.csv")
    assert dpkde.load(tmp_path / "r.csv") == release


class _Raster:
    """Stands in for a file that ``rasterio.open`` returns."""

    def __init__(self, path: Path, mode: str, **profile: Any) -> None:
        self.path, self.mode, self.profile = path, mode, profile
        self.bands: dict[int, np.ndarray] = {}
        self.names: dict[int, str] = {}

    def write(self, array: np.ndarray, band: int) -> None:
        assert array.shape == (self.profile["height"], self.profile["width"])
        self.bands[band] = array

    def set_band_description(self, band: int, name: str) -> None:
        self.names[band] = name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.path.write_bytes(b"raster")


def _rasterio(monkeypatch: pytest.MonkeyPatch) -> list[_Raster]:
    """Put a stand-in for rasterio in its place; return the files that are opened by it."""
    opened: list[_Raster] = []

    def opening(path: Path, mode: str, **profile: Any) -> _Raster:
        opened.append(_Raster(path, mode, **profile))
        return opened[-1]

    package, transform = ModuleType("rasterio"), ModuleType("rasterio.transform")
    package.open = opening  # type: ignore[attr-defined]
    transform.from_bounds = lambda *ends: ends  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rasterio", package)
    monkeypatch.setitem(sys.modules, "rasterio.transform", transform)
    return opened


@pytest.mark.parametrize("names", [["lon", "lat"], ["Lat", "Lon"], ["a", "b"]])
def test_a_raster_has_north_above(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a stand-in: what is handed to rasterio, by its documented interface."""
    opened = _rasterio(monkeypatch)
    drawn = _published(columns=names).grid((4, 3), [(0, 8), (10, 16)])
    drawn.save(tmp_path / "m.tif", crs="EPSG:4326")
    assert (tmp_path / "m.tif").read_bytes() == b"raster"
    (file,) = opened
    turned = names[0] == "Lat"
    assert file.mode == "w"
    ends = (10.0, 0.0, 16.0, 8.0, 3, 4) if turned else (0.0, 10.0, 8.0, 16.0, 4, 3)
    assert file.profile == {
        "driver": "GTiff",
        "width": 3 if turned else 4,
        "height": 4 if turned else 3,
        "count": 2,
        "dtype": "float64",
        "crs": "EPSG:4326",
        "transform": ends,
    }
    assert file.names == {1: "kde", 2: "standard_error"}
    # The first row is the northernmost.
    top = drawn.values[-1, :] if turned else drawn.values[:, -1]
    assert np.array_equal(file.bands[1][0], top)
    error = drawn.standard_error[0, :] if turned else drawn.standard_error[:, 0]
    assert np.array_equal(file.bands[2][-1], error)


def test_without_rasterio_it_says_what_is_missing(
    drawn: Map, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(dpkde.ParameterError, match="one more package: pip install rasterio"):
        drawn.save(tmp_path / "m.tif")
    assert not list(tmp_path.iterdir())
