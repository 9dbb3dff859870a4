"""The file: it comes back the same, is written whole or not at all, and refuses what is damaged."""

from __future__ import annotations

import copy
import json
import os
import pickle
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpkde
from contracts.rigged import forbidden, install
from dpkde.release import container

GOLDEN = Path(__file__).parent / "golden"
POINTS = np.random.default_rng(0).normal(size=(300, 2))


def make(**changes: Any) -> dpkde.Release:
    arguments: dict[str, Any] = {
        "kernel": dpkde.Gaussian(1.0),
        "bounds": [(-3, 3)] * 2,
        "epsilon": 1,
        "family": dpkde.Fourier(4),
    }
    return dpkde.publish(POINTS, **(arguments | changes))


CASES: dict[str, dict[str, Any]] = {
    "pairs": {},
    "phase": {"family": dpkde.Fourier(4, form="phase")},
    "spline": {"family": dpkde.Spline(3, 0.7)},
    "lines": {"family": dpkde.Spline((2, 1), (1.0, 99.0), 0.1)},
    "fastgauss": {"family": dpkde.FastGauss(3, repetitions=2, bound="product")},
    "hashing": {"family": dpkde.Hashing(5, 8), "kernel": dpkde.Laplacian(1.0)},
    "numbered": {"family": dpkde.Hashing(5, 64, signed=False), "kernel": dpkde.Hat(2.0)},
    "planes": {"family": dpkde.Hashing(5, 8), "kernel": dpkde.ExponentialLp(1.5, 1)},
    "balls": {"family": dpkde.Hashing(2, 8), "kernel": dpkde.Erfc(2.0)},
    "directions": {"family": "auto", "kernel": dpkde.Geodesic(), "bounds": None},
    "jaccard": {"family": "auto", "kernel": dpkde.Jaccard(), "bounds": dpkde.Sets(2)},
    "matern": {"kernel": dpkde.Matern(1.5, [1.0, 2.0])},
    "cauchy": {"kernel": dpkde.Cauchy(0.5), "family": "auto"},
    "rational quadratic": {"kernel": dpkde.RationalQuadratic(2, 0.5)},
    "combined": {
        "kernel": dpkde.Product(
            [dpkde.Mixture([dpkde.Hat(2.0), dpkde.Laplacian(1.0)], [1, 3]), dpkde.Laplacian([1, 2])]
        ),
        "family": dpkde.Hashing(5, 8),
    },
    "auto": {"family": "auto"},
    "per axis": {"kernel": dpkde.Gaussian([0.1, 3.0])},
    "matrix": {"kernel": dpkde.Gaussian([[2.0, 0.5], [0.5, 1.0]])},
    "from std": {"kernel": dpkde.Gaussian.from_std(0.3)},
    "unbounded": {"bounds": None},
    "drop": {"bounds": dpkde.Box([(-1, 1)] * 2, outside="drop")},
    "ball": {"bounds": dpkde.Ball((0.1, 0.2), 2.5, outside="drop")},
    "sphere": {"bounds": dpkde.Sphere()},
    "sets": {"bounds": dpkde.Sets(2)},
    "delta": {"delta": "1e-6", "family": "fourier"},
    "rho": {"epsilon": None, "rho": Fraction(1, 7)},
    "replace": {"adjacency": "replace", "epsilon": 0.3},
    "columns": {"columns": ["x", "γ"]},
    "seed": {"seed": 2**100 + 1},
    "extras": {"extras": {"org.example/note": ["π", 1.5, None]}},
}


@pytest.mark.parametrize("case", CASES)
def test_a_release_comes_back_the_same(case: str, tmp_path: Path) -> None:
    release = make(**CASES[case])
    path = tmp_path / "x.dpkde"
    release.save(path)
    back = dpkde.load(path)
    assert back == release
    assert repr(back) == repr(release)
    assert str(back.privacy) == str(release.privacy)
    assert back.privacy.spends == release.privacy.spends
    queries = np.clip(POINTS[:10], -1, 1)
    assert np.array_equal(back.kde(queries), release.kde(queries))
    assert np.array_equal(back.standard_error(queries), release.standard_error(queries))
    assert pickle.loads(pickle.dumps(release)) == release
    assert hash(back) == hash(release)


