"""Sketching 200,000 × 100 points onto 1,024 frequencies, against plain float64 NumPy.

Run: python benchmarks/sketch.py [rows]
"""

from __future__ import annotations

import sys

import numpy as np

import dpkde
from peers import numpy_features, race, report


def main(rows: int = 200_000) -> None:
    generator = np.random.default_rng(1)
    points = generator.normal(size=(rows, 100))
    weights = generator.normal(size=(100, 2048)) * 2**0.5
    phases = generator.uniform(0, 2 * np.pi, 2048)
    plan = dpkde.plan(
        kernel=dpkde.Gaussian(10.0),
        bounds=[(-6, 6)] * 100,
        epsilon=1,
        family=dpkde.Fourier(frequencies=1024),
    )
    ours, peer = race(
        lambda: dpkde.sketch(points, plan), lambda: numpy_features(points, weights, phases), 2
    )
    report(f"sketch {rows} x 100, 1,024 frequencies, vs NumPy", ours, peer, 12)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
