"""Bounds at which records are heaped: a thick line, so that nobody takes what is there for a mode.

Records beyond bounds that clip are moved to them, and the kernel makes a ridge of such a heap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpkde.plots.heat import across_up
from dpkde.plots.layers import Layer
from dpkde.plots.style import Style, moments

_THICK = 3.5
"""How wide the line is, in points."""


def draw_faces(ax: Any, layer: Layer, style: Style) -> list[str]:
    """Draw a thick line at bounds where records are heaped; return what is to be said of them."""
    upward = across_up(layer)[1] if len(layer.axes) == 2 else None
    for column, face in layer.faces:
        draw = ax.axhline if column == upward else ax.axvline
        draw(
            moments(np.array(face), layer.types[column]),
            color=style.lines[1],
            linewidth=_THICK,
            solid_capstyle="butt",
            clip_on=False,  # half of it lies outside
            zorder=3,  # above the frame
            label="heaped",
        )
    return ["thick edge: heaped or moved there"] if layer.faces else []
