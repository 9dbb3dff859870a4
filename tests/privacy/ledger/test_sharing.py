"""One entry for several releases: debited once, settled together, and seen by verification."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde.curator.labelled.labels import numbered
from dpkde.curator.labelled.publish import Labelled, publish_labelled
from dpkde.errors import SourceError
from dpkde.privacy.budget import Guarantee
from dpkde.privacy.ledger.accounting import NOTHING
from dpkde.privacy.ledger.book import State
from dpkde.privacy.ledger.booking import page_of
from dpkde.privacy.ledger.sharing import sharing
from dpkde.release.parts import LedgerEntry, LedgerShare

GENERATOR = np.random.default_rng(0)
X, Y = GENERATOR.normal(size=(300, 1)), np.repeat(["a", "b", "c"], 100)
SETTINGS: dict[str, Any] = {
    "kernel": dpkde.Gaussian(1.0),
    "bounds": [(-4, 4)],
    "family": dpkde.Spline(3, 0.5),
}


def fitted(ledger: Any, **changes: Any) -> Labelled:
    arguments: dict[str, Any] = {"classes": ["a", "b", "c"], "epsilon": 1} | SETTINGS | changes
    return publish_labelled(X, Y, ledger=ledger, **arguments)


def ledger_of(folder: Path, **changes: Any) -> dpkde.Ledger:
    arguments: dict[str, Any] = {"dataset": "visits", "epsilon": 2} | changes
    return dpkde.Ledger.create(folder / "budget.db", **arguments)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_one_debit_for_all(tmp_path: Path, adjacency: str) -> None:
    ledger = ledger_of(tmp_path, adjacency=adjacency)
    releases = fitted(ledger, adjacency=adjacency, remark="three classes").releases
    (booking,) = ledger.history()
    assert (booking.state, booking.remark) == (State.RETURNED, "three classes")
    assert booking.guarantee.epsilon == 1
    assert ledger.left().epsilon == 1
    each = Fraction(1) if adjacency == "add-remove" else Fraction(1, 2)
    for number, release in enumerate(releases.values()):
        assert release.parts.of(LedgerShare) == LedgerShare(number, 3)
        assert release.parts.of(LedgerEntry) == LedgerEntry(ledger.id, booking.number, booking.head)
        assert (release.privacy.epsilon, release.privacy.adjacency) == (each, "add-remove")
    assert len({release.release_id for release in releases.values()}) == 3
    files = []
    for label, release in releases.items():
        files.append(tmp_path / f"{label}.dpkde")
        release.save(files[-1])
        assert dpkde.load(files[-1]) == release
    assert [b.state for b in ledger.history()] == [State.WRITTEN]
    verdict = ledger.verify([*files, *releases.values()])
    assert (verdict.faults, verdict.unseen, verdict.entries) == ((), (), 5)
    assert ledger.verify(files[:1]).unseen == ()
    assert ledger.verify().unseen == (booking.number,)


def test_more_than_is_left_draws_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = ledger_of(tmp_path, epsilon="1/2")

    def never(*arguments: Any) -> None:
        raise AssertionError("something was read, or drawn")

    monkeypatch.setattr("dpkde.curator.labelled.publish.numbered", never)
    monkeypatch.setattr("dpkde.privacy.budget.Budget.spend", never)
    with pytest.raises(dpkde.BudgetError, match=r"left of ε = 0\.5, and this asks for ε = 1"):
        fitted(ledger)
    assert ledger.history() == ()


def test_it_is_reserved_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpkde.curator.labelled import publish as module

    ledger, seen = ledger_of(tmp_path), []
    true = numbered

    def watched(*arguments: Any) -> Any:
        seen.append(ledger.left().epsilon)
        return true(*arguments)

    monkeypatch.setattr(module, "numbered", watched)
    fitted(ledger)
    assert seen == [1]


def _failing(
    monkeypatch: pytest.MonkeyPatch, before: int, error: BaseException, spent: bool = True
) -> None:
    """Let the publishing of a class end in an error of dpkde's, after that of some others."""
    from dpkde.curator import publish as module

    true, done = module._noised, list[int]()
    inside: dict[str, Any] = {"__name__": "dpkde.pretended", "error": error}
    exec("def stop():\n    raise error", inside)

    def noised(*arguments: Any) -> Any:
        if len(done) < before:
            done.append(1)
            return true(*arguments)
        if not spent:
            arguments[2].budget._spends.clear()
        return inside["stop"]()

    monkeypatch.setattr(module, "_noised", noised)


