"""One door for points: arrays, batches, data frames and files, read in pieces.

`open_points` turns whatever a caller has into a `Source`: named columns, a number of axes, and
pieces that are read one at a time, by the thread that sketches them. Memory stays bounded by the
pieces, never by the table.

The same door serves the curator's private points and a client's queries. It holds nothing itself.

Only the schema raises: a missing column, a column of text, the wrong number of axes, a file that is
no table. A value never does: bad cells and ragged records become NaN and contribute nothing. Errors
of the libraries underneath are never passed on, since some quote the cell they stumbled over.

========================  =================================================================
CSV (``.csv``, ``.tsv``)  a header, then records; also ``.gz`` and ``.zst``; see `records`
Parquet (``.parquet``)    any number of row groups, read in small batches
NumPy (``.npy``)          a two-dimensional array of numbers
frames                    pandas, polars, Arrow and others, through narwhals
lists                     of rows, of arrays or of frames, and iterators of them; see `batches`
SciPy sparse              any format; rows become dense a few at a time
sets                      iterables of element numbers, where the domain is `Sets`
========================  =================================================================

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
from dpkde.tables.arrays import as_rows, check_columns
from dpkde.tables.batches import array_pieces, open_batches, open_cells
from dpkde.tables.cells import CELLS, NUMBERS
from dpkde.tables.columnar import open_npy, open_parquet
from dpkde.tables.frames import check_known, is_frame, open_frame
from dpkde.tables.sets import is_sparse, open_sets, open_sparse
from dpkde.tables.source import Source, no_rows, together
from dpkde.tables.streams import suffix
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
) -> Source:
    """Return the points as a source.

    Parameters
    ----------
    points
        Array, data frame, path, `CSV`, binary stream of CSV text, list of rows, or iterable of
        arrays.
    columns
        Which columns of a named table, in this order; by default all of them. For arrays, their
        names.
    universe
        The number of elements, where records are sets: an iterable then holds one set per record.
    unit
        The column that tells whose each row is, of a table that has columns with names.
    """
    if isinstance(points, Source):
        if points.unit != unit:
            raise SchemaError("these points were opened with another unit")
        return points
    check_columns(columns)
    if isinstance(points, (str, os.PathLike)):
        return _open_file(Path(points), columns, unit)
    if isinstance(points, io.IOBase):
        return open_text(CSV(cast("BinaryIO", points)), columns, unit)
    if isinstance(points, CSV):
        return open_text(points, columns, unit)
    if is_frame(points):
        return open_frame(points, columns, unit)
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
    return open_batches(points, names, unit)


def open_tables(
    tables: Sequence[str | os.PathLike[str] | CSV],
    columns: Sequence[str] | None = None,
    *,
    unit: str | None = None,
) -> Source:
    """Return several files as one source, which reads them in this order."""
    return together([open_points(table, columns, unit=unit) for table in tables])


def _open_array(points: Any, names: tuple[str, ...] | None) -> Source:
    rows = np.asanyarray(points)
    if rows.ndim in (1, 2) and rows.dtype.kind in CELLS and rows.dtype.kind not in NUMBERS:
        # Objects or text: the array that comes of numbers with one bad cell among them.
        return open_cells(rows, names)
    if rows.ndim == 1 and not rows.size:
        return no_rows(names)
    rows = as_rows(rows, None, "points")
    return Source(partial(array_pieces, rows), int(rows.shape[1]), names, size=len(rows))


def _open_csv(path: Path, columns: Sequence[str] | None, unit: str | None = None) -> Source:
    return open_text(CSV(path), columns, unit)


FILES: dict[str, Callable[..., Source]] = {
    **dict.fromkeys(KINDS, _open_csv),
    **dict.fromkeys((".parquet", ".pq"), open_parquet),
    ".npy": open_npy,
}
"""What opens a file, by the ending of its name: a function of its path and of the columns to read,
all of them where that is None. It raises for a schema, never for a value. Where it takes a third
argument, that is the column that tells whose each row is: its pieces are `labelled` then."""


def _open_file(path: Path, columns: Sequence[str] | None, unit: str | None) -> Source:
    kind, packing = suffix(path)
    if kind in FILES and (not packing or kind in KINDS):
        opener = FILES[kind]
        if unit is None:
            return opener(path, columns)
        if len(signature(opener).parameters) < 3:
            raise SchemaError(f"{kind} files are read here without telling whose each row is")
        return opener(path, columns, unit)
    if kind in (".bz2", ".xz", ".zip", ".7z", ".lz4", ".tar"):
        raise SchemaError(f"{path.name} is packed in a way that is not read here: unpack it first")
    raise SchemaError(
        f"{path.name or path} is not a table that can be read: use {', '.join(FILES)} (text also "
        "as .gz or .zst); in Python, dpkde.CSV(path) reads text in a file of any name"
    )
