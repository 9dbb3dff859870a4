"""The (α, η) guarantee and intervals: formulas, releases counted, refusals, the grid, sampling.

A promise broken with probability η at most is broken in at most ηN + 6√(ηN) of N releases but once
in 10⁹. That the promise is not a large multiple of what is needed is tested beside it: a bound that
forgot a part would fail the first, one that counted it twice the second.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import dpkde
from contracts.rigged import constant, forbidden, install
from dpkde.curator import sketch as curator_sketch
from dpkde.kernels import KERNELS, Kernel
from dpkde.planning import promise as accuracy
from dpkde.planning import promised as assurance
from dpkde.planning.plan import make_frame
from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace, MaxNorm, draw, tails
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame

BOX: dict[str, Any] = {"kernel": dpkde.Gaussian(1.0), "bounds": [(-4, 4)] * 2, "epsilon": 1}
ROUGH = BOX | {"kernel": dpkde.Laplacian(1.0)}
RNG = np.random.default_rng(5)
HEAP = np.concatenate([np.full((700, 2), 0.37), RNG.normal(size=(100, 2))])
CLOUD = RNG.normal(size=(2000, 2))
QUERIES = np.array([[0.37, 0.37], [0.9, 0.1], [1.6, 1.1], [3.0, -3.0]])


def _frame(kernel: Kernel, bounds: Any = None, dim: int = 2) -> Frame:
    return make_frame(kernel, as_domain(bounds), dim)


# Tails


def test_deviation_of_known_laws() -> None:
    """A Gaussian's is √(2Lν); Bennett's approaches it where terms are small."""
    odds = math.log(2 / 0.01)
    assert tails.deviation([tails.gaussian(4.0)], odds) == pytest.approx(math.sqrt(8 * odds))
    small = tails.deviation([tails.bounded(4.0, 1e-4)], odds)
    assert small == pytest.approx(math.sqrt(8 * odds), rel=1e-3)
    assert tails.deviation([tails.bounded(0.0, 0.0)], odds) == 0.0


@pytest.mark.parametrize("eta", [0.1, 0.01])
@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(500)), DiscreteGaussian(Fraction(9))])
def test_bounds_hold_for_every_shape_of_weights(law: Any, eta: float) -> None:
    """And are not much larger than the quantile, for one weight and for many."""
    for weights in ([1.0], [1.0, 1.0, 0.1], [0.2] * 25, [1.0] + [0.05] * 50):
        g = np.array(weights)
        part = law.tail(float(np.linalg.norm(g)), float(g.max()), eta)
        bound = tails.deviation([part], math.log(2 / eta))
        sums = np.abs(draw(law, 20_000 * len(g)).reshape(-1, len(g)) @ g)
        broken = float((sums > bound).mean())
        assert broken <= eta + 6 * math.sqrt(eta / 20_000)
        assert bound < 2.3 * np.quantile(sums, 1 - eta)


def test_the_radius_of_max_norm_noise_is_bounded() -> None:
    law, eta = MaxNorm(Fraction(100), 40), 0.05
    part = law.tail(1.0, 1.0, eta)
    radius = math.sqrt(3 * 2 * part.cumulant(1.0))
    largest = np.array([np.abs(draw(law, 40)).max() for _ in range(4_000)])
    share = eta * law.set_aside
    assert float((largest > radius).mean()) <= share + 6 * math.sqrt(share / 4_000)
    assert radius < 2 * largest.mean()


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(5, 2)), DiscreteGaussian(Fraction(7))])
def test_the_counts_margin_by_summation(law: Any) -> None:
    z = np.arange(-400, 401)
    scale = float(law.scale)
    weight = np.exp(
        -(z**2) / (2 * scale) if isinstance(law, DiscreteGaussian) else -np.abs(z) / scale
    )
    for failure in (0.1, 0.01, 1e-4):
        margin = law.margin(failure)
        beyond = float(weight[np.abs(z) > margin].sum() / weight.sum())
        assert beyond <= failure


# How kernels change

SPACE = set(KERNELS) - {"product", "mixture", "jaccard", "geodesic"}


@pytest.mark.parametrize("name", sorted(SPACE))
def test_lipschitz_constants_are_not_exceeded(name: str) -> None:
    """By steps in random directions; and they are not idle: some step comes within a factor 3."""
    given: dict[str, dict[str, Any]] = {
        "exponential-lp": {"p": 1.5, "power": 1.0},
        "matern": {"nu": 1.5},
        "rational-quadratic": {"alpha": 0.7},
    }
    kernel: Any = KERNELS[name](**given.get(name, {}), bandwidth=1.0)
    generator = np.random.default_rng(2)
    for dim in (1, 3):
        steep = kernel.lipschitz(dim)
        assert kernel.fades
        start = np.concatenate([generator.normal(size=(2000, dim)) * 0.7, np.zeros((200, dim))])
        step = generator.normal(size=start.shape)
        step *= 1e-4 / np.linalg.norm(step, axis=1, keepdims=True)
        origin = np.zeros((1, dim))
        change = np.abs(kernel.evaluate(start + step, origin) - kernel.evaluate(start, origin))
        assert change.max() <= steep * 1e-4 * (1 + 1e-6)
        assert change.max() >= steep * 1e-4 / 3
        assert kernel.modulus(dim, 1e-4) <= steep * math.sqrt(dim) * 1e-4 * (1 + 1e-9)


def test_kernels_without_a_constant_say_so() -> None:
    assert dpkde.Matern(0.3).lipschitz(2) == math.inf
    assert dpkde.ExponentialLp(p=0.5, power=0.5, bandwidth=1.0).lipschitz(2) == math.inf
    assert 0 < dpkde.Matern(0.3).modulus(2, 1e-4) < 0.5
    pair = dpkde.Mixture([dpkde.Gaussian(1.0), dpkde.Laplacian(2.0)])
    assert pair.lipschitz(1) <= 1.0
    assert dpkde.Product([dpkde.Gaussian(1.0), dpkde.Hat(2.0)]).lipschitz(1) > 1.0


# Promises and intervals, counted

CASES: dict[str, tuple[dict[str, Any], NDArray[np.float64]]] = {
    "spline": (BOX | {"family": "spline"}, HEAP),
    "spline, replace": (BOX | {"family": "spline", "adjacency": "replace"}, HEAP),
    "fastgauss": (BOX | {"family": "fastgauss"}, HEAP),
    "fourier": (BOX | {"family": dpkde.Fourier(160)}, HEAP),
    "fourier, Gaussian": (BOX | {"family": dpkde.Fourier(160), "delta": "1e-6"}, HEAP),
    "fourier, phase": (BOX | {"family": dpkde.Fourier(160, form="phase")}, HEAP),
    "hashing": (ROUGH | {"family": dpkde.Hashing(160, 16)}, HEAP),
    "hashing, one bucket": (ROUGH | {"family": dpkde.Hashing(160, 1)}, HEAP),
    "hashing, unsigned": (ROUGH | {"family": dpkde.Hashing(160, 16, signed=False)}, HEAP),
    "directions": (
        {"kernel": dpkde.Geodesic(), "epsilon": 1, "family": dpkde.Hashing(160, 1)},
        HEAP + 1.0,
    ),
}
RELEASES, ETA = 1000, 0.1
MAIN = ("spline", "fastgauss", "fourier", "hashing")
"""Every family is released a thousand times; its variants, which share most of it, 300 times."""


def _releases(settings: dict[str, Any], points: Any, promised: bool, count: int) -> Any:
    """Yield fresh releases of one table: new noise, and new seeds where there are any."""
    wanted: dict[str, Any] = {"alpha": 0.9999, "eta": ETA} if promised else {}
    first = dpkde.publish(points, **settings, **wanted)
    plan = first.plan
    kept = {k: v for k, v in settings.items() if k in ("epsilon", "delta", "adjacency")}
    made = dpkde.sketch(points, plan)
    for seed in range(count):
        if plan.pair.draws:
            pair = plan.layout.draw(plan.bits, seed)
            fresh = dpkde.Plan(pair, plan.capacity_bits, seed)
            made = dpkde.sketch(points, fresh, threads=1)
        yield dpkde.publish(made, **kept, **wanted)


@pytest.mark.audit
@pytest.mark.usefixtures("unfitted")
@pytest.mark.parametrize("name", CASES)
def test_promises_are_kept_and_intervals_cover(name: str) -> None:
    settings, points = CASES[name]
    truth = dpkde.nonprivate.kde(points, QUERIES, settings["kernel"])
    errors, bounds, covered, widths = [], [], [], []
    count = RELEASES if name in MAIN else 300
    for release in _releases(settings, points, True, count):
        errors.append(np.abs(release.kde(QUERIES, clip=False) - truth))
        bounds.append(release.error_bound(ETA))
        low, high = release.interval(QUERIES, 1 - ETA, bias="worst")
        covered.append((low <= truth) & (truth <= high))
        widths.append((high - low) / 2)
    wrong = np.array(errors)
    slack = 6 * math.sqrt(ETA / count)
    assert (wrong > np.array(bounds)[:, np.newaxis]).mean(axis=0).max() <= ETA + slack
    assert np.mean(covered, axis=0).min() >= 1 - ETA - slack
    quantile = np.quantile(wrong, 1 - ETA, axis=0)
    # The quantile of 300 releases or more has a deviation of 3% to 5%: 2.8 is usual.
    assert np.mean(bounds) <= 3.4 * quantile.max()
    assert np.median(widths, axis=0).max() <= 2.5 * quantile.max()


@pytest.mark.audit
@pytest.mark.usefixtures("unfitted")
@pytest.mark.parametrize("name", MAIN)
def test_default_intervals_cover_ordinary_data(name: str) -> None:
    """Tables as by default, spread out records, twice the typical bias: 1,000 plain releases."""
    settings, _ = CASES[name]
    truth = dpkde.nonprivate.kde(CLOUD, QUERIES, settings["kernel"])
    inside = []
    for release in _releases(settings, CLOUD, False, RELEASES):
        low, high = release.interval(QUERIES, 0.9, assisted=False)
        inside.append((low <= truth) & (truth <= high))
    assert np.mean(inside, axis=0).min() >= 0.9 - 6 * math.sqrt(0.1 / RELEASES)


def test_a_wrong_scale_would_be_seen() -> None:
    """The test above has power: with noise four times as large as told, promises break."""
    law, eta = DiscreteLaplace(Fraction(2000)), 0.1
    part = law.tail(5.0, 1.0, eta)
    bound = tails.deviation([part], math.log(2 / eta))
    weights = np.ones(25)
    sums = np.abs(4 * draw(law, 25 * RELEASES).reshape(-1, 25) @ weights)
    assert (sums > bound).mean() > eta + 6 * math.sqrt(eta / RELEASES)


# Publishing with a promise


@pytest.mark.parametrize("family", ["auto", "spline", "fastgauss", "fourier"])
def test_a_release_keeps_what_it_was_published_for(family: str, tmp_path: Path) -> None:
    release = dpkde.publish(CLOUD, **(BOX | {"family": family}), alpha=0.2, eta=0.05)
    assert release.error_bound(0.05) <= 0.2
    assert release.error_bound(0.5) < release.error_bound(0.05) < release.error_bound(1e-6)
    assert release.promise == dpkde.Promise(0.2, 0.05)
    assert "exceeds 0.2 with probability at most 0.05" in str(release.promise)
    release.save(tmp_path / "a")
    back = dpkde.load(tmp_path / "a")
    assert back == release
    assert back.error_bound(0.05) == release.error_bound(0.05)
    assert back.promise == release.promise


def test_too_few_records_are_refused_with_what_would_do() -> None:
    given = BOX | {"family": "spline"}
    with pytest.raises(dpkde.AccuracyError, match="cannot be promised") as refusal:
        dpkde.publish(CLOUD, **given, alpha=0.002, eta=0.05)
    message = str(refusal.value)
    assert "was spent on the count" in message
    needed = float(message.split("n = ")[1].split(" ")[0].replace(",", ""))
    plan = dpkde.plan(**given, alpha=0.002, eta=0.05)
    assert plan.promised is not None
    assert needed == pytest.approx(1.05 * plan.promised.rows, rel=0.03)
    # And what is named does. Noise of the count moves it by under 1% but once in 10⁹ or so.
    more = np.tile(CLOUD, (math.ceil(needed / len(CLOUD)), 1))
    assert dpkde.publish(more, **given, alpha=0.002, eta=0.05).error_bound(0.05) <= 0.002
    epsilon = message.split("ε = ")[1].split(";")[0]
    stronger = given | {"epsilon": epsilon}
    assert dpkde.publish(CLOUD, **stronger, alpha=0.002, eta=0.05).error_bound(0.05) <= 0.002
    least = float(message.split("the least is about α = ")[1].split(",")[0])
    assert dpkde.publish(CLOUD, **given, alpha=least, eta=0.05).promise is not None


def test_the_named_epsilon_does_for_few_records() -> None:
    """Where the count's share matters: it is foreseen as it will be.

    Now and then a refusal knows a noisy count so large that its ε is too small: the middle one of
    seven is asked.
    """
    given = BOX | {"kernel": dpkde.Gaussian(0.7), "family": "spline"}
    few, named = CLOUD[:300], []
    for _ in range(7):
        with pytest.raises(dpkde.AccuracyError) as refusal:
            dpkde.publish(few, **given, alpha=0.05, eta=0.05)
        named.append(float(str(refusal.value).split("ε = ")[1].split(";")[0]))
    for _ in range(3):
        dpkde.publish(few, **(given | {"epsilon": sorted(named)[3]}), alpha=0.05, eta=0.05)


def test_what_no_number_of_records_can_keep_costs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, forbidden)
    given = BOX | {"family": dpkde.Spline(degree=1, spacing=1.0)}
    with pytest.raises(dpkde.AccuracyError, match="no number of records"):
        dpkde.publish(CLOUD, **given, alpha=0.01, eta=0.05)
    with pytest.raises(dpkde.AccuracyError, match="no number of records"):
        dpkde.plan(**given, alpha=0.01, eta=0.05)


def test_a_refusal_depends_on_the_noisy_count_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the count's noise fixed so that ñ is the same, so is the message."""
    messages = []
    for extra in (0, 7):
        install(monkeypatch, constant(-extra))
        points = np.concatenate([CLOUD, np.full((extra, 2), 3.0)])
        with pytest.raises(dpkde.AccuracyError) as refusal:
            dpkde.publish(points, **BOX, family="spline", alpha=0.002, eta=0.05)
        messages.append(str(refusal.value))
    assert messages[0] == messages[1]


