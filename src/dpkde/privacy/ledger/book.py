"""What the entries of a ledger say: data sets, and what was reserved of them.

Entries are JSON objects; ``entry`` says which kind each is. Amounts are ``"p/q"``.

``"ledger"``
    The first, and no other: ``id`` (32 random hexadecimal digits), ``version`` (1), ``time``.
``"dataset"``
    ``dataset`` (its name), ``total`` {epsilon, delta, rho, adjacency}, ``unit`` {name, records},
    ``parts`` (names; mostly none), ``time``.
``"reserved"``
    ``dataset``, ``part`` (or null), ``kind`` (`KINDS`), ``guarantee``, ``unit``, ``release_id``,
    ``remark`` (or null), ``time``.
``"returned"``, ``"written"``
    ``of``: the number of a reservation; its release was given to the caller, or is in a file.
``"refused"``
    ``of``, and the ``cost`` {epsilon, delta, rho} that stays.

Nothing here depends on private values. Times are those of reservations, before any record is read:
how long reading took would tell how many there are. (Of releases that follow each other at once, as
in a loop, the time between two reservations still does, to the second.)
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dpkde.errors import BudgetError, DpkdeError, LedgerError, ParameterError
from dpkde.privacy.amounts import MOST_TEXT, ONE_RECORD, Adjacency, Unit, is_quotable
from dpkde.privacy.budget import Guarantee
from dpkde.privacy.ledger.accounting import (
    NOTHING,
    Cost,
    Division,
    Left,
    Rule,
    division,
    least_of,
    total_of,
    worst_of,
)
from dpkde.privacy.ledger.chain import Row, breaks, opened
from dpkde.privacy.ledger.words import amount, left_in_words
from dpkde.privacy.statement import fraction_from_json, fraction_to_json

MOST_PARTS = 10_000
KINDS = ("release", "synthetic data", "answers", "answers online")
"""What is reserved for."""
_HEXADECIMAL = re.compile("[0-9a-f]{32}")


class State(StrEnum):
    """What became of a reservation. Only a refusal gives anything back."""

    RESERVED = "reserved"
    """Under way, or its process ended in the middle: it counts in full."""
    RETURNED = "returned"
    """The caller has the release."""
    WRITTEN = "written"
    """It is in a file."""
    REFUSED = "refused"
    """It came to an orderly end without a release; what was debited until then counts."""


NEXT = {
    State.RESERVED: (State.RETURNED, State.WRITTEN, State.REFUSED),
    State.RETURNED: (State.WRITTEN,),
    State.WRITTEN: (),
    State.REFUSED: (),
}


@dataclass
class Booking:
    """One reservation, and what became of it.

    Attributes
    ----------
    number
        Of its entry.
    head
        Of the chain up to and with that entry.
    time
        When it was made, by the clock of that machine, UTC.
    dataset, part
        What it is for; None: the whole data set.
    kind
        One of `KINDS`.
    guarantee, unit
        What was reserved.
    release_id
        Of the release that it is for.
    remark
        The caller's, if any.
    state
        What became of it.
    cost
        What it counts for now.
    """

    number: int
    head: str
    time: str
    dataset: str
    part: str | None
    kind: str
    guarantee: Guarantee
    unit: Unit
    release_id: str
    remark: str | None
    state: State
    cost: Cost

    def to_json(self) -> dict[str, Any]:
        """Return all of it, amounts as ``"p/q"``."""
        own = {
            name: getattr(self, name)
            for name in ("number", "time", "dataset", "part", "kind", "release_id", "remark")
        }
        return own | {
            "guarantee": guarantee_to_json(self.guarantee),
            "unit": asdict(self.unit),
            "state": str(self.state),
            "cost": cost_to_json(self.cost),
            "head": self.head,
        }


@dataclass
class Account:
    """A data set: its total, and every reservation of it.

    Attributes
    ----------
    name, total, unit, parts
        As declared.
    history
        Every reservation, in order.
    divided
        How its δ is divided; None until something is reserved.
    """

    name: str
    total: Guarantee
    unit: Unit
    parts: tuple[str, ...]
    history: list[Booking] = field(default_factory=list)
    divided: Division | None = None
    _live: list[Booking] = field(default_factory=list)
    _charged: dict[str | None, Cost] = field(default_factory=dict)

    @property
    def rule(self) -> Rule:
        """What is allowed."""
        return Rule(self.total, self.divided)

    def cost(self, part: str | None) -> Cost:
        """Return what a record of a part has been charged: for it, and for the whole."""
        whole = self._charged.get(None, NOTHING)
        return whole if part is None else whole + self._charged.get(part, NOTHING)

    def places(self, part: str | None) -> tuple[str | None, ...]:
        """Return the parts that something for a part is charged to; for the whole, all of them.

        Those that nothing was charged to are as a record that is in no part.
        """
        return (part,) if part is not None else (None, *(self._charged.keys() - {None}))

    def spent(self, part: str | None = None) -> Cost:
        """Return what has been charged to a record of a part, or to the record charged most."""
        return worst_of(self.cost(place) for place in self.places(part))

    def composed(self, part: str | None = None) -> Guarantee | None:
        """Return what has been charged as a guarantee of the total's kind; None for nothing."""
        all_of_them = [self.rule.spent(self.cost(place)) for place in self.places(part)]
        return max(
            (each for each in all_of_them if each is not None),
            key=lambda each: (each.epsilon or each.rho or 0, each.delta),
            default=None,
        )

    def left(self, part: str | None = None) -> Left:
        """Return what is left for a part, or for the whole data set."""
        return least_of([self.rule.left(self.cost(place)) for place in self.places(part)])

    def check_part(self, part: str | None) -> None:
        """Refuse a part that was not declared."""
        if part is not None and part not in self.parts:
            known = ", ".join(self.parts[:12]) + ", …" * (len(self.parts) > 12)
            raise ParameterError(
                f"{self.name} has no part {part!r}: "
                + (f"there are {known}" if known else "none were declared when it was made")
            )

    def check_kind(self, guarantee: Guarantee, unit: Unit) -> None:
        """Refuse what protects others than the total does."""
        if guarantee.adjacency is not self.total.adjacency:
            raise BudgetError(
                f"{self.name} is counted for adjacency={str(self.total.adjacency)!r}, and this "
                f"asks for adjacency={str(guarantee.adjacency)!r}: the two do not add up"
            )
        if unit != self.unit:
            raise BudgetError(
                f"{self.name} is counted for the unit {self.unit}, and this protects {unit}: the "
                "two do not add up"
            )

    def reserve(self, booking: Booking) -> None:
        """Take a reservation in; `BudgetError` where it is more than is left."""
        self.check_part(booking.part)
        self.check_kind(booking.guarantee, booking.unit)
        # Nothing has been drawn when the first is reserved: it may decide.
        divided = self.divided or division(self.total, booking.guarantee)
        rule = Rule(self.total, divided)
        for place in self.places(booking.part):
            if not rule.allows(self.cost(place) + booking.cost):
                raise BudgetError(self._refusal(booking))
        self.divided = divided
        self.history.append(booking)
        self._live.append(booking)
        charged = self._charged.get(booking.part, NOTHING)
        self._charged[booking.part] = charged + booking.cost

    def refuse(self, booking: Booking, cost: Cost) -> None:
        """Reduce a reservation to what was spent."""
        booking.cost = cost
        self._charged[booking.part] = total_of(b.cost for b in self._live if b.part == booking.part)
        if cost == NOTHING and len(self._live) == 1:
            # Nothing was drawn, and nothing else reserved: the next release is the first. Had there
            # been another, it could have shown something by now.
            self._live, self.divided = [], None

    def _refusal(self, booking: Booking) -> str:
        where = self.name if booking.part is None else f"{self.name}, part {booking.part},"
        return (
            f"{where} has {left_in_words(self.left(booking.part), self.total)} left of "
            f"{amount(self.total)}, and this asks for {amount(booking.guarantee)}: nothing was "
            "read or drawn"
        )


