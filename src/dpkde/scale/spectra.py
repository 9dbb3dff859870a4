"""How rough data are, from noisy histograms: what is left of them at each frequency.

With y the noisy counts of C cells, n the number of records and v the variance of the noise on a
cell, the sum φ̂(ω) = Σ y_j e^{iωx_j}/n has

    E |φ̂(ω)|² = |φ(ω)|²·(1 − 1/n) + 1/n + C·v/n²,

φ being the characteristic function of the density, so that its squared modulus is told without
bias. Where it has sunk below what chance and noise make of it, all beyond counts as zero, or next
to it (Chiu, 1991: cross-validation without this step errs towards rough by far). Then, with K̂ the
transform of a normalised kernel, what smoothing by it costs is

    ∫ (f − f∗K)² = (2π)^−d ∫ |φ|²·(1 − K̂)².

Along a column the cut is made where the next as many frequencies show no more than twice their
error. Several columns are cut at an ellipsoid with these cuts as its axes, as large as the shells
of a joint histogram show anything. Without one, columns count as independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SHOWN = 2.0
"""Standard errors of a mean that count as something."""
_AHEAD = 10
_ATOMS = 0.05
"""|φ|² at very high frequencies from which on values count as rounded."""
_LATTICE = 32
"""Powers that it takes to tell rounded values from a cloud narrower than a cell."""
_SHRINK = 1.5
_HIDDEN = 0.25
_SHELLS = 32
_MANY = 40
_WIDEST = 1.7
"""How far beyond the columns' own cuts shells are looked at."""


