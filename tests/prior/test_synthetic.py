"""The synthetic release: answers, coresets, files, damage; and the proofs beside the mechanisms."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde.prior.pmw import PMW
from dpkde.prior.smalldb import SmallDB
from dpkde.privacy.amounts import Amount
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.privacy.laws import Exponential
from dpkde.privacy.statement import PrivacyStatement
from dpkde.release import container
from dpkde.release.synthetic import SyntheticRelease, weighted_kde

KERNEL = dpkde.Gaussian(0.5)
BOUNDS = [(0.0, 4.0), (0.0, 2.0)]


def statement() -> PrivacyStatement:
    budget = Budget(Guarantee.declare(epsilon=1))
    budget.select("synthetic data set", Amount(epsilon=Fraction(1)), Exponential, 1 << 16)
    return PrivacyStatement(budget.guarantee, budget.spends)


def example(size: int = 300, dim: int = 2) -> SyntheticRelease:
    generator = np.random.default_rng(0)
    weights = generator.exponential(size=size)
    points = generator.normal(size=(size, dim))
    return SyntheticRelease(points, weights / weights.sum(), KERNEL, statement(), "smalldb")


@pytest.fixture(scope="module")
def learned() -> SyntheticRelease:
    points = np.random.default_rng(1).normal((1.0, 1.0), 0.4, size=(2000, 2))
    return PMW(rounds=20, points_per_axis=10).release(
        points, kernel=KERNEL, bounds=BOUNDS, epsilon=1, delta=1e-6
    )


def test_kde_is_the_weighted_mean() -> None:
    release = example(5)
    queries = np.random.default_rng(2).normal(size=(7, 2))
    plain = [
        sum(
            w * math.exp(-sum((a - b) ** 2 for a, b in zip(z, y, strict=True)) / 0.25)
            for z, w in zip(release.points.tolist(), release.weights.tolist(), strict=True)
        )
        for y in queries.tolist()
    ]
    assert release.kde(queries) == pytest.approx(plain, rel=1e-12)
    assert release.kde(queries[0]) == pytest.approx(plain[:1])
    assert release.kde(np.empty((0, 2))).shape == (0,)
    assert np.isnan(release.kde([[math.nan, 0.0]])[0])
    with pytest.raises(dpkde.SchemaError):
        release.kde([[1.0, 2.0, 3.0]])


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    release, queries = example(50), np.random.default_rng(3).normal(size=(40, 2))
    whole = release.kde(queries)
    monkeypatch.setattr("dpkde.release.synthetic._BLOCK", 130)
    assert weighted_kde(release.points, release.weights, queries, KERNEL) == pytest.approx(whole)


def test_frozen(learned: SyntheticRelease) -> None:
    with pytest.raises(AttributeError):
        learned.count = 3  # type: ignore[misc]
    for array in (learned.points, learned.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert "pmw" in repr(learned)
    assert "ε=1 δ=1e-06 add-remove" in repr(learned)
    assert hash(learned) == hash(learned)


def test_coreset(learned: SyntheticRelease) -> None:
    """Smaller, deterministic, its error measured, below the theory's 1/√size and falling."""
    queries = np.random.default_rng(4).uniform((0, 0), (4, 2), (300, 2))
    errors = []
    for size in (4, 16, 64, 256):
        small = learned.coreset(size)
        assert len(small.points) <= min(size, len(learned.points))
        assert small.weights.sum() == pytest.approx(1)
        again = learned.coreset(size)
        assert np.array_equal(small.points, again.points)
        assert np.array_equal(small.weights, again.weights)
        assert small.privacy == learned.privacy
        at_points = np.abs(small.kde(learned.points) - learned.kde(learned.points)).max()
        assert small.added_error == pytest.approx(at_points, rel=1e-9)
        off = np.abs(small.kde(queries) - learned.kde(queries)).max()
        assert off <= 2 / math.sqrt(size)
        errors.append(small.added_error)
    assert errors[-1] < errors[0] / 2
    twice = learned.coreset(64).coreset(16)
    assert twice.added_error >= learned.coreset(64).added_error
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(dpkde.ParameterError, match="size"):
            learned.coreset(wrong)  # type: ignore[arg-type]


