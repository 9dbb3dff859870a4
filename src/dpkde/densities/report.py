"""How a sample of a density compares with the release that it comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpkde.densities.base import Density
from dpkde.kernels import Points

Floats = NDArray[np.float64]

_DRAWS = 64
"""Offsets over which a KDE is averaged to be smoothed once more."""
_NUMBERS = 1 << 22


@dataclass(frozen=True)
class SampleReport:
    """Mean absolute differences of KDE values, at points of the sample.

    A sample follows the smoothed density, so its own KDE is smoothed twice; it varies by chance;
    and the release has noise. Together they should account for the difference.

    Attributes
    ----------
    points
        How many points the sample has.
    difference
        Between the sample's KDE, each point left out of its own, and the release's `kde`.
    typical
        The release's `kde` there, on average.
    chance
        What drawing so many points explains.
    noise
        What the noise of the release and the family's own error explain.
    smoothing
        What smoothing twice explains.
    """

    points: int
    difference: float
    typical: float
    chance: float
    noise: float
    smoothing: float

    @property
    def explained(self) -> float:
        """Chance and noise as one standard deviation, and smoothing on top."""
        return math.hypot(self.chance, self.noise) + self.smoothing

    @classmethod
    def of(
        cls, density: Density, rows: Points, queries: Points, answers: Floats, noise: Floats
    ) -> Self:
        """Return the report of a sample, whose first rows are the queries. O(rows × queries)."""
        kernel, count = density.frame.kernel, len(rows)
        sums, squares = np.zeros(len(queries)), np.zeros(len(queries))
        for start in range(0, count, step := max(1, _NUMBERS // len(queries))):
            values = kernel.evaluate(rows[start : start + step], queries)
            sums += values.sum(axis=0)
            squares += (values**2).sum(axis=0)
        means = (sums - 1) / (count - 1)  # k(x, x) = 1
        variances = np.maximum((squares - 1) / (count - 1) - means**2, 0.0) / (count - 1)
        # The same offsets each time: a report is a function of its sample.
        offsets = kernel.draw(np.random.default_rng(0), _DRAWS, density.dim)
        moved = [density.kde(queries + kernel.bandwidth.unwhiten(o[None])) for o in offsets]
        twice = np.mean(moved, axis=0) - density.kde(queries)
        size = math.sqrt(2 / math.pi)
        return cls(
            points=count,
            difference=float(np.abs(means - answers).mean()),
            typical=float(answers.mean()),
            chance=size * float(np.sqrt(variances).mean()),
            noise=size * float(noise.mean()),
            smoothing=float(np.abs(twice).mean()),
        )

    def __str__(self) -> str:
        return (
            f"KDE of {self.points} points against the release: differs by {self.difference:.3g} "
            f"on average, of {self.typical:.3g}\nexplained: {self.explained:.3g} (chance "
            f"{self.chance:.3g}, noise {self.noise:.3g}, smoothing twice {self.smoothing:.3g})"
        )
