"""Online answers: in law those of a batch, within one budget, until it is used up.

Rates of false alarm are as in ``test_queries``: below 10⁻⁹ for each comparison.
"""

from __future__ import annotations

import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde.prior import HRW, GaussianAnswers, LaplaceAnswers, Online, OurRelease, Private, Session
from dpkde.prior.base import QueryMechanism
from dpkde.prior.hrw import Projections
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame
from dpkde.tables import open_points
from dpkde.testing import adversarial_rows
from remembered import Remembered

KERNEL = dpkde.Gaussian(1.0)
POINTS = np.array([[0.0], [0.5], [2.0]])
QUERIES = np.array([[0.0], [0.4], [3.0]])
ALL: list[tuple[QueryMechanism, dict[str, Any]]] = [
    (LaplaceAnswers(), {"epsilon": 1}),
    (GaussianAnswers(), {"rho": "0.5"}),
    (HRW(), {"rho": "0.5"}),
]
NAMES = [mechanism.name for mechanism, _ in ALL]
PRIVATE = Remembered(open_points(POINTS), Frame.of(KERNEL, as_domain(None), 1), threads=1)


def _online(mechanism: QueryMechanism, guarantee: dict[str, Any], most: int) -> Online:
    return Online(POINTS, mechanism=mechanism, kernel=KERNEL, most_queries=most, **guarantee)


def _session(
    mechanism: QueryMechanism, guarantee: dict[str, Any], most: int
) -> tuple[Session, Budget]:
    budget = Budget(Guarantee.declare(**guarantee))
    return mechanism.session(PRIVATE, budget, most), budget


@pytest.mark.parametrize(("mechanism", "guarantee"), ALL, ids=NAMES)
def test_one_by_one_is_a_batch_in_law(mechanism: QueryMechanism, guarantee: dict[str, Any]) -> None:
    """Means, spread and covariance of sums that were asked one after the other."""
    trials = 700
    exact = KERNEL.evaluate(POINTS, QUERIES).sum(axis=0)
    sums = np.empty((trials, 3))
    for trial in range(trials):
        session, _ = _session(mechanism, guarantee, 3)
        parts = [session.ask(QUERIES[:1]), session.ask(QUERIES[1:])]
        sums[trial] = np.concatenate([part.kernel_sums for part in parts])
    spread = np.concatenate([part.deviations for part in parts])
    together, _ = _session(mechanism, guarantee, 3)
    assert np.allclose(spread, together.ask(QUERIES).deviations, rtol=1e-6)
    assert (np.abs(sums.mean(axis=0) - exact) <= 7 * spread / np.sqrt(trials) + 1e-5).all()
    usual = np.sqrt(1 / 2 if mechanism.name == "laplace" else 2 / np.pi)  # E|z| of deviation 1
    size = np.abs(sums - exact).mean(axis=0) / spread
    assert (np.abs(size / usual - 1) <= 8 / np.sqrt(trials)).all()
    correlations = np.corrcoef(sums.T)
    expected = KERNEL.evaluate(QUERIES, QUERIES) if mechanism.name == "hrw" else np.eye(3)
    assert np.abs(correlations - expected).max() <= 8 / np.sqrt(trials)


@pytest.mark.parametrize(("mechanism", "guarantee"), ALL, ids=NAMES)
def test_the_budget_ends(mechanism: QueryMechanism, guarantee: dict[str, Any]) -> None:
    curator = _online(mechanism, guarantee, 5)
    first = curator.ask(QUERIES)
    with pytest.raises(dpkde.BudgetError, match="for 5 queries: 3 are answered, and 3 more"):
        curator.ask(QUERIES + 10)
    second = curator.ask(QUERIES[:2] + 20)
    assert first.count == second.count
    with pytest.raises(dpkde.BudgetError, match="5 are answered"):
        curator.ask([[77.0]])
    amounts = [spend.amount for spend in curator.privacy.spends]
    if mechanism.name == "laplace":
        assert sum(amount.epsilon or 0 for amount in amounts) == 1
    else:
        assert sum(amount.rho or 0 for amount in amounts) == Fraction(1, 2)
    assert len(amounts) == (2 if mechanism.name == "hrw" else 3)  # HRW pays once for all


def test_a_query_costs_its_part() -> None:
    for mechanism, guarantee in ALL[:2]:
        _, whole = _session(mechanism, guarantee, 10)
        session, budget = _session(mechanism, guarantee, 10)
        session.ask(QUERIES[:1])
        session.ask(QUERIES)
        one, three = (spend.amount for spend in budget.spends[1:])
        parts = [(a.epsilon or a.rho or Fraction(0)) for a in (one, three)]
        assert parts[1] == 3 * parts[0]
        assert whole.spends == ()


def test_hrw_answers_the_same_query_alike() -> None:
    curator = _online(HRW(), {"rho": "0.1"}, 40)
    first = curator.ask(QUERIES)
    for _ in range(3):
        again = curator.ask(QUERIES[::-1])
        assert np.array_equal(again.kernel_sums[::-1], first.kernel_sums)
    # Nearly the same query: the new coordinate counts for √(2·jitter) of it, about 0.0004.
    near = curator.ask(QUERIES + 1e-12)
    assert np.abs(near.kernel_sums - first.kernel_sums).max() < 0.02
    assert len(curator.privacy.spends) == 2


