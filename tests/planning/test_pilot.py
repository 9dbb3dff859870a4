"""The pilot: what it tells, what it costs, and that nothing unpaid is ever read from it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from contracts.rigged import install, rigged
from dpkde.curator.publish import Errand, publish_source
from dpkde.curator.sketch import count_and_look
from dpkde.families.base import Pair
from dpkde.families.hashing.grids import Grids
from dpkde.planning.choice import Choice, Typical
from dpkde.planning.outlook import outlook
from dpkde.planning.pilot import SHARES, Offer, Pilot
from dpkde.planning.pilots import draw_pilot
from dpkde.planning.plan import as_families
from dpkde.planning.signs import TELLING, Signs, information
from dpkde.planning.waves import Waves
from dpkde.privacy.amounts import Amount
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.privacy.laws import DiscreteGaussian, Law, MaxNorm, Randomness, draw
from dpkde.privacy.statement import statement_from_json, statement_to_json
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame
from dpkde.tables import open_points

Array = NDArray[np.float64]
DIM = 4
BOUNDS = [(-3.0, 3.0)] * DIM
KERNEL = dpkde.Gaussian(1.0)
FRAME = Frame.of(KERNEL, as_domain(BOUNDS), DIM)
MANY = 10**6


def _pilot(frame: Frame = FRAME, seed: int = 1) -> Pilot:
    pilot = draw_pilot(frame, 40, seed)
    assert pilot is not None
    return pilot


def _waves(frame: Frame = FRAME, seed: int = 1) -> Pilot:
    """Return the pilot that other frames get."""
    pilot = Waves.drawn(frame, 40, seed)
    assert pilot is not None
    return pilot


Draw = Callable[[Frame, int], Pilot]
BOTH = pytest.mark.parametrize("drawn", [_pilot, _waves])


def _budget(**guarantee: Any) -> Budget:
    return Budget(Guarantee.declare(**(guarantee or {"epsilon": 1})))


def _offer(rows: float = MANY, drawn: Draw = _pilot, **guarantee: Any) -> Offer:
    offer = drawn(FRAME, 1).offer(_budget(**guarantee), rows)
    assert offer is not None
    return offer


def _sums(points: Array, pilot: Pilot, frame: Frame = FRAME) -> NDArray[np.int64]:
    return count_and_look(open_points(points), frame, [pilot.look], 1)[1][0]


def _told(
    points: Array, frame: Frame = FRAME, seed: int = 1, drawn: Draw = _pilot
) -> tuple[float, float]:
    """Return the middle of the range that a pilot without noise leaves."""
    pilot = drawn(frame, seed)
    offer = pilot.offer(_budget(), MANY)
    assert offer is not None
    sums = _sums(points, pilot, frame)[pilot.cells(offer)]
    guesses = pilot.range(sums, offer, len(points), None)
    assert len(guesses) == 9
    return guesses[4]


@BOTH
def test_density_and_smoothness_are_told(drawn: Draw) -> None:
    """Over clouds of every width within a factor of 3, and of 2 on average over twelve seeds.

    Heaps and rounded values are told from clouds.
    """
    generator = np.random.default_rng(0)

    def told(points: Array) -> Array:
        return np.array([_told(points, seed=seed, drawn=drawn) for seed in range(12)])

    for spread in (0.3, 0.5, 0.8):
        truth = (1 + 4 * spread**2) ** (-DIM / 2)
        density, smoothness = told(generator.normal(size=(20_000, DIM)) * spread).T
        off = np.log(density / truth)
        assert np.abs(off).max() < np.log(3)
        assert abs(off.mean()) < np.log(2)
        assert np.median(smoothness) > (0.2 if spread < 0.5 else 0.45)
    heaps = generator.integers(-1, 2, size=(20_000, DIM)) * 1.7
    rounded = np.rint(generator.normal(size=(20_000, DIM)) * 0.9)
    for points in (heaps.astype(np.float64), rounded.astype(np.float64)):
        smoothness = told(points)[:, 1]
        assert np.median(smoothness) < 0.25
        assert (smoothness < 0.4).sum() >= 9


def test_signs_are_summed_as_they_are_written_down() -> None:
    """The compiled loop against the plain one, on records anywhere; rows that do not count."""
    generator = np.random.default_rng(4)
    for bounds in (BOUNDS, [(0.0, 1.0)] * DIM, [(-1e9, 1e9)] * DIM):
        frame = Frame.of(KERNEL, as_domain(bounds), DIM)
        look = _pilot(frame).look
        places = generator.choice([-1e9, -3.0, -0.0, 0.5, 3.0, 1e9, np.nan], size=(300, DIM))
        points = np.concatenate([generator.normal(size=(700, DIM)), places])
        coordinates, counts = frame.place(points)
        assert 0 < counts.sum() < len(counts)
        signs = look.quantize(coordinates, counts)
        assert (np.abs(signs).sum(axis=1) == counts * look.bounds.l1).all()
        table = np.zeros(look.bounds.cells, dtype=np.int64)
        look.accumulate(coordinates, counts, table)
        assert (table == signs.sum(axis=0)).all()


def test_a_grid_tells_the_chance_to_share_a_cell() -> None:
    """E F² over grids and their signs, by two records: plain ones, and those with waves.

    4,000 pairs of sums: a mean of squares of ±1 and 0 is within 6 standard errors but for 2e-9.
    """
    apart = np.array([[0.0, 0.0], [0.4, 0.9]])
    frame = Frame.of(KERNEL, as_domain([(-3.0, 3.0)] * 2), 2)
    squares = []
    for seed in range(250):
        look = _pilot(frame, seed).look
        mean = look.quantize(apart, np.ones(2, bool)).mean(axis=0) / look.bounds.linf
        squares.append((mean**2).reshape(-1, 2))
    plain, waved = np.concatenate(squares).T
    pitch = np.sqrt(np.pi)
    shared = float(np.prod(1 - np.abs(apart[1]) / pitch))
    assert abs(plain.mean() - (1 + shared) / 2) < 6 * 0.5 / np.sqrt(len(plain))
    # Along each axis and at each distance in turn: the triangle wave of the phase between them.
    phase = np.array([4.0, 2 * np.pi])[:, np.newaxis] * np.abs(apart[1]) / np.pi
    triangle = 1 - 2 * np.abs(phase - 2 * np.rint(phase / 2))
    expected = (1 + shared * triangle.mean()) / 2
    assert abs(waved.mean() - expected) < 6 * 0.5 / np.sqrt(len(waved))


@BOTH
def test_what_cannot_be_is_not_told(drawn: Draw) -> None:
    """Noise may be anything: the range stays within what densities and smoothness can be."""
    pilot, offer = drawn(FRAME, 1), _offer(drawn=drawn)
    for value in (-(2**62), 0, 2**62):
        noisy = np.full(offer.bounds.cells, value)
        for rows in (1, 10**12):
            for density, smoothness in pilot.range(noisy, offer, rows, None):
                assert 1e-3 <= density <= 1
                assert 0 < smoothness < 2


def test_columns_without_a_mesh_and_no_bounds_are_not_moved_on() -> None:
    narrow = Frame.of(KERNEL, as_domain([(0.0, 1.0)] * 3), 3)
    for frame, cells in ((narrow, 16), (Frame.of(KERNEL, as_domain(None), 3), 32)):
        pilot = _pilot(frame)
        assert not pilot.moved
        assert pilot.look.bounds.cells == cells
        assert 0.5 < _told(np.zeros((50, 3)), frame)[0] <= 1
    mixed = Frame.of(KERNEL, as_domain([(0.0, 1.0), (0.0, 9.0)]), 2)
    waves, signs = _waves(mixed).look, _pilot(mixed).look
    assert isinstance(waves, Pair)
    frequencies = waves.tensors["frequencies"]
    assert (frequencies[0::2, 0] == frequencies[1::2, 0]).all()
    assert (frequencies[0::2, 1] != frequencies[1::2, 1]).all()
    assert isinstance(signs, Grids)
    assert (signs.rates[0::2] == 0).all()
    assert (signs.rates[1::2] > 1).all()
    assert (signs.axes[1::2] == 1).all()


def test_a_grid_stands_for_kernels_on_few_wide_axes_alone() -> None:
    """Elsewhere there are waves: many axes, many narrow ones, no bounds, no product."""
    many = as_domain([(-3.0, 3.0)] * 9)
    thin = as_domain([(-3.0, 3.0)] * 2 + [(0.0, 1.0)] * 5)
    ball = dpkde.Ball([0.0] * 4, 3.0)
    assert isinstance(_pilot(Frame.of(KERNEL, as_domain([(-3.0, 3.0)] * 8), 8)), Signs)
    assert isinstance(_pilot(Frame.of(KERNEL, thin, 7)), Waves)
    assert isinstance(_pilot(Frame.of(KERNEL, many, 9)), Waves)
    assert isinstance(_pilot(Frame.of(KERNEL, as_domain(None), 4)), Waves)
    assert isinstance(_pilot(Frame.of(dpkde.Matern(1.5, 1.0), ball, 4)), Waves)


@pytest.mark.parametrize(
    ("kernel", "bounds"),
    [(dpkde.Geodesic(), None), (dpkde.Jaccard(), dpkde.Sets(5)), (KERNEL, [(0, 1e17)] * 3)],
)
def test_without_grid_and_spectrum_there_is_none(kernel: Any, bounds: Any) -> None:
    assert draw_pilot(Frame.of(kernel, as_domain(bounds), None, 5), 40, 0) is None


@BOTH
def test_a_record_moves_the_features_by_no_more_than_is_paid_for(drawn: Draw) -> None:
    """The bounds of the spend hold on the very cells that are read, for any record."""
    pilot = drawn(FRAME, 1)
    generator = np.random.default_rng(2)
    wild = np.concatenate(
        [
            generator.normal(size=(2000, DIM)),
            generator.choice([-1e300, -3.0, 0.0, 3.0, 1e300], size=(500, DIM)),
        ]
    )
    coordinates, counts = FRAME.place(wild)
    whole = pilot.look.quantize(coordinates, counts)
    offers = [_offer(drawn=drawn), _offer(8000, drawn), _offer(drawn=drawn, rho="0.5")]
    for offer in offers:
        cells = pilot.cells(offer)
        assert len(cells) == len(set(cells.tolist())) == offer.bounds.cells
        parts = whole[:, cells]
        assert np.abs(parts).max() <= offer.bounds.linf
        assert np.abs(parts).sum(axis=1).max() <= offer.bounds.l1
        assert (parts**2).sum(axis=1).max() <= offer.bounds.l2_squared
        # and they are not idle: a record at the centre reaches them
        assert np.abs(parts).max() >= 0.999 * offer.bounds.linf
    assert [offer.bounds.cells for offer in offers[:2]] in ([64, 32], [32, 16])


@BOTH
def test_what_is_paid_is_a_few_per_cent_in_every_currency(drawn: Draw) -> None:
    pilot = drawn(FRAME, 1)
    for rows in (8000, 20_000, 10**5, 10**9):
        offer = pilot.offer(_budget(epsilon=1), rows)
        assert offer is not None
        assert offer.share in SHARES
        assert offer.amount == Amount(epsilon=offer.share)
        assert offer.law is MaxNorm
        law = MaxNorm.bought(offer.amount, offer.bounds)
        size = 4.0**pilot.look.bits / (1 if isinstance(pilot, Signs) else 2)  # type: ignore[attr-defined]
        assert offer.variance == pytest.approx(law.variance / size / rows**2, rel=1e-12)
        if isinstance(pilot, Waves):
            assert offer.variance <= pilot.NOISY
        else:
            assert information(offer) >= TELLING
    concentrated = _offer(drawn=drawn, rho="0.1")
    assert concentrated.amount == Amount(rho=concentrated.share / 10)
    assert concentrated.law is DiscreteGaussian
    for delta in ("1e-3", "1e-6", "1e-100"):
        budget = _budget(epsilon=1, delta=delta)
        offer = pilot.offer(budget, 10**8)
        assert offer is not None
        assert offer.amount.epsilon is not None
        assert offer.amount.epsilon <= offer.share
        assert offer.amount.as_rho <= offer.share * budget.guarantee.rho_limit
        assert offer.law is MaxNorm  # pure, as the count is


def test_where_it_would_tell_too_little_nothing_is_offered() -> None:
    pilot = _pilot()
    assert pilot.offer(_budget(epsilon=1), 1100) is None
    assert pilot.offer(_budget(epsilon="0.01"), 110_000) is None
    assert pilot.offer(_budget(epsilon="0.01"), 120_000) is not None
    assert pilot.offer(_budget(epsilon="1e-12"), 10**15) is None
    replaced = pilot.offer(_budget(epsilon=1, adjacency="replace"), MANY)
    plain = pilot.offer(_budget(epsilon=1), MANY)
    assert replaced is not None
    assert plain is not None
    assert replaced.variance == pytest.approx(4 * plain.variance, rel=0.01)


def test_little_noise_is_told_by_few_features() -> None:
    """The number of grids that tells most, and no more than the least share that tells enough."""
    pilot = _pilot()
    features, shares = [], []
    for rows in (1200, 3000, 8000, 10**5):
        offer = pilot.offer(_budget(epsilon=1), rows)
        assert offer is not None
        others = [pilot.priced(_budget(), rows, count, offer.share) for count in pilot.FEATURES]
        assert information(offer) == max(information(one) for one in others if one is not None)
        features.append(offer.features)
        shares.append(offer.share)
    assert features == [4, 8, 8, 16]
    assert shares == [SHARES[1], SHARES[1], SHARES[0], SHARES[0]]


def test_where_little_would_be_gained_nothing_is_paid() -> None:
    pilot, budget = _pilot(), _budget(epsilon=1)
    view = outlook(budget, FRAME, 10**5, None, 40)
    open_choice = Choice.among(as_families("auto"), FRAME, Typical())
    assert pilot.worthwhile(open_choice, budget, view) is not None
    known = Choice.among((dpkde.Spline(degree=3, spacing=0.7),), FRAME, Typical())
    assert known.objective.regret(known, view) == 0  # type: ignore[attr-defined]
    assert pilot.worthwhile(known, budget, view) is None


POINTS = np.random.default_rng(3).normal(size=(30_000, DIM)) * 0.6


def _published(points: Array, budget: Budget, **changes: Any) -> dpkde.Release:
    errand = Errand(budget, **changes)
    return publish_source(open_points(points), FRAME, as_families("auto"), errand, 4)


def _purposes(release: dpkde.Release) -> list[str]:
    return [spend.purpose for spend in release.privacy.spends]


def test_it_is_debited_before_its_noise_is_drawn() -> None:
    seen: list[tuple[tuple[str, ...], int]] = []

    def watched(law: Law, size: int) -> NDArray[np.int64]:
        seen.append((tuple(s.purpose for s in budget.spends), size))
        return draw(law, size)

    budget = rigged(watched, epsilon=1)
    release = _published(POINTS, budget)
    assert [entry for entry, _ in seen] == [
        ("count",),
        ("count", "pilot"),
        ("count", "pilot", "table"),
    ]
    assert [size for _, size in seen] == [1, 32, release.table.size]
    paid = {spend.purpose: spend.amount.epsilon or 0 for spend in release.privacy.spends}
    assert sum(paid.values()) == 1
    assert 0 < paid["pilot"] <= Fraction(1, 12)
    spend = next(s for s in release.privacy.spends if s.purpose == "pilot")
    assert spend.sensitivity == _offer(30_000).bounds.linf


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_the_plan_follows_noisy_numbers_alone(adjacency: str) -> None:
    """Tables of any size and kind with the same noisy count and pilot get the same plan.

    Whether the pilot is paid for is the same, too. With other noise on the pilot, another plan.
    """
    pilot, rows = _pilot(seed=4), 30_000
    tables = [POINTS, np.zeros((rows, DIM)), np.rint(POINTS)]
    if adjacency == "add-remove":
        tables += [POINTS[:0], POINTS[:7]]
    target = _sums(POINTS, pilot)
    plans = []
    for points, wanted in [*((points, target) for points in tables), (POINTS, 3 * target // 2)]:
        sums = _sums(points, pilot)

        def noise(law: Law, size: int, n: int = len(points), gap: Any = wanted - sums) -> Any:
            if size == 1:
                return np.array([rows - n])
            return gap[: len(gap)] if size == 32 else draw(law, size)

        release = _published(points, rigged(noise, epsilon=1, adjacency=adjacency))
        assert _purposes(release)[-2:] == ["pilot", "table"]
        considered = [(c.family, c.prediction) for c in release.plan.considered]
        plans.append((release.plan, considered, release.privacy.spends))
    *same, other = plans
    assert all(entry == same[0] for entry in same)
    assert other[1] != same[0][1]


def test_rows_that_do_not_count_do_not_show() -> None:
    """Missing values and rows outside of bounds that drop them add nothing, as to the table."""
    frame = Frame.of(KERNEL, dpkde.Box(BOUNDS, outside="drop"), DIM)
    pilot = _pilot(frame)
    inside = POINTS[np.abs(POINTS).max(axis=1) <= 3][:500]
    strange = np.concatenate([inside, np.full((40, DIM), np.nan), np.full((40, DIM), 9.0)])
    totals, (sums,) = count_and_look(open_points(strange), frame, [pilot.look], 2)
    assert (totals.records, totals.rows) == (500, 580)
    assert (sums == _sums(inside, pilot, frame)).all()
    batches = np.array_split(strange[np.random.default_rng(0).permutation(580)], 7)
    assert (count_and_look(open_points(batches), frame, [pilot.look], 2)[1][0] == sums).all()
    coordinates, counts = frame.place(inside)
    assert (pilot.look.quantize(coordinates, counts).sum(axis=0) == sums).all()


def test_there_is_none_where_it_was_not_asked_for_or_nothing_waits_for_the_count() -> None:
    settings: dict[str, Any] = {"kernel": KERNEL, "bounds": BOUNDS, "epsilon": 1}
    assert "pilot" in _purposes(dpkde.publish(POINTS, **settings))
    plan = dpkde.plan(**settings, expected_rows=30_000)
    for release in (
        dpkde.publish(POINTS, **settings, pilot=False),
        dpkde.publish(POINTS, **settings, expected_rows=30_000),
        dpkde.publish(POINTS, **settings, family=dpkde.Spline(3, 0.8)),
        dpkde.publish(POINTS, **settings, alpha=0.5, eta=0.1),
        dpkde.publish(POINTS, plan=plan, epsilon=1),
        dpkde.publish(dpkde.sketch(POINTS, plan), epsilon=1),
    ):
        assert _purposes(release) == ["count", "table"]
    with pytest.raises(dpkde.ParameterError, match="pilot must be True or False"):
        dpkde.publish(POINTS, **settings, pilot="no")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "guarantee", [{"epsilon": 1, "delta": "1e-6"}, {"rho": "0.2"}, {"epsilon": 1}]
)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_it_stands_in_the_statement_and_in_the_file(
    guarantee: dict[str, Any], adjacency: str, tmp_path: Path
) -> None:
    release = dpkde.publish(POINTS, kernel=KERNEL, bounds=BOUNDS, adjacency=adjacency, **guarantee)
    assert _purposes(release)[-2:] == ["pilot", "table"]
    assert "  - pilot: " in str(release.privacy)
    assert release.format_version == 2
    release.save(tmp_path / "r")
    loaded = dpkde.load(tmp_path / "r")
    assert loaded == release
    assert loaded.privacy == release.privacy
    assert loaded.law("pilot") == release.law("pilot")


def test_a_plan_tells_whether_there_would_be_one() -> None:
    settings: dict[str, Any] = {"kernel": KERNEL, "bounds": BOUNDS, "epsilon": 1}
    plan = dpkde.plan(**settings, expected_rows=100_000)
    assert plan.pilot in SHARES
    assert dpkde.plan(**settings, expected_rows=100_000, pilot=False).pilot is None
    assert dpkde.plan(**settings, expected_rows=500).pilot is None
    fixed = dpkde.plan(**settings, expected_rows=100_000, family=dpkde.Spline(3, 0.8))
    assert fixed.pilot is None
    promised = dpkde.plan(**settings, expected_rows=100_000, alpha=0.5, eta=0.1)
    assert promised.pilot is None


def test_the_pilot_finds_the_mesh_that_smooth_and_rough_data_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the same count a cloud gets a coarser mesh than values at a few places do.

    The count's noise is fixed; the pilot's is as drawn, and small against what it tells: a cell's
    spread is a fiftieth of the least mean of squares.
    """

    def quiet(law: Law, size: int) -> NDArray[np.int64]:
        return np.zeros(1, np.int64) if size == 1 else Randomness().noise(law, size)

    install(monkeypatch, quiet)
    generator = np.random.default_rng(5)
    cloud = generator.normal(size=(100_000, 3)) * 0.9
    places = generator.integers(-1, 2, size=(100_000, 3)) * 1.31
    gains = []
    for points in (cloud, places):
        plan = dpkde.publish(
            points, kernel=KERNEL, bounds=[(-3, 3)] * 3, epsilon=1, family="spline", seed=0
        ).plan
        gains.append(plan.layout.quality[0])  # type: ignore[attr-defined]
    assert gains[1] > 1.05 * gains[0]


