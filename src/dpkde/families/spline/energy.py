"""Quadratic forms of a spline table: answers squared over space, kernel values over pairs.

An answer is Σ_j t_j φ(y − j) on each axis, so that its square has the integral tᵀGt with

    G(j − l) = ∫ φ(v − j) φ(v − l) dv,

and the kernel between two records is fitted in both of them, k(x, x′) ≈ Σ_jl B(x − j) M(j − l)
B(x′ − l), so that tᵀMt is its sum over all pairs. Both are Toeplitz matrices; from the transform k̂
of the profile, with B̂(θ) = sinc(θ/2π)^{p+1}, A = Σ_m |B̂(θ + 2πm)|² and a ridge λ, they have

    Ĝ(θ) = ((1 + λ)/(A + λ))² Σ_m k̂((θ + 2πm)/h)² B̂(θ + 2πm)² / h,
    M̂(θ) = (1 + λ)/((A + λ)·A) Σ_m k̂((θ + 2πm)/h) B̂(θ + 2πm)² / h:

φ is what the answer uses, and the other record is projected without a ridge. Over all axes they are
Kronecker products. Long axes are transformed once, for all bandwidths: there a Toeplitz matrix is a
weight for each wave.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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
_DENSE = 64
"""Nodes up to which a matrix is multiplied as it is."""
_MOST_LONG = 2
"""Most axes that are transformed: each doubles the memory."""
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


@dataclass(frozen=True, eq=False)
class Waves:
    """A table with its longest axes transformed, so that forms of theirs are weights of waves.

    Attributes
    ----------
    values
        Shape (group, nodes…, waves…): the long axes last, each padded to twice its length.
    short, long
        Numbers of the axes, in that order.
    lengths
        Of the padded axes.
    """

    values: NDArray[np.complex128]
    short: tuple[int, ...]
    long: tuple[int, ...]
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, table: Floats, grid: Grid) -> Waves:
        """Transform the table of a grid. O(cells·log cells), and four times its memory."""
        from scipy.fft import fft, next_fast_len, rfft

        nodes = [axis.nodes for axis in grid.axes]
        order = sorted(range(len(nodes)), key=nodes.__getitem__, reverse=True)
        long = tuple(k for k in order[:_MOST_LONG] if nodes[k] > _DENSE)
        short = tuple(k for k in range(len(nodes)) if k not in long)
        values = table.reshape(grid.group, *nodes).transpose(0, *(1 + k for k in short + long))
        lengths = tuple(next_fast_len(2 * nodes[k], real=True) for k in long)
        for i, length in enumerate(reversed(lengths)):
            values = (rfft if i == 0 else fft)(values, length, axis=values.ndim - 1 - i)
        return cls(np.asarray(values), short, long, lengths)

    def form(self, columns: list[Floats], matrix: Floats) -> float:
        """Return tᵀ(matrix ⊗ Toeplitz ⊗ …)t."""
        from scipy.linalg import toeplitz

        applied = np.tensordot(matrix, self.values, axes=1)
        for place, k in enumerate(self.short, start=1):
            multiplied = np.tensordot(toeplitz(columns[k]), applied, axes=(1, place))
            applied = np.moveaxis(multiplied, 0, place)
        products = (self.values.conj() * applied).real
        products = products.sum(axis=tuple(range(1 + len(self.short))))
        pairs = list(zip(self.long, self.lengths, strict=True))
        for i, (k, length) in enumerate(reversed(pairs)):
            products = products @ _levels(columns[k], length, half=i == 0)
        return float(products)


def _levels(column: Floats, length: int, half: bool) -> Floats:
    """Return the weight of each wave: of the circulant matrix that holds a Toeplitz matrix.

    Where only half of the waves are kept, the others count with them.
    """
    size = len(column)
    around = np.zeros(length)
    around[:size] = column
    around[length - size + 1 :] = column[:0:-1]
    if not half:
        return np.asarray(np.fft.fft(around).real) / length
    levels = np.fft.rfft(around).real / length
    levels[1 : (length + 1) // 2] *= 2
    return np.asarray(levels)


def of_waves(kernel: ProductKernel, grid: Grid, waves: Waves) -> Energy:
    """Return tᵀGt and tᵀMt with their traces, over all axes."""
    axes = [axis_forms(kernel, axis) for axis in grid.axes]
    group = group_forms(kernel, grid)

    def form(columns: list[Floats], matrix: Floats) -> tuple[float, float]:
        trace = float(np.trace(matrix)) * math.prod(len(c) * float(c[0]) for c in columns)
        return waves.form(columns, matrix), trace

    return Energy(
        *form([forms.answers for forms in axes], group.answers),
        *form([forms.pairs for forms in axes], group.pairs),
        itself=group.itself * math.prod(forms.itself for forms in axes),
    )


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
