"""Intervals of shares where records are heaped so as to be off by most: how often they hold.

    python benchmarks/regions.py [--draws 20000] [--trials 40] [--dims 1 2 3]

For each family and number of columns boxes are drawn, some of them open, and nine tenths of 20,000
records are set up against each of them:

* one, two or four heaps near a face, of the places where a record counts too much (or too little)
  those where it does so by most;
* a heap in each cell of the mesh, all at one phase of it, whose table is level;
* hidden ones: of all records that make the same table as spread-out ones, those that are off by
  most (a linear program), which no reading of the table can tell from those;
* none: all are spread out.

Of the trials of each kind the one whose default interval of level 0.95 should hold least often, by
its bias and what is allowed for on a table without noise, is then released many times: the same
sketch, with noise of its own each time. Printed are how often the interval held with
``bias="worst"`` (the default), ``bias="typical"`` and no allowance at all; the bias, in standard
errors; and the mean lengths of the first two, over that without an allowance. Last comes `Fourier`,
which has no bias, over releases with frequencies of their own.
"""

from __future__ import annotations

import argparse
import os
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import ndtr

import dpkde
from dpkde.families.base import Family
from dpkde.families.brackets import Allowance, none
from dpkde.release import regions

Floats = NDArray[np.float64]

FAMILIES: list[tuple[Family, tuple[int, ...]]] = [
    (dpkde.Spline(1, 0.5), (1, 2, 3)),
    (dpkde.Spline(1, 1.5), (1, 2)),
    (dpkde.Spline(2, 0.7), (1, 2, 3)),
    (dpkde.Spline(3, 0.7), (1, 2, 3)),
    (dpkde.Spline(2, 1.5), (1, 2, 3)),
    (dpkde.Spline(3, 2.0), (1, 2, 3)),
    (dpkde.Spline(4, 1.0), (1, 2)),
    (dpkde.Spline(5, 1.5), (1, 2, 3)),
    (dpkde.Spline((3, 1), (0.7, 30.0)), (2,)),
    (dpkde.Spline((2, 0, 3), (0.7, 1.0, 0.7)), (3,)),
    (dpkde.FastGauss(3), (1, 2, 3)),
    (dpkde.FastGauss(5), (1, 2)),
]
LEVEL, ROWS, CANDIDATES = 0.95, 20_000, 1000
KINDS = ("1 heap", "2 heaps", "4 heaps", "lattice", "hidden", "spread")
BANDWIDTHS = {1: 0.05, 2: 0.1, 3: 0.25}
WIDE = 2.0
"""The bandwidth of an axis that is narrower than it."""


class Case(NamedTuple):
    """The sketch of some records, and a box."""

    sketch: dpkde.Sketch
    box: Floats
    truth: float
    bias: float


def planned(family: Family, dim: int, epsilon: float) -> dpkde.Plan:
    """Return a plan for the unit cube."""
    bandwidths = np.full(dim, BANDWIDTHS[dim])
    if isinstance(family, dpkde.Spline) and isinstance(family.degree, tuple):
        narrow = [
            degree == 0 or h > 10
            for degree, h in zip(family.degree, pitches_of(family, dim), strict=True)
        ]
        bandwidths[narrow] = WIDE
    return dpkde.plan(
        kernel=dpkde.Gaussian(bandwidths.tolist()),
        bounds=[(0, 1)] * dim,
        epsilon=epsilon,
        family=family,
        expected_rows=ROWS,
    )


def box_of(dim: int, generator: np.random.Generator) -> Floats:
    """Return a box with a face in the middle; others may be open."""
    box = np.sort(generator.uniform(size=(dim, 2)), axis=1)
    box[generator.random(dim) < 0.3, 1] = np.inf
    box[1:][generator.random(dim - 1) < 0.3] = (-np.inf, np.inf)
    box[0, 0] = generator.uniform(0.3, 0.7)
    box[0, 1] = np.inf if generator.random() < 0.5 else min(box[0, 0] + generator.uniform(), 2)
    return box


def shares(points: Floats, box: Floats, sigma: Floats) -> Floats:
    """Return the share of each smoothed record: e^{−t²} is a normal law of variance ½."""
    spread = sigma / np.sqrt(2)
    return np.asarray(
        (ndtr((box[:, 1] - points) / spread) - ndtr((box[:, 0] - points) / spread)).prod(axis=1)
    )


