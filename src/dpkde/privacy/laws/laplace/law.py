"""Discrete Laplace noise: P(z) ∝ exp(−|z|/t) on the integers; pure ε for t = Δ₁/ε."""

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
from dpkde.privacy.laws.base import EntropySource, Floats, Law, WeightedCells, check_scale
from dpkde.privacy.laws.factors import LAPLACE
from dpkde.privacy.laws.tails import NOTHING, Part
from dpkde.privacy.numbers import scale_up


@dataclass(frozen=True)
class DiscreteLaplace(Law):
    """P(z) ∝ exp(−|z|/t) on the integers, independently for each cell."""

    scale: Fraction
    name: ClassVar[str] = "discrete-laplace"
    norm: ClassVar[Literal["L1"]] = "L1"
    paid_in: ClassVar[Literal["epsilon"]] = "epsilon"

    def __post_init__(self) -> None:
        check_scale(self.scale)

    @cached_property
    def variance(self) -> float:
        """The variance 1 / (2 sinh²(1/2t))."""
        half = 1 / (2 * float(self.scale))
        return 0.0 if half > 350 else 1 / (2 * math.sinh(half) ** 2)

    def log_weight(self, noise: NDArray[np.int64]) -> Floats:
        """Return −‖z‖₁/t."""
        return np.asarray(-np.abs(noise.astype(np.float64)).sum(axis=1) / float(self.scale))

    @property
    def fourth_moments(self) -> tuple[float, float]:
        """6V² + V and V², V the variance: E z⁴ = 2q(1 + 10q + q²)/(1 − q)⁴ for q = e^{−1/t}."""
        return 6 * self.variance**2 + self.variance, self.variance**2

    @classmethod
    def bought(cls, amount: Amount, moved: Bounds) -> Self:
        """Return the law of scale t = Δ₁/ε, rounded up."""
        return cls(scale_up(Fraction(moved.l1) / cls.price(amount)))

    def sample(self, size: int, source: EntropySource) -> NDArray[np.int64]:
        """Return independent draws."""
        from dpkde.privacy.laws.laplace.sampler import discrete_laplace

        return discrete_laplace(self.scale, size, source)

    def reference(self, size: int) -> NDArray[np.int64]:
        """Return independent draws by OpenDP."""
        return opendp.laplace(self.scale, size)

    def tail(self, gain: float, peak: float, failure: float) -> Part:
        """Return ψ(u) = −(G/P)²·ln(1 − t²u²P²) for u < 1/(tP).

        E e^{uz} = 1/(1 − sinh²(u/2)/sinh²(1/2t)) ≤ 1/(1 − t²u²), since sinh(x)/x grows. For weights
        g the sum of −ln(1 − t²u²g_j²) is convex in the g_j², so among all with ‖g‖₂ ≤ G and
        ‖g‖_∞ ≤ P it is largest where G²/P² of them are P and the others zero.
        """
        scale = float(self.scale) * peak
        if scale <= 0:
            return NOTHING
        count = max((gain / peak) ** 2, 1.0)
        return Part(lambda u: -count * math.log1p(-((u * scale) ** 2)), 1 / scale)

    def margin(self, failure: float) -> int:
        """Return m from P(|z| > m) = 2q^{m+1}/(1 + q), q = e^{−1/t}."""
        inverse = 1 / float(self.scale)
        return max(0, math.ceil(math.log(2 / ((1 + math.exp(-inverse)) * failure)) / inverse))

    def characteristic(self, cells: WeightedCells, u: Floats) -> Floats:
        """Return ∏ 1/(1 + b²g_j²u²), b such that the variance is that of the discrete law."""
        return cells.product(u * math.sqrt(self.variance / 2), LAPLACE)

    def characteristic_of_one(self, x: Floats) -> Floats:
        """Return 1/(1 + x/2)."""
        return np.asarray(1 / (1 + 0.5 * x))
