"""What a Fourier table tells of intervals: waves, integrated over queries.

A query at y has the weights e^{−iω·y}, and all queries of a box together

    ∏_k ∫ e^{−iω_k y_k} dy_k = e^{−iω·c} · ∏_k 2 sin(ω_k a_k)/ω_k,

with c its center and a_k half its sides, over the kernel's integral. Noise and sampling grow with
the box: waves do not know where records are not. So infinite ends are cut where records and the
kernel end, which takes bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.base import spread_of_repetitions
from dpkde.families.reading import Reading, Whole
from dpkde.privacy.laws.weights import Weights

if TYPE_CHECKING:
    from dpkde.families.fourier.family import FourierPair
    from dpkde.space.frame import Frame

Floats = NDArray[np.float64]

_FAINT = 1e-4
"""Infinite ends are cut where the kernel has fallen to this, as seen from the bounds."""
_FARTHEST = 16.0
"""Or here, in bandwidths."""
_NUMBERS = 1 << 21


@dataclass(frozen=True)
class WaveAxis:
    """An axis with records from −half to half, and what it tells."""

    half: float | None
    reach: float

    def at(self, places: Floats) -> tuple[Floats, Floats]:
        """Return intervals of no length."""
        return places, np.full(len(places), -1.0)

    def over(self, low: Floats, high: Floats, less: float | Floats) -> tuple[Floats, Floats]:
        """Return centers and half lengths, infinite ends cut."""
        open_ended = np.isinf(low).any() or np.isinf(high).any()
        if open_ended and self.half is None:
            raise ParameterError(
                "a Fourier table without bounds does not tell where records end: give boxes with "
                "finite ends, or publish with bounds="
            )
        if np.asarray(less).any():
            raise ParameterError("a Fourier table does not know the whole line")
        end = math.inf if self.half is None else self.half + self.reach
        low, high = (
            np.where(np.isinf(low), np.copysign(end, low), low),
            np.where(np.isinf(high), np.copysign(end, high), high),
        )
        return low / 2 + high / 2, np.maximum(high - low, 0.0) / 2

    def within(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Refuse."""
        raise ParameterError(
            "a Fourier table sees records through the kernel only: ask for smoothed shares, or "
            "publish with family='spline'"
        )


def reach_of(frame: Frame) -> float:
    """Return how far the kernel is followed beyond the bounds, in bandwidths."""
    steps = np.linspace(0.0, _FARTHEST, 161)
    away = np.zeros((len(steps), frame.dim))
    away[:, 0] = steps
    bandwidth = np.array(frame.kernel.bandwidth.value)
    heights = frame.kernel.evaluate(away * bandwidth, np.zeros((1, frame.dim)))[:, 0]
    return float(steps[min(int((heights > _FAINT).sum()), len(steps) - 1)])


@dataclass(frozen=True, eq=False)
class Waves(Reading):
    """Weights over frequencies, made when they are needed.

    Attributes
    ----------
    pair
        The frequencies.
    centers, halves
        Of the boxes, shape (n, dim); half a length below zero is a place.
    integral
        What is divided by.
    """

    pair: FourierPair
    centers: Floats
    halves: Floats
    integral: float

    def __len__(self) -> int:
        return len(self.centers)

    def part(self, rows: slice) -> Waves:
        """Return the reading of some rows."""
        return replace(self, centers=self.centers[rows], halves=self.halves[rows])

    @property
    def breadth(self) -> int:
        """All cells."""
        return self.pair.bounds.cells

    def _chunks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield all weights of a few rows at a time, and which rows those are."""
        rows = max(1, _NUMBERS // max(self.breadth, 1))
        for start in range(0, len(self), rows):
            part = slice(start, start + rows)
            yield part, self.part(part).rows()

    def rows(self) -> Floats:
        """Return all weights, shape (n, cells)."""
        pair = self.pair
        frequencies = pair.frequencies.astype(np.float64) * pair.unit
        heights = np.ones((len(self), pair.count))
        for k in range(frequencies.shape[1]):
            half = self.halves[:, k, np.newaxis]
            # np.sinc(x) is sin(πx)/(πx).
            waves = 2 * half * np.sinc(half * frequencies[:, k] / math.pi)
            heights *= np.where(half < 0, 1.0, waves)
        phases = self.centers @ frequencies.T
        heights *= 1 / self.integral / pair.count / 2**pair.bits
        if pair.form == "phase":
            turned = phases + pair.offsets * (2 * math.pi * 2.0**-32)
            return np.asarray(2 * heights * np.cos(turned))
        return np.concatenate([heights * np.cos(phases), heights * np.sin(phases)], axis=1)

    def values(self, table: Floats) -> Floats:
        """Return the sums."""
        return np.concatenate([np.empty(0), *(rows @ table for _, rows in self._chunks())])

    def norms(self) -> Floats:
        """Return the lengths."""
        return np.sqrt(self.inner(self))

    def inner(self, other: Reading) -> Floats:
        """Return the inner products."""
        assert isinstance(other, Waves)  # readings of one table
        pairs = zip(self._chunks(), other._chunks(), strict=True)
        sums = (np.einsum("nm,nm->n", a, b) for (_, a), (_, b) in pairs)
        return np.concatenate([np.empty(0), *sums])

    def weights(self) -> Weights:
        """Return all of them."""
        rows = self.rows()
        return Weights(rows, np.ones(rows.shape[1]))

    def own_variance(self, table: Floats, noise: Floats) -> Floats:
        """Return how much what frequencies say differs, beyond the noise."""
        parts = (_spread(rows, table, noise[at], self.pair.count) for at, rows in self._chunks())
        return np.concatenate([np.empty(0), *parts])

    def gathered(self, coefficients: Floats) -> Reading:
        """Return the sum of all rows."""
        total = np.zeros(self.breadth)
        for part, rows in self._chunks():
            total += coefficients[part] @ rows
        return Gathered(total[np.newaxis], pair=self.pair)


def _spread(weights: Floats, table: Floats, noise: Floats, count: int) -> Floats:
    """Return the variance of a mean over frequencies beyond the noise; NaN for one."""
    said = (weights * table).reshape(len(weights), -1, count).sum(axis=1) * count
    return spread_of_repetitions(said.mean(axis=1), (said**2).mean(axis=1), count, noise)


@dataclass(frozen=True, eq=False)
class Gathered(Whole):
    """Sums of waves: frequencies differ in what they say of them, too."""

    pair: FourierPair | None = None

    def own_variance(self, table: Floats, noise: Floats) -> Floats:
        """Return how much what frequencies say differs, beyond the noise."""
        assert self.pair is not None
        return _spread(self.cells, table, noise, self.pair.count)
