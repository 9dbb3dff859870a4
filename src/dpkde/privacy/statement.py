"""The statement that goes with a release: what is guaranteed, and every spend behind it.

In a file it is an object with

``adjacency``
    ``"add-remove"`` or ``"replace"``.
``unit``
    What neighbours differ by: ``"one record"`` in version 1; in version 2 an object with ``name``
    (whose records belong together; null: any) and ``records`` (how many they are at most).
``epsilon``, ``delta``, ``rho``
    As declared: ``"p/q"``, or null.
``spends``
    For each, in order, its ``purpose``, ``epsilon`` or ``rho``, ``law``, the ``sensitivity`` in the
    norm of the law (squared for the Gaussian; of the loss for choices), and ``scale``.

Version 2 has these fields and no others: what a reader does not know might weaken the statement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from dpkde.errors import FormatError, ParameterError
from dpkde.privacy.amounts import (
    COUNT,
    ONE_RECORD,
    Adjacency,
    Amount,
    Bounds,
    Unit,
    is_quotable,
)
from dpkde.privacy.budget import LEAST_DELTA, Budget, Debit, Guarantee, Selection, Spend
from dpkde.privacy.concentrated import epsilon_of
from dpkde.privacy.laws import CHOICES, NOISES
from dpkde.privacy.numbers import Exact, plain, positive

_NEIGHBOURS = {
    Adjacency.ADD_REMOVE: "adding or removing any {} (the number of records is private)",
    Adjacency.REPLACE: "changing the values of any {} (the number of records is public)",
}
_UNITS = {
    Adjacency.ADD_REMOVE: (
        "adding or removing all records of any one {} (their number is private, and so is that of "
        "the records)"
    ),
    Adjacency.REPLACE: (
        "replacing all records of any one {} by others (the number of records is private, that of "
        "those whose records they are is public)"
    ),
}
_ALONE = "It protects one record; a person with several records is protected less."
_WHOLE = "It protects each {} as a whole: at most {} of its records counted{}, however many it has."

_MOST_SPENDS = 1100
_DIGITS, _FEW_DIGITS = 512, 160
"""Most characters of an amount, and of each of many: sums of longer ones would take seconds."""
_MOST_CELLS = 1 << 12
"""Most cells of a table beside the release's own."""
_FIELDS = {"adjacency", "unit", "epsilon", "delta", "rho", "spends"}
_SPEND_FIELDS = {"purpose", "epsilon", "rho", "law", "sensitivity", "scale"}


@dataclass(frozen=True)
class PrivacyStatement:
    """What a release guarantees. `str()` gives sentences that can be quoted.

    Attributes
    ----------
    guarantee
        The declared bound.
    spends
        Every debit, in the order in which the noise was drawn.
    """

    guarantee: Guarantee
    spends: tuple[Debit, ...]

    @property
    def unit(self) -> Unit:
        """What neighbours differ by."""
        return self.guarantee.unit

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
        if declared.epsilon is not None and small >= declared.delta:
            return declared.epsilon
        return max(declared.epsilon or Fraction(0), epsilon_of(declared.rho_limit, small))

    def __str__(self) -> str:
        declared = self.guarantee
        choices = any(isinstance(spend, Selection) for spend in self.spends)
        looks = "noisy measurements of the data" + " and random choices by it" * choices
        often = Counter(str(spend) for spend in self.spends)
        kinds = {str(spend): spend for spend in self.spends}
        return "\n".join(
            [
                f"This release is {in_words(declared)}",
                f"with respect to {neighbours(declared.adjacency, self.unit)}.",
                protected(self.unit),
                f"It was made by these {looks}, and no others:",
                *(f"  - {kinds[words].told(times)}" for words, times in often.items()),
                "Whatever anyone computes from it, however often, is covered by the same bound.",
            ]
        )


def in_words(declared: Guarantee) -> str:
    """Return what is guaranteed, without for whom.

    >>> in_words(Guarantee.declare(epsilon=1, delta="1e-6"))
    '(1, 1e-06)-differentially private'
    """
    bound = plain(declared.epsilon or declared.rho or Fraction(0))
    if declared.delta:
        bound = f"({bound}, {plain(declared.delta)})"
    kind = "" if declared.rho is None else "zero-concentrated "
    return f"{bound}-{kind}differentially private"


def neighbours(adjacency: Adjacency, unit: Unit) -> str:
    """Return what neighbouring data sets differ by, in words."""
    words = _NEIGHBOURS if unit.name is None else _UNITS
    return words[adjacency].format(unit.name or unit)


def protected(unit: Unit, where: str = "") -> str:
    """Return whom a guarantee protects, as a sentence; of several releases, where records count."""
    if unit == ONE_RECORD:
        return _ALONE
    if unit.name is None:
        return f"It protects {unit} as a whole."
    return _WHOLE.format(unit.name, unit.records, where)


def statement_to_json(statement: PrivacyStatement, version: int = 1) -> dict[str, Any]:
    """Return what a file of some version says of a statement."""
    guarantee = statement.guarantee
    return {
        "adjacency": str(guarantee.adjacency),
        "unit": str(statement.unit) if version == 1 else asdict(statement.unit),
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
                **_cells_to_json(spend, version),
            }
            for spend in statement.spends
        ],
    }


