"""10⁵ queries in 100 dimensions against a release of 1,024 frequencies, against NumPy.

Run: python benchmarks/query.py [queries]
"""

from __future__ import annotations

import sys

import numpy as np

import dpkde
from peers import numpy_answers, race, report


def main(count: int = 100_000) -> None:
    generator = np.random.default_rng(1)
    points = generator.normal(size=(10_000, 100))
    queries = generator.normal(size=(count, 100))
    weights = generator.normal(size=(100, 2048)) * 2**0.5
    phases = generator.uniform(0, 2 * np.pi, 2048)
    table = generator.normal(size=2048)
    release = dpkde.publish(
        points,
        kernel=dpkde.Gaussian(10.0),
        bounds=[(-6, 6)] * 100,
        epsilon=1,
        family=dpkde.Fourier(frequencies=1024),
    )
    ours, peer = race(
        lambda: release.kde(queries, assisted=False),
        lambda: numpy_answers(queries, weights, phases, table),
        2,
    )
    report(f"{count} queries, 100 dimensions, 1,024 frequencies, vs NumPy", ours, peer, 10)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
