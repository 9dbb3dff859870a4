"""Publishing under a ledger: reserved before anything is read, settled at the end."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde.errors import SourceError
from dpkde.privacy.budget import Budget
from dpkde.privacy.ledger.book import State
from dpkde.privacy.ledger.ledger import Ledger
from dpkde.release.parts import LedgerEntry

KERNEL = dpkde.Gaussian(1.0)
BOUNDS = [(-3.0, 3.0)] * 2
POINTS = np.random.default_rng(0).normal(size=(300, 2))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budget.db", dataset="trips", epsilon=2)


def publish(points: Any = POINTS, **changes: Any) -> dpkde.Release:
    arguments: dict[str, Any] = {"kernel": KERNEL, "bounds": BOUNDS, "epsilon": "1/2"}
    return dpkde.publish(points, **(arguments | changes))


def states(ledger: Ledger) -> list[State]:
    return [booking.state for booking in ledger.history()]


def test_a_release_carries_its_entry(ledger: Ledger, tmp_path: Path) -> None:
    release = publish(ledger=ledger, dataset="trips", remark="heat map")
    (booking,) = ledger.history()
    assert release.parts.of(LedgerEntry) == LedgerEntry(ledger.id, booking.number, booking.head)
    assert (release.release_id, booking.remark) == (booking.release_id, "heat map")
    assert states(ledger) == [State.RETURNED]
    release.save(tmp_path / "r.dpkde")
    assert states(ledger) == [State.WRITTEN]
    release.save(tmp_path / "again.dpkde")
    loaded = dpkde.load(tmp_path / "r.dpkde")
    assert loaded == release
    loaded.save(tmp_path / "third.dpkde")
    length = ledger.verify([release, loaded, tmp_path / "again.dpkde"]).entries
    assert length == 5  # ledger, data set, reserved, returned, written
    for other in (pickle.loads(pickle.dumps(release)), copy.deepcopy(release)):
        assert other == release
        assert not hasattr(other, "_when_saved")


def test_release_handed_on_by_other_ways(ledger: Ledger) -> None:
    release = dpkde.Release.from_bytes(publish(ledger=ledger).to_bytes())
    ledger.written(release)
    assert states(ledger) == [State.WRITTEN]


@pytest.mark.parametrize("way", ["points", "plan", "sketch", "rows"])
def test_every_road_reserves_before_it_reads(
    ledger: Ledger, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads finds the whole guarantee reserved, and so does whoever draws."""
    seen = []
    noise = Budget.noise

    def watched(budget: Any, spend: Any, size: int) -> Any:
        seen.append(ledger.left().epsilon)
        return noise(budget, spend, size)

    monkeypatch.setattr(Budget, "noise", watched)

    def pieces() -> Any:
        seen.append(ledger.left().epsilon)
        yield POINTS

    plan = dpkde.plan(kernel=KERNEL, bounds=BOUNDS, epsilon=1, expected_rows=300)
    if way == "points":
        publish(ledger=ledger)
    elif way == "rows":
        publish(pieces(), expected_rows=300, ledger=ledger)
    elif way == "plan":
        dpkde.publish(pieces(), plan=plan, epsilon="1/2", ledger=ledger)
    else:
        dpkde.publish(dpkde.sketch(POINTS, plan), epsilon="1/2", ledger=ledger)
    assert len(seen) >= 2
    assert set(seen) == {Fraction(3, 2)}
    assert states(ledger) == [State.RETURNED]


def test_a_sketch_that_is_published_again_pays_again(ledger: Ledger) -> None:
    plan = dpkde.plan(kernel=KERNEL, bounds=BOUNDS, epsilon=1, expected_rows=300)
    sums = dpkde.sketch(POINTS, plan)
    for left in (1, 0):
        dpkde.publish(sums, epsilon=1, ledger=ledger.path)
        assert ledger.left().epsilon == left
    with pytest.raises(dpkde.BudgetError, match=r"trips has ε = 0 left of ε = 2"):
        dpkde.publish(sums, epsilon=1, ledger=str(ledger.path))


def test_nothing_is_read_or_drawn_where_too_little_is_left(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: Any) -> Any:
        raise AssertionError("it was read, or noise was drawn")

    monkeypatch.setattr(Budget, "noise", forbidden)
    monkeypatch.setattr("dpkde.tables.source.Source.pieces", forbidden)
    for terms in ({"epsilon": 3}, {"epsilon": 1, "delta": "1e-6"}, {"adjacency": "replace"}):
        with pytest.raises(dpkde.BudgetError):
            publish(ledger=ledger, **terms)
    assert not ledger.history()


