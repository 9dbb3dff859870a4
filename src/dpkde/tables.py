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
========================  =================================================================
"""

from __future__ import annotations

import csv
import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from dpkde.arrays import as_rows
from dpkde.errors import SchemaError

CHUNK_ROWS = 1024
TEXT_BLOCK = 1 << 20
_HEADER_LIMIT = 1 << 20

PointsLike = Any
"""An array of shape (n_points, dim), a data frame, a path, or an iterable of arrays."""


@dataclass(frozen=True)
class Piece:
    """A few rows, read when asked for: shape (n, dim). `size` is in the units of the source."""

    rows: Callable[[], NDArray[Any]]
    size: int


@dataclass(frozen=True)
class Source:
    """Points, ready to be read.

    Attributes
    ----------
    read
        Starts reading: an iterator of pieces.
    dim
        Number of columns, where it is known beforehand.
    columns
        Their names, if they have any.
    once
        Whether the points can be read only once.
    size
        The sizes of all pieces together, in rows or bytes, where it is known. For a progress bar
        on the curator's own terminal and nothing else: under add-remove it is private.
    """

    read: Callable[[], Iterator[Piece]]
    dim: int | None
    columns: tuple[str, ...] | None = None
    once: bool = False
    size: int | None = None

    def watched(self, report: Callable[[int], None]) -> Source:
        """Return the same source, which reports the size of each piece when it is handed out."""

        def read() -> Iterator[Piece]:
            for piece in self.read():
                report(piece.size)
                yield piece

        return replace(self, read=read)


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def open_points(
    points: PointsLike, columns: Sequence[str] | None = None, *, delimiter: str | None = None
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
    """
    if isinstance(points, Source):
        return points
    if isinstance(points, (str, os.PathLike)):
        return _open_file(Path(points), columns, delimiter)
    if hasattr(points, "read"):
        return _open_text(points, columns, "," if delimiter is None else delimiter, once=True)
    frame = _open_frame(points, columns)
    if frame is not None:
        return frame
    if isinstance(columns, str):
        raise SchemaError(f"columns must be a list of names, such as [{columns!r}]")
    names = None if columns is None else tuple(str(name) for name in columns)
    if hasattr(points, "__array__"):
        rows = np.asanyarray(points)
        if rows.ndim == 1 and not rows.size:
            return Source(lambda: iter(()), None, names)  # no rows, of any width
        rows = as_rows(rows, None, "points")
        return Source(partial(_slices, rows), int(rows.shape[1]), names, size=len(rows))
    if not isinstance(points, Iterable):
        raise SchemaError(
            "points must be an array, a data frame, a path or an iterable of arrays, got "
            f"{type(points).__name__}"
        )
    # The number of columns is not asked of the first batch: whether there is one is private.
    return Source(lambda: _batches(points), None, names, once=iter(points) is points)


def _slices(rows: NDArray[Any]) -> Iterator[Piece]:
    for start in range(0, len(rows), CHUNK_ROWS):
        part = rows[start : start + CHUNK_ROWS]
        yield Piece(partial(np.asanyarray, part), len(part))


def _batches(points: Iterable[Any]) -> Iterator[Piece]:
    for batch in points:
        if not hasattr(batch, "__array__"):
            # A list of rows is refused by its type: what NumPy makes of it depends on its values.
            raise SchemaError(
                "points must be an array, or batches that are arrays; make one of a list of rows "
                "by numpy.array(rows, dtype=float)"
            )
        yield from _slices(np.asanyarray(batch))


# Files


def _open_file(path: Path, columns: Sequence[str] | None, delimiter: str | None) -> Source:
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv", ".txt"):
        usual = "\t" if kind == ".tsv" else ","
        return _open_text(path, columns, usual if delimiter is None else delimiter)
    if kind in (".parquet", ".pq"):
        return _open_parquet(path, columns)
    if kind == ".npy":
        return _open_npy(path, columns)
    raise SchemaError(
        f"{path.name} is not a table that can be read: use .csv, .tsv, .parquet or .npy"
    )


def _chosen(
    available: Sequence[str], columns: Sequence[str] | None, what: str, *, listed: bool = True
) -> tuple[tuple[str, ...], list[int]]:
    """Return the wanted names and where they stand.

    The first line of a text file might be a record after all, so its words are not `listed` in a
    message.
    """
    if isinstance(columns, str):
        raise SchemaError(f"columns must be a list of names, such as [{columns!r}]")
    wanted = tuple(available) if columns is None else tuple(str(name) for name in columns)
    if not wanted:
        raise SchemaError(f"{what} has no columns")
    places = []
    for name in wanted:
        found = [i for i, other in enumerate(available) if other == name]
        if len(found) != 1:
            fault = f"{what} has {'no column' if not found else 'more than one column'} {name!r}"
            if not listed:
                raise SchemaError(f"{fault} in its first line, the header")
            shown = ", ".join(available[:20]) + (", …" if len(available) > 20 else "")
            raise SchemaError(f"{fault}; its columns are: {shown}")
        places.append(found[0])
    if len(set(wanted)) != len(wanted):
        raise SchemaError("a column is named twice")
    return wanted, places