def test_plans_and_sketches_are_held_to_a_promise(tmp_path: Path) -> None:
    plan = dpkde.plan(**BOX, family="spline", expected_rows=2000, alpha=0.03, eta=0.05)
    assert "for α = 0.03 at η = 0.05" in repr(plan)
    plan.save(tmp_path / "p")
    plan = dpkde.Plan.load(tmp_path / "p")
    made = dpkde.sketch(CLOUD, plan)
    for release in (
        dpkde.publish(made, epsilon=1),
        dpkde.publish(CLOUD, plan=plan, epsilon=1),
        dpkde.publish(made, epsilon=1, alpha=0.03, eta=0.05),
    ):
        assert release.promise == dpkde.Promise(0.03, 0.05)
        assert release.error_bound(0.05) <= 0.03
    with pytest.raises(dpkde.AccuracyError):
        dpkde.publish(dpkde.sketch(CLOUD[:100], plan), epsilon=1)
    with pytest.raises(dpkde.AccuracyError):
        dpkde.publish(made, epsilon=1, alpha=0.003, eta=0.05)
    with pytest.raises(dpkde.AccuracyError):
        dpkde.publish(CLOUD, plan=plan, epsilon=1, alpha=0.003, eta=0.05)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"alpha": 0.1}, "go together"),
        ({"eta": 0.1}, "go together"),
        ({"alpha": 2, "eta": 0.1}, "alpha must be"),
        ({"alpha": 0.1, "eta": 0}, "eta must be"),
        ({"alpha": "x", "eta": 0.1}, "alpha must be"),
        ({"simultaneous": True}, "goes with alpha"),
        ({"alpha": 0.1, "eta": 0.1, "simultaneous": 3}, "True or False"),
    ],
)
def test_wrong_promises(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(dpkde.ParameterError, match=told):
        dpkde.publish(CLOUD, **BOX, **wrong)
    with pytest.raises(dpkde.ParameterError, match=told):
        dpkde.plan(**BOX, expected_rows=1000, **wrong)


def test_wrong_levels() -> None:
    release = dpkde.publish(CLOUD, **BOX)
    for level in (0, 1, "a", math.nan):
        with pytest.raises(dpkde.ParameterError, match="level must be"):
            release.interval(QUERIES, level)  # type: ignore[arg-type]
    with pytest.raises(dpkde.ParameterError, match="bias must be"):
        release.interval(QUERIES, bias="none")
    with pytest.raises(dpkde.ParameterError, match="eta must be"):
        release.error_bound(0)
    low, high = release.interval([[math.nan, 0.0], [0.0, 0.0]])
    assert math.isnan(low[0])
    assert math.isnan(high[0])
    assert 0 <= low[1] < high[1] <= 1
    assert release.interval(np.empty((0, 2)))[0].shape == (0,)
    assert len(release.interval(QUERIES, Fraction(1, 2))[0]) == len(QUERIES)  # type: ignore[arg-type]


# All queries at once


def test_the_grid_moves_queries_by_half_a_pitch() -> None:
    for kernel in (dpkde.Gaussian([0.5, 2.0]), dpkde.Gaussian([[1.0, 0.3], [0.3, 0.5]])):
        frame = _frame(kernel, [(-4, 4), (0, 3)])
        queries = np.random.default_rng(0).uniform([-4, 0], [4, 3], (500, 2))
        moved = accuracy.to_grid(frame, queries, 0.1)
        apart = np.linalg.norm(kernel.bandwidth.whiten(moved - queries), axis=1)
        assert apart.max() <= 0.1 * math.sqrt(2) / 2 + 1e-12
        assert (moved >= [-4, 0]).all()
        assert (moved <= [4, 3]).all()
        places = len(np.unique(moved, axis=0))
        assert math.log(places) <= accuracy.log_grid_size(frame, 0.1)
        change = kernel.evaluate(queries, queries[:20]) - kernel.evaluate(queries, moved[:20])
        assert np.abs(change).max() <= accuracy.moving_cost(frame, 0.1)


def test_all_queries_at_once_are_within_the_bound(tmp_path: Path) -> None:
    """20 releases, 2,000 queries each, chosen where the answer is largest: none is off."""
    given = BOX | {"family": "spline"}
    asked = np.random.default_rng(3).uniform(-4, 4, (2000, 2))
    truth = dpkde.nonprivate.kde(CLOUD, asked, given["kernel"])
    worst = []
    for _ in range(20):
        release = dpkde.publish(CLOUD, **given, alpha=0.08, eta=0.05, simultaneous=True)
        assert release.promise is not None
        assert release.promise.pitch == pytest.approx(2 * 0.01 / (0.8578 * math.sqrt(2)), rel=1e-3)
        worst.append(np.abs(release.kde(asked) - truth).max())
    assert max(worst) <= release.error_bound(0.05) <= 0.08
    alone = dpkde.publish(CLOUD, **given, alpha=0.08, eta=0.05)
    assert alone.error_bound(0.05) < release.error_bound(0.05)
    release.save(tmp_path / "a")
    assert np.array_equal(dpkde.load(tmp_path / "a").kde(asked), release.kde(asked))
    near = release.kde([[0.0, 0.0], [1e-3, -1e-3], [0.5, 0.0]])  # the first two share a place
    assert near[0] == near[1] != near[2]


def test_where_all_queries_at_once_cannot_be_promised() -> None:
    given: dict[str, Any] = {"epsilon": 1, "alpha": 0.5, "eta": 0.1, "simultaneous": True}
    with pytest.raises(dpkde.ParameterError, match="needs bounds"):
        dpkde.publish(CLOUD, kernel=dpkde.Gaussian(1.0), **given)
    with pytest.raises(dpkde.ParameterError, match="Lipschitz"):
        dpkde.publish(CLOUD, kernel=dpkde.Matern(0.3), bounds=[(-4, 4)] * 2, **given)
    directions = dpkde.publish(CLOUD, kernel=dpkde.Geodesic(), **given)
    assert directions.error_bound(0.1) <= 0.5
    sets = dpkde.publish((CLOUD > 0).astype(float), kernel=dpkde.Jaccard(), **given)
    assert sets.error_bound(0.1) <= 0.5


# Sampling


def test_each_record_tosses_its_own_coin() -> None:
    kept = curator_sketch._tossed(200_000, Fraction(1, 4))
    assert abs(kept.mean() - 0.25) <= 6 * math.sqrt(0.25 * 0.75 / 200_000)
    assert not np.array_equal(kept, curator_sketch._tossed(200_000, Fraction(1, 4)))


def test_a_sample_is_taken_where_it_saves_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assurance, "PATIENCE", 0.02)
    points = np.tile(CLOUD, (30, 1))
    given = BOX | {"family": "fourier"}
    release = dpkde.publish(points, **given, alpha=0.1, eta=0.05)
    assert release.rate < 1
    assert release.error_bound(0.05) <= 0.1
    truth = dpkde.nonprivate.kde(points[:2000], QUERIES, given["kernel"])
    assert np.abs(release.kde(QUERIES) - truth).max() <= 0.1
    assert abs(release.count - len(points)) < 500
    assert (release.standard_error(QUERIES) > 0).all()
    low, high = release.interval(QUERIES, 0.999)
    assert ((low <= truth) & (truth <= high)).all()
    monkeypatch.setattr(assurance, "PATIENCE", 100.0)
    assert dpkde.publish(points, **given, alpha=0.1, eta=0.05).rate == 1


