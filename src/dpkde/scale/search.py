"""Finding bounds and bandwidth: noisy histograms, paid for one after another.

    count ─► magnitudes ─► windows ─► … ─► bounds ─► joint histogram ─► bandwidth
             (1st pass)    (a pass each)             (a pass)

1. In the pass that counts, a histogram of each column over its public range, or over the geometric
   grid that covers every finite float (`dpkde.scale.grids`).
2. A finer one over the window where a column's records are, once more where they turn out to fill
   little of it, up to `MOST_ROUNDS` times. Bounds are post-processing of the last (`ends`); where
   noise is large against the records, by the clouds that fit (`Cloud`).
3. For a bandwidth in several columns, where it tells enough: a joint histogram within the bounds.

Each is debited before its noise is drawn, and nothing else is known of the records: whether there
is another pass, and over which cells, hangs on noisy numbers alone. So all the rest is
post-processing.

**What is paid** for each is the least of `SHARES` that tells enough for so many records, or the
largest; for columns together, since a record moves the histogram of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.base import Table
from dpkde.numerics.numbers import LARGEST
from dpkde.planning.pilot import affordable
from dpkde.privacy.amounts import Amount, Bounds
from dpkde.privacy.budget import Budget, Spend, cheapest
from dpkde.privacy.laws import Law
from dpkde.scale.grids import FINEST, Axis, Histograms, JointHistogram, geometric
from dpkde.scale.spectra import Independent, Joint, Marginal, Spectrum
from dpkde.scale.windows import Cloud, Ends, ends, faint_ends, occupied, whole, window

Floats = NDArray[np.float64]
Look = Histograms | JointHistogram
Taken = Callable[[Look], Table]
"""Takes the exact sums of a look in a pass over the points."""

SCALE, SHAPE = "scale", "shape"
"""What statements call these spends."""
SHARES = tuple(
    Fraction(*share) for share in ((1, 400), (1, 200), (1, 100), (1, 50), (3, 100), (1, 20))
)
"""What may be paid for one histogram, of the whole budget."""
MOST_ROUNDS = 5
"""How often windows are looked at, at most."""
NOWHERE = (-1.0, 1.0)
"""Where a column is taken to be that shows no records."""
_FIRST, _NEXT, _JOINT = 120.0, 1200.0, 1000.0
"""Records per standard deviation of a cell's noise that tell enough."""
_CELLS = (16, 256)
_PER_CELL = 5.0
_FULL = 8
"""A window is wide enough where records fill an eighth of it."""
_FEW, _VISIBLE = 100.0, 4.0
"""Records over noise below which histograms are faint, and below which they tell nothing."""
_FAINT_CELLS, _LONELY, _APART, _ROOMY = (16, 64), 2, 4, 1.5
_LOCATING, _CHEAP = 64, SHARES[:-1]
_RANGE_CELLS = 1 << 12
_MOST_JOINT = 1 << 17
_LEAST_JOINT = 5
_MOST_ALONE = 1024
_NYQUIST, _USEFUL = 2.5, 24.0
_SPREAD = 8.0
_LEAST_FILLED = 4
_NARROWEST, _SMALLEST = 1e-9, 1e-90
_DOUBTFUL = 0.5
_LEAST_SPREAD = 1e-6
_POINT = 2.0**-10
_LEVEL, _LEVEL_ALONE = 0.03, 0.002
"""Noise on |φ|² at a frequency of a joint histogram that is worth its price."""


class Price(NamedTuple):
    """What a look is paid, and the noise that buys."""

    share: Fraction
    amount: Amount
    kind: type[Law]
    law: Law

    @property
    def spread(self) -> float:
        """The standard deviation of the noise on a cell; never nothing, to divide by."""
        return max(math.sqrt(self.law.variance), _LEAST_SPREAD)


def price(
    budget: Budget,
    bounds: Bounds,
    rows: float,
    enough: float,
    shares: Sequence[Fraction] = SHARES,
) -> Price:
    """Return the least price at which so many records are `enough` times the noise on a cell.

    From public numbers and the noisy count. The law is one of single numbers.
    """
    last, refusal = None, None
    for share in shares:
        ways = tuple(way for way in affordable(budget, share) if way[1].is_scalar)
        try:
            found = Price(share, *cheapest(ways, budget.guarantee.moved(bounds)))
        except ParameterError as error:  # the noise does not fit 64 bits
            refusal = error
            continue
        if rows >= enough * found.spread:
            return found
        last = found
    if last is None:
        assert refusal is not None
        raise refusal
    return last


