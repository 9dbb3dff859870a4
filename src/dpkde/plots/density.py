"""A release drawn: a curve, a map, or a corner of marginals, by how many columns are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpkde.errors import ParameterError
from dpkde.plots.corner import draw_corner
from dpkde.plots.curves import band_shows, draw_curve
from dpkde.plots.faces import draw_faces
from dpkde.plots.heat import Look, add_bar, aspect_of, draw_heat, extent_of, legend_of
from dpkde.plots.layers import Layer, Wish, kept_of, layer_of
from dpkde.plots.outlines import draw_outlines, draw_points
from dpkde.plots.style import PAGE_WIDTH, Style, add_remarks, check_matplotlib, in_percent

if TYPE_CHECKING:
    from dpkde.release.answering import Answering


def plot(
    release: Answering,
    columns: Any,
    wish: Wish,
    *,
    ax: Any,
    axes: Any,
    look: Look,
    points: Any,
    outlines: Any,
    title: str | None,
    width: float | None,
    dark: bool,
) -> Any:
    """Return the figure, or the axes that were passed; see `Release.plot`."""
    check_matplotlib()
    style, kept = Style.of(width, dark), kept_of(release, columns)
    if (points is not None or outlines is not None) and len(kept) != 2:
        raise ParameterError("points and outlines go on a map, of two columns")
    if len(kept) > 2:
        if ax is not None:
            raise ParameterError(
                f"{len(kept)} columns are drawn on {len(kept)} × {len(kept)} axes: pass axes="
            )
        return draw_corner(release, kept, wish, style, axes, look, title)
    if axes is not None:
        raise ParameterError("axes= is for three columns or more: pass one as ax=")
    layer = layer_of(release, kept, wish)
    with style.applied():
        figure = None
        if ax is None:
            from dpkde.plots.figure import new_figure

            figure = new_figure(style, height_of(layer, style, title))
            ax = figure.add_subplot()
        remarks: list[str] = []
        if len(kept) == 1:
            remarks += [] if layer.caveat is None else [layer.caveat]
            draw_curve(ax, layer, style, log=look.log)
            if layer.band is not None:
                thin = "" if band_shows(ax, layer) else ", no wider than the line"
                remarks.append(f"band: {in_percent(wish.level)} interval at each place{thin}")
        else:
            image = draw_heat(ax, layer, look)
            if outlines is not None:
                draw_outlines(ax, layer, outlines)
            if points is not None:
                draw_points(ax, layer, points)
            add_bar(ax, image, layer.unit, style, log=look.log)
            remarks += legend_of(ax, layer)
        remarks += draw_faces(ax, layer, style)
        add_remarks(ax, remarks, title, style)
        return ax if figure is None else figure


def height_of(layer: Layer, style: Style, title: str | None = None) -> float:
    """Return how high a figure of a curve or a map is, in inches."""
    if len(layer.axes) == 1:
        return 0.58 * style.width + 0.3
    west, east, south, north = extent_of(layer)
    aspect = aspect_of(layer)
    shape = 0.72 if aspect is None else (north - south) * aspect / (east - west)
    letter = style.text / 72
    # What is beside a map, and above and below it: ticks, names, remarks and the bar.
    narrow = style.width < PAGE_WIDTH
    inside = (style.width - (11.5 + narrow) * letter) / 1.05
    height = inside * shape + (5.2 + narrow + 1.8 * (title is not None)) * letter
    return float(np.clip(height, 0.3 * style.width, 2.2 * style.width))
