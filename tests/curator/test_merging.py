"""Parts of one table: none counts twice, what cannot be merged is named, ids stay in sketches."""

from __future__ import annotations

import copy
import os
import pickle
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpkde
from dpkde.planning.differences import differences
from dpkde.planning.promise import Promise
from dpkde.privacy.amounts import Unit
from dpkde.release import container
from dpkde.release.parts import LedgerEntry, Parts, SketchIds

POINTS = np.random.default_rng(0).uniform(-2, 2, size=(60, 2))


def _plan(**changes: Any) -> dpkde.Plan:
    arguments: dict[str, Any] = {
        "kernel": dpkde.Gaussian(1.0),
        "bounds": [(-2.0, 2.0)] * 2,
        "epsilon": 1,
        "family": dpkde.Fourier(5),
        "seed": 1,
        "columns": ["a", "b"],
    }
    return dpkde.plan(**(arguments | changes))


PLAN = _plan()


def _parts(count: int = 3) -> list[dpkde.Sketch]:
    return [dpkde.sketch(rows, PLAN) for rows in np.array_split(POINTS, count)]


def test_a_part_counts_once_however_it_comes(tmp_path: Path) -> None:
    """As an object, a copy, a file, bytes, or in a sum that was merged before."""
    a, b, c = _parts()
    a.save(tmp_path / "a.sketch")
    again = [
        a,
        copy.copy(a),
        copy.deepcopy(a),
        pickle.loads(pickle.dumps(a)),
        dpkde.Sketch.load(tmp_path / "a.sketch"),
        dpkde.Sketch.from_bytes(a.to_bytes()),
        a + b,
        dpkde.Sketch.from_bytes((b + a + c).to_bytes()),
        sum([a, c]),
    ]
    for other in again:
        with pytest.raises(dpkde.MergeError, match="sketch 2 has a part in it that is in sketch 1"):
            a + other
        with pytest.raises(dpkde.MergeError, match="sketch 3 has a part in it that is in sketch 2"):
            dpkde.Sketch.merge([dpkde.Sketch.empty(PLAN), other, a])
    whole = dpkde.sketch(POINTS, PLAN)
    assert a + b + c == whole == dpkde.Sketch.merge([c, b, a])
    assert dpkde.sketch(POINTS, PLAN) + whole == whole + dpkde.sketch(POINTS, PLAN)


def test_the_same_points_sketched_twice_are_two_parts() -> None:
    """Nothing is noticed by values: two tables may well hold the same rows."""
    one, other = dpkde.sketch(POINTS, PLAN), dpkde.sketch(POINTS, PLAN)
    assert one == other
    assert (one + other)._rows == 2 * len(POINTS)


def test_the_empty_sketch_adds_nothing_however_often() -> None:
    parts = _parts()
    total = dpkde.Sketch.empty(PLAN)
    assert total + total == total
    for part in parts:
        total += part
        total += dpkde.Sketch.empty(PLAN)
    whole = dpkde.sketch(POINTS, PLAN)
    assert total == whole == sum(parts) == sum(parts, dpkde.Sketch.empty(PLAN))
    with pytest.raises(dpkde.MergeError, match="has a part in it"):
        total += parts[1]


def test_tables_without_rows_have_ids_like_any_other() -> None:
    """Else the file, or its size, would tell whether a place has any records."""
    nothing, some = dpkde.sketch(POINTS[:0], PLAN), dpkde.sketch(POINTS, PLAN)
    assert len(nothing.to_bytes()) == len(some.to_bytes())
    assert len(nothing._ids) == len(some._ids) == 1
    with pytest.raises(dpkde.MergeError):
        nothing + nothing
    sizes = {
        len(dpkde.Sketch.merge([dpkde.sketch(POINTS[:k], PLAN), nothing]).to_bytes())
        for k in (0, 1, 60)
    }
    assert len(sizes) == 1


def test_files_without_ids_load_and_merge() -> None:
    """Those from before there were any; and readers of then pass over ours, as over any field."""
    for plan in (PLAN, replace(PLAN, parts=Parts([_types()]))):
        sketch = dpkde.sketch(POINTS, plan)
        document, tensors = sketch.contents()
        assert not [name for name in tensors if "sketch-ids" in name]
        assert document["parts"]["sketch-ids"]["required"] is False
        del document["parts"], document["secret"]
        old = dpkde.Sketch.of_contents((document, tensors))
        assert old == sketch
        assert old + sketch == sketch + old
        assert not old._ids


