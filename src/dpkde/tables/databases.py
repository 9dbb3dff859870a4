"""Results of databases: cursors of Python's database interface, read as they come.

A cursor that hands out Arrow batches (ADBC, DuckDB) is read so. Of any other the rows are fetched a
few thousand at a time, and their cells read one by one (`cells`): numbers, decimals, dates and
times have a meaning, text is read as in a file, and anything else is no number. A cursor is read
once; one on the server's side keeps its memory flat too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

from dpkde.errors import SchemaError
from dpkde.tables import once
from dpkde.tables.arrow import Chosen
from dpkde.tables.cells import records_in
from dpkde.tables.foreign import of_library, stream
from dpkde.tables.labels import Labelled, labels_in_cells
from dpkde.tables.source import Piece, Source, chunk_rows, columns_and_unit

_BATCHES = ("fetch_record_batch", "to_arrow_reader")
"""What cursors are asked for that hand out Arrow."""
_ROWS = 8192
"""Fetched at a time."""


def is_cursor(points: Any) -> bool:
    """Return whether points are a cursor, or the result of a query."""
    kind = type(points)
    return callable(getattr(kind, "fetchmany", None)) and (
        hasattr(points, "description") or callable(getattr(kind, "keys", None))
    )


def open_cursor(points: Any, columns: Sequence[str] | None, unit: str | None = None) -> Source:
    """Return the result of a query that was executed as a source, which is read once."""
    what = "this cursor"
    once.check_unused(points)
    for name in _BATCHES:
        if callable(getattr(points, name, None)):
            return _in_batches(points, of_library(what, getattr(points, name)), columns, unit)
    first: list[Any] = []
    available = _names(points, what)
    if available is None:  # of a cursor on the server's side it is told with the first rows
        first = of_library(what, lambda: list(points.fetchmany(_ROWS)))
        available = _names(points, what)
    if available is None:
        raise SchemaError("this cursor has no result: execute a query with it first")
    names, places, whose = columns_and_unit(available, columns, unit, what)

    def fetched() -> Iterator[list[Any]]:
        once.begun(points)
        rest = iter(lambda: list(points.fetchmany(_ROWS)), [])
        yield from chain([first] if first else [], stream(what, rest))
        once.ended(points)

    def read() -> Iterator[Piece]:
        step = chunk_rows(len(names))
        for rows in fetched():
            for start in range(0, len(rows), step):
                part = rows[start : start + step]
                labelled = None if whose is None else partial(_labelled, part, places, whose)
                yield Piece(partial(_numbers, part, places), len(part), labelled)

    return Source(read, len(names), names, once=True, unit=unit)


def _in_batches(
    points: Any, reader: Any, columns: Sequence[str] | None, unit: str | None
) -> Source:
    """Return what a cursor hands out as Arrow batches."""
    cast = "CAST({0} AS DOUBLE PRECISION), in the query, or what makes nulls of other text"
    chosen = Chosen.among(reader.schema, columns, unit, "this cursor", cast)

    def batches() -> Iterator[Any]:
        once.begun(points)
        yield from stream("this cursor", reader)
        once.ended(points)

    return chosen.source(batches, once=True)


def _names(points: Any, what: str) -> list[str] | None:
    described = of_library(what, lambda: getattr(points, "description", None))
    if described is not None:
        return [str(column[0]) for column in described]
    keys = getattr(points, "keys", None)
    return None if keys is None else [str(key) for key in of_library(what, lambda: list(keys()))]


def _numbers(rows: list[Any], places: list[int]) -> Any:
    cells = [[row[place] for place in places] for row in rows]
    return records_in(cells, len(places))


def _labelled(rows: list[Any], places: list[int], whose: int) -> Labelled:
    return _numbers(rows, places), labels_in_cells([row[whose] for row in rows])
