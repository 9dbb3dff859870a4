"""Kernels of things that are not vectors of measurements: directions, and sets."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dpkde.errors import ParameterError
from dpkde.kernels.bandwidth import Bandwidth, Points
from dpkde.kernels.base import Floats, Kernel, distances
from dpkde.kernels.partitions import HalfSpaces, MinHash, Partition


@dataclass(frozen=True)
class _Unscaled(Kernel):
    """A kernel without parameters: it has no bandwidth to set."""

    bandwidth: Bandwidth = field(
        default=Bandwidth((1.0,), is_scalar=True), init=False, repr=False, compare=False
    )


@dataclass(frozen=True)
class Geodesic(_Unscaled):
    """k(x, y) = 1 − θ/π, θ the angle between x and y.

    Lives on the sphere: records are divided by their length, and the zero vector contributes
    nothing. Bounds are `Sphere`, or None. Two independent directions have k = ½, opposite ones 0.

    Examples
    --------
    >>> float(Geodesic().evaluate(np.array([[1.0, 0.0]]), np.array([[0.0, 5.0]]))[0, 0])
    0.5
    """

    name: ClassVar[str] = "geodesic"
    home: ClassVar[str] = "sphere"
    partition: ClassVar[Partition] = HalfSpaces()

    def evaluate(self, points: Points, queries: Points) -> Floats:
        """Return 1 − θ/π, shape (n_points, n_queries); 0 with the zero vector. O(n·q·d)."""
        (x, some_x), (y, some_y) = _directions(points), _directions(queries)
        apart, opposed = distances(x, y, 2), distances(x, -y, 2)
        angle = 2 * np.arctan2(np.sqrt(apart), np.sqrt(opposed))
        return np.asarray((1 - angle / math.pi) * np.multiply.outer(some_x, some_y))

    def lipschitz(self, dim: int) -> float:
        """Return ½: θ is at most π/2 times the distance, for y of length one, and k = 1 − θ/π."""
        return 0.5

    def integral(self, dim: int) -> float:
        """Return half the area of the unit sphere."""
        return math.exp(dim / 2 * math.log(math.pi) - math.lgamma(dim / 2))


def _directions(rows: Points) -> tuple[Points, Floats]:
    """Return rows of length one, and which rows had a length."""
    largest = np.abs(rows).max(axis=1, initial=0.0)
    some = largest > 0
    scaled = rows / np.where(some, largest, 1.0)[:, np.newaxis]
    lengths = np.sqrt(np.square(scaled).sum(axis=1))
    return scaled / np.where(some, lengths, 1.0)[:, np.newaxis], some.astype(np.float64)


@dataclass(frozen=True)
class Jaccard(_Unscaled):
    """k(A, B) = |A ∩ B|/|A ∪ B|, for sets; 1 for two empty ones.

    A row has one column for each element of the universe, not zero where the element is in the
    set. Bounds are ``Sets(universe)``, or None where the width of the rows tells it.

    Examples
    --------
    >>> float(Jaccard().evaluate(np.array([[1.0, 1, 0]]), np.array([[0.0, 1, 1]]))[0, 0].round(6))
    0.333333
    """

    name: ClassVar[str] = "jaccard"
    home: ClassVar[str] = "sets"
    partition: ClassVar[Partition] = MinHash()

    def evaluate(self, points: Points, queries: Points) -> Floats:
        """Return |A ∩ B|/|A ∪ B|, shape (n_points, n_queries). O(n·q·universe)."""
        a, b = (points != 0).astype(np.float64), (queries != 0).astype(np.float64)
        both = a @ b.T
        either = np.add.outer(a.sum(axis=1), b.sum(axis=1)) - both
        return np.asarray(np.divide(both, either, out=np.ones_like(both), where=either > 0))

    def integral(self, dim: int) -> float:
        """Raise ParameterError: sums over all sets differ from set to set."""
        raise ParameterError("the Jaccard kernel has no normalising constant: use kde, not density")