@dataclass(frozen=True, eq=False)
class Column:
    """What is known of a column so far.

    Attributes
    ----------
    axis, noisy, law
        The latest histogram of it.
    cells
        Those that show records, from the first to the one after the last; None: none does.
    is_near
        Whether the window is no more than some times as wide as what is in it.
    is_seen
        Whether bounds and roughness can be told from this histogram.
    cloud
        What a histogram tells whose noise is large; None of others.
    """

    axis: Axis
    noisy: Floats
    law: Law
    cells: tuple[int, int] | None
    is_near: bool = False
    is_seen: bool = False
    cloud: Cloud | None = None

    @property
    def window(self) -> tuple[float, float]:
        """Where to look next: wider where much is in the cells that hold all beyond."""
        if self.cells is None:
            return NOWHERE
        if self.cloud is not None:
            return self.cloud.low, self.cloud.high
        below, above = self.beyond
        if not (below or above):
            return window(self.axis, self.cells)
        low, high = _whole(self)
        return (
            max(low - below * self.width, -LARGEST),
            min(high + above * self.width, LARGEST),
        )

    @property
    def beyond(self) -> tuple[bool, bool]:
        """Whether records show in the first and in the last cell, many of them."""
        if self.cells is None or self.axis.cells < _CELLS[0]:
            return False, False
        return self.cells[0] == 0, self.cells[1] == self.axis.cells

    @property
    def is_point(self) -> bool:
        """Whether all that is told apart here is alike: a constant, as far as bounds go."""
        size = float(np.abs(self.axis.edges).max())
        return self.width <= max(_NARROWEST * size, _SMALLEST)

    @property
    def width(self) -> float:
        """How long the grid is."""
        return float(self.axis.edges[-1] - self.axis.edges[0])


class Scale(NamedTuple):
    """What noisy histograms tell of all columns.

    Attributes
    ----------
    ends
        Bounds of each column.
    spectrum
        How rough the data are; of a column alone, or jointly.
    stds
        Standard deviations of the columns.
    finest
        The least bandwidths that such histograms can tell.
    """

    ends: tuple[Ends, ...]
    spectrum: Spectrum
    stds: Floats
    finest: Floats


