"""Densities of weighted sites: against sums and integrals that take long, and their samples."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

import dpkde
from dpkde.densities.lattice import LatticeDensity
from dpkde.densities.survey import SiteAxis, Strip, mean_profile
from dpkde.kernels import Kernel
from dpkde.kernels.base import gauss_points
from dpkde.space.domain import Box
from dpkde.space.frame import Frame

SMOOTH = [dpkde.Gaussian(0.5), dpkde.Gaussian([0.5, 0.8])]
KINKED = [dpkde.Laplacian(0.5), dpkde.Hat(0.7)]


def _density(kernel: Kernel, parts: int = 1, seed: int = 0) -> LatticeDensity:
    """Return a few sites over a box, most of them empty."""
    frame = Frame.of(kernel, Box([(-1.0, 3.0), (0.0, 2.0)]))
    halves = frame.halves()
    assert halves is not None
    axes = (SiteAxis(0, halves[0], 17, parts), SiteAxis(1, halves[1], 9, parts))
    generator = np.random.default_rng(seed)
    weights = generator.random((17, 9)) * (generator.random((17, 9)) < 0.2)
    weights[0, 0] = weights[3, 8] = 0.5
    return LatticeDensity(frame, None, axes, (), weights / weights.sum())


def _strips(kernel: Kernel) -> LatticeDensity:
    """Return a column with sites and a narrow one, whose records lean and lie at its ends."""
    frame = Frame.of(kernel, Box([(-1.0, 3.0), (0.0, 0.2)]))
    halves = frame.halves()
    assert halves is not None
    weights = np.random.default_rng(0).random(17)
    strip = Strip(1, halves[1], mean=-0.4, ends=0.3)
    return LatticeDensity(
        frame, None, (SiteAxis(0, halves[0], 17),), (strip,), weights / weights.sum()
    )


def _integral(density: LatticeDensity, edges: list[np.ndarray], support: str) -> float:
    """Return the integral between edges, eight Gauss points a panel and axis."""
    panels = [gauss_points(axis) for axis in edges]
    points = np.array(list(product(*(p for p, _ in panels))))
    masses = np.array([math.prod(m) for m in product(*(m for _, m in panels))])
    return float(density.density(points, support=support) @ masses)


@pytest.mark.parametrize("kernel", [*SMOOTH, *KINKED], ids=repr)
def test_the_mass_is_one(kernel: Kernel) -> None:
    """To 1e-6, over space and, folded, over the bounds."""
    density = _density(kernel, 1 if kernel in SMOOTH else 4)
    reach, panels = (3.5, 14) if kernel in SMOOTH else (6.0, 31)
    space = [np.linspace(-1 - reach, 3 + reach, panels), np.linspace(-reach, 2 + reach, panels)]
    bounds = [np.linspace(-1, 3, 13), np.linspace(0, 2, 13)]
    tolerance = 1e-6 if kernel in SMOOTH else 2e-4  # kinks are not at the panels' ends
    assert _integral(density, space, "space") == pytest.approx(1, abs=tolerance)
    assert _integral(density, bounds, "bounds") == pytest.approx(1, abs=tolerance)


@pytest.mark.parametrize("kernel", [*SMOOTH, dpkde.Laplacian(0.5), dpkde.Cauchy(0.5)], ids=repr)
def test_the_mass_of_strips_is_one(kernel: Kernel) -> None:
    density = _strips(kernel)
    edges = [np.linspace(-1, 3, 33), np.linspace(0.0, 0.2, 3)]
    assert _integral(density, edges, "bounds") == pytest.approx(1, abs=3e-5)
    far = 4.0 if kernel in SMOOTH else 2.0
    wide = [np.linspace(-1 - far, 3 + far, 17), np.linspace(-far, 0.2 + far, 17)]
    whole = _integral(density, wide, "space")
    assert whole == pytest.approx(1, abs=1e-6) if kernel in SMOOTH else whole < 1


@pytest.mark.parametrize("kernel", [*SMOOTH, *KINKED, dpkde.Cauchy(0.5)], ids=repr)
@pytest.mark.parametrize("parts", [1, 4])
def test_sums_over_near_sites_are_sums_over_all(kernel: Kernel, parts: int) -> None:
    """The slow twin: every point of every site, by the kernel itself; far away too."""
    density = _density(kernel, parts)
    points, shares = [], []
    for axis in density.axes:
        offsets, own = axis.spread
        points.append(np.add.outer(axis.places, offsets).reshape(-1))
        shares.append(np.tile(own, axis.count))
    coordinates = np.array(list(product(*points)))
    weights = np.multiply.outer(*shares).reshape(17, len(own), 9, len(own))
    weights *= density.weights[:, np.newaxis, :, np.newaxis]
    queries = np.random.default_rng(1).uniform((-4, -3), (6, 5), (50, 2))
    queries[:3] = [[-1, 0], [3, 2], [9, 9]]
    sites = density.frame.point_at(coordinates)
    slow = kernel.evaluate(sites, queries).T @ weights.reshape(-1)
    assert np.allclose(density.kde(queries), slow, rtol=1e-6, atol=1e-300)
    assert np.allclose(density.density(queries) * kernel.integral(2), slow, rtol=1e-6)


@pytest.mark.parametrize("kernel", [*SMOOTH, dpkde.Laplacian(0.3)], ids=repr)
@pytest.mark.parametrize("made", [_density, _strips])
def test_a_folded_density_is_the_sum_over_images(kernel: Kernel, made: object) -> None:
    density = made(kernel)  # type: ignore[operator]
    box = density.frame.domain.corners
    queries = np.random.default_rng(2).uniform(box[0], box[1], (20, 2))
    total = np.zeros(20)
    for m in product(range(-2, 3), range(-20, 21) if made is _strips else range(-3, 4)):
        odd = np.array(m) % 2 == 1
        images = np.where(odd, box[0] + box[1] - queries, queries)
        total += density.density(images + (box[1] - box[0]) * np.array(m))
    assert np.allclose(density.density(queries, support="bounds"), total, rtol=1e-5)
    outside = density.density([[-1.1, 0.1], [3.1, 0.1]], support="bounds")
    assert outside.tolist() == [0, 0]


def _shares(density: LatticeDensity, support: str) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the masses of cells that cover all of space, or the bounds, and their edges."""
    (low, high) = density.frame.domain.corners  # type: ignore[attr-defined]
    edges = [np.linspace(a, b, 6) for a, b in zip(low, high, strict=True)]
    if support == "space":
        edges = [np.concatenate([[e[0] - 6], e, [e[-1] + 6]]) for e in edges]
    masses = np.empty([len(e) - 1 for e in edges])
    for i, j in np.ndindex(*masses.shape):
        fine = [
            np.linspace(e[k], e[k + 1], 3 if e[k + 1] - e[k] < 2 else 7)
            for e, k in zip(edges, (i, j), strict=True)
        ]
        masses[i, j] = _integral(density, fine, support)
    return edges, masses


