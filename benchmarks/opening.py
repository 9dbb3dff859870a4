"""What a large release needs to open and to ask: time, memory and file size by number of cells.

    python benchmarks/opening.py [cells ...]

A table of splines of degree 3 over two columns, of a few records: what is measured does not depend
on those. Sketching, noise and file are made in this process; a new process opens the file, and asks
for 100,000 answers and 1,000 intervals. Printed are the size of the file, the seconds that noise
takes, those that opening takes (over what NumPy takes to read as many numbers from a file), the
peak of resident memory of a process that opens and asks, and questions per second.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import dpkde
from sources import peak

SPACING = 0.5
QUERIES, INTERVALS = 100_000, 1_000


def side(cells: int) -> float:
    """Return half the width of a square that takes so many cells, in bandwidths."""
    return (math.isqrt(cells) - 3) * SPACING / 2


def made(cells: int, folder: Path) -> tuple[Path, float]:
    """Return a release with so many cells in a file, and the seconds that its noise took."""
    half = side(cells)
    plan = dpkde.plan(
        kernel=dpkde.Gaussian(1.0),
        bounds=[(-half, half)] * 2,
        family=dpkde.Spline(3, SPACING),
        epsilon=1,
    )
    points = np.random.default_rng(0).normal(size=(10_000, 2)) * half / 5
    sketch = dpkde.sketch(points, plan)
    start = time.perf_counter()
    release = dpkde.publish(sketch, epsilon=1)
    spent = time.perf_counter() - start
    path = folder / "release.dpkde"
    release.save(path)
    return path, spent


def opened(path: str, cells: int) -> dict[str, float]:
    """Open a release in this process and ask it."""
    before, start = peak(), time.perf_counter()
    release = dpkde.load(path)
    loading = time.perf_counter() - start
    half = side(cells)
    queries = np.random.default_rng(1).uniform(-half, half, (QUERIES, 2))
    release.kde(queries[:10])
    start = time.perf_counter()
    release.kde(queries)
    asking = time.perf_counter() - start
    release.interval(queries[:10])
    start = time.perf_counter()
    release.interval(queries[:INTERVALS])
    bounding = time.perf_counter() - start
    return {
        "loading": loading,
        "peak": peak(),
        "before": before,
        "kde": QUERIES / asking,
        "interval": INTERVALS / bounding,
    }


def plainly(cells: int, folder: Path) -> float:
    """Return the seconds that NumPy takes to read as many numbers."""
    path = folder / "numbers.npy"
    np.save(path, np.zeros(cells, dtype=np.int64))
    start = time.perf_counter()
    np.load(path)
    return time.perf_counter() - start


def main() -> None:
    """Measure releases of each size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cells", nargs="*", type=int, default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--open", metavar="FILE", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.open:
        print(json.dumps(opened(asked.open, asked.cells[0])))
        return
    for cells in asked.cells:
        with tempfile.TemporaryDirectory() as name:
            path, noise = made(cells, Path(name))
            plain = plainly(cells, Path(name))
            command = [sys.executable, __file__, "--open", str(path), str(cells)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            told = json.loads(done.stdout)
            print(
                f"{cells:>11,} cells: file {path.stat().st_size / 2**20:.1f} MiB, "
                f"noise {noise:.1f} s, opened in {told['loading']:.2f} s "
                f"({told['loading'] / plain:.1f} of NumPy), peak {told['peak']:.0f} MiB "
                f"({told['before']:.0f} before), {told['kde']:,.0f} answers and "
                f"{told['interval']:,.0f} intervals per second",
                flush=True,
            )


if __name__ == "__main__":
    main()
