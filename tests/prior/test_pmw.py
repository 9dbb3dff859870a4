"""Multiplicative weights: one round by hand, sensitivities, spends, the online session, audits."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

import dpkde
from contracts.rigged import Rigged, constant
from dpkde.prior.base import Private, Sums
from dpkde.prior.interactive import InteractivePMW
from dpkde.prior.lattice import LATTICE_BITS, one_sum
from dpkde.prior.pmw import PMW, multiply_weights, usual_rounds
from dpkde.prior.universe import Universe
from dpkde.prior.weights import Weights
from dpkde.privacy.amounts import Adjacency, Amount
from dpkde.privacy.budget import Budget, Guarantee, Selection, Spend
from dpkde.privacy.laws import Law
from remembered import Remembered

UNIT = 1 << LATTICE_BITS
KERNEL = dpkde.Gaussian(0.5)
BOUNDS = [(0.0, 4.0)]
POOL = [0.0, 0.9, 1.0, 4.0, math.nan, math.inf, 1e308, -7.5]


def opened(data: Any, kind: type[Private] = Private) -> Private:
    return kind.open(np.array(data, dtype=float).reshape(-1, 1), KERNEL, BOUNDS)


def mixture(n: int, seed: int = 0) -> NDArray[np.float64]:
    generator = np.random.default_rng(seed)
    means = np.where(generator.uniform(size=n) < 0.7, 1.0, 3.0)
    return np.asarray(generator.normal(means, 0.3).clip(0, 4)[:, np.newaxis])


def fits(counts: NDArray[Any], chances: NDArray[Any]) -> bool:
    expected = chances * counts.sum()
    statistic = ((counts - expected) ** 2 / expected).sum()
    return bool(statistic <= chi2.isf(1e-9, len(chances) - 1))


# Weights


def test_weights_follow_the_formula() -> None:
    """One measurement, gone through 20 times: w ∝ w·exp(column·error/2), in plain Python."""
    column = [1.0, 0.25]
    w = [0.5, 0.5]
    for _ in range(20):
        error = 0.9 - sum(a * b for a, b in zip(w, column, strict=True))
        w = [a * math.exp(b * error / 2) for a, b in zip(w, column, strict=True)]
        w = [a / sum(w) for a in w]
    weights = Weights(2)
    assert weights.values.tolist() == [0.5, 0.5]
    weights.learn(np.array(column), 0.9)
    assert weights.values == pytest.approx(w, rel=1e-12)
    assert weights.measurements == 1


def test_targets_are_cut_to_what_a_kernel_can_be() -> None:
    for wild in (-1e30, 1e30):
        weights = Weights(3)
        weights.learn(np.array([1.0, 0.5, 0.0]), wild)
        assert np.isfinite(weights.values).all()
        assert weights.values.sum() == pytest.approx(1)


# One round by hand


def learned(place: int, target: float) -> NDArray[Any]:
    """What one measurement at a point of the grid {1, 3} makes of even weights."""
    column = KERNEL.evaluate(np.array([[1.0], [3.0]]), np.array([[1.0 + 2 * place]]))[:, 0]
    weights = Weights(2)
    weights.learn(column, target)
    return weights.values


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_one_round_by_hand(monkeypatch: pytest.MonkeyPatch, adjacency: str) -> None:
    """Grid {1, 3}, kernel values 1 and e^(−16) ≈ 0; data 1, 1, 1, 3, 2 and one NaN.

    S = (3 + e^(−4), 1 + e^(−4)). Even weights guess n/2 at both points, so that the losses are
    −|S_j − n/2|. Noise on sums is switched off; which point is measured shows in the weights. 3,000
    runs at ε = 8.
    """
    data, sums = [1.0, 1.0, 1.0, 3.0, 2.0, math.nan], (3 + math.exp(-4), 1 + math.exp(-4))
    n = 5 if adjacency == "add-remove" else 6
    guarantee = Guarantee.declare(epsilon=8, adjacency=adjacency)
    epsilon = 8 * (Fraction(15, 16) if adjacency == "add-remove" else 1) / 2
    private, mechanism = opened(data, Remembered), PMW(rounds=1, points_per_axis=2)
    counts = np.zeros(2)
    expected = [learned(place, sums[place] / n) for place in range(2)]
    for _ in range(3_000):
        release = mechanism.synthesise(private, None, Budget(guarantee, Rigged(constant(0))))
        assert release.count == n
        near = [float(np.abs(weights - release.weights).max()) for weights in expected]
        assert min(near) < 1e-4 < max(near)
        counts[int(np.argmin(near))] += 1
    worse = np.array([abs(value - n / 2) for value in sums])

    def chances(factor: float) -> NDArray[Any]:
        raised = np.exp(factor * float(epsilon) * worse / 2)
        return np.asarray(raised / raised.sum())

    assert fits(counts, chances(1))
    assert not fits(counts, chances(2))


# Sensitivity


def test_sensitivity_of_scores_and_measurements_exhaustively() -> None:
    places = np.concatenate([Universe.over(opened([]).frame, points_per_axis=4).points, [[1.0]]])
    cache: dict[tuple[float, ...], Sums] = {}
    generator = np.random.default_rng(0)
    guesses = [np.zeros(5, np.int64), generator.integers(0, 3 * UNIT, 5)]

    def totals(data: tuple[float, ...]) -> Sums:
        if data not in cache:
            cache[data] = opened(list(data)).kernel_sums(places)
        return cache[data]

    largest = 0
    for size in range(3):
        for data in itertools.combinations_with_replacement(POOL, size):
            for extra in POOL:
                more = totals((*data, extra))
                assert 0 <= more.records - totals(data).records <= 1
                others = [totals(data)] + ([totals((*data[1:], extra))] if size else [])
                for one, other in zip([more, totals(data)], others, strict=False):
                    apart = np.abs(one.sums - other.sums)
                    assert apart.max() <= UNIT
                    largest = max(largest, int(apart.max()))
                    for guess in guesses:
                        scores = np.abs(one.sums - guess) - np.abs(other.sums - guess)
                        assert np.abs(scores).max() <= UNIT
    assert largest >= 0.9 * UNIT


def test_bounds_of_one_sum() -> None:
    """2^b in every norm, for both notions of neighbours."""
    for adjacency in Adjacency:
        moved = one_sum(adjacency).under(adjacency)
        assert (moved.l1, moved.linf, moved.l2_squared) == (UNIT, UNIT, UNIT**2)


# Spends


@pytest.mark.parametrize(
    ("guarantee", "law"),
    [
        ({"epsilon": 1}, "discrete-laplace"),
        ({"epsilon": 1, "delta": 1e-6}, "discrete-gaussian"),
        ({"rho": "1/10"}, "discrete-gaussian"),
        ({"epsilon": 1, "adjacency": "replace"}, "discrete-laplace"),
    ],
)
def test_every_spend_is_told_and_they_add_up(guarantee: dict[str, Any], law: str) -> None:
    release = PMW(rounds=6, points_per_axis=4).release(
        mixture(50), kernel=KERNEL, bounds=BOUNDS, **guarantee
    )
    spends = release.privacy.spends
    private = guarantee.get("adjacency") is None
    assert [s.purpose for s in spends] == ["count"] * private + [
        "choice of a query",
        "measurement",
    ] * 6
    for spend in spends:
        if isinstance(spend, Selection):
            assert spend.sensitivity == UNIT
        else:
            assert isinstance(spend, Spend)
            assert spend.law.name == law
    if "rho" in guarantee:
        assert sum(s.as_rho for s in spends) == Fraction(1, 10)
    elif "delta" in guarantee:
        assert release.privacy.epsilon_at(1e-6) <= 1.0001
    else:
        assert sum(s.amount.epsilon or 0 for s in spends) == 1
    assert "choice of a query" in str(release.privacy)
    assert ", 6 times" in str(release.privacy)


def test_a_few_rounds_with_delta_are_pure() -> None:
    """At one round ε/2 beats what ρ buys: the smaller scale is taken."""
    release = PMW(rounds=1, points_per_axis=4).release(
        mixture(50), kernel=KERNEL, bounds=BOUNDS, epsilon=1, delta=1e-6
    )
    assert all(spend.amount.epsilon is not None for spend in release.privacy.spends)
    usual = PMW(points_per_axis=4).release(
        mixture(50), kernel=KERNEL, bounds=BOUNDS, epsilon=1, delta=1e-6
    )
    assert all(spend.amount.rho is not None for spend in usual.privacy.spends[1:])


def test_budget_is_debited_before_noise_is_drawn() -> None:
    class StopError(Exception):
        pass

    def crash(*_: object) -> Any:
        raise StopError

    for randomness, spent in (
        (Rigged(crash), ["count"]),
        (Rigged(choose=crash), ["count", "choice of a query"]),
    ):
        budget = Budget(Guarantee.declare(epsilon=1), randomness)
        with pytest.raises(StopError):
            PMW(rounds=2, points_per_axis=2).synthesise(opened([1.0]), None, budget)
        assert [s.purpose for s in budget.spends] == spent


def test_only_the_noisy_count_is_seen() -> None:
    """490 and 510 records with noise that makes 500 of both: the same rounds, the same count."""
    seen = []
    for n in (490, 510):
        values = itertools.chain([500 - n], itertools.repeat(0))

        def noise(law: Law, size: int, values: Iterator[int] = values) -> NDArray[np.int64]:
            return np.full(size, next(values), dtype=np.int64)

        budget = Budget(Guarantee.declare(epsilon=1), Rigged(noise))
        release = PMW(points_per_axis=4).synthesise(opened(mixture(n)), None, budget)
        seen.append((release.count, len(release.privacy.spends), release.points.shape))
    assert seen[0] == seen[1]
    assert seen[0][0] == 500


@pytest.mark.parametrize("data", [[], [math.nan] * 3, [math.inf], [1e308, -1e308]])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_any_table_releases(data: list[float], adjacency: str) -> None:
    release = PMW(points_per_axis=4).release(
        np.array(data).reshape(-1, 1), kernel=KERNEL, bounds=BOUNDS, epsilon=1, adjacency=adjacency
    )
    assert release.weights.sum() == pytest.approx(1)
    assert release.count is not None
    assert release.count >= 1


def test_usual_rounds() -> None:
    assert usual_rounds(Amount(epsilon=Fraction(1)), 1_000) == 8
    assert usual_rounds(Amount(epsilon=Fraction(1)), 1) == 2
    assert usual_rounds(Amount(rho=Fraction(1, 40)), 10_000) == 80
    assert usual_rounds(Amount(rho=Fraction(1000)), 10**12) == 200


# Accuracy


@pytest.mark.parametrize("guarantee", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}])
def test_error_is_within_the_theorem(guarantee: dict[str, Any]) -> None:
    """2√(ln|U|/T) + 10·T·ln|Q|/(εn) is far above what is seen (0.02): no luck is needed."""
    points = mixture(8_000)
    release = PMW(rounds=24, points_per_axis=24).release(
        points, kernel=KERNEL, bounds=BOUNDS, **guarantee
    )
    places = release.points
    off = np.abs(release.kde(places) - dpkde.nonprivate.kde(points, places, KERNEL)).max()
    theorem = 2 * math.sqrt(math.log(24) / 24) + 10 * 24 * math.log(24) / 8_000
    assert off < 0.15 < theorem
    even = np.abs(
        KERNEL.evaluate(places, places).mean(axis=0) - dpkde.nonprivate.kde(points, places, KERNEL)
    )
    assert off < even.max() / 2


def test_given_queries_and_sampled_queries() -> None:
    points, asked = mixture(4_000), np.array([[1.0], [2.0], [3.0]])
    exact = dpkde.nonprivate.kde(points, asked, KERNEL)
    for mechanism, queries in (
        (PMW(points_per_axis=24), asked),
        (PMW(alpha=0.1, queries_sampled=12, seed=3), None),
    ):
        release = mechanism.release(
            points, kernel=KERNEL, bounds=BOUNDS, epsilon=4, queries=queries
        )
        assert np.abs(release.kde(asked) - exact).max() < 0.2
    budget = Budget(Guarantee.declare(epsilon=4))
    answers = PMW(points_per_axis=24).answer(opened(points), asked, budget)
    assert answers.kde is not None
    assert np.abs(answers.kde - exact).max() < 0.2


def test_infeasible_sizes_are_refused_at_once() -> None:
    for mechanism, dim in (
        (PMW(alpha=0.05), 4),
        (PMW(points_per_axis=50), 3),
        (PMW(alpha=0.1), 400),
    ):
        start = time.monotonic()
        with pytest.raises(dpkde.ParameterError, match=r"PMW over a universe .* MB: that is too"):
            mechanism.release(iter([]), kernel=KERNEL, bounds=[(0, 4)] * dim, epsilon=1)
        with pytest.raises(dpkde.ParameterError, match="too much"):
            mechanism.online(np.zeros((1, dim)), kernel=KERNEL, bounds=[(0, 4)] * dim, epsilon=1)
        assert time.monotonic() - start < 5


def test_wrong_arguments() -> None:
    points = mixture(10)
    for wrong in ({}, {"rounds": 0}, {"rounds": 501}, {"alpha": 2}, {"points_per_axis": 0}):
        with pytest.raises(dpkde.ParameterError):
            PMW(**wrong).release(points, kernel=KERNEL, bounds=BOUNDS, epsilon=1)
    tidy = PMW(points_per_axis=3)
    online: list[dict[str, Any]] = [{"updates": 0}, {"tolerance": -1}, {"tolerance": math.nan}]
    for options in online:
        with pytest.raises(dpkde.ParameterError):
            tidy.online(points, kernel=KERNEL, bounds=BOUNDS, epsilon=1, **options)
    with pytest.raises(dpkde.ParameterError, match="again and again"):
        tidy.online(iter([points]), kernel=KERNEL, bounds=BOUNDS, epsilon=1)


# Online


def session(points: Any, **options: Any) -> InteractivePMW:
    settings: dict[str, Any] = {"kernel": KERNEL, "bounds": BOUNDS, "epsilon": 1} | options
    return PMW(points_per_axis=20).online(points, **settings)


@pytest.mark.parametrize("guarantee", [{"epsilon": 4}, {"epsilon": 4, "delta": 1e-6}, {"rho": 1}])
def test_a_session_answers_within_its_tolerance(guarantee: dict[str, Any]) -> None:
    """Off by twice the tolerance with probability 0.1 at most; by 5 times, below 10⁻⁹."""
    points = mixture(3_000)
    curator = PMW(points_per_axis=20).online(
        points, kernel=KERNEL, bounds=BOUNDS, updates=6, expected_queries=100, **guarantee
    )
    places = np.linspace(0, 4, 6)[:, np.newaxis]  # no more than the updates
    answers = curator.ask(places)
    exact = dpkde.nonprivate.kde(points, places, KERNEL)
    assert np.abs(answers - exact).max() < 5 * curator.tolerance + 0.05
    assert len(curator.transcript) == 6
    assert 0 <= curator.updates_left <= 6
    release = curator.release()
    assert release.privacy == curator.privacy
    assert np.isnan(curator.ask([[math.nan]])[0])


class Eager:
    """A threshold that fires at every second check."""

    def __init__(self, law: object) -> None:
        self.asked = 0

    def passed(self, value: int, threshold: int) -> bool:
        self.asked += 1
        return self.asked == 2


def test_spends_of_a_session_and_its_end() -> None:
    """After two updates the budget is spent, exactly, and the next query ends the session."""
    private = opened(mixture(500))
    curator = InteractivePMW(
        private,
        Universe.over(private.frame, points_per_axis=20),
        Budget(Guarantee.declare(epsilon=1), Rigged(check=Eager)),
        updates=2,
        tolerance=None,
        expected_queries=100,
    )
    assert [s.purpose for s in curator.privacy.spends] == ["count"]
    with pytest.raises(dpkde.BudgetError, match="2 updates"):
        curator.ask(np.full((9, 1), 1.0))
    purposes = [s.purpose for s in curator.privacy.spends]
    assert purposes == ["count", "checks", "measurement", "checks", "measurement"]
    assert sum(s.amount.epsilon or 0 for s in curator.privacy.spends) == 1
    assert curator.updates_left == 0
    assert len(curator.transcript) == 4
    with pytest.raises(dpkde.BudgetError):
        curator.ask([[1.0]])
    assert curator.release().weights.sum() == pytest.approx(1)


def test_checks_that_do_not_fire_cost_nothing() -> None:
    curator = session(mixture(500), updates=2, tolerance=1e9)
    first = curator.ask(np.linspace(0, 4, 60)[:, np.newaxis])
    assert [s.purpose for s in curator.privacy.spends] == ["count", "checks"]
    assert curator.updates_left == 2
    even = KERNEL.evaluate(curator.release().points, np.array([[0.0]])).mean()
    assert first[0] == pytest.approx(even)


def test_a_session_keeps_its_secrets() -> None:
    curator = session(mixture(123))
    assert "secret" in repr(curator)
    assert "123" not in repr(curator)


def test_multiply_weights_with_nothing_to_learn() -> None:
    budget = Budget(Guarantee.declare(epsilon=1))
    amount = budget.left_pure()
    assert amount is not None
    weights = multiply_weights(np.zeros(1, np.int64), 10, np.ones((1, 1)), 3, amount, budget)
    assert weights.values.tolist() == [1.0]
