"""What shares of boxes can be off by: as much as one heap is, and little for spread records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

import dpkde
from dpkde.families.base import Pair
from dpkde.families.reading import Asked, Over, Within, along
from dpkde.families.spline.bias import largest_errors, least_roughness
from dpkde.families.spline.bsplines import bspline
from dpkde.families.spline.grid import Axis
from dpkde.families.spline.intervals import SplinedAxis, share_upto

Floats = NDArray[np.float64]

FAMILIES: dict[str, tuple[Any, Any, int]] = {
    "line": (dpkde.Gaussian(0.12), dpkde.Spline(3, 0.5), 1),
    "degree 1": (dpkde.Gaussian(0.12), dpkde.Spline(1, 0.7), 1),
    "coarse": (dpkde.Gaussian(0.12), dpkde.Spline(2, 2.0), 1),
    "ridge": (dpkde.Gaussian(0.12), dpkde.Spline(3, 0.7, ridge=0.05), 1),
    "laplacian": (dpkde.Laplacian(0.12), dpkde.Spline(2, 0.5), 1),
    "plane": (dpkde.Gaussian(0.15), dpkde.Spline(2, 1.0), 2),
    "space": (dpkde.Gaussian(0.25), dpkde.Spline(3, 1.5), 3),
    "constant": (dpkde.Gaussian([0.12, 2.0]), dpkde.Spline((3, 0), (0.5, 1.0)), 2),
    "tilted": (dpkde.Gaussian([0.12, 0.8]), dpkde.Spline((3, 1), (0.5, 30.0)), 2),
    "arched": (dpkde.Gaussian([0.9, 0.7]), dpkde.Spline((1, 1), (30.0, 30.0), arch=3000), 2),
    "fastgauss": (dpkde.Gaussian(0.12), dpkde.FastGauss(4), 1),
    "histogram": (dpkde.Gaussian(0.12), dpkde.FastGauss(1), 2),
    "copies": (dpkde.Gaussian(0.15), dpkde.FastGauss(3, repetitions=3), 2),
}


def summed(name: str, points: Floats) -> tuple[Pair, Floats]:
    """Return a pair and the table of points without noise."""
    kernel, family, dim = FAMILIES[name]
    plan = dpkde.plan(kernel=kernel, bounds=[(0, 1)] * dim, epsilon=10**6, family=family)
    table = np.zeros(plan.pair.bounds.cells, dtype=np.int64)
    coordinates = plan.frame.place_plainly(points)[0]
    plan.pair.accumulate(coordinates, np.ones(len(points), dtype=np.bool_), table)
    return plan.pair, table.astype(np.float64)


def ends(pair: Pair, place: Floats, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Return corners of boxes with faces near a place, in bandwidths; some of them open."""
    shape = (30, len(place))
    low = place + generator.normal(0, 1.0, shape)
    high = low + generator.exponential(2.0, shape)
    low[generator.random(shape) < 0.25] = -np.inf
    high[generator.random(shape) < 0.25] = np.inf
    return low, high


def asked(low: Floats, high: Floats, kind: Any = Over) -> list[Asked]:
    return [kind(low[:, k], high[:, k]) for k in range(low.shape[1])]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_heap_is_off_by_no_more(name: str) -> None:
    """Anywhere: near faces and corners, at the bounds, with some spread records around it."""
    generator, dim = np.random.default_rng(7), FAMILIES[name][2]
    largest = 0.0
    for round_ in range(40):
        place = generator.uniform(size=dim)
        if round_ % 4 == 0:
            place[0] = round_ // 4 % 2  # a face of the bounds
        pair, table = summed(name, np.tile(place, (100, 1)))
        located = pair.frame.locate(place[np.newaxis])[0]
        low, high = ends(pair, located, generator)
        shape = pair.frame.kernel.shape
        truth = np.ones(len(low))
        for k in range(dim):
            sides = np.clip(np.stack([high[:, k], low[:, k]]) - located[k], -1e3, 1e3)
            truth *= -np.diff(share_upto(shape, sides), axis=0)[0]
        off = np.abs(pair.read(asked(low, high)).values(table) - 100 * truth)
        bound = pair.box_bias(asked(low, high), table, 0.0)
        seen = off > 0.01
        assert (off[seen] <= bound[seen]).all()
        largest = max(largest, float((off[seen] / bound[seen]).max(initial=0.0)))
    assert largest > 0.3  # it is no idle bound


