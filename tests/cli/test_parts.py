"""From many places to one release by commands alone: plan, sketch, merge, publish."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dpkde
from commands import POINTS, dpkde_
from dpkde.curator.checkpoint import Checkpoint

PLANNED = ["--columns", "lon,lat", "--bounds", "0:1,0:1", "--bandwidth", "0.2"]
PLANNED += ["--epsilon", "1", "--expected-rows", "2000"]
Printed = pytest.CaptureFixture[str]


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> list[str]:
    """A plan, and the sketches of three tables under it; their numbers are 0, 1 and 2."""
    monkeypatch.chdir(tmp_path)
    assert dpkde_("plan", *PLANNED, "-o", "p.plan", capsys=capsys)[0] == 0
    names = []
    for number, rows in enumerate(np.array_split(POINTS, 3)):
        _write(f"{number}.csv", rows)
        names.append(f"{number}.sketch")
        assert _sketch(f"{number}.csv", names[-1], capsys=capsys)[0] == 0
    return names


def _write(name: str, rows: np.ndarray) -> None:
    np.savetxt(name, rows, delimiter=",", header="lon,lat", comments="", fmt="%.7f")


def _sketch(table: str, output: str, *options: str, capsys: Printed) -> tuple[int, str, str]:
    return dpkde_("sketch", table, "--plan", "p.plan", "-o", output, *options, capsys=capsys)


def _whole() -> dpkde.Sketch:
    return dpkde.sketch(POINTS, dpkde.Plan.load("p.plan"))


def test_the_whole_way(parts: list[str], capsys: Printed) -> None:
    code, out, err = dpkde_("merge", *parts, "-o", "all.sketch", capsys=capsys)
    assert (code, out) == (0, "")
    assert "all.sketch is secret" in err
    assert dpkde.Sketch.load("all.sketch") == _whole()
    publish = ["publish", "all.sketch", "-o", "r.dpkde", "--epsilon", "1/2"]
    assert dpkde_(*publish, capsys=capsys) == (0, "", "")
    release = dpkde.load("r.dpkde")
    assert release.columns == ("lon", "lat")
    assert float(release.privacy.epsilon) == 0.5
    assert abs(release.count - 2000) < 1000
    # merging what was merged
    assert dpkde_("merge", *parts[:2], "-o", "most.sketch", capsys=capsys)[0] == 0
    assert dpkde_("merge", "most.sketch", parts[2], "-o", "all.sketch", "-q", capsys=capsys) == (
        *(0, "", ""),
    )
    assert dpkde.Sketch.load("all.sketch") == _whole()


def test_several_tables_are_one_sketch(parts: list[str], capsys: Printed) -> None:
    """One part, in whatever order; of files of several kinds."""
    np.save("1.npy", np.array_split(POINTS, 3)[1])
    code, out, err = dpkde_(
        *("sketch", "2.csv", "0.csv", "1.npy", "--plan", "p.plan", "-o", "s", "--threads", "2"),
        capsys=capsys,
    )
    assert (code, out) == (0, "")
    assert err == (
        "dpkde: note: s is secret: exact sums, as secret as the table; remove it once it is of no "
        "more use\n"
    )
    sums = dpkde.Sketch.load("s")
    assert sums == _whole()
    assert len(sums._ids) == 1
    if os.name == "posix":
        assert Path("s").stat().st_mode & 0o777 == 0o600


def test_a_table_on_standard_input(
    parts: list[str], capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Path("0.csv").read_bytes().replace(b",", b";")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert _sketch("-", "s", "--delimiter", ";", capsys=capsys)[0] == 0
    assert dpkde.Sketch.load("s") == dpkde.Sketch.load("0.sketch")


def test_mistakes_are_named_by_their_files(parts: list[str], capsys: Printed) -> None:
    """All at once, and the rest can then be merged; nothing is written before."""
    other = [*PLANNED[:5], "0.3", *PLANNED[6:]]
    assert dpkde_("plan", *other, "-o", "q.plan", capsys=capsys)[0] == 0
    typed = ["sketch", "1.csv", "--plan", "q.plan", "-o", "odd.sketch", "-q"]
    assert dpkde_(*typed, capsys=capsys)[0] == 0
    Path("copy.sketch").write_bytes(Path("0.sketch").read_bytes())
    names = ["0.sketch", "odd.sketch", "1.sketch", "copy.sketch", "2.sketch"]
    code, out, err = dpkde_("merge", *names, "-o", "all.sketch", capsys=capsys)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert "0.sketch and odd.sketch were made under different plans" in err
    assert "kernel.bandwidth is 0.2 and 0.3" in err
    assert "copy.sketch has a part in it that is in 0.sketch as well" in err
    assert not Path("all.sketch").exists()
    right = [name for name in names if name not in ("odd.sketch", "copy.sketch")]
    assert dpkde_("merge", *right, "-o", "all.sketch", capsys=capsys)[0] == 0
    assert dpkde.Sketch.load("all.sketch") == _whole()


def test_a_sketch_is_known_by_its_content(parts: list[str], capsys: Printed) -> None:
    """Whatever it is called; and what is none gets a line that says what it is."""
    publish = ["-o", "r.dpkde", "--epsilon", "1"]
    Path("s.csv").write_bytes(Path("0.sketch").read_bytes())
    assert dpkde_("publish", "s.csv", *publish, capsys=capsys)[0] == 0
    Path("table.sketch").write_bytes(Path("0.csv").read_bytes())
    Path("cut.sketch").write_bytes(Path("0.sketch").read_bytes()[:-1])
    data = Path("0.sketch").read_bytes()
    Path("bad").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    for name, words in (
        ("p.plan", "p.plan is a dpkde-plan file, not a table and not a sketch"),
        ("r.dpkde", "r.dpkde is a dpkde-release file, not a table and not a sketch"),
        ("table.sketch", "table.sketch is not a dpkde file, or is damaged"),
        ("cut.sketch", "cut.sketch is not a dpkde file, or is damaged: its end is missing"),
        ("bad", "bad is not a dpkde file, or is damaged: its contents do not match its digest"),
        ("none.sketch", "none.sketch"),
    ):
        code, out, err = dpkde_("publish", name, *publish, capsys=capsys)
        assert (code, out) == (2, "")
        assert words in err
        assert len(err.splitlines()) == 1
        if not name.startswith("none"):
            code, _, err = dpkde_("merge", "0.sketch", name, "-o", "m", capsys=capsys)
            assert code == 2
            assert name in err
    for name, words in (
        ("0.sketch", "is a dpkde-sketch file, and not a table: use dpkde merge"),
        ("r.dpkde", "is a dpkde-release file, and not a table"),
    ):
        code, _, err = _sketch(name, "s", capsys=capsys)
        assert code == 2
        assert words in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--bandwidth", "1"], "already fixed by the plan: --bandwidth; leave that out"),
        (["--unit", "x", "--rows-per-unit", "1"], "--unit, --rows-per-unit; leave that out"),
        (["--columns", "lon"], "already fixed by the plan: --columns"),
        (["--delimiter", ";"], "--delimiter goes with CSV text, not with a sketch"),
        (["--plan", "q.plan"], "the sketch was made under another plan"),
        (["--dataset", "d"], "dataset"),
    ],
)
def test_what_a_plan_has_fixed_is_not_given_again(
    parts: list[str], options: list[str], words: str, capsys: Printed
) -> None:
    other = [*PLANNED[:5], "0.3", *PLANNED[6:]]
    assert dpkde_("plan", *other, "-o", "q.plan", capsys=capsys)[0] == 0
    publish = ["publish", "0.sketch", "-o", "r.dpkde", "--epsilon", "1"]
    code, out, err = dpkde_(*publish, *options, capsys=capsys)
    assert (code, out) == (2, "")
    assert words in err
    assert not Path("r.dpkde").exists()
    assert dpkde_(*publish, "--plan", "p.plan", capsys=capsys)[0] == 0
    code, _, err = dpkde_(*publish[:-2], capsys=capsys)
    assert code == 2
    assert "--epsilon is needed" in err


def test_a_ledger_pays_for_a_sketch(parts: list[str], capsys: Printed) -> None:
    assert (
        dpkde_("budget", "create", "l.db", "--dataset", "d", "--epsilon", "1", capsys=capsys)[0]
        == 0
    )
    publish = ["publish", "0.sketch", "-o", "r.dpkde", "--ledger", "l.db", "--epsilon", "3/4"]
    assert dpkde_(*publish, capsys=capsys)[0] == 0
    assert dpkde.Ledger.open("l.db").left().epsilon == dpkde.load("r.dpkde").privacy.epsilon / 3
    code, _, err = dpkde_(*publish, capsys=capsys)
    assert code == 2
    assert "left" in err


def test_units_from_parts(parts: list[str], capsys: Printed) -> None:
    """The plan's, or typed; k parts price k times as many rows, unless they are disjoint."""
    Path("u.csv").write_text("who,lon,lat\n" + "".join(f"p{k % 9},0.5,0.5\n" for k in range(50)))
    unit = ["--unit", "who", "--rows-per-unit", "2"]
    assert dpkde_("plan", *PLANNED, *unit, "-o", "u.plan", capsys=capsys)[0] == 0
    for name in ("a", "b"):
        typed = ["sketch", "u.csv", "--plan", "u.plan", "-o", name]
        assert dpkde_(*typed, capsys=capsys)[0] == 0
    assert dpkde.Sketch.load("a")._count == 18
    for options, records in (([], 4), (["--disjoint-units"], 2)):
        assert dpkde_("merge", "a", "b", "-o", "ab", *options, capsys=capsys)[0] == 0
        assert dpkde.Sketch.load("ab").plan.unit.records == records
    Path("v.csv").write_bytes(Path("u.csv").read_bytes())
    typed = ["sketch", "u.csv", "v.csv", "--plan", "u.plan", "-o", "both"]
    assert dpkde_(*typed, capsys=capsys)[0] == 0
    assert "is there twice" in dpkde_(*typed[:2], *typed[1:2], *typed[3:], capsys=capsys)[2]
    both = dpkde.Sketch.load("both")  # one table: two rows of each in all
    assert (both._count, both.plan.unit.records) == (18, 2)
    assert _sketch("u.csv", "typed", *unit, capsys=capsys)[0] == 0
    assert dpkde.Sketch.load("typed")._count == 18
    for options, words in (
        (unit[:2], "--unit and --rows-per-unit together"),
        ([*unit, "--checkpoint", "c"], "leave out --checkpoint"),
    ):
        code, _, err = _sketch("u.csv", "s", *options, capsys=capsys)
        assert code == 2
        assert words in err


