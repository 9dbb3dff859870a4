"""Speed of hashing: 10⁵ × 100 points into 1,000 repetitions, against plain NumPy.

    python benchmarks/hashing.py

Both do the same hashes, on float32 rows: NumPy repetition by repetition, vectorised over points and
axes, as one would write it; ours on all cores and on one. Part of NumPy's repetitions are timed,
and their time scaled. Tables are compared, so that it is the same work.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import dpkde
from dpkde.curator.sketch import sketch
from dpkde.families.hashing.cuts import Bins, Planes
from dpkde.families.hashing.family import Hashing, HashingPair
from dpkde.kernels import Kernel
from dpkde.planning.plan import Plan
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame

REPETITIONS, BUCKETS, SAMPLED = 1000, 1024, 20
Tally = NDArray[np.int64]


def bucket_and_sign(pair: HashingPair, rows: NDArray[np.float32], r: int) -> tuple[Tally, Tally]:
    """Return the bucket and the sign of all rows in one repetition, in plain NumPy."""
    (cut,) = pair.cuts
    keys = np.full(len(rows), int(pair.base[r]), dtype=np.int64)
    if isinstance(cut, Bins):
        bins = np.floor(rows * cut.rates[r] + cut.shifts[r]).astype(np.int64)
        keys += bins @ cut.words[r].astype(np.int64)
    else:
        assert isinstance(cut, Planes)
        stop = int(cut.counts[: r + 1].sum())
        own = slice(stop - int(cut.counts[r]), stop)
        beyond = rows @ cut.normals[own].T > cut.offsets[own]
        keys += beyond @ cut.words[own].astype(np.int64)
    keys &= 0xFFFFFFFF
    move = int(pair.moves[r])
    if move == 0:
        return keys, np.ones_like(keys)
    return keys >> move, 1 - 2 * ((keys >> (move - 1)) & 1)


def plain_sketch(pair: HashingPair, rows: NDArray[np.float32], r: int) -> Tally:
    """Return the sums of one repetition."""
    bucket, sign = bucket_and_sign(pair, rows, r)
    return np.bincount(bucket, weights=sign, minlength=BUCKETS).astype(np.int64)


def plain_answer(
    pair: HashingPair, rows: NDArray[np.float32], r: int, table: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what one repetition says to all queries."""
    bucket, sign = bucket_and_sign(pair, rows, r)
    return np.asarray(table[r * BUCKETS + bucket] * sign)


def timed(work: Callable[[], object]) -> float:
    """Return the shorter of two runs."""
    times = []
    for _ in range(2):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def compare(name: str, kernel: Kernel, points: NDArray[np.float64], half: float | None) -> None:
    """Print the times of both, for points and for as many queries."""
    dim = points.shape[1]
    domain = as_domain(None if half is None else [(-half, half)] * dim)
    frame = Frame.of(kernel, domain, dim)
    pair = Hashing(REPETITIONS, BUCKETS).layout(frame).draw(0, seed=1)
    plan = Plan(pair, 40, 1)
    rows = frame.place(points)[0].astype(np.float32)
    sums = sketch(points[:1000], plan)  # compiles
    ours = timed(lambda: sketch(points, plan))
    single = timed(lambda: sketch(points, plan, threads=1))
    sampled = range(0, REPETITIONS, REPETITIONS // SAMPLED)
    plain = timed(lambda: [plain_sketch(pair, rows, r) for r in sampled]) * REPETITIONS / SAMPLED
    some = sketch(points[:2000], plan)._table.reshape(REPETITIONS, BUCKETS)
    same = all(np.array_equal(some[r], plain_sketch(pair, rows[:2000], r)) for r in sampled)
    table = sums._table.astype(np.float64)
    queries = points[:20_000]
    pair.respond(queries[:10], table)
    answers = timed(lambda: pair.respond(queries, table))
    asked = timed(lambda: [plain_answer(pair, rows[:20_000], r, table) for r in sampled])
    asked *= REPETITIONS / SAMPLED
    print(
        f"{name:<24}sketch {ours:6.2f} s ({single:.2f} s on one core), NumPy {plain:7.1f} s: "
        f"{plain / ours:5.1f} times   queries {answers:5.2f} s on one core, NumPy {asked:6.1f} s: "
        f"{asked / answers:5.1f} times   same tables: {same}",
        flush=True,
    )


def main() -> None:
    """Compare, for bins and for the sides of planes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=100_000)
    count = parser.parse_args().points
    generator = np.random.default_rng(0)
    points = generator.normal(size=(count, 100))
    print(f"{count} × 100 points, {REPETITIONS} repetitions, {os.cpu_count()} cores")
    compare("Laplacian, bins", dpkde.Laplacian(30.0), points, None)
    compare("hat, bins", dpkde.Hat(30.0), points, 5.0)
    compare("geodesic, planes", dpkde.Geodesic(), points, None)
    few = points[: max(1, count // 20)] / 10
    compare("l1.5 norm, planes (n/20)", dpkde.ExponentialLp(1.5, 1, 10.0), few, 0.5)


if __name__ == "__main__":
    main()
