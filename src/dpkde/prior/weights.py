"""Multiplicative weights over a universe: public, learned from noisy measurements alone.

Weights start even. A measurement says what the mean of one kernel column over the weights should
be; each weight is multiplied by exp(column·error/2), as in Hardt, Ligett and McSherry (2012). All
measurements so far are gone through several times after each new one: they are public already, so
that this costs no privacy, and it takes fewer rounds to the same error.

Everything here is post-processing, in floats.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import answering

Floats = NDArray[np.float64]

PASSES = 20
LEAST_PASSES = 2
STEPS = 400
"""After each measurement all are gone through 20 times, or in 400 steps, but at least twice."""


def passes(measurements: int) -> int:
    """Return how often so many measurements are gone through after the last of them."""
    return max(LEAST_PASSES, min(PASSES, STEPS // measurements))


def total_steps(measurements: int) -> int:
    """Return how many steps it takes to learn so many measurements, one after the other."""
    return sum(count * passes(count) for count in range(1, measurements + 1))


class Weights:
    """Public weights over a universe, and the measurements they were learned from."""

    def __init__(self, size: int) -> None:
        self._log = np.zeros(size)
        self._columns = np.empty((0, size))
        self._targets = np.empty(0)

    @property
    def measurements(self) -> int:
        """How many measurements were taken in."""
        return len(self._targets)

    @property
    def values(self) -> Floats:
        """The weights: positive or zero, adding up to 1."""
        raised = np.exp(self._log - self._log.max())
        return np.asarray(raised / raised.sum())

    def answers(self, kernel: Floats) -> Floats:
        """Return Σ_u w_u·k(u, y) for kernel values of shape (universe, queries)."""
        return np.asarray(self.values @ kernel)

    def learn(self, column: Floats, target: float) -> None:
        """Take in that Σ_u w_u·column_u should be `target`, a noisy number.

        Each step takes O(universe) time.
        """
        self._columns = np.concatenate([self._columns, column[np.newaxis]])
        # No mean of kernel values lies outside: noise that does is known to be noise.
        self._targets = np.append(self._targets, min(max(float(target), 0.0), 1.0))
        _go_through(self._log, self._columns, self._targets, passes(self.measurements))


@answering
def _go_through(log: Floats, columns: Floats, targets: Floats, times: int) -> None:
    """Multiply weights by exp(column·error/2), measurement by measurement, `times` over."""
    for _ in range(times):
        for place in range(len(targets)):
            column = columns[place]
            largest = log.max()
            total = mean = 0.0
            for u in range(log.size):
                weight = math.exp(log[u] - largest)
                total += weight
                mean += weight * column[u]
            step = (targets[place] - mean / total) / 2
            for u in range(log.size):
                log[u] += step * column[u]
