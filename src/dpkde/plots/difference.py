"""Two releases compared in a picture: where one is denser than the other by more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpkde.errors import ParameterError
from dpkde.plots.density import height_of
from dpkde.plots.faces import draw_faces
from dpkde.plots.heat import (
    Look,
    add_bar,
    aspect_of,
    draw_contours,
    draw_hatching,
    extent_of,
    interpolation_of,
    name_axes,
    upright,
)
from dpkde.plots.layers import Layer, faces_of, fine_enough, kept_of, names_of, types_of, unit_of
from dpkde.plots.outlines import draw_outlines, draw_points
from dpkde.plots.style import (
    Style,
    add_remarks,
    check_matplotlib,
    moments,
    name_sides,
    named,
    tell_dates,
)
from dpkde.release.answering import Answering
from dpkde.release.compare import check_comparable
from dpkde.release.differences import Meaning, difference
from dpkde.release.polygons import northing_first
from dpkde.release.region import bounds_of

_LIGHT = ("#053061", "#2f79b5", "#9fcbe1", "#f7f7f7", "#f9c3a7", "#cf5246", "#67001f")
_DARK = ("#b4dcff", "#4c9be8", "#23527f", "#16191d", "#7d3a1c", "#e0793a", "#ffdcb8")
"""Blue where the second is denser, red or orange where the first is; even in lightness."""
_STEPS = (0.25, 0.5, 0.75)
"""Of the largest difference: where contours are, solid above zero and dashed below."""


def plot_difference(
    a: Answering,
    b: Answering,
    columns: str | int | Sequence[str | int] | None = None,
    *,
    level: float = 0.05,
    of: Meaning = "records",
    names: tuple[str, str] = ("first", "second"),
    ax: Any = None,
    contours: bool = True,
    hatch: bool = True,
    points: Any = None,
    outlines: Any = None,
    shape: int | Sequence[int] | None = None,
    title: str | None = None,
    width: float | None = None,
    dark: bool = False,
) -> Any:
    """Return a picture of the density of `a` less that of `b`: a figure, or the axes passed.

    One column: a curve, with a band of two standard errors about no difference, thick where it
    exceeds chance. Two: a map, red (on a dark page orange) where `a` is denser and blue where `b`
    is, hatched where the difference does not exceed chance. Contours are at quarters of the largest
    difference, dashed where `b` is denser, so that it is read in grey, too.

    Values and what exceeds chance are those of `Distance.difference`: of noisy answers, whose
    errors are known; nothing is denoised.

    Parameters
    ----------
    a, b
        Releases, or views of them, of the same columns and kernel.
    columns
        One or two of them; None: all.
    level, of
        Of what exceeds chance, as in `Distance.difference`.
    names
        What both are called in the picture.
    ax, contours, hatch, points, outlines, shape, title, width, dark
        As in `Release.plot`.
    """
    check_matplotlib()
    check_comparable(a, b)
    if len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise ParameterError(f"names must be two texts, such as ('May', 'June'), got {names!r}")
    style, kept = Style.of(width, dark), kept_of(a, columns)
    if len(kept) > 2:
        raise ParameterError(
            f"a difference of {len(kept)} columns has no picture: choose one or two, such as "
            f"columns={[names_of(a)[column] for column in kept[:2]]!r}"
        )
    if (points is not None or outlines is not None) and len(kept) != 2:
        raise ParameterError("points and outlines go on a map, of two columns")
    called = tuple(names_of(a if a.columns else b)[column] for column in kept)
    types = tuple(types_of(a)[column] for column in kept)
    if kept != tuple(range(a.dim)):
        a, b = a.marginal(kept), b.marginal(kept)
    box = bounds_of(a, b)
    if box is None:
        raise ParameterError(
            "a picture of a difference needs bounds in space, which these releases lack"
        )
    ends = tuple((float(low), float(high)) for low, high in zip(*box, strict=True))
    sizes = fine_enough(a.plan.frame, ends, a) if shape is None else shape
    where = list(sizes) if isinstance(sizes, Sequence) else sizes
    found = difference(a, b, where, level, of)
    assert found.axes is not None
    unit = f"{named(names[0])} − {named(names[1])}, {unit_of('density', called, types)}"
    layer = Layer(
        *(found.axes, ends, found.values, found.standard_error, None, called, types, unit),
        turned=len(kept) == 2 and northing_first(called),
        faces=tuple({*faces_of(a, range(a.dim), ends), *faces_of(b, range(b.dim), ends)}),
    )
    with style.applied():
        figure = None
        if ax is None:
            from dpkde.plots.figure import new_figure

            figure = new_figure(style, height_of(layer, style, title))
            ax = figure.add_subplot()
        if len(kept) == 1:
            remarks = _curve(ax, layer, found.exceeds, style)
        else:
            look = Look(contours=contours, hatch=hatch)
            remarks = _map(ax, layer, found.exceeds, style, look, named(names[1]))
            if outlines is not None:
                draw_outlines(ax, layer, outlines)
            if points is not None:
                draw_points(ax, layer, points)
        remarks += draw_faces(ax, layer, style)
        add_remarks(ax, remarks, title, style)
    return ax if figure is None else figure


def _curve(ax: Any, layer: Layer, exceeds: Any, style: Style) -> list[str]:
    """Draw the difference of one column."""
    kind, line = layer.types[0], style.lines[0]
    places = moments(layer.axes[0], kind)
    noise = layer.noise if layer.noise is not None else np.zeros(layer.values.shape)
    ax.fill_between(places, -2 * noise, 2 * noise, color=style.ink, alpha=0.18, linewidth=0)
    ax.axhline(0, color=style.ink, linewidth=0.6)
    ax.plot(places, layer.values, color=line, linewidth=1.0)
    ax.plot(places, np.where(exceeds, layer.values, np.nan), color=line, linewidth=2.6)
    ax.set_xlim(*moments(np.array(layer.bounds[0]), kind))
    name_sides(ax, named(layer.columns[0]), layer.unit)
    tell_dates(ax.xaxis, kind)
    return ["band: two standard errors", "thick: more than chance"]


def _map(ax: Any, layer: Layer, exceeds: Any, style: Style, look: Look, second: str) -> list[str]:
    """Draw the difference of two columns."""
    from matplotlib.colors import LinearSegmentedColormap

    most = float(np.nanmax(np.abs(layer.values), initial=0.0))
    most = most if np.isfinite(most) and most > 0 else 1.0
    colours = LinearSegmentedColormap.from_list("difference", _DARK if style.dark else _LIGHT)
    image = ax.imshow(
        upright(layer.values, layer),
        origin="lower",
        extent=extent_of(layer),
        aspect=aspect_of(layer) or "auto",
        cmap=colours,
        vmin=-most,
        vmax=most,
        interpolation=interpolation_of(layer),
    )
    remarks: list[str] = []
    if look.contours:
        noise = 0.0 if layer.noise is None else float(np.nanmedian(layer.noise))
        steps = [step * most for step in _STEPS if step * most > 2 * noise]
        levels = sorted([*steps, *(-step for step in steps)])
        dashes = ["dashed" if height < 0 else "solid" for height in levels]
        if draw_contours(ax, layer, levels, style.ink, dashes, "difference"):
            remarks.append(f"dashed: {second} is denser")
    if look.hatch and draw_hatching(ax, layer, ~exceeds, style.ink, 0.3) is not None:
        remarks.append("hatched: no more than chance")
    name_axes(ax, layer)
    add_bar(ax, image, layer.unit, style, log=False)
    return remarks
