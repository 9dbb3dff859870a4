"""The laws that randomness follows, as public facts: name, scale, variance.

Three laws of noise, which is added to sums, and two of choices, which are made in the light of
them. The samplers are in `dpkde.privacy.noise`; this module draws nothing, so that a client can
compute standard errors without a sampler at hand. Every scale is an exact fraction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpkde.errors import ParameterError
from dpkde.privacy.numbers import plain

MAX_SCALE = 1 << 56
"""Beyond this the noise itself would come near to wrapping around 2⁶⁴."""


def _check(scale: Fraction, spread: int = 1) -> None:
    if not 0 < scale * spread <= MAX_SCALE:
        raise ParameterError(
            f"a noise scale of {plain(scale)} over {spread} cells does not fit 64-bit sums; "
            "use a larger epsilon, fewer cells or a larger capacity (fewer lattice bits)"
        )


@dataclass(frozen=True)
class DiscreteLaplace:
    """P(z) ∝ exp(−|z|/t) on the integers, independently for each cell."""

    scale: Fraction
    name: ClassVar[str] = "discrete-laplace"
    norm: ClassVar[str] = "L1"

    def __post_init__(self) -> None:
        _check(self.scale)

    @cached_property
    def variance(self) -> float:
        """1 / (2 sinh²(1/2t))."""
        half = 1 / (2 * float(self.scale))
        return 0.0 if half > 350 else 1 / (2 * math.sinh(half) ** 2)


@dataclass(frozen=True)
class MaxNorm:
    """P(z) ∝ exp(−‖z‖_∞/t) on the integer vectors of `cells` coordinates: the L∞ mechanism."""

    scale: Fraction
    cells: int
    name: ClassVar[str] = "max-norm"
    norm: ClassVar[str] = "L∞"

    def __post_init__(self) -> None:
        _check(self.scale, self.cells + 1)

    @cached_property
    def variance(self) -> float:
        """E[r(r+1)]/3, where P(r) ∝ (2r+1)^m e^{−r/t} is the radius of the cube drawn from.

        With ϱ = r + ½ this sums ϱ^m e^{−ϱ/t} over half-integers: the midpoint rule of a Gamma
        integral, exact to rounding once its bulk (m+1)t is long against the unit step. Below
        that it is summed term by term.
        """
        m, t = self.cells, float(self.scale)
        if (m + 1) * t > 4096 and t > 8:
            return ((m + 1) * (m + 2) * t * t - 0.25) / 3
        top = int((m + 1) * t + 40 * (1 + math.sqrt(m + 1) * t) + 40 * t + 40)
        r = np.arange(top, dtype=np.float64)
        log_weight = m * np.log(2 * r + 1) - r / t
        weight = np.exp(log_weight - log_weight.max())
        return float((weight * r * (r + 1)).sum() / weight.sum() / 3)


@dataclass(frozen=True)
class DiscreteGaussian:
    """P(z) ∝ exp(−z²/2σ²) on the integers, independently for each cell; `scale` is σ²."""

    scale: Fraction
    name: ClassVar[str] = "discrete-gaussian"
    norm: ClassVar[str] = "L2"

    def __post_init__(self) -> None:
        if not 0 < self.scale <= MAX_SCALE**2:
            _check(Fraction(MAX_SCALE + 1))

    @cached_property
    def variance(self) -> float:
        """σ² to rounding once σ ≥ 4 (Poisson summation: off by under e^{−2π²σ²}); else summed."""
        sigma2 = float(self.scale)
        if sigma2 >= 16:
            return sigma2
        z = np.arange(-64, 65, dtype=np.float64)
        weight = np.exp(-z * z / (2 * sigma2))
        return float((weight * z * z).sum() / weight.sum())


Law = DiscreteLaplace | MaxNorm | DiscreteGaussian


@dataclass(frozen=True)
class Exponential:
    """P(i) ∝ exp(−q_i/t) for integer losses q_i: the exponential mechanism, t = 2Δ/ε."""

    scale: Fraction
    name: ClassVar[str] = "exponential"
    concentration: ClassVar[int] = 8
    """As zCDP it costs ε²/8: its privacy loss has range ε (``noise/exponential.proof.md``)."""

    def __post_init__(self) -> None:
        _check(self.scale)


@dataclass(frozen=True)
class SparseVector:
    """The first of many values to pass a threshold, t = 2Δ/ε: the sparse vector technique.

    Noise is discrete Laplace, of scale t on the threshold and 2t on every value.
    """

    scale: Fraction
    name: ClassVar[str] = "sparse-vector"
    concentration: ClassVar[int] = 2
    """As zCDP it costs ε²/2, like whatever is pure."""

    def __post_init__(self) -> None:
        _check(self.scale, 2)


ChoiceLaw = Exponential | SparseVector
