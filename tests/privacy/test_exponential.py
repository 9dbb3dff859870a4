"""The exponential mechanism: its bits, its probabilities, its price, its place in a statement.

Statistical tests reject a correct sampler at rate 10⁻⁹. Every one of them also shows that draws
with ε twice as large are rejected; their numbers leave a miss below 10⁻⁶.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

import dpkde
from dpkde.privacy.amounts import COUNT, Amount
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace, Exponential, SparseVector
from dpkde.privacy.laws.exponential import sampler as road
from dpkde.privacy.statement import PrivacyStatement, statement_from_json, statement_to_json
from tape import Tape

FALSE_ALARM = 1e-9
LOSSES = np.array([5, -3, 0, 0, 12, 40, -2, 7], dtype=np.int64)


def fits(indices: NDArray[np.int64], chances: NDArray[np.float64]) -> bool:
    """Tell whether indices could have these chances; options too rare for a bin are joined."""
    counts = np.bincount(indices, minlength=len(chances)).astype(float)
    expected = chances * len(indices)
    rare = expected < 20
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], max(expected[rare].sum(), 1e-300))
        if expected[-1] < 20:  # joined once more: with the smallest of the others
            small = int(expected[:-1].argmin())
            counts[small] += counts[-1]
            expected[small] += expected[-1]
            counts, expected = counts[:-1], expected[:-1]
    statistic = ((counts - expected) ** 2 / expected).sum()
    return bool(statistic <= chi2.isf(FALSE_ALARM, max(len(expected) - 1, 1)))


def chances(losses: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    weights = np.exp(-(losses - losses.min()) / scale)
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(7, 2), Fraction(1000)])
def test_probabilities_are_exact(scale: Fraction) -> None:
    """20,000 draws: ε twice as large is rejected wherever it makes a difference."""
    drawn = np.array(
        [road.choose(Exponential(scale), LOSSES) for _ in range(50)]
        + road.exponential(LOSSES, scale, 20_000, os.urandom).tolist()
    )
    assert fits(drawn, chances(LOSSES, float(scale)))
    if 1 < scale < 100:
        assert not fits(drawn, chances(LOSSES, float(scale) / 2))
        assert not fits(drawn, chances(LOSSES, float(scale) * 2))


def test_one_option_and_equal_losses() -> None:
    law = Exponential(Fraction(5))
    assert road.choose(law, np.array([17], dtype=np.int64)) == 0
    drawn = road.exponential(np.full(4, 9, dtype=np.int64), law.scale, 8_000, os.urandom)
    assert fits(drawn, np.full(4, 0.25))


@pytest.mark.parametrize(
    "scale", [Fraction(1, 3), Fraction(2), Fraction(65537, 65536), Fraction(1 << 40)]
)
def test_compiled_equals_twin_and_buffers_do_not_matter(scale: Fraction) -> None:
    gaps = (LOSSES - LOSSES.min()).tolist()
    stream = Tape(1).stream()
    twin = [road.exponential_twin(stream, gaps, scale) for _ in range(200)]
    assert road.exponential(LOSSES, scale, 200, Tape(1)).tolist() == twin
    for piece in (8, 16, 1000):
        assert road.exponential(LOSSES, scale, 200, Tape(1, piece)).tolist() == twin


def test_huge_losses_neither_overflow_nor_win() -> None:
    ends = np.iinfo(np.int64)
    losses = np.array([ends.min, ends.max, 0, ends.min], dtype=np.int64)
    drawn = road.exponential(losses, Fraction(1, 1000), 200, os.urandom)
    assert set(drawn.tolist()) == {0, 3}  # 2⁻²⁰⁰ each that one of them is missing


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=2, max_size=2), st.integers(0, 99))
def test_cutting_keeps_sensitivities(values: list[int], step: int) -> None:
    moved = [min(values[0] + step, (1 << 63) - 1), max(values[1] - step, -(1 << 63))]
    # A third option far below all keeps the least the same.
    low = [-(1 << 63)]
    before = road._gaps(np.array(values + low, dtype=np.int64))
    after = road._gaps(np.array(moved + low, dtype=np.int64))
    assert np.abs(before - after).max() <= step


def test_wrong_use() -> None:
    law = Exponential(Fraction(1))
    for wrong in (np.zeros(0, np.int64), np.zeros((2, 2), np.int64), np.zeros(3)):
        with pytest.raises(dpkde.ParameterError, match="int64"):
            road.choose(law, wrong)  # type: ignore[arg-type]
    with pytest.raises(dpkde.ParameterError, match="scale"):
        road.exponential(LOSSES, Fraction(1 << 61), 1, Tape(0))
    with pytest.raises(dpkde.ParameterError):
        Exponential(Fraction(0))


def test_threshold_fires_as_often_as_two_laplace_draws_say() -> None:
    """P(value + Lap(2t) ≥ threshold + Lap(t)), summed exactly, against 6,000 draws."""
    scale, gap = Fraction(3), -4
    z = np.arange(-400, 401)
    first, second = np.exp(-np.abs(z) / 3), np.exp(-np.abs(z) / 6)
    first, second = first / first.sum(), second / second.sum()
    upper = np.cumsum(second[::-1])[::-1]  # P(ν ≥ z)
    at = np.clip(z - gap + 400, 0, 800)
    chance = float((first * upper[at]).sum())
    law = SparseVector(scale)
    fired = [int(road.Threshold(law).passed(gap, 0)) for _ in range(6_000)]
    assert fits(np.array(fired), np.array([1 - chance, chance]))
    assert not fits(np.array(fired), np.array([1 - chance * 0.7, chance * 0.7]))


def _outcomes(values: tuple[int, ...], own: float, each: float) -> NDArray[np.float64]:
    """P(the first check to fire is number k), and P(none fires), summed over the threshold."""
    z = np.arange(-900, 901)
    law = np.exp(-np.abs(z) / own)
    weight = np.exp(-np.abs(z) / each)
    upper = np.append(np.cumsum((weight / weight.sum())[::-1])[::-1], 0.0)  # P(ν ≥ z)
    silent = law / law.sum()
    fired = []
    for value in values:
        fires = upper[np.clip(z - value + 900, 0, 1801)]
        fired.append(float((silent * fires).sum()))
        silent = silent * (1 - fires)
    return np.array([*fired, silent.sum()])


def test_all_outcomes_of_checks_are_private() -> None:
    """Exact probabilities of four checks, for all neighbours at distances −Δ, 0, Δ: within e^ε.

    Noise on the threshold alone, or noise of half the scale on both, is not enough.
    """
    sensitivity, epsilon = 3, 1.0
    scale = 2 * sensitivity / epsilon
    worst = {"right": 0.0, "half": 0.0, "threshold": 0.0}
    scales = {
        "right": (scale, 2 * scale),
        "half": (scale / 2, scale),
        "threshold": (scale, 0.01),
    }
    for start in ((0, 0, 0, 0), (-9, -9, -9, 9), (-40, -20, -20, 0)):
        for signs in itertools.product((-1, 0, 1), repeat=4):
            moved = tuple(v + sensitivity * s for v, s in zip(start, signs, strict=True))
            for name, (own, each) in scales.items():
                p, q = _outcomes(start, own, each), _outcomes(moved, own, each)
                seen = (p > 1e-12) | (q > 1e-12)
                ratio = np.abs(np.log(np.maximum(p, 1e-300) / np.maximum(q, 1e-300)))[seen]
                worst[name] = max(worst[name], float(ratio.max()))
    assert worst["right"] <= epsilon + 1e-9
    assert worst["right"] > 0.6 * epsilon
    assert worst["half"] > epsilon
    assert worst["threshold"] > epsilon


def test_a_threshold_fires_once() -> None:
    armed = road.Threshold(SparseVector(Fraction(1)))
    assert armed.passed(10**30, 0)
    assert "secret" in repr(armed)
    with pytest.raises(dpkde.ParameterError, match="fired"):
        armed.passed(0, 0)
    assert not road.Threshold(SparseVector(Fraction(1))).passed(-(10**30), 0)


amounts = st.fractions(min_value=Fraction(1, 10**5), max_value=100)


@given(amounts, st.integers(1, 1 << 30))
def test_scales_of_choices_never_fall_short(amount: Fraction, sensitivity: int) -> None:
    for law, divisor in ((Exponential, 8), (SparseVector, 2)):
        try:
            pure = law.bought(Amount(epsilon=amount), sensitivity).scale
            rho = law.bought(Amount(rho=amount), sensitivity).scale
        except dpkde.ParameterError:
            continue
        assert pure * amount >= 2 * sensitivity
        assert rho**2 * divisor * amount >= 4 * sensitivity**2
        assert float(rho) ** 2 * divisor * float(amount) <= 4 * (sensitivity + 40) ** 2 * 1.001


def _budget(**guarantee: object) -> Budget:
    return Budget(Guarantee.declare(**guarantee))  # type: ignore[arg-type]


def test_choices_are_debited() -> None:
    budget = _budget(epsilon=1)
    third = Amount(epsilon=Fraction(1, 3))
    for _ in range(3):
        bought = budget.select("choice", third, Exponential, 4)
        assert bought.scale == Exponential.bought(third, 4).scale >= 24
    with pytest.raises(dpkde.BudgetError, match="more than is left"):
        budget.select("choice", Amount(epsilon=Fraction(1, 10**9)), Exponential, 4)
    assert len(budget.spends) == 3
    with pytest.raises(dpkde.ParameterError, match="sensitivity"):
        _budget(epsilon=1).select("choice", third, Exponential, 0)


def test_choices_cost_an_eighth_as_rho() -> None:
    budget = _budget(rho=1)
    budget.select("choice", Amount(epsilon=Fraction(2)), Exponential, 1)
    left = budget.left_concentrated()
    assert left is not None
    assert left.rho == Fraction(1, 2)
    budget.select("check", Amount(epsilon=Fraction(1)), SparseVector, 1)
    with pytest.raises(dpkde.BudgetError):
        budget.select("check", Amount(epsilon=Fraction(1, 100)), SparseVector, 1)


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_an_eighth_is_enough(sensitivity: int) -> None:
    """Rényi divergences of worst-case neighbours stay below αε²/8, at every order tried."""
    epsilon, scale = 1.0, 2.0 * sensitivity
    generator = np.random.default_rng(0)
    for _ in range(300):
        losses = generator.integers(0, 6 * sensitivity, size=4)
        moved = losses + sensitivity * generator.integers(-1, 2, size=4)
        p, q = chances(losses, scale), chances(moved, scale)
        for order in (1.01, 2.0, 8.0, 50.0):
            divergence = math.log((p**order * q ** (1 - order)).sum()) / (order - 1)
            assert divergence <= order * epsilon**2 / 8 + 1e-12


def test_a_statement_tells_choices_and_survives_a_file() -> None:
    budget = _budget(epsilon=1, delta="1e-6")
    rho = Amount(rho=Fraction(1, 1000))
    budget.spend("count", rho, DiscreteGaussian, COUNT)
    for _ in range(4):
        budget.select("choice of a query", rho, Exponential, 1 << 16)
        budget.spend("measurement", rho, DiscreteGaussian, COUNT)
    statement = PrivacyStatement(budget.guarantee, budget.spends)
    text = str(statement)
    assert "choice of a query, 4 times: ρ = 0.001 (zCDP) each, exponential mechanism" in text
    assert "random choices" in text
    assert statement.epsilon_at("1e-6") <= 1
    entry = json.loads(json.dumps(statement_to_json(statement)))
    assert statement_from_json(entry) == statement
    for change in (
        {"law": "magic"},
        {"law": "discrete-laplace"},
        {"scale": "1/1"},
        {"sensitivity": "1"},
        {"sensitivity": "0"},
        {"rho": "1/10"},
        {"purpose": 3},
    ):
        wrong = json.loads(json.dumps(entry))
        wrong["spends"][1].update(change)
        with pytest.raises((ValueError, LookupError, TypeError, dpkde.BudgetError)):
            statement_from_json(wrong)
    entry["spends"] = []
    with pytest.raises(dpkde.ParameterError):
        statement_from_json(entry)


def test_noise_alone_reads_as_before() -> None:
    budget = _budget(epsilon=1)
    budget.spend("count", Amount(epsilon=Fraction(1)), DiscreteLaplace, COUNT)
    text = str(PrivacyStatement(budget.guarantee, budget.spends))
    assert "these noisy measurements of the data, and no others" in text
    assert "  - count: ε = 1, discrete-laplace noise\n" in text
