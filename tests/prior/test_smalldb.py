"""SmallDB: losses and their sensitivity in integers, probabilities by hand, errors, refusals.

Statistical tests reject a correct mechanism at rate 10⁻⁹, and show that ε twice as large is
rejected; their numbers leave a miss below 10⁻⁶.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

import dpkde
from contracts.rigged import Rigged
from dpkde.prior import smalldb
from dpkde.prior.base import Private, Sums
from dpkde.prior.lattice import (
    CAPACITY,
    LATTICE_BITS,
    on_lattice,
    public_lattice,
    within_capacity,
)
from dpkde.prior.smalldb import SmallDB, coreset_size, losses, multiset, select_small_database
from dpkde.prior.universe import Universe, grid_shape
from dpkde.privacy.amounts import Adjacency
from dpkde.privacy.audit import audit
from dpkde.privacy.budget import Budget, Guarantee
from remembered import Remembered

UNIT = 1 << LATTICE_BITS
KERNEL = dpkde.Gaussian(0.5)
BOUNDS = [(0.0, 4.0)]
POOL = [0.0, 0.9, 1.0, 4.0, math.nan, math.inf, -math.inf, 1e308, -7.5]


def opened(data: list[float], bounds: Any = BOUNDS, kind: type[Private] = Private) -> Private:
    return kind.open(np.array(data, dtype=float).reshape(-1, 1), KERNEL, bounds)


def neighbours(most: int) -> Iterator[tuple[list[float], list[float], Adjacency]]:
    """All data sets of the pool up to a size, with one record more and one replaced."""
    for size in range(most + 1):
        for data in itertools.combinations_with_replacement(POOL, size):
            for extra in POOL:
                yield list(data), [*data, extra], Adjacency.ADD_REMOVE
                if size:
                    yield list(data), [*data[1:], extra], Adjacency.REPLACE


def fits(counts: NDArray[Any], chances: NDArray[Any]) -> bool:
    expected = chances * counts.sum()
    statistic = ((counts - expected) ** 2 / expected).sum()
    return bool(statistic <= chi2.isf(1e-9, len(chances) - 1))


# Sums


def test_sums_are_exact_and_add_up() -> None:
    """Any split and order gives the same integers; a plain loop in Python gives them too."""
    data = np.random.default_rng(0).uniform(-1, 5, 60).tolist() + POOL
    places = np.linspace(-1, 5, 7)[:, np.newaxis]
    whole, count, rows = opened(data).kernel_sums(places)
    assert (count, rows) == (len(data) - 3, len(data))
    again = opened(data[::-1]).kernel_sums(places)
    assert np.array_equal(whole, again.sums)
    parts = [opened([value]).kernel_sums(places).sums for value in data]
    assert np.array_equal(whole, sum(parts))
    plain = [
        sum(
            round(math.exp(-(((min(max(x, 0.0), 4.0) - y) / 0.5) ** 2)) * UNIT)
            for x in data
            if math.isfinite(x)
        )
        for y in places[:, 0].tolist()
    ]
    assert np.abs(whole - np.array(plain)).max() <= len(data) // 20  # ties of rounding


def test_contributions_are_within_bounds_whatever_the_kernel_says() -> None:
    strange = np.array([-1.0, 0.0, 0.5, 1.0, 7.0, math.nan, math.inf, -math.inf])
    assert on_lattice(strange).tolist() == [0, 0, UNIT // 2, UNIT, UNIT, 0, UNIT, 0]


def test_what_is_beyond_the_capacity_is_cut() -> None:
    most = CAPACITY << LATTICE_BITS
    sums = np.array([-5, 0, 7, most, most + 1, (1 << 63) - 1])
    assert within_capacity(sums).tolist() == [0, 0, 7, most, most, most]


def test_sums_keep_their_secrets() -> None:
    totals = opened([1.0, 1.0]).kernel_sums(np.array([[1.0]]))
    assert totals.sums.tolist() == [2 * UNIT]
    assert "secret" in repr(totals)
    assert str(UNIT) not in repr(totals)


# Losses


def test_losses_equal_a_plain_loop() -> None:
    generator = np.random.default_rng(1)
    lattice = generator.integers(0, UNIT + 1, (5, 4))
    sums = generator.integers(0, 100 * UNIT, 4)
    for size in (1, 2, 3, 5):
        sets = list(itertools.combinations_with_replacement(range(5), size))
        plain = [
            max(
                abs(size * int(sums[j]) - 97 * sum(int(lattice[z, j]) for z in members))
                for j in range(4)
            )
            for members in sets
        ]
        assert losses(sums, 97, lattice, size).tolist() == plain
        assert [multiset(i, 5, size).tolist() for i in range(len(sets))] == [*map(list, sets)]


def test_losses_do_not_overflow() -> None:
    lattice = np.array([[0], [UNIT]])
    values = losses(np.array([(1 << 63) - 1]), 1 << 62, lattice, smalldb.LARGEST_SIZE)
    assert values.max() == smalldb.LARGEST_SIZE * UNIT * CAPACITY == 1 << 62
    assert values.min() >= 0


@pytest.mark.parametrize("size", [1, 2, 3])
def test_sensitivity_of_the_loss_exhaustively(size: int) -> None:
    """No neighbours move a loss by more than s·2^b; some move it by nearly as much."""
    universe = Universe.over(opened([]).frame, points_per_axis=4)
    lattice = public_lattice(opened([]).frame, universe.points, universe.points)
    cache: dict[tuple[float, ...], Sums] = {}

    def losses_of(data: list[float], adjacency: Adjacency) -> NDArray[np.int64]:
        key = tuple(data)
        if key not in cache:
            cache[key] = opened(data).kernel_sums(universe.points)
        return losses(cache[key].sums, cache[key].size(adjacency), lattice, size)

    largest = 0
    for left, right, adjacency in neighbours(2):
        apart = np.abs(losses_of(left, adjacency) - losses_of(right, adjacency)).max()
        assert apart <= size * UNIT
        largest = max(largest, int(apart))
    assert largest >= 0.9 * size * UNIT


# The choice


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("size", [1, 2])
def test_two_points_by_hand(size: int, adjacency: str) -> None:
    """Grid {1, 3} with kernel values 1 and e^(−16) ≈ 0; data 1, 1, 3 and one NaN.

    S = (2, 1)·2^b. For size 1: losses |2 − n|, |1 − 0| for {1} and so on, n = 3, or 4 rows. 1,500
    choices at ε = 4.
    """
    data, n = [1.0, 1.0, 3.0, math.nan], 3 if adjacency == "add-remove" else 4
    private, epsilon = opened(data, kind=Remembered), 4
    guarantee = Guarantee.declare(epsilon=epsilon, adjacency=adjacency)
    sets = [(1, 0), (0, 1)] if size == 1 else [(2, 0), (1, 1), (0, 2)]  # copies of 1 and of 3
    by_hand = np.array([max(abs(size * 2 - n * a), abs(size * 1 - n * b)) for a, b in sets])
    mechanism = SmallDB(size=size, points_per_axis=2)
    counts = np.zeros(len(sets))
    for _ in range(1_500):
        release = mechanism.synthesise(private, None, Budget(guarantee))
        copies = {
            float(z): round(w * size)
            for z, w in zip(release.points[:, 0], release.weights, strict=True)
        }
        counts[sets.index((copies.get(1.0, 0), copies.get(3.0, 0)))] += 1

    def chances(factor: float) -> NDArray[Any]:
        weights = np.exp(-factor * epsilon * by_hand / (2 * size))
        return np.asarray(weights / weights.sum())

    assert fits(counts, chances(1))
    assert not fits(counts, chances(2))


def test_one_spend_and_no_count() -> None:
    release = SmallDB(size=2, points_per_axis=3).release(
        np.array([[1.0], [2.0]]), kernel=KERNEL, bounds=BOUNDS, epsilon="1/3"
    )
    (spend,) = release.privacy.spends
    assert spend.law.name == "exponential"
    assert spend.sensitivity == 2 * UNIT
    assert spend.law.scale * spend.amount.epsilon >= 2 * spend.sensitivity  # type: ignore[operator]
    assert release.count is None
    assert "exponential mechanism" in str(release.privacy)
    concentrated = SmallDB(size=2, points_per_axis=3).release(
        np.zeros((0, 1)), kernel=KERNEL, bounds=BOUNDS, rho=0.5
    )
    assert concentrated.privacy.spends[0].amount.rho == 0.5


def test_budget_is_debited_before_the_choice() -> None:
    class StopError(Exception):
        pass

    def crash(*_: object) -> int:
        raise StopError

    budget = Budget(Guarantee.declare(epsilon=1), Rigged(choose=crash))
    with pytest.raises(StopError):
        SmallDB(size=1, points_per_axis=2).synthesise(opened([1.0]), None, budget)
    assert len(budget.spends) == 1
    with pytest.raises(dpkde.BudgetError):
        budget.left_pure()


@pytest.mark.parametrize("data", [[], [math.nan] * 3, [math.inf, -math.inf], [1e308]])
def test_any_table_releases(data: list[float]) -> None:
    release = SmallDB(size=2, points_per_axis=3).release(
        np.array(data).reshape(-1, 1), kernel=KERNEL, bounds=BOUNDS, epsilon=1
    )
    assert release.weights.sum() == pytest.approx(1)


# Accuracy


def test_error_within_its_bound() -> None:
    """Best multiset plus (2/(εn))·ln(N/η), η = 10⁻⁹, at every point of the grid."""
    data = np.random.default_rng(2).normal(1.5, 0.5, 1500).clip(0, 4)
    mechanism = SmallDB(size=4, points_per_axis=10)
    private = opened(data.tolist())
    universe = Universe.over(private.frame, points_per_axis=10)
    totals = private.kernel_sums(universe.points)
    lattice = public_lattice(private.frame, universe.points, universe.points)
    best = losses(totals.sums, totals.records, lattice, 4).min() / (4 * totals.records * UNIT)
    bound = mechanism.error_bound(private.frame, rows=1500, epsilon=2, eta=1e-9)
    assert bound < 2 / (2 * 1500) * (4 * math.log(10) + math.log(1e9))
    exact = dpkde.nonprivate.kde(data[:, np.newaxis], universe.points, KERNEL)
    for queries in (None, universe.points[::3]):
        release = mechanism.release(
            data[:, np.newaxis], kernel=KERNEL, bounds=BOUNDS, epsilon=2, queries=queries
        )
        places = universe.points if queries is None else queries
        off = np.abs(
            release.kde(places) - dpkde.nonprivate.kde(data[:, np.newaxis], places, KERNEL)
        )
        assert off.max() <= best + bound + 2 / UNIT
    assert exact.max() > 3 * bound  # the bound says something


def test_coresets_of_the_stated_size_exist() -> None:
    """For s = 1/α² some multiset of records is within α everywhere, for clustered data."""
    data = np.array([0.5, 0.5, 1.5, 2.5, 3.5])
    places = np.linspace(-1, 5, 50)[:, np.newaxis]
    exact = dpkde.nonprivate.kde(data[:, np.newaxis], places, KERNEL)
    for alpha in (0.5, 0.6, 0.75):
        size = coreset_size(alpha)
        best = min(
            float(
                np.abs(
                    dpkde.nonprivate.kde(np.array(z)[:, np.newaxis], places, KERNEL) - exact
                ).max()
            )
            for z in itertools.combinations_with_replacement(data.tolist(), size)
        )
        assert best <= alpha


# The universe


def test_pitch_keeps_alpha() -> None:
    """Records anywhere, moved to the nearest point of the grid: no kernel value moves by α."""
    for kernel in (
        dpkde.Gaussian([0.5, 1.0]),
        dpkde.Cauchy(0.7),
        dpkde.Laplacian(1.0),
        dpkde.Hat(1.5),
        dpkde.Erfc(0.8),
        dpkde.ExponentialLp(1.5, 1, 1.0),
    ):
        private = Private.open(np.zeros((0, 2)), kernel, [(0, 2), (-1, 1)])
        universe = Universe.over(private.frame, alpha=0.2)
        generator = np.random.default_rng(3)
        records = generator.uniform((0, -1), (2, 1), (200, 2))
        queries = generator.uniform((-1, -2), (3, 2), (200, 2))
        bandwidth = np.broadcast_to(np.array(kernel.bandwidth.value), (2,))
        gaps = np.abs(records[:, np.newaxis] - universe.points) / bandwidth
        nearest = universe.points[(gaps**2).sum(axis=2).argmin(axis=1)]
        apart = np.abs(kernel.evaluate(records, queries) - kernel.evaluate(nearest, queries))
        assert universe.rounding is not None
        assert apart.max() <= universe.rounding <= 0.2 + 1e-12


def test_the_gaussian_pitch() -> None:
    private = opened([])
    width, pitch = 4 / 0.5, 2 * 0.1 / 0.8577638849607068
    assert grid_shape(private.frame, alpha=0.1) == (math.ceil(width / pitch),)
    with pytest.raises(dpkde.ParameterError, match="points_per_axis"):
        grid_shape(Private.open(np.zeros((0, 1)), dpkde.Matern(0.3), BOUNDS).frame, alpha=0.1)


def test_sampled_queries_are_public_and_repeat() -> None:
    universe = Universe.over(opened([]).frame, points_per_axis=30)
    assert np.array_equal(universe.sample(7, 5), universe.sample(7, 5))
    assert universe.sample(7, 5).shape == (7, 1)
    assert universe.sample(None, 5).shape == universe.sample(99, 5).shape == (30, 1)
    release = SmallDB(size=2, points_per_axis=30, queries_sampled=5).release(
        np.ones((50, 1)), kernel=KERNEL, bounds=BOUNDS, epsilon=5
    )
    assert release.dim == 1


@pytest.mark.parametrize(
    ("mechanism", "dim", "message"),
    [
        (SmallDB(size=12, points_per_axis=100), 1, "SmallDB over a universe of 100 points"),
        (SmallDB(size=2, points_per_axis=10), 6, "1.0e6 points"),
        (SmallDB(size=4, alpha=0.05), 300, "e100 points"),
        (SmallDB(size=4, points_per_axis=30), 2, "data sets in"),
    ],
)
def test_infeasible_sizes_are_refused_at_once(mechanism: SmallDB, dim: int, message: str) -> None:
    def never() -> Iterator[Any]:
        raise AssertionError("the points were read")
        yield

    start = time.monotonic()
    with pytest.raises(dpkde.ParameterError, match="too much") as caught:
        mechanism.release(never(), kernel=KERNEL, bounds=[(0, 4)] * dim, epsilon=1)
    assert time.monotonic() - start < 5
    assert message in str(caught.value)
    assert " MB" in str(caught.value)
    assert " s and " in str(caught.value)


def test_wrong_arguments() -> None:
    points = np.zeros((3, 1))
    for wrong in ({}, {"size": 0}, {"size": 65}, {"size": 1.5}, {"alpha": 0}, {"alpha": 0.05}):
        with pytest.raises(dpkde.ParameterError):
            SmallDB(**wrong).release(points, kernel=KERNEL, bounds=BOUNDS, epsilon=1)
    tidy = SmallDB(size=2, points_per_axis=3)
    for bounds in (None, dpkde.Sphere()):
        with pytest.raises(dpkde.ParameterError):
            tidy.release(
                points,
                kernel=KERNEL if bounds is None else dpkde.Geodesic(),
                bounds=bounds,
                epsilon=1,
            )
    with pytest.raises(dpkde.ParameterError, match="finite point"):
        tidy.release(points, kernel=KERNEL, bounds=BOUNDS, epsilon=1, queries=[[math.nan]])
    with pytest.raises(dpkde.ParameterError, match="epsilon and rho"):
        tidy.release(points, kernel=KERNEL, bounds=BOUNDS)
    with pytest.raises(dpkde.SchemaError):
        tidy.release(np.zeros((3, 2)), kernel=KERNEL, bounds=BOUNDS, epsilon=1)


# Audit: at confidence 1 − 10⁻⁹


def chosen(data: list[float], trials: int, factor: int = 1) -> NDArray[Any]:
    """Which multiset was chosen, one column each; `factor` makes a mutant's scale too small."""
    guarantee = Guarantee.declare(epsilon=1, adjacency="replace")
    frame = opened([]).frame
    places = Universe.over(frame, points_per_axis=2).points
    lattice = public_lattice(frame, places, places)
    totals = opened(data).kernel_sums(places)
    outputs = np.zeros((trials, 2))
    for row in outputs:
        budget = Budget(guarantee)
        amount = budget.left_pure()
        assert amount is not None
        members = select_small_database(
            totals.sums * factor, totals.rows * factor, lattice, 1, amount, budget
        )
        row[members[0]] = 1
    return outputs


@pytest.mark.audit
def test_audit() -> None:
    """Losses (0, Δ) against (Δ, 0) have ln-ratio ε/2; a loss 4 times too large has 2ε."""
    result = audit(chosen, [1.0], [3.0], trials=8_000)
    assert not result.refutes(1)
    assert result.epsilon_lower > 0.1  # the audit is not blind: the truth is 0.5, 0.35 is usual
    assert audit(lambda d, n: chosen(d, n, 4), [1.0], [3.0], trials=8_000).refutes(1)
    assert not audit(chosen, [], [3.0], trials=4_000).refutes(1)
