"""Shares of sampled points against those of the data, in standard errors that know the noise.

    DPKDE_DATA=folder python benchmarks/sampling.py [taxi|uk ...] [--releases 20]

Data, bandwidths and the ten boxes are those of ``denoising.py``. For each ε, of each release: the
share of a million sampled points in every box against the true smoothed share; and the largest
distance among the ten, of 10,000 and 100,000 sampled points. All are in `sample_standard_error`,
and every sample has randomness of its own. Printed are the mean over releases of the first (a bias)
and its root mean square, the worst box of ten each; the mean of the second, and how often it is
above 3. Ten independent normal errors have 1.88 and 0.027. Last, how often the intervals of level
0.95 that `mass_interval` gives held, of the smoothed shares and of the records' own, and their mean
lengths.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

import dpkde
from denoising import EPSILONS, SETS, regions, shares, smooth_shares

MANY, DRAWN = 1_000_000, (10_000, 100_000)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(SETS))
    parser.add_argument("--releases", type=int, default=20)
    options = parser.parse_args()
    folder = Path(os.environ["DPKDE_DATA"])
    for name in options.names:
        file, bandwidth, bounds = SETS[name]
        with np.load(folder / f"{file}.npz") as data:
            records = np.clip(data["X"].astype(np.float64), *np.array(bounds).T)
        boxes = regions(records, bounds)
        truth, plain = smooth_shares(records, boxes, bandwidth), shares(records, boxes)
        for epsilon in EPSILONS:
            denoised, farthest, held, lengths = [], [], [], []
            for _ in range(options.releases):
                release = dpkde.publish(
                    records, kernel=dpkde.Gaussian(bandwidth), bounds=bounds, epsilon=epsilon
                )
                density, noise = release.denoise(), release.sample_standard_error(boxes, MANY)
                many = shares(density.sample(MANY), boxes)
                denoised.append((many - truth) / noise)
                row = []
                for count in DRAWN:
                    away = shares(density.sample(count), boxes) - truth
                    row.append(np.abs(away / release.sample_standard_error(boxes, count)).max())
                farthest.append(row)
                for expected, smoothed in ((truth, True), (plain, False)):
                    low, high = release.mass_interval(boxes, 0.95, smoothed=smoothed)
                    held.append(((low <= expected) & (expected <= high)).mean())
                    lengths.append((high - low).mean())
            bias = np.abs(np.mean(denoised, axis=0)).max()
            size = np.sqrt(np.square(denoised).mean(axis=0)).max()
            largest, beyond = np.mean(farthest, axis=0), (np.array(farthest) > 3).sum(axis=0)
            print(
                f"{name} ε={epsilon}: a million points off by {bias:.1f} (mean), {size:.1f} as "
                f"a root mean square; the largest of ten {largest[0]:.2f}, {largest[1]:.2f}, above "
                f"3 in {beyond[0]} and {beyond[1]} of {options.releases} releases; intervals hold "
                f"{np.mean(held[::2]):.3f}, {np.mean(held[1::2]):.3f}, and are "
                f"{np.mean(lengths[::2]):.4f}, {np.mean(lengths[1::2]):.4f} long",
                flush=True,
            )


if __name__ == "__main__":
    main()
