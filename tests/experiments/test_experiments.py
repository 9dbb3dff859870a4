"""The experiments run, are resumed, draw what they should, and their checks can fail."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import (
    claims,
    data,
    drawing,
    protocol,
    run,
    sample_complexity,
    scaling,
    summary,
    vectors,
)
from experiments.__main__ import as_bounds, main
from experiments.cache import Cache, Row
from experiments.settings import QUICK, Settings

TINY: Settings = replace(
    QUICK,
    name="tiny",
    trials=2,
    queries=20,
    epsilons=(0.05, 1.0),
    high_epsilons=(0.05, 1.0),
    features=(4, 32, 128),
    high_features=(4, 32, 128),
    orders=(1, 2, 4),
    lattice_orders=(2, 6),
    rows=1500,
    map_cells=10,
    map_epsilons=(0.5,),
    scatter_epsilons=(1.0,),
    time_epsilons=(0.05, 1.0),
    scaling_rows=(512, 1024, 2048),
    scaling_dims=(1, 2),
    scaling_high_dims=(8, 16),
    scaling_errors=(0.3, 0.2),
    repeats=1,
    release_sizes=(1, 8),
    release_rows=500,
    complexity_rows=(128, 512, 2048),
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run, as small as can be, without figures: drawing them takes most of the time."""
    out = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "save", lambda *_: None)
        run.run(TINY, out, data=run.data_sets(TINY, None))
    return out


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.audit
@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("budget", "data mechanism parameter epsilon trial error seconds cells"),
        ("privacy", "data mechanism parameter epsilon trial error seconds cells"),
        ("runtime", "data mechanism epsilon parameter seconds error least largest"),
        ("scatter", "data mechanism epsilon query truth estimate"),
        ("heatmaps", "data mechanism epsilon x y value"),
        ("bandwidths", "data rows dim bandwidth mean deviation paper_mean paper_deviation"),
        ("feasibility", "data dim mechanism runs obstacle"),
        ("scaling", "axis mechanism value parameter curator_seconds cells query_seconds"),
        ("release_queries", "mechanism queries trial error largest"),
        ("sample_complexity", "mechanism rows alpha parameter"),
    ],
)
def test_numbers_have_a_header_and_rows(finished: Path, name: str, columns: str) -> None:
    rows = _rows(finished / f"{name}.csv")
    assert list(rows[0]) == columns.split()
    assert len(rows) > 3


@pytest.mark.audit
def test_every_mechanism_is_compared(finished: Path) -> None:
    rows = _rows(finished / "privacy.csv")
    assert {row["mechanism"] for row in rows if row["data"] == "mixture"} == {
        protocol.RFF,
        protocol.FGT,
        protocol.BERNSTEIN,
        protocol.TIGHT,
        protocol.SAMPLED,
        protocol.OURS,
    }
    assert {row["data"] for row in rows} == set(data.QUICK_NAMES)
    assert not [r for r in rows if r["data"] == "clusters-50" and r["mechanism"] == protocol.FGT]


@pytest.mark.audit
@pytest.mark.parametrize("axis", ["n", "d", "1/α"])
def test_every_mechanism_is_timed_along_every_axis(finished: Path, axis: str) -> None:
    rows = [row for row in _rows(finished / "scaling.csv") if row["axis"] == axis]
    for name in {name for along, name in scaling.THEORY if along == axis}:
        least = 1 if (axis, name) == ("1/α", protocol.BERNSTEIN) else 2  # it stalls at α = 0.2
        assert len([row for row in rows if row["mechanism"] == name]) >= least, name


@pytest.mark.audit
def test_the_report_tells_every_claim(finished: Path) -> None:
    report = (finished / "report.md").read_text(encoding="utf-8")
    for checks in claims.CHECKS.values():
        for name, check in checks:
            verdict = check([])
            assert verdict.name == name
            assert verdict.passed is None
            assert verdict.claim in report


