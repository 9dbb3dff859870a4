"""How space is cut into cells, so that two points share a cell with probability k(x, y).

=========  ==========================================  ================================
cut        cells                                       kernels
=========  ==========================================  ================================
`Bins`     a grid with random pitches and shifts       mixtures of hats: Laplacian, hat
`Grid`     the same, its cells numbered                the same, where they are few
`Planes`   a Poisson process of hyperplanes, or one    ℓ_p exponentials; geodesic
`Balls`    the first of many random balls              Erfc
`Least`    the first element in a random order         Jaccard
=========  ==========================================  ================================

A cut adds to the keys of some repetitions; the laws in `dpkde.kernels.partitions` say what is drawn
for which kernel. Why the probabilities are right is in ``proof.md``. Everything here is public.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import FormatError
from dpkde.kernels.partitions import LARGEST_RADIUS, MOST_BALLS, MOST_NUMBERS, balls_needed

Rows = NDArray[np.float32]
Keys = NDArray[np.int32]

FINEST, COARSEST = 2.0**-10, 2.0**20
"""Pitches are kept within these, in bandwidths."""
RADIUS_BITS = 14


class Cut(ABC):
    """Cells in some repetitions. `reps` says in which; other fields are public tensors."""

    kind: ClassVar[str]
    reps: NDArray[np.int32]

    @abstractmethod
    def add(self, rows: Rows, keys: Keys) -> None:
        """Add this cut's part of the keys, shape (n, len(reps)); n is a multiple of 4."""

    @abstractmethod
    def check(self, dim: int) -> None:
        """Raise ValueError where the fields do not fit each other."""

    def numbers(self, dim: int) -> int:
        """Return how many numbers the compiled loops are given, padding included."""
        return 3 * len(self.reps) * dim

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The fields, for the file."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Bins(Cut):
    """Random binning, hashed: rates are one over the pitches; all of shape (reps, dim)."""

    kind: ClassVar[str] = "bins"
    reps: NDArray[np.int32]
    rates: NDArray[np.float32]
    shifts: NDArray[np.float32]
    words: NDArray[np.int32]

    def add(self, rows: Rows, keys: Keys) -> None:
        """Add the words of the bins that rows lie in."""
        from dpkde.families.hashing import cells

        padded = np.zeros((len(rows), len(self._tiled[0]) * cells.TILE), dtype=np.int32)
        rates, shifts, words = self._tiled
        cells.add_bins(rows, rates, shifts, words, padded)
        keys += padded[:, : len(self.reps)]

    @cached_property
    def _tiled(self) -> tuple[NDArray[Any], ...]:
        return tuple(_tiles(array) for array in (self.rates, self.shifts, self.words))

    def check(self, dim: int) -> None:
        """Shapes, and rates within their limits."""
        for array in (self.rates, self.shifts, self.words):
            _expect(array.shape == (len(self.reps), dim))
        _expect(_within(self.rates, 0.5 / COARSEST, 2 / FINEST) and _within(self.shifts, -1e6, 1e6))

    def numbers(self, dim: int) -> int:
        """In tiles of 256."""
        return 3 * _padded(len(self.reps)) * dim


@dataclass(frozen=True, eq=False)
class Grid(Cut):
    """Random binning, where each repetition has few cells: they are numbered, not hashed."""

    kind: ClassVar[str] = "grid"
    reps: NDArray[np.int32]
    rates: NDArray[np.float32]
    shifts: NDArray[np.float32]
    counts: NDArray[np.int32]

    def add(self, rows: Rows, keys: Keys) -> None:
        """Add the numbers of the cells."""
        from dpkde.families.hashing import cells

        cells.add_grid(rows, self.rates, self.shifts, self.counts, keys)

    def check(self, dim: int) -> None:
        """Shapes, rates within their limits, and not too many cells."""
        for array in (self.rates, self.shifts, self.counts):
            _expect(array.shape == (len(self.reps), dim))
        _expect(_within(self.rates, 0.5 / COARSEST, 2 / FINEST) and _within(self.shifts, -1e7, 1e7))
        _expect(bool((self.counts >= 1).all()))
        _expect(bool((np.prod(self.counts, axis=1, dtype=np.float64) <= 1 << 20).all()))


