"""One door for points: arrays, batches, frames, streams, files and databases, read in pieces.

`open_points` turns whatever a caller has into a `Source`: named columns, a number of axes, and
pieces that are read one at a time, by the thread that sketches them. Memory stays bounded by the
pieces, never by the table.

The same door serves the curator's private points and a client's queries. It holds nothing itself.

Only the schema raises: a missing column, a column of text, the wrong number of axes, a file that is
no table. A value never does: bad cells and ragged records become NaN and contribute nothing. Errors
of the libraries underneath are never passed on, since some quote the cell they stumbled over.

============================  =============================================================
text (``.csv``, ``.tsv``)     a header, then records; also packed; see `records`
Parquet (``.parquet``)        any number of row groups, read in small batches
Arrow (``.arrow``, …)         files and streams of batches, Feather among them; see `arrow`
NumPy (``.npy``)              a two-dimensional array of numbers
folders, patterns, addresses  of such files, and lists of them: one table; see `places`
frames                        pandas, polars, Arrow and others, through narwhals
Arrow streams                 anything with ``__arrow_c_stream__``; datasets of pyarrow
queries                       lazy frames of polars, relations of DuckDB; see `engines`
cursors                       of databases, after a query was executed; see `databases`
lists                         of rows, of arrays or of frames, and iterators; see `batches`
SciPy sparse                  any format; rows become dense a few at a time
sets                          iterables of element numbers, where the domain is `Sets`
clusters                      refused, and sent to `dpkde.dask` or `dpkde.spark`; see `clusters`
============================  =============================================================

Another format of files is one function in a file of its own, and one entry in `FILES`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from dpkde.errors import SchemaError
from dpkde.space.moments import ColumnType
from dpkde.tables.arrays import as_rows, check_columns
from dpkde.tables.arrow import (
    is_dataset,
    is_stream,
    is_table,
    open_arrow,
    open_dataset,
    open_stream,
)
from dpkde.tables.batches import array_pieces, open_batches, open_cells
from dpkde.tables.cells import CELLS, NUMBERS
from dpkde.tables.clusters import check_here
from dpkde.tables.columnar import open_npy, open_parquet
from dpkde.tables.databases import is_cursor, open_cursor
from dpkde.tables.engines import is_lazy, is_relation, open_lazy, open_relation
from dpkde.tables.frames import check_known, is_frame, open_frame
from dpkde.tables.places import File, Place, files_in, is_address, is_place, open_files
from dpkde.tables.sets import is_sparse, open_sets, open_sparse
from dpkde.tables.source import Source, no_rows, standing_for
from dpkde.tables.streams import PACKINGS, suffix
from dpkde.tables.text import CSV, KINDS, open_text

NO_COLUMNS = (
    "these points have no column {!r}: to protect all the rows of somebody, give a table that has "
    "columns with names (a data frame, or a CSV or Parquet file)"
)
UNNAMED = (
    "a list or an iterator has no header to tell its columns: with unit={!r} name those to "
    "publish, as in columns=['age', 'stay'], or in the plan"
)
PointsLike = Any
"""An array of shape (n_points, dim), dense or sparse, a data frame, a path, a `CSV`, a list of
rows, or an iterable of arrays; or of sets, where the domain is `Sets`."""


def open_points(
    points: PointsLike,
    columns: Sequence[str] | None = None,
    *,
    universe: int | None = None,
    unit: str | None = None,
    types: Sequence[ColumnType] | None = None,
) -> Source:
    """Return the points as a source.

    Parameters
    ----------
    points
        Whatever the table above lists.
    columns
        Which columns of a named table, in this order; by default all of them. For arrays, their
        names.
    universe
        The number of elements, where records are sets: an iterable then holds one set per record.
    unit
        The column that tells whose each row is, of a table that has columns with names.
    types
        What the columns are to stand for, where that is declared: dates come as days or as seconds.
    """
    if isinstance(points, Source):
        if points.unit != unit:
            raise SchemaError("these points were opened with another unit")
        return points
    check_columns(columns)
    check_here(points)
    return standing_for(_open(points, columns, universe, unit, types), types)


def _open(
    points: PointsLike,
    columns: Sequence[str] | None,
    universe: int | None,
    unit: str | None,
    types: Sequence[ColumnType] | None,
) -> Source:
    """Return the points as a source, by what they are."""
    if isinstance(points, io.IOBase):
        return open_text(CSV(cast("BinaryIO", points)), columns, unit)
    if isinstance(points, CSV) and not is_place(points.source):
        return open_text(points, columns, unit)
    if isinstance(points, CSV) or is_place(points):
        return open_tables([points], columns, unit=unit)
    if _are_files(points):
        return open_tables(points, columns, unit=unit)
    if is_lazy(points):
        return open_lazy(points, columns, unit)
    if is_relation(points):
        return open_relation(points, columns, unit)
    if is_dataset(points):
        return open_dataset(points, columns, unit)
    if is_cursor(points):
        return open_cursor(points, columns, unit)
    if is_table(points):
        return open_stream(points, columns, unit)
    if is_frame(points):
        return open_frame(points, columns, unit)
    if is_stream(points):
        return open_stream(points, columns, unit)
    if unit is not None:
        check_known(points)
        if is_sparse(points) or hasattr(points, "__array__") or universe is not None:
            raise SchemaError(NO_COLUMNS.format(unit))
        # Rows that are mappings would all be bad rows, and the budget spent on nothing. What is in
        # the list is not asked: whether there is a row, and of what kind, is private.
        if columns is None:
            raise SchemaError(UNNAMED.format(unit))
    names = None if columns is None else tuple(str(name) for name in columns)
    if is_sparse(points):
        return open_sparse(points, names)
    check_known(points)
    if hasattr(points, "__array__"):
        return _open_array(points, names)
    if universe is not None and isinstance(points, Iterable):
        return open_sets(points, universe)
    return open_batches(points, names, unit, types)


def _open_array(points: Any, names: tuple[str, ...] | None) -> Source:
    rows = np.asanyarray(points)
    if rows.ndim in (1, 2) and rows.dtype.kind in CELLS and rows.dtype.kind not in NUMBERS:
        # Objects or text: the array that comes of numbers with one bad cell among them.
        return open_cells(rows, names)
    if rows.ndim == 1 and not rows.size:
        return no_rows(names)
    rows = as_rows(rows, None, "points")
    return Source(partial(array_pieces, rows), int(rows.shape[1]), names, size=len(rows))


def _open_csv(place: Place, columns: Sequence[str] | None, unit: str | None = None) -> Source:
    return open_text(CSV(place.name), columns, unit, place)


FILES: dict[str, Callable[..., Source]] = {
    **dict.fromkeys(KINDS, _open_csv),
    **dict.fromkeys((".parquet", ".pq"), open_parquet),
    **dict.fromkeys((".arrow", ".arrows", ".feather", ".ipc"), open_arrow),
    ".npy": open_npy,
}
"""What opens a file, by the ending of its name: a function of its path and of the columns to read,
all of them where that is None. It raises for a schema, never for a value. Where it takes a third
argument, that is the column that tells whose each row is: its pieces are `labelled` then. What it
gets is a `Path`, or a file elsewhere that has a name and can be opened (`places`)."""


def _are_files(points: Any) -> bool:
    """Return whether points are a list of nothing but files: each is a table, none a record.

    Texts are taken for paths only where there is such a file: a fact of the caller's disk, and
    nothing that a record of numbers could be.
    """
    if not isinstance(points, (list, tuple)) or not points:
        return False
    if not all(type(one) is str or issubclass(type(one), (os.PathLike, CSV)) for one in points):
        return False
    texts = [one for one in points if type(one) is str]
    named = all(suffix(Path(one))[0] in FILES or is_address(one) for one in texts)
    there = (is_address(one) or Path(one).is_file() for one in texts)
    return named and (len(texts) < len(points) or any(there))


def open_tables(
    tables: Sequence[str | os.PathLike[str] | CSV],
    columns: Sequence[str] | None = None,
    *,
    unit: str | None = None,
    types: Sequence[ColumnType] | None = None,
) -> Source:
    """Return several places of files as one source, which reads them in this order."""
    files: list[File] = []
    for table in tables:
        if not isinstance(table, CSV):
            found = files_in(table, tuple(FILES))
            files += [File(place, below, _open_file) for place, below in found]
        elif is_place(table.source):
            opener = partial(_open_with, table)
            found = files_in(cast("str", table.source), tuple(FILES))
            files += [File(place, below, opener) for place, below in found]
        else:
            raise SchemaError("a stream of text is a table by itself, and no file among others")
    return standing_for(open_files(files, columns, unit), types)


def _open_with(rules: CSV, place: Place, columns: Sequence[str] | None, unit: str | None) -> Source:
    return open_text(rules, columns, unit, place)


def _open_file(place: Place, columns: Sequence[str] | None, unit: str | None) -> Source:
    kind, packing = suffix(place)
    if kind in FILES and (not packing or kind in KINDS):
        opener = FILES[kind]
        if unit is None:
            return opener(place, columns)
        if len(signature(opener).parameters) < 3:
            raise SchemaError(f"{kind} files are read here without telling whose each row is")
        return opener(place, columns, unit)
    if kind in (".zip", ".7z", ".lz4", ".tar"):
        raise SchemaError(f"{place.name} is packed in a way that is not read here: unpack it first")
    raise SchemaError(
        f"{place.name or place} is not a table that can be read: use {', '.join(FILES)} (text also "
        f"as {', '.join(PACKINGS)}); in Python, dpkde.CSV(path) reads text in a file of any name"
    )
