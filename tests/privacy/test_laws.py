"""The noise follows its laws: fit, power against 5% off, agreement with OpenDP, variances."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

import dpkde
from contracts.fit import Cdf, bins_of, fits, same_law
from dpkde.privacy.amounts import Amount, Bounds
from dpkde.privacy.laws import NOISES, DiscreteGaussian, DiscreteLaplace, Law, MaxNorm, draw

Edges = NDArray[np.float64]


def laplace_cdf(scale: float) -> Cdf:
    """P(Z ≤ k) for P(z) ∝ exp(−|z|/t): 1 − a^{k+1}/(1+a) for k ≥ 0."""

    def cdf(edges: Edges) -> Edges:
        k = np.floor(edges)
        log_rest = -math.log1p(math.exp(-1 / scale))
        upper = -np.expm1(-(k + 1) / scale + log_rest) if scale > 0 else k
        lower = np.exp(np.minimum(k, 0) / scale + log_rest)
        return np.where(k >= 0, upper, lower)

    return cdf


def gaussian_cdf(sigma: float) -> Cdf:
    """Summed for σ < 64; the midpoint rule (error e^(−2π²σ²)) beyond."""

    def cdf(edges: Edges) -> Edges:
        if sigma >= 64:
            return np.asarray(ndtr(edges / sigma))
        z = np.arange(-math.ceil(12 * sigma) - 2, math.ceil(12 * sigma) + 3)
        weight = np.exp(-(z**2) / (2 * sigma**2))
        total = np.cumsum(weight) / weight.sum()
        return np.asarray(total[np.clip(np.floor(edges).astype(int) - z[0], 0, len(z) - 1)])

    return cdf


def max_norm_cdf(scale: float, cells: int) -> Cdf:
    """P(‖z‖_∞ ≤ r) with P(‖z‖_∞ = r) ∝ ((2r+1)^m − (2r−1)^m)·e^{−r/t}."""
    top = int((cells + 1) * scale + 60 * (1 + math.sqrt(cells + 1) * scale)) + 60
    r = np.arange(top, dtype=np.float64)
    log_big = cells * np.log(2 * r + 1) - r / scale
    shrink = np.where(r > 0, ((2 * r - 1) / (2 * r + 1)) ** cells, 0.0)
    weight = np.exp(log_big - log_big.max()) * (1 - shrink)
    total = np.cumsum(weight) / weight.sum()
    return lambda edges: np.asarray(total[np.clip(np.floor(edges).astype(int), 0, top - 1)])


@pytest.mark.audit
@pytest.mark.parametrize(
    ("scale", "draws"),
    [
        (Fraction(1, 8), 4_000_000),
        (Fraction(1, 2), 800_000),
        (Fraction(1), 400_000),
        (Fraction(4369067, 65536), 300_000),
        (Fraction((1 << 16) + 1), 300_000),
        (Fraction(1 << 30), 300_000),
        (Fraction(1 << 45), 300_000),
    ],
)
def test_discrete_laplace(scale: Fraction, draws: int) -> None:
    values = draw(DiscreteLaplace(scale), draws)
    edges = np.unique(np.concatenate([bins_of(values), [-1.5, -0.5, 0.5, 1.5]]))
    t = float(scale)
    assert fits(values, laplace_cdf(t), edges)
    assert not fits(values, laplace_cdf(1.05 * t), edges)
    assert not fits(values, laplace_cdf(t / 1.05), edges)


@pytest.mark.audit
@pytest.mark.parametrize(
    ("variance", "draws"),
    [
        (Fraction(1, 4), 600_000),
        (Fraction(1), 300_000),
        (Fraction(10001, 100), 200_000),
        (Fraction(1 << 32), 200_000),
        (Fraction(1 << 90), 200_000),
    ],
)
def test_discrete_gaussian(variance: Fraction, draws: int) -> None:
    values = draw(DiscreteGaussian(variance), draws)
    edges = np.unique(np.concatenate([bins_of(values), [-1.5, -0.5, 0.5, 1.5]]))
    sigma = math.sqrt(variance)
    assert fits(values, gaussian_cdf(sigma), edges)
    assert not fits(values, gaussian_cdf(1.05 * sigma), edges)
    assert not fits(values, gaussian_cdf(sigma / 1.05), edges)


def test_smallest_gaussian_is_zero() -> None:
    """σ = 1/8: a draw other than 0 has probability 2e-14; 10,000 draws, false alarm 3e-10."""
    assert not draw(DiscreteGaussian(Fraction(1, 64)), 10_000).any()


@pytest.mark.audit
@pytest.mark.parametrize(("cells", "scale"), [(1, 3), (2, 5), (5, 40), (64, 1000)])
def test_max_norm(cells: int, scale: int) -> None:
    """The norm has m + 1 times the information of one Laplace draw, so 40,000 draws do."""
    law = MaxNorm(Fraction(scale), cells)
    draws = np.array([draw(law, cells) for _ in range(40_000)])
    norms = np.abs(draws).max(axis=1)
    edges = bins_of(norms)
    assert fits(norms, max_norm_cdf(scale, cells), edges)
    if cells > 1:
        assert not fits(norms, max_norm_cdf(1.05 * scale, cells), edges)
        assert not fits(norms, max_norm_cdf(scale / 1.05, cells), edges)
    else:
        assert fits(draws[:, 0], laplace_cdf(scale), bins_of(draws[:, 0]))
    # Signs are even and coordinates alike: each is ± with equal chance, given that it is not 0.
    for j in {0, cells - 1}:
        positive, negative = int((draws[:, j] > 0).sum()), int((draws[:, j] < 0).sum())
        assert abs(positive - negative) < 6.2 * math.sqrt(positive + negative)
    measured = (draws.astype(np.float64) ** 2).mean()
    assert measured == pytest.approx(law.variance, rel=0.08)


@pytest.mark.audit
@pytest.mark.parametrize("scale", [Fraction(3, 2), Fraction(1 << 24)])
def test_agreement_with_opendp(scale: Fraction) -> None:
    for law in (DiscreteLaplace(scale), DiscreteGaussian(scale**2)):
        reference = draw(law, 40_000, sampler="opendp")
        assert same_law(draw(law, 400_000), reference)
        wrong: Law = type(law)(law.scale * Fraction(6, 5))
        assert not same_law(draw(wrong, 400_000), reference)


def test_opendp_has_no_max_norm() -> None:
    with pytest.raises(dpkde.ParameterError, match="no max-norm"):
        draw(MaxNorm(Fraction(5), 2), 2, sampler="opendp")
    with pytest.raises(dpkde.ParameterError, match="sampler must be"):
        draw(DiscreteLaplace(Fraction(5)), 2, sampler="numpy")
    with pytest.raises(dpkde.ParameterError, match="2 cells"):
        draw(MaxNorm(Fraction(5), 2), 3)


@pytest.mark.parametrize("t", [0.01, 0.125, 0.7, 3.0, 50.0])
def test_laplace_variance_is_the_sum(t: float) -> None:
    z = np.arange(-4000, 4001)
    weight = np.exp(-np.abs(z) / t)
    law = DiscreteLaplace(Fraction(t))
    expected = (weight * z**2).sum() / weight.sum()
    assert law.variance == pytest.approx(expected, rel=1e-9, abs=1e-80)


def test_gaussian_variance_is_the_sum() -> None:
    for sigma2 in (0.3, 2.0, 15.9, 16.1, 300.0):
        z = np.arange(-600, 601)
        weight = np.exp(-(z**2) / (2 * sigma2))
        expected = (weight * z**2).sum() / weight.sum()
        assert DiscreteGaussian(Fraction(sigma2)).variance == pytest.approx(expected, rel=1e-9)


def test_max_norm_variance_agrees_with_itself_across_its_switch() -> None:
    for cells, scale in ((1, 9), (1, 3000), (7, 600), (500, 9), (2048, 8), (2048, 8.1)):
        law = MaxNorm(Fraction(scale), cells)
        r = np.arange(int((cells + 1) * scale + 60 * math.sqrt(cells + 1) * scale) + 60)
        log_weight = cells * np.log(2 * r + 1.0) - r / scale
        weight = np.exp(log_weight - log_weight.max())
        expected = (weight * r * (r + 1)).sum() / weight.sum() / 3
        assert law.variance == pytest.approx(expected, rel=1e-6)


def test_one_max_norm_cell_is_laplace() -> None:
    for scale in (Fraction(1, 2), Fraction(5), Fraction(5000)):
        one, laplace = MaxNorm(scale, 1), DiscreteLaplace(scale)
        assert one.variance == pytest.approx(laplace.variance, rel=1e-6)


def test_scales_that_do_not_fit() -> None:
    with pytest.raises(dpkde.ParameterError, match="does not fit"):
        DiscreteLaplace(Fraction(1 << 57))
    with pytest.raises(dpkde.ParameterError, match="does not fit"):
        MaxNorm(Fraction(1 << 50), 1 << 10)
    with pytest.raises(dpkde.ParameterError, match="does not fit"):
        DiscreteGaussian(Fraction(1 << 114))


def test_each_law_hides_a_change_in_its_own_norm() -> None:
    moved = Bounds(cells=4, l1=3, l2_squared=5, linf=2, nonnegative=False)
    assert [law.sensitivity(moved) for law in NOISES.values()] == [3, 2, 5]
    bought = [
        law.bought(Amount(**{law.paid_in: Fraction(1, 2)}), moved).scale for law in NOISES.values()
    ]
    assert bought == [6, 4, 5]


def test_max_norm_noise_is_for_tables() -> None:
    law = MaxNorm(Fraction(4), 3)
    for ask in (lambda: law.margin(0.1), lambda: law.characteristic_of_one(np.zeros(1))):
        with pytest.raises(dpkde.ParameterError, match="max-norm noise is for tables"):
            ask()
    with pytest.raises(dpkde.ParameterError, match="opendp sampler has no max-norm noise"):
        law.reference(3)
