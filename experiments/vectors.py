"""Vectors like those of an encoder: what ε buys for them, and the picture of assisted answers.

    python -m experiments.vectors table [--rows N ...] [--releases R]
    python -m experiments.vectors picture docs/assisted.png

The table is that of docs/embeddings.md, the picture that of docs/method.md. Both need no data.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dpkde
from experiments.data import Array, exact_kde

DIM, TOPICS = 100, 200
TYPICAL = 0.02
"""The mean kernel value over pairs for which a bandwidth is chosen."""
QUERIES = 200
_BLOCK = 1 << 14
BUDGETS = (("0.1", "0"), ("1", "0"), ("1", "1e-6"))
"""ε and δ of the table."""


@dataclass(frozen=True, eq=False)
class Encoder:
    """Unit vectors with a common part, topics of many sizes, and less and less along each axis.

    So are those of texts: no two are opposite, some directions tell far more than others, and what
    is spoken of most is far more frequent than the rest.
    """

    seed: int = 0

    def vectors(self, count: int, *, stream: int) -> Array:
        """Return `count` vectors of shape (count, DIM); another stream has others."""
        fixed = np.random.default_rng(self.seed)
        spread = np.arange(1.0, DIM + 1) ** -0.25
        common = _unit(fixed.normal(size=DIM))
        topics = _unit(fixed.normal(size=(TOPICS, DIM)) * spread**2)
        sizes = np.arange(1.0, TOPICS + 1) ** -0.7
        generator = np.random.default_rng([self.seed, stream])
        vectors = np.empty((count, DIM))
        for start in range(0, count, _BLOCK):
            some = vectors[start : start + _BLOCK]
            label = generator.choice(TOPICS, len(some), p=sizes / sizes.sum())
            own = generator.normal(size=some.shape) * spread * (0.7 / np.linalg.norm(spread))
            own *= generator.gamma(8, 1 / 8, size=(len(some), 1))
            some[:] = _unit(0.5 * common + 0.5 * topics[label] + own)
        return vectors

    def strangers(self, count: int, *, stream: int) -> Array:
        """Return vectors of another kind: nothing in common, no topic."""
        generator = np.random.default_rng([self.seed, stream, 1])
        return _unit(generator.normal(size=(count, DIM)) * np.arange(1.0, DIM + 1) ** -0.25)


def _unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def bandwidth_for(vectors: Array, typical: float) -> float:
    """Return σ at which the mean of exp(−‖x − y‖²/σ²) over pairs of public vectors is `typical`."""
    half = len(vectors) // 2
    squares = ((vectors[:half] - vectors[half : 2 * half]) ** 2).sum(axis=1)
    low, high = 1e-6, 1e6
    for _ in range(100):
        middle = (low * high) ** 0.5
        high, low = (
            (middle, low) if np.exp(-squares / middle**2).mean() > typical else (high, middle)
        )
    return high


def told_apart(inside: Array, outside: Array) -> float:
    """Return how often a score of the first is above one of the second: the area under the ROC."""
    return float((inside[:, np.newaxis] > outside).mean())


def measured(rows: int, releases: int) -> Iterator[dict[str, Any]]:
    """Yield the figures of each budget, for a table of so many vectors."""
    encoder = Encoder()
    public = encoder.vectors(4_000, stream=0)
    sigma, bounds = bandwidth_for(public, TYPICAL), dpkde.Ball(public.mean(axis=0), 2)
    points = encoder.vectors(rows, stream=1)
    usual, strange = (
        encoder.vectors(QUERIES, stream=2),
        encoder.strangers(QUERIES, stream=2),
    )
    truth = exact_kde(points, usual, sigma)
    for epsilon, delta in BUDGETS:
        lines = []
        for seed in range(releases):
            start = time.process_time()
            release = dpkde.publish(
                points,
                kernel=dpkde.Gaussian(sigma),
                bounds=bounds,
                epsilon=epsilon,
                delta=delta,
                typical_density=TYPICAL,
                seed=seed,
            )
            seconds = time.process_time() - start
            plain, answers = release.kde(usual, assisted=False), release.kde(usual)
            low, high = release.interval(usual, 0.95)
            lines.append(
                (
                    np.abs(plain - truth).mean(),
                    np.abs(answers - truth).mean(),
                    release.average_error(usual).mean(),
                    ((low <= truth) & (truth <= high)).mean(),
                    told_apart(release.kde(usual, clip=False), release.kde(strange, clip=False)),
                    seconds,
                    len(release.to_bytes()),
                )
            )
        plain_error, error, claimed, covered, apart, seconds, size = np.mean(lines, axis=0)
        yield {
            "n": f"{rows:,}",
            "ε": epsilon if delta == "0" else f"{epsilon}, δ = {delta}",
            "frequencies": f"{release.table.size // 2:,}",
            "model": release.model.kind if release.model else "–",
            "explains": f"{release.model.share:.0%}" if release.model else "–",
            "plain": f"{plain_error:.2g}",
            "assisted": f"{error:.2g}",
            "of the typical value": f"{100 * error / truth.mean():.2g}%",
            "average_error": f"{claimed:.2g}",
            "covered": f"{covered:.2f}",
            "told apart": f"{apart:.2f}",
            "CPU s": f"{seconds:.0f}",
            "MB": f"{size / 1e6:.1f}",
        }


def table(all_rows: Sequence[int], releases: int) -> None:
    """Print a Markdown table, a line at a time."""
    first = True
    for rows in all_rows:
        for line in measured(rows, releases):
            if first:
                print("| " + " | ".join(line) + " |\n|" + "---|" * len(line))
                first = False
            print("| " + " | ".join(line.values()) + " |", flush=True)


def cloud(count: int, dim: int, seed: int) -> Array:
    """Return points of one cloud whose axes differ, and which is wider for some than for others."""
    generator = np.random.default_rng(seed)
    axes = np.linspace(1.5, 0.5, dim)
    sizes = generator.choice([0.8, 1.0, 1.3], size=(count, 1))
    return np.asarray(generator.normal(size=(count, dim)) * axes * sizes)


def picture(path: Path, *, rows: int = 40_000, releases: int = 5) -> None:
    """Draw plain and assisted answers of one table against the truth, and errors against ε."""
    import matplotlib as mpl

    from experiments.drawing import STYLE, legend, logarithmic, panels, shrunk

    plain_look: dict[str, Any] = {"color": "#c4561a", "marker": "^"}
    assisted_look: dict[str, Any] = {"color": "#000000", "marker": "o"}
    points, queries = cloud(rows, 50, 0), cloud(150, 50, 1)
    sigma = bandwidth_for(cloud(2_000, 50, 2), 0.03)
    truth = exact_kde(points, queries, sigma)
    budgets, errors = (0.05, 0.1, 0.2, 0.5, 1.0), []
    figure, axes = panels(1, 2, width=3.6, height=3.0)
    scatter, curve = axes[0]
    for epsilon in budgets:
        for seed in range(releases):
            release = dpkde.publish(
                points, kernel=dpkde.Gaussian(sigma), epsilon=str(epsilon), seed=seed
            )
            both = [release.kde(queries, clip=False, assisted=a) for a in (False, True)]
            errors.append([np.abs(answers - truth).mean() for answers in both])
            if (epsilon, seed) == (0.2, 0):
                looks = zip(both, (plain_look, assisted_look), strict=True)
                for answers, style in looks:
                    hollow = {} if style is assisted_look else {"facecolors": "none"}
                    scatter.scatter(truth, answers, s=11, linewidths=0.7, **style, **hollow)
    most = truth.max() * 1.05
    scatter.plot([0, most], [0, most], color="#888888", linewidth=0.9)
    scatter.set_title(f"one release, ε = 0.2, n = {rows:,}, d = 50")
    scatter.set_xlabel("true KDE")
    scatter.set_ylabel("answer")
    means = np.array(errors).reshape(len(budgets), releases, 2).mean(axis=1)
    curve.plot(budgets, means[:, 0], label="plain", linestyle="-.", **plain_look)
    curve.plot(budgets, means[:, 1], label="assisted", linewidth=1.8, **assisted_look)
    singles = [1 / (epsilon * rows) for epsilon in budgets]
    curve.plot(budgets, singles, label="1/(εn)", linestyle=":", color="#888888")
    logarithmic(curve)
    curve.set_title(f"mean of {releases} releases")
    curve.set_xlabel("ε")
    curve.set_ylabel("mean absolute error")
    legend(figure)
    with mpl.rc_context(STYLE):
        path.write_bytes(shrunk(figure))


def main(words: Sequence[str] | None = None) -> int:
    """Read the command line and do one of the two."""
    command = argparse.ArgumentParser(prog="python -m experiments.vectors")
    verbs = command.add_subparsers(dest="verb", required=True)
    of_table = verbs.add_parser("table", help="what ε buys")
    of_table.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    of_table.add_argument("--releases", type=int, default=3)
    of_picture = verbs.add_parser("picture", help="plain and assisted answers")
    of_picture.add_argument("path", type=Path)
    options = command.parse_args(words)
    if options.verb == "table":
        table(options.rows, options.releases)
    else:
        picture(options.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
