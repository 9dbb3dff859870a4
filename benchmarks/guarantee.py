"""How often promises are broken, and how generous they are: every family, many releases.

    python benchmarks/guarantee.py [case ...] [--releases 1000]

For each case a table is released again and again, with fresh noise and a fresh seed.

``failures``: the largest part of releases, over queries, whose error exceeds `error_bound(η)`.
``generous``: that bound over the (1 − η)-quantile of the error, at the query where it is largest.
``coverage``: the least part of releases, over queries, whose `interval` holds the truth.
``wide``: half the interval's length over the quantile of the error, in the median over queries.
All of plain answers, ``assisted=False``: `error_bound` is theirs.

*Hard* data: most records lie at one point, where the KDE is large and nothing averages out;
parameters as for a promise, intervals with ``bias="worst"``. *Ordinary* data: a normal cloud,
parameters as by default, intervals as by default; a promise says little there.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpkde

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """A family, the laws that its noise may have, and where."""

    name: str
    settings: dict[str, Any]
    points: Array
    queries: Array
    hard: bool = True


def cases(rows: int) -> Iterator[Case]:
    """Yield a case for every family, and for every law of the noise."""
    generator = np.random.default_rng(5)
    half = rows * 7 // 8
    points = np.concatenate([np.full((half, 2), 0.37), generator.normal(size=(rows - half, 2))])
    queries = np.array([[0.37, 0.37], [0.9, 0.1], [1.6, 1.1], [-1.0, 0.5], [3.0, -3.0]])
    box: dict[str, Any] = {"kernel": dpkde.Gaussian(1.0), "bounds": [(-4, 4)] * 2, "epsilon": 1}
    rough = box | {"kernel": dpkde.Laplacian(1.0)}
    for name, settings in {
        "spline": box | {"family": "spline"},
        "spline, replace": box | {"family": "spline", "adjacency": "replace"},
        "spline, δ": box | {"family": "spline", "delta": "1e-6"},
        "fastgauss": box | {"family": "fastgauss"},
        "fourier, max-norm": box | {"family": "fourier"},
        "fourier, Laplace": box | {"family": "fourier", "sampler": "opendp"},
        "fourier, δ": box | {"family": "fourier", "delta": "1e-6"},
        "fourier, phase": box | {"family": dpkde.Fourier(form="phase")},
        "hashing": rough | {"family": "hashing"},
        "hashing, unsigned": rough | {"family": dpkde.Hashing(signed=False)},
        "hashing, δ": rough | {"family": "hashing", "delta": "1e-6"},
        "spline, Laplacian": rough | {"family": "spline"},
    }.items():
        yield Case(name, settings, points, queries)
        cloud = generator.normal(size=(rows, 2))
        yield Case(f"{name}, ordinary", settings, cloud, queries, hard=False)
    directions = {"kernel": dpkde.Geodesic(), "epsilon": 1}
    around = generator.normal(size=(rows, 4)) + np.array([1.0, 0.0, 0.0, 0.0])
    yield Case("directions", directions, around, generator.normal(size=(5, 4)))


def measure(case: Case, releases: int, eta: float, level: float) -> dict[str, float]:
    """Return failures, generosity, coverage and width over fresh releases of a case."""
    truth = dpkde.nonprivate.kde(case.points, case.queries, case.settings["kernel"])
    promise: dict[str, Any] = {"alpha": 0.999, "eta": eta} if case.hard else {}
    first = dpkde.publish(case.points, **case.settings, **promise)
    settings = {key: v for key, v in case.settings.items() if key not in ("kernel", "bounds")}
    settings.pop("family", None)
    plan = first.plan
    bounds, errors, inside, widths = [], [], [], []
    sketch = dpkde.sketch(case.points, plan)
    for seed in range(releases):
        if plan.pair.draws:
            fresh = dpkde.plan(
                kernel=plan.frame.kernel,
                bounds=plan.frame.domain,
                family=plan.family,
                dim=plan.frame.dim,
                seed=seed,
                **settings,
            )
            sketch = dpkde.sketch(case.points, fresh)
        release = dpkde.publish(sketch, **settings, **promise)
        bias = "worst" if case.hard else "typical"
        low, high = release.interval(case.queries, level, bias=bias, assisted=False)
        bounds.append(release.error_bound(eta))
        errors.append(np.abs(release.kde(case.queries, clip=False, assisted=False) - truth))
        inside.append((low <= truth) & (truth <= high))
        widths.append((high - low) / 2)
    wrong, size = np.array(errors), np.array(bounds)[:, np.newaxis]
    quantile = np.quantile(wrong, 1 - eta, axis=0)
    return {
        "bound": float(np.mean(bounds)),
        "failures": float((wrong > size).mean(axis=0).max()),
        "generous": float(np.mean(bounds) / quantile.max()),
        "coverage": float(np.mean(inside, axis=0).min()),
        "wide": float(np.median(np.median(widths, axis=0) / np.quantile(wrong, level, axis=0))),
    }


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--releases", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--eta", type=float, default=0.05)
    arguments = parser.parse_args()
    size = f"{arguments.releases} releases of {arguments.rows} records"
    print(f"{size}, η = {arguments.eta}, level 0.95")
    print(f"{'case':<28}{'α':>9}{'failures':>10}{'generous':>10}{'coverage':>10}{'wide':>7}")
    for case in cases(arguments.rows):
        if arguments.names and case.name not in arguments.names:
            continue
        figures = measure(case, arguments.releases, arguments.eta, 0.95)
        print(
            f"{case.name:<28}{figures['bound']:>9.4f}{figures['failures']:>10.4f}"
            f"{figures['generous']:>10.2f}{figures['coverage']:>10.3f}{figures['wide']:>7.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
