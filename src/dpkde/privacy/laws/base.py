"""What a law of noise is: everything that anybody asks of one, in one place.

A law is added by one folder: a subclass of `Law`, a compiled sampler with a slow and obvious twin
that reads the same bits, and ``proof.md``; and by one line in `dpkde.privacy.laws`. No other module
tells laws apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from importlib import resources
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.privacy.amounts import Amount, Bounds
from dpkde.privacy.laws.tails import Part
from dpkde.privacy.numbers import plain

MAX_SCALE = 1 << 56
"""Beyond this the noise itself would come near to wrapping around 2⁶⁴."""

Floats = NDArray[np.float64]
EntropySource = Callable[[int], bytes]


def check_scale(scale: Fraction, spread: int = 1) -> None:
    """Refuse a scale whose noise, over so many cells, would not fit 64-bit sums."""
    if not 0 < scale * spread <= MAX_SCALE:
        raise ParameterError(
            f"a noise scale of {plain(scale)} over {spread} cells does not fit 64-bit sums; "
            "use a larger epsilon or a smaller table"
        )


class WeightedCells(Protocol):
    """The cells of a table as a query weighs them."""

    @property
    def variance(self) -> Floats:
        """The variance of the noise at each query."""

    def product(self, u: Floats, factor: Any) -> Floats:
        """Return ∏ factor(u·g_j) over the weights g_j of each query."""


class Law(ABC):
    """A law of noise on the cells of a table, which are integers: its scale, and all it implies.

    Nothing is drawn before `sample` is called, and no sampler is loaded: a client computes standard
    errors from a law that it read in a file. Scales are exact fractions.
    """

    scale: Fraction
    name: ClassVar[str]
    norm: ClassVar[Literal["L1", "L2", "L∞"]]
    """That of the change it hides: noise grows with how far a record moves a table in it."""
    paid_in: ClassVar[Literal["epsilon", "rho"]]
    concentration: ClassVar[int] = 2
    """As zCDP a pure ε costs ε² over this."""
    is_scalar: ClassVar[bool] = True
    """Whether it serves a single number, such as a count, as well as a table, whose cells then have
    independent noise."""
    in_opendp: ClassVar[bool] = True
    set_aside: ClassVar[float] = 0.0
    """The part of a failure probability beyond which `tail` holds."""

    @classmethod
    def sensitivity(cls, moved: Bounds) -> int:
        """Return how far neighbouring tables are apart in the norm of the law; squared for L2."""
        return {"L1": moved.l1, "L2": moved.l2_squared, "L∞": moved.linf}[cls.norm]

    @classmethod
    @abstractmethod
    def bought(cls, amount: Amount, moved: Bounds) -> Self:
        """Return the law that an amount buys against such a change, its scale rounded up.

        Guarantee
        ---------
        Integers that move by at most `moved`, plus noise of this law, cost `amount`.
        """

    @classmethod
    def price(cls, amount: Amount) -> Fraction:
        """Return the amount in the currency of the law; ParameterError where it is the other."""
        value = amount.epsilon if cls.paid_in == "epsilon" else amount.rho
        if value is None:
            raise ParameterError(f"{cls.name} noise is paid for in {cls.paid_in}")
        return value

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance of the noise on one cell; cells are not correlated."""

    @abstractmethod
    def log_weight(self, noise: NDArray[np.int64]) -> Floats:
        """Return ln P[noise], up to a constant, of vectors of shape (n, cells)."""

    @property
    def fourth_moments(self) -> tuple[float, float]:
        """E z_i⁴ and E z_i²z_j² of two cells; those of normal noise where a law knows no others."""
        return 3 * self.variance**2, self.variance**2

    def scaled(self, factor: Fraction) -> Self:
        """Return the law whose standard deviation is so many times as large, for mutants."""
        return replace(self, scale=self.scale * factor)  # type: ignore[type-var]

    @property
    def is_practical(self) -> bool:
        """Whether its sampler is quick enough; from public numbers."""
        return True

    @abstractmethod
    def sample(self, size: int, source: EntropySource) -> NDArray[np.int64]:
        """Return exact draws for `size` cells, from a source of random bytes."""

    def reference(self, size: int) -> NDArray[np.int64]:
        """Return draws by OpenDP, where `in_opendp`."""
        raise ParameterError(f"the opendp sampler has no {self.name} noise")

    @abstractmethod
    def tail(self, gain: float, peak: float, failure: float) -> Part:
        """Return a bound on the noise at a query whose weights have ‖g‖₂ ≤ gain, ‖g‖_∞ ≤ peak.

        It holds but for an event of probability `failure` times `set_aside`.
        """

    def margin(self, failure: float) -> int:
        """Return m with P(|noise on one cell| > m) ≤ failure, where `is_scalar`."""
        raise ParameterError(f"{self.name} noise is for tables, not for single numbers")

    @abstractmethod
    def characteristic(self, cells: WeightedCells, u: Floats) -> Floats:
        """Return the characteristic function at u of the noise at queries, shape (n_queries, n)."""

    def characteristic_of_one(self, x: Floats) -> Floats:
        """Return the same for one cell, x being u² times the variance, where `is_scalar`."""
        raise ParameterError(f"{self.name} noise is for tables, not for single numbers")

    @property
    def proof(self) -> str:
        """Why draws follow the law, and what they hide: the text beside the code."""
        folder = type(self).__module__.rpartition(".")[0]
        return resources.files(folder).joinpath("proof.md").read_text(encoding="utf-8")
