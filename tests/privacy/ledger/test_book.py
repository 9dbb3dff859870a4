"""The ledger as its users see it: data sets, parts, units, what is left, what became of things."""

from __future__ import annotations

import os
import pickle
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpkde
from dpkde.privacy.amounts import Unit
from dpkde.privacy.budget import Guarantee
from dpkde.privacy.ledger.accounting import NOTHING, Cost
from dpkde.privacy.ledger.book import KINDS, State
from dpkde.privacy.ledger.ledger import Ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


def spend(ledger: Ledger, epsilon: Any = None, **changes: Any) -> Any:
    delta, rho = changes.pop("delta", 0), changes.pop("rho", None)
    adjacency = changes.pop("adjacency", "add-remove")
    guarantee = Guarantee.declare(epsilon=epsilon, delta=delta, rho=rho, adjacency=adjacency)
    return ledger.reserve(guarantee, **changes)


def test_a_ledger_remembers(path: Path) -> None:
    made = Ledger.create(path, dataset="trips", epsilon=2)
    assert made.total() == Guarantee.declare(epsilon=2)
    assert made.left().epsilon == 2
    assert made.spent() == NOTHING
    booking = spend(made, "0.5", remark="a map")
    again = Ledger.open(str(path))
    assert (again.id, again.datasets) == (made.id, ("trips",))
    assert again.left().epsilon == Fraction(3, 2)
    assert again.spent().epsilon == Fraction(1, 2)
    (kept,) = again.history()
    assert kept == booking
    assert (kept.state, kept.remark, kept.kind) == (State.RESERVED, "a map", "release")
    assert bool(again.verify())
    assert pickle.loads(pickle.dumps(again)).left() == again.left()
    assert repr(again).startswith("<Ledger: ")
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["budget.db"]


def test_overspending_is_refused_with_what_is_left(path: Path) -> None:
    ledger = Ledger.create(path, dataset="trips", epsilon=1)
    spend(ledger, "1/3")
    with pytest.raises(
        dpkde.BudgetError, match=r"trips has ε = 0\.6666 left of ε = 1, .* ε = 0\.7"
    ):
        spend(ledger, "0.7")
    spend(ledger, "2/3")
    with pytest.raises(dpkde.BudgetError, match="ε = 0 left"):
        spend(ledger, "1e-6")
    assert len(ledger.history()) == 2


def test_ten_tenths_are_one(path: Path) -> None:
    """Typed as text, as floats, and as fractions; a float may be less than it prints as."""
    for name, tenth in (("text", "0.1"), ("float", 0.1), ("fraction", Fraction(1, 10))):
        ledger = Ledger.create(path, dataset=name, epsilon=1)
        for _ in range(10):
            spend(ledger, tenth, dataset=name)
        assert ledger.left(name).epsilon == 0
    # The float 0.3 is slightly less than three tenths, and three times "0.1" do not fit it.
    ledger = Ledger.create(path, dataset="float total", epsilon=0.3)
    for _ in range(2):
        spend(ledger, "0.1", dataset="float total")
    with pytest.raises(dpkde.BudgetError, match=r"left of ε = 0\.3"):
        spend(ledger, "0.1", dataset="float total")
    assert 0 < ledger.left("float total").epsilon < Fraction(1, 10)


