"""Assisted answers over plain ones on the same tables: never worse, honest, quick; GloVe.

    python benchmarks/assisted.py [kinds] [queries] [times] [--quick] [--only name ...]
    DPKDE_DATA=folder python benchmarks/assisted.py glove

``kinds``: many kinds of generated data in 10 to 800 dimensions, at three ε each, over releases with
their own seeds: mean absolute error at held-out points, assisted over plain, and how often
``interval(0.95)`` holds the truth. ``queries``: the hardest kinds query by query, over many
releases: the largest ratio and the least coverage of any query, beside what chance alone makes of
such extremes. ``times``: a fit at 4,096 frequencies and 1,000 columns, and an assisted answer over
a plain one. ``glove``: errors over those of the paper's LSQ-RFF at its best parameter with a public
n; ours with its defaults and a private count. It needs ``glove.npz`` with an array ``X``, and takes
a quarter of an hour.

Everywhere ``family="fourier"`` with the planner's own number of frequencies. Answers are clipped to
[0, 1], as users get them.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpkde
from accuracy import Task, best_peer
from peers import race

Array = NDArray[np.float64]
Generator = np.random.Generator
Draw = Callable[[Generator, int], Array]
Bounds = tuple[float, float] | None

RATIO, COVERAGE = 1.05, 0.93
"""What is asked on average over queries and releases."""
QUERY_RATIO, QUERY_COVERAGE = 1.3, 0.88
"""What is asked at every single query."""
LEVEL = 0.95
EPSILONS = ("0.25", "1", "4")


@dataclass(frozen=True)
class Kind:
    """A kind of data: how it is drawn, how much of it, and what is public about it.

    Attributes
    ----------
    draw
        Returns points of shape (rows, dim).
    pairs
        The mean kernel value over pairs of records, from which the bandwidth follows.
    rows
        How many records, besides the queries.
    bounds
        Of every column, or None.
    queries
        What queries are drawn from; None: the same.
    """

    draw: Draw
    pairs: float = 0.03
    rows: int = 4_000
    bounds: Bounds = None
    queries: Draw | None = None


def cloud(dim: int) -> Draw:
    """One normal cloud."""
    return lambda generator, rows: generator.normal(size=(rows, dim))


def clusters(dim: int, count: int, apart: float) -> Draw:
    """Clusters of radius 1, centres about `apart` radii from each other."""

    def draw(generator: Generator, rows: int) -> Array:
        centers = generator.normal(size=(count, dim)) * apart / np.sqrt(2 * dim)
        label = generator.integers(0, count, rows)
        return np.asarray(centers[label] + generator.normal(size=(rows, dim)) / np.sqrt(dim))

    return draw


def sphere(generator: Generator, rows: int) -> Array:
    """Directions in 100 dimensions."""
    points = generator.normal(size=(rows, 100))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def counts(generator: Generator, rows: int) -> Array:
    """Sparse counts in 300 columns: words in documents of different lengths."""
    rates = generator.gamma(0.3, 1, size=300) * generator.gamma(1, 0.5, size=(rows, 1))
    return generator.poisson(rates).astype(np.float64)


def binary(generator: Generator, rows: int) -> Array:
    """Answers to 200 yes-no questions, some rarely yes."""
    return np.asarray(generator.random((rows, 200)) < generator.beta(0.5, 2, 200), dtype=np.float64)


def heavy(generator: Generator, rows: int) -> Array:
    """Student's t with 3 degrees of freedom, 40 columns."""
    return np.asarray(
        generator.normal(size=(rows, 40)) / np.sqrt(generator.chisquare(3, size=(rows, 1)))
    )


def low_rank(generator: Generator, rows: int) -> Array:
    """Five factors in 100 columns, a little noise."""
    factors = generator.normal(size=(rows, 5)) @ generator.normal(size=(5, 100))
    return np.asarray(factors + 0.1 * generator.normal(size=(rows, 100)))


def manifold(dim: int) -> Draw:
    """A curved sheet of two dimensions."""

    def draw(generator: Generator, rows: int) -> Array:
        place, phase = generator.uniform(0, 6, (rows, 2)), generator.uniform(0, 6, dim)
        return np.asarray(np.cos(place @ generator.normal(size=(2, dim)) + phase))

    return draw


