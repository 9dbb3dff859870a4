"""Commands on tables as people have them, and what Ctrl-C does to them."""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpkde
from commands import GOOD, POINTS, dpkde_
from contracts.rigged import constant, install

NAMES = ["--columns", "lon,lat"]


def _counted(path: str) -> int:
    return dpkde.Release.load(path).count


@pytest.mark.parametrize(
    ("options", "written"),
    [
        ([], {}),
        (["--delimiter", ";", "--decimal", ","], {"sep": ";", "decimal": ","}),
        (["--encoding", "latin-1"], {"encoding": "latin-1"}),
        (["--encoding", "utf-16"], {"encoding": "utf-16"}),
        ([], {"lineterminator": "\r\n", "quoting": csv.QUOTE_ALL}),
    ],
)
def test_tables_of_other_programs(
    options: list[str],
    written: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    install(monkeypatch, constant(0))
    notes = np.resize(np.array(['Tür "B"', "a, b; c", "two\nlines", "", '"'], object), len(POINTS))
    frame = pd.DataFrame({"lon": POINTS[:, 0], "note": notes, "lat": POINTS[:, 1]})
    frame.to_csv("t.csv", index=False, **written)
    arguments = [*GOOD, *NAMES, *options]
    assert dpkde_("publish", "t.csv", "-o", "r.dpkde", *arguments, capsys=capsys) == (0, "", "")
    assert _counted("r.dpkde") == len(POINTS)
    with gzip.open("t.csv.gz", "wb") as packed:
        packed.write(Path("t.csv").read_bytes())
    assert dpkde_("publish", "t.csv.gz", "-o", "g.dpkde", *arguments, capsys=capsys)[0] == 0
    assert _counted("g.dpkde") == len(POINTS)
    code, out, _ = dpkde_("query", "r.dpkde", "--points", "t.csv", *options, capsys=capsys)
    assert code == 0
    assert len(out.splitlines()) == 1 + len(POINTS)


def test_settings_may_hold_the_rules_of_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    install(monkeypatch, constant(0))
    Path("t.csv").write_text('lon,lat\n"1,000",0.5\n"a\nb",0.5\n0.5,0.5\n')
    Path("s.toml").write_text('thousands = ","\nrecords = "lines"\ncolumns = "lon,lat"\n')
    settings = ["--settings", "s.toml", *GOOD, "-o", "r.dpkde", "--quiet"]
    assert dpkde_("publish", "t.csv", *settings, capsys=capsys)[0] == 0
    assert _counted("r.dpkde") == 2
    assert dpkde_("publish", "t.csv", *settings, "--records", "quoted", capsys=capsys)[0] == 0
    assert _counted("r.dpkde") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["t.parquet", "--delimiter", ";"], "--delimiter goes with CSV text, not with t.parquet"),
        (["t.csv", "--encoding", "klingon"], "no text encoding 'klingon'"),
        (["t.csv", "--records", "rows"], "'quoted' or 'lines'"),
        (["t.csv", "--thousands", ".."], "thousands mark is one ASCII character"),
        (["latin.csv"], "not UTF-8 text: say its encoding, such as latin-1"),
        (["t.xlsx"], "use .csv, .tsv"),
        (["t.csv", "--colums", "lon"], "see dpkde publish --help"),
        (["t.csv", "--columns", "lon", "--delimiter", "tab"], "not between '\\t', name the delim"),
    ],
)
def test_rules_that_are_none(
    arguments: list[str],
    message: str,
    table: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("latin.csv").write_bytes("größe,b\n1,2\n".encode("latin-1"))
    code, out, err = dpkde_("publish", *arguments, "-o", "r.dpkde", *GOOD, capsys=capsys)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_points_that_cannot_be_read_are_told(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Queries are public."""
    assert dpkde_("publish", table, "-o", "r.dpkde", *GOOD, *NAMES, capsys=capsys)[0] == 0
    Path("q.csv").write_text('"speed, km/h";lon;lat\n1;0,5;0,5\n2;0.5;0.5\n')
    ask = ["query", "r.dpkde", "--points", "q.csv", "--delimiter", ";"]
    code, out, err = dpkde_(*ask, capsys=capsys)
    assert code == 0
    assert len(out.splitlines()) == 3
    assert err == "dpkde: note: 1 of 2 points have a coordinate that is no number, and no answer\n"


def test_a_file_is_read_once_by_whatever_name(table: str) -> None:
    """Its records would count twice, and noise is for once."""
    Path("other.csv").symlink_to(table)
    for names in ([table, table], [table, f"./{table}"], [table, "other.csv"], ["[!q].csv", table]):
        with pytest.raises(dpkde.SchemaError, match="is there twice"):
            dpkde.publish(names, kernel=dpkde.Gaussian(1.0), epsilon=1, bounds=[(0, 1)] * 2)


def test_columns_are_named_in_messages_about_bounds(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = [*NAMES, "--bounds", "0:1,3:2", "--bandwidth", "0.1", "--epsilon", "1"]
    for verb in (["publish", table, "-o", "r.dpkde"], ["plan", "--expected-rows", "1e5"]):
        code, _, err = dpkde_(*verb, *wrong, capsys=capsys)
        assert code == 2
        assert "bounds of column lat are reversed: (3, 2); write (2, 3)" in err


def test_a_number_of_rows_may_be_written_short(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for rows in ("1e5", "100000", "100_000", "1E+5"):
        code, out, _ = dpkde_("plan", "--expected-rows", rows, *GOOD, capsys=capsys)
        assert code == 0
        assert "spline" in out
    short = ["--expected-rows", "2e3", "--quiet"]
    assert dpkde_("publish", table, "-o", "r.dpkde", *GOOD, *short, capsys=capsys)[0] == 0
    code, _, err = dpkde_("plan", "--expected-rows", "1.5", *GOOD, capsys=capsys)
    assert code == 2
    assert "whole number" in err


def test_more_columns_than_memory_are_refused_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """What is planned for 100,000 columns fits; what would not is refused before it is drawn."""
    arguments = ["--expected-rows", "1e5", "--bandwidth", "1", "--epsilon", "1"]
    for dim, more in (
        ("2000000", []),
        ("100000", ["--family", "fourier", "--frequencies", "99999"]),
    ):
        start = time.perf_counter()
        code, _, err = dpkde_("plan", "--dim", dim, *arguments, *more, capsys=capsys)
        assert code == 2
        assert "columns" in err or "frequencies" in err
        assert time.perf_counter() - start < 20


DRIVER = """
import os, signal, sys, threading
from dpkde.cli import main

def watch(self, usual=main._Interrupts.watch):
    usual(self)
    stop = lambda: os.kill(os.getpid(), signal.SIGINT)
    threading.Timer(float(sys.argv.pop()), stop).start()

main._Interrupts.watch = watch
sys.exit(main.run())
"""


@pytest.mark.parametrize("wait", [0.0, 0.05, 0.2, 0.5, 1.0])
def test_ctrl_c_ends_in_one_line(wait: float, tmp_path: Path) -> None:
    """At any moment after the first line of ours; left alone the command would read for ever."""
    command = ["publish", "-", "-o", str(tmp_path / "r.dpkde"), *GOOD]
    child = subprocess.Popen(
        [sys.executable, "-c", DRIVER, *command, str(wait)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdin is not None
    child.stdin.write(b"lon,lat\n")
    child.stdin.flush()
    assert child.stderr is not None
    err = child.stderr.read()
    assert child.wait(timeout=60) == 130
    child.stdin.close()
    assert child.stdout is not None
    assert child.stdout.read() == b""
    child.stdout.close()
    child.stderr.close()
    assert err == b"dpkde: interrupted\n"
    assert not list(tmp_path.iterdir())


def test_a_plan_is_published(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What `dpkde plan -o` writes, `dpkde publish --plan` takes, and nothing that it settled."""
    rows = ["--expected-rows", "2000"]
    assert dpkde_("plan", *GOOD, *NAMES, *rows, "-o", "p.plan", capsys=capsys)[0] == 0
    arguments = ["publish", table, "-o", "r.dpkde", "--plan", "p.plan", "--quiet"]
    assert dpkde_(*arguments, "--epsilon", "1", capsys=capsys) == (0, "", "")
    release = dpkde.load("r.dpkde")
    assert release.plan == dpkde.Plan.load("p.plan")
    assert release.columns == ("lon", "lat")
    for more, message in (
        (["--epsilon", "1", "--bandwidth", "2"], "already fixed by the plan: --bandwidth"),
        ([], "--epsilon is needed"),
        (["--epsilon", "1", "--plan", table], "not a dpkde file"),
    ):
        code, _, err = dpkde_(*arguments, *more, capsys=capsys)
        assert code == 2
        assert message in err