def _open_text(
    source: Path | BinaryIO, columns: Sequence[str] | None, delimiter: str, *, once: bool = False
) -> Source:
    what = source.name if isinstance(source, Path) else "the stream"
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise SchemaError(f"a delimiter is one ASCII character, got {delimiter!r}")
    if isinstance(source, Path):
        with source.open("rb") as file:
            header, _ = _header(file)
    else:
        header, rest = _header(source)
    names = _names(header, delimiter, what)
    wanted, places = _chosen(names, columns, what, listed=False)
    targets = np.full(len(names), -1, dtype=np.int64)
    targets[places] = np.arange(len(places))

    def read() -> Iterator[Piece]:
        if isinstance(source, Path):
            with source.open("rb") as file:
                _, start = _header(file)
                yield from _blocks(file, start, targets, delimiter)
        else:
            yield from _blocks(source, rest, targets, delimiter)

    size = source.stat().st_size if isinstance(source, Path) else None
    # Names that the caller did not give could be a record's words: they are not passed on.
    return Source(read, len(wanted), None if columns is None else wanted, once, size)


def _header(stream: _Readable) -> tuple[bytes, bytes]:
    """Return the first line, and what was read beyond it."""
    data = b""
    while b"\n" not in data and len(data) < _HEADER_LIMIT:
        more = stream.read(1 << 16)
        if isinstance(more, str):
            raise SchemaError("open the file in binary mode, as in open(path, 'rb')")
        if not more:
            break
        data += more
    line, _, rest = data.partition(b"\n")
    return line, rest


def _names(header: bytes, delimiter: str, what: str) -> list[str]:
    try:
        text = header.decode("utf-8-sig").rstrip("\r")
    except UnicodeDecodeError:
        raise SchemaError(f"the first line of {what} is not text") from None
    if "\0" in text or len(header) >= _HEADER_LIMIT:
        raise SchemaError(f"the first line of {what} is not a header with column names")
    names = [name.strip() for name in next(csv.reader([text], delimiter=delimiter), [])]
    if not names:
        raise SchemaError(f"{what} has no header line with column names")
    if any(_is_number(name) for name in names):
        raise SchemaError(f"the first line of {what} holds numbers; a header with names is needed")
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _blocks(
    stream: _Readable, start: bytes, targets: NDArray[np.int64], delimiter: str
) -> Iterator[Piece]:
    """Yield pieces of whole lines. A line is cut from its neighbours here, and nowhere else."""
    from dpkde import lines

    columns = int(targets.max()) + 1

    def parse(block: bytes) -> NDArray[np.float64]:
        text = np.frombuffer(block, dtype=np.uint8)
        rows = np.empty((lines.count_lines(text), columns))
        return rows[: lines.parse_lines(text, ord(delimiter), targets, rows)]

    tail = start
    too_long = False
    while True:
        more = stream.read(TEXT_BLOCK)
        block, newline, rest = (tail + more).rpartition(b"\n") if more else (tail, b"", b"")
        if newline or not more:
            if too_long:  # the end of a line that was given up: one record, without a number
                _, _, block = block.partition(b"\n")
                yield Piece(partial(np.full, (1, columns), np.nan), 0)
                too_long = False
            if block:
                yield Piece(partial(parse, block), len(block) + 1)
        tail = rest
        if not more:
            return
        if len(tail) > lines.MAX_LINE:
            tail, too_long = b"", True


def _open_parquet(path: Path, columns: Sequence[str] | None) -> Source:
    pa, pq = _arrow("pyarrow"), _arrow("pyarrow.parquet")
    schema = _guarded(path, lambda: pq.read_schema(path))
    wanted, places = _chosen(schema.names, columns, path.name)
    for name, place in zip(wanted, places, strict=True):
        kind = schema.field(place).type
        tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
        if not any(test(kind) for test in tests):
            raise SchemaError(f"column {name!r} of {path.name} is of type {kind}, not a number")

    def read() -> Iterator[Piece]:
        # Without these two settings a single large row group is held in memory whole.
        file = _guarded(path, lambda: pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16))
        with file:
            batches = file.iter_batches(batch_size=CHUNK_ROWS, columns=list(wanted))
            while True:
                batch = _guarded(path, lambda: next(batches, None))
                if batch is None:
                    return
                yield Piece(partial(_columns, batch, wanted), batch.num_rows)

    rows = _guarded(path, lambda: pq.read_metadata(path)).num_rows
    return Source(read, len(wanted), wanted, size=rows)


