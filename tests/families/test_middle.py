"""Sums of coordinates: whole numbers of each record alone, within their bounds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import dpkde
from dpkde.families.fourier.middle import Middle
from dpkde.privacy.amounts import Adjacency, Amount
from dpkde.privacy.budget import Guarantee
from dpkde.privacy.laws import DiscreteLaplace, MaxNorm
from dpkde.space.domain import Box, Unbounded
from dpkde.space.frame import Frame

BOUNDS = [(-3.0, 5.0), (0.0, 2.0), (1.0, 1.5)]
FRAME = Frame.of(dpkde.Gaussian(0.5), Box(BOUNDS), 3)
STRANGE = [0.0, 1.0, 2.0, -3.0, 5.0, 1e300, -1e300, np.inf, -np.inf, np.nan, 5e-324]


def _middle(capacity_bits: int = 40) -> Middle:
    middle = Middle.of(FRAME, capacity_bits)
    assert middle is not None
    return middle


def test_every_record_keeps_within_the_bounds() -> None:
    """Whatever is in it: the bounds are enforced on what comes out."""
    grid = np.array(np.meshgrid(STRANGE, STRANGE, STRANGE)).reshape(3, -1).T
    middle = _middle()
    for coordinates in (FRAME.place(grid)[0], grid):  # also coordinates that no record has
        integers = np.abs(middle.quantize(coordinates, np.ones(len(grid), dtype=np.bool_)))
        assert integers.max() <= middle.bounds.linf
        assert integers.sum(axis=1).max() <= middle.bounds.l1
        assert (integers.astype(object) ** 2).sum(axis=1).max() <= middle.bounds.l2_squared
    assert integers.max() == middle.bounds.linf  # and no larger than need be


def test_records_add_up_and_do_not_see_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(1).uniform(-4, 6, size=(500, 3))
    coordinates, counts = FRAME.place(points)
    counts[::7] = False
    middle = _middle()
    whole = middle.quantize(coordinates, counts)
    assert not whole[::7].any()
    alone = [
        middle.quantize(coordinates[i : i + 1], counts[i : i + 1])[0] for i in range(len(points))
    ]
    np.testing.assert_array_equal(whole, alone)
    monkeypatch.setattr("dpkde.families.fourier.middle._BLOCK", 100)
    table = np.zeros(3, dtype=np.int64)
    middle.accumulate(coordinates, counts, table)
    np.testing.assert_array_equal(table, whole.sum(axis=0))


def test_the_sums_tell_the_mean() -> None:
    points = np.random.default_rng(2).uniform(0, 2, size=(1000, 3))
    coordinates, counts = FRAME.place(points)
    middle, table = _middle(), np.zeros(3, dtype=np.int64)
    middle.accumulate(coordinates, counts, table)
    np.testing.assert_allclose(middle.mean(table, 1000), coordinates.mean(axis=0), atol=1e-5)
    far = middle.mean(table * 10**6, 1000)  # noise may be far larger than what it hides
    assert (np.abs(far) <= middle.halves).all()


def test_sums_cannot_wrap() -> None:
    for capacity in (1, 30, 40, 47):
        middle = _middle(capacity)
        assert middle.bounds.linf * 2**capacity < 2**62


def test_it_is_there_where_the_center_may_be_far() -> None:
    kernel = dpkde.Gaussian(1.0)
    assert Middle.of(Frame.of(kernel, Unbounded(), 3), 40) is None
    assert Middle.of(Frame.of(kernel, Box([(0, 1)] * 3), 3), 40) is None
    assert Middle.of(Frame.of(kernel, Box([(0, 10)] * 3), 3), 40) is not None


def test_a_price_is_paid_for_a_mean_that_is_near() -> None:
    """From public numbers: the expected distance is that of the noise, on all axes together."""
    middle = _middle()
    amount = Amount(epsilon=Fraction(1, 20))
    ways = ((amount, DiscreteLaplace), (amount, MaxNorm))
    assert middle.price(ways, 10, Guarantee(Adjacency.ADD_REMOVE)) is None
    price = middle.price(ways, 1e5, Guarantee(Adjacency.ADD_REMOVE))
    assert price is not None
    law = price.law.bought(amount, middle.bounds)
    width = math.sqrt(sum(half**2 for half in middle.halves))
    expected = math.sqrt(law.variance) / 2**middle.bits / 1e5 * width
    assert price.distance == pytest.approx(expected)
    twice = middle.price(ways, 1e5, Guarantee(Adjacency.REPLACE))
    assert twice is not None
    assert twice.distance == pytest.approx(2 * expected, rel=0.01)


def test_an_axis_of_no_width_has_its_mean_at_its_center() -> None:
    """So narrow that nothing is left of it in bandwidths: noise there tells nothing."""
    frame = Frame.of(dpkde.Gaussian([1e140, 1.0]), Box([(0, 1e-310), (-9, 9)]), 2)
    middle = Middle.of(frame, 40)
    assert middle is not None
    noisy = np.full(2, 1 << (middle.bits - 1))
    np.testing.assert_array_equal(middle.mean(noisy, 1.0), [0.0, 4.5])
