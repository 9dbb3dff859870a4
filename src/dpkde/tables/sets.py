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

from dpkde.errors import SchemaError
from dpkde.tables.arrays import as_rows
from dpkde.tables.source import Piece, Source, slices

_CHUNK_VALUES = 1 << 22


def is_sparse(points: Any) -> bool:
    """Return whether points are a SciPy sparse matrix or array, of any format."""
    return hasattr(points, "tocsr") and hasattr(points, "nnz")


def open_sparse(points: Any, columns: tuple[str, ...] | None) -> Source:
    """Return a sparse matrix as a source: rows become dense a few at a time.

    Only the bounds of rows are taken from its structure, after a look at them. Columns are private:
    one that does not exist is passed over, and never used as a place to write to, as SciPy would.
    """
    if getattr(points, "ndim", 2) != 2:
        raise SchemaError("sparse points must have two dimensions, one row per point")
    if points.format == "csr":
        starts, places, values = points.indptr, points.indices, points.data
    else:
        listed = points.tocoo()
        order = np.argsort(listed.row, kind="stable")
        places, values = listed.col[order], listed.data[order]
        starts = np.searchsorted(listed.row[order], np.arange(points.shape[0] + 1))
    count, dim = (int(size) for size in points.shape)
    starts = np.asarray(starts, dtype=np.int64)
    fits = starts.shape == (count + 1,) and bool((starts[1:] >= starts[:-1]).all())
    if not fits or starts[0] < 0 or starts[-1] > min(len(places), len(values)):
        raise SchemaError("this sparse matrix is damaged: its rows overlap or reach beyond the end")
    if np.asarray(values).dtype.kind not in "fiub":
        raise SchemaError("points must be an array of real numbers with one row per point")
    rows = partial(_dense, starts, places, values, dim)
    return Source(partial(slices, rows, count, _chunk(dim)), dim, columns, size=count)


def _dense(
    starts: Any, places: Any, values: Any, dim: int, first: int, stop: int
) -> NDArray[np.float64]:
    rows = np.zeros((stop - first, dim))
    part = slice(starts[first], starts[stop])
    row = np.repeat(np.arange(len(rows)), np.diff(starts[first : stop + 1]))
    column, value = np.asarray(places[part]), np.asarray(values[part], dtype=np.float64)
    exists = (column >= 0) & (column < dim)
    np.add.at(rows, (row[exists], column[exists].astype(np.int64)), value[exists])
    return rows


def open_sets(points: Iterable[Any], universe: int) -> Source:
    """Return sets of element numbers as a source; arrays of two dimensions are batches of rows."""
    return Source(partial(_sets, points, universe), universe, once=iter(points) is points)


def _sets(points: Iterable[Any], universe: int) -> Iterator[Piece]:
    records = iter(points)
    while batch := list(islice(records, _chunk(universe))):
        yield Piece(partial(as_members, batch, universe), len(batch))


def _chunk(columns: int) -> int:
    return max(1, min(4096, _CHUNK_VALUES // max(columns, 1)))


def as_members(records: Iterable[Any], universe: int) -> NDArray[np.float64]:
    """Return one row per set, 1 for its elements and 0 for the others."""
    parts: list[NDArray[np.float64]] = []
    for record in records:
        if isinstance(record, np.ndarray) and record.ndim == 2:
            parts.append(as_rows(record, universe, "points").astype(np.float64))
            continue
        row = np.zeros((1, universe))
        members = _members(record, universe)
        row[0, members or []] = 1.0
        parts.append(row if members is not None else np.full_like(row, np.nan))
    return np.concatenate(parts) if parts else np.empty((0, universe))


def query_sets(queries: Iterable[Any], universe: int) -> NDArray[np.float64]:
    """Return a client's own sets, or a single one, as rows; here, what is wrong raises."""
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
    return as_members(batch, universe)


def _members(record: Any, universe: int) -> list[int] | None:
    """Return the elements of a record; None where it is no set.

    An iterator is none: it would be a set the first time it is read, and empty the second.
    """
    members = []
    try:
        if iter(record) is record:
            return None
        for element in record:
            try:
                number = index(element)
            except Exception:  # noqa: S112 - a private value must not be seen to fail
                continue
            if 0 <= number < universe:
                members.append(number)
    except Exception:
        return None
    return members
