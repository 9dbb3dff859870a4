"""Sets and sparse rows: read a few at a time, as rows with a column for each element.

A set is any iterable of element numbers. What is no number of an element is passed over, and a
record that is no iterable at all becomes a row of NaN, which contributes nothing: as with cells of
a table, no value raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.arrays import as_rows
from dpkde.errors import SchemaError
from dpkde.tables.source import Piece, Source

_CHUNK_VALUES = 1 << 22


def is_sparse(points: Any) -> bool:
    """Tell a SciPy sparse matrix or array, of any format."""
    return hasattr(points, "tocsr") and hasattr(points, "nnz")


def open_sparse(points: Any, columns: tuple[str, ...] | None) -> Source:
    """Return a sparse matrix as a source: rows become dense a few at a time."""
    rows = points.tocsr()
    return Source(partial(_slices, rows), int(rows.shape[1]), columns, size=int(rows.shape[0]))


def _slices(rows: Any) -> Iterator[Piece]:
    step = _chunk(rows.shape[1])
    for start in range(0, rows.shape[0], step):
        part = rows[start : start + step]
        yield Piece(part.toarray, part.shape[0])


def open_sets(points: Iterable[Any], universe: int) -> Source:
    """Return sets of element numbers as a source; arrays of two dimensions are batches of rows."""
    return Source(partial(_sets, points, universe), universe, once=iter(points) is points)


def _sets(points: Iterable[Any], universe: int) -> Iterator[Piece]:
    records = iter(points)
    while batch := list(islice(records, _chunk(universe))):
        yield Piece(partial(as_members, batch, universe), len(batch))


def _chunk(columns: int) -> int:
    return max(1, min(4096, _CHUNK_VALUES // max(columns, 1)))


def as_members(records: Iterable[Any], universe: int) -> NDArray[np.float32]:
    """Return one row a set, 1 for its elements and 0 for the others."""
    parts: list[NDArray[np.float32]] = []
    for record in records:
        if isinstance(record, np.ndarray) and record.ndim == 2:
            parts.append(as_rows(record, universe, "points").astype(np.float32))
            continue
        row = np.zeros((1, universe), dtype=np.float32)
        members = _members(record, universe)
        row[0, members or []] = 1.0
        parts.append(row if members is not None else np.full_like(row, np.nan))
    return np.concatenate(parts) if parts else np.empty((0, universe), dtype=np.float32)


def query_sets(queries: Iterable[Any], universe: int) -> NDArray[np.float64]:
    """Return a client's own sets, or a single one, as rows. Here what is wrong is said."""
    batch = list(queries)
    if batch and all(isinstance(entry, (int, np.integer)) for entry in batch):
        batch = [batch]
    for entry in batch:
        listed = list(entry) if isinstance(entry, Iterable) else [None]
        members = _members(listed, universe) or []
        if len(members) != len(listed) or len(set(members)) != len(members):
            raise SchemaError(
                f"queries must be sets of element numbers from 0 to {universe - 1}, each once; "
                "rows of zeros and ones go in as an array: numpy.array(rows)"
            )
    return as_members(batch, universe).astype(np.float64)


def _members(record: Any, universe: int) -> list[int] | None:
    """Return the elements of a record; None where it is no set."""
    found = []
    try:
        for element in record:
            try:
                number = index(element)
            except Exception:  # noqa: S112 - a private value must not be seen to fail
                continue
            if 0 <= number < universe:
                found.append(number)
    except Exception:
        return None
    return found
