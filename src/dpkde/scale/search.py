"""Finding bounds and bandwidth: noisy histograms, paid for one after another.

    count ─► magnitudes ─► windows ─► … ─► bounds ─► joint histogram ─► bandwidth
             (1st pass)    (a pass each)             (a pass)

1. In the pass that counts, a histogram of each column over its public range, or over the geometric
   grid that covers every finite float (`dpkde.scale.grids`).
2. A finer one over the window where a column's records are, once more where they turn out to fill
   little of it, up to `MOST_ROUNDS` times. Bounds are post-processing of the last (`ends`); where
   noise is large against the records, of all, by the clouds that fit (`Cloud`).
3. For a bandwidth in several columns, where it tells enough: a joint histogram within the bounds.
   One column has its bandwidth from its last histogram, which is paid as a joint one is.

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
from dpkde.scale.clouds import Cloud, Faint
from dpkde.scale.grids import FINEST, Axis, Histograms, JointHistogram, geometric
from dpkde.scale.spectra import Independent, Joint, Marginal, Spectrum
from dpkde.scale.windows import SURE, TAIL, Ends, ends, occupied, reach, whole, window

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
_SHAPE_SHARES = (*SHARES, Fraction(3, 40), Fraction(1, 10))
_ALONE_SHARES = (*_SHAPE_SHARES, Fraction(7, 50))
"""The same for what tells a bandwidth: of several columns, and of one, bounds included."""
MOST_ROUNDS = 5
"""How often windows are looked at, at most."""
MOST_PAID = Fraction(2, 5)
"""What all looks together may cost, of the whole budget: the count takes no more than half, and the
rest is for the table."""
NOWHERE = (-1.0, 1.0)
"""Where a column is taken to be that shows no records."""
_LITTLE, _FIRST, _NEXT, _JOINT, _ALONE = 20.0, 75.0, 600.0, 450.0, 450.0
"""Records per standard deviation of a cell's noise that tell enough: just where most records are,
where all are, their ends, and how rough several columns are, or one."""
_CELLS = (16, 256)
_PER_CELL = 0.7
_FEW_BEYOND, _MANY_BEYOND = 3.0, 0.1
_FULL = 8
"""A window is wide enough where records fill an eighth of it."""
_FEW, _FEW_NEAR, _VISIBLE = 150.0, 75.0, 4.0
"""Records over noise below which histograms are faint where records are sought, and where they are
known to be; and below which they tell nothing."""
_FAINT_CELLS, _LONELY, _HALF = (16, 64), 4, 0.5
_ROOM = (0.2, 0.15)
"""How much wider than a cloud its window is, to either side, since what is at its ends may not be
normal: where only bounds are to be told, and where fine cells are, too."""
_OCTAVES, _RANGE_CELLS = 24.0, 1 << 12
_LEAST_JOINT, _MOST_JOINT, _MOST_ALONE = 5, 1 << 17, 1 << 10
_STRENGTH, _BASE, _LEAST_BASE = 70.0, (28.0, 10.0, 6.0), 5.0
_GROWTH = (0.75, 0.43, 0.485)
"""Cells along an axis that tell most of how rough one, two or three columns are, or more, where
records are so many times the noise; and how their number grows with that. More cells have more
noise at every frequency; fewer do not show narrow peaks."""
_LEVEL = 0.05
"""Cells of a joint histogram over the square of that: more tell nothing."""
_UNLIKE = (-0.35, 0.35)
"""How much more or fewer cells an axis gets than others, by powers of e."""
_LOCATING = 64
_SPREAD = 8.0
_LEAST_FILLED = 4
_NARROWEST, _SMALLEST = 1e-9, 1e-90
_DOUBTFUL = 0.5
_LEAST_SPREAD = 1e-6
_ONE = Bounds(1, 1, 1, 1, nonnegative=True)
"""What a record adds to the histogram of one column, or of all together."""
_POINT = 2.0**-10


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
    axis, noisy, law, rows
        The latest histogram of it, and how many records there are.
    cells
        Those that show records, from the first to the one after the last; None: none does.
    is_near
        Whether the window is no more than some times as wide as what is in it.
    is_seen
        Whether bounds and roughness can be told from this histogram.
    looks
        All histograms of it so far.
    cloud
        What they tell where their noise is large; None of others.
    is_widened
        Whether this window, or one before it, was made wider for a few records beyond.
    """

    axis: Axis
    noisy: Floats
    law: Law
    rows: float
    cells: tuple[int, int] | None
    is_near: bool = False
    is_seen: bool = False
    looks: tuple[Faint, ...] = ()
    cloud: Cloud | None = None
    is_widened: bool = False

    def window(self, room: float) -> tuple[float, float]:
        """Return where to look next: wider where much is in the cells that hold all beyond.

        `room`: how much wider than a cloud, to either side.
        """
        if self.cells is None:
            return NOWHERE
        if self.cloud is not None:  # another cloud may be beside one that was found in few cells
            low, high = self.cloud.low, self.cloud.high
            spare = (room if self.is_near else 1.0) * (high - low)
            return max(low - spare, -LARGEST), min(high + spare, LARGEST)
        below, above = self.beyond
        if not (self.much_is_beyond or (self.is_near and (below or above))):
            return window(self.axis, self.cells)
        low, high = _whole(self)
        return (
            max(low - below * self.width, -LARGEST),
            min(high + above * self.width, LARGEST),
        )

    @property
    def beyond(self) -> tuple[bool, bool]:
        """Whether records show in the first and in the last cell, which hold all beyond.

        Which cells are asked is public, so that less has to show than in some cell or other.
        """
        if self.cells is None or self.axis.cells < _CELLS[0]:
            return False, False
        few = math.inf if self.axis.is_geometric else _FEW_BEYOND * math.sqrt(self.law.variance)
        few = max(few, TAIL * self.rows)
        return (
            self.cells[0] == 0 or bool(self.noisy[0] > few),
            self.cells[1] == self.axis.cells or bool(self.noisy[-1] > few),
        )

    @property
    def much_is_beyond(self) -> bool:
        """Whether the first and the last cell hold more than the few that bounds may leave out."""
        below, above = self.beyond
        held = float(below * self.noisy[0] + above * self.noisy[-1])
        return (below or above) and (self.axis.is_geometric or held > _MANY_BEYOND * self.rows)

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

    @property
    def is_alone(self) -> bool:
        """Whether a single histogram tells both the bounds and the bandwidth of one column."""
        return self.with_shape and len(self.ranges) == 1

    def foreseen(self, budget: Budget, rows: float) -> list[tuple[str, Price]]:
        """Return what will mostly be paid, by what statements call it, for so many records.

        Columns whose records are far from zero, against how far they are apart, take more looks.
        """
        count = len(self.ranges)
        bounds = Bounds(1, count, count, 1, True)
        looks = [(SCALE, self._first_price(budget, bounds, rows))]
        if not (self._is_public or self.is_alone):
            looks.append((SCALE, _price_of_scale(budget, bounds, rows, _NEXT)))
        if self.with_shape:
            cost = _shape_price(budget, rows, count)
            if _is_worth(cost, rows, count):
                looks.append((SHAPE, cost))
        return looks

    @property
    def _is_public(self) -> bool:
        """Whether a range of each column is public."""
        return None not in self.ranges

    def _first_price(self, budget: Budget, bounds: Bounds, rows: float) -> Price:
        """Return what the first histograms are paid: the last, where ranges are public."""
        if self._is_public and not self.is_alone:
            return _price_of_scale(budget, bounds, rows, _NEXT)
        return _price_of_scale(budget, bounds, rows, _FIRST)

    def run(self, sums: Table, budget: Budget, rows: float, taken: Taken) -> Scale:
        """Return what noisy histograms tell; `sums` are those of `first`.

        Guarantee
        ---------
        Sums are read once each, after their debit, with noise. What is looked at next hangs on
        public numbers, the noisy count and earlier noisy sums.
        """
        look = self.first
        cost = self._first_price(budget, look.bounds, rows)
        columns, paid = self._begun(sums, cost, budget, rows), cost.share
        for number in range(MOST_ROUNDS):
            unseen = [k for k, column in enumerate(columns) if not column.is_seen]
            if not unseen:
                break
            if self.is_alone and number == MOST_ROUNDS - 1:  # the last has to tell the bandwidth
                columns = [replace(columns[0], is_near=True)]
            purpose, cost = self._next_price([columns[k] for k in unseen], budget, rows)
            paid += cost.share
            if paid > MOST_PAID:
                break
            columns = self._refined(columns, unseen, purpose, cost, budget, rows, taken)
        return self._told(columns, budget, rows, taken)

    def _next_price(
        self, unseen: Sequence[Column], budget: Budget, rows: float
    ) -> tuple[str, Price]:
        """Return what the next look at these columns is for, and what it is paid."""
        near = any(column.is_near for column in unseen)
        if near and self.is_alone:
            return SHAPE, _shape_price(budget, rows, 1)
        bounds = Bounds(1, len(unseen), len(unseen), 1, True)
        return SCALE, _price_of_scale(budget, bounds, rows, _NEXT if near else _FIRST)

    def _begun(self, sums: Table, cost: Price, budget: Budget, rows: float) -> list[Column]:
        """Return what the first histograms tell, over cells as many as noise leaves room for."""
        look = self.first
        strength = rows / cost.spread
        octaves, number = _octaves(strength), _number(strength, near=True)
        axes = tuple(
            geometric(octaves) if pair is None else Axis.uniform(*pair, number)
            for pair in self.ranges
        )
        coarse = Histograms(axes, look.columns)
        spend = budget.spend(SCALE, cost.amount, cost.kind, coarse.bounds)
        noisy = _with_noise(coarse.parted(look.joined(sums, axes)), budget, spend)
        columns = []
        for k, pair in enumerate(self.ranges):
            seen = Faint(axes[k], noisy[k], spend.law)
            if _is_faint(strength, near=False):
                columns.append(_faint((seen,), rows, enough=not self.is_alone))
                continue
            cells = _found(*seen, rows)
            found = Column(*seen, rows, cells, looks=(seen,))
            if pair is not None:
                columns.append(_judged(found, not self.is_alone, ranged=True))
            elif cells is None:
                columns.append(_nowhere(seen, rows))
            else:
                columns.append(replace(found, is_near=_is_spread(axes[k], cells)))
        return columns

    def _refined(
        self,
        columns: list[Column],
        which: Sequence[int],
        purpose: str,
        cost: Price,
        budget: Budget,
        rows: float,
        taken: Taken,
    ) -> list[Column]:
        """Return the columns, some of them looked at again over finer cells."""
        near, strength = any(columns[k].is_near for k in which), rows / cost.spread
        number = _number(strength, near) if purpose == SCALE else _shape_cells(strength, 1)
        axes = tuple(Axis.uniform(*columns[k].window(_ROOM[self.is_alone]), number) for k in which)
        look = Histograms(axes, tuple(which))
        spend = budget.spend(purpose, cost.amount, cost.kind, look.bounds)
        noisy = _with_noise(look.parted(taken(look)), budget, spend)
        after = list(columns)
        for k, axis, counts in zip(which, axes, noisy, strict=True):
            seen = Faint(axis, counts, spend.law)
            looks = (*columns[k].looks, seen)
            if _is_faint(strength, near):
                after[k] = _faint(looks, rows, enough=near)
                continue
            cells = _found(axis, counts, spend.law, rows)
            wider = columns[k].is_widened or (columns[k].is_near and any(columns[k].beyond))
            found = Column(axis, counts, spend.law, rows, cells, looks=looks, is_widened=wider)
            after[k] = _judged(found, enough=near)
        return after

    def _told(self, columns: list[Column], budget: Budget, rows: float, taken: Taken) -> Scale:
        """Return what the last histograms tell, and a joint one if it is worth its price."""
        found, alone, stds = [], [], []
        # Which look is the last may hang on its own noise: what is told holds for each of them.
        wrong = (1 - SURE) / (MOST_ROUNDS + 1) / len(columns)
        whole = price(budget, _ONE, rows, 0.0, (Fraction(1),))
        far = reach(rows / whole.spread, len(columns))
        for column in columns:
            if column.cells is None or column.is_point:
                # Nothing shows, or a single value: even over what is public, or around it.
                low, high = _whole(column) if column.cells is None else _around(column)
                found.append(Ends(low, high, 1.0))
                stds.append((high - low) / math.sqrt(12))
                alone.append(Marginal.normal(high - low, stds[-1]))
                continue
            if column.cloud is None:
                look = column.axis, column.noisy, column.cells, column.law
                found.append(ends(*look, rows, far, wrong))
                stds.append(_std(column, found[-1], rows))
            else:
                found.append(column.cloud.ends(column.looks[-1], rows, wrong))
                stds.append(column.cloud.std)
            own = Marginal.of(column.noisy, column.width, column.law.variance, rows)
            if column.cloud is not None and not self.is_alone:  # noise hides how rough it is
                own = replace(Marginal.normal(column.width, stds[-1]), finest=own.finest)
            alone.append(own)
        rounded = np.array([one.finest for one in alone])
        finest = np.array([column.width / column.axis.cells / 4 for column in columns])
        spectrum: Spectrum = Independent(tuple(alone))
        if self.with_shape and not self.is_alone:
            shape = _shape(found, alone, budget, rows, taken)
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
        return Fraction(2) ** max(min(round(math.log2(_OCTAVES / strength)), 1), -1)
    return max(Fraction(1, 2 ** int(1 + math.log2(strength / _FEW))), FINEST)