@pytest.mark.audit
def test_promises_hold_for_samples() -> None:
    """1,000 releases at rate ½ of 800 records, most of them at one point."""
    frame = _frame(dpkde.Gaussian(1.0), [(-4, 4)] * 2)
    family = dpkde.Spline(degree=4, spacing=0.4)
    plan = dpkde.plan(**BOX, family=family)
    truth = dpkde.nonprivate.kde(HEAP, QUERIES, BOX["kernel"])
    law = DiscreteLaplace(Fraction(1 << plan.bits))
    worst = family.layout(frame).worst(plan.bits)
    assert worst is not None
    setting = accuracy.Setting(len(HEAP), rate=0.5)
    bound = accuracy.error_bound(worst, law, setting, ETA, frame)
    source = dpkde.tables.open_points(HEAP)
    wrong = np.empty((RELEASES, len(QUERIES)))
    for i in range(RELEASES):
        made = curator_sketch.sketch_source(source, plan, 1, Fraction(1, 2))
        noisy = (made._table + draw(law, len(made._table))).astype(np.float64)
        answers = plan.pair.respond(QUERIES, noisy) / 0.5 / len(HEAP)
        wrong[i] = np.abs(answers - truth)
    assert (wrong > bound).mean(axis=0).max() <= ETA + 6 * math.sqrt(ETA / RELEASES)
    assert bound <= 3.4 * np.quantile(wrong, 1 - ETA, axis=0).max()