@dataclass
class Book:
    """A ledger as its entries tell it."""

    id: str
    rows: list[Row]
    accounts: dict[str, Account] = field(default_factory=dict)
    bookings: dict[int, Booking] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Book:
        """Read all entries; `LedgerError` where the chain is broken, or an entry means nothing."""
        if broken := breaks(rows):
            raise LedgerError(f"this ledger was tampered with or damaged: {broken[0]}")
        if not rows:
            raise LedgerError("this ledger has no entries")
        book = cls(ledger_id(rows), [])
        for row in rows:
            try:
                book.take(row)
            except BudgetError:
                raise LedgerError(f"entry {row.number} of this ledger overspends") from None
        return book

    def take(self, row: Row) -> None:
        """Take one more entry in; `BudgetError` where a reservation is more than is left."""
        body = opened(row)
        damaged = LedgerError(f"entry {row.number} of this ledger does not follow from the others")
        try:
            fields = dict(body)
            kind = fields.pop("entry")
            if (kind == "ledger") != (not self.rows):
                raise damaged
            match kind:
                case "ledger":
                    pass
                case "dataset":
                    self._add_dataset(**fields)
                case "reserved":
                    self._reserve(row, **fields)
                case _:
                    self._settle(State(kind), **fields)
        except (BudgetError, LedgerError):
            raise
        except (ArithmeticError, LookupError, TypeError, ValueError, DpkdeError):
            raise damaged from None
        self.rows.append(row)

    def account(self, name: str | None) -> Account:
        """Return a data set; the only one where none is named."""
        known = ", ".join(self.accounts)
        if name is None:
            if len(self.accounts) == 1:
                return next(iter(self.accounts.values()))
            raise ParameterError(f"dataset is needed: this ledger has {known or 'none yet'}")
        name = as_name(name, "dataset")
        if name not in self.accounts:
            raise ParameterError(f"this ledger has no data set {name!r}: it has {known or 'none'}")
        return self.accounts[name]

    def _add_dataset(self, *, dataset: Any, total: Any, unit: Any, parts: Any, time: Any) -> None:
        if as_name(dataset, "dataset") != dataset or dataset in self.accounts or not _is_time(time):
            raise ValueError
        guarantee, protected = guarantee_from_json(total), Unit.from_json(unit)
        if not isinstance(parts, list) or list(check_parts(parts, guarantee, protected)) != parts:
            raise ValueError
        self.accounts[dataset] = Account(dataset, guarantee, protected, tuple(parts))

    def _reserve(
        self,
        row: Row,
        *,
        dataset: Any,
        part: Any,
        kind: Any,
        guarantee: Any,
        unit: Any,
        release_id: Any,
        remark: Any,
        time: Any,
    ) -> None:
        declared = guarantee_from_json(guarantee)
        if kind not in KINDS or not _is_time(time) or not _HEXADECIMAL.fullmatch(release_id):
            raise ValueError
        if remark is not None and not is_quotable(remark):
            raise ValueError
        booking = Booking(
            row.number,
            row.head,
            time,
            dataset,
            part,
            kind,
            declared,
            Unit.from_json(unit),
            release_id,
            remark,
            State.RESERVED,
            Cost.of(declared),
        )
        self.accounts[dataset].reserve(booking)
        self.bookings[row.number] = booking

    def _settle(self, state: State, *, of: Any, cost: Any = None) -> None:
        if type(of) is not int or (cost is None) != (state is not State.REFUSED):
            raise ValueError
        booking = self.bookings[of]
        if state not in NEXT[booking.state]:
            raise ValueError
        if cost is not None:
            left = cost_from_json(cost)
            if not left.is_within(booking.cost):
                raise ValueError
            self.accounts[booking.dataset].refuse(booking, left)
        booking.state = state


