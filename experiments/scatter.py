"""Ground truth against private estimates at held-out queries: one release of each mechanism."""

from __future__ import annotations

from typing import Any

from experiments.cache import Row
from experiments.data import Task
from experiments.drawing import in_words, legend, look, panels
from experiments.privacy import best_parameter
from experiments.progress import tracked
from experiments.protocol import BERNSTEIN, FGT, OURS, RFF, UNASSISTED, Lab, noisy_answers, sweep
from experiments.summary import column

NAME = "scatter"
TITLE = "Ground truth against private estimates"
TEXT = (
    "One point for each query, from one release of each mechanism at its best parameter. The line "
    "is where estimates are exact. Estimates beyond the frame are drawn at its edge. *dpkde, "
    "plain*: asked without the model, where there is one."
)
_SHOWN = (BERNSTEIN, RFF, FGT, UNASSISTED, OURS)


def measure(task: Task, lab: Lab) -> list[Row]:
    """Return truth and estimate of every query."""
    errors, rows = sweep(task, lab), []
    budgets = lab.settings.scatter_epsilons
    asked = [(epsilon, name) for epsilon in budgets for name in _SHOWN]
    for epsilon, name in tracked(asked, f"{task.name}: scatter"):
        best = best_parameter(errors, task.name, name, epsilon)
        if best is None:
            continue
        key = {"scatter": task.fingerprint, "name": name, "epsilon": epsilon, "parameter": best}

        def one(name: str = name, epsilon: float = epsilon, best: int = best) -> list[Row]:
            answers = noisy_answers(task, name, best, epsilon, 0, task.queries)
            return [
                {
                    "data": task.name,
                    "mechanism": name,
                    "epsilon": epsilon,
                    "query": place,
                    "truth": float(truth),
                    "estimate": float(estimate),
                }
                for place, (truth, estimate) in enumerate(zip(task.truth, answers, strict=True))
            ]

        rows += lab.cache.rows(key, one)
    return rows


def draw(rows: list[Row]) -> Any:
    """Return a panel for each data set and ε."""
    names = column(rows, "data")
    budgets = sorted({row["epsilon"] for row in rows})
    figure, axes = panels(len(names), len(budgets), width=2.9, height=2.7)
    for line, name in zip(axes, names, strict=True):
        most = max(row["truth"] for row in rows if row["data"] == name) * 1.15
        low, high = -0.25 * most, 1.25 * most
        for panel, epsilon in zip(line, budgets, strict=True):
            panel.set_title(f"{name}, {in_words(epsilon)}")
            panel.plot([0, most], [0, most], color="#888888", linewidth=0.9)
            for mechanism in _SHOWN:
                some = [
                    row
                    for row in rows
                    if (row["data"], row["mechanism"], row["epsilon"]) == (name, mechanism, epsilon)
                ]
                style = look(mechanism)
                filled = mechanism == OURS
                panel.scatter(
                    [row["truth"] for row in some],
                    [min(max(row["estimate"], low), high) for row in some],
                    s=7 if filled else 12,
                    marker=style["marker"],
                    facecolors=style["color"] if filled else "none",
                    edgecolors=style["color"],
                    linewidths=0.7,
                    # Thousands of markers as vectors would make a heavy file.
                    rasterized=True,
                    label=mechanism,
                )
            panel.set_xlim(0, most)
            panel.set_ylim(low * 1.05, high * 1.05)
            panel.set_xlabel("true KDE")
            panel.set_ylabel("estimate")
    legend(figure)
    return figure
