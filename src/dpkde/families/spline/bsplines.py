"""One axis of the spline family: cardinal B-splines, and the best coefficients for a kernel.

Positions are in units of the spacing, B_p is the centered B-spline of degree p, and its nodes are
the integers (odd p) or half-integers (even p) of the axis. For a query at v the coefficients

    c_j(v) = φ(v − node_j)   minimise   ∫ (Σ_j c_j B_p(u − node_j) − k(u − v))² du + λ Σ_j c_j²

over all nodes of an endless axis: φ is one function for all nodes and queries. A finite axis keeps
the nodes whose B-splines reach into it. So the nodes beyond an edge are *virtual*: they shape φ,
and an edge has the bias and the noise of the interior.

φ solves (A + λ) φ = (1 + λ) B_p ∗ k, where A is the filter of the inner products B_{2p+1}(m) of
B-splines, inverted by a discrete Fourier transform. The factor 1 + λ keeps constants exact. All of
this is public and belongs to g: floating point is welcome here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dpkde.kernels import ProductKernel
from dpkde.kernels.base import gauss_points, graded

Floats = NDArray[np.float64]

MAX_DEGREE = 5
PHASES = 64
"""Positions between two nodes at which φ is tabulated; cubic interpolation between them."""
_TAIL = 1e-7
"""How far the kernel is followed; and coefficients that stay below are always left out."""
_LEFT_OUT = 0.005
"""Coefficients below this part of the fit's own relative error are left out too."""
FARTHEST = 1024.0
"""How many bandwidths a kernel with slow tails is followed."""
FADED = 1e-5
"""What may be left of it there."""
_PLANNED_REACH = 48.0
"""How far it is followed to foresee the noise and the error of a fit."""
_COARSE = 4
_ENDLESS = 4096
_LINE_WIDTH = (-0.5, 0.0, 0.5)

LARGEST_SQUARES = (
    Fraction(1),
    Fraction(1),
    Fraction(19, 32),
    Fraction(1, 2),
    Fraction(32227, 73728),
    Fraction(571, 1440),
)
"""max_u Σ_j B_p(u − j)² for p = 0 … 5, attained at a node; see ``proof.md``."""


def bspline(degree: int, t: Floats) -> Floats:
    """Return B_p(t), centered, with support of p + 1 units, by the recurrence over degrees.

    >>> bspline(3, np.array([-1.0, 0.0, 1.0, 2.0])) * 6
    array([1., 4., 1., 0.])
    """
    start = t + (degree + 1) / 2
    pieces = [np.where((start >= i) & (start < i + 1), 1.0, 0.0) for i in range(degree + 1)]
    for d in range(1, degree + 1):
        pieces = [
            ((start - i) * pieces[i] + (i + d + 1 - start) * pieces[i + 1]) / d
            for i in range(degree + 1 - d)
        ]
    return np.asarray(pieces[0])


@lru_cache(maxsize=16)
def gram(degree: int) -> Floats:
    """Return ∫ B_p(u) B_p(u − m) du = B_{2p+1}(m) for m = 0 … p."""
    return bspline(2 * degree + 1, np.arange(degree + 1.0))


@dataclass(frozen=True)
class Response:
    """φ at equal phases between nodes.

    Attributes
    ----------
    values
        Row q holds φ((q − 1)/phases + radius − a) for columns a = 0 … 2·radius.
    radius
        How many nodes to each side have a coefficient that counts.
    phases
        Rows a unit; there is one row before the first and two after the last, to interpolate.
    """

    values: Floats
    radius: int
    phases: int


