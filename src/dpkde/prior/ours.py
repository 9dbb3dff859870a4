"""Our own release, asked like a query mechanism: for comparison with those that know the queries.

It is a function release: the queries play no part in it, and any number of others could be asked of
it at no further cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpkde.curator.publish import _count, _release
from dpkde.curator.sketch import count_records, sketch_source
from dpkde.errors import ParameterError
from dpkde.families.base import Family
from dpkde.kernels import Points
from dpkde.planning.choice import Chooser
from dpkde.planning.outlook import outlook
from dpkde.planning.plan import as_family, draw_plan
from dpkde.planning.split import after_count
from dpkde.prior.base import Answered, Private, QueryMechanism, deviation_of
from dpkde.privacy.budget import Budget
from dpkde.release.release import Release


@dataclass(frozen=True)
class OurRelease(QueryMechanism):
    """Answers from a release that is published for them, and would answer all others too.

    Parameters
    ----------
    family
        As for `dpkde.publish`.
    seed
        Of the family's public randomness.
    """

    family: str | Family = "auto"
    seed: int | None = None
    name: ClassVar[str] = "release"

    def __post_init__(self) -> None:
        as_family(self.family)

    def answer(self, private: Private, queries: Points, budget: Budget) -> Answered:
        """Publish under the whole budget, and ask the release."""
        return self.session(private, budget, max(len(queries), 1)).ask(queries)

    def session(self, private: Private, budget: Budget, most_queries: int) -> ReleaseSession:
        """Return a session in which the first query pays for all."""
        return ReleaseSession(self, private, budget)


@dataclass
class ReleaseSession:
    """A release, made when it is first asked."""

    mechanism: OurRelease
    private: Private
    budget: Budget
    release: Release | None = None

    def ask(self, queries: Points) -> Answered:
        """Return what the release answers."""
        if self.release is None:
            chosen = as_family(self.mechanism.family)
            self.release = publish_within(self.private, self.budget, chosen, self.mechanism.seed)
        made, spread = self.release, deviation_of(self.budget, "count")
        if not len(queries):
            return Answered(np.empty(0), made.count, np.empty(0), spread)
        return Answered(
            made.kernel_sum(queries),
            made.count,
            made.kernel_sum_standard_error(queries),
            spread,
            made.standard_error(queries),
        )


def publish_within(private: Private, budget: Budget, family: Chooser, seed: int | None) -> Release:
    """Return what `dpkde.publish` returns, every debit being made in the budget that is given."""
    source, frame, sampler = private.source, private.frame, private.sampler
    density = private.typical_density

    first = outlook(budget, frame, private.expected_rows, density, sampler, private.capacity_bits)
    count: int | None = None
    if family.needs_outlook and private.expected_rows is None:
        if source.once:
            raise ParameterError(
                "these points can be read only once, so the family's parameters cannot wait for "
                "their count: give expected_rows, or a family with its parameters set"
            )
        totals = count_records(source, frame, private.threads)
        count = _count(budget, totals, family, frame, first, sampler)
        planned = outlook(budget, frame, count, density, sampler, private.capacity_bits)
    else:
        planned = after_count(budget, family, frame, first, sampler)
    plan = draw_plan(
        frame, family, planned, seed=seed, columns=source.columns, predicted=count is not None
    )
    made = sketch_source(source, plan, private.threads)
    if count is None:
        totals = (made._count, made._rows)
        count = _count(budget, totals, plan.family, frame, first, sampler)
    return _release(made, count, budget, sampler, {}, None)
