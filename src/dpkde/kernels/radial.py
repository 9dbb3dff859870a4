"""Kernels of a distance: exponential in an ℓ_p norm, Matérn, rational quadratic, Erfc."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dpkde.errors import ParameterError
from dpkde.kernels import stable
from dpkde.kernels.bandwidth import Bandwidth, BandwidthLike, Points
from dpkde.kernels.base import (
    Floats,
    Kernel,
    ProductKernel,
    distances,
    gauss_points,
    whitened,
)
from dpkde.kernels.blur import ONE_SCALE, AxisBlur, Blur, gamma_scales, laplacian_axis
from dpkde.kernels.partitions import BallCarving, Partition, PoissonPlanes, RandomBins, Uncut
from dpkde.numerics.numbers import is_real

_MARGIN = 1.01


def number(value: Any, what: str, low: float, high: float) -> float:
    """Return a parameter as a float; refuse what is no real number above `low` and up to `high`."""
    if not is_real(value) or not low < float(value) <= high:
        raise ParameterError(f"{what} must be above {low:g} and at most {high:g}, got {value!r}")
    return float(value)


@dataclass(frozen=True, init=False)
class ExponentialLp(ProductKernel):
    """k(x, y) = exp(−(‖x − y‖_p/σ)^power), for 0 < power ≤ p ≤ 2.

    power = p is the paper's ℓ_p^p kernel, a product over axes; power = 1 its ℓ_p kernel. p = 2,
    power = 1 is the exponential kernel, p = power = 2 the Gaussian, p = power = 1 the Laplacian.

    Parameters
    ----------
    p
        The p of the norm, above 0 and at most 2.
    power
        The power of the norm, above 0 and at most p: beyond, the kernel is not positive definite.
    bandwidth
        σ, one σ per axis, or a symmetric positive definite matrix B for ‖B⁻¹(x − y)‖_p.

    Examples
    --------
    >>> ExponentialLp(p=1.5, power=1, bandwidth=0.2)
    ExponentialLp(p=1.5, power=1.0, bandwidth=0.2)
    """

    p: float
    power: float
    bandwidth: Bandwidth
    fades: ClassVar[bool] = True
    name: ClassVar[str] = "exponential-lp"

    def __init__(
        self, p: float, power: float = 1.0, bandwidth: Bandwidth | BandwidthLike = 1.0
    ) -> None:
        vars(self).update(p=number(p, "p", 0, 2), power=number(power, "power", 0, 2))
        if self.p < self.power:
            raise ParameterError(
                f"power must be at most p = {p!r}, got {power!r}: beyond, the kernel is not "
                "positive definite; write power=p for the product kernel"
            )
        object.__setattr__(self, "bandwidth", Bandwidth.of(bandwidth))

    @property
    def is_product(self) -> bool:
        """Whether power = p."""
        return self.power == self.p

    @property
    def is_smooth(self) -> bool:
        """Whether p = 2."""
        return self.p == 2

    @property
    def partition(self) -> Partition:
        """Bins for p ≤ 1, where it is a mixture of Laplacians; hyperplanes for power 1."""
        if self.p <= 1:
            return RandomBins(self.pitches)
        if self.power == 1:
            return PoissonPlanes(self.p)
        return Uncut(
            "of the exponential-lp kernels with p above 1 only those of power 1 have a hash"
        )

    def evaluate(self, points: Points, queries: Points) -> Floats:
        """Return exp(−‖B⁻¹(x − y)‖_p^power), shape (n_points, n_queries). O(n·q·d)."""
        sums = distances(*whitened(self, points, queries), self.p)
        return np.exp(-(sums if self.is_product else sums ** (self.power / self.p)))

    @property
    def shape(self) -> ExponentialLp:
        """The kernel with a bandwidth of one."""
        return ExponentialLp(self.p, self.power, 1.0)

    def lipschitz(self, dim: int) -> float:
        """Return the slope of exp(−r^w) in r = ‖·‖_p, largest at r^w = 1 − 1/w, times d^{1/p−½}."""
        w, p = self.power, self.p
        if w < 1 or p < 1:
            return math.inf
        rate = 1 - 1 / w
        steepest = w * rate**rate * math.exp(-rate) if w > 1 else 1.0
        return float(steepest * dim ** max(1 / p - 0.5, 0.0))

    def integral(self, dim: int) -> float:
        """Return (2Γ(1 + 1/p))^d·Γ(1 + d/power)/Γ(1 + d/p)·det B."""
        return math.exp(self._log_volume(dim)) * self.bandwidth.determinant(dim)

    def log_integral(self, dim: int) -> float:
        """Return the logarithm of the same."""
        return self._log_volume(dim) + self.bandwidth.log_determinant(dim)

    def _log_volume(self, dim: int) -> float:
        log = dim * (math.log(2) + math.lgamma(1 + 1 / self.p))
        return log + math.lgamma(1 + dim / self.power) - math.lgamma(1 + dim / self.p)

    def spectrum(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw ω = T^{1/p}·S: S p-stable on each axis, T one positive (power/p)-stable number."""
        directions = stable.symmetric(generator, self.p, (count, dim))
        sizes = stable.positive(generator, self.power / self.p, (count, 1))
        with np.errstate(all="ignore"):
            return np.asarray(sizes ** (1 / self.p) * directions)

    def pitches(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw Gamma(2, 1)/(T^{1/p}·S_k), S_k positive p-stable, T positive (power/p)-stable.

        For p ≤ 1, e^{−T·Σ|Δ_k|^p} = ∏ E e^{−T^{1/p}·S_k·|Δ_k|}, each a Laplacian.
        """
        with np.errstate(all="ignore"):  # for small p numbers grow beyond the largest float
            scale = stable.positive(generator, self.power / self.p, (count, 1)) ** (1 / self.p)
            rates = scale * stable.positive(generator, self.p, (count, dim))
            return np.asarray(generator.gamma(2.0, size=(count, dim)) / rates)

    def blur(self, dim: int) -> Blur | None:
        """The Gaussian, the Laplacian, and e^{−r} = E e^{−r²/4G}, G ~ Gamma(½)."""
        known: dict[tuple[float, float], Blur] = {
            (2, 2): ONE_SCALE,
            (1, 1): AxisBlur(laplacian_axis),
        }
        if (self.p, self.power) == (2, 1):
            return gamma_scales(0.5, lambda g: 1 / (4 * g))
        return known.get((self.p, self.power))

    def draw(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw R·G/‖G‖_p: |G_k|^p ~ Gamma(1/p) on each axis, R^power ~ Gamma(d/power)."""
        signs = np.where(generator.random((count, dim)) < 0.5, -1.0, 1.0)
        powers = generator.gamma(1 / self.p, size=(count, dim))
        with np.errstate(all="ignore"):
            axes = signs * powers ** (1 / self.p)
            if self.is_product:
                return np.asarray(axes)
            norms = powers.sum(axis=1, keepdims=True) ** (1 / self.p)
            lengths = generator.gamma(dim / self.power, size=(count, 1)) ** (1 / self.power)
            return np.asarray(lengths * axes / norms)

    def profile(self, offsets: Floats) -> Floats:
        """Return e^{−|t|^p}, the factor of an axis where power = p."""
        return np.exp(-(np.abs(offsets) ** self.p))

    def log_profile(self, offsets: Floats) -> Floats:
        """Return −|t|^p."""
        return np.asarray(-(np.abs(offsets) ** self.p))

    def profile_reach(self, tolerance: float) -> float:
        """Return ln(1/tolerance)^{1/p}."""
        return float((-math.log(tolerance)) ** (1 / self.p))


@lru_cache(maxsize=64)
def _steepest_ray(kernel: Kernel) -> float:
    """Return the steepest slope of a radial kernel along a ray, by differences on a fine grid."""
    unit = type(kernel)(**{**kernel.to_json(), "bandwidth": 1.0})
    r = np.concatenate([np.linspace(0, 1e-3, 101), np.linspace(1e-3, 8, 8001)[1:]])
    values = unit.evaluate(r[:, np.newaxis], np.zeros((1, 1)))[:, 0]
    return _MARGIN * float((np.abs(np.diff(values)) / np.diff(r)).max())


class _Radial(Kernel):
    """A kernel of ‖B⁻¹(x − y)‖₂ that falls along every ray."""

    fades: ClassVar[bool] = True

    def lipschitz(self, dim: int) -> float:
        """Return the steepest slope along a ray."""
        return _steepest_ray(self)


@dataclass(frozen=True, init=False)
class Matern(_Radial):
    """k(x, y) = 2^{1−ν}/Γ(ν)·z^ν·K_ν(z), z = √(2ν)·‖x − y‖/ℓ, K_ν the modified Bessel function.

    The usual length-scale units: as ν grows the kernel tends to exp(−‖x − y‖²/2ℓ²), which is
    ``Gaussian.from_std(ℓ)``, not to ``Gaussian(ℓ)``. ν = ½ is exp(−‖x − y‖/ℓ).

    Parameters
    ----------
    nu
        ν, above 0 and at most 50: beyond, it is a Gaussian for all purposes.
    bandwidth
        ℓ, one ℓ per axis, or a symmetric positive definite matrix B for ‖B⁻¹(x − y)‖.

    Examples
    --------
    >>> kernel = Matern(nu=0.5, bandwidth=1.0)
    >>> float(kernel.evaluate(np.zeros((1, 1)), np.ones((1, 1)))[0, 0].round(12))
    0.367879441171
    """

    nu: float
    bandwidth: Bandwidth
    name: ClassVar[str] = "matern"

    def __init__(self, nu: float, bandwidth: Bandwidth | BandwidthLike = 1.0) -> None:
        vars(self).update(nu=number(nu, "nu", 0, 50), bandwidth=Bandwidth.of(bandwidth))

    def evaluate(self, points: Points, queries: Points) -> Floats:
        """Return k(x, y), shape (n_points, n_queries). O(n·q·d)."""
        from scipy.special import gammaln, kve

        z = np.sqrt(2 * self.nu * distances(*whitened(self, points, queries), 2))
        with np.errstate(all="ignore"):
            log = (1 - self.nu) * math.log(2) - gammaln(self.nu) - z
            values = np.exp(log + self.nu * np.log(z) + np.log(kve(self.nu, z)))
        # Where z is so small that K_ν overflows, and at zero, the kernel is one.
        return np.where(np.isfinite(values), values, np.where(z < 1, 1.0, 0.0))

    def lipschitz(self, dim: int) -> float:
        """Return the steepest slope along a ray, infinite below ν = ½."""
        return _steepest_ray(self) if self.nu >= 0.5 else math.inf

    def integral(self, dim: int) -> float:
        """Return (2π/ν)^{d/2}·Γ(ν + d/2)/Γ(ν)·det B."""
        log = dim / 2 * math.log(2 * math.pi / self.nu)
        log += math.lgamma(self.nu + dim / 2) - math.lgamma(self.nu)
        return math.exp(log) * self.bandwidth.determinant(dim)

    def spectrum(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw ω = √V·N(0, I), V = ν/Gamma(ν, 1): a multivariate t law."""
        scale = np.sqrt(self.nu / generator.gamma(self.nu, size=(count, 1)))
        return np.asarray(scale * generator.standard_normal((count, dim)))

    def draw(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw √V·N(0, I), V = Gamma(ν + d/2)/ν: its transform is (1 + ‖ω‖²/2ν)^{−ν−d/2}."""
        scale = np.sqrt(generator.gamma(self.nu + dim / 2, size=(count, 1)) / self.nu)
        return np.asarray(scale * generator.standard_normal((count, dim)))

    def blur(self, dim: int) -> Blur:
        """E e^{−s·r²} with s = ν/2G, G ~ Gamma(ν): the mixture that the spectrum draws from."""
        return gamma_scales(self.nu, lambda g: self.nu / (2 * g))


@dataclass(frozen=True, init=False)
class RationalQuadratic(_Radial):
    """k(x, y) = (1 + ‖x − y‖²/(aσ²))^{−a}: a mixture of Gaussians of all widths.

    As a grows it tends to exp(−‖x − y‖²/σ²), our `Gaussian`.

    Parameters
    ----------
    alpha
        a, above 0 and at most 10⁶.
    bandwidth
        σ, one σ per axis, or a symmetric positive definite matrix B for ‖B⁻¹(x − y)‖.

    Examples
    --------
    >>> kernel = RationalQuadratic(alpha=1, bandwidth=1.0)
    >>> float(kernel.evaluate(np.zeros((1, 1)), np.ones((1, 1)))[0, 0])
    0.5
    """

    alpha: float
    bandwidth: Bandwidth
    name: ClassVar[str] = "rational-quadratic"

    def __init__(self, alpha: float, bandwidth: Bandwidth | BandwidthLike = 1.0) -> None:
        vars(self).update(alpha=number(alpha, "alpha", 0, 1e6), bandwidth=Bandwidth.of(bandwidth))

    def evaluate(self, points: Points, queries: Points) -> Floats:
        """Return (1 + ‖B⁻¹(x − y)‖²/a)^{−a}, shape (n_points, n_queries). O(n·q·d)."""
        squares = distances(*whitened(self, points, queries), 2)
        return np.asarray(np.exp(-self.alpha * np.log1p(squares / self.alpha)))

    def integral(self, dim: int) -> float:
        """Return (πa)^{d/2}·Γ(a − d/2)/Γ(a)·det B, for a > d/2."""
        if self.alpha <= dim / 2:
            raise ParameterError(
                f"the rational quadratic kernel has an infinite integral in {dim} dimensions for "
                f"alpha up to {dim / 2:g}: use a larger alpha"
            )
        log = dim / 2 * math.log(math.pi * self.alpha)
        log += math.lgamma(self.alpha - dim / 2) - math.lgamma(self.alpha)
        return math.exp(log) * self.bandwidth.determinant(dim)

    def spectrum(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw ω = √(2τ)·N(0, I), τ ~ Gamma(a)/a."""
        rate = generator.gamma(self.alpha, size=(count, 1)) / self.alpha
        return np.asarray(np.sqrt(2 * rate) * generator.standard_normal((count, dim)))

    def draw(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw √(a/2G)·N(0, I), G ~ Gamma(a − d/2): a multivariate t law, for a > d/2."""
        self.integral(dim)  # refuses where it is infinite
        scale = np.sqrt(self.alpha / 2 / generator.gamma(self.alpha - dim / 2, size=(count, 1)))
        return np.asarray(scale * generator.standard_normal((count, dim)))

    def blur(self, dim: int) -> Blur:
        """E e^{−s·r²} with s = G/a, G ~ Gamma(a)."""
        return gamma_scales(self.alpha, lambda g: g / self.alpha)


@dataclass(frozen=True, init=False)
class Erfc(_Radial):
    """k(x, y) = erfc(r)/(2 − erfc(r)), r = ‖x − y‖/σ: the kernel of carving space with balls.

    Parameters
    ----------
    bandwidth
        σ, one σ per axis, or a symmetric positive definite matrix B for ‖B⁻¹(x − y)‖.

    Examples
    --------
    >>> float(Erfc(1.0).evaluate(np.zeros((1, 1)), np.zeros((1, 1)))[0, 0])
    1.0
    """

    bandwidth: Bandwidth
    partition: ClassVar[Partition] = BallCarving()
    name: ClassVar[str] = "erfc"

    def __init__(self, bandwidth: Bandwidth | BandwidthLike) -> None:
        object.__setattr__(self, "bandwidth", Bandwidth.of(bandwidth))

    def evaluate(self, points: Points, queries: Points) -> Floats:
        """Return erfc(r)/(2 − erfc(r)), shape (n_points, n_queries). O(n·q·d)."""
        return _erfc(np.sqrt(distances(*whitened(self, points, queries), 2)))

    def integral(self, dim: int) -> float:
        """Return the area of the unit sphere times ∫ r^{d−1}·k(r) dr, by quadrature."""
        middle = math.sqrt(dim / 2)
        r, mass = gauss_points(np.linspace(max(0.0, middle - 7), middle + 7, 65))
        r, mass = r[r > 0], mass[r > 0]
        log_area = math.log(2) + dim / 2 * math.log(math.pi) - math.lgamma(dim / 2)
        with np.errstate(all="ignore"):
            log = log_area + (dim - 1) * np.log(r) + np.log(_erfc(r))
        return float((np.exp(log) * mass).sum()) * self.bandwidth.determinant(dim)

    def spectrum(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw ω = √(2τ)·N(0, I), τ = Σ_{i≤M} (1 + C_i²), M ~ Geometric(½), C_i standard Cauchy.

        erfc(r)/(2 − erfc(r)) = Σ_m 2^{−m}·erfc(r)^m, and erfc(r) = E e^{−r²(1 + C²)}.
        """
        terms = generator.geometric(0.5, size=count)
        draws = 1 + generator.standard_cauchy(int(terms.sum())) ** 2
        rate = np.add.reduceat(draws, np.concatenate([[0], np.cumsum(terms)[:-1]]))
        return np.asarray(
            np.sqrt(2 * rate)[:, np.newaxis] * generator.standard_normal((count, dim))
        )


def _erfc(r: Floats) -> Floats:
    from scipy.special import erf, erfc

    return np.asarray(erfc(r) / (1 + erf(r)))
