"""Measured rows, kept under a hash of all that they depend on, the library's sources included.

A run that is ended loses the piece it was at, and nothing else: each piece is written whole, under
another name first. The same question later is answered from the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpkde.numerics.compiled import FINGERPRINT

Row = dict[str, Any]
VERSION = 2
"""Raised when a measurement changes its meaning: old pieces are then measured again."""


class Cache:
    """Pieces of measurement in a folder.

    Attributes
    ----------
    computed, reused
        How many pieces were measured in this run, and how many were there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.computed = 0
        self.reused = 0

    def rows(self, key: dict[str, Any], measure: Callable[[], list[Row]]) -> list[Row]:
        """Return the rows of a key, measured now if they are not there."""
        whole = {"version": VERSION, "library": FINGERPRINT, **key}
        text = json.dumps(whole, sort_keys=True, default=str)
        path = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
        stored = _read(path)
        if stored is not None:
            self.reused += 1
            return stored
        rows = measure()
        write_text(path, json.dumps({"key": json.loads(text), "rows": rows}))
        self.computed += 1
        return rows


def _read(path: Path) -> list[Row] | None:
    """Return kept rows; None where there are none, or the file is damaged."""
    try:
        rows: list[Row] = json.loads(path.read_text(encoding="utf-8"))["rows"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return rows


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
