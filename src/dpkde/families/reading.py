"""Readings: linear functionals of a table, told axis by axis.

A share of a region, a marginal and a distribution function are all sums Σ_j w_j·table_j: the table
is the same as for a query, the weights are others. What is asked along an axis is one of three,

* `At` a place: the kernel there, as a query asks;
* `Over` an interval: the kernel's share in it, ∫ k(x − y) dy over ∫ k, one on the whole line;
* `Within` an interval: whether the record lies there, as well as the table can tell;

and a family turns it into weights along that axis. Over several axes weights multiply wherever f
and g are products: see `Separable`. Positions are in bandwidths, counted from the frame's origin.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpkde.privacy.laws.weights import Products, Weighting, Weights

Floats = NDArray[np.float64]
Told = TypeVar("Told", covariant=True)

_NUMBERS = 1 << 22
"""Most numbers held at a time."""
_ROWS = 256
"""Rows that are gathered at a time: where neighbours are alike, few cells have weights."""


class Axis(Protocol[Told]):
    """An axis of a family: what it makes of each kind of question."""

    def at(self, places: Floats) -> Told:
        """Return what it tells of the kernel at places."""

    def over(self, low: Floats, high: Floats, less: float | Floats) -> Told:
        """Return what it tells of the kernel's share in intervals, less a constant."""

    def within(self, low: Floats, high: Floats) -> Told:
        """Return what it tells of the records in intervals."""


class Asked(ABC):
    """What is asked along an axis: one entry for each row, or a single one for all of them."""

    @abstractmethod
    def of(self, axis: Axis[Told]) -> Told:
        """Return what an axis tells."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many there are."""

    @abstractmethod
    def part(self, rows: slice) -> Asked:
        """Return what is asked for some rows; what is asked for all of them stays so."""


@dataclass(frozen=True, eq=False)
class At(Asked):
    """The kernel at places."""

    places: Floats

    def of(self, axis: Axis[Told]) -> Told:
        """Ask for places."""
        return axis.at(self.places)

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.places)

    def part(self, rows: slice) -> At:
        """Return some places."""
        return At(_some(self.places, rows))


@dataclass(frozen=True, eq=False)
class Over(Asked):
    """The kernel's share in intervals, whose ends may be infinite; less a constant."""

    low: Floats
    high: Floats
    less: float | Floats = 0.0

    def of(self, axis: Axis[Told]) -> Told:
        """Ask for shares."""
        return axis.over(self.low, self.high, self.less)

    @property
    def rows(self) -> int:
        """How many there are."""
        return max(len(self.low), len(self.high))

    def part(self, rows: slice) -> Over:
        """Return some intervals."""
        less = self.less if np.ndim(self.less) == 0 else _some(np.asarray(self.less), rows)
        return Over(_some(self.low, rows), _some(self.high, rows), less)


@dataclass(frozen=True, eq=False)
class Within(Asked):
    """The records in intervals, whose ends may be infinite."""

    low: Floats
    high: Floats

    def of(self, axis: Axis[Told]) -> Told:
        """Ask for records."""
        return axis.within(self.low, self.high)

    @property
    def rows(self) -> int:
        """How many there are."""
        return max(len(self.low), len(self.high))

    def part(self, rows: slice) -> Within:
        """Return some intervals."""
        return Within(_some(self.low, rows), _some(self.high, rows))


def _some(values: Floats, rows: slice) -> Floats:
    return values if len(values) == 1 else values[rows]


def rows_of(asked: Sequence[Asked]) -> int:
    """Return how many rows are asked for: those of the axes that do not ask one thing for all."""
    counts = {entry.rows for entry in asked}
    return next(iter(counts - {1}), 1)


def to_the_bounds(low: Floats, high: Floats, half: float) -> tuple[Floats, Floats]:
    """Return intervals that go on forever where they reach the bounds: no record is beyond."""
    edge = half * (1 - 1e-12)
    return np.where(low <= -edge, -np.inf, low), np.where(high >= edge, np.inf, high)


WHOLE = Over(np.array([-math.inf]), np.array([math.inf]))
"""The whole line: every record has the share one."""


