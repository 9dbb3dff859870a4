"""Query release: the curator knows the queries, and answers these and no others.

    points ─► Private ─► exact integer sums ─► noise ─► Answers
    queries ──────────────────┘

The curator is told more than for a release, and less comes out: answers to other queries cost
anew. See ``docs/prior.md`` for which mechanism serves when.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpkde.errors import ParameterError
from dpkde.families.base import DEFAULT_CAPACITY_BITS, about
from dpkde.families.custom import Floats
from dpkde.kernels import Kernel
from dpkde.planning.plan import check_capacity, check_density, check_rows, make_frame
from dpkde.prior.base import MOST_QUERIES, Answered, Private, QueryMechanism, check_alone
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.privacy.laws import randomness
from dpkde.privacy.ledger.booking import LedgerLike, page_of, reserving
from dpkde.privacy.numbers import Exact
from dpkde.privacy.secrecy import sealed
from dpkde.privacy.statement import PrivacyStatement
from dpkde.space.domain import BoundsLike, as_domain, universe_of
from dpkde.space.queries import places_of
from dpkde.tables import PointsLike, open_points
from dpkde.tables.arrays import QueriesLike


@dataclass(frozen=True, eq=False)
class Answers:
    """Private answers to some queries.

    Attributes
    ----------
    kde
        KDE values, clipped to [0, 1], shape (n_queries,); NaN for queries that are not finite.
    kernel_sums
        Estimates of Σ k(x, y); not clipped. NaN where there is no count.
    count
        The number of records: noisy under add-remove, exact under replace. At least 1; None where
        the mechanism releases none.
    standard_error
        Standard deviation that noise gives to `kde`, to first order in the count's noise; NaN where
        the mechanism does not know it.
    privacy
        What is guaranteed, with every spend; for answers of `Online`, of all so far together.
    """

    kde: Floats
    kernel_sums: Floats
    count: int | None
    standard_error: Floats
    privacy: PrivacyStatement

    def __repr__(self) -> str:
        count = "" if self.count is None else f", count≈{self.count}"
        return f"<Answers: {len(self.kde)} queries, {self.privacy.guarantee}{count}>"


@sealed
def answer(
    points: PointsLike,
    queries: QueriesLike,
    *,
    mechanism: QueryMechanism,
    kernel: Kernel,
    bounds: BoundsLike = None,
    epsilon: Exact | None = None,
    delta: Exact = 0,
    rho: Exact | None = None,
    adjacency: str = "add-remove",
    columns: Sequence[str] | None = None,
    expected_rows: int | None = None,
    typical_density: float | None = None,
    capacity_bits: int = DEFAULT_CAPACITY_BITS,
    sampler: str = "dpkde",
    threads: int | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    ledger: LedgerLike | None = None,
    dataset: str | None = None,
    part: str | None = None,
    remark: str | None = None,
) -> Answers:
    """Return differentially private answers to queries that the curator knows.

    Parameters
    ----------
    points
        As for `dpkde.publish`: an array, data frame, path or iterable of arrays.
    queries
        Shape (n_queries, dim), or one point; a data frame. Public. One that is not finite gets NaN.
    mechanism
        Such as ``LaplaceAnswers()``, ``GaussianAnswers()``, ``HRW()``, ``SmallDB(size=3,
        points_per_axis=8)``, ``PMW(points_per_axis=20)`` or ``OurRelease()``.
    kernel, bounds, columns, capacity_bits, sampler, threads
        As for `dpkde.publish`. Bounds are optional; records outside are clipped to them.
    epsilon, delta, rho, adjacency
        The guarantee, as for `dpkde.publish`.
    expected_rows
        A public guess of the number of records. With it, what would take too long is refused at
        once; the number of records itself is private, and refuses nothing.
    typical_density
        A public guess of a typical answer, by which the count's share of the budget is set; None:
        0.05. It steers accuracy, not privacy.
    unit, rows_per_unit
        Refused: single records are protected.
    ledger, dataset, part, remark
        As for `dpkde.publish`.

    Guarantee
    ---------
    All answers together satisfy the declared guarantee for neighbouring `points`. What raises or
    warns never depends on a value in the data or, under add-remove, on their number.

    Examples
    --------
    >>> import numpy as np
    >>> import dpkde
    >>> points = np.random.default_rng(0).normal(size=(5_000, 2))
    >>> answers = answer(
    ...     points, [[0.0, 0.0], [1.0, 1.0]], mechanism=dpkde.prior.LaplaceAnswers(),
    ...     kernel=dpkde.Gaussian(1.0), epsilon=1,
    ... )
    >>> answers.kde.shape, bool(answers.standard_error.max() < 0.01)
    ((2,), True)
    """
    page = page_of(ledger, dataset, part, remark)
    check_alone(unit, rows_per_unit)
    private, budget, names = open_private(
        points,
        mechanism=mechanism,
        kernel=kernel,
        bounds=bounds,
        guarantee=Guarantee.declare(epsilon=epsilon, delta=delta, rho=rho, adjacency=adjacency),
        columns=columns,
        expected_rows=expected_rows,
        typical_density=typical_density,
        capacity_bits=capacity_bits,
        sampler=sampler,
        threads=threads,
    )
    places = places_of(queries, private.frame, names)
    if len(places) > MOST_QUERIES:
        raise ParameterError(
            f"{about(len(places))} queries are too many to be answered one by one, at most 2^20: "
            "dpkde.publish makes a release that answers any number"
        )
    finite = np.isfinite(places).all(axis=1)
    with reserving(page, budget, "answers") as reservation:
        answers = assemble(mechanism.answer(private, places[finite], budget), finite, budget)
        if reservation is not None:
            reservation.returned()
        return answers


def open_private(
    points: PointsLike,
    *,
    mechanism: QueryMechanism,
    kernel: Kernel,
    bounds: BoundsLike,
    guarantee: Guarantee,
    columns: Sequence[str] | None,
    expected_rows: int | None,
    typical_density: float | None,
    capacity_bits: int,
    sampler: str,
    threads: int | None,
) -> tuple[Private, Budget, tuple[str, ...] | None]:
    """Check what a caller typed; return the points behind their door, and a fresh budget."""
    if isinstance(mechanism, type) or not isinstance(mechanism, QueryMechanism):
        raise ParameterError(
            "mechanism must be an instance such as dpkde.prior.LaplaceAnswers() or "
            f"dpkde.prior.HRW(), got {mechanism!r}"
        )
    domain = as_domain(bounds, columns)
    source = open_points(points, columns, universe=universe_of(domain))
    private = Private(
        source,
        make_frame(kernel, domain, source.dim, source.fallback_dim),
        capacity_bits=check_capacity(capacity_bits),
        expected_rows=check_rows(expected_rows),
        typical_density=check_density(typical_density),
        threads=threads,
    )
    return private, Budget(guarantee, randomness(sampler)), source.columns


def assemble(answered: Answered, finite: Any, budget: Budget) -> Answers:
    """Return answers for all queries, NaN for those that were not finite."""
    count = math.nan if answered.count is None else answered.count
    values = answered.kernel_sums / count if answered.kde is None else answered.kde
    kde = np.clip(values, 0.0, 1.0)
    errors = answered.standard_errors
    if errors is None:
        errors = np.hypot(answered.deviations, kde * answered.count_deviation) / count

    def spread(values: Floats) -> Floats:
        whole = np.full(len(finite), np.nan)
        whole[finite] = values
        whole.setflags(write=False)
        return whole

    return Answers(
        spread(kde),
        spread(answered.kernel_sums),
        answered.count,
        spread(errors),
        PrivacyStatement(budget.guarantee, budget.spends),
    )
