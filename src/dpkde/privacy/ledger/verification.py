"""Verifying: whether the chain holds, and whether releases are where they say they are.

What is found without any release: an entry that was changed, removed, added in the middle or moved,
unless every hash from there on was computed anew; an entry that does not follow from the others,
such as one that overspends or settles a reservation twice.

What is found only with releases, and for these alone: entries that are gone from the end (cut off,
or an old copy put back), and a chain of which all hashes were computed anew. A release carries the
head of the chain after its own reservation, so it vouches for all entries up to that one.

Two releases of different noise that claim one entry, or one share of an entry that several have
(`sharing`), are found where both are given.

What nobody can find: that entries at the end are gone which no release at hand carries; what was
released without the ledger; a release whose own reference was taken out; and one that was given the
reference of another, where that other is not at hand.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from dpkde.errors import DpkdeError, LedgerError, ParameterError
from dpkde.privacy.amounts import ONE_RECORD, Unit
from dpkde.privacy.budget import Guarantee
from dpkde.privacy.disjoint import each_of, share_id
from dpkde.privacy.ledger import store
from dpkde.privacy.ledger.book import Book, Booking, State, guarantee_from_json, ledger_id
from dpkde.privacy.ledger.chain import Row, breaks
from dpkde.release import container
from dpkde.release.files import Filed
from dpkde.release.parts import LedgerEntry, LedgerShare

Claimant = Filed | str | os.PathLike[str]
"""What may claim an entry: a release, or its file."""
_FORMATS = ("dpkde-release", "dpkde-synthetic")


@dataclass(frozen=True)
class Verdict:
    """What a verification found. True where nothing is wrong.

    Attributes
    ----------
    faults
        What is wrong, each in a sentence.
    unseen
        Entries whose releases were written, and were not among those given: no fault.
    notes
        What is odd, and no fault.
    entries
        How many entries there are.
    head
        Of the chain: whoever keeps it elsewhere will see whether entries before it have changed.
    """

    faults: tuple[str, ...]
    unseen: tuple[int, ...]
    notes: tuple[str, ...]
    entries: int
    head: str

    def __bool__(self) -> bool:
        return not self.faults

    def to_json(self) -> dict[str, Any]:
        """Return all of it."""
        return {
            "sound": bool(self),
            "faults": list(self.faults),
            "unseen": list(self.unseen),
            "notes": list(self.notes),
            "entries": self.entries,
            "head": self.head,
        }

    def __str__(self) -> str:
        lines = [f"{self.entries} entries, head {self.head}"]
        lines += [f"WRONG: {fault}" for fault in self.faults] or ["the chain holds"]
        lines += [f"note: {note}" for note in self.notes]
        if self.unseen:
            numbers = ", ".join(map(str, self.unseen))
            lines.append(f"not seen: the releases of entries {numbers}, which were written")
        return "\n".join(lines)


class _Claim(NamedTuple):
    """What a release says of itself."""

    name: str
    entry: LedgerEntry | None
    release_id: str
    guarantee: Guarantee
    unit: Unit
    share: LedgerShare | None
    """Which of several releases of one entry it is; None where it is the only one."""
    noise: str
    """The digest of its noisy numbers, where there is one draw of them; else empty."""


def verify_file(path: str | os.PathLike[str], releases: Iterable[Claimant] = ()) -> Verdict:
    """Return what is wrong with a ledger that may be too damaged to be opened."""
    return verify(store.read(Path(path)), releases)


def verify(rows: Sequence[Row], releases: Iterable[Claimant]) -> Verdict:
    """Return what is wrong with the rows of a ledger, in the light of releases."""
    if isinstance(releases, (str, bytes, os.PathLike)):
        raise ParameterError("releases must be a list of releases, or of paths of their files")
    faults = breaks(rows)
    book: Book | None = None
    own = None
    try:
        own = ledger_id(rows)
        book = Book.of(rows)
    except LedgerError as error:
        if not faults:
            faults.append(str(error))
    claims = []
    for release in releases:
        try:
            claims.append(_claim(release))
        except (DpkdeError, OSError) as error:
            faults.append(f"a release cannot be read: {error}")
    heads = {row.number: row.head for row in rows}
    seen: dict[tuple[int, int], _Claim] = {}
    first: dict[int, _Claim] = {}
    for claim in claims:
        wrong = _wrong(claim, own, heads, None if book is None else book.bookings)
        if wrong is None:
            assert claim.entry is not None
            entry, share = claim.entry.entry, claim.share
            other = seen.setdefault((entry, 0 if share is None else share.number), claim)
            same = (other.release_id, other.noise) == (claim.release_id, claim.noise)
            one = first.setdefault(entry, claim)
            if same and (one.share and one.share.of) != (share and share.of):
                other, same = one, False
            if not same:
                wrong = (
                    f"claims entry {entry}, and so does {other.name}, which is not the same "
                    "release: one of the two was never entered"
                )
        if wrong is not None:
            faults.append(f"{claim.name} {wrong}")
    unseen, notes = [], []
    if book is not None:
        kept = [b for b in book.bookings.values() if b.state is State.WRITTEN]
        unseen = [booking.number for booking in kept if booking.number not in first]
        notes = _notes(book)
    head = rows[-1].head if rows else ""
    return Verdict(tuple(faults), tuple(unseen), tuple(notes), len(rows), head)


def _wrong(
    claim: _Claim, own: str | None, heads: dict[int, str], bookings: dict[int, Booking] | None
) -> str | None:
    """Return what is wrong with a claim; None where nothing is, or nothing can be told."""
    entry = claim.entry
    if entry is None:
        return "is in no ledger: it carries no reference to one"
    if own is not None and entry.ledger != own:
        return f"is in another ledger, {entry.ledger}"
    if entry.entry not in heads:
        return (
            f"is entry {entry.entry}, and this ledger ends with entry {max(heads, default=-1)}: "
            "its end was cut off, or an old copy was put back"
        )
    if heads[entry.entry] != entry.head:
        return (
            f"has another head at entry {entry.entry}: this entry, or one before it, is not the "
            "one under which it was published"
        )
    if bookings is None:
        return None
    booking = bookings.get(entry.entry)
    if booking is None or _name(booking, claim.share) != claim.release_id:
        return f"is not the release of entry {entry.entry}"
    if (_paid(booking, claim.share), booking.unit) != (claim.guarantee, claim.unit):
        return f"guarantees another thing than entry {entry.entry} was paid for"
    if booking.state is State.REFUSED:
        return f"is there, and entry {entry.entry} says that it was refused"
    return None


def _name(booking: Booking, share: LedgerShare | None) -> str:
    """Return what the release of an entry is called, or that of a share of it."""
    if share is None:
        return booking.release_id
    return share_id(booking.release_id, share.number, share.of)


def _paid(booking: Booking, share: LedgerShare | None) -> Guarantee | None:
    """Return what the release of an entry guarantees; None where it can have no such share."""
    if share is None:
        return booking.guarantee
    try:
        return each_of(booking.guarantee)
    except ParameterError:
        return None


def _notes(book: Book) -> list[str]:
    """Return what is odd about the times, and which reservations may have no release."""
    bookings = [book.bookings[number] for number in sorted(book.bookings)]
    pairs = pairwise(bookings)
    notes = [
        f"entry {after.number} is dated before entry {before.number}: a clock was set back"
        for before, after in pairs
        if after.date < before.date
    ]
    open_ones = [str(b.number) for b in bookings if b.state is State.RESERVED]
    if open_ones:
        notes.append(
            f"reserved, and under way or ended by a crash: entries {', '.join(open_ones)}; they "
            "count in full"
        )
    return notes


def _claim(release: Claimant) -> _Claim:
    if isinstance(release, (str, os.PathLike)):
        name, (document, tensors) = str(Path(release)), container.read(release)
    elif isinstance(release, Filed):
        document, tensors = release.contents()
        name = f"release {document.get('release_id')}"
    else:
        raise ParameterError(f"this is no release, and no path of one: {type(release).__name__}")
    damaged = LedgerError(f"{name} is not a release, or is damaged")
    if document.get("format") not in _FORMATS:
        raise damaged
    try:
        parts, privacy = document.get("parts", {}), document["privacy"]
        part, shared = parts.get(LedgerEntry.name), parts.get(LedgerShare.name)
        fields = (
            None if part is None else {name: part[name] for name in ("ledger", "entry", "head")}
        )
        unit = privacy["unit"]
        noise = ""
        if document["format"] == "dpkde-release":  # weights may be taken from a session repeatedly
            told = container.canonical({"count": document["count"]})
            noise = container.digest(told, {"table": tensors["table"]})
        return _Claim(
            name,
            None if fields is None else LedgerEntry(**fields),
            str(document["release_id"]),
            guarantee_from_json(privacy),
            Unit.from_json(unit) if isinstance(unit, dict) else ONE_RECORD,
            None if shared is None else LedgerShare(shared["number"], shared["of"]),
            noise,
        )
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise damaged from None
