"""Cuts on the sketchpad of the hashing family, from what the laws of kernels draw.

Draws are public randomness; the reasons are in ``proof.md``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpkde.families.hashing.cuts import (
    COARSEST,
    FINEST,
    RADIUS_BITS,
    Balls,
    Bins,
    Cut,
    Grid,
    Least,
    Planes,
)
from dpkde.kernels.partitions import Floats, Repetitions, Sketchpad
from dpkde.space.frame import Frame

MOST_REPETITIONS = 1 << 14
"""Most repetitions chosen without being asked."""
MOST_NANOSECONDS = 2e5
"""Most time a record may take where repetitions are chosen."""


class CutPad(Sketchpad[Cut]):
    """A sketchpad of cuts with 32-bit words, in single precision."""

    def words(self, *shape: int) -> NDArray[np.int32]:
        """Draw 32-bit words."""
        return self.generator.integers(-(1 << 31), 1 << 31, shape, dtype=np.int32)

    def bins(self, reps: Repetitions, pitches: Floats) -> Cut:
        """Shift the grids, and give each of their axes a word."""
        pitches = np.clip(np.nan_to_num(pitches, nan=COARSEST), FINEST, COARSEST)
        shifts = self.generator.random(pitches.shape).astype(np.float32)
        rates = (1 / pitches).astype(np.float32)
        return Bins(reps, rates, shifts, self.words(*pitches.shape))

    def planes(
        self, reps: Repetitions, counts: NDArray[np.int32], normals: Floats, offsets: Floats
    ) -> Cut:
        """Give each plane a word."""
        words = self.words(len(offsets))
        return Planes(reps, counts, normals.astype(np.float32), offsets.astype(np.float32), words)

    def balls(self, reps: Repetitions, scales: Floats) -> Cut:
        """Draw a seed for the balls of each repetition."""
        box = np.array([self.box(scales), scales], dtype=np.float32)
        levels = (np.arange(1 << RADIUS_BITS) + 0.5) / (1 << RADIUS_BITS)
        squares = (-np.log(levels) / 4).astype(np.float32)
        return Balls(reps, self.words(len(reps)), box, squares)

    def least(self, reps: Repetitions) -> Cut:
        """Draw an order and a word for each repetition."""
        return Least(reps, *self.words(2, len(reps)))


def numbered(
    cuts: list[Cut], halves: NDArray[np.float64] | None, buckets: int
) -> tuple[list[Cut], NDArray[np.int32]]:
    """Number the cells of repetitions that have at most so many, where there is a single cut.

    Returns the cuts, and the repetitions whose keys are now numbers of cells.
    """
    if len(cuts) == 1 and isinstance(cuts[0], Bins) and halves is not None:
        cut = cuts[0]
        rates, shifts = cut.rates.astype(np.float64), cut.shifts.astype(np.float64)
        first = np.floor(-halves * rates + shifts)
        # A cell before the first and one behind the last, where queries outside may lie, and one
        # more on each side for coordinates that rounding puts there.
        counts = np.floor(halves * rates + shifts) - first + 5
        with np.errstate(over="ignore"):
            few = np.prod(counts, axis=1) <= buckets
        moved = (shifts - first + 2).astype(np.float32)
        sizes, rest = np.where(few[:, np.newaxis], counts, 1).astype(np.int32), ~few
        parts: list[Cut] = [
            Grid(cut.reps[few], cut.rates[few], moved[few], sizes[few]),
            Bins(cut.reps[rest], cut.rates[rest], cut.shifts[rest], cut.words[rest]),
        ]
        return [part for part in parts if len(part.reps)], cut.reps[few]
    if len(cuts) == 1 and isinstance(cuts[0], Planes):
        planes = cuts[0]
        few = planes.counts < buckets.bit_length()
        starts = np.cumsum(planes.counts) - planes.counts
        order = np.arange(len(planes.words)) - np.repeat(starts, planes.counts)
        words = np.where(np.repeat(few, planes.counts), 1 << np.minimum(order, 30), planes.words)
        return [replace(planes, words=words.astype(np.int32))], planes.reps[few]
    return cuts, np.zeros(0, dtype=np.int32)


def most_repetitions(frame: Frame) -> int:
    """Return how many repetitions keep time and the size of the release in bounds."""
    law, halves = frame.kernel.partition, frame.halves()
    numbers = law.planes(halves) * frame.dim if law.needs_box else 1.0
    quick = MOST_NANOSECONDS / (5 + law.nanoseconds(halves, frame.dim))
    return max(1, min(MOST_REPETITIONS, int((1 << 22) / numbers), int(quick)))
