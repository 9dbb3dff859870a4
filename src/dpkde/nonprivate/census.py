"""What becomes of the rows of a table: which count, which do not, and why. Not private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpkde.curator.units.limit import Stage
from dpkde.numerics.pool import mapped
from dpkde.planning.units import Limit
from dpkde.space.domain import Box
from dpkde.space.frame import Frame
from dpkde.tables import Piece, Source
from dpkde.tables.arrays import as_rows, silent
from dpkde.tables.cells import is_ragged
from dpkde.tables.ids import MISSING

QUANTILES = (0.5, 0.9, 0.99, 1.0)
"""Of the rows of a unit: which are told."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name
        What it is called.
    not_finite
        How many cells are no finite number: words, blanks, nulls, infinities.
    below, above
        How many cells of otherwise finite rows lie beyond its bounds.
    """

    name: str
    not_finite: int
    below: int
    above: int


@dataclass(frozen=True)
class Units:
    """Whose the rows are.

    Attributes
    ----------
    name, limit
        The column that tells, and how many rows of each may count.
    count
        How many units there are.
    above
        How many of them have more usable rows than may count.
    kept
        The share of the usable rows that counts.
    quantiles
        So many usable rows, or fewer, have 50%, 90%, 99% and all of the units.
    """

    name: str
    limit: int
    count: int
    above: int
    kept: float
    quantiles: tuple[int, ...]


@dataclass(frozen=True)
class Census:
    """What becomes of the rows; each row is in one of the kinds.

    Attributes
    ----------
    read
        How many rows, or records of text, there are.
    wrong_length
        Dropped: other than the header has, or not well-formed.
    not_finite
        Dropped: with a cell that is no finite number.
    outside
        Dropped: beyond the bounds, where those are dropped; or without a place in the domain.
    no_id
        Dropped: usable rows that are nobody's.
    beyond_limit
        Dropped: rows of units that have more than may count.
    clipped
        How many rows that count were moved to the bounds; under a unit, of all that are usable.
    columns
        What there is to tell of each column.
    units
        Whose the rows are, where somebody is protected with all of them.
    """

    read: int
    wrong_length: int
    not_finite: int
    outside: int
    no_id: int
    beyond_limit: int
    clipped: int
    columns: tuple[Column, ...]
    units: Units | None

    @property
    def counted(self) -> int:
        """How many rows count."""
        lost = (self.wrong_length, self.not_finite, self.outside, self.no_id, self.beyond_limit)
        return self.read - sum(lost)


@dataclass
class _Tally:
    """The sums of a census, over some rows."""

    dim: int
    totals: NDArray[np.int64] = field(init=False)
    cells: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.totals = np.zeros(6, dtype=np.int64)
        self.cells = np.zeros((3, self.dim), dtype=np.int64)


def census(
    source: Source,
    frame: Frame,
    columns: Sequence[str] | None,
    limit: Limit | None,
    threads: int | None,
) -> Census:
    """Return what becomes of the rows of a source."""
    tally = _Tally(frame.dim)
    for part in mapped(partial(_tallied, frame), source.pieces(frame.dim), threads):
        tally.totals += part.totals
        tally.cells += part.cells
    read, ragged, strange, outside, clipped, nobody = tally.totals.tolist()
    units, lost = None, 0
    if limit is not None:
        found = [*Stage(frame, limit).sizes(source.pieces(frame.dim), threads)]
        sizes = np.concatenate([np.zeros(0, dtype=np.int64), *found])
        total, kept = int(sizes.sum()), int(np.minimum(sizes, limit.records).sum())
        lost = total - kept
        quantiles = [0] * len(QUANTILES)
        if len(sizes):
            quantiles = np.quantile(sizes, QUANTILES, method="inverted_cdf").tolist()
        units = Units(
            str(limit.unit.name),
            limit.records,
            len(sizes),
            int((sizes > limit.records).sum()),
            kept / total if total else 1.0,
            tuple(map(int, quantiles)),
        )
    names = [f"column {k}" for k in range(frame.dim)] if columns is None else columns
    entries = zip(names, *tally.cells.tolist(), strict=True)
    told = tuple(Column(str(name), *numbers) for name, *numbers in entries)
    return Census(read, ragged, strange, outside, nobody, lost, clipped, told, units)


@silent
def _tallied(frame: Frame, piece: Piece) -> _Tally:
    """Return the sums over a piece."""
    some, labels = (piece.rows(), None) if piece.labelled is None else piece.labelled()
    rows = as_rows(some, frame.dim, "points").astype(np.float64)
    tally = _Tally(frame.dim)
    ragged = is_ragged(rows)
    finite = np.isfinite(rows)
    whole = np.asarray(finite.all(axis=1))
    usable = frame.place(rows)[1]
    clipped = 0
    if isinstance(frame.domain, Box):
        low, high = frame.domain.corners
        beyond = np.stack([(rows < low), (rows > high)]) & whole[np.newaxis, :, np.newaxis]
        tally.cells[1:] = beyond.sum(axis=1)
        clipped = int((beyond.any(axis=(0, 2)) & usable).sum())
    elif frame.kernel.home == "space":
        moved = frame.domain.nearest(np.where(whole[:, np.newaxis], rows, 0.0)) != rows
        clipped = int((moved.any(axis=1) & usable).sum())
    tally.cells[0] = (~finite & ~ragged[:, np.newaxis]).sum(axis=0)
    nobody = 0 if labels is None else int((usable & (labels.kinds == MISSING)).sum())
    tally.totals[:] = (
        *(len(rows), ragged.sum(), (~whole & ~ragged).sum(), (whole & ~usable).sum()),
        *(clipped, nobody),
    )
    return tally
