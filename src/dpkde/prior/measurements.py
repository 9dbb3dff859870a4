"""What multiplicative weights pay for, in rounds and online: a count first, then single sums."""

from __future__ import annotations

from fractions import Fraction

from dpkde.prior.base import Private, Sums
from dpkde.prior.lattice import CAPACITY, LATTICE_BITS, Integers, one_sum
from dpkde.privacy.amounts import Adjacency, Amount
from dpkde.privacy.budget import Budget
from dpkde.privacy.laws import ChoiceLaw, law_of_a_number

COUNT_SHARE = Fraction(1, 16)
"""The count's part of the budget. A KDE value p is off by p·(noise of the count)/n for it, and p is
small."""


def better_amount(budget: Budget, part: Fraction, law: type[ChoiceLaw]) -> Amount:
    """Return all that is left, as pure ε or as ρ: whichever has the smaller scale for a part."""
    ways = (budget.left_pure(), budget.left_concentrated())
    left = [amount for amount in ways if amount is not None]
    return min(left, key=lambda amount: law.bought(amount.part(part), 1 << LATTICE_BITS).scale)


def count_first(
    private: Private, totals: Sums, amount: Amount, budget: Budget
) -> tuple[int, Amount]:
    """Return the number of records, and what is left of an amount once that is paid for.

    Under replace the number of rows is public, and all of the amount is left.
    """
    if budget.guarantee.adjacency is Adjacency.REPLACE:
        return max(totals.rows, 1), amount
    count = private.noisy_count(totals, budget, amount.part(COUNT_SHARE))
    return min(count, CAPACITY), amount.part(1 - COUNT_SHARE)


def measure(one: Integers, amount: Amount, budget: Budget) -> int:
    """Return one kernel sum with noise, paid for first. Its shape is (1,): it adds modulo 2⁶⁴."""
    bounds = one_sum(budget.guarantee.adjacency)
    spend = budget.spend("measurement", amount, law_of_a_number(amount), bounds)
    return int(budget.noised(spend, one)[0])
