"""What a fast Gauss table tells of intervals: Hermite functions, integrated over queries.

∫ h_r = −h_{r−1}, and ∫ e^{−t²} is an error function: shares are in closed form. They take all cells
where a query takes those within the cutoff, so that weights are a product over axes; what a query
leaves out is in them.

Whether a record lies in an interval is told cell by cell: exactly for whole cells, and for the two
cells that hold the ends by the parabola that is nearest to the step there (the line, or the
constant, where the order is 2 or 1). Higher powers would follow it closer, and let through much
more noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpkde.families.fastgauss.expansion import hermite_functions
from dpkde.families.reading import Factor, Made, to_the_bounds

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CellAxis:
    """An axis of so many unit cells and powers, and what it tells: a factor over both."""

    half: float
    cells: int
    order: int

    @property
    def size(self) -> int:
        """Cells times powers."""
        return self.cells * self.order

    def at(self, places: Floats) -> Factor:
        """Return h_r(y − z)/r!."""
        return Made(self.size, (places,), self._values)

    def over(self, low: Floats, high: Floats, less: float | Floats) -> Factor:
        """Return their integrals over √π, less a constant for every record."""
        below = np.atleast_1d(np.asarray(less, dtype=np.float64))
        return Made(self.size, (low, high, below), self._shares)

    def within(self, low: Floats, high: Floats) -> Factor:
        """Return the parabolas nearest to the step in each cell."""
        return Made(self.size, to_the_bounds(low, high, self.half), self._steps)

    def _offsets(self, places: Floats) -> Floats:
        """Return y − z for every cell."""
        far = float(self.cells) + 64.0
        near = np.clip(np.nan_to_num(places), -far, far)
        return near[:, np.newaxis] - (np.arange(self.cells) - (self.cells - 1) / 2)

    def _values(self, places: Floats) -> Floats:
        return hermite_functions(self._offsets(places), self.order).reshape(len(places), -1)

    def _upto(self, places: Floats) -> Floats:
        """Return the integrals up to each place, shape (n, cells, order)."""
        from scipy.special import erf

        t = self._offsets(places)
        rows = np.empty((*t.shape, self.order))
        rows[..., 0] = (1 + erf(t)) / 2
        if self.order > 1:
            functions = hermite_functions(t, self.order - 1)
            rows[..., 1:] = -functions / np.arange(1, self.order) / np.sqrt(np.pi)
        return rows

    def _shares(self, low: Floats, high: Floats, less: Floats) -> Floats:
        rows = self._upto(high) - self._upto(low)
        rows[..., 0] -= less[:, np.newaxis]
        return rows.reshape(len(rows), -1)

    def _steps(self, low: Floats, high: Floats) -> Floats:
        """Return moments of the part of each cell that lies inside, as coefficients of powers."""
        a = np.clip(self._offsets(low), -0.5, 0.5)
        b = np.clip(self._offsets(high), -0.5, 0.5)
        mean, lean, bow = _moments(b) - _moments(a)
        rows = np.zeros((*a.shape, self.order))
        rows[..., 0] = mean
        if self.order > 1:
            rows[..., 1] = 12 * lean
        if self.order > 2:
            rows[..., 0] -= 15 * bow
            rows[..., 2] = 180 * bow
        return rows.reshape(len(rows), -1)


def _moments(u: Floats) -> Floats:
    """Return ∫ 1, ∫ u and ∫ (u² − 1/12); squares of the last two integrate to 1/12 and 1/180."""
    return np.stack([u, u**2 / 2, u**3 / 3 - u / 12])
