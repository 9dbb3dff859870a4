"""Transcripts: with the same noisy outputs nothing tells one table from another.

A run is recorded on a few records, and played again with strange records besides, and on no records
at all (under replace: with others in their place). All that is public has to be equal, byte for
byte: the release, warnings, log, errors, what was paid for. Nothing here is left to chance.

**Every option has a case here**: `OPTIONS` lists the settings to try for each argument of
`dpkde.publish`, and a test says which are missing. `MUTANTS` are faults that each have to show.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import logging
import shutil
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.typing import NDArray

import dpkde
from dpkde.curator.auditing.transcript import Recorder, Transcript, transcribe
from dpkde.errors import AccuracyError, DpkdeError
from dpkde.families.registry import FAMILIES
from dpkde.privacy.laws import Law, Randomness
from transcripts import POINTS, differences, neighbours, recorded, tables

road = importlib.import_module("dpkde.curator.publish")  # the module, not the function

USUAL: dict[str, Any] = {
    "kernel": dpkde.Gaussian(1.0),
    "bounds": [(-3.0, 3.0)] * 2,
    "epsilon": "0.5",
    "family": dpkde.Spline(2, 1.0),
    "threads": 1,
}


def alike(monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], **more: Any) -> Transcript:
    """Check that tables cannot be told apart under these settings; return the first transcript."""
    asked = {name: value for name, value in {**USUAL, **settings}.items() if value is not None}
    sides = more.pop("sides", None) or tables(asked.get("adjacency", "add-remove"))
    transcripts = recorded(monkeypatch, lambda table: dpkde.publish(table, **asked), sides, **more)
    assert not differences(transcripts)
    return transcripts[0]


# Every argument of publish

PLAN = dpkde.plan(**{k: v for k, v in USUAL.items() if k != "threads"}, seed=1, expected_rows=1000)
OPEN: dict[str, Any] = {"family": None}
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "kernel": [
        {"kernel": dpkde.Laplacian(0.5)},
        {"kernel": dpkde.Matern(1.5, 1.0), "family": dpkde.Fourier(8)},
        {"kernel": dpkde.Geodesic(), "bounds": None, "family": "hashing"},
        {"kernel": dpkde.Gaussian("auto"), **OPEN},
        {"kernel": dpkde.Gaussian("auto"), "bounds": "private", "unit": "who", "rows_per_unit": 2},
        {"kernel": dpkde.Laplacian("scott"), "epsilon": None, "rho": "0.1", **OPEN},
    ],
    "bounds": [
        {"bounds": dpkde.Box([(-1, 1)] * 2, outside="drop")},
        {"bounds": dpkde.Ball([0.0, 0.0], 2.0), "family": dpkde.Fourier(8)},
        {"bounds": None, "family": dpkde.Fourier(8)},
        {"bounds": "private", **OPEN},
        {"bounds": "private", "adjacency": "replace", **OPEN},
    ],
    "ranges": [
        {"bounds": "private", "ranges": [(-4, 4), None], **OPEN},
        {"ranges": [(-4, 4), None]},
    ],
    "epsilon": [{"epsilon": "0.01"}, {"epsilon": 4}],
    "delta": [{"delta": "1e-3"}, {"delta": "1e-3", "family": dpkde.Fourier(16)}],
    "rho": [{"epsilon": None, "rho": "0.05"}],
    "family": [OPEN, *({"family": name} for name in FAMILIES)],
    "adjacency": [{"adjacency": "replace"}, {"adjacency": "replace", **OPEN}],
    "seed": [{"seed": 3, "family": dpkde.Fourier(8)}, {"family": dpkde.Fourier(8)}],
    "expected_rows": [{"expected_rows": 500, **OPEN}],
    "typical_density": [{"typical_density": 0.2, **OPEN}],
    "alpha": [{"alpha": 0.9, "eta": 0.2, **OPEN}, {"alpha": 0.01, "eta": 0.2, **OPEN}],
    "eta": [{"alpha": 0.9, "eta": 0.1, **OPEN}, {"alpha": 0.5, "eta": 0.01, **OPEN}],
    "simultaneous": [{"alpha": 0.9, "eta": 0.2, "simultaneous": True, **OPEN}],
    "pilot": [{"pilot": False, **OPEN}],
    "plan": [{"plan": PLAN, "kernel": None, "bounds": None, "family": None}],
    "columns": [{"columns": ["a", "b"]}, {"columns": ["a", "b", "c"]}],
    "unit": [{"unit": "who", "rows_per_unit": 2}],
    "rows_per_unit": [{"unit": "who", "rows_per_unit": 1, "adjacency": "replace"}],
    "capacity_bits": [{"capacity_bits": 20}],
    "sampler": [{"sampler": "opendp"}, {"sampler": "opendp", "epsilon": None, "rho": "0.1"}],
    "threads": [{"threads": 1}, {"threads": 3}],
    "extras": [{"extras": {"org.example/note": "x"}}, {"extras": {"note": "x"}}],
    "ledger": [{"ledger": "here"}, {"ledger": "here", "epsilon": 99}],
    "dataset": [{"ledger": "here", "dataset": "trips"}],
    "part": [{"ledger": "here", "part": "one"}],
    "remark": [{"ledger": "here", "remark": "a heat map"}, {"remark": "goes with a ledger"}],
}
"""For each argument, settings to try over `USUAL`, where None leaves one out; the first are to give
a release. A new argument needs some."""

MANY = 30_000
"""What the count is supplied to be, where much is planned: so few records do not matter."""


def test_every_argument_of_publish_has_a_case() -> None:
    assert set(OPTIONS) == set(inspect.signature(dpkde.publish).parameters) - {"points"}


def _whose(points: Any) -> pd.DataFrame:
    """Return records of some hundred people; what is added or changed is somebody's alone."""
    who = np.arange(len(points)) // 3
    return pd.DataFrame({"who": who, "a": points[:, 0], "b": points[:, 1]})


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(name, number, id=f"{name}-{number}")
        for name, several in OPTIONS.items()
        for number in range(len(several))
    ],
)
def test_tables_are_alike_under_every_argument(
    name: str, number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = OPTIONS[name][number]
    adjacency = settings.get("adjacency", "add-remove")
    more: dict[str, Any] = {}
    if "unit" in settings:
        more["sides"] = tables(adjacency, _whose)
        settings = {**settings, "columns": ["a", "b"]}
    if settings.get("ledger"):
        _alike_in_a_ledger(monkeypatch, settings, tmp_path)
        return
    for count in (None, MANY):
        first = alike(monkeypatch, settings, count=count, **more)
        assert bool(first.result) != bool(first.error)
        assert first.result or number, first.error


def _alike_in_a_ledger(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], folder: Path
) -> None:
    """Publish into copies of one ledger: its rows have to be equal, too."""
    place, blank = folder / "work", folder / "blank.db"
    place.mkdir()
    monkeypatch.setattr("dpkde.privacy.ledger.ledger.today", lambda: "2026-01-01")
    dpkde.Ledger.create(blank, dataset="trips", epsilon=5, parts=["one"])

    def call(table: Any) -> tuple[str, Any]:
        path = place / "ledger.db"
        shutil.copy(blank, path)
        asked = {k: v for k, v in {**USUAL, **settings, "ledger": path}.items() if v is not None}
        try:
            released = dpkde.publish(table, **asked)
            released.save(place / "r.dpkde")
        finally:
            history = [repr(entry) for entry in dpkde.Ledger.open(path).history("trips")]
            path.unlink()
        return released.release_id, history

    transcripts = recorded(monkeypatch, call, tables("add-remove"), folder=place)
    assert not differences(transcripts)


