"""What each of several disjoint releases may cost: closed forms, and the steps of the proof."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpkde
from dpkde.privacy.amounts import Adjacency, Unit
from dpkde.privacy.budget import Guarantee
from dpkde.privacy.concentrated import rho_within
from dpkde.privacy.disjoint import LabelledStatement, each_of, share_id
from dpkde.privacy.ledger.accounting import Cost

declare = Guarantee.declare
EPSILONS = st.fractions(Fraction(1, 1000), Fraction(30), max_denominator=10**6)


@given(EPSILONS, st.integers(3, 60))
def test_add_remove_gives_each_the_whole(epsilon: Fraction, digits: int) -> None:
    for total in (
        declare(epsilon=epsilon),
        declare(epsilon=epsilon, delta=Fraction(1, 10**digits)),
        declare(rho=epsilon),
    ):
        assert each_of(total) is total


@given(EPSILONS, st.integers(3, 60))
def test_replace_is_two_steps_of_add_remove(epsilon: Fraction, digits: int) -> None:
    """By sums (2ε′, (1 + e^{ε′})δ′), and as zCDP four times as much as each, within the total."""
    total = declare(epsilon=epsilon, delta=Fraction(1, 10**digits), adjacency="replace")
    each = each_of(total)
    assert each.adjacency is Adjacency.ADD_REMOVE
    assert each.epsilon == epsilon / 2
    twice = float((1 + Fraction(math.exp(epsilon / 2)) * (1 + Fraction(1, 10**12))) * each.delta)
    assert twice <= float(total.delta) * (1 + 1e-9)
    assert Fraction(math.exp(epsilon / 2)) * each.delta < total.delta
    assert 4 * Cost.of(each).rho <= Cost.of(total).rho
    assert twice >= float(total.delta) * 0.9  # and it wastes little


def test_pure_and_concentrated_under_replace() -> None:
    pure = each_of(declare(epsilon="1/3", adjacency="replace"))
    assert (pure.epsilon, pure.delta, pure.rho) == (Fraction(1, 6), Fraction(0), None)
    assert 4 * Cost.of(pure).rho == Cost.of(declare(epsilon="1/3")).rho
    both = each_of(declare(rho="1/3", adjacency="replace"))
    assert (both.epsilon, both.rho) == (None, Fraction(1, 12))


def test_delta_falls_until_two_steps_are_within_the_zcdp_that_is_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever `rho_within` says: here one that would let the plain division pass too much."""
    from dpkde.privacy import disjoint

    total = declare(epsilon=1, delta="1e-6", adjacency="replace")
    plain = each_of(total).delta

    def steep(epsilon: Fraction, delta: Fraction) -> Fraction:
        return rho_within(epsilon, delta) * (2000 if epsilon < 1 and delta > plain / 5 else 1)

    monkeypatch.setattr(disjoint, "rho_within", steep)
    assert each_of(total).delta == plain / 8


@pytest.mark.parametrize(
    ("total", "message"),
    [
        (declare(epsilon="2e-12", adjacency="replace"), None),
        (declare(epsilon="1e-12", adjacency="replace"), "epsilon is too small"),
        (declare(rho="2e-12", adjacency="replace"), "rho is too small"),
        (declare(epsilon=1, delta="1e-300", adjacency="replace"), "delta is too small"),
        (declare(epsilon=1, unit=Unit("user", 3)), "records of one user"),
        (declare(epsilon=1, unit=Unit(records=2)), "records of one 2 records"),
    ],
)
def test_what_cannot_be_divided(total: Guarantee, message: str | None) -> None:
    if message is None:
        assert each_of(total).epsilon == Fraction(1, 10**12)
        return
    with pytest.raises(dpkde.ParameterError, match=message):
        each_of(total)


def test_names_of_shares() -> None:
    """They never change: files carry them."""
    names = {share_id("0" * 32, number, of) for of in (1, 2, 12) for number in range(of)}
    assert len(names) == 15
    assert share_id("0" * 32, 1, 2) == "0d1110d0dbc649d39103a347349fdc71"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"epsilon": 1}, ["together 1-diff", "adding or removing any one labelled", "has ε = 1,"]),
        (
            {"epsilon": 1, "delta": "1e-6", "adjacency": "replace"},
            ["together (1, 1e-06)-diff", "its label, or both", "has ε = 0.5, δ = 3.776e-07,"],
        ),
        ({"rho": "1/2", "adjacency": "replace"}, ["0.5-zero-concentrated diff", "has ρ = 0.125,"]),
    ],
)
def test_the_statement(arguments: dict[str, Any], told: list[str]) -> None:
    total = declare(**arguments)
    text = str(LabelledStatement(total, each_of(total), ("a", "b")))
    assert "These 2 releases" in text
    for words in told:
        assert words in text
