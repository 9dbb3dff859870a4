"""Quadratic forms of a spline table: answers squared over space, kernel values over pairs.

An answer is Σ_j t_j φ(y − j) on each axis, so that its square has the integral tᵀGt with

    G(j − l) = ∫ φ(v − j) φ(v − l) dv,

and the kernel between two records is fitted in both of them, k(x, x′) ≈ Σ_jl B(x − j) M(j − l)
B(x′ − l), so that tᵀMt is its sum over all pairs. Both are Toeplitz matrices; from the transform k̂
of the profile, with B̂(θ) = sinc(θ/2π)^{p+1}, A = Σ_m |B̂(θ + 2πm)|² and a ridge λ, they have

    Ĝ(θ) = ((1 + λ)/(A + λ))² Σ_m k̂((θ + 2πm)/h)² B̂(θ + 2πm)² / h,
    M̂(θ) = (1 + λ)/((A + λ)·A) Σ_m k̂((θ + 2πm)/h) B̂(θ + 2πm)² / h:

φ is what the answer uses, and the other record is projected without a ridge. Over all axes they are
Kronecker products, and are applied axis by axis: O(cells·log cells).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.families.base import Energy
from dpkde.families.spline import narrow
from dpkde.families.spline.bsplines import FARTHEST, gram
from dpkde.families.spline.grid import Axis, Grid
from dpkde.kernels import ProductKernel

Floats = NDArray[np.float64]

_ALIASES = np.arange(-6, 7)
_RINGING = 64
"""Nodes over which filters fade."""
_DENSE = 128
"""Nodes up to which a matrix is multiplied as it is."""
_TAIL = 1e-7
_PANELS = 16
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_LENGTHS = np.array([1.0, 1 / 3, 1 / 5])
"""Means of the squares of 1, t and P₂(t) over [−1, 1]."""


class Forms(NamedTuple):
    """Symmetric Toeplitz matrices by their first columns, or matrices of the narrow axes' group."""

    answers: Floats
    pairs: Floats
    itself: float


def of_table(kernel: ProductKernel, grid: Grid, table: Floats) -> Energy:
    """Return tᵀGt and tᵀMt with their traces, over all axes."""
    axes = [axis_forms(kernel, axis) for axis in grid.axes]
    group = group_forms(kernel, grid)
    shaped = table.reshape(grid.group, *(axis.nodes for axis in grid.axes))

    def form(columns: list[Floats], matrix: Floats) -> tuple[float, float]:
        trace = float(np.trace(matrix)) * math.prod(len(c) * float(c[0]) for c in columns)
        return float(np.vdot(shaped, _applied(columns, matrix, shaped))), trace

    return Energy(
        *form([forms.answers for forms in axes], group.answers),
        *form([forms.pairs for forms in axes], group.pairs),
        itself=group.itself * math.prod(forms.itself for forms in axes),
    )


def _applied(columns: list[Floats], matrix: Floats, shaped: Floats) -> Floats:
    """Return a Kronecker product of matrices times a table."""
    result = np.tensordot(matrix, shaped, axes=1)
    for k, column in enumerate(columns, start=1):
        result = np.moveaxis(_multiplied(column, np.moveaxis(result, k, 0)), 0, k)
    return result


def _multiplied(column: Floats, values: Floats) -> Floats:
    """Return a Toeplitz matrix times the first axis of an array."""
    from scipy.linalg import matmul_toeplitz, toeplitz

    if len(column) <= _DENSE:
        return np.tensordot(toeplitz(column), values, axes=1)
    flat = np.ascontiguousarray(values).reshape(len(values), -1)
    return np.asarray(matmul_toeplitz(column, flat).reshape(values.shape))


