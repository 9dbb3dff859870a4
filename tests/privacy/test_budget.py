"""Budgets: exact arithmetic, rounding towards more noise, nothing spent twice."""

from __future__ import annotations

import math
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpkde
from dpkde.privacy.amounts import COUNT, Adjacency, Amount, Bounds
from dpkde.privacy.budget import Budget, Guarantee, cheapest
from dpkde.privacy.concentrated import epsilon_of, rho_within
from dpkde.privacy.laws import SAMPLERS, DiscreteGaussian, DiscreteLaplace, MaxNorm, Randomness
from dpkde.privacy.numbers import exact, exp_minus_bounds, log_bounds, plain, scale_up
from dpkde.privacy.statement import PrivacyStatement

positive = st.fractions(min_value=Fraction(1, 10**6), max_value=100)
sizes = st.integers(min_value=1, max_value=1 << 30)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho"),
    [
        (Fraction(1), Fraction(1, 10**6), Fraction(3347459077, 137438953472)),
        (Fraction(1, 2), Fraction(1, 10**5), Fraction(9351929785, 1099511627776)),
        (Fraction(8), Fraction(1, 10**9), Fraction(402879360349, 549755813888)),
        (Fraction(1, 100), Fraction(1, 10**12), Fraction(186621, 137438953472)),
    ],
)
def test_the_rho_of_a_guarantee_never_changes(
    epsilon: Fraction, delta: Fraction, rho: Fraction
) -> None:
    """A file that has spent all of it would no longer load, were it less by a bit."""
    assert rho_within(epsilon, delta) == rho
    assert Guarantee.declare(epsilon=epsilon, delta=delta).rho_limit == rho
    assert Guarantee.declare(rho=rho).rho_limit == rho


@given(st.floats(min_value=1e-6, max_value=100))
def test_floats_round_down(value: float) -> None:
    assert exact(value, "epsilon") <= Fraction(value)
    assert exact(value, "epsilon") <= Fraction(repr(value))
    assert exact(value, "epsilon") >= Fraction(value) * (1 - Fraction(1, 10**15))


def test_what_can_be_typed() -> None:
    third = Fraction(1, 3)
    assert exact("1/3", "epsilon") == exact(third, "epsilon") == third
    assert exact("0.1", "epsilon") == exact(0.1, "epsilon") == exact(Decimal("0.1"), "e")
    assert exact(np.float32(0.1), "epsilon") == Fraction(1, 10)  # type: ignore[arg-type]
    for wrong in (True, None, "abc", math.nan, math.inf, "1/0", [1]):
        with pytest.raises(dpkde.ParameterError, match="epsilon"):
            exact(wrong, "epsilon")  # type: ignore[arg-type]


@given(positive, sizes, sizes, sizes)
def test_scales_never_fall_short(epsilon: Fraction, l1: int, l2: int, linf: int) -> None:
    bounds = Bounds(cells=4, l1=l1, l2_squared=l2, linf=linf, nonnegative=False)
    pure, rho = Amount(epsilon=epsilon), Amount(rho=epsilon)
    assert DiscreteLaplace.bought(pure, bounds).scale * epsilon >= l1
    assert MaxNorm.bought(pure, bounds).scale * epsilon >= linf
    assert DiscreteGaussian.bought(rho, bounds).scale * 2 * epsilon >= l2
    for law, amount in ((DiscreteLaplace, pure), (MaxNorm, pure), (DiscreteGaussian, rho)):
        scale = law.bought(amount, bounds).scale
        assert scale.denominator <= 1 << 16


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**12))
def test_scale_up_goes_up_and_not_far(value: Fraction) -> None:
    assert value <= scale_up(value) <= value + Fraction(1, 1 << 16) + value / (1 << 16)


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6))
def test_enclosures_enclose(value: Fraction) -> None:
    low, high = log_bounds(value, 30)
    finer = log_bounds(value, 60)
    assert low <= finer[0] <= finer[1] <= high
    assert float(high) == pytest.approx(math.log(value), abs=1e-12)
    if value < 700:
        low, high = exp_minus_bounds(value, 30)
        finer = exp_minus_bounds(value, 60)
        assert low <= finer[0] <= finer[1] <= high


