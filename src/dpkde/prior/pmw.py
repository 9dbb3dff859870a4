"""Private multiplicative weights: synthetic weights over a grid, learned in rounds.

The offline form of Hardt and Rothblum's mechanism (Gupta, Roth and Ullman 2012; MWEM of Hardt,
Ligett and McSherry 2012). Each round the exponential mechanism picks the query that the weights
answer worst, one noisy sum tells by how much, and the weights are multiplied accordingly. They are
public all along. Time O(rounds·|U|·queries): exponential in the dimension through the grid.

`PMW.online` answers queries that arrive one by one (`dpkde.prior.interactive`). The proof of both
is in `pmw.proof.md`.

The last weights are released, not the average over rounds. With n = 10,000 and pure ε = 1, over six
runs of 32 rounds on mixtures of Gaussians, the largest error of the last was 0.005 against the
average's 0.019 for d = 1 and 40 points, and 0.013 against 0.033 for d = 2 and 225 points
(``benchmarks/synthetic.py``). The average is what the analysis bounds when every measurement is
used once. Going through all of them again (`weights.passes`) makes the early weights, which the
average keeps, the worse ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.kernels import Kernel, Points
from dpkde.prior.base import Private
from dpkde.prior.interactive import UPDATES, InteractivePMW, PMWSession
from dpkde.prior.lattice import LATTICE_BITS, Integers, within_capacity
from dpkde.prior.measurements import better_amount, count_first, measure
from dpkde.prior.ongrid import OnGrid
from dpkde.prior.universe import Cost, whole
from dpkde.prior.weights import Weights, total_steps
from dpkde.privacy.amounts import Amount
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.privacy.laws import Exponential
from dpkde.privacy.ledger.booking import LedgerLike, page_of, reserving
from dpkde.privacy.numbers import Exact
from dpkde.privacy.secrecy import sealed
from dpkde.privacy.statement import PrivacyStatement
from dpkde.release.synthetic import SyntheticRelease
from dpkde.space.domain import BoundsLike
from dpkde.space.frame import Frame
from dpkde.tables import PointsLike

MOST_ROUNDS = 500
_EXPONENTIAL = 8
"""What an exponential takes, in operations."""
USUAL_ROUNDS = (2, 200)
TYPICAL_ROUNDS = 16
"""For which pure ε and ρ are compared where the number of rounds waits for the noisy count."""


@dataclass(frozen=True)
class PMW(OnGrid):
    """Private multiplicative weights over a grid.

    Parameters
    ----------
    rounds
        How many queries are measured. None: `usual_rounds` of the noisy count.
    alpha
        The error that moving records to the grid may cause; sets the grid's pitch.
    points_per_axis
        The grid, in place of what `alpha` asks for.
    queries_sampled
        Compare at so many points of the grid, drawn at random, in place of all of them.
    seed
        Of that draw. It is public; noise and choices have no seed.

    Notes
    -----
    With every measurement used once and the average released, the largest error over the queries
    is at most 2√(ln|U|/T) + 10·T·ln|Q|/(εn) with high probability (Hardt, Ligett and McSherry
    2012, Theorem 2.2), so that n of order ln|U|·ln|Q|/(εα³) is enough; with δ,
    √(ln|U|·ln(1/δ))·ln|Q|/(εα²).

    Examples
    --------
    >>> import dpkde
    >>> points = np.random.default_rng(0).normal(0.3, 0.1, size=(2000, 1))
    >>> release = PMW(points_per_axis=20).release(
    ...     points, kernel=dpkde.Gaussian(0.3), bounds=[(0, 1)], epsilon=1
    ... )
    >>> release.points.shape, bool(abs(release.kde([0.3])[0] - 0.8) < 0.2)
    ((20, 1), True)
    """

    rounds: int | None = None
    alpha: float | None = None
    points_per_axis: int | None = None
    queries_sampled: int | None = None
    seed: int = 0
    name: ClassVar[str] = "pmw"

    def __post_init__(self) -> None:
        if self.rounds is not None:
            whole(self.rounds, "rounds", most=MOST_ROUNDS)
        self._check_options()
        if self.alpha is not None and self.points_per_axis is not None:
            raise ParameterError("both alpha and points_per_axis set the grid: give one of them")

    def session(self, private: Private, budget: Budget, most_queries: int) -> PMWSession:
        """Return answers to queries as they come, by the sparse vector technique; see `online`."""
        return PMWSession(self._curator(private, budget, UPDATES, None, most_queries), most_queries)

    @sealed
    def online(
        self,
        points: PointsLike,
        *,
        kernel: Kernel,
        bounds: BoundsLike,
        epsilon: Exact | None = None,
        delta: Exact = 0,
        rho: Exact | None = None,
        adjacency: str = "add-remove",
        updates: int = UPDATES,
        tolerance: float | None = None,
        expected_queries: int = 1000,
        ledger: LedgerLike | None = None,
        dataset: str | None = None,
        part: str | None = None,
        remark: str | None = None,
    ) -> InteractivePMW:
        """Return a session that answers queries as they come, by the sparse vector technique.

        Parameters
        ----------
        points, kernel, bounds, epsilon, delta, rho, adjacency
            As for `release`. Points are read anew for every query: a source that can be read only
            once is refused.
        updates
            How often the session may find its weights wrong and pay for a measurement.
        tolerance
            By how much a KDE value may be off before that happens. None: the least that
            stands out against the noise, for `expected_queries`.
        expected_queries
            A public guess of how many queries there will be. It steers accuracy, not privacy.
        ledger, dataset, part, remark
            As for `dpkde.publish`. The whole guarantee is reserved at once, however much is asked.
        """
        guarantee = Guarantee.declare(epsilon=epsilon, delta=delta, rho=rho, adjacency=adjacency)
        page = page_of(ledger, dataset, part, remark)
        private = Private.open(points, kernel, bounds)
        if private.source.once:
            raise ParameterError("online queries read the points again and again: give an array")
        rounds = whole(updates, "updates", most=MOST_ROUNDS)
        most, budget = whole(expected_queries, "expected_queries"), Budget(guarantee)
        with reserving(page, budget, "answers online") as reservation:
            curator = self._curator(private, budget, rounds, tolerance, most)
            if reservation is not None:
                curator._reservation = reservation
                reservation.returned()
            return curator

    def _curator(
        self,
        private: Private,
        budget: Budget,
        updates: int,
        tolerance: float | None,
        expected_queries: int,
    ) -> InteractivePMW:
        self.cost(private.frame, np.zeros((1, private.frame.dim))).check()
        return InteractivePMW(
            private,
            self._universe(private.frame),
            budget,
            updates=updates,
            tolerance=tolerance,
            expected_queries=expected_queries,
        )

    def cost(self, frame: Frame, queries: Points | None = None) -> Cost:
        """Return what a release will take at most; nothing is read or built."""
        universe, asked = self._sizes(frame, queries)
        rounds = USUAL_ROUNDS[1] if self.rounds is None else self.rounds
        operations = universe * (rounds * asked + _EXPONENTIAL * total_steps(rounds))
        return Cost("PMW", universe, asked, rounds, "rounds", operations)

    def synthesise(
        self, private: Private, queries: Points | None, budget: Budget
    ) -> SyntheticRelease:
        """Spend what is left of a budget in rounds, and return the weights."""
        frame = private.frame
        universe = self._universe(frame)
        places = self._places(universe, queries)
        totals = private.kernel_sums(places)
        part = Fraction(1, 2 * (self.rounds or TYPICAL_ROUNDS))
        count, rest = count_first(private, totals, better_amount(budget, part, Exponential), budget)
        rounds = usual_rounds(rest, count) if self.rounds is None else self.rounds
        kernel = frame.kernel.evaluate(universe.points, places)
        weights = multiply_weights(totals.sums, count, kernel, rounds, rest, budget)
        return SyntheticRelease(
            universe.points,
            weights.values,
            frame.kernel,
            PrivacyStatement(budget.guarantee, budget.spends),
            "pmw",
            count,
        )


def multiply_weights(
    sums: Integers,
    count: int,
    kernel: NDArray[np.float64],
    rounds: int,
    amount: Amount,
    budget: Budget,
) -> Weights:
    """Return weights over a universe, learned from `rounds` choices and measurements.

    Parameters
    ----------
    sums
        S_j = Σ_x rint(k(x, y_j)·2¹⁶), exact; a record's entries lie in [0, 2¹⁶].
    count
        The noisy count under add-remove, the public one under replace.
    kernel
        k(u, y_j) for every point u of the universe, shape (universe, queries). Public.
    rounds
        How many; public, or a function of what was released before.
    amount, budget
        What all rounds together cost; half of a round's part is for the choice.

    Guarantee
    ---------
    All of it costs `amount`; every part is debited before its noise is drawn. See `pmw.proof.md`.
    """
    unit = 1 << LATTICE_BITS
    exact_sums = within_capacity(sums)
    part = amount.part(Fraction(1, 2 * rounds))
    weights = Weights(len(kernel))
    for _ in range(rounds):
        # Public up to here; the sums enter through the choice and the measurement alone.
        guess = np.rint(count * unit * weights.answers(kernel)).astype(np.int64)
        law = budget.select("choice of a query", part, Exponential, unit)
        worst = budget.randomness.choice(law, -np.abs(exact_sums - guess))
        measured = measure(exact_sums[worst : worst + 1], part, budget)
        weights.learn(kernel[:, worst], measured / (count * unit))
    return weights


def usual_rounds(amount: Amount, count: int) -> int:
    """Return √(εn)/4 rounds for pure ε, 2√(n√ρ) for ρ, between 2 and 200.

    The theory's T = (εn√ln|U|/(10 ln|Q|))^{2/3} is for measurements that are used once. With all
    of them used again, fewer rounds, each with less noise, did best in the runs named above: 4 to
    16 at εn = 10³ and 32 at 10⁴ (16 to 32, and 64 or more, with δ = 10⁻⁶). The optimum is flat.

    >>> usual_rounds(Amount(epsilon=Fraction(1)), 10_000)
    25
    """
    if amount.epsilon is not None:
        best = math.sqrt(float(amount.epsilon) * count) / 4
    else:
        best = 2 * math.sqrt(count * math.sqrt(float(amount.as_rho)))
    return min(max(round(best), USUAL_ROUNDS[0]), USUAL_ROUNDS[1])