# Files


def test_save_and_load(tmp_path: Path, learned: SyntheticRelease) -> None:
    small = SmallDB(size=2, points_per_axis=3).release(
        np.zeros((5, 2)), kernel=dpkde.Laplacian([1.0, 2.0]), bounds=BOUNDS, rho="1/7"
    )
    for release in (learned, small, learned.coreset(9)):
        release.save(tmp_path / "a")
        again = SyntheticRelease.load(tmp_path / "a")
        assert again == release
        assert str(again.privacy) == str(release.privacy)
        assert again.kde([1.0, 1.0]) == release.kde([1.0, 1.0])


def test_the_largest_number_of_rounds_fits_a_file(tmp_path: Path) -> None:
    release = PMW(rounds=500, points_per_axis=2).release(
        np.zeros((5, 1)), kernel=KERNEL, bounds=[(0, 1)], epsilon="1/3", delta="1e-7"
    )
    release.save(tmp_path / "a")
    assert SyntheticRelease.load(tmp_path / "a") == release


def test_other_files_are_told(tmp_path: Path) -> None:
    dpkde.publish(np.zeros((5, 1)), kernel=KERNEL, epsilon=1).save(tmp_path / "r")
    with pytest.raises(dpkde.FormatError, match="not a dpkde-synthetic file"):
        SyntheticRelease.load(tmp_path / "r")
    example(3).save(tmp_path / "s")
    with pytest.raises(dpkde.FormatError, match="not a dpkde-release file"):
        dpkde.Release.load(tmp_path / "s")


def test_load_knows_both_kinds(tmp_path: Path, learned: SyntheticRelease) -> None:
    learned.save(tmp_path / "s")
    assert (tmp_path / "s").read_bytes() == learned.to_bytes()
    again = dpkde.load(tmp_path / "s")
    assert isinstance(again, SyntheticRelease)
    assert again == learned == SyntheticRelease.from_bytes(learned.to_bytes())
    assert dpkde.prior.SyntheticRelease is SyntheticRelease
    with pytest.raises(dpkde.FormatError):
        SyntheticRelease.from_bytes(learned.to_bytes()[:-1])


def test_nothing_is_claimed_of_the_noise(learned: SyntheticRelease) -> None:
    errors = learned.standard_error([[1.0, 1.0], [0.0, 0.5], [math.nan, 0.0]])
    assert errors.shape == (3,)
    assert np.isnan(errors).all()
    assert learned.standard_error([1.0, 1.0]).shape == (1,)
    with pytest.raises(dpkde.SchemaError):
        learned.standard_error([[1.0, 2.0, 3.0]])


