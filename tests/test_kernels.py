"""The Gaussian kernel: values, bandwidths, integral, spectrum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde.kernels import Bandwidth, Kernel, kernel_from_json

MATRIX = np.array([[2.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize(
    ("bandwidth", "matrix"),
    [(0.5, 0.5 * np.eye(2)), ([0.5, 3.0], np.diag([0.5, 3.0])), (MATRIX, MATRIX)],
)
def test_values(bandwidth: Any, matrix: Any) -> None:
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(5, 2)), generator.normal(size=(4, 2))
    found = dpkde.Gaussian(bandwidth).evaluate(x, y)
    inverse = np.linalg.inv(matrix)
    for i in range(5):
        for j in range(4):
            gap = inverse @ (x[i] - y[j])
            assert found[i, j] == pytest.approx(math.exp(-(gap @ gap)), rel=1e-12)


def test_from_std_is_the_statisticians_convention() -> None:
    x, y = np.array([[0.0]]), np.array([[0.7]])
    found = dpkde.Gaussian.from_std(0.3).evaluate(x, y)[0, 0]
    assert found == pytest.approx(math.exp(-(0.7**2) / (2 * 0.3**2)))


@pytest.mark.parametrize("bandwidth", [0.5, [0.5, 1.5], MATRIX])
def test_the_integral_makes_a_density(bandwidth: Any) -> None:
    kernel = dpkde.Gaussian(bandwidth)
    axis = np.linspace(-12, 12, 601)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    total = kernel.evaluate(grid, np.zeros((1, 2))).sum() * (axis[1] - axis[0]) ** 2
    assert total == pytest.approx(kernel.integral(2), rel=1e-6)


def test_the_spectrum_gives_the_kernel() -> None:
    """E cos ω·Δ over 400,000 frequencies: standard error below 0.0016; 6 of them."""
    kernel = dpkde.Gaussian(1.0)
    omega = kernel.spectrum(np.random.default_rng(0), 400_000, 3)
    for gap in (np.zeros(3), np.array([0.3, -0.2, 0.5]), np.array([1.5, 0.0, 0.0])):
        assert np.cos(omega @ gap).mean() == pytest.approx(math.exp(-(gap @ gap)), abs=0.007)


def test_whitening_is_a_function_of_the_row() -> None:
    generator = np.random.default_rng(1)
    dim = 40
    root = generator.normal(size=(dim, dim))
    width = Bandwidth.of(root @ root.T + np.eye(dim))
    rows = generator.normal(size=(1001, dim))
    together = width.whiten(rows)
    for i in (0, 1, 500, 1000):
        assert np.array_equal(width.whiten(rows[i : i + 1])[0], together[i])
    assert np.allclose(together, rows @ np.linalg.inv(root @ root.T + np.eye(dim)))


@pytest.mark.parametrize(
    "wrong",
    [
        0,
        -1.0,
        math.nan,
        math.inf,
        [],
        [1.0, 0.0],
        "wide",
        None,
        [[1.0, 2.0]],
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 0.5], [0.4, 1.0]],
        np.zeros((2, 2, 2)),
    ],
)
def test_wrong_bandwidths(wrong: Any) -> None:
    with pytest.raises(dpkde.ParameterError, match="bandwidth must be"):
        dpkde.Gaussian(wrong)


@pytest.mark.parametrize("wrong", [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.5], [0.4, 1.0]]])
def test_matrices_have_to_be_symmetric_and_positive(wrong: Any) -> None:
    with pytest.raises(dpkde.ParameterError, match="positive definite"):
        dpkde.Gaussian(wrong)


def test_kernels_are_values() -> None:
    assert dpkde.Gaussian(1) == dpkde.Gaussian(1.0) != dpkde.Gaussian(2)
    assert hash(dpkde.Gaussian([1, 2])) == hash(dpkde.Gaussian([1.0, 2.0]))
    assert dpkde.Gaussian(1.0) != dpkde.Gaussian([1.0])
    for kernel in (dpkde.Gaussian(0.1), dpkde.Gaussian([1, 2]), dpkde.Gaussian(MATRIX)):
        assert isinstance(kernel, Kernel)
        assert kernel_from_json("gaussian", 1, kernel.to_json()) == kernel
    assert repr(dpkde.Gaussian(0.25)) == "Gaussian(bandwidth=0.25)"


def test_exact_kde() -> None:
    generator = np.random.default_rng(2)
    points, queries = generator.normal(size=(5003, 3)), generator.normal(size=(7, 3))
    kernel = dpkde.Gaussian(1.3)
    found = dpkde.nonprivate.kde(points, queries, kernel)
    squares = ((points[:, np.newaxis] - queries) ** 2).sum(axis=2)
    assert np.allclose(found, np.exp(-squares / 1.3**2).mean(axis=0))
    assert dpkde.nonprivate.kde(points[:0], queries, kernel).tolist() == [0.0] * 7


def test_a_family_without_noise() -> None:
    generator = np.random.default_rng(3)
    points, queries = generator.normal(size=(500, 3)), generator.normal(size=(7, 3))
    kernel = dpkde.Gaussian(1.3)
    found = dpkde.nonprivate.estimate(points, queries, kernel, dpkde.Fourier(1 << 14))
    assert np.abs(found - dpkde.nonprivate.kde(points, queries, kernel)).max() < 0.03
    with pytest.raises(dpkde.ParameterError, match="set the family's parameters"):
        dpkde.nonprivate.estimate(points, queries, kernel, "fourier")
