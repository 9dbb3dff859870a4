"""The command line: the main road, every wrong turn, and nothing private in a word."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpkde
from commands import GOOD, POINTS, dpkde_
from dpkde.cli.verbs import GROUPS, VERBS

DPKDE = [sys.executable, "-m", "dpkde"]


@pytest.mark.parametrize(
    "options",
    [
        ["--kernel", "laplacian"],
        ["--kernel", "exponential-lp:p=1.5,power=1", "--family", "hashing", "--repetitions", "16"],
        ["--kernel", "matern:nu=1.5", "--frequencies", "64", "--family", "fourier"],
        ["--kernel", "hat", "--family", "hashing", "--repetitions", "8", "--buckets", "64"],
    ],
    ids=lambda options: options[1],
)
def test_kernels_by_name(
    table: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert dpkde_("publish", table, "-o", "r.dpkde", *GOOD, *options, capsys=capsys)[0] == 0
    release = dpkde.load("r.dpkde")
    assert release.kernel.name == options[1].split(":")[0]
    assert float(release.kde([0.5, 0.5])[0]) > 0
    planned = ["--expected-rows", "2000", *GOOD, *options]
    code, out, _ = dpkde_("plan", *planned, capsys=capsys)
    assert code == 0
    assert release.family.name in out


def test_directions_and_sets_need_neither_bounds_nor_bandwidth(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("geodesic", "jaccard"):
        arguments = ["-o", "r.dpkde", "--kernel", name, "--epsilon", "1"]
        assert dpkde_("publish", table, *arguments, capsys=capsys)[0] == 0
        assert dpkde.load("r.dpkde").family.name == "hashing"
        assert dpkde_("inspect", "r.dpkde", capsys=capsys)[0] == 0


def test_from_a_file_to_a_file(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    named = ["--columns", "lon,lat"]
    code, out, err = dpkde_("publish", table, "-o", "r.dpkde", *named, *GOOD, capsys=capsys)
    assert (code, out, err) == (0, "", "")  # quiet where nobody looks
    release = dpkde.load("r.dpkde")
    assert release.columns == ("lon", "lat")
    # points on the command line, negative ones too
    code, out, _ = dpkde_("query", "r.dpkde", "0.5,0.5", "-1,2", capsys=capsys)
    rows = list(csv.DictReader(out.splitlines()))
    assert code == 0
    assert [row["lon"] for row in rows] == ["0.5", "-1"]
    assert float(rows[0]["kde"]) == pytest.approx(release.kde([0.5, 0.5])[0], rel=1e-6)
    expected = release.standard_error([0.5, 0.5])[0]
    assert float(rows[0]["standard_error"]) == pytest.approx(expected, rel=1e-6)
    # points in a file, columns by name, in another order, as JSON
    Path("q.csv").write_text("lat,name,lon\n0.5,x,0.25\n,y,1\n")
    code, out, _ = dpkde_(
        "query", "r.dpkde", "--points", "q.csv", "--format", "json", capsys=capsys
    )
    first, second = (json.loads(line) for line in out.splitlines())
    assert first["lon"] == 0.25
    assert first["kde"] == pytest.approx(release.kde([0.25, 0.5])[0])
    assert second["kde"] is None
    Path("s.csv").write_text("lat;lon\n0.5;0.25\n")
    options = ["--points", "s.csv", "--delimiter", ";", "--format", "json"]
    assert json.loads(dpkde_("query", "r.dpkde", *options, capsys=capsys)[1]) == first
    # what is in it
    code, out, _ = dpkde_("inspect", "r.dpkde", capsys=capsys)
    assert "1-differentially private" in out
    assert "lon, lat" in out
    code, out, _ = dpkde_("inspect", "r.dpkde", "--json", capsys=capsys)
    assert json.loads(out)["privacy"]["epsilon"] == "1/1"


def test_settings_files(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.toml").write_text(
        'columns = ["lat"]\nbounds = [[0, 1]]\nbandwidth = 0.2\nepsilon = "1/3"\n'
        'adjacency = "replace"\nexpected-rows = 2e3\n'
    )
    code, _, err = dpkde_("publish", table, "-o", "r", "--settings", "s.toml", capsys=capsys)
    assert code == 0, err
    release = dpkde.load("r")
    assert release.columns == ("lat",)
    assert release.count == 2000
    assert str(release.privacy.epsilon) == "1/3"
    code, *_ = dpkde_(
        "publish", table, "-o", "r", "--settings", "s.toml", "--epsilon", "2", "-q", capsys=capsys
    )
    assert dpkde.load("r").privacy.epsilon == 2
    code, out, _ = dpkde_("plan", "--settings", "s.toml", capsys=capsys)
    assert code == 0
    assert "ε = 1/3" in out


def test_a_pilot_is_foretold_stated_and_can_be_left_out(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    release = ["--columns", "lon,lat", "--bounds=0:1,...", "--bandwidth", "0.1", "--epsilon", "20"]
    planned = ["plan", *release, "--expected-rows", "2000"]
    assert "pilot: publish pays 2% of the budget" in dpkde_(*planned, capsys=capsys)[1]
    assert "pilot" not in dpkde_(*planned, "--no-pilot", capsys=capsys)[1]
    Path("s.toml").write_text("pilot = false\n")
    for options, stated in (
        ([], True),
        (["--no-pilot"], False),
        (["--settings", "s.toml"], False),
        (["--settings", "s.toml", "--pilot"], True),
        (["--expected-rows", "2000"], False),
    ):
        code, _, err = dpkde_("publish", table, "-o", "r", *release, *options, capsys=capsys)
        assert code == 0, err
        assert ("  - pilot: ε = " in dpkde_("inspect", "r", capsys=capsys)[1]) == stated


def test_a_plan_tells_what_a_unit_costs(capsys: pytest.CaptureFixture[str]) -> None:
    base = ["plan", "--bounds", "0:1", "--bandwidth", "0.2", "--expected-rows", "10000"]
    base += ["--columns", "a", "--epsilon", "1", "--unit", "who", "--rows-per-unit"]
    code, out, _ = dpkde_(*base, "3", capsys=capsys)
    assert code == 0
    assert "up to 3 rows of each who may count, with 3 times the noise of single rows" in out
    assert "1 row of each who" in dpkde_(*base, "1", capsys=capsys)[1]


def test_plan_compares_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["plan", "--bounds", "0:1", "--bandwidth", "0.2", "--expected-rows", "10000"]
    code, out, _ = dpkde_(*base, "--epsilon", "0.1,1", capsys=capsys)
    assert code == 0
    chosen = [line for line in out.splitlines() if line.startswith("* ")]
    errors = [float(line.split(")")[1].split()[0]) for line in chosen]
    assert errors[0] > errors[1] > 0
    for family in ("spline", "fastgauss", "fourier"):
        assert out.count(f"  {family}") + out.count(f"* {family}") >= 2
    assert out.count("chosen: spline, for the least predicted error") == 2
    path = str(tmp_path / "p")
    assert dpkde_(*base, "--epsilon", "1", "-o", path, capsys=capsys)[0] == 0
    assert dpkde.Plan.load(path).frame.dim == 1
    assert dpkde_(*base, "--rho", "0.5", "--dim", "1", capsys=capsys)[0] == 0
    free = ["plan", "--dim", "9", "--bandwidth", "2", "--expected-rows", "1000", "--epsilon", "1"]
    code, out, _ = dpkde_(*free, capsys=capsys)
    assert "spline: not here, the domain has no bounds" in out
    assert "chosen: fourier, since no other family can be used here" in out
    many = ["plan", "--dim", "20", "--bandwidth", "1", "--bounds", "0:1,...", "--epsilon", "0.05"]
    code, out, _ = dpkde_(*many, "--expected-rows", "1000", capsys=capsys)
    assert "chosen: fourier, since the bias of spline may be far larger than is told" in out


def test_a_promise_is_planned_kept_told_and_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.random.default_rng(0).uniform(0, 1, (3000, 1)))
    base = ["--bounds", "0:1", "--bandwidth", "0.2", "--epsilon", "1", "--family", "spline"]
    code, out, _ = dpkde_("plan", *base, "--alpha", "0.02", "--eta", "0.05", capsys=capsys)
    assert code == 0
    needed = int(out.split("takes about ")[1].split(" ")[0].replace(",", ""))
    assert 300 < needed < 3000
    several = ["plan", *base, "--alpha", "0.02", "--eta", "0.05", "--expected-rows"]
    assert "likely be refused" in dpkde_(*several, "200", capsys=capsys)[1]
    assert "likely be kept" in dpkde_(*several, "5000", capsys=capsys)[1]
    publish = ["publish", "x.npy", "-o", "r", *base, "--eta", "0.05", "--simultaneous", "--alpha"]
    assert dpkde_(*publish, "0.1", capsys=capsys)[0] == 0
    out = dpkde_("inspect", "r", capsys=capsys)[1]
    assert "at all queries in the bounds at once" in out
    out = dpkde_("query", "r", "0.5", "--level", "0.9", capsys=capsys)[1]
    header, row = (line.split(",") for line in out.splitlines())
    answers = dict(zip(header, map(float, row), strict=True))
    assert answers["low"] < answers["kde"] < answers["high"]
    code, _, err = dpkde_(*publish, "0.0001", capsys=capsys)
    assert code != 0
    assert "cannot be promised" in err
    Path("s.toml").write_text("alpha = 0.1\neta = 0.05\nsimultaneous = true\n")
    settings = ["publish", "x.npy", "-o", "s", *base, "--settings", "s.toml"]
    assert dpkde_(*settings, capsys=capsys)[0] == 0
    assert dpkde.load("s").promise == dpkde.load("r").promise
    Path("s.toml").write_text("simultaneous = 1\n")
    assert "simultaneous cannot be 1" in dpkde_(*settings, capsys=capsys)[2]


def test_parameters_of_families(capsys: pytest.CaptureFixture[str]) -> None:
    base = ["plan", "--bounds", "0:1,0:2", "--bandwidth", "0.2", "--expected-rows", "10000"]
    base += ["--epsilon", "1"]
    for typed, text in (
        ("--family spline --degree 3,2 --spacing 0.5", "spline 13×22 (degree 3/2)"),
        ("--family fastgauss --order 5", "fastgauss 5×10 (order 5)"),
        ("--family fourier --frequencies 77", "fourier 77 (pairs)"),
    ):
        code, out, err = dpkde_(*base, *typed.split(), capsys=capsys)
        assert code == 0, err
        assert text in out


def test_the_last_bounds_may_be_meant_for_all_columns_that_are_left(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("s.toml").write_text('bounds = [[0, 2], "..."]\n')
    for typed, bounds in (
        ("--bounds 0:2,...", [(0, 2), (0, 2)]),
        ("--bounds -1:1,0:2,...", [(-1, 1), (0, 2)]),
        ("--settings s.toml", [(0, 2), (0, 2)]),
    ):
        rest = [*typed.split(), "--bandwidth", "0.2", "--epsilon", "1", "-o", "r.dpkde"]
        code, _, err = dpkde_("publish", table, *rest, capsys=capsys)
        assert code == 0, err
        domain = dpkde.Release.load("r.dpkde").domain
        assert isinstance(domain, dpkde.Box)
        assert [*zip(domain.low, domain.high, strict=True)] == bounds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("publish t.csv -o r --bounds 1:0,0:1 --bandwidth 0.2 --epsilon 1", "reversed"),
        ("publish t.csv -o r --bounds 0:1 --bandwidth 0.2 --epsilon 1", "one low:high for 2"),
        ("plan --bounds 0:1,... --bandwidth 0.2 --epsilon 1", "name them by --columns"),
        ("publish t.csv -o r --bandwidth 0.2 --epsilon 1", "--bounds is needed"),
        ("publish t.csv -o r --bandwidth 1 --epsilon 1 --outside drop --bounds none", "goes with"),
        ("publish t.csv -o r --bounds 0:1:2 --bandwidth 0.2 --epsilon 1", "low:high"),
        ("publish t.csv -o r --bounds 0:1,0:1,0:1 --bandwidth 0.2 --epsilon 1", "does not agree"),
        ("publish t.csv -o r --bounds 0:1,... --bandwidth 0.2 --epsilon 0", "must be positive"),
        ("publish t.csv -o r --bounds 0:1,... --bandwidth 0.2 --epsilon lots", "finite number"),
        ("publish t.csv -o r --bounds 0:1,... --bandwidth 0.2", "--epsilon is needed"),
        ("publish t.csv -o r --bounds 0:1,... --bandwidth 0.2 --epsilon 1 --rho 1", "exactly one"),
        ("publish t.csv -o r --bounds 0:1,... --epsilon 1", "--bandwidth is needed"),
        ("publish t.csv -o r --bounds 0:1,... --bandwidth -1 --epsilon 1", "bandwidth must be"),
        ("publish t.csv -o r --bounds 0:1,... --bandwidth wide --epsilon 1", "numbers separated"),
        ("publish t.csv -o r --bandwidth 1 --epsilon 1 --outside drop", "goes with --bounds"),
        ("publish t.csv -o r --bandwidth 1 --epsilon 1 --kernel cosine", "--kernel must be"),
        ("publish t.csv -o r --bandwidth 1 --epsilon 1 --kernel product", "made in Python"),
        ("publish t.csv -o r --bandwidth 1 --epsilon 1 --kernel matern", "needs nu"),
        ("publish t.csv -o r --bandwidth 1 --epsilon 1 --kernel matern:nu=x", "must be numbers"),
        ("publish t.csv -o r --bandwidth 1 --epsilon 1 --kernel matern:mu=1", "takes nu"),
        ("publish t.csv -o r --bandwidth 1 --epsilon 1 --kernel hat:p=1", "no parameters"),
        ("publish t.csv -o r --bandwidth 1 --epsilon 1 --kernel geodesic", "no bandwidth"),
        ("publish t.csv -o r --epsilon 1 --kernel geodesic --bounds 0:1,...", "on the sphere"),
        ("publish t.csv -o r --epsilon 1 --kernel laplacian", "--bandwidth is needed"),
        ("publish t.csv -o r --bandwidth 1 --epsilon 1 --buckets 4", "goes with --family hashing"),
        (
            "publish t.csv -o r --bandwidth 1 --epsilon 1 --family hashing --buckets 3",
            "power of two",
        ),
        ("publish t.csv -o r --bounds none --bandwidth 1 --epsilon 1 --family hashing", "no hash"),
        ("publish t.csv -o r --bandwidth 1 --epsilon 1 --family magic", "family must be"),
        (
            "publish t.csv -o r --bounds none --bandwidth 1 --epsilon 1 --adjacency x",
            "'add-remove' or",
        ),
        ("publish t.csv -o r --bandwidth 1 --epsilon 1 --order 3", "goes with --family fastgauss"),
        ("publish t.csv -o r --bounds none --bandwidth 1 --epsilon 1 --family spline", "no bounds"),
        (
            "publish t.csv -o r --bounds 0:1,... --bandwidth 1 --epsilon 1 --family spline "
            "--degree 2.5",
            "degree must be a whole number",
        ),
        (
            "publish t.csv -o r --bounds 0:1,... --bandwidth 1 --epsilon 1 --family spline "
            "--degree inf",
            "degree must be a whole number",
        ),
        ("publish t.csv -o r --bandwidth 1 --epsilon 1 --columns lon,alt", "no column 'alt'"),
        ("publish nothing.csv -o r --bandwidth 1 --epsilon 1", "no such file"),
        ("publish . -o r --bandwidth 1 --epsilon 1", "has other columns than"),
        ("publish r.dpkde -o r --bandwidth 1 --epsilon 1", "not a table"),
        ("publish t.csv -o no/such/r --bandwidth 1 --epsilon 1", "no folder"),
        ("publish t.csv -o . --bandwidth 1 --epsilon 1", "is a folder"),
        ("publish t.csv -o t.csv --bandwidth 1 --epsilon 1", "is not overwritten"),
        ("publish t.csv -o q.csv --bandwidth 1 --epsilon 1", "is not overwritten"),
        ("publish t.csv -o r --bounds none --bandwidth 1 --epsilon 1e999999999", "finite number"),
        (
            "publish t.csv -o r --bounds none --bandwidth 1 --epsilon 1 --delta 1e-999999999",
            "finite number",
        ),
        ("publish t.csv -o r --settings typed.toml", "kernel cannot be"),
        ("plan --bandwidth 1 --epsilon 1 --columns a,b --dim 3", "does not agree"),
        ("plan --bandwidth 1,1 --epsilon 1 --dim 3", "3 in the table, 2 in the bandwidth"),
        ("plan --bandwidth 1 --epsilon 1 --dim 2 --expected-rows 1.5", "a whole number such as"),
        ("plan --bandwidth 1 --epsilon 1 --dim 2 --expected-rows 1e999", "a whole number such as"),
        ("plan --bandwidth 1 --epsilon 1 --dim 9999999 --expected-rows 9", "9999999 columns are"),
        ("plan --bandwidth 1 --epsilon 1 --bounds 0:1,... --expected-rows 9 -o .", "is a folder"),
        ("publish t.csv --bandwidth 1 --epsilon 1", "output"),
        ("publish t.csv -o r --bandwidth 1 --epsilon 1 --settings t.csv", "not a TOML"),
        ("publish t.csv -o r --bandwidth 1 --epsilon 1 --settings wrong.toml", "no such setting"),
        ("publish t.csv -o r --bandwidth 1 --epsilon 1 --frobnicate", "frobnicate"),
        ("publish - -o r --bandwidth 1 --epsilon 1", "no header"),
        ("query r.dpkde 1,2,3", "has 2 columns, lon,lat; the point 1,2,3 has 3"),
        ("query r.dpkde 1 2", "write the numbers of one point with commas between them"),
        ("query r.dpkde one,two", "numbers separated"),
        ("query empty 1,2", "empty is not a dpkde file, or is damaged: it is empty"),
        ("publish q.csv -o r --bandwidth 1 --epsilon 1 --delimiter ; --columns x", "--delimiter"),
        ("query r.dpkde", "give points"),
        ("query r.dpkde 1,2 --points q.csv", "not both"),
        ("query r.dpkde --levl 0.9", "no option --levl"),
        ("publish . -o x --bandwidth 1 --epsilon 1", "has other columns than"),
        ("query t.csv 1,2", "not a dpkde file"),
        ("query r.dpkde --points q.csv", "no column 'lon'"),
        ("inspect t.csv", "not a dpkde file"),
        ("inspect nothing", "no such file"),
        ("inspect .", "directory"),
        ("plan --bandwidth 1 --epsilon 1 --bounds 0:1", "--expected-rows is needed"),
        ("plan --bandwidth 1 --epsilon 1 --expected-rows 10", "number of columns is open"),
        ("frobnicate", "frobnicate"),
    ],
)
def test_wrong_use_gets_one_line(
    arguments: str,
    message: str,
    table: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dpkde.publish(table, kernel=dpkde.Gaussian(0.2), epsilon=1, columns=["lon", "lat"]).save(
        "r.dpkde"
    )
    Path("q.csv").write_text("x,y\n1,2\n")
    Path("empty").write_text("")
    Path("wrong.toml").write_text("epsylon = 1\n")
    Path("typed.toml").write_text('kernel = ["gaussian"]\n')
    if " - " in arguments:
        import io

        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    code, out, err = dpkde_(*arguments.split(), capsys=capsys)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("dpkde: ")
    assert message in err
    assert not re.search(r"\d\.\d{6}", err)  # no cell of the table
    assert not Path("r").exists()


def test_verbs_without_a_verb_print_help(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["budget"]):
        code, out, err = dpkde_(*words, capsys=capsys)
        assert (code, err) == (0, "")
        assert out == dpkde_(*words, "--help", capsys=capsys)[1]
        assert len(out.splitlines()) > 5


def test_bounds_are_told_by_the_names_of_columns(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for columns, told in (
        (
            ["lon", "lat"],
            "box: lon from 0.0 to 1.0, lat from -1.0 to 2.0; records outside the bounds were",
        ),
        (
            None,
            "box: column 0 from 0.0 to 1.0, column 1 from -1.0 to 2.0; records outside the",
        ),
    ):
        outside: Any = "clip" if columns else "drop"
        domain = dpkde.Box([(0, 1), (-1, 2)], outside)
        settings: Any = {"kernel": dpkde.Gaussian(0.2), "epsilon": 1, "columns": columns}
        dpkde.publish(POINTS, bounds=domain, **settings).save("r.dpkde")
        assert f"domain     {told}" in dpkde_("inspect", "r.dpkde", capsys=capsys)[1]


def test_no_permission_to_write(
    table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("locked").mkdir()
    monkeypatch.setattr("os.access", lambda path, mode: False)
    code, _, err = dpkde_("publish", table, "-o", "locked/r", *GOOD, capsys=capsys)
    assert code == 2
    assert "no permission to write to locked" in err


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (PermissionError(13, "Permission denied", "r"), "permission"),
        (OSError(28, "No space left on device"), "no space left"),
    ],
)
def test_the_disk_refuses(
    failure: OSError,
    message: str,
    table: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise failure

    old = dpkde.publish(table, kernel=dpkde.Gaussian(0.2), epsilon=1)
    old.save("r")
    monkeypatch.setattr("os.fsync", refuse)
    code, _, err = dpkde_("publish", table, "-o", "r", *GOOD, capsys=capsys)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert dpkde.load("r") == old
    assert sorted(p.name for p in Path().iterdir()) == ["r", "t.csv"]


def test_nobody_reads_or_nothing_is_typed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = dpkde_(capsys=capsys)
    assert code == 0
    assert out.startswith("Usage: dpkde")
    piped = f"{sys.executable} -m dpkde --help | true; exit ${{PIPESTATUS[0]}}"
    process = subprocess.run(["/bin/bash", "-c", piped], capture_output=True, check=False)
    assert process.returncode == 0
    assert process.stderr == b""


def test_a_defect_is_named_without_its_message(
    table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("cell 12345.678 is broken")

    monkeypatch.setattr("dpkde.curator.publish.publish", broken)
    code, _, err = dpkde_("publish", table, "-o", "r", *GOOD, capsys=capsys)
    assert code == 1
    assert "internal error (RuntimeError at " in err
    assert "12345" not in err


def test_no_stream_or_file_holds_a_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Cells are the secret; every stream and file of several runs is searched for them.

    The first runs in a process of its own, where warnings would be printed; here they are errors.
    """
    generator = np.random.default_rng(3)
    numbers = [f"{value:.9f}" for value in generator.uniform(0, 1, 400)]
    names = [f"Person{code:06d}" for code in generator.integers(0, 10**6, 200)]
    lines = ["lon,name,lat"]
    for i, name in enumerate(names):
        lines.append(f"{numbers[2 * i]},{name},{numbers[2 * i + 1]}")
    lines[5] += ",ragged"
    lines[9] = f'"{names[8]}'
    lines[12] = f"{names[11]},{names[11]},{numbers[23]}"
    (tmp_path / "secret.csv").write_text("\n".join(lines) + "\n")
    base = ["--bounds", "0:1,...", "--bandwidth", "0.2", "--epsilon", "1", "-o", "r.dpkde"]
    runs = [
        ["publish", "secret.csv", "--columns", "lon,lat", *base],
        ["publish", "secret.csv", "--columns", "lon,name", *base],
        ["publish", "secret.csv", *base],
        ["publish", "secret.csv", "--columns", "nothing", *base],
        ["query", "r.dpkde", "0.5,0.5,0.5"],
        ["inspect", "r.dpkde", "--json"],
        ["inspect", "secret.csv"],
        ["query", "secret.csv", "1,2"],
    ]
    process = subprocess.run([*DPKDE, *runs[0]], cwd=tmp_path, capture_output=True, check=True)
    output = process.stdout + process.stderr
    monkeypatch.chdir(tmp_path)
    for arguments in runs:
        code, out, err = dpkde_(*arguments, capsys=capfd)
        assert code in (0, 2)
        output += (out + err).encode()
    for path in tmp_path.iterdir():
        if path.name != "secret.csv":
            output += path.read_bytes()
    assert len(output) > 1000
    for cell in numbers + names:
        assert cell.encode() not in output
        assert cell.lstrip("0").encode() not in output