def off_by(plan: dpkde.Plan, points: Floats, box: Floats) -> tuple[Floats, Floats]:
    """Return by how much each record counts too much in a box, and its table."""
    coordinates = plan.frame.place_plainly(points)[0]
    everyone = np.ones(len(points), dtype=np.bool_)
    tables = plan.pair.quantize(coordinates, everyone).astype(np.float64)
    probe = dpkde.publish(dpkde.sketch(points[:1], plan), epsilon=10**6)
    reading = next(regions.regions(probe, box[np.newaxis]).pieces()).reading
    counted = np.array([reading.values(table)[0] for table in tables])
    return counted - shares(points, box, bandwidths_of(plan)), tables


def set_up(kind: str, plan: dpkde.Plan, box: Floats, generator: np.random.Generator) -> Floats:
    """Return records for a box."""
    dim = plan.dim
    points = generator.uniform(size=(ROWS, dim))
    if kind == "spread":
        return points
    places = generator.uniform(size=(CANDIDATES if dim > 1 else 400, dim))
    heaped = ROWS * 9 // 10
    if kind == "lattice":
        sigma = bandwidths_of(plan)
        pitches = sigma * pitches_of(plan.family, dim)
        axes = [
            np.arange(generator.uniform() * pitch, 1, pitch) if pitch < 1 else np.array([0.5])
            for pitch in pitches
        ]
        places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dim)
        points[:heaped] = places[np.arange(heaped) % len(places)]
        return points
    off, tables = off_by(plan, places, box)
    off = off * generator.choice([-1, 1])
    if kind == "hidden":
        used = np.abs(tables).sum(axis=0) > 0
        cells = tables[:, used] / 2.0**plan.pair.bits
        solution = linprog(-off, A_eq=cells.T, b_eq=cells.mean(axis=0), method="highs")
        weights = np.maximum(solution.x, 0.0) if solution.status == 0 else np.ones(len(off))
        counts = np.floor(weights / weights.sum() * ROWS).astype(int)
        hidden = np.repeat(places, counts, axis=0)
        points[: len(hidden)] = hidden
        return points
    order = np.argsort(off)[::-1]
    best = order[: max(8, len(order) // 50)]
    chosen = generator.choice(best, int(kind[0]), replace=False)
    points[:heaped] = places[chosen][np.arange(heaped) % len(chosen)]
    return points


def pitches_of(family: Family, dim: int) -> Floats:
    """Return the pitch of the mesh along each axis, in bandwidths; of fast Gauss one cell."""
    if isinstance(family, dpkde.Spline):
        return np.broadcast_to(np.asarray(family.spacing, dtype=np.float64), dim)
    return np.ones(dim)


def bandwidths_of(plan: dpkde.Plan) -> Floats:
    """Return the bandwidth of each axis."""
    return np.broadcast_to(np.asarray(plan.kernel.bandwidth.value, dtype=np.float64), plan.dim)


def held(half: Floats, error: Floats, bias: Floats) -> Floats:
    """Return how often a normal error and a bias are within a half width."""
    return np.asarray(ndtr((half - bias) / error) - ndtr((-half - bias) / error))


def worst_case(kind: str, plan: dpkde.Plan, trials: int, epsilon: float, seed: int) -> Case:
    """Return the trial whose interval should hold least often."""
    generator = np.random.default_rng(seed)
    cases, often = [], []
    for _ in range(trials):
        box = box_of(plan.dim, generator)
        points = set_up(kind, plan, box, generator)
        sigma = bandwidths_of(plan)
        sketch, truth = dpkde.sketch(points, plan), float(shares(points, box, sigma).mean())
        precise = dpkde.publish(sketch, epsilon=10**6)
        release = dpkde.publish(sketch, epsilon=epsilon)
        bias = float(precise.mass(box, clip=False)) - truth
        table, error = precise.table.astype(np.float64), float(release.mass_standard_error(box))
        piece = next(regions.regions(precise, box).pieces())
        most = piece.worst_bias(plan.pair, table).most / ROWS
        one = np.array([error])
        allowed = regions.widened(1.96 * one, one, most, LEVEL)
        often.append(float(held(allowed, one, np.array([bias]))[0]))
        cases.append(Case(sketch, box, truth, bias))
    return cases[int(np.argmin(often))]


def measured(case: Case, epsilon: float, draws: int) -> tuple[list[float], float, list[float]]:
    """Return how often intervals hold, by what they allow for; the bias; and the lengths."""
    release = dpkde.publish(case.sketch, epsilon=epsilon)
    law, count_law = release.law("table"), release.law("count")
    assert law is not None
    assert count_law is not None
    precise = dpkde.publish(case.sketch, epsilon=10**6).table
    piece = next(regions.regions(release, case.box).pieces())
    view = regions.sight(release, None)
    counts = np.maximum(ROWS + count_law.sample(draws, os.urandom), 1)
    sums, found = np.empty(draws), []
    for i in range(draws):
        table = (precise + law.sample(len(precise), os.urandom)).astype(np.float64)
        sums[i] = piece.reading.values(table)[0]
        found.append(
            [piece.bias(kind, view, table, sums[i : i + 1]) for kind in ("worst", "typical")]
        )
    allowed = [
        Allowance(
            *(np.array([getattr(row[k], part)[0] for row in found]) for part in Allowance._fields)
        )
        for k in range(2)
    ]
    alike = next(regions.regions(release, np.tile(case.box, (draws, 1, 1))).pieces()).reading
    half = [
        regions.half_width(view, alike, precise.astype(np.float64), sums, bias, LEVEL)
        * (view.rows / counts)
        for bias in (*allowed, none(draws))
    ]
    away = np.abs(sums / counts - case.truth)
    rates = [float((away <= width).mean()) for width in half]
    spread = float(release.mass_standard_error(case.box))
    lengths = [float(width.mean() / half[2].mean()) for width in half[:2]]
    return rates, case.bias / spread, lengths


def waves(dim: int, epsilon: float, draws: int) -> float:
    """Return how often intervals of `Fourier` hold, over releases: four heaps near a face."""
    generator, sigma = np.random.default_rng(dim), np.full(dim, 2 * BANDWIDTHS[dim])
    box, kept = box_of(dim, generator), 0
    points = generator.uniform(size=(ROWS, dim))
    points[: ROWS * 9 // 10] = generator.uniform(0.3, 0.7, (4, dim))[np.arange(ROWS * 9 // 10) % 4]
    box[~np.isfinite(box)] = np.where(box[~np.isfinite(box)] < 0, -1, 2)
    truth = float(shares(points, box, sigma).mean())
    for seed in range(draws):
        release = dpkde.publish(
            points,
            kernel=dpkde.Gaussian(float(sigma[0])),
            bounds=[(0, 1)] * dim,
            epsilon=epsilon,
            family=dpkde.Fourier(500),
            seed=seed,
        )
        low, high = release.mass_interval(box, LEVEL, assisted=False)
        kept += bool(low <= truth <= high)
    return kept / draws


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--dims", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--epsilons", type=float, nargs="*", default=[0.2, 1.0])
    options = parser.parse_args()
    print("table, ε, records: held (typical, no allowance), bias in standard errors, lengths")
    for dim in options.dims:
        least = dict.fromkeys(KINDS, 1.0)
        for family, dims in FAMILIES:
            for epsilon in options.epsilons if dim in dims else ():
                plan = planned(family, dim, epsilon)
                for kind in KINDS:
                    case = worst_case(kind, plan, options.trials, epsilon, seed=dim)
                    rates, bias, lengths = measured(case, epsilon, options.draws)
                    least[kind] = min(least[kind], rates[0])
                    print(
                        f"{plan.layout.summary}, {dim} columns, {epsilon}, {kind}: "
                        f"{rates[0]:.4f} ({rates[1]:.4f}, {rates[2]:.4f}), {bias:+.2f}, "
                        f"{lengths[0]:.2f} ({lengths[1]:.2f})",
                        flush=True,
                    )
        print(f"{dim} columns, least: " + ", ".join(f"{k} {v:.4f}" for k, v in least.items()))
        for epsilon in options.epsilons:
            rate = waves(dim, epsilon, 300)
            print(f"waves, {dim} columns, {epsilon}, 4 heaps, 300 releases: {rate:.4f}", flush=True)


if __name__ == "__main__":
    main()
