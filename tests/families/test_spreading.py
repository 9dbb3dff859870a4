"""The compiled spread of records against its twin in NumPy: every loop, every edge."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dpkde
from dpkde.families.spline import spreading
from dpkde.families.spline.family import Spline, SplinePair
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame

LONGEST = spreading._BLOCK

CASES: dict[str, tuple[Spline, tuple[float, ...]]] = {
    **{f"degree {p}": (Spline(p, 0.6), (2.0,)) for p in (1, 2, 3, 4, 5)},
    **{
        f"degrees {p} and {q}": (Spline((p, q), 0.7), (1.9, 1.3))
        for p, q in itertools.product((1, 2, 3, 4, 5), repeat=2)
    },
    "three axes": (Spline((3, 1, 2), 0.9), (1.0, 1.5, 0.8)),
    "four axes": (Spline((2, 3, 1, 2), 0.9), (1.0, 0.7, 0.8, 0.6)),
    "constants": (Spline((0, 3, 0, 2), 0.7), (0.01, 1.7, 0.02, 1.0)),
    "slopes": (Spline((3, 1, 2, 1), (0.7, 9.0, 0.8, 9.0)), (2.0, 0.1, 1.5, 0.2)),
    "slopes and an arch": (Spline((3, 1, 0), (0.7, 9.0, 1.0), arch=7000), (2.0, 0.1, 0.2)),
    "slopes alone": (Spline(1, 99.0), (0.3, 0.2, 0.1)),
    "one cell": (Spline(0, 1.0), (0.01, 0.02)),
    "shorter blocks": (Spline(1, 0.4), (0.5,) * 8),
}


def _pair(family: Spline, halves: tuple[float, ...]) -> SplinePair:
    frame = Frame.of(dpkde.Gaussian(1.0), as_domain([(-half, half) for half in halves]))
    return family.layout(frame).draw(22, 0)


@pytest.mark.parametrize("name", CASES)
def test_spread_is_that_of_the_twin(name: str) -> None:
    family, halves = CASES[name]
    pair, generator = _pair(family, halves), np.random.default_rng(4)
    most = 40 if pair.bounds.cells > 2000 else 2 * LONGEST + 3
    rows = generator.uniform(-1.2, 1.2, (most, len(halves))) * halves
    corners = np.sign(generator.normal(size=(8, len(halves)))) * halves
    rows[:8], rows[8] = corners, 0.0  # at both ends of every axis, and on a node
    counts = generator.random(most) < 0.8
    parts = pair.quantize(rows, counts)
    for size in {1, 7, LONGEST - 1, LONGEST, LONGEST + 1, most}:
        table = generator.integers(-5, 5, pair.bounds.cells)
        expected = table + parts[:size].sum(axis=0)
        pair.accumulate(rows[:size], counts[:size], table)
        assert np.array_equal(table, expected)


def test_a_record_alone() -> None:
    """The same integers in the middle of a block, in its last rows, and by itself."""
    pair, generator = _pair(*CASES["slopes and an arch"]), np.random.default_rng(5)
    rows = generator.uniform(-1.0, 1.0, (LONGEST + 5, 3)) * (2.0, 0.1, 0.2)
    total = np.zeros(pair.bounds.cells, dtype=np.int64)
    pair.accumulate(rows, np.ones(len(rows), dtype=np.bool_), total)
    singly = np.zeros_like(total)
    for i in generator.permutation(len(rows)).tolist():
        pair.accumulate(rows[i : i + 1], np.ones(1, dtype=np.bool_), singly)
    assert np.array_equal(total, singly)


def test_what_does_not_count_may_be_anything() -> None:
    pair = _pair(*CASES["slopes and an arch"])
    rows = np.full((LONGEST + 5, 3), np.nan)
    table = np.zeros(pair.bounds.cells, dtype=np.int64)
    pair.accumulate(rows, np.zeros(len(rows), dtype=np.bool_), table)
    assert not table.any()


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_weights_do_not_depend_on_the_lane(degree: int) -> None:
    """Vectorised or by itself, first or last: the running sums of a fraction are the same."""
    weigh = spreading._weighing(degree)
    fractions = np.random.default_rng(degree).random(LONGEST)
    fractions[:3] = 0.0, 1.0, np.nextafter(1.0, 0.0)
    together = np.empty((5, LONGEST), dtype=np.int64)
    weigh(LONGEST, fractions, together)
    for i in range(0, LONGEST, 5):
        alone = np.empty((5, 1), dtype=np.int64)
        weigh(1, fractions[i : i + 1], alone)
        assert np.array_equal(alone[:degree, 0], together[:degree, i])
    assert (np.diff(together[:degree], axis=0, prepend=0) >= 0).all()
    assert together[:degree].max() <= 1 << 32
