"""How far shares of boxes can be off, as the table itself shows: what heaps at a face would do.

Along one axis a record at x counts as F(x) = Σ_j B_j(x) w_j where its share is M(x), and
e = F − M is a public function: large near the ends of the interval, and, being what least squares
leave, of no weight against any spline. So records that are spread out add up to little bias, and
records at one point to e there times their number. The table tells the two apart. Summed over the
other axes with their weights it is a histogram t of records along this one, whose second
differences r are next to none for what is smooth, while a heap of s records has ‖r‖ ≥ s·ρ,
ρ = min_u ‖Δ² B_p(· − u)‖. The bias is then taken to be at most

    Σ_k ( Σ_j U_j² (r_j² − Var r_j) )^{1/2} / ρ,

over axes k, U_j the largest |e| among the records that r_j can see: what a heap anywhere can cause.
Of several heaps near a face the errors add as if their signs were those of coins. Where it is asked
whether the records themselves lie in the interval, M is a step, and all else is the same.

That is the typical bias of an interval; `majorants` has a bound for any records.

A narrow axis does not tell where on it records lie: there the largest |e| of all counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpkde.families.reading import Asked, Over, Within, along, rows_of, to_the_bounds
from dpkde.families.spline import narrow
from dpkde.families.spline.bsplines import bspline
from dpkde.families.spline.grid import Axis, Grid
from dpkde.families.spline.intervals import NarrowAxis, SplinedAxis, group, share_upto
from dpkde.kernels import ProductKernel

if TYPE_CHECKING:
    from dpkde.families.spline.family import SplinePair

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SECOND = np.array([1.0, -2.0, 1.0])
PLACES = 16
"""Places within an interval at which e is looked at, and of the end within its own."""
MARGIN, _SHARP = 1.06, 1.25
"""Larger than what is seen at those places by this; and where e has a step."""
NUMBERS = 1 << 20
_ON_LINES = 65


def of_boxes(pair: SplinePair, asked: Sequence[Asked], table: Floats, variance: float) -> Floats:
    """Return what sums over boxes are typically off by, from the table and its noise's variance."""
    grid, kernel = pair.grid, pair.frame.kernel.shape
    tensor = table.reshape(grid.group, *(axis.nodes for axis in grid.axes)) / 2**pair.bits
    intervals = [interval_of(entry) for entry in asked]
    rows = rows_of(asked)
    largest = max((axis.intervals * PLACES for axis in grid.axes), default=_ON_LINES)
    step = max(1, NUMBERS // largest)
    parts = []
    for start in range(0, rows, step):
        part = [
            (
                low[start : start + step] if len(low) > 1 else low,
                high[start : start + step] if len(high) > 1 else high,
                sharp,
            )
            for low, high, sharp in intervals
        ]
        bias = _bias(kernel, grid, part, tensor, variance / 4.0**pair.bits)
        parts.append(np.broadcast_to(bias, (min(step, rows - start),)))
    return np.concatenate([*parts, np.empty(0)])


def interval_of(entry: Asked) -> tuple[Floats, Floats, bool]:
    """Return the ends of intervals, and whether records are asked for."""
    assert isinstance(entry, (Over, Within))
    low, high = np.broadcast_arrays(entry.low, entry.high)
    return low, high, isinstance(entry, Within)


def _bias(
    kernel: ProductKernel,
    grid: Grid,
    asked: Sequence[tuple[Floats, Floats, bool]],
    tensor: Floats,
    variance: float,
) -> Floats:
    """Return the bias of some rows."""
    errors = [largest_errors(kernel, axis, *asked[axis.column]) for axis in grid.axes]
    axes = [_weights(kernel, axis, *asked[axis.column]) for axis in grid.axes]
    # No more than |F| + |e| of a record is in the interval of another axis.
    weights = [
        np.abs(own) + widest(error, axis.degree + 1)
        for own, error, axis in zip(axes, errors, grid.axes, strict=True)
    ]
    numbers, off = narrow_errors(kernel, grid, asked)
    constant = 1 / (grid.shares[0] / (1 << narrow.SHARE_BITS))
    total = np.zeros(1)
    if off.any():
        everywhere = np.zeros((1, grid.group))
        everywhere[0, 0] = constant
        total = total + off * np.abs(along(tensor, [everywhere, *weights], None)[:, 0])
    numbers = numbers.copy()
    numbers[:, 0] += off * constant
    weights = [numbers, *weights]
    for k, axis in enumerate(grid.axes):
        if not errors[k].any():
            continue
        seen = widest(errors[k], axis.degree + len(_SECOND))
        counts = along(tensor, weights, k + 1)
        rough = np.zeros((len(counts), counts.shape[1] + len(_SECOND) - 1))
        for i, entry in enumerate(_SECOND.tolist()):
            rough[:, i : i + counts.shape[1]] += entry * counts
        others = [(w**2).sum(axis=1) for j, w in enumerate(weights) if j != k + 1]
        noise = variance * float(_SECOND @ _SECOND) * math.prod(others)
        squares = (seen**2 * (rough**2 - np.asarray(noise)[..., np.newaxis])).sum(axis=1)
        total = total + np.sqrt(np.maximum(squares, 0.0)) / least_roughness(axis.degree)
    return total


def _weights(kernel: ProductKernel, axis: Axis, low: Floats, high: Floats, sharp: bool) -> Floats:
    told = SplinedAxis(kernel, axis)
    return (told.within(low, high) if sharp else told.over(low, high, 0.0)).rows()


def widest(errors: Floats, width: int) -> Floats:
    """Return the largest error of the `width` intervals that end with each, and of those after."""
    padded = np.pad(errors, ((0, 0), (width - 1, width - 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, width, axis=1)
    return np.asarray(windows.max(axis=2))


@lru_cache(maxsize=16)
def least_roughness(degree: int) -> float:
    """Return ρ = min_u ‖Δ² B_p(· − u)‖: what second differences show of a heap at least.

    >>> round(least_roughness(3), 3)
    0.897
    """
    nodes = np.arange(degree + 1) - (degree - 1) / 2
    rows = bspline(degree, np.linspace(0, 1, 65)[:, np.newaxis] - nodes)
    return min(float(np.linalg.norm(np.convolve(row, _SECOND))) for row in rows)


def largest_errors(
    kernel: ProductKernel, axis: Axis, low: Floats, high: Floats, sharp: bool = False
) -> Floats:
    """Return the largest |e| of records in each interval of an axis, shape (n, intervals)."""
    return np.asarray(np.abs(signed_errors(kernel, axis, low, high, sharp)).max(axis=2))


def signed_errors(
    kernel: ProductKernel, axis: Axis, low: Floats, high: Floats, sharp: bool
) -> Floats:
    """Return e at places of each interval, with a margin, shape (n, intervals, places)."""
    if sharp:
        low, high = to_the_bounds(low, high, axis.half)
    upper, lower = (_errors_upto(kernel, axis, end, sharp) for end in (high, low))
    # Of the last interval only what lies within the bounds, up to the next place.
    places = np.add.outer(np.arange(axis.intervals), np.linspace(0, 1, PLACES))
    off = (upper - lower) * (places < 2 * axis.half / axis.spacing + 1 / (PLACES - 1))
    return np.asarray((_SHARP if sharp else MARGIN) * off)


def _errors_upto(kernel: ProductKernel, axis: Axis, end: Floats, sharp: bool) -> Floats:
    """Return e for the half-lines up to each end, (n, intervals, places); zero where infinite."""
    table = _table(kernel, axis.degree, axis.spacing, axis.ridge, sharp)
    reach = (table.shape[1] - 3) // 2
    cell, before, after = phase_of(axis, end, reach)
    place = np.arange(axis.intervals) - cell[:, np.newaxis] + reach + 1
    place = np.clip(place, 0, table.shape[1] - 1)
    rows, part = before[:, np.newaxis], after[:, np.newaxis, np.newaxis]
    return np.asarray((1 - part) * table[rows, place] + part * table[rows + 1, place])


def phase_of(axis: Axis, end: Floats, reach: int) -> tuple[Ints, Ints, Floats]:
    """Return the interval of each end, the phase before it, and how far it is to the next.

    Ends that lie farther out than anything is told of are brought nearer.
    """
    with np.errstate(all="ignore"):
        t = np.nan_to_num((end + axis.half) / axis.spacing)
    t = np.clip(t, -reach - 3.0, axis.intervals + reach + 3.0)
    cell = np.floor(t)
    phase = (t - cell) * PLACES
    before = np.minimum(phase.astype(np.int64), PLACES - 1)
    return cell.astype(np.int64), before, phase - before


def errors_around(
    kernel: ProductKernel, degree: int, spacing: float, ridge: float, sharp: bool
) -> Floats:
    """Return e of half-lines at phases of their end, (phases + 1, intervals around, places)."""
    return _table(kernel, degree, spacing, ridge, sharp)[:, 1:-1]


@lru_cache(maxsize=64)
def _table(kernel: ProductKernel, degree: int, spacing: float, ridge: float, sharp: bool) -> Floats:
    """Return e where the end lies at some phases of an interval, for those around it.

    Shape (phases + 1, 2·reach + 3, places): the intervals before and after all are of zeros.
    """
    reach = math.ceil(min(kernel.profile_reach(1e-6), 64.0) / spacing) + 2 * degree + 4
    count = 2 * reach + 1
    axis = Axis(0, count * spacing / 2, degree, spacing, ridge, count)
    ends = (np.linspace(0, 1, PLACES + 1) + reach) * spacing - axis.half
    weights = _weights(kernel, axis, np.array([-np.inf]), ends, sharp)
    places = np.linspace(0, 1, PLACES)
    nodes = np.arange(degree + 1) - (degree - 1) / 2
    splines = bspline(degree, np.subtract.outer(places, nodes))
    windows = np.lib.stride_tricks.sliding_window_view(weights, degree + 1, axis=1)
    x = np.add.outer(np.arange(count), places) * spacing - axis.half
    apart = ends[:, np.newaxis, np.newaxis] - x
    share = np.heaviside(apart, 0.5) if sharp else share_upto(kernel, apart)
    return np.pad(windows @ splines.T - share, ((0, 0), (1, 1), (0, 0)))


def narrow_errors(
    kernel: ProductKernel, grid: Grid, asked: Sequence[tuple[Floats, Floats, bool]]
) -> tuple[Floats, Floats]:
    """Return what narrow axes say together, and the most that this is off for any record.

    Of an axis the group keeps a line L = c + b, c its constant; of products ∏L first ∏c, and then
    the b one at a time. What it leaves is ∏L − ∏M, and the products of two or more b.
    """
    if not grid.narrow:
        return np.ones((1, 1)), np.zeros(1)
    t = np.linspace(-1, 1, _ON_LINES)
    tilted, lines, shares = set(grid.tilted.tolist()), [], []
    for column, half in grid.narrow:
        low, high, sharp = asked[column]
        axis = NarrowAxis(kernel, half, f"column {column}")
        lines.append(axis.within(low, high) if sharp else axis.over(low, high, 0.0))
        shares.append(
            np.ones((1, 1))
            if sharp
            else _share(kernel, high, half * t) - _share(kernel, low, half * t)
        )
    numbers = group(grid, lines)
    count = len(numbers)
    levels = np.column_stack([np.broadcast_to(line[0], count) for line in lines])
    bow = numbers[:, -1] * (grid.arch / (1 << narrow.SHARE_BITS)) if grid.arch else np.zeros(count)
    left, swings, sizes, most = [], [], [], []
    off = np.zeros(count)
    for k, (column, _) in enumerate(grid.narrow):
        bends = np.zeros((count, _ON_LINES))
        if column in tilted:
            bends = bends + lines[k][1][:, np.newaxis] * t
        if grid.arch:
            others = np.prod(np.delete(levels, k, axis=1), axis=1)
            own, seen = bow * grid.arch_weights[k], np.abs(others) > 1e-6
            bends = bends + (own / np.where(seen, others, np.inf))[:, np.newaxis] * (
                narrow.parabola(t)
            )
            off += np.where(seen, 0.0, np.abs(own))
        whole = levels[:, k, np.newaxis] + bends
        left.append(np.abs(whole - shares[k]).max(axis=1))
        swings.append(np.abs(bends).max(axis=1))
        sizes.append(np.abs(whole).max(axis=1))
        most.append(np.broadcast_to(shares[k].max(axis=1), count))
    for k, error in enumerate(left):
        off += error * math.prod(sizes[:k], start=1.0) * math.prod(most[k + 1 :], start=1.0)
    heights = np.abs(levels).T
    linear = sum(
        swing * np.prod(np.delete(heights, k, axis=0), axis=0) for k, swing in enumerate(swings)
    )
    both = np.prod(heights + np.array(swings), axis=0)
    off += np.maximum(both - np.prod(heights, axis=0) - linear, 0.0)
    return numbers, off


def _share(kernel: ProductKernel, end: Floats, x: Floats) -> Floats:
    """Return the share up to each end of records at x, shape (n, places)."""
    finite = np.where(np.isfinite(end), end, 0.0)
    share = share_upto(kernel, np.subtract.outer(finite, x))
    share[np.isposinf(end)] = 1.0
    share[np.isneginf(end)] = 0.0
    return np.asarray(share)
