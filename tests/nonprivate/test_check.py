"""The check for the curator's eyes: its counts against slow ones, its errors against the truth."""

from __future__ import annotations

import inspect
import io
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpkde
from commands import dpkde_
from contracts.rigged import constant, forbidden, install
from dpkde.curator.units.limit import Stage
from dpkde.nonprivate.check import folded
from dpkde.nonprivate.report import EYES
from dpkde.planning.units import Limit
from dpkde.privacy.amounts import Unit
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame
from dpkde.tables import open_points
from dpkde.tables.cells import is_ragged

GENERATOR = np.random.default_rng(3)
POINTS = GENERATOR.normal(0.5, 0.4, (3000, 2))
KERNEL = dpkde.Gaussian(0.2)
PLAIN: dict[str, Any] = {"kernel": KERNEL, "bounds": [(0, 1)] * 2, "epsilon": 1}
SPLINE: dict[str, Any] = {**PLAIN, "family": dpkde.Spline(degree=3, spacing=0.5)}

TEXT = """who,a,b
x,0.5,0.5
x,2,0.5
y,-1,7
y,nan,0.5
,0.5,0.5
z,0.5,
z,word,0.5
z,0.5
z,0.1,0.2,0.3
"z,0.5,0.5
z,0.25,0.75
"""
TOLD = {"read": 11, "wrong_length": 3, "not_finite": 3, "outside": 0, "no_id": 0, "clipped": 2}


def counts(rows: Any) -> dict[str, int]:
    return {name: getattr(rows, name) for name in TOLD}


def test_rows_of_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(TEXT)
    settings = {**PLAIN, "columns": ["a", "b"]}
    found = dpkde.nonprivate.check(path, **settings).rows
    assert counts(found) == TOLD
    assert found.counted == 5
    columns = [(c.name, c.not_finite, c.below, c.above) for c in found.columns]
    assert columns == [("a", 2, 1, 1), ("b", 1, 0, 1)]
    drop = {**settings, "bounds": dpkde.Box([(0, 1)] * 2, outside="drop")}
    dropped = dpkde.nonprivate.check(path, **drop).rows
    assert counts(dropped) == {**TOLD, "outside": 2, "clipped": 0}
    stream = dpkde.CSV(io.BytesIO(TEXT.encode()))  # read once, and kept
    once = dpkde.nonprivate.check(stream, **settings, expected_rows=5)
    assert once.rows == found
    with pytest.raises(dpkde.ParameterError, match="can be read only once"):  # as in publishing
        dpkde.nonprivate.check(dpkde.CSV(io.BytesIO(TEXT.encode())), **settings)
    whose = dpkde.nonprivate.check(path, **settings, unit="who", rows_per_unit=1).rows
    assert counts(whose) == {**TOLD, "no_id": 1}
    assert whose.units is not None
    # x has two usable rows, y one, z one; so one row of x is beyond the limit.
    assert (whose.units.count, whose.units.above, whose.beyond_limit) == (3, 1, 1)
    assert whose.counted == 3
    assert whose.units.quantiles == (1, 2, 2, 2)


def test_every_door_tells_the_same(tmp_path: Path) -> None:
    rows = np.where(GENERATOR.random((500, 2)) < 0.1, np.nan, POINTS[:500])
    frame = pd.DataFrame(rows, columns=["a", "b"])
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    np.save(tmp_path / "t.npy", rows)
    bad = int(np.isnan(rows).any(axis=1).sum())
    doors: list[Any] = [rows, frame, rows.tolist(), *(tmp_path / f"t.{k}" for k in ("csv", "npy"))]
    for door in [*doors, tmp_path / "t.parquet"]:
        found = dpkde.nonprivate.check(door, **SPLINE, queries=5).rows
        assert (found.read, found.not_finite, found.wrong_length) == (500, bad, 0)


