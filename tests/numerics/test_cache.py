"""Code that is kept between processes: where it is found, what it is told apart by, who writes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest

import dpkde
from dpkde import warm
from dpkde.families.registry import FAMILIES
from dpkde.numerics import cache
from dpkde.numerics.compiled import exactly

SOURCE = Path(dpkde.__file__).parents[1]


def _adding(number: int) -> Any:
    @exactly
    def add(value: float) -> float:
        return value + number

    return add


def _misses(*functions: Any) -> int:
    return sum(sum(function.stats.cache_misses.values()) for function in functions)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob(f"*{cache.ENDING}"))


def test_code_is_kept_for_each_type_and_number(folder: Path) -> None:
    """Loops of one name, specialised to other numbers, are never taken for each other."""
    first, second = _adding(1), _adding(2)
    assert (first(1.0), first(1), second(1.0)) == (2.0, 2, 3.0)
    assert _misses(first, second) == len(_files(folder)) == 3
    again = [_adding(2), _adding(1)]
    assert [function(1.0) for function in again] == [3.0, 2.0]
    assert again[1](1) == 2
    assert _misses(*again) == 0
    assert {path.parent.name for path in _files(folder)} == {f"dpkde-{cache.FINGERPRINT}"}


@pytest.mark.parametrize("damage", [b"", b"\x80\x05nonsense"])
def test_damaged_code_is_compiled_again(folder: Path, damage: bytes) -> None:
    _adding(1)(1.0)
    (file,) = _files(folder)
    whole = file.read_bytes()
    file.write_bytes(damage or whole[:-9])
    function = _adding(1)
    assert function(1.0) == 2.0
    assert _misses(function) == 1
    healed = _adding(1)
    assert healed(1.0) == 2.0
    assert _misses(healed) == 0
    other = _adding(7)
    other(1.0)
    (more,) = set(_files(folder)) - {file}
    shutil.copy(more, file)  # right in itself, under a wrong name
    function = _adding(1)
    assert function(1.0) == 2.0


def test_a_full_disk_stops_nobody(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, mode: str) -> Any:
        os.close(descriptor)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    assert _adding(3)(1.0) == 4.0
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_folders_are_searched_until_one_can_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = f"dpkde-{cache.FINGERPRINT}"
    given, package = tmp_path / own, cache.PACKAGE / "__pycache__" / own
    locked: set[Path] = set()
    monkeypatch.setattr(cache, "_is_writable", lambda folder: folder not in locked)
    search = cache.folders.__wrapped__
    assert search(str(tmp_path)) == ((given,), given)
    assert search("") == ((package,), package)
    locked.add(given)
    assert search(str(tmp_path)) == ((given, package), package)
    monkeypatch.setattr(cache, "_is_writable", lambda folder: False)
    assert search(str(tmp_path))[1] is None


PLACE = """
import gc, sys
import numpy as np
import dpkde
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame
{first}
frame = Frame.of(dpkde.Gaussian(1.0), as_domain([(-3.0, 3.0)] * 2))
for kind in sys.argv[1:]:
    assert frame.place(np.ones((3, 2), dtype=kind))[0].tolist() == [[1.0, 1.0]] * 3
from numba.core.dispatcher import Dispatcher
found = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
print(sum(sum(each.stats.cache_misses.values()) for each in found))
"""
LOCKED = """
from dpkde.numerics import cache
cache._is_writable = lambda folder: False
def refuse(*arguments):
    raise AssertionError("nothing is written")
cache._write = refuse
"""


def _start(folder: Path, *kinds: str, source: Path = SOURCE, first: str = "") -> Any:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(source)}
    command = [sys.executable, "-c", PLACE.format(first=first), *kinds]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def _compiled(process: Any) -> int:
    """Return how many functions a process had to compile."""
    output = process.communicate(timeout=300)[0]
    assert process.returncode == 0
    return int(output)


def test_a_folder_serves_wherever_it_lies(tmp_path: Path) -> None:
    """Processes fill it at once; it is copied, locked, and used by an installation elsewhere."""
    filled, moved, elsewhere = (tmp_path / name for name in ("filled", "moved", "elsewhere"))
    together = [_start(filled, "float64"), _start(filled, "float32"), _start(filled, "float64")]
    assert max(map(_compiled, together)) > 0
    shutil.copytree(filled, moved)
    shutil.copytree(SOURCE / "dpkde", elsewhere / "dpkde", ignore=shutil.ignore_patterns("__py*"))
    shutil.rmtree(filled)
    there = _start(moved, "float32", "float64", source=elsewhere, first=LOCKED)
    assert _compiled(there) == 0
    with (elsewhere / "dpkde" / "testing.py").open("a", encoding="utf-8") as file:
        file.write("# whatever changes, nothing stale is run\n")
    assert _compiled(_start(moved, "float64", source=elsewhere)) > 0


EVERYTHING = """
import dpkde.warm
for plan in dpkde.warm.examples():
    for kind in (np.float32, np.float64):
        dpkde.sketch(np.zeros((3, 2), dtype=kind), plan)
dpkde.warm.fill_text()
"""


@pytest.mark.audit
def test_what_a_plan_needs_is_compiled_beforehand(tmp_path: Path) -> None:
    folder, path = tmp_path / "code", tmp_path / "city.plan"
    plan = dpkde.plan(
        kernel=dpkde.Gaussian(1.0),
        bounds=[(-3, 3), (-2, 2)],
        epsilon=1,
        family=dpkde.Spline((2, 3), 0.7),
    )
    plan.save(path)
    subprocess.run(
        [sys.executable, "-m", "dpkde.warm", str(folder), str(path)], check=True, timeout=300
    )
    first = f"""
part = dpkde.sketch(np.zeros((300, 2)), dpkde.Plan.load({str(path)!r}))
dpkde.publish(part, epsilon=1000).kde(np.zeros((1, 2)))
"""
    assert _compiled(_start(folder, first=first)) == 0


@pytest.mark.audit
def test_what_any_sketch_needs_is_compiled_beforehand(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "dpkde.warm", str(tmp_path)], check=True, timeout=600)
    assert _compiled(_start(tmp_path, first=EVERYTHING)) == 0


def test_every_family_has_an_example() -> None:
    kinds = {type(plan.pair.layout.family) for plan in warm.examples()}
    assert kinds == set(FAMILIES.values())


def test_warming_needs_a_folder_that_can_be_written_to(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    command = [sys.executable, "-m", "dpkde.warm", str(taken)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert done.stderr == f"nothing can be written to {taken}\n"


def test_keys_are_the_same_in_every_process() -> None:
    """No address and no number of a process is part of one."""
    function: Callable[[float], float] = _adding(1)
    function(1.0)
    kept: Any = function
    key = kept._cache._key(kept.signatures[0], kept.targetctx.codegen())
    assert "0x" not in key.replace(cache.FINGERPRINT, "")