class AxisFit:
    """The least squares fit of a kernel's profile on an axis, at one degree and spacing.

    Parameters
    ----------
    kernel
        A product kernel.
    degree
        p, from 1 to `MAX_DEGREE`.
    spacing
        Distance between nodes, in bandwidths.
    ridge
        λ ≥ 0, against a Gram filter that is 1 at frequency zero.
    """

    def __init__(self, kernel: ProductKernel, degree: int, spacing: float, ridge: float) -> None:
        self.kernel, self.degree, self.spacing, self.ridge = kernel, degree, spacing, ridge

    def response(self, phases: int = PHASES) -> Response:
        """Return φ, cut where it has faded."""
        steps = np.arange(-1, phases + 2) / phases
        values, radius = self._coefficients(steps)
        sizes = np.abs(values).max(axis=0)
        _, _, scatter, _ = self._study
        tail = max(_TAIL, _LEFT_OUT * float(np.sqrt(scatter)))
        live = np.flatnonzero(sizes > tail * sizes.max())
        reach = int(np.abs(live - radius).max()) + 1
        cut = values[:, radius - reach : radius + reach + 1]
        return Response(np.ascontiguousarray(cut), reach, phases)

    def overlaps(self) -> Floats:
        """Return ∫ φ(v) φ(v − m) dv for m = 0, 1, …, φ as `response` has it: a Gram sequence.

        By the rule of equal steps, which is exact to rounding for functions as smooth as these.
        """
        response = self.response()
        rows = response.values[1 : 1 + response.phases]
        length = 2 * rows.shape[1]
        spectrum = np.abs(np.fft.rfft(rows, length, axis=1)) ** 2
        return np.asarray(np.fft.irfft(spectrum.sum(axis=0), length)[: rows.shape[1]] / len(rows))

    def likenesses(self) -> Floats:
        """Return K_m, m = 0, 1, …, for which Σ_ij K_{i−j} B_i(x) B_j(x′) best fits k(x − x′).

        Least squares in x and in x′: the filter of φ applied twice to B_p ∗ k ∗ B_p.
        """
        products, radius = _products(
            self.kernel, 2 * self.degree + 1, self.spacing, np.zeros(1), FARTHEST
        )
        twice = self._filtered(self._filtered(products, self.ridge), self.ridge)[0, radius:]
        live = np.flatnonzero(np.abs(twice) > _TAIL * twice[0])
        return np.asarray(twice[: live[-1] + 1])

    def duals(self) -> Floats:
        """Return a_m, m = 0, 1, …: Σ_m a_{|m|} B_p(t − m) integrates splines to coefficients."""
        impulse = np.zeros((1, _ENDLESS))
        impulse[0, 0] = 1.0
        sequence = self._filtered(impulse, self.ridge)[0, : _ENDLESS // 2]
        live = np.flatnonzero(np.abs(sequence) > 1e-12 * sequence[0])
        return np.asarray(sequence[: live[-1] + 1])

    def _coefficients(self, steps: Floats) -> tuple[Floats, int]:
        products, radius = _products(self.kernel, self.degree, self.spacing, steps, FARTHEST)
        return self._filtered(products, self.ridge), radius

    def _filtered(self, products: Floats, ridge: float) -> Floats:
        """Return (1 + λ)(A + λ)⁻¹ applied along the nodes."""
        length = products.shape[1]
        symbol = self._symbol(length)
        spectrum = np.fft.rfft(products, axis=1) * ((1 + ridge) / (symbol + ridge))
        return np.asarray(np.fft.irfft(spectrum, length, axis=1))

    def _symbol(self, length: int) -> Floats:
        angle = 2 * np.pi * np.arange(length // 2 + 1) / length
        entries = gram(self.degree)
        total = np.full(len(angle), entries[0])
        for m in range(1, self.degree + 1):
            total += 2 * entries[m] * np.cos(m * angle)
        return total

    @cached_property
    def _study(self) -> tuple[Floats, Floats, float, float]:
        """Positions, φ² summed up to them, and the two relative errors of `quality`."""
        steps = np.arange(_COARSE) / _COARSE
        products, radius = _products(self.kernel, self.degree, self.spacing, steps, _PLANNED_REACH)
        plain = self._filtered(products, 0.0)
        ridged = self._filtered(products, self.ridge) if self.ridge else plain
        # Least squares leaves a residual orthogonal to every spline: Pythagoras.
        whole = _energy(self.kernel) / self.spacing
        residual = max(whole - float((products * plain).sum()) / _COARSE, 0.0)
        change = ridged - plain
        spectrum = np.abs(np.fft.fft(change, axis=1)) ** 2
        symbol = np.concatenate([self._symbol(change.shape[1]), np.zeros(change.shape[1])])
        length = change.shape[1]
        mirrored = symbol[np.minimum(np.arange(length), length - np.arange(length))]
        bent = float((spectrum * mirrored).sum()) / length / _COARSE
        positions = radius - np.arange(products.shape[1])[:, np.newaxis] + steps
        order = np.argsort(positions, axis=None)
        total = np.cumsum((ridged.T**2).reshape(-1)[order]) / _COARSE
        return positions.reshape(-1)[order], total, residual / whole, bent / whole

    @cached_property
    def _gap(self) -> float:
        """Return what the fit lacks where a record meets the query, as a mean over queries."""
        steps = np.arange(_COARSE) / _COARSE
        products, radius = _products(self.kernel, self.degree, self.spacing, steps, _PLANNED_REACH)
        near = slice(radius - self.degree - 1, radius + self.degree + 2)
        places = radius - np.arange(products.shape[1])[near] + steps[:, np.newaxis]
        met = (bspline(self.degree, places) * self._filtered(products, self.ridge)[:, near]).sum()
        return abs(1 - float(met) / _COARSE)

    @cached_property
    def _lines(self) -> float:
        """Return the squared relative error that data on a lattice see.

        Where σ is a whole number of the lattice's steps, the data's spectrum has lines at ν = 2πj,
        about a radian wide where their density changes over a few bandwidths. To such a frequency
        the spline adds what the kernel has at its aliases,

            |B̂(νh)|/(a + λ) · (Σ_{m≠0} k̂(ν + 2πm/h)² B̂(νh + 2πm)²)^{1/2},

        as a root mean square over queries; relative to k̂(0), and for ν and −ν.
        """
        entries = gram(self.degree)
        frequencies = np.add.outer(2 * np.pi * np.arange(1, 4), _LINE_WIDTH)
        ratios = frequencies * self.spacing / (2 * np.pi)
        level = np.full(ratios.shape, entries[0] + self.ridge)
        for m in range(1, self.degree + 1):
            level += 2 * entries[m] * np.cos(2 * np.pi * m * ratios)
        here = np.sinc(ratios) ** (self.degree + 1) / level
        aliases = np.add.outer(ratios, [-3, -2, -1, 1, 2, 3])
        heights = self.kernel.profile_transform(aliases * (2 * np.pi / self.spacing))
        there = ((heights * np.sinc(aliases) ** (self.degree + 1)) ** 2).sum(axis=-1)
        full = float(self.kernel.profile_transform(np.zeros(1))[0])
        return float(2 * (here**2 * there).mean(axis=1).sum()) / full**2

    def quality(self, intervals: int) -> Quality:
        """Return how noise passes through an axis of so many intervals, and the errors of the fit.

        ``gain`` is the root mean square of ‖c(v)‖₂ over queries v on the axis, the real nodes only.
        """
        positions, total, scatter, bend = self._study
        if intervals > _ENDLESS:  # the edges do not count
            return Quality(float(np.sqrt(total[-1])), scatter, bend, self._lines, self._gap)
        nodes = np.arange(intervals + self.degree) - (self.degree - 1) / 2
        upper = np.interp(intervals - nodes, positions, total)
        lower = np.interp(-nodes, positions, total, left=0.0)
        gain = float(np.sqrt((upper - lower).sum() / intervals))
        return Quality(gain, scatter, bend, self._lines, self._gap)


@dataclass(frozen=True)
class Quality:
    """What one axis does to noise and to the kernel.

    Attributes
    ----------
    gain
        Root mean square of ‖c(y)‖₂, for weights whose L1 norm is 1.
    scatter
        Squared relative L2 error that averages out over smooth data.
    bend
        Squared relative L2 error that does not.
    lines
        Squared relative error on data that lie on a lattice.
    gap
        Relative error where a record meets the query.
    """

    gain: float
    scatter: float
    bend: float
    lines: float
    gap: float


@lru_cache(maxsize=256)
def _products_cached(
    kernel: ProductKernel, degree: int, spacing: float, steps: tuple[float, ...], farthest: float
) -> tuple[Floats, int]:
    reach = min(kernel.profile_reach(_TAIL / 10), farthest) / spacing
    radius = int(np.ceil(reach + (degree + 1) / 2)) + 1
    # Filters ring: beyond the kernel's own reach φ fades like 0.75^distance at worst (degree 5).
    length = 1 << int(np.ceil(np.log2(2 * (radius + 64))))
    radius = length // 2
    points, weights = np.polynomial.legendre.leggauss(8)
    half = (degree + 1) / 2
    offsets = radius - np.arange(length, dtype=np.float64)
    products = np.empty((len(steps), length))
    for row, phase in enumerate(steps):
        # The profile may have a kink where u = v: panels end there, and at the knots.
        split = (phase + half) % 1.0
        edges = np.unique(np.concatenate([np.arange(degree + 2), np.arange(degree + 1) + split]))
        width = np.diff(edges)[:, np.newaxis] / 2
        u = (edges[:-1, np.newaxis] + width * (points + 1)).reshape(-1) - half
        mass = (width * weights).reshape(-1) * bspline(degree, u)
        near = np.abs(offsets) <= reach + half + 1
        apart = offsets[near, np.newaxis] + phase - u
        products[row] = 0.0
        products[row, near] = kernel.profile(apart * spacing) @ mass
    products.setflags(write=False)
    return products, radius


def _products(
    kernel: ProductKernel, degree: int, spacing: float, steps: Floats, farthest: float
) -> tuple[Floats, int]:
    """Return (B_p ∗ k)(phase + radius − a) for each phase and column a, and the radius."""
    return _products_cached(kernel, degree, spacing, tuple(steps.tolist()), farthest)


@lru_cache(maxsize=64)
def _energy(kernel: ProductKernel) -> float:
    """Return ∫ profile(t)² dt."""
    t, mass = gauss_points(graded(min(kernel.profile_reach(1e-8), FARTHEST)))
    return 2 * float(kernel.profile(t) ** 2 @ mass)


@lru_cache(maxsize=4096)
def axis_fit(kernel: ProductKernel, degree: int, spacing: float, ridge: float) -> AxisFit:
    """Return a fit, kept for the next time."""
    return AxisFit(kernel, degree, spacing, ridge)
