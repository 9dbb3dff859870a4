"""Two columns: a map in colours, with contours, a colour bar, and hatching where noise is larger.

Contours enclose shares of what is drawn: the smallest regions that hold half of it, and so on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.plots.curves import floor_of
from dpkde.plots.layers import Layer
from dpkde.plots.style import MAP, Style, fitted, in_percent, moments, name_sides, named, tell_dates

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

SHARES = (0.95, 0.8, 0.5)
"""What contours enclose."""
HATCH = "/////"
_PLAIN = 2.0
"""Contours are drawn so many times above the typical noise."""
_FLAT = 0.1
"""Of the map, at most so much may be as near to a contour as the noise."""
_PIXELS = 400
"""Cells that are fewer are larger than the dots of a picture: what is between them is filled in."""
_WIDEST = 6.0
"""Axes are equal in their units where a map is then at most so many times as wide as high."""
_DEGREES, _PLANE = (
    ({"lat", "latitude"}, {"lon", "lng", "long", "longitude"}),
    ({"y", "north", "northing", "lat", "latitude"}, {"x", "east", "easting"}),
)


def across_up(layer: Layer) -> tuple[int, int]:
    """Return which column goes across, and which up."""
    return (1, 0) if layer.turned else (0, 1)


def aspect_of(layer: Layer) -> float | None:
    """Return how many times longer a unit up is than one across; None: as the picture is wide.

    A degree of latitude is longer than one of longitude by 1/cos of the latitude, and east and
    north are in one unit; of other columns nothing is known.
    """
    across, up = across_up(layer)
    words = [set(re.findall(r"[^\W\d_]+", name.lower())) for name in layer.columns]
    (west, east), (south, north) = layer.bounds[across], layer.bounds[up]
    if words[up] & _DEGREES[0] and words[across] & _DEGREES[1]:
        middle = (south + north) / 2
        if not -90 < south < north < 90:
            return None
        aspect = 1 / max(math.cos(math.radians(middle)), 0.05)
    elif words[up] & _PLANE[0] and words[across] & _PLANE[1]:
        aspect = 1.0
    else:
        return None
    shape = (east - west) / ((north - south) * aspect)
    return aspect if 1 / _WIDEST < shape < _WIDEST else None


@dataclass(frozen=True)
class Look:
    """What is drawn beside values, and on which scale."""

    log: bool = False
    contours: bool = True
    hatch: bool = True


def draw_heat(ax: Any, layer: Layer, look: Look) -> Any:
    """Draw a map on axes and return its image, for a colour bar."""
    from matplotlib.colors import LogNorm, Normalize

    values = upright(layer.values, layer)
    top = float(np.nanmax(values, initial=0.0))
    top = top if np.isfinite(top) and top > 0 else 1.0
    norm = LogNorm(floor_of(layer, top), top) if look.log else Normalize(0.0, top)
    image = ax.imshow(
        np.clip(values, norm.vmin, None) if look.log else values,
        origin="lower",
        extent=extent_of(layer),
        aspect=aspect_of(layer) or "auto",
        cmap=MAP,
        norm=norm,
        interpolation=interpolation_of(layer),
    )
    if look.contours:
        _enclose(ax, layer)
    if look.hatch and layer.noise is not None:
        draw_hatching(ax, layer, layer.drowned, "#ffffff", 0.35)
    name_axes(ax, layer)
    return image


def interpolation_of(layer: Layer) -> str:
    """Return how matplotlib fills in what is between the centers of cells."""
    return "bilinear" if min(layer.values.shape) < _PIXELS else "antialiased"


def name_axes(ax: Any, layer: Layer) -> None:
    """Give both axes names, ends and dates."""
    across, up = across_up(layer)
    name_sides(ax, named(layer.columns[across]), named(layer.columns[up]))
    west, east, south, north = extent_of(layer)
    ax.set_xlim(west, east)
    ax.set_ylim(south, north)
    tell_dates(ax.xaxis, layer.types[across])
    tell_dates(ax.yaxis, layer.types[up])


def extent_of(layer: Layer) -> tuple[float, float, float, float]:
    """Return the ends of a map as matplotlib counts them: across, then up."""
    ends = [
        moments(np.array(layer.bounds[column]), layer.types[column]).tolist()
        for column in across_up(layer)
    ]
    return (*ends[0], *ends[1])


def upright(values: Any, layer: Layer) -> Any:
    """Return values with a row for each place up, and a column for each across."""
    return values.transpose(across_up(layer)[::-1])


def levels_of(
    values: Floats, shares: Sequence[float], noise: Floats | None = None
) -> dict[float, float]:
    """Return the level that encloses each share of what is drawn, where noise leaves it a place.

    Left out are levels that are not well above the typical noise, and those that much of the map is
    as near to as its noise is large: their lines would wander through what is flat.

    >>> levels_of(np.array([[4.0, 3.0], [2.0, 1.0]]), (0.4, 0.7))
    {0.4: 4.0, 0.7: 3.0}
    """
    finite = np.sort(np.maximum(values[np.isfinite(values)], 0.0))[::-1]
    total = float(finite.sum())
    if not 0 < total < math.inf or finite[0] == finite[-1]:
        return {}
    sums = np.cumsum(finite)
    levels: dict[float, float] = {}
    for share in shares:
        level = float(finite[min(int(np.searchsorted(sums, share * total)), len(finite) - 1)])
        if level <= 0 or level in levels.values():
            continue
        if noise is not None:
            near = (np.abs(values - level) < noise).mean()
            if level <= _PLAIN * float(np.nanmedian(noise)) or near > _FLAT:
                continue
        levels[share] = level
    return levels


def _enclose(ax: Any, layer: Layer) -> None:
    """Draw contours that enclose shares of what is drawn."""
    levels = levels_of(layer.values, SHARES, layer.noise)
    told = ", ".join(in_percent(share) for share in sorted(levels))
    draw_contours(ax, layer, sorted(levels.values()), "white", "solid", told)


def draw_contours(
    ax: Any, layer: Layer, levels: Sequence[float], colour: str, dashes: Any, label: str
) -> bool:
    """Draw thin lines with an edge of the other lightness; tell whether there are any."""
    from matplotlib import patheffects
    from matplotlib.colors import to_rgb

    values = layer.values
    low, high = np.nanmin(values), np.nanmax(values)
    if min(values.shape) < 2 or not any(low < level < high for level in levels):
        return False
    edge = "black" if sum(to_rgb(colour)) > 1.5 else "white"
    drawn = ax.contour(
        *(*_centers(layer), upright(values, layer)),
        levels=levels,
        colors=[colour],
        linewidths=0.8,
        linestyles=dashes,
    )
    drawn.set_label(label)
    stroke = patheffects.withStroke(linewidth=1.8, foreground=edge, alpha=0.55)
    drawn.set_path_effects([stroke])
    return True


def _centers(layer: Layer) -> list[Floats]:
    return [moments(layer.axes[column], layer.types[column]) for column in across_up(layer)]


def draw_hatching(ax: Any, layer: Layer, mask: Mask, colour: str, alpha: float) -> Any:
    """Hatch the cells of a mask, all of them and no others; None where there are none."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import PathPatch

    path = _cells(upright(mask, layer), extent_of(layer))
    if path is None:
        return None
    patch = PathPatch(
        path,
        facecolor="none",
        edgecolor=to_rgba(colour, alpha),
        linewidth=0,
        hatch=HATCH,
        label="noise",
    )
    ax.add_patch(patch)
    return patch


