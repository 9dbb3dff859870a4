"""Multiplicative weights online: queries come one by one, and may depend on earlier answers.

Hardt and Rothblum (2010). A query is answered from public weights, unless a noisy check finds them
off by more than a tolerance; then a measurement is paid for, answers the query and teaches the
weights. Checks that do not fire cost nothing, however many there are: that is the sparse vector
technique, proved in `pmw.proof.md`.
"""

from __future__ import annotations

import math
import threading
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import BudgetError, ParameterError
from dpkde.kernels import Points
from dpkde.numerics.numbers import is_real
from dpkde.prior.base import Answered, Private, answered_by_kde
from dpkde.prior.independent import check_left
from dpkde.prior.lattice import LATTICE_BITS, within_capacity
from dpkde.prior.measurements import better_amount, count_first, measure
from dpkde.prior.ongrid import entered
from dpkde.prior.universe import Universe
from dpkde.prior.weights import Weights
from dpkde.privacy.budget import Budget
from dpkde.privacy.laws import SparseVector
from dpkde.privacy.laws.exponential.sampler import Threshold
from dpkde.privacy.ledger.booking import Reservation
from dpkde.privacy.secrecy import sealed
from dpkde.privacy.statement import PrivacyStatement
from dpkde.release.synthetic import SyntheticRelease
from dpkde.tables.arrays import QueriesLike, as_queries

UPDATES = 16
"""How often a session may find its weights wrong."""
CHECK_SHARE = Fraction(3, 4)
"""The checks' share of an update's part of the budget. A check has to stand out against the noise
of a threshold and of all queries; a measurement's noise is that of one answer."""
_DOUBT = 0.05


class InteractivePMW:
    """A session that answers queries about private points. `PMW.online` makes one.

    It holds the points: it is as secret as they are, and prints nothing of them. What `ask`
    returns is public.

    Attributes
    ----------
    tolerance
        By how much a KDE value may be off before the weights learn. Where the default is used and
        no more than `expected_queries` come, answers are off by at most twice that, the grid's
        rounding apart, with probability 0.9.
    count
        The number of records: noisy under add-remove.
    updates
        How many measurements the session may take.

    Guarantee
    ---------
    All answers together satisfy the declared guarantee, for queries chosen in any way from earlier
    answers, until `BudgetError` says that all updates are used.
    """

    @sealed
    def __init__(
        self,
        private: Private,
        universe: Universe,
        budget: Budget,
        *,
        updates: int = UPDATES,
        tolerance: float | None = None,
        expected_queries: int,
    ) -> None:
        if tolerance is not None and (not is_real(tolerance) or not 0 < tolerance <= 1e12):
            raise ParameterError(f"tolerance must be from 0 to 1e12, got {tolerance!r}")
        self.updates = updates
        self._private, self._universe, self._budget = private, universe, budget
        self._weights = Weights(universe.size)
        self._lock = threading.Lock()
        self._threshold: Threshold | None = None
        self._reservation: Reservation | None = None
        self._transcript: list[tuple[tuple[float, ...], float]] = []
        amount = better_amount(budget, CHECK_SHARE / updates, SparseVector)
        self.count, rest = count_first(private, private.totals(), amount, budget)
        each = rest.part(Fraction(1, updates))
        self._check, self._measure = each.part(CHECK_SHARE), each.part(1 - CHECK_SHARE)
        self.tolerance = self._usual(expected_queries) if tolerance is None else float(tolerance)

    def _usual(self, expected_queries: int) -> float:
        """Return t·ln(c/β) + 2t·ln(k/β) over n: beyond it noise goes once in 20 sessions."""
        unit = 1 << LATTICE_BITS
        scale = float(SparseVector.bought(self._check, unit).scale)
        reach = math.log(self.updates / _DOUBT) + 2 * math.log(expected_queries / _DOUBT)
        return scale * reach / (self.count * unit)

    @property
    def updates_left(self) -> int:
        """How many measurements may still be taken."""
        return self.updates - self._weights.measurements

    @property
    def privacy(self) -> PrivacyStatement:
        """What is guaranteed, with every spend so far."""
        return PrivacyStatement(self._budget.guarantee, self._budget.spends)

    @property
    def transcript(self) -> tuple[tuple[tuple[float, ...], float], ...]:
        """Every query and its answer so far. Public."""
        return tuple(self._transcript)

    @sealed
    def ask(self, queries: QueriesLike) -> NDArray[np.float64]:
        """Return the KDE at each query, one after the other; NaN at a query that is not finite.

        Each query takes O(n·d) for the exact sum, and O(|U|·d) for the weights.

        Raises
        ------
        BudgetError
            All updates are used. Answers before that are in `transcript`, and `release` still
            gives the weights.
        """
        places = as_queries(queries, self._private.frame.dim)
        answers = np.empty(len(places))
        with self._lock:
            for i, place in enumerate(places):
                answers[i] = self._answer(place[np.newaxis])
                self._transcript.append((tuple(place.tolist()), float(answers[i])))
        return answers

    def _answer(self, place: NDArray[np.float64]) -> float:
        if not np.isfinite(place).all():
            return math.nan
        if self._threshold is None:
            if not self.updates_left:
                raise BudgetError(
                    f"all {self.updates} updates are used: take what was learned by release()"
                )
            law = self._budget.select("checks", self._check, SparseVector, 1 << LATTICE_BITS)
            self._threshold = self._budget.randomness.threshold(law)
        column = self._private.frame.kernel.evaluate(self._universe.points, place)[:, 0]
        unit = self.count << LATTICE_BITS
        guess = float(self._weights.values @ column)
        exact_sum = within_capacity(self._private.kernel_sums(place).sums)
        apart = abs(int(exact_sum[0]) - round(guess * unit))
        if not self._threshold.passed(apart, math.ceil(self.tolerance * unit)):
            return guess
        self._threshold = None
        measured = min(max(measure(exact_sum, self._measure, self._budget) / unit, 0.0), 1.0)
        self._weights.learn(column, measured)
        return measured

    @sealed
    def release(self) -> SyntheticRelease:
        """Return the weights as they are now. They cost nothing beyond what was spent."""
        if not self._budget.spends:
            raise ParameterError("nothing was asked yet, so that there is nothing to release")
        release = SyntheticRelease(
            self._universe.points,
            self._weights.values,
            self._private.frame.kernel,
            self.privacy,
            "pmw",
            self.count,
        )
        return release if self._reservation is None else entered(release, self._reservation)

    def __repr__(self) -> str:
        return (
            f"<InteractivePMW (secret): {self._universe.size} points, "
            f"{self.updates_left} of {self.updates} updates left, {self._budget.guarantee}>"
        )


class PMWSession:
    """The same as a session of `Online`."""

    def __init__(self, curator: InteractivePMW, most_queries: int) -> None:
        self.curator, self.most_queries, self.asked = curator, most_queries, 0

    def ask(self, queries: Points) -> Answered:
        """Return answers, one query after the other."""
        check_left(self.asked, len(queries), self.most_queries)
        self.asked += len(queries)
        values = np.full(len(queries), math.nan)
        for i in range(len(queries)):
            try:
                values[i] = self.curator.ask(queries[i : i + 1])[0]
            except BudgetError:
                if not i:
                    raise
                break  # those that were paid for are answered
        return answered_by_kde(values, self.curator.count, self.curator._budget)
