"""The stage that leaves at most c records of each unit: a source of those that enter.

    source ─► rows that can be used, and whose ─► parts by the hash of the id ─► the c of each unit

Records of one unit come together in one of 64 parts, which are kept in memory or, where they are
many, in a private file (`blocks.Spill`). A part that is too large for memory is divided further, by
more bits of the hash; where all its ids share one hash, as those of a single unit with very many
rows do, by the hash of the rows.

**Cost.** O(n log(n / 64)) time, and some 600 MiB of memory at most; on disk 40 bytes and a row for
each record, and the text of its id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpkde.curator.units.blocks import Block, Spill
from dpkde.kernels import Points
from dpkde.numerics.pool import mapped
from dpkde.planning.units import Limit
from dpkde.space.frame import Frame
from dpkde.tables import Piece, Source
from dpkde.tables.arrays import as_rows, silent
from dpkde.tables.ids import MISSING
from dpkde.tables.source import chunk_rows

_BITS = 6
_LEVELS = 10
"""Parts are told apart by 6 bits of a hash of 64, ten times at most."""
_HELD = 1 << 27
"""Bytes of records that are kept in memory before they go to a file."""
_GATHERED = 1 << 25
"""Bytes of a part that are sorted at once."""


def limited(source: Source, frame: Frame, limit: Limit, threads: int | None) -> Source:
    """Return a source of the records that enter: at most `limit.records` of each unit.

    Guarantee
    ---------
    What enters of a unit is a function of that unit's own usable rows as a multiset, of at most
    `limit.records` of them. So removing a unit removes at most so many rows, and nothing else;
    order, pieces and threads change nothing. Rows that are nobody's, or cannot be used, do not
    enter. ``proof.md`` has the argument.
    """
    stage = Stage(frame, limit)
    chosen = Spill(_HELD)
    for block in stage.chosen(source.pieces(frame.dim), threads):
        chosen.put(0, block)

    def read() -> Iterator[Piece]:
        for block in chosen.blocks(0):
            for rows in block.repeated(chunk_rows(frame.dim)):
                yield Piece(partial(np.asarray, rows), len(rows))

    return Source(read, frame.dim, source.columns)


@dataclass(frozen=True)
class Stage:
    """What chooses the records of each unit.

    Attributes
    ----------
    frame
        It tells which rows can be used.
    limit
        How many of a unit, and the key of the choice.
    held, gathered
        Bytes that are kept in memory before they go to a file, and that are sorted at once.
    """

    frame: Frame
    limit: Limit
    held: int = _HELD
    gathered: int = _GATHERED

    def chosen(self, pieces: Iterable[Piece], threads: int | None) -> Iterator[Block]:
        """Yield the records that enter, and no longer whose they are."""
        parts = Spill(self.held)
        try:
            for divided in mapped(self._divided, pieces, threads):
                for key, block in divided:
                    parts.put(key, block)
            for entering in mapped(partial(self._settled, parts), parts, threads):
                yield from entering
        finally:
            parts.close()

    def sizes(self, pieces: Iterable[Piece], threads: int | None) -> Iterator[NDArray[np.int64]]:
        """Yield how many usable records each unit has, some units at a time. Secret.

        For `dpkde.nonprivate`, and for nothing that is released.
        """
        parts = Spill(self.held)
        try:
            for divided in mapped(self._divided, pieces, threads):
                for key, block in divided:
                    parts.put(key, block)
            for key in parts:
                yield from self._sizes(partial(parts.blocks, key), 1)
        finally:
            parts.close()

    def _sizes(
        self, blocks: Callable[[], Iterator[Block]], level: int
    ) -> Iterator[NDArray[np.int64]]:
        """Yield them for ids that agree in the bits of the levels before."""
        gathered = self._gathered(blocks())
        if gathered is not None:
            yield gathered.unit_sizes[1]
            return
        least, most = _extremes(blocks())
        if least == most:  # mostly a single unit; whole ids tell others from it
            totals: Counter[tuple[int, int, bytes]] = Counter()
            for block in blocks():
                part = Sorted.of([block])
                for start, size in zip(*part.unit_sizes, strict=True):
                    totals[part.block.id_at(int(part.order[start]))] += int(size)
            yield np.array(list(totals.values()), dtype=np.int64)
            return
        parts = Spill(self.held)
        try:
            for block in blocks():
                for key, part_block in _by_digit(block, block.hashes, level):
                    parts.put(key, part_block)
            for key in parts:
                yield from self._sizes(partial(parts.blocks, key), level + 1)
        finally:
            parts.close()

    def _divided(self, piece: Piece) -> list[tuple[int, Block]]:
        """Return the usable records of a piece, by the first bits of the hash of their ids."""
        block = self.usable(piece)
        return list(_by_digit(block, block.hashes, 0))

    @silent
    def usable(self, piece: Piece) -> Block:
        """Return the records of a piece that can be used and are somebody's."""
        from dpkde.curator.units.choice import hash_labels

        assert piece.labelled is not None
        some, labels = piece.labelled()
        rows = as_rows(some, self.frame.dim, "points").astype(np.float64)
        usable = self.frame.place(rows)[1] & (labels.kinds != MISSING)
        hashes = np.empty(len(rows), dtype=np.uint64)
        block = Block.of(rows, labels, hashes)
        hash_labels(np.uint64(self.limit.key), *block.ids, hashes)
        return block if usable.all() else block.at(np.flatnonzero(usable))

    def _settled(self, parts: Spill, key: int) -> list[Block]:
        """Return those that enter of one part."""
        return list(self._chosen(partial(parts.blocks, key), 1))

    def _chosen(self, blocks: Callable[[], Iterator[Block]], level: int) -> Iterator[Block]:
        """Yield those that enter; the ids of all blocks agree in the bits of the levels before."""
        from dpkde.curator.units.choice import choose

        gathered = self._gathered(blocks())
        if gathered is not None:
            records = gathered.block
            taken = np.zeros(len(records), dtype=np.int64)
            choose(self.limit.records, *gathered.entries, taken)  # type: ignore[call-arg]
            if len(entering := np.flatnonzero(taken)):
                yield _anonymous(records.rows[entering], taken[entering])
            return
        least, most = _extremes(blocks())
        if least == most:
            yield from self._of_one_hash(blocks)
            return
        parts = Spill(self.held)
        try:
            for block in blocks():
                for key, part in _by_digit(block, block.hashes, level):
                    parts.put(key, part)
            for key in parts:
                yield from self._chosen(partial(parts.blocks, key), level + 1)
        finally:
            parts.close()

    def _gathered(self, blocks: Iterator[Block]) -> Sorted | None:
        """Return all the records, sorted, equal ones together; None where they are too many."""
        waiting: list[Block] = []
        size = 0
        for block in blocks:
            waiting.append(block)
            size += block.size
            if size > self.gathered:
                waiting = [Sorted.of(waiting).distinct]
                size = waiting[0].size
                if size > self.gathered // 2:
                    return None
        return Sorted.of(waiting)

    def _of_one_hash(self, blocks: Callable[[], Iterator[Block]]) -> Iterator[Block]:
        """Yield those that enter where all ids have one hash: mostly those of a single unit."""
        best: dict[tuple[int, int, bytes], list[tuple[int, bytes]]] = {}
        for block, chances, places in self._candidates(blocks, 0):
            words = block.words
            for chance, place in zip(chances.tolist(), places.tolist(), strict=True):
                # Big-endian bytes are in the order of the words.
                row = words[place].astype(">u8").tobytes()
                best.setdefault(block.id_at(place), []).append((chance, row))
            for unit, entries in best.items():
                best[unit] = sorted(entries)[: self.limit.records]
        for entries in best.values():
            bits = np.frombuffer(b"".join(row for _, row in entries), dtype=">u8")
            rows = bits.astype(np.uint64).view(np.float64).reshape(len(entries), -1)
            yield _anonymous(rows, np.ones(len(rows), dtype=np.int64))

    def _candidates(
        self, blocks: Callable[[], Iterator[Block]], level: int
    ) -> Iterator[tuple[Block, NDArray[np.uint64], NDArray[np.int64]]]:
        """Yield records that may enter, with their hashes; equal rows are in the same block."""
        from dpkde.curator.units.choice import candidates, hash_rows

        gathered = self._gathered(blocks())
        if gathered is None and level == _LEVELS:  # rows whose hashes were made to agree
            gathered = Sorted.of(list(blocks()))
        if gathered is not None:
            yield (gathered.block, *candidates(self.limit.records, *gathered.entries))
            return
        parts = Spill(self.held)
        try:
            for block in blocks():
                hashes = np.empty(len(block), dtype=np.uint64)
                hash_rows(block.hashes, block.words, hashes)
                for key, part in _by_digit(block, hashes, level):
                    parts.put(key, part)
            for key in parts:
                yield from self._candidates(partial(parts.blocks, key), level + 1)
        finally:
            parts.close()


