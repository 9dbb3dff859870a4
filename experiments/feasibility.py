"""Which mechanisms can be made at all: the library's own refusals, by dimension."""

from __future__ import annotations

from typing import Any

from experiments.cache import Row
from experiments.data import Task, generated
from experiments.drawing import legend, panels
from experiments.protocol import MECHANISMS, OURS, PLAIN, TIGHT, Lab
from experiments.summary import column

NAME = "feasibility"
TITLE = "Which mechanisms run"
TEXT = (
    "Whether a mechanism can be made with its smallest useful parameter (order 2 of the fast "
    "Gauss transform and of Bernstein polynomials), and what stands against it."
)


def measure(task: Task, lab: Lab) -> list[Row]:
    """Return, for every mechanism, whether a table can be made, and why not."""
    rows = []
    for mechanism in MECHANISMS:
        if mechanism.name in (TIGHT, PLAIN):
            continue
        why = mechanism.obstacle(task, min(mechanism.grid(task, lab.settings)))
        rows.append(_row(task, mechanism.name, why))
    return [*rows, _row(task, OURS, None)]


def stand_in(lab: Lab) -> Task:
    """Return generated points in 100 dimensions: to be refused or not, they need not be real."""
    return generated("clusters-100", 1000 + lab.settings.queries, lab.settings.queries)


def _row(task: Task, name: str, why: str | None) -> Row:
    return {
        "data": task.name,
        "dim": task.dim,
        "mechanism": name,
        "runs": why is None,
        "obstacle": why or "",
    }


def draw(rows: list[Row]) -> Any:
    """Return a chart: a mark where a mechanism runs, a cross where it does not."""
    names = column(rows, "data")
    mechanisms = column(rows, "mechanism")
    figure, axes = panels(1, 1, width=4.6, height=2.2)
    panel = axes[0, 0]
    for runs, marker, label in ((True, "o", "runs"), (False, "x", "refused")):
        some = [row for row in rows if row["runs"] == runs]
        panel.scatter(
            [names.index(row["data"]) for row in some],
            [mechanisms.index(row["mechanism"]) for row in some],
            marker=marker,
            color="black",
            s=60,
            label=label,
        )
    dims = {row["data"]: row["dim"] for row in rows}
    panel.set_xticks(range(len(names)), [f"{name}\nd = {dims[name]}" for name in names])
    panel.set_yticks(range(len(mechanisms)), mechanisms)
    panel.margins(0.2)
    legend(figure)
    return figure
