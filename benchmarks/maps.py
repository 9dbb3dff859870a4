"""Maps against the field: ours denoised, the noisy grid that people write, quadtrees.

    DPKDE_DATA=folder python benchmarks/maps.py [taxi|uk ...] [--releases 5]

The truth is the KDE of all records over a grid of the bounds. At the same ε and under add-remove:

* *ours*: `publish` with its defaults, then `denoise`;
* *noisy grid*: counts in square cells with Laplace noise of scale 1/ε, negative ones set to zero,
  smoothed with the kernel; the cell size that is best on the answers, by each measure;
* *quadtree*: after *Differentially Private Heatmaps* (Ghazi and others, AAAI 2023). Counts of the
  cells of a quadtree; ε is shared out over its levels, most of it at the level where the tree
  begins to be pruned; from the root down only the w largest noisy cells of a level are divided
  further. Top down, children share their parent's mass such that their noisy counts change least
  in sum (a tree-wise L1 projection), none below zero; cells that are not divided spread theirs
  evenly. Smoothed with the kernel. Depth, w and the way ε is shared are those that are best on the
  answers, by each measure.

Maps are compared as distributions over the grid: similarity Σ min(p, q) and Pearson's correlation
(more is better), Kullback–Leibler divergence of the truth from the map, earth mover's distance in
units of the bandwidth along streets (‖·‖₁, exact, on a coarser grid) and the mean absolute error of
KDE values over the map (less is better); and processor time.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array, hstack

import dpkde
from denoising import SETS, kernel_means

Array = NDArray[np.float64]
Generator = np.random.Generator

SHAPE, COARSE = (192, 96), (24, 24)
EPSILONS = ("0.05", "0.2", "1")
CELLS = (16, 32, 64, 128, 256)
DEPTHS, KEPT, FALLS = (6, 7, 8), (32, 128, 512, 4096), (0.5, 0.8, 1.0)
MEASURES = ("similarity", "correlation", "divergence", "moved", "error")
MORE_IS_BETTER = ("similarity", "correlation")


class Place(NamedTuple):
    """Records, what is public of them, and the true map."""

    records: Array
    bounds: list[tuple[float, float]]
    bandwidth: float
    axes: list[Array]
    truth: Array

    @classmethod
    def of(cls, name: str, folder: Path) -> Place:
        """Read a data set."""
        file, bandwidth, bounds = SETS[name]
        with np.load(folder / f"{file}.npz") as held:
            records = np.clip(held["X"].astype(np.float64), *np.array(bounds).T)
        axes = [_middles(*pair, count) for pair, count in zip(bounds, SHAPE, strict=True)]
        return cls(records, bounds, bandwidth, axes, kernel_means(records, axes, bandwidth))

    def counts(self, shape: tuple[int, int]) -> Array:
        """Return how many records are in each cell of a grid over the bounds."""
        return np.histogramdd(self.records, bins=list(shape), range=self.bounds)[0]

    def smoothed(self, weights: Array) -> Array:
        """Return the KDE map of weights at the centers of such cells, of total mass one."""
        sides = [
            np.exp(-(np.subtract.outer(axis, _middles(*pair, count)) ** 2) / self.bandwidth**2)
            for axis, pair, count in zip(self.axes, self.bounds, weights.shape, strict=True)
        ]
        return np.asarray(sides[0] @ weights @ sides[1].T / max(weights.sum(), 1e-300))


def _middles(low: float, high: float, count: int) -> Array:
    return low + (np.arange(count) + 0.5) * (high - low) / count


def ours(place: Place, epsilon: str) -> Array:
    """Return our map, with defaults."""
    release = dpkde.publish(
        place.records,
        kernel=dpkde.Gaussian(place.bandwidth),
        bounds=place.bounds,
        epsilon=epsilon,
    )
    points = np.stack(np.meshgrid(*place.axes, indexing="ij"), axis=-1).reshape(-1, 2)
    return release.denoise().kde(points).reshape(SHAPE)


def _our_way(place: Place, epsilon: str) -> Iterator[Callable[[], Array]]:
    yield partial(ours, place, epsilon)


def noisy_grids(
    place: Place, epsilon: float, generator: Generator
) -> Iterator[Callable[[], Array]]:
    """Yield a way to a map for each cell size; noise by floats will do for a comparison."""
    low, high = np.array(place.bounds).T
    for cells in CELLS:
        side = (high - low).max() / cells
        shape = tuple(np.maximum(np.rint((high - low) / side), 1).astype(int).tolist())

        def made(shape: tuple[int, int] = shape) -> Array:
            noisy = place.counts(shape) + generator.laplace(scale=1 / epsilon, size=shape)
            return place.smoothed(np.maximum(noisy, 0.0))

        yield made


def quadtrees(place: Place, epsilon: float, generator: Generator) -> Iterator[Callable[[], Array]]:
    """Yield a way to a map for each depth, number of cells kept and way to share ε."""
    for depth, kept, fall in itertools.product(DEPTHS, KEPT, FALLS):

        def made(depth: int = depth, kept: int = kept, fall: float = fall) -> Array:
            middle = np.log2(kept) / 2
            parts = fall ** np.abs(np.arange(1, depth + 1) - middle)
            shares = epsilon * parts / parts.sum()
            return place.smoothed(pruned_tree(place.counts, depth, kept, shares, generator))

        yield made


def pruned_tree(
    counts: Callable[[tuple[int, int]], Array],
    depth: int,
    kept: int,
    shares: Array,
    generator: Generator,
) -> Array:
    """Return the masses of the leaves, shape (2^depth, 2^depth).

    Each record is in one cell of each level, so the shares of ε add up.
    """
    mass, open_ = np.ones((1, 1)), np.ones((1, 1), dtype=np.bool_)
    for level in range(1, depth + 1):
        side = 1 << level
        noisy = counts((side, side)) + generator.laplace(
            scale=1 / shares[level - 1], size=(side,) * 2
        )
        if level == 1:
            mass = np.maximum(noisy.sum(keepdims=True), 1.0)
        children = noisy.reshape(side // 2, 2, side // 2, 2).transpose(0, 2, 1, 3).reshape(-1, 4)
        parents, divided = mass.reshape(-1), open_.reshape(-1)
        shared = np.where(
            divided[:, np.newaxis], _meeting(children, parents), parents[:, np.newaxis] / 4
        )
        mass = shared.reshape(side // 2, side // 2, 2, 2).transpose(0, 2, 1, 3).reshape(side, side)
        known = np.repeat(np.repeat(open_, 2, axis=0), 2, axis=1)
        scores = np.where(known, noisy, -np.inf)
        least = np.partition(scores.reshape(-1), -min(kept, scores.size))[-min(kept, scores.size)]
        open_ = known & (scores >= least)
    return mass


def _meeting(children: Array, parents: Array) -> Array:
    """Return x ≥ 0 with row sums `parents` and least Σ|x − children|: level off, or add evenly."""
    positive = np.maximum(children, 0.0)
    lacking = parents - positive.sum(axis=1)
    raised = positive + np.maximum(lacking, 0.0)[:, np.newaxis] / 4
    # Too much: all fall by the same, those at zero stop there.
    ordered = np.sort(positive, axis=1)[:, ::-1]
    falls = (np.cumsum(ordered, axis=1) - parents[:, np.newaxis]) / np.arange(1, 5)
    last = np.maximum((ordered > falls).sum(axis=1) - 1, 0)
    fall = np.take_along_axis(falls, last[:, np.newaxis], axis=1)
    lowered = np.maximum(positive - fall, 0.0)
    return np.where(lacking[:, np.newaxis] >= 0, raised, lowered)


def judged(place: Place, found: Array) -> dict[str, float]:
    """Return all measures of a map."""
    p, q = place.truth / place.truth.sum(), np.maximum(found, 0.0)
    q = q / max(q.sum(), 1e-300)
    floor = 1e-9 / p.size
    return {
        "similarity": float(np.minimum(p, q).sum()),
        "correlation": float(np.corrcoef(p.reshape(-1), q.reshape(-1))[0, 1]),
        "divergence": float((p * np.log((p + floor) / (q + floor))).sum()),
        "moved": earth_moved(_coarse(p), _coarse(q), place),
        "error": float(np.abs(found - place.truth).mean()),
    }


def _coarse(p: Array) -> Array:
    rows, columns = (n // m for n, m in zip(SHAPE, COARSE, strict=True))
    return np.asarray(p.reshape(COARSE[0], rows, COARSE[1], columns).sum(axis=(1, 3)))


def earth_moved(p: Array, q: Array, place: Place) -> float:
    """Return the least Σ mass·‖way‖₁ that takes p to q, in bandwidths.

    Ways along streets are made of steps between neighbours: a flow on the grid, by a linear
    program.
    """
    rows, columns = p.shape
    cells = np.arange(rows * columns).reshape(rows, columns)
    steps = [(cells[:-1], cells[1:], 0), (cells[:, :-1], cells[:, 1:], 1)]
    starts = np.concatenate([a.reshape(-1) for a, _, _ in steps])
    ends = np.concatenate([b.reshape(-1) for _, b, _ in steps])
    low, high = np.array(place.bounds).T
    pitch = (high - low) / np.array(p.shape) / place.bandwidth
    cost = np.concatenate([np.full(a.size, pitch[k]) for a, _, k in steps])
    count = len(starts)
    edges = np.arange(count)
    flow = coo_array(
        (
            np.concatenate([np.ones(count), -np.ones(count)]),
            (np.concatenate([starts, ends]), np.concatenate([edges, edges])),
        ),
        shape=(rows * columns, count),
    ).tocsr()
    both = hstack([flow, -flow]).tocsr()
    rest = (p - q).reshape(-1)
    # The last equation follows from the others, and rounding must not contradict it.
    answer = linprog(np.tile(cost, 2), A_eq=both[:-1], b_eq=rest[:-1], method="highs")
    return float(answer.fun)


def best_of(
    place: Place, ways: Callable[[], Iterator[Callable[[], Array]]], releases: int
) -> tuple[dict[str, float], float]:
    """Return each measure at its own best parameter, as a mean over releases; and the time."""
    table, seconds = [], 0.0
    for _ in range(releases):
        row = []
        for way in ways():
            start = time.process_time()
            found = way()
            seconds += time.process_time() - start
            row.append([judged(place, found)[name] for name in MEASURES])
        table.append(row)
    means = np.mean(table, axis=0)
    best = {
        name: float(means[:, k].max() if name in MORE_IS_BETTER else means[:, k].min())
        for k, name in enumerate(MEASURES)
    }
    return best, seconds / releases / len(means)


def main() -> None:
    """Measure and print; say where we do not lead."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(SETS))
    parser.add_argument("--releases", type=int, default=5)
    options = parser.parse_args()
    folder, behind = Path(os.environ["DPKDE_DATA"]), []
    header = "".join(f"{name:>13}" for name in MEASURES)
    print(f"{'data':<6}{'ε':>5}  {'map':<12}{header}{'seconds':>10}")
    for name in options.names or list(SETS):
        place = Place.of(name, folder)
        for epsilon in EPSILONS:
            generator = np.random.default_rng(0)
            budget = float(epsilon)
            ways = {
                "ours": partial(_our_way, place, epsilon),
                "noisy grid": partial(noisy_grids, place, budget, generator),
                "quadtree": partial(quadtrees, place, budget, generator),
            }
            entries = {label: best_of(place, way, options.releases) for label, way in ways.items()}
            for label, (measured, seconds) in entries.items():
                figures = "".join(f"{measured[key]:>13.3g}" for key in MEASURES)
                print(f"{name:<6}{epsilon:>5}  {label:<12}{figures}{seconds:>10.3g}", flush=True)
            for key in MEASURES:
                sign = -1 if key in MORE_IS_BETTER else 1
                lead = min((sign * found[key], label) for label, (found, _) in entries.items())[1]
                if lead != "ours":
                    behind.append(f"{name} at ε = {epsilon}: {key}, {lead} leads")
    print("\n".join(behind) if behind else "ours leads on every measure")


if __name__ == "__main__":
    main()
