"""Our own release, asked like a query mechanism: for comparison with those that know the queries.

It is a function release: the queries play no part in it, and any number of others could be asked of
it at no further cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpkde.curator.publish import publish_source
from dpkde.families.base import Family
from dpkde.kernels import Points
from dpkde.planning.plan import as_families
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
        as_families(self.family)

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
        """Return what the release answers, plainly: sums that a model takes no part in."""
        if self.release is None:
            self.release = publish_source(
                self.private.source,
                self.private.frame,
                as_families(self.mechanism.family),
                self.private.errand(self.budget),
                self.mechanism.seed,
            )
        release = self.release
        return Answered(
            release.kernel_sum(queries),
            release.count,
            release.kernel_sum_standard_error(queries),
            deviation_of(self.budget, "count"),
            release.standard_error(queries, assisted=False),
        )