def test_looks_before_the_plan_are_taken_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pilot and a mean: paid for where the noisy count says so, whatever the exact one is."""
    for settings, purpose in (
        ({"family": None, "epsilon": 1, "kernel": dpkde.Gaussian(0.5)}, "pilot"),
        ({"family": "fourier", "bounds": [(-40.0, 40.0)] * 2, "epsilon": 2}, "mean"),
    ):
        first = alike(monkeypatch, settings, count=10**6)
        assert purpose in str(dpkde.Release.from_bytes(first.result).privacy)


def test_neighbours_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """One record more, of every strange kind by itself."""
    for settings in ({}, OPEN, {"bounds": dpkde.Box([(-1, 1)] * 2, outside="drop")}):
        alike(monkeypatch, settings, sides=neighbours())


# Every kind of points

KINDS: dict[str, Callable[[Any], Any]] = {
    "an array": lambda points: points,
    "single precision": lambda points: points.astype(np.float32),
    "objects": lambda points: np.array(
        [[None if np.isnan(v) else float(v) for v in row] for row in points], dtype=object
    ).reshape(-1, 2),
    "a frame of pandas": lambda points: pd.DataFrame(points, columns=["a", "b"]),
    "a frame of polars": lambda points: pl.DataFrame(points, schema=["a", "b"]),
    "a lazy frame": lambda points: pl.LazyFrame(points, schema=["a", "b"]),
    "a table of Arrow": lambda points: pa.table({"a": points[:, 0], "b": points[:, 1]}),
    "a list of rows": lambda points: [tuple(row) for row in points.tolist()],
    "a list of arrays": lambda points: np.array_split(points, 4),
    "an iterator": lambda points: iter(np.array_split(points, 4)),
    "a sparse matrix": lambda points: scipy.sparse.csr_array(points),
    "a sketch": lambda points: dpkde.sketch(points, PLAN),
}


@pytest.mark.parametrize("kind", KINDS)
def test_points_of_every_kind_are_alike(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of single precision, which cannot hold 1e308
        sides = tables("add-remove", KINDS[kind])
    settings: dict[str, Any] = {}
    if kind == "a sketch":
        settings = {"kernel": None, "bounds": None, "family": None}
    alike(monkeypatch, settings, sides=sides)


def test_sets_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [{0, 2}, {1}, set(), {3, 4}]
    alike(
        monkeypatch,
        {"kernel": dpkde.Jaccard(), "bounds": dpkde.Sets(5), "family": "hashing"},
        sides=[few, [*few, {1, 2, 3}], [*few, {99}], [*few, "no set"], []],
    )


# Every refusal


class Constant(dpkde.CustomFamily):
    """A family that cannot tell how large its error may be.

    Precondition: none. Postcondition: f·g is 1, whatever the points. Bounds: f is 1.
    """

    name = "constant"
    version = 1

    def limits(self, frame: Any) -> dpkde.Limits:
        return dpkde.Limits(cells=1, l1=1.0)

    def f(self, x: Any, drawn: Any) -> Any:
        return np.ones(1)

    def g(self, y: Any, drawn: Any) -> Any:
        return np.ones(1)

    def to_json(self) -> dict[str, Any]:
        return {}


OWN = dpkde.plan(kernel=dpkde.Gaussian(1.0), bounds=[(-3, 3)] * 2, epsilon=1, family=Constant())
PLANNED: dict[str, Any] = {"kernel": None, "bounds": None, "family": None}
REFUSALS: dict[str, dict[str, Any]] = {
    "no kernel": {"kernel": None},
    "no guarantee": {"epsilon": None},
    "two guarantees": {"rho": 1},
    "a strange adjacency": {"adjacency": "both"},
    "wrong bounds": {"bounds": [(3.0, -3.0)] * 2},
    "bounds of three columns": {"bounds": [(-3.0, 3.0)] * 3},
    "no such family": {"family": "wavelets"},
    "a family that cannot": {"family": "spline", "bounds": None},
    "what a plan has fixed": {"plan": PLAN},
    "the plan of another sketch": {"plan": PLAN, "points": "a sketch"},
    "points that pass by once": {"family": None, "points": "an iterator"},
    "a promise nobody can keep": {"alpha": 1e-9, "eta": 0.1, "family": None},
    "a promise that the count is too small for": {
        "alpha": 0.05,
        "eta": 0.1,
        "family": None,
        "count": 3,
    },
    "a promise of bounds that are found": {"alpha": 0.5, "eta": 0.1, "bounds": "private"},
    "bounds to be found of points that pass by once": {
        "bounds": "private",
        "ranges": [(-4.0, 4.0)] * 2,
        "points": "an iterator",
    },
    "a promise of a family of one's own": {"alpha": 0.5, "eta": 0.1, "family": Constant()},
    "a promise for a plan of such a family": {
        "alpha": 0.5,
        "eta": 0.1,
        "plan": OWN,
        **PLANNED,
        "adjacency": "replace",
    },
    "a unit without columns": {"unit": "who", "rows_per_unit": 2},
    "no such sampler": {"sampler": "numpy"},
    "rows expected": {"expected_rows": 0},
    "a strange seed": {"seed": -1},
}


def _refused(
    name: str, monkeypatch: pytest.MonkeyPatch, seen: set[int] | None = None
) -> list[Transcript]:
    settings = dict(REFUSALS[name])
    kind, count = settings.pop("points", "an array"), settings.pop("count", None)
    asked = {k: v for k, v in {**USUAL, **settings}.items() if v is not None}
    if kind == "a sketch":
        other = dpkde.plan(
            kernel=dpkde.Gaussian(2.0), bounds=[(-3, 3)] * 2, epsilon=1, family=dpkde.Spline(1, 1.0)
        )
        asked = {"plan": PLAN, "epsilon": 1}
        sides = tables("add-remove", lambda points: dpkde.sketch(points, other))
    else:
        sides = tables(asked.get("adjacency", "add-remove"), KINDS[kind])

    def call(table: Any) -> Any:
        try:
            return dpkde.publish(table, **asked)
        except DpkdeError as error:
            if seen is not None:
                frames = traceback.extract_tb(error.__traceback__)
                seen.update(f.lineno or 0 for f in frames if f.filename == road.__file__)
            raise

    return recorded(monkeypatch, call, sides, count=count)


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_are_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    transcripts = _refused(name, monkeypatch)
    assert "Error: " in transcripts[0].error
    assert not transcripts[0].result
    assert not differences(transcripts)


def test_every_refusal_of_the_road_has_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ``raise`` in the module that publishes is reached by one of the refusals."""
    tree = ast.parse(Path(str(road.__file__)).read_text(encoding="utf-8"))
    lines = {
        frozenset(range(node.lineno, (node.end_lineno or node.lineno) + 1)): node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and node.exc is not None
    }
    seen: set[int] = set()
    for name in REFUSALS:
        _refused(name, monkeypatch, seen)
    assert len(lines) >= 6
    missed = [first for lines_, first in lines.items() if not lines_ & seen]
    assert not missed, f"raised on lines {missed} of {road.__file__}, and by no case of REFUSALS"