def _parts(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    document, tensors = container.read(path)
    return json.loads(json.dumps(document)), {k: v.copy() for k, v in tensors.items()}


@pytest.mark.parametrize(
    "change",
    [
        {"format_version": 2},
        {"format": None},
        {"kernel": {"name": "os.system", "version": 1, "parameters": {}}},
        {"kernel": {"name": "gaussian", "version": 1, "parameters": {"bandwidth": [1, 2, 3]}}},
        {"kernel": {"name": "gaussian", "version": 1, "parameters": {"bandwidth": -1}}},
        {"kernel": None},
        {"count": 0},
        {"count": 1.5},
        {"count": True},
        {"added_error": -1},
        {"added_error": "none"},
        {"mechanism": 3},
        {"release_id": None},
        {"privacy": None},
        {"privacy": {}},
        {"privacy.epsilon": "1/2"},
        {"privacy.unit": "one person"},
        {"privacy.spends": []},
        {"privacy.spends": [None]},
        {"privacy.spends": [{}] * 9000},
        {"privacy.adjacency": "none"},
        {"count": 508},  # that nothing was spent on
    ],
    ids=str,
)
def test_hostile_documents(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "a"
    example(3).save(path)
    document, tensors = _parts(path)
    for key, value in change.items():
        place, _, inner = key.partition(".")
        if inner:
            document[place][inner] = value
        else:
            document[place] = value
    path.write_bytes(container.pack(document, tensors))
    with pytest.raises(dpkde.FormatError):
        SyntheticRelease.load(path)


def test_no_larger_unit_is_claimed(tmp_path: Path) -> None:
    """The scales are those of one record, whatever a file of version 2 says."""
    example(3).save(tmp_path / "a")
    document, tensors = _parts(tmp_path / "a")
    document |= {"format_version": 2, "parts": {}}
    for records, fine in ((1, True), (1000, False)):
        document["privacy"]["unit"] = {"name": None, "records": records}
        container.write(tmp_path / "a", document, tensors)
        if fine:
            assert SyntheticRelease.load(tmp_path / "a").privacy.unit.records == 1
        else:
            with pytest.raises(dpkde.FormatError, match="claims more"):
                SyntheticRelease.load(tmp_path / "a")


@pytest.mark.parametrize("missing", ["kernel", "count", "added_error", "mechanism", "privacy"])
def test_missing_fields(tmp_path: Path, missing: str) -> None:
    path = tmp_path / "a"
    example(3).save(path)
    document, tensors = _parts(path)
    del document[missing]
    container.write(path, document, tensors)
    with pytest.raises(dpkde.FormatError):
        SyntheticRelease.load(path)


@pytest.mark.parametrize(
    "tensors",
    [
        {},
        {"points": np.zeros((1, 2))},
        {"points": np.zeros((0, 2)), "weights": np.zeros(0)},
        {"points": np.zeros((1, 0)), "weights": np.ones(1)},
        {"points": np.zeros((2, 2)), "weights": np.ones(1)},
        {"points": np.zeros(2), "weights": np.ones(2) / 2},
        {"points": np.full((1, 2), np.nan), "weights": np.ones(1)},
        {"points": np.zeros((1, 2)), "weights": np.full(1, np.nan)},
        {"points": np.zeros((2, 2)), "weights": np.array([2.0, -1.0])},
        {"points": np.zeros((2, 2)), "weights": np.array([0.5, 0.4])},
        {"points": np.zeros((1, 2), np.float32), "weights": np.ones(1, np.float32)},
        {"points": np.zeros((1, 2)), "weights": np.ones(1), "more": np.ones(1)},
    ],
    ids=range(12),
)
def test_hostile_tensors(tmp_path: Path, tensors: dict[str, Any]) -> None:
    path = tmp_path / "a"
    example(3).save(path)
    container.write(path, _parts(path)[0], tensors)
    with pytest.raises(dpkde.FormatError):
        SyntheticRelease.load(path)


def test_damage(tmp_path: Path) -> None:
    """Any byte changed, any length cut: an error of our own, or (in an unused byte) the same."""
    path = tmp_path / "a"
    release = example(3)
    release.save(path)
    good = path.read_bytes()
    chance = random.Random(0)
    for _ in range(600):
        data = bytearray(good)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        else:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(bytes(data))
        try:
            assert SyntheticRelease.load(path) == release
        except dpkde.FormatError:
            continue


def test_loading_needs_no_mechanism(tmp_path: Path) -> None:
    example(3).save(tmp_path / "a")
    script = (
        f"import sys, dpkde; dpkde.load({str(tmp_path / 'a')!r}).kde([0.0, 0.0])\n"
        "assert not {'dpkde.curator', 'dpkde.prior', 'dpkde.prior.pmw'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_mechanisms_have_their_proofs() -> None:
    folder = Path(dpkde.__file__).parent / "prior"
    for name in ("smalldb", "pmw"):
        text = (folder / f"{name}.proof.md").read_text(encoding="utf-8")
        assert "## Precondition" in text
        assert "## Postcondition" in text
        for test in {word.strip("`();,.:") for word in text.split() if "tests/" in word}:
            assert (folder.parents[2] / test).is_file(), test
