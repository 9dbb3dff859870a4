"""The statement that goes with a release: what is guaranteed, and every spend behind it.

In a file it is an object with ``adjacency``, ``unit``, the declared ``epsilon``, ``delta`` and
``rho`` (``"p/q"``, or null), and ``spends``: for each, in order, its ``purpose``, ``epsilon`` or
``rho``, ``law``, the ``sensitivity`` in the norm of the law (squared for the Gaussian; of the loss
for choices), and ``scale``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpkde.errors import ParameterError
from dpkde.privacy.amounts import Adjacency, Amount, Bounds
from dpkde.privacy.budget import LEAST_DELTA, Budget, Debit, Guarantee, Selection, Spend
from dpkde.privacy.concentrated import epsilon_of, rho_within
from dpkde.privacy.laws import CHOICES, NOISES
from dpkde.privacy.numbers import Exact, plain, positive

_NEIGHBOURS = {
    Adjacency.ADD_REMOVE: "adding or removing any one record (the number of records is private)",
    Adjacency.REPLACE: "changing the values of any one record (the number of records is public)",
}

UNIT = "one record"
"""What neighbours differ by."""

_MOST_SPENDS = 1100
_DIGITS = 160
"""Of one of many amounts, together: sums of many longer ones would take seconds."""


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
    spends: tuple[Debit, ...]
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
        """Whether the guarantee is ε alone, without a δ and not stated as ρ."""
        return self.guarantee.rho is None and not self.guarantee.delta

    def epsilon_at(self, delta: Exact) -> Fraction:
        """Return an ε with which the mechanism is (ε, δ)-differentially private, rounded up.

        It follows from what was declared, never from the spends: which laws were bought may hang
        on the noisy count, so a statement about them alone is true of the runs that bought them
        and not of the mechanism.

        * Pure ε holds at every δ, and a declared (ε, δ) at every larger δ.
        * Below the declared δ: a run has spent at most ε, all of it pure, or at most the ρ that
          implies (ε, δ). In runs of the first kind the privacy loss never exceeds ε; those of the
          second are part of a ρ-zCDP mechanism. So the larger of the two ε holds.
        * A declared ρ implies an ε at every δ.
        """
        declared = self.guarantee
        small = positive(delta, "delta", LEAST_DELTA, Fraction(1))
        if declared.epsilon is None:
            assert declared.rho is not None
            return epsilon_of(declared.rho, small)
        if small >= declared.delta:
            return declared.epsilon
        return max(
            declared.epsilon, epsilon_of(rho_within(declared.epsilon, declared.delta), small)
        )

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
        choices = any(isinstance(spend, Selection) for spend in self.spends)
        looks = "noisy measurements of the data"
        if choices:
            looks = "noisy measurements of the data and random choices by it"
        alike = Counter(str(spend) for spend in self.spends)
        lines = [
            f"This release is {promise}",
            f"with respect to {_NEIGHBOURS[self.guarantee.adjacency]}.",
            f"It protects {self.unit}; several records of one person need a smaller bound.",
            f"It was made by these {looks}, and no others:",
            *(f"  - {spend}" + f", {n} times" * (n > 1) for spend, n in alike.items()),
            "Whatever anyone computes from it, however often, is covered by the same bound.",
        ]
        return "\n".join(lines)


def statement_to_json(statement: PrivacyStatement) -> dict[str, Any]:
    """Return what a file says of a statement."""
    guarantee = statement.guarantee
    return {
        "adjacency": str(guarantee.adjacency),
        "unit": statement.unit,
        "epsilon": fraction_to_json(guarantee.epsilon),
        "delta": fraction_to_json(guarantee.delta),
        "rho": fraction_to_json(guarantee.rho),
        "spends": [
            {
                "purpose": spend.purpose,
                "epsilon": fraction_to_json(spend.amount.epsilon),
                "rho": fraction_to_json(spend.amount.rho),
                "law": spend.law.name,
                "sensitivity": str(spend.sensitivity),
                "scale": fraction_to_json(spend.law.scale),
            }
            for spend in statement.spends
        ],
    }


def statement_from_json(entry: Mapping[str, Any]) -> PrivacyStatement:
    """Rebuild a statement whose spends may be of any number and purpose.

    It has to add up: scales are those that the amounts buy for the sensitivities, and the
    amounts together stay within the guarantee. Raises whatever a damaged entry leads to.
    """
    guarantee = Guarantee.declare(
        epsilon=fraction_from_json(entry["epsilon"]),
        delta=fraction_from_json(entry["delta"]) or Fraction(0),
        rho=fraction_from_json(entry["rho"]),
        adjacency=entry["adjacency"],
    )
    items = entry["spends"]
    if entry["unit"] != UNIT or not isinstance(items, list) or len(items) > _MOST_SPENDS:
        raise ParameterError("the spends are not those of a release")
    spends: list[Debit] = [_spend_from_json(item) for item in items]
    if not spends:
        raise ParameterError("a release without a spend says nothing of the data")
    budget = Budget(guarantee)
    budget.debit(*spends)
    return PrivacyStatement(guarantee, budget.spends)


def _spend_from_json(item: Mapping[str, Any]) -> Debit:
    amount = Amount(
        epsilon=fraction_from_json(item["epsilon"], _DIGITS),
        rho=fraction_from_json(item["rho"], _DIGITS),
    )
    purpose, name, digits = item["purpose"], item["law"], item["sensitivity"]
    if not isinstance(purpose, str) or not isinstance(digits, str) or len(digits) > 64:
        raise ParameterError("a spend is damaged")
    moved = int(digits)
    spend: Debit
    if name in CHOICES:
        spend = Selection(purpose, amount, CHOICES[name].bought(amount, moved), moved)
    else:
        law = NOISES[name]
        if not law.is_scalar:
            raise ParameterError("answers have noise of their own, not that of a table")
        # The sensitivity is in the norm of the law, whichever that is.
        bounds = Bounds(1, l1=moved, l2_squared=moved, linf=moved, nonnegative=False)
        spend = Spend(purpose, amount, law.bought(amount, bounds), moved)
    if moved < 1 or fraction_from_json(item["scale"]) != spend.law.scale:
        raise ParameterError("a scale does not fit its sensitivity")
    return spend


def fraction_to_json(value: Fraction | None) -> str | None:
    """Return ``"p/q"``, or None."""
    return None if value is None else f"{value.numerator}/{value.denominator}"


def fraction_from_json(value: Any, digits: int = 512) -> Fraction | None:
    """Return the fraction that ``"p/q"`` writes; TypeError or ValueError where it writes none."""
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > digits:
        raise TypeError
    top, _, bottom = value.partition("/")
    return Fraction(int(top), int(bottom or 1))
