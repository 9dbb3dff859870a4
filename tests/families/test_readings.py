"""Readings: integrals of what a table answers, against quadrature and sums over all weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from dpkde.families.base import Family, Pair
from dpkde.families.reading import WHOLE, Asked, At, Over, Within
from dpkde.kernels import Kernel

Floats = NDArray[np.float64]
POINTS = np.concatenate(
    [
        np.random.default_rng(1).normal((0.3, 0.5), 0.15, size=(900, 2)),
        np.random.default_rng(2).uniform(0, 1, size=(300, 2)),
    ]
)
BOX = np.array([[0.1, 0.45], [0.2, 0.7]])
NARROW = dpkde.Spline(degree=(3, 1), spacing=(0.5, 30.0))
ARCHED = dpkde.Spline(degree=(1, 1), spacing=(30.0, 30.0), arch=3000)
SERVED: dict[str, tuple[Kernel, Family]] = {
    "gaussian": (dpkde.Gaussian(0.1), dpkde.Spline(3, 0.5)),
    "per axis": (dpkde.Gaussian([0.1, 0.3]), dpkde.Spline((2, 3), (0.8, 0.4))),
    "ridge": (dpkde.Gaussian(0.1), dpkde.Spline(3, 0.7, ridge=0.05)),
    "laplacian": (dpkde.Laplacian(0.1), dpkde.Spline(2, 0.5)),
    "cauchy": (dpkde.Cauchy(0.1), dpkde.Spline(2, 1.0)),
    "hat": (dpkde.Hat(0.1), dpkde.Spline(3, 0.5)),
    "tilted": (dpkde.Gaussian([0.1, 0.8]), NARROW),
    "tilted laplacian": (dpkde.Laplacian([0.1, 0.8]), NARROW),
    "tilted cauchy": (dpkde.Cauchy([0.1, 0.8]), NARROW),
    "tilted hat": (dpkde.Hat([0.1, 1.5]), NARROW),
    "constant": (dpkde.Gaussian([0.1, 2.0]), dpkde.Spline((3, 0), (0.5, 1.0))),
    "arched": (dpkde.Gaussian([0.9, 0.7]), ARCHED),
    "arched laplacian": (dpkde.Laplacian([0.9, 0.7]), ARCHED),
    "fastgauss": (dpkde.Gaussian(0.1), dpkde.FastGauss(5, cutoff=6.0)),
    "copies": (dpkde.Gaussian(0.2), dpkde.FastGauss(1, cutoff=6.0, repetitions=3)),
    "fourier": (dpkde.Gaussian(0.1), dpkde.Fourier(64)),
    "phase": (dpkde.Gaussian(0.1), dpkde.Fourier(64, form="phase")),
    "matern": (dpkde.Matern(1.5, 0.1), dpkde.Fourier(32)),
}


def noiseless(kernel: Kernel, family: Family, points: Floats = POINTS) -> dpkde.Release:
    """Return a release whose noise is some 10⁻⁹."""
    bounds = [(0.0, 1.0)] * points.shape[1]
    plan = dpkde.plan(kernel=kernel, bounds=bounds, epsilon=10**6, family=family, seed=5)
    return dpkde.publish(dpkde.sketch(points, plan), epsilon=10**6)


def quadrature(release: Any, box: Floats, panels: int = 12) -> float:
    """Return the integral of `kde` over a box, over that of the kernel: slow and obvious."""
    points, weights = np.polynomial.legendre.leggauss(8)
    axes, masses = [], []
    for low, high in box:
        half = (high - low) / panels / 2
        middles = low + half * (2 * np.arange(panels) + 1)
        axes.append((middles[:, np.newaxis] + half * points).reshape(-1))
        masses.append(np.tile(half * weights, panels))
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(box))
    mass = math.prod(np.meshgrid(*masses, indexing="ij"))
    values = release.kde(grid, clip=False, assisted=False)
    return float(values @ np.reshape(mass, -1) / release.kernel.integral(release.dim))


@pytest.mark.parametrize("name", SERVED)
def test_shares_are_the_integral_of_the_answers(name: str) -> None:
    release = noiseless(*SERVED[name])
    share = float(release.mass(BOX, clip=False, assisted=False))
    assert share == pytest.approx(quadrature(release, BOX), abs=1e-6)


@pytest.mark.parametrize("name", [n for n in SERVED if n not in ("fourier", "phase", "matern")])
def test_shares_add_up_to_all_records(name: str) -> None:
    release = noiseless(*SERVED[name])
    cuts = [-np.inf, -0.3, 0.2, 0.25, 1.4, np.inf]
    for axis in (0, 1):
        boxes = np.full((5, 2, 2), [-np.inf, np.inf])
        boxes[:, axis] = np.column_stack([cuts[:-1], cuts[1:]])
        shares = release.mass(boxes, clip=False)
        assert shares.sum() == pytest.approx(float(release.mass([(None, None)] * 2, clip=False)))
        assert shares.sum() == pytest.approx(1.0, abs=1e-6)


def _pair(name: str) -> Pair:
    kernel, family = SERVED[name]
    return dpkde.plan(kernel=kernel, bounds=[(0, 1)] * 2, epsilon=1, family=family, seed=5).pair


def _asked(name: str) -> list[Asked]:
    low, high = np.array([-0.4, -1.0, -np.inf]), np.array([0.3, np.inf, 0.1])
    places = np.array([0.2, -0.3, 0.0])
    if name in ("fourier", "phase"):
        return [Over(low, high), At(places)]
    return [Over(low, high, np.array([0.2, 0.0, 0.5])), At(places)]


@pytest.mark.parametrize("name", [n for n in SERVED if n != "matern"])
def test_fast_sums_are_those_of_all_weights(name: str) -> None:
    """Every row as weights of all cells is the slow twin of sums, lengths and inner products."""
    pair = _pair(name)
    reading, other = pair.read(_asked(name)), pair.read(_asked(name)[::-1])
    table = np.random.default_rng(3).normal(size=pair.bounds.cells)
    rows = [reading.part(slice(i, i + 1)).gathered(np.ones(1)) for i in range(3)]
    others = [other.part(slice(i, i + 1)).gathered(np.ones(1)) for i in range(3)]
    np.testing.assert_allclose(
        reading.values(table), np.concatenate([row.values(table) for row in rows]), rtol=1e-9
    )
    norms = np.concatenate([row.norms() for row in rows])
    np.testing.assert_allclose(reading.norms(), norms, rtol=1e-9)
    inner = [a.inner(b)[0] for a, b in zip(rows, others, strict=True)]
    np.testing.assert_allclose(reading.inner(other), inner, rtol=1e-9, atol=1e-12)
    weights = reading.weights().dense()
    np.testing.assert_allclose(np.sqrt(weights.values**2 @ weights.counts), norms, rtol=1e-9)
    summed = reading.gathered(np.array([1.0, -2.0, 0.5])).values(table)
    expected = reading.values(table) @ [1.0, -2.0, 0.5]
    np.testing.assert_allclose(summed, [expected], rtol=1e-8)


@pytest.mark.parametrize("name", [n for n in SERVED if n != "matern"])
def test_places_are_queries(name: str) -> None:
    """Asked at a place on every axis, a table answers as it does to a query."""
    pair, queries = _pair(name), np.random.default_rng(4).uniform(-0.1, 1.1, size=(20, 2))
    table = np.random.default_rng(3).normal(size=pair.bounds.cells)
    located = pair.frame.locate(queries)
    reading = pair.read([At(located[:, 0]), At(located[:, 1])])
    answers, norms = pair.respond(queries, table), pair.response_norm(queries)
    # Fourier rounds queries to steps.
    tolerance = 1e-3 if name in ("fourier", "phase") else 1e-9
    size = float(np.abs(answers).max())
    np.testing.assert_allclose(reading.values(table), answers, rtol=1e-6, atol=tolerance * size)
    np.testing.assert_allclose(reading.norms(), norms, rtol=max(tolerance, 1e-6))


def test_the_whole_line_counts_every_record_once() -> None:
    for name in ("gaussian", "tilted", "constant", "arched", "fastgauss", "copies"):
        pair = _pair(name)
        counts = np.ones(len(POINTS), dtype=np.bool_)
        coordinates = pair.frame.place_plainly(POINTS)[0]
        sums = pair.quantize(coordinates, counts).astype(np.float64)
        shares = [float(pair.read([WHOLE, WHOLE]).values(row)[0]) for row in sums[:50]]
        np.testing.assert_allclose(shares, 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("family", "error"),
    [(dpkde.Spline(2, 0.25), 0.02), (dpkde.FastGauss(4), 0.03), (dpkde.FastGauss(1), 0.05)],
)
def test_records_in_a_box(family: Family, error: float) -> None:
    points = POINTS[((POINTS > 0) & (POINTS < 1)).all(axis=1)]
    release = noiseless(dpkde.Gaussian(0.1), family, points)
    boxes = np.array([BOX, [[0, 0.5], [0.5, 1]], [[-np.inf, np.inf], [0.3, 2]], [[0, 1], [0, 1]]])
    truth = [((points >= b[:, 0]) & (points <= b[:, 1])).all(axis=1).mean() for b in boxes]
    shares = release.mass(boxes, smoothed=False)
    np.testing.assert_allclose(shares, truth, atol=error)
    assert shares[3] == pytest.approx(1.0, abs=1e-6)  # what reaches the bounds holds all
    # Smoothing moves much more than that over the edges.
    assert abs(float(release.mass(boxes)[0]) - truth[0]) > 0.04


def test_cells_of_the_fast_gauss_transform_are_exact() -> None:
    """With whole cells there is nothing to fit: the share is that of the records."""
    release = noiseless(dpkde.Gaussian(0.1), dpkde.FastGauss(3), POINTS.clip(0, 1))
    shares = release.mass([(0.2, 0.6), (0.1, 0.5)], smoothed=False)
    inside = (POINTS >= [0.2, 0.1]) & (POINTS < [0.6, 0.5])
    assert float(shares) == pytest.approx(inside.all(axis=1).mean(), abs=1e-6)


def test_what_a_family_cannot_tell_is_refused() -> None:
    with pytest.raises(dpkde.ParameterError, match="narrower than the bandwidth"):
        _pair("tilted").read([Within(*np.zeros((2, 1))), Within(*np.zeros((2, 1)))])
    with pytest.raises(dpkde.ParameterError, match="through the kernel only"):
        _pair("fourier").read([Within(*np.zeros((2, 1))), Within(*np.zeros((2, 1)))])
    free = dpkde.plan(
        kernel=dpkde.Gaussian(0.1), epsilon=1, family=dpkde.Fourier(8), seed=1, dim=2
    ).pair
    with pytest.raises(dpkde.ParameterError, match="finite ends"):
        free.read([WHOLE, WHOLE])
    hashed = dpkde.plan(
        kernel=dpkde.Laplacian(0.1),
        bounds=[(0, 1)],
        epsilon=1,
        family=dpkde.Hashing(8, 8),
        seed=1,
    ).pair
    with pytest.raises(dpkde.ParameterError, match="answers at points only"):
        hashed.read([WHOLE])
