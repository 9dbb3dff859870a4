"""Linear operators on tables that are known by a few numbers an axis: forms of whole tables.

A table of millions of cells has quadratic forms δᵀMδ, traces and Frobenius norms all the same: M is
a Kronecker product over axes, or diagonal. Nothing here is ever written out as a matrix of all
cells against all cells.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Operator(ABC):
    """A matrix M from one table to another, or to the same."""

    @abstractmethod
    def apply(self, table: Floats) -> Floats:
        """Return M·table."""

    @property
    @abstractmethod
    def transposed(self) -> Operator:
        """Mᵀ."""

    @property
    @abstractmethod
    def trace(self) -> float:
        """The sum of M_ii, of a square one."""

    @property
    @abstractmethod
    def squares(self) -> float:
        """Σ M_ij²."""

    @property
    @abstractmethod
    def diagonal_squares(self) -> float:
        """Σ M_ii², of a square one."""


@dataclass(frozen=True, eq=False)
class Diagonal(Operator):
    """M = diag(weights) on the first cells of each row of a table, zero on its others.

    Tables have shape (rows, length), flattened; `columns` and `target` are the lengths of those
    that come in and go out.
    """

    weights: Floats
    rows: int
    columns: int
    target: int

    def apply(self, table: Floats) -> Floats:
        """Return the weighted cells."""
        answers = np.zeros((self.rows, self.target))
        size = len(self.weights)
        answers[:, :size] = table.reshape(self.rows, self.columns)[:, :size] * self.weights
        return answers.reshape(-1)

    @property
    def transposed(self) -> Diagonal:
        """The same, the other way."""
        return Diagonal(self.weights, self.rows, self.target, self.columns)

    @property
    def trace(self) -> float:
        """Σ weights over all rows."""
        return self.rows * float(self.weights.sum())

    @property
    def squares(self) -> float:
        """Σ weights² over all rows."""
        return self.rows * float((self.weights**2).sum())

    @property
    def diagonal_squares(self) -> float:
        """The same."""
        return self.squares


class Factor(ABC):
    """One axis of a Kronecker product: `shape` is (going out, coming in)."""

    shape: tuple[int, int]

    @abstractmethod
    def along(self, table: Floats, axis: int) -> Floats:
        """Return the table with this axis transformed."""

    @property
    @abstractmethod
    def transposed(self) -> Factor:
        """The other way."""

    @property
    @abstractmethod
    def diagonal(self) -> Floats:
        """The entries M_ii."""

    @property
    @abstractmethod
    def squares(self) -> float:
        """Σ M_ij²."""


@dataclass(frozen=True, eq=False)
class Dense(Factor):
    """A matrix of a few thousand rows at most."""

    matrix: Floats

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """That of the matrix."""
        return self.matrix.shape[0], self.matrix.shape[1]

    def along(self, table: Floats, axis: int) -> Floats:
        """Return the product along an axis."""
        return np.moveaxis(np.tensordot(self.matrix, table, axes=(1, axis)), 0, axis)

    @property
    def transposed(self) -> Dense:
        """Its transpose."""
        return Dense(self.matrix.T)

    @property
    def diagonal(self) -> Floats:
        """Its diagonal."""
        return np.diagonal(self.matrix)

    @property
    def squares(self) -> float:
        """Σ M_ij²."""
        return float((self.matrix**2).sum())


@dataclass(frozen=True, eq=False)
class Toeplitz(Factor):
    """M_ij = sequence[|i − j|], zero beyond its end: O(n log n) for n cells."""

    sequence: Floats
    size: int

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Square."""
        return self.size, self.size

    @property
    def _kept(self) -> Floats:
        return self.sequence[: self.size]

    def along(self, table: Floats, axis: int) -> Floats:
        """Return the convolution along an axis, with zeros beyond its ends."""
        from scipy.signal import oaconvolve

        kept = self._kept
        shape = [1] * table.ndim
        shape[axis] = 2 * len(kept) - 1
        both = np.concatenate([kept[:0:-1], kept]).reshape(shape)
        full = oaconvolve(table, both, mode="full", axes=axis)
        middle = slice(len(kept) - 1, len(kept) - 1 + self.size)
        return np.asarray(full[(slice(None),) * axis + (middle,)])

    @property
    def transposed(self) -> Toeplitz:
        """Itself: it is symmetric."""
        return self

    @property
    def diagonal(self) -> Floats:
        """sequence[0] everywhere."""
        return np.full(self.size, self.sequence[0])

    @property
    def squares(self) -> float:
        """Σ_m (n − |m|)·sequence[m]²."""
        kept = self._kept
        repeats = 2.0 * (self.size - np.arange(len(kept)))
        repeats[0] = self.size
        return float(repeats @ kept**2)


@dataclass(frozen=True, eq=False)
class Kronecker(Operator):
    """M = scale · M₁ ⊗ … ⊗ M_A, on tables in row-major order."""

    factors: tuple[Factor, ...]
    scale: float = 1.0

    def apply(self, table: Floats) -> Floats:
        """Return M·table, one axis after the other."""
        values = table.reshape([factor.shape[1] for factor in self.factors]) * self.scale
        for axis, factor in enumerate(self.factors):
            values = factor.along(values, axis)
        return np.ascontiguousarray(values).reshape(-1)

    @property
    def transposed(self) -> Kronecker:
        """Each axis transposed."""
        return Kronecker(tuple(factor.transposed for factor in self.factors), self.scale)

    @property
    def trace(self) -> float:
        """The product of traces."""
        traces = (float(factor.diagonal.sum()) for factor in self.factors)
        return self.scale * math.prod(traces)

    @property
    def squares(self) -> float:
        """The product of the axes' sums."""
        return self.scale**2 * math.prod(factor.squares for factor in self.factors)

    @property
    def diagonal_squares(self) -> float:
        """The product of the axes' sums."""
        sums = (float((factor.diagonal**2).sum()) for factor in self.factors)
        return self.scale**2 * math.prod(sums)
