"""What is allowed: closed forms, dp-accounting's figures, and attacks on the rule by exhaustion."""

from __future__ import annotations

import importlib.util
import math
import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpkde
from dpkde.privacy.amounts import COUNT, Amount
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.privacy.concentrated import epsilon_of, rho_within
from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace
from dpkde.privacy.ledger.accounting import (
    NOTHING,
    Cost,
    Division,
    Rule,
    _short,
    division,
    total_of,
)
from dpkde.privacy.ledger.reference import epsilon_in_advance

INSTALLED = importlib.util.find_spec("dp_accounting") is not None
DELTA = Fraction(1, 10**6)
TOTAL = Guarantee.declare(epsilon=100, delta=DELTA)
KINDS = {
    "pure": Guarantee.declare(epsilon="0.1"),
    "approximate": Guarantee.declare(epsilon="0.1", delta="1e-9"),
    "concentrated": Guarantee.declare(rho="0.001"),
}
TIMES = (1, 2, 10, 100)
# From dp-accounting 0.6.0 at δ = 1e-6: of (0.1, 0)- and (0.1, 1e-9)-releases by privacy loss
# distributions (`from_privacy_parameters`, steps of 1e-5, `self_compose`); of Gaussian noise with
# ρ = 0.001 by `PLDAccountant`, steps of 1e-4.
IN_ADVANCE = {
    "pure": (0.099998, 0.199996, 0.999371, 4.774568),
    "approximate": (0.099998, 0.199996, 0.999377, 4.787724),
    "concentrated": (0.167944, 0.243222, 0.575055, 1.994527),
}
# The same for `ZCDpEvent(0.001)` by `RdpAccountant`, 20,001 orders: zCDP's own closed form.
CLOSED_FORM = (0.1828954, 0.2642629, 0.6216927, 2.1419389)


def composed(kind: str, times: int) -> Guarantee:
    guarantee = KINDS[kind]
    rule = Rule(TOTAL, division(TOTAL, guarantee))
    spent = rule.spent(total_of([Cost.of(guarantee)] * times))
    assert spent is not None
    return spent


@pytest.mark.parametrize("kind", KINDS)
def test_never_below_what_holds_in_advance(kind: str) -> None:
    """By the table; and by dp-accounting itself, where it is installed."""
    for times, reference in zip(TIMES, IN_ADVANCE[kind], strict=True):
        figure = composed(kind, times)
        assert figure.epsilon is not None
        assert figure.delta <= DELTA
        assert figure.epsilon >= Fraction(str(reference))
        if INSTALLED:
            again = epsilon_in_advance([KINDS[kind]] * times, DELTA)
            closed = kind == "concentrated"  # theirs is the same form, at a few orders only
            assert figure.epsilon >= Fraction(again) / (Fraction(11, 10) if closed else 1)


def test_dp_accounting_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(dpkde.ParameterError, match=r"pip install 'dpkde\[accounting\]'"):
        epsilon_in_advance([KINDS["pure"]], DELTA)


def test_closed_forms() -> None:
    """Sums of ε, sums of ρ, and the (ε, δ) that ρ implies: exactly, or to the digits known."""
    rho = Guarantee.declare(rho=1)
    for times, closed in zip(TIMES, CLOSED_FORM, strict=True):
        costs = total_of([Cost.of(KINDS["concentrated"])] * times)
        assert Rule(rho, division(rho, rho)).spent(costs) == Guarantee.declare(
            rho=Fraction(times, 1000)
        )
        epsilon = composed("concentrated", times).epsilon
        assert epsilon == epsilon_of(Fraction(times, 1000), DELTA)
        assert float(epsilon) == pytest.approx(closed, rel=2e-6)
        sums, zcdp = Fraction(times, 10), epsilon_of(Fraction(times, 200), DELTA / 2)
        assert composed("pure", times).epsilon == min(sums, zcdp)
        assert composed("approximate", times).epsilon == sums
    assert composed("pure", 100).epsilon != 10  # zCDP leaves more


