"""Queries that come one after the other: each may depend on the answers before it.

How many can be asked is declared beforehand. Laplace and Gaussian answers divide the budget among
them; HRW pays once for all, so that the declared number bounds its memory and not its accuracy.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from dpkde.errors import ParameterError
from dpkde.families.base import DEFAULT_CAPACITY_BITS
from dpkde.kernels import Kernel
from dpkde.prior.base import MOST_QUERIES, QueryMechanism, check_alone
from dpkde.prior.queries import Answers, assemble, open_private
from dpkde.prior.universe import whole
from dpkde.privacy.budget import Guarantee
from dpkde.privacy.ledger.booking import LedgerLike, page_of, reserving
from dpkde.privacy.numbers import Exact
from dpkde.privacy.secrecy import sealed
from dpkde.privacy.statement import PrivacyStatement
from dpkde.space.domain import BoundsLike
from dpkde.space.queries import places_of
from dpkde.tables import PointsLike
from dpkde.tables.arrays import QueriesLike


class Online:
    """A curator who answers queries as they come. Thread-safe.

    Parameters
    ----------
    points
        As for `answer`; they are read anew for every `ask`, so an iterator will not do.
    most_queries
        How many queries can be asked in all; `BudgetError` afterwards.
    mechanism, kernel, bounds, epsilon, delta, rho, adjacency, columns, expected_rows, capacity_bits
        As for `answer`.
    typical_density, sampler, threads
        As for `answer`.
    unit, rows_per_unit
        Refused: single records are protected.
    ledger, dataset, part, remark
        As for `dpkde.publish`. The whole guarantee is reserved at once, however much is asked.

    Guarantee
    ---------
    All answers together, whatever was asked and however it was chosen from earlier answers, satisfy
    the declared guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> import dpkde
    >>> points = np.random.default_rng(0).normal(size=(2_000, 1))
    >>> curator = Online(
    ...     points, mechanism=dpkde.prior.HRW(), kernel=dpkde.Gaussian(1.0), rho="0.1",
    ...     most_queries=50,
    ... )
    >>> first = curator.ask([0.0])
    >>> again = curator.ask([0.0])
    >>> bool(first.kde[0] == again.kde[0])
    True
    """

    @sealed
    def __init__(
        self,
        points: PointsLike,
        *,
        mechanism: QueryMechanism,
        kernel: Kernel,
        most_queries: int,
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
    ) -> None:
        self.mechanism = mechanism
        self.most_queries = whole(most_queries, "most_queries", most=MOST_QUERIES)
        page = page_of(ledger, dataset, part, remark)
        check_alone(unit, rows_per_unit)
        self._private, self._budget, self._columns = open_private(
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
        if self._private.source.once:
            raise ParameterError(
                "these points can be read only once, and every ask reads them: give an array, a "
                "data frame or a path"
            )
        with reserving(page, self._budget, "answers online") as reservation:
            self._session = mechanism.session(self._private, self._budget, self.most_queries)
            if reservation is not None:
                reservation.returned()
        self._lock = threading.Lock()

    @property
    def privacy(self) -> PrivacyStatement:
        """What is guaranteed, and what was spent so far."""
        return PrivacyStatement(self._budget.guarantee, self._budget.spends)

    @sealed
    def ask(self, queries: QueriesLike) -> Answers:
        """Return answers to some more queries; one that is not finite gets NaN and costs nothing.

        Reads all points. Raises `BudgetError`, and answers none of them, where not all are paid
        for; PMW, which cannot know that beforehand, answers those that are, and NaN for the rest.
        """
        places = places_of(queries, self._private.frame, self._columns)
        finite = np.isfinite(places).all(axis=1)
        with self._lock:
            return assemble(self._session.ask(places[finite]), finite, self._budget)

    def __repr__(self) -> str:
        return (
            f"<Online: {self.mechanism.name}, at most {self.most_queries} queries, "
            f"{self._budget.guarantee}>"
        )
