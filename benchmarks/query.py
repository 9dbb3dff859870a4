"""Queries: many dimensions against NumPy; intervals and maps against answers point by point.

* 10⁵ queries in 100 dimensions against a release of 1,024 frequencies, against NumPy.
* A million queries on two axes, and a map of as many places.
* Intervals on tables of millions of cells, on two to six axes, in times of `kde`.

With a folder that holds the sources of another commit, `kde` on two axes is raced against that, in
turns, by processor time on one core.

Run: python benchmarks/query.py [queries] [folder of other sources]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import dpkde
from peers import numpy_answers, race, report

BOUNDS = [(-74.1, -73.15), (40.5, 40.9)]
MILLION = 1_000_000
MOST = 20.0
"""What an interval may cost, in times of `kde`."""
TABLES = {2: (900.0, 0.5, 20_000), 3: (55.0, 0.5, 4_000), 4: (18.0, 0.55, 200), 5: (9.0, 0.55, 20)}
"""Width in bandwidths, spacing and queries by axes: some two or three million cells each."""

WORKER = """
import sys, time
import numpy as np
import dpkde
release, queries = dpkde.load(sys.argv[1]), np.load(sys.argv[2])
release.kde(queries)
for _ in sys.stdin:
    start = time.process_time()
    release.kde(queries)
    print(time.process_time() - start, flush=True)
"""


def trips(count: int, seed: int) -> np.ndarray:
    """Return points that heap as trips in a city do."""
    generator = np.random.default_rng(seed)
    places = generator.normal((-73.95, 40.74), (0.03, 0.03), (300, 2))
    return places[generator.integers(300, size=count)] + generator.normal(0, 0.004, (count, 2))


def seconds(function: Callable[[], object], rounds: int = 3) -> float:
    """Return the processor time of the best of several runs, after one to warm up."""
    function()
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def two_axes(other: str | None) -> None:
    """Print times of a million queries and of a map, and race another commit."""
    release = dpkde.publish(
        trips(100_000, 1), kernel=dpkde.Gaussian(0.01), bounds=BOUNDS, epsilon=1, family="spline"
    )
    queries = trips(MILLION, 2)
    points, drawn = seconds(lambda: release.kde(queries)), seconds(lambda: release.grid(1000))
    print(f"{MILLION} queries on two axes: {points:.3f} s of one core")
    print(f"a map of 1000×1000: {drawn:.3f} s, {points / drawn:.0f} times as fast as points")
    if other is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        file, asked = Path(folder, "r.dpkde"), Path(folder, "q.npy")
        release.save(file)
        np.save(asked, queries)
        sources = [str(Path(dpkde.__file__).parents[1]), other]
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", WORKER, str(file), str(asked)],
                env=os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for source in sources
        ]
        best = [float("inf")] * 2
        for _ in range(9):
            for index, worker in enumerate(workers):
                assert worker.stdin is not None
                assert worker.stdout is not None
                worker.stdin.write("again\n")
                worker.stdin.flush()
                best[index] = min(best[index], float(worker.stdout.readline()))
        for worker in workers:
            worker.communicate()
    report(f"{MILLION} queries on two axes, vs the other commit", best[0], best[1], 1.5)


def intervals() -> None:
    """Print what intervals cost in times of `kde`, on large tables."""
    generator = np.random.default_rng(3)
    for dim, (width, spacing, count) in TABLES.items():
        release = dpkde.publish(
            generator.uniform(0, width, (20_000, dim)),
            kernel=dpkde.Gaussian(1.0),
            bounds=[(0, width)] * dim,
            epsilon=1,
            family=dpkde.Spline(2, spacing),
        )
        queries = generator.uniform(0, width, (count, dim))
        plain = seconds(lambda: release.kde(queries)) / count  # noqa: B023
        both = seconds(lambda: release.interval(queries)) / count  # noqa: B023
        verdict = "ok" if both <= MOST * plain else "ABOVE"
        print(
            f"{dim} axes, {release.table.size} cells: kde {plain * 1e6:.1f} µs a query, interval "
            f"{both * 1e6:.1f} µs, {both / plain:.1f} times (at most {MOST:g}) {verdict}"
        )


def main(count: int, other: str | None) -> None:
    many_dimensions(count)
    two_axes(other)
    intervals()


def many_dimensions(count: int) -> None:
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
    arguments = dict(zip(("count", "other"), sys.argv[1:], strict=False))
    main(int(arguments.get("count", 100_000)), arguments.get("other"))
