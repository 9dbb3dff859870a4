"""One look for all figures: readable in grey, legends outside the axes, PNG and SVG.

Mechanisms differ in marker and line style as well as in colour, and the colours differ in
lightness, so that a printed page in grey loses nothing.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterSciNotation, LogLocator
from PIL import Image

from experiments.protocol import BERNSTEIN, FGT, OURS, RFF, SAMPLED, TIGHT, UNASSISTED

DPI = 150
LOOK: dict[str, dict[str, Any]] = {
    OURS: {"color": "#000000", "marker": "o", "linestyle": "-", "linewidth": 1.8},
    UNASSISTED: {"color": "#4d4d4d", "marker": "X", "linestyle": (0, (1, 1)), "linewidth": 1.6},
    FGT: {"color": "#1f5fa8", "marker": "s", "linestyle": "--"},
    RFF: {"color": "#c4561a", "marker": "^", "linestyle": "-."},
    BERNSTEIN: {"color": "#5c9e5c", "marker": "D", "linestyle": ":"},
    TIGHT: {"color": "#8fc08f", "marker": "d", "linestyle": ":"},
    "EvenTrig": {"color": "#7a4fa3", "marker": "v", "linestyle": (0, (5, 1))},
    "PMW": {"color": "#b08d00", "marker": "P", "linestyle": (0, (1, 1))},
    "PMW, δ": {"color": "#d8bf5a", "marker": "P", "linestyle": "-."},
    "SmallDB": {"color": "#7f7f7f", "marker": "*", "linestyle": (0, (7, 2))},
    "Laplace": {"color": "#303030", "marker": ">", "linestyle": ":"},
    "Gaussian": {"color": "#606060", "marker": "<", "linestyle": "--"},
    "HRW": {"color": "#1a7f7f", "marker": "h", "linestyle": (0, (3, 1, 1, 1))},
    SAMPLED: {"color": "#9a9a9a", "marker": "x", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
}
MARKERS = "os^Dvx*P<>"
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)), (0, (7, 2)))
STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.markersize": 4.5,
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "dpkde",
}


def look(name: str) -> dict[str, Any]:
    """Return how a mechanism is drawn; one that has no look of its own gets one by its name."""
    known = LOOK.get(name)
    if known is not None:
        return dict(known)
    place = sum(map(ord, name))
    return {
        "color": f"{0.15 + 0.5 * (place % 5) / 5:.2f}",
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": LINES[place % len(LINES)],
    }


def graded(index: int, count: int) -> dict[str, Any]:
    """Return the look of one of several ε: from light to dark, with a marker of its own."""
    grey = 0.7 - 0.7 * index / max(1, count - 1)
    return {
        "color": f"{grey:.2f}",
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": LINES[index % 3],
    }


def panels(rows: int, columns: int, *, width: float = 3.4, height: float = 2.6) -> Any:
    """Return a figure and its axes, shape (rows, columns), with room on the right for a legend."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width * columns + 1.6, height * rows + 0.3), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
    return figure, axes


def logarithmic(axes: Axes, *, x: bool = True, y: bool = True) -> None:
    """Give an axes logarithmic scales with few labels, but some within a decade."""
    for is_logarithmic, axis, scale in (
        (x, axes.xaxis, axes.set_xscale),
        (y, axes.yaxis, axes.set_yscale),
    ):
        if is_logarithmic:
            scale("log")
            axis.set_major_locator(LogLocator(numticks=8))
            axis.set_minor_formatter(LogFormatterSciNotation(minor_thresholds=(1.5, 0.7)))


def banded(axes: Axes, x: Any, errors: Any, label: str, style: dict[str, Any]) -> None:
    """Draw means over trials, with a band from the least to the largest trial."""
    means = errors.mean(axis=1)
    axes.plot(x, means, label=label, **style)
    axes.fill_between(
        x, errors.min(axis=1), errors.max(axis=1), color=style["color"], alpha=0.15, linewidth=0
    )


def legend(figure: Figure) -> None:
    """Put one legend for all panels beside them, where no curve is."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        where = "outside right upper"
        figure.legend(list(handles.values()), list(handles), loc=where, frameon=False)


def hide(axes: Axes, words: str) -> None:
    """Say in place of a panel why there is none."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes, wrap=True)


def shrunk(figure: Figure) -> bytes:
    """Return a figure as PNG. Few colours are used: a palette halves it and changes little."""
    whole, small = io.BytesIO(), io.BytesIO()
    figure.savefig(whole, dpi=DPI, format="png")
    picture = Image.open(whole).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    picture.save(small, "png", optimize=True, dpi=(DPI, DPI))
    return small.getvalue()


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    with mpl.rc_context(STYLE):
        paths[0].write_bytes(shrunk(figure))
        figure.savefig(paths[1], dpi=DPI * 2 / 3, metadata={"Date": None})
    return paths


def in_words(epsilon: float) -> str:
    """Return ε in words."""
    return f"ε = {epsilon:g}" if math.isfinite(epsilon) else "without noise"


def rows_of(count: int, columns: int) -> Sequence[int]:
    """Return the indices of a grid of panels that stay empty."""
    return range(count, math.ceil(count / columns) * columns)
