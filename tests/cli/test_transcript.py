"""Commands that read private tables: with the same noisy outputs, nothing they leave differs.

Standard output and error, exit codes, and files, byte for byte; of secret files the sizes. `CASES`
has something to type for every option of those verbs, and a test says what is missing; `WRITERS`
writes every format of files.
"""

from __future__ import annotations

import gzip
import io
import lzma
import shutil
import sys
from bz2 import BZ2File
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from numpy.typing import NDArray

import dpkde
from dpkde.cli.main import run
from dpkde.cli.options import rows
from dpkde.cli.verb import Verb
from dpkde.cli.verbs import GROUPS, VERBS
from dpkde.tables.door import FILES
from dpkde.tables.streams import PACKINGS
from dpkde.tables.text import KINDS
from transcripts import POINTS, Tables, differences, neighbours, recorded, tables

Points = NDArray[np.float64]

READ_TABLES = ("publish", "sketch", "merge")
"""Verbs that read private tables or sketches, and leave something that must not tell of them."""
NEVER_DO = ("plan", "query", "mass", "grid", "plot", "sample", "inspect", "demo")
"""Verbs that see what is public alone, or what is made up."""
FOR_THE_CURATOR = ("audit", "check")
"""Verbs whose output is as secret as the table, and which say so."""


def test_every_verb_is_known() -> None:
    names = {entry.function.__name__ for entry in VERBS}
    assert names == {*READ_TABLES, *NEVER_DO, *FOR_THE_CURATOR}
    assert set(GROUPS) == {"budget"}  # ledgers hold what is public


def _verb(name: str) -> Verb:
    return next(entry for entry in VERBS if entry.function.__name__ == name)


# Files of every format

BAD = ["0.5,abc", "0.5", "0.5,0.5,0.5", "", ",", "1e999,0", "0.5;0.5", '0.5,"0.5', "\x00,1"]
"""Lines that are no records, or records with a bad cell; the last but one opens a quote."""


