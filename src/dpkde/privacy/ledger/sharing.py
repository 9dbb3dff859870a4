"""One entry for several releases: those of disjoint parts that are made together, under one debit.

The parts need not be declared in the ledger: they are those of one call, whose guarantee says what
its releases cost together (`dpkde.privacy.disjoint`). Each release carries the entry, which of them
it is and how many there are, and is called by what follows from these and from the entry's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from dpkde.errors import BudgetError, DpkdeError
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.privacy.disjoint import each_of, share_id
from dpkde.privacy.ledger.booking import Page, Reservation, is_orderly
from dpkde.release.parts import LedgerShare, Part


@dataclass
class Progress:
    """How far several releases under one debit have come.

    Attributes
    ----------
    drawn
        Whether any of them may have drawn something.
    taken
        Which of them were begun: each is paid for once.
    """

    drawn: bool = False
    taken: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Share(Reservation):
    """What a release has of a reservation that is for several: what becomes of it, all decide."""

    share: LedgerShare
    progress: Progress

    @property
    def release_id(self) -> str:
        """What the release has to be called."""
        return share_id(self.booking.release_id, self.share.number, self.share.of)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The entry, and which share of it."""
        return (self.entry, self.share)

    def returned(self) -> None:
        """Note that it was made: the caller has none before the last of them is."""
        self.progress.drawn = True

    def refused(self, budget: Budget) -> None:
        """Note whether it drew anything before it was refused."""
        self.progress.drawn |= bool(budget.spends)


@dataclass(frozen=True)
class SharedPage(Page):
    """Where a release is entered whose debit was made already, for it and others."""

    share: Share | None = None

    def reserve(self, budget: Budget, kind: str) -> Reservation:
        """Return the share, once; `BudgetError` for another guarantee than was paid for."""
        share = self.share
        assert share is not None
        number, taken = share.share.number, share.progress.taken
        if number in taken or budget.guarantee != each_of(share.booking.guarantee):
            raise BudgetError("this release is not what its share of the entry was paid for")
        taken.add(number)
        return share


@contextmanager
def sharing(page: Page | None, total: Guarantee, of: int) -> Iterator[Sequence[Page | None]]:
    """Yield a page for each of several releases, which all have one reservation; or None for each.

    Guarantee
    ---------
    The debit for all of them is on the disk before anything inside runs, in one transaction. It
    falls away where dpkde refuses before any of them was drawn, and stays whole in all other cases.
    """
    if page is None:
        yield [None] * of
        return
    whole = Budget(total)
    reservation, progress = page.reserve(whole, "release"), Progress()
    shares = [
        Share(page.ledger, reservation.booking, LedgerShare(number, of), progress)
        for number in range(of)
    ]
    try:
        yield [SharedPage(page.ledger, page.dataset, share=share) for share in shares]
    except DpkdeError as error:
        if is_orderly(error) and not progress.drawn:
            reservation.refused(whole)
        raise
    reservation.returned()
