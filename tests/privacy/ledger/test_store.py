"""The file: what is none, what is damaged, what cannot be written; and nothing else is touched."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

import dpkde
from dpkde.privacy.budget import Guarantee
from dpkde.privacy.ledger import store
from dpkde.privacy.ledger.ledger import Ledger

TENTH = Guarantee.declare(epsilon="0.1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Ledger.create(tmp_path / "budget.db", dataset="d", epsilon=1)
    return tmp_path / "budget.db"


def refused(path: Path, message: str) -> None:
    """Everything that takes a ledger says so in one line, and makes nothing."""
    before = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    opened = Ledger(path, "0" * 32)
    for action in (
        lambda: Ledger.open(path),
        lambda: opened.left(),
        lambda: opened.reserve(TENTH),
        lambda: opened.verify(),
    ):
        with pytest.raises(dpkde.LedgerError, match=message) as caught:
            action()
        assert "\n" not in str(caught.value)
    assert (sorted(path.parent.iterdir()) if path.parent.is_dir() else []) == before


def test_what_is_no_ledger(tmp_path: Path) -> None:
    text, empty, other = tmp_path / "t.csv", tmp_path / "empty", tmp_path / "other.db"
    text.write_text("lon,lat\n" * 1000)
    empty.touch()
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE entries (number, body, head)")
    refused(tmp_path / "nothing.db", "there is no ledger")
    refused(tmp_path / "no" / "where.db", "there is no folder")
    refused(tmp_path, "not a ledger but a folder")
    refused(Path("/dev/null"), "not a ledger but a device")
    for file in (text, empty, other):
        content = file.read_bytes()
        refused(file, "is not a ledger")
        with pytest.raises(dpkde.LedgerError, match="is not a ledger"):
            Ledger.create(file, dataset="d", epsilon=1)
        assert file.read_bytes() == content
    for wrong in ("a\0b", "\ud800"):
        with pytest.raises(dpkde.LedgerError, match="cannot be the name"):
            Ledger.create(wrong, dataset="d", epsilon=1)
    with pytest.raises(dpkde.ParameterError, match="the path of its file"):
        Ledger.open(7)  # type: ignore[arg-type]


def test_a_dangling_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(dpkde.LedgerError, match="there is no ledger"):
        Ledger.create(tmp_path / "link.db", dataset="d", epsilon=1)
    assert not (tmp_path / "elsewhere.db").exists()


def test_disks_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", epsilon=1)
    assert ledger.left().epsilon == 1
    assert [file.name for file in tmp_path.iterdir()] == ["l.db"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("PRAGMA application_id=7", "is not a ledger"),
        ("PRAGMA user_version=2", "another version"),
        ("PRAGMA journal_mode=WAL", "somebody rebuilt it"),
        ("CREATE TABLE more (x)", "somebody rebuilt it"),
        (
            "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END",
            "somebody rebuilt it",
        ),
        ("CREATE VIEW v AS SELECT 1", "somebody rebuilt it"),
        ("DELETE FROM entries", "cannot be read"),
        ("UPDATE entries SET body = x'ff'", "cannot be read|damaged"),
        ("UPDATE entries SET head = x'ff'", "cannot be read|damaged"),
        ("UPDATE entries SET body = CAST(x'ff41' AS TEXT)", "damaged"),
        ("UPDATE entries SET body = printf('%.*c', 5000000, 'x')", "cannot be read"),
        ("DROP TABLE entries", "somebody rebuilt it"),
    ],
)
def test_a_ledger_that_somebody_rebuilt(path: Path, change: str, message: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(change)
        connection.commit()
    name = Ledger(path, "0" * 32)
    for action in (lambda: Ledger.open(path), lambda: name.reserve(TENTH)):
        with pytest.raises(dpkde.LedgerError, match=message):
            action()


def test_damage_never_shows_a_traceback_of_sqlite(path: Path) -> None:
    """Bytes changed at random: either the chain still holds, or it is said plainly."""
    good, chance, told = path.read_bytes(), random.Random(3), 0
    for _ in range(150):
        data = bytearray(good)
        for _ in range(chance.choice((1, 4, 64))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(bytes(data[: chance.choice((len(data), chance.randrange(len(data))))]))
        try:
            assert Ledger.open(path).left().epsilon == 1
        except dpkde.LedgerError:
            told += 1
    assert told > 75


def test_a_ledger_that_cannot_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be read, and nothing can be reserved. Also where the tests run as root."""
    ledger, connect = Ledger.open(path), store._connect
    monkeypatch.setattr(store, "_connect", lambda path, mode: connect(path, "ro"))
    assert ledger.left().epsilon == 1
    assert ledger.verify()
    with pytest.raises(dpkde.LedgerError, match="cannot be written to here"):
        ledger.reserve(TENTH)
    monkeypatch.undo()
    assert not ledger.history()