def _cells(mask: Mask, extent: tuple[float, float, float, float]) -> Any:
    """Return the outline of the cells in a mask: rectangles of runs, equal ones joined."""
    from matplotlib.path import Path

    if not mask.any():
        return None
    rows, columns = mask.shape
    west, east, south, north = extent
    x = np.linspace(west, east, columns + 1)
    y = np.linspace(south, north, rows + 1)
    padded = np.zeros((rows + 1, columns + 2), dtype=np.int8)
    padded[:rows, 1:-1] = mask
    edges = np.diff(padded, axis=1)
    open_runs: dict[tuple[int, int], int] = {}
    boxes: list[tuple[int, int, int, int]] = []
    for row in range(rows + 1):
        starts, stops = np.flatnonzero(edges[row] == 1), np.flatnonzero(edges[row] == -1)
        runs = set(zip(starts.tolist(), stops.tolist(), strict=True))
        for run in [run for run in open_runs if run not in runs]:
            boxes.append((*run, open_runs.pop(run), row))
        for run in runs:
            open_runs.setdefault(run, row)
    corners = np.array(sorted(boxes))
    left, right = x[corners[:, 0]], x[corners[:, 1]]
    low, high = y[corners[:, 2]], y[corners[:, 3]]
    vertices = np.stack(
        [
            np.column_stack([left, right, right, left, left]),
            np.column_stack([low, low, high, high, low]),
        ],
        axis=2,
    ).reshape(-1, 2)
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(corners)
    return Path(vertices, np.array(codes, dtype=Path.code_type))


def legend_of(ax: Any, layer: Layer) -> list[str]:
    """Return what lines and hatching on a map are, where there are any, and what it rests on."""
    lines = [] if layer.caveat is None else [layer.caveat]
    lines += [
        f"lines enclose {drawn.get_label()}"
        for drawn in ax.collections
        if str(drawn.get_label()).endswith("%")
    ]
    if any(patch.get_label() == "noise" for patch in ax.patches):
        lines.append("hatched: less than the noise")
    return lines


def add_bar(ax: Any, image: Any, unit: str, style: Style, *, log: bool) -> Any:
    """Put a colour bar beside a map, as high as it is, and say what it shows.

    Where nothing lays out the figure it takes some of the room of the axes instead.
    """
    laid_out = ax.figure.get_layout_engine() is not None
    place = {"cax": ax.inset_axes((1.02, 0, 0.03, 1))} if laid_out else {"ax": ax, "pad": 0.02}
    bar = ax.figure.colorbar(image, extend="min" if log else "neither", **place)
    size = 0.9 * style.text
    room = 72 * ax.get_position().height * ax.figure.get_figheight()
    bar.set_label(fitted(unit, room, size), parse_math=False, fontsize=size)
    bar.outline.set_linewidth(0.5)
    return bar
