"""One column: a curve, with the band in which the KDE of the data lies."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpkde.plots.layers import Layer
from dpkde.plots.style import Style, moments, name_sides, named, tell_dates

_DECADES = 1e-4
"""How far below its highest place a curve is followed where the scale is logarithmic."""

_LINE = 1.4
"""How wide the line is, in points."""


def draw_curve(ax: Any, layer: Layer, style: Style, *, log: bool) -> None:
    """Draw a curve on axes, and a band for its intervals."""
    kind, line = layer.types[0], style.lines[0]
    places = moments(layer.axes[0], kind)
    if layer.band is not None:
        low, high = layer.band
        ax.fill_between(places, low, high, color=line, alpha=0.25, linewidth=0)
    ax.plot(places, layer.values, color=line, linewidth=_LINE)
    ax.set_xlim(*moments(np.array(layer.bounds[0]), kind))
    top = float(np.nanmax(layer.values, initial=0.0))
    if layer.band is not None:
        top = max(top, float(np.nanmax(layer.band[1], initial=0.0)))
    top = top if np.isfinite(top) and top > 0 else 1.0
    if log:
        ax.set_yscale("log", nonpositive="clip")
        ax.set_ylim(floor_of(layer, top), 1.5 * top)
    else:
        ax.set_ylim(0, 1.06 * top)
    name_sides(ax, named(layer.columns[0]), layer.unit)
    tell_dates(ax.xaxis, kind)


def band_shows(ax: Any, layer: Layer) -> bool:
    """Return whether a band that was drawn on axes is anywhere wider than the line in it."""
    assert layer.band is not None
    ends = np.clip(np.asarray(layer.band, dtype=np.float64), *ax.get_ylim())
    across = np.full(ends.size, ax.get_xlim()[0])
    dots = ax.transData.transform(np.stack([across, ends.ravel()], axis=-1))[:, 1]
    low, high = 72 / ax.figure.dpi * dots.reshape(ends.shape)
    return bool(np.nanmax(high - low, initial=0.0) > _LINE)


def floor_of(layer: Layer, top: float) -> float:
    """Return where a logarithmic scale begins: what is typically noise, within some decades."""
    if layer.noise is None:
        return _DECADES * top
    return float(np.clip(np.nanmedian(layer.noise), _DECADES * top, 0.1 * top))
