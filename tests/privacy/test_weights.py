"""Weights as products against weights one by one, and compiled loops against NumPy."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace, Law, MaxNorm, inversion
from dpkde.privacy.laws.factors import LAPLACE, SINC
from dpkde.privacy.laws.quantiles import half_widths
from dpkde.privacy.laws.weights import EXACT, Products, Weights

Floats = NDArray[np.float64]


def _products(sizes: list[int], seed: int, rows: int = 3) -> Products:
    """Factors that fade like coefficients do, some of them zero."""
    generator = np.random.default_rng(seed)
    return Products.of(
        [
            generator.normal(size=(rows, size)) * np.exp(-generator.uniform(0, 9, (rows, size)))
            for size in sizes
        ]
    )


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 2**32), st.integers(0, 9)
)
@settings(max_examples=60)
def test_products_split_like_all_of_them(sizes: list[int], seed: int, zeros: int) -> None:
    """The largest, the largest of the others, and every power sum to 10⁻¹²: nothing cancels."""
    products = _products(sizes, seed)
    generator = np.random.default_rng(seed)
    for _ in range(zeros):
        row, factor = generator.integers(3), generator.integers(len(sizes))
        products.factors[row, factor, generator.integers(sizes[factor])] = 0.0
    split, every = products.split(), np.sort(products.dense().values ** 2)[:, ::-1]
    largest = every[:, :EXACT]
    assert np.allclose(split.squares[:, : largest.shape[1]], largest, rtol=1e-12, atol=0)
    assert not split.squares[:, largest.shape[1] :].any()
    others = every[:, EXACT:]
    assert np.allclose(split.edge, others.max(axis=1, initial=0.0), rtol=1e-12, atol=0)
    for k in range(split.powers.shape[1]):
        assert np.allclose(
            split.powers[:, k], (others ** (k + 1)).sum(axis=1), rtol=1e-11, atol=1e-300
        )


def test_equal_and_missing_entries() -> None:
    """All alike: any 64 are the largest. A factor of zeros: nothing is left."""
    split = Products.of([np.full((1, 12), 0.5), np.full((1, 11), 2.0)]).split()
    assert (split.squares == 1.0).all()
    assert split.powers[0] == pytest.approx(np.full(12, 132.0 - EXACT), rel=1e-12)
    nothing = Products.of([np.full((1, 12), 0.5), np.zeros((1, 11)), np.ones((1, 3))]).split()
    assert not nothing.squares.any()
    assert not nothing.powers.any()
    assert not nothing.edge.any()
    lost = Products.of([np.array([[math.nan, 1.0]])]).split()
    assert lost.squares[0, :2].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "law",
    [DiscreteLaplace(Fraction(100)), MaxNorm(Fraction(9), 900), DiscreteGaussian(Fraction(5))],
)
@pytest.mark.parametrize("sizes", [[3], [9, 8], [1, 15, 16], [4, 9, 9, 9]])
def test_half_widths_of_products_are_those_of_all_of_them(law: Law, sizes: list[int]) -> None:
    products = _products(sizes, 5)
    for level in (0.5, 0.95, 0.999):
        fast, slow = half_widths(law, products, level), half_widths(law, products.dense(), level)
        assert fast == pytest.approx(slow, rel=1e-6)


def test_products_take_the_memory_of_their_sum() -> None:
    products = _products([20] * 8, 1, rows=1)
    assert products.numbers < 300
    assert np.isfinite(products.split().powers).all()


def test_laplace_products_against_numpy() -> None:
    generator = np.random.default_rng(2)
    squared, squares = generator.uniform(0, 9, (4, 50)) ** 3, generator.uniform(0, 2, (4, 70))
    for counts in (np.ones(70), generator.integers(0, 4, 70).astype(float)):
        slow = np.exp(-(np.log1p(squared[:, :, None] * squares[:, None]) @ counts))
        assert np.allclose(LAPLACE.product(squared, squares, counts), slow, rtol=1e-11, atol=0)
    # One row of weights for all queries, and products far beyond what a number can hold.
    huge = LAPLACE.product(np.full((3, 2), 1e15), np.ones((1, 70)), np.ones(70))
    assert (huge == 0.0).all()


def test_sinc_products_against_numpy() -> None:
    generator = np.random.default_rng(3)
    squared = np.sort(generator.uniform(0, 3, (4, 50)) ** 2, axis=1)
    squares = generator.uniform(0, 2, (4, 9))
    squares[:, 0] = 0.0
    products = squared[:, -1:] * squares
    assert (products > 9).any()  # beyond the power series, and within it
    assert (products < 2).any()
    for counts in (np.ones(9), np.arange(9.0)):
        values = np.sinc(np.sqrt(squared[:, :, None] * squares[:, None]) / math.pi)
        slow = np.prod(values**counts, axis=2)
        assert np.allclose(SINC.product(squared, squares, counts), slow, rtol=1e-9, atol=1e-15)


def test_series_against_numpy() -> None:
    generator = np.random.default_rng(4)
    squared = np.sort(generator.uniform(0, 1, (4, 50)), axis=1)
    weights = generator.uniform(0, 0.6, (4, 30))
    powers = np.stack([(weights**k).sum(axis=1) for k in range(1, 13)], axis=1)
    values = np.ones((4, 50))
    edge = weights.max(axis=1)
    inversion.series(squared, powers, edge, np.array(LAPLACE.series), LAPLACE.reach, values)
    exact = 1 / np.prod(1 + squared[:, :, None] * weights[:, None], axis=2)
    far = squared * edge[:, None] > LAPLACE.reach
    assert far.any()
    assert np.allclose(values, np.where(far, 0.0, exact), rtol=1e-5, atol=0)


def _solved(phi: Floats, v: NDArray[np.floating[Any]], level: float) -> Floats:
    """Return t with (2/π)·h·Σ φ(v)·sin(vt)/v = level by bisection."""
    low, high = np.zeros(len(phi)), np.full(len(phi), 22.0)
    for _ in range(60):
        t = (low + high) / 2
        inside = 2 / math.pi * (v[1] - v[0]) * (phi * np.sin(v * t[:, None]) / v).sum(axis=1)
        low, high = np.where(inside < level, t, low), np.where(inside < level, high, t)
    return low


@pytest.mark.parametrize("level", [0.01, 0.5, 0.95, 0.999])
def test_solutions_against_bisection(level: float) -> None:
    """Normal, Laplace, and a mixture: quantiles to 10⁻⁸."""
    span = 2 * math.pi / 44
    v = (np.arange(400, dtype=np.float64) + 0.5) * span
    phi = np.stack([np.exp(-(v**2) / 2), 1 / (1 + v**2 / 2), np.exp(-(v**2) / 4) / (1 + v**2 / 4)])
    quantiles = np.empty(3)
    inversion.solve(phi, span, level, quantiles)
    assert quantiles == pytest.approx(_solved(phi, v, level), abs=2e-8)


def test_a_split_is_split_already() -> None:
    split = Weights(np.ones((2, 3)), np.ones(3)).split()
    assert split.split() is split