def test_a_promise_that_cannot_be_kept_costs_the_count(ledger: Ledger) -> None:
    with pytest.raises(dpkde.AccuracyError, match=r"was spent on the count"):
        publish(epsilon=1, alpha=0.001, eta=0.01, ledger=ledger)
    (booking,) = ledger.history()
    assert booking.state is State.REFUSED
    assert booking.cost.epsilon is not None
    assert 0 < booking.cost.epsilon < 1
    assert ledger.left().epsilon == 2 - booking.cost.epsilon
    assert "of ε = 1; refused, nothing was published" in str(ledger.statement())


def test_an_error_of_the_callers_code_costs_all(ledger: Ledger) -> None:
    """It is no refusal of dpkde's, whatever its type: the code may have seen records."""

    def batches() -> Iterator[Any]:
        yield POINTS
        if POINTS[0, 0] > -9:  # a private value
            raise dpkde.ParameterError("from outside")

    with pytest.raises(SourceError, match=r"\(ParameterError\)") as stopped:
        publish(points=batches(), expected_rows=300, ledger=ledger)
    assert "from outside" not in str(stopped.value)
    assert states(ledger) == [State.RESERVED]
    assert ledger.left().epsilon == Fraction(3, 2)


def test_what_is_wrong_with_a_request_costs_nothing(ledger: Ledger) -> None:
    for wrong in (
        {"columns": ["a"]},
        {"bounds": [(0, 1)] * 3},
        {"family": "nothing"},
        {"alpha": 2, "eta": 0.1},
        {"dataset": "others"},
        {"part": "2026-01"},
        {"remark": "two\nlines"},
        {"points": iter([POINTS])},  # once, and no plan: known before it is read
    ):
        with pytest.raises(dpkde.ParameterError):
            publish(**{"points": POINTS, "ledger": ledger, **wrong})
    assert ledger.left().epsilon == 2
    for name in ("dataset", "part", "remark"):
        with pytest.raises(dpkde.ParameterError, match=f"{name} goes with ledger="):
            publish(**{name: "x"})


def test_the_unit_is_that_of_the_plan(ledger: Ledger, tmp_path: Path) -> None:
    """What is published protects one record, and a ledger of patients says no."""
    patients = Ledger.create(
        tmp_path / "patients.db", dataset="p", epsilon=1, unit="patient_id", rows_per_unit=3
    )
    with pytest.raises(dpkde.BudgetError, match="this protects one record"):
        publish(ledger=patients)


def test_parts_and_totals_of_all_kinds(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = Ledger.create(path, dataset="months", epsilon=1, parts=["01", "02"])
    Ledger.create(path, dataset="zcdp", rho="0.1")
    Ledger.create(path, dataset="both", epsilon=1, delta="1e-6", adjacency="replace")
    publish(ledger=path, dataset="months", part="01", epsilon=1)
    publish(ledger=path, dataset="months", part="02", epsilon=1)
    with pytest.raises(dpkde.BudgetError, match="part 01, has ε = 0 left"):
        publish(ledger=path, dataset="months", part="01", epsilon="0.1")
    publish(ledger=path, dataset="zcdp", epsilon=None, rho="0.1")
    release = publish(ledger=path, dataset="both", epsilon=1, delta="1e-6", adjacency="replace")
    assert ledger.verify([release])
    assert [b.dataset for b in ledger.history()] == ["months", "months", "zcdp", "both"]


def test_a_ledger_that_goes_away_in_between(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The release is paid for, and is given; a warning says what could not be entered."""
    settle = Ledger.settle

    def fails(*_: Any) -> None:
        raise dpkde.LedgerError("the disk fails")

    monkeypatch.setattr(Ledger, "settle", fails)
    with pytest.warns(UserWarning, match="stays 'reserved': the disk fails"):
        release = publish(ledger=ledger)
    assert states(ledger) == [State.RESERVED]
    with pytest.raises(dpkde.LedgerError, match="the disk fails"):
        release.save(tmp_path / "r.dpkde")
    assert dpkde.load(tmp_path / "r.dpkde") == release  # it is there all the same
    # A refusal that cannot be entered is the refusal all the same, and the whole stays.
    with pytest.raises(dpkde.AccuracyError):
        publish(epsilon=1, alpha=0.001, eta=0.01, ledger=ledger)
    assert states(ledger) == [State.RESERVED] * 2
    monkeypatch.setattr(Ledger, "settle", settle)
    assert ledger.left().epsilon == Fraction(1, 2)
