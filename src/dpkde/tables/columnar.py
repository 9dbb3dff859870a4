"""Parquet and NumPy files, read in small batches whatever their layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import SchemaError
from dpkde.tables.arrays import as_rows
from dpkde.tables.arrow import Chosen, arrow
from dpkde.tables.source import Piece, Source, chunk_rows, no_rows, origin_of, slices
from dpkde.tables.streams import guarded
from dpkde.tables.stretches import Turn, turns

if TYPE_CHECKING:
    from dpkde.tables.places import Place


def open_parquet(place: Place, columns: Sequence[str] | None, unit: str | None = None) -> Source:
    """Return a Parquet file as a source; columns have to be of a type that is a number."""
    parquet = arrow("pyarrow.parquet", "Parquet files")
    damaged = _damaged(place)

    def opened() -> Any:
        # Without these two settings a single large row group is held in memory whole.
        file = place if isinstance(place, Path) else arrow().PythonFile(place.open("rb"), mode="r")
        return parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 16)

    def facts() -> tuple[Any, list[int]]:
        with guarded(damaged, opened) as file:
            known = file.metadata
            groups = [known.row_group(k).num_rows for k in range(known.num_row_groups)]
            return file.schema_arrow, groups

    schema, groups = facts()
    chosen = Chosen.among(schema, columns, unit, place.name)
    needed, chosen = chosen.first()
    read = [schema.names[place] for place in needed]
    kinds = arrow().schema([schema.field(place) for place in needed])
    step = chunk_rows(len(chosen.names))

    def batches() -> Iterator[Any]:
        with guarded(damaged, opened) as file:
            found = file.iter_batches(batch_size=step, columns=read)
            while (batch := guarded(damaged, lambda: next(found, None))) is not None:
                yield batch.select(read)

    def batch_of(turn: Turn) -> Any:
        return _one(guarded(damaged, turn.take), kinds).select(read)

    def scattered() -> Iterator[Piece]:
        """Yield pieces of several stretches in turn, decoded by who reads them."""
        for turn in turns(opened, facts()[1], step, read):
            yield chosen.piece(partial(batch_of, turn), turn.rows)

    return chosen.source(batches, size=sum(groups), origin=origin_of(place), scattered=scattered)


def _one(batches: list[Any], kinds: Any) -> Any:
    """Return the one batch that there is, nearly always, or one of them all."""
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return arrow().RecordBatch.from_pylist([], schema=kinds)
    (whole,) = arrow().Table.from_batches(batches).combine_chunks().to_batches()
    return whole


def open_npy(place: Place, columns: Sequence[str] | None, unit: str | None = None) -> Source:
    """Return a ``.npy`` file of a two-dimensional array as a source."""
    if unit is not None:
        raise SchemaError(f"{place.name} has no column {unit!r}, nor any other with a name")
    array = guarded(_damaged(place), lambda: _npy(place))
    if not isinstance(array, np.ndarray):
        raise SchemaError(f"{place.name} does not hold one array")
    names = None if columns is None else tuple(str(name) for name in columns)
    if array.ndim == 1 and not array.size:
        return replace(no_rows(names), origin=origin_of(place))
    count, dim = as_rows(array, None, place.name).shape
    if names is not None and len(names) != dim:
        raise SchemaError(f"{place.name} has {dim} columns, not {len(names)}")
    if isinstance(place, Path):
        rows = partial(_copy_rows, place)
        read = partial(slices, rows, count, chunk_rows(dim))
        return Source(read, dim, names, size=count, origin=origin_of(place))
    return Source(partial(_pieces_elsewhere, place), dim, names, size=count)


def _npy(place: Place) -> Any:
    """Return an array without its numbers in memory: a map of the file, or its shape alone."""
    if isinstance(place, Path):
        return np.load(place, mmap_mode="r", allow_pickle=False)
    with place.open("rb") as file:
        shape, _, dtype = _header(file)
    return np.broadcast_to(np.zeros((), dtype), shape)


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and type of an array, whose numbers follow in the file."""
    major, _ = np.lib.format.read_magic(file)
    read = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}[major]
    shape, fortran, dtype = read(file)
    if dtype.hasobject or (fortran and len(shape) > 1 and 1 not in shape):
        raise SchemaError("arrays elsewhere are read row by row: np.ascontiguousarray makes one")
    return shape, fortran, dtype


def _pieces_elsewhere(place: Place) -> Iterator[Piece]:
    """Yield the rows of an array that there is no map of."""
    with place.open("rb") as file:
        (count, *rest), _, dtype = guarded(_damaged(place), partial(_header, file))
        dim = rest[0] if rest else 1
        step = chunk_rows(dim)
        for start in range(0, count, step):
            rows = min(step, count - start)
            size = rows * dim * dtype.itemsize
            data = guarded(_damaged(place), partial(_exactly, file, size))
            yield Piece(partial(_rows_of, data, dtype, (rows, dim)), rows)


def _exactly(file: Any, size: int) -> bytes:
    data = bytes(file.read(size))
    if len(data) != size:
        raise EOFError
    return data


def _rows_of(data: bytes, dtype: np.dtype[Any], shape: tuple[int, int]) -> NDArray[Any]:
    return as_rows(np.frombuffer(data, dtype=dtype).reshape(shape), None, "the array")


def _copy_rows(place: Path, start: int, stop: int) -> NDArray[Any]:
    """Return rows copied out of a map of the file, which thus does not stay in memory."""
    rows = as_rows(_npy(place), None, place.name)
    return np.array(rows[start:stop])


def parquet_of(path: Path, names: Sequence[str], rows: NDArray[Any]) -> None:
    """Write rows of numbers to a Parquet file, a column for each name."""
    pa, parquet = arrow(), arrow("pyarrow.parquet", "Parquet files")
    columns = [pa.array(np.ascontiguousarray(column)) for column in rows.T]
    parquet.write_table(pa.Table.from_arrays(columns, names=list(names)), path)


def _damaged(place: Place) -> str:
    return f"{place.name} is damaged, or not a {place.suffix} file"