@lru_cache(maxsize=256)
def axis_forms(kernel: ProductKernel, axis: Axis) -> Forms:
    """Return the forms of a splined axis: columns as long as it has nodes."""
    h, p, ridge = axis.spacing, axis.degree, axis.ridge
    reach = min(kernel.profile_reach(_TAIL), FARTHEST) / h
    length = 1 << math.ceil(math.log2(axis.nodes + 2 * reach + 2 * _RINGING))
    theta = 2 * np.pi * np.arange(length // 2 + 1) / length
    level = np.full(len(theta), gram(p)[0])
    for m in range(1, p + 1):
        level += 2 * gram(p)[m] * np.cos(m * theta)
    squares = products = np.zeros(len(theta))
    for m in _ALIASES.tolist():
        places = theta + 2 * np.pi * m
        heights = kernel.profile_transform(places / h)
        weights = np.sinc(places / (2 * np.pi)) ** (2 * p + 2) / h
        squares = squares + heights**2 * weights
        products = products + heights * weights
    shrunk = (1 + ridge) / (level + ridge)
    answers = np.fft.irfft(shrunk**2 * squares, length)[: axis.nodes]
    pairs = np.fft.irfft(shrunk / level * products, length)
    itself = gram(p)[0] * pairs[0] + 2 * float(gram(p)[1:] @ pairs[1 : p + 1])
    return Forms(answers, pairs[: axis.nodes], float(itself))


class _Moments(NamedTuple):
    """Of a narrow axis, with c₀, c₁, c₂ the coefficients of 1, t and P₂(t), shape (3, 3) each."""

    answers: Floats
    """∫ c_a(y) c_b(y) dy."""
    pairs: Floats
    """The coefficients of c_b(y), for y on the axis."""


@lru_cache(maxsize=1024)
def _moments(kernel: ProductKernel, half: float) -> _Moments:
    reach = min(kernel.profile_reach(_TAIL), FARTHEST)
    near = max(min(half, reach) / 64, 1e-4 * reach)
    beyond = half + np.concatenate([[0.0], np.geomspace(near, reach, 4 * _PANELS)])
    inside = np.linspace(-half, half, _PANELS + 1)
    edges = np.concatenate([-beyond[:0:-1], inside, beyond[1:]])
    width = np.diff(edges)[:, np.newaxis] / 2
    y = (edges[:-1, np.newaxis] + width * (_POINTS + 1)).reshape(-1)
    mass = (width * _WEIGHTS).reshape(-1)
    seen = np.array(narrow.line(kernel, half, y))
    t, on = y / half, np.abs(y) <= half
    basis = np.array([np.ones_like(t), t, narrow.parabola(t)]) * on / (2 * half)
    return _Moments((seen * mass) @ seen.T, (basis * mass) @ seen.T / _LENGTHS[:, np.newaxis])


def group_forms(kernel: ProductKernel, grid: Grid) -> Forms:
    """Return the forms of the narrow axes' group: of its constant, its slopes and its arch."""
    moments = [_moments(kernel, half) for _, half in grid.narrow]
    shares = grid.shares / (1 << narrow.SHARE_BITS)
    pairs = _group(grid, [m.pairs for m in moments], shares)
    squares = [1.0] + [1 / 3] * len(grid.tilts)
    if grid.arch:
        squares.append(float((grid.arch_weights**2).sum()) / 5)
    itself = float((np.diag(pairs) * shares**2) @ np.array(squares))
    return Forms(_group(grid, [m.answers for m in moments], shares), pairs, itself)


def _group(grid: Grid, moments: list[Floats], shares: Floats) -> Floats:
    """Return a form of the group from those of its axes.

    With r_ab the moments of an axis over its own of the constant: slopes have r₁₁, the arch the
    best multiples for Σ r₂₀P₂(t_k) and for the double sum. Odd moments vanish.
    """
    flat = math.prod(float(m[0, 0]) for m in moments)
    ratios = [m / m[0, 0] for m in moments]
    tilted = set(grid.tilted.tolist())
    matrix = np.zeros((grid.group, grid.group))
    matrix[0, 0] = 1.0
    slopes = [
        r[1, 1] for r, (column, _) in zip(ratios, grid.narrow, strict=True) if column in tilted
    ]
    for k, slope in enumerate(slopes, start=1):
        matrix[k, k] = slope
    if grid.arch:
        a = grid.arch_weights
        length = float((a**2).sum())
        bows = np.array([r[2, 0] for r in ratios]) * a
        own = np.array([r[2, 2] for r in ratios]) * a**2
        matrix[0, -1] = matrix[-1, 0] = float(bows.sum()) / length
        crossed = float(bows.sum()) ** 2 - float((bows**2).sum())
        matrix[-1, -1] = (float(own.sum()) + crossed) / length**2
    return np.asarray(flat * matrix / np.outer(shares, shares))