@pytest.mark.parametrize(
    ("total", "asked", "fits"),
    [
        ({"epsilon": 1}, [{"epsilon": 1, "delta": "1e-9"}], 0),
        ({"epsilon": 1}, [{"rho": "1e-6"}], 0),
        ({"epsilon": 1, "delta": "1e-6"}, [{"epsilon": 1, "delta": "1e-6"}], 1),
        ({"epsilon": 1, "delta": "1e-6"}, [{"epsilon": "1/2", "delta": "5e-7"}] * 3, 2),
        ({"epsilon": 1, "delta": "1e-6"}, [{"epsilon": "1/2"}, {"epsilon": "1/2"}], 2),
        ({"epsilon": 1, "delta": "1e-6"}, [{"epsilon": "0.2"}] * 15, 5),
        ({"epsilon": 1, "delta": "1e-6"}, [{"rho": "0.005"}] * 6, 4),
        ({"epsilon": 1, "delta": "1e-6"}, [{"epsilon": "1/2"}, {"rho": "0.001"}], 1),
        ({"epsilon": 1, "delta": "0.2"}, [{"epsilon": "0.2"}] * 15, 13),  # by sums 5
        ({"rho": "0.1"}, [{"rho": "0.03"}] * 4, 3),
        ({"rho": "0.1"}, [{"epsilon": "0.2"}] * 6, 5),
        ({"rho": "0.1"}, [{"epsilon": "0.2", "delta": "1e-6"}] * 6, 5),
        ({"epsilon": "1e-9"}, [{"epsilon": "5e-10"}] * 3, 2),
        ({"epsilon": 10**6}, [{"epsilon": 10**6}, {"epsilon": "1e-9"}], 1),
    ],
)
def test_what_fits_a_total(
    path: Path, total: dict[str, Any], asked: list[dict[str, Any]], fits: int
) -> None:
    ledger = Ledger.create(path, dataset="d", **total)
    fitted = 0
    for terms in asked[: fits + 1]:
        try:
            spend(ledger, **terms)
        except dpkde.BudgetError:
            continue
        fitted += 1
    assert fitted == fits
    assert len(ledger.history()) == fits


def test_kinds_of_spends_are_not_mixed(path: Path) -> None:
    Ledger.create(path, dataset="d", epsilon=1)
    ledger = Ledger.create(path, dataset="patients", epsilon=1, unit="patient_id", rows_per_unit=3)
    with pytest.raises(dpkde.BudgetError, match="adjacency='replace'"):
        spend(ledger, 1, dataset="d", adjacency="replace")
    with pytest.raises(dpkde.BudgetError, match="counted for the unit one record"):
        spend(ledger, 1, dataset="d", unit=Unit("patient_id", 3))
    with pytest.raises(dpkde.BudgetError, match="this protects one record"):
        spend(ledger, 1, dataset="patients")
    with pytest.raises(dpkde.BudgetError, match="this protects one name with"):
        spend(ledger, 1, dataset="patients", unit=Unit("name", 3))
    with pytest.raises(dpkde.BudgetError, match="this protects 3 records"):
        spend(ledger, 1, dataset="patients", unit=Unit(records=3))


def test_fewer_records_of_the_same_units_add_up_and_more_are_refused(path: Path) -> None:
    """Whom a release protects does not hang on how many of their records count."""
    ledger = Ledger.create(path, dataset="patients", epsilon=1, unit="patient_id", rows_per_unit=3)
    for records in (3, 2, 1):
        spend(ledger, "0.25", unit=Unit("patient_id", records))
    with pytest.raises(dpkde.BudgetError, match=r"counts up to 4: take rows_per_unit=3"):
        spend(ledger, "0.25", unit=Unit("patient_id", 4))
    assert Ledger.open(path).left().epsilon == Fraction(1, 4)
    assert bool(ledger.verify())
    assert "at most 3 of its records counted in any of these" in str(ledger.statement())


def test_disjoint_parts_compose_in_parallel(path: Path) -> None:
    months = [f"2026-{month:02}" for month in range(1, 13)]
    ledger = Ledger.create(path, dataset="trips", epsilon=1, parts=months)
    for month in months:
        spend(ledger, "0.6", part=month)
    assert ledger.spent().epsilon == Fraction(3, 5)
    with pytest.raises(dpkde.BudgetError, match=r"part 2026-03, has ε = 0\.4 left"):
        spend(ledger, "0.5", part="2026-03")
    spend(ledger, "0.1")  # of the whole: every part is charged
    assert ledger.left(part="2026-03").epsilon == Fraction(3, 10)
    spend(ledger, "0.3", part="2026-03")
    # The part that was charged most limits the whole.
    assert ledger.left().epsilon == 0
    with pytest.raises(dpkde.BudgetError, match="trips has ε = 0 left"):
        spend(ledger, "0.1")
    assert ledger.left(part="2026-04").epsilon == Fraction(3, 10)
    for wrong in ("2027-01", 7):
        with pytest.raises(dpkde.ParameterError, match=f"no part {wrong!r}: there are 2026-01"):
            ledger.left(part=wrong)  # type: ignore[arg-type]
    Ledger.create(path, dataset="whole", epsilon=1)
    with pytest.raises(dpkde.ParameterError, match="none were declared when it was made"):
        ledger.spent("whole", part="2026-01")


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"adjacency": "replace", "parts": ["a"]}, "a record that changes can change its part"),
        ({"unit": "p", "rows_per_unit": 2, "parts": ["a"]}, "may lie in several parts"),
        ({"parts": ["a", "a"]}, "names of their own"),
        ({"parts": ["é", "e\u0301"]}, "names of their own"),
        ({"parts": "2026"}, "a list of names"),
        ({"parts": ["a\nb"]}, "on one line"),
        ({"unit": "p"}, "give unit= and rows_per_unit= together"),
        ({"rows_per_unit": 3}, "give unit= and rows_per_unit= together"),
        ({"unit": "p", "rows_per_unit": 0}, "from 1 to"),
        ({"unit": "p", "rows_per_unit": 1, "parts": ["a"]}, "may lie in several parts"),
        ({"epsilon": None}, "exactly one of epsilon and rho"),
        ({"epsilon": 0}, "must be positive"),
        ({"epsilon": 10**7}, "epsilon must be from"),
        ({"epsilon": 1, "delta": 2}, "below 1"),
        ({"dataset": "a\nb"}, "on one line"),
        ({"dataset": " a"}, "on one line"),
        ({"dataset": ""}, "on one line"),
        ({"dataset": 7}, "on one line"),
    ],
)
def test_wrong_totals(path: Path, terms: dict[str, Any], message: str) -> None:
    with pytest.raises(dpkde.ParameterError, match=message):
        Ledger.create(path, **{"dataset": "d", "epsilon": 1, **terms})
    assert not path.exists()


