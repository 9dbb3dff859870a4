"""Records on their way to the partition where all of their unit are: as Arrow batches. Secret.

    partition ─► records, and the place of their unit ─► (the engine's shuffle) ─► share of a place

**Who is who is settled before the shuffle.** An engine tells rows apart by what is in a cell: to it
``7``, ``"7"`` and ``" 7 "`` are three. To dpkde they are one id (`tables.ids`), and if they went to
three partitions, three times as many rows of that unit would enter. So each partition is read
first, ids are brought into their canonical form, and what the engine shuffles by is a number:

    place = h(id) mod 2¹⁶, h being the keyed hash of `choice`,

the same for the same id wherever it was read. Rows that cannot be used, or are nobody's, stay where
they are and contribute nothing, as in one process.

**That a unit is in one partition is checked**, and not the engine's word: a share of such records
names the places that it has seen, and shares with a place in common are not added (`partitions`).

What enters of a unit is a function of its rows as a multiset (``proof.md``): the order that a
shuffle leaves, and which places share a partition, change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.curator.partitions import Fault, Share, as_share, guarded, opened
from dpkde.curator.sketch import sketch
from dpkde.curator.units.blocks import Block
from dpkde.curator.units.limit import Stage
from dpkde.errors import SourceError
from dpkde.planning.plan import Plan
from dpkde.planning.units import limit_under
from dpkde.tables import Piece, Source
from dpkde.tables.arrow import arrow
from dpkde.tables.labels import Labelled, Labels

_PLACES = 1 << 16
_FAULT = -1
"""Stands for the kind of an id where a row is no record, but tells of a fault in its text."""
FIELDS = ("place", "kind", "number", "row", "text")
"""Place of the unit; kind, number and text of its id, as in `Labels`; coordinates, eight bytes
each, in the machine's order."""


def schema() -> Any:
    """Return the Arrow schema of records that travel."""
    pa = arrow(what="rows that are somebody's, on a cluster,")
    kinds = (pa.int32(), pa.int8(), pa.int64(), pa.binary(), pa.binary())
    return pa.schema(list(zip(FIELDS, kinds, strict=True)))


def records_of(points: Any, plan: Plan, columns: Sequence[str] | None) -> Iterator[Any]:
    """Yield the usable records of a partition as batches; the fault, if that ends it, as the last.

    A task that has yielded a fault has no share: whoever meets it makes no sums.
    """
    batches: Iterator[Any] = iter(())

    def begun() -> Iterator[Any]:
        limit = limit_under(plan)
        assert limit is not None
        stage = Stage(plan.frame, limit)
        source = opened(points, plan, columns)
        return (_batch(stage.usable(piece)) for piece in source.pieces(plan.frame.dim))

    started = guarded(begun)
    if not isinstance(started, Fault):
        batches = started
    batch: Any = started
    while not isinstance(batch, Fault):
        batch = guarded(lambda: next(batches, None))
        if batch is None:
            return
        if not isinstance(batch, Fault):
            yield batch
    yield _fault_batch(batch)


def share_of_records(batches: Iterable[Any], plan: Plan) -> Share | Fault:
    """Return the sums of all the records of some places, at most c of each unit."""
    seen, dim = np.zeros(_PLACES, dtype=np.bool_), plan.frame.dim

    def read() -> Iterator[Piece]:
        for batch in batches:
            _check_no_fault(batch)
            seen[_words(batch, "place", np.int32)] = True
            some, size = partial(_rows, batch, dim), batch.num_rows
            yield Piece(some, size, partial(_labelled, batch, dim))

    def summed() -> Share:
        source = Source(read, dim, plan.columns, once=True, unit=plan.unit.name)
        sums = sketch(source, plan, threads=1)
        return as_share(sums, int.from_bytes(np.packbits(seen).tobytes(), "big"))

    return guarded(summed)  # type: ignore[no-any-return]


def _batch(block: Block) -> Any:
    pa = arrow()
    width = 8 * block.rows.shape[1]
    stops = np.arange(1, len(block) + 1, dtype=np.int64) * width
    columns = [
        pa.array((block.hashes % np.uint64(_PLACES)).astype(np.int32)),
        pa.array(block.kinds.astype(np.int8)),
        pa.array(block.numbers),
        _binary(block.words.view(np.uint8).ravel(), stops),
        _binary(block.text, block.ends),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema())


def _fault_batch(fault: Fault) -> Any:
    pa = arrow()
    row = (0, _FAULT, 0, fault.kind.encode(), fault.message.encode())
    columns = [pa.array([cell], field.type) for cell, field in zip(row, schema(), strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema())


def _check_no_fault(batch: Any) -> None:
    """Raise what another task could not."""
    at = np.flatnonzero(_words(batch, "kind", np.int8) == _FAULT)
    if len(at):
        kind, message = (batch.column(name)[int(at[0])].as_py() for name in ("row", "text"))
        raise Fault(kind.decode(), message.decode()).raised()


def _binary(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> Any:
    """Return an Arrow array of pieces of bytes, by where each of them ends."""
    pa = arrow()
    if len(data) > np.iinfo(np.int32).max:
        raise SourceError("the ids of a few thousand rows are longer than two gigabytes together")
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data.tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(ends), buffers)


def _bytes(batch: Any, name: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes of a column one after the other, and where each entry ends."""
    array = batch.column(name)
    if not len(array):
        return np.zeros(0, dtype=np.uint8), np.zeros(0, dtype=np.int64)
    _, offsets, data = (array := array.cast(arrow().binary())).buffers()
    stops = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    start, stop = int(stops[0]), int(stops[-1])
    some = np.frombuffer(data, np.uint8)[start:stop] if data is not None else np.zeros(0, np.uint8)
    return some, stops[1:].astype(np.int64) - start


def _words(batch: Any, name: str, kind: type[np.generic]) -> NDArray[Any]:
    return np.asarray(batch.column(name).to_numpy(zero_copy_only=False), dtype=kind)


def _rows(batch: Any, dim: int) -> NDArray[np.float64]:
    some, _ = _bytes(batch, "row")
    return np.frombuffer(some.tobytes(), np.float64).reshape(-1, dim)


def _labelled(batch: Any, dim: int) -> Labelled:
    text, ends = _bytes(batch, "text")
    kinds = _words(batch, "kind", np.int8).astype(np.uint8)
    return _rows(batch, dim), Labels(kinds, _words(batch, "number", np.int64), text, ends)