def test_replace_factors() -> None:
    signed = Bounds(cells=2, l1=3, l2_squared=5, linf=2, nonnegative=False)
    moved = signed.under(Adjacency.REPLACE)
    assert (moved.l1, moved.l2_squared, moved.linf) == (6, 20, 4)
    positive_only = Bounds(cells=2, l1=3, l2_squared=5, linf=2, nonnegative=True)
    moved = positive_only.under(Adjacency.REPLACE)
    assert (moved.l1, moved.l2_squared, moved.linf) == (6, 10, 2)
    assert signed.under(Adjacency.ADD_REMOVE) == signed


@given(
    st.lists(st.integers(-9, 9), min_size=3, max_size=3),
    st.lists(st.integers(-9, 9), min_size=3, max_size=3),
)
def test_replace_factors_hold(x: list[int], y: list[int]) -> None:
    """For any two vectors within the bounds, their difference is within the bounds for replace."""
    for nonnegative in (False, True):
        u, v = (np.abs([x, y]) if nonnegative else np.array([x, y])).tolist()
        bounds = Bounds(
            cells=3,
            l1=max(sum(map(abs, u)), sum(map(abs, v))),
            l2_squared=max(sum(a * a for a in u), sum(a * a for a in v)),
            linf=max(map(abs, u + v)),
            nonnegative=nonnegative,
        )
        moved = bounds.under(Adjacency.REPLACE)
        gap = [a - b for a, b in zip(u, v, strict=True)]
        assert sum(map(abs, gap)) <= moved.l1
        assert sum(a * a for a in gap) <= moved.l2_squared
        assert max(map(abs, gap)) <= moved.linf


def _budget(**guarantee: object) -> Budget:
    return Budget(Guarantee.declare(**guarantee))  # type: ignore[arg-type]


def test_overspending_is_refused_and_not_recorded() -> None:
    budget = _budget(epsilon=1)
    budget.spend("count", Amount(epsilon=Fraction(1, 3)), DiscreteLaplace, COUNT)
    with pytest.raises(dpkde.BudgetError, match="more than is left"):
        budget.spend("table", Amount(epsilon=Fraction(2, 3) + Fraction(1, 10**30)), MaxNorm, COUNT)
    with pytest.raises(dpkde.BudgetError):
        budget.spend("table", Amount(rho=Fraction(1, 10**9)), DiscreteGaussian, COUNT)
    budget.spend("table", Amount(epsilon=Fraction(2, 3)), MaxNorm, COUNT)
    assert [s.purpose for s in budget.spends] == ["count", "table"]
    with pytest.raises(dpkde.BudgetError):
        budget.left_pure()


def test_a_budget_is_not_spent_twice_by_threads() -> None:
    budget = _budget(epsilon=1)
    done: list[int] = []

    def spend() -> None:
        for _ in range(50):
            try:
                budget.spend("x", Amount(epsilon=Fraction(1, 64)), DiscreteLaplace, COUNT)
                done.append(1)
            except dpkde.BudgetError:
                pass

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == len(budget.spends) == 64


def test_mixed_spends_are_counted_as_concentrated() -> None:
    budget = _budget(epsilon=1, delta=1e-6)
    budget.spend("count", Amount(epsilon=Fraction(1, 20)), DiscreteLaplace, COUNT)
    left = budget.left_concentrated()
    assert left is not None
    limit = rho_within(Fraction(1), exact(1e-6, "delta"))
    assert left.rho == limit - Fraction(1, 800)
    budget.spend("table", left, DiscreteGaussian, COUNT)
    with pytest.raises(dpkde.BudgetError):
        budget.spend("more", Amount(rho=Fraction(1, 10**12)), DiscreteGaussian, COUNT)
    with pytest.raises(dpkde.BudgetError):
        budget.spend("more", Amount(epsilon=Fraction(1, 10**3)), DiscreteLaplace, COUNT)