# What transcripts catch


def _share_planned_from_n(totals: Any, choice: Any, view: Any, errand: Any) -> int:
    """Plan the count's share from the exact number of records."""
    return int(_noisy_count(totals, choice, replace(view, rows=max(totals.records, 1)), errand))


def _warns_of_few(totals: Any, choice: Any, view: Any, errand: Any) -> int:
    if totals.records < 10:
        warnings.warn("few records", stacklevel=2)
    return int(_noisy_count(totals, choice, view, errand))


def _logs(totals: Any, choice: Any, view: Any, errand: Any) -> int:
    logging.getLogger("dpkde").debug("read %d rows", totals.rows)
    return int(_noisy_count(totals, choice, view, errand))


def _prints(totals: Any, choice: Any, view: Any, errand: Any) -> int:
    sys.stderr.write(f"{totals.rows} rows\n")
    return int(_noisy_count(totals, choice, view, errand))


def _raises_where_there_are_none(totals: Any, choice: Any, view: Any, errand: Any) -> int:
    if not totals.records:
        raise AccuracyError("there are no records")
    return int(_noisy_count(totals, choice, view, errand))


def _spends_less_on_few(totals: Any, choice: Any, view: Any, errand: Any) -> int:
    if totals.records < 10:
        errand.budget.public = errand.budget.randomness.public_bits(1)
    return int(_noisy_count(totals, choice, view, errand))


