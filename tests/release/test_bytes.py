"""Plans, sketches and releases as bytes: the same as their files, and as strict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpkde

POINTS = np.random.default_rng(0).normal(size=(200, 2))
PLAN = dpkde.plan(
    kernel=dpkde.Gaussian(1.0),
    bounds=[(-3, 3)] * 2,
    epsilon=1,
    family=dpkde.Fourier(5),
    columns=["a", "b"],
    seed=3,
)


def _things() -> list[Any]:
    sketch = dpkde.sketch(POINTS, PLAN)
    return [PLAN, sketch, dpkde.publish(sketch, epsilon=1)]


@pytest.mark.parametrize("which", range(3))
def test_bytes_are_those_of_the_file(which: int, tmp_path: Path) -> None:
    thing = _things()[which]
    thing.save(tmp_path / "x")
    data = thing.to_bytes()
    assert data == (tmp_path / "x").read_bytes()
    kind = type(thing)
    assert kind.from_bytes(data) == thing
    assert kind.from_bytes(bytearray(data)) == thing
    for damaged in (b"", b"lon,lat\n1,2\n", data[:-1], data[:40], data + b"x", b"\xff" * 64):
        with pytest.raises(dpkde.FormatError):
            kind.from_bytes(damaged)
    other = _things()[which - 1].to_bytes()
    with pytest.raises(dpkde.FormatError, match="is not a dpkde"):
        kind.from_bytes(other)


def test_a_plan_tells_what_a_release_tells() -> None:
    release = dpkde.publish(POINTS, plan=PLAN, epsilon=1)
    for name in ("kernel", "domain", "dim", "columns"):
        assert getattr(PLAN, name) == getattr(release, name)


def test_publish_and_plan_have_the_same_defaults() -> None:
    from inspect import Parameter, signature

    ours, theirs = signature(dpkde.publish).parameters, signature(dpkde.plan).parameters
    for name in set(ours) & set(theirs):
        one, other = ours[name].default, theirs[name].default
        assert one == other or Parameter.empty in (one, other), name
