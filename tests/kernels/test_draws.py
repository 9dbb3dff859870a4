"""Kernels as densities: what is drawn follows k/∫k. False alarms below 1e-9 a test."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest

import dpkde
from dpkde.kernels import Bandwidth, Kernel, ProductKernel
from dpkde.kernels.base import Floats, gauss_points, graded

COUNT = 20_000
CLOSE = math.sqrt(math.log(2 / 1e-9) / (2 * COUNT))
"""Kolmogorov's distance, or Hoeffding's of numbers in [0, 1], exceeds it once in 10⁹ times."""


class Ripple(ProductKernel):
    """A profile without a formula, which rises again away from the origin."""

    name: ClassVar[str] = "ripple"
    bandwidth = Bandwidth.of(1.0)

    def integral(self, dim: int) -> float:
        """Return it by quadrature."""
        t, mass = gauss_points(graded(8.0))
        return float(2 * (self.profile(t) * mass).sum()) ** dim

    def profile(self, offsets: Floats) -> Floats:
        """Return e^{−t²/4}·(1 + cos 3t)/2."""
        return np.asarray(np.exp(-np.square(offsets) / 4) * (1 + np.cos(3 * offsets)) / 2)

    def profile_reach(self, tolerance: float) -> float:
        """Return √(4 ln(1/tolerance))."""
        return 2 * math.sqrt(-math.log(tolerance))


KERNELS: list[Kernel] = [
    dpkde.Gaussian(1.0),
    dpkde.Laplacian(1.0),
    dpkde.Cauchy(1.0),
    dpkde.Hat(1.0),
    dpkde.ExponentialLp(1.5, 1.5),
    dpkde.ExponentialLp(1.5, 1.0),
    dpkde.ExponentialLp(0.8, 0.8),
    dpkde.Matern(1.5),
    dpkde.RationalQuadratic(3.0),
    dpkde.Product([dpkde.Hat(2.0), dpkde.Laplacian(1.0)]),
    dpkde.Mixture([dpkde.Gaussian(1.0), dpkde.Laplacian(3.0)], weights=[1, 2]),
    Ripple(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_draws_follow_the_kernel(kernel: Kernel) -> None:
    """Kolmogorov and Smirnov's test on one axis; a scale that is 5% off is seen."""
    drawn = kernel.draw(np.random.default_rng(1), COUNT, 1)[:, 0]
    unit = kernel.bandwidth.smallest()
    edges = np.concatenate([[0.0], np.geomspace(1e-6, 1e7, 3000)])
    t, mass = gauss_points(edges)
    heights = kernel.evaluate(t[:, np.newaxis] * unit, np.zeros((1, 1)))[:, 0]
    upto = np.concatenate([[0.0], np.cumsum((heights * mass).reshape(-1, 8).sum(axis=1))])
    assert upto[-1] * 2 * unit == pytest.approx(kernel.integral(1), rel=1e-5)

    def distance(offsets: Floats) -> float:
        ranks = np.sort(np.abs(offsets))
        expected = np.interp(ranks, edges, upto / upto[-1])
        return float(np.abs(expected - np.arange(0.5, COUNT) / COUNT).max())

    assert distance(drawn) < CLOSE
    assert abs((drawn > 0).mean() - 0.5) < CLOSE
    assert distance(drawn * 1.1) > CLOSE


@pytest.mark.parametrize(
    ("kernel", "mean"),
    [
        (dpkde.Gaussian(1.0), 2**-1.5),
        (dpkde.ExponentialLp(1.5, 1.0), 2.0**-3),  # k² = k(2·)
        (dpkde.ExponentialLp(1.5, 1.5), 2.0**-2),
        (
            dpkde.RationalQuadratic(3.0),
            dpkde.RationalQuadratic(6.0, math.sqrt(0.5)).integral(3)
            / dpkde.RationalQuadratic(3.0).integral(3),
        ),
        # k² = (1 + z)²e^{−2z}, z = √3·r: ∫z²(1 + z)²e^{−2z} over ∫z²(1 + z)e^{−z}.
        (dpkde.Matern(1.5), (1 / 4 + 2 * 6 / 16 + 24 / 32) / 8),
    ],
    ids=repr,
)
def test_draws_in_space(kernel: Kernel, mean: float) -> None:
    """E k(e, 0) = ∫k²/∫k over three axes, which an error of 10% in scale moves by 0.03 or more."""
    offsets = kernel.draw(np.random.default_rng(2), COUNT, 3)
    assert abs(kernel.evaluate(offsets, np.zeros((1, 3))).mean() - mean) < CLOSE


def test_a_mixture_of_its_own_units() -> None:
    """Parts with other bandwidths, one a matrix: covariances add up by weight and integral."""
    turned = dpkde.Gaussian([[2.0, 0.5], [0.5, 1.0]])
    kernel = dpkde.Mixture([dpkde.Gaussian(0.5), turned])
    offsets = kernel.bandwidth.unwhiten(kernel.draw(np.random.default_rng(3), COUNT, 2))
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]])
    shares = np.array([0.25, np.linalg.det(matrix)])
    shares /= shares.sum()
    expected = shares[0] * np.eye(2) / 8 + shares[1] * matrix @ matrix / 2
    assert np.allclose(np.cov(offsets.T), expected, atol=0.15)


def test_what_cannot_be_drawn_says_so() -> None:
    generator = np.random.default_rng(0)
    for kernel in (dpkde.Erfc(1.0), dpkde.Geodesic(), dpkde.Jaccard()):
        with pytest.raises(dpkde.ParameterError, match="cannot be drawn from"):
            kernel.draw(generator, 3, 2)
    with pytest.raises(dpkde.ParameterError, match="cannot be drawn from"):
        dpkde.Product([dpkde.Matern(1.5), dpkde.Hat(1.0)]).draw(generator, 3, 2)
    with pytest.raises(dpkde.ParameterError, match="larger alpha"):
        dpkde.RationalQuadratic(1.0).draw(generator, 3, 2)


def test_unwhitening_takes_back() -> None:
    offsets = np.random.default_rng(4).normal(size=(7, 2))
    for value in (0.3, [0.3, 2.0], [[2.0, 0.5], [0.5, 1.0]]):
        bandwidth = Bandwidth.of(value)
        assert np.allclose(bandwidth.whiten(bandwidth.unwhiten(offsets)), offsets, atol=1e-12)
