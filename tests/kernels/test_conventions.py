"""Kernels by scikit-learn's names: the same values, and the same normalisation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.neighbors import KernelDensity

import dpkde
from dpkde.kernels.conventions import of_scikit_learn


@pytest.mark.parametrize(
    ("name", "dim"),
    [("gaussian", 1), ("gaussian", 3), ("exponential", 1), ("exponential", 3), ("linear", 1)],
)
def test_values_are_scikit_learns(name: str, dim: int) -> None:
    generator = np.random.default_rng(0)
    points, queries = generator.normal(size=(9, dim)), generator.normal(size=(7, dim))
    kernel = of_scikit_learn(name, 0.7, dim)
    with np.errstate(divide="ignore"):
        ours = np.log(kernel.evaluate(points, queries).mean(axis=0)) - kernel.log_integral(dim)
    theirs = KernelDensity(bandwidth=0.7, kernel=name).fit(points).score_samples(queries)
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_others_are_refused() -> None:
    for name in ("tophat", "epanechnikov", "cosine", "Gaussian", None, 3):
        with pytest.raises(dpkde.ParameterError, match="use kernel='gaussian'"):
            of_scikit_learn(name, 1.0, 1)
    with pytest.raises(dpkde.ParameterError, match="is a product"):
        of_scikit_learn("linear", 1.0, 2)


def test_bandwidths_per_column_and_wrong_ones() -> None:
    kernel: Any = of_scikit_learn("gaussian", [0.5, 2.0], 2)
    assert kernel == dpkde.Gaussian.from_std([0.5, 2.0])
    with pytest.raises(dpkde.ParameterError, match="bandwidth must be"):
        of_scikit_learn("gaussian", -1.0, 2)


@pytest.mark.parametrize(
    "kernel",
    [
        dpkde.Gaussian(0.5),
        dpkde.Gaussian([0.5, 2.0]),
        dpkde.Gaussian(np.array([[2.0, 0.5], [0.5, 1.0]])),
        dpkde.ExponentialLp(2, 1, 0.5),
        dpkde.ExponentialLp(1.5, 1.5, [1.0, 2.0]),
        dpkde.Laplacian(0.5),
        dpkde.Matern(1.5, 0.5),
    ],
    ids=repr,
)
def test_logarithms_of_integrals(kernel: dpkde.Kernel) -> None:
    assert kernel.log_integral(2) == pytest.approx(math.log(kernel.integral(2)), rel=1e-12)


def test_logarithms_of_profiles() -> None:
    offsets = np.linspace(-5, 5, 41)
    for kernel in (
        dpkde.Gaussian(1.0),
        dpkde.Laplacian(1.0),
        dpkde.Cauchy(1.0),
        dpkde.Hat(1.0),
        dpkde.ExponentialLp(1.3, 1.3, 1.0),
        dpkde.Product([dpkde.Gaussian(1.0), dpkde.Laplacian(2.0)]),
    ):
        with np.errstate(divide="ignore"):
            exact = np.log(kernel.profile(offsets))
        assert kernel.log_profile(offsets) == pytest.approx(exact, rel=1e-12, abs=1e-12)
    assert dpkde.Gaussian(1.0).log_profile(np.array(1e6)) == -1e12
