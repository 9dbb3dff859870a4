"""Discrete Gaussian noise: P(z) ∝ exp(−z²/2σ²) on the integers; ρ-zCDP for σ² = Δ₂²/2ρ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dpkde.privacy.amounts import Amount, Bounds
from dpkde.privacy.laws import opendp
from dpkde.privacy.laws.base import (
    MAX_SCALE,
    EntropySource,
    Floats,
    Law,
    WeightedCells,
    check_scale,
)
from dpkde.privacy.laws.tails import Part, gaussian
from dpkde.privacy.numbers import scale_up


@dataclass(frozen=True)
class DiscreteGaussian(Law):
    """P(z) ∝ exp(−z²/2σ²) on the integers, independently for each cell; `scale` is σ²."""

    scale: Fraction
    name: ClassVar[str] = "discrete-gaussian"
    norm: ClassVar[Literal["L2"]] = "L2"
    paid_in: ClassVar[Literal["rho"]] = "rho"

    def __post_init__(self) -> None:
        if not 0 < self.scale <= MAX_SCALE**2:
            check_scale(Fraction(MAX_SCALE + 1))

    @cached_property
    def variance(self) -> float:
        """The variance: σ² once σ ≥ 4 (Poisson summation: off by under e^{−2π²σ²}); else summed."""
        sigma2 = float(self.scale)
        if sigma2 >= 16:
            return sigma2
        z = np.arange(-64, 65, dtype=np.float64)
        weight = np.exp(-z * z / (2 * sigma2))
        return float((weight * z * z).sum() / weight.sum())

    def scaled(self, factor: Fraction) -> Self:
        """Return the law of factor²·σ²."""
        return type(self)(self.scale * factor**2)

    def log_weight(self, noise: NDArray[np.int64]) -> Floats:
        """Return −‖z‖₂²/2σ²."""
        return np.asarray(-(noise.astype(np.float64) ** 2).sum(axis=1) / (2 * float(self.scale)))

    @classmethod
    def bought(cls, amount: Amount, moved: Bounds) -> Self:
        """Return the law of σ² = Δ₂²/2ρ, rounded up."""
        return cls(scale_up(Fraction(moved.l2_squared) / (2 * cls.price(amount))))

    def sample(self, size: int, source: EntropySource) -> NDArray[np.int64]:
        """Return independent draws."""
        from dpkde.privacy.laws.gaussian.sampler import discrete_gaussian

        return discrete_gaussian(self.scale, size, source)

    def reference(self, size: int) -> NDArray[np.int64]:
        """Return independent draws by OpenDP."""
        return opendp.gaussian(self.scale, size)

    def tail(self, gain: float, peak: float, failure: float) -> Part:
        """Return that of a sub-Gaussian error of the same σ² (Canonne, Kamath and Steinke 2020)."""
        return gaussian(float(self.scale) * gain**2)

    def margin(self, failure: float) -> int:
        """Return m from P(|z| > m) ≤ 2e^{−m²/2σ²}."""
        return math.ceil(math.sqrt(2 * float(self.scale) * math.log(2 / failure)))

    def characteristic(self, cells: WeightedCells, u: Floats) -> Floats:
        """Return exp(−σ²‖g‖²u²/2)."""
        return np.asarray(np.exp(-0.5 * u**2 * cells.variance[:, np.newaxis]))

    def characteristic_of_one(self, x: Floats) -> Floats:
        """Return exp(−x/2)."""
        return np.asarray(np.exp(-0.5 * x))