def test_the_swollen_sample() -> None:
    for mean in (3.0, 40.0, 5000.0):
        for failure in (0.1, 1e-3):
            most = accuracy._swollen(mean, failure) * mean
            assert stats.poisson.sf(most, mean) <= failure


# Where promises and intervals end


@pytest.mark.parametrize("family", ["fourier", "hashing"])
def test_without_bounds_nothing_is_promised(family: str) -> None:
    """Coordinates are clipped somewhere: whoever asks beyond that is told nothing."""
    kernel = dpkde.Laplacian(1.0)
    with pytest.raises(dpkde.ParameterError, match="give bounds"):
        dpkde.publish(CLOUD, kernel=kernel, epsilon=5, family=family, alpha=0.9, eta=0.1)
    release = dpkde.publish(CLOUD, kernel=kernel, epsilon=5, family=family)
    with pytest.raises(dpkde.ParameterError, match="give bounds"):
        release.error_bound(0.1)
    far = release.kde([[1e6, 0.0], [0.0, 0.0]])
    assert math.isnan(far[0])
    assert 0 <= far[1] <= 1


def test_steps_that_do_not_reach_the_bounds_promise_nothing() -> None:
    frame = _frame(dpkde.Gaussian(1.0), [(-5000, 5000)], 1)
    assert dpkde.Fourier(100, step_bits=20).layout(frame).worst(22) is None
    assert dpkde.Fourier(100).layout(frame).worst(22) is not None


