"""Marginals, conditionals, distribution functions: some columns of a table, in closed form."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

import dpkde
from dpkde.kernels import Kernel

Floats = NDArray[np.float64]
GENERATOR = np.random.default_rng(1)
POINTS = GENERATOR.normal((0.4, 0.5, 0.6), (0.12, 0.15, 0.2), size=(2000, 3)).clip(0, 1)
POINTS[:, 2] = (POINTS[:, 2] + POINTS[:, 0]) / 2
NAMES = ["a", "b", "c"]
SIGMA = [0.1, 0.2, 0.9]
FAMILIES = {
    "spline": dpkde.Spline(3, 0.5),
    "narrow": dpkde.Spline((3, 3, 1), (0.5, 0.5, 30.0)),
    "fastgauss": dpkde.FastGauss(6, cutoff=6.0),
}


def published(family: str, epsilon: float = 10**6, **settings: Any) -> dpkde.Release:
    options = {"kernel": dpkde.Gaussian(SIGMA), "columns": NAMES, **settings}
    return dpkde.publish(
        POINTS, bounds=[(0, 1)] * 3, epsilon=epsilon, family=FAMILIES[family], **options
    )


@pytest.fixture(scope="module", params=FAMILIES)
def precise(request: pytest.FixtureRequest) -> dpkde.Release:
    return published(request.param)


def test_a_marginal_is_the_kde_of_its_columns(precise: dpkde.Release) -> None:
    """The table of the narrow column is a line, a few per cent off."""
    queries = np.random.default_rng(2).uniform(0, 1, size=(20, 2))
    line = 0.06 if precise.plan.pair.bounds.nonnegative is False else 2e-3
    for columns, tolerance in ((["b", "a"], 2e-3), (["c", "a"], line)):
        view = precise.marginal(columns)
        kept = [NAMES.index(name) for name in columns]
        kernel = dpkde.Gaussian([SIGMA[column] for column in kept])
        exact = dpkde.nonprivate.kde(POINTS[:, kept], queries, kernel)
        assert (view.columns, view.dim, view.count) == (tuple(columns), 2, precise.count)
        np.testing.assert_allclose(view.kde(queries), exact, atol=tolerance)
    assert view.kernel == kernel


def test_a_marginal_is_the_integral_of_the_whole(precise: dpkde.Release) -> None:
    """By quadrature of `kde` along the columns that are left out: to 1e-6."""
    points, weights = np.polynomial.legendre.leggauss(48)
    y = 0.5 + 5.5 * points[:, np.newaxis]
    queries = np.array([[0.3], [0.5]])
    view, spread = precise.marginal([0, 2]), math.sqrt(math.pi) * 0.2
    for query in queries:
        both = np.column_stack([np.full(48, query), y[:, 0] * 0.2 + 0.4, np.full(48, 0.55)])
        summed = precise.kde(both, clip=False) @ (weights * 5.5 * 0.2) / spread
        answer = view.kde([[query[0], 0.55]], clip=False)
        assert answer[0] == pytest.approx(float(summed), abs=1e-6)


def test_a_marginal_answers_as_a_release_does(precise: dpkde.Release) -> None:
    view = precise.marginal("a")
    box = [(0.2, 0.5)]
    assert view.mass(box) == precise.mass({"a": (0.2, 0.5)})
    assert view.mass_standard_error(box) == pytest.approx(
        float(precise.mass_standard_error({"a": (0.2, 0.5)}))
    )
    np.testing.assert_allclose(view.cdf([0.3, 0.5]), precise.cdf([0.3, 0.5], "a"), atol=1e-9)
    assert view.marginal(0).kde([0.3]) == view.kde([0.3])
    low, high = view.interval([0.3, 0.4])
    assert ((low <= view.kde([0.3, 0.4])) & (view.kde([0.3, 0.4]) <= high)).all()
    assert np.isnan(view.kde([np.nan, 0.3])).tolist() == [True, False]
    assert view.kde(np.empty((0, 1))).shape == (0,)
    assert view.promise is None
    assert "marginal of" in repr(view)
    assert "d=1, columns 'a', of release" in repr(view)
    assert "columns 'c', 'a', of" in repr(precise.marginal(["c", "a"]))
    with pytest.raises(dpkde.ParameterError, match="cannot be saved"):
        view.save("x.dpkde")  # type: ignore[attr-defined]
    with pytest.raises(dpkde.ParameterError, match="no repetitions"):
        view.kde([0.3], groups=2)


@pytest.mark.parametrize(
    "columns",
    [[], ["a", "a"], ["d"], [3], [True], "x", [None], 1.5, None, slice(1), np.array(1), object()],
)
def test_no_such_columns(precise: dpkde.Release, columns: Any) -> None:
    with pytest.raises(dpkde.ParameterError, match=r"no column|one column or more|name a column"):
        precise.marginal(columns)


def test_a_marginal_says_what_it_does_not_have() -> None:
    """And that is no fault of the table, which has it."""
    release = published("spline")
    view: Any = release.marginal(["b", "a", "c"])
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: view.sample(5), r"take these columns of release\.sample"),
        (lambda: view.density([[0.5] * 3]), r"take these columns of release\.sample"),
        (lambda: view.best_bandwidth(), r"release\.best_bandwidth\(\)"),
        (lambda: view.bandwidths(), r"release\.with_kernel\(…\)\.marginal"),
        (lambda: view.error_bound(0.1), "interval"),
        (lambda: view.interval([[0.5] * 3], bias="worst"), "bias='typical'"),
    ]
    for ask, words in refused:
        with pytest.raises(dpkde.ParameterError, match=f"a view of some columns has no .*{words}"):
            ask()


def test_tables_without_marginals_say_so() -> None:
    waves = dpkde.publish(
        POINTS,
        kernel=dpkde.Gaussian(0.3),
        bounds=[(0, 1)] * 3,
        epsilon=1,
        family=dpkde.Fourier(32),
    )
    with pytest.raises(dpkde.ParameterError, match="fourier table has no marginals"):
        waves.marginal([0])
    with pytest.raises(dpkde.ParameterError, match="fourier table has no conditionals"):
        waves.conditional({0: 0.5})
    turned = published("spline", kernel=dpkde.Gaussian(np.diag(SIGMA) + 0.01))
    with pytest.raises(dpkde.ParameterError, match="matrix bandwidth"):
        turned.marginal([0])


def test_a_conditional_weighs_records_by_the_kernel(precise: dpkde.Release) -> None:
    given = precise.conditional({"b": 0.45})
    near = np.exp(-(((POINTS[:, 1] - 0.45) / 0.2) ** 2))
    queries = np.array([[0.3, 0.5], [0.5, 0.6], [np.nan, 0.0]])
    kernel = dpkde.Gaussian([SIGMA[0], SIGMA[2]])
    exact = near @ kernel.evaluate(POINTS[:, [0, 2]], queries[:2]) / near.sum()
    np.testing.assert_allclose(given.kde(queries)[:2], exact, atol=0.05)
    assert np.isnan(given.kde(queries)[2])
    assert given.kernel == kernel
    assert given.records == pytest.approx(near.sum(), rel=1e-3)
    assert given.mass([(None, None)] * 2) == pytest.approx(1.0)
    shares = given.mass([[(None, 0.4), (None, None)], [(0.4, None), (None, None)]])
    assert shares.sum() == pytest.approx(1.0)
    assert given.columns == ("a", "c")
    assert "given {'b': 0.45}" in repr(given)


@pytest.mark.parametrize("given", [{}, {"a": np.nan}, {"a": "x"}, {"d": 1}, 3, {0: 1, "a": 2}])
def test_no_condition(precise: dpkde.Release, given: Any) -> None:
    with pytest.raises(dpkde.DpkdeError):
        precise.conditional(given)
    with pytest.raises(dpkde.ParameterError, match="leave at least one"):
        precise.conditional({"a": 0, "b": 0, "c": 0})


def test_what_rests_on_nothing_has_no_answer() -> None:
    """Where the sum below is not positive there is no ratio."""
    release = published("spline")
    empty = dpkde.Release(release.plan, -np.abs(release.table), release.count, release.privacy)
    given = empty.conditional({"a": 0.4})
    assert given.records < 0
    assert np.isnan(given.kde([[0.5, 0.5]])).all()
    assert np.isnan(given.standard_error([[0.5, 0.5]])).all()


@pytest.mark.audit
def test_errors_of_marginals_and_conditionals_over_draws() -> None:
    """1,500 draws know a spread to 2.3%; 18% is asked.

    A conditional that forgot that its two sums share their noise would be off by half.
    """
    plan = dpkde.plan(
        kernel=dpkde.Gaussian(0.4), bounds=[(0, 1)] * 2, epsilon=20, family=dpkde.Spline(2, 1.0)
    )
    sketch = dpkde.sketch(POINTS[:, :2], plan)
    release, precise = dpkde.publish(sketch, epsilon=20), dpkde.publish(sketch, epsilon=10**6)
    law, draws = release.law("table"), 1500
    assert law is not None
    noise = law.sample(draws * release.table.size, os.urandom).reshape(draws, -1)
    marginals, ratios, shares = [], [], []
    for row in noise:
        noisy = dpkde.Release(plan, precise.table + row, precise.count, release.privacy)
        given = noisy.conditional({1: 0.4})
        marginals.append(float(noisy.marginal(0).kernel_sum([0.4])[0]))
        ratios.append(float(given.kde([0.4], clip=False)[0]))
        shares.append(float(given.mass([(None, 0.35)], clip=False)))
    given = dpkde.Release(plan, precise.table, precise.count, release.privacy).conditional({1: 0.4})
    stated = (
        float(release.marginal(0).kernel_sum_standard_error([0.4])[0]),
        float(given.standard_error([0.4])[0]),
        float(given.mass_standard_error([(None, 0.35)])),
    )
    for values, error in zip((marginals, ratios, shares), stated, strict=True):
        assert float(np.std(values)) == pytest.approx(error, rel=0.18)


KERNELS: dict[str, tuple[Kernel, Any]] = {
    "gaussian": (dpkde.Gaussian(0.1), lambda z: ndtr(z * math.sqrt(2))),
    "laplacian": (
        dpkde.Laplacian(0.1),
        lambda z: np.where(z < 0, np.exp(-np.abs(z)) / 2, 1 - np.exp(-np.abs(z)) / 2),
    ),
    "cauchy": (dpkde.Cauchy(0.1), lambda z: 0.5 + np.arctan(z) / np.pi),
}


@pytest.mark.parametrize("name", KERNELS)
def test_distribution_functions(name: str) -> None:
    """Near that of the smoothed records, and that of the table itself to 1e-6."""
    kernel, upto = KERNELS[name]
    release = dpkde.publish(
        POINTS[:, :2],
        kernel=kernel,
        bounds=[(0, 1)] * 2,
        epsilon=10**6,
        family=dpkde.Spline(3, 0.4),
    )
    values = np.linspace(-0.5, 1.5, 200)
    exact = upto((values[:, np.newaxis] - POINTS[:, 1]) / 0.1).mean(axis=1)
    curve = release.cdf(values, 1)
    np.testing.assert_allclose(curve, exact, atol=2e-3)
    boxes = np.full((200, 2, 2), [-np.inf, np.inf])
    boxes[:, 1, 1] = values
    np.testing.assert_allclose(curve, release.mass(boxes, clip=False), atol=1e-6)
    assert release.cdf([-np.inf, np.inf], 1) == pytest.approx([0, 1], abs=1e-5)
    shares = np.array([0.01, 0.25, 0.5, 0.99])
    np.testing.assert_allclose(release.cdf(release.quantile(shares, 1), 1), shares, atol=1e-9)


@pytest.fixture(scope="module")
def noisy() -> dpkde.Release:
    return published("spline", 0.2, kernel=dpkde.Gaussian(0.2))


def test_noise_does_not_make_it_fall(noisy: dpkde.Release) -> None:
    values = np.linspace(-1, 2, 2000)
    curve = noisy.cdf(values, "a")
    assert (np.diff(curve) >= 0).all()
    assert curve[0] == pytest.approx(0, abs=1e-9)
    assert curve[-1] == pytest.approx(1, abs=1e-9)
    # Whatever else is asked, and in any order and shape.
    np.testing.assert_array_equal(noisy.cdf(values[::-7], "a"), curve[::-7])
    assert noisy.cdf(values[100], "a").shape == ()
    assert noisy.cdf(values.reshape(2, -1), "a").shape == (2, 1000)
    shares = np.linspace(0.001, 0.999, 50)
    assert (np.diff(noisy.quantile(shares, "a")) >= 0).all()


def test_intervals_of_distribution_functions(noisy: dpkde.Release) -> None:
    """Within two intervals of level 1 − 10⁻⁷ of each other: a false alarm of 10⁻¹².

    An interval without the noise of the columns that are left out would be a third as long.
    """
    values = np.array([0.1, 0.4, 0.9, np.nan])
    exact = ndtr((values[:3, np.newaxis] - POINTS[:, 0]) / 0.2 * math.sqrt(2)).mean(axis=1)
    clearer = published("spline", 1.0, kernel=dpkde.Gaussian(0.2))
    low, high = clearer.cdf_interval(values, "a", 1 - 1e-9)
    room = high[:3] - low[:3] + 1e-3
    assert ((low[:3] - room <= exact) & (exact <= high[:3] + room)).all()
    assert (room < 0.3).all()  # some 0.16: an answer that is far off is outside
    assert np.isnan(low[3])
    # Ends that are known are sure.
    low, high = noisy.cdf_interval([-9.0, 9.0], "a", 0.95)
    np.testing.assert_allclose([low, high], [[0, 1], [0, 1]], atol=1e-3)
    low, high = noisy.quantile_interval([0.5, np.nan], "a", 0.95)
    assert low[0] <= high[0]
    assert np.isnan(low[1])
    narrow = published("spline").quantile_interval(0.5, "a", 0.95)
    assert narrow[0] <= np.median(POINTS[:, 0]) + 0.05
    assert float(narrow[1] - narrow[0]) < 0.01


def test_refused_columns_and_shares(noisy: dpkde.Release) -> None:
    with pytest.raises(dpkde.DpkdeError, match="name a column, one of 'a', 'b', 'c'"):
        noisy.cdf([0.1])
    for shares in (0, 1, [0.5, 1.2], -0.1):
        with pytest.raises(dpkde.ParameterError, match=r"strictly between 0 and 1.* got [-0-9.]+$"):
            noisy.quantile(shares, "a")
    with pytest.raises(dpkde.DpkdeError, match="real numbers"):
        noisy.cdf("a", "a")
    with pytest.raises(dpkde.ParameterError, match="level"):
        noisy.cdf_interval([0.1], "a", 2)
    free = dpkde.publish(
        POINTS[:, :1], kernel=dpkde.Gaussian(0.1), epsilon=1, family=dpkde.Fourier(64)
    )
    with pytest.raises(dpkde.ParameterError, match="needs bounds"):
        free.cdf([0.5])


def test_other_tables_have_distribution_functions_too() -> None:
    """Dropped records are missing from F; waves are read as shares of boxes."""
    box = dpkde.Box([(0.3, 1.0)], outside="drop")
    release = dpkde.publish(
        POINTS[:, :1],
        kernel=dpkde.Gaussian(0.1),
        bounds=box,
        epsilon=100,
        family="spline",
        adjacency="replace",
    )
    inside = float((POINTS[:, 0] >= 0.3).mean())
    assert float(release.cdf(9.0)) == pytest.approx(inside, abs=0.02)
    waves = dpkde.publish(
        POINTS[:, :1],
        kernel=dpkde.Gaussian(0.3),
        bounds=[(0, 1)],
        epsilon=100,
        family=dpkde.Fourier(2000),
        seed=1,
    )
    curve = waves.cdf(np.linspace(-1, 2, 50))
    assert (np.diff(curve) >= 0).all()
    assert float(waves.cdf(0.4)) == pytest.approx(0.5, abs=0.1)


def test_quantile_intervals_of_waves_end_where_the_share_leaves_the_interval() -> None:
    """Half lengths are computed at some places only: straight lines between are near enough.

    The slow twin asks for the interval of F at both ends, and a little beyond them.
    """
    waves = dpkde.publish(
        POINTS[:, :1],
        kernel=dpkde.Gaussian(0.2),
        bounds=[(0, 1)],
        epsilon=1,
        family=dpkde.Fourier(64),
        seed=1,
    )
    shares = np.array([0.25, 0.5])
    first, last = waves.quantile_interval(shares, 0, 0.9)
    assert (first < last).all()
    low, high = waves.cdf_interval(np.array([first, last]), 0, 0.9)
    room = 0.05 * (high - low)
    assert (low - room <= shares).all()
    assert (shares <= high + room).all()
    step = np.array([[-1.0], [1.0]]) * 0.1 * (last - first)
    low, high = waves.cdf_interval(np.array([first, last]) + step, 0, 0.9)
    assert ((shares < low) | (high < shares)).all()


def test_other_kernels_have_shares_and_marginals() -> None:
    """Views with another kernel read the same table: by quadrature of their own answers."""
    from families.test_readings import BOX, noiseless, quadrature

    release = noiseless(dpkde.Gaussian(0.1), dpkde.Spline(3, 0.5))
    view = release.with_kernel(dpkde.Gaussian(0.2))
    assert float(view.mass(BOX)) == pytest.approx(quadrature(view, BOX), abs=1e-6)
    assert view.marginal(0).mass([(0.1, 0.4)]) == view.mass({0: (0.1, 0.4)})
    assert view.marginal(0).kernel == view.kernel
    for columns in (0, [1, 0]):
        with pytest.raises(dpkde.ParameterError, match=r"view of some columns has no .* kernel"):
            release.marginal(columns).with_kernel(dpkde.Gaussian(0.2))
    map_ = release.marginal([1, 0]).grid((4, 3))
    places = np.stack(np.meshgrid(*map_.axes, indexing="ij"), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(
        map_.values.reshape(-1), release.marginal([1, 0]).kde(places), atol=1e-12
    )
