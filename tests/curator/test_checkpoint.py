"""Sketches that go on after a kill: the same bits, the same files, one process at a time."""

from __future__ import annotations

import gzip
import inspect
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpkde
from commands import dpkde_
from dpkde.cli.options import RELEASE, rows
from dpkde.curator import checkpoint as checkpoints
from dpkde.curator.checkpoint import Checkpoint
from dpkde.release import container
from dpkde.tables import source, text

PLAN = dpkde.plan(
    kernel=dpkde.Gaussian(0.3),
    bounds=[(-1, 1)] * 2,
    epsilon=1,
    family=dpkde.Spline(3, 0.5),
    columns=["a", "b"],
)
POINTS = np.random.default_rng(0).uniform(-1, 1, size=(130_000, 2)).round(5)
WHOLE = dpkde.sketch(POINTS, PLAN)


@pytest.fixture
def files(tmp_path: Path) -> list[Any]:
    """One table in files of every kind that is read."""
    parts = np.split(POINTS, np.cumsum([70_000, 5_000, 15_000]))
    frames = [pd.DataFrame(part, columns=["a", "b"]) for part in parts]
    frames[0].assign(c=1).to_csv(tmp_path / "0.csv", index=False)
    frames[1].to_csv(tmp_path / "1.txt", index=False, sep=";", decimal=",")
    with gzip.open(tmp_path / "2.csv.gz", "wt") as file:
        frames[2].to_csv(file, index=False)
    half = len(parts[3]) // 2
    frames[3][:half].to_parquet(tmp_path / "3.parquet", row_group_size=9_000)
    np.save(tmp_path / "4.npy", parts[3][half:])
    return [
        tmp_path / "0.csv",
        dpkde.CSV(tmp_path / "1.txt", delimiter=";", decimal=","),
        str(tmp_path / "2.csv.gz"),
        tmp_path / "3.parquet",
        tmp_path / "4.npy",
    ]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "kept"
    folder.mkdir()
    return folder / "c"


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut tables into small pieces, and write a checkpoint after every one or two."""
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "_PATIENCE", 0)
    monkeypatch.setattr(source, "_CHUNK_VALUES", 1 << 14)
    monkeypatch.setattr(text, "TEXT_BLOCK", 1 << 16)


class Killed(BaseException):
    """What ends a sketch here."""


def _stopping(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Let the process end when it has written so many checkpoints."""
    save, written = Checkpoint.save, list[int]()

    def counted(state: Checkpoint, path: Path) -> None:
        save(state, path)
        written.append(1)
        if len(written) == after:
            raise Killed

    monkeypatch.setattr(Checkpoint, "save", counted)


def _stopped(files: Any, place: Path, after: int = 1, **options: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        _stopping(patch, after)
        with pytest.raises(Killed):
            dpkde.sketch(files, PLAN, checkpoint=place, **options)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_same_bits_and_nothing_left(files: list[Any], place: Path, threads: int) -> None:
    """Undisturbed, and ended and begun again after every third checkpoint."""
    assert dpkde.sketch(files, PLAN, checkpoint=place, threads=threads) == WHOLE
    assert not list(place.parent.iterdir())
    ends = 0
    while True:
        try:
            _stopped(files, place, 3, threads=threads)
        except pytest.fail.Exception:  # it came to its end
            break
        ends += 1
    assert ends >= 3
    assert not list(place.parent.iterdir())


@pytest.mark.usefixtures("often")
def test_what_is_summed_is_not_summed_again(
    files: list[Any], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it ends: each piece is read once, and the last run makes the whole."""
    read: list[int] = []
    accumulate = type(PLAN.pair).accumulate

    def counted(pair: Any, coordinates: Any, counts: Any, table: Any) -> None:
        read.append(len(coordinates))
        accumulate(pair, coordinates, counts, table)

    monkeypatch.setattr(type(PLAN.pair), "accumulate", counted)
    for after in (1, 2, 1):
        _stopped(files, place, after)
        state = Checkpoint.load(place)
        assert state.sums.rows == sum(read)
        assert state.sums.rows < len(POINTS)
    resumed = dpkde.sketch(files, PLAN, checkpoint=str(place))
    assert resumed == WHOLE
    assert sum(read) == len(POINTS)
    assert resumed._ids == {state.identity}  # one part, however often it was begun


def test_a_single_file_and_an_empty_one(files: list[Any], place: Path) -> None:
    for one in files:
        assert dpkde.sketch(one, PLAN, checkpoint=place) == dpkde.sketch(one, PLAN)
    empty = place.with_name("empty.csv")
    empty.write_text("a,b\n")
    assert dpkde.sketch(empty, PLAN, checkpoint=place) == dpkde.Sketch.empty(PLAN)
    assert [path.name for path in place.parent.iterdir()] == ["empty.csv"]


SCRIPT = """
import os, signal, sys, random, time
import dpkde
from dpkde.curator import checkpoint
from dpkde.tables import source
checkpoint.SECONDS = 0.0
source._CHUNK_VALUES = 1 << 12
plan = dpkde.Plan.load("plan")
paths = sys.argv[1:]
dpkde.sketch(paths[-1], plan)
add = type(plan.pair).accumulate
def slowly(*arguments):
    time.sleep(0.004)
    add(*arguments)
type(plan.pair).accumulate = slowly
chance, kills = random.Random(3), 0
while True:
    child = os.fork()
    if not child:
        dpkde.sketch(paths, plan, checkpoint="kept/c", threads=2).save("whole.sketch")
        os._exit(0)
    if kills < 6:
        while not os.path.exists("kept/c"):
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.1))
        os.kill(child, signal.SIGKILL)
    if os.waitpid(child, 0)[1] == 0:
        break
    kills += 1
