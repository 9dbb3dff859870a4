"""Heat maps of two-dimensional data at several ε: truth, Fourier, fast Gauss and spline."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.cache import Row
from experiments.data import Array, Task, exact_kde
from experiments.drawing import in_words, panels
from experiments.privacy import best_parameter
from experiments.progress import tracked
from experiments.protocol import FGT, OURS, RFF, Lab, epsilons_of, noisy_answers, sweep
from experiments.summary import column

NAME = "heatmaps"
TITLE = "Heat maps"
TEXT = (
    "The paper's mechanisms at the parameter that was best for that ε; ours (spline) with its "
    "defaults. One scale for all panels of a data set; values outside it, such as below zero, "
    "take its ends."
)
TRUTH = "truth"
_SHOWN = (RFF, FGT, OURS)


def places(task: Task, cells: int) -> Array:
    """Return the middles of the cells of a map, row by row from the south."""
    window = task.window or task.bounds
    assert window is not None
    (west, east), (south, north) = window
    middles = (np.arange(cells) + 0.5) / cells
    x, y = np.meshgrid(west + (east - west) * middles, south + (north - south) * middles)
    return np.column_stack([x.ravel(), y.ravel()])


def measure(task: Task, lab: Lab) -> list[Row]:
    """Return the value of every cell of every map; none for data that are not two-dimensional."""
    if task.dim != 2 or task.bounds is None:
        return []
    cells, errors, rows = lab.settings.map_cells, sweep(task, lab), []
    where = places(task, cells)
    known = epsilons_of(task, lab.settings)
    asked = [(0.0, TRUTH), *((e, name) for e in lab.settings.map_epsilons for name in _SHOWN)]
    for epsilon, name in tracked(asked, f"{task.name}: heat maps"):
        # The sweep may not have this very ε: the nearest one has nearly the same best parameter.
        nearest = min(known, key=lambda other: abs(np.log(other / max(epsilon, 1e-9))))
        best = 0 if name == TRUTH else best_parameter(errors, task.name, name, nearest)
        if best is None:
            continue
        key = {"map": task.fingerprint, "name": name, "epsilon": epsilon, "cells": cells}

        def one(name: str = name, epsilon: float = epsilon, best: int = best) -> list[Row]:
            values = (
                exact_kde(task.points, where, task.bandwidth)
                if name == TRUTH
                else noisy_answers(task, name, best, epsilon, 0, where)
            )
            return [
                {
                    "data": task.name,
                    "mechanism": name,
                    "epsilon": epsilon,
                    "x": round(float(x), 6),
                    "y": round(float(y), 6),
                    "value": float(f"{value:.6g}"),
                }
                for (x, y), value in zip(where, values, strict=True)
            ]

        rows += lab.cache.rows(key | {"parameter": best}, one)
    return rows


def draw(rows: list[Row]) -> Any:
    """Return, for each data set and ε, a line of maps, the truth first."""
    names = column(rows, "data")
    budgets = sorted({row["epsilon"] for row in rows} - {0.0})
    figure, axes = panels(len(names) * len(budgets), 1 + len(_SHOWN), width=2.4, height=2.1)
    for group, name in enumerate(names):
        maps: dict[tuple[str, float], list[Row]] = {}
        for row in rows:
            if row["data"] == name:
                maps.setdefault((row["mechanism"], row["epsilon"]), []).append(row)
        top = max(row["value"] for row in maps[TRUTH, 0.0])
        shown = None
        lines = axes[group * len(budgets) : (group + 1) * len(budgets)]
        for line, epsilon in zip(lines, budgets, strict=True):
            for panel, mechanism in zip(line, (TRUTH, *_SHOWN), strict=True):
                some = maps.get((mechanism, 0.0 if mechanism == TRUTH else epsilon))
                panel.grid(False)
                panel.set_xticks([])
                panel.set_yticks([])
                if some is None:
                    panel.set_axis_off()
                    continue
                side = int(np.sqrt(len(some)))
                values = np.array([row["value"] for row in some]).reshape(side, side)
                shown = panel.imshow(
                    values, origin="lower", cmap="Greys", vmin=0, vmax=top, aspect="auto"
                )
                panel.set_title(
                    mechanism if mechanism == TRUTH else f"{mechanism}, {in_words(epsilon)}"
                )
            line[0].set_ylabel(name)
        if shown is not None:
            figure.colorbar(shown, ax=lines.ravel().tolist(), label="KDE", shrink=0.8)
    return figure
