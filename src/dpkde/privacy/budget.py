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
divergence at ε as a sum over c, all that was released before the table (the noisy count, and the
looks that were paid for after it). Where c leads to a pure branch every outcome's
likelihood ratio is at most e^ε and the term is not positive. The other terms are those of a
mechanism that goes on only for those c, which is ρ-zCDP, so that they sum to at most δ.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import BudgetError, ParameterError
from dpkde.privacy.amounts import ONE_RECORD, Adjacency, Amount, Bounds, Unit
from dpkde.privacy.concentrated import rho_within
from dpkde.privacy.laws import NOISES, ChoiceLaw, Law, Randomness
from dpkde.privacy.laws.draw import OnPaper
from dpkde.privacy.numbers import Exact, exact, plain, positive

LEAST_DELTA = Fraction(1, 10**300)


@dataclass(frozen=True)
class Debit(ABC):
    """What a budget records: what for, how much, and the law it bought."""

    purpose: str
    amount: Amount
    law: Law | ChoiceLaw
    sensitivity: int
    """How far one record moves a loss, or a sum in the norm of the law (squared for L2)."""

    @property
    def as_rho(self) -> Fraction:
        """What it costs in zero-concentrated terms: for pure ε, ε²/2 or ε²/8, by the law."""
        return self.amount.rho or 2 * self.amount.as_rho / self.law.concentration

    @property
    @abstractmethod
    def mechanism(self) -> str:
        """What made it private, in words."""

    def told(self, times: int = 1) -> str:
        """Return it in words; of several that are alike, what each of them cost."""
        often, each = ("", "") if times == 1 else (f", {times} times", " each")
        return f"{self.purpose}{often}: {self.amount}{each}, {self.mechanism}"

    def __str__(self) -> str:
        return self.told()


@dataclass(frozen=True)
class Spend(Debit):
    """One debit for noise."""

    law: Law

    @property
    def mechanism(self) -> str:
        """What made it private, in words."""
        return f"{self.law.name} noise"


@dataclass(frozen=True)
class Selection(Debit):
    """One debit for a choice among public options, by losses computed from the data."""

    law: ChoiceLaw

    @property
    def mechanism(self) -> str:
        """What made it private, in words."""
        return f"{self.law.name} mechanism"


Options = tuple[tuple[Amount, type[Law]], ...]
"""Amounts, and the laws that they are to buy."""


