"""Make what would be published, and try it where nothing else is installed: ``make wheel``.

The source archive is built, the wheel from it, both without a warning; what is in them is looked
at; then the wheel is installed into an environment of its own, with the packages that it requires
and no others, and `smoke.py` runs there, in an empty folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_BYTES = 8 << 20
"""Above this something is in an archive that does not belong there."""


def run(*command: str | Path, **options: object) -> None:
    """Run a command; what it prints is shown where it fails or warns, and then all ends."""
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
        **options,  # type: ignore[call-overload]
    )
    if done.returncode or "warning" in done.stdout.lower():
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")


def check_contents(wheel: Path, source: Path) -> None:
    """Refuse archives that lack a part or hold what is no part of the project."""
    inside = set(zipfile.ZipFile(wheel).namelist())
    package = {
        file.relative_to(ROOT / "src").as_posix()
        for file in (ROOT / "src" / "dpkde").rglob("*")
        if file.suffix in (".py", ".pyi", ".md", ".typed")
    }
    if missing := sorted(package - inside):
        sys.exit(f"{wheel.name} lacks {', '.join(missing)}")
    if more := sorted(n for n in inside - package if ".dist-info/" not in n):
        sys.exit(f"{wheel.name} holds {', '.join(more)}")
    with tarfile.open(source) as archive:
        rooms = {name.split("/")[1] for name in archive.getnames()}
    public = {"src", "tests", "docs", "benchmarks", "experiments", "Makefile", "pyproject.toml"}
    if public - rooms or any(room.startswith(".venv") for room in rooms):
        sys.exit(f"{source.name} holds {', '.join(sorted(rooms))}")
    for archive_file in (wheel, source):
        if archive_file.stat().st_size > MOST_BYTES:
            sys.exit(f"{archive_file.name} has {archive_file.stat().st_size:,} bytes")


def main() -> None:
    """Build, check, install, try."""
    start = time.monotonic()
    built = ROOT / "dist"
    for old in built.glob("dpkde-*"):
        old.unlink()
    python = [sys.executable, "-W", "error"]
    run(*python, "-m", "build", "--no-isolation", "--outdir", built, ROOT)
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, source)
    check_contents(wheel, source)
    with tempfile.TemporaryDirectory() as folder:
        clean = Path(folder) / "clean"
        venv.create(clean, with_pip=True)
        own = clean / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        quiet = ("--quiet", "--quiet", "--disable-pip-version-check", "--no-compile")
        run(own, "-m", "pip", "install", *quiet, wheel)
        empty = Path(folder) / "empty"
        empty.mkdir()
        outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        run(own, "-W", "error", ROOT / ".ci" / "smoke.py", cwd=empty, env=outside)
    print(f"{wheel.name} and {source.name} are sound ({time.monotonic() - start:.0f} s)")


if __name__ == "__main__":
    main()