@dataclass(frozen=True, eq=False)
class Planes(Cut):
    """Hyperplanes, some for each repetition: `counts` says how many, in the order of `reps`."""

    kind: ClassVar[str] = "planes"
    reps: NDArray[np.int32]
    counts: NDArray[np.int32]
    normals: NDArray[np.float32]
    offsets: NDArray[np.float32]
    words: NDArray[np.int32]

    def add(self, rows: Rows, keys: Keys) -> None:
        """Add the words of the planes that rows lie beyond."""
        from dpkde.families.hashing import cells

        if len(self.words):
            normals, offsets, words = self._tiled
            cells.add_sides(rows, normals, offsets, words, *self._runs, keys)

    @cached_property
    def _tiled(self) -> tuple[NDArray[Any], ...]:
        flat = (self.offsets, self.words)
        return (
            _tiles(self.normals),
            *(np.ascontiguousarray(_tiles(array[:, np.newaxis])[:, 0]) for array in flat),
        )

    @cached_property
    def _runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (column, first, last) for the planes of each repetition in each tile."""
        from dpkde.families.hashing.cells import TILE

        ends = np.cumsum(self.counts, dtype=np.int64)
        tiles = -(-len(self.words) // TILE)
        edges = np.unique(np.concatenate([[0], ends, np.arange(tiles) * TILE]))
        first, last = edges[:-1], edges[1:]
        columns = np.searchsorted(ends, first, side="right")
        runs = np.column_stack([columns, first % TILE, (last - 1) % TILE + 1])
        return runs, np.searchsorted(first, np.arange(tiles + 1) * TILE)

    def check(self, dim: int) -> None:
        """Shapes and counts."""
        _expect(self.counts.shape == self.reps.shape and bool((self.counts >= 0).all()))
        total = int(self.counts.sum(dtype=np.int64))
        _expect(self.normals.shape == (total, dim))
        _expect(self.offsets.shape == self.words.shape == (total,))
        _expect(_within(self.normals, -1e6, 1e6) and _within(self.offsets, -1e30, 1e30))

    def numbers(self, dim: int) -> int:
        """In tiles of 256."""
        return _padded(len(self.words)) * (dim + 5)


@dataclass(frozen=True, eq=False)
class Balls(Cut):
    """Ball carving: `seeds` make the balls; `box` holds half widths, and scales of the axes.

    Radii are ½√Exp(1), at the middle of 2¹⁴ parts of equal probability; `squares` are theirs.
    """

    kind: ClassVar[str] = "balls"
    reps: NDArray[np.int32]
    seeds: NDArray[np.int32]
    box: NDArray[np.float32]
    squares: NDArray[np.float32]

    def add(self, rows: Rows, keys: Keys) -> None:
        """Add the words of the first balls that hold the rows."""
        from dpkde.families.hashing import cells

        cells.add_balls(rows * self.box[1], self._balls, self.seeds.view(np.uint32), keys)

    @cached_property
    def _balls(self) -> NDArray[np.float32]:
        from dpkde.families.hashing import cells

        dim = self.box.shape[1]
        needed = -(-balls_needed(self.box[0]) // cells.BALLS) * cells.BALLS
        balls = np.empty((len(self.seeds), dim + 1, needed), dtype=np.float32)
        low = -self.box[0] - np.float32(LARGEST_RADIUS)
        for r, seed in enumerate(self.seeds.view(np.uint32)):
            cells.fill_balls(seed, low, -2 * low, balls[r])
        balls[:, dim] = self.squares[balls[:, dim].astype(np.int64)]
        return balls

    def check(self, dim: int) -> None:
        """Shapes, and a number of balls that is feasible."""
        _expect(self.seeds.shape == self.reps.shape and self.box.shape == (2, dim))
        _expect(_within(self.box[0], 0, 1e6) and _within(self.box[1], 1e-9, 1e9))
        _expect(self.squares.shape == (1 << RADIUS_BITS,))
        _expect(balls_needed(self.box[0]) <= 2 * MOST_BALLS)

    def numbers(self, dim: int) -> int:
        """So many balls for each repetition."""
        return (balls_needed(self.box[0]) + 64) * len(self.reps) * (dim + 1)


@dataclass(frozen=True, eq=False)
class Least(Cut):
    """MinHash: `orders` permute the universe, `words` scatter its elements over the keys."""

    kind: ClassVar[str] = "least"
    reps: NDArray[np.int32]
    orders: NDArray[np.int32]
    words: NDArray[np.int32]

    def add(self, rows: Rows, keys: Keys) -> None:
        """Add the words of the sets' first elements."""
        from dpkde.families.hashing import cells

        orders, words = self.orders.view(np.uint32), self.words.view(np.uint32)
        cells.add_least(rows, orders, words, keys)

    def check(self, dim: int) -> None:
        """Shapes."""
        _expect(self.orders.shape == self.words.shape == self.reps.shape)


