"""Query release and synthetic data under a ledger: the whole guarantee is reserved at once."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde.prior import PMW, LaplaceAnswers, Online, OurRelease, SmallDB, SyntheticRelease, answer
from dpkde.privacy.amounts import COUNT, Amount
from dpkde.privacy.laws import DiscreteLaplace
from dpkde.privacy.ledger.book import State
from dpkde.privacy.ledger.ledger import Ledger
from dpkde.release.parts import LedgerEntry

POINTS = np.random.default_rng(0).normal(0.4, 0.1, size=(400, 1))
TERMS: dict[str, Any] = {"kernel": dpkde.Gaussian(0.3), "bounds": [(0, 1)], "epsilon": 1}
QUERIES = np.linspace(0, 1, 5).reshape(-1, 1)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budget.db", dataset="d", epsilon=2)


def entries(ledger: Ledger) -> list[tuple[str, State]]:
    return [(booking.kind, booking.state) for booking in ledger.history()]


def test_answers(ledger: Ledger) -> None:
    for mechanism in (LaplaceAnswers(), OurRelease()):
        answer(POINTS, QUERIES, mechanism=mechanism, ledger=ledger, **TERMS)
    assert entries(ledger) == [("answers", State.RETURNED)] * 2
    with pytest.raises(dpkde.BudgetError, match="d has ε = 0 left"):
        answer(POINTS, QUERIES, mechanism=LaplaceAnswers(), ledger=ledger, **TERMS)


def test_online_reserves_once_for_all_that_is_asked(ledger: Ledger) -> None:
    terms: dict[str, Any] = {**TERMS, "mechanism": LaplaceAnswers(), "ledger": ledger}
    curator = Online(POINTS, most_queries=50, **terms)
    assert ledger.left().epsilon == 1  # before anything is asked
    for _ in range(50):
        curator.ask(QUERIES[:1])
    assert ledger.left().epsilon == 1
    with pytest.raises(dpkde.BudgetError, match="for 50 queries"):
        curator.ask(QUERIES[:1])
    assert entries(ledger) == [("answers online", State.RETURNED)]
    with pytest.raises(dpkde.ParameterError, match="read only once"):
        Online(iter([POINTS]), most_queries=5, **terms)
    assert len(ledger.history()) == 1


def test_synthetic_data_carry_their_entry(ledger: Ledger, tmp_path: Path) -> None:
    made = [
        SmallDB(size=3, points_per_axis=8).release(POINTS, ledger=ledger, **TERMS),
        PMW(points_per_axis=8, rounds=4).release(
            POINTS, ledger=ledger, remark="for tests", **TERMS
        ),
    ]
    assert entries(ledger) == [("synthetic data", State.RETURNED)] * 2
    for number, release in enumerate(made):
        release.save(tmp_path / f"{number}.dpkde")
        assert release.parts.of(LedgerEntry) is not None
    assert entries(ledger) == [("synthetic data", State.WRITTEN)] * 2
    files = sorted(tmp_path.glob("*.dpkde"))
    assert ledger.verify([*files, *made])
    loaded = dpkde.load(files[0])
    assert isinstance(loaded, SyntheticRelease)
    # What is made of it is another thing, under another name: the entry stays with the original.
    assert loaded.coreset(2).parts.of(LedgerEntry) is None


def test_weights_learned_online(ledger: Ledger) -> None:
    session = PMW(points_per_axis=8).online(POINTS, ledger=ledger, **TERMS)
    assert ledger.left().epsilon == 1
    session.ask(QUERIES)
    assert ledger.verify([session.release()])
    assert entries(ledger) == [("answers online", State.RETURNED)]


def test_a_refusal_reduces_it_to_what_was_spent(ledger: Ledger) -> None:
    class Refuses(LaplaceAnswers):
        def answer(self, private: Any, queries: Any, budget: Any) -> Any:
            amount = budget.left_pure().part(Fraction(1, 4))
            private.noisy_count(private.totals(), budget, amount)
            raise dpkde.AccuracyError("too few")

    class Overspends(Refuses):
        def answer(self, private: Any, queries: Any, budget: Any) -> Any:
            with contextlib.suppress(dpkde.AccuracyError):
                super().answer(private, queries, budget)
            budget.spend("more", Amount(epsilon=Fraction(1)), DiscreteLaplace, COUNT)

    with pytest.raises(dpkde.BudgetError):
        answer(POINTS, QUERIES, mechanism=Overspends(), ledger=ledger, **TERMS)
    assert entries(ledger) == [("answers", State.REFUSED)]
    assert ledger.left().epsilon == 2 - Fraction(1, 4)
    # What somebody else's mechanism raises may hang on anything, and is charged in full.
    with pytest.raises(dpkde.AccuracyError):
        answer(POINTS, QUERIES, mechanism=Refuses(), ledger=ledger, **TERMS)
    assert entries(ledger) == [("answers", State.REFUSED), ("answers", State.RESERVED)]
    assert ledger.left().epsilon == 1 - Fraction(1, 4)