def _types() -> Any:
    from dpkde.release.parts import ColumnTypes

    return ColumnTypes(("number", "date"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "entry",
    [
        {"ids": ["0" * 31]},
        {"ids": ["0" * 33]},
        {"ids": ["0" * 31 + "A"]},
        {"ids": ["0" * 32, "0" * 32]},
        {"ids": ["1" * 32, "0" * 32]},
        {"ids": [5]},
        {"ids": 5},
        {"ids": ["0" * 32], "more": 1},
        {"ids": ["0" * 32], "required": True},
        {},
    ],
)
def test_damaged_ids_are_refused(entry: dict[str, Any]) -> None:
    document, tensors = dpkde.sketch(POINTS, PLAN).contents()
    document["parts"]["sketch-ids"] = {"version": 1, "required": False, **entry}
    with pytest.raises(dpkde.FormatError):
        dpkde.Sketch.of_contents((document, tensors))


def test_other_parts_of_a_sketch_are_passed_over_or_refused() -> None:
    document, tensors = dpkde.sketch(POINTS, PLAN).contents()
    document["parts"]["org.example/note"] = {"version": 1, "required": False, "x": 1}
    back = dpkde.Sketch.of_contents((document, tensors))
    assert list(back.contents()[0]["parts"]) == ["sketch-ids"]
    document["parts"]["org.example/note"]["required"] = True
    with pytest.raises(dpkde.VersionError):
        dpkde.Sketch.of_contents((document, tensors))


def test_ids_are_in_no_plan_and_in_no_release() -> None:
    part = SketchIds(("0" * 32,))
    with pytest.raises(dpkde.ParameterError, match="only a sketch"):
        replace(PLAN, parts=Parts([part]))
    release = dpkde.publish(dpkde.sketch(POINTS, PLAN), epsilon=1)
    with pytest.raises(dpkde.ParameterError, match="only a sketch"):
        dpkde.Release(PLAN, release.table, release.count, release.privacy, parts=(part,))
    document, tensors = release.contents()
    document["parts"] = {"sketch-ids": {"version": 1, "required": False, "ids": ["0" * 32]}}
    with pytest.raises(dpkde.FormatError):
        dpkde.Release.of_contents((document | {"format_version": 2}, tensors))


def test_a_release_does_not_hang_on_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From one tape of entropy, equal sums make equal releases: ids are not in them, nor drawn."""
    sums, seeds = dpkde.sketch(POINTS, PLAN), np.random.default_rng(0)
    transcripts = []
    for count in (1, 3):
        ids = [seeds.bytes(16).hex() for _ in range(count)]
        same = dpkde.Sketch(PLAN, sums._table, sums._count, sums._rows, ids)
        data, drawn = _played(same, monkeypatch)
        transcripts.append((data, drawn))
        for each in ids:
            assert each.encode() not in data
            assert bytes.fromhex(each) not in data
    assert transcripts[0] == transcripts[1]


def _played(sums: dpkde.Sketch, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, list[int]]:
    """Return a release, published from the same entropy each time, and what was drawn for it."""
    tape, drawn = np.random.default_rng(7), list[int]()

    def urandom(size: int) -> bytes:
        drawn.append(size)
        return tape.bytes(size)

    with monkeypatch.context() as patch:
        patch.setattr(os, "urandom", urandom)
        patch.setattr(secrets, "randbits", lambda bits: 7)
        data = dpkde.publish(sums, epsilon=1).to_bytes()
    assert drawn
    return data, drawn


def test_all_that_cannot_be_merged_is_named_at_once() -> None:
    a, b, c = _parts()
    other = dpkde.sketch(POINTS, _plan(kernel=dpkde.Gaussian(2.0)))
    named = [("a", a), ("b", b), ("elsewhere", other), ("copy", a), ("c", c), ("late", c)]
    with pytest.raises(dpkde.MergeError) as raised:
        dpkde.Sketch.merge_named(named)
    text = str(raised.value)
    assert (
        "a and elsewhere were made under different plans: kernel.bandwidth is 1.0 and 2.0" in text
    )
    assert "copy has a part in it that is in a as well" in text
    assert "late has a part in it that is in c as well" in text
    right = [pair for pair in named if pair[0] in "abc"]
    assert dpkde.Sketch.merge_named(right) == dpkde.sketch(POINTS, PLAN)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"kernel": dpkde.Gaussian([1.0, 2.5])}, "kernel.bandwidth is 1.0 and [1.0, 2.5]"),
        ({"kernel": dpkde.Laplacian(1.0)}, "kernel.name is 'gaussian' and 'laplacian'"),
        ({"bounds": [(-2.0, 2.0), (-1.0, 2.0)]}, "bounds[1][0] is -2.0 and -1.0"),
        ({"bounds": dpkde.Box([(-2, 2)] * 2, "drop")}, "domain.outside is 'clip' and 'drop'"),
        ({"bounds": None, "dim": 2}, "the kind of bounds is 'box' and 'unbounded'"),
        ({"family": dpkde.Fourier(6)}, "family.frequencies is 5 and 6"),
        ({"family": dpkde.Spline(2, 1.0)}, "family.name is 'fourier' and 'spline'"),
        ({"seed": 2}, "seed is '1' and '2'"),
        ({"columns": ["a", "c"]}, "columns[1] is 'b' and 'c'"),
        ({"columns": None}, "columns is ['a', 'b'] and not there"),
        ({"capacity_bits": 30}, "capacity_bits is 40 and 30"),
        ({"unit": "who", "rows_per_unit": 3}, "unit is not there and {'name': 'who'"),
    ],
)
def test_what_differs_is_told_with_both_values(changes: dict[str, Any], told: str) -> None:
    other = _plan(**changes)
    assert told in differences(PLAN, other)
    one = dpkde.Sketch.empty(PLAN)
    with pytest.raises(dpkde.MergeError, match="different plans") as raised:
        dpkde.Sketch.merge([one, dpkde.Sketch.empty(other)])
    assert told in str(raised.value)
    assert differences(other, _plan(**changes)) == ""


def test_differences_of_what_was_drawn_and_of_parts() -> None:
    tensors = {name: array + 1 for name, array in PLAN.pair.tensors.items()}
    other = replace(PLAN, pair=PLAN.layout.restore(PLAN.bits, tensors))
    assert differences(PLAN, other) == "what was drawn is not the same: frequencies"
    other = replace(PLAN, promise=Promise(0.5, 0.1))
    assert differences(PLAN, other).startswith("promise is not there and {'alpha': 0.5")
    other = replace(PLAN, parts=Parts([_types()]))
    assert differences(PLAN, other).startswith("parts is not there and {'columns'")
    unit = _plan(unit="who", rows_per_unit=3)
    more = replace(unit, unit=Unit("who", 4))
    assert differences(unit, more) == "unit.records is 3 and 4"
    spoof = _plan(columns=["a", "\x1b[2J\nb" + "x" * 99])
    told = differences(PLAN, spoof)
    assert "\x1b" not in told
    assert len(told) < 120
    many = _plan(kernel=dpkde.Hat(9.0), bounds=[(0, 1)] * 2, columns=["x", "y"], seed=8)
    assert differences(PLAN, many).endswith("more")


def test_a_plan_of_another_code_of_the_same_name() -> None:
    bounds = replace(PLAN.pair.bounds, l1=PLAN.pair.bounds.l1 + 1)
    pair = copy.copy(PLAN.pair)
    pair.__dict__["bounds"] = bounds  # as code of the same name may declare them elsewhere
    told = differences(PLAN, replace(PLAN, pair=pair))
    assert told == f"the l1 bound of a record is {bounds.l1 - 1} and {bounds.l1}"


def test_units_are_priced_and_their_parts_count_once() -> None:
    plan = _plan(unit="who", rows_per_unit=2)
    frames = [
        pd.DataFrame({"who": [f"p{k}"] * 5, "a": POINTS[k : k + 5, 0], "b": POINTS[k : k + 5, 1]})
        for k in range(3)
    ]
    parts = [dpkde.sketch(frame, plan) for frame in frames]
    both = dpkde.Sketch.merge(parts[:2])
    assert both.plan.unit.records == 4
    for disjoint in (False, True):
        with pytest.raises(dpkde.MergeError, match="sketch 2 has a part in it that is in sketch 1"):
            dpkde.Sketch.merge([both, parts[0]], disjoint_units=disjoint)
    assert dpkde.Sketch.merge([both, parts[2]]).plan.unit.records == 6
    assert dpkde.Sketch.merge(parts, disjoint_units=True).plan.unit.records == 2
    assert [part.plan.unit.records for part in parts] == [2, 2, 2]


def test_a_file_of_a_sketch_says_that_it_is_secret(tmp_path: Path) -> None:
    dpkde.sketch(POINTS, PLAN).save(tmp_path / "part.sketch")
    assert b"as secret as the data" in (tmp_path / "part.sketch").read_bytes()
    if os.name == "posix":
        assert (tmp_path / "part.sketch").stat().st_mode & 0o777 == 0o600
    assert container.kind_of(tmp_path / "part.sketch") == "dpkde-sketch"
    assert container.kind_of(tmp_path / "none") is None
    assert LedgerEntry.name not in dpkde.sketch(POINTS, PLAN).contents()[0]["parts"]