@pytest.mark.parametrize("epsilon", ["1e-6", "0.01", "0.5", "1", "5", "100"])
@pytest.mark.parametrize("delta", ["1e-12", "1e-6", "0.01"])
def test_conversion_is_sound_and_tight(epsilon: str, delta: str) -> None:
    """ρ implies (ε, δ): evaluated anew; and 0.1% more ρ does not, at any order α."""
    rho = rho_within(Fraction(epsilon), Fraction(delta))
    assert rho > 0

    def least_delta(r: float) -> float:
        alphas = 1 + np.logspace(-5, 14, 40_000)
        terms = (
            (alphas - 1) * (alphas * r - float(epsilon))
            - np.log(alphas - 1)
            + alphas * np.log1p(-1 / alphas)
        )
        return float(np.exp(terms.min()))

    assert least_delta(float(rho)) <= float(delta) * (1 + 1e-5)
    assert least_delta(float(rho) * 1.001) > float(delta) * (1 - 1e-4)
    back = epsilon_of(rho, Fraction(delta))
    assert back <= Fraction(epsilon) * (1 + Fraction(1, 10**6))


def test_conversion_agrees_with_opendp() -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="f64")
    for epsilon, delta in ((0.5, 1e-6), (2.0, 1e-9)):
        rho = rho_within(exact(epsilon, "epsilon"), exact(delta, "delta"))
        sigma = 1 / math.sqrt(2 * float(rho))
        measure = dp.c.make_fix_delta(
            dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, sigma)), delta
        )
        assert measure.map(1.0)[0] == pytest.approx(epsilon, rel=1e-3)


