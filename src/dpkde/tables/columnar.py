"""Parquet and NumPy files, read in small batches whatever their layout."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import SchemaError
from dpkde.tables.arrays import as_rows
from dpkde.tables.labels import NO_LABELS, Labelled, is_label_type, labels_in_arrow
from dpkde.tables.source import (
    Origin,
    Piece,
    Source,
    chunk_rows,
    columns_and_unit,
    no_rows,
    slices,
)
from dpkde.tables.streams import guarded


def open_parquet(path: Path, columns: Sequence[str] | None, unit: str | None = None) -> Source:
    """Return a Parquet file as a source; columns have to be of a numeric type."""
    pa, pq = _arrow("pyarrow"), _arrow("pyarrow.parquet")
    schema = _guarded(path, lambda: pq.read_schema(path))
    names, places, whose = columns_and_unit(schema.names, columns, unit, path.name)
    if whose is not None and not is_label_type(kind := schema.field(whose).type):
        raise SchemaError(NO_LABELS.format(unit, f"{path.name} is of type {kind}"))
    for name, place in zip(names, places, strict=True):
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
            read = [*names, *([] if unit is None else [unit])]
            batches = file.iter_batches(batch_size=chunk_rows(len(names)), columns=read)
            while (batch := _guarded(path, lambda: next(batches, None))) is not None:
                labelled = None if unit is None else partial(_labelled, batch, names, unit)
                yield Piece(partial(_columns, batch, names), batch.num_rows, labelled)

    size = _guarded(path, lambda: pq.read_metadata(path)).num_rows
    return Source(read, len(names), names, size=size, unit=unit, origin=Origin(path))


def _labelled(batch: Any, names: Sequence[str], unit: str) -> Labelled:
    return _columns(batch, names), labels_in_arrow(batch.column(unit))


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


def open_npy(path: Path, columns: Sequence[str] | None, unit: str | None = None) -> Source:
    """Return a ``.npy`` file of a two-dimensional array as a source."""
    if unit is not None:
        raise SchemaError(f"{path.name} has no column {unit!r}, nor any other with a name")
    array = _guarded(path, lambda: np.load(path, mmap_mode="r", allow_pickle=False))
    if not isinstance(array, np.ndarray):
        raise SchemaError(f"{path.name} does not hold one array")
    names = None if columns is None else tuple(str(name) for name in columns)
    if array.ndim == 1 and not array.size:
        return replace(no_rows(names), origin=Origin(path))
    count, dim = as_rows(array, None, path.name).shape
    if names is not None and len(names) != dim:
        raise SchemaError(f"{path.name} has {dim} columns, not {len(names)}")
    read = partial(slices, partial(_copy_rows, path), count, chunk_rows(dim))
    return Source(read, dim, names, size=count, origin=Origin(path))


def _copy_rows(path: Path, start: int, stop: int) -> NDArray[Any]:
    """Return rows copied out of a map of the file, which thus does not stay in memory."""
    rows = as_rows(np.load(path, mmap_mode="r", allow_pickle=False), None, path.name)
    return np.array(rows[start:stop])


def parquet_of(path: Path, names: Sequence[str], rows: NDArray[Any]) -> None:
    """Write rows of numbers to a Parquet file, a column for each name."""
    arrow, parquet = _arrow("pyarrow"), _arrow("pyarrow.parquet")
    columns = [arrow.array(np.ascontiguousarray(column)) for column in rows.T]
    parquet.write_table(arrow.Table.from_arrays(columns, names=list(names)), path)


def _arrow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise SchemaError("Parquet files need one more package: pip install pyarrow") from None


def _guarded(path: Path, action: Callable[[], Any]) -> Any:
    return guarded(f"{path.name} is damaged, or not a {path.suffix} file", action)