def test_a_checkpoint_outlives_a_disk_that_is_full(
    parts: list[str], capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is deleted only once the sketch is written; and goes on from where it was."""
    monkeypatch.setattr("dpkde.curator.checkpoint.SECONDS", 0.0)
    monkeypatch.setattr("dpkde.curator.checkpoint._PATIENCE", 0)
    typed = ["sketch", "0.csv", "1.csv", "2.csv", "--plan", "p.plan", "-o", "s"]
    typed += ["--threads", "1", "--checkpoint", "c"]

    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device", "s")

    with monkeypatch.context() as patch:
        patch.setattr(dpkde.Sketch, "save", full)
        code, _, err = dpkde_(*typed, capsys=capsys)
        assert (code, err) == (2, "dpkde: s: no space left on device\n")
    state = Checkpoint.load("c")
    assert dpkde_(*typed, capsys=capsys)[0] == 0
    sums = dpkde.Sketch.load("s")
    assert sums == _whole()
    assert sums._ids == {state.identity}
    assert not Path("c").exists()
    for place, words in (
        ("s2", "name the same file"),
        ("0.csv", "is no dpkde-checkpoint file"),
        ("nowhere/c", "there is no folder"),
        ("0.sketch", "is no dpkde-checkpoint file"),
    ):
        code, _, err = _sketch("0.csv", "s2", "--checkpoint", place, capsys=capsys)
        assert code == 2
        assert words in err
    assert len(Path("0.csv").read_text().splitlines()) == 668


def test_what_cannot_be_sketched_or_written(parts: list[str], capsys: Printed) -> None:
    for table, output, words in (
        ("0.csv", "0.csv", "is no dpkde-sketch file"),
        ("0.csv", "p.plan", "is no dpkde-sketch file"),
        ("none.csv", "s", "none.csv"),
        ("0.csv", ".", "is a folder"),
    ):
        code, out, err = _sketch(table, output, capsys=capsys)
        assert (code, out) == (2, "")
        assert words in err
    code, _, err = dpkde_("sketch", "0.csv", "--plan", "0.sketch", "-o", "s", capsys=capsys)
    assert code == 2
    assert "0.sketch is not a dpkde-plan file but 'dpkde-sketch'" in err
    code, _, err = dpkde_("merge", *parts, "-o", "0.csv", capsys=capsys)
    assert code == 2
    assert "is no dpkde-sketch file" in err


def test_no_cell_in_a_word(parts: list[str], capsys: Printed) -> None:
    """Whatever is in a table: the same lines, and a file of the same size."""
    rows = ["0.5,0.5"] * 9
    printed = set()
    for cell in ("0.5", "SECRET-4711", "1e999", '"'):
        Path("t.csv").write_text("\n".join(["lon,lat", *rows, f"{cell},0.5", *rows, ""]))
        code, out, err = _sketch("t.csv", "t.sketch", "--checkpoint", "c", capsys=capsys)
        printed.add((code, out, err, Path("t.sketch").stat().st_size))
    assert len(printed) == 1
    assert next(iter(printed))[0] == 0


@pytest.mark.audit
def test_ten_hospitals(parts: list[str], capsys: Printed) -> None:
    """Ten processes; one part came twice, one is of another plan, and the rest publishes."""
    sketch = [sys.executable, "-m", "dpkde", "sketch"]
    running = []
    for number, rows in enumerate(np.array_split(POINTS, 10)):
        _write(f"h{number}.csv", rows)
        typed = [f"h{number}.csv", "--plan", "p.plan", "-o", f"h{number}.part", "-q"]
        running.append(subprocess.Popen([*sketch, *typed]))
        if len(running) == 2:
            assert [process.wait() for process in running] == [0, 0]
            running = []
    names = [f"h{number}.part" for number in range(10)]
    other = [*PLANNED[:3], "0:1,0:2", *PLANNED[4:]]
    assert dpkde_("plan", *other, "-o", "q.plan", capsys=capsys)[0] == 0
    typed = ["sketch", "h3.csv", "--plan", "q.plan", "-o", "h3.other", "-q"]
    assert dpkde_(*typed, capsys=capsys)[0] == 0
    Path("h10.part").write_bytes(Path("h7.part").read_bytes())
    wrong = [*names, "h10.part", "h3.other"]
    code, _, err = dpkde_("merge", *wrong, "-o", "all.sketch", capsys=capsys)
    assert code == 2
    assert "h10.part has a part in it that is in h7.part as well" in err
    assert (
        "h0.part and h3.other were made under different plans: bounds[1][1] is 1.0 and 2.0" in err
    )
    assert dpkde_("merge", *names, "-o", "all.sketch", capsys=capsys)[0] == 0
    assert dpkde.Sketch.load("all.sketch") == _whole()
    publish = ["publish", "all.sketch", "-o", "r.dpkde", "--epsilon", "1"]
    assert dpkde_(*publish, capsys=capsys)[0] == 0
