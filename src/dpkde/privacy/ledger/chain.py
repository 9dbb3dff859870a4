"""The chain: every entry is bound to all before it by SHA-256.

The head after an entry is the hash of the head before it, a line feed, and the entry in canonical
JSON. The first entry holds the random name of the ledger, so no two ledgers have a head in common.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dpkde.errors import LedgerError
from dpkde.release.container import canonical

BEFORE = ""
"""The head before the first entry."""
MOST_TEXT = 1 << 22
"""Most characters of an entry."""


class Row(NamedTuple):
    """An entry as it is stored: its number, canonical JSON, and the head after it."""

    number: int
    body: str
    head: str


def head_after(before: str, body: str) -> str:
    """Return the head after an entry."""
    return hashlib.sha256(f"{before}\n{body}".encode()).hexdigest()


def linked(rows: Sequence[Row], body: Mapping[str, Any]) -> Row:
    """Return the row of a new entry behind others."""
    text = canonical(body)
    if len(text) > MOST_TEXT:
        raise LedgerError("this does not fit an entry of a ledger")
    before = rows[-1].head if rows else BEFORE
    return Row(len(rows), text, head_after(before, text))


def breaks(rows: Sequence[Row]) -> list[str]:
    """Return where the chain is broken, each place in a sentence; none where it holds."""
    found, before = [], BEFORE
    for place, row in enumerate(rows):
        if row.number != place:
            found.append(f"where entry {place} should be there is entry {row.number}")
            break
        if row.head != head_after(before, row.body):
            found.append(
                f"entry {place} was changed, or what was before it was changed, removed or moved"
            )
        before = row.head
    return found


def opened(row: Row) -> dict[str, Any]:
    """Return what an entry says."""
    try:
        body = json.loads(row.body)
        if isinstance(body, dict) and canonical(body) == row.body:
            return body
    except (ValueError, RecursionError):
        pass
    raise LedgerError(f"entry {row.number} of this ledger is damaged")