def corner(generator: Generator, rows: int) -> Array:
    """Amounts near the lower corner of wide bounds, 30 columns."""
    return generator.exponential(size=(rows, 30))


def far(generator: Generator, rows: int) -> Array:
    """A cloud some fourteen bandwidths from the centre of the bounds, 20 columns."""
    side = np.sign(generator.normal(size=20))
    return np.asarray(generator.normal(size=(rows, 20)) + 10 * side)


def duplicates(generator: Generator, rows: int) -> Array:
    """Thirty distinct records in 20 columns, by Zipf's law."""
    weights = 1 / np.arange(1.0, 31)
    label = generator.choice(30, rows, p=weights / weights.sum())
    return np.asarray(generator.normal(size=(30, 20))[label])


def contaminated(generator: Generator, rows: int) -> Array:
    """A cloud of which a tenth lies aside and is four times as wide, 40 columns."""
    points = generator.normal(size=(rows, 40))
    return np.where(generator.random((rows, 1)) < 0.1, 4 * points + 2, points)


def clumps(dim: int, share: float = 0.1) -> Draw:
    """A big cloud, and a share of all records in ten small clumps at the rim of it."""
    centers = np.random.default_rng(dim).normal(size=(10, dim)) * 1.5

    def draw(generator: Generator, rows: int) -> Array:
        points = generator.normal(size=(rows, dim))
        small = centers[generator.integers(0, 10, rows)] + 0.05 * points
        return np.where(generator.random((rows, 1)) < share, small, points)

    return draw


def correlated(generator: Generator, rows: int) -> Array:
    """Thirty columns, each correlated by 0.9 with the one before."""
    steps = generator.normal(size=(rows, 30))
    points = steps.copy()
    for k in range(1, 30):
        points[:, k] = 0.9 * points[:, k - 1] + np.sqrt(1 - 0.9**2) * steps[:, k]
    return points


def uniform(generator: Generator, rows: int) -> Array:
    """Ten columns, spread evenly."""
    return generator.uniform(-1, 1, (rows, 10))


def spectrum(dim: int) -> Draw:
    """Directions of falling strength, rotated, and lengths that differ."""

    def draw(generator: Generator, rows: int) -> Array:
        turn = np.linalg.qr(generator.normal(size=(dim, dim)))[0]
        strength = np.arange(1.0, dim + 1) ** -0.5
        lengths = np.sqrt(generator.gamma(4, 0.25, size=(rows, 1)))
        return np.asarray((generator.normal(size=(rows, dim)) * strength * lengths) @ turn)

    return draw


def embeddings(generator: Generator, rows: int) -> Array:
    """GloVe's vectors where they are at hand, else vectors of falling spectrum: 100 columns."""
    folder = os.environ.get("DPKDE_DATA")
    if folder is None or not (Path(folder) / "glove.npz").exists():
        return spectrum(100)(generator, rows)
    points = _glove(Path(folder))
    return np.asarray(points[generator.choice(len(points), rows, replace=False)])


def _glove(folder: Path) -> Array:
    with np.load(folder / "glove.npz") as file:
        return np.asarray(file["X"], dtype=np.float64)


KINDS: dict[str, Kind] = {
    "cloud": Kind(cloud(50)),
    "far clusters": Kind(clusters(20, 5, 12.0)),
    "near clusters": Kind(clusters(10, 5, 3.0)),
    "many clusters": Kind(clusters(30, 40, 4.0)),
    "sphere": Kind(sphere),
    "counts": Kind(counts, bounds=(0.0, 100.0)),
    "binary": Kind(binary, bounds=(0.0, 1.0)),
    "heavy tails": Kind(heavy),
    "low rank": Kind(low_rank),
    "manifold": Kind(manifold(50)),
    "corner": Kind(corner, bounds=(0.0, 12.0)),
    "far from centre": Kind(far, bounds=(-15.0, 15.0)),
    "tiny n": Kind(cloud(10), rows=200, bounds=(-5.0, 5.0)),
    "duplicates": Kind(duplicates, pairs=0.15),
    "contaminated": Kind(contaminated),
    "clumps": Kind(clumps(20)),
    "correlated": Kind(correlated, bounds=(-5.0, 5.0)),
    "uniform": Kind(uniform, bounds=(-1.0, 1.0)),
    "embeddings": Kind(embeddings),
    "wide": Kind(spectrum(800)),
}
HARDEST = {
    "clumps": Kind(clumps(10), rows=2_000, queries=clumps(10, share=0.5)),
    "duplicates": Kind(duplicates, pairs=0.15, rows=2_000),
    "manifold": Kind(manifold(10), rows=2_000),
    "near clusters": Kind(clusters(10, 5, 3.0), rows=2_000),
}