class Reading(ABC):
    """Weights over the cells of a table, one vector for each row of what was asked.

    The weights are in units of 1: a table in units of 2^−bits is read with that scale included.
    """

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def part(self, rows: slice) -> Reading:
        """Return the reading of some rows."""

    @abstractmethod
    def values(self, table: Floats) -> Floats:
        """Return Σ_j w_j·table_j for each row."""

    @abstractmethod
    def norms(self) -> Floats:
        """Return ‖w‖₂ for each row: noise of the sum over noise of a cell."""

    @abstractmethod
    def inner(self, other: Reading) -> Floats:
        """Return Σ_j w_j·w′_j with the weights of another reading of the same table."""

    @abstractmethod
    def weights(self) -> Weighting:
        """Return the weights that are not zero: what noise is multiplied with."""

    @property
    @abstractmethod
    def breadth(self) -> int:
        """How many numbers a row's weights take in memory."""

    @abstractmethod
    def gathered(self, coefficients: Floats) -> Reading:
        """Return one row: the sum of all rows, times a coefficient each."""

    def own_variance(self, table: Floats, noise: Floats) -> Floats:
        """Return the variance that random draws of the family add; none where nothing is drawn."""
        return np.zeros(len(self))

    def parts(self, numbers: int = _NUMBERS) -> Iterator[Reading]:
        """Yield the reading a few rows at a time, so that all weights of those can be held."""
        rows = max(1, numbers // max(self.breadth, 1))
        for start in range(0, len(self), rows):
            yield self.part(slice(start, start + rows))


class Factor(ABC):
    """Weights along one axis, one vector for each row or one for all of them."""

    size: int
    """How many cells the axis has."""
    shared: bool
    """Whether all rows have the same."""

    @abstractmethod
    def rows(self) -> Floats:
        """Return the weights, shape (n or 1, size)."""

    @abstractmethod
    def part(self, rows: slice) -> Factor:
        """Return those of some rows."""

    def dot(self, vector: Floats) -> Floats:
        """Return Σ_j w_j·vector_j for each row."""
        return self.rows() @ vector


@dataclass(frozen=True, eq=False)
class Stored(Factor):
    """Weights that are held."""

    values: Floats

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of cells."""
        return int(self.values.shape[1])

    @property
    def shared(self) -> bool:  # type: ignore[override]
        """Whether there is a single row."""
        return len(self.values) == 1

    def rows(self) -> Floats:
        """Return them."""
        return self.values

    def part(self, rows: slice) -> Factor:
        """Return some."""
        return self if self.shared else Stored(self.values[rows])


@dataclass(frozen=True, eq=False)
class Ones(Factor):
    """The weight one on each of many cells: every record counts the same."""

    size: int
    shared: bool = True

    def rows(self) -> Floats:
        """Return ones."""
        return np.ones((1, self.size))

    def part(self, rows: slice) -> Factor:
        """The same for all."""
        return self


@dataclass(frozen=True, eq=False)
class Made(Factor):
    """Weights that are made from a few numbers for each row when they are needed."""

    size: int
    arguments: tuple[Floats, ...]
    make: Callable[..., Floats]
    summed: Callable[..., Floats] | None = None
    """Returns `dot` from a vector and the arguments, where that needs no weights."""

    @property
    def shared(self) -> bool:  # type: ignore[override]
        """Whether there is a single row."""
        return all(len(argument) == 1 for argument in self.arguments)

    def rows(self) -> Floats:
        """Make them."""
        return self.make(*self.arguments)

    def part(self, rows: slice) -> Factor:
        """Return those of some rows."""
        if self.shared:
            return self
        cut = (a if len(a) == 1 else a[rows] for a in self.arguments)
        return replace(self, arguments=tuple(cut))

    def dot(self, vector: Floats) -> Floats:
        """Return the sums, the short way where there is one."""
        if self.summed is not None:
            return self.summed(vector, *self.arguments)
        rows = max(1, _NUMBERS // self.size)
        count = next(iter({len(argument) for argument in self.arguments} - {1}), 1)
        parts = (self.part(slice(start, start + rows)) for start in range(0, count, rows))
        return np.concatenate([np.empty(0), *(part.rows() @ vector for part in parts)])


@dataclass(frozen=True, eq=False)
class Separable(Reading):
    """Weights that are a product over axes, scale · w₁ ⊗ w₂ and so on.

    Attributes
    ----------
    count
        The number of rows.
    factors
        The weights along each axis.
    scale
        Of all weights.
    copies
        The table holds so many copies of the tensor, and the reading is their mean.
    arranged
        Brings one copy into the order of the factors; None: it is in that order.
    """

    count: int
    factors: tuple[Factor, ...]
    scale: float
    copies: int = 1
    arranged: Callable[[Floats], Floats] | None = None

    def __len__(self) -> int:
        return self.count

    def part(self, rows: slice) -> Separable:
        """Return the reading of some rows."""
        count = len(range(*rows.indices(self.count)))
        return replace(
            self, count=count, factors=tuple(factor.part(rows) for factor in self.factors)
        )

    def _tensor(self, table: Floats) -> Floats:
        """Return the mean of the copies, in the order of the factors."""
        copies = table.reshape(self.copies, -1)
        mean = copies[0] if self.copies == 1 else copies.mean(axis=0)
        return mean if self.arranged is None else self.arranged(mean)

    def values(self, table: Floats) -> Floats:
        """Return the sums: what all rows share is summed first, the rest axis by axis."""
        tensor = self._tensor(table).reshape([factor.size for factor in self.factors])
        own = [factor for factor in self.factors if not factor.shared]
        for axis in reversed(range(len(self.factors))):
            if self.factors[axis].shared:
                tensor = np.tensordot(tensor, self.factors[axis].rows()[0], axes=(axis, 0))
        if not own:
            return np.full(self.count, float(tensor) * self.scale)
        if len(own) == 1:
            return own[0].dot(tensor) * self.scale
        rest = max(tensor.size // own[0].size, *(factor.size for factor in own))
        step = max(1, _NUMBERS // rest)
        sums = [
            _contracted(tensor, [factor.part(slice(start, start + step)).rows() for factor in own])
            for start in range(0, self.count, step)
        ]
        return np.concatenate(sums)[:, 0] * self.scale if sums else np.empty(0)

    def norms(self) -> Floats:
        """Return the product of the factors' lengths; copies have noise of their own."""
        return np.sqrt(np.maximum(self.inner(self), 0.0))

    def inner(self, other: Reading) -> Floats:
        """Return the product of the factors' inner products."""
        assert isinstance(other, Separable)  # readings of one table
        total = np.full(self.count, self.scale * other.scale / self.copies)
        for mine, theirs in zip(self.factors, other.factors, strict=True):
            if isinstance(theirs, Ones) and not mine.shared:
                total *= mine.dot(np.ones(mine.size))
                continue
            step = max(1, _NUMBERS // mine.size)
            starts = range(0, 1 if mine.shared and theirs.shared else self.count, step)
            parts = [slice(start, start + step) for start in starts]
            products = [_inner(mine.part(part).rows(), theirs.part(part).rows()) for part in parts]
            total *= np.concatenate(products) if products else 1.0
        return total

    @cached_property
    def _packed(self) -> tuple[list[Floats], int]:
        """The factors without cells that no row weighs; and how many cells have each weight."""
        repeated, packed = self.copies, []
        for factor in self.factors:
            if isinstance(factor, Ones):
                repeated *= factor.size
                continue
            rows = factor.rows()
            packed.append(rows[:, rows.any(axis=0)])
        return packed, repeated

    @property
    def breadth(self) -> int:
        """The entries of all factors: products are not multiplied out."""
        return sum(factor.size for factor in self.factors)

    def weights(self) -> Weighting:
        """Return the factors, and how many cells have each product of them."""
        packed, repeated = self._packed
        scale = self.scale / self.copies
        if not packed or not all(factor.shape[1] for factor in packed):
            height = 0.0 if packed else scale
            return Weights(np.full((self.count, 1), height), np.array([float(repeated)]))
        rows = [np.broadcast_to(factor, (self.count, factor.shape[1])) for factor in packed]
        return Products.of([rows[0] * scale, *rows[1:]])._replace(repeated=float(repeated))

    def gathered(self, coefficients: Floats) -> Reading:
        """Return the sum of all rows: no longer a product."""
        size = self.factors[-1].size
        total = np.zeros((math.prod(factor.size for factor in self.factors[:-1]), size))
        rows = max(1, min(_ROWS, _NUMBERS // max(*total.shape, 1)))
        for start in range(0, self.count, rows):
            part = self.part(slice(start, start + rows))
            front = coefficients[start : start + rows, np.newaxis] * self.scale
            for factor in part.factors[:-1]:
                front = front[:, :, np.newaxis] * factor.rows()[:, np.newaxis]
                front = front.reshape(len(part), -1)
            used = np.flatnonzero(front.any(axis=0))
            last = np.broadcast_to(part.factors[-1].rows(), (len(part), size))
            total[used] += front[:, used].T @ last
        return Whole(total.reshape(1, -1), self.copies, self.arranged)


def _contracted(tensor: Floats, factors: Sequence[Floats]) -> Floats:
    """Return Σ tensor·(w₁ ⊗ w₂ ⊗ …) for each row, shape (n, numbers on the axes after those).

    Only where the first factor weighs anything.
    """
    first, *others = factors
    used = np.flatnonzero(first.any(axis=0))
    if not len(used):
        return np.zeros((len(first), math.prod(tensor.shape[len(factors) :])))
    near = slice(int(used[0]), int(used[-1]) + 1)
    sums = first[:, near] @ tensor[near].reshape(near.stop - near.start, -1)
    for factor in others:
        sums = sums.reshape(len(factor), factor.shape[1], -1)
        sums = np.einsum("nm,nmr->nr", factor, sums)
    return sums.reshape(len(first), -1)


def along(tensor: Floats, weights: Sequence[Floats], axis: int | None) -> Floats:
    """Return a tensor summed over all axes but one, with weights; shape (n or 1, size).

    `weights` has an array of shape (n or 1, size) for each axis; that of `axis` is not used. None:
    summed over all, shape (n or 1, 1).
    """
    if axis is not None:
        tensor = np.moveaxis(tensor, axis, -1)
        weights = [*weights[:axis], *weights[axis + 1 :]]
    for place in reversed(range(len(weights))):
        if len(weights[place]) == 1:
            tensor = np.tensordot(tensor, weights[place][0], axes=(place, 0))
    own = [rows for rows in weights if len(rows) > 1]
    if not own:
        return np.reshape(tensor, (1, -1))
    count = len(own[0])
    step = max(1, _NUMBERS // max(tensor.size // own[0].shape[1], *(rows.shape[1] for rows in own)))
    sums = [
        _contracted(tensor, [rows[start : start + step] for rows in own])
        for start in range(0, count, step)
    ]
    return np.concatenate(sums)


def _inner(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.einsum("nm,nm->n", *np.broadcast_arrays(a, b)))


@dataclass(frozen=True, eq=False)
class Whole(Reading):
    """Weights that are held for every cell, shape (n, cells): for a few rows."""

    cells: Floats
    copies: int = 1
    arranged: Callable[[Floats], Floats] | None = None

    def __len__(self) -> int:
        return len(self.cells)

    def part(self, rows: slice) -> Whole:
        """Return the reading of some rows."""
        return replace(self, cells=self.cells[rows])

    def values(self, table: Floats) -> Floats:
        """Return the sums."""
        copies = table.reshape(self.copies, -1)
        mean = copies[0] if self.copies == 1 else copies.mean(axis=0)
        ordered = mean if self.arranged is None else self.arranged(mean)
        return self.cells @ ordered.reshape(-1)

    def norms(self) -> Floats:
        """Return the lengths."""
        return np.sqrt(self.inner(self))

    def inner(self, other: Reading) -> Floats:
        """Return the inner products."""
        assert isinstance(other, Whole)  # readings of one table
        return _inner(self.cells, other.cells) / self.copies

    @property
    def breadth(self) -> int:
        """All cells."""
        return int(self.cells.shape[1])

    def weights(self) -> Weights:
        """Return those that are not zero."""
        used = self.cells[:, self.cells.any(axis=0)] / self.copies
        return Weights(used, np.full(used.shape[1], float(self.copies)))

    def gathered(self, coefficients: Floats) -> Reading:
        """Return the sum of all rows."""
        return replace(self, cells=(coefficients @ self.cells)[np.newaxis])
