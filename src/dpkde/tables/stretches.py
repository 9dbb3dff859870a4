"""Stretches of a Parquet file, decoded side by side by those who read their pieces.

Row groups are the places where decoding can begin. A stretch is some of them, one after the other;
its pieces are decoded in their order, by whichever thread asks for one, and no two at once. Several
stretches take turns, so that as many threads can decode; where there is room for one alone, Arrow's
threads share its columns. Nothing is read ahead: what is held of a stretch is what its decoder
holds, a page or so for each column.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from dpkde.numerics.pool import cores

_SHORTEST = 8
"""Row groups go together up to this many pieces: to begin with one takes time, too."""
_DECODERS = 64
"""Columns that are decoded at a time: each holds a page, of a megabyte as most files are made."""


class Turn(NamedTuple):
    """A piece to come: how many rows it has, and what decodes it, when it is first called."""

    take: Callable[[], Any]
    rows: int


class Stretch:
    """Row groups of a file that `opened` opens; `take` decodes the next piece, and closes it."""

    def __init__(
        self, opened: Callable[[], Any], groups: Sequence[int], rows: int, step: int, alone: bool
    ) -> None:
        self._opened, self._groups, self._step, self._alone = opened, groups, step, alone
        self._file: Any = None
        self._batches: Iterator[Any] = iter(())
        self._left = -(-rows // step)
        self._lock = threading.Lock()

    def take(self, columns: Sequence[str]) -> list[Any]:
        """Return the next batch, in a list; at the end all that are left: most often one."""
        with self._lock:
            if self._file is None:
                self._file = self._opened()
                self._batches = self._file.iter_batches(
                    batch_size=self._step,
                    row_groups=self._groups,
                    columns=columns,
                    use_threads=self._alone,
                )
            self._left -= 1
            if self._left > 0:
                return [batch for batch in (next(self._batches, None),) if batch is not None]
            rest = list(self._batches)
            self._file.close()
            return rest


def turns(
    opened: Callable[[], Any], groups: Sequence[int], step: int, columns: Sequence[str]
) -> Iterator[Turn]:
    """Yield the pieces of a file with so many rows in each of its row groups, of all stretches."""
    waiting = deque(_stretches(groups, step * _SHORTEST))
    several = max(1, min(cores(), _DECODERS // len(columns), len(waiting)))
    alone = several == 1
    open_ones: deque[Iterator[Turn]] = deque()
    while waiting or open_ones:
        if waiting and len(open_ones) < several:
            chosen, rows = waiting.popleft()
            stretch = Stretch(opened, chosen, rows, step, alone)
            open_ones.append(_pieces(stretch, rows, step, columns))
            continue
        pieces = open_ones.popleft()
        if (turn := next(pieces, None)) is not None:
            yield turn
            open_ones.append(pieces)


def _pieces(stretch: Stretch, rows: int, step: int, columns: Sequence[str]) -> Iterator[Turn]:
    for start in range(0, rows, step):
        yield Turn(cache(partial(stretch.take, columns)), min(step, rows - start))


def _stretches(groups: Sequence[int], shortest: int) -> Iterator[tuple[list[int], int]]:
    """Yield the numbers of row groups that go together, and how many rows those have."""
    chosen, rows = [], 0
    for number, count in enumerate(groups):
        chosen.append(number)
        rows += count
        if rows >= shortest:
            yield chosen, rows
            chosen, rows = [], 0
    if rows:
        yield chosen, rows