@pytest.mark.parametrize("support", ["space", "bounds"])
@pytest.mark.parametrize("made", [_density, _strips])
def test_samples_follow_the_density(made: object, support: str) -> None:
    """Pearson's test over cells, false alarm 1e-9.

    It rejects samples that no kernel has moved, that one of 1.15 times the width has moved, and
    of weights that are all alike. The statistic of the second has a mean of twice the limit and a
    deviation of a fifth of it (12 seeds), so that it is missed once in 10⁶ times; the others' are
    20 times the limit and more.
    """
    density: LatticeDensity = made(dpkde.Gaussian(0.5))  # type: ignore[operator]
    edges, masses = _shares(density, support)
    assert masses.sum() == pytest.approx(1, abs=1e-6)

    def statistic(points: np.ndarray) -> float:
        seen = np.histogram2d(points[:, 0], points[:, 1], bins=edges)[0]
        expected = masses / masses.sum() * len(points)
        common = expected > 5
        rest = np.array([seen[~common].sum()]), np.array([expected[~common].sum()])
        counts = np.concatenate([seen[common], rest[0]])
        means = np.concatenate([expected[common], np.maximum(rest[1], 5)])
        return float(((counts - means) ** 2 / means).sum())

    limit = stats.chi2.isf(1e-9, masses.size)
    n = 40_000
    assert statistic(density.sample(n, seed=1, support=support)) < limit
    assert statistic(density.sample(n, seed=1, support=support, smoothed=False)) > limit
    wide = Frame.of(dpkde.Gaussian(0.575), density.frame.domain)
    axes = tuple(SiteAxis(a.column, a.half / 1.15, a.count) for a in density.axes)
    strips = tuple(Strip(s.column, s.half / 1.15, s.mean, s.ends) for s in density.strips)
    wider = LatticeDensity(wide, None, axes, strips, density.weights.copy())
    if support == "space":  # what is folded hardly tells
        assert statistic(wider.sample(n, seed=1)) > limit
    even = np.full(density.weights.shape, 1 / density.weights.size)
    alike = LatticeDensity(density.frame, None, density.axes, density.strips, even)
    assert statistic(alike.sample(n, seed=1, support=support)) > limit


def test_spread_sites_are_drawn_as_they_are_seen() -> None:
    """One site of a hat: its sample has the variance of its density."""
    frame = Frame.of(dpkde.Hat(1.0), Box([(-2.0, 2.0)]))
    axis = SiteAxis(0, 2.0, 5, parts=4)
    weights = np.array([0.0, 0, 1, 0, 0])
    density = LatticeDensity(frame, None, (axis,), (), weights)
    offsets, shares = axis.spread
    expected = 1 / 6 + float(shares @ offsets**2)
    x, mass = gauss_points(np.linspace(-2, 2, 65))
    assert float(density.density(x[:, np.newaxis]) * x**2 @ mass) == pytest.approx(expected, 1e-3)
    sample = density.sample(50_000, seed=0)[:, 0]
    assert sample.var() == pytest.approx(expected, rel=0.03)  # six deviations


