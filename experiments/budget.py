"""Error against computational budget, for each ε and without noise: where private error turns."""

from __future__ import annotations

import math
from typing import Any

from experiments.cache import Row
from experiments.data import Task
from experiments.drawing import banded, graded, hide, in_words, legend, logarithmic, panels
from experiments.protocol import FGT, PLAIN, RFF, SWEPT, Lab, sweep
from experiments.summary import column, curves

NAME = "budget"
TITLE = "Error against computational budget"
TEXT = (
    "Mean absolute error over held-out queries, mean and range over trials. Without noise the "
    "error falls with the budget; with noise it turns, later where ε is larger. Where the last "
    "point is the lowest, the grid ends before the turn. *LSQ-FGT* has noise for the sharp bound "
    "(2 − 2^(1−ρ))^d, which hardly grows with the order; *plain*, for the paper's general one, ρ^d."
)
_BUDGETS = {RFF: "features m", FGT: "order ρ", PLAIN: "order ρ"}


def measure(task: Task, lab: Lab) -> list[Row]:
    """Return errors of LSQ-RFF and LSQ-FGT, with both of its bounds, over their parameter."""
    return [row for row in sweep(task, lab) if row["mechanism"] in SWEPT]


def draw(rows: list[Row]) -> Any:
    """Return a panel for each data set and mechanism."""
    names, all_curves = column(rows, "data"), curves(rows)
    figure, axes = panels(len(names), len(SWEPT))
    # The same ε has the same look in every panel, whichever budgets a data set is measured at.
    budgets = sorted({epsilon for _, _, epsilon in all_curves if math.isfinite(epsilon)})
    for line, name in zip(axes, names, strict=True):
        for panel, mechanism in zip(line, SWEPT, strict=True):
            panel.set_title(f"{name}: {mechanism}")
            if not any(key[:2] == (name, mechanism) for key in all_curves):
                hide(panel, "does not run on these data")
                continue
            logarithmic(panel, x=mechanism == RFF)
            for place, epsilon in enumerate(budgets):
                curve = all_curves.get((name, mechanism, epsilon))
                if curve is not None:
                    style = graded(place, len(budgets))
                    banded(panel, curve.parameters, curve.errors, in_words(epsilon), style)
            curve = all_curves[name, mechanism, math.inf]
            quiet = {"color": "#c4561a", "marker": "None", "linestyle": "-", "linewidth": 2.2}
            banded(panel, curve.parameters, curve.errors, in_words(math.inf), quiet)
            if mechanism != RFF:
                panel.set_xticks(range(2, 15, 2))
            panel.set_xlabel(_BUDGETS[mechanism])
            panel.set_ylabel("mean absolute error")
    legend(figure)
    return figure
