"""The L∞ mechanism: P(z) ∝ exp(−‖z‖_∞/t) on integer vectors; pure ε for t = Δ_∞/ε."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.privacy.amounts import Amount, Bounds
from dpkde.privacy.laws.base import EntropySource, Floats, Law, WeightedCells, check_scale
from dpkde.privacy.laws.factors import SINC
from dpkde.privacy.laws.tails import Part, gaussian
from dpkde.privacy.numbers import scale_up

_RADII = 16


@dataclass(frozen=True)
class MaxNorm(Law):
    """P(z) ∝ exp(−‖z‖_∞/t) on the integer vectors of `cells` coordinates: the L∞ mechanism."""

    scale: Fraction
    cells: int
    name: ClassVar[str] = "max-norm"
    norm: ClassVar[Literal["L∞"]] = "L∞"
    paid_in: ClassVar[Literal["epsilon"]] = "epsilon"
    is_scalar: ClassVar[bool] = False
    in_opendp: ClassVar[bool] = False
    set_aside: ClassVar[float] = 1 / 8

    def __post_init__(self) -> None:
        check_scale(self.scale, self.cells + 1)

    @cached_property
    def variance(self) -> float:
        """The variance E[r(r+1)]/3, P(r) ∝ (2r+1)^m e^{−r/t} is the radius of the cube drawn from.

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

    def log_weight(self, noise: NDArray[np.int64]) -> Floats:
        """Return −‖z‖_∞/t."""
        return np.asarray(-np.abs(noise.astype(np.float64)).max(axis=1) / float(self.scale))

    @property
    def fourth_moments(self) -> tuple[float, float]:
        """E r⁴/5 and E r⁴/9 for cells uniform up to a radius r, which they share: a Gamma law.

        E r⁴/(E r²)² = (m + 3)(m + 4)/((m + 1)(m + 2)); the variance is E r²/3.
        """
        m = self.cells
        fourth = 9 * self.variance**2 * (m + 3) * (m + 4) / ((m + 1) * (m + 2))
        return fourth / 5, fourth / 9

    @classmethod
    def bought(cls, amount: Amount, moved: Bounds) -> Self:
        """Return the law of scale t = Δ_∞/ε, rounded up."""
        return cls(scale_up(Fraction(moved.linf) / cls.price(amount)), moved.cells)

    @property
    def is_practical(self) -> bool:
        """Whether attempts are kept often enough: about exp(−m/2t) of them are."""
        return self.scale * 16 >= self.cells

    def sample(self, size: int, source: EntropySource) -> NDArray[np.int64]:
        """Return one draw of all cells, which belong together."""
        if size != self.cells:
            raise ParameterError(f"max-norm noise has {self.cells} cells, not {size}")
        from dpkde.privacy.laws.maxnorm.sampler import max_norm

        return max_norm(self.scale, size, source)

    def tail(self, gain: float, peak: float, failure: float) -> Part:
        """Return that of a sub-Gaussian error with variance (r + ½)²/3·G², r a bound on the radius.

        Given its radius r the noise is uniform on a cube, and sub-Gaussian with r(r + 1)/3. The
        radius exceeds t(m + 1 + √(2(m + 1)x) + x) + 1 with probability e^{−x} at most: a Gamma
        tail, the unit for the lattice.
        """
        x = -math.log(failure * self.set_aside)
        m = self.cells + 1
        radius = float(self.scale) * (m + math.sqrt(2 * m * x) + x) + 1
        return gaussian((radius + 0.5) ** 2 / 3 * gain**2)

    def characteristic(self, cells: WeightedCells, u: Floats) -> Floats:
        """Return E ∏ sin(ug_j r)/(ug_j r) over the radius r."""
        radii, masses = _radii(self)
        return np.asarray(
            sum(m * cells.product(u * r, SINC) for r, m in zip(radii, masses, strict=True))
        )


@lru_cache(maxsize=64)
def _radii(law: MaxNorm) -> tuple[Floats, Floats]:
    """Return radii of the cube and their probabilities: a Gamma law of m + 1, by Gauss's rule.

    Radii are scaled so that their mean square gives the law's variance, the lattice included.
    """
    from scipy.stats import gamma

    shape = law.cells + 1
    low, high = gamma.ppf(1e-11, shape), gamma.isf(1e-11, shape)
    points, weights = np.polynomial.legendre.leggauss(_RADII)
    r = low + (high - low) * (points + 1) / 2
    mass = weights * gamma.pdf(r, shape)
    mass /= mass.sum()
    radii = np.asarray(r * math.sqrt(3 * law.variance / float(mass @ r**2)))
    radii.setflags(write=False)
    mass.setflags(write=False)
    return radii, mass