@pytest.mark.parametrize("name", ["line", "plane", "coarse", "fastgauss", "histogram"])
def test_a_heap_is_off_by_no_more_of_the_records(name: str) -> None:
    """Without smoothing: how many records lie in a box, the heap on either side of a face."""
    generator, dim = np.random.default_rng(8), FAMILIES[name][2]
    for _ in range(40):
        place = generator.uniform(size=dim)
        pair, table = summed(name, np.tile(place, (100, 1)))
        located = pair.frame.locate(place[np.newaxis])[0]
        low, high = ends(pair, located, generator)
        truth = 100 * ((low <= located) & (located <= high)).all(axis=1)
        off = np.abs(pair.read(asked(low, high, Within)).values(table) - truth)
        bound = pair.box_bias(asked(low, high, Within), table, 0.0)
        assert (off <= bound + 0.01).all()


@pytest.mark.parametrize("name", ["line", "plane", "fastgauss"])
def test_spread_records_cost_little(name: str) -> None:
    """A third of what as many records in one heap are allowed, at boxes about the middle."""
    dim = FAMILIES[name][2]
    generator = np.random.default_rng(9)
    spread = generator.normal(0.5, 0.15, size=(20_000, dim)).clip(0, 1)
    pair, table = summed(name, spread)
    heap = summed(name, np.full((20_000, dim), 0.5))[1]
    low, high = ends(pair, np.zeros(dim), generator)
    few, many = (pair.box_bias(asked(low, high), t, 0.0) for t in (table, heap))
    assert float(few.mean()) < 0.35 * float(many.mean())


def test_noise_alone_is_no_heap() -> None:
    """What it adds to squares is taken off: over draws little is left, and much otherwise."""
    pair, table = summed("plane", np.random.default_rng(1).uniform(size=(1000, 2)))
    generator = np.random.default_rng(2)
    low, high = np.full((1, 2), -2.0), np.full((1, 2), 1.0)
    scale = 50 * 2.0**pair.bits
    with_it, without = (
        np.mean(
            [
                pair.box_bias(asked(low, high), table + generator.normal(0, scale, len(table)), v)
                for _ in range(200)
            ]
        )
        for v in (scale**2, 0.0)
    )
    assert with_it < 0.5 * without


def test_whole_lines_have_no_bias() -> None:
    for name in FAMILIES:
        pair, table = summed(name, np.full((10, FAMILIES[name][2]), 0.3))
        whole = np.full((1, FAMILIES[name][2]), np.inf)
        assert pair.box_bias(asked(-whole, whole), table, 0.0) == pytest.approx(0.0, abs=1e-5)


def test_the_largest_errors_of_an_axis() -> None:
    """Against records at many places, one after the other."""
    kernel = dpkde.Gaussian(1.0).shape
    axis = Axis(0, 3.0, 2, 0.8, 0.0, 8)
    low, high = np.array([-1.3, -np.inf, 0.21]), np.array([0.4, 2.2, 0.26])
    weights = SplinedAxis(kernel, axis).over(low, high, 0.0).rows()
    t = np.linspace(0, 6 / 0.8, 2000, endpoint=False)
    nodes = np.arange(axis.nodes) - (axis.degree - 1) / 2
    fitted = weights @ bspline(2, t[:, np.newaxis] - nodes).T
    x = t * 0.8 - 3.0
    share = ndtr((high[:, np.newaxis] - x) * np.sqrt(2)) - ndtr((low[:, np.newaxis] - x) * 2**0.5)
    off = np.abs(fitted - share)
    largest = np.array([[row[t.astype(int) == c].max() for c in range(8)] for row in off])
    found = largest_errors(kernel, axis, low, high)
    size = largest.max(axis=1, keepdims=True)
    assert (found >= largest - 1e-3 * size).all()
    np.testing.assert_allclose(found.max(axis=1), largest.max(axis=1), rtol=0.08)


def test_sums_along_an_axis() -> None:
    generator = np.random.default_rng(0)
    tensor = generator.normal(size=(3, 4, 5))
    for shared in ((), (0,), (2,), (0, 2), (0, 1, 2)):
        rows = [1 if k in shared else 6 for k in range(3)]
        weights = [generator.normal(size=(n, m)) for n, m in zip(rows, (3, 4, 5), strict=True)]
        a, b, c = (np.broadcast_to(w, (6, w.shape[1])) for w in weights)
        for axis, plain in (
            (0, np.einsum("abc,nb,nc->na", tensor, b, c)),
            (1, np.einsum("abc,na,nc->nb", tensor, a, c)),
            (2, np.einsum("abc,na,nb->nc", tensor, a, b)),
            (None, np.einsum("abc,na,nb,nc->n", tensor, a, b, c)[:, np.newaxis]),
        ):
            summed_up = along(tensor, weights, axis)
            np.testing.assert_allclose(np.broadcast_to(summed_up, plain.shape), plain, atol=1e-12)


def test_second_differences_see_every_heap() -> None:
    for degree in range(1, 6):
        nodes = np.arange(-6, 7.0)
        for u in np.linspace(0, 1, 33):
            rough = np.diff(bspline(degree, nodes - u), 2)
            assert np.linalg.norm(rough) >= least_roughness(degree) * (1 - 1e-3)
