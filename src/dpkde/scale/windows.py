"""Where the records of a column lie, from a noisy histogram of it: windows, and bounds.

The law of the noise is known, so that what it may do by chance is, too. A block of cells **shows**
records where its noisy sum is more than noise makes of any block, with probability 1 − `CHANCE`;
blocks of 1, 2, 4, … cells are tried, since many cells together show what none shows alone. The
**window** reaches from the first that does to the last, and half as far again to either side.

**Bounds** begin where noisy sums from the left come to `TAIL` of the records. From there they move
outwards as far as a normal density goes on (`FAR`), and less where noise is so small that the cells
beyond are seen to be empty: a cloud keeps its tails, and a few outliers cannot stretch bounds. What
they leave out at most is told with its probability (`Ends.left_out`).

**Faint histograms**, in which noise is large against the records, are read otherwise (`Cloud`): how
well each of many clouds fits the noisy sums, all cells together, tells where most records are long
before a block shows any for sure. How many records there are is known, which blocks do not use.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.numbers import LARGEST
from dpkde.privacy.laws import Law
from dpkde.privacy.laws.tails import deviation
from dpkde.scale.grids import Axis

Floats = NDArray[np.float64]

CHANCE = 0.002
"""How probable it is that noise alone shows a record that is not there."""
_DOUBT = 0.1
"""Share of the records that noise is taken to hide at most, in what a window holds."""
_GROWTHS = 5
TAIL = 0.005
"""Share of the records beyond either end before bounds move outwards."""
FAR = (2.0, 0.4)
"""Standard deviations of a cloud that bounds are to hold, to either side: a + b·log₁₀(n/s), s that
of the noise on a cell. Less where errors are larger anyway."""
MOST = 0.9
"""Share of the records that a window holds, as far as noise lets it be told."""
SURE = 0.95
"""With this probability no more is left out of any column than is told."""
_LITTLE = 1e-3
"""Share of the records that is not worth a wider bound, noise included."""


_SIZES = 2.0 ** np.arange(-2.0, 6.5, 0.75)
"""Standard deviations of clouds on an even grid, in cells; none is wider than the grid."""
_PLACES = 64
_SLIMNESS = (2.0, 6.0, 24.0)
"""Distances of clouds from zero on a geometric grid, in standard deviations."""
_REACH = 3.0
"""Standard deviations of a cloud that are taken to hold it."""
_PARTS, _PENALTY = (0.9, 0.8, 0.65, 0.5), 6.0
"""What the larger of two clouds may hold, and how much better than one they have to fit."""
_UNLIKELY = 0.1
"""Chance that a cloud reaches further than is told, to either side."""
_BULK, _FEWEST = 0.8, 5
"""Share of the records that so few cells hold where a cloud is too narrow for the grid."""


class Ends(NamedTuple):
    """Bounds of a column, and the share of its records that they leave out at most.

    The latter is wrong with probability 1 − `SURE` at most.
    """

    low: float
    high: float
    left_out: float


class Cloud(NamedTuple):
    """Where most records are likely to be, by a faint histogram.

    Attributes
    ----------
    low, high
        What is likely to hold them, and cells that show records for sure.
    is_resolved
        Whether the grid is fine enough to tell its shape.
    is_beyond
        Whether many records are beyond the grid.
    """

    low: float
    high: float
    is_resolved: bool
    is_beyond: bool = False

    @classmethod
    def of(cls, axis: Axis, noisy: Floats, law: Law, rows: float) -> Cloud:
        """Return what fits: clouds of two halves, each normal with a width of its own.

        Every cloud of a public list counts by its likelihood, as under Laplace noise of the same
        variance, which forgives clouds that are no cloud.
        """
        middles, left, right = _clouds(axis)
        shares = _shares(axis, middles, left, right)
        scale = max(math.sqrt(law.variance / 2), 1e-6)
        fits = -np.abs(noisy - rows * shares).sum(axis=1) / scale
        weights = np.exp(fits - fits.max())
        low = _quantile(middles - _REACH * left, weights, _UNLIKELY)
        high = _quantile(middles + _REACH * right, weights, 1 - _UNLIKELY)
        if not axis.is_geometric:
            pair, fit = _pair(axis, noisy / scale, rows / scale)
            if fit > float(fits.max()) + _PENALTY:
                low, high = min(low, pair[0]), max(high, pair[1])
            shown = np.flatnonzero(noisy > largest(law, 1, CHANCE / len(noisy)))
            if len(shown):
                low = min(low, float(axis.edges[shown[0]]))
                high = max(high, float(axis.edges[shown[-1] + 1]))
        beyond = not axis.is_geometric and len(shown) > 0 and shown[0] == 0
        above = not axis.is_geometric and len(shown) > 0 and shown[-1] == axis.cells - 1
        if beyond or above:  # the cells at the ends hold all beyond
            length = float(axis.edges[-1] - axis.edges[0])
            low, high = low - length * beyond, high + length * above
        bulk = np.cumsum(np.sort(noisy)[::-1])[: _FEWEST - 1].max()
        resolved = not axis.is_geometric and bool(bulk < _BULK * rows)
        return cls(max(low, -LARGEST), min(high, LARGEST), resolved, beyond or above)


def _pair(axis: Axis, noisy: Floats, rows: float) -> tuple[tuple[float, float], float]:
    """Return the reach of the two clouds that fit best together, and how well they do.

    One after the other, and once more; noisy sums and records in units of the noise.
    """
    middles, left, right = _clouds(axis)
    even = left == right
    middles, width = middles[even], left[even]
    shares = _shares(axis, middles, width, width)
    best, reach = -math.inf, (0.0, 0.0)
    for part in _PARTS:
        second = np.zeros(axis.cells)
        for _ in range(2):
            fits = np.abs(noisy - second - rows * part * shares).sum(axis=1)
            one = int(np.argmin(fits))
            first = rows * part * shares[one]
            fits = np.abs(noisy - first - rows * (1 - part) * shares).sum(axis=1)
            other = int(np.argmin(fits))
            second = rows * (1 - part) * shares[other]
        if -fits[other] > best:
            both = [one, other]
            ends = middles[both] - _REACH * width[both], middles[both] + _REACH * width[both]
            best, reach = -float(fits[other]), (float(ends[0].min()), float(ends[1].max()))
    return reach, best


def _clouds(axis: Axis) -> tuple[Floats, Floats, Floats]:
    """Return middles and widths to either side of clouds that may be told on a grid."""
    if axis.is_geometric:
        sizes = np.sqrt(2.0) ** np.arange(-96, 256)
        middles, widths = [np.zeros(len(sizes))], [sizes]
        for slim in _SLIMNESS:
            middles += [sizes, -sizes]
            widths += [sizes / slim, sizes / slim]
        width = np.concatenate(widths)
        return np.concatenate(middles), width, width
    length = float(axis.edges[-1] / axis.cells - axis.edges[0] / axis.cells)
    places = np.linspace(axis.edges[0], axis.edges[-1], min(2 * axis.cells, _PLACES) + 1)
    sizes = length * _SIZES[axis.cells >= _SIZES]
    middle, left, right = np.meshgrid(places, sizes, sizes, indexing="ij")
    return middle.ravel(), left.ravel(), right.ravel()


def _shares(axis: Axis, middles: Floats, left: Floats, right: Floats) -> Floats:
    """Return what cells hold of clouds, shape (clouds, cells); the outermost hold all beyond."""
    from scipy.special import ndtr

    apart = axis.edges[1:-1] - middles[:, np.newaxis]
    width = np.where(apart < 0, left[:, np.newaxis], right[:, np.newaxis])
    # A half is as heavy as it is wide, so that the density has no step.
    weight = 2 / (left + right)[:, np.newaxis]
    below = ndtr(np.clip(apart / width, -40, 40))
    part = left[:, np.newaxis] * weight / 2
    mass = np.where(apart < 0, below * width * weight, part + (below - 0.5) * width * weight)
    return np.diff(mass, axis=1, prepend=0.0, append=1.0)


def _quantile(values: Floats, weights: Floats, level: float) -> float:
    """Return the weighted quantile."""
    order = np.argsort(values)
    sums = np.cumsum(weights[order])
    return float(values[order[min(int(np.searchsorted(sums, level * sums[-1])), len(order) - 1)]])


def faint_ends(axis: Axis, noisy: Floats, cloud: Cloud, law: Law, rows: float) -> Ends:
    """Return the reach of a cloud as bounds, and what they leave out."""
    below = int(np.searchsorted(axis.edges, cloud.low, side="left"))
    above = axis.cells - int(np.searchsorted(axis.edges, cloud.high, side="right")) + 1
    outer = noisy[: max(below, 1)], noisy[::-1][: max(above, 1)]
    left_out = sum(_left_out(part, law, rows) for part in outer)
    return Ends(cloud.low, cloud.high, min(left_out, 1.0))


@lru_cache(maxsize=1024)
def largest(law: Law, cells: int, failure: float) -> float:
    """Return t with P(|noise on so many cells together| > t) ≤ failure."""
    part = law.tail(math.sqrt(cells), 1.0, failure)
    return deviation([part], math.log(2 / failure))


def occupied(noisy: Floats, law: Law, chance: float = CHANCE) -> tuple[int, int] | None:
    """Return the first cell that shows records and the one after the last; None: none does."""
    cells = len(noisy)
    lengths = [1 << k for k in range(cells.bit_length())]
    failure = chance / (cells * len(lengths))
    sums = np.concatenate([[0.0], np.cumsum(noisy)])
    low = high = -1
    for length in lengths:
        blocks = sums[length:] - sums[:-length]
        shown = np.flatnonzero(blocks > largest(law, length, failure))
        if not len(shown):
            continue
        if low < 0:
            if length == 1:
                low, high = int(shown[0]), int(shown[-1]) + 1
                continue
            low = int(np.argmax(blocks))
            high = low + length
        before, after = shown[shown + length <= low], shown[shown >= high]
        low = int(before[0]) if len(before) else low
        high = int(after[-1]) + length if len(after) else high
    return None if low < 0 else (low, high)


def whole(
    axis: Axis, noisy: Floats, cells: tuple[int, int], law: Law, rows: float
) -> tuple[int, int]:
    """Return these cells and as many to either side as it takes to hold `MOST` of the records.

    What shows records for sure may be the middle of a cloud. On the geometric grid both signs are
    taken first, and then a few more magnitudes.
    """
    low, high = cells
    sums = np.concatenate([[0.0], np.cumsum(noisy)])
    mirrored = axis.is_geometric
    for _ in range(_GROWTHS if mirrored else len(noisy)):
        spread = math.sqrt(law.variance * (high - low))
        if sums[high] - sums[low] >= MOST * rows - min(spread, _DOUBT * rows):
            return low, high
        if mirrored and (low, high) != (len(noisy) - high, len(noisy) - low):
            high = max(high, len(noisy) - low)
            low = len(noisy) - high
        else:
            low, high = max(low - 1, 0), min(high + 1, len(noisy))
    return cells


def window(axis: Axis, cells: tuple[int, int]) -> tuple[float, float]:
    """Return an interval with what cells show, and half as much to either side."""
    first, last = axis.edges[cells[0]], axis.edges[cells[1]]
    spare = last / 2 - first / 2
    least, most = axis.edges[0], axis.edges[-1]
    return max(first - spare, least), min(last + spare, most)


def ends(axis: Axis, noisy: Floats, cells: tuple[int, int], law: Law, rows: float) -> Ends:
    """Return bounds from the noisy histogram of a column, and what they leave out."""
    first, last = cells
    middle, near = (first + last + 1) // 2, (last - first + 3) // 2
    # What is far from all that shows anything adds noise, and hardly a record.
    begin, end = max(first - near, 0), min(last + near, axis.cells)
    low = min(begin + _reached(noisy[begin:middle], rows), middle - 1)
    high = max(end - _reached(noisy[middle:end][::-1], rows), middle)
    spare = math.ceil(_margin(high - low, law, rows) * (high - low))
    start, stop = max(low - spare, 0), min(high + spare, axis.cells)
    below = start + _empty(noisy[start:low], law, rows)
    above = stop - _empty(noisy[high:stop][::-1], law, rows)
    # The outermost cells hold all beyond the grid: bounds may leave out what is in them.
    outer = noisy[: max(below, 1)], noisy[min(above, axis.cells - 1) :][::-1]
    left_out = sum(_left_out(part, law, rows) for part in outer)
    return Ends(float(axis.edges[below]), float(axis.edges[above]), min(left_out, 1.0))


def _margin(cells: int, law: Law, rows: float) -> float:
    """Return how far to move outwards, as a share of the distance between both ends.

    As far as a normal density goes on to so many standard deviations (`FAR`), from where `TAIL` of
    it is beyond; or more than that, where noise hides more.
    """
    from scipy.special import ndtri

    spread = max(math.sqrt(law.variance), 1e-6) / rows
    hidden = TAIL + spread * math.sqrt(cells / 2)
    far = FAR[0] + FAR[1] * math.log10(min(max(1 / spread, 1.0), 1e4))
    return max((far / -float(ndtri(min(hidden, 0.2))) - 1) / 2, 0.0)


def _reached(noisy: Floats, rows: float) -> int:
    """Return how many cells from the left hold `TAIL` of the records at most, by noisy sums."""
    few = np.flatnonzero(np.cumsum(noisy) <= TAIL * rows)
    return int(few[-1]) + 1 if len(few) else 0


def _empty(noisy: Floats, law: Law, rows: float) -> int:
    """Return how many cells from the left hold next to nothing for all that noise may hide."""
    sums = np.cumsum(noisy)
    spread = 2 * math.sqrt(law.variance * len(noisy))
    return int(np.argmax(np.append(sums + spread, math.inf) > _LITTLE * rows))


def _left_out(noisy: Floats, law: Law, rows: float) -> float:
    """Return the share that these cells, counted from the end of the grid, hold at most.

    Where they stop hangs on the noise: so the bound is one on all sums from the end. Those of up to
    2^k cells are no larger than twice the chance of the last one (Lévy), k by k.
    """
    if not len(noisy):
        return 0.0
    octave = (len(noisy) - 1).bit_length()
    failure = (1 - SURE) / 2 / 2 / (octave + 1) / (octave + 2)
    most = float(noisy.sum()) + largest(law, 1 << octave, failure)
    return min(max(most, 0.0) / rows, 1.0)