def statement_from_json(
    entry: Mapping[str, Any], version: int = 1, tables: Mapping[str, Bounds] | None = None
) -> PrivacyStatement:
    """Rebuild a statement by spending again; raises whatever a damaged entry leads to.

    It has to add up: scales are those that the amounts buy for the sensitivities, and the
    amounts together stay within the guarantee. How far one record moves a count is known, and
    `tables` says it for other purposes: their sensitivities have to be those of a unit of
    records. Other spends state their own, and the number of cells for laws that need it.
    """
    unit = entry["unit"]
    if version > 1:
        unit = Unit.from_json(unit)
        fields = [set(item) - {"cells"} for item in entry["spends"]]
        if set(entry) != _FIELDS or any(names != _SPEND_FIELDS for names in fields):
            raise ParameterError("a statement has fields that do not belong")
    elif unit == str(ONE_RECORD):
        unit = ONE_RECORD
    else:
        raise ParameterError("version 1 protects one record")
    guarantee = Guarantee.declare(
        epsilon=fraction_from_json(entry["epsilon"]),
        delta=fraction_from_json(entry["delta"]) or Fraction(0),
        rho=fraction_from_json(entry["rho"]),
        adjacency=entry["adjacency"],
        unit=unit,
    )
    items = entry["spends"]
    if not isinstance(items, list) or not 1 <= len(items) <= _MOST_SPENDS:
        raise ParameterError("a release has spends, and not too many to read")
    moves = {
        purpose: guarantee.moved(bounds)
        for purpose, bounds in {"count": COUNT, **(tables or {})}.items()
    }
    spends = [_spend_from_json(item, moves.pop(item["purpose"], None)) for item in items]
    for spend in spends:  # what moves by whole records moves by those of a unit
        squared = isinstance(spend, Spend) and spend.law.norm == "L2"
        if spend.sensitivity < unit.records ** (2 if squared else 1):
            raise ParameterError("a spend is for fewer records than a unit has")
    budget = Budget(guarantee)
    budget.debit(*spends)
    return PrivacyStatement(guarantee, budget.spends)


def _cells_to_json(spend: Debit, version: int) -> dict[str, int]:
    """Return how many cells a law of tables has, where nothing else in a file tells it."""
    if version == 1 or spend.purpose == "table":
        return {}
    if not isinstance(spend, Spend) or spend.law.is_scalar:
        return {}
    return {"cells": spend.law.cells}  # type: ignore[attr-defined]


def _spend_from_json(item: Mapping[str, Any], moved: Bounds | None) -> Debit:
    """Buy again what an entry says was bought; `moved` is given where it is known."""
    digits = _FEW_DIGITS if moved is None else _DIGITS
    amount = Amount(
        epsilon=fraction_from_json(item["epsilon"], digits),
        rho=fraction_from_json(item["rho"], digits),
    )
    purpose, name, stated = item["purpose"], item["law"], item["sensitivity"]
    if not is_quotable(purpose) or not isinstance(stated, str) or len(stated) > 64:
        raise ParameterError("a spend is damaged")
    distance = int(stated)
    spend: Debit
    if name in CHOICES and moved is None and "cells" not in item:
        spend = Selection(purpose, amount, CHOICES[name].bought(amount, distance), distance)
    else:
        if not is_quotable(name) or name not in NOISES:
            raise FormatError(
                f"this file uses the noise law {name!r}, which is unknown here; enter it in "
                "dpkde.privacy.laws.NOISES"
            )
        law = NOISES[name]
        cells = item.get("cells")
        if ("cells" in item) != (not law.is_scalar and moved is None):
            raise ParameterError("numbers have noise of their own, not that of a table")
        if not law.is_scalar and purpose == "count":
            raise ParameterError("a count has noise of its own, not that of a table")
        if "cells" in item and (type(cells) is not int or not 1 <= cells <= _MOST_CELLS):
            raise ParameterError("a spend is damaged")
        # The sensitivity is in the norm of the law, whichever that is.
        moved = moved or Bounds(cells or 1, distance, distance, distance, nonnegative=False)
        spend = Spend(purpose, amount, law.bought(amount, moved), law.sensitivity(moved))
    if (
        distance < 1
        or spend.sensitivity != distance
        or fraction_from_json(item["scale"]) != spend.law.scale
    ):
        raise ParameterError("a scale does not fit its sensitivity")
    return spend


def fraction_to_json(value: Fraction | None) -> str | None:
    """Return ``"p/q"``, or None."""
    return None if value is None else f"{value.numerator}/{value.denominator}"


def fraction_from_json(value: Any, digits: int = _DIGITS) -> Fraction | None:
    """Return the fraction that ``"p/q"`` writes; TypeError or ValueError where it writes none."""
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > digits:
        raise TypeError
    top, _, bottom = value.partition("/")
    return Fraction(int(top), int(bottom or 1))
