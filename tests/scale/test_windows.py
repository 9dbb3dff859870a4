"""Windows and bounds: they hold what they say with the probability that they say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace, Law, draw
from dpkde.scale.clouds import Cloud, Faint
from dpkde.scale.grids import Axis
from dpkde.scale.windows import CHANCE, SURE, ends, largest, occupied

ROWS = 20_000
AXIS = Axis.uniform(-8.0, 8.0, 128)
LAWS = [DiscreteLaplace(Fraction(20)), DiscreteGaussian(Fraction(900))]
TRIALS = 400


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_noise_alone_shows_nothing_and_a_heap_is_shown(law: Law) -> None:
    """False alarms: more than binomial chance allows has probability below 10⁻⁹."""
    noise = draw(law, TRIALS * AXIS.cells).reshape(TRIALS, -1).astype(np.float64)
    alarms = sum(occupied(row, law) is not None for row in noise)
    assert alarms <= binom.isf(1e-9, TRIALS, CHANCE)
    noise[:, 70] += 1000  # 35 times the standard deviation of either
    for row in noise:
        found = occupied(row, law)
        assert found is not None
        assert found[0] <= 70 < found[1]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_what_bounds_leave_out_is_told_with_its_probability(law: Law) -> None:
    """Of clouds and of heavy tails: wrong more often than it says has probability below 10⁻⁹."""
    generator = np.random.default_rng(3)
    for points in (generator.normal(size=ROWS), generator.standard_cauchy(ROWS)):
        counts = np.bincount(AXIS.cell_of(points), minlength=AXIS.cells)
        wrong, told = 0, []
        for row in draw(law, TRIALS * AXIS.cells).reshape(TRIALS, -1):
            noisy = (counts + row).astype(np.float64)
            cells = occupied(noisy, law)
            assert cells is not None
            found = ends(AXIS, noisy, cells, law, ROWS)
            outside = ((points < found.low) | (points > found.high)).mean()
            wrong += outside > found.left_out
            told.append(found.left_out)
        assert wrong <= binom.isf(1e-9, TRIALS, 1 - SURE)
        assert np.median(told) < 0.12


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_what_bounds_of_faint_histograms_leave_out_is_told(law: Law) -> None:
    """Wrong more often than it says has probability below 10⁻⁹, also with a heap far off."""
    generator = np.random.default_rng(4)
    rows, trials, axis = 1000, 40, Axis.uniform(-8.0, 8.0, 32)
    heaps = generator.normal(size=rows) + 30.0 * (generator.random(rows) < 0.2)
    for points in (generator.normal(size=rows), heaps):
        counts = np.bincount(axis.cell_of(points), minlength=axis.cells)
        wrong = 0
        for row in draw(law, trials * axis.cells).reshape(trials, -1):
            noisy = (counts + row).astype(np.float64)
            look = Faint(axis, noisy, law)
            found = Cloud.of((look,), rows).ends(look, rows)
            wrong += ((points < found.low) | (points > found.high)).mean() > found.left_out
        assert wrong <= binom.isf(1e-9, trials, 1 - SURE)


def test_thresholds_hold_for_blocks() -> None:
    """P(|noise of so many cells| > t) ≤ failure; a threshold half as high would be crossed."""
    law, cells, trials, failure = LAWS[0], 16, 20_000, 0.01
    sums = draw(law, trials * cells).reshape(trials, cells).sum(axis=1)
    threshold = largest(law, cells, failure)
    assert (np.abs(sums) > threshold).sum() <= binom.isf(1e-9, trials, failure)
    assert (np.abs(sums) > threshold / 2).mean() > failure


def test_bounds_go_on_where_a_window_cuts_a_cloud() -> None:
    """Nearly as far as in a window that holds it; and no further where the last cell is empty."""
    law, points = DiscreteLaplace(Fraction(20)), np.random.default_rng(5).normal(size=20_000)
    found = []
    for low in (-2.0, -6.0):
        axis = Axis.uniform(low, 6.0, round(8 * (6.0 - low)))
        counts = np.bincount(axis.cell_of(points), minlength=axis.cells).astype(np.float64)
        cells = occupied(counts, law)
        assert cells is not None
        found.append(ends(axis, counts, cells, law, 20_000.0, far=3.5))
    for each in found:
        assert -4.5 < each.low < -3.0
        assert 3.0 < each.high < 4.5
