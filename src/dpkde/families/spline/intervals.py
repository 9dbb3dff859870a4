"""What a spline table tells of intervals: coefficients integrated over queries, axis by axis.

On a splined axis a query at v has the coefficients φ(v − node_j) (see `bsplines`), and all queries
of an interval together Φ(high − node_j) − Φ(low − node_j), Φ the integral of φ, over that of the
kernel. Φ is that of the very interpolant that answers queries: shares of finite intervals are what
quadrature of the answers gives. B-splines add up to one, so that the whole line has the weight one
on every node; what the answers leave out of the kernel's tails belongs to the infinite ends.

Whether a record lies in an interval is told as well as splines can: by their least squares fit of
a step, whose coefficients are D(v − node_j), D = A⁻¹ ∫ B_p.

Narrow axes have the integrals of their constant, slope and curve (see `narrow`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.reading import Factor, Made, Ones, to_the_bounds
from dpkde.families.spline import grid as grids
from dpkde.families.spline import narrow
from dpkde.families.spline.bsplines import PHASES, axis_fit, bspline, gram
from dpkde.kernels import ProductKernel
from dpkde.kernels.base import gauss_points, graded

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Line = tuple[Floats, Floats, Floats]
"""Constant, slope and curve of a narrow axis, one of each for a row."""

_Curve = Callable[[Ints, Floats, Ints], tuple[Floats, float, float]]
_NUMBERS = 1 << 20
_FADED = 1e-13
"""Entries of A⁻¹ below this are left out."""
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(8)


class _Cumulative(NamedTuple):
    """φ, and Φ at the beginning of each phase; rows are phases, columns nodes, as in `Response`."""

    values: Floats
    upto: Floats
    radius: int
    lost: float
    """What φ lacks of the kernel's integral, on each side."""


@lru_cache(maxsize=64)
def _cumulative(kernel: ProductKernel, degree: int, spacing: float, ridge: float) -> _Cumulative:
    """Return Φ of an axis, over the kernel's integral, from the cubics between phases."""
    response = axis_fit(kernel, degree, spacing, ridge).response()
    values, phases = response.values, response.phases
    unit = spacing / kernel.integral(1) / phases
    cells = (13 * (values[1:-2] + values[2:-1]) - values[:-3] - values[3:]) / 24
    # Positions grow with the phase, and fall with the node.
    ordered = cells[:, ::-1].T.reshape(-1)
    sums = np.concatenate([[0.0], np.cumsum(ordered)]) * unit
    lost = (1 - float(sums[-1])) / 2
    upto = (sums[:-1] + lost).reshape(-1, phases).T[:, ::-1]
    return _Cumulative(values * unit * phases, upto, response.radius, lost)


def lost(kernel: ProductKernel, degree: int, spacing: float, ridge: float) -> float:
    """Return the share of a record that answers leave out, on each side."""
    return _cumulative(kernel, degree, spacing, ridge).lost


