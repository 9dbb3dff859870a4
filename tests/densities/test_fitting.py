"""Weights of sites: the price of mass, products with the kernel, where mass may be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpkde
from dpkde.densities import fitting
from dpkde.densities.survey import SiteAxis
from dpkde.kernels import ProductKernel

AXIS = SiteAxis(0, 6.0, 41)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.floats(-3, 3))
def test_the_price_makes_the_sum_one(seed: int, count: int, guess: float) -> None:
    """Against sorting, the slow and obvious way."""
    generator = np.random.default_rng(seed)
    values, prices = generator.normal(size=count), generator.uniform(0.01, 1, count)
    weights, price = fitting.reduced(values, prices, guess)
    ratios = -np.sort(-values / prices)
    sums = [np.maximum(values - ratio * prices, 0).sum() for ratio in ratios]
    last = int(np.searchsorted(sums, 1.0))  # sums rise as ratios fall
    part = values / prices >= ratios[max(last - 1, 0)]
    assert price == pytest.approx((values[part].sum() - 1) / prices[part].sum(), abs=1e-9)
    assert weights.sum() == pytest.approx(1, abs=1e-9)
    assert (weights >= 0).all()


@pytest.mark.parametrize("kernel", [dpkde.Gaussian(1.0), dpkde.Cauchy(1.0), dpkde.Hat(1.0)])
@pytest.mark.parametrize("parts", [1, 4])
def test_products_with_the_kernel(kernel: ProductKernel, parts: int) -> None:
    """By diagonals and by transforms, against the matrix itself."""
    axes = (SiteAxis(0, 12.0, 83, parts), SiteAxis(1, 1.0, 5, parts))
    weights = np.random.default_rng(0).random((83, 5))
    smooth, most = fitting.smoothing(kernel, axes, weights.shape)
    first, second = (
        axis.seen(kernel, np.subtract.outer(axis.places, axis.places)) for axis in axes
    )
    assert np.allclose(smooth(weights), first @ weights @ second.T, atol=1e-7)
    top = np.linalg.eigvalsh(first).max() * np.linalg.eigvalsh(second).max()
    assert top <= most * (1 + 1e-12)


def _field(weights: np.ndarray, kernel: ProductKernel) -> np.ndarray:
    matrix = kernel.profile(np.subtract.outer(AXIS.places, AXIS.places))
    return np.asarray(matrix @ weights @ matrix.T)


def _two_towns() -> np.ndarray:
    weights = np.zeros((41, 41))
    weights[10, 12], weights[30, 25] = 0.7, 0.3
    return weights


def test_without_noise_nothing_changes() -> None:
    kernel, axes = dpkde.Gaussian(1.0), (AXIS, SiteAxis(1, 6.0, 41))
    field = _field(_two_towns(), kernel)
    error, inside = np.full(field.shape, 1e-5), np.ones(field.shape, bool)
    weights = fitting.fitted(kernel, axes, field, error, inside, 4.0)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert (weights >= 0).all()
    assert np.abs(_field(weights, kernel) - field).max() < 2e-5


def test_an_empty_ocean_stays_empty_and_a_city_as_it_was() -> None:
    """Noise of the KDE's own smoothness, at 4% of the peak; Σw = 1 takes its mass off the city."""
    kernel, axes = dpkde.Gaussian(1.0), (AXIS, SiteAxis(1, 6.0, 41))
    truth, inside = _field(_two_towns(), kernel), np.ones((41, 41), bool)
    ours, clipped, near = [], [], []
    for seed in range(4):
        noise = _field(np.random.default_rng(seed).normal(size=truth.shape), kernel)
        noise *= 0.03 / noise.std()
        field = truth + noise
        weights = fitting.fitted(kernel, axes, field, np.full(field.shape, 0.03), inside, 4.3)
        answers = _field(weights, kernel)
        ours.append(np.abs(answers - truth).mean())
        clipped.append(np.abs(np.maximum(field, 0) - truth).mean())
        dense = truth > 0.2
        near.append(np.abs(answers - field)[dense].mean() / 0.03)
    assert np.mean(ours) < np.mean(clipped) / 3
    assert np.mean(near) < 0.6  # dense parts keep their answers


def test_missing_mass_is_looked_for_further_out() -> None:
    """Half of the mass lies spread out at one standard error, where no site is certain."""
    kernel, axes = dpkde.Gaussian(1.0), (AXIS, SiteAxis(1, 6.0, 41))
    weights = 0.5 * _two_towns()
    weights[:, 20:] += 0.5 / weights[:, 20:].size
    field = _field(weights, kernel)
    error = np.full(field.shape, float(field[:, 38].mean()))
    found = fitting.fitted(kernel, axes, field, error, np.ones(field.shape, bool), 4.0)
    assert found[:, 28:].sum() == pytest.approx(weights[:, 28:].sum(), abs=0.1)


def test_where_nothing_stands_out_all_is_even() -> None:
    kernel, axes = dpkde.Gaussian(1.0), (AXIS, SiteAxis(1, 6.0, 41))
    noise = np.random.default_rng(0).normal(size=(41, 41))
    inside = np.zeros((41, 41), bool)
    inside[5:30] = True
    for scale in (1e-3, 10.0):  # and where noise is larger than any KDE
        certain = 9.0 if scale < 1 else 2.0
        found = fitting.fitted(
            kernel, axes, noise * scale, np.full_like(noise, scale), inside, certain
        )
        assert np.array_equal(found, inside / inside.sum())
