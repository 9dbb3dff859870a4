"""Kernels averaged over normal clouds: against the kernel itself, at many points of the cloud."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde.kernels import Kernel
from dpkde.kernels.blur import AxisBlur, cauchy_axis, laplacian_axis

KERNELS: tuple[Kernel, ...] = (
    dpkde.Gaussian(1.0),
    dpkde.Laplacian(1.0),
    dpkde.Cauchy(1.0),
    dpkde.Matern(0.5, 1.0),
    dpkde.Matern(2.5, 1.0),
    dpkde.Matern(50, 1.0),
    dpkde.RationalQuadratic(0.7, 1.0),
    dpkde.RationalQuadratic(1e4, 1.0),
    dpkde.ExponentialLp(2, 1, 1.0),
    dpkde.ExponentialLp(2, 2, 1.0),
    dpkde.ExponentialLp(1, 1, 1.0),
    dpkde.Mixture([dpkde.Gaussian(1.0), dpkde.Matern(1.5, 3.0)], [1, 2]),
)


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_blurred_kernel_is_its_mean_over_the_cloud(kernel: Kernel, dim: int) -> None:
    generator = np.random.default_rng(dim)
    offsets = 2 * generator.standard_normal((6, dim))
    variances = generator.uniform(0.01, 3, size=(2, dim))
    blur = kernel.blur(dim)
    assert blur is not None
    blurred = blur(offsets, variances)
    for cloud in range(2):
        points = generator.standard_normal((50_000, dim)) * np.sqrt(variances[cloud])
        values = kernel.evaluate(points, offsets)
        spread = values.std(axis=0) / np.sqrt(len(points))
        assert (np.abs(blurred[:, cloud] - values.mean(axis=0)) < 7 * spread + 1e-6).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_without_variance_it_is_the_kernel(kernel: Kernel) -> None:
    offsets = np.random.default_rng(1).standard_normal((50, 2)) * 3
    blur = kernel.blur(2)
    assert blur is not None
    values = blur(offsets, np.full((1, 1), 1e-14))[:, 0]
    np.testing.assert_allclose(values, kernel.evaluate(np.zeros((1, 2)), offsets)[0], atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_round_clouds_are_clouds(kernel: Kernel) -> None:
    offsets = np.random.default_rng(2).standard_normal((5, 4))
    blur = kernel.blur(4)
    assert blur is not None
    round_ones = blur(offsets, np.array([[0.3], [2.0]]))
    np.testing.assert_allclose(round_ones, blur(offsets, np.full((2, 4), [[0.3], [2.0]])))


def test_directions_of_its_own_turn_a_cloud() -> None:
    """Against a matrix: E e^{−‖t + z‖²} = det(1 + 2Σ)^{−½}·exp(−tᵀ(1 + 2Σ)⁻¹t)."""
    generator = np.random.default_rng(3)
    factors, variances = generator.standard_normal((1, 5, 2)), generator.uniform(0.1, 2, (1, 5))
    offsets = generator.standard_normal((7, 5))
    blur = dpkde.Gaussian(1.0).blur(5)
    assert blur is not None
    assert blur.takes_factors
    whole = np.eye(5) + 2 * (np.diag(variances[0]) + factors[0] @ factors[0].T)
    quadratic = np.einsum("ni,ij,nj->n", offsets, np.linalg.inv(whole), offsets)
    expected = np.exp(-quadratic) / np.sqrt(np.linalg.det(whole))
    np.testing.assert_allclose(blur(offsets, variances, factors)[:, 0], expected, rtol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [
        dpkde.Erfc(1.0),
        dpkde.Hat(1.0),
        dpkde.ExponentialLp(1.5, 1, 1.0),
        dpkde.Product([dpkde.Gaussian(1.0), dpkde.Laplacian(1.0)]),
        dpkde.Mixture([dpkde.Gaussian(1.0), dpkde.Laplacian(1.0)]),
        dpkde.Mixture([dpkde.Gaussian((1.0, 2.0)), dpkde.Gaussian(1.0)]),
    ],
    ids=repr,
)
def test_kernels_without_a_formula_say_so(kernel: Kernel) -> None:
    assert kernel.blur(2) is None


def test_far_offsets_are_finite() -> None:
    far = np.array([[1e4, 0.0], [1e150, 0.0]])
    for kernel in KERNELS:
        blur = kernel.blur(2)
        assert blur is not None
        with np.errstate(all="ignore"):
            values = blur(far, np.array([[1e-8], [100.0]]))
        assert ((values >= 0) & (values <= 1)).all()


@pytest.mark.parametrize("log", [laplacian_axis, cauchy_axis])
@pytest.mark.parametrize("variance", [1e-8, 0.01, 1.0, 50.0])
def test_tables_of_an_axis_are_as_good_as_the_formula(log: Any, variance: float) -> None:
    generator = np.random.default_rng(5)
    offsets = np.concatenate(
        [10 ** generator.uniform(-6, 4.5, 500), generator.uniform(0, 3 * variance + 5, 500)]
    )
    values = AxisBlur(log)(offsets[:, np.newaxis], np.array([[variance]]))[:, 0]
    np.testing.assert_allclose(values, np.exp(log(offsets, variance)), rtol=1e-6)
