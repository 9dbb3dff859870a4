"""Laws of choices among public options, by losses computed from the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpkde.errors import ParameterError
from dpkde.privacy.amounts import Amount
from dpkde.privacy.laws.base import check_scale
from dpkde.privacy.numbers import scale_up


@dataclass(frozen=True)
class ChoiceLaw:
    """A law of a choice: its scale, and what that costs."""

    scale: Fraction
    name: ClassVar[str]
    concentration: ClassVar[int]
    """As zCDP a pure ε costs ε² over this."""

    @classmethod
    def bought(cls, amount: Amount, sensitivity: int) -> Self:
        """Return the law that an amount buys, its scale rounded up: t = 2Δ/ε.

        ρ buys what ε = √(concentration·ρ) does, so that t² = 4Δ²/(concentration·ρ).
        """
        if sensitivity < 1:
            raise ParameterError("a choice needs a sensitivity of at least 1")
        if amount.epsilon is not None:
            return cls(scale_up(2 * Fraction(sensitivity) / amount.epsilon))
        square = 4 * Fraction(sensitivity) ** 2 / (cls.concentration * amount.as_rho)
        # ⌈2¹⁶·√square⌉ / 2¹⁶, in integers: at least the root.
        return cls(scale_up(Fraction(math.isqrt(math.ceil(square * (1 << 32))) + 1, 1 << 16)))


@dataclass(frozen=True)
class Exponential(ChoiceLaw):
    """P(i) ∝ exp(−q_i/t) for integer losses q_i: the exponential mechanism, t = 2Δ/ε."""

    name: ClassVar[str] = "exponential"
    concentration: ClassVar[int] = 8
    """As zCDP it costs ε²/8: its privacy loss has range ε (``proof.md``)."""

    def __post_init__(self) -> None:
        check_scale(self.scale)


@dataclass(frozen=True)
class SparseVector(ChoiceLaw):
    """The first of many values to pass a threshold, t = 2Δ/ε: the sparse vector technique.

    Noise is discrete Laplace, of scale t on the threshold and 2t on every value.
    """

    name: ClassVar[str] = "sparse-vector"
    concentration: ClassVar[int] = 2
    """As zCDP it costs ε²/2, like whatever is pure."""

    def __post_init__(self) -> None:
        check_scale(self.scale, 2)
