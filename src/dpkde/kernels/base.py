"""What the library asks of a kernel, and what more a family may ask.

A kernel is a frozen value. Its bandwidth is what one unit of distance means; `Bandwidth.whiten`
divides by it, and everything after that works in bandwidth units, where the bandwidth is one.

======================  ===============================================================
`Kernel`                exact values; that is enough to be a kernel
`ShiftInvariantKernel`  a spectrum to draw frequencies from: `Fourier` serves it
`ProductKernel`         a product over axes: `Spline` serves it
`BinnedKernel`          a mixture of hats: `Hashing` serves it, by random binning
======================  ===============================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpkde.kernels.bandwidth import Bandwidth, Points

Floats = NDArray[np.float64]
Json = Mapping[str, Any]

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(8)


@runtime_checkable
class Kernel(Protocol):
    """What the rest of the library asks of a kernel."""

    name: ClassVar[str]
    version: ClassVar[int]

    @property
    def bandwidth(self) -> Bandwidth:
        """What one unit of distance means."""
        ...

    def evaluate(self, points: Points, queries: Points) -> Floats:
        """Return k(x, y), shape (n_points, n_queries), exactly as the formula says."""
        ...

    def integral(self, dim: int) -> float:
        """Return ∫ k(x, y) dx over the whole space: what turns a KDE into a density.

        ParameterError where it is infinite, or depends on y.
        """
        ...

    def to_json(self) -> dict[str, Any]:
        """Return the parameters, without the name."""
        ...


@runtime_checkable
class ShiftInvariantKernel(Kernel, Protocol):
    """A positive definite kernel of the difference x − y, with k(x, x) = 1.

    A class may set ``is_shift_invariant`` to False where an instance has no spectrum after all.
    """

    def spectrum(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Return frequencies ω, shape (count, dim), in radians per bandwidth unit.

        They satisfy E cos ω·(x − y) = k(x, y) for x and y in bandwidth units.
        """
        ...


@runtime_checkable
class ProductKernel(Kernel, Protocol):
    """A kernel that is a product over axes: k(x, y) = ∏ profile(x_k − y_k) in bandwidth units."""

    @property
    def is_product(self) -> bool:
        """Whether it is one: for some kernels that depends on a parameter."""
        ...

    @property
    def is_smooth(self) -> bool:
        """Whether the profile has no kink at zero."""
        ...

    def profile(self, offsets: Floats) -> Floats:
        """Return the factor of one axis: even, at most 1, and 1 at zero."""
        ...

    def profile_reach(self, tolerance: float) -> float:
        """Return the distance beyond which the profile is below `tolerance`."""
        ...

    def profile_transform(self, frequencies: Floats) -> Floats:
        """Return ∫ profile(t) cos ωt dt over the whole line."""
        ...

    def __hash__(self) -> int:
        """Fits are kept by kernel."""
        ...


@runtime_checkable
class BinnedKernel(Kernel, Protocol):
    """A mixture of hats: k(x, y) = E ∏ max(0, 1 − |x_k − y_k|/δ_k) over random pitches δ.

    In one dimension that is every kernel that is convex and falls to zero on each side; δ then has
    the density δ·k″(δ).
    """

    @property
    def is_binned(self) -> bool:
        """Whether it is one: for some kernels that depends on a parameter."""
        ...

    def pitches(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Return `count` draws of the pitches, shape (count, dim), in bandwidth units."""
        ...


def shape_of(kernel: Kernel) -> Kernel:
    """Return the same kernel with a bandwidth of one, where it can tell: all that an axis sees.

    What is computed in bandwidth units is kept by this, and so for all bandwidths at once.
    """
    shape: Kernel = getattr(kernel, "shape", kernel)
    return shape


def is_product(kernel: Kernel) -> bool:
    """Tell whether splines can serve a kernel."""
    return bool(getattr(kernel, "is_product", False))


def is_binned(kernel: Kernel) -> bool:
    """Tell whether random binning can serve a kernel."""
    return bool(getattr(kernel, "is_binned", False))


def home(kernel: Kernel | type[Any]) -> str:
    """Return where a kernel lives: ``"space"``, ``"sphere"`` or ``"sets"``."""
    return str(getattr(kernel, "home", "space"))


def whitened(kernel: Kernel, points: Points, queries: Points) -> tuple[Points, Points]:
    """Return points and queries in bandwidth units, counted from the middle of the queries."""
    centre = queries.mean(axis=0) if len(queries) else 0.0
    return kernel.bandwidth.whiten(points - centre), kernel.bandwidth.whiten(queries - centre)


def distances(x: Points, y: Points, power: float) -> Floats:
    """Return Σ_k |x_k − y_k|^power for every pair of rows, shape (len(x), len(y))."""
    total = np.zeros((len(x), len(y)))
    for k in range(x.shape[1]):
        apart = np.abs(np.subtract.outer(x[:, k], y[:, k]))
        total += apart**2 if power == 2 else apart if power == 1 else apart**power
    return total


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
