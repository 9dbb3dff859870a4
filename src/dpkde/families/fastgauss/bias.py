"""How far shares of boxes can be off: what Taylor's rest makes of the records in each cell.

Along one axis a record at u from the center of its cell counts as F(u) = Σ_r w_r u^r where its
share is M(u). Of e = F − M the nearest polynomial a(u) of the powers that the table has is seen in
it: with the weights of the other axes it tells N_cr, the sum of u^r over the records of each cell c
of this axis, and N_c0 is their number. What is left of e is at most D_c, wherever in the cell they
are heaped. The bias is taken to be at most

    Σ_k ( |Σ_cr a_cr N_cr| + ( Σ_c D_c² N_c0² )^{1/2} ),

over axes k, the variance of the noise being taken off the squares: what a heap anywhere can cause.
Of heaps in several cells the second parts add as if their signs were those of coins.

That is the typical bias of an interval. For any records, `bound_of_boxes` takes in each cell the
polynomial, and as a constant what is left at most: see `dpkde.families.brackets`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpkde.families import outlines
from dpkde.families.brackets import Allowance, Bracket, allowance, together
from dpkde.families.fastgauss.intervals import CellAxis
from dpkde.families.reading import WHOLE, Asked, Over, Within, along, rows_of, to_the_bounds
from dpkde.families.spline.intervals import share_upto
from dpkde.families.spline.worst import MARGIN
from dpkde.kernels import ProductKernel

if TYPE_CHECKING:
    from dpkde.families.fastgauss.family import FastGaussPair

Floats = NDArray[np.float64]

_PLACES, _SHARP_PLACES = 17, 129
"""Places within a cell at which e is looked at, and where it has a step."""
_NUMBERS = 1 << 20


def of_boxes(pair: FastGaussPair, asked: Sequence[Asked], table: Floats, variance: float) -> Floats:
    """Return what sums over boxes are typically off by, from the table and its noise's variance."""
    layout, rows = pair.layout, rows_of(asked)
    copies = layout.family.repetitions
    sizes = [size * layout.order for size in layout.sizes]
    tensor = pair.axis_by_axis(table.reshape(copies, -1).mean(axis=0)).reshape(sizes)
    step = max(1, _NUMBERS // (max(layout.sizes) * _SHARP_PLACES))
    parts = []
    for start in range(0, rows, step):
        part = [_part(entry, slice(start, start + step)) for entry in asked]
        bias = _bias(pair, part, tensor / 2**pair.bits, variance / copies / 4.0**pair.bits)
        parts.append(np.broadcast_to(bias, (min(step, rows - start),)))
    return np.concatenate([*parts, np.empty(0)])


def bound_of_boxes(pair: FastGaussPair, asked: Sequence[Asked], table: Floats) -> Allowance:
    """Return the most that sums over boxes are off by, for any records, from their noisy table."""
    layout, rows = pair.layout, rows_of(asked)
    copies = layout.family.repetitions
    sizes = [size * layout.order for size in layout.sizes]
    tensor = pair.axis_by_axis(table.reshape(copies, -1).mean(axis=0)).reshape(sizes)
    step = max(1, _NUMBERS // (max(layout.sizes) * _SHARP_PLACES))
    halves = pair.frame.halves()
    assert halves is not None
    parts = []
    for start in range(0, rows, step):
        part = [entry.part(slice(start, start + step)) for entry in asked]
        brackets = [
            _bracket(pair, entry, half, cells)
            for entry, half, cells in zip(part, halves.tolist(), layout.sizes, strict=True)
        ]
        one = allowance(tensor, brackets)
        count = min(step, rows - start)
        parts.append(Allowance(*(np.broadcast_to(values, (count,)) for values in one)))
    most, norms = together(parts)
    return Allowance(most, norms / math.sqrt(copies)).over(2**pair.bits)


def _bracket(pair: FastGaussPair, entry: Asked, half: float, cells: int) -> Bracket:
    """Return the weights of an axis, and polynomials that bound their error in each cell.

    Both have the polynomial that is nearest to e, and the least constant that is enough.
    """
    order = pair.layout.order
    low, high, sharp = _part(entry, slice(None))
    axis = CellAxis(half, cells, order)
    weights = np.asarray(entry.of(axis).rows())
    plain = (axis.within(low, high) if sharp else axis.over(low, high, 0.0)).rows()
    u = _places(half, cells, sharp)
    powers = u[:, np.newaxis] ** np.arange(order)
    if sharp:
        low, high = to_the_bounds(low, high, half)
    share = _step if sharp else partial(share_upto, pair.frame.kernel.shape)
    error = _errors(share, plain.reshape(len(plain), cells, order), low, high, u)
    polynomial = error @ np.linalg.pinv(powers).T
    fitted = polynomial @ powers.T
    left = [sign * (error - fitted) for sign in (-1.0, 1.0)]
    if sharp:  # the step may be anywhere between two places
        truth = plain.reshape(len(plain), cells, order) @ powers.T - error
        padded = np.pad(truth, ((0, 0), (0, 0), (1, 1)), mode="edge")
        near = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=2)
        rest = error + truth - fitted
        left = [near.max(axis=3) - rest, rest - near.min(axis=3)]
    both = []
    for sign, most in zip((-1.0, 1.0), left, strict=True):
        bound = sign * polynomial
        bound[..., 0] += MARGIN * np.maximum(most.max(axis=2), 0.0)
        both.append(bound.reshape(len(plain), -1))
    return Bracket(weights, *both)


@dataclass(frozen=True, eq=False)
class _View:
    """An axis in which strips are asked about."""

    kernel: ProductKernel
    entry: Asked
    rows: Floats
    """Shape (strips, cells, order)."""
    u: Floats

    @property
    def bins(self) -> int:
        return int(self.rows.shape[1])

    @property
    def places(self) -> int:
        return len(self.u)

    def near(self, bins: slice) -> NDArray[np.int64]:
        return outlines.heavy(self.rows[:, bins].reshape(len(self.rows), -1))

    def counted(self, strips: NDArray[np.int64], bins: slice) -> Floats:
        powers = self.u[:, np.newaxis] ** np.arange(self.rows.shape[2])
        return np.asarray(self.rows[strips, bins] @ powers.T)

    def true(self, strips: NDArray[np.int64], bins: slice) -> Floats:
        centers = np.arange(self.bins)[bins] - (self.bins - 1) / 2
        return outlines.shares(self.kernel, self.entry, strips, np.add.outer(centers, self.u))


def bound_of_strips(
    pair: FastGaussPair, asked: Sequence[Asked], coefficients: Floats, table: Floats
) -> Allowance:
    """Return the most that the sum over a region is off by, and the noise of that.

    In each cell the error as a function of the place is bounded as along an axis: by the polynomial
    that is nearest to it, and the least constant that is enough.
    """
    layout, kernel, halves = pair.layout, pair.frame.kernel.shape, pair.frame.halves()
    assert halves is not None
    copies, order = layout.family.repetitions, layout.order
    sizes = [size * order for size in layout.sizes]
    tensor = pair.axis_by_axis(table.reshape(copies, -1).mean(axis=0)).reshape(sizes)
    kept = [k for k, entry in enumerate(asked) if entry is not WHOLE]
    left_out = [k for k in range(len(sizes)) if k not in kept]
    # Of the others the first power counts the records.
    for k in reversed(left_out):
        tensor = np.take(tensor, np.arange(0, sizes[k], order), axis=k).sum(axis=k)
    views = []
    for k in kept:
        cells = layout.sizes[k]
        rows = asked[k].of(CellAxis(halves[k], cells, order)).rows()
        rows = np.broadcast_to(rows, (len(coefficients), sizes[k]))
        u = _places(halves[k], cells, False)[::2]
        views.append(_View(kernel, asked[k], rows.reshape(-1, cells, order), u))
    first, second = views
    powers = [view.u[:, np.newaxis] ** np.arange(order) for view in views]
    fits = [np.linalg.pinv(power) for power in powers]
    both = np.zeros((2, first.bins, order, second.bins, order))
    for bins, error in outlines.errors(first, second, coefficients):
        polynomial = np.einsum("rp,apbq,sq->arbs", fits[0], error, fits[1], optimize=True)
        rest = error - np.einsum(
            "pr,arbs,qs->apbq", powers[0], polynomial, powers[1], optimize=True
        )
        for row, sign in enumerate((-1.0, 1.0)):
            both[row, bins] = sign * polynomial
            most = (sign * rest).max(axis=(1, 3))
            both[row, bins, 0, :, 0] += MARGIN**2 * np.maximum(most, 0.0)
    sums = [float((bound.reshape(tensor.shape) * tensor).sum()) for bound in both]
    unit = math.sqrt(math.prod(layout.sizes[k] for k in left_out) / copies)
    norms = [float(np.linalg.norm(bound)) * unit for bound in both]
    return Allowance(np.array([max(0.0, *sums)]), np.array([max(norms)])).over(2**pair.bits)


def _part(entry: Asked, rows: slice) -> tuple[Floats, Floats, bool]:
    assert isinstance(entry, (Over, Within))
    low, high = np.broadcast_arrays(entry.low, entry.high)
    low, high = (low, high) if len(low) == 1 else (low[rows], high[rows])
    return low, high, isinstance(entry, Within)


def _bias(
    pair: FastGaussPair,
    asked: Sequence[tuple[Floats, Floats, bool]],
    tensor: Floats,
    variance: float,
) -> Floats:
    """Return the bias of some rows."""
    order, kernel = pair.layout.order, pair.frame.kernel.shape
    weights, seen, left = [], [], []
    halves = pair.frame.halves()
    assert halves is not None
    for (low, high, sharp), half, cells in zip(
        asked, halves.tolist(), pair.layout.sizes, strict=True
    ):
        axis = CellAxis(half, cells, order)
        own = (axis.within(low, high) if sharp else axis.over(low, high, 0.0)).rows()
        u = _places(half, cells, sharp)
        powers = u[:, np.newaxis] ** np.arange(order)
        if sharp:
            low, high = to_the_bounds(low, high, half)
        share = _step if sharp else partial(share_upto, kernel)
        error = _errors(share, own.reshape(len(own), cells, order), low, high, u)
        polynomial = error @ np.linalg.pinv(powers).T
        seen.append(polynomial.reshape(len(own), -1))
        left.append(MARGIN * np.abs(error - polynomial @ powers.T).max(axis=2))
        # No more than F + |e| of a record is in the interval of another axis.
        own = own.copy()
        own[:, ::order] += MARGIN * np.abs(error).max(axis=2)
        weights.append(own)
    total = np.zeros(1)
    for k, (polynomial, largest) in enumerate(zip(seen, left, strict=True)):
        if not largest.any():
            continue
        sums = along(tensor, weights, k)
        others = [(w**2).sum(axis=1) for j, w in enumerate(weights) if j != k]
        noise = np.atleast_1d(np.asarray(variance * math.prod(others)))
        known = (sums * polynomial).sum(axis=1) ** 2 - noise * (polynomial**2).sum(axis=1)
        heaps = (largest**2 * (sums[:, ::order] ** 2 - noise[:, np.newaxis])).sum(axis=1)
        total = total + np.sqrt(np.maximum(known, 0.0)) + np.sqrt(np.maximum(heaps, 0.0))
    return total


def _places(half: float, cells: int, sharp: bool) -> Floats:
    """Return places in a cell from its center, denser at its ends, as polynomials have it."""
    edge = min(half, 0.5) if cells == 1 else 0.5
    return edge * np.cos(np.linspace(0, np.pi, _SHARP_PLACES if sharp else _PLACES))


def _step(apart: Floats) -> Floats:
    return np.heaviside(apart, 0.5)


def _errors(
    share_at: Callable[[Floats], Floats], weights: Floats, low: Floats, high: Floats, u: Floats
) -> Floats:
    """Return e at places u of each cell, shape (n, cells, places)."""
    cells, order = weights.shape[1:]
    centers = np.arange(cells) - (cells - 1) / 2
    x = np.add.outer(centers, u)
    fitted = weights @ (u[:, np.newaxis] ** np.arange(order)).T
    share = np.zeros(fitted.shape)
    for end, sign in ((high, 1.0), (low, -1.0)):
        upto = share_at(np.where(np.isfinite(end), end, 0.0)[:, np.newaxis, np.newaxis] - x)
        upto[np.isposinf(end)], upto[np.isneginf(end)] = 1.0, 0.0
        share += sign * upto
    return np.asarray(fitted - share)
