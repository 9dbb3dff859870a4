"""What squared moduli of a characteristic function are likely to be, behind noise.

Frequencies are taken in blocks, from the lowest on. Of a block, the mean over K frequencies of
|φ + noise|² is known, with complex normal noise of variance l at each; 2K/l times it follows the
noncentral χ² law of 2K degrees of freedom, off by 2KT/l, T being the mean of |φ|². These T form a
chain: the next is mostly somewhat less than the one before, sometimes much less, at times nothing;
now and then something comes back, as the waves of narrow peaks at even distances do. What is told
of each block is its posterior mean, given all blocks, those of higher frequencies too.

The level l is known on average. The noise that is there may be more or less, at all frequencies
alike: of C cells with Laplace noise, whose fourth moment is six squares of its variance, by a
standard deviation of √(5/C). Levels around the known one count by how well the chain fits.

Only the mean counts: the expected bias of a bandwidth is linear in the powers. A rule that keeps
or drops powers by a threshold errs by all that is just below it, in one direction.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVELS = np.concatenate([[0.0], np.geomspace(1e-10, 1.0, 80)])
"""Powers that are told apart: none, and so many."""
_LESS, _SPREAD = 0.8, 0.7
"""By what power of e the next is less, mostly, and how far that scatters."""
_ON, _DOWN, _OUT = 0.5, 0.2, 0.28
"""How often the next is somewhat less, anything less, nothing; else it is anything."""
_WAKE = 0.016
"""How often something follows nothing."""
_OFF = np.arange(-2.25, 3.8, 0.75)
"""By how many standard deviations the logarithm of the level is off: these are tried."""
_NORMAL = 16
"""Frequencies from which on the mean over them counts as normal."""
_LARGE = 1e6
"""Arguments from which on Bessel functions are exponentials over roots."""
_CERTAIN, _EXACT = 5.0, 4.0
"""Standard errors of a mean below which nothing of it counts as more than chance, and below which
`LEVELS` are as fine as it is."""


def likely(means: Floats, counts: NDArray[np.int64], level: float) -> tuple[Floats, float]:
    """Return the posterior mean power of each block, from the means of so many |φ + noise|².

    And the logarithm of how likely these means are at this level. O(blocks · `LEVELS`²).
    """
    fits = np.array([_fit(mean, count, level) for mean, count in zip(means, counts, strict=True)])
    highest = fits.max(axis=1, keepdims=True)
    fits, evidence = np.exp(fits - highest), float(highest.sum())
    steps = _steps()
    ahead = np.empty_like(fits)
    prior = np.full(len(LEVELS), 1 / len(LEVELS))
    for k, fit in enumerate(fits):
        total = float(prior @ fit)
        evidence += math.log(total)
        ahead[k] = prior * fit / total
        prior = ahead[k] @ steps
    told = np.empty(len(fits))
    behind = np.ones(len(LEVELS))
    for k in range(len(fits) - 1, -1, -1):
        told[k] = (ahead[k] * behind) @ LEVELS / (ahead[k] @ behind)
        behind = steps @ (fits[k] * behind)
        behind /= behind.sum()
    return told, evidence


def _fit(mean: float, count: int, level: float) -> Floats:
    """Return the log density of a block's mean at each power, but for what no level changes."""
    if count >= _NORMAL:
        variance = (level + 2 * LEVELS) * level / count
        misses = (mean - level - LEVELS) ** 2 / variance
        return np.asarray(-misses / 2 - np.log(variance) / 2)
    from scipy.special import ive

    mean, order = max(mean, 1e-9 * level), count - 1
    x = 2 * count * np.sqrt(mean * LEVELS) / level
    # Of powers far below the noise it is (x/2)^order/order!.
    shows = x > 1e-6 * (order + 1)
    bessel = np.full(len(x), -order * math.log(2.0) - math.lgamma(order + 1))
    large = x > _LARGE
    shows &= ~large
    bessel[shows] = np.log(ive(order, x[shows])) + x[shows] - order * np.log(x[shows])
    bessel[large] = x[large] - (order + 0.5) * np.log(x[large]) - math.log(2 * math.pi) / 2
    return np.asarray(bessel - count * (LEVELS + mean) / level - count * math.log(level))


@cache
def _steps() -> Floats:
    """Return how likely each power is after each: rows add up to one."""
    size = len(LEVELS) - 1
    logs = np.log(LEVELS[1:])
    rise = logs[np.newaxis] - logs[:, np.newaxis]
    on = np.exp(-np.abs(rise + _LESS) / _SPREAD)
    down = (rise <= 0).astype(np.float64)
    steps = np.empty((size + 1, size + 1))
    steps[1:, 1:] = (
        _ON * on / on.sum(axis=1, keepdims=True)
        + _DOWN * down / down.sum(axis=1, keepdims=True)
        + (1 - _ON - _DOWN - _OUT) / size
    )
    steps[1:, 0] = _OUT
    steps[0] = np.append(1 - _WAKE, np.full(size, _WAKE / size))
    return steps


def blocks(radii: Floats, growth: float, least: int) -> NDArray[np.int64]:
    """Return where blocks of increasing radii begin, and where the last one ends.

    Each holds radii up to `growth` times its first, and at least so many.

    >>> blocks(np.arange(1.0, 12.0), 1.5, 1).tolist()
    [0, 1, 2, 4, 7, 11]
    """
    edges = [0]
    while edges[-1] < len(radii):
        first = edges[-1]
        beyond = int(np.searchsorted(radii, growth * radii[first], side="left"))
        edges.append(min(max(beyond, first + least), len(radii)))
    return np.array(edges)


def smoothed(waves: Floats, level: float, edges: NDArray[np.int64], unsure: float = 0.0) -> Floats:
    """Return what is likely of each power, from |φ + noise|² at frequencies in order.

    `unsure`: the standard deviation of the level, as a part of it. Within a block powers differ as
    those seen do, as far as these are more than chance.
    """
    starts, counts = edges[:-1], np.diff(edges)
    means = np.add.reduceat(waves, starts) / counts
    off = _OFF if unsure else np.zeros(1)
    levels = level * np.exp(unsure * off - unsure**2 / 2)
    each = [likely(means, counts, float(one)) for one in levels]
    fits = np.array([evidence for _, evidence in each]) - off**2 / 2
    weights = np.exp(fits - fits.max())
    weights /= weights.sum()
    told, level = weights @ np.array([powers for powers, _ in each]), float(weights @ levels)
    seen, errors = means - level, level / np.sqrt(counts)
    told = told + (seen - told) * _known(seen, _EXACT * errors)
    apart = waves - np.repeat(means, counts)
    return np.repeat(told, counts) + apart * np.repeat(_known(seen, _CERTAIN * errors), counts)


def _known(seen: Floats, errors: Floats) -> Floats:
    """Return 1 − (s/m)², and 0 where m is no larger than s."""
    return np.asarray(1 - (errors / np.maximum(seen, errors)) ** 2)
