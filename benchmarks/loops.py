"""Rows per CPU-second of each family on one to three columns; and of two checkouts side by side.

    python benchmarks/loops.py [rows]
    python benchmarks/loops.py --against CHECKOUT [rows]

The first compares with plain NumPy, and with KDEpy's FFTKDE where that is installed. Processor time
of the whole process, best of several, in turns: other work on the machine takes time from all
alike. NumPy's peer is `numpy.histogramdd` on as many cells as a spline of spacing ½ has; FFTKDE
fits, and evaluates on a grid of 128 points an axis, 32 for three.

In the second each checkout has a process that sketches the same points under the same plans when
told to, in turns; digests tell whether tables are the same, bit for bit. To have another checkout:
``git worktree add ../before COMMIT``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDS = 5
SIDES = {1: [(-23.0, 23.0)], 2: [(-23.0, 23.0), (-9.0, 9.0)], 3: [(-8.0, 8.0)] * 3}


def cases() -> Iterator[tuple[str, list[tuple[float, float]], Any]]:
    """Yield what to measure: a name, bounds, a family."""
    import dpkde

    for dim, bounds in SIDES.items():
        for degree in (1, 2, 3):
            yield f"spline of degree {degree}, {dim} column(s)", bounds, dpkde.Spline(degree, 0.5)
        yield f"fast Gauss, {dim} column(s)", bounds, dpkde.FastGauss(6)
        yield f"Fourier, {dim} column(s)", bounds, dpkde.Fourier(128)
        yield f"hashing, {dim} column(s)", bounds, dpkde.Hashing(32, 64)
    yield "spline of degree 3, 4 million cells", [(-500.0, 500.0)] * 2, dpkde.Spline(3, 0.5)
    yield "spline of degree 2, 4 columns", [(-4.0, 4.0)] * 4, dpkde.Spline(2, 0.5)
    narrow = [*SIDES[2], (-0.1, 0.1), (-0.1, 0.1)]
    yield "spline of degree 3, 2 of 4 narrow", narrow, dpkde.Spline((3, 3, 1, 1), (0.5, 0.5, 9, 9))


def points_in(bounds: list[tuple[float, float]], rows: int) -> NDArray[np.float64]:
    """Return points that gather in the middle, and some that are clipped."""
    widths = np.array([high - low for low, high in bounds])
    return np.asarray(np.random.default_rng(1).normal(size=(rows, len(bounds))) * widths / 5)


def sketching(
    bounds: list[tuple[float, float]], family: Any, points: NDArray[np.float64]
) -> Callable[[], Any]:
    """Return what sketches the points on one thread."""
    import dpkde

    hashed = isinstance(family, dpkde.Hashing)
    kernel = dpkde.Laplacian(1.0) if hashed else dpkde.Gaussian(1.0)
    plan = dpkde.plan(kernel=kernel, bounds=bounds, epsilon=1, family=family, seed=1)
    return lambda: dpkde.sketch(points, plan, threads=1)


def seconds(function: Callable[[], object]) -> float:
    """Return the processor time that a call takes."""
    start = time.process_time()
    function()
    return time.process_time() - start


def in_turns(functions: list[Callable[[], object]]) -> list[float]:
    """Return the best processor time of each, after one call of each that does not count."""
    best = [math.inf] * len(functions)
    for turn in range(ROUNDS + 1):
        for k, function in enumerate(functions):
            spent = seconds(function)
            best[k] = min(best[k], spent) if turn else math.inf
    return best


def against_peers(rows: int) -> None:
    """Print rows per CPU-second of each family, and how many times those of the peers."""
    try:
        from KDEpy import FFTKDE
    except ImportError:
        FFTKDE = None  # noqa: N806
        print("KDEpy is not installed: without its FFTKDE")
    for name, bounds, family in cases():
        points, dim = points_in(bounds, rows), len(bounds)
        # As many cells as splines have at a spacing of ½, up to NumPy's own limits.
        cells = [min(round((high - low) / 0.5) + 3, 2048) for low, high in bounds]
        work: list[Callable[[], object]] = [sketching(bounds, family, points)]
        work.append(lambda p=points, c=cells, b=bounds: np.histogramdd(p, c, b))  # type: ignore[misc]
        if FFTKDE is not None and dim <= 3:
            shape = (128,) * dim if dim < 3 else (32,) * 3
            work.append(lambda p=points, s=shape: FFTKDE(bw=0.7).fit(p).evaluate(s))  # type: ignore[misc]
        times = in_turns(work)
        ratios = [f"{peer / times[0]:.1f} × NumPy's histogram" for peer in times[1:2]]
        ratios += [f"{peer / times[0]:.1f} × FFTKDE" for peer in times[2:]]
        print(
            f"{name}: {rows / times[0] / 1e6:.2f} million rows per CPU-second, {', '.join(ratios)}"
        )


def serve(rows: int) -> None:
    """Sketch one case for each line that comes; answer with the time and a digest of the table."""
    known = list(cases())
    work: dict[int, Callable[[], Any]] = {}
    for line in sys.stdin:
        number = int(line)
        if number not in work:
            _, bounds, family = known[number]
            work = {number: sketching(bounds, family, points_in(bounds, rows))}
        start = time.process_time()
        sketch = work[number]()
        spent = time.process_time() - start
        digest = hashlib.sha256(sketch._table.tobytes()).hexdigest()[:16]
        print(json.dumps([spent, digest]), flush=True)


def against(checkout: Path, rows: int) -> None:
    """Print how many times the rows of another checkout this one sketches in the same time."""
    sources = (Path(__file__).parents[1] / "src", checkout.resolve() / "src")
    command = [sys.executable, __file__, "--serve", str(rows)]
    both = [
        subprocess.Popen(
            command,
            env=os.environ | {"PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for source in sources
    ]
    for number, (name, *_) in enumerate(cases()):
        best, digests = [math.inf, math.inf], ["", ""]
        for turn in range(ROUNDS + 1):
            for k, child in enumerate(both):
                assert child.stdin is not None
                assert child.stdout is not None
                print(number, file=child.stdin, flush=True)
                spent, digests[k] = json.loads(child.stdout.readline())
                best[k] = min(best[k], spent) if turn else math.inf
        same = "the same bits" if digests[0] == digests[1] else "OTHER BITS"
        print(
            f"{name}: {rows / best[0] / 1e6:.2f} million rows per CPU-second, "
            f"{best[1] / best[0]:.2f} × the other checkout, {same}",
            flush=True,
        )
    for child in both:
        child.communicate()


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rows", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--against", type=Path, metavar="PATH", help="another checkout")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.rows)
    elif asked.against is not None:
        against(asked.against, asked.rows)
    else:
        against_peers(asked.rows)


if __name__ == "__main__":
    main()
