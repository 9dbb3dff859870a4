"""Tables on their way out: rows with names, as CSV or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.tables.columnar import parquet_of

WRITTEN = (".csv", ".parquet")
"""Kinds of files that can be written, by how their names end."""


def check_writable(path: Path) -> None:
    """Refuse a file of a kind that is not written, before anything is computed for it."""
    if path.suffix.lower() not in WRITTEN:
        raise ParameterError(f"{path.name} is neither .csv nor .parquet: use one of these endings")


def write_rows(path: Path, names: Sequence[str], rows: NDArray[Any]) -> None:
    """Write rows of numbers to a file, of the kind that its ending says."""
    check_writable(path)
    if path.suffix.lower() == ".parquet":
        parquet_of(path, names, rows)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        write_csv(file, names, rows)


def write_csv(file: IO[str], names: Sequence[str], rows: NDArray[Any]) -> None:
    """Write rows of numbers as CSV with a header, each in the fewest digits that tell it."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    for start in range(0, len(rows), 1 << 16):
        writer.writerows(np.asarray(rows[start : start + (1 << 16)], dtype=np.float64).tolist())
