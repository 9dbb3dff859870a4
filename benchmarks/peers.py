"""What the benchmarks measure against, and how they time.

Every figure is a ratio of two times measured in the same run, alternating, best of several: the
machine may be shared, its best moments are comparable.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

BATCH = 4096


def numpy_features(
    points: NDArray[np.float64], frequencies: NDArray[np.float64], phases: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Σ cos(X @ W + b), float64, in batches: plain NumPy's random Fourier features."""
    total = np.zeros(frequencies.shape[1])
    for start in range(0, len(points), BATCH):
        total += np.cos(points[start : start + BATCH] @ frequencies + phases).sum(axis=0)
    return total


def numpy_answers(
    queries: NDArray[np.float64],
    frequencies: NDArray[np.float64],
    phases: NDArray[np.float64],
    table: NDArray[np.float64],
) -> NDArray[np.float64]:
    """cos(Y @ W + b) @ table, float64, in batches."""
    return np.concatenate(
        [
            np.cos(queries[start : start + BATCH] @ frequencies + phases) @ table
            for start in range(0, len(queries), BATCH)
        ]
    )


def race(
    ours: Callable[[], object], peer: Callable[[], object], rounds: int
) -> tuple[float, float]:
    """Return the best times of both, measured in turns after one warm-up of ours."""
    ours()
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for index, function in enumerate((ours, peer)):
            start = time.perf_counter()
            function()
            best[index] = min(best[index], time.perf_counter() - start)
    return best[0], best[1]


def report(what: str, ours: float, peer: float, target: float) -> None:
    """Print one figure, with what is asked of it."""
    verdict = "ok" if peer / ours >= target else "BELOW TARGET"
    print(
        f"{what}: ours {ours:.3f} s, peer {peer:.3f} s, ratio {peer / ours:.1f} "
        f"(asked: {target:g}) {verdict}"
    )
