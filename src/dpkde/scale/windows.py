"""Where the records of a column lie, from a noisy histogram of it: windows, and bounds.

The law of the noise is known, so that what it may do by chance is, too. A block of cells **shows**
records where its noisy sum is more than noise makes of any block, with probability 1 − `CHANCE`;
blocks of 1, 2, 4, … cells are tried, since many cells together show what none shows alone. The
**window** reaches from the first that does to the last, and half as far again to either side.

**Bounds** begin where noisy sums from the left come to `TAIL` of the records. From there they move
outwards as far as a normal density goes on (`FAR`), and less where noise is so small that the cells
beyond are seen to be empty: a cloud keeps its tails, and a few outliers cannot stretch bounds. What
they leave out at most is told with its probability (`Ends.left_out`).
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
FAR = (1.75, 0.375)
"""Standard deviations of a cloud that bounds are to hold, to either side: a + b·log₁₀(n/s), s that
of the noise on a cell which the whole budget buys. Less where errors are larger anyway."""
_FURTHER = 3.5
"""As which part of the records each further column counts there: it adds errors of its own."""
_SPARE = (1.0, 1.5)
"""How much wider windows are than what shows: over even cells, and over the geometric grid's, which
are long where clouds end."""
_MUCH = 2.0
"""Standard deviations of its noise that the cell at an end of a window holds where a cloud goes on:
which cells are asked is public, so that less has to show."""
MOST = 0.9
"""Share of the records that a window holds, as far as noise lets it be told."""
SURE = 0.95
"""With this probability no more is left out of any column than is told."""
_LITTLE = 1e-3
"""Share of the records that is not worth a wider bound, noise included."""


class Ends(NamedTuple):
    """Bounds of a column, and the share of its records that they leave out at most.

    The latter is wrong with probability 1 − `SURE` at most, for all columns together. Under replace
    records are all rows, those with values missing, too: their number is what is public.
    """

    low: float
    high: float
    left_out: float


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
    """Return an interval with what cells show, and about half as much to either side."""
    first, last = axis.edges[cells[0]], axis.edges[cells[1]]
    spare = _SPARE[axis.is_geometric] * (last / 2 - first / 2)
    least, most = axis.edges[0], axis.edges[-1]
    return max(first - spare, least), min(last + spare, most)


def reach(strength: float, columns: int) -> float:
    """Return how many standard deviations of a cloud bounds are to hold; see `FAR`.

    >>> reach(100.0, 1), reach(1e4, 1), round(reach(1e4, 3), 2)
    (2.5, 3.25, 2.84)
    """
    strength /= _FURTHER ** (columns - 1)
    return FAR[0] + FAR[1] * math.log10(min(max(strength, 1.0), 1e7))


def ends(
    axis: Axis,
    noisy: Floats,
    cells: tuple[int, int],
    law: Law,
    rows: float,
    far: float = 3.0,
    wrong: float = 1 - SURE,
) -> Ends:
    """Return bounds from the noisy histogram of a column, and what they leave out.

    `far`: standard deviations of a cloud that they are to hold; `wrong`: with what probability more
    is left out.
    """
    first, last = cells
    middle, near = (first + last + 1) // 2, (last - first + 3) // 2
    # What is far from all that shows anything adds noise, and hardly a record.
    begin, end = max(first - near, 0), min(last + near, axis.cells)
    low = min(begin + _reached(noisy[begin:middle], rows), middle - 1)
    high = max(end - _reached(noisy[middle:end][::-1], rows), middle)
    spare = math.ceil(_margin(high - low, law, rows, far) * (high - low))
    start, stop = max(low - spare, 0), min(high + spare, axis.cells)
    below = start + _empty(noisy[start:low], law, rows)
    above = stop - _empty(noisy[high:stop][::-1], law, rows)
    least, most = float(axis.edges[below]), float(axis.edges[above])
    if not axis.is_geometric:  # a cloud may go on where the window ends: the cells there hold it
        cell = float(axis.edges[-1] / axis.cells - axis.edges[0] / axis.cells)
        much = _MUCH * math.sqrt(law.variance)
        if below == 0 and noisy[0] > much:
            least -= cell * max(spare - low, 0)
        if above == axis.cells and noisy[-1] > much:
            most += cell * max(high + spare - axis.cells, 0)
    # The outermost cells hold all beyond the grid: bounds may leave out what is in them.
    outer = noisy[: max(below, 1)], noisy[min(above, axis.cells - 1) :][::-1]
    lost = sum(left_out(part, law, rows, wrong / 2) for part in outer)
    return Ends(max(least, -LARGEST), min(most, LARGEST), min(lost, 1.0))


def _margin(cells: int, law: Law, rows: float, far: float) -> float:
    """Return how far to move outwards, as a share of the distance between both ends.

    As far as a normal density goes on to so many standard deviations, from where `TAIL` of
    it is beyond; or more than that, where noise hides more.
    """
    from scipy.special import ndtri

    spread = max(math.sqrt(law.variance), 1e-6) / rows
    hidden = TAIL + spread * math.sqrt(cells / 2)
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


def left_out(noisy: Floats, law: Law, rows: float, wrong: float) -> float:
    """Return the share that these cells, counted from the end of the grid, hold at most.

    But for a probability of `wrong`. Where they stop hangs on the noise: so the bound is one on all
    sums from the end. Those of up to 2^k cells are no larger than twice the chance of the last one
    (Lévy), k by k.
    """
    if not len(noisy):
        return 0.0
    octave = (len(noisy) - 1).bit_length()
    failure = wrong / 2 / (octave + 1) / (octave + 2)
    most = float(noisy.sum()) + largest(law, 1 << octave, failure)
    return min(max(most, 0.0) / rows, 1.0)
