"""The file of a ledger: an SQLite database with one table, to which rows are only added.

``entries``
    ``number`` (from 0), ``body`` (canonical JSON), ``head`` (`dpkde.privacy.ledger.chain`). All
    else is read off these rows: nothing is stored twice, so nothing can disagree.

**Durable.** Every change is one ``BEGIN IMMEDIATE`` transaction, so that of two processes one waits
for the other and decides by what that has written. ``synchronous=EXTRA`` flushes the rows, the
journal, and the folder once the journal is gone: with FULL a transaction that was committed could
come back undone after a power cut, and with it a reservation whose noise was drawn.

**A rollback journal, and no WAL.** WAL keeps committed entries in a second file beside the ledger,
and readers' marks in shared memory, which network disks do not have: whoever copied or restored the
first file alone would lose entries. With a rollback journal the ledger is one file, but for the
moments of a change. On network disks the locks have to work all the same.

A connection lasts for one operation, so that none is carried across a fork, and the file is never
opened by other means than SQLite's: closing it would release the locks that this process holds.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from dpkde.errors import DpkdeError, LedgerError
from dpkde.privacy.ledger.chain import MOST_TEXT, Row

APPLICATION = 0x64706B64
"""What the header of the file says that it is: "dpkd"."""
VERSION = 1
PATIENCE = 60.0
"""Seconds to wait for others who write."""
MOST_BYTES = 1 << 30
_SCHEMA = (
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, body TEXT NOT NULL, head TEXT NOT NULL)"
)

Result = TypeVar("Result")


def create(path: Path, rows: Sequence[Row]) -> None:
    """Write a new ledger, readable by its owner alone; FileExistsError where something is there.

    It is made beside its place and then linked to it: a ledger is there whole or not at all, and
    what has come there in the meantime is not replaced.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    with _plainly(path):
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            with closing(_connect(temporary, "rw")) as connection:
                connection.execute(f"PRAGMA application_id={APPLICATION}")
                connection.execute(f"PRAGMA user_version={VERSION}")
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_SCHEMA)
                _add(connection, rows)
                connection.execute("COMMIT")
            _take_place(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        _flush(path.parent)


def _take_place(temporary: Path, path: Path) -> None:
    """Give a finished file its name, unless that is taken."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a disk without links
        if os.path.lexists(path):
            raise FileExistsError from None
        temporary.rename(path)


def read(path: Path) -> list[Row]:
    """Return all rows."""
    with _opened(path, writing=False) as connection:
        connection.execute("BEGIN")
        return _rows(connection, path)


def change(path: Path, decide: Callable[[list[Row]], tuple[Sequence[Row], Result]]) -> Result:
    """Add the rows that a function of all rows returns, in one transaction; or none, if it raises.

    When this returns, they are on the disk.
    """
    with _opened(path, writing=True) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            more, result = decide(_rows(connection, path))
            _add(connection, more)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        return result


@contextmanager
def _opened(path: Path, *, writing: bool) -> Iterator[sqlite3.Connection]:
    """Yield a connection to a ledger, having checked that it is one."""
    with _plainly(path):
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise LedgerError(f"{path} is not a ledger but {_kind(status.st_mode)}")
        if status.st_size > MOST_BYTES:
            raise LedgerError(f"{path} is larger than any ledger")
        # Who may write also undoes what a process that was killed has left half-done.
        mode = "rw" if writing or os.access(path, os.W_OK) else "ro"
        with closing(_connect(path, mode)) as connection:
            _check(connection, path)
            yield connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None)
    for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "synchronous=EXTRA"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a database that is none of ours: views and triggers could change what is written."""

    def pragma(name: str) -> object:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]

    if pragma("application_id") != APPLICATION:
        raise LedgerError(f"{path} is not a ledger")
    if pragma("user_version") != VERSION:
        raise LedgerError(f"{path} is a ledger of another version: install a newer dpkde")
    schema = connection.execute("SELECT sql FROM sqlite_master").fetchall()
    if schema != [(_SCHEMA,)] or pragma("journal_mode") != "delete":
        raise LedgerError(f"{path} is not a ledger as dpkde writes them: somebody rebuilt it")


def _rows(connection: sqlite3.Connection, path: Path) -> list[Row]:
    damaged = LedgerError(f"{path} is damaged: an entry cannot be read")
    (most,) = connection.execute("SELECT max(length(body)) FROM entries").fetchone()
    if most is None or not isinstance(most, int) or most > MOST_TEXT:
        raise damaged
    query = "SELECT number, body, head FROM entries ORDER BY number"
    rows = [Row(*row) for row in connection.execute(query)]
    if not all(isinstance(row.body, str) and isinstance(row.head, str) for row in rows):
        raise damaged
    return rows


def _add(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    connection.executemany("INSERT INTO entries VALUES (?, ?, ?)", rows)


def _flush(folder: Path) -> None:
    """Flush a folder to the disk, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _kind(mode: int) -> str:
    return "a folder" if stat.S_ISDIR(mode) else "a device"


@contextmanager
def _plainly(path: Path) -> Iterator[None]:
    """Raise whatever goes wrong with a file as a `LedgerError` that names it, in one line."""
    try:
        yield
    except FileNotFoundError:
        raise LedgerError(
            f"there is no ledger {path}: it has to be created first, by dpkde budget create"
            if path.parent.is_dir()
            else f"there is no folder {path.parent}"
        ) from None
    except (DpkdeError, FileExistsError):
        raise
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise LedgerError(f"the ledger {path}: {reason}") from None
    except sqlite3.Error as error:
        raise LedgerError(_said(path, error)) from None
    except (UnicodeError, OverflowError, ValueError):
        raise LedgerError(f"{str(path)!r} cannot be the name of a ledger") from None


def _said(path: Path, error: sqlite3.Error) -> str:
    """Return in our words what SQLite says."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"the ledger {path} is busy: another process has held it for {PATIENCE:g} seconds"
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return f"the ledger {path} cannot be written to here, nor can its folder"
    if name.startswith("SQLITE_FULL"):
        return f"no room is left on the disk of the ledger {path}"
    if name.startswith("SQLITE_IOERR"):
        return f"the disk of the ledger {path} fails"
    if name.startswith("SQLITE_NOTADB"):
        return f"{path} is not a ledger"
    return f"the ledger {path} is damaged"
