"""Views with other kernels: the same table, its own errors, and the best bandwidth among them."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde.errors import ParameterError, SchemaError
from dpkde.kernels import Kernel
from dpkde.release import bandwidths

GENERATOR = np.random.default_rng(3)
POINTS = np.concatenate(
    [
        GENERATOR.normal((0.3, 0.3), (0.05, 0.08), (2500, 2)),
        GENERATOR.normal((0.65, 0.6), (0.1, 0.06), (3500, 2)),
    ]
).clip(0, 1)
BOUNDS = [(0.0, 1.0)] * 2
QUERIES = GENERATOR.uniform(0.1, 0.9, (30, 2))
EXACT = 10**6
"""An ε at which noise does not count."""


def _release(kernel: Kernel, points: Any = POINTS, bounds: Any = BOUNDS, **more: Any) -> Any:
    settings = {"epsilon": EXACT, "family": dpkde.Spline(3, 0.5), "seed": 4, **more}
    return dpkde.publish(points, kernel=kernel, bounds=bounds, **settings)


@pytest.mark.parametrize(
    "family",
    [
        dpkde.Spline(3, 0.5),
        dpkde.Fourier(24),
        dpkde.Fourier(16, form="phase"),
        dpkde.FastGauss(4),
        dpkde.Hashing(8, 16),
    ],
    ids=lambda family: f"{family.name} {getattr(family, 'form', '')}",
)
def test_the_same_kernel_gives_the_same_answers(family: Any) -> None:
    kernel = dpkde.Laplacian(0.1) if family.name == "hashing" else dpkde.Gaussian(0.1)
    release = _release(kernel, family=family, epsilon=1)
    view = release.with_kernel(kernel)
    for name in ("kde", "kernel_sum", "standard_error", "sampling_error"):
        np.testing.assert_array_equal(getattr(view, name)(QUERIES), getattr(release, name)(QUERIES))
    np.testing.assert_array_equal(view.interval(QUERIES), release.interval(QUERIES))
    if family.name in ("spline", "fourier"):
        spelled = release.with_kernel(dpkde.Gaussian([0.1, 0.1]))
        expected = release.kde(QUERIES, assisted=False, clip=False)
        answers = spelled.kde(QUERIES, assisted=False, clip=False)
        np.testing.assert_allclose(answers, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "kernel",
    [
        dpkde.Gaussian(0.04),
        dpkde.Gaussian(0.1),
        dpkde.Gaussian(0.8),
        dpkde.Gaussian([0.05, 0.3]),
        dpkde.Laplacian(0.1),
        dpkde.Cauchy(0.1),
        dpkde.Hat(0.2),
        dpkde.ExponentialLp(1.5, 1.5, 0.1),
        dpkde.kernels.Product([dpkde.Gaussian(0.1), dpkde.Hat(0.3)]),
    ],
    ids=repr,
)
def test_a_view_answers_as_its_kernel_does(kernel: Kernel) -> None:
    """Without noise, what it is off by is the bias that it declares."""
    view = _release(dpkde.Gaussian(0.05)).with_kernel(kernel)
    truth = dpkde.nonprivate.kde(POINTS, QUERIES, kernel)
    declared = view.sampling_error(QUERIES)
    assert np.abs(view.kde(QUERIES) - truth).max() < 3 * declared.max() + 1e-6
    assert declared.mean() < 0.1 * truth.mean()
    low, high = view.interval(QUERIES, bias="worst")
    assert ((low <= truth) & (truth <= high)).all()
    assert view.kernel == kernel
    assert view.promise is None


NARROW = np.column_stack([POINTS, GENERATOR.uniform(0.4, 0.5, 6000), GENERATOR.beta(1, 3, 6000)])
NARROW_BOUNDS = [(0, 1), (0, 1), (0.4, 0.5), (0, 1)]


@pytest.mark.parametrize(
    "family",
    [
        dpkde.Spline((3, 2, 0, 1), (0.4, 0.5, 1.0, 3.0)),
        dpkde.Spline((3, 2, 1, 1), (0.4, 0.5, 1.0, 3.0), arch=9000),
    ],
    ids=["constant and line", "arch"],
)
def test_narrow_axes_serve_wider_kernels_better(family: Any) -> None:
    kernel = dpkde.Gaussian([0.2, 0.2, 1.0, 1.0])
    release = _release(kernel, NARROW, NARROW_BOUNDS, family=family)
    queries = NARROW[:40]
    errors = []
    for factor in (1.0, 2.0, 4.0):
        view = release.with_kernel(kernel.scaled(factor))
        truth = dpkde.nonprivate.kde(NARROW, queries, view.kernel)
        errors.append(float((np.abs(view.kde(queries) - truth) / truth).max()))
        assert errors[-1] < 3 * float((view.sampling_error(queries) / truth).max()) + 1e-6
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    with pytest.raises(ParameterError, match="at least"):
        release.with_kernel(kernel.scaled(0.2))


def test_an_arch_is_for_one_ratio_of_its_axes() -> None:
    family = dpkde.Spline((3, 2, 1, 1), (0.4, 0.5, 1.0, 3.0), arch=9000)
    release = _release(dpkde.Gaussian([0.2, 0.2, 1.0, 1.0]), NARROW, NARROW_BOUNDS, family=family)
    release.with_kernel(dpkde.Gaussian([0.3, 0.2, 2.0, 2.0]))
    with pytest.raises(ParameterError, match="columns 2, 3 of this table share one cell"):
        release.with_kernel(dpkde.Gaussian([0.2, 0.2, 2.0, 3.0]))


@pytest.mark.parametrize("factor", [0.7, 1.0 + 1e-12, 1 / 3, 3.0, 7.1, 64.0])
def test_the_cells_are_those_of_the_release(factor: float) -> None:
    """A view has the f of its release: counting intervals anew would round some to one more."""
    family = dpkde.Spline((3, 2, 1, 1), (0.1, 0.3, 1.0, 1 / 3), arch=2000)
    kernel = dpkde.Gaussian([1 / 3, 0.7, 1.0, 1 / 9])
    plan = dpkde.plan(kernel=kernel, bounds=NARROW_BOUNDS, epsilon=1, family=family)
    frame = type(plan.frame).of(kernel.scaled(factor), plan.domain, 4)
    view = plan.pair.reread(frame)
    assert view.bounds == plan.pair.bounds
    rows = NARROW[:50]
    before = plan.pair.quantize(*plan.frame.place_plainly(rows))
    after = view.quantize(*frame.place_plainly(rows))
    assert np.abs(before - after).max() <= 4  # units of 2^−bits


def test_what_is_too_narrow_is_refused_with_what_is_not() -> None:
    release = _release(dpkde.Gaussian(0.05), epsilon=1)
    for kernel in (dpkde.Gaussian(0.001), dpkde.Laplacian(0.001), dpkde.Gaussian([1e-3, 2e-3])):
        with pytest.raises(ParameterError, match="at least") as refusal:
            release.with_kernel(kernel)
        told = str(refusal.value).split("at least ")[1].removesuffix(" here")
        times, given, numbers = told.partition(" times as wide, ")
        if given:  # the ratio of columns is kept, and less may do in some
            told = numbers
            assert float(times) == pytest.approx(float(told[1:].split(",")[0]) / 1e-3, rel=0.02)
        least = np.array([float(part) for part in told.strip("[]").split(",")])
        bandwidth = least if len(least) > 1 else float(least[0])
        view = release.with_kernel(type(kernel)(bandwidth))
        assert view.plan.layout.usual_error < 0.1
        with pytest.raises(ParameterError, match="at least"):
            release.with_kernel(type(kernel)(bandwidth).scaled(0.95))
    with pytest.raises(ParameterError, match="at most"):
        release.with_kernel(dpkde.Gaussian(1e6))


def test_other_things_are_refused_in_words() -> None:
    release = _release(dpkde.Gaussian(0.05), epsilon=1)
    for kernel, message in (
        (dpkde.Matern(1.5, 0.1), "not a product over axes"),
        (dpkde.Geodesic(), "lives on the sphere"),
        (dpkde.Jaccard(), "lives on sets"),
        (dpkde.Gaussian([[2.0, 1.0], [1.0, 2.0]]), "multiple of that matrix"),
        (0.1, "kernel must be a dpkde.Kernel"),
        (None, "kernel must be a dpkde.Kernel"),
    ):
        with pytest.raises(ParameterError, match=message):
            release.with_kernel(kernel)
    with pytest.raises(SchemaError, match="columns does not agree"):
        release.with_kernel(dpkde.Gaussian([1.0, 2.0, 3.0]))
    for family, published in (
        (dpkde.Hashing(8, 16), dpkde.Laplacian(0.1)),
        (dpkde.FastGauss(4), dpkde.Gaussian(0.1)),
    ):
        tied = _release(published, family=family, epsilon=1)
        with pytest.raises(ParameterError, match="family='spline'"):
            tied.with_kernel(dpkde.Gaussian(0.2))
        with pytest.raises(ParameterError, match="family='spline'"):
            tied.bandwidths()


def test_matrix_bandwidths_may_be_multiplied() -> None:
    kernel = dpkde.Gaussian([[0.1, 0.03], [0.03, 0.08]])
    release = _release(kernel)
    view = release.with_kernel(kernel.scaled(2))
    truth = dpkde.nonprivate.kde(POINTS, QUERIES, kernel.scaled(2))
    assert np.abs(view.kde(QUERIES) - truth).max() < 1e-3
    assert release.bandwidths().shape[1:] == (2, 2)


def test_listed_bandwidths_can_be_used() -> None:
    release = _release(dpkde.Gaussian(0.05), epsilon=1)
    listed = release.bandwidths()
    assert listed.ndim == 1
    assert 9 <= len(listed) <= 17
    assert 0.05 in listed
    assert (np.diff(np.log(listed)) > 0.1).all()
    assert listed[-1] == pytest.approx(1.0, rel=0.01)
    truths = [
        dpkde.nonprivate.kde(POINTS, QUERIES[:4], dpkde.Gaussian(value))
        for value in listed.tolist()
    ]
    for value, truth in zip(listed.tolist(), truths, strict=True):
        low, high = release.with_kernel(dpkde.Gaussian(value)).interval(QUERIES[:4], 1 - 1e-7)
        assert ((low <= truth) & (truth <= high)).all()
    with pytest.raises(ParameterError, match="at least"):
        release.with_kernel(dpkde.Gaussian(0.95 * listed[0]))
    per_axis = _release(dpkde.Gaussian([0.05, 0.1]), epsilon=1).bandwidths()
    assert per_axis.shape[1:] == (2,)
    np.testing.assert_allclose(per_axis[:, 1] / per_axis[:, 0], 2.0)


def test_views_are_views(tmp_path: Path) -> None:
    release = _release(dpkde.Gaussian(0.05), epsilon=1)
    release.save(tmp_path / "release.dpkde")
    loaded = dpkde.load(tmp_path / "release.dpkde")
    wide = dpkde.Gaussian(0.1)
    np.testing.assert_array_equal(
        release.with_kernel(wide).kde(QUERIES), loaded.with_kernel(wide).kde(QUERIES)
    )
    again = release.with_kernel(dpkde.Gaussian(0.3)).with_kernel(wide)
    assert again.release is release
    np.testing.assert_array_equal(again.kde(QUERIES), release.with_kernel(wide).kde(QUERIES))
    np.testing.assert_array_equal(again.bandwidths(), release.bandwidths())
    assert again.best_bandwidth() == release.best_bandwidth()
    assert again.privacy == release.privacy
    with pytest.raises(ParameterError, match="cannot be saved"):
        again.save(tmp_path / "view.dpkde")
    assert np.isnan(again.kde([[math.nan, 0.5]])).all()
    assert again.kde(np.empty((0, 2))).shape == (0,)
    assert "σ=0.1" in repr(again)
    copied = pickle.loads(pickle.dumps(again))
    np.testing.assert_array_equal(copied.kde(QUERIES), again.kde(QUERIES))


@pytest.mark.parametrize(
    "more",
    [
        {"epsilon": 1, "delta": 1e-6},
        {"epsilon": 1, "adjacency": "replace"},
        {"epsilon": "1/1000"},
        {"rho": 1, "epsilon": None},
        {"epsilon": 10, "alpha": 0.05, "eta": 0.05},
    ],
    ids=str,
)
def test_every_guarantee_has_views(more: dict[str, Any]) -> None:
    release = _release(dpkde.Gaussian(0.1), **more)
    view = release.with_kernel(dpkde.Gaussian(0.2))
    truth = dpkde.nonprivate.kde(POINTS, QUERIES, dpkde.Gaussian(0.2))
    low, high = view.interval(QUERIES, 1 - 1e-7)
    if release.count > 100:  # else the count's noise is not small, as its intervals suppose
        assert ((low <= truth) & (truth <= high)).all()
    assert view.promise is None
    assert view.error_bound(0.05) > 0
    assert 0 < release.best_bandwidth() < 10


@pytest.mark.audit
def test_the_errors_of_a_view_are_its_own() -> None:
    """300 releases tell the spread at 30 queries to some 3%, 60 tell coverage to 2%.

    Six times that is asked. A standard error of the published kernel is half of it, or less, and
    would be seen; an interval of that length would cover 0.7.
    """
    kernel = dpkde.Gaussian(0.05)
    plan = dpkde.plan(kernel=kernel, bounds=BOUNDS, epsilon=1, expected_rows=6000, family="spline")
    sketch = dpkde.sketch(POINTS, plan)
    for other in (dpkde.Gaussian(0.1), dpkde.Laplacian(0.1)):
        truth = dpkde.nonprivate.kde(POINTS, QUERIES, other)
        sums, held = [], []
        for i in range(300):
            view = dpkde.publish(sketch, epsilon=1).with_kernel(other)
            sums.append(view.kernel_sum(QUERIES))
            if i % 5 == 0:
                low, high = view.interval(QUERIES)
                held.append((low <= truth) & (truth <= high))
        spread = np.std(sums, axis=0) / view.kernel_sum_standard_error(QUERIES)
        assert np.sqrt((spread**2).mean()) == pytest.approx(1.0, abs=0.2)
        assert np.mean(held) > 0.83


def _claws(rows: int, seed: int) -> tuple[Any, Any]:
    """Return points of five narrow groups, and the density that they come from."""
    generator = np.random.default_rng(seed)
    places = np.array([[0.2 + 0.15 * i, 0.3 + 0.1 * i] for i in range(5)])
    sizes = np.array([0.03, 0.04])
    points = places[generator.integers(5, size=rows)] + generator.normal(size=(rows, 2)) * sizes

    def density(queries: Any) -> Any:
        offsets = (queries[:, np.newaxis] - places) / sizes
        return np.exp(-(offsets**2).sum(axis=2) / 2).mean(axis=1) / (2 * np.pi * sizes.prod())

    return points, density


def _integrated_error(view: Any, density: Any) -> float:
    side = (np.arange(90) + 0.5) / 90 * 1.6 - 0.3
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    found = view.kde(grid, clip=False) / view.kernel.integral(2)
    return float(((found - density(grid)) ** 2).sum()) * (1.6 / 90) ** 2


def test_the_best_bandwidth_is_near_the_best() -> None:
    """At 20,000 records the choice has 0.93 to 1.06 of the least risk in the list; 1.3 is asked.

    An estimate that pairs records with themselves, or leaves noise among pairs, takes the narrowest
    at ε = 1. One of a density without its noise has 30 times the least risk at ε = 1/20.
    """
    points, density = _claws(20_000, 1)
    for kernel, epsilon in (
        (dpkde.Gaussian(0.02), 1),
        (dpkde.Gaussian(0.02), "1/20"),
        (dpkde.Laplacian(0.03), 1),
    ):
        release = _release(kernel, points, epsilon=epsilon)
        factors = bandwidths.multiples(release)
        views = [release.with_kernel(kernel.scaled(factor)) for factor in factors.tolist()]
        least = min(_integrated_error(view, density) for view in views)
        chosen = release.with_kernel(type(kernel)(release.best_bandwidth()))
        assert _integrated_error(chosen, density) < 1.3 * least


def test_the_risk_is_the_integrated_error_but_for_a_constant() -> None:
    """∫(f̂ − f)² − ∫f², where f is the density of the sample's own distribution."""
    points, density = _claws(200_000, 2)
    release = _release(dpkde.Gaussian(0.03), points, epsilon=1)
    square, risk = _integrated_error(_Nothing(), density), bandwidths.risks(release)
    for factor in (0.7, 1.0, 2.0, 5.0):
        view = release.with_kernel(dpkde.Gaussian(0.03 * factor))
        error = _integrated_error(view, density)
        assert risk(factor) + square == pytest.approx(error, abs=0.02 * square)


