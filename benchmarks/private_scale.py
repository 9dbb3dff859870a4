"""Bounds and bandwidth found privately, against the best that hindsight could choose.

    python benchmarks/private_scale.py [name ...] [--quick] [--releases 5]
    DPKDE_DATA=folder python benchmarks/private_scale.py --real [--quick]

**Generated mixtures** have a known density f. *Private* is ``bounds="private"`` with
``bandwidth="auto"``; *best* has the exact bounds of the records, and of a list of bandwidths,
multiples of the columns' standard deviations, the one whose error is least at the very ε that is
measured. Both pay for their count, too. The figure is ∫(f̂ − f)², by a sum over a grid, f̂ = kde over
the kernel's integral; a mean over releases. *Scott* has exact bounds and the bandwidth of
``scipy.stats.gaussian_kde`` for the records, *ISJ* that of KDEpy's improved Sheather–Jones in one
column (where KDEpy is installed): rules for a KDE without noise, that look at raw data.

**Real tables** (--real) have none: there the figure is ∫f̂² − 2·mean f̂(held out), which is the same
less ∫f², with bounds and bandwidth picked by hand for comparison, as in ``benchmarks/accuracy.py``.
The folder holds ``taxi.npz``, ``diabetes.npz``, ``uk_accidents.npz`` and ``covertype.npz``.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dpkde

Array = NDArray[np.float64]
Pairs = list[tuple[float, float]]

MULTIPLES = tuple(float(2 ** (k / 3)) for k in range(-18, 6))
"""Of the columns' standard deviations: the bandwidths that hindsight chooses from."""
FINE = {1: 0.25, 2: 0.5, 3: 0.8}
"""Of the narrowest standard deviation: the grid's pitch. A sum over so fine a grid is the integral
of products of such densities to three digits and more."""
MOST, OUTSIDE = 1024, 20_000
"""Points along an axis of the grid, and places outside of it."""


@dataclass(frozen=True)
class Mixture:
    """A mixture of normal densities, one standard deviation per column and part."""

    name: str
    weights: Array
    means: Array
    stds: Array

    @property
    def dim(self) -> int:
        """Number of columns."""
        return int(self.means.shape[1])

    def draw(self, rows: int, seed: int) -> Array:
        """Return a sample."""
        generator = np.random.default_rng(seed)
        part = generator.choice(len(self.weights), rows, p=self.weights)
        return self.means[part] + generator.normal(size=(rows, self.dim)) * self.stds[part]

    def density(self, places: Array) -> Array:
        """Return f."""
        total = np.zeros(len(places))
        for weight, mean, std in zip(self.weights, self.means, self.stds, strict=True):
            squares = (((places - mean) / std) ** 2).sum(axis=1)
            total += weight * np.exp(-squares / 2) / np.prod(std * math.sqrt(2 * math.pi))
        return total


def mixtures() -> Iterator[Mixture]:
    """Yield densities of one to three columns: clouds, clusters, far from zero, columns unlike."""
    yield Mixture("normal-1", np.ones(1), np.zeros((1, 1)), np.ones((1, 1)))
    yield Mixture(
        "claw-1",
        np.array([0.5, *[0.1] * 5]),
        np.array([[0.0], *[[k / 2 - 1] for k in range(5)]]),
        np.array([[1.0], *[[0.1]] * 5]),
    )
    yield Mixture(
        "apart-1", np.array([0.7, 0.3]), np.array([[-74.0], [-73.2]]), np.array([[0.05], [0.2]])
    )
    yield Mixture("normal-2", np.ones(1), np.array([[3.0, 500.0]]), np.array([[1.0, 80.0]]))
    for dim in (1, 2, 3):
        generator = np.random.default_rng(dim)
        centers, widths = generator.normal(size=(8, dim)) * 1.5, generator.uniform(0.1, 0.8, 8)
        yield Mixture(
            f"clusters-{dim}", np.full(8, 1 / 8), centers, np.repeat(widths[:, np.newaxis], dim, 1)
        )
    yield Mixture("normal-3", np.ones(1), np.zeros((1, 3)), np.array([[1.0, 2.0, 0.5]]))
    yield Mixture(
        "pair-3",
        np.array([0.6, 0.4]),
        np.array([[10.0, 0.0, 5.0], [14.0, 3.0, 5.0]]),
        np.array([[1.0, 1.0, 0.5], [1.0, 0.5, 1.0]]),
    )


@dataclass(frozen=True)
class Grid:
    """Places over a box, and f there."""

    places: Array
    truth: Array
    cell: float

    @classmethod
    def of(cls, mixture: Mixture, box: Array) -> Grid:
        """Lay a grid over a box, shape (dim, 2), fine enough for the narrowest part."""
        pitch = FINE[mixture.dim] * mixture.stds.min(axis=0)
        counts = np.minimum(np.ceil((box[:, 1] - box[:, 0]) / pitch), MOST).astype(int)
        axes = [
            low + (high - low) * (np.arange(count) + 0.5) / count
            for (low, high), count in zip(box, counts, strict=True)
        ]
        places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, mixture.dim)
        cell = float(np.prod((box[:, 1] - box[:, 0]) / counts))
        return cls(places, mixture.density(places), cell)