def _cells(strength: float) -> int:
    """Return how many cells of one width a column gets, by records over noise."""
    least, most = _CELLS
    return int(min(max(2 ** round(math.log2(max(strength / _PER_CELL, 1.0))), least), most))


def _is_faint(strength: float, near: bool) -> bool:
    """Tell whether noise is large against the records."""
    return strength < (_FEW_NEAR if near else _FEW)


def _number(strength: float, near: bool) -> int:
    """Return how many cells a column gets: more where records are sought in a wide window."""
    if not _is_faint(strength, near):
        return _cells(strength) if near else max(_cells(strength), _LOCATING)
    least, most = _FAINT_CELLS
    number = int(min(max(2 ** round(math.log2(max(1.5 * strength, 1.0))), least), most))
    return number if near else number * _LONELY


def _nowhere(look: Faint, rows: float) -> Column:
    """Return a column that shows no records."""
    empty = Axis.uniform(*NOWHERE, 2), np.zeros(2), look.law
    return Column(*empty, rows, None, is_seen=True)


def _faint(looks: tuple[Faint, ...], rows: float, enough: bool) -> Column:
    """Return what histograms say of a column whose noise is large.

    `enough`: whether the last of them was paid for well enough to be the last.
    """
    last = looks[-1]
    if all(rows < _VISIBLE * math.sqrt(look.law.variance) for look in looks):
        return _nowhere(last, rows)
    cloud = Cloud.of(looks, rows)
    column = Column(*last, rows, (0, last.axis.cells), looks=looks, cloud=cloud)
    if last.axis.is_geometric:
        near = cloud.high - cloud.low >= max(abs(cloud.low), abs(cloud.high))
        return replace(column, is_near=near)
    # Where the next window would be about as wide as this, it would tell no more.
    near = cloud.is_resolved or cloud.high - cloud.low > _HALF * column.width
    near = near and not cloud.is_beyond
    seen = (near and enough) or column.is_point
    return replace(column, is_near=near, is_seen=seen)


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
    if column.much_is_beyond and not ranged:
        return replace(column, is_near=False)
    filled = column.cells[1] - column.cells[0]
    near = filled >= max(column.axis.cells / _FULL, min(_LEAST_FILLED, column.axis.cells / 4))
    column = replace(column, is_near=near)
    if near and any(column.beyond) and not (ranged or column.is_widened):
        return column  # once more, as near as this, and wider
    return replace(column, is_seen=(near and enough) or column.is_point)


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