def ledger_id(rows: Sequence[Row]) -> str:
    """Return the name of a ledger, from its first entry."""
    body = opened(rows[0]) if rows else {}
    name = body.get("id")
    if set(body) != {"entry", "id", "version", "time"} or body["entry"] != "ledger":
        raise LedgerError("this ledger does not begin as one")
    if body["version"] != 1 or not isinstance(name, str) or not _HEXADECIMAL.fullmatch(name):
        raise LedgerError("this ledger does not begin as one")
    return name


def now() -> str:
    """Return the time of an entry, UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _is_time(text: Any) -> bool:
    datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")
    return True


def as_name(text: Any, what: str) -> str:
    """Return a name as it is kept: composed, so that what looks the same is the same."""
    name = unicodedata.normalize("NFC", text) if isinstance(text, str) else text
    if not is_quotable(name) or name != name.strip():
        raise ParameterError(
            f"{what} must be up to {MOST_TEXT} printable characters on one line, got {text!r}"
        )
    return str(name)


def check_parts(parts: Iterable[Any], total: Guarantee, unit: Unit) -> tuple[str, ...]:
    """Return the names of disjoint parts; refuse them where they would not compose in parallel."""
    if isinstance(parts, str) or not isinstance(parts, Iterable):
        raise ParameterError(f"parts must be a list of names, got {parts!r}")
    names = tuple(as_name(part, "a part") for part in parts)
    if len(set(names)) < len(names):
        raise ParameterError("parts must have names of their own")
    if len(names) > MOST_PARTS:
        raise ParameterError(f"a data set has at most {MOST_PARTS} parts, got {len(names)}")
    if names and total.adjacency is not Adjacency.ADD_REMOVE:
        raise ParameterError(
            "parts go with adjacency='add-remove': a record that changes can change its part"
        )
    if names and unit != ONE_RECORD:
        raise ParameterError(
            f"parts go with single records: those of one {unit.name} may lie in several parts"
        )
    return names


def guarantee_to_json(guarantee: Guarantee) -> dict[str, Any]:
    """Return what an entry says of a guarantee."""
    return {
        "adjacency": str(guarantee.adjacency),
        **{
            name: fraction_to_json(getattr(guarantee, name)) for name in ("epsilon", "delta", "rho")
        },
    }


def guarantee_from_json(entry: Mapping[str, Any]) -> Guarantee:
    """Rebuild it; ValueError or TypeError where an entry is damaged."""
    return Guarantee.declare(
        epsilon=fraction_from_json(entry["epsilon"]),
        delta=fraction_from_json(entry["delta"]) or Fraction(0),
        rho=fraction_from_json(entry["rho"]),
        adjacency=entry["adjacency"],
    )


def cost_to_json(cost: Cost) -> dict[str, Any]:
    """Return what an entry says of a cost."""
    return {name: fraction_to_json(getattr(cost, name)) for name in ("epsilon", "delta", "rho")}


def cost_from_json(entry: Mapping[str, Any]) -> Cost:
    """Rebuild it; ValueError or TypeError where an entry is damaged."""
    epsilon, delta, rho = (fraction_from_json(entry[name]) for name in ("epsilon", "delta", "rho"))
    if delta is None or rho is None or min(epsilon or 0, delta, rho) < 0:
        raise ValueError
    return Cost(epsilon, delta, rho)
