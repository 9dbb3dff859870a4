"""The ledger's door: make one, open one, ask what is left, reserve."""

from __future__ import annotations

import os
import secrets
import uuid
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpkde.errors import LedgerError, ParameterError
from dpkde.privacy.amounts import ONE_RECORD, Unit
from dpkde.privacy.budget import Guarantee
from dpkde.privacy.ledger import store
from dpkde.privacy.ledger.accounting import Cost, Left
from dpkde.privacy.ledger.book import (
    KINDS,
    NEXT,
    Account,
    Book,
    Booking,
    State,
    as_name,
    check_parts,
    check_remark,
    cost_to_json,
    guarantee_to_json,
    ledger_id,
    today,
)
from dpkde.privacy.ledger.chain import Row, linked
from dpkde.privacy.numbers import Exact

if TYPE_CHECKING:
    from dpkde.privacy.ledger.statement import LedgerStatement
    from dpkde.privacy.ledger.verification import Claimant, Verdict


class Ledger:
    """What has been spent of one data set or several, and what may be, in one SQLite file.

    Make one with `Ledger.create`, open one with `Ledger.open`, and give it to `dpkde.publish`.
    Where a ledger has several data sets, methods take the name of one.

    Attributes
    ----------
    path
        Of the file.
    id
        Its random name, 32 hexadecimal digits.

    Guarantee
    ---------
    All that is released through the ledger about a data set, each release chosen in any way from
    those before, satisfies the total that was declared for it: see ``proof.md`` beside this file.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "budget.db"
    >>> ledger = Ledger.create(path, dataset="trips", epsilon=2)
    >>> ledger.left().epsilon
    Fraction(2, 1)
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.id = path, name

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        dataset: str,
        epsilon: Exact | None = None,
        delta: Exact = 0,
        rho: Exact | None = None,
        adjacency: str = "add-remove",
        unit: str | None = None,
        rows_per_unit: int | None = None,
        parts: Iterable[str] = (),
    ) -> Ledger:
        """Make a ledger, or add a data set to one that is there; return it.

        Parameters
        ----------
        path
            Of the file. It is readable by its owner alone; another file is never written over.
        dataset
            What the data set is called from now on. It is public.
        epsilon, delta, rho
            The total over all releases, as for `dpkde.publish`: floats are rounded down.
        adjacency
            ``"add-remove"`` or ``"replace"``, for all releases.
        unit, rows_per_unit
            Whose records are protected together, such as ``"patient_id"``, and how many of each
            may count in one release: fewer may, too. Both or neither; None: one record.
        parts
            Names of disjoint parts, such as months or regions, which compose in parallel: a release
            of one part costs the others nothing. The record itself has to decide which part it is
            in, whatever else is in the data. For add-remove and single records only.
        """
        target = _path(path)
        name = as_name(dataset, "dataset")
        protected = Unit.declare(unit, rows_per_unit)
        total = Guarantee.declare(epsilon=epsilon, delta=delta, rho=rho, adjacency=adjacency)
        entry = {
            "entry": "dataset",
            "dataset": name,
            "total": guarantee_to_json(total),
            "unit": asdict(protected),
            "parts": list(check_parts(parts, total, protected)),
            "date": today(),
        }
        if not os.path.lexists(target):
            own = {"entry": "ledger", "id": secrets.token_hex(16), "version": 1, "date": today()}
            rows = [linked([], own)]
            rows.append(linked(rows, entry))
            try:
                store.create(target, rows)
            except FileExistsError:  # somebody was quicker
                pass
            else:
                return cls(target, str(own["id"]))

        def added(rows: list[Row]) -> tuple[list[Row], str]:
            book = Book.of(rows)
            if name in book.accounts:
                raise ParameterError(
                    f"{target} has a data set {name!r} already: its total cannot be changed, and "
                    "it can be used as it is"
                )
            return [linked(rows, entry)], book.id

        return cls(target, store.change(target, added))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Ledger:
        """Open a ledger; `LedgerError` where there is none."""
        target = _path(path)
        return cls(target, ledger_id(store.read(target)))

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of its data sets."""
        return tuple(self._book().accounts)

    def account(self, dataset: str | None = None) -> Account:
        """Return all that is known of a data set, as it is now."""
        return self._book().account(dataset)

    def total(self, dataset: str | None = None) -> Guarantee:
        """Return what all releases together may spend."""
        return self.account(dataset).total

    def spent(self, dataset: str | None = None, *, part: str | None = None) -> Cost:
        """Return what has been charged: by sums ε and δ, and as zCDP ρ.

        Of a part, or of the part that has been charged most; what is reserved counts in full.
        """
        account = self.account(dataset)
        account.check_part(part)
        return account.spent(part)

    def left(self, dataset: str | None = None, *, part: str | None = None) -> Left:
        """Return what the next release may spend, of a part or of the whole."""
        account = self.account(dataset)
        account.check_part(part)
        return account.left(part)

    def history(self, dataset: str | None = None) -> tuple[Booking, ...]:
        """Return every reservation, of a data set or of all, in order, and what became of it."""
        book = self._book()
        if dataset is None:
            return tuple(book.bookings[number] for number in sorted(book.bookings))
        return tuple(book.account(dataset).history)

    def statement(self, dataset: str | None = None) -> LedgerStatement:
        """Return what all releases of a data set together guarantee; ``str()`` can be quoted."""
        from dpkde.privacy.ledger.statement import LedgerStatement

        return LedgerStatement(self.id, self.account(dataset))

    def verify(self, releases: Iterable[Claimant] = ()) -> Verdict:
        """Return whether the chain holds, and whether releases are where they say they are.

        Parameters
        ----------
        releases
            Releases, or paths of their files. With them a cut-off end, a restored backup and a
            chain that was rebuilt are found too, as far as they concern these releases.
        """
        from dpkde.privacy.ledger.verification import verify

        return verify(store.read(self.path), releases)

    def written(self, release: Any) -> None:
        """Mark a release as kept: for one that was handed on by other ways than its `save`."""
        from dpkde.release.parts import LedgerEntry

        entry = release.parts.of(LedgerEntry)
        if entry is None or entry.ledger != self.id:
            raise ParameterError("this release is not in this ledger")
        self.settle(entry.entry, State.WRITTEN)

    def reserve(
        self,
        guarantee: Guarantee,
        *,
        unit: Unit = ONE_RECORD,
        kind: str = "release",
        dataset: str | None = None,
        part: str | None = None,
        remark: str | None = None,
        release_id: str | None = None,
    ) -> Booking:
        """Reserve a whole guarantee in one transaction, and return the booking.

        What it is for is called `release_id`, or a new random name.

        Guarantee
        ---------
        When this returns, the debit is on the disk. `BudgetError` where it is more than is left, of
        all that was reserved by whatever process.
        """
        release_id = release_id or uuid.uuid4().hex
        if kind not in KINDS:
            raise ParameterError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
        check_remark(remark)

        def reserved(rows: list[Row]) -> tuple[list[Row], Booking]:
            book = Book.of(rows)
            account = book.account(dataset)
            account.check_part(part)
            row = linked(
                rows,
                {
                    "entry": "reserved",
                    "dataset": account.name,
                    "part": part,
                    "kind": kind,
                    "guarantee": guarantee_to_json(guarantee),
                    "unit": asdict(unit),
                    "release_id": release_id,
                    "remark": remark,
                    "date": today(),
                },
            )
            book.take(row)  # what cannot be spent raises
            return [row], book.bookings[row.number]

        booking: Booking = self._changed(reserved)
        return booking

    def settle(self, number: int, state: State, cost: Cost | None = None) -> None:
        """Enter what became of a reservation; nothing where that has been entered."""

        def settled(rows: list[Row]) -> tuple[list[Row], None]:
            book = Book.of(rows)
            booking = book.bookings.get(number)
            if booking is None:
                raise LedgerError(f"this ledger has no reservation {number}")
            again = state in (State.RETURNED, State.WRITTEN) and state is booking.state
            if again or (state, booking.state) == (State.RETURNED, State.WRITTEN):
                return [], None
            if state not in NEXT[booking.state]:
                raise LedgerError(f"reservation {number} is {booking.state}, not to be {state}")
            own = {} if cost is None else {"cost": cost_to_json(cost)}
            row = linked(rows, {"entry": str(state), "of": number, **own})
            book.take(row)
            return [row], None

        self._changed(settled)

    def _book(self) -> Book:
        return self._same(Book.of(store.read(self.path)))

    def _changed(self, decide: Any) -> Any:
        def checked(rows: list[Row]) -> Any:
            if rows and ledger_id(rows) != self.id:
                raise LedgerError(f"{self.path} is another ledger than the one that was opened")
            return decide(rows)

        return store.change(self.path, checked)

    def _same(self, book: Book) -> Book:
        if book.id != self.id:
            raise LedgerError(f"{self.path} is another ledger than the one that was opened")
        return book

    def __repr__(self) -> str:
        return f"<Ledger: {self.path}, {self.id[:8]}>"


def _path(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise ParameterError(f"a ledger is named by the path of its file, got {path!r}") from None
