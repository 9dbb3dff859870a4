"""Kernels that are products over axes: Gaussian, Laplacian, Cauchy, hat."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpkde.errors import ParameterError
from dpkde.kernels.bandwidth import Bandwidth, BandwidthLike, Points
from dpkde.kernels.base import Floats, ProductKernel, distances, whitened
from dpkde.kernels.blur import ONE_SCALE, AxisBlur, Blur, cauchy_axis, laplacian_axis
from dpkde.kernels.partitions import Partition, RandomBins


@dataclass(frozen=True, init=False)
class _Scaled(ProductKernel):
    """A kernel whose only parameter is its bandwidth."""

    bandwidth: Bandwidth
    fades: ClassVar[bool] = True

    def __init__(self, bandwidth: Bandwidth | BandwidthLike | None = None) -> None:
        if bandwidth is None:
            name = type(self).__name__
            raise ParameterError(
                f"{name} needs a bandwidth, how far a point's influence reaches in the units of "
                f"the data: {name}(bandwidth=0.1)"
            )
        object.__setattr__(self, "bandwidth", Bandwidth.of(bandwidth))

    @property
    def shape(self) -> Self:
        """The kernel with a bandwidth of one."""
        return type(self)(1.0)


@dataclass(frozen=True, init=False)
class Gaussian(_Scaled):
    """k(x, y) = exp(−‖x − y‖²/σ²), the paper's convention.

    Parameters
    ----------
    bandwidth
        σ, one σ per axis, or a symmetric positive definite matrix B for exp(−‖B⁻¹(x − y)‖²).

    Examples
    --------
    >>> Gaussian(bandwidth=0.01)
    Gaussian(bandwidth=0.01)
    >>> float(Gaussian(2.0).evaluate(np.zeros((1, 1)), np.full((1, 1), 2.0))[0, 0])
    0.36787944117144233
    """

    name: ClassVar[str] = "gaussian"
    is_smooth: ClassVar[bool] = True
    is_gaussian: ClassVar[bool] = True

    @classmethod
    def from_std(cls, std: BandwidthLike) -> Gaussian:
        """Return the kernel exp(−‖x − y‖²/2h²): h is a standard deviation, σ = √2·h.

        >>> Gaussian.from_std(1.0)
        Gaussian(bandwidth=1.4142135623730951)
        """
        try:
            numbers = np.array(std, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError(f"std must be positive numbers, got {std!r}") from None
        return cls(math.sqrt(2) * numbers)

    def evaluate(self, points: Points, queries: Points) -> Floats:
        """Return exp(−‖B⁻¹(x − y)‖²), shape (n_points, n_queries). O(n·q·d)."""
        return np.exp(-distances(*whitened(self, points, queries), 2))

    def lipschitz(self, dim: int) -> float:
        """Return √(2/e): the slope 2re^{−r²} is largest at r² = ½."""
        return math.sqrt(2 / math.e)

    def integral(self, dim: int) -> float:
        """Return π^{d/2}·det B."""
        return float(math.pi ** (dim / 2)) * self.bandwidth.determinant(dim)

    def log_integral(self, dim: int) -> float:
        """Return (d/2)·ln π + ln det B."""
        return dim / 2 * math.log(math.pi) + self.bandwidth.log_determinant(dim)

    def spectrum(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw ω ~ √2·N(0, I)."""
        return math.sqrt(2) * generator.standard_normal((count, dim))

    def blur(self, dim: int) -> Blur:
        """A single scale."""
        return ONE_SCALE

    def draw(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw N(0, I/2)."""
        return generator.standard_normal((count, dim)) / math.sqrt(2)

    def profile(self, offsets: Floats) -> Floats:
        """Return e^{−t²}: the Gaussian is a product over axes, a matrix bandwidth included."""
        return np.exp(-np.square(offsets))

    def log_profile(self, offsets: Floats) -> Floats:
        """Return −t²."""
        return -np.square(offsets)

    def profile_reach(self, tolerance: float) -> float:
        """Return √ln(1/tolerance)."""
        return math.sqrt(-math.log(tolerance))

    def profile_transform(self, frequencies: Floats) -> Floats:
        """Return √π·e^{−ω²/4}."""
        return np.asarray(math.sqrt(math.pi) * np.exp(-np.square(frequencies) / 4))


@dataclass(frozen=True, init=False)
class Laplacian(_Scaled):
    """k(x, y) = exp(−‖x − y‖₁/σ).

    Parameters
    ----------
    bandwidth
        σ, one σ per axis, or a symmetric positive definite matrix B for exp(−‖B⁻¹(x − y)‖₁).

    Examples
    --------
    >>> float(Laplacian(2.0).evaluate(np.zeros((1, 2)), np.ones((1, 2)))[0, 0])
    0.36787944117144233
    """

    name: ClassVar[str] = "laplacian"
    # The density of pitches is δ·k″(δ) = δ·e^{−δ}, that of Gamma(2, 1).
    partition: ClassVar[Partition] = RandomBins(
        lambda generator, count, dim: generator.gamma(2.0, size=(count, dim))
    )

    def evaluate(self, points: Points, queries: Points) -> Floats:
        """Return exp(−‖B⁻¹(x − y)‖₁), shape (n_points, n_queries). O(n·q·d)."""
        return np.exp(-distances(*whitened(self, points, queries), 1))

    def lipschitz(self, dim: int) -> float:
        """Return √d: the slope is at most one on each axis."""
        return math.sqrt(dim)

    def integral(self, dim: int) -> float:
        """Return 2^d·det B."""
        return float(2.0**dim) * self.bandwidth.determinant(dim)

    def spectrum(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw independent standard Cauchy numbers ω."""
        return generator.standard_cauchy((count, dim))

    def blur(self, dim: int) -> Blur:
        """By error functions, axis by axis."""
        return AxisBlur(laplacian_axis)

    def draw(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw Laplace(1) on each axis."""
        return generator.laplace(size=(count, dim))

    def profile(self, offsets: Floats) -> Floats:
        """Return e^{−|t|}."""
        return np.exp(-np.abs(offsets))

    def log_profile(self, offsets: Floats) -> Floats:
        """Return −|t|."""
        return -np.abs(offsets)

    def profile_reach(self, tolerance: float) -> float:
        """Return ln(1/tolerance)."""
        return -math.log(tolerance)

    def profile_transform(self, frequencies: Floats) -> Floats:
        """Return 2/(1 + ω²)."""
        return np.asarray(2 / (1 + np.square(frequencies)))


@dataclass(frozen=True, init=False)
class Cauchy(_Scaled):
    """k(x, y) = ∏ 1/(1 + (x_k − y_k)²/σ²).

    Parameters
    ----------
    bandwidth
        σ, one σ per axis, or a symmetric positive definite matrix B: ∏ 1/(1 + (B⁻¹(x − y))_k²).

    Examples
    --------
    >>> float(Cauchy(1.0).evaluate(np.zeros((1, 2)), np.ones((1, 2)))[0, 0])
    0.25
    """

    name: ClassVar[str] = "cauchy"
    is_smooth: ClassVar[bool] = True

    def lipschitz(self, dim: int) -> float:
        """Return the Gaussian's √(2/e): a product of 1/(1 + t²) is nowhere steeper."""
        return math.sqrt(2 / math.e)

    def integral(self, dim: int) -> float:
        """Return π^d·det B."""
        return float(math.pi**dim) * self.bandwidth.determinant(dim)

    def spectrum(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw independent Laplace(1) numbers ω."""
        return generator.laplace(size=(count, dim))

    def blur(self, dim: int) -> Blur:
        """By Voigt profiles, axis by axis."""
        return AxisBlur(cauchy_axis)

    def draw(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw a standard Cauchy number on each axis."""
        return generator.standard_cauchy((count, dim))

    def profile(self, offsets: Floats) -> Floats:
        """Return 1/(1 + t²)."""
        return np.asarray(1 / (1 + np.square(offsets)))

    def profile_reach(self, tolerance: float) -> float:
        """Return √(1/tolerance)."""
        return math.sqrt(1 / tolerance)

    def profile_transform(self, frequencies: Floats) -> Floats:
        """Return π·e^{−|ω|}."""
        return np.asarray(math.pi * np.exp(-np.abs(frequencies)))


@dataclass(frozen=True, init=False)
class Hat(_Scaled):
    """k(x, y) = ∏ max(0, 1 − |x_k − y_k|/σ): triangular, zero beyond one bandwidth.

    Parameters
    ----------
    bandwidth
        σ, one σ per axis, or a symmetric positive definite matrix B, which acts as σ does.

    Examples
    --------
    >>> float(Hat(2.0).evaluate(np.zeros((1, 2)), np.ones((1, 2)))[0, 0])
    0.25
    """

    name: ClassVar[str] = "hat"
    # Every bin is a bandwidth wide.
    partition: ClassVar[Partition] = RandomBins(
        lambda _, count, dim: np.ones((count, dim)), growth=1.2
    )

    def lipschitz(self, dim: int) -> float:
        """Return √d: the slope is at most one on each axis."""
        return math.sqrt(dim)

    def integral(self, dim: int) -> float:
        """Return det B: the profile has the integral 1."""
        return self.bandwidth.determinant(dim)

    def spectrum(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw from the density ∝ (sin(ω/2)/(ω/2))² on each axis, by rejection.

        With y = ω/2: y is uniform on (−1, 1) or the reciprocal of such a number, half each, which
        has a density above (sin y/y)²/4; a draw stays with probability (sin y/y)², or sin²y for
        the reciprocals.
        """
        frequencies = np.empty(0)
        while len(frequencies) < count * dim:
            tries = 2 * count * dim + 64
            inner = 2 * generator.random(tries) - 1
            outer = generator.integers(0, 2, tries) == 1
            with np.errstate(all="ignore"):
                y = np.where(outer, 1 / inner, inner)
                height = np.where(outer, np.sin(y) ** 2, np.sinc(y / np.pi) ** 2)
            accepted = np.isfinite(y) & (generator.random(tries) < height)
            frequencies = np.concatenate([frequencies, 2 * y[accepted]])
        return np.asarray(frequencies[: count * dim].reshape(count, dim))

    def draw(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw the difference of two uniform numbers on each axis."""
        return generator.random((count, dim)) - generator.random((count, dim))

    def profile(self, offsets: Floats) -> Floats:
        """Return max(0, 1 − |t|)."""
        return np.asarray(np.maximum(0.0, 1 - np.abs(offsets)))

    def profile_reach(self, tolerance: float) -> float:
        """Return one bandwidth."""
        return 1.0

    def profile_transform(self, frequencies: Floats) -> Floats:
        """Return (sin(ω/2)/(ω/2))²."""
        return np.asarray(np.sinc(frequencies / (2 * np.pi)) ** 2)
