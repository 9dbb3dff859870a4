"""Choosing a family: the comparison, what δ does, and whether predictions come true."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from contracts.rigged import install
from dpkde.curator.sketch import sketch
from dpkde.families.base import Guess, Outlook, Prediction
from dpkde.families.spline.family import SplineLayout
from dpkde.kernels import Kernel
from dpkde.planning.choice import MODELS_COST, Choice, Typical
from dpkde.planning.outlook import density_range, evenly_spread, usual_density
from dpkde.privacy.budget import Budget, Guarantee

KERNEL = dpkde.Gaussian(0.5)
BOUNDS = [(-4.0, 4.0)] * 2


def _plan(**changes: Any) -> dpkde.Plan:
    arguments: dict[str, Any] = {
        "kernel": KERNEL,
        "bounds": BOUNDS,
        "epsilon": "1/2",
        "expected_rows": 20_000,
    }
    return dpkde.plan(**(arguments | changes))


def _error(plan: dpkde.Plan) -> float:
    assert plan.prediction is not None
    return plan.prediction.error


def _assisted(plan: dpkde.Plan) -> float:
    assert plan.prediction is not None
    return plan.prediction.assisted_error


def test_the_least_predicted_error_is_chosen() -> None:
    plan = _plan()
    assert [c.name for c in plan.considered] == ["spline", "fastgauss", "fourier", "hashing"]
    errors = [c.prediction.error for c in plan.considered if c.prediction]
    assert errors == sorted(errors)
    assert len(errors) == 3
    for candidate in plan.considered:
        if candidate.prediction is None:
            with pytest.raises(dpkde.ParameterError, match="takes one that can"):
                _plan(family=candidate.name)
            continue
        alone = _plan(family=candidate.name)
        # The count's share is set by the family that is chosen, so errors differ a little.
        assert _error(alone) == pytest.approx(candidate.prediction.error, rel=0.1)
        assert len(alone.considered) == 1


def test_what_cannot_serve_says_why() -> None:
    free = _plan(bounds=None, dim=2)
    assert free.family.name == "fourier"
    told = {c.name: c.obstacle for c in free.considered}
    assert "no bounds" in str(told["spline"])
    assert "no bounds" in str(told["fastgauss"])
    wide = _plan(kernel=dpkde.Gaussian(1.0), bounds=[(0, 30)] * 12)
    told = {c.name: c.obstacle for c in wide.considered}
    assert "unit cell of the domain" in str(told["fastgauss"])
    with pytest.raises(dpkde.ParameterError, match="no bounds"):
        _plan(bounds=None, dim=2, family="spline")
    with pytest.raises(dpkde.ParameterError, match=r"no family can be used here.*spline.*fourier"):
        _plan(kernel=dpkde.Gaussian(1e-12), bounds=BOUNDS)


@pytest.mark.parametrize(
    "bounds",
    [[(0.0, width)] for width in (1e-300, 1e-12, 1e-5, 9e-4, 0.3, 40.0, 1e6, 1e7)]
    + [
        [(0.0, 1e-5), (0.0, 5.0)],
        [(0.0, 1e-300)] * 3,
        [(0.0, 4.0)] * 784,
        [(0.0, 0.1)] * 4000,
        [(0.0, 0.1 + k / 50) for k in range(60)],
    ],
    ids=lambda bounds: f"{len(bounds)}x{bounds[-1][1]:g}",
)
def test_axes_of_every_width_and_number_are_planned(bounds: Any) -> None:
    plan = _plan(kernel=dpkde.Gaussian(1.0), bounds=bounds)
    assert plan.pair.bounds.cells <= 1 << 22
    made = dpkde.sketch(np.zeros((3, len(bounds))), plan)
    assert np.isfinite(dpkde.publish(made, epsilon=1).kde(np.zeros((1, len(bounds))))).all()


@pytest.mark.parametrize("family", ["auto", "spline", "fastgauss"])
def test_whether_planning_succeeds_does_not_depend_on_the_rows(family: str) -> None:
    """Else an error would tell of the noisy count, after it was paid for."""
    for epsilon, delta in (("1e-9", 0), ("1e-6", 0), ("1e-6", "1e-6"), ("1000000", 0)):
        for rows in (1, 10, 10**5, 10**9, 10**12, 10**18):
            plan = _plan(
                epsilon=epsilon,
                delta=delta,
                bounds=[(0, 300)] * 2,
                kernel=dpkde.Gaussian(1.0),
                expected_rows=rows,
                family=family,
            )
            assert plan.prediction is not None


@pytest.mark.parametrize("width", [1e9, 2.0**31, 1e12, 1e140])
def test_domains_beyond_every_family_are_refused_at_once(width: float) -> None:
    with pytest.raises(dpkde.ParameterError, match="no family can be used here"):
        _plan(kernel=dpkde.Gaussian(1.0), bounds=[(0.0, width)])


def test_a_typical_density_is_at_least_that_of_even_data() -> None:
    """On one axis of 16 bandwidths a KDE value of 0.05 is not typical: even data have 0.1."""
    even = np.linspace(-4, 4, 4001)[:, np.newaxis]
    level = float(dpkde.nonprivate.kde(even, even[::40], KERNEL).mean())
    assert evenly_spread(_plan(bounds=[(-4, 4)]).frame) == pytest.approx(level, rel=0.1)
    for guess in (None, 0.002):
        low, high = density_range(_plan(bounds=[(-4, 4)]).frame, guess)
        assert low == pytest.approx(0.0997, rel=0.01)
        assert low <= high
    assert evenly_spread(_plan(bounds=None, dim=2).frame) == 0


def test_without_a_guess_very_wide_bounds_lower_the_typical_density() -> None:
    """0.05, less where an eighth of each axis is wide against the bandwidth, never under 0.01."""
    levels = [
        usual_density(_plan(kernel=dpkde.Gaussian(1.0), bounds=[(0, width)] * 2).frame)
        for width in (10, 50, 100, 1000)
    ]
    assert levels[:2] == [0.05, 0.05]
    assert 0.015 < levels[2] < 0.025
    assert levels[3] == 0.01
    wide = _plan(kernel=dpkde.Gaussian(1.0), bounds=[(0, 100)] * 2).frame
    assert density_range(wide, None) == pytest.approx((levels[2] / 5, levels[2] * 5))
    assert density_range(wide, 0.1) == pytest.approx((0.1 / 1.5, 0.1 * 1.5))
    assert usual_density(_plan(bounds=None, dim=2).frame) == 0.05


def test_many_wide_axes_go_to_fourier() -> None:
    assert _plan(kernel=dpkde.Gaussian(3.0), bounds=[(-10, 10)] * 40).family.name == "fourier"


@pytest.mark.parametrize("bounds", [[(-4, 4)], BOUNDS, [(-1, 1)] * 5, [(-2, 2)] * 30])
@pytest.mark.parametrize(
    ("adjacency", "level"),
    [
        ("add-remove", 0.5),
        *(
            pytest.param(adjacency, level, marks=pytest.mark.audit)
            for adjacency, level in (("add-remove", None), ("replace", None), ("replace", 0.5))
        ),
    ],
)
def test_delta_never_raises_the_error(bounds: Any, adjacency: str, level: float | None) -> None:
    """A count that is worth much must not use up what Gaussian noise on the table needs."""
    laws = set()
    for epsilon, rows in itertools.product(("0.05", "1", "8"), (1000, 300_000)):
        settings: dict[str, Any] = {"bounds": bounds, "epsilon": epsilon, "expected_rows": rows}
        settings |= {"typical_density": level, "pilot": False}  # of which predictions know nothing
        pure = _plan(**settings, adjacency=adjacency)
        for delta in ("1e-9", "1e-6", "0.001", "0.1"):
            approximate = _plan(**settings, adjacency=adjacency, delta=delta)
            # Some of plain answers' error is given for more frequencies, which a model needs.
            assert _error(approximate) <= 1.001 * MODELS_COST * _error(pure)
            assert _assisted(approximate) <= 1.001 * _assisted(pure)
            assert approximate.prediction is not None
            laws.add(approximate.prediction.law)
    assert ("discrete-laplace" if len(bounds) <= 2 else "discrete-gaussian") in laws


def test_the_predicted_law_is_the_one_used() -> None:
    points = np.random.default_rng(0).normal(size=(20_000, 2))
    cases = itertools.product(("spline", "fourier"), ("0", "1e-3"), (None, 0.5))
    for family, delta, level in cases:
        release = dpkde.publish(
            points,
            kernel=KERNEL,
            bounds=BOUNDS,
            epsilon=1,
            delta=delta,
            family=family,
            typical_density=level,
        )
        law = release.law("table")
        assert law is not None
        assert release.plan.prediction is not None
        assert law.name == release.plan.prediction.law


def test_the_choice_depends_on_the_noisy_count_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tables whose noisy counts are alike lead to the same plan, whatever is in them."""
    generator = np.random.default_rng(1)
    smooth, heaped = generator.normal(size=(3000, 2)), np.full((3400, 2), 0.3)
    chosen = {}
    for name, points, noise in (
        ("smooth", smooth, 0),
        ("heaped", heaped, -400),
        ("more", heaped, 90_000),
    ):

        def fixed(law: Any, size: int, noise: int = noise) -> Any:
            return np.full(size, noise if size == 1 else 0)

        install(monkeypatch, fixed)
        settings: dict[str, Any] = {"kernel": KERNEL, "bounds": BOUNDS, "epsilon": 1, "seed": 1}
        plan = dpkde.publish(points, **settings, pilot=False).plan  # see test_pilot for the other
        chosen[name] = (plan, [(c.family, c.prediction, c.obstacle) for c in plan.considered])
    assert chosen["smooth"] == chosen["heaped"]
    assert chosen["more"] != chosen["heaped"]