def test_sampling_is_repeatable_and_stays_inside() -> None:
    density = _density(dpkde.Cauchy(0.5))
    assert np.array_equal(density.sample(9, seed=4), density.sample(9, seed=4))
    assert not np.array_equal(density.sample(9), density.sample(9))
    inside = density.sample(5000, seed=0, support="bounds")
    assert ((inside >= [-1, 0]) & (inside <= [3, 2])).all()
    near = density.sample(5000, seed=0, smoothed=False)
    assert ((near >= [-1.2, -0.2]) & (near <= [3.2, 2.2])).all()
    assert density.sample(0).shape == (0, 2)


def test_logarithms_and_odd_queries() -> None:
    density = _density(dpkde.Hat(0.5))
    queries = [[0.0, 1.0], [50.0, 1.0], [math.nan, 1.0], [math.inf, 1.0]]
    values, logs = density.density(queries), density.log_density(queries)
    assert values[1] == 0
    assert logs[1] == -math.inf
    assert np.isnan(logs[2:]).all()
    assert logs[0] == pytest.approx(math.log(values[0]))
    assert density.density(np.empty((0, 2))).shape == (0,)
    many = np.random.default_rng(0).uniform((-1, 0), (3, 2), (10_000, 2))
    assert np.array_equal(density.density(many)[5000:5010], density.density(many[5000:5010]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.density([[0, 0]], support="box"), "'space' or 'bounds'"),
        (lambda d: d.sample(-1), "n must be a whole number"),
        (lambda d: d.sample(2.5), "n must be a whole number"),
        (lambda d: d.sample(1 << 40), "n must be a whole number"),
        (lambda d: d.sample(3, seed=-1), "seed must be"),
        (lambda d: d.sample(3, seed="x"), "seed must be"),
        (lambda d: d.sample(3, smoothed=1), "smoothed must be"),
        (lambda d: d.standard_error([[0, 0]]), "interval of the release itself"),
    ],
)
def test_what_is_refused(call: object, message: str) -> None:
    with pytest.raises(dpkde.ParameterError, match=message):
        call(_density(dpkde.Gaussian(0.5)))  # type: ignore[operator]


def test_means_of_profiles() -> None:
    """Against a sum over many points, with a kink inside the strip; and a strip of no width."""
    kernel = dpkde.Laplacian(1.0)
    y, t = np.array([-3.0, 0.2, 0.5, 4.0]), np.linspace(0, 1, 100_001)
    t = (t[1:] + t[:-1]) / 2
    slow = kernel.profile(np.subtract.outer(y, t)).mean(axis=1)
    assert np.allclose(mean_profile(kernel, 0.0, 1.0, y), slow, atol=1e-9)
    assert np.allclose(mean_profile(kernel, 0.5, 0.5, y), kernel.profile(y - 0.5))


@pytest.mark.parametrize("kernel", [*SMOOTH, *KINKED], ids=repr)
def test_a_grid_is_its_places(kernel: Kernel) -> None:
    """Axis by axis as place by place; strips and columns in another order included."""
    axes = [np.linspace(-2, 4, 9), np.linspace(-0.5, 2.5, 7)]
    places = np.array(list(product(*axes)))
    for density in (_density(kernel, 1 if kernel in SMOOTH else 4), _strips(kernel)):
        swapped = density.marginal([1, 0])
        for some, ends, queries in (
            (density, axes, places),
            (swapped, axes[::-1], np.array(list(product(*axes[::-1])))),
        ):
            values = some.kde_on_grid(ends)
            assert values.shape == tuple(map(len, ends))
            assert values.ravel() == pytest.approx(some.kde(queries), rel=1e-9, abs=1e-14)
        assert swapped.kde(places[:, ::-1]) == pytest.approx(density.kde(places), rel=1e-9)


@pytest.mark.parametrize("kernel", [*SMOOTH, *KINKED], ids=repr)
@pytest.mark.parametrize("column", [0, 1])
def test_a_marginal_is_an_integral(kernel: Kernel, column: int) -> None:
    """Of the density along the other column, by Gauss points; of strips, too."""
    here = np.linspace(-1, 3, 11)
    for density in (_density(kernel, 1 if kernel in SMOOTH else 4), _strips(kernel)):
        points, masses = gauss_points(np.linspace(-14, 16, 601))
        pairs = np.array(list(product(here, points)))
        rows = pairs if column == 0 else pairs[:, ::-1]
        expected = density.density(rows).reshape(len(here), -1) @ masses
        marginal = density.marginal([column])
        assert marginal.density(here[:, np.newaxis]) == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_no_marginal_where_the_kernel_is_no_product() -> None:
    turned = dpkde.Gaussian([[0.5, 0.1], [0.1, 0.5]])
    with pytest.raises(dpkde.ParameterError, match="no product over the columns"):
        _density(turned).marginal([0])
    axes = [np.linspace(-1, 1, 3), np.linspace(0, 1, 2)]
    places = np.array(list(product(*axes)))
    density = _density(turned)
    assert density.kde_on_grid(axes).ravel() == pytest.approx(density.kde(places))