def test_what_a_guarantee_costs() -> None:
    assert Cost.of(KINDS["pure"]) == Cost(Fraction(1, 10), Fraction(0), Fraction(1, 200))
    assert Cost.of(KINDS["concentrated"]) == Cost(None, Fraction(0), Fraction(1, 1000))
    # The branch is taken after the noisy count: the larger of the two.
    small, large = (Guarantee.declare(epsilon=1, delta=d) for d in ("1e-6", "0.5"))
    assert Cost.of(small).rho == Fraction(1, 2)
    assert Cost.of(large).rho == rho_within(Fraction(1), Fraction(1, 2)) > Fraction(1, 2)


def test_a_refusal_keeps_what_was_debited() -> None:
    both = Guarantee.declare(epsilon=1, delta="1e-6")
    whole, budget = Cost.of(both), Budget(both)
    assert whole.after(budget.spends) == NOTHING
    budget.spend("count", Amount(epsilon=Fraction(1, 3)), DiscreteLaplace, COUNT)
    # The δ stays: it bounds all runs together, not those that were refused.
    assert whole.after(budget.spends) == Cost(Fraction(1, 3), both.delta, Fraction(1, 18))
    pure = Cost.of(Guarantee.declare(epsilon=1))
    assert pure.after(budget.spends) == Cost(Fraction(1, 3), Fraction(0), Fraction(1, 18))
    stated = Cost.of(Guarantee.declare(rho=1))
    assert stated.after(budget.spends) == Cost(Fraction(1, 3), Fraction(0), Fraction(1, 18))
    budget = Budget(both)
    budget.spend("count", Amount(rho=Fraction(1, 999)), DiscreteGaussian, COUNT)
    assert whole.after(budget.spends) == Cost(Fraction(1), both.delta, Fraction(1, 999))


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=10**9))
def test_long_numbers_are_rounded_up(value: Fraction) -> None:
    near = value + Fraction(1, 3**80)
    assert near <= _short(near) <= near * (1 + Fraction(3, 10**14))
    assert _short(_short(near)) >= _short(near)


amounts = st.sampled_from(["0.01", "0.1", "1/3", "0.5", "1"])
guarantees = st.one_of(
    st.builds(lambda e: Guarantee.declare(epsilon=e), amounts),
    st.builds(
        lambda e, d: Guarantee.declare(epsilon=e, delta=d), amounts, st.sampled_from([1e-9, 1e-7])
    ),
    st.builds(lambda r: Guarantee.declare(rho=r), st.sampled_from(["1e-5", "0.001", "0.02"])),
)
totals = st.sampled_from(
    [
        Guarantee.declare(epsilon=1),
        Guarantee.declare(epsilon=1, delta="1e-6"),
        Guarantee.declare(epsilon=3, delta="1e-7"),
        Guarantee.declare(rho="0.05"),
    ]
)


@given(totals, st.lists(guarantees, max_size=30))
def test_what_is_left_is_what_is_allowed(total: Guarantee, several: list[Guarantee]) -> None:
    """Both ways: what is left fits, and what fits is within the total and within what is left."""
    spent, divided = NOTHING, None
    for guarantee in several:
        trial = divided or division(total, guarantee)
        assert trial.sums + trial.zcdp == total.delta
        rule = Rule(total, trial)
        if not rule.allows(spent + Cost.of(guarantee)):
            continue
        left = rule.left(spent)
        if guarantee.rho is not None:
            assert guarantee.rho <= left.rho
        elif not guarantee.delta:
            assert guarantee.epsilon is not None
            assert guarantee.epsilon <= left.epsilon + Fraction(1, 1 << 80)
        divided, spent = trial, spent + Cost.of(guarantee)
        whole = rule.spent(spent)
        assert whole is not None
        assert (whole.epsilon or 0) <= (total.epsilon or 0)
        assert whole.delta <= total.delta
        assert (whole.rho or 0) <= (total.rho or 0)
        left = rule.left(spent)
        if left.epsilon > Fraction(1, 10**6):
            most = Guarantee.declare(epsilon=left.epsilon)
            assert rule.allows(spent + Cost.of(most))
            more = Guarantee.declare(epsilon=left.epsilon + Fraction(1, 10**9))
            assert not rule.allows(spent + Cost.of(more))
        if left.delta and left.epsilon_with_delta > Fraction(1, 10**6):
            most = Guarantee.declare(epsilon=left.epsilon_with_delta, delta=left.delta)
            assert rule.allows(spent + Cost.of(most))
        if left.rho > Fraction(1, 10**6):
            assert rule.allows(spent + Cost.of(Guarantee.declare(rho=left.rho)))