def test_units_against_a_slow_count() -> None:
    """In memory, in files, and where one unit has more rows than are sorted at once."""
    who = np.where(GENERATOR.random(3000) < 0.3, 7, GENERATOR.integers(0, 400, 3000))
    table = pd.DataFrame({"who": who, "a": POINTS[:, 0].round(1), "b": POINTS[:, 1].round(1)})
    slow = sorted(Counter(who.tolist()).values())
    frame = Frame.of(KERNEL, as_domain([(0, 1)] * 2))
    for held, gathered in ((1 << 27, 1 << 25), (1 << 12, 1 << 13), (1 << 10, 1 << 9)):
        stage = Stage(frame, Limit(Unit("who", 2), 5), held, gathered)
        source = open_points(table, ["a", "b"], unit="who")
        sizes = np.concatenate([*stage.sizes(source.pieces(2), 2)])
        assert sorted(sizes.tolist()) == slow
    found = dpkde.nonprivate.check(table, **SPLINE, unit="who", rows_per_unit=2, queries=5)
    units = found.rows.units
    assert units is not None
    assert units.count == len(slow)
    assert units.above == sum(size > 2 for size in slow)
    assert found.rows.counted == sum(min(size, 2) for size in slow)
    assert units.quantiles[3] == slow[-1]


def test_a_record_without_cells_is_told_apart_by_its_bits_alone() -> None:
    (piece,) = open_points([[1.0, "x"], ["nan", None], [1.0], 7, [1, 2, 3]], ["a", "b"]).read()
    rows = piece.rows()
    assert is_ragged(rows).tolist() == [False, False, True, True, True]
    assert np.isnan(rows[2:]).all()
    assert not is_ragged(np.full((2, 2), np.nan)).any()


