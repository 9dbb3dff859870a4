"""What SmallDB and multiplicative weights share: a synthetic data set over a public grid.

Options of the grid and of the queries to be right at, what it will take, and the way from private
points to a release: sizes are checked before any record is read.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace

import numpy as np

from dpkde.errors import ParameterError
from dpkde.kernels import Kernel, Points
from dpkde.prior.base import Answered, Private, QueryMechanism, answered_by_kde, check_alone
from dpkde.prior.universe import BEYOND, Cost, Universe, check_alpha, grid_shape, whole
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.privacy.ledger.booking import LedgerLike, Reservation, page_of, reserving
from dpkde.privacy.numbers import Exact
from dpkde.privacy.secrecy import sealed
from dpkde.release.parts import Parts
from dpkde.release.synthetic import SyntheticRelease
from dpkde.space.domain import BoundsLike
from dpkde.space.frame import Frame
from dpkde.tables import PointsLike
from dpkde.tables.arrays import QueriesLike, as_queries


def entered(release: SyntheticRelease, reservation: Reservation) -> SyntheticRelease:
    """Return a release with its entry in a ledger, under the name that it has there."""
    parts = Parts([*release.parts.values(), reservation.entry])
    named = replace(release, release_id=reservation.release_id, parts=parts)
    named.when_saved(reservation.written)
    return named


class OnGrid(QueryMechanism):
    """A mechanism that publishes points of a public grid, with weights.

    Attributes
    ----------
    alpha
        The error that moving records to the grid may cause; sets the grid's pitch.
    points_per_axis
        The grid, in place of what `alpha` asks for.
    queries_sampled
        Compare at so many points of the grid, drawn at random, in place of all of them.
    seed
        Of that draw; public.
    """

    alpha: float | None
    points_per_axis: int | None
    queries_sampled: int | None
    seed: int

    @abstractmethod
    def cost(self, frame: Frame, queries: Points | None = None) -> Cost:
        """Return what a release will take at most; nothing is read or built."""

    @abstractmethod
    def synthesise(
        self, private: Private, queries: Points | None, budget: Budget
    ) -> SyntheticRelease:
        """Spend what is left of a budget, and return the synthetic data set."""

    def answer(self, private: Private, queries: Points, budget: Budget) -> Answered:
        """Return the KDE at known queries, from a synthetic data set made for them alone."""
        self.cost(private.frame, queries).check()
        release = self.synthesise(private, queries, budget)
        return answered_by_kde(release.kde(queries), release.count, budget)

    @sealed
    def release(
        self,
        points: PointsLike,
        *,
        kernel: Kernel,
        bounds: BoundsLike,
        epsilon: Exact | None = None,
        delta: Exact = 0,
        rho: Exact | None = None,
        adjacency: str = "add-remove",
        queries: QueriesLike | None = None,
        unit: str | None = None,
        rows_per_unit: int | None = None,
        ledger: LedgerLike | None = None,
        dataset: str | None = None,
        part: str | None = None,
        remark: str | None = None,
    ) -> SyntheticRelease:
        """Return a synthetic data set whose KDE is close to that of private points.

        Parameters
        ----------
        points
            As for `dpkde.publish`. Read once.
        kernel, bounds
            Public. Records outside the bounds are moved inside.
        epsilon, delta, rho
            The guarantee. SmallDB's choice is pure: it does not use δ. PMW takes Gaussian noise
            and composes as zCDP where that gives the larger share to a round.
        adjacency
            ``"add-remove"``: PMW pays for a noisy count first. ``"replace"``: the count is public.
            SmallDB is the same for both, and releases no count.
        queries
            Public places to be right at, shape (n_queries, dim); by default the whole grid.
        unit, rows_per_unit
            Refused: single records are protected.
        ledger, dataset, part, remark
            As for `dpkde.publish`.

        Guarantee
        ---------
        The release satisfies the declared guarantee for neighbouring `points`.
        """
        guarantee = Guarantee.declare(epsilon=epsilon, delta=delta, rho=rho, adjacency=adjacency)
        page = page_of(ledger, dataset, part, remark)
        check_alone(unit, rows_per_unit)
        private = Private.open(points, kernel, bounds)
        asked = None if queries is None else as_queries(queries, private.frame.dim)
        self.cost(private.frame, asked).check()
        budget = Budget(guarantee)
        with reserving(page, budget, "synthetic data") as reservation:
            release = self.synthesise(private, asked, budget)
            if reservation is None:
                return release
            reservation.returned()
            return entered(release, reservation)

    def _check_options(self) -> None:
        if self.alpha is not None:
            check_alpha(self.alpha)
        for name in ("points_per_axis", "queries_sampled"):
            if getattr(self, name) is not None:
                whole(getattr(self, name), name)
        whole(self.seed, "seed", 0, 1 << 64)

    def _sizes(self, frame: Frame, queries: Points | None) -> tuple[int, int]:
        """Return how many points the grid has, and how many queries are compared at."""
        shape = grid_shape(frame, alpha=self.alpha, points_per_axis=self.points_per_axis)
        universe = min(math.prod(shape), BEYOND)
        if queries is not None:
            return universe, len(queries)
        sampled = universe if self.queries_sampled is None else self.queries_sampled
        return universe, min(universe, sampled)

    def _universe(self, frame: Frame) -> Universe:
        return Universe.over(frame, alpha=self.alpha, points_per_axis=self.points_per_axis)

    def _places(self, universe: Universe, queries: Points | None) -> Points:
        """Return the queries to be right at: the given ones that are finite, or the grid's."""
        places = universe.sample(self.queries_sampled, self.seed) if queries is None else queries
        places = places[np.isfinite(places).all(axis=1)]
        if not len(places):
            raise ParameterError("queries must hold at least one finite point")
        return places
