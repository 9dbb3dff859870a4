"""Parquet and NumPy files, read in small batches whatever their layout."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import SchemaError
from dpkde.tables.arrays import as_rows
from dpkde.tables.source import Piece, Source, choose_columns, chunk_rows, no_rows


def open_parquet(path: Path, columns: Sequence[str] | None) -> Source:
    """Return a Parquet file as a source; columns have to be of a numeric type."""
    pa, pq = _arrow("pyarrow"), _arrow("pyarrow.parquet")
    schema = _guarded(path, lambda: pq.read_schema(path))
    wanted, places = choose_columns(schema.names, columns, path.name)
    for name, place in zip(wanted, places, strict=True):
        kind = schema.field(place).type
        kinds = pa.types  # a column of nulls alone has a type of its own
        tests = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_null)
        if not any(test(kind) for test in tests):
            raise SchemaError(
                f"column {name!r} of {path.name} is of type {kind}, not a number; if it holds "
                "numbers, read it with pandas and cast it: "
                f"pandas.to_numeric(frame[{name!r}], errors='coerce')"
            )

    def read() -> Iterator[Piece]:
        # Without these two settings a single large row group is held in memory whole.
        file = _guarded(path, lambda: pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16))
        with file:
            size = chunk_rows(len(wanted))
            batches = file.iter_batches(batch_size=size, columns=list(wanted))
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


def open_npy(path: Path, columns: Sequence[str] | None) -> Source:
    """Return a ``.npy`` file of a two-dimensional array as a source."""

    def load() -> NDArray[Any]:
        return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]

    array = _guarded(path, load)
    if not isinstance(array, np.ndarray):
        raise SchemaError(f"{path.name} does not hold one array")
    if array.ndim == 1 and not array.size:
        return no_rows(None if columns is None else tuple(str(name) for name in columns))
    rows = as_rows(array, None, path.name)
    names = None if columns is None else tuple(str(name) for name in columns)
    if names is not None and len(names) != rows.shape[1]:
        raise SchemaError(f"{path.name} has {rows.shape[1]} columns, not {len(names)}")

    def read() -> Iterator[Piece]:
        # Rows are copied out of the map piece by piece, so that it does not stay in memory.
        step = chunk_rows(rows.shape[1])
        for start in range(0, len(rows), step):
            stop = min(start + step, len(rows))
            yield Piece(partial(_copy_rows, path, start, stop), stop - start)

    return Source(read, int(rows.shape[1]), names, size=len(rows))


def _copy_rows(path: Path, start: int, stop: int) -> NDArray[Any]:
    rows = as_rows(np.load(path, mmap_mode="r", allow_pickle=False), None, path.name)
    return np.array(rows[start:stop])


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