def test_names_are_what_they_look_like(path: Path) -> None:
    ledger = Ledger.create(path, dataset="cafe\u0301 数据", epsilon=1, parts=["Ärzte"])
    assert ledger.datasets == ("café 数据",)
    with pytest.raises(dpkde.ParameterError, match="already"):
        Ledger.create(path, dataset="café 数据", epsilon=2)
    assert ledger.left("cafe\u0301 数据").epsilon == 1


def test_several_data_sets(path: Path) -> None:
    ledger = Ledger.create(path, dataset="a", epsilon=1)
    assert Ledger.create(path, dataset="b", rho=1, adjacency="replace").id == ledger.id
    with pytest.raises(dpkde.ParameterError, match="its total cannot be changed"):
        Ledger.create(path, dataset="a", epsilon=5)
    with pytest.raises(dpkde.ParameterError, match="dataset is needed: this ledger has a, b"):
        ledger.left()
    with pytest.raises(dpkde.ParameterError, match="no data set 'c': it has a, b"):
        ledger.left("c")
    spend(ledger, 1, dataset="a")
    assert ledger.left("b").rho == 1
    assert len(ledger.history()) == len(ledger.history("a")) == 1
    assert not ledger.history("b")


def test_states_are_told_apart(path: Path) -> None:
    ledger = Ledger.create(path, dataset="d", epsilon=4)
    numbers = [spend(ledger, 1).number for _ in range(4)]
    ledger.settle(numbers[1], State.RETURNED)
    ledger.settle(numbers[2], State.RETURNED)
    ledger.settle(numbers[2], State.WRITTEN)
    ledger.settle(numbers[3], State.REFUSED, Cost(Fraction(1, 4), Fraction(0), Fraction(1, 32)))
    assert [booking.state for booking in ledger.history()] == [
        State.RESERVED,
        State.RETURNED,
        State.WRITTEN,
        State.REFUSED,
    ]
    assert ledger.spent().epsilon == Fraction(13, 4)
    length = ledger.verify().entries
    ledger.settle(numbers[2], State.WRITTEN)  # a second file of the same release
    ledger.settle(numbers[2], State.RETURNED)
    assert ledger.verify().entries == length
    # Nothing is given back of what somebody has, nor twice, nor more than was reserved.
    for number in numbers[1:]:
        with pytest.raises(dpkde.LedgerError, match=r"not to be refused|does not follow"):
            ledger.settle(number, State.REFUSED, Cost(Fraction(1, 9)))
    with pytest.raises(dpkde.LedgerError, match="does not follow"):
        ledger.settle(numbers[0], State.REFUSED, Cost(Fraction(2)))
    with pytest.raises(dpkde.LedgerError, match="no reservation 99"):
        ledger.settle(99, State.RETURNED)
    assert ledger.verify().entries == length
    assert ledger.verify()


