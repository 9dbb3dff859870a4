"""Hostile files and sudden ends: nothing untyped, nothing slow, nothing half written."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde.curator.checkpoint import Checkpoint, FileState, Sums
from dpkde.kernels import Kernel
from dpkde.release import container
from grown import GOLDEN, GROWN

MUTATIONS = int(os.environ.get("DPKDE_MUTATIONS", "20000"))
KILLS = int(os.environ.get("DPKDE_KILLS", "6"))
"""Each takes a process of about a second."""


def _files(folder: Path) -> list[tuple[bytes, Callable[[Path], object]]]:
    points = np.random.default_rng(0).normal(size=(50, 2))
    kinds: list[tuple[bytes, Callable[[Path], object]]] = []
    families = (
        dpkde.Fourier(3),
        dpkde.Fourier(2, form="phase"),
        dpkde.Spline((3, 1), (2.0, 99.0)),
        dpkde.FastGauss(2),
        dpkde.Hashing(3, 4),
        dpkde.Hashing(2, 64, signed=False),
        dpkde.Hashing(2, 2),
    )
    kernels: tuple[Kernel, ...] = (dpkde.Gaussian([1.0, 2.0]),) * 4 + (
        dpkde.Laplacian([1.0, 2.0]),
        dpkde.Hat(3.0),
        dpkde.Product([dpkde.ExponentialLp(1.5, 1, 3.0), dpkde.Mixture([dpkde.Hat(9.0)])]),
    )
    for i, (family, kernel) in enumerate(zip(families, kernels, strict=True)):
        plan = dpkde.plan(
            kernel=kernel,
            bounds=[(-3, 3)] * 2,
            epsilon=1,
            family=family,
            seed=i,
        )
        sketch = dpkde.sketch(points, plan)
        sketch.save(folder / "s")
        plan.save(folder / "p")
        dpkde.publish(sketch, epsilon=1, delta=i * 1e-6).save(folder / "r")
        kinds.append(((folder / "r").read_bytes(), dpkde.load))
        kinds.append(((folder / "p").read_bytes(), dpkde.Plan.load))
        kinds.append(((folder / "s").read_bytes(), dpkde.Sketch.load))
    loaders = {"plan": dpkde.Plan.load, "sketch": dpkde.Sketch.load}
    for name, make in GROWN.items():
        kinds.append((make().to_bytes(), loaders.get(name, dpkde.load)))
    file = FileState("/data/t.csv", "CSV()", 10**6, 10**18, "0f" * 32)
    sums = Sums(np.arange(9), 2**63, 7)
    kept = Checkpoint("ab" * 32, "dpkde 0.1.0", "cd" * 16, [file, file], sums, 1, 30, 2**20)
    kinds.append((kept.to_bytes(), Checkpoint.load))
    for path in sorted(GOLDEN.glob("assisted-*.dpkde")):
        kinds.append((path.read_bytes(), dpkde.load))
    return kinds


@pytest.mark.parametrize("kind", ["sphere", "sets"])
@pytest.mark.parametrize("dim", [60_000, 10**6, 10**8, 10**12, 2**62])
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("spline", {"degree": 3, "spacing": 0.5, "ridge": 0.0, "slopes": [0]}),
        ("spline", {"degree": [2] * 60_000, "spacing": [0.1] * 60_000, "ridge": [0] * 60_000}),
        ("fastgauss", {"order": 24}),
        ("fastgauss", {"order": 1}),
    ],
)
def test_many_axes_in_a_small_file(
    kind: str, dim: int, name: str, parameters: dict[str, Any]
) -> None:
    """Refused at once: not after building what nobody asked for."""
    from dpkde.planning.plan import plan_from_json

    full = parameters | ({"slopes": [0] * 60_000} if "slopes" not in parameters else {})
    document = {
        "kernel": {"name": "gaussian", "version": 1, "parameters": {"bandwidth": 0.1}},
        "domain": {
            "kind": kind,
            "dim": dim,
            "parameters": {"universe": dim} if kind == "sets" else {},
        },
        "family": {
            "name": name,
            "version": 1,
            "parameters": full if name == "spline" else parameters,
        },
        "lattice": {"bits": 22, "capacity_bits": 40},
        "seed": "0",
        "columns": None,
    }
    start = time.perf_counter()
    with pytest.raises(dpkde.FormatError):
        plan_from_json(document, {})
    assert time.perf_counter() - start < 10


@pytest.mark.parametrize(
    ("kind", "parameters", "bandwidth"),
    [
        ("box", {"bounds": [[-1e308, 1e308]] * 2, "outside": "clip"}, 1.0),
        ("box", {"bounds": [[0, 1], [0, 1e308]], "outside": "clip"}, 1.0),
        ("box", {"bounds": [[-1e140, 1e140]] * 2, "outside": "drop"}, 1e-140),
        ("box", {"bounds": [[0, 1]] * 2, "outside": "clip"}, 1e-310),
        ("box", {"bounds": [[0, 1]] * 2, "outside": "clip"}, 1e200),
        ("box", {"bounds": [[0, 1]] * 2, "outside": "clip"}, [[1e-200, 0], [0, 1e-200]]),
        ("ball", {"center": [1e308, 0], "radius": 1, "outside": "clip"}, 1.0),
        ("ball", {"center": [0, 0], "radius": 1e308, "outside": "clip"}, 1.0),
    ],
)
@pytest.mark.parametrize("family", [dpkde.Fourier(3), dpkde.Spline(2, 1.0), dpkde.FastGauss(2)])
def test_numbers_that_would_overflow_are_refused(
    kind: str, parameters: dict[str, Any], bandwidth: Any, family: Any
) -> None:
    """In a file, and where a frame is made of them; warnings are errors here."""
    from dpkde.planning.plan import plan_from_json

    plan = dpkde.plan(
        kernel=dpkde.Gaussian(1.0), bounds=[(-3, 3)] * 2, epsilon=1, family=family, seed=1
    )
    document = copy.deepcopy(plan.document)
    assert plan_from_json(document, plan.pair.tensors) == plan
    document["domain"].update(kind=kind, parameters=parameters)
    document["kernel"]["parameters"]["bandwidth"] = bandwidth
    with pytest.raises(dpkde.FormatError):
        plan_from_json(document, plan.pair.tensors)


def test_queries_anywhere_are_answered_without_a_warning(tmp_path: Path) -> None:
    for data, load in _files(tmp_path):
        (tmp_path / "r").write_bytes(data)
        content = load(tmp_path / "r")
        if isinstance(content, dpkde.Release):
            far = np.array([[1e308, -1e308], [1e300, 0.0], [-1e160, 1e160]])
            for ask in (content.kde, content.standard_error, content.sampling_error):
                with contextlib.suppress(dpkde.ParameterError):  # hashing knows no such place
                    assert ask(far).shape == (3,)


STRANGE: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 3, 10**9, 2**63, 10**400, -(10**400), 0.5, 1e308, -1e-310),
    *("", "x", "1/1", "0/1", "1/0", "-1/2", "9" * 300, "NaN", "inf", "gaussian", "fourier", "box"),
    *("replace", [], [1], [[0, 1]], [[1, 0], [0, 1]], {}, {"a": 1}, [None], ["a", "b"], "\u0000"),
    *("\ud7ff", float("inf"), float("nan")),
]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    places = [path] if path else []
    if isinstance(value, dict):
        for key in value:
            places += _places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(len(value)):
            places += _places(value[index], (*path, index))
    return places


def _structured(data: bytes, chance: random.Random) -> bytes:
    """Change the document or the header, and make the digest fit again."""
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    document = json.loads(header["__metadata__"]["dpkde"])
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        target = header if chance.random() < 0.2 else document
        places = _places(target)
        if not places:  # a plan without tensors, its document gone
            continue
        place = chance.choice(places)
        inner = target
        for key in place[:-1]:
            inner = inner[key]
        action = chance.random()
        try:
            if action < 0.15 and isinstance(inner, dict):
                del inner[place[-1]]
            elif action < 0.25 and isinstance(inner, dict):
                inner[chance.choice(["new", "", "family.x", "part.ledger.x"])] = copy.deepcopy(
                    chance.choice(STRANGE)
                )
            else:
                inner[place[-1]] = copy.deepcopy(chance.choice(STRANGE))
        except (KeyError, IndexError, TypeError):
            continue
    if isinstance(header.get("__metadata__"), dict):
        text = json.dumps(document, sort_keys=True, separators=(",", ":"))
        header["__metadata__"]["dpkde"] = text
        state = hashlib.sha256(text.encode("ascii"))
        for name in sorted(k for k in header if k != "__metadata__"):
            entry = header[name]
            try:
                start, stop = entry["data_offsets"]
                shape = ",".join(map(str, entry["shape"]))
                state.update(f"{name}\0{entry['dtype']}\0{shape}\0".encode())
                state.update(body[start:stop])
            except (TypeError, KeyError, ValueError, UnicodeEncodeError):
                continue
        header["__metadata__"]["sha256"] = state.hexdigest()
    packed = json.dumps(header).encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(packed)) + packed + body


def _random(data: bytes, chance: random.Random) -> bytes:
    """Flip, cut, repeat or overwrite bytes."""
    mutant = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 8])):
        at = chance.randrange(len(mutant)) if mutant else 0
        action = chance.randrange(5)
        if not mutant or action == 0:
            mutant[at:at] = chance.randbytes(chance.randrange(1, 9))
        elif action == 1:
            mutant[at] ^= 1 << chance.randrange(8)
        elif action == 2:
            del mutant[at:]
        elif action == 3:
            mutant[at : at + 8] = struct.pack("<Q", chance.choice([0, 1 << 20, 1 << 40, 2**64 - 1]))
        else:
            mutant[at:at] = mutant[at : at + chance.randrange(200)]
    return bytes(mutant)


@pytest.mark.audit
def test_mutated_files(tmp_path: Path) -> None:
    """No untyped exception, no load over 2 s, no allocation over 1 GiB."""
    kinds = _files(tmp_path)
    chance = random.Random(7)
    path = tmp_path / "mutant"
    for data, load in kinds:  # loops are compiled now: that is not the files' doing
        path.write_bytes(data)
        whole = load(path)
        if isinstance(whole, dpkde.Release):
            whole.kde(whole.domain.origin(whole.dim)[np.newaxis])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    slowest, loaded = 0.0, 0
    for i in range(MUTATIONS):
        data, load = kinds[i % len(kinds)]
        mutant = _structured(data, chance) if i % 2 else _random(data, chance)
        path.write_bytes(mutant)
        start = time.process_time()
        with contextlib.suppress(dpkde.FormatError):
            content = load(path)
            loaded += 1
            if i % 50 == 1 and isinstance(content, dpkde.Release):
                # What loads can also be asked and described.
                assert repr(content)
                assert str(content.privacy)
                # Hashing has cells inside the bounds only.
                middle = content.domain.origin(content.dim)
                assert content.kde(middle[np.newaxis]).shape == (1,)
        slowest = max(slowest, time.process_time() - start)
    assert slowest < 2
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 1 << 20  # in KiB on Linux: 1 GiB
    assert loaded < MUTATIONS / 4


@pytest.mark.audit
def test_kills_leave_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    """A process that saves without a pause is killed at random moments."""
    path = tmp_path / "r.dpkde"
    script = (
        "import sys, numpy, dpkde\n"
        "sums = dpkde.sketch(numpy.zeros((9, 2)), dpkde.plan(kernel=dpkde.Gaussian(1.0), "
        "bounds=[(-1, 1)] * 2, epsilon=1, family=dpkde.Fourier(20000), seed=1))\n"
        "release = dpkde.publish(sums, epsilon=1)\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    release.save(sys.argv[1])\n"
    )
    chance = random.Random(1)
    for _ in range(KILLS):
        child = subprocess.Popen(
            [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        # Ten looks while it writes, then the kill: readers see whole files at all times.
        for _ in range(9):
            time.sleep(chance.random() * 0.01)
            if path.exists():
                assert dpkde.load(path).table.size == 40_000
        time.sleep(chance.random() * 0.02)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        if path.exists():
            assert dpkde.load(path).table.size == 40_000
    leftovers = [p for p in tmp_path.iterdir() if p != path]
    assert all(p.name.startswith(".r.dpkde.") for p in leftovers)


@pytest.mark.audit
def test_killed_publishes_leave_the_old_release(tmp_path: Path) -> None:
    """The whole command, killed at random moments of its life."""
    np.savetxt(tmp_path / "t.csv", np.zeros((20_000, 2)), delimiter=",", header="a,b", comments="")
    path = tmp_path / "r.dpkde"
    command = [sys.executable, "-m", "dpkde", "publish", "t.csv", "-o", "r.dpkde", "-q"]
    command += ["--bounds", "-1:1,...", "--bandwidth", "1", "--epsilon", "1"]
    start = time.perf_counter()
    subprocess.run(command, cwd=tmp_path, check=True)
    life = time.perf_counter() - start
    old = path.read_bytes()
    chance = random.Random(2)
    for _ in range(KILLS):
        child = subprocess.Popen(command, cwd=tmp_path)
        time.sleep(chance.random() * life * 1.1)
        child.kill()
        child.wait()
        now = path.read_bytes()
        assert now == old or isinstance(dpkde.load(path), dpkde.Release)
        old = now


def test_sizes_are_checked_before_anything_is_allocated(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    header = json.dumps(
        {
            "__metadata__": {"dpkde": "{}", "sha256": "0" * 64},
            "table": {"dtype": "I64", "shape": [1 << 33], "data_offsets": [0, 1 << 36]},
        }
    ).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 64)
    with pytest.raises(dpkde.FormatError):
        dpkde.load(path)
    # A large file that is none of ours is refused by its first bytes, not read.
    with path.open("wb") as file:
        file.write(b"lon,lat\n1,2\n")
        file.truncate(8 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    with pytest.raises(dpkde.FormatError):
        dpkde.load(path)
    assert time.perf_counter() - start < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20
    with path.open("wb") as file:
        file.truncate(container.MAX_FILE + 1)  # sparse: takes no room
    with pytest.raises(dpkde.FormatError, match="larger than any"):
        dpkde.load(path)