def _by_digit(block: Block, hashes: NDArray[np.uint64], level: int) -> Iterator[tuple[int, Block]]:
    """Yield the records by 6 bits of their hashes."""
    shift = np.uint64(max(64 - _BITS * (level + 1), 0))
    digits = ((hashes >> shift) & np.uint64((1 << _BITS) - 1)).astype(np.uint8)
    sorted_block = block.at(np.argsort(digits, kind="stable"))
    ends = np.cumsum(np.bincount(digits, minlength=1 << _BITS))
    start = 0
    for digit, stop in enumerate(ends.tolist()):
        if stop > start:
            yield digit, sorted_block.part(start, stop)
        start = stop


def _extremes(blocks: Iterator[Block]) -> tuple[int, int]:
    """Return the least and the largest hash of ids."""
    ranges = [(int(b.hashes.min()), int(b.hashes.max())) for b in blocks if len(b)]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _anonymous(rows: Points, times: NDArray[np.int64]) -> Block:
    """Return records that are nobody's any more."""
    nobody, none = np.zeros(0, dtype=np.uint8), np.zeros(0, dtype=np.int64)
    return Block(rows, times, none.astype(np.uint64), nobody, none, nobody, none)


@dataclass(frozen=True)
class Sorted:
    """Records by the hash of their ids, and the order of distinct ones: by id, then by row.

    Attributes
    ----------
    block
        The records.
    order
        Where the distinct ones are.
    times
        How many each of those stands for.
    states
        The hash behind each row.
    """

    block: Block
    order: NDArray[np.int64]
    times: NDArray[np.int64]
    states: NDArray[np.uint64]

    @classmethod
    def of(cls, blocks: list[Block]) -> Self:
        """Sort the records of several blocks."""
        from dpkde.curator.units.choice import count_equal, hash_rows, sort_groups

        joined = Block.joined(blocks)
        block = joined.at(np.argsort(joined.hashes))
        states, order = np.empty(len(block), dtype=np.uint64), np.empty(len(block), dtype=np.int64)
        hash_rows(block.hashes, block.words, states)
        keys = (block.hashes, states, block.words, *block.ids)
        sort_groups(order, *keys)
        number = count_equal(order, block.times, *keys)
        return cls(block, order[:number], block.times, states)

    @property
    def entries(self) -> Any:
        """All of it, as compiled loops take it."""
        block = self.block
        return (self.order, self.times, block.hashes, self.states, block.words, *block.ids)

    @property
    def unit_sizes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the records of each unit begin in the order, and how many they are."""
        from dpkde.curator.units.choice import unit_sizes

        starts, sizes = np.empty_like(self.order), np.empty_like(self.order)
        units = unit_sizes(*self.entries, starts, sizes)  # type: ignore[call-arg]
        return starts[:units], sizes[:units]

    @property
    def distinct(self) -> Block:
        """The distinct records alone."""
        return self.block.at(self.order)
