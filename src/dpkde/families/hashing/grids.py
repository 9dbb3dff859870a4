"""Random grids with a sign for each cell: what tells how alike records are, in a few sums.

Axes are cut at random places into intervals of length I. Each cell of the grid has a random sign,
and F is the mean of s(x) over records, s(x) the sign of a record's cell. In F² the signs of
different cells cancel on average:

* E F² is the chance that two records share a cell, the mean of ∏(1 − |x_k − x'_k|/I)₊ over pairs.
* With s(x)·w(x_k), w a wave of ±1 along an axis, half of length π/t each and at a random place, it
  is the mean of that times ∧(t·(x_k − x'_k)), ∧ the triangle wave (8/π²)·Σ_{odd m} cos(m·)/m².

Many cells are in each F, so that it is nearly normal, of mean zero and this variance.

**A record's contribution** is a vector of ±2^b, from that record alone: over c sums ‖f‖_∞ = 2^b,
‖f‖₁ = c·2^b and ‖f‖₂² = c·4^b. (Noise in the largest norm comes on a lattice that is fine against
2^b.) A record that does not count adds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpkde.families.base import Table
from dpkde.kernels import Points
from dpkde.privacy.amounts import Bounds
from dpkde.space.domain import Mask

Floats = NDArray[np.float64]

MOST_CELLS = 2**50
"""To either side of the center along an axis: their numbers are exact."""
_SPINS, _WORDS = (31, 29), (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9)


@dataclass(frozen=True, eq=False)
class Grids:
    """Random grids with a sign for each cell, every second one with a wave along an axis.

    Attributes
    ----------
    bits
        b, after the binary point.
    rate
        Cells per bandwidth, 1/I.
    shifts
        Where each grid begins, in cells. Shape (sums, dim).
    words
        By which a cell's numbers are hashed, odd. The same shape.
    axes, rates, phases
        Of each wave: its axis, how many halves of it are in a bandwidth (0: no wave), and where it
        begins. Shape (sums,).
    """

    bits: int
    rate: float
    shifts: Floats
    words: NDArray[np.uint64]
    axes: NDArray[np.int64]
    rates: Floats
    phases: Floats

    @classmethod
    def drawn(
        cls,
        shape: tuple[int, int],
        pitch: float,
        waves: tuple[Sequence[int], Sequence[float]],
        bits: int,
        seed: int,
    ) -> Grids:
        """Draw grids of a pitch from a public seed, of shape (sums, dim).

        Every second one has a wave along one of some axes, at one of some distances in turn, in
        radians per bandwidth; without axes none has.
        """
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, 3)))
        count, (wide, distances) = shape[0], waves
        axes, rates = np.zeros(count, dtype=np.int64), np.zeros(count)
        order = generator.permutation(np.array(wide, dtype=np.int64))
        for j in range(1, count, 2) if len(order) else ():
            # Axes take turns, and each distance begins elsewhere: few waves leave out few axes.
            turn, which = divmod(j // 2, len(distances))
            axes[j] = order[(turn + which * len(order) // len(distances)) % len(order)]
            rates[j] = distances[which] / math.pi
        return cls(
            bits,
            1 / pitch,
            generator.random(shape),
            generator.integers(1 << 63, size=shape, dtype=np.uint64) * 2 + 1,
            axes,
            rates,
            2 * generator.random(count) * (rates > 0),
        )

    @cached_property
    def bounds(self) -> Bounds:
        """How far one record can move the sums: each by 2^bits."""
        return self.first(len(self.axes))

    def first(self, cells: int) -> Bounds:
        """Return how far one record can move the first so many."""
        full = 1 << self.bits
        return Bounds(cells, cells * full, cells * full**2, full, nonnegative=False)

    def quantize(self, coordinates: Points, counts: Mask) -> NDArray[np.int64]:
        """Return each record's integers: plain, slow, obvious."""
        kept = np.where(counts[:, np.newaxis], coordinates, 0.0)
        signs = np.empty((len(kept), len(self.axes)), dtype=np.int64)
        for j in range(len(self.axes)):
            numbers = np.floor(kept * self.rate + self.shifts[j]).astype(np.int64)
            key = (numbers.view(np.uint64) * self.words[j]).sum(axis=1, dtype=np.uint64)
            for spin, word in zip(_SPINS, _WORDS, strict=True):
                key = (key ^ (key >> np.uint64(spin))) * np.uint64(word)
            halves = np.floor(kept[:, self.axes[j]] * self.rates[j] + self.phases[j])
            odd = (key >> np.uint64(63)).astype(np.int64) + halves.astype(np.int64)
            signs[:, j] = 1 - 2 * (odd & 1)
        return np.asarray((signs * counts[:, np.newaxis]) << self.bits)

    def accumulate(self, coordinates: Points, counts: Mask, table: Table) -> None:
        """Add every record's integers to the sums modulo 2⁶⁴. Compiled, `nogil`."""
        from dpkde.families.hashing.tossing import add_signs

        add_signs(
            np.ascontiguousarray(coordinates, dtype=np.float64),
            counts,
            1 << self.bits,
            self.rate,
            self.shifts,
            self.words,
            self.axes,
            self.rates,
            self.phases,
            table,
        )
