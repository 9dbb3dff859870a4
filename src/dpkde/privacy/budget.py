"""The budget: the only source of a noise scale.

A guarantee is declared once, as pure ε, as (ε, δ), or as ρ (zero-concentrated). Each `spend`
checks that the guarantee still holds with it, records it, and only then hands out a law with its
scale: budget is debited before noise is drawn, so a crash can waste budget but never spend twice.

How spends add up. Let each spend cost either ε_i (pure) or ρ_i (zCDP).

* All pure: the composition is (Σε_i)-DP.
* Otherwise it is ρ-zCDP with ρ = Σ ε_i²/2 + Σ ρ_i, since a pure ε_i costs at most ε_i²/2; the
  exponential mechanism's costs ε_i²/8.

A budget of (ε, δ) is kept when Σε_i ≤ ε with all spends pure, or when ρ ≤ ρ(ε, δ) of
`concentrated.rho_within`. The choice between the two may depend on what the earlier spends
released (the noisy count picks the law of the table). It stays sound: write the hockey-stick
divergence at ε as a sum over the first release c. Where c leads to a pure branch every outcome's
likelihood ratio is at most e^ε and the term is not positive. The other terms are those of a
mechanism that goes on only for those c, which is ρ-zCDP, so that they sum to at most δ.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from dpkde.errors import BudgetError, ParameterError
from dpkde.privacy.concentrated import rho_within
from dpkde.privacy.laws import ChoiceLaw, DiscreteGaussian, DiscreteLaplace, Law, MaxNorm
from dpkde.privacy.numbers import Exact, exact, plain, positive, scale_up

LEAST_DELTA = Fraction(1, 10**300)


class Adjacency(StrEnum):
    """Which data sets count as neighbours."""

    ADD_REMOVE = "add-remove"
    """They differ by one record more or less; the number of records is private."""
    REPLACE = "replace"
    """They differ by the values of one record; the number of records is public."""


@dataclass(frozen=True)
class Bounds:
    """How far one record can move a table of integers: declared by a family, enforced in code.

    Attributes
    ----------
    cells
        Number of coordinates of the table.
    l1, linf
        Bounds on Σ|q_j| and max|q_j|.
    l2_squared
        Bound on Σq_j²; squared, so that it stays an integer.
    nonnegative
        Whether every q_j ≥ 0. Two such vectors are at most √2 apart in L2, not 2.
    """

    cells: int
    l1: int
    l2_squared: int
    linf: int
    nonnegative: bool

    def under(self, adjacency: Adjacency) -> Bounds:
        """Return the bounds on the difference between neighbouring tables."""
        if adjacency is Adjacency.ADD_REMOVE:
            return self
        return Bounds(
            cells=self.cells,
            l1=2 * self.l1,
            l2_squared=(2 if self.nonnegative else 4) * self.l2_squared,
            # Two vectors in [0, Δ] are Δ apart at most; in [−Δ, Δ] they are 2Δ apart.
            linf=(1 if self.nonnegative else 2) * self.linf,
            nonnegative=False,
        )


COUNT = Bounds(cells=1, l1=1, l2_squared=1, linf=1, nonnegative=True)
"""One record moves the count by one."""


@dataclass(frozen=True)
class Amount:
    """A part of a budget: `epsilon` (pure) or `rho` (zCDP), exactly one of them."""

    epsilon: Fraction | None = None
    rho: Fraction | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise ParameterError("an amount is either pure epsilon or rho")
        if min(value for value in (self.epsilon, self.rho) if value is not None) <= 0:
            raise BudgetError("nothing is left to spend")

    @property
    def as_rho(self) -> Fraction:
        """What this amount costs in zero-concentrated terms."""
        return self.rho if self.rho is not None else self.epsilon**2 / 2  # type: ignore[operator]

    def part(self, share: Fraction) -> Amount:
        """Return a share of it, exactly."""
        if self.epsilon is not None:
            return Amount(epsilon=self.epsilon * share)
        assert self.rho is not None
        return Amount(rho=self.rho * share)

    def __str__(self) -> str:
        if self.epsilon is not None:
            return f"ε = {plain(self.epsilon)}"
        assert self.rho is not None
        return f"ρ = {plain(self.rho)} (zCDP)"


@dataclass(frozen=True)
class Spend:
    """One debit: what for, how much, and the law it bought."""

    purpose: str
    amount: Amount
    law: Law
    sensitivity: int
    """In the norm of the law; squared for the Gaussian."""

    @property
    def as_rho(self) -> Fraction:
        """What it costs in zero-concentrated terms."""
        return self.amount.as_rho

    def __str__(self) -> str:
        return f"{self.purpose}: {self.amount}, {self.law.name} noise"


@dataclass(frozen=True)
class Selection:
    """One debit for a choice among public options, by losses computed from the data."""

    purpose: str
    amount: Amount
    law: ChoiceLaw
    sensitivity: int
    """How far one record moves any loss."""

    @property
    def as_rho(self) -> Fraction:
        """What it costs in zero-concentrated terms: ε²/8 or ε²/2, by the law."""
        if self.amount.epsilon is None:
            return self.amount.as_rho
        return self.amount.epsilon**2 / self.law.concentration

    def __str__(self) -> str:
        return f"{self.purpose}: {self.amount}, {self.law.name} mechanism"


Debit = Spend | Selection
"""What a budget records."""


@dataclass(frozen=True)
class Guarantee:
    """What is promised: pure ε, (ε, δ), or ρ-zCDP, for one notion of neighbours."""

    adjacency: Adjacency
    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None

    @classmethod
    def declare(
        cls,
        *,
        epsilon: Exact | None = None,
        delta: Exact = 0,
        rho: Exact | None = None,
        adjacency: str = Adjacency.ADD_REMOVE,
    ) -> Guarantee:
        """Check what a caller typed. Exactly one of `epsilon` and `rho` is needed."""
        try:
            neighbours = Adjacency(adjacency)
        except ValueError:
            raise ParameterError(
                f"adjacency must be 'add-remove' or 'replace', got {adjacency!r}"
            ) from None
        if (epsilon is None) == (rho is None):
            raise ParameterError("give exactly one of epsilon and rho, such as epsilon=0.5")
        small = exact(delta, "delta")
        if not 0 <= small < 1:
            raise ParameterError(f"delta must be at least 0 and below 1, got {delta!r}")
        if 0 < small < LEAST_DELTA:
            raise ParameterError("delta must be 0 or at least 1e-300")
        if rho is not None:
            if small:
                raise ParameterError("delta goes with epsilon; rho needs none")
            return cls(neighbours, rho=positive(rho, "rho"))
        assert epsilon is not None
        return cls(neighbours, epsilon=positive(epsilon, "epsilon"), delta=small)

    def __str__(self) -> str:
        if self.rho is not None:
            promise = f"ρ={plain(self.rho)}"
        else:
            assert self.epsilon is not None
            promise = f"ε={plain(self.epsilon)}"
            if self.delta:
                promise += f" δ={plain(self.delta)}"
        return f"{promise} {self.adjacency}"


class Budget:
    """A guarantee and what has been spent of it. Thread-safe.

    Guarantee
    ---------
    Whatever adaptive sequence of spends succeeds, releasing integer sums plus noise of the laws
    handed out satisfies `guarantee`, if each sum moves by at most the bounds given with its spend.
    """

    def __init__(self, guarantee: Guarantee) -> None:
        self.guarantee = guarantee
        self._spends: list[Debit] = []
        self._lock = threading.Lock()

    @property
    def spends(self) -> tuple[Debit, ...]:
        """Every debit so far, in order."""
        return tuple(self._spends)

    def left_pure(self) -> Amount | None:
        """What can still be spent as pure ε, or None where the budget is zCDP."""
        if self.guarantee.epsilon is None or any(s.amount.rho for s in self._spends):
            return None
        spent = sum((s.amount.epsilon or Fraction(0) for s in self._spends), Fraction(0))
        return Amount(epsilon=self.guarantee.epsilon - spent)

    def left_concentrated(self) -> Amount | None:
        """What can still be spent as ρ, or None where δ leaves no room for it."""
        spent = sum((s.as_rho for s in self._spends), Fraction(0))
        left = self._rho_limit() - spent
        return Amount(rho=left) if left > 0 else None

    def spend(self, purpose: str, amount: Amount, law: type[Law], bounds: Bounds) -> Spend:
        """Debit `amount` and return the law of the noise it pays for.

        Parameters
        ----------
        purpose
            What the noise protects; goes into the statement of the release.
        amount
            Pure ε for `DiscreteLaplace` and `MaxNorm`, ρ for `DiscreteGaussian`.
        law
            Which law.
        bounds
            How far one record moves the integers that the noise will be added to.
        """
        bought = price(amount, law, bounds.under(self.guarantee.adjacency))
        spend = Spend(purpose, amount, bought, _sensitivity(law, bounds, self.guarantee.adjacency))
        self.debit(spend)
        return spend

    def select(
        self, purpose: str, amount: Amount, law: type[ChoiceLaw], sensitivity: int
    ) -> Selection:
        """Debit `amount` and return the law of the choice it pays for.

        Parameters
        ----------
        purpose
            What is chosen; goes into the statement.
        amount
            Pure ε or ρ.
        law
            `Exponential` for one choice among many, `SparseVector` for the first of many checks
            that fires.
        sensitivity
            How far the losses, or the values checked, of neighbouring data sets can be apart.
        """
        selection = Selection(purpose, amount, price_choice(amount, law, sensitivity), sensitivity)
        self.debit(selection)
        return selection

    def debit(self, *spends: Debit) -> None:
        """Record spends, all or none: `BudgetError` where they are more than is left."""
        with self._lock:
            self._check([*self._spends, *spends])
            self._spends.extend(spends)

    def _rho_limit(self) -> Fraction:
        if self.guarantee.rho is not None:
            return self.guarantee.rho
        assert self.guarantee.epsilon is not None
        return rho_within(self.guarantee.epsilon, self.guarantee.delta)

    def _check(self, spends: list[Debit]) -> None:
        pure = [s.amount.epsilon for s in spends if s.amount.epsilon is not None]
        if self.guarantee.epsilon is not None and len(pure) == len(spends):
            within = sum(pure, Fraction(0)) <= self.guarantee.epsilon
        else:
            within = sum((s.as_rho for s in spends), Fraction(0)) <= self._rho_limit()
        if not within:
            raise BudgetError(
                f"{spends[-1].purpose} asks for {spends[-1].amount}, which is more than is left of "
                f"{self.guarantee}"
            )


def price(amount: Amount, law: type[Law], bounds: Bounds) -> Law:
    """Return the law that `amount` buys against a change of at most `bounds`, rounded up.

    * discrete Laplace: t = Δ₁/ε;  * max norm: t = Δ_∞/ε;  * discrete Gaussian: σ² = Δ₂²/2ρ.
    """
    if law is DiscreteGaussian:
        if amount.rho is None:
            raise ParameterError("Gaussian noise is paid for in rho")
        return DiscreteGaussian(scale_up(Fraction(bounds.l2_squared) / (2 * amount.rho)))
    if amount.epsilon is None:
        raise ParameterError(f"{law.name} noise is paid for in epsilon")
    if law is MaxNorm:
        return MaxNorm(scale_up(Fraction(bounds.linf) / amount.epsilon), bounds.cells)
    return DiscreteLaplace(scale_up(Fraction(bounds.l1) / amount.epsilon))


def price_choice(amount: Amount, law: type[ChoiceLaw], sensitivity: int) -> ChoiceLaw:
    """Return the law that `amount` buys for a choice, rounded up: t = 2Δ/ε.

    ρ buys what ε = √(concentration·ρ) does, so that t² = 4Δ²/(concentration·ρ).
    """
    if sensitivity < 1:
        raise ParameterError("a choice needs a sensitivity of at least 1")
    if amount.epsilon is not None:
        return law(scale_up(2 * Fraction(sensitivity) / amount.epsilon))
    assert amount.rho is not None
    square = 4 * Fraction(sensitivity) ** 2 / (law.concentration * amount.rho)
    # ⌈2¹⁶·√square⌉ / 2¹⁶, in integers: at least the root.
    return law(scale_up(Fraction(math.isqrt(math.ceil(square * (1 << 32))) + 1, 1 << 16)))


def _sensitivity(law: type[Law], bounds: Bounds, adjacency: Adjacency) -> int:
    moved = bounds.under(adjacency)
    if law is DiscreteGaussian:
        return moved.l2_squared
    return moved.linf if law is MaxNorm else moved.l1


@lru_cache(maxsize=1024)
def cheapest(
    options: tuple[tuple[Amount, type[Law]], ...], bounds: Bounds
) -> tuple[Amount, type[Law], Law]:
    """Return the (amount, law) pair whose noise on a cell has the smallest variance.

    The response to a query does not depend on the law, so neither does the factor between a
    cell's noise and a query's: the smallest variance gives the least root mean square error
    everywhere. Mean absolute errors all but follow: for δ up to 10⁻⁶ Gaussian noise ties only where
    a record moves some six cells or more, and sums of so many Laplace draws are nearly Gaussian,
    their mean absolute value at most 2% less.
    """
    priced = []
    refused: ParameterError | None = None
    for amount, law in options:
        try:
            bought = price(amount, law, bounds)
        except ParameterError as error:  # this law's scale does not fit 64 bits; another may
            refused = error
            continue
        # With so many cells or so large an ε that the max-norm sampler would rarely accept,
        # Laplace is used; the rule is made of public numbers.
        if isinstance(bought, MaxNorm) and bought.scale * 16 < bounds.cells:
            continue
        priced.append((bought.variance, amount, law, bought))
    if not priced:
        raise refused or BudgetError("no noise law fits this budget")
    return min(priced, key=lambda entry: entry[0])[1:]