def test_laplace_wins_in_low_dimension_and_gaussian_in_high() -> None:
    """With δ the law of smaller variance is chosen, and it never has more than pure ε's."""
    pure, rho = Amount(epsilon=Fraction(1)), Amount(rho=rho_within(Fraction(1), Fraction(1, 10**6)))
    options = ((pure, DiscreteLaplace), (pure, MaxNorm), (rho, DiscreteGaussian))
    full = 1 << 20
    sparse = Bounds(cells=100, l1=full, l2_squared=full**2, linf=full, nonnegative=True)
    assert cheapest(options, sparse)[1] is DiscreteLaplace
    dense = Bounds(cells=200, l1=200 * full, l2_squared=200 * full**2, linf=full, nonnegative=False)
    assert cheapest(options, dense)[1] is DiscreteGaussian
    assert cheapest(options[:2], dense)[1] is MaxNorm
    for bounds in (sparse, dense):
        assert cheapest(options, bounds)[2].variance <= cheapest(options[:2], bounds)[2].variance


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "exactly one"),
        ({"epsilon": 1, "rho": 1}, "exactly one"),
        ({"epsilon": 0}, "epsilon must be positive"),
        ({"epsilon": -1}, "epsilon must be positive"),
        ({"rho": 0}, "rho must be positive"),
        ({"epsilon": 1, "delta": 1}, "below 1"),
        ({"epsilon": 1, "delta": -0.1}, "at least 0"),
        ({"rho": 1, "delta": 0.1}, "rho needs none"),
        ({"epsilon": 1, "adjacency": "friends"}, "'add-remove' or 'replace'"),
        ({"epsilon": math.nan}, "finite"),
    ],
)
def test_wrong_guarantees(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(dpkde.ParameterError, match=message):
        Guarantee.declare(**wrong)  # type: ignore[arg-type]


def test_the_statement_can_be_quoted() -> None:
    budget = _budget(epsilon=0.3, adjacency="replace")
    budget.spend("table", Amount(epsilon=exact(0.3, "epsilon")), MaxNorm, COUNT)
    text = str(PrivacyStatement(budget.guarantee, budget.spends))
    assert "0.3-differentially private" in text
    assert "changing the values of any one record" in text
    assert "table: ε = 0.3, max-norm noise" in text
    assert plain(exact(0.3, "epsilon")) == "0.3"
    assert "one record" in text
    assert plain(Fraction(1, 10**400)) == "1e-400"


def test_spends_that_are_alike_are_told_once_with_what_each_cost() -> None:
    budget = _budget(epsilon="0.3")
    for purpose in ("scale", "scale", "table"):
        budget.spend(purpose, Amount(epsilon=exact("0.1", "epsilon")), DiscreteLaplace, COUNT)
    lines = str(PrivacyStatement(budget.guarantee, budget.spends)).splitlines()
    assert "  - scale, 2 times: ε = 0.1 each, discrete-laplace noise" in lines
    assert "  - table: ε = 0.1, discrete-laplace noise" in lines


def test_epsilon_at() -> None:
    budget = _budget(rho="0.1")
    budget.spend("table", Amount(rho=Fraction(1, 10)), DiscreteGaussian, COUNT)
    statement = PrivacyStatement(budget.guarantee, budget.spends)
    assert statement.epsilon is None
    assert 2.0 < statement.epsilon_at(1e-6) < 2.5
    assert not statement.is_pure


def _laplace_delta(epsilon: float, *parts: float) -> float:
    """δ of Laplace mechanisms of these ε together, at another ε: E[1 − e^(ε − loss)]₊.

    The loss of one is between −e and e, with atoms of ½ at e and e^(−e)/2 at −e, and the density
    e^((l − e)/2)/4 between. Sums are taken on a grid, rounded down: δ comes out too small.
    """
    step = 1e-4
    total, low = np.ones(1), 0
    for part in parts:
        size = math.floor(part / step)
        losses = np.arange(-size, size + 1) * step
        mass = np.exp((losses - part) / 2) / 4 * step
        mass[-1] = 0.5
        mass[0] = math.exp(-part) / 2
        total, low = np.convolve(total, mass / mass.sum()), low - size
    losses = (low + np.arange(len(total))) * step
    return float((total * np.maximum(0, 1 - np.exp(epsilon - losses))).sum())


def test_epsilon_at_is_of_the_mechanism_not_of_a_run() -> None:
    """Which laws are bought hangs on the noisy count; what is stated must hold for all of them."""
    epsilon, delta = Fraction(1), Fraction(1, 1000)
    runs = []
    for law, left in ((DiscreteLaplace, "left_pure"), (DiscreteGaussian, "left_concentrated")):
        budget = _budget(epsilon=epsilon, delta=delta)
        budget.spend("count", Amount(epsilon=Fraction(1, 8)), DiscreteLaplace, COUNT)
        amount = getattr(budget, left)()
        budget.spend("table", amount, law, COUNT)
        runs.append(PrivacyStatement(budget.guarantee, budget.spends))
    pure, concentrated = runs
    for small in ("0.5", "0.1", "0.001", "1e-4", "1e-9"):
        stated = concentrated.epsilon_at(small)
        assert stated == pure.epsilon_at(small)
        assert _laplace_delta(float(stated), 1 / 8, 7 / 8) <= float(small)
    assert pure.epsilon_at("0.1") == pure.epsilon_at("0.001") == 1
    assert 1 < pure.epsilon_at("1e-4") < 1.3
    assert not pure.is_pure
    # What was stated before, of the run that bought Gaussian noise: 0.244 at δ = 0.1, where the
    # mechanism's δ is far above that.
    spent = sum((s.as_rho for s in concentrated.spends), Fraction(0))
    before = epsilon_of(spent, Fraction(1, 10))
    assert before == pytest.approx(0.244, abs=0.002)
    assert _laplace_delta(float(before), 1 / 8, 7 / 8) > 0.27


def test_epsilon_at_a_pure_guarantee_is_that_guarantee() -> None:
    budget = _budget(epsilon="0.3")
    budget.spend("count", Amount(epsilon=Fraction(1, 10)), DiscreteLaplace, COUNT)
    statement = PrivacyStatement(budget.guarantee, budget.spends)
    assert statement.is_pure
    assert statement.epsilon_at(1e-9) == statement.epsilon_at(0.9) == Fraction(3, 10)
    with pytest.raises(dpkde.ParameterError, match="delta"):
        statement.epsilon_at(0)


def test_nothing_is_drawn_from_a_budget_on_paper() -> None:
    budget = _budget(epsilon=1)
    for paper in (budget.on_paper(), budget.on_paper(Guarantee.declare(epsilon=2))):
        spend = paper.spend("count", Amount(epsilon=Fraction(1)), DiscreteLaplace, COUNT)
        with pytest.raises(dpkde.BudgetError, match="on paper"):
            paper.noise(spend, 1)
        with pytest.raises(dpkde.BudgetError, match="not paid for"):
            budget.noise(spend, 1)
    assert not budget.spends
    assert budget.on_paper().options == budget.options


def test_nobody_adds_a_sampler() -> None:
    with pytest.raises(TypeError):
        SAMPLERS["mine"] = Randomness()  # type: ignore[index]
