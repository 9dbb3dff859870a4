"""Figures that show themselves in notebooks, and are written the same each time."""

from __future__ import annotations

import io
import warnings
from os import PathLike
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dpkde.plots.style import DPI, Style, check_picture, set_aside
from dpkde.tables.maps import aside

_UNDATED: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "dpkde"},
    "pdf": {"CreationDate": None, "Creator": "dpkde", "Producer": "dpkde"},
    "png": {"Software": None},
}
"""What would tell when, or by which version of matplotlib, a file was written."""
_ALIKE = {"svg.hashsalt": "dpkde", "svg.fonttype": "path", "pdf.fonttype": 42}


class Picture(Figure):
    """A matplotlib figure of dpkde's.

    It belongs to no window and to no list of figures, so nothing has to be closed. A notebook shows
    it where it is the last value of a cell. `savefig` writes PNG, SVG and PDF without the time of
    day, so that the same picture is the same file.
    """

    def draw(self, renderer: Any) -> None:
        """Draw it; letters that the font lacks are boxes, and no warning."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph ")
            super().draw(renderer)

    def savefig(self, fname: Any, **settings: Any) -> None:
        """Write it to a file or stream, as matplotlib does, in the format that its name ends in."""
        kind = settings.get("format") or Path(str(getattr(fname, "name", fname))).suffix[1:]
        about = {**_UNDATED.get(str(kind).lower(), {}), **(settings.pop("metadata", None) or {})}
        if str(kind).lower() in _UNDATED:
            settings["metadata"] = about
        with set_aside(_ALIKE):
            super().savefig(fname, **settings)

    def _repr_png_(self) -> bytes:
        """Return what a notebook shows."""
        stream = io.BytesIO()
        self.savefig(stream, format="png")
        return stream.getvalue()


def new_figure(style: Style, height: float) -> Picture:
    """Return an empty figure, to be drawn on while the style is applied."""
    figure = Picture(figsize=(style.width, height), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Any, path: str | PathLike[str]) -> None:
    """Write a figure to a file, put into its place when it is complete."""
    with aside(check_picture(path)) as temporary:
        figure.savefig(temporary, dpi=DPI)