def _text(points: Points, separator: str = ",") -> bytes:
    lines = [separator.join(("who", "a", "b"))]
    lines += [
        separator.join([str(i // 3), repr(x), repr(y)]) for i, (x, y) in enumerate(points.tolist())
    ]
    if len(points) > len(POINTS):  # one of those that are to look like the first
        lines += [f"7{separator}{line.replace(',', separator)}" for line in BAD]
    return ("\n".join(lines) + "\n").encode()


def _arrow(points: Points) -> pa.Table:
    who = pa.array(np.arange(len(points)) // 3)
    return pa.table({"who": who, "a": points[:, 0], "b": points[:, 1]})


def _ipc(path: Path, points: Points, stream: bool) -> None:
    table = _arrow(points)
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(str(path), table.schema) as writer:
        writer.write_table(table)


def _parquet(path: Path, points: Points) -> None:
    pyarrow.parquet.write_table(_arrow(points), path)


def _npy(path: Path, points: Points) -> None:
    np.save(path, points)


def _csv(path: Path, points: Points) -> None:
    path.write_bytes(_text(points, "\t" if ".tsv" in path.name else ","))


WRITERS: dict[str, Callable[[Path, Points], None]] = {
    **dict.fromkeys(KINDS, _csv),
    **dict.fromkeys((".parquet", ".pq"), _parquet),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), partial(_ipc, stream=False)),
    ".arrows": partial(_ipc, stream=True),
    ".npy": _npy,
}
"""How each format is written; a new one needs a line here."""


def _zstandard(path: Path, data: bytes) -> None:
    with pa.CompressedOutputStream(str(path), "zstd") as out:
        out.write(data)


PACKERS: dict[str, Callable[[Path, bytes], Any]] = {
    ".gz": lambda path, data: path.write_bytes(gzip.compress(data, mtime=0)),
    ".bz2": lambda path, data: BZ2File(path, "wb").write(data),
    ".xz": lambda path, data: path.write_bytes(lzma.compress(data)),
    ".zst": _zstandard,
}


def test_every_format_is_written() -> None:
    assert set(WRITERS) == set(FILES)
    assert set(PACKERS) == set(PACKINGS)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to run commands in, with another beside it."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


USUAL = ["--columns", "a,b", "--bounds", "-3:3,...", "--bandwidth", "1", "--epsilon", "0.5"]
SPLINE = ["--family", "spline", "--degree", "2", "--spacing", "1"]
Write = Callable[[Path, Points], None]


def alike(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    typed: list[str],
    *,
    table: str = "t.csv",
    write: Write = _csv,
    sides: Tables | None = None,
    secret: bool = False,
    prepared: Path | None = None,
    count: int | None = None,
) -> tuple[int, dict[str, bytes], str]:
    """Check that a command leaves the same of every table: its code, files and last words."""

    def call(points: Points) -> int:
        for old in folder.iterdir():
            old.unlink()
        if prepared is not None:
            shutil.copytree(prepared, folder, dirs_exist_ok=True)
        brought = {path.name for path in folder.iterdir()} - {"ledger.db"}
        write(folder / table, points)
        try:
            code = run(typed)
        except SystemExit as stop:
            code = stop.code
        (folder / table).unlink()
        for path in folder.iterdir():
            if path.name in brought:
                path.unlink()
            elif path.name == "ledger.db":
                told = [repr(entry) for entry in dpkde.Ledger.open(path).history()]
                path.write_text("\n".join(told))
            elif secret:
                path.write_text(str(path.stat().st_size))
        return int(code)

    runs = recorded(monkeypatch, call, sides or tables("add-remove"), folder=folder, count=count)
    assert not differences(runs)
    first = runs[0]
    assert not first.error, first.error
    return int(first.result), dict(first.files), first.printed + first.complained


@pytest.mark.parametrize(
    "ending", [*FILES, *(f".csv{packing}" for packing in PACKINGS)], ids=lambda ending: ending
)
def test_tables_of_every_format_are_alike(
    ending: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = "." + ending.split(".")[1]

    def write(path: Path, points: Points) -> None:
        if ending in WRITERS:
            WRITERS[ending](path, points)
        else:
            PACKERS[ending.removeprefix(kind)](path, _text(points))

    columns = [] if kind == ".npy" else USUAL[:2]
    typed = ["publish", f"t{ending}", "-o", "r", *columns, *USUAL[2:], *SPLINE]
    code, files, words = alike(monkeypatch, folder, typed, table=f"t{ending}", write=write)
    assert (code, list(files), words) == (0, ["r"], "")


def test_a_table_on_standard_input(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: Path, points: Points) -> None:
        path.touch()
        stdin = SimpleNamespace(buffer=io.BytesIO(_text(points)), isatty=lambda: False)
        monkeypatch.setattr(sys, "stdin", stdin)

    typed = ["publish", "-", "-o", "r", *USUAL, *SPLINE]
    assert alike(monkeypatch, folder, typed, write=write)[0] == 0


def test_neighbours_are_alike(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = ["publish", "t.csv", "-o", "r", *USUAL]
    assert alike(monkeypatch, folder, typed, sides=neighbours())[0] == 0


# Every option

WHOSE = ["--unit", "who", "--rows-per-unit", "2"]
LEDGER = ["--ledger", "ledger.db"]
PLAN = ["--plan", "p.plan"]
CASES: dict[str, dict[str, list[list[str]]]] = {
    "publish": {
        "output": [[]],
        "plan": [[*PLAN, "--epsilon", "1"]],
        "columns": [["--columns", "a,b"], ["--columns", "a,nobody"], ["--columns", "who"]],
        "bounds": [["--bounds", "-1:1,-2:2"], ["--bounds", "1:-1"]],
        "outside": [["--outside", "drop"], ["--outside", "out"]],
        "ranges": [["--bounds", "private", "--ranges", "-4:4,-"], ["--ranges", "-4:4,..."]],
        "bandwidth": [["--bandwidth", "0.5,1"], ["--bandwidth", "auto", "--bounds", "private"]],
        "bandwidth_std": [["--bandwidth-std", "0.5"]],
        "unit": [WHOSE, ["--unit", "who"]],
        "rows_per_unit": [[*WHOSE, "--adjacency", "replace"]],
        "kernel": [["--kernel", "laplacian"], ["--kernel", "geodesic"]],
        "epsilon": [["--epsilon", "2"], ["--epsilon", "0"]],
        "delta": [["--delta", "1e-3"]],
        "rho": [["--rho", "0.1"]],
        "adjacency": [["--adjacency", "replace"]],
        "family": [["--family", "fourier", "--frequencies", "8"], ["--family", "fastgauss"]],
        "degree": [["--family", "spline", "--degree", "1"]],
        "spacing": [["--family", "spline", "--spacing", "2"]],
        "order": [["--family", "fastgauss", "--order", "2"]],
        "frequencies": [["--family", "fourier", "--frequencies", "4"]],
        "repetitions": [["--kernel", "hat", "--family", "hashing", "--repetitions", "3"]],
        "buckets": [["--kernel", "hat", "--family", "hashing", "--buckets", "16"]],
        "seed": [["--seed", "5", "--family", "fourier"]],
        "expected_rows": [["--expected-rows", "300"]],
        "typical_density": [["--typical-density", "0.2"]],
        "pilot": [["--no-pilot"]],
        "alpha": [["--alpha", "0.9", "--eta", "0.2"], ["--alpha", "0.01", "--eta", "0.2"]],
        "eta": [["--eta", "0.2"]],
        "simultaneous": [["--alpha", "0.9", "--eta", "0.2", "--simultaneous"]],
        "delimiter": [["--delimiter", ","], ["--delimiter", ";"], ["--delimiter", "too long"]],
        "records": [["--records", "lines"]],
        "decimal": [["--decimal", "."], ["--decimal", ","]],
        "thousands": [["--thousands", "'"]],
        "encoding": [["--encoding", "latin-1"], ["--encoding", "klingon"]],
        "settings": [["--settings", "s.toml"]],
        "ledger": [LEDGER],
        "dataset": [[*LEDGER, "--dataset", "trips"]],
        "part": [[*LEDGER, "--part", "one"], [*LEDGER, "--part", "two"]],
        "remark": [[*LEDGER, "--remark", "a map"]],
        "quiet": [["-q"]],
    },
    "sketch": {
        "plan": [PLAN, ["--plan", "nowhere"]],
        "output": [[]],
        "unit": [WHOSE],
        "rows_per_unit": [["--rows-per-unit", "2"]],
        "checkpoint": [["--checkpoint", "c"]],
        "threads": [["--threads", "2"]],
        "quiet": [["-q"]],
        "delimiter": [["--delimiter", ","], ["--delimiter", ";"]],
        "records": [["--records", "lines"]],
        "decimal": [["--decimal", "."], ["--decimal", ","]],
        "thousands": [["--thousands", "'"]],
        "encoding": [["--encoding", "latin-1"]],
    },
    "merge": {
        "output": [[]],
        "disjoint_units": [["--disjoint-units"]],
        "quiet": [["-q"]],
    },
}
"""For each verb and option, what to try; each takes the place of the same option of `USUAL`."""


@pytest.mark.parametrize("name", READ_TABLES)
def test_every_option_has_a_case(name: str) -> None:
    assert set(CASES[name]) == {row.name for row in rows(*_verb(name).groups)}


def _cases(name: str) -> list[Any]:
    """Return an option and a number for each thing to try."""
    return [
        pytest.param(option, number, id=f"{option}-{number}")
        for option, several in CASES[name].items()
        for number in range(len(several))
    ]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What stands beside the table: a plan, settings, and a ledger."""
    place = tmp_path_factory.mktemp("prepared")
    typed = ["plan", *USUAL, *SPLINE, "--expected-rows", "300", "--seed", "1"]
    assert run([*typed, "-o", str(place / "p.plan")]) == 0
    (place / "s.toml").write_text('typical-density = 0.2\nkernel = "hat"\n')
    dpkde.Ledger.create(place / "ledger.db", dataset="trips", epsilon=5, parts=["one"])
    return place


@pytest.mark.parametrize(("option", "number"), _cases("publish"))
def test_tables_are_alike_under_every_option_of_publish(
    option: str, number: int, folder: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpkde.privacy.ledger.ledger.today", lambda: "2026-01-01")
    own = CASES["publish"][option][number]
    usual = dict(zip(USUAL[::2], USUAL[1::2], strict=True))
    if "--plan" in own:
        usual = {}
    if "geodesic" in own:
        usual = {"--columns": "a,b", "--epsilon": "1"}
    if "--rho" in own:
        del usual["--epsilon"]
    if "--bandwidth-std" in own:
        del usual["--bandwidth"]
    base = [word for flag, value in usual.items() if flag not in own for word in (flag, value)]
    sides = tables("replace" if "replace" in own else "add-remove")
    typed = ["publish", "t.csv", "-o", "r.dpkde", *base, *own]
    code, files, words = alike(monkeypatch, folder, typed, sides=sides, prepared=prepared)
    assert code == (0 if "r.dpkde" in files else 2)
    assert code == 0 or number or option == "eta", words
    assert code == 0 or words.startswith("dpkde: ")


def test_notes_are_alike(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A note about few records hangs on the noisy count: on few of many, and many of few."""
    typed = ["publish", "t.csv", "-o", "r", *USUAL, *SPLINE]
    for count, noted in ((1, True), (10**6, False)):
        words = alike(monkeypatch, folder, typed, count=count)[2]
        assert words.startswith("dpkde: note: about 1 record,") is noted


@pytest.mark.parametrize(("option", "number"), _cases("sketch"))
def test_sketches_are_made_alike(
    option: str, number: int, folder: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = CASES["sketch"][option][number]
    plan = [] if "--plan" in own else PLAN
    typed = ["sketch", "t.csv", "-o", "s.sketch", *plan, *own]
    code, files, words = alike(monkeypatch, folder, typed, prepared=prepared, secret=True)
    assert code == (0 if "s.sketch" in files else 2)
    assert code == 0 or number or option == "rows_per_unit", words


@pytest.mark.parametrize("option", CASES["merge"])
def test_sketches_are_merged_and_published_alike(
    option: str, folder: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the same part is an error in the same words."""
    (own,) = CASES["merge"][option]
    plan = dpkde.Plan.load(prepared / "p.plan")
    other = dpkde.sketch(POINTS[:5], plan)

    def write(path: Path, points: Points) -> None:
        made = dpkde.sketch(points, plan)
        made._ids = frozenset(["ab" * 16])
        made.save(path)
        other.save(path.with_name("other.sketch"))

    merge = ["merge", "t.sketch", "other.sketch", "-o", "all.sketch", *own]
    settings: dict[str, Any] = {"table": "t.sketch", "write": write, "secret": True}
    code, _, words = alike(monkeypatch, folder, merge, **settings)
    assert code == 0
    assert bool(words) == ("-q" not in own)
    twice = alike(monkeypatch, folder, [*merge, "t.sketch"], **settings)
    assert twice[0] == 2
    publish = ["publish", "t.sketch", "-o", "r", "--epsilon", "1"]
    settings["secret"] = False

    def alone(path: Path, points: Points) -> None:
        write(path, points)
        path.with_name("other.sketch").unlink()

    settings["write"] = alone
    assert list(alike(monkeypatch, folder, publish, **settings)[1]) == ["r"]


def test_a_word_about_rows_shows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What commands must not say is seen: here the number of rows that were read."""
    from dpkde.cli import publish

    finish = publish._finish

    def talkative(release: dpkde.Release, options: Any) -> None:
        sys.stderr.write(f"{len(Path('t.csv').read_bytes().splitlines())} lines read\n")
        finish(release, options)

    typed = ["publish", "t.csv", "-o", "r", *USUAL, *SPLINE]
    alike(monkeypatch, folder, typed)
    monkeypatch.setattr("dpkde.cli.publish._finish", talkative)
    with pytest.raises(AssertionError, match="complained"):
        alike(monkeypatch, folder, typed)
