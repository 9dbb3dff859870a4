"""Quadratic forms of spline tables against integrals and sums over pairs, done the slow way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde.families.spline.energy import Waves
from dpkde.families.spline.grid import Axis, Grid

KERNELS = [dpkde.Gaussian(1.0), dpkde.Laplacian(1.0), dpkde.Cauchy(1.0), dpkde.Hat(1.0)]
ROWS = np.random.default_rng(0).uniform(-1.5, 1.5, (300, 1))


def _pair(family: Any, kernel: Any, bounds: Any) -> Any:
    return dpkde.plan(kernel=kernel, bounds=bounds, epsilon=1, family=family).pair


def _table(pair: Any, rows: Any) -> Any:
    return pair.quantize(*pair.frame.place_plainly(rows)).sum(axis=0).astype(np.float64)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize(
    "family",
    [dpkde.Spline(1, 0.3), dpkde.Spline(2, 0.7), dpkde.Spline(3, 0.9, ridge=0.1)],
    ids=["1", "2", "3 with a ridge"],
)
def test_one_axis(kernel: Any, family: Any) -> None:
    pair = _pair(family, kernel, [(-1.5, 1.5)])
    table = _table(pair, ROWS)
    energy = pair.energies(table)(pair.frame)
    far = 400.0 if kernel.name == "cauchy" else 16.0
    y = np.concatenate([np.linspace(-3, 3, 12_001), np.geomspace(3, far, 4000)[1:]])
    y = np.concatenate([-y[:12_000:-1], y])
    squares = pair.respond(y[:, np.newaxis], table) ** 2
    assert energy.answers == pytest.approx(np.trapezoid(squares, y), rel=2e-3)
    exact = kernel.evaluate(ROWS, ROWS)
    tolerance = 0.02 if kernel.name in ("gaussian", "cauchy") else 0.1
    assert energy.pairs == pytest.approx(exact.sum(), rel=tolerance)
    own = np.mean([pair.energies(_table(pair, row[np.newaxis]))(pair.frame).pairs for row in ROWS])
    assert energy.itself == pytest.approx(own, rel=0.02)


@pytest.mark.parametrize("arch", [0, 5000])
def test_narrow_axes(arch: int) -> None:
    """One splined axis, a line, and a constant, with the curvature of both or without it."""
    kernel = dpkde.Gaussian([0.5, 1.0, 1.0])
    bounds = [(-0.5, 0.5), (-0.4, 0.4), (-0.3, 0.3)]
    pair = _pair(dpkde.Spline((3, 1, 0), (0.5, 0.8, 1.0), arch=arch), kernel, bounds)
    assert pair.grid.group == 2 + (arch > 0)
    generator = np.random.default_rng(1)
    rows = generator.uniform(-1, 1, (1500, 3)) * [0.5, 0.4, 0.3]
    if arch:  # which sees that records lie at the ends
        rows[:, 1] = 0.4 * generator.choice([-1, 1], 1500) * generator.beta(3, 1, 1500)
    table = _table(pair, rows) + 2.0**pair.bits * generator.normal(size=pair.bounds.cells)
    energy = pair.energies(table)(pair.frame)
    sides = [np.linspace(-2.4, 2.4, 41), np.linspace(-4.4, 4.4, 41), np.linspace(-4.3, 4.3, 41)]
    grid = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 3)
    cell = np.prod([side[1] - side[0] for side in sides]) / 0.5  # in bandwidths
    squares = pair.respond(grid, table) ** 2
    assert energy.answers == pytest.approx(float(squares.sum()) * cell, rel=1e-3)
    # Answers at the records themselves add up to the sum over pairs, as far as splines follow them.
    clean = _table(pair, rows)
    answers = float(pair.respond(rows, clean).sum())
    assert pair.energies(clean)(pair.frame).pairs == pytest.approx(answers, rel=5e-3)
    assert answers == pytest.approx(kernel.evaluate(rows, rows).sum(), rel=0.02)


def test_several_axes_are_a_kronecker_product() -> None:
    """Against the matrix of all cells, from answers to tables with a single cell."""
    pair = _pair(dpkde.Spline((2, 3), (0.6, 0.5)), dpkde.Gaussian(1.0), [(-1, 1), (-0.5, 0.5)])
    generator, cells = np.random.default_rng(2), pair.bounds.cells
    table = generator.normal(size=cells) * 2.0**pair.bits
    side = np.linspace(-7, 7, 141)
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    squares = pair.respond(grid, table) ** 2
    energy = pair.energies(table)(pair.frame)
    assert energy.answers == pytest.approx(float(squares.sum()) * 0.1**2, rel=1e-4)
    units = np.eye(cells) * 2.0**pair.bits
    single = [pair.energies(unit)(pair.frame) for unit in units]
    assert energy.answers_trace == pytest.approx(sum(each.answers for each in single))
    assert energy.pairs_trace == pytest.approx(sum(each.pairs for each in single))


def test_long_axes_are_transformed() -> None:
    """Against matrices as they are, for one, two and three axes, and a group of narrow ones."""
    from scipy.linalg import toeplitz

    generator = np.random.default_rng(3)
    for shape, narrow in (((100,), 0), ((70, 90), 1), ((80, 5, 66), 0), ((9, 8), 2), ((66, 7), 2)):
        axes = tuple(Axis(k, 1.0, 1, 0.1, 0.0, nodes - 1) for k, nodes in enumerate(shape))
        tilts = tuple((len(shape) + k, 0.1, 9) for k in range(narrow))
        grid = Grid(axes, tuple((k, half) for k, half, _ in tilts), tilts)
        table = generator.normal(size=grid.cells)
        columns = [generator.normal(size=nodes) for nodes in shape]
        matrix = generator.normal(size=(1 + narrow, 1 + narrow))
        matrix = matrix + matrix.T
        applied = np.tensordot(matrix, table.reshape(-1, *shape), axes=1)
        for k, column in enumerate(columns, start=1):
            applied = np.moveaxis(np.tensordot(toeplitz(column), applied, axes=(1, k)), 0, k)
        expected = float((applied.reshape(-1) * table).sum())
        assert Waves.of(table, grid).form(columns, matrix) == pytest.approx(expected, rel=1e-9)
