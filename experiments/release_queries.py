"""The table of query release mechanisms, measured: error as the number of queries grows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import dpkde
from dpkde import prior
from experiments.cache import Row
from experiments.data import Pairs
from experiments.drawing import banded, legend, logarithmic, look, panels
from experiments.progress import tracked
from experiments.protocol import Lab
from experiments.summary import Fit, column, fitted

NAME = "release_queries"
TITLE = "Query release: error as queries grow"
TEXT = (
    "Mean absolute error of the answers to q queries that the curator knows; ε = 1, with δ = 10⁻⁶ "
    "where a mechanism needs it; one dimension, so that SmallDB and PMW can take part. The "
    "exponent is that of q in the mean error: the paper's sample complexities, for all queries at "
    "once, have a further √log q or log q."
)
DELTA = "1e-6"
MECHANISMS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "Laplace": (prior.LaplaceAnswers(), {}, "1"),
    "Gaussian": (prior.GaussianAnswers(), {"delta": DELTA}, "1/2"),
    "HRW": (prior.HRW(), {"delta": DELTA}, "0"),
    "PMW": (prior.PMW(rounds=8, points_per_axis=24), {}, "0 (log)"),
    "PMW, δ": (prior.PMW(rounds=8, points_per_axis=24), {"delta": DELTA}, "0 (log)"),
    "SmallDB": (prior.SmallDB(size=4, points_per_axis=16), {}, "0 (log)"),
    "LSQ-RFF": (prior.OurRelease("fourier"), {}, "0"),
    "dpkde": (prior.OurRelease(), {}, "0"),
}
"""How each is asked, and the exponent of q in the error of one answer."""
_KERNEL = dpkde.Gaussian(0.5)
_BOUNDS: Pairs = [(0.0, 4.0)]


def measure(lab: Lab) -> list[Row]:
    """Return the error of every mechanism, number of queries and trial."""
    settings, rows = lab.settings, []
    generator = np.random.default_rng(0)
    centers = np.where(generator.uniform(size=settings.release_rows) < 0.7, 1.0, 3.0)
    points = generator.normal(centers, 0.3).clip(0, 4)[:, np.newaxis]
    asked = [(name, size) for name in MECHANISMS for size in settings.release_sizes]
    for name, size in tracked(asked, "query release"):
        key = {
            "release_queries": name,
            "size": size,
            "rows": settings.release_rows,
            "trials": settings.trials,
        }

        def one(name: str = name, size: int = size) -> list[Row]:
            mechanism, more, _ = MECHANISMS[name]
            rows = []
            for trial in range(settings.trials):
                # Spread over the bounds: then a few queries are as hard as many.
                queries = np.random.default_rng(trial).uniform(0, 4, size=(size, 1))
                truth = dpkde.nonprivate.kde(points, queries, _KERNEL)
                answers = prior.answer(
                    points,
                    queries,
                    mechanism=mechanism,
                    kernel=_KERNEL,
                    bounds=_BOUNDS,
                    epsilon=1,
                    **more,
                )
                errors = np.abs(answers.kde - truth)
                rows.append(
                    {
                        "mechanism": name,
                        "queries": size,
                        "trial": trial,
                        "error": float(errors.mean()),
                        "largest": float(errors.max()),
                    }
                )
            return rows

        rows += lab.cache.rows(key, one)
    return rows


def exponents(rows: list[Row]) -> dict[str, Fit]:
    """Return the exponent of q in the mean error, an estimate from every trial."""
    return {
        name: fitted(
            [math.log(r["queries"]) for r in rows if r["mechanism"] == name and r["error"] > 0],
            [math.log(r["error"]) for r in rows if r["mechanism"] == name and r["error"] > 0],
        )
        for name in column(rows, "mechanism")
    }


def draw(rows: list[Row]) -> Any:
    """Return error over the number of queries, a curve for each mechanism."""
    figure, axes = panels(1, 1, width=4.6, height=3.2)
    panel = axes[0, 0]
    logarithmic(panel)
    for name in column(rows, "mechanism"):
        sizes = sorted({row["queries"] for row in rows})
        errors = [
            [row["error"] for row in rows if (row["mechanism"], row["queries"]) == (name, size)]
            for size in sizes
        ]
        banded(panel, sizes, np.array(errors), name, look(name))
    panel.set_xlabel("queries q")
    panel.set_ylabel("mean absolute error")
    legend(figure)
    return figure
