"""Kernels: values, bandwidths, integrals, spectra, and the stable laws behind them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from dpkde.kernels import Bandwidth, Kernel, kernel_from_json, stable
from dpkde.kernels.base import cosine_transform

MATRIX = np.array([[2.0, 0.5], [0.5, 1.0]])
WORD: Any = "x"
ALONE: Any = dpkde.Hat(1.0)


@pytest.mark.parametrize(
    ("bandwidth", "matrix"),
    [(0.5, 0.5 * np.eye(2)), ([0.5, 3.0], np.diag([0.5, 3.0])), (MATRIX, MATRIX)],
)
def test_values(bandwidth: Any, matrix: Any) -> None:
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(5, 2)), generator.normal(size=(4, 2))
    values = dpkde.Gaussian(bandwidth).evaluate(x, y)
    inverse = np.linalg.inv(matrix)
    for i in range(5):
        for j in range(4):
            gap = inverse @ (x[i] - y[j])
            assert values[i, j] == pytest.approx(math.exp(-(gap @ gap)), rel=1e-12)


def test_from_std_is_the_statisticians_convention() -> None:
    x, y = np.array([[0.0]]), np.array([[0.7]])
    value = dpkde.Gaussian.from_std(0.3).evaluate(x, y)[0, 0]
    assert value == pytest.approx(math.exp(-(0.7**2) / (2 * 0.3**2)))


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
        1e-151,
        1e151,
        [[1e-160, 0.0], [0.0, 1.0]],
        [[1.0, 2.0]],
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 0.5], [0.4, 1.0]],
        np.zeros((2, 2, 2)),
    ],
)
def test_wrong_bandwidths(wrong: Any) -> None:
    with pytest.raises(dpkde.ParameterError, match="bandwidth must be"):
        dpkde.Gaussian(wrong)


@pytest.mark.parametrize("kind", [dpkde.Gaussian, dpkde.Laplacian, dpkde.Cauchy, dpkde.Hat])
def test_a_bandwidth_is_asked_for(kind: Any) -> None:
    for act in (kind, lambda: kind(None), lambda: kind(bandwidth=None)):
        with pytest.raises(dpkde.ParameterError, match=rf"needs a bandwidth.*: {kind.__name__}\("):
            act()


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
    densities = dpkde.nonprivate.kde(points, queries, kernel)
    squares = ((points[:, np.newaxis] - queries) ** 2).sum(axis=2)
    assert np.allclose(densities, np.exp(-squares / 1.3**2).mean(axis=0))
    assert dpkde.nonprivate.kde(points[:0], queries, kernel).tolist() == [0.0] * 7


def test_a_bandwidth_matrix_is_symmetric_at_every_scale() -> None:
    for scale in (1e-8, 1.0, 1e8):
        with pytest.raises(dpkde.ParameterError, match="bandwidth"):
            dpkde.Gaussian(scale * np.array([[1.0, 0.5], [0.0, 1.0]]))
        dpkde.Gaussian(scale * np.array([[1.0, 0.5], [0.5 + 1e-13, 1.0]]))
    with pytest.raises(dpkde.ParameterError, match="std must be"):
        dpkde.Gaussian.from_std("wide")
    with pytest.raises(dpkde.ParameterError, match="bandwidth"):
        dpkde.Gaussian.from_std([[1.0, 0.5], [0.0, 1.0]])


def test_points_that_are_not_finite_are_left_out() -> None:
    points = np.array([[0.0], [np.nan], [1.0], [np.inf]])
    densities = dpkde.nonprivate.kde(points, [[0.0]], dpkde.Gaussian(1.0))
    assert densities == pytest.approx((1 + math.exp(-1)) / 2)


def test_a_family_without_noise() -> None:
    generator = np.random.default_rng(3)
    points, queries = generator.normal(size=(500, 3)), generator.normal(size=(7, 3))
    kernel = dpkde.Gaussian(1.3)
    estimates = dpkde.nonprivate.estimate(points, queries, kernel, dpkde.Fourier(1 << 14))
    assert np.abs(estimates - dpkde.nonprivate.kde(points, queries, kernel)).max() < 0.03
    with pytest.raises(dpkde.ParameterError, match="set the family's parameters"):
        dpkde.nonprivate.estimate(points, queries, kernel, dpkde.Fourier())


SPACE: dict[str, tuple[Kernel, Callable[[NDArray[np.float64]], float]]] = {
    "laplacian": (dpkde.Laplacian(1.0), lambda t: math.exp(-np.abs(t).sum())),
    "cauchy": (dpkde.Cauchy(1.0), lambda t: float(np.prod(1 / (1 + t**2)))),
    "hat": (dpkde.Hat(1.0), lambda t: float(np.prod(np.maximum(0, 1 - np.abs(t))))),
    "lp": (
        dpkde.ExponentialLp(1.5, 1),
        lambda t: math.exp(-float((np.abs(t) ** 1.5).sum() ** (1 / 1.5))),
    ),
    "lp to the p": (
        dpkde.ExponentialLp(1.3, 1.3),
        lambda t: math.exp(-float((np.abs(t) ** 1.3).sum())),
    ),
    "matern 1/2": (dpkde.Matern(0.5), lambda t: math.exp(-math.hypot(*t))),
    "matern 3/2": (
        dpkde.Matern(1.5),
        lambda t: (1 + 3**0.5 * math.hypot(*t)) * math.exp(-(3**0.5) * math.hypot(*t)),
    ),
    "rational quadratic": (
        dpkde.RationalQuadratic(2.5),
        lambda t: (1 + math.hypot(*t) ** 2 / 2.5) ** -2.5,
    ),
    "erfc": (
        dpkde.Erfc(1.0),
        lambda t: math.erfc(math.hypot(*t)) / (2 - math.erfc(math.hypot(*t))),
    ),
    "product": (
        dpkde.Product([dpkde.Hat(2.0), dpkde.Laplacian(0.5)]),
        lambda t: float(np.prod(np.maximum(0, 1 - np.abs(t) / 2))) * math.exp(-2 * np.abs(t).sum()),
    ),
    "mixture": (
        dpkde.Mixture([dpkde.Gaussian(1.0), dpkde.Cauchy(2.0)], [1, 3]),
        lambda t: math.exp(-(t @ t)) / 4 + 3 / 4 * float(np.prod(1 / (1 + t**2 / 4))),
    ),
}


@pytest.mark.parametrize("name", SPACE)
def test_values_are_those_of_the_formula(name: str) -> None:
    kernel, formula = SPACE[name]
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(5, 2)) / 2, generator.normal(size=(4, 2)) / 2
    values = kernel.evaluate(x, y)
    for i in range(5):
        for j in range(4):
            assert values[i, j] == pytest.approx(formula(x[i] - y[j]), rel=1e-12)
    assert np.allclose(np.diag(kernel.evaluate(x, x)), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("make", [dpkde.Laplacian, dpkde.Cauchy, dpkde.Hat, dpkde.Erfc])
def test_bandwidths_of_every_kind(make: Callable[[Any], Kernel]) -> None:
    x, y = np.random.default_rng(1).normal(size=(2, 6, 2)) / 3
    for width, matrix in ((0.5, 0.5 * np.eye(2)), ([0.5, 3.0], np.diag([0.5, 3.0])), (MATRIX,) * 2):
        inverse = np.linalg.inv(matrix)
        assert np.allclose(
            make(width).evaluate(x, y), make(1.0).evaluate(x @ inverse, y @ inverse), rtol=1e-10
        )
        assert make(width).integral(2) == pytest.approx(
            make(1.0).integral(2) * float(np.linalg.det(matrix))
        )


@pytest.mark.parametrize("name", sorted(set(SPACE) - {"mixture", "cauchy"}))
def test_integrals(name: str) -> None:
    """Over a square of 60 bandwidths, cells of 0.1, finer near the middle; tails below 1e-3."""
    kernel, _ = SPACE[name]
    axis = np.concatenate([-np.geomspace(40, 1e-3, 700), np.geomspace(1e-3, 40, 700)])
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    values = kernel.evaluate(grid, np.zeros((1, 2)))[:, 0].reshape(1400, 1400)
    total = np.trapezoid(np.trapezoid(values, axis), axis)
    assert total == pytest.approx(kernel.integral(2), rel=5e-3)


def test_integrals_of_products_and_mixtures_of_axes() -> None:
    assert dpkde.Cauchy(2.0).integral(3) == pytest.approx((2 * math.pi) ** 3)
    mixed = dpkde.Mixture([dpkde.Gaussian(1.0), dpkde.Laplacian(2.0)], [1, 1])
    assert mixed.integral(2) == pytest.approx((math.pi + 16) / 2)
    assert dpkde.Erfc(1.0).integral(50) > 0
    assert dpkde.Geodesic().integral(3) == pytest.approx(2 * math.pi)


def test_kernels_without_an_integral_say_so() -> None:
    for kernel in (dpkde.RationalQuadratic(1.0), dpkde.Jaccard()):
        with pytest.raises(dpkde.ParameterError, match=r"integral|normalising"):
            kernel.integral(2)
    with pytest.raises(dpkde.ParameterError, match="no formula"):
        dpkde.Product([dpkde.Erfc(1.0), dpkde.Hat(1.0)]).integral(2)


@pytest.mark.parametrize("name", SPACE)
def test_every_spectrum_gives_its_kernel(name: str) -> None:
    """E cos ω·Δ over 200,000 frequencies: standard error below 0.0016; 6 of them."""
    kernel, _ = SPACE[name]
    unit = kernel.bandwidth.smallest()
    assert kernel.is_shift_invariant
    omega = kernel.spectrum(np.random.default_rng(0), 200_000, 3)
    for gap in (np.zeros(3), np.array([0.3, -0.2, 0.5]), np.array([1.1, 0.0, 0.0])):
        exact = kernel.evaluate(gap[np.newaxis], np.zeros((1, 3)))[0, 0]
        assert np.cos(omega @ (gap / unit)).mean() == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("p", [0.5, 0.8, 1.0, 1.3, 1.7, 2.0])
def test_stable_laws(p: float) -> None:
    """Characteristic function e^{−|t|^p}, Laplace transform e^{−s^p}: to 6 standard errors."""
    generator = np.random.default_rng(2)
    draws = stable.symmetric(generator, p, (400_000,))
    for t in (0.3, 1.0, 2.0):
        assert np.cos(t * draws).mean() == pytest.approx(math.exp(-(t**p)), abs=6 / 400_000**0.5)
    if p <= 1:
        sizes = stable.positive(generator, p, (400_000,))
        for s in (0.3, 1.0, 2.0):
            assert np.exp(-s * sizes).mean() == pytest.approx(math.exp(-(s**p)), abs=0.005)


@pytest.mark.parametrize("p", [1.1, 1.3, 1.7, 2.0])
def test_size_biased_draws_are_weighted_by_size(p: float) -> None:
    """P(|θ| ≤ 1) under the biased law is E[|S|; |S| ≤ 1]/E|S|, E|S| = 2Γ(1 − 1/p)/π."""
    generator = np.random.default_rng(3)
    ordinary = np.abs(stable.symmetric(generator, p, (1_000_000,)))
    mean = 2 * math.gamma(1 - 1 / p) / math.pi
    biased = stable.size_biased(generator, p, 400_000)
    for edge in (0.5, 1.0, 3.0):
        expected = float(np.where(ordinary <= edge, ordinary, 0).mean()) / mean
        assert (np.abs(biased) <= edge).mean() == pytest.approx(expected, abs=0.005)
    assert abs((biased > 0).mean() - 0.5) < 0.005


def test_directions_and_sets() -> None:
    x = np.array([[1.0, 0.0], [-3.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    values = dpkde.Geodesic().evaluate(x, np.array([[2.0, 0.0]]))[:, 0]
    assert np.allclose(values, [1, 0, 0.75, 0])
    sets = np.array([[1.0, 1, 0], [0, 1, 1], [0, 0, 0], [7, -2, 0]])
    values = dpkde.Jaccard().evaluate(sets, sets)
    assert values[0].tolist() == [1, 1 / 3, 0, 1]
    assert values[2, 2] == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dpkde.ExponentialLp(2.5, 1), "p must be above 0 and at most 2"),
        (lambda: dpkde.ExponentialLp(0, 1), "p must be above 0"),
        (lambda: dpkde.ExponentialLp(True, 1), "p must be"),
        (lambda: dpkde.ExponentialLp(0.5, 1), "power must be at most p = 0.5"),
        (lambda: dpkde.ExponentialLp(1.5, 0), "power must be above 0"),
        (lambda: dpkde.ExponentialLp(1.5, WORD), "power must be"),
        (lambda: dpkde.Matern(0), "nu must be above 0"),
        (lambda: dpkde.Matern(1e9), "at most 50"),
        (lambda: dpkde.RationalQuadratic(-1), "alpha must be above 0"),
        (lambda: dpkde.Laplacian(0), "bandwidth must be"),
        (lambda: dpkde.Product([]), "1 to 16 kernels"),
        (lambda: dpkde.Product(ALONE), "a list"),
        (lambda: dpkde.Product([dpkde.Hat(1.0), 3]), "1 to 16 kernels"),
        (lambda: dpkde.Product([dpkde.Hat(1.0), dpkde.Geodesic()]), "cannot be combined"),
        (lambda: dpkde.Product([dpkde.Hat([1, 2]), dpkde.Hat([1, 2, 3])]), "2 and 3 axes"),
        (lambda: dpkde.Mixture([dpkde.Hat(1.0)], [0]), "weights"),
        (lambda: dpkde.Mixture([dpkde.Hat(1.0)], [WORD]), "weights"),
        (lambda: dpkde.Mixture([dpkde.Hat(1.0)], [1, 2]), "weights"),
    ],
)
def test_wrong_parameters_of_kernels(make: Callable[[], Kernel], message: str) -> None:
    with pytest.raises(dpkde.ParameterError, match=message):
        make()


@pytest.mark.parametrize("name", SPACE)
def test_kernels_come_back_from_json(name: str) -> None:
    kernel, _ = SPACE[name]
    text = json.dumps(kernel.to_json())
    assert kernel_from_json(kernel.name, kernel.version, json.loads(text)) == kernel
    with pytest.raises(dpkde.FormatError, match="damaged"):
        kernel_from_json(kernel.name, kernel.version, {"wrong": 1})


def test_kernels_nested_too_deep_are_refused() -> None:
    inner: dict[str, Any] = {"name": "hat", "version": 1, "parameters": {"bandwidth": 1.0}}
    for _ in range(2000):
        inner = {"name": "product", "version": 1, "parameters": {"kernels": [inner]}}
    with pytest.raises(dpkde.FormatError):
        kernel_from_json("product", 1, inner["parameters"])


@pytest.mark.parametrize(
    ("kernel", "formula"),
    [
        (dpkde.ExponentialLp(1, 1), lambda w: 2 / (1 + w**2)),
        (dpkde.ExponentialLp(2, 2), lambda w: math.sqrt(math.pi) * np.exp(-(w**2) / 4)),
        (dpkde.Product([dpkde.Laplacian(1.0), dpkde.Laplacian(1.0)]), lambda w: 4 / (4 + w**2)),
    ],
)
def test_transforms_by_quadrature(kernel: Any, formula: Callable[[Any], Any]) -> None:
    frequencies = np.array([0.0, 0.05, 0.5, 1.0, 3.0, 10.0, 300.0])
    assert np.allclose(kernel.profile_transform(frequencies), formula(frequencies), atol=1e-3)


@pytest.mark.parametrize(
    "known",
    [dpkde.Gaussian(1.0), dpkde.Laplacian(1.0), dpkde.Cauchy(1.0), dpkde.Hat(1.0)],
    ids=lambda kernel: kernel.name,
)
def test_quadrature_gives_known_transforms(known: Any) -> None:
    """As far as 512, beyond which Cauchy's profile has 0.004 left."""
    frequencies = np.array([0.0, 0.05, 0.5, 1.0, 3.0, 10.0, 300.0])
    transform = cosine_transform(known, frequencies, 512.0)
    assert np.allclose(known.profile_transform(frequencies), transform, atol=1e-2)