@dataclass(frozen=True)
class Guarantee:
    """What is promised: pure ε, (ε, δ), or ρ-zCDP, for one notion of neighbours.

    Neighbours are told apart by all the records of one `unit`.
    """

    adjacency: Adjacency
    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    unit: Unit = ONE_RECORD

    @classmethod
    def declare(
        cls,
        *,
        epsilon: Exact | None = None,
        delta: Exact = 0,
        rho: Exact | None = None,
        adjacency: str = Adjacency.ADD_REMOVE,
        unit: Unit = ONE_RECORD,
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
        if rho is not None and small:
            raise ParameterError("delta goes with epsilon; rho needs none")
        return cls(
            neighbours,
            epsilon=None if epsilon is None else positive(epsilon, "epsilon"),
            delta=small,
            rho=None if rho is None else positive(rho, "rho"),
            unit=unit,
        )

    def moved(self, bounds: Bounds) -> Bounds:
        """Return how far neighbouring sums are apart, where one record moves them within bounds.

        By the records of a unit together, and for replacing it by as many others.
        """
        return bounds.times(self.unit.records).under(self.adjacency)

    @property
    def count_is_public(self) -> bool:
        """Whether the number of records is told as it is.

        Under replace that of units is, and it is that of records only where they are the same.
        """
        return self.adjacency is Adjacency.REPLACE and self.unit.name is None

    @property
    def rho_limit(self) -> Fraction:
        """The ρ that keeps it: the declared one, or the largest that implies (ε, δ)."""
        if self.rho is not None:
            return self.rho
        assert self.epsilon is not None
        return rho_within(self.epsilon, self.delta)

    def __str__(self) -> str:
        numbers = {"ε": self.epsilon, "δ": self.delta, "ρ": self.rho}
        promise = [f"{name}={plain(value)}" for name, value in numbers.items() if value]
        whose = [] if self.unit == ONE_RECORD else [f"per {self.unit.name or self.unit}"]
        return " ".join([*promise, self.adjacency, *whose])


Choosing = TypeVar("Choosing", bound=ChoiceLaw)


class Budget:
    """A guarantee and what has been spent of it. Thread-safe.

    `randomness` draws what was paid for: noise, choices and thresholds.

    Guarantee
    ---------
    Whatever adaptive sequence of spends succeeds, releasing integer sums plus noise of the laws
    handed out satisfies `guarantee`, if each sum moves by at most the bounds given with its spend.
    """

    def __init__(self, guarantee: Guarantee, randomness: Randomness | None = None) -> None:
        self.guarantee = guarantee
        self.randomness = Randomness() if randomness is None else randomness
        self._spends: list[Debit] = []
        self._lock = threading.Lock()

    @property
    def spends(self) -> tuple[Debit, ...]:
        """Every debit so far, in order."""
        return tuple(self._spends)

    def spent_on(self, purpose: str) -> Spend | None:
        """Return the noise that was paid for a purpose; None where there is none yet."""
        noises = (spend for spend in self._spends if isinstance(spend, Spend))
        return next((spend for spend in noises if spend.purpose == purpose), None)

    def left_pure(self) -> Amount | None:
        """Return what can still be spent as pure ε, or None where the budget is zCDP."""
        if self.guarantee.epsilon is None or any(s.amount.rho for s in self._spends):
            return None
        spent = sum((s.amount.epsilon or Fraction(0) for s in self._spends), Fraction(0))
        return Amount(epsilon=self.guarantee.epsilon - spent)

    def left_concentrated(self) -> Amount | None:
        """Return what can still be spent as ρ, or None where δ leaves no room for it."""
        spent = sum((s.as_rho for s in self._spends), Fraction(0))
        left = self.guarantee.rho_limit - spent
        return Amount(rho=left) if left > 0 else None

    @property
    def options(self) -> Options:
        """The (amount, law) pairs that what is left can buy."""
        left = {"epsilon": self.left_pure(), "rho": self.left_concentrated()}
        ways = ((left[law.paid_in], law) for law in NOISES.values() if self.randomness.has(law))
        return tuple((amount, law) for amount, law in ways if amount is not None)

    def noise(self, spend: Spend, size: int) -> NDArray[np.int64]:
        """Return fresh noise of a law that was paid for here.

        A spend pays for one draw on each number within its bounds: whoever draws again has to add
        it to other numbers, as one who answers queries in turn does.
        """
        if not any(spend is paid for paid in self._spends):
            raise BudgetError(f"{spend.purpose} is not paid for: noise is drawn after its debit")
        return self.randomness.noise(spend.law, size)

    def noised(self, spend: Spend, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return exact sums with noise of a law that was paid for here: the road to what is public.

        As for `noise`; whoever can add the noise at once takes this way, since then a run can be
        played again with other sums and the same outcome (`dpkde.curator.auditing.transcript`).
        """
        return self.randomness.added(sums, self.noise(spend, len(sums)))

    def on_paper(self, guarantee: Guarantee | None = None) -> Budget:
        """Return an unspent budget, to try what could be bought: nothing is drawn from it."""
        return Budget(guarantee or self.guarantee, OnPaper(self.randomness))

    def spend(self, purpose: str, amount: Amount, law: type[Law], bounds: Bounds) -> Spend:
        """Debit `amount` and return the law of the noise it pays for.

        Parameters
        ----------
        purpose
            What the noise protects; goes into the statement of the release.
        amount
            Pure ε or ρ, whichever the law is paid in.
        law
            Which law.
        bounds
            How far one record moves the integers that the noise will be added to.
        """
        moved = self.guarantee.moved(bounds)
        spend = Spend(purpose, amount, law.bought(amount, moved), law.sensitivity(moved))
        self.debit(spend)
        return spend

    def select(
        self, purpose: str, amount: Amount, law: type[Choosing], sensitivity: int
    ) -> Choosing:
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
        bought = law.bought(amount, sensitivity)
        self.debit(Selection(purpose, amount, bought, sensitivity))
        return bought

    def debit(self, *spends: Debit) -> None:
        """Record spends, all or none: `BudgetError` where they are more than is left."""
        with self._lock:
            self._check([*self._spends, *spends])
            self._spends.extend(spends)

    def _check(self, spends: list[Debit]) -> None:
        pure = [s.amount.epsilon for s in spends if s.amount.epsilon is not None]
        if self.guarantee.epsilon is not None and len(pure) == len(spends):
            within = sum(pure, Fraction(0)) <= self.guarantee.epsilon
        else:
            within = sum((s.as_rho for s in spends), Fraction(0)) <= self.guarantee.rho_limit
        if not within:
            raise BudgetError(
                f"{spends[-1].purpose} asks for {spends[-1].amount}, which is more than is left of "
                f"{self.guarantee}"
            )


@lru_cache(maxsize=1024)
def cheapest(options: Options, bounds: Bounds) -> tuple[Amount, type[Law], Law]:
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
            bought = law.bought(amount, bounds)
        except ParameterError as error:  # this law's scale does not fit 64 bits; another may
            refused = error
        else:
            if bought.is_practical:
                priced.append((bought.variance, amount, law, bought))
    if not priced:
        raise refused or BudgetError("no noise law fits this budget")
    return min(priced, key=lambda entry: entry[0])[1:]
