"""Quadratic forms of two tables: what a distance between two releases is made of.

With a, b the tables over 2^bits and the number of records in them, the distances are

    Q(a, b) = aᵀM_aa a + bᵀM_bb b − 2aᵀM_ab b,

of the smoothed densities (``"l2"``: ∫(f_a − f_b)²) or of the records under the kernel (``"mmd"``:
the mean of k over pairs of a, and of b, less twice that over pairs of one of a and one of b). A
family that knows them says so in `Pair.comparison`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.operators import Operator

Floats = NDArray[np.float64]
Kind = Literal["l2", "mmd"]


class Scatter(ABC):
    """What one record more or less does to a form: C = E f(x)f(x)ᵀ, as far as tables tell it.

    Only for two tables of one layout, so that M_aa = M_bb = M_ab = M. With h(x, x′) = f(x)ᵀMf(x′):
    """

    @property
    @abstractmethod
    def energy(self) -> float:
        """E h(x, x) = tr(MC)."""

    @property
    @abstractmethod
    def energy_of_square(self) -> float:
        """tr(M²C)."""

    @abstractmethod
    def mean_square(self, a: Floats, b: Floats) -> float:
        """Return E h(x, x′)² = tr(MCMC), unbiased where a and b are independent."""

    @abstractmethod
    def moment(self, a: Floats, g: Floats) -> float:
        """Return gᵀCg, C as table a has it."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """The blocks of a form, and what sampling does to it where both tables have one layout."""

    own: Operator
    other: Operator
    cross: Operator
    scatter: Scatter | None = None
    draws: int = 0
    """How many independent draws of the family the form is a mean over; 0: it is not random."""
    rows: int = 1
    """Where there are draws: cells of each, which lie in so many rows of a table."""

    def by_draw(self, products: Floats) -> Floats:
        """Return what each draw contributes to Σ products over the cells of a table."""
        return np.asarray(products.reshape(self.rows, -1)[:, : self.draws].sum(axis=0))