@pytest.mark.parametrize("kernel", [KERNEL, dpkde.Laplacian(0.5), dpkde.Geodesic()])
def test_coordinates_of_hrw_stay_what_they_were(kernel: Any) -> None:
    """Bit for bit, however many queries follow: only then is the length of all of them bound."""
    rows = adversarial_rows(2, np.random.default_rng(3))
    queries = np.random.default_rng(4).normal(size=(23, 2))
    frame = Frame.of(kernel, as_domain(None), 2)
    private = Private(open_points(rows), frame, threads=1)
    budget = Budget(Guarantee.declare(rho=1))
    session = HRW().session(private, budget, 23)
    earlier: list[Any] = []
    for start, end in ((0, 1), (1, 2), (2, 9), (9, 10), (10, 23)):
        session.ask(queries[start:end])
        placed = Projections(frame, session.places, session.columns, end)
        sums = []
        for row in rows[np.isfinite(rows).all(axis=1)]:
            one = Private(open_points(row[np.newaxis]), frame, threads=1)
            sums.append(one.sums(placed, session.bits).sums)
            size = sum(v * v for v in sums[-1].tolist())
            assert size <= session.bounds.l2_squared
        for now, before in zip(sums, earlier, strict=False):
            assert np.array_equal(now[: len(before)], before)
        earlier = sums


def test_hrw_accuracy_does_not_depend_on_how_many_are_asked() -> None:
    few = _online(HRW(), {"rho": "0.1"}, 3).ask(QUERIES)
    many = _online(HRW(), {"rho": "0.1"}, 1_000).ask(QUERIES)
    assert many.count is not None
    assert few.count is not None
    ratio = many.standard_error * many.count / (few.standard_error * few.count)
    # Where the count is noisy, so are standard errors of densities; the sums' are not.
    assert np.isfinite(ratio).all()
    sessions = [_session(HRW(), {"rho": "0.1"}, most)[0].ask(QUERIES) for most in (3, 1_000)]
    assert np.allclose(sessions[0].deviations, sessions[1].deviations, rtol=1e-4)


def test_a_failed_read_costs_nothing_and_can_be_repeated(tmp_path: Any) -> None:
    path = tmp_path / "points.npy"
    np.save(path, POINTS)
    for mechanism, guarantee in ALL:
        curator = Online(
            path, mechanism=mechanism, kernel=KERNEL, most_queries=3, bounds=[(-3, 3)], **guarantee
        )
        hidden = path.rename(tmp_path / "hidden.npy")
        with pytest.raises((OSError, dpkde.DpkdeError)):
            curator.ask(QUERIES)
        assert curator.privacy.spends == ()
        hidden.rename(path)
        assert np.isfinite(curator.ask(QUERIES).kde).all()


def test_threads_share_the_budget() -> None:
    for mechanism, guarantee in ALL:
        curator = _online(mechanism, guarantee, 12)
        refused: list[float] = []
        answers: list[Any] = []

        def ask(
            start: float, curator: Online = curator, refused: Any = refused, answers: Any = answers
        ) -> None:
            try:
                answers.append(curator.ask([[start], [start + 0.5]]))
            except dpkde.BudgetError:
                refused.append(start)

        workers = [threading.Thread(target=ask, args=(float(i),)) for i in range(10)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(answers) == 6
        assert len(refused) == 4
        assert len({each.count for each in answers}) == 1


def test_a_release_answers_for_ever() -> None:
    curator = Online(
        POINTS,
        mechanism=OurRelease(dpkde.Spline(1, 1.0)),
        kernel=KERNEL,
        bounds=[(-3, 3)],
        epsilon=1,
        most_queries=1,
    )
    first = curator.ask(QUERIES)
    assert np.array_equal(curator.ask(QUERIES).kde, first.kde)
    assert [spend.purpose for spend in curator.privacy.spends] == ["count", "table"]


def test_queries_that_are_not_finite_cost_nothing() -> None:
    curator = _online(LaplaceAnswers(), {"epsilon": 1}, 1)
    assert np.isnan(curator.ask([[np.nan], [np.inf]]).kde).all()
    assert np.isfinite(curator.ask([[0.0]]).kde).all()


@pytest.mark.parametrize("most", [0, -1, 1.5, None, True, 1 << 21])
def test_most_queries_is_a_whole_number(most: Any) -> None:
    with pytest.raises(dpkde.ParameterError, match="most_queries"):
        _online(LaplaceAnswers(), {"epsilon": 1}, most)


def test_wrong_use() -> None:
    with pytest.raises(dpkde.ParameterError, match="only once"):
        Online(
            iter([POINTS]),
            mechanism=LaplaceAnswers(),
            kernel=KERNEL,
            bounds=[(0, 1)],
            epsilon=1,
            most_queries=3,
        )
    with pytest.raises(dpkde.ParameterError, match="delta > 0"):
        _online(HRW(), {"epsilon": 1}, 3)
    with pytest.raises(dpkde.ParameterError, match="bytes"):
        _online(HRW(), {"rho": 1}, 100_000)

    class AtOnce(QueryMechanism):
        name = "at-once"

        def answer(self, private: Any, queries: Any, budget: Any) -> Any:
            raise AssertionError

    with pytest.raises(dpkde.ParameterError, match="at-once answers all queries at once"):
        _online(AtOnce(), {"epsilon": 1}, 3)
    assert repr(_online(HRW(), {"rho": 1}, 3)) == "<Online: hrw, at most 3 queries, ρ=1 add-remove>"