class Moments(NamedTuple):
    """∫f², ∫f·(f∗K) and ∫(f∗K)²."""

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
        |φ|² at the first of them, up to the cut.
    finest
        The least bandwidth that says more of what is between rounded values than of the rounding:
        two thirds of their pitch. 0 where values are not rounded.
    """

    width: float
    powers: Floats
    finest: float = 0.0

    @classmethod
    def of(
        cls, noisy: Floats, width: float, variance: float, rows: float, spread: float
    ) -> Marginal:
        """Return the spectrum of a noisy histogram over a window.

        Where nothing shows, that of a normal density with this standard deviation.
        """
        cells = len(noisy)
        level = cells * variance / rows**2 + 1 / rows
        waves = np.abs(np.fft.rfft(noisy / rows)[1:]) ** 2
        powers = (waves - level) / np.sinc(np.arange(1, len(waves) + 1) / cells) ** 2
        between = _between(waves - level, level)  # values at single points fill no cell
        kept = min(_cut(powers, level), between)
        finest = 0.0 if between == len(powers) else width / (math.pi * max(between, 1))
        if kept < 1:
            return cls(width, cls.normal(width, spread).powers, finest)
        return cls(width, _shrunk(powers[:kept], level), finest)

    @classmethod
    def normal(cls, width: float, spread: float) -> Marginal:
        """Return the spectrum of a normal density with this standard deviation."""
        step = 2 * math.pi / width * spread
        numbers = np.arange(1, max(min(math.ceil(3 / step), 1 << 12), 4))
        return cls(width, np.exp(-((step * numbers) ** 2)))

    @property
    def frequencies(self) -> Floats:
        """Those of the powers, in radians per unit of the column."""
        return np.asarray(2 * math.pi / self.width * np.arange(1, len(self.powers) + 1))

    @property
    def cut(self) -> float:
        """The last of them."""
        return 2 * math.pi / self.width * len(self.powers)

    def moments(self, transform: Transform, bandwidths: Floats) -> Moments:
        """Return the integrals of this column alone, with one bandwidth."""
        left = transform(self.frequencies * float(bandwidths))
        return Moments(
            *((1 + 2 * float(self.powers @ left**power)) / self.width for power in range(3))
        )


def _cut(powers: Floats, level: float) -> int:
    """Return how many powers there are before half as many more show nothing."""
    sums = np.concatenate([[0.0], np.cumsum(powers)])
    starts = np.arange(len(powers))
    stops = np.minimum(starts + np.maximum(starts, _AHEAD), len(powers))
    means = (sums[stops] - sums[starts]) / (stops - starts)
    silent = means < _SHOWN * level / np.sqrt(stops - starts)
    return int(np.argmax(np.append(silent, True)))


def _shrunk(powers: Floats, level: float) -> Floats:
    """Return powers block by block times 1 − (s/m)², m their mean and s its standard error."""
    shrunk = np.array(powers)
    start = 0
    while start < len(powers):
        block = slice(start, start + max(start // 2, 2))
        shrunk[block] *= _kept(float(powers[block].mean()), level, len(powers[block]))
        start = block.stop
    return shrunk


def _kept(mean: float, level: float, count: float) -> float:
    """Return 1 − (s/m)², at least 0: how much of a mean is more than chance."""
    error = _SHRINK * level / math.sqrt(max(count, 1.0))
    return 0.0 if mean <= error else 1 - (error / mean) ** 2


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
    if not low.any():
        return len(powers)
    first = int(np.argmax(low))
    again = np.flatnonzero(powers[first:] > peak / 2)
    return (first + int(again[0]) + 1) // 2 if len(again) else len(powers)


@dataclass(frozen=True, eq=False)
class Independent:
    """Columns that know nothing of one another."""

    columns: tuple[Marginal, ...]

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
    volume
        Of the window.
    frequencies
        Their sizes along each column, shape (waves, dim).
    powers
        |φ|² at each and its opposite together.
    """

    volume: float
    frequencies: Floats
    powers: Floats

    @classmethod
    def of(
        cls, noisy: Floats, widths: Floats, cuts: Floats, variance: float, rows: float
    ) -> Joint | None:
        """Return the spectrum of a noisy joint histogram; None where it shows too little.

        `noisy` has an axis per column, `cuts` are those of the columns alone.
        """
        level = noisy.size * variance / rows**2 + 1 / rows
        waves = np.abs(np.fft.fftn(noisy / rows)) ** 2 - level
        grids = []
        radius = np.zeros(noisy.shape)
        for k, cells in enumerate(noisy.shape):
            shape = [-1 if j == k else 1 for j in range(noisy.ndim)]
            numbers = np.fft.fftfreq(cells) * cells
            waves /= (np.sinc(numbers / cells) ** 2).reshape(shape)
            grids.append(2 * math.pi / widths[k] * numbers)
            radius = radius + ((grids[k] / cuts[k]) ** 2).reshape(shape)
        radius = np.sqrt(radius)
        # φ(−ω) is the conjugate of φ(ω): half of the waves are news.
        edges = np.linspace(0, _WIDEST, _SHELLS + 1)
        shells = np.digitize(radius.ravel(), edges) - 1
        shells[0] = _SHELLS  # the wave of frequency zero is known
        count = np.bincount(shells, minlength=_SHELLS + 1)[:_SHELLS]
        total = np.bincount(shells, waves.ravel(), minlength=_SHELLS + 1)[:_SHELLS]
        reach = 0
        for shell in range(_SHELLS):
            stop = min(max(shell + 2, 2 * shell), _SHELLS)
            while count[shell:stop].sum() < _MANY and stop < _SHELLS:
                stop += 1
            news = count[shell:stop].sum() / 2
            mean = total[shell:stop].sum() / max(2 * news, 1)
            if news >= 1 and mean < _SHOWN * level / math.sqrt(news):
                break
            reach = shell + 1
        factors = [
            _kept(total[shell] / max(count[shell], 1), level, count[shell] / 2)
            for shell in range(_SHELLS)
        ]
        waves = waves.ravel() * np.append(factors, 0.0)[shells]
        if 0 < reach < _SHELLS:
            # What noise hides beyond the cut: a part of what would have shown, and falling.
            news = max(count[reach : max(reach + 2, math.ceil(1.4 * reach))].sum() / 2, 1.0)
            hidden = _HIDDEN * _SHOWN * level / math.sqrt(news)
            beyond = (shells >= reach) & (shells < _SHELLS)
            falls = np.exp(-4 * (radius.ravel()[beyond] / edges[reach] - 1))
            waves[beyond] = hidden * falls
        kept = np.flatnonzero(shells < _SHELLS)
        if len(kept) < 2 * noisy.ndim:
            return None
        places = np.unravel_index(kept, noisy.shape)
        frequencies = np.stack([grid[at] for grid, at in zip(grids, places, strict=True)], axis=1)
        # Of each pair of opposite waves one is kept, and counts twice.
        first = np.argmax(frequencies != 0, axis=1)
        half = frequencies[np.arange(len(kept)), first] > 0
        return cls(float(np.prod(widths)), np.abs(frequencies[half]), 2 * waves[kept[half]])

    def moments(self, transform: Transform, bandwidths: Floats) -> Moments:
        """Return the integrals for a kernel that is a product over columns."""
        left = np.ones(len(self.powers))
        for sizes, bandwidth in zip(self.frequencies.T, bandwidths, strict=True):
            left *= transform(sizes * bandwidth)
        return Moments(
            (1 + float(self.powers.sum())) / self.volume,
            (1 + float(self.powers @ left)) / self.volume,
            (1 + float(self.powers @ (left * left))) / self.volume,
        )
