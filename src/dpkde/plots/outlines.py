"""What a caller puts on a map: outlines and points, public ones, and drawn as they are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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


@dataclass
class Drawn:
    """What GeoJSON has to draw: lines of shape (n_corners, 2), and points with their names."""

    lines: list[Floats] = field(default_factory=list)
    points: list[tuple[Floats, str]] = field(default_factory=list)


def drawn_of(given: Any, columns: tuple[str, ...]) -> Drawn:
    """Return what GeoJSON, or what has a ``__geo_interface__``, or a list of such has to draw.

    Coordinates are in the order of the columns; see `polygons.regions_of`.
    """
    members = [given] if is_geometry(given) else given
    if isinstance(members, (str, bytes, Mapping)) or not hasattr(members, "__iter__"):
        raise ParameterError(
            "outlines must be GeoJSON, something with a __geo_interface__, or a list of these, "
            f"got {type(given).__name__}"
        )
    drawn = Drawn()
    for member in members:
        _add(drawn, member, columns, "", 0)
    return drawn


def _add(drawn: Drawn, member: Any, columns: tuple[str, ...], name: str, depth: int) -> None:
    """Add a geometry, a feature, or the members of a collection."""
    plain = getattr(member, "__geo_interface__", member)
    if depth > _DEEPEST or not is_geometry(plain):
        raise ParameterError("outlines must be GeoJSON, or have a __geo_interface__")
    kind = plain["type"]
    if kind == "Feature":
        properties, inner = plain.get("properties"), plain.get("geometry")
        own = properties.get("name") if isinstance(properties, Mapping) else None
        if inner is not None:
            _add(drawn, inner, columns, own if isinstance(own, str) else "", depth + 1)
    elif kind in ("FeatureCollection", "GeometryCollection"):
        for part in contents(plain):
            _add(drawn, part, columns, name, depth + 1)
    elif kind in ("LineString", "MultiLineString", "Point", "MultiPoint"):
        given = plain.get("coordinates", ())
        for part in given if kind.startswith("Multi") else [given]:
            if kind.endswith("Point"):
                drawn.points.append((_corners([part], columns)[0], name))
            else:
                drawn.lines.append(_corners(part, columns))
    else:
        regions, _ = regions_of(plain, columns)
        drawn.lines += [ring for region in regions for rings in region for ring in rings]


def _corners(given: Any, columns: tuple[str, ...]) -> Floats:
    """Return places, heights left out."""
    try:
        line = np.array([tuple(corner)[:2] for corner in given], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        line = np.empty(0)
    if line.ndim != 2 or line.shape[1] != 2 or not np.isfinite(line).all():
        raise ParameterError(
            "the coordinates of lines and points in GeoJSON must be (x, y), of finite numbers"
        )
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
    """Draw lines that are seen on dark and on light parts of a map; mark points among them."""
    from matplotlib import patheffects
    from matplotlib.collections import LineCollection

    found = drawn_of(given, layer.columns)
    lines = [_shown(line, layer) for line in found.lines]
    drawn = LineCollection(lines, colors="white", linewidths=0.9, label="outlines")
    drawn.set_path_effects([patheffects.withStroke(linewidth=2.2, foreground="black", alpha=0.7)])
    ax.add_collection(drawn, autolim=False)
    if found.points:
        places, names = zip(*found.points, strict=True)
        _mark(ax, layer, np.array(places), list(names))


def draw_points(ax: Any, layer: Layer, given: Any) -> None:
    """Mark points, with their names if they have any."""
    _mark(ax, layer, *places_of(given))


def _mark(ax: Any, layer: Layer, places: Floats, names: list[str]) -> None:
    """Mark places by discs, white with a black edge."""
    from matplotlib import patheffects

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
        scalex=False,
        scaley=False,
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
        text.set_in_layout(False)


def _shown(places: Floats, layer: Layer) -> Floats:
    """Return places as matplotlib counts them: across, then up."""
    return np.column_stack(
        [moments(places[:, column], layer.types[column]) for column in across_up(layer)]
    )
