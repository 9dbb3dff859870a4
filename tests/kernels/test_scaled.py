"""Kernels with other bandwidths, and how the units of two bandwidths compare."""

from __future__ import annotations

import numpy as np
import pytest

import dpkde
from dpkde.errors import ParameterError
from dpkde.kernels import Kernel
from dpkde.kernels.bandwidth import Bandwidth

POINTS = np.random.default_rng(0).normal(size=(6, 2))


@pytest.mark.parametrize(
    "kernel",
    [
        dpkde.Gaussian(0.5),
        dpkde.Laplacian([0.5, 2.0]),
        dpkde.Cauchy([[1.0, 0.3], [0.3, 2.0]]),
        dpkde.ExponentialLp(1.5, 1.0, 0.7),
        dpkde.Matern(1.5, 0.7),
        dpkde.RationalQuadratic(2.0, 0.7),
        dpkde.Erfc(0.7),
        dpkde.kernels.Product([dpkde.Gaussian(1.0), dpkde.Hat(3.0)]),
        dpkde.kernels.Mixture([dpkde.Gaussian(1.0), dpkde.Hat(3.0)], weights=[1, 3]),
    ],
    ids=repr,
)
def test_a_scaled_kernel_sees_shorter_distances(kernel: Kernel) -> None:
    """k_{2σ}(2x, 2y) = k_σ(x, y)."""
    wide = kernel.scaled(2.0)
    assert type(wide) is type(kernel)
    np.testing.assert_allclose(
        wide.evaluate(2 * POINTS, 2 * POINTS), kernel.evaluate(POINTS, POINTS), atol=1e-12
    )


def test_kernels_without_a_bandwidth_cannot_be_scaled() -> None:
    with pytest.raises(ParameterError, match="no bandwidth to set"):
        dpkde.Geodesic().scaled(2.0)
    with pytest.raises(ParameterError, match="bandwidth must be"):
        dpkde.Gaussian(1.0).scaled(0.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.5, 2.0),
        (0.5, [1.0, 2.0]),
        ([0.5, 3.0], 2.0),
        ([[1.0, 0.3], [0.3, 2.0]], [[3.0, 0.9], [0.9, 6.0]]),
        ([1.0, 2.0], [[4.0, 0.0], [0.0, 1.0]]),
    ],
    ids=str,
)
def test_ratios_turn_coordinates_into_others(one: object, other: object) -> None:
    first, second = Bandwidth.of(one), Bandwidth.of(other)  # type: ignore[arg-type]
    ratios = first.ratios(second, 2)
    assert ratios is not None
    np.testing.assert_allclose(first.whiten(POINTS) * ratios, second.whiten(POINTS))


def test_matrices_that_turn_space_differently_have_no_ratios() -> None:
    turned = Bandwidth.of([[2.0, 1.0], [1.0, 2.0]])
    assert turned.ratios(Bandwidth.of(1.0), 2) is None
    assert Bandwidth.of([1.0, 3.0]).ratios(turned, 2) is None