@dataclass(frozen=True)
class Search:
    """A search for bounds and bandwidth.

    Attributes
    ----------
    ranges
        What is public of each column: (low, high), or None.
    with_shape
        Whether a bandwidth is wanted that suits the shape of the data.
    """

    ranges: tuple[tuple[float, float] | None, ...]
    with_shape: bool

    @property
    def first(self) -> Histograms:
        """What is summed in the pass that counts: as fine as it can be, to be joined later."""
        axes = tuple(
            geometric() if pair is None else Axis.uniform(*pair, _RANGE_CELLS)
            for pair in self.ranges
        )
        return Histograms(axes, tuple(range(len(axes))))

    def foreseen(self, budget: Budget, rows: float) -> list[tuple[str, Price]]:
        """Return what will mostly be paid, by what statements call it, for so many records.

        Columns whose records are far from zero, against how far they are apart, take more looks.
        """
        count = len(self.ranges)
        bounds, public = Bounds(1, count, count, 1, True), None not in self.ranges
        looks = [(SCALE, price(budget, bounds, rows, _NEXT if public else _FIRST))]
        if not public:
            looks.append((SCALE, price(budget, bounds, rows, _NEXT)))
        if self.with_shape:
            cost = _shape_price(budget, rows, count)
            if _most_cells(cost, rows, count) >= _LEAST_JOINT**count:
                looks.append((SHAPE, cost))
        return looks

    def run(self, sums: Table, budget: Budget, rows: float, taken: Taken) -> Scale:
        """Return what noisy histograms tell; `sums` are those of `first`.

        Guarantee
        ---------
        Sums are read once each, after their debit, with noise. What is looked at next hangs on
        public numbers, the noisy count and earlier noisy sums.
        """
        columns = self._begun(sums, budget, rows)
        for _ in range(MOST_ROUNDS):
            unseen = [k for k, column in enumerate(columns) if not column.is_seen]
            if not unseen:
                break
            columns = self._refined(columns, unseen, budget, rows, taken)
        return self._told(columns, budget, rows, taken)

    def _begun(self, sums: Table, budget: Budget, rows: float) -> list[Column]:
        """Return what the first histograms tell, over cells as many as noise leaves room for."""
        look = self.first
        public = all(pair is not None for pair in self.ranges)
        cost = price(budget, look.bounds, rows, _NEXT if public else _FIRST)
        strength = rows / cost.spread
        octaves = _octaves(strength)
        number = _faint_cells(strength) if strength < _FEW else _cells(strength)
        axes = tuple(
            geometric(octaves) if pair is None else Axis.uniform(*pair, number)
            for pair in self.ranges
        )
        coarse = Histograms(axes, look.columns)
        spend = budget.spend(SCALE, cost.amount, cost.kind, coarse.bounds)
        noisy = _with_noise(coarse.parted(look.joined(sums, axes)), budget, spend)
        columns = []
        for k, pair in enumerate(self.ranges):
            if strength < _FEW:
                columns.append(_faint(axes[k], noisy[k], spend.law, rows))
                continue
            cells = _found(axes[k], noisy[k], spend.law, rows)
            if pair is None:
                near = cells is not None and _is_spread(axes[k], cells)
                columns.append(
                    Column(axes[k], noisy[k], spend.law, cells, near)
                    if cells is not None
                    else Column(
                        Axis.uniform(*NOWHERE, 2), np.zeros(2), spend.law, None, False, True
                    )
                )
            else:
                columns.append(
                    _judged(Column(axes[k], noisy[k], spend.law, cells), enough=public, ranged=True)
                )
        return columns

    def _refined(
        self,
        columns: list[Column],
        which: Sequence[int],
        budget: Budget,
        rows: float,
        taken: Taken,
    ) -> list[Column]:
        """Return the columns, some of them looked at again over finer cells."""
        count, near = len(which), any(columns[k].is_near or _is_apart(columns[k]) for k in which)
        bounds = Bounds(1, count, count, 1, True)
        cost = price(budget, bounds, rows, *((_NEXT,) if near else (_FIRST, _CHEAP)))
        strength = rows / cost.spread
        axes = tuple(
            Axis.uniform(*columns[k].window, _number(columns[k], strength, near)) for k in which
        )
        look = Histograms(axes, tuple(which))
        spend = budget.spend(SCALE, cost.amount, cost.kind, look.bounds)
        noisy = _with_noise(look.parted(taken(look)), budget, spend)
        after = list(columns)
        for k, axis, counts in zip(which, axes, noisy, strict=True):
            if strength < _FEW:
                apart = _is_apart(columns[k])
                after[k] = _faint(axis, counts, spend.law, rows, apart)
                continue
            cells = _found(axis, counts, spend.law, rows)
            found = Column(axis, counts, spend.law, cells)
            after[k] = _judged(found, enough=near)
        return after

    def _told(self, columns: list[Column], budget: Budget, rows: float, taken: Taken) -> Scale:
        """Return what the last histograms tell, and a joint one if it is worth its price."""
        found, alone, stds = [], [], []
        for column in columns:
            if column.cells is None or column.is_point:
                # Nothing shows, or a single value: even over what is public, or around it.
                low, high = _whole(column) if column.cells is None else _around(column)
                found.append(Ends(low, high, 1.0))
                stds.append((high - low) / math.sqrt(12))
                alone.append(Marginal.normal(high - low, stds[-1]))
                continue
            if column.cloud is None:
                found.append(ends(column.axis, column.noisy, column.cells, column.law, rows))
            else:
                found.append(faint_ends(column.axis, column.noisy, column.cloud, column.law, rows))
            stds.append(_std(column, found[-1], rows))
            variance = column.law.variance
            alone.append(Marginal.of(column.noisy, column.width, variance, rows, stds[-1]))
        spectrum: Spectrum = Independent(tuple(alone))
        rounded = np.array([one.finest for one in alone])
        finest = np.array([column.width / column.axis.cells / 4 for column in columns])
        if self.with_shape:
            shape = _shape(found, alone, stds, budget, rows, taken)
            if shape is not None:
                spectrum, finest = shape
        return Scale(tuple(found), spectrum, np.array(stds), np.maximum(finest, rounded))


