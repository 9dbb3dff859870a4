"""Error against curator time at two budgets, over each mechanism's parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.cache import Row
from experiments.data import Task
from experiments.drawing import in_words, legend, logarithmic, look, panels
from experiments.protocol import OURS, SAMPLED, UNASSISTED, Lab, compared
from experiments.summary import column, curves

NAME = "runtime"
TITLE = "Error against curator time"
TEXT = (
    "Each point is a parameter, joined in their order: mean error over trials, bars from the "
    "least to the largest, and the time to make the table and its noise, on the machine that ran "
    "this. *dpkde* is one point, time to plan and to fit a model included."
)


def measure(task: Task, lab: Lab) -> list[Row]:
    """Return mean errors and median times at the budgets of the curves over time."""
    budgets = set(lab.settings.time_epsilons)
    all_curves = curves(row for row in compared(task, lab) if row["epsilon"] in budgets)
    return [
        {
            "data": name,
            "mechanism": mechanism,
            "epsilon": epsilon,
            "parameter": float(parameter),
            "seconds": float(seconds),
            "error": float(errors.mean()),
            "least": float(errors.min()),
            "largest": float(errors.max()),
        }
        for (name, mechanism, epsilon), curve in all_curves.items()
        for parameter, seconds, errors in zip(
            curve.parameters, curve.seconds, curve.errors, strict=True
        )
    ]


def draw(rows: list[Row]) -> Any:
    """Return a panel for each data set and budget."""
    names = column(rows, "data")
    budgets = list(dict.fromkeys(row["epsilon"] for row in rows))
    figure, axes = panels(len(names), len(budgets), width=3.8)
    for line, name in zip(axes, names, strict=True):
        for panel, epsilon in zip(line, budgets, strict=True):
            panel.set_title(f"{name}, {in_words(epsilon)}")
            logarithmic(panel)
            for mechanism in column(rows, "mechanism"):
                some = sorted(
                    (row["parameter"], row["seconds"], row["error"], row["least"], row["largest"])
                    for row in rows
                    if (row["data"], row["mechanism"], row["epsilon"]) == (name, mechanism, epsilon)
                )
                if not some:
                    continue
                _, seconds, error, least, largest = np.array(some).T
                style = look(mechanism)
                if mechanism in (OURS, UNASSISTED, SAMPLED):
                    style |= {"linestyle": "None", "markersize": 7}
                reach = np.maximum([error - least, largest - error], 0)
                panel.errorbar(seconds, error, yerr=reach, label=mechanism, elinewidth=0.6, **style)
            panel.set_xlabel("curator time, s")
            panel.set_ylabel("mean absolute error")
    legend(figure)
    return figure