@pytest.mark.parametrize("case", CASES)
def test_a_plan_comes_back_the_same(case: str, tmp_path: Path) -> None:
    plan = make(**CASES[case]).plan
    plan.save(tmp_path / "plan")
    back = dpkde.Plan.load(tmp_path / "plan")
    assert back == plan
    assert back.document == plan.document
    assert dpkde.sketch(POINTS, back) == dpkde.sketch(POINTS, plan)


@pytest.mark.parametrize(
    ("family", "agreement"),
    [("fourier", 1e-12), ("spline", 1e-4), ("fastgauss", 1e-10), ("hashing", 1e-12)],
)
def test_golden_release_of_version_1_keeps_loading(family: str, agreement: float) -> None:
    """Written by dpkde 0.1.0; its answers are in the JSON file beside it.

    Least squares coefficients may become better, so spline answers are compared to four digits.
    """
    release = dpkde.load(GOLDEN / f"{family}-v1.dpkde")
    told = json.loads((GOLDEN / f"{family}-v1.json").read_text())
    assert release.family.name == family
    assert release.release_id == told["release_id"]
    assert release.count == told["count"]
    sums, errors = release.kernel_sum(told["queries"]), release.standard_error(told["queries"])
    scale = max(told["kernel_sum"])
    assert np.allclose(sums, told["kernel_sum"], rtol=agreement, atol=agreement * scale)
    assert np.allclose(errors, told["standard_error"], rtol=max(agreement, 1e-9))
    assert str(release.privacy) == told["privacy"]


def test_the_fields_that_a_reader_needs(tmp_path: Path) -> None:
    """Read as any safetensors reader would, without dpkde."""
    from safetensors import safe_open

    make(columns=["lon", "lat"]).save(tmp_path / "x.dpkde")
    with safe_open(tmp_path / "x.dpkde", framework="numpy") as file:
        document = json.loads(file.metadata()["dpkde"])
        assert file.get_tensor("table").shape == (8,)
        assert file.get_tensor("family.frequencies").shape == (4, 2)
    assert document["format"] == "dpkde-release"
    assert document["format_version"] == 1
    assert document["plan"]["columns"] == ["lon", "lat"]
    assert document["plan"]["lattice"]["bits"] == 22
    assert document["privacy"]["epsilon"] == "1/1"
    assert document["privacy"]["adjacency"] == "add-remove"
    assert document["privacy"]["unit"] == "one record"
    assert [s["purpose"] for s in document["privacy"]["spends"]] == ["count", "table"]
    assert document["generator"].startswith("dpkde ")
    assert len(document["release_id"]) == 32


def test_a_release_is_frozen() -> None:
    release = make()
    with pytest.raises(AttributeError, match="frozen"):
        release.count = 5
    with pytest.raises(AttributeError, match="frozen"):
        del release.privacy
    with pytest.raises(ValueError, match="read-only"):
        release.table[0] = 1
    with pytest.raises(TypeError):
        release.extras["a"] = 1  # type: ignore[index]


def test_repr_tells_all() -> None:
    text = repr(make(delta=1e-6))
    for part in (
        "gaussian",
        "σ=1.0",
        "fourier",
        "fourier 4 (pairs)",
        "d=2",
        "ε=1",
        "δ=1e-06",
        "8 cells",
    ):
        assert part in text


def test_writing_is_atomic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.dpkde"
    old = make()
    old.save(path)

    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="no space"):
        make().save(path)
    assert dpkde.load(path) == old
    assert [p.name for p in tmp_path.iterdir()] == ["x.dpkde"]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("files") / "x.dpkde"
    make().save(path)
    return path.read_bytes()


