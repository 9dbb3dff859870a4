"""Random partitions: laws of cells that x and y share with probability k(x, y).

================  ==========================================  ================================
law               cells                                       kernels
================  ==========================================  ================================
`RandomBins`      a grid with random pitches and shifts       mixtures of hats: Laplacian, hat
`PoissonPlanes`   a Poisson process of hyperplanes            ℓ_p exponentials
`BallCarving`     the first of many random balls              Erfc
`HalfSpaces`      the sides of a plane through the origin     geodesic
`MinHash`         the first element in a random order         Jaccard
`Combined`        those of all the parts, or of one drawn     products, mixtures
`Uncut`           none is known                               all others
================  ==========================================  ================================

A kernel names its law by `Kernel.partition`; `Hashing` brings a `Sketchpad`, on which the law draws
its cells, and asks what they cost. Draws are public randomness.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.kernels import stable

if TYPE_CHECKING:
    from dpkde.kernels.base import Kernel

Floats = NDArray[np.float64]
Repetitions = NDArray[np.int32]
CutT = TypeVar("CutT")

LEAST_NORM = 1.001
"""The least p above 1 that hyperplanes are drawn for: the closer to 1, the longer it takes."""
LARGEST_RADIUS = 1.625
"""In bandwidths: above the radius of the last of 2¹⁴ parts of equal probability."""
MOST_BALLS = 1 << 13
MOST_NUMBERS = 1 << 26
"""The most numbers that the cuts of a release may consist of, a quarter of a gigabyte."""
_NO_BOX = "are drawn in a box: give bounds, one (low, high) pair for each column"


@dataclass(frozen=True)
class Sketchpad(ABC, Generic[CutT]):
    """What cells are drawn on: public randomness, the box if there is one, and the axes.

    `reps` says in which repetitions. Lengths are in units of the frame.
    """

    generator: np.random.Generator
    halves: Floats | None
    dim: int

    def box(self, scales: Floats) -> Floats:
        """Return half the widths of the box, in the units of a part."""
        if self.halves is None:
            raise ParameterError(f"these cells {_NO_BOX}")
        return np.asarray(self.halves * scales)

    @abstractmethod
    def bins(self, reps: Repetitions, pitches: Floats) -> CutT:
        """Cut by grids of these pitches, shape (reps, dim), shifted at random."""

    @abstractmethod
    def planes(
        self, reps: Repetitions, counts: NDArray[np.int32], normals: Floats, offsets: Floats
    ) -> CutT:
        """Cut by hyperplanes, so many for each repetition."""

    @abstractmethod
    def balls(self, reps: Repetitions, scales: Floats) -> CutT:
        """Carve the box by balls of radius ½√Exp(1), in the units of a part."""

    @abstractmethod
    def least(self, reps: Repetitions) -> CutT:
        """Tell sets apart by their first element in a random order."""


class Partition(ABC):
    """A law of random cells. Halves are those of the box, in the kernel's bandwidths.

    Attributes
    ----------
    cost
        What a record takes, in a few words: I repetitions, d axes, a box of widths w.
    growth
        E m² is about growth·p² per axis, m the mass of a query's cell and E m = p its KDE: 1.5 for
        records spread evenly over bins with Gamma(2, 1) pitches.
    has_sides
        Whether there are two cells, the sides of a plane that is as likely as its mirror image.
    """

    growth: float = 1.5
    has_sides: ClassVar[bool] = False

    @property
    def cost(self) -> str:
        """What a record takes, in a few words."""
        return "I·d·Σw" if self.needs_box else "I·d"

    @property
    def needs_box(self) -> bool:
        """Whether cells exist in the declared box only."""
        return False

    def obstacle(self, halves: Floats | None) -> str | None:
        """Return why no cells can be drawn; None where they can."""
        return None

    @abstractmethod
    def draw(self, pad: Sketchpad[CutT], reps: Repetitions, scales: Floats) -> list[CutT]:
        """Return cuts for some repetitions; a unit of the frame is `scales` units of this law."""

    def cells(self, halves: Floats | None) -> float:
        """Return about how many cells a repetition has; infinity where nothing is known."""
        return 2.0 if self.has_sides else math.inf

    def squared_mass(self, halves: Floats | None, dim: int, density: float) -> float:
        """Return about E m²: records at few places, or in many dimensions, have up to p."""
        axes = float(dim if halves is None else (halves / (halves + 1)).sum())
        return float(min(density, density**2 * self.growth ** min(axes, 600.0)))

    def planes(self, halves: Floats | None) -> float:
        """Return about how many hyperplanes a repetition has, where it has some."""
        return 1.0 if halves is None else 1 + 2 * float(halves.sum())

    def nanoseconds(self, halves: Floats | None, dim: int) -> float:
        """Return what a record takes in a repetition, roughly."""
        return (1.5 + 0.1 * dim) * self.planes(halves) if self.needs_box else 0.3 * dim


@dataclass(frozen=True)
class Uncut(Partition):
    """No law is known, for a reason."""

    reason: str

    def obstacle(self, halves: Floats | None) -> str:
        """Return the reason."""
        return self.reason

    def draw(self, pad: Sketchpad[CutT], reps: Repetitions, scales: Floats) -> list[CutT]:
        """Raise ParameterError, for the reason."""
        raise ParameterError(self.reason)


@dataclass(frozen=True)
class RandomBins(Partition):
    """Grids of random pitches and shifts: k(x, y) = E ∏ max(0, 1 − |x_k − y_k|/δ_k).

    In one dimension that is every kernel that is convex and falls to zero on each side; the pitch δ
    then has the density δ·k″(δ).

    Parameters
    ----------
    pitches
        Called with a generator, a count and the number of axes, it draws the pitches δ, shape
        (count, dim), in bandwidths.
    growth
        See `Partition`: bins of one pitch have 1, and 1.2 is about what clustered records have.
    """

    pitches: Callable[[np.random.Generator, int, int], Floats]
    growth: float = 1.5

    def draw(self, pad: Sketchpad[CutT], reps: Repetitions, scales: Floats) -> list[CutT]:
        """Return the cut by grids, whose pitches are drawn first."""
        return [pad.bins(reps, self.pitches(pad.generator, len(reps), pad.dim) / scales)]

    def cells(self, halves: Floats | None) -> float:
        """Return ∏(w_k + 5), for pitches of about a bandwidth."""
        return math.inf if halves is None else math.exp(min(np.log(2 * halves + 5).sum(), 600.0))


@dataclass(frozen=True)
class PoissonPlanes(Partition):
    """Hyperplanes such that ‖x − y‖_p of them separate x and y on average, 1 < p ≤ 2."""

    p: float
    needs_box: ClassVar[bool] = True

    def obstacle(self, halves: Floats | None) -> str | None:
        """Return why not: p is so close to 1 that draws take long, or there is no box."""
        if self.p < LEAST_NORM:
            return f"hyperplanes are not drawn for p between 1 and {LEAST_NORM:g}: use p = 1"
        return f"hyperplanes {_NO_BOX}" if halves is None else None

    def draw(self, pad: Sketchpad[CutT], reps: Repetitions, scales: Floats) -> list[CutT]:
        """Return the cut by those planes of the process that meet the box."""
        halves, generator = pad.box(scales), pad.generator
        counts = generator.poisson(2 * halves.sum(), len(reps)).astype(np.int32)
        total = int(counts.sum(dtype=np.int64))
        if total * (pad.dim + 5) > MOST_NUMBERS:
            raise ParameterError(
                f"{len(reps)} repetitions of about {2 * halves.sum():.0f} hyperplanes each are too "
                "many: use fewer repetitions, a larger bandwidth, or family='fourier'"
            )
        normals = stable.symmetric(generator, self.p, (total, pad.dim))
        axis = generator.choice(pad.dim, size=total, p=halves / halves.sum())
        normals[np.arange(total), axis] = stable.size_biased(generator, self.p, total)
        normals = np.clip(np.nan_to_num(normals), -1e300, 1e300)
        normals /= np.abs(normals).max(axis=1, initial=1e-300, keepdims=True)
        spans = np.abs(normals) @ halves
        offsets = spans * (2 * generator.random(total) - 1)
        return [pad.planes(reps, counts, normals * scales, offsets)]


@dataclass(frozen=True)
class BallCarving(Partition):
    """A point's cell is the first of many random balls that holds it."""

    cost: ClassVar[str] = "I·∏(w + 3)·1.13^d"
    needs_box: ClassVar[bool] = True

    def obstacle(self, halves: Floats | None) -> str | None:
        """Return why not: there is no box, or the balls are too many."""
        if halves is None:
            return f"balls {_NO_BOX}"
        if balls_needed(halves) > MOST_BALLS:
            return (
                f"carving this box takes more than {MOST_BALLS} balls, a number that grows "
                "exponentially with the dimension: use family='fourier', which has no such limit"
            )
        return None

    def draw(self, pad: Sketchpad[CutT], reps: Repetitions, scales: Floats) -> list[CutT]:
        """Return the carving by balls."""
        return [pad.balls(reps, scales)]

    def nanoseconds(self, halves: Floats | None, dim: int) -> float:
        """Return what a twentieth of the balls take: so many are tried, on average."""
        needed = 0 if halves is None else balls_needed(halves)
        return 0.12 * (dim + 2) * needed / 20 + 10


