"""What a release of a plan holds, many times: sums are taken once, and noise is drawn anew.

Sums are exact and no choice of a fixed plan hangs on them, so that outputs differ in their noise
alone. It is paid for as in a release: the same budget, the same split, the same `Budget.spend`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.curator.publish import Errand
from dpkde.curator.sketch import sketch
from dpkde.errors import BudgetError
from dpkde.planning.choice import Choice, Typical
from dpkde.planning.plan import Plan
from dpkde.planning.split import count_amount
from dpkde.privacy.amounts import COUNT, Amount
from dpkde.privacy.audit.evidence import AuditResult, audit
from dpkde.privacy.audit.likelihood import likelihood_ratio
from dpkde.privacy.audit.mutants import Drawing, Laws, right
from dpkde.privacy.budget import Budget, Guarantee, Spend, cheapest
from dpkde.privacy.laws import Law, law_of_a_number

MOST_CELLS = 64
"""More would hardly tell more: an audit sees some sixteen cells one by one, and all by weights."""
BLOCK = 1000
"""So many outputs are drawn whole at a time. A mutant that repeats itself repeats within them."""


@dataclass(frozen=True)
class Repeated:
    """A release of a fixed plan, to be made many times.

    Attributes
    ----------
    plan, guarantee
        What is released, and what is to be guaranteed.
    law
        The table's law of noise; None for the cheapest, which a release has.
    """

    plan: Plan
    guarantee: Guarantee
    law: type[Law] | None = None

    @cached_property
    def spends(self) -> tuple[Spend, ...]:
        """What is paid for: the count where it is private, then the table."""
        budget, bounds = Budget(self.guarantee), self.plan.pair.bounds
        spends = []
        if not self.guarantee.count_is_public:
            amount = self._share(budget)
            spends.append(budget.spend("count", amount, law_of_a_number(amount), COUNT))
        amount, law, _ = cheapest(self._ways(budget), self.guarantee.moved(bounds))
        spends.append(budget.spend("table", amount, law, bounds))
        return tuple(spends)

    def _share(self, budget: Budget) -> Amount:
        """Return what the count gets: as in a release, in the currency of the table's law."""
        choice = Choice((self.plan.layout,), (), Typical())
        view = Errand(budget, self.plan.capacity_bits).outlook(self.plan.frame, None)
        amount = count_amount(choice, budget, view)
        if self.law is None or amount.rho is None or self.law.paid_in == "rho":
            return amount
        raise BudgetError(f"{self.law.name} noise is not to be had for {self.guarantee}")

    def _ways(self, budget: Budget) -> tuple[tuple[Amount, type[Law]], ...]:
        ways = tuple(way for way in budget.options if self.law in (None, way[1]))
        if not ways:
            name = "no" if self.law is None else self.law.name
            raise BudgetError(f"{name} noise is not to be had for {self.guarantee}")
        return ways

    @property
    def laws(self) -> Laws:
        """The laws of the noise, and how many cells each is on."""
        cells = (self.plan.pair.bounds.cells, 1)
        pairs = zip(reversed(self.spends), cells, strict=False)
        return [(spend.law, size) for spend, size in pairs][::-1]

    def sums(self, points: Any) -> NDArray[np.int64]:
        """Return the exact sums of points, the count first where it is private: secret."""
        made = sketch(points, self.plan)
        count = [] if self.guarantee.count_is_public else [made._count]
        head = np.array(count, dtype=np.uint64).view(np.int64)
        return np.concatenate([head, made._table])

    def audit(
        self,
        left: Any,
        other: Any,
        *,
        trials: int,
        confidence: float,
        drawing: Drawing = right,
        delta: float | None = None,
    ) -> AuditResult:
        """Return what an audit finds where noise is made by `drawing`, the declared laws known.

        Of large tables `MOST_CELLS` cells are looked at: those that the two sides differ in most.
        """
        sums = [self.sums(side) for side in (left, other)]
        kept = telling_cells(*sums)
        *before, (law, cells) = self.laws
        laws = [*before, (law, cells - len(sums[0]) + len(kept))]
        if not law.is_scalar and len(kept) < len(sums[0]):
            drawing = _of_cells(drawing, self.laws, kept)
        return audited(
            laws,
            [side[kept] for side in sums],
            trials=trials,
            confidence=confidence,
            drawing=drawing,
            delta=float(self.guarantee.delta) if delta is None else delta,
        )


def telling_cells(left: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the first number, and those in which two vectors differ most, in their order."""
    apart = np.abs((left - other).astype(np.float64))
    apart[0] = np.inf
    return np.sort(np.argsort(-apart, kind="stable")[:MOST_CELLS])


def _of_cells(drawing: Drawing, laws: Laws, kept: NDArray[np.intp]) -> Drawing:
    """Return a drawing of some cells of laws whose cells are drawn together."""

    def drawn(_: Laws, trials: int) -> NDArray[np.int64]:
        parts = []
        for start in range(0, trials, BLOCK):
            parts.append(drawing(laws, min(BLOCK, trials - start))[:, kept])
        return np.concatenate(parts)

    return drawn


def audited(
    laws: Laws,
    sums: Sequence[NDArray[np.int64]],
    *,
    trials: int,
    confidence: float,
    drawing: Drawing = right,
    delta: float = 0.0,
) -> AuditResult:
    """Return what an audit finds in exact sums with noise that is said to follow laws."""
    return audit(
        lambda exact, number: exact + drawing(laws, number),
        *sums,
        trials=trials,
        delta=delta,
        confidence=confidence,
        statistics=[likelihood_ratio(laws, *(side.tolist() for side in sums))],
    )
