"""Where most records of a column are likely to be, by faint histograms.

Where noise is large against the records, no block of cells shows any for sure. But how many records
there are is known, and how well each of many clouds fits all cells together tells where most are.
Clouds are of two halves, each normal with a width of its own, and count by their likelihood, as
under Laplace noise of the same variance, which forgives clouds that are no cloud. All histograms of
a column that were paid for so far speak: a later one tells the shape, and the first, over a grid of
all magnitudes, keeps it from being sought where nothing is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.numbers import LARGEST
from dpkde.privacy.laws import Law
from dpkde.scale.grids import Axis
from dpkde.scale.windows import SURE, Ends, left_out, occupied

Floats = NDArray[np.float64]

_SIZES = 2.0 ** np.arange(-2.0, 6.5, 0.75)
"""Standard deviations of clouds on an even grid, in cells; none is wider than the grid."""
_PLACES = 64
_OCTAVES = ((-96.0, -20.0, 2.0), (-20.0, 68.0, 0.5), (68.0, 256.0, 2.0))
"""Powers of two that standard deviations of clouds on a geometric grid are: from, to, by. Where its
cells are long, few."""
_APART = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0, 12.0, 24.0)
"""How many standard deviations these are from zero."""
_LOST = 30.0
"""By what power of e a cloud is less likely than the best of them that counts no more."""
_UNUSUAL = 1 / 10
"""How much less likely magnitudes are by powers of e, for each octave from one."""
_REACH = 3.0
"""Standard deviations of a cloud that are taken to hold it."""
_PARTS, _PENALTY = (0.9, 0.8, 0.65, 0.5), 4.0
"""What the larger of two clouds may hold, and how much better than one they have to fit."""
_UNLIKELY = 0.2
"""Chance that a cloud reaches further than is told, to either side."""
_MUCH = 3.0
"""Standard deviations of its noise that the cell at an end holds where many are beyond the grid."""
_RESOLVED = 1.0
"""Cells of a grid that a standard deviation is long, where its shape can be told."""


class Faint(NamedTuple):
    """A noisy histogram of a column."""

    axis: Axis
    noisy: Floats
    law: Law

    @property
    def scale(self) -> float:
        """That of Laplace noise with this variance."""
        return max(math.sqrt(self.law.variance / 2), 1e-6)


class Cloud(NamedTuple):
    """Where most records are likely to be.

    Attributes
    ----------
    low, high
        What is likely to hold them, and cells that show records for sure.
    std
        Their standard deviation, as likely.
    is_resolved
        Whether the last grid is fine enough to tell their shape.
    is_beyond
        Whether many records are beyond the last grid.
    """

    low: float
    high: float
    std: float
    is_resolved: bool
    is_beyond: bool = False

    @classmethod
    def of(cls, looks: Sequence[Faint], rows: float) -> Cloud:
        """Return what fits all histograms of a column, of which the last is the finest."""
        last = looks[-1]
        axis = last.axis
        evidence = Evidence.of(looks, rows)
        kinds = [_clouds(axis)]
        if looks[0].axis.is_geometric and not axis.is_geometric:
            kinds.append(_clouds(looks[0].axis))
        clouds = np.stack([np.concatenate(each) for each in zip(*kinds, strict=True)])
        clouds, misses = evidence.fitting(clouds)
        middles, left, right, likely = clouds
        weights = np.exp(likely - misses - (likely - misses).max())
        low = _quantile(middles - _REACH * left, weights, _UNLIKELY)
        high = _quantile(middles + _REACH * right, weights, 1 - _UNLIKELY)
        # Of two half normal densities of these widths, as heavy as they are wide.
        stds = np.sqrt((1 - 2 / math.pi) * (right - left) ** 2 + left * right)
        std = _quantile(stds, weights, 0.5)
        if axis.is_geometric:
            return cls(max(low, -LARGEST), min(high, LARGEST), std, False)
        pair = _pair(evidence, [look.axis for look in looks])
        if pair.misses < float(misses.min()) - _PENALTY:
            low, high, std = min(low, pair.low), max(high, pair.high), pair.std
        shown = occupied(last.noisy, last.law)
        if shown is not None:
            low = min(low, float(axis.edges[shown[0]]))
            high = max(high, float(axis.edges[shown[1]]))
        # Which cells are asked here is public, so that less has to show.
        much = _MUCH * math.sqrt(last.law.variance)
        begins, goes_on = bool(last.noisy[0] > much), bool(last.noisy[-1] > much)
        length = float(axis.edges[-1] - axis.edges[0])
        if begins or goes_on:  # the cells at the ends hold all beyond
            low, high = low - length * begins, high + length * goes_on
        resolved = std >= _RESOLVED * length / axis.cells
        low, high = max(low, -LARGEST), min(high, LARGEST)
        return cls(low, high, std, resolved, begins or goes_on)

    def ends(self, look: Faint, rows: float, wrong: float = 1 - SURE) -> Ends:
        """Return its reach as bounds, and what they leave out by a histogram.

        `wrong`: with what probability the latter may be.
        """
        below = int(np.searchsorted(look.axis.edges, self.low, side="left"))
        above = int(np.searchsorted(look.axis.edges, self.high, side="right"))
        above = look.axis.cells - above + 1
        outer = look.noisy[: max(below, 1)], look.noisy[::-1][: max(above, 1)]
        lost = sum(left_out(part, look.law, rows, wrong / 2) for part in outer)
        return Ends(self.low, self.high, min(lost, 1.0))


class Evidence(NamedTuple):
    """All histograms of a column, cell by cell, in units of their noise.

    Attributes
    ----------
    axes
        Their grids.
    noisy
        Noisy sums.
    rows
        What a cell would hold of all records.
    """

    axes: tuple[Axis, ...]
    noisy: Floats
    rows: Floats

    @classmethod
    def of(cls, looks: Sequence[Faint], rows: float) -> Evidence:
        """Put histograms beside one another."""
        scales = np.concatenate([np.full(look.axis.cells, look.scale) for look in looks])
        noisy = np.concatenate([look.noisy for look in looks])
        return cls(tuple(look.axis for look in looks), noisy / scales, rows / scales)

    def shares(self, middles: Floats, left: Floats, right: Floats) -> Floats:
        """Return what cells would hold of clouds, shape (clouds, cells)."""
        shares = [_shares(axis, middles, left, right) for axis in self.axes]
        return self.rows * np.concatenate(shares, axis=1)

    def misses(self, held: Floats) -> Floats:
        """Return how far these are from the noisy sums: less the logarithm of the likelihood."""
        return np.asarray(np.abs(self.noisy - held).sum(axis=-1))

    def fitting(self, clouds: Floats) -> tuple[Floats, Floats]:
        """Return the clouds that may be, and how far each is from the noisy sums.

        Rows of `clouds` are middles, widths, and logarithms of how likely they are. The finest
        histogram leaves few of them.
        """
        misses, stop = np.zeros(clouds.shape[1]), len(self.noisy)
        for axis in reversed(self.axes):
            cells = slice(stop - axis.cells, stop)
            held = self.rows[cells] * _shares(axis, *clouds[:3])
            misses = misses + np.abs(self.noisy[cells] - held).sum(axis=1)
            fits = clouds[3] - misses
            kept = fits > fits.max() - _LOST
            clouds, misses, stop = clouds[:, kept], misses[kept], cells.start
        return clouds, misses


class Pair(NamedTuple):
    """Two clouds: where they reach, their spread together, and how far from the sums they are."""

    low: float
    high: float
    std: float
    misses: float


def _pair(evidence: Evidence, axes: Sequence[Axis]) -> Pair:
    """Return the two clouds that fit best together: one after the other, and once more."""
    kinds = [_clouds(axis)[:3] for axis in axes[-2:] if not axis.is_geometric]
    middles, left, right = (np.concatenate(each) for each in zip(*kinds, strict=True))
    even = left == right
    middles, width = middles[even], left[even]
    shares = evidence.shares(middles, width, width)
    best = Pair(0.0, 0.0, 0.0, math.inf)
    for part in _PARTS:
        second = np.zeros(shares.shape[1])
        for _ in range(2):
            one = int(np.argmin(evidence.misses(second + part * shares)))
            first = part * shares[one]
            misses = evidence.misses(first + (1 - part) * shares)
            other = int(np.argmin(misses))
            second = (1 - part) * shares[other]
        if misses[other] < best.misses:
            both, parts = [one, other], np.array([part, 1 - part])
            reach, apart = _REACH * width[both], middles[one] - middles[other]
            low, high = float((middles[both] - reach).min()), float((middles[both] + reach).max())
            std = math.sqrt(float(parts @ width[both] ** 2 + parts.prod() * apart**2))
            best = Pair(low, high, std, float(misses[other]))
    return best


def _clouds(axis: Axis) -> tuple[Floats, Floats, Floats, Floats]:
    """Return middles and widths of clouds that may be told on a grid, and how likely they are.

    Widths to either side, and logarithms of shares that add up to one.
    """
    if axis.is_geometric:
        return _around_zero()
    length = float(axis.edges[-1] / axis.cells - axis.edges[0] / axis.cells)
    places = np.linspace(axis.edges[0], axis.edges[-1], min(2 * axis.cells, _PLACES) + 1)
    sizes = length * _SIZES[axis.cells >= _SIZES]
    middle, left, right = (
        each.ravel() for each in np.meshgrid(places, sizes, sizes, indexing="ij")
    )
    return middle, left, right, np.full(len(middle), -math.log(len(middle)))


@lru_cache(maxsize=1)
def _around_zero() -> tuple[Floats, Floats, Floats, Floats]:
    """Return clouds of any magnitude; unusual ones are less likely."""
    away = np.array([*_APART, *(-apart for apart in _APART[1:])])
    octaves = np.concatenate([np.arange(*part) for part in _OCTAVES])
    steps = np.concatenate([np.full(len(np.arange(*part)), part[2]) for part in _OCTAVES])
    octave, apart = (each.ravel() for each in np.meshgrid(octaves, away, indexing="ij"))
    width = 2.0**octave
    likely = np.repeat(steps, len(away)) * np.exp(-_UNUSUAL * np.abs(octave))
    return apart * width, width, width, np.log(likely / likely.sum())


def _shares(axis: Axis, middles: Floats, left: Floats, right: Floats) -> Floats:
    """Return what cells hold of clouds, shape (clouds, cells); the outermost hold all beyond."""
    from scipy.special import ndtr

    edges = axis.edges[1:-1]
    # A half is told by its middle and its width: few are distinct, though clouds are many.
    halves = np.concatenate([middles, middles]) + 1j * np.concatenate([left, right])
    distinct, which = np.unique(halves, return_inverse=True)
    apart = (edges - distinct.real[:, np.newaxis]) / distinct.imag[:, np.newaxis]
    masses = ndtr(np.clip(apart, -40, 40))[which.reshape(2, -1)]
    # A half is as heavy as it is wide, so that the density has no step.
    weights = (np.stack([left, right]) / (left + right))[:, :, np.newaxis]
    below = edges < middles[:, np.newaxis]
    mass = np.where(below, 2 * weights[0] * masses[0], 1 - 2 * weights[1] * (1 - masses[1]))
    return np.diff(mass, axis=1, prepend=0.0, append=1.0)


def _quantile(values: Floats, weights: Floats, level: float) -> float:
    """Return the weighted quantile."""
    order = np.argsort(values)
    sums = np.cumsum(weights[order])
    return float(values[order[min(int(np.searchsorted(sums, level * sums[-1])), len(order) - 1)]])