def _tells_its_size(sums: Any, count: int, errand: Any, *more: Any) -> Any:
    digits = "x" * len(str(sums._rows))
    return _noised(sums, count, replace(errand, extras={"org.example/x": digits}), *more)


def _forgets_the_road(sums: Any, count: int, errand: Any, *more: Any) -> Any:
    """Add noise beside `Budget.noised`: transcripts cannot be played then, and say so."""
    randomness = errand.budget.randomness

    class Aside(Randomness):
        def noise(self, law: Law, size: int) -> NDArray[np.int64]:
            return np.asarray(randomness.noise(law, size))

        def public_name(self) -> str:
            return str(randomness.public_name())

    errand.budget.randomness = Aside()
    return _noised(sums, count, errand, *more)


_noisy_count, _noised = road._noisy_count, road._noised
MUTANTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "the count's share planned from n": ("_noisy_count", _share_planned_from_n),
    "a warning where there are few": ("_noisy_count", _warns_of_few),
    "rows in the log": ("_noisy_count", _logs),
    "rows on the standard error": ("_noisy_count", _prints),
    "an error where there are none": ("_noisy_count", _raises_where_there_are_none),
    "draws that hang on n": ("_noisy_count", _spends_less_on_few),
    "a size that hangs on n": ("_noised", _tells_its_size),
    "noise beside the road": ("_noised", _forgets_the_road),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_show(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each leaves the law of the noise as it was: no audit of outputs would see it."""
    place, mutant = MUTANTS[name]
    settings: dict[str, Any] = {**USUAL, "family": "auto", "epsilon": 1}
    sides = tables("add-remove")

    def call(table: Any) -> Any:
        return dpkde.publish(table, **settings)

    assert not differences(recorded(monkeypatch, call, sides))
    monkeypatch.setattr(road, place, mutant)
    assert differences(recorded(monkeypatch, call, sides))


def test_the_share_planned_from_n_differs_in_what_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    """The release itself shows it: other shares of the budget, between tables of other sizes."""
    monkeypatch.setattr(road, "_noisy_count", _share_planned_from_n)
    settings: dict[str, Any] = {**USUAL, "family": "auto", "epsilon": 1}
    sides = [POINTS[:0], POINTS]
    one, other = recorded(monkeypatch, lambda table: dpkde.publish(table, **settings), sides)
    spends = [dpkde.Release.from_bytes(t.result).privacy.spends[0] for t in (one, other)]
    assert spends[0].amount != spends[1].amount
    assert any(word.startswith("asked: ") for word in one.differences(other))


def test_where_transcripts_differ_is_told_and_not_in_what() -> None:
    one = Transcript(b"secret", "x", printed="abc", files={"a": b"1", "b": b"22"})
    other = Transcript(b"secreT", "x", printed="abcd", files={"a": b"1", "b": b"23"})
    assert one.differences(other) == [
        "result: at 5 of 6",
        "printed: 3 against 4 long",
        "files: b: at 1 of 2",
    ]
    assert one.differences(one) == []
    assert Transcript(files={"a": b""}).differences(Transcript()) == ["files: not the same files"]


def test_an_interrupt_passes() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        transcribe(interrupted, Recorder())
