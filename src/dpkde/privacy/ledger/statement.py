"""The statement of a data set: what all its releases guarantee together, in words to quote."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpkde.errors import ParameterError
from dpkde.privacy.budget import Guarantee
from dpkde.privacy.ledger.accounting import NOTHING, Cost
from dpkde.privacy.ledger.book import Account, Booking, State, cost_to_json, guarantee_to_json
from dpkde.privacy.ledger.words import amount, left_in_words
from dpkde.privacy.numbers import plain
from dpkde.privacy.statement import fraction_to_json, neighbours, protected


@dataclass(frozen=True)
class LedgerStatement:
    """What is guaranteed for a data set, and what was spent. `str()` gives sentences to quote."""

    ledger: str
    account: Account

    def to_json(self) -> dict[str, Any]:
        """Return all of it, amounts as ``"p/q"``."""
        account = self.account
        return {
            "ledger": self.ledger,
            "dataset": account.name,
            "total": guarantee_to_json(account.total),
            "unit": asdict(account.unit),
            "parts": list(account.parts),
            "spent": cost_to_json(account.spent()),
            "releases": [booking.to_json() for booking in account.history],
            "statement": str(self),
        }

    def __str__(self) -> str:
        account = self.account
        kind = "" if account.total.rho is None else "zero-concentrated "
        return "\n".join(
            [
                f"Everything that is published of {account.name} through the ledger {self.ledger},",
                f"whenever and however each release is chosen from those before, is together "
                f"{_bound(account)}-{kind}differentially private",
                f"with respect to {neighbours(account.total.adjacency, account.unit)}.",
                protected(account.unit, " in any of these releases"),
                *self._parts(),
                "",
                f"Spent so far: {spent_in_words(account)}. "
                f"Left: {left_in_words(account.left(), account.total)}.",
                "Paid for were, and nothing else:" if account.history else "Nothing was published.",
                *(f"  - {line}" for line in map(_line, account.history)),
                "What was published without this ledger is not covered.",
            ]
        )

    def _parts(self) -> list[str]:
        if not self.account.parts:
            return []
        return [
            f"Its {len(self.account.parts)} parts are disjoint: each record is in one of them at "
            "most, by what is in the record itself,",
            "and is charged for what was published of that part and of the whole.",
        ]


def spent_in_words(account: Account, part: str | None = None) -> str:
    """Return what has been charged, in the currency of the total; of the part charged most."""
    cost, guarantee = account.spent(part), account.composed(part)
    if guarantee is None:
        return "nothing"
    text = amount(guarantee)
    if account.total.delta:
        text += f" ({_ways(cost)})"
    return text


def left_to_json(path: Path, account: Account, part: str | None) -> dict[str, Any]:
    """Return what is left of a data set, or of a part, amounts as ``"p/q"``."""
    left = account.left(part)
    return {
        "ledger": str(path),
        "dataset": account.name,
        "part": part,
        "total": guarantee_to_json(account.total),
        "unit": asdict(account.unit),
        "parts": list(account.parts),
        "spent": cost_to_json(account.spent(part)),
        "left": {name: fraction_to_json(value) for name, value in asdict(left).items()},
        "entries": len(account.history),
    }


def charged(account: Account, part: str | None) -> tuple[list[Guarantee], Fraction]:
    """Return the guarantees that a record of a part was charged with, and the δ of the total.

    Of the part that was charged most, where none is named. What a refusal left counts as such.
    """
    if not account.total.delta:
        raise ParameterError(
            f"dp-accounting has an ε at some δ, and the total of {account.name} has no δ"
        )
    places = account.places(part)
    most = max(places, key=lambda place: account.cost(place).rho)
    costs = [b.cost for b in account.history if b.part in (None, most) and b.cost != NOTHING]
    kind = account.total.adjacency
    return [
        Guarantee(kind, rho=cost.rho)
        if cost.epsilon is None
        else Guarantee(kind, epsilon=cost.epsilon, delta=cost.delta)
        for cost in costs
    ], account.total.delta


def counts(account: Account) -> str:
    """Return how many reservations there are, by what became of them."""
    states = Counter(booking.state for booking in account.history)
    told = ", ".join(f"{states[state]} {state}" for state in State if states[state])
    number = len(account.history)
    return f"{number} reservation{'s' * (number != 1)}: {told}" if told else "no reservations"


def _ways(cost: Cost) -> str:
    sums = "no sum of ε: one is stated as ρ"
    if cost.epsilon is not None:
        sums = f"sums of ε = {plain(cost.epsilon)} and δ = {plain(cost.delta)}"
    return f"{sums}; as zCDP ρ = {plain(cost.rho)}"


def _bound(account: Account) -> str:
    total = account.total
    bound = plain(total.epsilon or total.rho)  # type: ignore[arg-type]
    return f"({bound}, {plain(total.delta)})" if total.delta else bound


def _line(booking: Booking) -> str:
    where = "" if booking.part is None else f" of {booking.part}"
    remark = "" if booking.remark is None else f" “{booking.remark}”"
    start = f"{booking.time[:10]} {booking.kind}{where}{remark}"
    charged = amount(booking.guarantee)
    if booking.state is State.REFUSED:
        return f"{start}: {_kept(booking.cost)} of {charged}; refused, nothing was published"
    return f"{start}: {charged}; {booking.state}"


def _kept(cost: Cost) -> str:
    """Return what a refusal has cost."""
    if cost == NOTHING:
        return "nothing"
    if cost.epsilon is None:
        return f"ρ = {plain(cost.rho)}"
    return _ways(cost) if cost.delta else f"ε = {plain(cost.epsilon)}"