@dataclass(frozen=True)
class SplinedAxis:
    """A splined axis, and what it tells: a factor over its nodes."""

    kernel: ProductKernel
    axis: grids.Axis

    def at(self, places: Floats) -> Factor:
        """Return φ at the nodes: the coefficients of queries."""
        return Made(self.axis.nodes, (places,), self._values, self._sum_of_values)

    def over(self, low: Floats, high: Floats, less: float | Floats) -> Factor:
        """Return Φ(high) − Φ(low), less a constant."""
        below = np.atleast_1d(np.asarray(less, dtype=np.float64))
        if np.isneginf(low).all() and np.isposinf(high).all() and not below.any():
            return Ones(self.axis.nodes)
        return Made(self.axis.nodes, (low, high, below), self._shares, self._sum_of_shares)

    def within(self, low: Floats, high: Floats) -> Factor:
        """Return D(high) − D(low); what reaches to the bounds holds all that was moved there."""
        low, high = to_the_bounds(low, high, self.axis.half)
        return Made(self.axis.nodes, (low, high), self._steps)

    def _shares(self, low: Floats, high: Floats, less: Floats) -> Floats:
        return np.asarray(self._upto(high) - self._upto(low) - less[:, np.newaxis])

    def _steps(self, low: Floats, high: Floats) -> Floats:
        return np.asarray(self._step(high) - self._step(low))

    def _sum_of_values(self, vector: Floats, places: Floats) -> Floats:
        return self._summed(vector, places, self._hills)

    def _sum_of_shares(self, vector: Floats, low: Floats, high: Floats, less: Floats) -> Floats:
        upper, lower = (self._summed(vector, end, self._ramps) for end in (high, low))
        return np.asarray(upper - lower - less * vector.sum())

    def _positions(self, places: Floats, reach: float) -> Floats:
        """Return positions among the nodes; as far out as anything is told apart."""
        axis = self.axis
        with np.errstate(all="ignore"):
            v = (places + axis.half) / axis.spacing + (axis.degree - 1) / 2
        return np.clip(np.nan_to_num(v), -reach - 2, axis.nodes + reach + 2)

    @property
    def _table(self) -> _Cumulative:
        axis = self.axis
        return _cumulative(self.kernel, axis.degree, axis.spacing, axis.ridge)

    def _values(self, places: Floats) -> Floats:
        """Return φ at each node, shape (n, nodes); in units of the kernel, not of its integral."""
        return self._spread(places, self._hills)

    def _upto(self, places: Floats) -> Floats:
        """Return Φ at each node, shape (n, nodes): zero at −∞, one at ∞."""
        return self._spread(places, self._ramps)

    def _hills(self, q: Ints, r: Floats, a: Ints) -> tuple[Floats, float, float]:
        """Return φ at phases q with r left, for columns a; and what it is before and after them."""
        parts = (
            -r * (r - 1) * (r - 2) / 6,
            (r + 1) * (r - 1) * (r - 2) / 2,
            -(r + 1) * r * (r - 2) / 2,
            (r + 1) * r * (r - 1) / 6,
        )
        unit = self.kernel.integral(1) / self.axis.spacing
        return _mixed(self._table.values, q, a, parts) * unit, 0.0, 0.0

    def _ramps(self, q: Ints, r: Floats, a: Ints) -> tuple[Floats, float, float]:
        """Return Φ in the same way: the integrals of the four cubics of `_hills` up to r."""
        table = self._table
        parts = (
            -(r**4 / 4 - r**3 + r**2) / 6,
            (r**4 / 4 - 2 * r**3 / 3 - r**2 / 2 + 2 * r) / 2,
            -(r**4 / 4 - r**3 / 3 - r**2) / 2,
            (r**4 / 4 - r**2 / 2) / 6,
        )
        rows = table.upto[q[:, np.newaxis], a] + _mixed(table.values, q, a, parts) / PHASES
        return rows, 1 - table.lost, table.lost

    def _near(self, places: Floats) -> tuple[Ints, Ints, Floats]:
        """Return the first node of each window of 2·radius + 1, the phases and what is left."""
        v = self._positions(places, self._table.radius)
        below = np.floor(v)
        s = (v - below) * PHASES
        q = np.minimum(s.astype(np.int64), PHASES - 1)
        return below.astype(np.int64) - self._table.radius, q, s - q

    def _spread(self, places: Floats, curve: _Curve) -> Floats:
        """Return a curve at each node, shape (n, nodes)."""
        first, q, r = self._near(places)
        last = 2 * self._table.radius
        columns = np.arange(self.axis.nodes) - first[:, np.newaxis]
        if last < self.axis.nodes:  # most nodes are before or after the window
            window, before, after = curve(q, r, np.tile(np.arange(last + 1), (len(q), 1)))
            rows = np.where(columns < 0, before, after)
            inside = (columns >= 0) & (columns <= last)
            held = first[:, np.newaxis] + np.arange(last + 1)
            rows[inside] = window[(held >= 0) & (held < self.axis.nodes)]
        else:
            rows, before, after = curve(q, r, np.clip(columns, 0, last))
            rows = np.where(columns < 0, before, np.where(columns > last, after, rows))
        if curve == self._ramps:
            rows[np.isneginf(places)] = 0.0
            rows[np.isposinf(places)] = 1.0
        return rows

    def _summed(self, vector: Floats, places: Floats, curve: _Curve) -> Floats:
        """Return Σ_j curve_j·vector_j: the window, and sums of all that is before and after."""
        width, nodes = 2 * self._table.radius + 1, self.axis.nodes
        upto = np.concatenate([[0.0], np.cumsum(vector)])
        sums = np.empty(len(places))
        step = max(1, _NUMBERS // width)
        for start in range(0, len(places), step):
            first, q, r = self._near(places[start : start + step])
            window, before, after = curve(q, r, np.tile(np.arange(width), (len(q), 1)))
            held = first[:, np.newaxis] + np.arange(width)
            real = (held >= 0) & (held < nodes)
            near = np.where(real, vector[np.clip(held, 0, nodes - 1)], 0.0)
            total = (window * near).sum(axis=1) + before * upto[np.clip(first, 0, nodes)]
            total += after * (upto[-1] - upto[np.clip(first + width, 0, nodes)])
            sums[start : start + step] = total
        if curve == self._ramps:
            sums[np.isneginf(places)] = 0.0
            sums[np.isposinf(places)] = upto[-1]
        return sums

    def _step(self, places: Floats) -> Floats:
        """Return D at each node, shape (n, nodes)."""
        inverse = _inverse(self.axis.degree)
        reach = len(inverse) // 2
        v = self._positions(places, reach + self.axis.degree)
        nodes = np.arange(-reach, self.axis.nodes + reach)
        steps = _ramp(self.axis.degree, v[:, np.newaxis] - nodes)
        rows = np.zeros((len(v), self.axis.nodes))
        for m, entry in enumerate(inverse):
            rows += entry * steps[:, m : m + self.axis.nodes]
        rows[np.isneginf(places)] = 0.0
        rows[np.isposinf(places)] = 1.0
        return rows


def _mixed(
    values: Floats, q: NDArray[np.int64], a: NDArray[np.int64], parts: Sequence[Floats]
) -> Floats:
    """Return Σ_k part_k·values[q + k, a]."""
    total = np.zeros(a.shape)
    for k, part in enumerate(parts):
        total += part[:, np.newaxis] * values[q[:, np.newaxis] + k, a]
    return total


@lru_cache(maxsize=16)
def _inverse(degree: int) -> Floats:
    """Return the entries of A⁻¹, A the filter of inner products of B-splines, as far as they count.

    >>> bool(abs(_inverse(3).sum() - 1) < 1e-9)
    True
    """
    length = 1024
    angle = 2 * np.pi * np.arange(length // 2 + 1) / length
    entries = gram(degree)
    symbol = entries[0] + 2 * sum(e * np.cos(m * angle) for m, e in enumerate(entries[1:], 1))
    inverse = np.fft.fftshift(np.fft.irfft(1 / symbol, length))
    live = np.flatnonzero(np.abs(inverse) > _FADED)
    reach = int(np.abs(live - length // 2).max())
    return np.asarray(inverse[length // 2 - reach : length // 2 + reach + 1])


def _ramp(degree: int, t: Floats) -> Floats:
    """Return ∫ B_p up to t: Σ_i B_{p+1}(t − ½ − i) over i ≥ 0."""
    near = np.clip(t, -(degree + 2.0), degree + 2.0)
    return np.asarray(sum(bspline(degree + 1, near - 0.5 - i) for i in range(2 * degree + 5)))


@dataclass(frozen=True)
class NarrowAxis:
    """A constant or tilted axis, and what it tells: its line."""

    kernel: ProductKernel
    half: float
    name: str

    def at(self, places: Floats) -> Line:
        """Return the least squares parabola of the kernel at places."""
        return narrow.line(self.kernel, self.half, places)

    def over(self, low: Floats, high: Floats, less: float | Floats) -> Line:
        """Return its integrals over places, over that of the kernel; less a constant."""
        upper, lower = self._upto(high), self._upto(low)
        level, slope, curve = (a - b for a, b in zip(upper, lower, strict=True))
        return level - less, slope, curve

    def within(self, low: Floats, high: Floats) -> Line:
        """Return ones for the whole axis; no less is told of it."""
        low, high = to_the_bounds(low, high, self.half)
        if not (np.isneginf(low).all() and np.isposinf(high).all()):
            raise ParameterError(
                f"{self.name} is narrower than the bandwidth, and the table does not tell where on "
                "it records lie: leave it whole, or ask for smoothed shares"
            )
        return np.ones(len(low)), np.zeros(len(low)), np.zeros(len(low))

    def _upto(self, y: Floats) -> Line:
        """Return the integrals up to y: of K(y − t·half) against 1/2, 3t/2 and 5P₂(t)/2.

        K is the kernel's share up to a point. Panels end where it bends, at t·half = y.
        """
        half, kernel = self.half, self.kernel
        level = np.isposinf(y).astype(np.float64)
        slope, curve = np.zeros(len(y)), np.zeros(len(y))
        finite = np.isfinite(y)  # most columns of most questions are whole
        if not finite.any():
            return level, slope, curve
        reach = kernel.profile_reach(1e-9)
        panels = max(1, int(np.ceil(min(2 * half, reach))))
        place = y[finite]
        middle = np.clip(place / half, -1.0, 1.0)
        first = np.clip((place - reach) / half, -1.0, middle)
        last = np.clip((place + reach) / half, middle, 1.0)
        one = np.ones(len(place))
        ends = ((-one, first, 1), (first, middle, panels), (middle, last, panels), (last, one, 1))
        for low, high, count in ends:
            width = ((high - low) / count / 2)[:, np.newaxis]
            for panel in range(count):
                t = low[:, np.newaxis] + width * (2 * panel + 1 + _POINTS)
                mass = share_upto(kernel, place[:, np.newaxis] - t * half) * (width * _WEIGHTS)
                level[finite] += mass.sum(axis=1) / 2
                slope[finite] += (mass * t).sum(axis=1) * 1.5
                curve[finite] += (mass * narrow.parabola(t)).sum(axis=1) * 2.5
        return level, slope, curve


@lru_cache(maxsize=32)
def _shares(kernel: ProductKernel) -> tuple[Floats, Floats]:
    """Return edges of panels on the half-line, and the kernel's share from zero up to each."""
    edges = graded(min(kernel.profile_reach(1e-12), 1e6))
    points, mass = gauss_points(edges)
    cells = (kernel.profile(points) * mass).reshape(len(edges) - 1, -1).sum(axis=1)
    return edges, np.concatenate([[0.0], np.cumsum(cells)]) / kernel.integral(1)


def share_upto(kernel: ProductKernel, z: Floats) -> Floats:
    """Return K(z) = ∫ profile up to z, over its integral on the whole line.

    By eight Gauss points between the edge of a panel and z.
    """
    edges, sums = _shares(kernel)
    size = np.minimum(np.abs(z), edges[-1])
    panel = np.minimum(np.searchsorted(edges, size, side="right") - 1, len(edges) - 2)
    width = (size - edges[panel]) / 2
    part = sums[panel]
    for point, weight in zip(_POINTS, _WEIGHTS, strict=True):
        height = kernel.profile(edges[panel] + width * (1 + point))
        part = part + width * weight * height / kernel.integral(1)
    return np.asarray(0.5 + np.sign(z) * part)


def group(grid: grids.Grid, lines: Sequence[Line]) -> Floats:
    """Return what narrow axes say together: one number for each cell of their group.

    The constant has the product of all levels; a slope and a curve take the place of their axis's
    level in it. `lines` are in the order of ``grid.narrow``.
    """
    levels = np.column_stack(np.broadcast_arrays(*(line[0] for line in lines)))
    ones = np.ones((len(levels), 1))
    before = np.cumprod(np.hstack([ones, levels]), axis=1)
    after = np.cumprod(np.hstack([ones, levels[:, ::-1]]), axis=1)[:, ::-1]
    others = before[:, :-1] * after[:, 1:]
    tilted = set(grid.tilted.tolist())
    cells = [before[:, -1]]
    for k, (column, _) in enumerate(grid.narrow):
        if column in tilted:
            cells.append(lines[k][1] * others[:, k])
    if grid.arch:
        # The best multiple of Σ a_k P₂(t_k) for Σ r_k P₂(t_k): the P₂ are orthogonal.
        bowed = sum(
            a * line[2] * others[:, k]
            for k, (a, line) in enumerate(zip(grid.arch_weights, lines, strict=True))
        )
        cells.append(np.asarray(bowed) / float((grid.arch_weights**2).sum()))
    return np.asarray(np.column_stack(cells) / (grid.shares / (1 << narrow.SHARE_BITS)))
