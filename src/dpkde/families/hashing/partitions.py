"""Random partitions for each kernel: which cuts make two points share a cell as often as k says.

A product of kernels adds the cuts of all its parts, a mixture gives each repetition to one part.
Draws are public randomness; the reasons are in ``proof.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.hashing.cuts import (
    COARSEST,
    FINEST,
    MOST_BALLS,
    MOST_NUMBERS,
    RADIUS_BITS,
    Balls,
    Bins,
    Cut,
    Grid,
    Least,
    Planes,
    balls_needed,
)
from dpkde.kernels import (
    BinnedKernel,
    Erfc,
    ExponentialLp,
    Geodesic,
    Hat,
    Jaccard,
    Kernel,
    Mixture,
    Product,
    is_binned,
    stable,
)
from dpkde.space.frame import Frame

LEAST_NORM = 1.001
"""The least p above 1 that hyperplanes are drawn for: the closer to 1, the longer it takes."""
MOST_REPETITIONS = 1 << 14
"""Most repetitions chosen without being asked."""
MOST_NANOSECONDS = 2e5
"""Most time a record may take where repetitions are chosen."""


def obstacle(kernel: Kernel, halves: NDArray[np.float64] | None) -> str | None:
    """Return why no cut serves a kernel; None where one does. Halves are in its bandwidths."""
    if isinstance(kernel, (Product, Mixture)):
        for part in kernel.kernels:
            if part.bandwidth.is_matrix:
                return "a part of this kernel has a matrix for its bandwidth"
            inner = None if halves is None else halves * _scales(kernel, part, len(halves))
            found = obstacle(part, inner)
            if found is not None:
                return found
        return None
    if is_binned(kernel) or isinstance(kernel, (Geodesic, Jaccard)):
        return None
    if isinstance(kernel, ExponentialLp) and kernel.p > 1:
        if kernel.p < LEAST_NORM:
            return f"hyperplanes are not drawn for p between 1 and {LEAST_NORM:g}: use p = 1"
        if kernel.power != 1:
            return "of the exponential-lp kernels with p above 1 only those of power 1 have a hash"
        if halves is None:
            return (
                "hyperplanes are drawn in a box: give bounds, one (low, high) pair for each column"
            )
        return None
    if isinstance(kernel, Erfc):
        if halves is None:
            return "balls are drawn in a box: give bounds, one (low, high) pair for each column"
        if balls_needed(halves) > MOST_BALLS:
            return (
                f"carving this box takes more than {MOST_BALLS} balls, a number that grows "
                "exponentially with the dimension: use family='fourier', which has no such limit"
            )
        return None
    return f"the {kernel.name} kernel has no hash"


def cost(kernel: Kernel) -> str:
    """Return what a record takes, in a few words: I repetitions, d axes, a box of widths w."""
    if isinstance(kernel, (Product, Mixture)):
        return " + ".join(dict.fromkeys(cost(part) for part in kernel.kernels))
    if isinstance(kernel, Erfc):
        return "I·∏(w + 3)·1.13^d"
    if isinstance(kernel, Jaccard):
        return "I·size of the set"
    return "I·d·Σw" if needs_box(kernel) else "I·d"


def needs_box(kernel: Kernel) -> bool:
    """Tell whether cells exist in the declared box only."""
    if isinstance(kernel, (Product, Mixture)):
        return any(needs_box(part) for part in kernel.kernels)
    return isinstance(kernel, Erfc) or (isinstance(kernel, ExponentialLp) and kernel.p > 1)


def _scales(whole: Kernel, part: Kernel, dim: int) -> NDArray[np.float64]:
    """Return how many bandwidths of a part a unit of the whole is, on each axis."""
    return np.asarray(part.bandwidth.whiten(np.ones((1, dim)))[0] * whole.bandwidth.smallest())


@dataclass(frozen=True)
class Sketchpad:
    """What cuts are drawn from: public randomness, the box if there is one, and the axes."""

    generator: np.random.Generator
    halves: NDArray[np.float64] | None
    dim: int

    def words(self, *shape: int) -> NDArray[np.int32]:
        """Draw 32-bit words."""
        return self.generator.integers(-(1 << 31), 1 << 31, shape, dtype=np.int32)

    def cut(
        self, kernel: Kernel, reps: NDArray[np.int32], scales: NDArray[np.float64]
    ) -> list[Cut]:
        """Draw the cuts of a kernel for some repetitions; `scales` as in `_scales`."""
        if isinstance(kernel, Product):
            return [
                cut
                for part in kernel.kernels
                for cut in self.cut(part, reps, scales * _scales(kernel, part, self.dim))
            ]
        if isinstance(kernel, Mixture):
            owners = kernel.owners(self.generator, len(reps))
            return [
                cut
                for i, part in enumerate(kernel.kernels)
                if (owners == i).any()
                for cut in self.cut(
                    part, reps[owners == i], scales * _scales(kernel, part, self.dim)
                )
            ]
        if isinstance(kernel, BinnedKernel) and is_binned(kernel):
            return [self._bins(kernel, reps, scales)]
        if isinstance(kernel, ExponentialLp):
            return [self._poisson(kernel.p, reps, scales)]
        if isinstance(kernel, Erfc):
            assert self.halves is not None
            box = np.array([self.halves * scales, scales], dtype=np.float32)
            levels = (np.arange(1 << RADIUS_BITS) + 0.5) / (1 << RADIUS_BITS)
            squares = (-np.log(levels) / 4).astype(np.float32)
            return [Balls(reps, self.words(len(reps)), box, squares)]
        if isinstance(kernel, Geodesic):
            normals = self.generator.standard_normal((len(reps), self.dim)).astype(np.float32)
            ones = np.ones(len(reps), dtype=np.int32)
            zeros = np.zeros(len(reps), dtype=np.float32)
            return [Planes(reps, ones, normals, zeros, self.words(len(reps)))]
        assert isinstance(kernel, Jaccard)
        orders, words = self.words(2, len(reps))
        return [Least(reps, orders, words)]

    def _bins(
        self, kernel: BinnedKernel, reps: NDArray[np.int32], scales: NDArray[np.float64]
    ) -> Cut:
        pitches = kernel.pitches(self.generator, len(reps), self.dim) / scales
        pitches = np.clip(np.nan_to_num(pitches, nan=COARSEST), FINEST, COARSEST)
        shifts = self.generator.random(pitches.shape).astype(np.float32)
        rates = (1 / pitches).astype(np.float32)
        return Bins(reps, rates, shifts, self.words(*pitches.shape))

    def _poisson(self, p: float, reps: NDArray[np.int32], scales: NDArray[np.float64]) -> Cut:
        assert self.halves is not None
        halves = self.halves * scales
        counts = self.generator.poisson(2 * halves.sum(), len(reps)).astype(np.int32)
        total = int(counts.sum(dtype=np.int64))
        if total * (self.dim + 5) > MOST_NUMBERS:
            raise ParameterError(
                f"{len(reps)} repetitions of about {2 * halves.sum():.0f} hyperplanes each are too "
                "many: use fewer repetitions, a larger bandwidth, or family='fourier'"
            )
        normals = stable.symmetric(self.generator, p, (total, self.dim))
        axis = self.generator.choice(self.dim, size=total, p=halves / halves.sum())
        normals[np.arange(total), axis] = stable.size_biased(self.generator, p, total)
        normals = np.clip(np.nan_to_num(normals), -1e300, 1e300)
        normals /= np.abs(normals).max(axis=1, initial=1e-300, keepdims=True)
        spans = np.abs(normals) @ halves
        offsets = spans * (2 * self.generator.random(total) - 1)
        return Planes(
            reps,
            counts,
            (normals * scales).astype(np.float32),
            offsets.astype(np.float32),
            self.words(total),
        )


def numbered(
    cuts: list[Cut], halves: NDArray[np.float64] | None, buckets: int
) -> tuple[list[Cut], NDArray[np.int32]]:
    """Number the cells of repetitions that have at most so many, where there is a single cut.

    Returns the cuts, and the repetitions whose keys are now numbers of cells.
    """
    if len(cuts) == 1 and isinstance(cuts[0], Bins) and halves is not None:
        cut = cuts[0]
        rates, shifts = cut.rates.astype(np.float64), cut.shifts.astype(np.float64)
        first = np.floor(-halves * rates + shifts)
        # A cell before the first and one behind the last, where queries outside may lie, and one
        # more on each side for coordinates that rounding puts there.
        counts = np.floor(halves * rates + shifts) - first + 5
        with np.errstate(over="ignore"):
            few = np.prod(counts, axis=1) <= buckets
        moved = (shifts - first + 2).astype(np.float32)
        sizes, rest = np.where(few[:, np.newaxis], counts, 1).astype(np.int32), ~few
        parts: list[Cut] = [
            Grid(cut.reps[few], cut.rates[few], moved[few], sizes[few]),
            Bins(cut.reps[rest], cut.rates[rest], cut.shifts[rest], cut.words[rest]),
        ]
        return [part for part in parts if len(part.reps)], cut.reps[few]
    if len(cuts) == 1 and isinstance(cuts[0], Planes):
        planes = cuts[0]
        few = planes.counts < buckets.bit_length()
        starts = np.cumsum(planes.counts) - planes.counts
        order = np.arange(len(planes.words)) - np.repeat(starts, planes.counts)
        kept = np.where(np.repeat(few, planes.counts), 1 << np.minimum(order, 30), planes.words)
        return [replace(planes, words=kept.astype(np.int32))], planes.reps[few]
    return cuts, np.zeros(0, dtype=np.int32)


def _widths(frame: Frame) -> NDArray[np.float64] | None:
    halves = frame.halves()
    return None if halves is None else 2 * halves


def cells_expected(frame: Frame) -> float:
    """Return about how many cells a repetition has; infinitely many where there is no box."""
    widths = _widths(frame)
    if isinstance(frame.kernel, Geodesic):
        return 2.0
    if widths is None or not is_binned(frame.kernel):
        return math.inf
    return float(np.exp(np.minimum(np.log(widths + 5).sum(), 600.0)))


def squared_mass(frame: Frame, density: float) -> float:
    """Return about E m², m the mass of the query's cell, E m = p its KDE.

    Records spread evenly over bins with Gamma(2, 1) pitches have E m² = 1.5·p² an axis; over bins
    of one pitch p², and 1.2·p² is about what clustered ones have. Records at few places, or in
    many dimensions, have up to p.
    """
    if isinstance(frame.kernel, Jaccard):
        return density
    widths = _widths(frame)
    axes = float(frame.dim if widths is None else (widths / (widths + 2)).sum())
    growth = 1.2 if isinstance(frame.kernel, Hat) else 1.5
    return float(min(density, density**2 * growth ** min(axes, 600.0)))


def most_repetitions(frame: Frame) -> int:
    """Return how many repetitions keep time and the size of the release in bounds."""
    numbers = 1.0
    if needs_box(frame.kernel):
        numbers = planes_expected(frame) * frame.dim
    quick = MOST_NANOSECONDS / (5 + nanoseconds(frame))
    return max(1, min(MOST_REPETITIONS, int((1 << 22) / numbers), int(quick)))


def planes_expected(frame: Frame) -> float:
    """Return about how many hyperplanes a repetition has, for kernels that are cut by them."""
    halves = frame.halves()
    return 1.0 if halves is None else 1 + 2 * float(halves.sum())


def nanoseconds(frame: Frame) -> float:
    """Return what a record takes in a repetition, roughly."""
    halves = frame.halves()
    if halves is None or not needs_box(frame.kernel):
        return 0.3 * frame.dim
    if isinstance(frame.kernel, Erfc):
        return 0.12 * (frame.dim + 2) * balls_needed(halves) / 20 + 10
    return (1.5 + 0.1 * frame.dim) * planes_expected(frame)
