"""Error against privacy: each mechanism at its best for that ε, ours with its defaults."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from experiments.cache import Row
from experiments.data import Task
from experiments.drawing import banded, hide, legend, logarithmic, look, panels, rows_of
from experiments.protocol import Lab, compared
from experiments.summary import column, curves

NAME = "privacy"
TITLE = "Error against privacy"
TEXT = (
    "Mean over trials at the parameter of least error, which is found on the very queries that "
    "are asked; the band is from the least to the largest trial. *Bernstein* has the noise of the "
    "original, one per node; *Bernstein, tight* the noise of the sharper bound in `dpkde.prior`. "
    "*NoisySample* is not private. *dpkde* is `publish` with its defaults, with a private count; "
    "where its table is one of Fourier features, answers are assisted by a model, and *dpkde, "
    "plain* asks the same releases without it. LSQ-RFF is never assisted."
)


def measure(task: Task, lab: Lab) -> list[Row]:
    """Return errors of all mechanisms in every trial, at the best parameter for each ε."""
    return best_rows(compared(task, lab))


def best_rows(rows: list[Row]) -> list[Row]:
    """Return the rows at the parameter of least mean error; noise-free rows are left out."""
    best = {key: curve.parameters[curve.best] for key, curve in curves(rows).items()}

    def is_best(row: Row) -> bool:
        parameter = row["parameter"]  # NaN where a mechanism has none
        key = (row["data"], row["mechanism"], row["epsilon"])
        return math.isnan(parameter) or bool(parameter == best[key])

    return [row for row in rows if math.isfinite(row["epsilon"]) and is_best(row)]


def best_parameter(rows: list[Row], name: str, mechanism: str, epsilon: float) -> int | None:
    """Return the parameter of least error, None where the mechanism has no row."""
    curve = curves(row for row in rows if row["data"] == name).get((name, mechanism, epsilon))
    return None if curve is None else int(curve.parameters[curve.best])


def draw(rows: list[Row]) -> Any:
    """Return a panel for each data set."""
    names, all_curves = column(rows, "data"), curves(rows)
    columns = min(2, len(names))
    figure, axes = panels(math.ceil(len(names) / columns), columns, width=4.0, height=3.0)
    for panel, name in zip(axes.flat, names, strict=False):
        panel.set_title(name)
        logarithmic(panel)
        for mechanism in column(rows, "mechanism"):
            budgets = sorted(e for d, m, e in all_curves if (d, m) == (name, mechanism))
            if budgets:
                errors = np.array([all_curves[name, mechanism, e].errors[0] for e in budgets])
                banded(panel, budgets, errors, mechanism, look(mechanism))
        panel.set_xlabel("ε")
        panel.set_ylabel("mean absolute error")
    for place in rows_of(len(names), columns):
        hide(axes.flat[place], "")
    legend(figure)
    return figure
