"""The statement that goes with a release: what is guaranteed, and every spend behind it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpkde.privacy.budget import LEAST_DELTA, Adjacency, Guarantee, Spend
from dpkde.privacy.concentrated import epsilon_of
from dpkde.privacy.numbers import Exact, plain, positive

_NEIGHBOURS = {
    Adjacency.ADD_REMOVE: "adding or removing any one record (the number of records is private)",
    Adjacency.REPLACE: "changing the values of any one record (the number of records is public)",
}

UNIT = "one record"
"""What neighbours differ by."""


@dataclass(frozen=True)
class PrivacyStatement:
    """What a release guarantees. `str()` gives sentences that can be quoted.

    Attributes
    ----------
    guarantee
        The declared bound.
    spends
        Every debit, in the order in which the noise was drawn.
    unit
        What one neighbour differs by.
    """

    guarantee: Guarantee
    spends: tuple[Spend, ...]
    unit: str = UNIT

    @property
    def epsilon(self) -> Fraction | None:
        """The declared ε, exact; None for a guarantee stated as ρ."""
        return self.guarantee.epsilon

    @property
    def delta(self) -> Fraction:
        """The declared δ, exact."""
        return self.guarantee.delta

    @property
    def rho(self) -> Fraction | None:
        """The declared ρ, exact; None for a guarantee stated as ε."""
        return self.guarantee.rho

    @property
    def adjacency(self) -> Adjacency:
        """Which data sets count as neighbours."""
        return self.guarantee.adjacency

    @property
    def is_pure(self) -> bool:
        """Whether every spend was pure, so that δ is not needed."""
        return all(spend.amount.epsilon is not None for spend in self.spends)

    def epsilon_at(self, delta: Exact) -> Fraction:
        """Return the ε that all spends together guarantee at this δ, rounded up."""
        if self.is_pure:
            return sum((s.amount.epsilon or Fraction(0) for s in self.spends), Fraction(0))
        rho = sum((s.amount.as_rho for s in self.spends), Fraction(0))
        return epsilon_of(rho, positive(delta, "delta", LEAST_DELTA, Fraction(1)))

    def __str__(self) -> str:
        if self.guarantee.rho is not None:
            promise = f"{plain(self.guarantee.rho)}-zero-concentrated differentially private"
        elif self.guarantee.delta:
            promise = (
                f"({plain(self.guarantee.epsilon or Fraction(0))}, "
                f"{plain(self.guarantee.delta)})-differentially private"
            )
        else:
            assert self.guarantee.epsilon is not None
            promise = f"{plain(self.guarantee.epsilon)}-differentially private"
        lines = [
            f"This release is {promise}",
            f"with respect to {_NEIGHBOURS[self.guarantee.adjacency]}.",
            f"It protects {self.unit}; several records of one person need a smaller bound.",
            "It was made by these noisy measurements of the data, and no others:",
            *(f"  - {spend}" for spend in self.spends),
            "Whatever anyone computes from it, however often, is covered by the same bound.",
        ]
        return "\n".join(lines)