@pytest.mark.audit
def test_a_second_run_measures_nothing_and_draws_all(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("measured again")

    for name in ("tabulate", "publish", "_of_sample"):
        monkeypatch.setattr(protocol, name, never)
    before = (finished / "privacy.csv").read_bytes()
    lines: list[str] = []
    run.run(TINY, finished, data=run.data_sets(TINY, None), tell=lines.append)
    assert lines[-1].startswith("0 pieces measured")
    assert (finished / "privacy.csv").read_bytes() == before
    report = (finished / "report.md").read_text(encoding="utf-8")
    for name in run.EXPERIMENTS:
        assert (finished / f"{name}.csv").stat().st_size > 100
        for suffix in ("png", "svg"):
            assert 100 < (finished / f"{name}.{suffix}").stat().st_size < 300_000
        assert f"({name}.png)" in report


def test_a_run_that_was_ended_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces finished before the end are not measured again, and the rest is."""
    original, calls = protocol.tabulate, []

    def counted(*arguments: Any) -> Any:
        calls.append(arguments[1])
        if len(calls) == 6:
            raise KeyboardInterrupt
        return original(*arguments)

    request: dict[str, Any] = {"only": ["budget"], "data": run.data_sets(TINY, None)[:1]}
    monkeypatch.setattr(protocol, "tabulate", counted)
    with pytest.raises(KeyboardInterrupt):
        run.run(TINY, tmp_path, **request)
    pieces = len(list((tmp_path / "cache").glob("*.json")))
    assert pieces > 0
    assert not (tmp_path / "report.md").exists()
    lines: list[str] = []
    run.run(TINY, tmp_path, **request, tell=lines.append)
    assert lines[-1].endswith(f" {pieces} answered from those kept")
    assert not lines[-1].startswith("0 pieces")


def test_a_damaged_piece_is_measured_again(tmp_path: Path) -> None:
    cache, key = Cache(tmp_path), {"a": 1}
    assert cache.rows(key, lambda: [{"x": math.inf}]) == [{"x": math.inf}]
    assert cache.rows(key, list) == [{"x": math.inf}]
    next(tmp_path.glob("*.json")).write_text("{", encoding="utf-8")
    assert cache.rows(key, lambda: [{"x": 2}]) == [{"x": 2}]
    assert (cache.computed, cache.reused) == (2, 1)


def test_only_some(tmp_path: Path) -> None:
    verdicts = run.run(TINY, tmp_path, only=["bandwidths"], data=run.data_sets(TINY, None))
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == [
        "bandwidths.csv",
        "bandwidths.png",
        "bandwidths.svg",
        "report.md",
    ]
    assert verdicts == []  # the paper has no figures for generated data


def test_a_data_set_of_your_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("experiments.__main__.QUICK", TINY)
    points = np.random.default_rng(0).normal(size=(600, 2))
    np.savetxt(tmp_path / "trips.csv", points, delimiter=",", header="lon,lat", comments="")
    out = tmp_path / "out"
    command = ["--quick", "--points", str(tmp_path / "trips.csv"), "--bandwidth", "1"]
    main([*command, "--bounds=-4:4,-4:4", "--out", str(out)])
    assert {path.stem for path in out.glob("*.png")} == set(run.ON_DATA)
    assert {row["data"] for row in _rows(out / "privacy.csv")} == {"trips"}
    assert "report.md" in capsys.readouterr().out
    assert as_bounds("0:1,2:3") == [(0.0, 1.0), (2.0, 3.0)]


def test_missing_data_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(data.MissingDataError, match=r"--data FOLDER or set DPKDE_DATA"):
        data.load("taxi", None, 10)
    with pytest.raises(data.MissingDataError, match=r"neither glove.npz .* nor glove.6B.100d.txt"):
        data.load("glove", tmp_path, 10)
    full, out = replace(TINY, name="full"), tmp_path / "out"
    with pytest.raises(data.MissingDataError, match="none of the data sets"):
        run.run(full, out, only=["bandwidths"], data=run.data_sets(full, tmp_path))
    assert not (out / "report.md").exists()
    np.savez(tmp_path / "diabetes.npz", X=np.random.default_rng(0).uniform(1, 9, (300, 2)))
    run.run(full, out, only=["bandwidths"], data=run.data_sets(full, tmp_path))
    report = (out / "report.md").read_text(encoding="utf-8")
    assert "bounds 0 to 10, 1 to 14" in report
    assert "## Not measured" in report
    assert "Stanford NLP group" in report


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--points", "mine.npy", "--bandwidth", "-1"], "bandwidth must be a positive number"),
        (["--points", "mine.npy"], "--points needs --bandwidth"),
        (["--points", ".", "--bandwidth", "1"], "there is no file"),
        (["--points", "empty.csv", "--bandwidth", "1"], "empty.csv holds no rows"),
        (["--points", "words.csv", "--bandwidth", "1"], "words.csv cannot be read as numbers"),
        (["--points", "object.npy", "--bandwidth", "1"], "object.npy cannot be read as numbers"),
        (["--points", "mine.npy", "--bandwidth", "1", "--bounds=3:-3"], "smaller end first"),
        (["--points", "mine.npy", "--bandwidth", "1", "--bounds=a"], "write low:high"),
        (["--points", "mine.npy", "--bandwidth", "1", "--bounds=0:1,0:1,0:1"], "3 pairs"),
        (["--points", "mine.npy", "--bandwidth", "1", "--out", "empty.csv"], "cannot be written"),
        (["--bandwidth", "1"], "are for --points"),
        (["--data", "nowhere"], "there is no folder nowhere"),
    ],
)
def test_wrong_things_are_answered_in_a_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("mine.npy", np.random.default_rng(0).normal(size=(300, 2)))
    np.save("object.npy", np.array([{}], dtype=object))
    Path("empty.csv").touch()
    Path("words.csv").write_text("a,b\nc,d\n", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["--quick", "--only", "bandwidths", *arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_where_nothing_is_at_hand_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPKDE_DATA", raising=False)
    assert main(["--only", "privacy"]) == 1
    assert "--quick needs none" in capsys.readouterr().err
    assert not list(tmp_path.rglob("report.md"))


def test_one_pair_of_bounds_serves_all_columns_and_rows_that_are_not_finite_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(300, 2))
    rows[7, 1] = np.nan
    np.save("mine.npy", rows)
    command = ["--quick", "--points", "mine.npy", "--bandwidth", "1", "--bounds=-4:4"]
    assert main([*command, "--only", "bandwidths"]) == 0
    report = Path("experiments/results/mine/report.md").read_text(encoding="utf-8")
    assert "mine: 199 points of 2 columns, 100 held out as queries, σ = 1, bounds -4 to 4" in report


def test_original_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "diabetic_data.csv").write_text(
        "id,age,time_in_hospital\n" + "1,[70-80),3\n2,[0-10),14\n" * 8, encoding="utf-8"
    )
    (tmp_path / "train.csv").write_text(
        "key,pickup_longitude,pickup_latitude\n" + "a,-73.9,40.7\nb,0,0\nc,,\nd,-74.0,40.6\n" * 8,
        encoding="utf-8",
    )
    (tmp_path / "covtype.data").write_text(
        "\n".join(",".join(str((i * j) % 99) for j in range(55)) for i in range(20)),
        encoding="utf-8",
    )
    (tmp_path / "glove.6B.100d.txt").write_text(
        "".join("of the " + " ".join(["0.5"] * 100) + "\n" for _ in range(9)), encoding="utf-8"
    )
    rows = data.read_diabetes(tmp_path / "diabetic_data.csv")
    assert rows[:2].tolist() == [[7.5, 3.0], [0.5, 14.0]]
    assert data.read_taxi(tmp_path / "train.csv")[:2].tolist() == [[-73.9, 40.7], [-74.0, 40.6]]
    assert data.read_glove(tmp_path / "glove.6B.100d.txt").shape == (9, 100)
    for name, dim in (("diabetes", 2), ("taxi", 2), ("covertype", 55), ("glove", 100)):
        task = data.load(name, tmp_path, 3)
        assert task.dim == dim
        assert len(task.queries) == 3


def test_exact_kde_is_exact() -> None:
    import dpkde

    points = np.random.default_rng(0).normal(size=(300, 4)) + 50
    exact = dpkde.nonprivate.kde(points, points[:5], dpkde.Gaussian(1.5))
    assert np.allclose(data.exact_kde(points, points[:5], 1.5), exact, rtol=1e-10)


def test_nothing_of_the_papers_is_assisted() -> None:
    """Their releases have no model, and their answers are their tables' sums; ours have both."""
    task = data.generated("clusters-50", 3000, 20)
    for mechanism in protocol.MECHANISMS:
        parameter = min(mechanism.grid(task, TINY))
        if mechanism.obstacle(task, parameter) is None:
            release = protocol.publish(task, 1.0, 0, mechanism.family(256))
            assert release.model is None, mechanism.name
            table = protocol.tabulate(task, mechanism.family(256))
            answers, _ = table.answer(task.queries, protocol.NO_NOISE)
            exact = table.pair.respond(task.queries, table.sums.astype(np.float64))
            assert np.array_equal(answers, exact / len(task.points))
    cloud = np.random.default_rng(0).normal(size=(5020, 50))
    task = replace(task, points=cloud[20:], queries=cloud[:20], bandwidth=5.0, bounds=None)
    rows = protocol._of_ours(task, 0, (1.0,))
    assert [row["mechanism"] for row in rows] == [protocol.OURS, protocol.UNASSISTED]
    assert rows[0]["error"] != rows[1]["error"]


def test_public_vectors_tell_a_bandwidth() -> None:
    encoder = vectors.Encoder()
    some, others = encoder.vectors(2000, stream=0), encoder.vectors(2000, stream=1)
    assert np.allclose(np.linalg.norm(some, axis=1), 1)
    assert np.array_equal(some, encoder.vectors(2000, stream=0))
    sigma = vectors.bandwidth_for(some, 0.02)
    pairs = np.exp(-((some[:1000] - some[1000:]) ** 2).sum(axis=1) / sigma**2)
    assert pairs.mean() == pytest.approx(0.02)
    assert data.exact_kde(some, others[:500], sigma).mean() == pytest.approx(0.02, rel=0.15)
    strange = data.exact_kde(some, encoder.strangers(500, stream=2), sigma)
    assert strange.mean() < 0.01
    assert vectors.told_apart(np.array([2.0, 3.0]), np.array([1.0, 2.5])) == 0.75


def test_what_epsilon_buys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(vectors, "BUDGETS", (("1", "0"),))
    assert vectors.main(["table", "--rows", "1000", "--releases", "1"]) == 0
    heads, rule, line = capsys.readouterr().out.splitlines()
    assert heads.count("|") == rule.count("|") == line.count("|")
    assert line.startswith("| 1,000 | 1 | ")
    page = (Path(__file__).parents[2] / "docs" / "embeddings.md").read_text(encoding="utf-8")
    assert heads in page
    vectors.picture(tmp_path / "small.png", rows=500, releases=1)
    assert (tmp_path / "small.png").read_bytes().startswith(b"\x89PNG")


def _curve(
    mechanism: str,
    epsilon: float,
    errors: list[float],
    name: str = "taxi",
    start: int = 1,
) -> list[Row]:
    return [
        {
            "data": name,
            "mechanism": mechanism,
            "parameter": float(start << place),
            "epsilon": epsilon,
            "trial": trial,
            "error": error * (1 + 0.01 * trial),
            "seconds": 1.0,
            "cells": 1,
        }
        for place, error in enumerate(errors)
        for trial in range(3)
    ]


def _valley(at: int) -> list[float]:
    """Errors over seven doublings, least at one of them."""
    return [2.0 ** abs(place - at) for place in range(7)]


Check = Callable[[list[Row]], claims.Verdict]


@pytest.mark.parametrize(
    ("check", "holds", "fails"),
    [
        (
            claims.divergence,
            _curve(protocol.RFF, 0.1, _valley(2)) + _curve(protocol.RFF, math.inf, [4, 2, 1]),
            _curve(protocol.RFF, 0.1, [4, 3, 2]) + _curve(protocol.RFF, math.inf, [4, 2, 1]),
        ),
        (
            claims.features_grow,
            _curve(protocol.RFF, 0.1, _valley(1)) + _curve(protocol.RFF, 0.8, _valley(4)),
            _curve(protocol.RFF, 0.1, _valley(2)) + _curve(protocol.RFF, 0.8, _valley(2)),
        ),
        (
            claims.order_grows,
            _curve(protocol.PLAIN, 0.001, _valley(2)) + _curve(protocol.PLAIN, 1.0, _valley(4)),
            _curve(protocol.PLAIN, 0.1, _valley(2)) + _curve(protocol.PLAIN, 0.4, _valley(4)),
        ),
        (
            claims.sharp_order_grows,
            _curve(protocol.FGT, 0.001, _valley(2)) + _curve(protocol.FGT, 1.0, _valley(4)),
            _curve(protocol.FGT, 0.1, _valley(2)) + _curve(protocol.FGT, 0.4, _valley(4)),
        ),
        (
            claims.order_needed_grows,
            _curve(protocol.FGT, 0.001, _valley(2)) + _curve(protocol.FGT, 1.0, _valley(4)),
            _curve(protocol.FGT, 0.1, _valley(2)) + _curve(protocol.FGT, 0.4, _valley(4)),
        ),
        (
            claims.fast_gauss_wins,
            _curve(protocol.RFF, 0.1, [2]) + _curve(protocol.FGT, 0.1, [1]),
            _curve(protocol.RFF, 0.1, [1]) + _curve(protocol.FGT, 0.1, [2]),
        ),
        (
            claims.both_beat_bernstein,
            _curve(protocol.RFF, 0.1, [2]) + _curve(protocol.BERNSTEIN, 0.1, [3]),
            _curve(protocol.RFF, 0.1, [4]) + _curve(protocol.BERNSTEIN, 0.1, [3]),
        ),
        (
            claims.sample_is_beaten,
            _curve(protocol.RFF, 0.1, [2]) + _curve(protocol.SAMPLED, 0.1, [3]),
            _curve(protocol.RFF, 0.1, [4]) + _curve(protocol.SAMPLED, 0.1, [3]),
        ),
        (
            claims.ours_wins,
            _curve(protocol.FGT, 0.1, [2]) + _curve(protocol.OURS, 0.1, [1]),
            _curve(protocol.FGT, 0.1, [2]) + _curve(protocol.OURS, 0.1, [3]),
        ),
        (
            claims.ours_wins_elsewhere,
            _curve(protocol.RFF, 0.1, [2], "a") + _curve(protocol.OURS, 0.1, [1], "a"),
            _curve(protocol.RFF, 0.1, [2], "a") + _curve(protocol.OURS, 0.1, [3], "a"),
        ),
        (
            claims.assisted_is_no_worse,
            _curve(protocol.UNASSISTED, 0.1, [1]) + _curve(protocol.OURS, 0.1, [1]),
            _curve(protocol.UNASSISTED, 0.1, [1]) + _curve(protocol.OURS, 0.1, [1.1]),
        ),
        (
            claims.only_fourier_runs,
            [
                {"data": "a", "dim": 55, "mechanism": m, "runs": m == protocol.RFF}
                for m in (protocol.RFF, protocol.FGT)
            ],
            [
                {"data": "a", "dim": 55, "mechanism": m, "runs": True}
                for m in (protocol.RFF, protocol.FGT)
            ],
        ),
        (
            claims.tables_scale,
            [
                {"axis": "n", "mechanism": protocol.RFF, "value": n, "cells": 4}
                | {"curator_seconds": n / 1e6, "query_seconds": 1e-6}
                for n in (100, 200, 400)
            ],
            [
                {"axis": "n", "mechanism": protocol.RFF, "value": n, "cells": 4}
                | {"curator_seconds": n**2 / 1e6, "query_seconds": 1e-6}
                for n in (100, 200, 400)
            ],
        ),
        (
            claims.queries_cost,
            [{"mechanism": "Laplace", "queries": q, "error": 0.1 * q} for q in (1, 4, 16)],
            [{"mechanism": "Laplace", "queries": q, "error": 0.1} for q in (1, 4, 16)],
        ),
        (
            claims.records_needed,
            [{"mechanism": protocol.RFF, "rows": n, "alpha": n**-0.5} for n in (100, 400, 900)],
            [{"mechanism": protocol.RFF, "rows": n, "alpha": 1 / n} for n in (100, 400, 900)],
        ),
        (
            claims.bandwidths_agree,
            [{"data": "a", "mean": 0.02, "deviation": 1, "paper_mean": 0.02, "paper_deviation": 1}],
            [{"data": "a", "mean": 0.2, "deviation": 1, "paper_mean": 0.02, "paper_deviation": 1}],
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_claims_can_hold_and_fail(check: Check, holds: list[Row], fails: list[Row]) -> None:
    assert check(holds).passed is True, check(holds).sentence
    assert check(fails).passed is False, check(fails).sentence


def test_the_optimum_lies_between_parameters() -> None:
    parameters = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    errors = np.exp((np.log(parameters) - math.log(5.0)) ** 2)
    assert summary.optimum(parameters, errors) == pytest.approx(5.0)
    assert summary.optimum(parameters, parameters) == 1.0
    assert summary.enough(parameters, np.array([9.0, 1.05, 1.01, 1.0, 1.02])) == 2.0


def test_fitted_slopes_hold_the_truth() -> None:
    generator = np.random.default_rng(0)
    x = np.linspace(0, 1, 200)
    fit = summary.fitted(x.tolist(), (3 * x + generator.normal(size=200) * 0.1).tolist())
    assert fit.low < 3 < fit.high
    assert math.isnan(summary.fitted([1.0], [1.0]).slope)


def test_the_smallest_n_is_read_between_measured_ones() -> None:
    rows: list[Row] = [
        {"mechanism": "a", "rows": n, "alpha": 1 / math.sqrt(n)} for n in (16, 64, 256)
    ]
    assert sample_complexity.smallest_rows(rows, "a", 0.1) == pytest.approx(100)
    assert math.isnan(sample_complexity.smallest_rows(rows, "a", 0.01))
