"""Histograms over public grids: what a record adds, whatever it is, and that it is bounded."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from dpkde.curator.sketch import count_and_look
from dpkde.privacy.amounts import Adjacency
from dpkde.scale.grids import FINEST, Axis, Histograms, JointHistogram, geometric
from dpkde.space.domain import Unbounded
from dpkde.space.frame import Frame
from dpkde.tables import open_points

Array = NDArray[np.float64]
STRANGE = [0.0, -0.0, 5e-324, -5e-324, 1e-300, 1e308, -1e308, 1.0, -1.0, 0.1, 2.0**64, np.nan]
STRANGE += [np.inf, -np.inf, 1.7976931348623157e308]


def _points() -> Array:
    generator = np.random.default_rng(5)
    return np.concatenate(
        [generator.choice(STRANGE, size=(400, 2)), generator.normal(size=(300, 2)) * 1e3]
    )


def _looks() -> list[Histograms | JointHistogram]:
    axes = (geometric(), Axis.uniform(-5.0, 7.0, 32))
    return [
        Histograms(axes, (0, 1)),
        Histograms((Axis.uniform(-1e150, 1e150, 16),), (1,)),
        JointHistogram((Axis.uniform(0.0, 1.0, 5), Axis.uniform(-1e308, 1e308, 7))),
    ]


@pytest.mark.parametrize("look", _looks(), ids=lambda look: type(look).__name__)
def test_sums_are_those_of_records_and_within_bounds(look: Histograms | JointHistogram) -> None:
    """A finite record adds one to a cell of each column, or to one cell; any other adds nothing."""
    points = _points()
    frame = Frame.of(dpkde.Gaussian(1.0), Unbounded(), 2)
    coordinates, counts = frame.place(points)
    vectors = look.quantize(coordinates, counts)
    finite = np.isfinite(points).all(axis=1)
    assert (counts == finite).all()
    bounds = look.bounds
    assert (vectors >= 0).all()
    assert (vectors.sum(axis=1) == bounds.l1 * finite).all()
    assert ((vectors**2).sum(axis=1) == bounds.l2_squared * finite).all()
    assert vectors.max() == bounds.linf == 1
    assert vectors.shape[1] == bounds.cells
    for pieces in (points, np.split(points, [3, 250])):
        totals, (sums,) = count_and_look(open_points(pieces), frame, [look], 2)
        assert totals.records == finite.sum()
        assert (sums == vectors.sum(axis=0)).all()
    # Exchanging a record moves a histogram by twice its L1 norm, and no cell by more than one.
    moved = bounds.under(Adjacency.REPLACE)
    worst = np.abs(vectors[finite][:, np.newaxis] - vectors[finite][np.newaxis, :5])
    assert worst.sum(axis=2).max() <= moved.l1 == 2 * bounds.l1
    assert (worst**2).sum(axis=2).max() <= moved.l2_squared == 2 * bounds.l2_squared
    assert worst.max() <= moved.linf == 1


def test_every_finite_float_has_a_cell_of_the_geometric_grid() -> None:
    axis = geometric()
    generator = np.random.default_rng(0)
    floats = generator.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64)
    floats = floats[np.isfinite(floats)]
    cells = axis.cell_of(floats)
    assert (np.diff(axis.edges) > 0).all()
    assert cells.min() >= 0
    assert cells.max() < axis.cells
    inside = np.abs(floats) < axis.edges[-1]
    assert (axis.edges[cells][inside] <= floats[inside]).all()
    assert (floats[inside] < axis.edges[cells + 1][inside]).all()
    assert (cells[floats >= axis.edges[-1]] == axis.cells - 1).all()
    assert (cells[floats < axis.edges[0]] == 0).all()


@pytest.mark.parametrize("octaves", [Fraction(1, 8), Fraction(1), Fraction(2)])
def test_cells_that_are_joined_hold_what_coarse_ones_would(octaves: Fraction) -> None:
    fine = Histograms((geometric(FINEST), Axis.uniform(-3.0, 3.0, 1 << 12)), (0, 1))
    coarse = Histograms((geometric(octaves), Axis.uniform(-3.0, 3.0, 16)), (0, 1))
    points = _points()
    counts = np.asarray(np.isfinite(points).all(axis=1))
    sums = fine.quantize(points, counts).sum(axis=0)
    direct = coarse.quantize(points, counts).sum(axis=0)
    assert (fine.joined(sums, coarse.axes) == direct).all()


@pytest.mark.parametrize(
    ("low", "high"),
    [(1.0, 1.0000000000000002), (1e16, 1e16 + 100), (1.7e18, 1.7e18 + 5000), (0.0, 5e-324)],
)
@pytest.mark.parametrize("cells", [16, 256])
def test_joining_moves_no_record_twice_where_edges_coincide(
    low: float, high: float, cells: int
) -> None:
    """Public ranges may be a few floats wide: there a cell may not be added to several."""
    fine = Histograms((Axis.uniform(low, high, 1 << 12),), (0,))
    coarse = (Axis.uniform(low, high, cells),)
    for cell in range(fine.bounds.cells):
        alone = np.zeros(fine.bounds.cells, dtype=np.int64)
        alone[cell] = 1
        joined = fine.joined(alone, coarse)
        assert (joined.min(), joined.sum(), joined.max()) == (0, 1, 1)
    points = np.array([[0.5 * low - 1], [low], [high], [2 * high + 1]])
    counts = np.ones(len(points), dtype=np.bool_)
    direct = Histograms(coarse, (0,)).quantize(points, counts).sum(axis=0)
    assert (fine.joined(fine.quantize(points, counts).sum(axis=0), coarse) == direct).all()
