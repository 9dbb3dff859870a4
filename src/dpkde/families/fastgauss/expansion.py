"""The Hermite expansion of the fast Gauss transform: its terms, and how well they do typically."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_AVERAGING = 0.25
"""How much of the error of an expansion remains in a KDE value, on smooth data: more than of a
spline's there, since expansions in neighbouring cells do not meet."""


def terms(order: int, dim: int) -> list[int]:
    """Return how many of the ρ^d products have total degree 0, 1, …: whole numbers.

    >>> terms(3, 2)
    [1, 2, 3, 2, 1]
    """
    counts = [1]
    for _ in range(dim):
        longer = [0] * (len(counts) + order - 1)
        for i, count in enumerate(counts):
            for r in range(order):
                longer[i + r] += count
        counts = longer
    return counts


def hermite_functions(t: NDArray[np.float64], order: int) -> NDArray[np.float64]:
    """Return h_r(t)/r! for r = 0 … order−1, along a new last axis, by the recurrence."""
    values = np.empty((*t.shape, order))
    values[..., 0] = np.exp(-(t**2))
    if order > 1:
        values[..., 1] = 2 * t * values[..., 0]
    for r in range(1, order - 1):
        values[..., r + 1] = (2 * t * values[..., r] - 2 * values[..., r - 1]) / (r + 1)
    return values


@lru_cache(maxsize=512)
def quality(order: int, cutoff: float, halves: tuple[float, ...]) -> tuple[float, float]:
    """Return the relative error of a KDE value, and the mean of ‖g(y)‖² over queries.

    For points x spread over a cell and queries y around it, or over the domain on axes of one cell.
    Squares and products of the expansion and of the kernel are products over axes, so the error
    of all axes together follows from their means on each. What always lacks counts whole: a mean
    error, and what the cutoff leaves out; the rest averages out. The mean of ‖g‖² is as if nothing
    were left out.
    """
    axes = [_axis(order, half) for half in halves]
    own, mixed, mean = (math.prod(ratios) for ratios in zip(*axes, strict=True))
    scatter = max(own - 2 * mixed + 1, 0.0)
    lack = abs(mean - 1) + _left_out(cutoff, halves)
    size = sum(math.log(_squared_norm(order, half)) for half in halves)
    error = min(1.0, math.hypot(_AVERAGING * math.sqrt(scatter), lack))
    return error, math.exp(min(size, 600.0))


@lru_cache(maxsize=1024)
def _axis(order: int, half: float) -> tuple[float, float, float]:
    """Return E a²/E k², E ak/E k² and E a/E k on an axis: a the expansion, k the kernel."""
    single = half <= 0.5
    points, mass = np.polynomial.legendre.leggauss(32)
    x = points * (half if single else 0.5)
    y = points * half if single else np.linspace(-5.5, 5.5, 221)
    weights = np.multiply.outer(mass, mass if single else np.ones(len(y)))
    powers = x[:, np.newaxis] ** np.arange(order)
    expanded = powers @ hermite_functions(y, order).T
    exact = np.exp(-(np.subtract.outer(x, y) ** 2))
    energy = float((weights * exact**2).sum())
    return (
        float((weights * expanded**2).sum()) / energy,
        float((weights * expanded * exact).sum()) / energy,
        float((weights * expanded).sum()) / float((weights * exact).sum()),
    )


@lru_cache(maxsize=512)
def _left_out(cutoff: float, halves: tuple[float, ...]) -> float:
    """Return the part of the kernel's mass in cells further away than the cutoff.

    By 4,096 draws, y from the kernel around x itself, so that it holds in many dimensions.
    """
    generator, dim = np.random.default_rng(0), len(halves)
    single = np.array(halves) <= 0.5
    x = generator.uniform(-1, 1, (4096, dim)) * np.where(single, halves, 0.5)
    wide = x + generator.normal(0, math.sqrt(0.5), x.shape)
    y = np.where(single, generator.uniform(-1, 1, x.shape) * halves, wide)
    weight = np.exp(-(np.where(single, x - y, 0.0) ** 2).sum(axis=1))
    far = (y**2).sum(axis=1) > cutoff**2
    total = float(weight.sum())
    return float((weight * far).sum()) / total if total > 0 else 1.0


@lru_cache(maxsize=1024)
def _squared_norm(order: int, half: float) -> float:
    """Return the mean of Σ_z Σ_r (h_r(y − z)/r!)² over queries y on an axis, z its cells."""
    cells = min(max(1, math.ceil(2 * half - 1e-9)), 17)
    width = min(2 * half, 17.0)
    y = ((np.arange(256) + 0.5) / 256 - 0.5) * (1.0 if cells == 17 else width)
    offsets = np.subtract.outer(y, np.arange(cells) - (cells - 1) / 2)
    return float((hermite_functions(offsets, order) ** 2).sum() / 256)
