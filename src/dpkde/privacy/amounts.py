"""What is paid, and what for: amounts of ε or ρ, and how far one record moves what is protected."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from dpkde.errors import BudgetError, ParameterError
from dpkde.privacy.numbers import plain


class Adjacency(StrEnum):
    """Which data sets count as neighbours."""

    ADD_REMOVE = "add-remove"
    """They differ by one record more or less; the number of records is private."""
    REPLACE = "replace"
    """They differ by the values of one record; the number of records is public."""


@dataclass(frozen=True)
class Bounds:
    """How far one record can move a table of integers: declared by a family, enforced in code.

    Attributes
    ----------
    cells
        Number of coordinates of the table.
    l1, linf
        Bounds on Σ|q_j| and max|q_j|.
    l2_squared
        Bound on Σq_j²; squared, so that it stays an integer.
    nonnegative
        Whether every q_j ≥ 0. Two such vectors are at most √2 apart in L2, not 2.
    """

    cells: int
    l1: int
    l2_squared: int
    linf: int
    nonnegative: bool

    def under(self, adjacency: Adjacency) -> Bounds:
        """Return the bounds on the difference between neighbouring tables."""
        if adjacency is Adjacency.ADD_REMOVE:
            return self
        return Bounds(
            cells=self.cells,
            l1=2 * self.l1,
            l2_squared=(2 if self.nonnegative else 4) * self.l2_squared,
            # Two vectors in [0, Δ] are Δ apart at most; in [−Δ, Δ] they are 2Δ apart.
            linf=(1 if self.nonnegative else 2) * self.linf,
            nonnegative=False,
        )


COUNT = Bounds(cells=1, l1=1, l2_squared=1, linf=1, nonnegative=True)
"""One record moves the count by one."""


@dataclass(frozen=True)
class Amount:
    """A part of a budget: `epsilon` (pure) or `rho` (zCDP), exactly one of them."""

    epsilon: Fraction | None = None
    rho: Fraction | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise ParameterError("an amount is either pure epsilon or rho")
        if min(value for value in (self.epsilon, self.rho) if value is not None) <= 0:
            raise BudgetError("nothing is left to spend")

    @property
    def as_rho(self) -> Fraction:
        """What this amount costs in zero-concentrated terms."""
        return self.rho if self.rho is not None else self.epsilon**2 / 2  # type: ignore[operator]

    def part(self, share: Fraction) -> Amount:
        """Return a share of it, exactly."""
        if self.epsilon is not None:
            return Amount(epsilon=self.epsilon * share)
        assert self.rho is not None
        return Amount(rho=self.rho * share)

    def __str__(self) -> str:
        if self.epsilon is not None:
            return f"ε = {plain(self.epsilon)}"
        assert self.rho is not None
        return f"ρ = {plain(self.rho)} (zCDP)"
