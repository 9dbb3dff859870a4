"""Denoised densities against clipped answers: error over a map, at records, shares of regions.

    DPKDE_DATA=folder python benchmarks/denoising.py [taxi|uk ...] [--releases 6]

The folder holds ``taxi.npz`` and ``uk_accidents.npz``, each an array ``X``. A thousand records are
held out as queries. Figures are means over releases: the mean absolute error of `denoise().kde`
over that of `kde`, on a grid over the bounds and at the held-out records; the time of `denoise`;
and over ten boxes the largest distance of a sample's shares from the truth in standard errors of
chance: of a smoothed sample from the masses of the true KDE, of one that is not from the records.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

import dpkde

Array = NDArray[np.float64]

SETS = {
    "taxi": ("taxi", 0.01, [(-74.1, -73.15), (40.5, 40.9)]),
    "uk": ("uk_accidents", 0.3, [(-7.6, 1.8), (49.9, 60.8)]),
}
SHAPE, POINTS, EPSILONS = (200, 90), 10_000, ("0.05", "0.2", "1")


def kernel_means(points: Array, axes: list[Array], bandwidth: float) -> Array:
    """Return the KDE on the grid of two axes: the Gaussian is a product."""
    total = np.zeros([len(axis) for axis in axes])
    for part in np.array_split(points, max(1, len(points) // 20_000)):
        x, y = (
            np.exp(-(np.subtract.outer(axis, part[:, k]) ** 2) / bandwidth**2)
            for k, axis in enumerate(axes)
        )
        total += x @ y.T
    return total / len(points)


def regions(points: Array, bounds: list[tuple[float, float]]) -> Array:
    """Return ten boxes about records, of some sizes, shape (10, 2, 2)."""
    generator = np.random.default_rng(5)
    widths = np.ptp(np.array(bounds), axis=1) * generator.uniform(0.02, 0.3, (10, 2))
    centers = points[generator.integers(len(points), size=10)]
    return np.stack([centers - widths / 2, centers + widths / 2], axis=-1)


def smooth_shares(points: Array, boxes: Array, bandwidth: float) -> Array:
    """Return the masses of the true KDE's density in boxes."""
    ends = erf((boxes[:, :, :, np.newaxis] - points.T[:, np.newaxis]) / bandwidth)
    return np.asarray((np.diff(ends, axis=2)[:, :, 0] / 2).prod(axis=1).mean(axis=1))


def shares(points: Array, boxes: Array) -> Array:
    """Return the shares of points in boxes."""
    return np.array([((points >= b[:, 0]) & (points < b[:, 1])).all(axis=1).mean() for b in boxes])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(SETS))
    parser.add_argument("--releases", type=int, default=6)
    options = parser.parse_args()
    folder = Path(os.environ["DPKDE_DATA"])
    for name in options.names:
        file, bandwidth, bounds = SETS[name]
        with np.load(folder / f"{file}.npz") as held:
            points = np.clip(held["X"].astype(np.float64), *np.array(bounds).T)
        points = points[np.random.default_rng(0).permutation(len(points))]
        queries, records = points[:1000], points[1000:]
        axes = [np.linspace(*pair, count) for pair, count in zip(bounds, SHAPE, strict=True)]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        kernel = dpkde.Gaussian(bandwidth)
        truth = kernel_means(records, axes, bandwidth).reshape(-1)
        dense = dpkde.nonprivate.kde(records, queries, kernel)
        boxes = regions(records, bounds)
        smooth, plain = smooth_shares(records, boxes, bandwidth), shares(records, boxes)
        for epsilon in EPSILONS:
            rows = []
            for _ in range(options.releases):
                release = dpkde.publish(records, kernel=kernel, bounds=bounds, epsilon=epsilon)
                begun = time.perf_counter()
                density = release.denoise()
                seconds = time.perf_counter() - begun
                errors = [
                    [np.abs(ask(q) - t).mean() for q, t in ((grid, truth), (queries, dense))]
                    for ask in (release.kde, density.kde)
                ]
                apart = []
                for expected, smoothed in ((smooth, True), (plain, False)):
                    drawn = shares(density.sample(POINTS, seed=0, smoothed=smoothed), boxes)
                    chance = np.sqrt(expected * (1 - expected) / POINTS)
                    apart.append((np.abs(drawn - expected) / chance).max())
                rows.append([*np.divide(errors[1], errors[0]), seconds, *apart])
            over_map, at_records, seconds, *apart = np.mean(rows, axis=0)
            print(
                f"{name} ε={epsilon}: map {over_map:.3f}, records {at_records:.3f}, "
                f"{seconds:.2f} s; shares off by {apart[0]:.1f} (smoothed), {apart[1]:.1f} "
                f"(records) standard errors at most"
            )


if __name__ == "__main__":
    main()
