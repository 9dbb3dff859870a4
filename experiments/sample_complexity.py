"""Sample complexity: the smallest n at which (α, η) holds, each mechanism at its best parameter.

For every n the (1 − η)-quantile of the error, over trials and queries together, is the α that
holds; the least over parameters belongs to the mechanism. Read the other way round, that is the
smallest n for an α.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import dpkde
from dpkde import prior
from dpkde.families.base import Family
from experiments.cache import Row
from experiments.data import Task, generated
from experiments.drawing import legend, logarithmic, look, panels
from experiments.progress import tracked
from experiments.protocol import BERNSTEIN, FGT, OURS, RFF, Lab, publish, tabulate
from experiments.summary import Fit, column, fitted

NAME = "sample_complexity"
TITLE = "Sample complexity"
TEXT = (
    "The smallest n at which 95 % of answers, over trials and queries together, are within α; ε = "
    "1, the generated mixture in two dimensions, n public for the paper's mechanisms. The "
    "exponent is the slope of ln n over ln 1/α."
)
ETA, EPSILON = 0.05, 1.0
THEORY = {RFF: "2", FGT: "1 (and logarithms)", BERNSTEIN: "1 + Θ(d/σ²)", OURS: "1 (and logarithms)"}
_GRIDS: dict[str, tuple[Callable[[int], Family], Callable[[int], tuple[int, ...]]]] = {
    # Features in proportion to εn, around the best, as the theory of the optimum has it.
    RFF: (
        lambda m: dpkde.Fourier(m, form="phase"),
        lambda n: tuple(max(2, int(n * c)) for c in (0.02, 0.05, 0.1, 0.2)),
    ),
    FGT: (lambda rho: dpkde.FastGauss(rho), lambda n: (2, 3, 4, 5, 6, 8, 10, 12)),
    BERNSTEIN: (lambda k: prior.Bernstein(k), lambda n: (4, 8, 12, 20, 32)),
}


def measure(lab: Lab) -> list[Row]:
    """Return the α that holds for every mechanism and n, with the parameter that reaches it."""
    settings, rows = lab.settings, []
    names = (*_GRIDS, OURS)
    asked = [(name, count) for count in settings.complexity_rows for name in names]
    for name, count in tracked(asked, "sample complexity"):
        key = {
            "complexity": name,
            "data": "one mixture",
            "rows": count,
            "trials": settings.trials,
            "queries": settings.queries,
        }

        def one(name: str = name, count: int = count) -> list[Row]:
            task = generated("mixture", count + settings.queries, settings.queries)
            if name == OURS:
                errors = [
                    np.abs(publish(task, EPSILON, trial).kde(task.queries, clip=False) - task.truth)
                    for trial in range(settings.trials)
                ]
                alpha, best = float(np.quantile(errors, 1 - ETA)), 0
            else:
                make, grid = _GRIDS[name]
                alpha, best = min(
                    (_held(task, make(parameter), settings.trials), parameter)
                    for parameter in dict.fromkeys(grid(count))
                )
            return [{"mechanism": name, "rows": count, "alpha": alpha, "parameter": best}]

        rows += lab.cache.rows(key, one)
    return rows


def _held(task: Task, family: Family, trials: int) -> float:
    """Return the error that only a part η of answers exceeds."""
    is_random = isinstance(family, dpkde.Fourier)
    table, errors = tabulate(task, family), []
    for trial in range(trials):
        if is_random and trial:
            table = tabulate(task, family, trial)
        errors.append(np.abs(table.answer(task.queries, EPSILON)[0] - task.truth))
    return float(np.quantile(errors, 1 - ETA))


def exponents(rows: list[Row]) -> dict[str, Fit]:
    """Return the slope of ln n over ln 1/α, where α is below a quarter: above, it tells nothing."""
    fits = {}
    for name in column(rows, "mechanism"):
        some = [row for row in rows if row["mechanism"] == name and 0 < row["alpha"] < 0.25]
        across = np.array([-math.log(row["alpha"]) for row in some])
        up = np.array([math.log(row["rows"]) for row in some])
        # n is what was set and α what was measured: regress α on n, then turn the slope over.
        back = fitted(up.tolist(), across.tolist())
        ends = sorted([_turned(back.low), _turned(back.high)])
        fits[name] = Fit(_turned(back.slope), *ends)
    return fits


def _turned(slope: float) -> float:
    return 1 / slope if slope > 0 else math.inf if slope <= 0 else math.nan


def smallest_rows(rows: list[Row], name: str, alpha: float) -> float:
    """Return the smallest n at which α holds, between measured ones by logarithms; NaN if none."""
    some = sorted((row["rows"], row["alpha"]) for row in rows if row["mechanism"] == name)
    before: tuple[int, float] | None = None
    for count, error in some:
        if error <= alpha:
            if before is None:
                return float(count)
            part = math.log(before[1] / alpha) / math.log(before[1] / error)
            return float(before[0] * (count / before[0]) ** part)
        before = (count, error)
    return math.nan


def draw(rows: list[Row]) -> Any:
    """Return the smallest n over α, a curve for each mechanism."""
    figure, axes = panels(1, 1, width=4.6, height=3.2)
    panel = axes[0, 0]
    logarithmic(panel)
    for name in column(rows, "mechanism"):
        some = [row for row in rows if row["mechanism"] == name]
        alphas = [1 / row["alpha"] for row in some]
        panel.plot(alphas, [row["rows"] for row in some], label=name, **look(name))
    panel.set_xlabel("1/α")
    panel.set_ylabel(f"records n, η = {ETA:g}, ε = {EPSILON:g}")
    legend(figure)
    return figure
