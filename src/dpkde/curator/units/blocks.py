"""Blocks of records that are somebody's, and private files for those that do not fit in memory."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from dpkde.kernels import Points
from dpkde.tables.labels import Labels


@dataclass(frozen=True)
class Block:
    """Records, and whose they are. Secret.

    Attributes
    ----------
    rows
        Their coordinates as in the table, float64, shape (n, dim); never a −0.
    times
        How many records each stands for, int64, shape (n,).
    hashes
        The hash behind each id, uint64, shape (n,).
    kinds, numbers, text, ends
        The ids, as in `Labels`.
    """

    rows: Points
    times: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    kinds: NDArray[np.uint8]
    numbers: NDArray[np.int64]
    text: NDArray[np.uint8]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Points, labels: Labels, hashes: NDArray[np.uint64]) -> Self:
        """Return records of one each."""
        once = np.ones(len(rows), dtype=np.int64)
        # Adding 0 makes +0 of −0, and leaves all other numbers as they are.
        return cls(rows + 0.0, once, hashes, labels.kinds, labels.numbers, labels.text, labels.ends)

    @classmethod
    def joined(cls, blocks: list[Self]) -> Self:
        """Return one block of several."""
        if len(blocks) == 1:
            return blocks[0]
        shifts = np.cumsum([0, *(len(block.text) for block in blocks[:-1])])
        ends = [block.ends + shift for block, shift in zip(blocks, shifts, strict=True)]
        others = {
            field.name: np.concatenate([getattr(block, field.name) for block in blocks])
            for field in fields(cls)
            if field.name != "ends"
        }
        return cls(**others, ends=np.concatenate(ends))

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        return "<Block (secret)>"

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        return sum(getattr(self, field.name).nbytes for field in fields(self))

    @property
    def words(self) -> NDArray[np.uint64]:
        """The bits of its rows."""
        return np.ascontiguousarray(self.rows).view(np.uint64)

    @property
    def ids(
        self,
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
        """The ids, as compiled loops take them."""
        return self.kinds, self.numbers, self.text, self.ends

    def at(self, places: NDArray[Any]) -> Self:
        """Return the records at these places, in this order."""
        starts = np.concatenate([[0], self.ends])[places]
        lengths = self.ends[places] - starts
        ends = np.cumsum(lengths)
        text = self.text[:0]
        if len(self.text):
            shifts = np.repeat(starts - (ends - lengths), lengths)
            text = self.text[shifts + np.arange(len(shifts))]
        return type(self)(
            self.rows[places],
            self.times[places],
            self.hashes[places],
            self.kinds[places],
            self.numbers[places],
            text,
            ends,
        )

    def part(self, start: int, stop: int) -> Self:
        """Return the records from one place to another."""
        first = int(self.ends[start - 1]) if start else 0
        last = int(self.ends[stop - 1]) if stop else 0
        return type(self)(
            self.rows[start:stop],
            self.times[start:stop],
            self.hashes[start:stop],
            self.kinds[start:stop],
            self.numbers[start:stop],
            self.text[first:last],
            self.ends[start:stop] - first,
        )

    def repeated(self, most: int) -> Iterator[Points]:
        """Yield its rows, as often as each stands for, in arrays of at most so many."""
        until = np.cumsum(self.times)
        total = int(until[-1]) if len(until) else 0
        for start in range(0, total, most):
            wanted = np.arange(start, min(start + most, total))
            yield self.rows[np.searchsorted(until, wanted, side="right")]

    def id_at(self, place: int) -> tuple[int, int, bytes]:
        """Return the whole id of a record, to compare it with others."""
        start = self.ends[place - 1] if place else 0
        text = self.text[start : self.ends[place]].tobytes()
        return int(self.kinds[place]), int(self.numbers[place]), text


Sizes = dict[str, int]
_KINDS: dict[str, np.dtype[Any]] = {
    "rows": np.dtype(np.float64),
    "times": np.dtype(np.int64),
    "hashes": np.dtype(np.uint64),
    "kinds": np.dtype(np.uint8),
    "numbers": np.dtype(np.int64),
    "text": np.dtype(np.uint8),
    "ends": np.dtype(np.int64),
}
"""The fields of a block, in the order in which a file has them."""


class Spill:
    """Blocks under keys, in memory as long as they are few, then in a private file.

    The file has no name: nobody else can open it, and nothing is left of it when the process ends,
    however it ends. (Where a system cannot do that, it is removed when it is closed.)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[int, list[Block]] = {}
        self._size = 0
        self._file: BinaryIO | None = None
        self._places: dict[int, list[tuple[int, Sizes]]] = {}
        self._lock = threading.Lock()

    def put(self, key: int, block: Block) -> None:
        """Keep a block under a key, beside others."""
        self._held.setdefault(key, []).append(block)
        self._size += block.size
        if self._size > self._most:
            self._write()

    def __iter__(self) -> Iterator[int]:
        """Yield the keys under which there is something."""
        yield from sorted(self._held.keys() | self._places.keys())

    def blocks(self, key: int) -> Iterator[Block]:
        """Yield what is kept under a key, and keep it."""
        for start, sizes in self._places.get(key, []):
            yield self._read(start, sizes)
        yield from self._held.get(key, [])

    def close(self) -> None:
        """Forget everything."""
        self._held, self._places = {}, {}
        if self._file is not None:
            self._file.close()

    def _write(self) -> None:
        """Move what is in memory to the file."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="dpkde-")  # noqa: SIM115 - for the whole pass
        for key, blocks in self._held.items():
            block = Block.joined(blocks)
            arrays = {name: np.ascontiguousarray(getattr(block, name)) for name in _KINDS}
            sizes = {name: array.size for name, array in arrays.items()}
            self._places.setdefault(key, []).append((self._file.seek(0, os.SEEK_END), sizes))
            for array in arrays.values():
                self._file.write(array.tobytes())
        self._held, self._size = {}, 0

    def _read(self, start: int, sizes: Sizes) -> Block:
        assert self._file is not None
        arrays: dict[str, Any] = {}
        with self._lock:  # threads share one position
            self._file.seek(start)
            for name, kind in _KINDS.items():
                data = self._file.read(sizes[name] * kind.itemsize)
                arrays[name] = np.frombuffer(data, dtype=kind)
        count = sizes["times"]
        rows = arrays.pop("rows").reshape(count, sizes["rows"] // max(count, 1))
        return Block(rows, **arrays)
