"""Laplace and Gaussian answers: exact sums, independent noise on each.

A record moves q kernel sums by at most 1 each: by q in L1, and by √q in L2. So the noise on a sum
has the standard deviation √2·q/ε_t with Laplace noise, and √(q/2ρ_t) with Gaussian noise. Both take
O(n·q·d) time, whatever the kernel, and serve a few queries; for one nothing is better.

Guarantee: sums are of integers rint(k(x, y)·2^b) from 0 to 2^b, `Private.kernel_sums` enforces it,
and noise of the law that `Budget.spend` prices for q·2^b (L1) or q·4^b (L2²) is added to them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpkde.errors import BudgetError
from dpkde.kernels import Points
from dpkde.prior.base import (
    Answered,
    KernelValues,
    Private,
    QueryMechanism,
    charged,
    concentrated_shares,
    deviation_of,
    pure_shares,
)
from dpkde.privacy.amounts import Amount
from dpkde.privacy.budget import Budget
from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace, Law


class _Independent(QueryMechanism):
    """Kernel sums with independent noise of one law."""

    law: ClassVar[type[Law]]

    def answer(self, private: Private, queries: Points, budget: Budget) -> Answered:
        """Return exact sums with noise for all of them together. O(n·q·d)."""
        return self.session(private, budget, max(len(queries), 1)).ask(queries)

    def session(self, private: Private, budget: Budget, most_queries: int) -> IndependentSession:
        """Return a session in which each query has an equal part of the budget."""
        if self.law.paid_in == "epsilon":
            count, whole = pure_shares(private, budget, float(most_queries), self.name)
        else:
            count, whole = concentrated_shares(private, budget, math.sqrt(most_queries), self.name)
        return IndependentSession(self, private, budget, most_queries, count, whole)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class LaplaceAnswers(_Independent):
    """The Laplace mechanism: noise Laplace(q/ε_t) on each of q kernel sums. Pure ε.

    Error of a KDE value: about √2·q/(ε_t·n); n ~ q·log q/(ε·α) records for error α.
    """

    name: ClassVar[str] = "laplace"
    law = DiscreteLaplace


class GaussianAnswers(_Independent):
    """The Gaussian mechanism: noise N(0, q/2ρ_t) on each of q kernel sums. Needs δ > 0, or ρ.

    Error of a KDE value: about √(q/2ρ_t)/n; n ~ √(q·log q·log(1/δ))/(ε·α) records for error α.
    """

    name: ClassVar[str] = "gaussian"
    law = DiscreteGaussian


@dataclass
class IndependentSession:
    """Answers to at most `most_queries` queries; m of them cost m/most_queries of the budget."""

    mechanism: _Independent
    private: Private
    budget: Budget
    most_queries: int
    count_amount: Amount | None
    whole: Amount
    asked: int = 0
    count: int | None = None

    def ask(self, queries: Points) -> Answered:
        """Return answers to these queries."""
        number = len(queries)
        check_left(self.asked, number, self.most_queries)
        self.private.check_work(max(number, 1))
        # At least one place is asked, so that no queries at all still tell the count.
        places = queries if number else np.zeros((1, self.private.frame.dim))
        values, law = KernelValues(self.private.frame, places), self.mechanism.law
        amount = self.whole.part(Fraction(len(places), self.most_queries))
        bits = self.private.lattice(amount, law, self.budget, values)
        totals = self.private.sums(values, bits)
        self.asked += number
        if self.count is None:
            self.count = self.private.noisy_count(totals, self.budget, self.count_amount)
        spread = deviation_of(self.budget, "count")
        if not number:
            return Answered(np.empty(0), self.count, np.empty(0), spread)
        bounds = charged(values.bounds(bits), self.budget)
        spend = self.budget.spend("answers", amount, law, bounds)
        noisy = self.budget.noised(spend, totals.sums)
        deviation = math.sqrt(spend.law.variance) / 2**bits
        return Answered(noisy / 2**bits, self.count, np.full(number, deviation), spread)


def check_left(asked: int, number: int, most_queries: int) -> None:
    """Refuse queries that are not paid for."""
    if asked + number > most_queries:
        raise BudgetError(
            f"the budget is for {most_queries} queries: {asked} are answered, and {number} more "
            "are too many"
        )