@dataclass(frozen=True)
class Case:
    """Data of a kind, the queries held out, and the true answers."""

    points: Array
    queries: Array
    truth: Array
    kernel: dpkde.Gaussian
    bounds: list[tuple[float, float]] | None

    @classmethod
    def of(cls, kind: Kind, queries: int, seed: int = 0) -> Case:
        """Draw it; bandwidth and bounds count as known."""
        generator = np.random.default_rng(seed)
        points = kind.draw(generator, kind.rows + queries)
        if kind.bounds is not None:
            points = np.clip(points, *kind.bounds)
        kernel = dpkde.Gaussian(bandwidth(points[:600], kind.pairs))
        asked, points = points[:queries], points[queries:]
        if kind.queries is not None:
            asked = kind.queries(generator, queries)
        truth = dpkde.nonprivate.kde(points, asked, kernel)
        bounds = None if kind.bounds is None else [kind.bounds] * points.shape[1]
        return cls(points, asked, truth, kernel, bounds)

    def releases(self, epsilon: str, count: int, every: int = 1) -> tuple[Array, Array, Array, str]:
        """Publish with seeds 0, 1, …; return errors, assisted and plain, and what was covered.

        Each of shape (count, n_queries); and a word on the last release. Intervals take longer
        than all the rest: each release is asked for those of every so manyth query, the others
        are NaN.
        """
        shape = (count, len(self.queries))
        assisted, plain, covered = np.empty(shape), np.empty(shape), np.full(shape, np.nan)
        for seed in range(count):
            release = dpkde.publish(
                self.points,
                kernel=self.kernel,
                bounds=self.bounds,
                epsilon=epsilon,
                family="fourier",
                seed=seed,
            )
            assisted[seed] = np.abs(release.kde(self.queries, assisted=True) - self.truth)
            plain[seed] = np.abs(release.kde(self.queries, assisted=False) - self.truth)
            some = slice(seed % every, None, every)
            low, high = release.interval(self.queries[some], LEVEL)
            covered[seed, some] = (low <= self.truth[some]) & (self.truth[some] <= high)
        return assisted, plain, covered, release.plan.layout.summary


def bandwidth(points: Array, pairs: float) -> float:
    """Return σ for which the mean of e^{−‖x−x'‖²/σ²} over pairs of different records is `pairs`."""
    squares = (points**2).sum(axis=1)
    apart = squares[:, np.newaxis] + squares - 2 * points @ points.T
    distances = np.maximum(apart[np.triu_indices(len(points), 1)], 0.0)
    low, high = 1e-6, 1e6
    while high / low > 1.0001:
        middle = np.sqrt(low * high)
        low, high = (
            (low, middle) if np.exp(-distances / middle**2).mean() > pairs else (middle, high)
        )
    return float(low)


def measure_kinds(quick: bool, only: list[str]) -> None:
    """Print ratio and coverage of each kind."""
    releases = 4 if quick else 20
    print(f"{'kind':<17}{'d':>4}{'n':>6}{'ε':>7}{'plain':>9}{'ratio':>7}{'±':>6}{'cover':>7}   s")
    for name, kind in KINDS.items():
        if only and name not in only:
            continue
        case = Case.of(kind, 100)
        rows, dim = case.points.shape
        for epsilon in EPSILONS[1:2] if quick else EPSILONS:
            start = time.perf_counter()
            assisted, plain, covered, word = case.releases(epsilon, releases, every=5)
            ratio = assisted.mean() / plain.mean()
            # By the delta method, over releases.
            spread = (assisted.mean(1) - ratio * plain.mean(1)).std() / plain.mean()
            coverage = np.nanmean(covered)
            fine = ratio <= RATIO and coverage >= COVERAGE
            print(
                f"{name:<17}{dim:>4}{rows:>6}{epsilon:>7}{plain.mean():>9.2g}"
                f"{ratio:>7.3f}{spread / releases**0.5:>6.3f}{coverage:>7.3f}"
                f"{(time.perf_counter() - start) / releases:>6.2f}  {word}"
                f"{'' if fine else '  BELOW TARGET'}",
                flush=True,
            )


