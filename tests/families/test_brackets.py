"""Shares of regions hold for any records: what is allowed for a bias bounds it record by record."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

import dpkde
from dpkde.families.base import Pair
from dpkde.families.brackets import Bracket, allowance
from dpkde.families.reading import WHOLE, Asked, At, Over, Within
from dpkde.families.spline.family import SplinePair
from dpkde.families.spline.intervals import share_upto
from families.test_bias import FAMILIES, asked, ends, summed

Floats = NDArray[np.float64]

MANY = {
    **FAMILIES,
    "quartic": (dpkde.Gaussian(0.1), dpkde.Spline(4, 1.0), 1),
    "quintic": (dpkde.Gaussian(0.06), dpkde.Spline(5, 1.5), 1),
    "long tails": (dpkde.Cauchy(0.05), dpkde.Spline(2, 0.7), 1),
    "wide": (dpkde.Gaussian(0.03), dpkde.Spline(2, 1.5), 1),
    "narrow": (dpkde.Gaussian([1.5, 2.5]), dpkde.Spline((0, 1), (1.0, 30.0)), 2),
}


def drawn(name: str, points: Floats) -> tuple[Pair, Floats]:
    """Return a pair and the table of each point on its own."""
    kernel, family, dim = MANY[name]
    plan = dpkde.plan(kernel=kernel, bounds=[(0, 1)] * dim, epsilon=10**6, family=family)
    coordinates = plan.frame.place_plainly(points)[0]
    rows = plan.pair.quantize(coordinates, np.ones(len(points), dtype=np.bool_))
    return plan.pair, np.asarray(rows, dtype=np.float64)


def places(dim: int, generator: np.random.Generator) -> Floats:
    """Return points of the unit cube, on its faces, too."""
    if dim == 1:
        return np.linspace(0, 1, 151)[:, np.newaxis]
    points = generator.uniform(size=(150, dim))
    points[:20, 0] = np.arange(20) % 2
    return points


def shares(pair: Pair, points: Floats, low: Floats, high: Floats, kind: type[Asked]) -> Floats:
    """Return the share that each record has of each box, shape (boxes, points)."""
    located = pair.frame.locate(points)
    truth = np.ones((len(low), len(points)))
    for k in range(located.shape[1]):
        sides = (end[:, k, np.newaxis] - located[:, k] for end in (high, low))
        if kind is Within:
            inside = [
                low[:, k, np.newaxis] <= located[:, k],
                located[:, k] <= high[:, k, np.newaxis],
            ]
            truth *= inside[0] & inside[1]
        else:
            upper, lower = (
                share_upto(pair.frame.kernel.shape, side.clip(-1e5, 1e5)) for side in sides
            )
            upper[np.isposinf(high[:, k])], lower[np.isneginf(low[:, k])] = 1.0, 0.0
            truth *= upper - lower
    return truth


NARROW = ("constant", "tilted", "arched", "narrow")
"""These have axes that do not tell where on them records lie."""
CASES = [(name, Over) for name in MANY] + [(name, Within) for name in MANY if name not in NARROW]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_no_record_is_off_by_more(name: str, kind: type[Asked]) -> None:
    """One by one, so that whatever records there are, they are off by no more together.

    Those that are off by most on one side are together off by a good part of what is allowed.
    """
    generator, dim = np.random.default_rng(11), MANY[name][2]
    points = places(dim, generator)
    pair, tables = drawn(name, points)
    low, high = ends(pair, np.zeros(dim), generator)
    question = asked(low, high, kind)
    reading = pair.read(question)
    off = np.stack([reading.values(row) for row in tables], axis=1)
    off -= shares(pair, points, low, high, kind)
    allowed = np.stack([pair.box_bound(question, row).most for row in tables[::3]], axis=1)
    assert (np.abs(off[:, ::3]) <= allowed + 1e-6).all()
    row = int(off.max(axis=1).argmax())
    worst = off[row] > 0.3 * off[row].max()
    heaps = pair.box_bound(question, tables[worst].sum(axis=0)).most[row]
    assert off[row, worst].sum() > (0.3 if dim == 1 else 0.05) * heaps  # it is no idle bound


def test_several_heaps_are_off_by_more_than_one_is_allowed() -> None:
    """A heap in each interval of the mesh: all are off to one side, and the table shows none.

    The bias is several times what one heap is allowed, and within what any records are.
    """
    pair, _ = drawn("wide", np.zeros((1, 1)))
    assert isinstance(pair, SplinePair)
    (axis,) = pair.grid.axes
    question = asked(*(np.array([[end]]) for end in (0.3, np.inf)))
    ratios = []
    for phase in np.linspace(0.05, 0.95, 19):
        heaps = (phase + np.arange(axis.intervals)) * axis.spacing / (2 * axis.half)
        points = heaps[heaps < 1][:, np.newaxis]
        tables = drawn("wide", points)[1]
        table = tables.sum(axis=0)
        truth = shares(pair, points, np.array([[0.3]]), np.array([[np.inf]]), Over).sum()
        bias = abs(float(pair.read(question).values(table)[0]) - truth)
        assert bias <= pair.box_bound(question, table).most[0]
        ratios.append(bias / pair.box_bias(question, table, 0.0)[0])
    assert max(ratios) > 5


@pytest.mark.parametrize("seed", range(6))
def test_products_of_brackets(seed: int) -> None:
    """Against all weights multiplied out: what is allowed for, and the lengths of the ends."""
    generator = np.random.default_rng(seed)
    tensor = generator.normal(0.5, 1.0, size=(3, 4, 5))
    brackets = []
    for size, rows in zip(tensor.shape, (2, 1, 2), strict=True):
        weights, above, below = generator.uniform(size=(3, rows, size))
        brackets.append(Bracket(weights, 0.1 * above, 0.2 * below))
    most, norms = allowance(tensor, brackets)
    for row in range(2):
        w, p, q = (
            [np.broadcast_to(b[part], (2, b[part].shape[1]))[row] for b in brackets]
            for part in range(3)
        )
        u = [a + b for a, b in zip(w, p, strict=True)]
        gaps = [a + b for a, b in zip(p, q, strict=True)]

        def product(parts: list[Floats]) -> Floats:
            return np.asarray(np.einsum("a,b,c->abc", *parts))

        upper = product(u)
        lower = upper - sum(product([*u[:k], gaps[k], *u[k + 1 :]]) for k in range(3))
        sums = [float((weights * tensor).sum()) for weights in (lower, product(w), upper)]
        assert most[row] == pytest.approx(max(sums[2] - sums[1], sums[1] - sums[0], 0.0))
        lengths = [np.linalg.norm(weights) for weights in (lower, upper)]
        assert norms[row] == pytest.approx(max(lengths))


@pytest.mark.parametrize("name", ["line", "copies"])
def test_norms_are_those_of_what_ends_are_read_with(name: str) -> None:
    """In the units of readings: the ends vary as much as the norm says, over noise on the cells."""
    dim = FAMILIES[name][2]
    generator = np.random.default_rng(5)
    pair, table = summed(name, generator.uniform(size=(1000, dim)))
    low, high = np.full((1, dim), -2.0), np.full((1, dim), 1.0)
    question = asked(low, high)
    reading, (known,), (norm,) = pair.read(question), *pair.box_bound(question, table)
    scale = 0.01 * known * 2.0**pair.bits
    ends_of = []
    for _ in range(300):
        noisy = table + generator.normal(0, scale, len(table))
        allowed = pair.box_bound(question, noisy).most[0]
        middle = reading.values(noisy)[0]
        ends_of.append((middle - allowed, middle + allowed))
    spread = np.std(ends_of, axis=0).max() / scale
    # A spread is known to 4%; of two nearly equal allowances the larger may vary a little less.
    assert 0.75 * norm < spread < 1.25 * norm


def test_whole_lines_are_exact() -> None:
    for name in FAMILIES:
        pair, table = summed(name, np.full((10, FAMILIES[name][2]), 0.3))
        whole = np.full((1, FAMILIES[name][2]), np.inf)
        assert pair.box_bound(asked(-whole, whole), table).most == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize(
    "name", ["plane", "histogram", "copies", "constant", "tilted", "arched", "narrow", "space"]
)
def test_no_record_is_off_by_more_in_a_region_of_strips(name: str) -> None:
    """A triangle by strips, all other columns left whole: each record on its own."""
    generator, dim = np.random.default_rng(6), MANY[name][2]
    points = places(dim, generator)[:60]
    pair, tables = drawn(name, points)
    x, weights = np.polynomial.legendre.leggauss(24)
    half = pair.frame.halves()
    assert half is not None
    width = 0.6 * half[0]
    ends_of = (np.full(24, -0.5 * half[1]), 0.5 * half[1] * x)
    question: list[Asked] = [At(width * x), Over(*ends_of), *[WHOLE] * (dim - 2)]
    coefficients = weights * width / pair.frame.kernel.shape.integral(1)
    reading = pair.read(question).gathered(coefficients)
    located = pair.frame.locate(points)
    heights = np.exp(-((located[:, :1] - width * x) ** 2))
    upper, lower = (ndtr((end - located[:, 1:2]) * math.sqrt(2)) for end in ends_of[::-1])
    truth = (heights * (upper - lower)) @ coefficients
    off = np.array([reading.values(row)[0] for row in tables]) - truth
    allowed = [pair.region_bound(question, coefficients, row) for row in tables]
    assert (np.abs(off) <= np.array([bound.most[0] for bound in allowed]) + 1e-6).all()
    worst = off > 0.3 * off.max()
    bound = pair.region_bound(question, coefficients, tables[worst].sum(axis=0))
    assert off[worst].sum() > 0.05 * bound.most[0]
    cells = generator.normal(size=(400, len(tables[0])))
    far = 1e3 * bound.most[0] / bound.norms[0]  # so that one side is larger throughout
    moved = [pair.region_bound(question, coefficients, far * row).most[0] for row in cells]
    # The larger of two normal numbers, or zero where both are below.
    assert 0.3 < np.sqrt(np.mean(np.square(moved))) / far / bound.norms[0] < 1.3
