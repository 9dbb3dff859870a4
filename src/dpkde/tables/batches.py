"""Lists and iterators: of rows, of arrays, of frames, read as they come.

One rule for all of them, and for arrays of objects. An element that is an array of numbers with two
dimensions, or a frame, is a batch, and has a schema that can be wrong; any other is one row, whose
cells are read one by one (`cells`). What is no row, or one of another length, is a record without a
number and never raises, so an empty list, a list of rows and one with something else among them end
alike. The number of columns is not asked of the elements, since whether there is one is private:
bounds, bandwidth, names or a plan tell it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import islice
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import SchemaError
from dpkde.privacy.secrecy import unseen
from dpkde.space.moments import ColumnType
from dpkde.tables import once
from dpkde.tables.arrow import is_stream, is_table, open_stream
from dpkde.tables.cells import NUMBERS, records_in
from dpkde.tables.clusters import check_here
from dpkde.tables.foreign import of_caller, stream
from dpkde.tables.frames import is_frame, open_frame
from dpkde.tables.labels import Labelled, labels_in_cells
from dpkde.tables.source import Piece, Source, chunk_rows, slices, standing_for

Types = Sequence[ColumnType] | None


def open_batches(
    points: Any,
    names: tuple[str, ...] | None,
    unit: str | None = None,
    types: Types = None,
) -> Source:
    """Return a list or iterator as a source.

    Where rows are somebody's, frames and mappings tell whose; other rows are nobody's.
    """
    try:
        if isinstance(points, (Mapping, Set, bytes, bytearray, memoryview)):
            raise TypeError  # iterable, but not in rows
        used_up = iter(points) is points
    except Exception:
        raise SchemaError(
            "points must be an array, a data frame, a path, a list of rows or an iterable of "
            f"arrays, got {type(points).__name__}"
        ) from None
    if used_up:
        once.check_unused(points)
    # With one column a flat list holds one cell per record, so nothing has to tell their number.
    dim = None if names is None else len(names)

    def read(wide: int | None) -> Iterator[Piece]:
        if used_up:
            once.begun(points)
        yield from _batches(points, names, wide, unit, types)
        if used_up:
            once.ended(points)

    return Source(partial(read, dim), dim, names, once=used_up, wide=read, unit=unit)


def open_cells(rows: NDArray[Any], names: tuple[str, ...] | None) -> Source:
    """Return an array of objects or text as a source: a list of its rows, or of its cells."""
    if isinstance(rows, np.ma.MaskedArray):
        rows = np.ma.filled(rows.astype(object), None)
    rows = np.asarray(rows)

    def read(dim: int) -> Iterator[Piece]:
        return _rows(iter(rows), dim)

    if rows.ndim == 1:
        return Source(partial(read, 1), None, names, size=len(rows), fallback_dim=1, wide=read)
    dim = int(rows.shape[1])
    return Source(partial(read, dim), dim, names, size=len(rows))


def array_pieces(rows: NDArray[Any]) -> Iterator[Piece]:
    """Return the pieces of an array."""
    step = chunk_rows(rows.shape[1] if rows.ndim > 1 else 1)
    return slices(lambda start, stop: rows[start:stop], len(rows), step)


def _batches(
    points: Iterable[Any],
    columns: Sequence[str] | None,
    dim: int | None,
    unit: str | None,
    types: Types,
) -> Iterator[Piece]:
    rows: list[Any] = []
    what = f"this {type(points).__name__}"
    elements = points if isinstance(points, (list, tuple)) else stream(what, points, of_caller)
    for element in elements:
        batch = _batch(element, columns, dim, unit, types)
        if batch is None:
            rows += _listed(element, dim)
            if len(rows) >= chunk_rows(dim or 1):
                yield from _rows(iter(rows), dim, columns, unit)
                rows = []
        else:
            yield from batch
    yield from _rows(iter(rows), dim, columns, unit)


def _batch(
    element: Any,
    columns: Sequence[str] | None,
    dim: int | None,
    unit: str | None,
    types: Types,
) -> Iterator[Piece] | None:
    """Return the pieces of a batch; None where the element is a row, or rows of cells."""
    check_here(element)
    if is_table(element):
        return standing_for(open_stream(element, columns, unit), types).read()
    if is_frame(element):
        if not hasattr(type(element), "columns") and dim not in (1, None):
            return None  # a column of a frame, where rows are wider: one of its rows
        return standing_for(open_frame(element, columns, unit), types).read()
    if is_stream(element):
        return standing_for(open_stream(element, columns, unit), types).read()
    if not _is_array(element) and callable(getattr(type(element), "__array__", None)):
        element = unseen(np.asanyarray, element)
    if not _is_array(element) or element.dtype.kind not in NUMBERS:
        return None
    # One column: a batch of cells, not a row. Without any, an array of one dimension is no rows.
    flat = element.ndim == 1 and (dim in (1, None) or not element.size)
    if unit is not None and element.ndim > 1:
        raise SchemaError(f"an array has no column {unit!r}: make data frames of the batches")
    if unit is not None:
        return None
    return array_pieces(element) if flat or element.ndim > 1 else None


def _is_array(element: Any) -> TypeGuard[NDArray[Any]]:
    return issubclass(type(element), np.ndarray)  # `isinstance` would ask the element itself


def _listed(element: Any, dim: int | None) -> list[Any]:
    """Return the rows of an array of cells; else the one row that it is."""
    if _is_array(element) and element.ndim > (0 if dim == 1 else 1):
        return list(element)
    return [element]


def _rows(
    rows: Iterator[Any],
    dim: int | None,
    names: Sequence[str] | None = None,
    unit: str | None = None,
) -> Iterator[Piece]:
    while part := list(islice(rows, chunk_rows(dim or 1))):
        if dim is None:
            raise SchemaError(
                "the number of columns of a list of rows is open: give bounds, or names of columns"
            )
        labelled = None if unit is None else partial(_labelled, part, dim, names, unit)
        yield Piece(partial(records_in, part, dim, names), len(part), labelled)


def _labelled(rows: list[Any], dim: int, names: Sequence[str] | None, unit: str) -> Labelled:
    """Return rows and whose they are: mappings tell, under the name of the unit."""
    cells = [unseen(_label, row, unit) for row in rows]
    return records_in(rows, dim, names), labels_in_cells(cells)


def _label(row: Any, unit: str) -> Any:
    return row[unit] if isinstance(row, Mapping) else None