def test_the_first_release_divides_delta() -> None:
    total = Guarantee.declare(epsilon=1, delta=DELTA)
    assert division(total, KINDS["approximate"]) == Division(DELTA, Fraction(0))
    assert division(total, KINDS["concentrated"]) == Division(Fraction(0), DELTA)
    assert division(total, KINDS["pure"]) == Division(DELTA / 2, DELTA / 2)
    # All of the total can go to one release, whichever way it is stated.
    for first in (total, Guarantee.declare(rho=rho_within(Fraction(1), DELTA))):
        assert Rule(total, division(total, first)).allows(Cost.of(first))


def divergence(choose: object, epsilon: float) -> float:
    """Return the hockey-stick divergence that an attacker of the rule reaches at most.

    At each step it takes one of its mechanisms, each a list of outcomes (p, q, what is charged).
    """

    def value(p: float, q: float, state: tuple[Cost, ...]) -> float:
        best = max(p - math.exp(epsilon) * q, 0.0)
        for outcomes in choose(state):  # type: ignore[operator]
            best = max(best, sum(value(p * a, q * b, after) for a, b, after in outcomes))
        return best

    return value(1.0, 1.0, ())


@pytest.mark.parametrize("refunds", [False, True], ids=["rule", "mutant"])
def test_refusals_cannot_be_repeated_until_delta_leaks(refunds: bool) -> None:
    """A release that tells all with probability δ, or else refuses having spent next to nothing.

    The rule bounds that by δ, however often it is tried; a mutant that gives the δ of refusals
    back does not.
    """
    total = Guarantee.declare(epsilon=1, delta="0.01")
    release = Guarantee.declare(epsilon="0.1", delta="0.005")
    rule, whole = Rule(total, division(total, release)), Cost.of(release)
    budget = Budget(release)
    budget.spend("count", Amount(epsilon=Fraction(1, 10**5)), DiscreteLaplace, COUNT)
    kept = whole.after(budget.spends)
    refused = Cost(kept.epsilon, Fraction(0), kept.rho) if refunds else kept

    def choose(state: tuple[Cost, ...]) -> list[list[tuple[float, float, tuple[Cost, ...]]]]:
        if len(state) == 8 or not rule.allows(total_of(state) + whole):
            return []
        leak, rest = float(release.delta), 1 - float(release.delta)
        told = (*state, *[whole] * 9)  # nothing comes after it
        return [[(leak, 0.0, told), (rest, 1.0, (*state, refused))]]

    reached = divergence(choose, 1.0)
    assert (reached > 0.015) if refunds else (reached <= float(total.delta) + 1e-12)


def test_adaptive_randomized_responses_stay_within_the_total() -> None:
    """The best attack with randomized responses and leaks, each chosen after the last outcome."""
    total = Guarantee.declare(epsilon=1, delta="0.02")
    menu = [
        Guarantee.declare(epsilon="0.4"),
        Guarantee.declare(epsilon="0.2"),
        Guarantee.declare(epsilon="0.3", delta="0.01"),
    ]
    for first in menu:
        rule = Rule(total, division(total, first))

        def choose(
            state: tuple[Cost, ...], rule: Rule = rule
        ) -> list[list[tuple[float, float, tuple[Cost, ...]]]]:
            options = []
            for guarantee in menu:
                after = (*state, Cost.of(guarantee))
                if len(after) > 4 or not rule.allows(total_of(after)):
                    continue
                assert guarantee.epsilon is not None
                leak, odds = float(guarantee.delta), math.exp(float(guarantee.epsilon))
                yes, no = (1 - leak) * odds / (1 + odds), (1 - leak) / (1 + odds)
                options.append(
                    [(leak, 0.0, after), (0.0, leak, after), (yes, no, after), (no, yes, after)]
                )
            return options

        assert divergence(choose, 1.0) <= float(total.delta) + 1e-12