def _with_noise(parts: Sequence[Table], budget: Budget, spend: Spend) -> list[Floats]:
    """Return sums with the noise that was paid for, part by part."""
    noisy = budget.noised(spend, np.concatenate(parts)).astype(np.float64)
    return np.split(noisy, np.cumsum([len(part) for part in parts])[:-1])


def _octaves(strength: float) -> Fraction:
    """Return how long the cells of a geometric grid are to be, by records over noise."""
    if strength < _FEW:
        return Fraction(2)
    return max(Fraction(1, 2 ** int(math.log2(strength / _FEW))), FINEST)


def _cells(strength: float) -> int:
    """Return how many cells of one width a column gets, by records over noise."""
    least, most = _CELLS
    return int(min(max(2 ** round(math.log2(max(strength / _PER_CELL, 1.0))), least), most))


def _faint_cells(strength: float) -> int:
    """Return how many cells of one width a cloud gets where noise is large."""
    least, most = _FAINT_CELLS
    return int(min(max(2 ** round(math.log2(max(1.5 * strength, 1.0))), least), most))


def _number(column: Column, strength: float, near: bool) -> int:
    """Return how many cells a column gets that is looked at again."""
    if strength >= _FEW:
        return _cells(strength) if near else max(_cells(strength), _LOCATING)
    number, cloud = _faint_cells(strength), column.cloud
    if cloud is None or cloud.is_resolved or (column.axis.is_geometric and column.is_near):
        return number
    return number * (_APART if _is_apart(column) else _LONELY)


def _is_apart(column: Column) -> bool:
    """Tell whether little of a grid is filled, and not in one place: several heaps far apart."""
    cloud = column.cloud
    if cloud is None or cloud.is_resolved or column.axis.is_geometric:
        return False
    return cloud.high - cloud.low > column.width / 4


def _faint(axis: Axis, noisy: Floats, law: Law, rows: float, apart: bool = False) -> Column:
    """Return what a histogram says of a column whose noise is large.

    `apart`: whether its cells are so fine for the sake of narrow heaps, that its ends tell more.
    """
    nothing = Column(Axis.uniform(*NOWHERE, 2), np.zeros(2), law, None, False, True)
    if rows < _VISIBLE * math.sqrt(law.variance):
        return nothing
    cloud = Cloud.of(axis, noisy, law, rows)
    if axis.is_geometric:
        near = cloud.low <= 0 <= cloud.high
        return Column(axis, noisy, law, (0, axis.cells), near, False, cloud)
    column = Column(axis, noisy, law, (0, axis.cells), cloud=cloud)
    fits = cloud.high - cloud.low <= _ROOMY * column.width and not cloud.is_beyond
    if apart and cloud.is_resolved and not cloud.is_beyond:
        column, fits = replace(column, cloud=Cloud(*_whole(column), True)), True
    seen = (fits and cloud.is_resolved) or column.is_point
    return replace(column, is_near=cloud.is_resolved, is_seen=seen)


def _is_spread(axis: Axis, cells: tuple[int, int]) -> bool:
    """Tell whether a window is as wide as where it lies: both signs, or several octaves."""
    low, high = float(axis.edges[cells[0]]), float(axis.edges[cells[1]])
    return low <= 0 <= high or max(low / high, high / low) >= _SPREAD


def _judged(column: Column, enough: bool, ranged: bool = False) -> Column:
    """Return a column with what its latest histogram says of it.

    `enough`: whether that was paid for well enough to be the last; `ranged`: whether nothing is
    beyond the grid, or should be.
    """
    if column.cells is None:
        return replace(column, is_seen=True)
    if any(column.beyond) and not ranged:
        return replace(column, is_near=False)
    filled = column.cells[1] - column.cells[0]
    near = filled >= max(column.axis.cells / _FULL, min(_LEAST_FILLED, column.axis.cells / 4))
    return replace(column, is_near=near, is_seen=(near and enough) or column.is_point)