def test_a_statement_with_a_pilot_that_does_not_add_up_is_refused() -> None:
    release = dpkde.publish(POINTS, kernel=KERNEL, bounds=BOUNDS, epsilon=1)
    entry = statement_to_json(release.privacy, 2)
    tables = {"table": release.plan.pair.bounds}
    assert statement_from_json(entry, 2, tables) == release.privacy
    count, pilot, table = entry["spends"]
    assert pilot["cells"] == 32
    assert "cells" not in count
    assert "cells" not in table
    without = {key: value for key, value in pilot.items() if key != "cells"}
    for damaged in (
        [count, without, table],
        [count, pilot | {"cells": 0}, table],
        [count, pilot | {"cells": "32"}, table],
        [count, pilot | {"cells": 1 << 40}, table],
        [count, pilot | {"epsilon": "1/100"}, table],
        [count, pilot | {"law": "exponential"}, table],
        [count | {"cells": 1}, pilot, table],
        [count, pilot, table | {"cells": release.table.size}],
        [count, pilot, pilot, table],
    ):
        with pytest.raises((dpkde.DpkdeError, KeyError, TypeError, ValueError)):
            statement_from_json(entry | {"spends": damaged}, 2, tables)


@pytest.mark.parametrize("given", ["epsilon", "rho"])
def test_long_budgets_are_written_and_read_with_their_looks(given: str) -> None:
    """What is paid for a look has few digits, however many the budget has."""
    points = np.random.default_rng(0).normal(size=(5000, 2))
    amount: dict[str, Any] = {given: 100 + Fraction(1, 10**120)}
    release = dpkde.publish(
        points, kernel=dpkde.Gaussian(0.3), bounds=[(-2, 2)] * 2, **amount, family="fourier"
    )
    looks = [s for s in release.privacy.spends if s.purpose in ("pilot", "mean")]
    assert looks
    assert dpkde.Release.from_bytes(release.to_bytes()) == release