def test_a_ledger_that_others_hold(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.open(path)
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(dpkde.LedgerError, match="is busy"):
            ledger.reserve(TENTH)
        with pytest.raises(dpkde.LedgerError, match="is busy"):
            ledger.left()
    assert ledger.left().epsilon == 1


def test_what_raises_in_between_leaves_nothing(path: Path) -> None:
    ledger = Ledger.open(path)
    for error in (KeyboardInterrupt, MemoryError, dpkde.BudgetError):

        def fail(rows: object, error: type[BaseException] = error) -> object:
            raise error

        with pytest.raises(error):
            store.change(path, fail)  # type: ignore[arg-type]
    assert ledger.reserve(TENTH).number == 2


def test_threads_and_forks(path: Path) -> None:
    """Ten threads of a process, each with a child of its own, spend what ten may."""
    ledger, done = Ledger.open(path), []

    def spend() -> None:
        ledger.reserve(TENTH)
        script = (
            "import sys, dpkde\n"
            "from dpkde.privacy.budget import Guarantee\n"
            "ledger = dpkde.Ledger.open(sys.argv[1])\n"
            "try:\n"
            "    ledger.reserve(Guarantee.declare(epsilon='0.1'))\n"
            "except dpkde.BudgetError:\n"
            "    print('refused')\n"
        )
        command = [sys.executable, "-c", script, str(path)]
        done.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    threads = [threading.Thread(target=spend) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [""] * 4 + ["refused\n"] * 2
    assert ledger.left().epsilon == 0
    if hasattr(os, "fork"):
        child = os.fork()
        if not child:  # pragma: no cover - another process
            try:
                ledger.left()
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


def test_two_make_the_same_ledger_at_once(tmp_path: Path) -> None:
    """One of them makes it; the others find it there."""
    made: list[Ledger] = []

    def make(number: int) -> None:
        made.append(Ledger.create(tmp_path / "l.db", dataset=f"d{number}", epsilon=1))

    threads = [threading.Thread(target=make, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({ledger.id for ledger in made}) == 1
    assert sorted(made[0].datasets) == [f"d{number}" for number in range(6)]
    assert [file.name for file in tmp_path.iterdir()] == ["l.db"]


def test_durability_is_asked_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of SQLite: nobody can pull a plug here."""
    settings = []
    add = store._add

    def watched(connection: sqlite3.Connection, rows: object) -> None:
        for name in ("synchronous", "journal_mode", "locking_mode"):
            settings.append(connection.execute(f"PRAGMA {name}").fetchone()[0])
        add(connection, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "_add", watched)
    Ledger.open(path).reserve(TENTH)
    assert settings == [3, "delete", "normal"]


def test_a_half_done_change_is_undone(path: Path, tmp_path: Path) -> None:
    """The journal of a process that died in the middle is rolled back by whoever comes next."""
    good = path.read_bytes()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_spill=1")
        connection.execute("PRAGMA cache_size=1")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO entries VALUES (2, printf('%.*c', 200000, 'x'), '')")
        for file in (path, path.with_name("budget.db-journal")):
            assert file.exists()
            shutil.copy(file, tmp_path / f"dead{file.name.removeprefix('budget')}")
        connection.execute("ROLLBACK")
    dead = tmp_path / "dead.db"
    assert dead.read_bytes() != good
    assert Ledger.open(dead).left().epsilon == 1
    assert dead.read_bytes() == good
