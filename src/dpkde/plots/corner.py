"""Three columns or more: the marginal of each, and of each pair, in the corner below a diagonal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpkde.errors import ParameterError
from dpkde.plots.curves import draw_curve
from dpkde.plots.faces import draw_faces
from dpkde.plots.heat import Look, draw_heat, legend_of
from dpkde.plots.layers import Layer, Wish, layer_of, names_of
from dpkde.plots.style import Style, in_percent

if TYPE_CHECKING:
    from dpkde.release.answering import Answering

MOST_COLUMNS = 6
_PANEL = 90
"""Places along each side of a map."""


def draw_corner(
    release: Answering,
    kept: tuple[int, ...],
    wish: Wish,
    style: Style,
    axes: Any,
    look: Look,
    title: str | None,
) -> Any:
    """Return the figure, or the axes that were passed, with marginals drawn."""
    count = len(kept)
    if count > MOST_COLUMNS:
        names = list(names_of(release))
        raise ParameterError(
            f"a corner plot has at most {MOST_COLUMNS} columns, these are {count}: choose some, "
            f"such as columns={[names[column] for column in kept[:3]]!r}"
        )
    grid = None if axes is None else np.asarray(axes, dtype=object)
    if grid is not None and grid.shape != (count, count):
        raise ParameterError(
            f"axes must have shape ({count}, {count}) for {count} columns, got {grid.shape}"
        )
    ends = _ends(wish, count)
    layers: dict[tuple[int, ...], Layer] = {}
    for row in range(count):
        for part in [(row,), *((column, row) for column in range(row))]:
            own = None if ends is None else [ends[place] for place in part]
            shape = wish.shape if wish.shape is not None or len(part) == 1 else _PANEL
            asked = replace(wish, bounds=own, shape=shape)
            layers[part] = layer_of(release, tuple(kept[place] for place in part), asked)
    with style.applied():
        figure = None
        if grid is None:
            from dpkde.plots.figure import new_figure

            figure = new_figure(style, style.width)
            grid = figure.subplots(count, count, squeeze=False)
        remarks: list[str] = []
        for row in range(count):
            for column in range(count):
                panel = grid[row, column]
                if column > row:
                    panel.set_axis_off()
                    continue
                if column == row:
                    layer = layers[(row,)]
                    draw_curve(panel, layer, style, log=look.log)
                    panel.set_yticks([], minor=False)
                    panel.set_yticks([], minor=True)
                    panel.set_ylabel("")
                else:
                    layer = replace(layers[column, row], turned=False)
                    draw_heat(panel, layer, look)
                    panel.set_aspect("auto")
                    remarks += legend_of(panel, layer)
                remarks += draw_faces(panel, layer, style)
                _bare(panel, row == count - 1, column == 0 < row)
        scale = layers[(0,)].unit.partition(":")[0]
        lines = [f"{scale}, each panel up to its own highest", *dict.fromkeys(remarks)]
        if wish.level is not None and any(layer.band is not None for layer in layers.values()):
            lines.append(f"bands: {in_percent(wish.level)} interval at each place")
        text = grid[0, count - 1].text(
            *(1.0, 1.0, "\n".join(lines)),
            transform=grid[0, count - 1].transAxes,
            ha="right",
            va="top",
            fontsize=0.9 * style.text,
        )
        text.set_in_layout(False)  # it lies over what is empty
        if title is not None:
            grid[0, 0].figure.suptitle(title, parse_math=False)
        return axes if figure is None else figure


def _ends(wish: Wish, count: int) -> list[Any] | None:
    """Return the bounds of each column, if any were given."""
    if wish.bounds is None:
        return None
    try:
        ends = list(wish.bounds)
    except TypeError:
        ends = []
    if len(ends) != count:
        raise ParameterError(
            f"bounds must be one (low, high) pair for each of the {count} columns that are drawn"
        )
    return ends


def _bare(panel: Any, lowest: bool, first: bool) -> None:
    """Keep names and ticks at the outer sides only."""
    if not lowest:
        panel.set_xlabel("")
        panel.tick_params(labelbottom=False)
    elif panel.get_xlabel():
        panel.tick_params(axis="x", labelrotation=30)
    if not first:
        panel.set_ylabel("")
        panel.tick_params(labelleft=False)
