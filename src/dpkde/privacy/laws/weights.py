"""What noise at a query is weighted with, and what the law of the noise there needs to know of it.

That is the multiset of |g_j| alone: the `EXACT` largest one by one, power sums Σ g^{2k} of the
others, and the largest of those. Weights come one by one (`Weights`), or as the products of a
tensor (`Products`), of which there can be millions: there the largest are merged from axis to axis,
and power sums multiply. Both say the same, and `Products.dense` is the slow and obvious twin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpkde.privacy.laws.factors import TERMS

Floats = NDArray[np.float64]

EXACT = 64
"""So many of the largest weights are taken one by one."""


class Split(NamedTuple):
    """Squared weights: the largest of them on their own, and the others' sums.

    Attributes
    ----------
    squares, counts
        The largest weights squared, shape (n_queries, n), and how many cells have each, (n,).
    powers
        Σ g^{2k} of the others, k = 1, 2, …, shape (n_queries, `TERMS`).
    edge
        The largest of the others, squared, shape (n_queries,).
    """

    squares: Floats
    counts: Floats
    powers: Floats
    edge: Floats

    def split(self) -> Split:
        """Return itself: who asks several times splits once."""
        return self


class Splits(Protocol):
    """Anything that the law of the noise at queries can be told by."""

    def split(self) -> Split:
        """Return what the law of the noise depends on."""


class Weighting(Splits, Protocol):
    """The entries of g(y) that are not zero, over 2^bits; in any order, signs do not matter."""

    @property
    def numbers(self) -> int:
        """How many numbers a query takes in memory."""

    def dense(self) -> Weights:
        """Return all entries one by one."""


class Weights(NamedTuple):
    """Weights one by one.

    Attributes
    ----------
    values
        Shape (n_queries, n_weights), or (1, n_weights) where all queries have the same.
    counts
        Shape (n_weights,): how many cells have this weight.
    """

    values: Floats
    counts: Floats

    @property
    def numbers(self) -> int:
        """How many numbers a query takes in memory."""
        return int(self.values.shape[1])

    def split(self) -> Split:
        """Return the largest and the others' sums; where there are few, all of them."""
        # Queries that are not finite have no weights; their answers are NaN in any case.
        squares, counts = np.nan_to_num(self.values) ** 2, self.counts
        if squares.shape[1] <= 2 * EXACT:
            none = np.zeros((len(squares), TERMS))
            return Split(squares, counts, none, np.zeros(len(squares)))
        # Weights are many only where each belongs to as many cells as the others.
        ordered = np.partition(squares, squares.shape[1] - EXACT, axis=1)
        others = ordered[:, :-EXACT]
        powers, power = np.empty((len(squares), TERMS)), np.ones_like(others)
        for k in range(TERMS):
            power = power * others
            powers[:, k] = power.sum(axis=1) * counts[0]
        largest = np.ascontiguousarray(ordered[:, -EXACT:])
        return Split(largest, counts[:EXACT], powers, others.max(axis=1))

    def dense(self) -> Weights:
        """Return itself."""
        return self


class Products(NamedTuple):
    """Weights that are all products of one entry from each of several factors.

    Attributes
    ----------
    factors
        Shape (n_queries, n_factors, widest): the entries of each factor, and zeros behind them.
    sizes
        How many entries each factor has, shape (n_factors,).
    repeated
        How many cells have each product.
    """

    factors: Floats
    sizes: NDArray[np.int64]
    repeated: float = 1.0

    @classmethod
    def of(cls, factors: Sequence[Floats]) -> Products:
        """Return the products of factors of shape (n_queries, size) each."""
        sizes = np.array([factor.shape[1] for factor in factors], dtype=np.int64)
        padded = np.zeros((len(factors[0]), len(factors), int(sizes.max())))
        for k, factor in enumerate(factors):
            padded[:, k, : sizes[k]] = factor
        return cls(padded, sizes)

    @property
    def numbers(self) -> int:
        """How many numbers a query takes in memory: not the product, nearly the sum."""
        return int(self.factors.shape[1] * self.factors.shape[2]) + EXACT + TERMS

    def split(self) -> Split:
        """Return the same as `dense().split()`, without the products; see `merging`."""
        from dpkde.privacy.laws import merging

        count = len(self.factors)
        squares, powers = np.zeros((count, EXACT)), np.zeros((count, TERMS))
        edge = np.zeros(count)
        merging.split(np.nan_to_num(self.factors) ** 2, self.sizes, squares, powers, edge)
        return Split(squares, np.full(EXACT, self.repeated), powers * self.repeated, edge)

    def dense(self) -> Weights:
        """Return all products."""
        rows = np.ones((len(self.factors), 1))
        for factor, size in zip(self.factors.swapaxes(0, 1), self.sizes, strict=True):
            rows = (rows[:, :, np.newaxis] * factor[:, np.newaxis, :size]).reshape(len(rows), -1)
        return Weights(rows, np.full(rows.shape[1], self.repeated))
