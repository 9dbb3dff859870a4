"""What a caller puts on a map: outlines and points, public ones, and drawn as they are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.plots.heat import across_up
from dpkde.plots.layers import Layer
from dpkde.plots.style import moments, named
from dpkde.release.polygons import contents, is_geometry, northing_first, regions_of

Floats = NDArray[np.float64]

_DEEPEST = 8
_COLLECTIONS = {"FeatureCollection": "features", "GeometryCollection": "geometries"}


def lines_of(given: Any, columns: tuple[str, ...]) -> list[Floats]:
    """Return the lines of GeoJSON, or of what has a ``__geo_interface__``, or of a list of such.

    Each has shape (n_corners, 2), in the order of the columns; see `polygons.regions_of`.
    """
    members = [given] if is_geometry(given) else given
    if isinstance(members, (str, bytes)) or not hasattr(members, "__iter__"):
        raise ParameterError(
            "outlines must be GeoJSON, something with a __geo_interface__, or a list of these, "
            f"got {type(given).__name__}"
        )
    return [line for member in members for line in _lines(member, columns, 0)]


def _lines(member: Any, columns: tuple[str, ...], depth: int) -> list[Floats]:
    plain = getattr(member, "__geo_interface__", member)
    if depth > _DEEPEST or not is_geometry(member) or not isinstance(plain, Mapping):
        raise ParameterError("outlines must be GeoJSON, or have a __geo_interface__")
    kind = plain["type"]
    if kind == "Feature":
        inner = plain.get("geometry")
        return [] if inner is None else _lines(inner, columns, depth + 1)
    if kind in _COLLECTIONS:
        return [line for part in contents(plain) for line in _lines(part, columns, depth + 1)]
    if kind in ("LineString", "MultiLineString"):
        given = plain.get("coordinates", ())
        parts = [given] if kind == "LineString" else given
        return [_line(part, columns) for part in parts]
    regions, _ = regions_of(plain, columns)
    return [ring for region in regions for rings in region for ring in rings]


def _line(corners: Any, columns: tuple[str, ...]) -> Floats:
    try:
        line = np.array([tuple(corner)[:2] for corner in corners], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        line = np.empty(0)
    if line.ndim != 2 or line.shape[1] != 2 or not np.isfinite(line).all():
        raise ParameterError("the lines of GeoJSON must be lists of (x, y) of finite numbers")
    return line[:, ::-1] if northing_first(columns) else line


def places_of(given: Any) -> tuple[Floats, list[str]]:
    """Return points of shape (n, 2), in the order of the columns, and their names if they have any.

    >>> places_of({"center": (3.0, 4.0)})
    (array([[3., 4.]]), ['center'])
    """
    names = [str(name) for name in given] if isinstance(given, Mapping) else []
    rows = list(given.values()) if isinstance(given, Mapping) else given
    try:
        places = np.atleast_2d(np.array(rows, dtype=np.float64))
    except (TypeError, ValueError):
        places = np.empty(0)
    if places.ndim != 2 or (places.size and places.shape[1] != 2):
        raise ParameterError(
            "points must be of shape (n, 2), in the order of the columns, or a mapping from names "
            "to such pairs"
        )
    return places.reshape(-1, 2), names


def draw_outlines(ax: Any, layer: Layer, given: Any) -> None:
    """Draw lines that are seen on dark and on light parts of a map."""
    from matplotlib import patheffects
    from matplotlib.collections import LineCollection

    lines = [_shown(line, layer) for line in lines_of(given, layer.columns)]
    drawn = LineCollection(lines, colors="white", linewidths=0.9, label="outlines")
    drawn.set_path_effects([patheffects.withStroke(linewidth=2.2, foreground="black", alpha=0.7)])
    ax.add_collection(drawn, autolim=False)


def draw_points(ax: Any, layer: Layer, given: Any) -> None:
    """Mark points, with their names if they have any."""
    from matplotlib import patheffects

    places, names = places_of(given)
    x, y = _shown(places, layer).T
    ax.plot(
        *(x, y),
        linestyle="none",
        marker="o",
        markersize=4.5,
        markerfacecolor="white",
        markeredgecolor="black",
        markeredgewidth=0.9,
        label="points",
    )
    for name, across, up in zip(names, x, y, strict=False):
        text = ax.annotate(
            named(name),
            (across, up),
            xytext=(4, 3),
            textcoords="offset points",
            color="white",
            fontsize=0.85 * float(ax.xaxis.label.get_size()),
            annotation_clip=True,
            parse_math=False,
        )
        text.set_path_effects([patheffects.withStroke(linewidth=1.8, foreground="black")])


def _shown(places: Floats, layer: Layer) -> Floats:
    """Return places as matplotlib counts them: across, then up."""
    return np.column_stack(
        [moments(places[:, column], layer.types[column]) for column in across_up(layer)]
    )
