"""Locality sensitive hashing (LSQ-LSH): kernels that are the chance to share a random cell.

Each of I repetitions cuts space into random cells, such that x and y share one with probability
k(x, y). A record adds ±1 to the bucket of its cell; a query reads the bucket of its own, times the
sign, and averages over repetitions. Cells are hashed into B' buckets, and each cell has a random
sign, so that cells which collide cancel on average: unbiased at any B'. Where a repetition has at
most B' cells they are numbered, and none collide. What is drawn for a kernel is said by its
`Kernel.partition`; the cuts are in `cuts`, the compiled loops in `cells`, the proof in
``proof.md``.

Directions need no buckets: a plane through the origin has two sides, f is the side, ±1, and
1 − θ/π = ½ + ½·E f(x)f(y). The ½ comes from the count.

Cost: O(I·d) a record and a query for bins, O(I·d·planes) for hyperplanes, exponential in d for
balls, O(I·size) for sets. The release holds I·B' cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import FormatError, ParameterError
from dpkde.families.base import (
    Family,
    Layout,
    Outlook,
    Pair,
    Prediction,
    Table,
    Tensors,
    Terms,
    Worst,
    check_whole,
    grouped,
    spread_of_repetitions,
)
from dpkde.families.hashing import cuts, partitions, worst
from dpkde.families.hashing.cuts import Cut
from dpkde.kernels import Points
from dpkde.numerics.numbers import is_whole
from dpkde.privacy.amounts import Bounds
from dpkde.privacy.laws.weights import Weights
from dpkde.space.domain import Mask
from dpkde.space.frame import Frame

MOST_CELLS = 1 << 26
MOST_CELLS_CHOSEN = 1 << 22
MOST_BUCKETS = 1 << 15
"""Bucket and sign are 16 of the 32 bits of a key: so many are independent for any two cells."""
FARTHEST = 4096.0
"""Bandwidths from the center that float32 rows resolve well; further out they are clipped."""
_BLOCK = 256
_BLOCK_KEYS = 1 << 22
"""Most rows, and most keys, that are computed at a time."""
_LEAN = 0.1
"""How far from uniform directions are taken to be: the mean of E f(x)f(x′) over pairs of them."""


@dataclass(frozen=True)
class Hashing(Family):
    """Locality sensitive hashing.

    Parameters
    ----------
    repetitions
        Number of random partitions I. None: chosen from the noisy count, ε and `typical_density`.
    buckets
        Buckets a repetition B', a power of two up to 2¹⁵. None: chosen. 1 is allowed with signs.
    signed
        True: random signs, unbiased. False: plain counts with the bias of collisions subtracted,
        as in the paper.

    Examples
    --------
    >>> Hashing(repetitions=100, buckets=64)
    Hashing(repetitions=100, buckets=64, signed=True)
    """

    repetitions: int | None = None
    buckets: int | None = None
    signed: bool = True

    name: ClassVar[str] = "hashing"
    lattice_bits: ClassVar[tuple[int, int]] = (0, 16)

    def __post_init__(self) -> None:
        if not isinstance(self.signed, bool):
            raise ParameterError(f"signed must be True or False, got {self.signed!r}")
        check_whole(self, "repetitions", 1, 1 << 20, "2^20")
        if self.buckets is not None:
            size, least = self.buckets, 1 if self.signed else 2
            if not is_whole(size) or not least <= size <= MOST_BUCKETS or size & (size - 1):
                raise ParameterError(
                    f"buckets must be a power of two from {least} to 2^15, got {size!r}"
                )
            object.__setattr__(self, "buckets", int(size))

    @classmethod
    def obstacle(cls, frame: Frame) -> str | None:
        """Kernels with a hash, in a domain that is not wider than 2^13 bandwidths."""
        halves = frame.halves()
        obstacle = frame.kernel.partition.obstacle(halves)
        if obstacle is None and halves is not None and not (halves <= FARTHEST).all():
            return "the bounds are more than 2^13 bandwidths apart; use a larger bandwidth"
        return obstacle

    @classmethod
    def terms(cls, frame: Frame) -> Terms:
        """Cost depends on how the kernel cuts space."""
        return Terms(frame.kernel.partition.cost, "none", "Δ₁ = I, Δ₂ = √I, Δ∞ = 1")

    def layout(self, frame: Frame) -> HashingLayout:
        """Return the partitions, repetitions and buckets being given."""
        if self.repetitions is None or self.buckets is None:
            raise ParameterError("repetitions and buckets of the hashing are needed here")
        self.check(frame)
        return HashingLayout(self, frame, self.repetitions, self.buckets)

    def layouts(self, frame: Frame) -> list[HashingLayout]:
        """Return numbers of repetitions and of buckets that are not too many together.

        Pure ε: noise grows with repetitions, the sampling error falls; one bucket and max-norm
        noise are compared with many buckets and Laplace noise.
        """
        self.check(frame)
        sizes = [1 << power for power in range(MOST_BUCKETS.bit_length())]
        sizes = [buckets for buckets in sizes if buckets > 1 or self.signed]
        if self.signed and frame.kernel.partition.has_sides:
            sizes = [1]
        most = partitions.most_repetitions(frame)
        steps = range(2 * partitions.MOST_REPETITIONS.bit_length() - 1)
        counts = sorted({count for step in steps if (count := round(2 ** (step / 2))) <= most})
        every = [
            replace(self, repetitions=repetitions, buckets=buckets).layout(frame)
            for repetitions in ([self.repetitions] if self.repetitions else counts)
            for buckets in ([self.buckets] if self.buckets else sizes)
        ]
        modest = [entry for entry in every if entry.cells <= MOST_CELLS_CHOSEN]
        return modest or every[:1]


@dataclass(frozen=True, eq=False)
class HashingLayout(Layout):
    """So many random partitions, each with so many buckets."""

    family: Hashing
    frame: Frame
    repetitions: int
    buckets: int

    @property
    def cells(self) -> int:
        """The size of the table."""
        return self.repetitions * self.buckets

    @cached_property
    def is_sides(self) -> bool:
        """Whether these are directions in one bucket, where the side of a plane is the sign."""
        single = self.family.signed and self.buckets == 1
        return single and self.frame.kernel.partition.has_sides

    def bounds(self, bits: int) -> Bounds:
        """A record adds ±2^bits to one bucket of each repetition; see the proof.

        The bits are not needed for f: max-norm noise is drawn faster on a finer lattice.
        """
        if self.cells > MOST_CELLS:
            raise ParameterError(
                f"{self.repetitions} repetitions of {self.buckets} buckets make {self.cells} "
                "cells, and at most 2^26 are made: use fewer"
            )
        count, unit = self.repetitions, 1 << bits
        return Bounds(
            self.cells, count * unit, count * unit**2, unit, nonnegative=not self.family.signed
        )

    def worst(self, bits: int) -> Worst | None:
        """Return what collisions and cuts can do; see `worst`. None for space without bounds."""
        if self.frame.reach() is None:
            return None
        return worst.of_partitions(
            self.repetitions,
            self.buckets,
            signed=self.family.signed,
            sides=self.is_sides,
            bits=bits,
        )

    @property
    def nanoseconds(self) -> float:
        """What a record takes, roughly."""
        law = self.frame.kernel.partition
        return self.repetitions * (5 + law.nanoseconds(self.frame.halves(), self.frame.dim))

    def predict(self, outlook: Outlook) -> Prediction:
        """Noise from the best law; sampling √((Var m + (q − E m²)/B')/I).

        m is the mass of the query's cell and q the mean kernel value over pairs of records, for
        which `typical_density` stands; see `Partition.squared_mass`.
        """
        law, halves, buckets = self.frame.kernel.partition, self.frame.halves(), self.buckets
        density = outlook.typical_density
        if self.is_sides:
            lean = max(2 * density - 1, _LEAN)
            variance, gain = lean * (1 - lean) / 4, 0.5
        else:
            square = law.squared_mass(halves, self.frame.dim, density)
            collisions = 0.0 if law.cells(halves) <= buckets / 2 else 1 / buckets
            variance = square - density**2 + (density - square) * collisions
            gain = 1.0
            if not self.family.signed:
                gain = 1 / math.sqrt(1 - 1 / buckets)
        return outlook.prediction(
            self,
            gain=gain / math.sqrt(self.repetitions),
            approximation=math.sqrt(max(variance, 0.0) / self.repetitions),
        )

    def draw(self, bits: int, seed: int) -> HashingPair:
        """Draw the cuts of all repetitions."""
        frame, repetitions, buckets = self.frame, self.repetitions, self.buckets
        self.bounds(bits)  # refuses a table that does not fit
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
        halves = frame.halves()
        pad = partitions.CutPad(generator, halves, frame.dim)
        reps = np.arange(repetitions, dtype=np.int32)
        parts = frame.kernel.partition.draw(pad, reps, np.ones(frame.dim))
        if any(type(cut) not in cuts.CUTS.values() for cut in parts):  # no other code sees records
            raise ParameterError("the partition of a kernel is made of the cuts of its sketchpad")
        base = pad.words(repetitions)
        moves = np.full(repetitions, 33 - buckets.bit_length(), dtype=np.int32)
        if self.is_sides:
            # The side itself is the sign: the highest bit of the key.
            (planes,) = parts
            assert isinstance(planes, cuts.Planes)
            parts = [replace(planes, words=np.full(repetitions, -(1 << 31), dtype=np.int32))]
            base[:] = 0
        else:
            parts, direct = partitions.numbered(parts, halves, buckets)
            moves[direct], base[direct] = 0, 0
        try:
            cuts.check(parts, frame.dim)
        except ValueError:
            raise ParameterError(
                f"{repetitions} repetitions of this kernel in this box take too many numbers: use "
                "fewer repetitions, a larger bandwidth, or family='fourier'"
            ) from None
        return HashingPair(self, bits, tuple(parts), base, moves)

    def restore(self, bits: int, tensors: Tensors) -> HashingPair:
        """Rebuild the pair from ``base``, ``moves`` and the cuts."""
        self.bounds(bits)  # refuses a table that does not fit
        rest = dict(tensors)
        base, moves = rest.pop("base", None), rest.pop("moves", None)
        for array in (base, moves):
            if array is None or array.shape != (self.repetitions,) or array.dtype != np.int32:
                raise FormatError("the hashing family of this file lacks its base or its moves")
        assert base is not None
        assert moves is not None
        if not np.isin(moves, (0, 33 - self.buckets.bit_length())).all():
            raise FormatError("the moves of the hashing family in this file are damaged")
        parts = cuts.restore(rest, self.repetitions, self.frame.dim)
        return HashingPair(self, bits, tuple(parts), base, moves)

    @property
    def summary(self) -> str:
        """The numbers, as in ``hashing 512×64 (signed)``."""
        signed = "signed" if self.family.signed else "unsigned"
        return f"hashing {self.repetitions}×{self.buckets} ({signed})"


@dataclass(frozen=True, eq=False)
class HashingPair(Pair):
    """Drawn cuts. `base` starts the keys; `moves` says how far a key is shifted to its bucket."""

    layout: HashingLayout
    bits: int
    cuts: tuple[Cut, ...]
    base: NDArray[np.int32]
    moves: NDArray[np.int32]

    @property
    def count(self) -> int:
        """I, the number of repetitions."""
        return len(self.base)

    @property
    def constant(self) -> float:
        """½ for directions: k = ½ + ½·E f(x)f(y)."""
        return 0.5 if self.layout.is_sides else 0.0

    @cached_property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The drawn cuts, as integers and float32."""
        tensors: dict[str, NDArray[Any]] = {"base": self.base, "moves": self.moves}
        for number, cut in enumerate(self.cuts):
            for field, array in cut.tensors.items():
                tensors[f"{number}.{cut.kind}.{field}"] = np.ascontiguousarray(array)
        return tensors

    def quantize(self, coordinates: Points, counts: Mask) -> NDArray[np.int64]:
        """Return each record's integers: bucket and sign from the keys, in NumPy."""
        repetitions, buckets = self.layout.repetitions, self.layout.buckets
        blocks = [keys for _, keys in self._keys(coordinates)]
        keys = np.concatenate([np.empty((0, repetitions), dtype=np.int32), *blocks])
        unsigned = keys.astype(np.int64) & 0xFFFFFFFF
        direct = self.moves == 0
        place = np.where(direct, np.minimum(unsigned, buckets - 1), unsigned >> self.moves)
        below = np.maximum(self.moves - 1, 0)
        sign = np.where(
            direct | (not self.layout.family.signed), 1, 1 - 2 * ((unsigned >> below) & 1)
        )
        parts = np.zeros((len(coordinates), repetitions, buckets), dtype=np.int64)
        rows, reps = np.ogrid[: len(coordinates), :repetitions]
        parts[rows, reps, place] = (sign * counts[:, np.newaxis]) << self.bits
        return parts.reshape(len(coordinates), -1)

    def accumulate(self, coordinates: Points, counts: Mask, table: Table) -> None:
        """Add ±2^bits to one bucket of each repetition for every record."""
        from dpkde.families.hashing import cells

        buckets = self.layout.buckets
        moves, signed = self.moves.astype(np.int64), self.layout.family.signed
        for part, keys in self._keys(coordinates):
            cells.tally(keys, counts[part], moves, buckets, signed, self.bits, table)

    def _keys(self, coordinates: Points) -> Iterator[tuple[slice, NDArray[np.int32]]]:
        """Yield the keys of a few rows at a time, shape (n, repetitions)."""
        step = max(4, min(_BLOCK, _BLOCK_KEYS // self.count))
        for start in range(0, len(coordinates), step):
            part = slice(start, min(start + step, len(coordinates)))
            size = part.stop - start
            rows = np.zeros((-(-size // 4) * 4, self.frame.dim), dtype=np.float32)
            rows[:size] = np.clip(np.nan_to_num(coordinates[part]), -FARTHEST, FARTHEST)
            keys = np.tile(self.base, (len(rows), 1))
            for cut in self.cuts:
                own = np.zeros((len(rows), len(cut.reps)), dtype=np.int32)
                cut.add(rows, own)
                if len(cut.reps) == self.count:
                    keys += own
                else:
                    keys[:, cut.reps] += own
            yield part, keys[:size]

    def respond(self, queries: Points, table: NDArray[np.float64], groups: int = 1) -> Points:
        """Return the mean over repetitions, or the median of the means of groups of them."""
        parts = grouped(self.count, groups, "repetitions")
        means = self._means(queries, table, parts)[:, :, 0]
        return np.asarray(means[0] if groups == 1 else np.median(means, axis=0))

    def own_variance(
        self, queries: Points, table: NDArray[np.float64], noise: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the variance of the mean over repetitions beyond the noise; NaN for one."""
        mean, square = self._means(queries, table, [slice(0, self.count)])[0].T
        return spread_of_repetitions(mean, square, self.count, noise)

    def _means(
        self, queries: Points, table: NDArray[np.float64], parts: list[slice]
    ) -> NDArray[np.float64]:
        """Return the mean of what some repetitions say to each query, and of its square."""
        from dpkde.families.hashing import cells

        buckets = self.layout.buckets
        located = self._located(queries)
        shaped = table.reshape(self.count, buckets)
        means, shrink = shaped.mean(axis=1), 1 / (1 - 1 / buckets) if buckets > 1 else 1.0
        moves, signed = self.moves.astype(np.int64), self.layout.family.signed
        sums = np.zeros((len(parts), len(queries), 2))
        for rows, keys in self._keys(located):
            for own, part in zip(sums, parts, strict=True):
                columns = np.ascontiguousarray(keys[:, part])
                piece = shaped[part].reshape(-1)
                cells.answer(
                    columns, moves[part], buckets, signed, piece, means[part], shrink, own[rows]
                )
        scale = (0.5 if self.layout.is_sides else 1.0) / 2**self.bits
        sums[:, ~(np.abs(located) <= FARTHEST).all(axis=1)] = math.nan
        sizes = np.array([part.stop - part.start for part in parts])[:, np.newaxis, np.newaxis]
        return np.asarray(sums * (scale, scale**2) / sizes)

    def _located(self, queries: Points) -> Points:
        """Return queries in the frame; those outside a box that cells are drawn in are refused."""
        located = self.frame.locate(queries)
        halves = self.frame.halves()
        if halves is not None and self.frame.kernel.partition.needs_box:
            beyond = ~(np.abs(located) <= halves * (1 + 1e-9)).all(axis=1)
            outside = np.isfinite(queries).all(axis=1) & beyond
            if outside.any():
                count = int(outside.sum())
                raise ParameterError(
                    f"{count} {'query lies' if count == 1 else 'queries lie'} outside the bounds, "
                    "where hashing with the "
                    f"{self.frame.kernel.name} kernel has no cells: ask inside, or publish with "
                    "family='fourier' or wider bounds"
                )
        return located

    @property
    def draws(self) -> int:
        """I, the number of repetitions."""
        return self.count

    def weights(self, queries: Points) -> Weights:
        """Return 1/I for each repetition; where collisions are subtracted, for all its buckets."""
        others = self.layout.buckets - 1
        scale = (0.5 if self.layout.is_sides else 1.0) / self.count / 2**self.bits
        hashed = 0 if self.layout.family.signed else int((self.moves != 0).sum())
        values = np.array([[scale, scale / max(others, 1)]])
        return Weights(values, np.array([self.count, float(hashed * others)]))

    def response_norm(self, queries: Points) -> NDArray[np.float64]:
        """Return 1/√I; a little more where the bias of collisions is subtracted."""
        values, counts = self.weights(queries[:1])
        return np.full(len(queries), math.sqrt(float(values[0] ** 2 @ counts)))
