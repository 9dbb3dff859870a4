"""One door for points: arrays, batches, data frames and files, read in pieces.

`open_points` turns whatever a caller has into a `Source`: named columns, a number of axes, and
pieces that are read one at a time, by the thread that sketches them. Memory stays bounded by the
pieces, never by the table.

The same door serves the curator's private points and a client's queries. It holds nothing itself.

Only the schema raises: a missing column, a column of text, the wrong number of axes, a file that is
no table. A value never does: bad cells and ragged lines become NaN and contribute nothing. Errors
of the libraries underneath are never passed on, since some quote the cell they stumbled over.

========================  =================================================================
CSV (``.csv``, ``.tsv``)  a header line, then one record a line; see `lines` for the rules
Parquet (``.parquet``)    any number of row groups, read in small batches
NumPy (``.npy``)          a two-dimensional array of numbers
frames                    pandas, polars, Arrow and others, through narwhals
SciPy sparse              any format; rows become dense a few at a time
sets                      iterables of element numbers, where the domain is `Sets`
========================  =================================================================
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from dpkde.arrays import as_rows
from dpkde.errors import SchemaError
from dpkde.tables.columnar import open_npy, open_parquet
from dpkde.tables.frames import check_known, open_frame
from dpkde.tables.sets import is_sparse, open_sets, open_sparse
from dpkde.tables.source import Piece, Source, chunk_rows, no_rows
from dpkde.tables.text import open_text

PointsLike = Any
"""An array of shape (n_points, dim), dense or sparse, a data frame, a path, or an iterable of
arrays; or of sets, where the domain is `Sets`."""


def open_points(
    points: PointsLike,
    columns: Sequence[str] | None = None,
    *,
    delimiter: str | None = None,
    universe: int | None = None,
) -> Source:
    """Return the points as a source.

    Parameters
    ----------
    points
        Array, data frame, path, binary stream of CSV text, or iterable of arrays.
    columns
        Which columns of a named table, in this order; by default all of them. For arrays, their
        names.
    delimiter
        Between the fields of a CSV file; by default a comma, a tab for ``.tsv``.
    universe
        Of how many elements, where records are sets: an iterable then holds one set a record.
    """
    if isinstance(points, Source):
        return points
    if isinstance(points, (str, os.PathLike)):
        return _open_file(Path(points), columns, delimiter)
    if isinstance(points, io.IOBase):
        return open_text(
            cast("BinaryIO", points), columns, "," if delimiter is None else delimiter, once=True
        )
    frame = open_frame(points, columns)
    if frame is not None:
        return frame
    if isinstance(columns, str):
        raise SchemaError(f"columns must be a list of names, such as [{columns!r}]")
    names = None if columns is None else tuple(str(name) for name in columns)
    if is_sparse(points):
        return open_sparse(points, names)
    check_known(points)
    if hasattr(points, "__array__"):
        rows = np.asanyarray(points)
        if rows.ndim == 1 and not rows.size:
            return no_rows(names)
        rows = as_rows(rows, None, "points")
        return Source(partial(_slices, rows), int(rows.shape[1]), names, size=len(rows))
    if not isinstance(points, Iterable):
        raise SchemaError(
            "points must be an array, a data frame, a path or an iterable of arrays, got "
            f"{type(points).__name__}"
        )
    if universe is not None:
        return open_sets(points, universe)
    # The number of columns is not asked of the first batch: whether there is one is private.
    return Source(partial(_batches, points, columns), None, names, once=iter(points) is points)


def _slices(rows: NDArray[Any]) -> Iterator[Piece]:
    step = chunk_rows(rows.shape[1] if rows.ndim > 1 else 1)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        yield Piece(partial(np.asanyarray, part), len(part))


def _batches(points: Iterable[Any], columns: Sequence[str] | None) -> Iterator[Piece]:
    for batch in points:
        frame = open_frame(batch, columns)
        if frame is not None:
            yield from frame.read()
        elif hasattr(batch, "__array__") and np.ndim(batch):
            yield from _slices(np.asanyarray(batch))
        else:
            # A list of rows is refused by its type: what NumPy makes of it depends on its values.
            raise SchemaError(
                "points must be an array, or batches that are arrays; make one of a list of rows "
                "by numpy.array(rows, dtype=float)"
            )


def _open_file(path: Path, columns: Sequence[str] | None, delimiter: str | None) -> Source:
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv", ".txt"):
        usual = "\t" if kind == ".tsv" else ","
        return open_text(path, columns, usual if delimiter is None else delimiter)
    if kind in (".parquet", ".pq"):
        return open_parquet(path, columns)
    if kind == ".npy":
        return open_npy(path, columns)
    raise SchemaError(
        f"{path.name or path} is not a table that can be read: use .csv, .tsv, .parquet or .npy"
    )