def test_intervals_of_many_narrow_axes_take_no_more_than_the_table() -> None:
    points = np.random.default_rng(0).uniform(-1, 1, (500, 8))
    release = dpkde.publish(
        points, kernel=dpkde.Gaussian(1.0), bounds=[(-1, 1)] * 8, epsilon=1, family="spline"
    )
    assert release.plan.pair.weights(points[:1]).dense().values.shape[1] <= release.table.size
    low, high = release.interval(points[:3])
    assert (low < high).all()


@pytest.mark.parametrize("bounds", [dpkde.Ball((0, 0), 1.0), [(-1, 1)] * 2])
def test_queries_on_the_rim_stay_inside(bounds: Any) -> None:
    frame = _frame(dpkde.Erfc(1.0), bounds)
    angle = np.linspace(0, 6.3, 400)
    rim = np.column_stack([np.cos(angle), np.sin(angle)])
    moved = accuracy.to_grid(frame, rim, 0.07)
    assert np.abs(moved).max() <= 1.0
    accuracy.to_grid(frame, np.array([[1e300, -1e308]]), 1e-9)  # no warning


def test_the_modulus_of_a_mixture_turns_with_its_parts() -> None:
    u, v = np.array([1.0, 1.0]) / math.sqrt(2), np.array([1.0, -1.0]) / math.sqrt(2)
    long = 1e6 * np.outer(u, u) + np.outer(v, v)
    kernel = dpkde.Mixture([dpkde.ExponentialLp(p=2, power=0.5, bandwidth=long)])
    step = 2.0**-6
    across = np.array([[step / 2, -step / 2]])
    change = 1 - float(kernel.evaluate(across, np.zeros((1, 2)))[0, 0])
    assert change <= kernel.modulus(2, step)
