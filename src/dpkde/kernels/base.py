"""What the library asks of a kernel: exact values, and what families draw from.

A kernel is a frozen value. Its bandwidth is what one unit of distance means; `Bandwidth.whiten`
divides by it, and everything after that works in bandwidth units, where the bandwidth is one.

What more a kernel can say of itself has an answer here that stands where nothing is known. Nothing
else in the library tells kernels apart.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.kernels.bandwidth import Bandwidth, BandwidthLike, Points
from dpkde.kernels.blur import Blur
from dpkde.kernels.partitions import Partition, Uncut

Floats = NDArray[np.float64]
Json = Mapping[str, Any]

_FARTHEST = 4096.0
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(8)


class Kernel(ABC):
    """What the library asks of a kernel. For a frozen dataclass two methods are enough to be one.

    Attributes
    ----------
    name, version
        What a release file calls it. The version is 1 until the kernel computes something else.
    bandwidth
        What one unit of distance means.
    is_gaussian
        Whether it is e^{−t²} on each axis, in bandwidth units: `FastGauss` serves it.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    is_gaussian: ClassVar[bool] = False
    bandwidth: Bandwidth

    @abstractmethod
    def evaluate(self, points: Points, queries: Points) -> Floats:
        """Return k(x, y), shape (n_points, n_queries), exactly as the formula says."""

    @abstractmethod
    def integral(self, dim: int) -> float:
        """Return ∫ k(x, y) dx over the whole space: what turns a KDE into a density.

        ParameterError where it is infinite, or depends on y.
        """

    def written_integral(self, dim: int) -> float:
        """Return the same; ParameterError where it is beyond the numbers, by many columns."""
        try:
            integral = self.integral(dim)
        except OverflowError:
            integral = math.inf
        if not 0 < integral < math.inf:
            raise ParameterError(
                f"densities over {dim} columns in these units are beyond the numbers that can be "
                "written: ask kde, which is the density times the kernel's integral"
            )
        return integral

    def log_integral(self, dim: int) -> float:
        """Return its logarithm; ParameterError where there is no formula and no number either."""
        return math.log(self.written_integral(dim))

    def to_json(self) -> dict[str, Any]:
        """Return the parameters, without the name: by default, the arguments of the dataclass."""
        names = [field.name for field in fields(cast("Any", self)) if field.init]
        values = {name: getattr(self, name) for name in names}
        return values | {name: self.bandwidth.to_json() for name in names if name == "bandwidth"}

    def along(self, axes: Sequence[int]) -> Kernel:
        """Return the kernel of some axes, where it is a product over axes and no matrix."""
        bandwidth = self.bandwidth
        if bandwidth.is_scalar:
            return self
        kept = [bandwidth.value[axis] for axis in axes]
        return type(self)(**(self.to_json() | {"bandwidth": kept}))

    def scaled(self, factor: float) -> Self:
        """Return this kernel with a bandwidth that is `factor` times its own.

        >>> from dpkde import Gaussian
        >>> Gaussian([1, 2]).scaled(0.5)
        Gaussian(bandwidth=[0.5, 1.0])
        """
        return self.with_bandwidth(self.bandwidth.scaled(factor))

    def with_bandwidth(self, bandwidth: Bandwidth | BandwidthLike) -> Self:
        """Return this kernel with another bandwidth.

        >>> from dpkde import Gaussian
        >>> Gaussian("auto").with_bandwidth(0.5)
        Gaussian(bandwidth=0.5)
        """
        if not any(field.init and field.name == "bandwidth" for field in fields(cast("Any", self))):
            raise ParameterError(f"the {self.name} kernel has no bandwidth to set")
        changed = {"bandwidth": Bandwidth.of(bandwidth)}
        return cast("Self", replace(cast("Any", self), **changed))

    @property
    def home(self) -> str:
        """Where it lives: ``"space"``, ``"sphere"`` or ``"sets"``."""
        return "space"

    @property
    def dim(self) -> int | None:
        """The number of axes that it prescribes; None for any number."""
        return self.bandwidth.dim

    def lipschitz(self, dim: int) -> float:
        """Return L with |k(x, y) − k(x, y′)| ≤ L‖y − y′‖₂; infinity where no L is known.

        Distances are Euclidean, in bandwidth units; directions y have length one.
        """
        return math.inf

    def modulus(self, dim: int, step: float) -> float:
        """Return how much k(x, y) can change where coordinates of x − y move by `step` at most.

        By the Lipschitz constant, or by positive definiteness: |k(a) − k(b)|² ≤ 2(1 − k(a − b)).
        """
        steep = self.lipschitz(dim) * math.sqrt(dim) * step
        scale = np.array(self.bandwidth.value)
        apart = (
            step * np.ones((1, dim)) * (scale.sum(axis=1) if self.bandwidth.is_matrix else scale)
        )
        similarity = float(self.evaluate(apart, np.zeros((1, dim)))[0, 0])
        return min(steep, math.sqrt(max(2 * (1 - similarity), 0.0)), 1.0)

    @property
    def fades(self) -> bool:
        """Whether k(2Δ) ≤ k(Δ) is known: it falls along every ray, and is not negative."""
        return False

    @property
    def is_positive_definite(self) -> bool:
        """Whether it is known to be, with k(x, x) = 1. A spectrum makes it so, and so do cells."""
        return self.is_shift_invariant or not isinstance(self.partition, Uncut)

    @property
    def is_shift_invariant(self) -> bool:
        """Whether it has a spectrum: `Fourier` serves it."""
        return type(self).spectrum is not Kernel.spectrum

    def spectrum(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Return frequencies ω, shape (count, dim), in radians per bandwidth unit.

        They satisfy E cos ω·(x − y) = k(x, y) for x and y in bandwidth units.
        """
        raise ParameterError(f"the {self.name} kernel has no spectrum to draw frequencies from")

    @property
    def is_product(self) -> bool:
        """Whether it is a product over axes: `Spline` serves it."""
        return False

    @property
    def shape(self) -> ProductKernel:
        """The same product with a bandwidth of one: all that matters on an axis.

        What is computed in bandwidth units is cached under it, for all bandwidths at once.
        """
        raise ParameterError(f"this {self.name} kernel is not a product over axes")

    def blur(self, dim: int) -> Blur | None:
        """Return how it averages over normal clouds; None where there is no formula.

        `dpkde.assisted` needs it. In bandwidth units.
        """
        return None

    def draw(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Return offsets drawn from k/∫k, shape (count, dim), in bandwidth units.

        Points of a smoothed density are those of its measure, moved by such offsets.
        """
        raise ParameterError(f"the {self.name} kernel cannot be drawn from")

    @property
    def partition(self) -> Partition:
        """The law of cells that x and y share with probability k(x, y): `Hashing` draws them."""
        return Uncut(f"the {self.name} kernel has no hash")


class ProductKernel(Kernel):
    """A kernel that is a product over axes: k(x, y) = ∏ profile(x_k − y_k) in bandwidth units.

    Fits are cached by kernel: it has a hash, as every frozen dataclass does.
    """

    def evaluate(self, points: Points, queries: Points) -> Floats:
        """Return ∏ profile((B⁻¹(x − y))_k), shape (n_points, n_queries). O(n·q·d)."""
        x, y = whitened(self, points, queries)
        offsets = (np.subtract.outer(x[:, k], y[:, k]) for k in range(x.shape[1]))
        return np.asarray(math.prod(map(self.profile, offsets)))

    @property
    def is_product(self) -> bool:
        """Whether it is one: for some kernels that depends on a parameter."""
        return True

    @property
    def shape(self) -> ProductKernel:
        """The kernel itself."""
        return self

    @property
    def is_smooth(self) -> bool:
        """Whether the profile is known to have no kink at zero."""
        return False

    @abstractmethod
    def profile(self, offsets: Floats) -> Floats:
        """Return the factor of one axis: even, at most 1, and 1 at zero."""

    def log_profile(self, offsets: Floats) -> Floats:
        """Return ln profile: −∞ where that is zero, or, without a formula, too small a number."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.profile(offsets)))

    @property
    def profile_integral(self) -> float:
        """∫ profile(t) dt: what an axis adds to `integral`, in bandwidth units."""
        return self.integral(1) / self.bandwidth.determinant(1)

    @abstractmethod
    def profile_reach(self, tolerance: float) -> float:
        """Return the distance beyond which the profile is below `tolerance`."""

    def profile_transform(self, frequencies: Floats) -> Floats:
        """Return ∫ profile(t) cos ωt dt over the whole line; by quadrature, without a formula."""
        return cosine_transform(self, frequencies, _FARTHEST)

    def draw(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Return offsets drawn from k/∫k, axis by axis; for a profile without a formula by panels.

        A panel of quadrature is drawn by its mass, a place in it by rejection: exact where the
        profile falls from the origin, and for others where it peaks at no point between Gauss's.
        """
        return rejected(self, generator, count * dim).reshape(count, dim)


def rejected(kernel: ProductKernel, generator: np.random.Generator, count: int) -> Floats:
    """Return draws from a profile, each with a random sign."""
    edges = graded(min(kernel.profile_reach(1e-12), _FARTHEST))
    t, mass = gauss_points(edges)
    heights = np.maximum(kernel.profile(t), 0.0).reshape(-1, len(_POINTS))
    masses = (heights * mass.reshape(heights.shape)).sum(axis=1)
    ends = np.maximum(kernel.profile(edges), 0.0)
    tops = np.maximum(heights.max(axis=1), np.maximum(ends[:-1], ends[1:]))
    edge = np.cumsum(masses / masses.sum())[:-1]
    draws = np.empty(count)
    panels = np.searchsorted(edge, generator.random(count), side="right")
    open_ = np.arange(count)
    while open_.size:
        low, high = edges[panels[open_]], edges[panels[open_] + 1]
        tries = low + (high - low) * generator.random(open_.size)
        accepted = generator.random(open_.size) * tops[panels[open_]] <= kernel.profile(tries)
        draws[open_[accepted]] = tries[accepted]
        open_ = open_[~accepted]
    return np.where(generator.random(count) < 0.5, -draws, draws)


def whitened(kernel: Kernel, points: Points, queries: Points) -> tuple[Points, Points]:
    """Return points and queries in bandwidth units, counted from the middle of the queries."""
    center = queries.mean(axis=0) if len(queries) else 0.0
    return kernel.bandwidth.whiten(points - center), kernel.bandwidth.whiten(queries - center)


def distances(x: Points, y: Points, power: float) -> Floats:
    """Return Σ_k |x_k − y_k|^power for every pair of rows, shape (len(x), len(y))."""
    offsets = (np.subtract.outer(x[:, k], y[:, k]) for k in range(x.shape[1]))
    return np.asarray(sum(np.abs(offset) ** power for offset in offsets))


def cosine_transform(kernel: ProductKernel, frequencies: Floats, farthest: float) -> Floats:
    """Return ∫ profile(t) cos ωt dt for profiles without a formula for it, to some digits.

    From a table of integrals, between whose frequencies (1 + ω²) times the transform is nearly a
    line.
    """
    grid, heights = _transform_table(kernel, farthest)
    sizes = np.abs(frequencies)
    return np.asarray(np.interp(sizes, grid, heights) / (1 + sizes**2))


@lru_cache(maxsize=32)
def _transform_table(kernel: ProductKernel, farthest: float) -> tuple[Floats, Floats]:
    """Return frequencies, and (1 + ω²)·∫ profile(t) cos ωt dt, by quadrature.

    Panels grow geometrically from the origin, where the profile may have a cusp, until they are
    as long as the wave.
    """
    grid = np.concatenate([[0.0], np.geomspace(1e-2, 2e3, 160)])
    reach = min(kernel.profile_reach(1e-9), farthest)
    heights = np.empty(len(grid))
    for i, frequency in enumerate(grid):
        wave = np.pi / (1.0 + frequency)
        small = np.geomspace(1e-9, min(wave, reach), 40)
        edges = np.concatenate([[0.0], small, np.arange(small[-1] + wave, reach + wave, wave)])
        t, mass = gauss_points(edges)
        heights[i] = 2 * float(np.cos(frequency * t) @ (kernel.profile(t) * mass))
    return grid, heights * (1 + grid**2)


def gauss_points(edges: Floats) -> tuple[Floats, Floats]:
    """Return eight Gauss points for each panel between edges, and their weights."""
    width = np.diff(edges)[:, np.newaxis] / 2
    points = edges[:-1, np.newaxis] + width * (_POINTS + 1)
    return points.reshape(-1), (width * _WEIGHTS).reshape(-1)


def graded(reach: float) -> Floats:
    """Return panel edges on [0, reach] that grow from the origin."""
    return np.concatenate([[0.0], np.geomspace(min(1e-4, reach / 2), reach, 96)])