print(kills)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills copies of a process, made by a fork")
def test_killed_at_any_moment(tmp_path: Path) -> None:
    """Six times, wherever it is: between checkpoints, or in the middle of writing one."""
    (tmp_path / "kept").mkdir()
    PLAN.save(tmp_path / "plan")
    names = []
    for number, part in enumerate(np.array_split(np.tile(POINTS, (6, 1)), 5)):
        names.append(f"{number}.npy")
        np.save(tmp_path / names[-1], part)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *names],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert int(done.stdout) == 6
    whole = dpkde.sketch(np.tile(POINTS, (6, 1)), PLAN)
    assert dpkde.Sketch.load(tmp_path / "whole.sketch") == whole
    assert not list((tmp_path / "kept").iterdir())


# What is refused


def _touched(path: Path) -> None:
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 1))


def _grown(path: Path) -> None:
    was = path.stat()
    path.write_bytes(path.read_bytes() + b"0.1,0.2,1\n")
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def _edited(path: Path) -> None:
    was, text = path.stat(), path.read_bytes()
    path.write_bytes(text[:60] + text[60:90].replace(b"1", b"2") + text[90:])
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("change", [_touched, _grown, _edited])
def test_a_file_that_was_begun_and_changed_is_refused(
    files: list[Any], place: Path, change: Any
) -> None:
    _stopped(files, place, 2)
    kept = place.read_bytes()
    change(files[0])
    with pytest.raises(dpkde.SchemaError, match=r"0\.csv has changed since .*begin anew, remove"):
        dpkde.sketch(files, PLAN, checkpoint=place)
    assert place.read_bytes() == kept
    place.unlink()
    assert dpkde.sketch(files, PLAN, checkpoint=place)._rows == len(POINTS) + (change is _grown)


@pytest.mark.usefixtures("often")
def test_a_file_that_was_not_begun_and_changed_is_refused(files: list[Any], place: Path) -> None:
    _stopped(files, place)
    assert Checkpoint.load(place).files[-1].digest == ""
    _touched(files[-1])
    with pytest.raises(dpkde.SchemaError, match=r"4\.npy has changed since"):
        dpkde.sketch(files, PLAN, checkpoint=place)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("which", [0, 4])
