"""Log densities where densities are below the least number: against sums that take long."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import dpkde
from dpkde.assisted.cloud import Cloud
from dpkde.densities.base import Density
from dpkde.densities.clouds import CloudDensity
from dpkde.densities.lattice import LatticeDensity
from dpkde.densities.survey import SiteAxis, Strip
from dpkde.kernels import Kernel
from dpkde.space.domain import Box
from dpkde.space.frame import Frame

FADING = [dpkde.Gaussian(0.5), dpkde.Laplacian(0.5), dpkde.ExponentialLp(1.5, 1.5, 0.5)]


def _frame(kernel: Kernel) -> Frame:
    return Frame.of(kernel, Box([(-1.0, 3.0), (0.0, 2.0)]))


def _lattice(kernel: Kernel, parts: int = 1) -> LatticeDensity:
    frame = _frame(kernel)
    halves = frame.halves()
    assert halves is not None
    weights = np.random.default_rng(0).random((9, 5)) * (np.arange(45).reshape(9, 5) % 3 == 0)
    axes = (SiteAxis(0, halves[0], 9, parts), SiteAxis(1, halves[1], 5, parts))
    return LatticeDensity(frame, None, axes, (), weights / weights.sum())


def _on_a_strip(kernel: Kernel) -> LatticeDensity:
    frame = _frame(kernel)
    halves = frame.halves()
    assert halves is not None
    strip = Strip(1, halves[1], mean=-0.4, ends=0.3)
    weights = np.random.default_rng(0).random(9)
    return LatticeDensity(
        frame, None, (SiteAxis(0, halves[0], 9),), (strip,), weights / weights.sum()
    )


def _clouds(kernel: Kernel, dim: int = 2) -> CloudDensity:
    frame = Frame.of(kernel, Box([(-1.0, 3.0), (0.0, 2.0)][:dim]))
    blur = kernel.blur(dim)
    assert blur is not None
    about = Cloud(np.array([0.3, 0.7]), np.array([0.5, 4.0]), np.array([[0.5, -0.5][:dim]]))
    apart = Cloud(np.array([0.5, 0.5]), np.ones(2), np.array([[0.0, 1.0], [2.0, 0.0]])[:, :dim])
    return CloudDensity(frame, None, (about, apart), blur)


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("kernel", FADING, ids=repr)
def test_far_from_all_sites(kernel: Kernel, parts: int) -> None:
    """Against the largest term and what the others are of it, site by site."""
    density = _lattice(kernel, parts)
    queries = np.array([[60.0, 1.0], [-500.0, 700.0], [1e5, 0.0]])
    assert (density.density(queries)[1:] == 0).all()
    for query, told in zip(queries, density.log_density(queries), strict=True):
        ((y0, y1),) = density.frame.locate(query[np.newaxis])
        first, second = density.axes
        terms = [
            math.log(density.weights[i, j] * share * other)
            + float(density._kernel.log_profile(np.array(y0 - x - a)))
            + float(density._kernel.log_profile(np.array(y1 - z - b)))
            for i, x in enumerate(first.places)
            for j, z in enumerate(second.places)
            if density.weights[i, j]
            for a, share in zip(*first.spread, strict=True)
            for b, other in zip(*second.spread, strict=True)
        ]
        top = max(terms)
        exact = top + math.log(math.fsum(math.exp(term - top) for term in terms))
        assert told == pytest.approx(exact - kernel.log_integral(2), rel=1e-12)


@pytest.mark.parametrize(
    "density",
    [
        *(_lattice(kernel, parts) for kernel in FADING for parts in (1, 3)),
        *(_on_a_strip(kernel) for kernel in FADING),
        *(_clouds(kernel) for kernel in (FADING[0], FADING[1], dpkde.Matern(1.5, 0.5))),
        _clouds(dpkde.ExponentialLp(2, 1, 0.5)),
        _lattice(dpkde.Cauchy(0.5)),
        _lattice(dpkde.Product([dpkde.Gaussian(0.5), dpkde.Laplacian(1.0)])),
    ],
    ids=lambda d: f"{type(d).__name__}-{d.frame.kernel!r}",
)
def test_near_by_it_is_the_logarithm(density: Density) -> None:
    """Both ways of computing it agree; quadrature along strips to a hundredth."""
    located = density.frame.locate(np.random.default_rng(1).uniform(-3, 5, (40, 2)))
    rough = isinstance(density, LatticeDensity) and density.strips
    near = np.log(density._kde(located))
    assert density._log_kde(located) == pytest.approx(near, abs=1e-2 if rough else 1e-8)
    if not rough:
        values = np.log(density.density(density.frame.point_at(located)))
        told = density.log_density(density.frame.point_at(located))
        assert told == pytest.approx(values, abs=1e-9)


def test_a_strip_far_away() -> None:
    """Finite, and within what the nearest and the furthest record would give."""
    density = _on_a_strip(dpkde.Gaussian(0.5))
    told = density.log_density([[1.0, 300.0]])[0]
    low, high = (-((300.0 - end) ** 2) / 0.25 for end in (0.0, 2.0))
    assert low - 20 < told < high + 5


def test_a_normal_cloud_stays_normal() -> None:
    """By the closed form: a Gaussian kernel only widens it."""
    kernel = dpkde.Gaussian(0.5)
    frame, blur = Frame.of(kernel, Box([(-1.0, 3.0)])), kernel.blur(1)
    assert blur is not None
    cloud = Cloud(np.ones(1), np.array([1.5]), np.zeros((1, 1)))
    density = CloudDensity(frame, None, (cloud,), blur)
    law = stats.norm(1.0, 0.5 * math.sqrt(1.5 + 0.5))  # the middle; bandwidth times spread
    for query in (1.0, 30.0, 1e4):
        assert density.log_density([query]) == pytest.approx(law.logpdf(query), rel=1e-12)


def test_kernels_that_end_have_nothing_there() -> None:
    density = _lattice(dpkde.Hat(0.5))
    assert density.log_density([[60.0, 1.0]]) == -math.inf
    assert _lattice(dpkde.Gaussian(0.5)).log_density([[60.0, 1.0]], support="bounds") == -math.inf
    assert np.isnan(density.log_density([[math.nan, 1.0]]))


def test_many_columns_have_log_densities() -> None:
    """Where the kernel's integral is below the least number."""
    kernel, dim = dpkde.Gaussian(0.01), 784
    with pytest.raises(dpkde.ParameterError, match="beyond the numbers"):
        dpkde.Matern(1.0, 0.01).log_integral(dim)
    cloud = Cloud(np.ones(1), np.ones(1), np.zeros((1, dim)))
    blur = kernel.blur(dim)
    assert blur is not None
    density = CloudDensity(Frame.of(kernel, Box([(-1, 1)] * dim)), None, (cloud,), blur)
    exact = -0.5 * dim * math.log(2 * math.pi * 0.01**2 * 1.5)
    assert density.log_density(np.zeros((1, dim))) == pytest.approx(exact, rel=1e-12)
