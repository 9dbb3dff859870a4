"""The life of a reservation: made before anything is drawn, settled when the release is there."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from traceback import walk_tb
from typing import TypeVar

from dpkde.errors import DpkdeError, ParameterError, SourceError
from dpkde.privacy.budget import Budget
from dpkde.privacy.ledger.book import Account, Booking, State, as_name, check_remark
from dpkde.privacy.ledger.ledger import Ledger
from dpkde.release.files import Filed
from dpkde.release.parts import LedgerEntry, Part

Kept = TypeVar("Kept", bound=Filed)


@dataclass(frozen=True)
class Page:
    """Where a spend is to be entered: checked, and nothing reserved yet."""

    ledger: Ledger
    dataset: str
    part: str | None = None
    remark: str | None = None

    def reserve(self, budget: Budget, kind: str) -> Reservation:
        """Reserve all that a budget guarantees; `BudgetError` where that is more than is left."""
        booking = self.ledger.reserve(
            budget.guarantee,
            unit=budget.guarantee.unit,
            kind=kind,
            dataset=self.dataset,
            part=self.part,
            remark=self.remark,
            release_id=budget.randomness.public_name(),
        )
        return Reservation(self.ledger, booking)


LedgerLike = Ledger | Page | str | os.PathLike[str]
"""A ledger, or the path of one; or a page of one, which says the rest."""


def page_of(
    ledger: LedgerLike | None,
    dataset: str | None = None,
    part: str | None = None,
    remark: str | None = None,
) -> Page | None:
    """Check what a caller typed; None where no ledger is named."""
    if ledger is None:
        given = {"dataset": dataset, "part": part, "remark": remark}
        for name, value in given.items():
            if value is not None:
                raise ParameterError(f"{name} goes with ledger=")
        return None
    if isinstance(ledger, Page):
        return ledger
    opened = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    account: Account = opened.account(dataset)
    part = None if part is None else as_name(part, "part")
    account.check_part(part)
    check_remark(remark)
    return Page(opened, account.name, part, remark)


@dataclass(frozen=True)
class Reservation:
    """A debit that is on the disk, for one release."""

    ledger: Ledger
    booking: Booking

    @property
    def release_id(self) -> str:
        """What the release has to be called."""
        return self.booking.release_id

    @property
    def entry(self) -> LedgerEntry:
        """What the release carries."""
        return LedgerEntry(self.ledger.id, self.booking.number, self.booking.head)

    @property
    def parts(self) -> tuple[Part, ...]:
        """All that the release carries of it."""
        return (self.entry,)

    def returned(self) -> None:
        """Enter that the caller has it. The debit stands in any case: a failure is a warning."""
        try:
            self.ledger.settle(self.booking.number, State.RETURNED)
        except DpkdeError as error:
            warnings.warn(
                f"the release is made and paid for, and its entry {self.booking.number} stays "
                f"'reserved': {error}",
                stacklevel=2,
            )

    def written(self) -> None:
        """Enter that it is in a file."""
        self.ledger.settle(self.booking.number, State.WRITTEN)

    def handed_on(self, release: Kept) -> Kept:
        """Enter that the caller has a release, and see to it that its first file is entered too."""
        release.when_saved(self.written)
        self.returned()
        return release

    def refused(self, budget: Budget) -> None:
        """Reduce it to what was debited. Where that cannot be entered, the whole stays."""
        with suppress(DpkdeError):
            cost = self.booking.cost.after(budget.spends)
            self.ledger.settle(self.booking.number, State.REFUSED, cost)


@contextmanager
def reserving(page: Page | None, budget: Budget, kind: str) -> Iterator[Reservation | None]:
    """Yield a reservation of all that a budget guarantees; None where no ledger is named.

    Guarantee
    ---------
    The debit is on the disk before anything inside runs. An orderly refusal inside (a `DpkdeError`
    that dpkde itself raised) reduces it to what the budget debited until then, which was done
    before each draw and hangs on nothing that was not drawn. Whatever else ends it (an interrupt, a
    defect, a kill, an error of the caller's code or of what hands out the points, which have seen
    records) leaves it whole.
    """
    if page is None:
        yield None
        return
    reservation = page.reserve(budget, kind)
    try:
        yield reservation
    except DpkdeError as error:
        if is_orderly(error):
            reservation.refused(budget)
        raise


def is_orderly(error: DpkdeError) -> bool:
    """Tell whether dpkde raised an error, and not a kernel, a family or points of the caller's."""
    if isinstance(error, SourceError):
        return False
    *_, (frame, _) = walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "dpkde"
