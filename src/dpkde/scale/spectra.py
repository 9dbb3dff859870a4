"""How rough data are, from noisy histograms: what is left of them at each frequency.

With y the noisy counts of C cells, n the number of records and v the variance of the noise on a
cell, the sum φ̂(ω) = Σ y_j e^{iωx_j}/n has

    E |φ̂(ω)|² = |φ(ω)|²·(1 − 1/n) + 1/n + C·v/n²,

φ being the characteristic function of the density, so that its squared modulus is told without
bias; what is likely of it, noise and chance being what they are, `dpkde.scale.powers` tells. Then,
with K̂ the transform of a normalised kernel, what smoothing by it costs is

    ∫ (f − f∗K)² = (2π)^−d ∫ |φ|²·(1 − K̂)².

A column alone has blocks of frequencies along its axis, several columns have shells. Without a
joint histogram, columns count as independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpkde.scale.powers import blocks, smoothed

Floats = NDArray[np.float64]

_ATOMS = 0.05
"""|φ|² at very high frequencies from which on values count as rounded."""
_LATTICE = 32
"""Powers that it takes to tell rounded values from a cloud narrower than a cell."""
_SPARSE = 0.35
"""Share of high frequencies at which rounded values show: less, the more values there are. A few
narrow heaps come back, too, and show at most of them."""
_ALONG, _AROUND = (1.25, 1), (1.25, 3)
"""How much frequencies of a block differ, and how many it holds at least: of a column, of all."""
_FURTHER, _FALL, _EDGE, _FEW_COLUMNS = 3, 4.0, (0.4, 0.5), 3
"""How far beyond what cells show powers are taken to go on, how they fall there, and from where;
and in how many columns."""
_MANY_CELLS = 80
"""Cells from which on a level of noise that is off by chance is told from what data have."""
_HELD, _REACH = 0.99, 1.65
"""Share of the powers by which their reach is told, and what a normal density has beyond it."""


class Moments(NamedTuple):
    """∫f², ∫f·(f∗K) and ∫(f∗K)², times the volume of the window: numbers without a unit."""

    alone: float
    crossed: float
    smoothed: float

    @property
    def bias(self) -> float:
        """∫(f − f∗K)²."""
        return max(self.alone - 2 * self.crossed + self.smoothed, 0.0)


class Transform(Protocol):
    """The transform of a normalised kernel along an axis, at frequencies times the bandwidth."""

    def __call__(self, frequencies: Floats) -> Floats:
        """Return K̂."""


class Spectrum(Protocol):
    """What is known of how rough data are."""

    @property
    def widths(self) -> Floats:
        """Those of the window, column by column."""

    def moments(self, transform: Transform, bandwidths: Floats) -> Moments:
        """Return the integrals for a kernel with these bandwidths."""


@dataclass(frozen=True, eq=False)
class Marginal:
    """Squared moduli of the characteristic function of a column.

    Attributes
    ----------
    width
        Of the window: frequencies are multiples of 2π over it.
    powers
        |φ|² at the first of them.
    finest
        The least bandwidth that says more of what is between rounded values than of the rounding:
        two thirds of their pitch. 0 where values are not rounded.
    """

    width: float
    powers: Floats
    finest: float = 0.0

    @classmethod
    def of(cls, noisy: Floats, width: float, variance: float, rows: float) -> Marginal:
        """Return the spectrum of a noisy histogram over a window."""
        cells = len(noisy)
        level = cells * variance / rows**2 + 1 / rows
        waves = np.abs(np.fft.rfft(noisy / rows)[1:]) ** 2
        between = _between(waves - level, level)  # values at single points fill no cell
        finest = 0.0 if between == len(waves) else width / (math.pi * max(between, 1))
        waves = waves[: max(between, 1)]
        numbers = np.arange(1.0, len(waves) + 1)
        told = smoothed(waves, level, blocks(numbers, *_ALONG), _unsure(cells, level, rows))
        told /= np.sinc(numbers / cells) ** 2
        if not finest:
            further = np.arange(len(waves) + 1.0, _FURTHER * len(waves))
            told = np.append(told, _beyond(numbers / cells, told, further / cells))
        return cls(width, told, finest)

    @classmethod
    def normal(cls, width: float, spread: float) -> Marginal:
        """Return the spectrum of a normal density with this standard deviation."""
        step = 2 * math.pi / width * spread
        numbers = np.arange(1, max(min(math.ceil(3 / step), 1 << 12), 4))
        return cls(width, np.exp(-((step * numbers) ** 2)))

    @property
    def widths(self) -> Floats:
        """Those of the window, column by column."""
        return np.array([self.width])

    @property
    def frequencies(self) -> Floats:
        """Those of the powers, in radians per unit of the column."""
        return np.asarray(2 * math.pi / self.width * np.arange(1, len(self.powers) + 1))

    @property
    def cut(self) -> float:
        """How far it reaches: of a normal density to three over its standard deviation."""
        sums = np.cumsum(np.maximum(self.powers, 0.0))
        held = int(np.searchsorted(sums, _HELD * sums[-1])) if sums[-1] > 0 else 0
        return float(_REACH * self.frequencies[min(held, len(sums) - 1)])

    def moments(self, transform: Transform, bandwidths: Floats) -> Moments:
        """Return the integrals of this column alone, with one bandwidth."""
        left = transform(self.frequencies * float(bandwidths))
        return Moments(*(1 + 2 * float(self.powers @ left**power) for power in range(3)))


def _unsure(cells: int, level: float, rows: float) -> float:
    """Return how far the level is off by chance, as a part of it: that of Laplace noise.

    Of few cells it cannot be told from narrow peaks, which have some power at most frequencies.
    """
    noise = max(1 - 1 / (rows * level), 0.0)
    return noise * math.sqrt(5 / cells) if cells >= _MANY_CELLS else 0.0


def _between(powers: Floats, level: float) -> int:
    """Return how many powers tell of what is between values that are rounded; all if none are.

    Values on a lattice of pitch a have |φ| = 1 again at 2π/a and its multiples, as far as one
    looks: half of the way to the first is what a lattice can tell of a density.
    """
    if len(powers) < _LATTICE:
        return len(powers)
    upper = powers[len(powers) // 2 :]
    peak = float(upper.max(initial=0.0))
    if peak < _ATOMS + 8 * level:
        return len(powers)
    low = powers < peak / 4
    if low[len(powers) // 2 :].mean() < 1 - _SPARSE:
        return len(powers)
    first = int(np.argmax(low))
    again = np.flatnonzero(powers[first:] > peak / 2)
    return (first + int(again[0]) + 1) // 2 if len(again) else len(powers)


def _beyond(radii: Floats, told: Floats, away: Floats) -> Floats:
    """Return powers at frequencies that cells are too long to show, from those that they do.

    In parts of what cells show, a half of which is the limit; powers go on falling as they mostly
    do.
    """
    edge = (radii > _EDGE[0]) & (radii <= _EDGE[1])
    last = max(float(told[edge].mean()), 0.0) if edge.any() else 0.0
    return np.asarray(last * (2 * away) ** -_FALL)


def _waves(cells: tuple[int, ...]) -> Floats:
    """Return the numbers of all waves of a grid, in the order of its transform."""
    numbers = np.meshgrid(*(np.fft.fftfreq(count) * count for count in cells), indexing="ij")
    return np.stack(numbers, axis=-1).reshape(-1, len(cells))


def _is_first(numbers: Floats) -> NDArray[np.bool_]:
    """Tell which one of each pair of opposite waves counts; that of zero is known, and does not."""
    first = np.argmax(numbers != 0, axis=1)
    return np.asarray(numbers[np.arange(len(numbers)), first] > 0)


@dataclass(frozen=True, eq=False)
class Independent:
    """Columns that know nothing of one another."""

    columns: tuple[Marginal, ...]

    @property
    def widths(self) -> Floats:
        """Those of the window, column by column."""
        return np.array([column.width for column in self.columns])

    def moments(self, transform: Transform, bandwidths: Floats) -> Moments:
        """Return products over columns."""
        each = [
            column.moments(transform, bandwidth)
            for column, bandwidth in zip(self.columns, bandwidths, strict=True)
        ]
        return Moments(*(math.prod(parts) for parts in zip(*each, strict=True)))


@dataclass(frozen=True, eq=False)
class Joint:
    """Squared moduli of the characteristic function of all columns together.

    Attributes
    ----------
    widths
        Those of the window, column by column.
    frequencies
        Their sizes along each column, shape (waves, dim).
    powers
        |φ|² at each and its opposite together.
    """

    widths: Floats
    frequencies: Floats
    powers: Floats

    @classmethod
    def of(
        cls, noisy: Floats, widths: Floats, finest: Floats, variance: float, rows: float
    ) -> Joint:
        """Return the spectrum of a noisy joint histogram, which has an axis per column.

        Blocks of frequencies are shells of ellipsoids, whose axes are as the cells are long.
        `finest` are those of the columns: frequencies beyond tell of their rounding.
        """
        level = noisy.size * variance / rows**2 + 1 / rows
        waves = np.abs(np.fft.fftn(noisy / rows)).ravel() ** 2
        numbers = _waves(noisy.shape)
        # Where values are not rounded, all tell of the density.
        most = np.full(len(widths), np.inf)
        most[finest > 0] = widths[finest > 0] / (math.pi * finest[finest > 0])
        kept = np.flatnonzero(_is_first(numbers) & (np.abs(numbers) <= most).all(axis=1))
        radii = np.sqrt(((numbers[kept] / np.array(noisy.shape)) ** 2).sum(axis=1))
        order = np.argsort(radii, kind="stable")
        kept, radii = kept[order], radii[order]
        unsure = _unsure(noisy.size, level, rows)
        told = smoothed(waves[kept], level, blocks(radii, *_AROUND), unsure)
        told /= np.prod(np.sinc(numbers[kept] / np.array(noisy.shape)) ** 2, axis=1)
        numbers = numbers[kept]
        if noisy.ndim <= _FEW_COLUMNS:
            further = _waves(tuple(_FURTHER * cells for cells in noisy.shape))
            further = further[_is_first(further)]
            outside = (np.abs(further) > np.array(noisy.shape) / 2).any(axis=1)
            further = further[outside & (np.abs(further) <= most).all(axis=1)]
            away = np.sqrt(((further / np.array(noisy.shape)) ** 2).sum(axis=1))
            told = np.append(told, _beyond(radii, told, away))
            numbers = np.concatenate([numbers, further])
        frequencies = np.abs(numbers) * (2 * math.pi / widths)
        return cls(widths, frequencies, 2 * told)

    def moments(self, transform: Transform, bandwidths: Floats) -> Moments:
        """Return the integrals for a kernel that is a product over columns."""
        left = np.ones(len(self.powers))
        for sizes, bandwidth in zip(self.frequencies.T, bandwidths, strict=True):
            left *= transform(sizes * bandwidth)
        return Moments(
            1 + float(self.powers.sum()),
            1 + float(self.powers @ left),
            1 + float(self.powers @ (left * left)),
        )