def test_quiet_when_piped_and_fast_to_help(tmp_path: Path) -> None:
    text = "a\n" + "\n".join(map(str, range(100))) + "\n"
    command = [*DPKDE, "publish", "-", "-o", "r", "--bounds", "0:99", "--bandwidth", "9"]
    process = subprocess.run(
        [*command, "--epsilon", "1", "--expected-rows", "100", "-q"],
        cwd=tmp_path,
        input=text.encode(),
        capture_output=True,
        check=True,
    )
    assert process.stdout == process.stderr == b""
    script = "import sys\nsys.argv = ['dpkde', '--help']\nfrom dpkde.cli.main import run\nrun()\n"
    script += "print(*sorted(sys.modules))"
    loaded = subprocess.check_output([sys.executable, "-c", script], text=True)
    for heavy in ("numba", "pyarrow", "scipy", "pandas", "matplotlib"):
        assert f" {heavy} " not in loaded


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_is_told(table: str) -> None:
    """On a terminal there is a bar with remaining time, and a closing line."""
    import pty

    ours, theirs = pty.openpty()
    command = [*DPKDE, "publish", table, "-o", "r.dpkde", *GOOD]
    child = subprocess.Popen(command, stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    output = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        output += more
    os.close(ours)
    assert child.wait() == 0
    assert b"reading" in output
    assert b"r.dpkde: <Release: gaussian" in output


def test_shells_complete() -> None:
    variables = {"_DPKDE_COMPLETE": "complete_bash", "COMP_WORDS": "dpkde pu", "COMP_CWORD": "1"}
    command = [str(Path(sys.executable).with_name("dpkde"))]
    process = subprocess.run(
        command, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert process.stdout.split() == ["publish"]


EVERY_VERB = [
    *(verb.function.__name__ for verb in VERBS),
    *(f"{name} {verb.function.__name__}" for name, (_, own) in GROUPS.items() for verb in own),
]


@pytest.mark.parametrize("verb", EVERY_VERB)
def test_every_verb_has_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = dpkde_(*verb.split(), "--help", capsys=capsys)
    assert code == 0
    assert f"Example: dpkde {verb}" in " ".join(out.split())


def test_the_examples_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example in the help of each verb, as it stands there."""
    monkeypatch.chdir(tmp_path)
    trips = np.random.default_rng(0).normal((-73.9, 40.7), 0.05, size=(500, 2))
    np.savetxt("trips.csv", trips, delimiter=",", header="lon,lat", comments="")
    monkeypatch.setattr("dpkde.demo.main", lambda folder: None)
    kernel, bounds = dpkde.Gaussian(0.01), [(-74.1, -73.15), (40.5, 40.9)]
    plan = dpkde.plan(kernel=kernel, bounds=bounds, epsilon=1, expected_rows=500)
    plan.save("trips.plan")
    dpkde.sketch(trips, plan).save("tuesday.sketch")
    for verb in EVERY_VERB:
        _, out, _ = dpkde_(*verb.split(), "--help", capsys=capsys)
        text = " ".join(out.split())
        example = re.search(r"Example: dpkde (.*?) (Arguments|Options):", text)
        assert example is not None
        code, _, err = dpkde_(*example.group(1).split(), capsys=capsys)
        assert code == 0, err


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_letters_that_the_output_lacks_are_spelled_out(encoding: str) -> None:
    """As on Windows, where what is redirected is in the code page of the country."""
    plan = ["plan", "--columns", "a", "--bounds", "0:1", "--bandwidth", "0.1", "--epsilon", "1,2"]
    process = subprocess.run(
        [*DPKDE, *plan, "--expected-rows", "1000"],
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        check=True,
    )
    assert process.stdout.startswith(b"\\u03b5 = 1")