@pytest.mark.parametrize("unit", [False, True], ids=["rows", "units"])
def test_errors_are_those_of_a_release(unit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The family's exactly, by `nonprivate.estimate`; the noise by the law of a release."""
    table = pd.DataFrame(POINTS, columns=["a", "b"])
    table["who"] = np.arange(3000) // 3
    more: dict[str, Any] = {"unit": "who", "rows_per_unit": 1, "seed": 4} if unit else {"seed": 4}
    settings = {**SPLINE, **more, "columns": ["a", "b"]}
    found = dpkde.nonprivate.check(table, **settings, queries=50)
    assert found.plan is not None
    assert found.at_records is not None
    assert found.over_space is not None
    assert found.prediction is not None
    install(monkeypatch, constant(0))  # the same release, whose answers are the family's alone
    release = dpkde.publish(table, **settings)
    assert release.plan == found.plan
    # Places over the bounds are drawn from the seed, as in the check.
    places = np.random.default_rng(4).random((50, 2))
    records = np.clip(POINTS, 0, 1)
    if not unit:
        own = dpkde.nonprivate.estimate(
            POINTS, places, KERNEL, SPLINE["family"], bounds=PLAIN["bounds"]
        ) - dpkde.nonprivate.kde(records, places, KERNEL)
        # `estimate` takes the finest lattice, a release one that leaves room for noise.
        assert found.over_space.own == pytest.approx(np.sqrt((own**2).mean()), rel=1e-3)
        assert found.over_space.largest_own == pytest.approx(np.abs(own).max(), rel=1e-3)
        assert found.moved is not None
        apart = dpkde.nonprivate.kde(POINTS, records, KERNEL)
        apart -= dpkde.nonprivate.kde(records, records, KERNEL)
        # The mean over 50 of 3000 records, of numbers below the largest.
        doubt = 6.1 * apart.std() / np.sqrt(50)
        assert abs(found.moved - np.abs(apart).mean()) < doubt
    spread = release.standard_error(places)
    assert np.hypot(found.over_space.noise, found.over_space.count) == pytest.approx(
        np.sqrt((spread**2).mean()), rel=1e-6
    )
    assert 0.3 < found.over_space.error / found.prediction.error < 3


def test_the_error_told_is_the_error_that_releases_have() -> None:
    """The mean of a hundred releases over the same places: within 6.1 of its standard errors."""
    settings = {**SPLINE, "seed": 9, "expected_rows": 3000}
    found = dpkde.nonprivate.check(POINTS, **settings, queries=64).over_space
    assert found is not None
    places = np.random.default_rng(9).random((64, 2))
    truth = dpkde.nonprivate.kde(np.clip(POINTS, 0, 1), places, KERNEL)
    means = [
        np.abs(dpkde.publish(POINTS, **settings).kde(places, clip=False) - truth).mean()
        for _ in range(100)
    ]
    # The normal law stands for the noise, which is off by some per cent of the mean at most.
    assert abs(np.mean(means) - found.error) < 6.1 * np.std(means) / 10 + 0.03 * found.error
    assert found.error > 0


def test_folded_normal() -> None:
    draws = np.random.default_rng(0).normal(0.7, 1.3, 400_000)
    assert folded(np.array([0.7]), np.array([1.3]))[0] == pytest.approx(
        np.abs(draws).mean(), abs=0.01
    )


def test_nothing_is_drawn_spent_or_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    install(monkeypatch, forbidden)
    for changes in ({}, {"delta": 1e-6}, {"epsilon": None, "rho": "0.1"}, {"epsilon": 20}):
        found = dpkde.nonprivate.check(POINTS, **{**PLAIN, **changes}, queries=20)
        assert found.at_records is not None
    assert not list(tmp_path.iterdir())
    with pytest.raises(TypeError):
        dpkde.nonprivate.check(POINTS, **PLAIN, ledger="ledger.db")  # type: ignore[call-arg]


def test_settings_are_those_of_publish() -> None:
    """Whatever is new to `publish` is new here too, but for what is of files and ledgers."""
    ours = set(inspect.signature(dpkde.nonprivate.check).parameters)
    theirs = set(inspect.signature(dpkde.publish).parameters)
    assert theirs - ours == {"extras", "ledger", "dataset", "part", "remark"}
    assert ours - theirs == {"queries"}


@pytest.mark.parametrize(
    ("points", "changes"),
    [
        (POINTS[:0], {}),
        (np.full((9, 2), np.nan), {}),
        (POINTS, {"bounds": None}),
        (POINTS, {"bounds": dpkde.Ball((0.5, 0.5), 0.5)}),
        (POINTS, {"kernel": dpkde.Geodesic(), "bounds": None}),
        ([{1, 2}, {3}] * 50, {"kernel": dpkde.Jaccard(), "bounds": dpkde.Sets(5)}),
        (POINTS, {"adjacency": "replace"}),
    ],
    ids=["empty", "nothing finite", "no bounds", "ball", "sphere", "sets", "replace"],
)
def test_every_kind_of_release_can_be_checked(points: Any, changes: dict[str, Any]) -> None:
    found = dpkde.nonprivate.check(points, **{**PLAIN, **changes}, queries=10)
    assert found.plan is not None
    assert str(found).startswith(EYES)
    assert "not private" in repr(found)
    assert str(found.rows.counted) not in repr(found)


def test_refusals() -> None:
    plan = dpkde.plan(**PLAIN, expected_rows=3000)
    found = dpkde.nonprivate.check(POINTS, plan=plan, epsilon=1)
    assert found.plan == plan
    with pytest.raises(dpkde.ParameterError, match="already fixed by the plan: kernel"):
        dpkde.nonprivate.check(POINTS, plan=plan, epsilon=1, kernel=KERNEL)
    with pytest.raises(dpkde.ParameterError, match="a sketch has no rows"):
        dpkde.nonprivate.check(dpkde.sketch(POINTS, plan), plan=plan, epsilon=1)
    for queries in (0, 2.5, "many"):
        with pytest.raises(dpkde.ParameterError, match="queries must be"):
            dpkde.nonprivate.check(POINTS, **PLAIN, queries=queries)  # type: ignore[arg-type]
    refused = dpkde.nonprivate.check(POINTS, **PLAIN, alpha=0.001, eta=0.01)
    assert refused.plan is None
    assert "a release would be refused" in str(refused)


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TEXT + "z,0.3,0.3\n" * 1000)
    typed = ["--columns", "a,b", "--bounds", "0:1,...", "--bandwidth", "0.2", "--epsilon", "1"]
    code, out, err = dpkde_("check", "t.csv", *typed, "--queries", "20", capsys=capsys)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == EYES
    assert "rows read                                1,011" in lines
    assert any("of another length, or malformed" in line for line in lines)
    assert any(line.startswith("  plan predicts") for line in lines)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
    whose = ["--unit", "who", "--rows-per-unit", "2"]
    code, out, _ = dpkde_("check", "t.csv", *typed, *whose, capsys=capsys)
    assert code == 0
    assert "3 different who; at most 2 rows of each count" in out
    planned = ["plan", *typed, "--expected-rows", "1000", "-o", "p.plan"]
    assert dpkde_(*planned, capsys=capsys)[0] == 0
    options = ["--plan", "p.plan", "--epsilon", "1", "--queries", "5"]
    assert dpkde_("check", "t.csv", *options, capsys=capsys)[0] == 0
    code, _, err = dpkde_("check", "p.plan", *typed, capsys=capsys)
    assert code == 2
    assert "is a dpkde-plan file" in err
    assert dpkde_("check", "--help", capsys=capsys)[1].count("eyes only") >= 1