def squared_error(release: dpkde.Release, mixture: Mixture, box: Array) -> float:
    """Return ∫(f̂ − f)²: over the records' box by a grid; and beyond, as far as f̂ goes, by chance.

    Bounds may be so much wider than the records that no grid would see both.
    """
    mass = release.kernel.integral(mixture.dim)
    grid = Grid.of(mixture, box)
    inner = float(((release.kde(grid.places) / mass - grid.truth) ** 2).sum() * grid.cell)
    low, high = np.array(release.plan.domain.to_json()["bounds"]).T
    width = np.array(release.kernel.bandwidth.to_json()) * np.ones(mixture.dim)
    low, high = np.minimum(box[:, 0], low - 2 * width), np.maximum(box[:, 1], high + 2 * width)
    places = np.random.default_rng(0).uniform(low, high, (OUTSIDE, mixture.dim))
    beyond = ~((places >= box[:, 0]) & (places <= box[:, 1])).all(axis=1)
    apart = np.where(beyond, release.kde(places) / mass - mixture.density(places), 0.0)
    return inner + float((apart**2).mean() * np.prod(high - low))


def measure(mixture: Mixture, rows: int, epsilon: str, releases: int, quick: bool) -> float:
    """Print a line, and return private over best."""
    begun = time.perf_counter()
    points = mixture.draw(rows, 1)
    box = np.stack([points.min(axis=0), points.max(axis=0)], axis=1)
    std = points.std(axis=0)
    scanned = {}
    for multiple in MULTIPLES[:: 2 if quick else 1]:
        if multiple**mixture.dim < 20 / rows:
            continue
        kernel = dpkde.Gaussian((multiple * std).tolist())
        scanned[multiple] = np.mean(
            [
                squared_error(
                    dpkde.publish(
                        points, kernel=kernel, bounds=box, epsilon=epsilon, family="spline"
                    ),
                    mixture,
                    box,
                )
                for _ in range(1 if quick else 2)
            ]
        )
    best_at = min(scanned, key=lambda multiple: scanned[multiple])
    kernel = dpkde.Gaussian((best_at * std).tolist())

    def with_bounds(kernel: dpkde.Gaussian) -> float:
        """Return the mean error with the exact bounds."""
        made = (
            dpkde.publish(points, kernel=kernel, bounds=box, epsilon=epsilon)
            for _ in range(releases)
        )
        return float(np.mean([squared_error(release, mixture, box) for release in made]))

    given = with_bounds(kernel)
    rules = [with_bounds(rule) / given for rule in rules_of_thumb(points)]
    found = [
        dpkde.publish(points, kernel=dpkde.Gaussian("auto"), bounds="private", epsilon=epsilon)
        for _ in range(releases)
    ]
    errors = np.array([squared_error(release, mixture, box) for release in found])
    ratio = float(errors.mean() / given)
    paid = np.mean([scale_share(release) for release in found])
    times = np.array([release.kernel.bandwidth.to_json() for release in found]) / std
    wide = np.array([widths(release) for release in found])
    relative = (wide / (box[:, 1] - box[:, 0])).mean()
    seconds = time.perf_counter() - begun
    print(
        f"{mixture.name:<12}{rows:>8}{epsilon:>6}{given:>11.3g}{errors.mean():>11.3g}"
        f"{ratio:>8.2f}{best_at:>8.2f}{times.mean():>8.2f}{times.std():>7.2f}{relative:>8.2f}"
        f"{paid:>7.1%}{seconds:>6.0f}  {' '.join(f'{rule:.2f}' for rule in rules)}",
        flush=True,
    )
    return ratio


def rules_of_thumb(points: Array) -> list[dpkde.Gaussian]:
    """Return the kernels of SciPy's rule, and of KDEpy's where it is installed; from raw data."""
    count, dim = points.shape
    rules = [dpkde.Gaussian.from_std(count ** (-1 / (dim + 4)) * points.std(axis=0))]
    if dim == 1:
        with suppress(ImportError):
            from KDEpy.bw_selection import improved_sheather_jones

            rules.append(dpkde.Gaussian.from_std([float(improved_sheather_jones(points))]))
    return rules


def widths(release: dpkde.Release) -> Array:
    """Return how wide the bounds are."""
    low, high = np.array(release.plan.domain.to_json()["bounds"]).T
    return np.asarray(high - low)


REAL: dict[str, tuple[str, list[int] | None, Pairs | None, float | list[float]]] = {
    "taxi": ("taxi", None, [(-74.1, -73.15), (40.5, 40.9)], 0.01),
    "diabetes": ("diabetes", None, [(0, 10), (1, 14)], 1.0),
    "uk": ("uk_accidents", None, [(-7.6, 1.8), (49.9, 60.8)], 0.1),
    "covertype-5": ("covertype", [0, 3, 4, 5, 9], None, [250.0, 250.0, 70.0, 1200.0, 1200.0]),
}
"""File, columns, bounds and bandwidth picked by hand; None: all, and the extremes of the file."""
HELD_OUT = 5000


