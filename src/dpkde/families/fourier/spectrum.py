"""Frequencies of the Fourier family: drawn from a kernel's spectrum, kept as integers.

A frequency is a fraction of a turn for each step of a coordinate, in units of 2⁻³² turns, so that
phases are sums of integers modulo 2³²: the same on every machine and in every order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.kernels import Kernel

MOST_NUMBERS, MOST_NUMBERS_CHOSEN = 1 << 28, 1 << 26
"""Most numbers in all frequencies together, 4 bytes each in a release: if asked for, if chosen."""
MOST_COLUMNS = 1 << 20
_BLOCK = 64
_EXACT = 2.0**52
_STRATA, _MOST_STRATIFIED = 64, 64
"""Draws for each frequency that is chosen among them; and axes up to which radii differ much."""

Integers = NDArray[np.int32]


def draw(
    kernel: Kernel, dim: int, count: int, step_bits: int, seed: int
) -> tuple[Integers, Integers]:
    """Return frequencies and phases; the first ones of a seed are the same for every count.

    They come in blocks, each of a stream of its own: what is held beyond them is one block.
    """
    if count * dim > MOST_NUMBERS:
        raise ParameterError(
            f"{count} frequencies of {dim} numbers each do not fit: use at most "
            f"{MOST_NUMBERS // dim}"
        )
    per_step = 2.0 ** (32 - step_bits) / (2 * math.pi)
    frequencies, phases = np.empty((count, dim), np.int32), np.empty(count, np.int32)
    for block, start in enumerate(range(0, count, _BLOCK)):
        sequence = np.random.SeedSequence(seed, spawn_key=(block,))
        generator = np.random.Generator(np.random.Philox(sequence))
        with np.errstate(all="ignore"):
            turns = np.rint(kernel.spectrum(generator, _BLOCK, dim) * per_step)
            # The remainder is exact in float64, and lies in (−2³², 2³²).
            wrapped = np.fmod(turns, 2.0**32)
        offsets = generator.integers(-(1 << 31), 1 << 31, _BLOCK, dtype=np.int64)
        # Spectra with heavy tails have frequencies whose remainder no float holds: any will do.
        others = generator.integers(-(1 << 31), 1 << 31, (_BLOCK, dim), dtype=np.int64)
        wrapped = np.where(np.abs(turns) < _EXACT, wrapped, others).astype(np.int64)
        frequencies[start : start + _BLOCK] = wrapped.astype(np.int32)[: count - start]
        phases[start : start + _BLOCK] = offsets.astype(np.int32)[: count - start]
    return frequencies, phases


def spread(kernel: Kernel, dim: int, count: int, step_bits: int, seed: int) -> Integers:
    """Return frequencies spread evenly over the radii of a spectrum; so are their first half.

    Few of them then tell as much of its mean as more that are drawn freely. They are others than
    those that `draw` gives for this seed: what is planned by them does not look at a table's own.
    """
    generator = _apart(seed, 1)
    own = int(generator.integers(1 << 63))
    if dim > _MOST_STRATIFIED:  # all have about the same length there
        return draw(kernel, dim, count, step_bits, own)[0]
    drawn = draw(kernel, dim, count * _STRATA, step_bits, own)[0]
    order = np.argsort((drawn.astype(np.float64) ** 2).sum(axis=1), kind="stable")
    strata = order.reshape(count, _STRATA)[
        np.arange(count), generator.integers(_STRATA, size=count)
    ]
    halves = (generator.permutation(strata[::2]), generator.permutation(strata[1::2]))
    return np.asarray(drawn[np.concatenate(halves)])


def moved(
    chosen: Integers, axes: Sequence[int], distances: Sequence[float], step_bits: int, seed: int
) -> Integers:
    """Return frequencies with one component each, of some axes, moved out to ± a distance in turn.

    Distances are in radians per bandwidth. Axes take turns, in an order that is drawn, and each
    distance begins elsewhere: few frequencies leave out as few axes as can be.
    """
    generator, turns = _apart(seed, 2), 2.0 ** (32 - step_bits) / (2 * math.pi)
    result, order = chosen.copy(), generator.permutation(np.array(axes))
    for j, row in enumerate(result):
        turn, which = divmod(j, len(distances))
        axis = order[(turn + which * len(order) // len(distances)) % len(order)]
        row[axis] = round(distances[which] * turns) * (1 - 2 * generator.integers(2))
    return result


def _apart(seed: int, purpose: int) -> np.random.Generator:
    """Return a stream beside those that frequencies are drawn from."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, purpose)))