def _columns(batch: Any, names: Sequence[str]) -> NDArray[Any]:
    """Return columns of an Arrow batch side by side; nulls become NaN."""
    arrays = [batch.column(name) for name in names]
    single = all(str(array.type) == "float" for array in arrays)
    rows = np.empty((batch.num_rows, len(names)), dtype=np.float32 if single else np.float64)
    for k, array in enumerate(arrays):
        rows[:, k] = array.to_numpy(zero_copy_only=False)
        if array.null_count:
            rows[np.asarray(array.is_null()), k] = np.nan
    return rows


def _open_npy(path: Path, columns: Sequence[str] | None) -> Source:
    def load() -> NDArray[Any]:
        return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]

    array = _guarded(path, load)
    if not isinstance(array, np.ndarray):
        raise SchemaError(f"{path.name} does not hold one array")
    rows = as_rows(array, None, path.name)
    names = None if columns is None else tuple(str(name) for name in columns)
    if names is not None and len(names) != rows.shape[1]:
        raise SchemaError(f"{path.name} has {rows.shape[1]} columns, not {len(names)}")

    def read() -> Iterator[Piece]:
        # Rows are copied out of the map piece by piece, so that it does not stay in memory.
        for start in range(0, len(rows), CHUNK_ROWS):
            yield Piece(partial(_copy_rows, path, start), min(CHUNK_ROWS, len(rows) - start))

    return Source(read, int(rows.shape[1]), names, size=len(rows))


def _copy_rows(path: Path, start: int) -> NDArray[Any]:
    rows = as_rows(np.load(path, mmap_mode="r", allow_pickle=False), None, path.name)
    return np.array(rows[start : start + CHUNK_ROWS])


# Frames


def is_frame(points: Any) -> bool:
    """Tell a data frame from arrays and the rest."""
    return hasattr(type(points), "columns")


def _open_frame(points: Any, columns: Sequence[str] | None) -> Source | None:
    """Return a source for a data frame, or None if it is none."""
    if not is_frame(points):
        return None
    try:
        import narwhals.stable.v2 as nw
    except ImportError:
        raise SchemaError("data frames need one more package: pip install narwhals") from None
    frame = nw.from_native(points, eager_only=True, pass_through=True)
    if frame is points:
        raise SchemaError(
            f"points of type {type(points).__name__} cannot be read; collect a lazy frame first"
        )
    wanted, places = _chosen([str(name) for name in frame.columns], columns, "the frame")
    keys = [frame.columns[place] for place in places]
    for name, key in zip(wanted, keys, strict=True):
        # A pandas column of Python objects is taken cell by cell: whether a column is one, and
        # what it is said to hold, can depend on single values, so it must not raise.
        if str(getattr(frame.get_column(key).to_native(), "dtype", "")) == "object":
            continue
        kind = frame.schema[key]
        if not (kind.is_numeric() or kind == nw.Boolean):
            raise SchemaError(f"column {name!r} of the frame is of type {kind}, not a number")

    def read() -> Iterator[Piece]:
        for start in range(0, len(frame), CHUNK_ROWS):
            size = min(CHUNK_ROWS, len(frame) - start)
            yield Piece(partial(_frame_rows, frame, keys, start), size)

    return Source(read, len(wanted), wanted, size=len(frame))


def _frame_rows(frame: Any, keys: Sequence[Any], start: int) -> NDArray[Any]:
    part = frame[start : start + CHUNK_ROWS]
    return np.column_stack([_numbers(part.get_column(key)) for key in keys])


def _numbers(series: Any) -> NDArray[np.float64]:
    """Return a column as float64, nulls as NaN, without a library's error reaching anyone."""
    values = series.to_numpy()
    if values.dtype.kind == "O":
        return np.array([_cell(value) for value in values], dtype=np.float64)
    if values.dtype.kind in "fiub" and not series.null_count():
        return values.astype(np.float64)  # type: ignore[no-any-return]
    missing = series.is_null().to_numpy().astype(bool)
    filled = np.full(len(values), np.nan)
    filled[~missing] = values[~missing].astype(np.float64)
    return filled


def _cell(value: Any) -> float:
    """Return a Python number as a float, and anything else as NaN."""
    if isinstance(value, (bool, int, float, np.number, np.bool_)):
        try:
            return float(value)
        except (OverflowError, TypeError, ValueError):
            return np.nan
    return np.nan


def _arrow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise SchemaError("Parquet files need one more package: pip install pyarrow") from None


def _guarded(path: Path, action: Callable[[], Any]) -> Any:
    """Run a library's reader; where it fails, say so in our own words, without its own."""
    try:
        return action()
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception:
        raise SchemaError(f"{path.name} is damaged, or not a {path.suffix} file") from None