def _price_of_scale(budget: Budget, bounds: Bounds, rows: float, enough: float) -> Price:
    """Return what a look is paid that tells where records are; no more than it takes for a few.

    Where it would take too much for so many records over the noise, clouds need but `_LITTLE`.
    """
    cost = price(budget, bounds, rows, enough)
    return (
        cost if rows >= min(enough, _FIRST) * cost.spread else price(budget, bounds, rows, _LITTLE)
    )


def _shape_price(budget: Budget, rows: float, columns: int) -> Price:
    """Return what a histogram is paid that tells how rough columns are together."""
    enough, shares = (_ALONE, _ALONE_SHARES) if columns == 1 else (_JOINT, _SHAPE_SHARES)
    return price(budget, _ONE, rows, enough, shares)


def _shape_cells(strength: float, columns: int) -> int:
    """Return how many cells along an axis tell most of how rough columns are."""
    base = _BASE[columns - 1] if columns <= len(_BASE) else _LEAST_BASE
    number = base * max(strength / _STRENGTH, 1.0) ** _GROWTH[min(columns, len(_GROWTH)) - 1]
    if columns == 1:
        return int(min(number, _MOST_ALONE))
    most = min(_LEVEL * strength**2, _MOST_JOINT) ** (1 / columns)
    return int(min(number, most))


