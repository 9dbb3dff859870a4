"""Splines that bound a spline's own error from above: the least that hold for every record.

A record at x counts as F(x) where its share is M(x), and e = F − M is a public function. Any spline
c with Σ_j c_j B_j ≥ e everywhere tells an upper bound on what all records together are off by,
Σ_x e(x) ≤ Σ_j c_j T_j, T the table: whatever the records are. Of all such splines the one that adds
up to least, Σ_j c_j, is best where records are spread out; it is found by a linear program. By its
dual there is no shorter bound then: records that make the same table can be off by as much.

e is that of a half-line up to an end, at some phases of the end between nodes; between two phases
it is nearly linear, and so is its bound. Intervals have those of both ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.families.brackets import Allowance, Bracket, allowance, together
from dpkde.families.reading import Asked, Over, Within, rows_of, to_the_bounds
from dpkde.families.spline import bias, narrow
from dpkde.families.spline.bsplines import bspline
from dpkde.families.spline.grid import Axis
from dpkde.families.spline.intervals import NarrowAxis, SplinedAxis, group, lost
from dpkde.kernels import ProductKernel

if TYPE_CHECKING:
    from dpkde.families.spline.family import SplinePair

Floats = NDArray[np.float64]

_CENTRAL = 48
"""Intervals around an end whose nodes are fitted; those beyond have the largest error around."""


def of_boxes(pair: SplinePair, asked: Sequence[Asked], table: Floats) -> Allowance:
    """Return the most that sums over boxes are off by, for any records, from their noisy table."""
    grid = pair.grid
    tensor = table.reshape(grid.group, *(axis.nodes for axis in grid.axes))
    largest = max((axis.nodes * bias.PLACES for axis in grid.axes), default=1)
    rows, step = rows_of(asked), max(1, bias.NUMBERS // largest)
    parts = []
    for start in range(0, rows, step):
        part = [entry.part(slice(start, start + step)) for entry in asked]
        one = allowance(tensor, _brackets(pair, part))
        count = min(step, rows - start)
        parts.append(Allowance(*(np.broadcast_to(values, (count,)) for values in one)))
    return together(parts).over(2**pair.bits)


def _brackets(pair: SplinePair, asked: Sequence[Asked]) -> list[Bracket]:
    """Return the brackets of the group of narrow axes, and those of splined ones."""
    grid, kernel = pair.grid, pair.frame.kernel.shape
    ends = [bias.interval_of(entry) for entry in asked]
    off = bias.narrow_errors(kernel, grid, ends)[1]
    numbers = np.ones((1, 1))
    if grid.narrow:
        numbers = group(
            grid,
            [asked[k].of(NarrowAxis(kernel, half, f"column {k}")) for k, half in grid.narrow],
        )
    everywhere = np.zeros((len(off), grid.group))
    everywhere[:, 0] = off / (grid.shares[0] / (1 << narrow.SHARE_BITS))
    brackets = [Bracket(numbers, everywhere, everywhere)]
    for axis in grid.axes:
        entry = asked[axis.column]
        assert isinstance(entry, (Over, Within))
        weights = entry.of(SplinedAxis(kernel, axis)).rows()
        brackets.append(Bracket(weights, *of_interval(kernel, axis, *ends[axis.column])))
    return brackets


class _Majorants(NamedTuple):
    """Nodes of p ≥ −e for each phase of an end, and what is enough far away."""

    above: Floats
    below: Floats
    far: float


def of_interval(
    kernel: ProductKernel, axis: Axis, low: Floats, high: Floats, sharp: bool
) -> tuple[Floats, Floats]:
    """Return p ≥ −e and q ≥ e at the nodes of an axis, shape (n, nodes), for intervals."""
    if sharp:
        low, high = to_the_bounds(low, high, axis.half)
    (above, below), (up, down) = (_upto(kernel, axis, end, sharp) for end in (high, low))
    above, below = above + down, below + up
    # The errors of two ends within a spacing or two cancel in part.
    close = np.full(len(low), not sharp) & (high - low < 2 * axis.spacing)
    if close.any():
        off = bias.signed_errors(kernel, axis, low[close], high[close], sharp)
        far = 2 * _majorants(kernel, axis.degree, axis.spacing, axis.ridge, sharp).far
        # What places do not show is in proportion to the errors of either end.
        endless = np.full(int(close.sum()), -np.inf)
        each = [bias.largest_errors(kernel, axis, endless, end[close]) for end in (low, high)]
        more = (bias.MARGIN - 1) * (each[0] + each[1])
        both = [
            bias.widest(np.maximum((sign * off).max(axis=2), 0.0) + more, axis.degree + 1) + far
            for sign in (-1.0, 1.0)
        ]
        shorter = (both[0] + both[1]).sum(axis=1) < (above + below)[close].sum(axis=1)
        rows = np.flatnonzero(close)[shorter]
        above[rows], below[rows] = both[0][shorter], both[1][shorter]
    return above, below


def _upto(kernel: ProductKernel, axis: Axis, end: Floats, sharp: bool) -> tuple[Floats, Floats]:
    """Return p and q for half-lines up to each end; zero where it is infinite."""
    known = _majorants(kernel, axis.degree, axis.spacing, axis.ridge, sharp)
    width = known.above.shape[1]
    reach = (width - axis.degree - 1) // 2
    cell, before, after = bias.phase_of(axis, end, reach)
    place = np.arange(axis.nodes) - cell[:, np.newaxis] + reach
    inside = (place >= 0) & (place < width)
    place = np.clip(place, 0, width - 1)
    rows, part = before[:, np.newaxis], after[:, np.newaxis]
    both = []
    for table in (known.above, known.below):
        weights = (1 - part) * table[rows, place] + part * table[rows + 1, place]
        weights = np.where(inside, weights, known.far)
        weights[~np.isfinite(end)] = 0.0
        both.append(weights)
    return both[0], both[1]


@lru_cache(maxsize=64)
def _majorants(
    kernel: ProductKernel, degree: int, spacing: float, ridge: float, sharp: bool
) -> _Majorants:
    """Return them for the intervals that `bias` has a table of."""
    errors = bias.errors_around(kernel, degree, spacing, ridge, sharp)
    beyond = max(float(np.abs(errors[:, (0, -1)]).max()), abs(lost(kernel, degree, spacing, ridge)))
    far = bias.MARGIN * beyond + 1e-12
    # What more places would have shown is in proportion to the largest around.
    largest = bias.widest(np.abs(errors).max(axis=2), 3)[:, 1:-1]
    # Of a step either side counts as far as places, and phases, are apart.
    sides = _either_side(errors.shape) if sharp else (np.zeros(errors.shape),) * 2
    both = []
    for sign, side in zip((-1.0, 1.0), sides, strict=True):
        wanted = sign * errors + side + (bias.MARGIN - 1) * largest[..., np.newaxis]
        both.append(np.stack([_least(row, degree, far) for row in wanted]))
    return _Majorants(both[0], both[1], far)


def _either_side(shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return what M = 0 or M = 1 near a step adds to −e and to e, where e has the other."""
    phases, count, places = shape
    x = np.add.outer(np.arange(count), np.linspace(0, 1, places))
    end = (count - 1) / 2 + np.linspace(0, 1, phases)
    apart = end[:, np.newaxis, np.newaxis] - x
    near = (np.abs(apart) < 2 / (places - 1)).astype(np.float64)
    share = np.heaviside(apart, 0.5)
    return near * (1 - share), near * share