@dataclass(frozen=True)
class HalfSpaces(Partition):
    """The two sides of a random plane through the origin."""

    has_sides: ClassVar[bool] = True

    def draw(self, pad: Sketchpad[CutT], reps: Repetitions, scales: Floats) -> list[CutT]:
        """Return the cut by one plane for each repetition."""
        normals = pad.generator.standard_normal((len(reps), pad.dim))
        return [pad.planes(reps, np.ones(len(reps), dtype=np.int32), normals, np.zeros(len(reps)))]


@dataclass(frozen=True)
class MinHash(Partition):
    """A set's cell is its first element in a random order. Most sets are rare: E m² is about p."""

    cost: ClassVar[str] = "I·size of the set"
    growth = math.inf

    def draw(self, pad: Sketchpad[CutT], reps: Repetitions, scales: Floats) -> list[CutT]:
        """Return the cut by the first elements in random orders."""
        return [pad.least(reps)]


@dataclass(frozen=True)
class Combined(Partition):
    """The cells of some kernels, intersected in each repetition.

    Parameters
    ----------
    kernels
        The parts.
    unit
        The bandwidth of the whole.
    turns
        Called with a generator and a count of repetitions, it draws which parts cut them, shape
        (parts, count). Where all do, chances multiply; where one does, they mix.
    """

    kernels: tuple[Kernel, ...]
    unit: float
    turns: Callable[[np.random.Generator, int], NDArray[np.bool_]]

    @property
    def cost(self) -> str:
        """The costs of all kinds of parts."""
        return " + ".join(dict.fromkeys(part.partition.cost for part in self.kernels))

    @property
    def needs_box(self) -> bool:
        """Whether a part does."""
        return any(part.partition.needs_box for part in self.kernels)

    def _scales(self, part: Kernel, dim: int) -> Floats:
        """Return how many bandwidths of a part a unit of the whole is, on each axis."""
        return np.asarray(part.bandwidth.whiten(np.ones((1, dim)))[0] * self.unit)

    def obstacle(self, halves: Floats | None) -> str | None:
        """Return the first obstacle of a part; a matrix, which turns the axes, is one."""
        for part in self.kernels:
            if part.bandwidth.is_matrix:
                return "a part of this kernel has a matrix for its bandwidth"
            inner = None if halves is None else halves * self._scales(part, len(halves))
            reason = part.partition.obstacle(inner)
            if reason is not None:
                return reason
        return None

    def draw(self, pad: Sketchpad[CutT], reps: Repetitions, scales: Floats) -> list[CutT]:
        """Return the cuts of the parts."""
        turns = self.turns(pad.generator, len(reps))
        return [
            cut
            for part, own in zip(self.kernels, turns, strict=True)
            if own.any()
            for cut in part.partition.draw(pad, reps[own], scales * self._scales(part, pad.dim))
        ]


def balls_needed(halves: NDArray[Any]) -> int:
    """Return how many balls leave a point of the box uncovered with probability e⁻²⁰ at most.

    A ball of radius ½√Exp(1) has volume (π/4)^{d/2} on average, out of the box that centers are
    drawn from, which is `LARGEST_RADIUS` wider on every side.
    """
    widths = 2 * (np.asarray(halves, dtype=np.float64) + LARGEST_RADIUS)
    log = float(np.log(widths).sum()) - len(widths) / 2 * math.log(math.pi / 4)
    return math.ceil(20 * math.exp(min(log, 40.0)))