def measure_queries(quick: bool, only: list[str]) -> None:
    """Print the extremes over queries, and those of chance."""
    releases = 40 if quick else 400
    generator = np.random.default_rng(0)
    print(
        f"{'kind':<17}{'d':>4}{'ε':>5}{'ratio':>7}{'largest':>9}{'by chance':>11}{'cover':>8}"
        f"{'least':>7}{'by chance':>11}"
    )
    for name, kind in HARDEST.items():
        if only and name not in only:
            continue
        case = Case.of(kind, 40)
        assisted, plain, covered, word = case.releases("4", releases)
        ratios, coverages = assisted.mean(0) / plain.mean(0), covered.mean(0)
        largest = largest_by_chance(assisted, plain, generator)
        least = least_by_chance(releases, len(case.queries), generator)
        fine = ratios.max() <= QUERY_RATIO and coverages.min() >= QUERY_COVERAGE
        print(
            f"{name:<17}{case.points.shape[1]:>4}{4:>5}{assisted.mean() / plain.mean():>7.3f}"
            f"{ratios.max():>9.3f}{largest:>11.3f}{coverages.mean():>8.3f}{coverages.min():>7.3f}"
            f"{least:>11.3f}  {word}{'' if fine else '  BELOW TARGET'}",
            flush=True,
        )


def largest_by_chance(
    assisted: Array, plain: Array, generator: Generator, trials: int = 200
) -> float:
    """Return the largest ratio at a query that equal laws would show, mean over trials.

    Assisted errors are brought to plain's mean at each query; then in each release, all queries
    together, which is which is drawn by a coin.
    """
    level = assisted * (plain.mean(0) / np.maximum(assisted.mean(0), 1e-300))
    swaps = generator.random((trials, len(plain), 1)) < 0.5
    return float(
        np.mean(
            [
                (np.where(s, plain, level).mean(0) / np.where(s, level, plain).mean(0)).max()
                for s in swaps
            ]
        )
    )


def least_by_chance(releases: int, queries: int, generator: Generator) -> float:
    """Return the least share at a query that intervals of coverage 0.95 would show, on average."""
    shares = generator.binomial(releases, LEVEL, size=(10_000, queries)) / releases
    return float(shares.min(axis=1).mean())


def measure_times(quick: bool) -> None:
    """Print the time of a fit, and of an assisted answer over a plain one."""
    dim, size = (200, 1_024) if quick else (1_000, 4_096)
    generator = np.random.default_rng(0)
    points = spectrum(dim)(generator, 4_000)
    kernel = dpkde.Gaussian(bandwidth(points[:600], 0.03))
    settings: dict[str, Any] = {"kernel": kernel, "epsilon": 10, "seed": 0}
    plan = dpkde.plan(family=dpkde.Fourier(size), dim=dim, expected_rows=4_000, **settings)
    sums = dpkde.sketch(points, plan)
    fits = []
    for _ in range(3):
        wall, busy = time.perf_counter(), time.process_time()
        release = dpkde.publish(sums, epsilon=settings["epsilon"])
        release.kde(points[:1], assisted=True)
        fits.append((time.perf_counter() - wall, time.process_time() - busy))
    wall, busy = min(fits)
    fine = "ok" if wall <= 4 else "BELOW TARGET"
    print(
        f"D = {size}, d = {dim}: from sums to a fitted release {wall:.2f} s, at most 4: {fine} "
        f"(processor time {busy:.2f} s)"
    )
    for count in (100, 1_000, 10_000):
        queries = points[generator.integers(0, len(points), count)]
        ours, peer = race(
            partial(release.kde, queries, assisted=True),
            partial(release.kde, queries, assisted=False),
            5,
        )
        fine = "ok" if ours <= 1.3 * peer else "BELOW TARGET"
        print(f"  {count:>6} queries: assisted over plain {ours / peer:.2f}, at most 1.3: {fine}")