class _Nothing:
    """A density of zero."""

    kernel = dpkde.Gaussian(1.0)

    def kde(self, queries: Any, *, clip: bool) -> Any:
        return np.zeros(len(queries))


def test_noise_is_taken_out_of_pairs() -> None:
    """400 releases at ε = 0.02: their mean is within 6 standard errors of the exact sum.

    Without the trace it would be some 50 off: v is 5,000, on 400 cells.
    """
    plan = dpkde.plan(
        kernel=dpkde.Gaussian(0.1), bounds=BOUNDS, epsilon="1/50", family=dpkde.Spline(3, 0.6)
    )
    sketch = dpkde.sketch(POINTS[:500], plan)
    exact = plan.pair.energies(dpkde.publish(sketch, epsilon=EXACT).table.astype(np.float64))(
        plan.frame
    )
    pairs, answers = [], []
    for _ in range(400):
        release = dpkde.publish(sketch, epsilon="1/50")
        law = release.law("table")
        assert law is not None
        noise = law.variance / 4.0**plan.bits
        energy = plan.pair.energies(release.table.astype(np.float64))(plan.frame)
        pairs.append(energy.pairs - noise * energy.pairs_trace)
        answers.append(energy.answers - noise * energy.answers_trace)
    for found, expected in ((pairs, exact.pairs), (answers, exact.answers)):
        error = np.std(found) / math.sqrt(len(found))
        assert abs(np.mean(found) - expected) < 6 * error
    assert noise * exact.pairs_trace > 30 * np.std(pairs) / math.sqrt(len(pairs))


def test_fourier_has_no_best_bandwidth() -> None:
    release = _release(dpkde.Gaussian(0.2), family=dpkde.Fourier(24), epsilon=1)
    with pytest.raises(ParameterError, match="no integral over space"):
        release.best_bandwidth()
