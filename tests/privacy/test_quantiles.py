"""The exact law of the noise at a query, against closed forms and against draws.

Draws cannot be seeded. A quantile's level is compared with the part of N draws below it, which has
standard deviation √(p(1 − p)/N): six of those are missed once in 10⁹.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace, Law, MaxNorm, draw
from dpkde.privacy.laws.quantiles import half_widths
from dpkde.privacy.laws.weights import Weights

SCALE = Fraction(10_000)
LEVELS = (0.5, 0.9, 0.95, 0.99, 0.999)


def _weights(*values: float) -> Weights:
    return Weights(np.array([values]), np.ones(len(values)))


@pytest.mark.parametrize("level", LEVELS)
def test_one_laplace_weight(level: float) -> None:
    """P(|z| ≤ t) = 1 − e^{−t/b}."""
    widths = half_widths(DiscreteLaplace(SCALE), _weights(2.0), level)
    assert widths[0] == pytest.approx(-2e4 * math.log(1 - level), rel=5e-4)


@pytest.mark.parametrize("level", LEVELS)
def test_two_laplace_weights(level: float) -> None:
    """For b = 1 and weights 1, a: P(|z| > t) = (e^{−t} − a²·e^{−t/a})/(1 − a²)."""
    a = 0.6
    t = half_widths(DiscreteLaplace(SCALE), _weights(1.0, a), level)[0] / 1e4
    tail = (math.exp(-t) - a**2 * math.exp(-t / a)) / (1 - a**2)
    assert tail == pytest.approx(1 - level, rel=1e-3)


@pytest.mark.parametrize("level", LEVELS)
def test_gaussian_weights_and_a_normal_part(level: float) -> None:
    widths = half_widths(DiscreteGaussian(SCALE), _weights(3.0, -4.0), level, normal=1e5)
    deviation = math.sqrt(25e4 + 1e5)
    assert widths[0] == pytest.approx(stats.norm.isf((1 - level) / 2) * deviation, rel=1e-6)


@pytest.mark.parametrize("level", LEVELS)
def test_a_laplace_and_a_normal_part(level: float) -> None:
    """By plain integration over the Laplace part."""
    t = half_widths(DiscreteLaplace(SCALE), _weights(1.0), level, normal=4e8)[0] / 1e4

    def inside(x: float) -> float:
        part = stats.norm.cdf((t - x) / 2) - stats.norm.cdf((-t - x) / 2)
        return math.exp(-abs(x)) / 2 * float(part)

    assert integrate.quad(inside, -40, 40, limit=400)[0] == pytest.approx(level, abs=1e-6)


@pytest.mark.parametrize(
    ("law", "many"),
    [
        (DiscreteLaplace(SCALE), 5),
        (DiscreteLaplace(SCALE), 400),
        (MaxNorm(SCALE, 6), 6),
        (MaxNorm(SCALE, 300), 300),
        (DiscreteGaussian(SCALE), 7),
    ],
)
def test_quantiles_against_draws(law: Law, many: int) -> None:
    """Weights of different sizes; few and many take different roads."""
    weights = np.random.default_rng(1).uniform(-1, 1, many)
    trials = 20_000 if many < 100 else 4_000
    if isinstance(law, MaxNorm):
        noise = np.array([draw(law, many) for _ in range(trials)])
    else:
        noise = draw(law, trials * many).reshape(trials, many)
    sums = np.abs(noise @ weights)
    for level in (0.5, 0.9, 0.99):
        t = half_widths(law, _weights(*weights), level)[0]
        share = float((sums <= t).mean())
        assert abs(share - level) <= 6 * math.sqrt(level * (1 - level) / trials)


def test_the_counts_noise_comes_on_top() -> None:
    count_law, trials = DiscreteLaplace(Fraction(30)), 40_000
    weights = np.full(12, 0.01)
    sums = draw(DiscreteLaplace(SCALE), trials * 12).reshape(trials, 12) @ weights
    sums = np.abs(sums + 8.0 * draw(count_law, trials))
    t = half_widths(
        DiscreteLaplace(SCALE),
        _weights(*weights),
        0.9,
        count_law=count_law,
        count_weights=np.array([8.0]),
    )[0]
    assert abs(float((sums <= t).mean()) - 0.9) <= 6 * math.sqrt(0.09 / trials)


def test_counts_stand_for_equal_weights() -> None:
    """Both where they are few and where power sums are used, with one row for many queries."""
    for many in (7, 1000):
        plain = half_widths(DiscreteLaplace(SCALE), _weights(*[0.3] * many), 0.95)
        short = Weights(np.array([[0.3]]), np.array([float(many)]))
        assert half_widths(DiscreteLaplace(SCALE), short, 0.95) == pytest.approx(plain, rel=1e-7)
        rows = half_widths(DiscreteLaplace(SCALE), short, 0.95, normal=np.zeros(3))
        assert rows == pytest.approx(np.repeat(plain, 3), rel=1e-7)


@pytest.mark.parametrize("law", [DiscreteLaplace(SCALE), MaxNorm(SCALE, 400)])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_two_roads_meet(law: Law, level: float) -> None:
    """Just above and just below the number of weights from which power sums are used."""
    many = 128
    widths = [
        half_widths(law, _weights(*[1 / math.sqrt(m)] * m), level)[0]
        for m in (many - 1, many, many + 1, many + 2)
    ]
    steps = np.diff(widths) / widths[0]
    assert np.abs(steps).max() < 1e-3
    assert np.abs(np.diff(steps)).max() < 1e-4


def test_nothing_to_add_is_nothing() -> None:
    assert half_widths(DiscreteLaplace(SCALE), _weights(0.0, 0.0), 0.9)[0] == 0.0


def test_cells_of_one_weight_are_counted() -> None:
    """Three cells of each weight are thrice as many cells, also where weights are many."""
    law, level = DiscreteLaplace(SCALE), 0.95
    values = np.linspace(0.1, 1.0, 300)[np.newaxis]
    counted = half_widths(law, Weights(values, np.full(300, 3.0)), level)
    repeated = half_widths(law, Weights(np.repeat(values, 3, axis=1), np.ones(900)), level)
    np.testing.assert_allclose(counted, repeated, rtol=1e-4)