CUTS: dict[str, type[Cut]] = {cut.kind: cut for cut in (Bins, Grid, Planes, Balls, Least)}
_TYPES = {
    "reps": np.int32,
    "rates": np.float32,
    "shifts": np.float32,
    "words": np.int32,
    "counts": np.int32,
    "normals": np.float32,
    "offsets": np.float32,
    "seeds": np.int32,
    "box": np.float32,
    "orders": np.int32,
    "squares": np.float32,
}


def restore(tensors: dict[str, NDArray[Any]], repetitions: int, dim: int) -> list[Cut]:
    """Rebuild cuts from tensors named ``number.kind.field``; FormatError where they are off."""
    parts: dict[tuple[int, str], dict[str, NDArray[Any]]] = {}
    try:
        for name, array in tensors.items():
            number, kind, field = name.split(".")
            parts.setdefault((int(number), kind), {})[field] = array
        cuts = []
        for (_, kind), own in sorted(parts.items()):
            cut_type = CUTS[kind]
            for field, array in own.items():
                _expect(array.dtype == _TYPES[field])
            cut = cut_type(**own)
            reps = cut.reps
            _expect(reps.ndim == 1 and len(reps) > 0 and bool((reps[1:] > reps[:-1]).all()))
            _expect(int(reps[0]) >= 0 and int(reps[-1]) < repetitions)
            cuts.append(cut)
        check(cuts, dim)
        return cuts
    except (LookupError, TypeError, ValueError):
        raise FormatError("the tensors of the hashing family in this file are damaged") from None


def check(cuts: list[Cut], dim: int) -> None:
    """Raise ValueError where fields do not fit each other, or would take too much memory."""
    for cut in cuts:
        cut.check(dim)
    if sum(cut.numbers(dim) for cut in cuts) > MOST_NUMBERS:
        raise ValueError("the cells of all repetitions together are too many")


def _expect(fine: bool) -> None:
    if not fine:
        raise ValueError


def _within(array: NDArray[Any], low: float, high: float) -> bool:
    return bool(((array >= low) & (array <= high)).all())


def _padded(count: int) -> int:
    return -(-count // 256) * 256


def _tiles(array: NDArray[Any]) -> NDArray[Any]:
    """Return (n, columns) as (tiles, columns, TILE), padded with zeros."""
    from dpkde.families.hashing.cells import TILE

    n, columns = array.shape
    tiles = -(-n // TILE)
    padded = np.zeros((tiles * TILE, columns), dtype=array.dtype)
    padded[:n] = array
    return np.ascontiguousarray(padded.reshape(tiles, TILE, columns).transpose(0, 2, 1))
