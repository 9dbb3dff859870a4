"""Clouds: where most records are, by all looks together, also where a look alone says little."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dpkde.privacy.laws import DiscreteLaplace, draw
from dpkde.scale.clouds import Cloud, Faint, _shares
from dpkde.scale.grids import Axis, geometric

Array = NDArray[np.float64]
ROWS = 10_000
LAW = DiscreteLaplace(Fraction(ROWS, 25))
"""Noise of which a twenty-fifth hides a cell that holds all records."""


def _seen(axis: Axis, values: Array, law: DiscreteLaplace = LAW) -> Faint:
    counts = np.bincount(axis.cell_of(values), minlength=axis.cells)
    return Faint(axis, (counts + draw(law, axis.cells)).astype(np.float64), law)


def test_shares_are_those_of_a_sample() -> None:
    """Of a cloud with two widths; cells at the ends hold all beyond."""
    generator = np.random.default_rng(0)
    size = np.abs(generator.normal(size=400_000))
    left = generator.random(400_000) < 0.5 / 2.5  # each half as heavy as it is wide
    sample = 1.0 + np.where(left, -0.5 * size, 2.0 * size)
    axis = Axis.uniform(-1.0, 4.0, 10)
    counts = np.bincount(axis.cell_of(sample), minlength=10) / len(sample)
    told = _shares(axis, np.ones(1), np.full(1, 0.5), np.full(1, 2.0))[0]
    np.testing.assert_allclose(told, counts, atol=0.004)
    assert told.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("middle", "std"), [(0.0, 1.0), (3.0, 1.0), (500.0, 80.0), (-74.0, 0.05), (1.7e9, 2e6)]
)
def test_clouds_are_found_at_any_magnitude(middle: float, std: float) -> None:
    """By the geometric grid, and one more: in at least 18 of 20 trials the bulk is within."""
    values = np.random.default_rng(1).normal(size=ROWS) * std + middle
    held = 0
    for _ in range(20):
        first = _seen(geometric(Fraction(1)), values)
        rough = Cloud.of((first,), ROWS)
        spare = rough.high - rough.low
        axis = Axis.uniform(rough.low - spare, rough.high + spare, 128)
        found = Cloud.of((first, _seen(axis, values)), ROWS)
        held += ((values > found.low) & (values < found.high)).mean() > 0.9
    assert held >= 18


def test_a_second_look_tells_the_size_of_a_cloud() -> None:
    """Standard deviations are off by a few per cent, and reach 3 to 4 of them: medians of 40 draws.

    These scatter by 0.03 and 0.3. One in a hundred draws has a cloud several times as wide.
    """
    values = np.random.default_rng(2).normal(size=ROWS)
    first = [_seen(geometric(Fraction(1)), values) for _ in range(40)]
    found = [Cloud.of((look, _seen(Axis.uniform(-6.0, 6.0, 32), values)), ROWS) for look in first]
    assert np.median([one.std for one in found]) == pytest.approx(1.0, abs=0.15)
    assert np.median([one.high - one.low for one in found]) == pytest.approx(6.7, abs=1.4)
    assert sum(one.is_resolved and not one.is_beyond for one in found) >= 33


def test_a_heap_beside_a_cloud_is_within() -> None:
    """A single cloud would hold the larger: seven tenths within a cell or two.

    It is within in 196 of 200 draws, and in 28 where pairs of clouds are not tried.
    """
    generator = np.random.default_rng(3)
    values = np.where(generator.random(ROWS) < 0.7, 0.0, 0.8) + generator.normal(size=ROWS) * 0.05
    axis, law = Axis.uniform(-4.0, 4.0, 128), DiscreteLaplace(Fraction(ROWS, 60))
    held = 0
    for _ in range(40):
        found = Cloud.of((_seen(axis, values, law),), ROWS)
        held += found.low < -0.05 and found.high > 0.8
    assert held >= 30


def test_what_is_beyond_a_grid_is_seen() -> None:
    values = np.random.default_rng(4).normal(size=ROWS) + 2.5
    found = Cloud.of((_seen(Axis.uniform(-3.0, 3.0, 32), values),), ROWS)
    assert found.is_beyond
    assert found.high > 5.0