def _refused(data: bytes, tmp_path: Path) -> str:
    path = tmp_path / "bad.dpkde"
    path.write_bytes(data)
    with pytest.raises(dpkde.FormatError) as caught:
        dpkde.load(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_what_can_be_written_can_be_read(tmp_path: Path) -> None:
    """A full matrix of 240 columns takes over a megabyte of JSON."""
    root = np.random.default_rng(0).normal(size=(240, 240))
    kernel = dpkde.Gaussian(root @ root.T / 240 + np.eye(240))
    plan = dpkde.plan(kernel=kernel, epsilon=1, family=dpkde.Fourier(2))
    plan.save(tmp_path / "p.dpkde")
    assert (tmp_path / "p.dpkde").stat().st_size > 1 << 20
    assert dpkde.Plan.load(tmp_path / "p.dpkde") == plan
    long: Any
    for long in ("x" * container.MAX_HEADER, '"' * (container.MAX_HEADER // 3), [[]] * (1 << 22)):
        with pytest.raises(dpkde.ParameterError, match="more room"):
            container.write(tmp_path / "q", {"long": long}, {})
    with pytest.raises(dpkde.ParameterError, match="extras take"):
        dpkde.publish(
            [[0.5]], kernel=dpkde.Gaussian(1.0), epsilon=1, extras={"a/b": "x" * (1 << 21)}
        )


def test_what_cannot_be_written_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, forbidden)
    names = ["x" * container.MAX_HEADER]
    points = pa.table({names[0]: [0.5]})
    with pytest.raises(dpkde.ParameterError, match="more room"):
        dpkde.publish(points, kernel=dpkde.Gaussian(1.0), epsilon=1, columns=names)
    with pytest.raises(dpkde.ParameterError, match="more room"):
        dpkde.plan(kernel=dpkde.Gaussian(1.0), epsilon=1, columns=names, dim=1)


def test_files_of_too_many_values_are_refused(
    good: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their header: what a reader would build of it is many times as large as the file."""
    (tmp_path / "r.dpkde").write_bytes(good)
    dpkde.load(tmp_path / "r.dpkde")
    monkeypatch.setattr(container, "MAX_VALUES", 20)
    _refused(good, tmp_path)


def test_only_files_of_ours_are_written_over(tmp_path: Path) -> None:
    release = dpkde.publish(np.zeros((9, 1)), kernel=dpkde.Gaussian(1.0), epsilon=1)
    table = tmp_path / "private.csv"
    for content in (b"x\n0.5\n", b"x", b"\0" * 100, b"{}"):
        table.write_bytes(content)
        with pytest.raises(dpkde.ParameterError, match="is not overwritten"):
            release.save(table)
        assert table.read_bytes() == content
    (tmp_path / "r.dpkde").touch()
    for _ in range(2):
        release.save(tmp_path / "r.dpkde")
    assert dpkde.load(tmp_path / "r.dpkde") == release
    for other in (release.plan, dpkde.Sketch.empty(release.plan)):  # the ε of a release is spent
        with pytest.raises(dpkde.ParameterError, match="is not overwritten"):
            other.save(tmp_path / "r.dpkde")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("pipe", "link"):
        with pytest.raises(dpkde.ParameterError, match="is not overwritten"):
            release.save(tmp_path / name)
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match=r"'[^']*folder'$"):
        release.save(tmp_path / "folder")
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "folder",
        "link",
        "pipe",
        "private.csv",
        "r.dpkde",
    ]


def test_truncated_files(good: bytes, tmp_path: Path) -> None:
    for size in [0, 1, 7, 8, 9, 100, *range(200, len(good), 101), len(good) - 1]:
        _refused(good[:size], tmp_path)
    _refused(good + b"\0", tmp_path)


def test_flipped_bits(good: bytes, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    for _ in range(1500):
        data = bytearray(good)
        data[generator.integers(len(data))] ^= 1 << generator.integers(8)
        _refused(bytes(data), tmp_path)


def test_hostile_headers(good: bytes, tmp_path: Path) -> None:
    for length in (1 << 63, 1 << 40, len(good) - 7, container.MAX_HEADER + 1):
        _refused(struct.pack("<Q", length) + good[8:], tmp_path)
    for header in (
        b"[]",
        b"{}",
        b"null",
        b"[" * 100_000,
        b'{"__metadata__": 3}',
        b'{"__metadata__": {"dpkde": "{}", "sha256": ""}}',
        b'{"a": {"dtype": "I64", "shape": [4611686018427387904], "data_offsets": [0, 8]}}',
        b"\xff\xfe",
        b'{"__metadata__": {"dpkde": "{}", "sha256": ""}, "a": {"dtype": [], "shape": [], '
        b'"data_offsets": [0, 0]}}',
        b'{"__metadata__": {"dpkde": "{}", "sha256": ""}, "\\ud800": {"dtype": "I64", '
        b'"shape": [0], "data_offsets": [0, 0]}}',
        b'{"__metadata__": {"dpkde": "{}", "sha256": ""}, "a": {"dtype": "I64", '
        b'"shape": [8589934592, 8589934592, 0], "data_offsets": [0, 0]}}',
        b'{"__metadata__": {"dpkde": "{}", "sha256": NaN}}',
        b'{"__metadata__": {"dpkde": "{}", "sha256": ""}, "__metadata__": {}}',
    ):
        _refused(struct.pack("<Q", len(header)) + header, tmp_path)
    _refused(np.random.default_rng(1).bytes(5000), tmp_path)


def test_a_name_stands_once(good: bytes, tmp_path: Path) -> None:
    """Else one reader would take the first ε, and another the last."""
    document, tensors = container.unpack(good)
    text = container.canonical(document)
    twice = text.replace('"epsilon":', '"epsilon":"1/1000000","epsilon":', 1)
    assert twice != text
    digest = container.digest(twice, tensors)
    stop = 8 + int.from_bytes(good[:8], "little")
    header = json.loads(good[8:stop])
    header["__metadata__"] = {"dpkde": twice, "sha256": digest}
    written = json.dumps(header).encode()
    _refused(struct.pack("<Q", len(written)) + written + good[stop:], tmp_path)


def test_versions(tmp_path: Path) -> None:
    document, tensors = make().contents()
    container.write(tmp_path / "new", document | {"format_version": 3}, tensors)
    with pytest.raises(dpkde.VersionError, match="install a newer dpkde"):
        dpkde.load(tmp_path / "new")
    container.write(tmp_path / "other", document | {"format": "cake"}, tensors)
    with pytest.raises(dpkde.FormatError, match="not a dpkde-release"):
        dpkde.load(tmp_path / "other")


def _set(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(document))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return copy


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("count",), 0),
        (("count",), 1.5),
        (("count",), True),
        (("count",), 10**30),
        (("extras",), []),
        (("release_id",), 7),
        (("plan",), None),
        (("plan", "kernel", "name"), "os.system"),
        (("plan", "kernel", "version"), 9),
        (("plan", "kernel", "parameters"), {"bandwidth": -1}),
        (("plan", "kernel", "parameters"), {"width": 1}),
        (("plan", "family", "name"), "subprocess.Popen"),
        (("plan", "family", "version"), 9),
        (("plan", "family", "parameters"), {"frequencies": 10**9}),
        (("plan", "family", "parameters"), {"frequencies": None}),
        (("plan", "family", "parameters"), {"frequencies": 5}),
        (("plan", "domain", "kind"), "torus"),
        (("plan", "domain", "dim"), 3),
        (("plan", "domain", "dim"), "2"),
        (("plan", "domain", "parameters", "bounds"), [[3, -3], [0, 1]]),
        (("plan", "lattice", "bits"), 63),
        (("plan", "lattice", "bits"), 22.0),
        (("plan", "lattice", "capacity_bits"), -1),
        (("plan", "seed"), "x"),
        (("plan", "columns"), 5),
        (("plan", "columns"), ["a"]),
        (("plan", "seed"), float("inf")),
        (("plan", "kernel", "version"), float("inf")),
        (("plan", "kernel", "parameters", "bandwidth"), 10**400),
        (("plan", "kernel", "parameters", "bandwidth"), 1e-310),
        (("plan", "domain", "parameters", "bounds"), [[0, 10**400], [0, 1]]),
        (("plan", "family", "parameters", "step_bits"), None),
        (("plan", "family", "parameters", "step_bits"), 40),
        (("privacy", "spends", 1, "epsilon"), "1/" + "9" * 400),
        (("privacy", "spends"), [{"purpose": "count"}] * 1000),
        (("privacy", "unit"), "one household"),
        (("privacy", "epsilon"), "1/2"),
        (("privacy", "epsilon"), "0/1"),
        (("privacy", "epsilon"), "1/0"),
        (("privacy", "epsilon"), 1),
        (("privacy", "epsilon"), "9" * 5000),
        (("privacy", "adjacency"), "replace"),
        (("privacy", "adjacency"), None),
        (("privacy", "spends"), []),
        (("privacy", "spends", 1, "scale"), "1/1"),
        (("privacy", "spends", 1, "sensitivity"), "1"),
        (("privacy", "spends", 1, "law"), "discrete-laplace"),
        (("privacy", "spends", 1, "purpose"), "profit"),
        (("privacy", "spends", 0, "epsilon"), "9/10"),
        (("privacy", "unit"), None),
        (("privacy", "spends", 0, "law"), "max-norm"),
        (("rate",), None),
        (("rate",), "2/1"),
        (("rate",), "1/3"),
        (("rate",), "1/1" + "0" * 320),
        (("rate",), "0/1"),
        (("promise",), 5),
        (("promise",), {"alpha": 0.1}),
        (("promise",), {"alpha": 0, "eta": 0.1, "pitch": None}),
        (("promise",), {"alpha": float("nan"), "eta": 0.1, "pitch": None}),
        (("promise",), {"alpha": 0.1, "eta": 7, "pitch": None}),
        (("promise",), {"alpha": 0.1, "eta": 0.1, "pitch": 0}),
        (("promise",), {"alpha": 0.1, "eta": 0.1, "pitch": float("inf")}),
        (("promise",), {"alpha": 0.1, "eta": 0.1, "pitch": "1"}),
        (("plan", "promise"), {"alpha": "x", "eta": 0.1, "pitch": None}),
    ],
)
def test_a_document_that_does_not_add_up(path: tuple[Any, ...], value: Any) -> None:
    document, tensors = make(seed=1).contents()
    assert dpkde.Release.of_contents((document, tensors)).plan.seed == 1
    with pytest.raises(dpkde.FormatError):
        dpkde.Release.of_contents((_set(document, path, value), tensors))


def test_an_unknown_noise_law_is_named() -> None:
    document, tensors = copy.deepcopy(make().contents())
    document["privacy"]["spends"][-1]["law"] = "mine"
    with pytest.raises(dpkde.FormatError, match="the noise law 'mine', which is unknown here"):
        dpkde.Release.of_contents((document, tensors))


def test_tensors_that_do_not_fit() -> None:
    document, tensors = make().contents()
    for changed in (
        {},
        {"table": tensors["table"]},
        tensors | {"table": tensors["table"][:-1]},
        tensors | {"table": tensors["table"].astype(np.float64)},
        tensors | {"family.frequencies": tensors["family.frequencies"][:, :1]},
        tensors | {"family.frequencies": tensors["family.frequencies"].astype(np.int64)},
        tensors | {"more": tensors["table"]},
        tensors | {"family.more": tensors["table"]},
    ):
        with pytest.raises(dpkde.FormatError):
            dpkde.Release.of_contents((document, changed))


def test_a_missing_file_is_the_systems_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        dpkde.load(tmp_path / "nothing.dpkde")