def test_a_file_that_changes_while_it_is_read(
    files: list[Any], place: Path, which: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    accumulate, done = type(PLAN.pair).accumulate, threading.Event()

    def spoiling(pair: Any, coordinates: Any, counts: Any, table: Any) -> None:
        accumulate(pair, coordinates, counts, table)
        if not done.is_set():
            done.set()
            _touched(files[which])

    monkeypatch.setattr(type(PLAN.pair), "accumulate", spoiling)
    with pytest.raises(dpkde.SchemaError, match="has changed while it was read"):
        dpkde.sketch(files[which], PLAN, checkpoint=place, threads=1)


@pytest.mark.usefixtures("often")
def test_a_checkpoint_of_something_else_is_refused(
    files: list[Any], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stopped(files, place)
    kept = place.read_bytes()
    other = dpkde.plan(
        kernel=dpkde.Gaussian(0.4),
        bounds=[(-1, 1)] * 2,
        epsilon=1,
        family=dpkde.Spline(3, 0.5),
        columns=["a", "b"],
    )
    otherwise = dpkde.CSV(files[1].source, delimiter=";", decimal=",", records="lines")
    for points, plan, words in (
        (files, other, "of another plan"),
        (files[:-1], PLAN, "of other files, or in another order"),
        (files[::-1], PLAN, "of other files, or in another order"),
        ([files[0], otherwise, *files[2:]], PLAN, "of text that was read otherwise"),
    ):
        with pytest.raises(dpkde.ParameterError, match=f"{words}; to begin anew, remove"):
            dpkde.sketch(points, plan, checkpoint=place)
    with monkeypatch.context() as patch:
        patch.setattr(dpkde, "__version__", "9.9")
        with pytest.raises(dpkde.ParameterError, match=r"by dpkde .*, and this is dpkde 9\.9"):
            dpkde.sketch(files, PLAN, checkpoint=place)
    assert place.read_bytes() == kept
    assert dpkde.sketch(files, PLAN, checkpoint=place) == WHOLE


@pytest.mark.usefixtures("often")
def test_pieces_that_are_cut_otherwise_are_refused(files: list[Any], place: Path) -> None:
    _stopped(files, place)
    state = Checkpoint.load(place)
    assert state.pieces
    for change in ({"size": state.size - 1}, {"pieces": 10**9}):
        document, tensors = state.contents()
        Checkpoint.of_contents((document | change, tensors)).save(place)
        with pytest.raises(dpkde.SchemaError, match="cut into other pieces"):
            dpkde.sketch(files, PLAN, checkpoint=place)


@pytest.mark.usefixtures("often")
def test_damaged_and_foreign_files_are_refused_and_kept(files: list[Any], place: Path) -> None:
    _stopped(files, place)
    data = place.read_bytes()
    damaged = [data[:-1], data[:-1] + bytes([data[-1] ^ 1]), b"", b"a,b\n1,2\n", WHOLE.to_bytes()]
    for other in damaged:
        place.write_bytes(other)
        with pytest.raises(dpkde.FormatError):
            dpkde.sketch(files, PLAN, checkpoint=place)
        assert place.read_bytes() == other
    state = Checkpoint.from_bytes(data)
    document, tensors = state.contents()
    for name in ("plan", "generator", "identity", "files", "file", "pieces", "size"):
        values: list[Any] = [None, -1, [{}]]
        values += ["x" if name in ("files", "file", "pieces", "size") else 3]
        for value in values:
            changed: dict[str, Any] = document | {name: value}
            with pytest.raises(dpkde.FormatError):
                Checkpoint.of_contents((changed, tensors))
    for name, array in (("table", np.zeros(3)), ("totals", np.zeros(3, dtype=np.int64))):
        with pytest.raises(dpkde.FormatError):
            Checkpoint.of_contents((document, tensors | {name: array}))
    place.unlink()
    Checkpoint.of_contents((document, tensors | {"table": np.zeros(3, dtype=np.int64)})).save(place)
    with pytest.raises(dpkde.FormatError, match="do not fit the plan"):
        dpkde.sketch(files, PLAN, checkpoint=place)


def test_only_files_can_be_gone_on_with(files: list[Any], place: Path) -> None:
    frame = pd.read_csv(files[0])
    units = dpkde.plan(
        kernel=dpkde.Gaussian(0.3),
        bounds=[(-1, 1)] * 2,
        epsilon=1,
        family=dpkde.Spline(3, 0.5),
        columns=["a", "b"],
        unit="c",
        rows_per_unit=2,
    )
    with open(files[0], "rb") as stream:
        for points in (POINTS, frame, iter(POINTS), [POINTS], [], stream):
            with pytest.raises(dpkde.ParameterError, match="can be found again"):
                dpkde.sketch(points, PLAN, checkpoint=place)
        with pytest.raises(dpkde.ParameterError, match="can be found again"):
            dpkde.sketch(dpkde.CSV(stream), PLAN, checkpoint=place)
    with pytest.raises(dpkde.ParameterError, match="chosen over the whole table"):
        dpkde.sketch(files[0], units, checkpoint=place)
    with pytest.raises(dpkde.ParameterError, match="is a folder"):
        dpkde.sketch(files[0], PLAN, checkpoint=place.parent)
    with pytest.raises(dpkde.SchemaError, match="has other columns than"):
        dpkde.sketch([files[4], place.parent.parent / "wide.npy"], _wide(place), checkpoint=place)
    assert not list(place.parent.iterdir())


def _wide(place: Path) -> dpkde.Plan:
    np.save(place.parent.parent / "wide.npy", np.zeros((5, 3)))
    return dpkde.plan(
        kernel=dpkde.Gaussian(0.3), epsilon=1, family=dpkde.Spline(3, 0.5), bounds=[(-1, 1)] * 2
    )


HOLDER = """
import sys, dpkde
from pathlib import Path
from dpkde.curator import checkpoint
with checkpoint._locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_process_at_a_time(files: list[Any], place: Path) -> None:
    """Another one is refused with a line, and the lock of a process that was killed is free."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(dpkde.ParameterError, match="another process is making this sketch"):
            dpkde.sketch(files, PLAN, checkpoint=place)
    finally:
        holder.kill()
        holder.communicate()
    assert dpkde.sketch(files, PLAN, checkpoint=place) == WHOLE
    refused = pytest.raises(dpkde.ParameterError, match="another process")
    with checkpoints._locked(place), refused:  # nor two threads of one process
        dpkde.sketch(files, PLAN, checkpoint=place)
    assert not list(place.parent.iterdir())


# What is secret


@pytest.mark.usefixtures("often")
def test_it_is_a_secret_file_and_nothing_is_left_of_it(files: list[Any], place: Path) -> None:
    _stopped(files, place)
    if os.name == "posix":
        assert {path.stat().st_mode & 0o777 for path in place.parent.iterdir()} == {0o600}
    assert b"as secret as the data" in place.read_bytes()
    assert container.kind_of(place) == "dpkde-checkpoint"
    assert "sums" not in repr(Checkpoint.load(place))
    left = place.with_name(f"{container.unfinished(place)}{'0f' * 8}.tmp")
    left.write_bytes(place.read_bytes())  # as a process leaves it that is killed while it writes
    other = place.with_name(".other.0f0f0f0f0f0f0f0f.tmp")
    other.write_bytes(b"")
    assert dpkde.sketch(files, PLAN, checkpoint=place) == WHOLE
    assert list(place.parent.iterdir()) == [other]


def test_its_size_tells_nothing_of_what_is_in_it(tmp_path: Path) -> None:
    """The same file names, other values and other numbers of rows that contribute."""
    state = Checkpoint("p", "g", "i", [], checkpoints.Sums(np.zeros(5, dtype=np.int64), 0, 0))
    more = checkpoints.Sums(np.full(5, -(2**60)), 2**63, 2**62)
    assert len(state.to_bytes()) == len(Checkpoint("p", "g", "i", [], more).to_bytes())


def test_a_release_never_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    """Noise that was drawn is not drawn again for the same spend: there is nothing to ask for."""
    assert "checkpoint" in inspect.signature(dpkde.sketch).parameters
    for function in (dpkde.publish, dpkde.plan, dpkde.Sketch.merge):
        assert not [name for name in inspect.signature(function).parameters if "check" in name]
    assert "checkpoint" not in {row.name for row in rows(*RELEASE, "publish", "text", "ledger")}
    code, out, _ = dpkde_("publish", "--help", capsys=capsys)
    assert code == 0
    assert not re.search("checkpoint|resume", out)


@pytest.mark.usefixtures("often")
def test_progress_begins_where_it_goes_on(files: list[Any], place: Path) -> None:
    """What is not read again is reported as passed, so that a bar reaches its end."""
    from dpkde.curator.sketch import resumed
    from dpkde.tables import open_tables

    table, seen = open_tables([files[3], files[4]], PLAN.columns), list[int]()
    with pytest.MonkeyPatch.context() as patch:
        _stopping(patch, 4)
        with pytest.raises(Killed), resumed(table, PLAN, place, 1):
            pass
    assert Checkpoint.load(place).file == 1
    with resumed(table.watched(seen.append), PLAN, place):
        assert place.exists()
    assert not place.exists()
    assert sum(seen) == 40_000
    assert seen[0] == 20_000