def _found(axis: Axis, noisy: Floats, law: Law, rows: float) -> tuple[int, int] | None:
    """Return the cells that hold most records, where any show; likely ones if none do for sure."""
    cells = occupied(noisy, law) or occupied(noisy, law, _DOUBTFUL)
    return None if cells is None else whole(axis, noisy, cells, law, rows)


def _whole(column: Column) -> tuple[float, float]:
    """Return the ends of a column's grid."""
    return float(column.axis.edges[0]), float(column.axis.edges[-1])


def _around(column: Column) -> tuple[float, float]:
    """Return public distances to either side of a constant."""
    low, high = _whole(column)
    middle = low / 2 + high / 2
    spare = abs(middle) * _POINT if abs(middle) > _SMALLEST else 1.0
    return max(middle - spare, -LARGEST), min(middle + spare, LARGEST)


def _std(column: Column, found: Ends, rows: float) -> float:
    """Return the standard deviation of a column within its bounds, from its noisy histogram.

    Noisy sums are moved to the nearest that are not negative and add up to the number of records:
    so cells with noise alone do not count.
    """
    centers = np.clip(column.axis.centers, found.low, found.high)
    weights = _simplex(column.noisy, rows)
    middle = float(weights @ centers)
    variance = float(weights @ (centers - middle) ** 2)
    cell = column.width / column.axis.cells
    return max(math.sqrt(max(variance - cell**2 / 12, 0.0)), cell / 4)


def _simplex(noisy: Floats, rows: float) -> Floats:
    """Return the nearest shares that are not negative and add up to one."""
    ordered = np.sort(noisy)[::-1]
    excess = (np.cumsum(ordered) - rows) / np.arange(1, len(noisy) + 1)
    kept = int(np.flatnonzero(ordered > excess)[-1])
    return np.asarray(np.maximum(noisy - excess[kept], 0.0) / rows)


def _shape_price(budget: Budget, rows: float, columns: int) -> Price:
    """Return what a joint histogram is paid."""
    enough = _NEXT if columns == 1 else _JOINT
    return price(budget, Bounds(1, 1, 1, 1, True), rows, enough)


def _most_cells(cost: Price, rows: float, columns: int) -> float:
    """Return how many cells a joint histogram may have, as noise and memory allow."""
    level = _LEVEL_ALONE if columns == 1 else _LEVEL
    return min(level * (rows / cost.spread) ** 2, float(_MOST_JOINT))


def _shape(
    found: Sequence[Ends],
    alone: Sequence[Marginal],
    stds: Sequence[float],
    budget: Budget,
    rows: float,
    taken: Taken,
) -> tuple[Spectrum, Floats] | None:
    """Return the spectrum of all columns together, from a joint histogram within the bounds.

    And the lengths of its cells. None where it tells too little for its price.
    """
    cost = _shape_price(budget, rows, len(found))
    widths = np.array([one.high - one.low for one in found])
    cuts = np.array([one.cut for one in alone])
    # As many cells as the frequencies that columns show take, as far as noise and memory allow.
    most = _most_cells(cost, rows, len(found))
    wanted = np.array([float(_MOST_ALONE)])
    if len(found) > 1:
        wanted = np.maximum(_NYQUIST * cuts * widths / math.pi, _USEFUL)
    cells = wanted * min((most / np.prod(wanted)) ** (1 / len(found)), 1.0)
    cells = np.floor(cells).astype(np.int64)
    if cells.min() < _LEAST_JOINT:
        return None
    axes = tuple(
        Axis.uniform(one.low, one.high, int(count)) for one, count in zip(found, cells, strict=True)
    )
    look = JointHistogram(axes)
    spend = budget.spend(SHAPE, cost.amount, cost.kind, look.bounds)
    (counts,) = _with_noise([taken(look)], budget, spend)
    noisy = counts.reshape(look.shape)
    variance = spend.law.variance
    if len(found) == 1:
        own = Marginal.of(noisy, float(widths[0]), variance, rows, stds[0])
        return Independent((own,)), np.maximum(widths / cells / 4, own.finest)
    joint = Joint.of(noisy, widths, cuts, variance, rows)
    return None if joint is None else (joint, widths / cells / 4)
