"""The bandwidth table: mean and spread of the true KDE at held-out queries, beside the paper's."""

from __future__ import annotations

import math
from typing import Any

from experiments.cache import Row
from experiments.data import Task
from experiments.drawing import legend, panels
from experiments.protocol import Lab

NAME = "bandwidths"
TITLE = "Bandwidths"
TEXT = (
    "Mean and standard deviation of the true KDE over held-out queries, beside the paper's figures."
)


def measure(task: Task, lab: Lab) -> list[Row]:
    """Return one row: size, bandwidth, mean and deviation, and what the paper has."""
    mean, deviation = task.paper or (math.nan, math.nan)
    key = {"bandwidth": task.fingerprint}

    def one() -> list[Row]:
        return [
            {
                "data": task.name,
                "rows": len(task.points) + len(task.queries),
                "dim": task.dim,
                "bandwidth": task.bandwidth,
                "mean": float(task.truth.mean()),
                "deviation": float(task.truth.std()),
                "paper_mean": mean,
                "paper_deviation": deviation,
            }
        ]

    return lab.cache.rows(key, one)


def draw(rows: list[Row]) -> Any:
    """Return means with deviations as bars, the paper's beside ours."""
    figure, axes = panels(1, 1, width=4.2, height=2.6)
    panel = axes[0, 0]
    for shift, prefix, label, marker in (
        (-0.1, "", "measured", "o"),
        (0.1, "paper_", "paper", "s"),
    ):
        if not any(math.isfinite(row[f"{prefix}mean"]) for row in rows):
            continue
        panel.errorbar(
            [place + shift for place in range(len(rows))],
            [row[f"{prefix}mean"] for row in rows],
            yerr=[row[f"{prefix}deviation"] for row in rows],
            linestyle="None",
            marker=marker,
            color="black" if not prefix else "#888888",
            capsize=3,
            label=label,
        )
    panel.set_xticks(range(len(rows)), [f"{r['data']}\nσ = {r['bandwidth']:g}" for r in rows])
    panel.set_ylabel("KDE at queries")
    panel.margins(x=0.15)
    legend(figure)
    return figure
