"""The worst that the fast Gauss transform can do, over all records and queries."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpkde.families.base import Worst
from dpkde.families.fastgauss.expansion import hermite_functions
from dpkde.families.spline.worst import MARGIN, SLIGHT, Extreme


@lru_cache(maxsize=1024)
def expanded(order: int, cutoff: float, half: float) -> tuple[Extreme, float]:
    """Return the extremes of an axis of the fast Gauss transform, and the largest Σ_r|h_r/r!|."""
    u = np.linspace(-1, 1, 65) * min(half, 0.5)
    s = np.linspace(-cutoff - 0.5, cutoff + 0.5, 401)
    functions = hermite_functions(s, order)
    powers = u[:, np.newaxis] ** np.arange(order)
    error = float(np.abs(powers @ functions.T - np.exp(-(np.subtract.outer(u, s) ** 2))).max())
    single = half <= 0.5
    centers = np.zeros(1) if single else np.arange(-math.ceil(cutoff) - 1, math.ceil(cutoff) + 2.0)
    y = s if single else np.linspace(-0.5, 0.5, 129)
    near = np.subtract.outer(y, centers)
    squares = (hermite_functions(near, order) ** 2).sum(axis=-1) * (np.abs(near) <= cutoff)
    gain = float(np.sqrt(squares.sum(axis=1).max()))
    peak, whole = float(np.abs(functions).max()), float(np.abs(functions).sum(axis=1).max())
    return Extreme(MARGIN * error, SLIGHT * gain, SLIGHT * peak), whole


def of_expansion(
    order: int, cutoff: float, halves: tuple[float, ...], copies: int, bits: int
) -> Worst:
    """Return the worst of a fast Gauss table: inside the cutoff Taylor's rest, beyond it all."""
    # Axes of more than one unit cell are alike: they are studied once.
    axes = [expanded(order, cutoff, min(half, 1.0)) for half in halves]
    inside = math.expm1(min(sum(math.log1p(axis.error) for axis, _ in axes), 50.0))
    corner = math.hypot(*(min(half, 0.5) for half in halves))
    beyond = math.exp(-(max(cutoff - corner, 0.0) ** 2))
    gain = math.prod(axis.gain for axis, _ in axes) / math.sqrt(copies) / 2**bits
    peak = math.prod(axis.peak for axis, _ in axes) / copies / 2**bits
    rounding = 2 * len(halves) * math.prod(whole for _, whole in axes) / 2**bits
    return Worst(max(inside, beyond) + rounding, 0.0, 0.0, gain, peak)