GLOVE = {
    (2.2, "0.02"): 1 / 4,
    (2.2, "0.05"): 1 / 6,
    (2.2, "0.2"): 1 / 5,
    (3.33, "0.05"): 1 / 5,
}
"""Bandwidth and ε, and at most which part of LSQ-RFF's error."""
LOOSE = (2.2, "0.05", "1e-6", 1 / 3, 16_384)
"""Bandwidth, ε, δ, at most which part of plain's error at how many frequencies.

So many frequencies are what a plan for plain answers takes.
"""


def measure_glove(folder: Path, quick: bool) -> None:
    """Print errors on GloVe, over the paper's and over plain's."""
    releases = 2 if quick else 10
    everything = _glove(folder)
    order = np.random.default_rng(1).permutation(len(everything))
    queries, points = everything[order[:100]], everything[order[100:]]
    print(
        f"{'σ':<5}{'ε':>5}{'δ':>6}{'ours':>10}{'±':>9}{'peer':>9}  {'peer at':<16}{'ours/peer':>9}"
    )

    def errors(truth: Array, count: int, assisted: bool | None, **settings: Any) -> Array:
        found = np.empty(count)
        for seed in range(count):
            release = dpkde.publish(points, seed=seed, **settings)
            found[seed] = np.abs(release.kde(queries, assisted=assisted) - truth).mean()
        print(release, flush=True)
        return found

    def show(
        sigma: float, epsilon: str, delta: str, ours: Array, peer: float, at: str, asked: float
    ) -> None:
        fine = ours.mean() <= asked * peer
        print(
            f"{sigma:<5}{epsilon:>5}{delta:>6}{ours.mean():>10.2g}{ours.std():>9.1g}{peer:>9.2g}"
            f"  {at:<16}{ours.mean() / peer:>9.3f} of at most {asked:.3f}"
            f"{'' if fine else '  BELOW TARGET'}",
            flush=True,
        )

    truths = {s: dpkde.nonprivate.kde(points, queries, dpkde.Gaussian(s)) for s in (2.2, 3.33)}
    for (sigma, epsilon), asked in GLOVE.items():
        kernel, truth = dpkde.Gaussian(sigma), truths[sigma]
        ours = errors(truth, releases, None, kernel=kernel, epsilon=epsilon)
        # Wide enough that no record is moved: the peer then is what it is without bounds.
        task = Task("glove", points, sigma, [(-20.0, 20.0)] * points.shape[1], {})
        peer, at = best_peer(task, kernel, points, queries, truth, epsilon)
        show(sigma, epsilon, "0", ours, peer, at, asked)
    sigma, epsilon, delta, asked, size = LOOSE
    settings: dict[str, Any] = {"kernel": dpkde.Gaussian(sigma), "epsilon": epsilon, "delta": delta}
    ours = errors(truths[sigma], releases, None, **settings)
    before = errors(truths[sigma], 3, False, family=dpkde.Fourier(size), **settings)
    show(sigma, epsilon, delta, ours, float(before.mean()), f"plain, D={size}", asked)


def main() -> None:
    """Measure what is named, or all that needs no files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", help="kinds, queries, times, glove")
    parser.add_argument("--quick", action="store_true", help="few releases, one ε")
    parser.add_argument("--only", nargs="*", default=[], help="names of kinds")
    arguments = parser.parse_args()
    parts = arguments.parts or ["kinds", "queries", "times"]
    if "kinds" in parts:
        measure_kinds(arguments.quick, arguments.only)
    if "queries" in parts:
        measure_queries(arguments.quick, arguments.only)
    if "times" in parts:
        measure_times(arguments.quick)
    if "glove" in parts:
        folder = os.environ.get("DPKDE_DATA")
        if folder is None:
            parser.error("glove needs the setting DPKDE_DATA")
        measure_glove(Path(folder), arguments.quick)


if __name__ == "__main__":
    main()