def score(release: dpkde.Release, held_out: Array) -> float:
    """Return ∫f̂² − 2·mean f̂(held out); the integral by importance sampling.

    Places are drawn half evenly over bounds and reach, half around held-out records.
    """
    generator = np.random.default_rng(0)
    dim = held_out.shape[1]
    low, high = np.array(release.plan.domain.to_json()["bounds"]).T
    width = np.array(release.kernel.bandwidth.to_json()) * np.ones(dim)
    low, high = low - 2 * width, high + 2 * width
    mass = release.kernel.integral(dim)
    count = 100_000 if dim < 4 else 40_000
    near = held_out[generator.integers(0, 1000, count // 2)]
    near = near + generator.normal(size=near.shape) * width
    places = np.concatenate([generator.uniform(low, high, (count // 2, dim)), near])
    around = dpkde.nonprivate.kde(held_out[:1000], places, dpkde.Gaussian(list(2**0.5 * width)))
    around /= np.prod(width * math.sqrt(2 * math.pi))
    inside = ((places >= low) & (places <= high)).all(axis=1)
    drawn = (inside / np.prod(high - low) + around) / 2
    values = release.kde(places) / mass
    square = float((values**2 / drawn).mean())
    return square - 2 * float(np.mean(release.kde(held_out) / mass))


def measure_real(name: str, folder: Path, epsilon: str, releases: int) -> float:
    """Print a line, and return how much worse private is than by hand, as a part of its score."""
    begun = time.perf_counter()
    file, columns, bounds, bandwidth = REAL[name]
    with np.load(folder / f"{file}.npz") as arrays:
        rows = np.asarray(arrays["X"], dtype=np.float64)
    rows = rows if columns is None else rows[:, columns]
    order = np.random.default_rng(1).permutation(len(rows))
    held_out, points = rows[order[:HELD_OUT]], rows[order[HELD_OUT:]]
    pairs = bounds or list(zip(rows.min(axis=0), rows.max(axis=0), strict=True))
    given = [
        dpkde.publish(points, kernel=dpkde.Gaussian(bandwidth), bounds=pairs, epsilon=epsilon)
        for _ in range(releases)
    ]
    found = [
        dpkde.publish(points, kernel=dpkde.Gaussian("auto"), bounds="private", epsilon=epsilon)
        for _ in range(releases)
    ]
    ours = np.array([score(release, held_out) for release in found])
    theirs = np.array([score(release, held_out) for release in given])
    loss = float((ours.mean() - theirs.mean()) / abs(theirs.mean()))
    print(
        f"{name:<12}{len(points):>8}{epsilon:>6}{theirs.mean():>12.4g}{ours.mean():>12.4g}"
        f"{ours.std():>10.2g}{loss:>+8.1%}{scale_share(found[0]):>7.1%}"
        f"{time.perf_counter() - begun:>6.0f}  {found[0].kernel.bandwidth} in "
        f"{found[0].plan.domain.to_json()['bounds']}",
        flush=True,
    )
    return loss


def scale_share(release: dpkde.Release) -> float:
    """Return which part of ε bounds and bandwidth took."""
    spends = release.privacy.spends
    taken = sum(s.amount.epsilon or 0 for s in spends if s.purpose in ("scale", "shape"))
    return float(taken / (release.privacy.epsilon or 1))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--releases", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="fewer bandwidths, only ε = 1")
    parser.add_argument("--real", action="store_true", help="tables in DPKDE_DATA")
    parser.add_argument("--settings", default="1:100000,1:10000,0.1:100000,0.1:10000")
    arguments = parser.parse_args()
    if arguments.real:
        folder = Path(os.environ["DPKDE_DATA"])
        heads = f"{'by hand':>12}{'private':>12}{'±':>10}{'worse':>8}  paid"
        print(f"{'table':<12}{'n':>8}{'ε':>6}{heads}")
        for epsilon in ("1",) if arguments.quick else ("1", "0.1"):
            for name in arguments.names or REAL:
                measure_real(name, folder, epsilon, arguments.releases)
        return
    print(
        f"{'density':<12}{'n':>8}{'ε':>6}{'best':>11}{'private':>11}{'ratio':>8}{'σ best':>8}"
        f"{'found':>8}{'±':>7}{'width':>8}{'paid':>7}{'s':>6}  Scott, ISJ / best"
    )
    for setting in arguments.settings.split(","):
        epsilon, rows = setting.split(":")
        for mixture in mixtures():
            if not arguments.names or mixture.name in arguments.names:
                measure(mixture, int(rows), epsilon, arguments.releases, arguments.quick)


if __name__ == "__main__":
    main()
