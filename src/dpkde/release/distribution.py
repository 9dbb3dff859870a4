"""Distribution functions of single columns, and their quantiles.

F(v) is the share of the half-line up to v. A table that knows the whole line tells it twice, from
below, L/ñ, and from above, 1 − U/ñ; with b the mean of its weights over the cells,

    F(v) = (L − b·(L + U))/ñ + b

is the combination of least noise, 0 and 1 far out. On a fixed grid over the column, whatever is
asked, the values are replaced by the nearest that do not fall (isotonic regression), and a curve
that is monotone between them answers. Intervals are about the values before that, one at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpkde.errors import ParameterError, SchemaError
from dpkde.families.brackets import Allowance
from dpkde.families.reading import WHOLE, Asked, Over, Reading
from dpkde.release.answers import deviation
from dpkde.release.boxes import check_axes, number_of, shaped
from dpkde.release.regions import (
    Sight,
    check_bias,
    check_level,
    half_width,
    mass,
    mass_interval,
    sight,
)

if TYPE_CHECKING:
    from dpkde.release.answering import Answering

Floats = NDArray[np.float64]

_STEP = 1 / 64
"""Of the grid, in bandwidths."""
_MOST = 1 << 14
"""Most points of the grid between the bounds."""
_FARTHEST = 1e6
_COARSE = 512
"""Points at which the intervals of quantiles are looked for."""
_FINE = 33
"""And points between two of those."""
_KNOTS = 48
"""Points at which half lengths of intervals are computed where each takes milliseconds."""
_CHUNK = 1024


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a release."""

    release: Answering
    number: int

    @cached_property
    def view(self) -> Sight:
        """What shares are read from."""
        return sight(self.release, None)

    @property
    def _bound(self) -> float:
        """Half the width of the column, in bandwidths."""
        halves = self.release.plan.frame.halves()
        if halves is None:
            raise ParameterError(
                "a distribution function needs bounds, to know where records end: this release has "
                "none; ask for the mass of boxes with finite ends"
            )
        return float(halves[self.number])

    @cached_property
    def grid(self) -> Floats:
        """Places from where F is 0 to where it is 1, in bandwidths: the same whatever is asked."""
        bound, kernel = self._bound, self.release.kernel
        reach = min(kernel.shape.profile_reach(1e-9), _FARTHEST) if kernel.is_product else 16.0
        inner = bound + min(reach, 8.0)
        points = int(min(np.ceil(2 * inner / _STEP), _MOST)) + 1
        middle = np.linspace(-inner, inner, points)
        outer = bound + reach
        if outer <= inner * (1 + 1e-9):
            return middle
        tail = np.geomspace(inner, outer, 256)[1:]
        return np.concatenate([-tail[::-1], middle, tail])

    def to_data(self, places: Floats) -> Floats:
        """Return places in the units of the data."""
        frame = self.release.plan.frame
        return np.asarray(places * self._unit + frame.domain.origin(frame.dim)[self.number])

    def to_places(self, values: Floats) -> Floats:
        """Return values in bandwidths; infinite ones stay so."""
        frame = self.release.plan.frame
        with np.errstate(all="ignore"):
            return np.asarray((values - frame.domain.origin(frame.dim)[self.number]) / self._unit)

    @property
    def _unit(self) -> float:
        value = self.release.kernel.bandwidth.value
        return float(value[0 if len(value) == 1 else self.number])  # type: ignore[arg-type]

    def _asked(self, entry: Asked) -> list[Asked]:
        asked: list[Asked] = [WHOLE] * self.release.dim
        asked[self.number] = entry
        return asked

    def _reading(self, places: Floats) -> tuple[Reading, Floats]:
        """Return the weights of F less b, and b."""
        pair, start = self.release.plan.pair, np.array([-np.inf])
        below = pair.read(self._asked(Over(start, places)))
        if not self.ends_with_one:
            return below, np.zeros(len(places))
        whole = pair.read(self._asked(WHOLE))
        level = below.inner(whole) / float(whole.norms()[0]) ** 2
        return pair.read(self._asked(Over(start, places, level))), level

    @property
    def ends_with_one(self) -> bool:
        """Whether all that is counted is known to be in the table.

        Of a public number of rows some may have been dropped; a noisy count is of the others.
        """
        release = self.release
        drops = getattr(release.domain, "outside", "clip") == "drop"
        return release.plan.pair.knows_the_whole and (release.law("count") is not None or not drops)

    def _boxes(self, places: Floats) -> Floats:
        boxes = np.empty((len(places), self.release.dim, 2))
        boxes[...] = (-np.inf, np.inf)
        boxes[:, self.number, 1] = self.to_data(places)
        return boxes

    def raw(self, places: Floats) -> Floats:
        """Return F with its noise."""
        if not self.release.plan.pair.knows_the_whole:
            return mass(self.release, self._boxes(places), clip=False)
        parts = []
        for start in range(0, len(places), _CHUNK):
            reading, level = self._reading(places[start : start + _CHUNK])
            parts.append(reading.values(self.view.table) / self.view.rows + level)
        return np.concatenate([*parts, np.empty(0)])

    def ends(
        self, places: Floats, level: float, bias: str, knots: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return intervals for F at places, each on its own.

        Their half lengths are computed at all of them, or at `knots`, which grow, with straight
        lines between: they change little over a bandwidth.
        """
        middle = self.raw(places)
        if knots is None:
            half = self.half_lengths(places, level, bias)
        else:
            half = np.interp(places, knots, self.half_lengths(knots, level, bias))
        return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)

    def half_lengths(self, places: Floats, level: float, bias: str) -> Floats:
        """Return half the lengths of intervals for F at places."""
        release = self.release
        if not release.plan.pair.knows_the_whole:
            boxes = self._boxes(places)
            low, high = mass_interval(release, boxes, level, clip=False, bias=bias)
            return (high - low) / 2
        width = []
        for first in range(0, len(places), _CHUNK):
            part = places[first : first + _CHUNK]
            reading, constant = self._reading(part)
            table, sums = self.view.table, reading.values(self.view.table)
            allowed = self._bias(part, constant, bias)
            width.append(half_width(self.view, reading, table, sums, allowed, level, constant))
        return np.concatenate([*width, np.empty(0)])

    def _bias(self, places: Floats, constant: Floats, kind: str) -> Allowance:
        """Return what the weights of F less b are off by."""
        release, start = self.release, np.array([-np.inf])
        pair, table = release.plan.pair, self.view.table
        if kind == "worst":
            return pair.box_bound(self._asked(Over(start, places, constant)), table)
        variance = deviation(release, "table") ** 2
        typical = pair.box_bias(self._asked(Over(start, places)), table, variance)
        return Allowance(typical, np.zeros(len(typical)))

    @cached_property
    def heights(self) -> Floats:
        """F on the grid, without a fall, within [0, 1]."""
        from scipy.optimize import isotonic_regression

        return np.asarray(np.clip(isotonic_regression(self.raw(self.grid)).x, 0.0, 1.0))

    def smooth(self, places: Floats) -> Floats:
        """Return the monotone curve through the heights; level beyond the grid."""
        from scipy.interpolate import PchipInterpolator

        inside = np.clip(np.nan_to_num(places), self.grid[0], self.grid[-1])
        curve = PchipInterpolator(self.grid, self.heights)
        return np.asarray(np.clip(curve(inside), 0.0, 1.0))

    def inverse(self, shares: Floats) -> Floats:
        """Return the first place at which the curve has reached a share, by halving."""
        upper = np.minimum(np.searchsorted(self.heights, shares), len(self.grid) - 1)
        low, high = self.grid[np.maximum(upper - 1, 0)], self.grid[upper]
        for _ in range(60):
            middle = low / 2 + high / 2
            reached = self.smooth(middle) >= shares
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return np.asarray(high)


def column_of(release: Answering, column: Any) -> Column:
    """Return a column by its name or number; the only one by None."""
    check_axes(release.kernel)
    return Column(release, number_of(column, release.dim, release.columns))


def _numbers(values: ArrayLike, what: str) -> Floats:
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise TypeError
    except (TypeError, ValueError):
        raise SchemaError(f"{what} must be real numbers") from None
    return array.astype(np.float64)


def cdf(release: Answering, values: ArrayLike, column: Any) -> Floats:
    """Return F at values, in their shape; NaN where one is no number."""
    chosen, numbers = column_of(release, column), _numbers(values, "values")
    places = chosen.to_places(numbers.reshape(-1))
    heights = chosen.smooth(places) if len(places) else np.empty(0)
    # What a kernel has beyond the grid, and a curve does not follow, belongs to the infinite ends.
    heights[np.isneginf(places)] = 0.0
    if chosen.ends_with_one:
        heights[np.isposinf(places)] = 1.0
    heights[np.isnan(places)] = np.nan
    return shaped(heights, numbers.shape)


def cdf_interval(
    release: Answering, values: ArrayLike, column: Any, level: float, bias: str = "worst"
) -> tuple[Floats, Floats]:
    """Return the ends of an interval for F at each value, on its own."""
    level, kind, chosen = check_level(level), check_bias(bias), column_of(release, column)
    numbers = _numbers(values, "values")
    places = chosen.to_places(numbers.reshape(-1))
    inside = np.clip(np.nan_to_num(places), chosen.grid[0], chosen.grid[-1])
    low, high = chosen.ends(inside, level, kind)
    for end in (low, high):
        end[np.isnan(places)] = np.nan
    return shaped(low, numbers.shape), shaped(high, numbers.shape)


def _shares(shares: ArrayLike) -> Floats:
    numbers = _numbers(shares, "shares")
    beyond = numbers[(numbers <= 0) | (numbers >= 1)]
    if beyond.size:
        raise ParameterError(
            "shares must be strictly between 0 and 1, such as 0.5 for the median, got "
            f"{float(beyond[0]):g}"
        )
    return numbers


def quantile(release: Answering, shares: ArrayLike, column: Any) -> Floats:
    """Return the first value at which F has reached a share, in the shape of the shares."""
    chosen, numbers = column_of(release, column), _shares(shares)
    flat = numbers.reshape(-1)
    values = chosen.to_data(chosen.inverse(np.nan_to_num(flat))) if len(flat) else np.empty(0)
    return shaped(np.where(np.isnan(flat), np.nan, values), numbers.shape)


def quantile_interval(
    release: Answering, shares: ArrayLike, column: Any, level: float, bias: str = "worst"
) -> tuple[Floats, Floats]:
    """Return all values whose interval for F holds the share, from the first to the last.

    At the true quantile the interval of F holds the share with probability `level`, and then it is
    among them. They are looked for on a coarse grid first, then around the first and the last.
    Where the law of the noise takes long to invert, `Fourier`, that is done at some places only.
    """
    level, kind = check_level(level), check_bias(bias)
    chosen, numbers = column_of(release, column), _shares(shares)
    flat = np.nan_to_num(numbers.reshape(-1), nan=0.5)
    grid = chosen.grid
    coarse = grid[np.unique(np.linspace(0, len(grid) - 1, _COARSE).astype(np.int64))]
    slow = not release.plan.pair.knows_the_whole
    rows = np.unique(np.linspace(0, len(coarse) - 1, _KNOTS).astype(np.int64))
    low, high = chosen.ends(coarse, level, kind, coarse[rows] if slow else None)
    first, last = np.empty(len(flat)), np.empty(len(flat))
    for i, share in enumerate(flat.tolist()):
        fits = np.flatnonzero((low <= share) & (share <= high))
        if not len(fits):  # it lies between two points
            fits = np.searchsorted(coarse, chosen.inverse(flat[i : i + 1]))
        around = np.array([fits[0] - 1, fits[0], fits[-1], fits[-1] + 1]).clip(0, len(coarse) - 1)
        a, b, c, d = coarse[around].tolist()
        fine = np.concatenate([np.linspace(a, b, _FINE), np.linspace(c, d, _FINE)])
        ends = chosen.ends(fine, level, kind, np.unique(coarse[around]) if slow else None)
        inside = np.flatnonzero((ends[0] <= share) & (share <= ends[1]))
        if not len(inside):
            inside = np.searchsorted(fine, chosen.inverse(flat[i : i + 1]))
        first[i], last[i] = fine[max(inside[0] - 1, 0)], fine[min(inside[-1] + 1, len(fine) - 1)]
    strange = np.isnan(numbers.reshape(-1))
    values = (np.where(strange, np.nan, chosen.to_data(end)) for end in (first, last))
    below, above = (shaped(end, numbers.shape) for end in values)
    return below, above
