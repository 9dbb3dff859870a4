"""Polygons: what GeoJSON and all that speaks it mean, and strips that fill them.

Rings of one polygon follow the even-odd rule: what an odd number of them encloses is inside. The
polygons of a region are added: where two overlap, what lies in both counts twice.

A region of two columns is cut into slabs between its corners, and each slab into panels of a
bandwidth at most. In a panel the region lies, at each of a few Gauss points x, between given ends
of y: a strip, whose share has a closed form along y, and the kernel at x. Strips times the weights
of their points add up to the region; half as wide panels tell how far that is off.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError, SchemaError

Floats = NDArray[np.float64]
Polygon = list[Floats]
"""Rings of shape (n_corners, 2): the outline, and holes."""

PANEL = 1.0
"""Widest panel, in bandwidths."""
_NARROW = 0.05
"""Panels below this take fewer points."""
_RULES = {count: np.polynomial.legendre.leggauss(count) for count in (2, 6)}
_MOST_PARTS = 4096
"""Most places along a side."""
_NORTH = {"lat", "latitude", "north", "northing", "y"}
_EAST = {"lon", "lng", "long", "longitude", "east", "easting", "x"}
_CONTENTS = {
    "FeatureCollection": ("features", "features"),
    "GeometryCollection": ("geometries", "geometries"),
    "Polygon": ("coordinates", "rings, each a list of (x, y)"),
    "MultiPolygon": ("coordinates", "polygons, each a list of rings"),
}
"""Under which name a kind of GeoJSON holds what."""


def is_geometry(region: Any) -> bool:
    """Tell whether something is a region in the words of GeoJSON."""
    if hasattr(region, "__geo_interface__"):
        return True
    return isinstance(region, Mapping) and isinstance(region.get("type"), str)


def regions_of(given: Any, columns: Sequence[str] | None) -> tuple[list[list[Polygon]], bool]:
    """Return regions, each of some polygons; and whether it is a single one.

    GeoJSON has the longitude first: where the columns are a latitude and a longitude, by their
    names, coordinates are exchanged; see `northing_first`.
    """
    if is_geometry(given):
        geometry = _plain(given)
        single = geometry["type"] != "FeatureCollection"
        members = [geometry] if single else contents(geometry)
    else:
        single, members = False, list(given)
    regions = [_polygons(member, 0) for member in members]
    if columns is not None and northing_first(columns):
        regions = [[[ring[:, ::-1] for ring in rings] for rings in region] for region in regions]
    return regions, single


def northing_first(columns: Sequence[str]) -> bool:
    """Tell whether the names of two columns say that they are a latitude and a longitude.

    The first has one of the words lat, latitude, north, northing, y in it and the second one of
    lon, lng, long, longitude, east, easting, x; words are what other signs than letters separate.

    >>> northing_first(["pickup_lat", "pickup_lon"]), northing_first(["lat", "fare"])
    (True, False)
    """
    first, second = (set(re.findall(r"[^\W\d_]+", name.lower())) for name in columns)
    north = first & _NORTH and not first & _EAST
    return bool(north and second & _EAST and not second & _NORTH)


def contents(geometry: Mapping[str, Any]) -> list[Any]:
    """Return the members of a collection, or the coordinates of polygons."""
    key, what = _CONTENTS[geometry["type"]]
    members = geometry.get(key)
    if not isinstance(members, (list, tuple, np.ndarray)) or not getattr(members, "ndim", 1):
        given = f"got {members!r:.40}" if key in geometry else "there is none"
        raise ParameterError(
            f"a GeoJSON {geometry['type']} needs {key!r}, a list of {what}: {given}"
        )
    return list(members)


def _plain(region: Any) -> Mapping[str, Any]:
    plain = getattr(region, "__geo_interface__", region)
    if not isinstance(plain, Mapping) or not isinstance(plain.get("type"), str):
        raise SchemaError("a region must be GeoJSON, or have a __geo_interface__")
    return plain


def _polygons(region: Any, depth: int) -> list[Polygon]:
    """Return the polygons of a geometry, a feature, or a collection of them."""
    if depth > 8:
        raise SchemaError("the geometries of this region are nested too deeply")
    geometry = _plain(region)
    kind = geometry["type"]
    if kind == "Feature":
        inner = geometry.get("geometry")
        return [] if inner is None else _polygons(inner, depth + 1)
    if kind in ("GeometryCollection", "FeatureCollection"):
        return [polygon for part in contents(geometry) for polygon in _polygons(part, depth + 1)]
    if kind == "Polygon":
        return [[_ring(ring) for ring in contents(geometry)]]
    if kind == "MultiPolygon":
        parts = [{"type": "Polygon", "coordinates": rings} for rings in contents(geometry)]
        return [polygon for part in parts for polygon in _polygons(part, depth)]
    raise ParameterError(f"a {kind} has no area: regions are polygons and multipolygons")


def _ring(corners: Any) -> Floats:
    """Return a closed ring; heights are left out."""
    try:
        ring = np.array([tuple(corner)[:2] for corner in corners], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        ring = np.empty(0)
    if ring.ndim != 2 or ring.shape[1] != 2 or not np.isfinite(ring).all():
        raise SchemaError("the rings of a polygon must be lists of (x, y) of finite numbers")
    if len(ring) < 3:
        raise SchemaError(f"the ring of a polygon needs three corners or more, got {len(ring)}")
    return ring if (ring[0] == ring[-1]).all() else np.concatenate([ring, ring[:1]])


class Strips(NamedTuple):
    """Strips at x from `low` to `high`, and the weights of their sum; each of shape (n_strips,)."""

    x: Floats
    low: Floats
    high: Floats
    weights: Floats


def strips(region: list[Polygon], clip: Floats, width: float) -> Strips:
    """Return strips that fill a region inside a box, panels being at most so wide.

    `clip` has the shape (2, 2): a (low, high) pair for x and for y. Corners and strips are in
    bandwidths.
    """
    parts = [_filled(rings, clip, width) for rings in region]
    if not parts:
        return Strips(*(np.empty(0) for _ in range(4)))
    joined = Strips(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    order = np.argsort(joined.x, kind="stable")
    return Strips(*(column[order] for column in joined))


def _filled(rings: Polygon, clip: Floats, width: float) -> Strips:
    """Return the strips of one polygon: inside is where an odd number of edges lies below."""
    starts = np.concatenate([ring[:-1] for ring in rings]) if rings else np.empty((0, 2))
    ends = np.concatenate([ring[1:] for ring in rings]) if rings else np.empty((0, 2))
    left = np.minimum(starts[:, 0], ends[:, 0])
    right = np.maximum(starts[:, 0], ends[:, 0])
    corners = np.unique(np.clip(np.append(left, right), *clip[0]))
    found: list[Floats] = []
    with np.errstate(all="ignore"):
        slopes = (ends[:, 1] - starts[:, 1]) / (ends[:, 0] - starts[:, 0])
    for low, high in zip(corners[:-1].tolist(), corners[1:].tolist(), strict=True):
        active = np.flatnonzero((left <= low) & (right >= high))
        if not len(active):
            continue
        points, weights = _RULES[2 if high - low < _NARROW else 6]
        panels = math.ceil((high - low) / width)
        half = (high - low) / panels / 2
        middles = low + half * (2 * np.arange(panels) + 1)
        x = (middles[:, np.newaxis] + half * points).reshape(-1)
        mass = np.tile(half * weights, panels)
        y = starts[active, 1] + slopes[active] * (x[:, np.newaxis] - starts[active, 0])
        y = np.clip(np.sort(y, axis=1), *clip[1])
        for k in range(0, y.shape[1] - 1, 2):
            found.append(np.stack([x, y[:, k], y[:, k + 1], mass]))
    if not found:
        return Strips(*(np.empty(0) for _ in range(4)))
    return Strips(*np.concatenate(found, axis=1))


def outline(region: list[Polygon]) -> tuple[Floats, Floats]:
    """Return places along all rings, shape (n, 2), and the lengths that they stand for."""
    places, lengths = [np.empty((0, 2))], [np.empty(0)]
    for ring in (ring for rings in region for ring in rings):
        sides = np.diff(ring, axis=0)
        long = np.hypot(*sides.T)
        parts = np.clip(np.ceil(long / PANEL), 1, _MOST_PARTS).astype(np.int64)
        side = np.repeat(np.arange(len(sides)), parts)
        before = np.repeat(np.cumsum(parts) - parts, parts)
        along = (np.arange(len(side)) - before + 0.5) / parts[side]
        places.append(ring[side] + along[:, np.newaxis] * sides[side])
        lengths.append(long[side] / parts[side])
    return np.concatenate(places), np.concatenate(lengths)
