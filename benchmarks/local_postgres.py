"""A PostgreSQL server of our own, for tests and benchmarks: on a socket in a folder, no network."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

_OWNER = "postgres"
"""Who runs it where we are root, whom it refuses."""


def _program(name: str) -> str | None:
    found = shutil.which(name)
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return found or next((str(f / name) for f in reversed(folders) if (f / name).exists()), None)


def postgres_is_there() -> bool:
    """Return whether a server can be started here."""
    if not (_program("initdb") and _program("pg_ctl") and _program("psql")):
        return False
    if os.geteuid():
        return True
    return shutil.which("su") is not None and _has_owner()


def _has_owner() -> bool:
    import pwd

    try:
        pwd.getpwnam(_OWNER)
    except KeyError:
        return False
    return True


class LocalPostgres:
    """A server that runs while it is entered, and whose data are gone afterwards."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self.owner = getpass.getuser() if os.geteuid() else _OWNER

    @property
    def uri(self) -> str:
        """Where clients connect to."""
        return f"postgresql://{self.owner}@/postgres?host={self.folder}"

    def _as_owner(self, *command: str) -> None:
        if not os.geteuid():
            quoted = " ".join(f"'{word}'" for word in command)
            command = ("su", _OWNER, "-s", "/bin/sh", "-c", quoted)
        subprocess.run(command, check=True, capture_output=True, timeout=120)

    def __enter__(self) -> Self:
        if not os.geteuid():
            shutil.chown(self.folder, _OWNER)
        data = str(self.folder / "data")
        initdb, pg_ctl = _program("initdb"), _program("pg_ctl")
        assert initdb is not None
        assert pg_ctl is not None
        self._as_owner(initdb, "-D", data, "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off"
        log = str(self.folder / "log")
        self._as_owner(pg_ctl, "-D", data, "-o", options, "-l", log, "-w", "start")
        return self

    def run(self, statement: str) -> None:
        """Run a statement."""
        psql = _program("psql")
        assert psql is not None
        command = (psql, "-q", "-v", "ON_ERROR_STOP=1", self.uri, "-c", statement)
        subprocess.run(command, check=True, capture_output=True, timeout=600)

    def copy(self, table: str, path: Path) -> None:
        """Copy a CSV file with a header into a table."""
        self.run(f"\\copy {table} FROM '{path}' WITH (FORMAT csv, HEADER)")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pg_ctl = _program("pg_ctl")
        assert pg_ctl is not None
        self._as_owner(pg_ctl, "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)
