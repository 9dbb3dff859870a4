"""Files of version 2: all in them comes back; what is unknown is kept or refused, never lost."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpkde
from commands import dpkde_
from dpkde.prior import SyntheticRelease
from dpkde.privacy.amounts import ONE_RECORD, Adjacency, Bounds, Unit
from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace, Law, MaxNorm
from dpkde.privacy.statement import PrivacyStatement
from dpkde.release import container
from dpkde.release.parts import (
    KINDS,
    NO_PARTS,
    ColumnTypes,
    LedgerEntry,
    Parts,
    UnknownPart,
)
from dpkde.space.moments import ColumnType
from grown import (
    GOLDEN,
    GROWN,
    LEDGER,
    MODEL,
    PATIENT,
    TILES,
    TYPES,
    grown_plan,
    grown_release,
    plain_plan,
    statement,
)

OPENERS: dict[str, Any] = {
    "plan": dpkde.Plan,
    "sketch": dpkde.Sketch,
    "release": dpkde.Release,
    "synthetic": SyntheticRelease,
}
PLAN_DIGEST = "1b331962536dc6fdaf348130d3b4f17f4de996a8f9c40032e52d581b205b10f7"


# What comes back


@pytest.mark.parametrize("kind", GROWN)
def test_written_and_read(kind: str, tmp_path: Path) -> None:
    thing, opener = GROWN[kind](), OPENERS[kind]
    assert thing.format_version == 2
    thing.save(tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == thing.to_bytes()
    for back in (opener.load(tmp_path / "x"), opener.from_bytes(thing.to_bytes())):
        assert back == thing
        assert back.to_bytes() == thing.to_bytes()
        assert back.contents()[0]["format_version"] == 2


@pytest.mark.parametrize("kind", GROWN)
@pytest.mark.parametrize("version", [1, 2])
def test_golden_files_keep_loading(kind: str, version: int) -> None:
    """And are written again byte for byte: version 1 as it was before there was another."""
    data = (GOLDEN / f"{kind}-v{version}.dpkde").read_bytes()
    thing = OPENERS[kind].from_bytes(data)
    assert thing.format_version == version
    assert thing.to_bytes() == data


def test_the_golden_plan_has_its_old_name() -> None:
    plan = dpkde.Plan.load(GOLDEN / "plan-v1.dpkde")
    assert plan.digest == PLAN_DIGEST
    assert dpkde.load(GOLDEN / "release-v1.dpkde").plan == plan
    assert (plan.unit, plan.parts) == (ONE_RECORD, NO_PARTS)


def test_what_a_golden_release_says() -> None:
    release = dpkde.load(GOLDEN / "release-v2.dpkde")
    assert list(release.parts) == ["columns", "ledger", "org.example/model", "org.example/tiles"]
    assert list(release.plan.parts) == ["columns", "org.example/tiles"]
    assert release.parts.of(ColumnTypes) == TYPES
    assert TYPES.types == (ColumnType.NUMBER, ColumnType.DATE)
    assert release.parts.of(LedgerEntry) == LEDGER
    assert release.privacy.unit == release.plan.unit == PATIENT
    purposes = [spend.purpose for spend in release.privacy.spends]
    assert purposes == ["histogram lon", "bandwidth", "count", "table"]
    assert str(release.privacy).splitlines()[1:3] == [
        "with respect to adding or removing all records of any one patient_id (their number is "
        "private, and so is that of the records).",
        "It protects each patient_id as a whole: at most 8 of its records counted, however many it "
        "has.",
    ]
    assert release.kde([[0.0, 1.0]]).shape == (1,)
    assert (release.standard_error([[0.0, 1.0]]) > 0).all()


def test_a_release_with_parts_is_pickled_and_compared() -> None:
    release = grown_release()
    assert pickle.loads(pickle.dumps(release)) == release
    other = release.with_parts(replace(LEDGER, entry=8))
    assert other != release
    assert other.release_id == release.release_id
    assert list(other.parts) == list(release.parts)
    with pytest.raises(dpkde.ParameterError, match="same name"):
        release.with_parts(TYPES)  # its plan has one
    with pytest.raises(TypeError):
        release.parts["ledger"] = LEDGER  # type: ignore[index]


def test_inspect_tells_of_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grown_release().save(tmp_path / "r")
    told = dpkde_("inspect", str(tmp_path / "r"), capsys=capsys)[1]
    assert "one patient_id with at most 8 records" in told
    assert f"ledger     {LEDGER.ledger}, entry 7, head {LEDGER.head}" in told
    assert "org.example/model version 2 (kept, not used" in told
    document = json.loads(dpkde_("inspect", str(tmp_path / "r"), "--json", capsys=capsys)[1])
    assert document["tensors"]["part.org.example/model.coefficients"] == [2]


# Version 1 wherever it suffices


def _release(plan: dpkde.Plan, privacy: PrivacyStatement) -> dpkde.Release:
    return dpkde.Release(plan, np.zeros(plan.pair.bounds.cells, np.int64), 5, privacy)


def test_version_1_where_it_suffices() -> None:
    plain = plain_plan()
    release = dpkde.publish(np.zeros((5, 2)), plan=plain, epsilon=1)
    assert plain.format_version == release.format_version == 1
    assert Unit() == ONE_RECORD
    assert replace(plain, unit=Unit(), parts=Parts()).to_bytes() == plain.to_bytes()
    for grown in (replace(plain, unit=Unit(None, 2)), replace(plain, parts=Parts((TYPES,)))):
        assert grown.format_version == 2
        assert grown != plain
        assert dpkde.Plan.from_bytes(grown.to_bytes()) == grown
    for bigger in (release.with_parts(LEDGER), _release(plain, statement(plain))):
        assert bigger.format_version == 2
        assert bigger.plan.digest == plain.digest
        assert bigger.contents()[0]["privacy"]["unit"] == {"name": None, "records": 1}
        assert dpkde.Release.from_bytes(bigger.to_bytes()) == bigger
    assert release.with_parts().to_bytes() == release.to_bytes()


def test_version_1_means_what_it_meant() -> None:
    """Fields that it does not know are ignored, as ever; its parts are no parts."""
    plain = plain_plan()
    document, tensors = plain.contents()
    document["news"] = 1
    document["plan"] = document["plan"] | {
        "unit": {"name": "x", "records": 9},
        "parts": {"ledger": {"version": 9, "required": True}},
    }
    assert dpkde.Plan.of_contents((document, tensors)) == plain
    document, tensors = dpkde.publish(np.zeros((5, 2)), plan=plain, epsilon=1).contents()
    with pytest.raises(dpkde.FormatError):
        dpkde.Release.of_contents((document, tensors | {"part.ledger.x": tensors["table"]}))
    document["privacy"]["unit"] = {"name": None, "records": 1}
    with pytest.raises(dpkde.FormatError):
        dpkde.Release.of_contents((document, tensors))


# Parts that are not known


def _at(kind: str, document: Any) -> Any:
    """Return the object of a document that has the parts."""
    return document["plan"] if kind in ("plan", "sketch") else document


@pytest.mark.parametrize("kind", GROWN)
@pytest.mark.parametrize("name", ["columns", "model", "org.example/more", "a.b/c"])
def test_unknown_parts_are_kept_or_refused(kind: str, name: str) -> None:
    document, tensors = copy.deepcopy(GROWN[kind]().contents())
    if kind == "release" and name == "columns":
        del document["plan"]["parts"]["columns"]
    entry = {"version": 99, "required": False, "x": {"y": [1.5, None, "π"]}}
    _at(kind, document)["parts"][name] = entry
    tensors[f"part.{name}.numbers"] = np.array([1.0, 2.0])
    back = OPENERS[kind].of_contents((document, tensors))
    parts = back.plan.parts if kind == "sketch" else back.parts
    assert isinstance(parts[name], UnknownPart)
    assert parts.of(LedgerEntry) == (None if kind in ("plan", "sketch") else LEDGER)
    again, held = container.unpack(back.to_bytes())
    assert _at(kind, again)["parts"][name] == entry
    assert np.array_equal(held[f"part.{name}.numbers"], [1.0, 2.0])
    assert again == json.loads(json.dumps(document))
    entry["required"] = True
    with pytest.raises(dpkde.VersionError, match=f"'{name}'.* 99.*install a newer dpkde"):
        OPENERS[kind].of_contents((document, tensors))


@pytest.mark.parametrize("kind", GROWN)
@pytest.mark.parametrize(
    "name",
    [
        *("more", "part.ledger", "part.ledger.x", "part.absent.x", "part..x", "part.", "familyx"),
        *("part.org.example/tiles.deep.x", "part.org.example/tiles.X", "family.more", ""),
    ],
)
def test_tensors_that_belong_to_nothing_are_refused(kind: str, name: str) -> None:
    if kind == "synthetic" and name == "part.ledger.x":
        name = "part.ledger.y"  # it has a ledger entry, which has no tensors
    document, tensors = GROWN[kind]().contents()
    with pytest.raises(dpkde.FormatError):
        OPENERS[kind].of_contents((document, tensors | {name: np.zeros(2)}))


@pytest.mark.parametrize("kind", GROWN)
def test_fields_that_belong_to_nothing_are_refused(kind: str) -> None:
    document, tensors = GROWN[kind]().contents()
    places: list[tuple[Any, ...]] = [()]
    places += [("plan",), ("plan", "unit")] if "plan" in document else []
    if "privacy" in document:
        places += [("privacy",), ("privacy", "unit"), ("privacy", "spends", 0)]
    for place in places:
        changed = copy.deepcopy(document)
        inner = changed
        for key in place:
            inner = inner[key]
        inner["news"] = None
        with pytest.raises(dpkde.FormatError):
            OPENERS[kind].of_contents((changed, tensors))
    for version in (3, 0, -2, "2", 2.0, True, None, [2], 10**30):
        with pytest.raises(dpkde.VersionError, match="install a newer dpkde"):
            OPENERS[kind].of_contents((document | {"format_version": version}, tensors))


def _deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def _skippable(**fields: Any) -> dict[str, Any]:
    return {"version": 1, "required": False, **fields}


_HEAD = "ab" * 32
_NAMES = ("", "X", "a b", "a.b", "/a", "a/", "a/b/c", "é", "a" * 65, "a\n", "-")
_TYPES: tuple[Any, ...] = (None, 5, "date", ["number", "day"], [["number"], "date"], {}, [None, 1])
_VERSIONS: tuple[Any, ...] = (0, -1, "1", 1.0, True, None, [])
_FLAGS: tuple[Any, ...] = (0, 1, None, "no", [])
_ENTRIES: tuple[dict[str, Any], ...] = (
    {"ledger": "0f", "entry": 1},
    {"ledger": "0F", "entry": 1, "head": _HEAD},
    {"ledger": "", "entry": 1, "head": _HEAD},
    {"ledger": "f" * 65, "entry": 1, "head": _HEAD},
    {"ledger": "0f", "entry": -1, "head": _HEAD},
    {"ledger": "0f", "entry": 1 << 63, "head": _HEAD},
    {"ledger": "0f", "entry": True, "head": _HEAD},
    {"ledger": "0f", "entry": 1.0, "head": _HEAD},
    {"ledger": "0f", "entry": 1, "head": "ab" * 31},
    {"ledger": "0f", "entry": 1, "head": ["ab"] * 32},
    {"ledger": "0f", "entry": 1, "head": _HEAD, "name": "other"},
)
HOSTILE: tuple[Any, ...] = (
    *(None, [], 7, "ledger", [["ledger", {}]]),
    *({"ledger": None}, {"ledger": []}, {"ledger": {}}, {"ledger": "x"}, {"ledger": 3}),
    *({"x": {"version": 1}}, {"x": {"required": False}}),
    *({"x": {"version": version, "required": False}} for version in _VERSIONS),
    *({"x": {"version": 1, "required": required}} for required in _FLAGS),
    *({name: _skippable()} for name in _NAMES),
    {f"x{i}": _skippable() for i in range(65)},
    {"x": _skippable(deep=_deep(33))},
    {"x": _skippable(infinite=float("inf"))},
    {"columns": _skippable()},
    {"columns": {"version": 1, "required": True, "types": ["number", "date"]}},
    {"columns": _skippable(types=["number", "date"], more=1)},
    *({"columns": _skippable(types=types)} for types in _TYPES),
    *({"ledger": _skippable(**entry)} for entry in _ENTRIES),
)


@pytest.mark.parametrize("kind", GROWN)
@pytest.mark.parametrize("parts", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_parts(kind: str, parts: Any) -> None:
    document, tensors = copy.deepcopy(GROWN[kind]().contents())
    kept = {name: array for name, array in tensors.items() if not name.startswith("part.")}
    for place in {id(each): each for each in (document, document.get("plan", {}))}.values():
        place.pop("parts", None)
    assert OPENERS[kind].of_contents((document, kept)) is not None
    _at(kind, document)["parts"] = parts
    with pytest.raises(dpkde.FormatError) as caught:
        OPENERS[kind].of_contents((document, kept))
    assert "\n" not in str(caught.value)


def test_a_document_too_deep_to_parse_is_refused() -> None:
    good = grown_release().to_bytes()
    text = container.canonical(grown_release().contents()[0])
    assert '"note":null' in text
    for levels in (1000, 100_000):
        deep = text.replace('"note":null', f'"note":{"[" * levels}{"]" * levels}')
        body = good[8 + int.from_bytes(good[:8], "little") :]
        header = json.loads(good[8 : 8 + int.from_bytes(good[:8], "little")])
        tensors = grown_release().contents()[1]
        header["__metadata__"] = {"dpkde": deep, "sha256": container.digest(deep, tensors)}
        packed = json.dumps(header).encode()
        with pytest.raises(dpkde.FormatError):
            dpkde.Release.from_bytes(len(packed).to_bytes(8, "little") + packed + body)


def test_parts_are_checked_where_they_are_made() -> None:
    with pytest.raises(dpkde.ParameterError, match="3 column types for 2 columns"):
        replace(plain_plan(), parts=Parts((ColumnTypes((ColumnType.DATE,) * 3),)))
    with pytest.raises(dpkde.ParameterError, match="'number', 'date', 'instant'"):
        ColumnTypes(("day",))  # type: ignore[arg-type]
    with pytest.raises(dpkde.ParameterError, match="at most 64"):
        Parts(UnknownPart(f"x{i}", 1, {}, {}) for i in range(65))
    for name, kind in KINDS.items():
        assert kind.name == name
        assert kind.version >= 1
    assert repr(Parts((MODEL, TILES))) == "<Parts: org.example/model 2, org.example/tiles 3>"
    assert repr(NO_PARTS) == "<Parts: none>"
    assert hash(Parts((MODEL, TILES))) == hash(Parts((TILES, MODEL)))


# Spends


def _changed(change: Callable[[Any], Any]) -> container.Contents:
    document, tensors = copy.deepcopy(grown_release().contents())
    change(document["privacy"])
    return document, tensors


SPENT: dict[str, Callable[[Any], Any]] = {
    "more than declared": lambda p: p["spends"][0].update(epsilon="2/10", scale="40/1"),
    "less declared": lambda p: p.update(epsilon="9/10"),
    "too small a scale": lambda p: p["spends"][0].update(scale="79/1"),
    "too large a scale": lambda p: p["spends"][0].update(scale="81/1"),
    "another sensitivity": lambda p: p["spends"][0].update(sensitivity="4"),
    "no sensitivity": lambda p: p["spends"][0].update(sensitivity="0"),
    "a number": lambda p: p["spends"][0].update(sensitivity=8),
    "a table's law": lambda p: p["spends"][0].update(law="max-norm"),
    "a choice for the count": lambda p: p["spends"][2].update(law="exponential", scale="160/1"),
    "no such law": lambda p: p["spends"][0].update(law="none"),
    "no purpose": lambda p: p["spends"][0].update(purpose=""),
    "two lines": lambda p: p["spends"][0].update(purpose="a\nThis release is private"),
    "an escape": lambda p: p["spends"][0].update(purpose="\x1b[2J"),
    "a long purpose": lambda p: p["spends"][0].update(purpose="x" * 201),
    "a list": lambda p: p["spends"][0].update(purpose=["count"]),
    "two counts": lambda p: p["spends"][0].update(purpose="count"),
    "two tables": lambda p: p["spends"][0].update(purpose="table"),
    "no count": lambda p: p["spends"].pop(2),
    "no table": lambda p: p["spends"].pop(),
    "the table first": lambda p: p["spends"].insert(0, p["spends"].pop()),
    "the table not last": lambda p: p["spends"].insert(2, p["spends"].pop()),
    "too many": lambda p: p["spends"].__setitem__(slice(0, 0), [p["spends"][0]] * 1100),
    "none": lambda p: p["spends"].clear(),
    "no list": lambda p: p.update(spends={}),
    "long fractions": lambda p: p["spends"][0].update(epsilon="1/" + "9" * 200),
}


@pytest.mark.parametrize("what", SPENT)
def test_spends_that_do_not_add_up(what: str) -> None:
    assert dpkde.Release.of_contents(_changed(lambda privacy: None))
    with pytest.raises(dpkde.FormatError):
        dpkde.Release.of_contents(_changed(SPENT[what]))


def test_other_spends_come_anywhere_before_the_table() -> None:
    for order in ([2, 0, 1, 3], [1, 0, 2, 3], [0, 2, 1, 3]):
        contents = _changed(
            lambda p, order=order: p.update(spends=[p["spends"][i] for i in order])  # type: ignore[misc]
        )
        back = dpkde.Release.of_contents(contents)
        assert back.law("count") == DiscreteLaplace(back.privacy.spends[order.index(2)].law.scale)
        assert back.law("histogram lon") is not None
        assert dpkde.Release.from_bytes(back.to_bytes()) == back


# Units


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("law", "guarantee"),
    [
        (DiscreteLaplace, {"epsilon": 1}),
        (MaxNorm, {"epsilon": 1}),
        (DiscreteGaussian, {"epsilon": 1, "delta": "1e-6"}),
    ],
)
def test_noise_is_for_all_records_of_a_unit(
    law: type[Law], guarantee: dict[str, Any], adjacency: str
) -> None:
    plan = grown_plan()
    good = _release(plan, statement(plan, law=law, adjacency=adjacency, **guarantee))
    assert dpkde.Release.from_bytes(good.to_bytes()) == good
    moved = plan.pair.bounds.under(Adjacency(adjacency))
    factor = 64 if law is DiscreteGaussian else 8
    assert good.privacy.spends[-1].sensitivity == factor * law.sensitivity(moved)
    for records in (1, 7, 9):
        bad = statement(plan, law=law, adjacency=adjacency, records=records, **guarantee)
        with pytest.raises(dpkde.FormatError, match="does not add up"):
            dpkde.Release.from_bytes(_release(plan, bad).to_bytes())


def test_the_count_too_is_for_all_records_of_a_unit() -> None:
    document, tensors = copy.deepcopy(grown_release().contents())
    assert dpkde.Release.of_contents((document, tensors))
    document["privacy"]["spends"][2].update(sensitivity="1", scale="10/1")
    with pytest.raises(dpkde.FormatError):
        dpkde.Release.of_contents((document, tensors))


_SIZES: tuple[Any, ...] = (0, -1, 1.0, True, "8", None, 2**32 + 1, 10**400)
_STRANGE: tuple[Any, ...] = ("", " ", "a\nb", "\x1b", "x" * 201, [], "\u202e")


@pytest.mark.parametrize(
    "unit",
    [
        *(None, "one record", [], {}, {"name": None}, {"records": 1}, {"name": 5, "records": 1}),
        *({"name": "x", "records": size} for size in _SIZES),
        *({"name": name, "records": 8} for name in _STRANGE),
        {"name": "patient_id", "records": 7},
        {"name": "person", "records": 8},
    ],
)
def test_hostile_units(unit: Any) -> None:
    for place in ("plan", "privacy"):
        document, tensors = copy.deepcopy(grown_release().contents())
        document[place]["unit"] = unit
        with pytest.raises(dpkde.FormatError):
            dpkde.Release.of_contents((document, tensors))


def test_a_unit_in_words() -> None:
    assert str(PrivacyStatement(statement(plain_plan()).guarantee, ()).unit) == "one record"
    several = replace(statement(plain_plan()).guarantee, unit=Unit(None, 3))
    words = str(PrivacyStatement(several, ()))
    assert "adding or removing any 3 records (" in words
    assert "It protects 3 records as a whole." in words
    assert str(Unit("household")) == "one household with at most one record"
    for wrong in (0, -1, 1.5, True, "3"):
        with pytest.raises(dpkde.ParameterError, match="records"):
            Unit(None, wrong)  # type: ignore[arg-type]
    assert type(Unit(None, np.int64(3)).records) is int  # type: ignore[arg-type]


@pytest.mark.parametrize("nonnegative", [True, False])
def test_bounds_of_several_records_hold(nonnegative: bool) -> None:
    """The worst over random records, and one case that reaches each bound."""
    generator = np.random.default_rng(0)
    low = 0 if nonnegative else -3
    for records in (1, 2, 5):
        for adjacency in Adjacency:
            moved = Bounds(4, 12, 36, 3, nonnegative).times(records).under(adjacency)
            most = [0, 0, 0]
            for round_ in range(300):
                old, new = generator.integers(low, 4, (2, records, 4))
                if round_ == 0:
                    old, new = np.full((records, 4), 3), np.full((records, 4), low)
                change = old.sum(0) - (new.sum(0) if adjacency is Adjacency.REPLACE else 0)
                norms = [np.abs(change).sum(), (change**2).sum(), np.abs(change).max()]
                most = [max(a, int(b)) for a, b in zip(most, norms, strict=True)]
            assert most[0] <= moved.l1
            assert most[1] <= moved.l2_squared
            assert most[2] <= moved.linf
            assert most[2] == moved.linf
    assert Bounds(4, 12, 36, 3, nonnegative).times(5).l2_squared == 25 * 36


def test_nothing_is_sketched_for_a_unit_that_nobody_can_tell() -> None:
    """Of records without a name for whose they are, any three might belong together."""
    points, plan = np.zeros((5, 2)), grown_plan(Unit(None, 8))
    for act in (
        lambda: dpkde.sketch(points, plan),
        lambda: dpkde.publish(points, plan=plan, epsilon=1),
    ):
        with pytest.raises(dpkde.ParameterError, match="protects 8 records, and no column"):
            act()
    with pytest.raises(dpkde.SchemaError, match="no column 'patient_id'"):
        dpkde.sketch(points, grown_plan())
    typed = grown_plan(ONE_RECORD, TYPES)
    release = dpkde.publish(dpkde.sketch(points, typed), epsilon=1)
    assert release.parts.of(ColumnTypes) == TYPES
    assert dpkde.Release.from_bytes(release.to_bytes()) == release
    with pytest.raises(dpkde.ParameterError, match="the statement one record"):
        _release(plan, statement(plain_plan()))
