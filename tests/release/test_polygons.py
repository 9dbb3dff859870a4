"""Polygons: GeoJSON of all kinds, filled by strips; against boxes and sums over a fine grid."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde.families.brackets import none
from dpkde.release import polygons
from dpkde.release.regions import half_width, sight
from dpkde.release.regions import regions as pieces_of

POINTS = np.random.default_rng(1).normal((0.4, 0.5), 0.15, size=(2000, 2)).clip(0, 1)
OUTER = [[0.1, 0.1], [0.8, 0.3], [0.5, 0.9], [0.2, 0.7], [0.1, 0.1]]
HOLE = [[0.3, 0.3], [0.45, 0.35], [0.4, 0.55], [0.3, 0.3]]
SHAPE = {"type": "Polygon", "coordinates": [OUTER, HOLE]}
SQUARE = {
    "type": "Polygon",
    "coordinates": [[[0.2, 0.1], [0.6, 0.1], [0.6, 0.5], [0.2, 0.5], [0.2, 0.1]]],
}
BOX = [(0.2, 0.6), (0.1, 0.5)]
SERVED: dict[str, Any] = {
    "spline": (dpkde.Gaussian(0.1), dpkde.Spline(3, 0.5)),
    "laplacian": (dpkde.Laplacian([0.1, 0.2]), dpkde.Spline(2, 0.6)),
    "tilted": (dpkde.Gaussian([0.1, 0.9]), dpkde.Spline((3, 1), (0.5, 30.0))),
    "fastgauss": (dpkde.Gaussian(0.2), dpkde.FastGauss(4, cutoff=6.0, repetitions=2)),
    "fourier": (dpkde.Gaussian(0.2), dpkde.Fourier(48)),
}


def published(name: str = "spline", epsilon: float = 10**6, **settings: Any) -> dpkde.Release:
    kernel, family = SERVED[name]
    bounds = settings.pop("bounds", [(0, 1)] * 2)
    return dpkde.publish(
        POINTS, kernel=kernel, bounds=bounds, epsilon=epsilon, family=family, seed=1, **settings
    )


def inside(points: Any, rings: list[Any]) -> Any:
    """Tell which points lie inside, by the crossings of a ray: slow and obvious."""
    odd = np.zeros(len(points), dtype=bool)
    for ring in rings:
        for (x0, y0), (x1, y1) in pairwise(ring):
            if y0 != y1:
                between = (y0 > points[:, 1]) != (y1 > points[:, 1])
                at = x0 + (points[:, 1] - y0) * (x1 - x0) / (y1 - y0)
                odd ^= between & (points[:, 0] < at)
    return odd


@pytest.mark.parametrize("name", SERVED)
def test_strips_fill_a_polygon(name: str) -> None:
    """A grid of 600 × 600 tells a share to some 1e-5."""
    release, steps = published(name), (np.arange(600) + 0.5) / 600
    grid = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)
    held = grid[inside(grid, [OUTER, HOLE])]
    summed = release.kde(held, clip=False, assisted=False).sum() / 600**2
    share = float(release.mass(SHAPE, clip=False, assisted=False))
    assert share == pytest.approx(summed / release.kernel.integral(2), abs=1e-4)


@pytest.mark.parametrize("name", SERVED)
def test_a_square_is_a_box(name: str) -> None:
    release = published(name, 1)
    plain = {"assisted": False}
    for function, settings in (
        (release.mass, {"clip": False, **plain}),
        (release.mass_standard_error, plain),
        (release.records, {}),
        (release.records_standard_error, {}),
    ):
        assert function(SQUARE, **settings) == pytest.approx(
            float(function(BOX, **settings)), abs=1e-6, rel=1e-6
        )
    # As long for the noise; what is allowed for bias is known better of a box.
    view, table, lengths = sight(release, False), release.table.astype(np.float64), []
    for region in (SQUARE, BOX):
        reading = next(pieces_of(release, region).pieces()).reading
        sums = reading.values(table)
        lengths.append(half_width(view, reading, table, sums, none(1), 0.95))
    np.testing.assert_allclose(lengths[0], lengths[1], rtol=1e-3)


class Drawn:
    """What a library of shapes hands out."""

    def __init__(self, geometry: Any) -> None:
        self.__geo_interface__ = geometry


def test_every_way_to_write_a_region() -> None:
    release = published()
    share = float(release.mass(SHAPE))
    feature = {"type": "Feature", "properties": {}, "geometry": SHAPE}
    single = [
        Drawn(SHAPE),
        feature,
        Drawn(feature),
        {"type": "MultiPolygon", "coordinates": [SHAPE["coordinates"]]},
        {"type": "GeometryCollection", "geometries": [SHAPE]},
        {"type": "Polygon", "coordinates": [[[*c, 7.0] for c in OUTER], HOLE[:-1]]},
        {"type": "Polygon", "coordinates": [OUTER[::-1], HOLE]},
    ]
    for region in single:
        answer = release.mass(region)
        assert answer.shape == ()
        assert float(answer) == pytest.approx(share, abs=1e-9)
    collection = {"type": "FeatureCollection", "features": [feature, feature]}
    for regions in (collection, Drawn(collection), [SHAPE, Drawn(SHAPE)], (feature, SHAPE)):
        np.testing.assert_allclose(release.mass(regions), [share, share], atol=1e-9)
    apart = {
        "type": "MultiPolygon",
        "coordinates": [
            [[[0, 0], [0.2, 0], [0.2, 1], [0, 1]]],
            [[[0.5, 0], [1, 0], [1, 1], [0.5, 1]]],
        ],
    }
    boxes = release.mass([[(0, 0.2), (0, 1)], [(0.5, 1), (0, 1)]])
    assert float(release.mass(apart)) == pytest.approx(float(boxes.sum()), abs=1e-6)


def test_regions_without_records_or_area() -> None:
    release = published()
    far = {"type": "Polygon", "coordinates": [[[50, 50], [60, 50], [60, 60]]]}
    nothing = {"type": "Feature", "geometry": None, "properties": None}
    empty = {"type": "MultiPolygon", "coordinates": []}
    np.testing.assert_allclose(release.mass([far, nothing, empty]), 0.0, atol=1e-12)
    world = {"type": "Polygon", "coordinates": [[[-180, -90], [180, -90], [180, 90], [-180, 90]]]}
    assert float(release.mass(world)) == pytest.approx(1.0, abs=1e-5)
    assert release.mass({"type": "FeatureCollection", "features": []}).shape == (0,)


def test_the_longitude_comes_first() -> None:
    """Columns that are called lat and lon meet GeoJSON the other way round."""
    kernel, family = SERVED["spline"]
    turned = dpkde.publish(
        POINTS[:, ::-1],
        kernel=kernel,
        bounds=[(0, 1)] * 2,
        epsilon=10**6,
        family=family,
        columns=["lat", "lon"],
    )
    assert float(turned.mass(SHAPE)) == pytest.approx(float(published().mass(SHAPE)), abs=1e-6)


@pytest.mark.parametrize(
    ("columns", "exchanged"),
    [
        (("pickup_lat", "pickup_lon"), True),
        (("Latitude (deg)", "Longitude (deg)"), True),
        (("north", "east"), True),
        (("y1", "x1"), True),
        (("lon", "lat"), False),
        (("lat", "fare"), False),
        (("plate", "lon"), False),
        (("lat/lon", "lon"), False),
        (("", ""), False),
    ],
)
def test_names_tell_which_is_the_latitude(columns: tuple[str, str], exchanged: bool) -> None:
    """By whole words, in both of them."""
    assert polygons.northing_first(columns) is exchanged


def test_polygons_are_added_and_rings_are_not() -> None:
    """Twice the same ring: nothing by the even-odd rule; twice the same polygon: twice as much."""
    release, ring = published(), SQUARE["coordinates"][0]
    share = float(release.mass(SQUARE))
    twice = {"type": "MultiPolygon", "coordinates": [[ring], [ring]]}
    assert float(release.mass(twice, clip=False)) == pytest.approx(2 * share, abs=1e-9)
    none = {"type": "Polygon", "coordinates": [ring, ring]}
    assert float(release.mass(none)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("region", "words"),
    [
        ({"type": "Point", "coordinates": [0, 0]}, "Point has no area"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]}, "three corners"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, np.inf]]]}, "finite"),
        ({"type": "Polygon", "coordinates": [[0, 1, 2]]}, "rings"),
        ({"type": "Polygon", "coordinates": [["a", "b", "c"]]}, "rings"),
        ([SHAPE, 3], "GeoJSON"),
        ({"type": "Polygon", "coordinates": 5}, "Polygon needs 'coordinates', a list .* got 5"),
        ({"type": "Polygon", "coordinates": np.array(5)}, "a list of rings"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [10**400, 1], [1, 1]]]}, "finite"),
        ({"type": "Polygon"}, "Polygon needs 'coordinates', .* there is none"),
        ({"type": "MultiPolygon", "coordinates": "ab"}, "a list of polygons"),
        ({"type": "MultiPolygon", "coordinates": [5]}, "a list of rings"),
        ({"type": "FeatureCollection", "features": 5}, "a list of features"),
        ({"type": "FeatureCollection"}, "a list of features"),
        ({"type": "FeatureCollection", "features": [5]}, "must be GeoJSON"),
        ({"type": "GeometryCollection", "geometries": 5}, "a list of geometries"),
        ({"type": "Feature", "geometry": {"type": "Polygon"}}, "a list of rings"),
    ],
)
def test_what_is_no_region_is_refused(region: Any, words: str) -> None:
    with pytest.raises(dpkde.ParameterError, match=words):
        published().mass(region)


def test_where_polygons_have_no_place() -> None:
    with pytest.raises(dpkde.ParameterError, match="smoothed"):
        published().mass(SHAPE, smoothed=False)
    three = dpkde.publish(
        np.zeros((10, 3)),
        kernel=dpkde.Gaussian(0.5),
        bounds=[(0, 1)] * 3,
        epsilon=1,
        family=dpkde.Spline(2, 1.0),
    )
    with pytest.raises(dpkde.ParameterError, match="two columns"):
        three.mass(SHAPE)
    assert three.marginal([0, 1]).mass(SHAPE).shape == ()
    deep: Any = SHAPE
    for _ in range(20):
        deep = {"type": "GeometryCollection", "geometries": [deep]}
    with pytest.raises(dpkde.DpkdeError, match="nested"):
        published().mass(deep)


def test_an_outline_has_its_length() -> None:
    rings = [[np.array(SQUARE["coordinates"][0]) * 10]]
    places, lengths = polygons.outline(rings)
    assert lengths.sum() == pytest.approx(16.0)
    assert lengths.max() <= polygons.PANEL + 1e-12
    assert places.shape == (len(lengths), 2)