@pytest.mark.parametrize(
    ("before", "spent", "state"),
    [
        (0, False, State.REFUSED),  # nothing was drawn
        (0, True, State.RESERVED),  # its count was
        (1, False, State.RESERVED),  # a whole release was
    ],
)
def test_a_refusal_gives_back_where_nothing_was_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int, spent: bool, state: State
) -> None:
    ledger = ledger_of(tmp_path)
    _failing(monkeypatch, before, dpkde.AccuracyError("too few"), spent)
    with pytest.raises(dpkde.AccuracyError):
        fitted(ledger)
    (booking,) = ledger.history()
    assert booking.state is state
    assert (booking.cost == NOTHING) == (state is State.REFUSED)
    assert ledger.left().epsilon == (2 if state is State.REFUSED else 1)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SourceError("x"), RuntimeError("x")])
def test_all_else_costs_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    ledger = ledger_of(tmp_path)
    _failing(monkeypatch, 0, error, spent=False)
    with pytest.raises(type(error)):
        fitted(ledger)
    assert [b.state for b in ledger.history()] == [State.RESERVED]
    assert ledger.left().epsilon == 1


def test_what_is_wrong_with_a_request_costs_nothing(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path)
    wrong: list[dict[str, Any]] = [
        {"classes": []},
        {"classes": ["a", "a"]},
        {"kernel": None},
        {"bounds": [(1, 0)]},
        {"unit": "user", "rows_per_unit": 1},
        {"part": "may"},
    ]
    for changes in wrong:
        with pytest.raises(dpkde.ParameterError):
            fitted(ledger, **changes)
    with pytest.raises(dpkde.ParameterError, match="one label for each row"):
        publish_labelled(X, Y[:5], classes=["a"], epsilon=1, ledger=ledger, **SETTINGS)
    with pytest.raises(dpkde.BudgetError, match="do not add up"):
        fitted(ledger, adjacency="replace")
    assert all(booking.cost == NOTHING for booking in ledger.history())
    assert ledger.left().epsilon == 2


@pytest.mark.parametrize(("epsilon", "made"), [("1/2", 1), (1, 0), ("1/3", 0)])
def test_a_share_pays_for_one_release_of_its_guarantee(
    tmp_path: Path, epsilon: Any, made: int
) -> None:
    ledger = ledger_of(tmp_path, adjacency="replace")
    total = Guarantee.declare(epsilon=1, adjacency="replace")
    done = []

    def twice() -> None:
        with sharing(page_of(ledger), total, 2) as (page, _):
            for _again in range(2):
                done.append(dpkde.publish(X, epsilon=epsilon, ledger=page, **SETTINGS))

    with pytest.raises(dpkde.BudgetError, match="share of the entry"):
        twice()
    assert len(done) == made
    assert ledger.left().epsilon == (1 if made else 2)


def test_a_declared_part(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, parts=["may", "june"])
    fitted(ledger, part="may")
    assert [ledger.left(part=part).epsilon for part in ("may", "june")] == [1, 2]


def _changed(release: dpkde.Release, *parts: Any, **values: Any) -> dpkde.Release:
    """Return a release with other parts or values, as a forger would write it."""
    own = {part.name: part for part in (*release._parts.values(), *parts)}
    arguments = {"release_id": release.release_id, "parts": own.values()} | values
    return dpkde.Release(release.plan, release.table, release.count, release.privacy, **arguments)


def test_what_verification_finds(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, adjacency="replace")
    a, b, c = fitted(ledger, adjacency="replace").releases.values()
    assert ledger.verify([a, b, c, a])
    again = dpkde.Release(
        a.plan, a.table + 1, a.count, a.privacy, release_id=a.release_id, parts=a._parts.values()
    )
    entry = a.parts.of(LedgerEntry)
    assert entry is not None
    alone = dpkde.publish(X, epsilon="1/2", extras=None, **SETTINGS)
    whole = dpkde.publish(X, epsilon=1, adjacency="replace", **SETTINGS)
    name = ledger.history()[0].release_id
    for forged, words in (
        ([a, again], "claims entry"),  # another draw of a share
        ([_changed(a, LedgerShare(1, 3))], "is not the release of entry"),
        ([_changed(a, LedgerShare(0, 2))], "is not the release of entry"),
        ([_changed(a, release_id=b.release_id)], "is not the release of entry"),
        ([_changed(whole, entry, LedgerShare(0, 3), release_id=a.release_id)], "guarantees"),
        ([_changed(alone, entry, release_id=name)], "guarantees"),
        ([a, _changed(whole, entry, release_id=name)], "claims entry"),  # shares, and the whole
    ):
        verdict = ledger.verify(forged)
        assert len(verdict.faults) == 1, words
        assert words in verdict.faults[0]


@pytest.mark.parametrize("numbers", [(0, 0), (3, 3), (-1, 2), (0.5, 2), (0, 10_001), ("0", 2)])
def test_damaged_shares(numbers: Any) -> None:
    with pytest.raises(dpkde.ParameterError):
        LedgerShare(*numbers)
    assert replace(LedgerShare(0, 2), number=1).to_json() == {"number": 1, "of": 2}