def _least(wanted: Floats, degree: int, far: float) -> Floats:
    """Return nodes of the least spline above what is wanted, (intervals, places); `far` beyond."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    count, places = wanted.shape
    nodes = np.arange(degree + 1) - (degree - 1) / 2
    splines = bspline(degree, np.subtract.outer(np.linspace(0, 1, places), nodes))
    # The largest around each node is enough, since B-splines add up to one.
    largest = np.maximum(wanted.max(axis=1), far)
    start = np.asarray(bias.widest(largest[np.newaxis], degree + 1)[0])
    first = max(degree, (count + degree - _CENTRAL) // 2)
    free = np.arange(first, count + degree - first)
    rows = np.arange(count * places)
    columns = np.repeat(np.arange(count), places)[:, np.newaxis] + np.arange(degree + 1)
    matrix = csr_array(
        (
            np.tile(splines, (count, 1)).reshape(-1),
            (np.repeat(rows, degree + 1), columns.reshape(-1)),
        ),
        shape=(count * places, count + degree),
    )
    fixed = start.copy()
    fixed[free] = 0.0
    unit = float(start.max())
    needed = (wanted.reshape(-1) - matrix @ fixed) / unit
    inner = matrix[:, free]
    touched = np.asarray(inner.sum(axis=1)) > 0
    solution = linprog(
        np.ones(len(free)),
        A_ub=-inner[touched],
        b_ub=-needed[touched],
        bounds=(-4.0, 4.0),
        method="highs",
    )
    if solution.status == 0:
        # Constraints are met to 10⁻⁷.
        start[free] = (np.asarray(solution.x) + 1e-6) * unit
    return start