def _clusters(dim: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    generator = np.random.default_rng(dim)
    centers, widths = generator.normal(size=(6, dim)) * 1.5, generator.uniform(0.2, 0.8, 6)
    label = generator.integers(0, 6, 30_000)
    return centers[label] + generator.normal(size=(30_000, dim)) * widths[label, np.newaxis]


@pytest.mark.audit
@pytest.mark.usefixtures("unfitted")
@pytest.mark.parametrize("family", ["spline", "fastgauss", "fourier"])
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("epsilon", ["0.05", "1"])
def test_predictions_come_true(family: str, dim: int, epsilon: str) -> None:
    """The mean error of plain answers at 300 points is within 1.5 of the predicted.

    Errors at these points move together, in one dimension by half of their mean from release to
    release. Over so many releases their mean varies by 2.3%, 2.8% and 2.9% for Fourier features in
    one, two and three dimensions, and less for the others; measured ratios are 0.78 to 1.18, six of
    these deviations from what is refused, or more. A prediction of half the error, or of less, is
    always refused. Where the fast Gauss transform is of low order its bias dominates, and that
    depends on the data more than a prediction can know: 2.5 is asked of it.
    """
    points = np.clip(_clusters(dim), -4, 4)
    queries, points = points[:300], points[300 : 6_000 if family == "fourier" else 30_000]
    truth = dpkde.nonprivate.kde(points, queries, KERNEL)
    told: dict[str, Any] = {"epsilon": epsilon, "adjacency": "replace"}
    terms: dict[str, Any] = {**told, "kernel": KERNEL, "bounds": [(-4, 4)] * dim}
    guesses: dict[str, Any] = {"expected_rows": len(points)}
    guesses["typical_density"] = float(truth.mean())
    plan = dpkde.plan(**terms, **guesses, family=family)
    sketch, errors = dpkde.sketch(points, plan), []
    for _ in range({1: 600, 2: 150, 3: 60}[dim]):
        if plan.family.is_random:  # the seed is part of the error
            sketch = dpkde.sketch(points, dpkde.plan(**terms, **guesses, family=plan.family))
        plain = dpkde.publish(sketch, **told).kde(queries, clip=False, assisted=False)
        errors.append(np.abs(plain - truth).mean())
    assert plan.prediction is not None
    ratio = plan.prediction.error / float(np.mean(errors))
    agreement = 2.5 if family == "fastgauss" else 1.5
    assert 1 / agreement < ratio < agreement


@pytest.mark.audit
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_towns_that_are_points_to_the_bandwidth_are_foreseen(seed: int) -> None:
    """Between nodes little averages out over them.

    When as much was planned for as averages out over smooth data, errors were two to three times
    what had been told (0.31 to 0.58 for 0.72 to 1.1 now). The mean of 12 releases varies by 4%, so
    that 0.72 falls below 0.57 once in 10⁶ times.
    """
    generator = np.random.default_rng(seed)
    centers, sizes = generator.uniform((0, 0), (30, 25), (400, 2)), 1 / np.arange(1.0, 401)
    label = generator.choice(400, 100_000, p=sizes / sizes.sum())
    points = centers[label] + generator.normal(size=(100_000, 2)) * 0.06
    queries, kernel = points[:200], dpkde.Gaussian(1.0)
    truth = dpkde.nonprivate.kde(points, queries, kernel)
    errors = []
    for _ in range(12):
        release = dpkde.publish(
            points,
            kernel=kernel,
            bounds=[(0, 30), (0, 25)],
            epsilon="0.02",
            adjacency="replace",
        )
        errors.append(np.abs(release.kde(queries, clip=False) - truth).mean())
    assert release.plan.prediction is not None
    assert 0.57 < release.plan.prediction.error / float(np.mean(errors)) < 1.5


def test_bounds_far_too_wide_do_not_let_the_mesh_be_coarse() -> None:
    """The data are the same: that most of a domain is empty says nothing of how smooth they are."""
    points = np.clip(_clusters(1), -4, 4)
    truth = dpkde.nonprivate.kde(points, points[:300], KERNEL)
    errors = []
    for bound in (4.0, 1e5):
        release = dpkde.publish(
            points,
            kernel=KERNEL,
            bounds=[(-bound, bound)],
            epsilon=8,
            adjacency="replace",
            family="spline",
        )
        errors.append(np.abs(release.kde(points[:300], clip=False) - truth).mean())
    assert errors[1] < 5 * errors[0]


@pytest.mark.parametrize(
    ("kernel", "dim", "bound"),
    [
        (dpkde.Gaussian(1.5), 10, 1.0),
        (dpkde.Gaussian(0.7), 8, 0.5),
        (dpkde.Gaussian(1.5), 20, 1.0),
        pytest.param(dpkde.Laplacian(100.0), 100, 1.0, marks=pytest.mark.audit),
        pytest.param(dpkde.Laplacian(4.7), 10, 1.0, marks=pytest.mark.audit),
        pytest.param(dpkde.Hat(200.0), 100, 1.0, marks=pytest.mark.audit),
    ],
)
def test_what_is_chosen_for_clusters_in_many_dimensions_is_as_good_as_told(
    kernel: Kernel, dim: int, bound: float
) -> None:
    """Records meet the query on all axes at once there, and what axes lack adds up.

    The mean error of three releases may be four times what was planned; before this was foreseen
    it was ten to a thousand times. Seeds are fixed, and the noise is half of what is planned: it
    would have to be seven of its standard deviations in all of them.
    """
    generator = np.random.default_rng(dim)
    centers = generator.uniform(-0.7 * bound, 0.7 * bound, (8, dim))
    spread = generator.normal(0, 0.12 * bound, (10_000, dim))
    points = np.clip(centers[generator.integers(0, 8, 10_000)] + spread, -bound, bound)
    exact = dpkde.nonprivate.kde(points, points[:100], kernel)
    errors = []
    for seed in range(3):
        release = dpkde.publish(
            points,
            kernel=kernel,
            bounds=[(-bound, bound)] * dim,
            epsilon=2,
            typical_density=float(exact.mean()),
            seed=seed,
        )
        errors.append(float(np.abs(release.kde(points[:100]) - exact).mean()))
    assert release.plan.prediction is not None
    assert np.mean(errors) < 4 * release.plan.prediction.error


def test_many_axes_of_one_bandwidth_are_not_taken_for_flat() -> None:
    """18 axes a bandwidth wide, records near the middle of all: curvatures multiply there.

    A sum of them gave answers a third too low, at a predicted error twenty times too small. The
    mean of three releases may be twice what is planned; noise is less than half of that.
    """
    generator = np.random.default_rng(11)
    widths = np.where(np.arange(20) < 2, 1.0, 0.15)
    centers = generator.normal(size=(12, 20)) * np.where(np.arange(20) < 2, 0.7, 0.1)
    points = (
        centers[generator.integers(0, 12, 20_000)] + generator.normal(size=(20_000, 20)) * widths
    )
    bounds = [(-4.0, 4.0)] * 2 + [(-0.75, 0.75)] * 18
    points = np.clip(points, *np.array(bounds).T)
    kernel = dpkde.Gaussian(1.5)
    exact = dpkde.nonprivate.kde(points, points[:100], kernel)
    errors = []
    for seed in range(3):
        release = dpkde.publish(points, kernel=kernel, bounds=bounds, epsilon=1, seed=seed)
        errors.append(float(np.abs(release.kde(points[:100]) - exact).mean()))
    assert release.plan.prediction is not None
    assert np.mean(errors) < 2 * release.plan.prediction.error
    assert np.mean(errors) < 0.1 * exact.mean()


def test_a_bias_of_most_of_the_density_is_not_taken_for_a_small_error() -> None:
    """Its range is a guess, and biases grow with the true one.

    At four times the guess, splines that miss two thirds of whatever is there were four times as
    far off as told, and Fourier features were not.
    """
    plan = _plan(
        kernel=dpkde.Gaussian(1.5),
        bounds=[(-4.0, 4.0)] * 2 + [(-0.75, 0.75)] * 18,
        epsilon="0.05",
        expected_rows=2000,
    )
    found = {c.name: c.prediction for c in plan.considered}
    assert plan.family.name == "fourier"
    assert found["spline"] is not None
    assert found["fourier"] is not None
    assert found["spline"].error < 1.05 * found["fourier"].error
    assert found["spline"].approximation > 0.5 * 0.05


@dataclass(frozen=True, eq=False)
class _Foretold:
    """Stands for a layout whose errors are known."""

    family: dpkde.Family
    plain: float
    assisted: float | None
    seconds: float = 1.0

    def predict(self, outlook: Outlook) -> Prediction:
        approximation = self.plain * outlook.typical_density
        assisted = self.assisted and self.assisted * outlook.typical_density
        return Prediction(0.0, approximation, 0.0, 1, self.seconds, "none", assisted)


def _rank(*layouts: Any, densities: tuple[float, ...] = (0.5,)) -> Any:
    budget = Budget(Guarantee.declare(epsilon=1))
    guesses = tuple(Guess(density) for density in densities)
    view = Outlook(1e5, 0.5, budget.guarantee.adjacency, budget.options, range=guesses)
    ranked = Typical().rank(Choice(layouts, (), Typical()), view)
    return ranked[0].layout, ranked[0].prediction


def test_within_a_family_assisted_answers_count_as_much_as_plain_ones() -> None:
    """By √(plain·assisted), among those of at most 1.2 of the least plain error."""
    family = dpkde.Fourier()
    plain, both, model = (
        _Foretold(family, error, assisted)
        for error, assisted in ((1.0, 0.9), (1.15, 0.2), (1.3, 0.01))
    )
    assert _rank(plain, both, model)[0] is both
    bare = [_Foretold(family, error, None) for error in (1.0, 1.15, 1.3)]
    assert _rank(*bare)[0] is bare[0]
    quick = _Foretold(family, 1.01, None, seconds=0.5)
    assert _rank(*bare, quick)[0] is quick


def test_across_families_plain_errors_decide() -> None:
    helped = _Foretold(dpkde.Fourier(), 1.2, 0.1)
    other = _Foretold(dpkde.Hashing(), 1.0, None)
    assert _rank(helped, other)[0] is other


def test_the_mean_error_over_the_range_is_what_counts_and_what_is_told() -> None:
    """At the lowest density the coarse mesh is better, over the range the fine one."""
    frame = _plan(bounds=[(-1, 1)] * 6, kernel=dpkde.Gaussian(0.5)).frame
    coarse, fine = (
        dpkde.Spline(degree=degree, spacing=spacing).layout(frame)
        for degree, spacing in ((1, 1.3), (3, 0.7))
    )
    chosen, told = _rank(coarse, fine, densities=(1e-6,))
    assert chosen is coarse
    chosen, told = _rank(coarse, fine, densities=(1e-6, 0.03, 0.3))
    assert chosen is fine
    budget = Budget(Guarantee.declare(epsilon=1))
    single = [
        fine.predict(Outlook(1e5, p, budget.guarantee.adjacency, budget.options)).error
        for p in (1e-6, 0.03, 0.3)
    ]
    assert told.error == pytest.approx(np.mean(single), rel=1e-9)
    assert (
        told.noise
        == fine.predict(Outlook(1e5, 0.03, budget.guarantee.adjacency, budget.options)).noise
    )


def test_smoother_data_need_no_finer_mesh() -> None:
    """The bias to expect falls with smoothness, the faster the finer the mesh; ridges' stays."""
    frame = _plan(bounds=[(-4, 4)] * 3).frame
    for spacing, least in ((1.0, 4.0), (0.6, 9.0)):
        losses = dpkde.Spline(degree=3, spacing=spacing).layout(frame).quality[1]
        assert losses.error(0.1) > 1.5 * losses.error(1.0) > 0
        uneven = replace(losses, lines=0 * losses.lines)  # values that are not rounded
        assert uneven.error(0.1) > least * uneven.error(1.0) > 0
    ridged = dpkde.Spline(degree=3, spacing=1.0, ridge=0.1).layout(frame).quality[1]
    assert ridged.error(3.0) >= ridged.rest**0.5 > 0


def test_lattices_are_feared_where_the_data_are_rough_alone() -> None:
    """Lines 0.8 bandwidths long, whose fit is worst for values rounded to the bandwidth.

    A cloud sees a sixtieth of what rounded values do. Ten times that is foreseen; counting lattices
    by 0.15 at least made it thirty times, so that such meshes were passed by.
    """
    plan = _plan(
        kernel=dpkde.Gaussian(1.0),
        bounds=[(-6, 6)] * 2,
        family=dpkde.Spline(degree=1, spacing=0.8),
    )
    assert isinstance(plan.layout, SplineLayout)
    foreseen = plan.layout.quality[1]
    generator = np.random.default_rng(0)

    def missed(points: NDArray[np.float64]) -> float:
        queries = points[:300]
        truth = dpkde.nonprivate.kde(points, queries, plan.kernel)
        answers = plan.pair.respond(queries, sketch(points, plan)._table.astype(np.float64))
        return float(np.sqrt(((answers / len(points) - truth) ** 2).mean()) / truth.mean())

    rounded = missed(np.rint(generator.normal(size=(20_000, 2)) * 1.5))
    assert 0.5 * rounded < foreseen.error(0.2) < foreseen.error(0.0) < 2 * rounded
    cloud = missed(generator.normal(size=(20_000, 2)) * 1.5)
    assert cloud < foreseen.error(1.0) < 15 * cloud


def test_a_column_of_few_bandwidths_is_not_taken_for_smooth() -> None:
    narrow, wide = (
        dpkde.Spline(degree=2, spacing=0.8).layout(_plan(bounds=[(-half, half)] * 3).frame)
        for half in (0.5, 4.0)
    )
    assert narrow.quality[1].error(1.0) > 1.5 * wide.quality[1].error(1.0)
    assert narrow.quality[1].error(0.1) == pytest.approx(wide.quality[1].error(0.1), rel=0.3)


def test_the_table_of_a_real_survey_is_planned_fine_enough() -> None:
    """45,000 rows, six columns of four bandwidths, typical values near 0.13, ε = 0.5.

    A degree of 2 and a spacing of 1 were planned where 0.05 was assumed, and missed a tenth.
    """
    plan = _plan(
        kernel=dpkde.Gaussian(1.0), bounds=[(0, 4)] * 6, epsilon="0.5", expected_rows=45_000
    )
    assert isinstance(plan.layout, SplineLayout)
    assert 0.13 * plan.layout.quality[1].error(0.5) < 1.5 * _error(plan)


def test_rows_of_a_unit_are_foreseen_as_a_smaller_bound() -> None:
    """Noise for c rows together at ε is that for one at ε/c, for whatever is planned before it."""
    terms: dict[str, Any] = {
        "kernel": dpkde.Gaussian(0.5),
        "bounds": [(-4, 4)] * 2,
        "expected_rows": 60_000,
    }
    for records in (1, 3, 10):
        together = dpkde.plan(**terms, epsilon=1, unit="who", rows_per_unit=records)
        alone = dpkde.plan(**terms, epsilon=Fraction(1, records))
        assert together.layout.family == alone.layout.family
        assert together.prediction is not None
        assert alone.prediction is not None
        assert together.prediction.noise == pytest.approx(alone.prediction.noise)
        assert together.prediction.error == pytest.approx(alone.prediction.error)


def test_some_families_to_choose_among() -> None:
    """By name or instance; those that cannot serve are left out, as where all are asked."""
    from dpkde.planning.plan import as_families

    some = as_families(["spline", dpkde.Fourier(16)])
    assert [family.name for family in some] == ["spline", "fourier"]
    asked: dict[str, Any] = {"kernel": dpkde.Gaussian(1.0), "epsilon": 1, "expected_rows": 10**6}
    assert (
        dpkde.plan(bounds=[(-3, 3)], family=("spline", "fourier"), **asked).family.name == "spline"
    )
    assert dpkde.plan(dim=2, family=("spline", "fourier"), **asked).family.name == "fourier"
    wrong: list[Any] = [[], ["magic"], [["spline"], 3], 3, None]
    for names in wrong:
        with pytest.raises(dpkde.ParameterError, match="family must be"):
            as_families(names)
