"""What is allowed: exact sums of ε and δ, or zCDP, whichever leaves more.

Each release costs its declared guarantee, in two currencies at once: by sums ε_i and δ_i, as zCDP
ρ_i. A total of

* ε is kept where Σε_i ≤ ε and no release has a δ;
* ρ is kept where Σρ_i ≤ ρ;
* (ε, δ) is kept where Σε_i ≤ ε and Σδ_i ≤ δ_sums, or where Σρ_i ≤ ρ(ε, δ_zcdp) of `rho_within`.
  Both together cost δ_sums + δ_zcdp, which is δ: `Division`.

All of it holds when each release is chosen after seeing the ones before (``proof.md``; Rogers,
Roth, Ullman and Vadhan 2016 for sums, Feldman and Zrnic 2021 and Whitehouse, Ramdas, Rogers and
Wu 2023 for zCDP). Fractions alone decide; what is rounded is rounded towards more spent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from dpkde.privacy.budget import Debit, Guarantee
from dpkde.privacy.concentrated import epsilon_of, rho_within
from dpkde.privacy.numbers import rounded_down

_NONE = Fraction(0)
_ROOT = 1 << 90
"""Square roots are multiples of one over this."""


@dataclass(frozen=True)
class Cost:
    """What something costs by sums and as zCDP.

    Attributes
    ----------
    epsilon
        By sums; None where it has none, as a guarantee stated as ρ.
    delta
        By sums.
    rho
        As zCDP.
    """

    epsilon: Fraction | None = _NONE
    delta: Fraction = _NONE
    rho: Fraction = _NONE

    @classmethod
    def of(cls, guarantee: Guarantee) -> Cost:
        """Return what a release with this guarantee may cost, before it is made.

        (ε, δ) is ε²/2 or ρ(ε, δ) as zCDP, by what its noisy count leads to: the larger of the two.
        """
        if guarantee.rho is not None:
            return cls(None, _NONE, guarantee.rho)
        assert guarantee.epsilon is not None
        return cls(
            guarantee.epsilon,
            guarantee.delta,
            max(guarantee.epsilon**2 / 2, rho_within(guarantee.epsilon, guarantee.delta)),
        )

    def after(self, debits: Sequence[Debit]) -> Cost:
        """Return what an orderly refusal leaves of it: what was debited until then.

        The δ of a release that drew anything stays: its part of the bound is that of all runs
        together, and not of those that were refused (``proof.md``).
        """
        if not debits:
            return NOTHING
        rho = min(self.rho, _short(sum((debit.as_rho for debit in debits), _NONE)))
        pure = [debit.amount.epsilon for debit in debits]
        epsilon = self.epsilon
        if all(pure):
            spent = _short(sum((each or _NONE for each in pure), _NONE))
            epsilon = spent if epsilon is None else min(spent, epsilon)
        return Cost(epsilon, self.delta, rho)

    def is_within(self, reserved: Cost) -> bool:
        """Tell whether it can be what a refusal left of another."""
        if self == NOTHING:
            return True
        if self.epsilon is None or reserved.epsilon is None:
            sums = reserved.epsilon is None
        else:
            sums = self.epsilon <= reserved.epsilon
        return sums and self.delta == reserved.delta and self.rho <= reserved.rho

    def __add__(self, other: Cost) -> Cost:
        known = self.epsilon is not None and other.epsilon is not None
        epsilon = self.epsilon + other.epsilon if known else None  # type: ignore[operator]
        return Cost(epsilon, self.delta + other.delta, self.rho + other.rho)


NOTHING = Cost()


def total_of(costs: Iterable[Cost]) -> Cost:
    """Return what several cost together."""
    return sum(costs, NOTHING)


def worst_of(costs: Iterable[Cost]) -> Cost:
    """Return the largest of each number."""
    several = [NOTHING, *costs]
    sums = [cost.epsilon for cost in several]
    return Cost(
        None if None in sums else max(each for each in sums if each is not None),
        max(cost.delta for cost in several),
        max(cost.rho for cost in several),
    )


class Division(NamedTuple):
    """How the δ of a total is divided between the two ways of counting."""

    sums: Fraction
    zcdp: Fraction


def division(total: Guarantee, first: Guarantee) -> Division:
    """Return how δ is divided, by the first release: nothing has been drawn when it is reserved.

    Paths that are allowed by sums may cost δ_sums together, those that are allowed by zCDP
    δ_zcdp, and which path is taken may hang on what was released: so the two have to add up to δ.
    A first release with a δ of its own, which only sums can use, gives all to the sums; one stated
    as ρ, which only zCDP can, gives all to zCDP. A pure one gives each half.
    """
    if first.rho is not None:
        return Division(_NONE, total.delta)
    if first.delta:
        return Division(total.delta, _NONE)
    return Division(total.delta / 2, total.delta / 2)


@dataclass(frozen=True)
class Left:
    """What is left for the next release: any one of these.

    Attributes
    ----------
    epsilon
        The most that a pure release may have.
    delta
        The most that a release may have; its ε is then at most `epsilon_with_delta`.
    epsilon_with_delta
        The most ε of a release with a δ.
    rho
        The most that a release stated as ρ may have.
    """

    epsilon: Fraction
    delta: Fraction
    epsilon_with_delta: Fraction
    rho: Fraction


@dataclass(frozen=True)
class Rule:
    """A total, and how its δ is divided; None while nothing was reserved."""

    total: Guarantee
    divided: Division | None = None

    @property
    def _divisions(self) -> list[Division]:
        """The one that holds, or all that the first release may choose."""
        delta = self.total.delta
        return [self.divided] if self.divided else [Division(delta, _NONE), Division(_NONE, delta)]

    def allows(self, cost: Cost) -> bool:
        """Tell whether so much may be spent in all."""
        return any(
            self._sums_left(cost, divided) is not None or self._rho_left(cost, divided) is not None
            for divided in self._divisions
        )

    def left(self, cost: Cost) -> Left:
        """Return what is left when so much is spent, rounded down."""
        sums = [self._sums_left(cost, divided) for divided in self._divisions]
        epsilon, delta = max((each for each in sums if each), default=(_NONE, _NONE))
        rho = max(self._rho_left(cost, divided) or _NONE for divided in self._divisions)
        by_zcdp = Fraction(math.isqrt(math.floor(2 * rho * _ROOT**2)), _ROOT)
        stated = self.total.rho is not None
        return Left(
            epsilon=max(epsilon, by_zcdp),
            delta=delta,
            epsilon_with_delta=by_zcdp if stated else epsilon if delta else _NONE,
            rho=rho,
        )

    def spent(self, cost: Cost) -> Guarantee | None:
        """Return the guarantee that so much keeps, of the kind of the total; None for nothing."""
        if cost == NOTHING:
            return None
        if self.total.rho is not None:
            return replace(self.total, rho=cost.rho) if cost.rho else None
        ways = []
        for divided in self._divisions:
            if cost.epsilon is not None and cost.delta <= divided.sums:
                ways.append(replace(self.total, epsilon=cost.epsilon, delta=cost.delta))
            if divided.zcdp and cost.rho <= rho_within(self._epsilon, divided.zcdp):
                epsilon = min(epsilon_of(cost.rho, divided.zcdp), self._epsilon)
                ways.append(replace(self.total, epsilon=epsilon, delta=divided.zcdp))
        return min(ways, key=lambda way: (way.epsilon, way.delta), default=None)

    @property
    def _epsilon(self) -> Fraction:
        assert self.total.epsilon is not None
        return self.total.epsilon

    def _sums_left(self, cost: Cost, divided: Division) -> tuple[Fraction, Fraction] | None:
        """Return the ε and δ that sums leave; None where they do not allow so much."""
        if self.total.rho is not None or cost.epsilon is None:
            return None
        left = self._epsilon - cost.epsilon, divided.sums - cost.delta
        return left if min(left) >= 0 else None

    def _rho_left(self, cost: Cost, divided: Division) -> Fraction | None:
        """Return the ρ that zCDP leaves; None where it does not allow so much."""
        if self.total.rho is None and not divided.zcdp:
            return None
        limit = self.total.rho or rho_within(self._epsilon, divided.zcdp)
        return limit - cost.rho if cost.rho <= limit else None


def least_of(lefts: Sequence[Left]) -> Left:
    """Return what is left for all of several parts at once."""
    return Left(
        *(
            min(getattr(left, name) for left in lefts)
            for name in ("epsilon", "delta", "epsilon_with_delta", "rho")
        )
    )


def _short(value: Fraction) -> Fraction:
    """Round up to few digits, where a number has many."""
    if not value or value.denominator < 1 << 64:
        return value
    short = rounded_down(value, 15)
    return value if short == value else short * (1 + Fraction(2, 10**14))