def test_the_first_release_is_the_first_that_could_show_something(path: Path) -> None:
    ledger = Ledger.create(path, dataset="d", epsilon=1, delta="1e-6")
    first = spend(ledger, "0.1")  # pure: half of δ to each way of counting
    assert ledger.left().delta == Fraction(5, 10**7)
    ledger.settle(first.number, State.REFUSED, NOTHING)
    assert ledger.left().delta == Fraction(1, 10**6)
    second = spend(ledger, "0.1")
    spend(ledger, "0.1")
    ledger.settle(second.number, State.REFUSED, NOTHING)
    # The third may have shown something by now: δ stays divided as it was.
    assert ledger.left().delta == Fraction(5, 10**7)
    assert ledger.left().epsilon == Fraction(9, 10)
    assert [booking.state for booking in ledger.history()][:2] == [State.REFUSED] * 2


def test_a_clock_that_is_set_back_is_noted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(["2026-05-01T00:00:00Z"] * 3 + ["2026-04-01T00:00:00Z"] * 2)
    monkeypatch.setattr("dpkde.privacy.ledger.ledger.now", lambda: next(times))
    ledger = Ledger.create(path, dataset="d", epsilon=1)
    spend(ledger, "0.1")
    spend(ledger, "0.1")
    verdict = ledger.verify()
    assert verdict
    assert any("a clock was set back" in note for note in verdict.notes)


def test_another_ledger_in_its_place_is_not_taken_for_it(path: Path) -> None:
    ledger = Ledger.create(path, dataset="d", epsilon=1)
    path.unlink()
    Ledger.create(path, dataset="d", epsilon=1)
    for action in (ledger.left, lambda: spend(ledger, 1), lambda: ledger.history()):
        with pytest.raises(dpkde.LedgerError, match="another ledger"):
            action()


def test_nothing_is_kept_that_hangs_on_the_data(path: Path) -> None:
    """Field by field: a new one has to be thought over."""
    import json

    from dpkde.privacy.ledger import store

    ledger = Ledger.create(path, dataset="d", epsilon=2)
    ledger.settle(spend(ledger, 1).number, State.RETURNED)
    ledger.settle(spend(ledger, 1).number, State.REFUSED, Cost(Fraction(1, 2)))
    reserved = ["dataset", "entry", "guarantee", "kind", "part", "release_id", "remark", "time"]
    reserved.append("unit")
    bodies = [json.loads(row.body) for row in store.read(path)]
    assert [sorted(body) for body in bodies] == [
        ["entry", "id", "time", "version"],
        ["dataset", "entry", "parts", "time", "total", "unit"],
        reserved,
        ["entry", "of"],  # no time: how long reading takes tells how many records there are
        reserved,
        ["cost", "entry", "of"],
    ]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", b["time"]) for b in bodies[:3])
    assert KINDS == ("release", "synthetic data", "answers", "answers online")


def test_statement(path: Path) -> None:
    ledger = Ledger.create(path, dataset="trips", epsilon=2, parts=["north", "south"])
    booking = spend(ledger, "0.5", part="north", remark="heat map")
    spend(ledger, "0.25")
    ledger.settle(booking.number, State.RETURNED)
    text = str(ledger.statement())
    for words in (
        f"Everything that is published of trips through the ledger {ledger.id},",
        "is together 2-differentially private",
        "adding or removing any one record",
        "Its 2 parts are disjoint",
        "Spent so far: ε = 0.75. Left: ε = 1.25.",
        "release of north “heat map”: ε = 0.5; returned",
        "What was published without this ledger is not covered.",
    ):
        assert words in text
    document = ledger.statement().to_json()
    assert document["statement"] == text
    assert document["spent"]["epsilon"] == "3/4"
    Ledger.create(path, dataset="others", rho="0.1", unit="patient_id", rows_per_unit=8)
    text = str(ledger.statement("others"))
    assert "0.1-zero-concentrated differentially private" in text
    assert "It protects each patient_id as a whole: at most 8 of its records counted" in text
    assert "Nothing was published." in text
    Ledger.create(path, dataset="both", epsilon=1, delta="1e-6")
    spend(ledger, "0.1", dataset="both")
    text = str(ledger.statement("both"))
    assert "(1, 1e-06)-differentially private" in text
    assert "sums of ε = 0.1 and δ = 0; as zCDP ρ = 0.005" in text