def _is_worth(cost: Price, rows: float, columns: int) -> bool:
    """Tell whether a joint histogram may have cells enough to tell anything."""
    return columns == 1 or _shape_cells(rows / cost.spread, columns) >= _LEAST_JOINT


def _shape(
    found: Sequence[Ends],
    alone: Sequence[Marginal],
    budget: Budget,
    rows: float,
    taken: Taken,
) -> tuple[Spectrum, Floats] | None:
    """Return the spectrum of all columns together, from a joint histogram within the bounds.

    And the lengths of its cells. None where it tells too little for its price.
    """
    cost = _shape_price(budget, rows, len(found))
    if not _is_worth(cost, rows, len(found)):
        return None
    widths = np.array([one.high - one.low for one in found])
    cuts = np.array([one.cut for one in alone])
    # As many cells along each axis as the frequencies that its column shows take.
    waves = np.log(cuts * widths)
    number = _shape_cells(rows / cost.spread, len(found))
    cells = np.exp(np.clip(waves - waves.mean(), *_UNLIKE)) * number
    cells = np.maximum(cells, _LEAST_JOINT)
    cells = np.floor(cells * min((number ** len(found) / cells.prod()) ** (1 / len(found)), 1.0))
    axes = tuple(
        Axis.uniform(one.low, one.high, max(int(count), _LEAST_JOINT - 1))
        for one, count in zip(found, cells, strict=True)
    )
    look = JointHistogram(axes)
    spend = budget.spend(SHAPE, cost.amount, cost.kind, look.bounds)
    (counts,) = _with_noise([taken(look)], budget, spend)
    noisy = counts.reshape(look.shape)
    finest = np.array([one.finest for one in alone])
    spectrum = Joint.of(noisy, widths, finest, spend.law.variance, rows)
    return spectrum, widths / look.shape / 4
