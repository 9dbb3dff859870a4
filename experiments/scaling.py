"""The table of function release mechanisms, measured: curator time, release size, query time.

Three axes are stretched: records n, dimension d, and 1/α, the error of the mechanism without its
noise, for which each takes the smallest parameter that reaches it. Generated data throughout.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import dpkde
from dpkde import prior
from dpkde.families.base import Family
from experiments.cache import Row
from experiments.data import Array, Pairs, Task, generated, split
from experiments.drawing import legend, logarithmic, look, panels
from experiments.progress import tracked
from experiments.protocol import BERNSTEIN, FGT, NO_NOISE, OURS, RFF, Lab, tabulate
from experiments.summary import Fit, column, fitted

NAME = "scaling"
TITLE = "Curator time, release size and query time"
TEXT = (
    "Slopes of logarithms over ln n, ln d and ln 1/α, fitted to the larger half of the axis; for "
    "mechanisms whose cost is exponential in d, the factor that one more axis costs. α is the "
    "largest error over queries without noise."
)
TRIG, PMW, SMALL = "EvenTrig", "PMW", "SmallDB"
QUANTITIES = ("curator_seconds", "cells", "query_seconds")
THEORY: dict[tuple[str, str], tuple[str, str, str]] = {
    ("n", RFF): ("1", "0", "0"),
    ("n", FGT): ("1", "0", "0"),
    ("n", BERNSTEIN): ("1", "0", "0"),
    ("n", TRIG): ("1", "0", "0"),
    ("n", OURS): ("1", "0", "0"),
    ("n", PMW): ("1", "0", "0"),
    ("n", SMALL): ("1", "0", "0"),
    ("d", RFF): ("1", "0 (and d numbers a frequency)", "1"),
    ("d", FGT): ("×ρ", "×ρ·width", "×ρ·√ρ"),
    ("d", BERNSTEIN): ("×(k+1)", "×(k+1)", "×(k+1)"),
    ("d", TRIG): ("×t", "×t", "×t"),
    ("d", OURS): ("×(p+1)", "×(width/h + p)", "×near nodes"),
    ("d", PMW): ("×(points per axis)², and those grow", "×points per axis", "×points per axis"),
    ("d", SMALL): ("×(points per axis)⁴, and those grow", "×1 (and d numbers per point)", "×1"),
    ("1/α", RFF): ("2", "2", "2"),
    ("1/α", FGT): ("0 (logarithms)", "0 (logarithms)", "0 (logarithms)"),
    ("1/α", BERNSTEIN): ("d = 2", "d = 2", "d = 2"),
    ("1/α", TRIG): ("0 (logarithms)", "0 (logarithms)", "0 (logarithms)"),
    ("1/α", OURS): ("0", "d/(p+1) = 0.5", "d/(p+1) = 0.5"),
    ("1/α", PMW): ("2d = 2 (grid × queries)", "d = 1", "d = 1"),
    ("1/α", SMALL): ("exponential", "2", "2"),
}
_QUERIES = 400
_LARGE_ERRORS = (0.4, 0.3)
"""SmallDB's data sets number |U|^(1/(2α)²): at the other errors there is little that it can do."""
_SMALL_GRID = 0.3
"""The α of the grid whose dimension grows: SmallDB then has three points."""


def _spline(tenths: int) -> Family:
    return dpkde.Spline(degree=3, spacing=10 / tenths)


_FAMILIES: dict[str, tuple[Callable[[int], Family], int, tuple[int, ...]]] = {
    RFF: (lambda m: dpkde.Fourier(m, form="phase"), 1024, ()),
    FGT: (lambda rho: dpkde.FastGauss(rho), 6, tuple(range(1, 25))),
    BERNSTEIN: (
        lambda k: prior.Bernstein(k),
        6,
        tuple(dict.fromkeys(int(1.25**k) for k in range(32))),
    ),
    TRIG: (lambda t: prior.EvenTrig(t), 6, tuple(range(1, 40))),
    OURS: (_spline, 15, (4, 5, 6, 7, 8, 9, 10, 12, 14, 17, 20, 25, 30, 40, 60)),
}
"""How a family is made of its parameter, the parameter while n and d grow, and those to try."""


def measure(lab: Lab) -> list[Row]:
    """Return times and sizes along the three axes."""
    rows = []
    for key, one in tracked(list(_pieces(lab)), "scaling"):
        rows += lab.cache.rows({"scaling": lab.settings.repeats, **key}, one)
    return rows


_Piece = tuple[dict[str, Any], Callable[[], list[Row]]]


def _pieces(lab: Lab) -> Iterator[_Piece]:
    settings, repeats = lab.settings, lab.settings.repeats
    for rows in settings.scaling_rows:
        for name, (make, parameter, _) in _FAMILIES.items():
            # A lattice costs much for each record: its slope shows on fewer of them.
            count = rows // 8 if name in (BERNSTEIN, TRIG) else rows
            yield _piece("n", name, count, parameter, make, _flat(count, 2), repeats)
        for name in (PMW, SMALL):  # every record is compared with every query: fewer, too
            yield _grown("n", name, rows // 8, 0.2, repeats, rows=rows // 8)
    for dim in settings.scaling_dims:
        for name, (make, parameter, _) in _FAMILIES.items():
            if name != RFF:
                task = _flat(settings.scaling_rows[0], dim)
                yield _piece("d", name, dim, parameter, make, task, repeats)
        for name in (PMW, SMALL):
            yield _grown("d", name, dim, _SMALL_GRID, repeats, dim=dim)
    for dim in settings.scaling_high_dims:
        make, parameter, _ = _FAMILIES[RFF]
        task = _flat(settings.scaling_rows[0], dim)
        yield _piece("d", RFF, dim, parameter, make, task, repeats)
    yield from _by_error(lab)


def _flat(rows: int, dim: int) -> Task:
    """Return uniform points in a box of four bandwidths per axis."""
    points = np.random.default_rng(dim).uniform(-2, 2, size=(rows + _QUERIES, dim))
    box: Pairs = [(-2.0, 2.0)] * dim
    return split(points, _QUERIES, name=f"flat-{dim}", title="", bandwidth=1.0, bounds=box)


def _piece(
    axis: str,
    name: str,
    value: float,
    parameter: int,
    make: Callable[[int], Family],
    task: Task,
    repeats: int,
) -> _Piece:
    key = {"axis": axis, "mechanism": name, "value": value, "parameter": parameter}
    return key, lambda: [key | timed(task, make(parameter), repeats)]


def timed(task: Task, family: Family, repeats: int) -> Row:
    """Return least times over repetitions, and the size of the table."""
    tabulate(task, family)  # compiled once
    tables = [tabulate(task, family) for _ in range(repeats)]
    spent = []
    for _ in range(repeats):
        start = time.perf_counter()
        tables[0].answer(task.queries, NO_NOISE)
        spent.append((time.perf_counter() - start) / len(task.queries))
    return {
        "curator_seconds": min(table.seconds for table in tables),
        "cells": tables[0].cells,
        "query_seconds": min(spent),
    }


def _by_error(lab: Lab) -> Iterator[_Piece]:
    settings = lab.settings
    for alpha in settings.scaling_errors:
        for name, (make, _, grid) in _FAMILIES.items():
            key = {"axis": "1/α", "mechanism": name, "value": 1 / alpha}
            asked = key | {"data": "one mixture"}

            def one(
                alpha: float = alpha,
                key: Row = key,
                make: Callable[[int], Family] = make,
                grid: tuple[int, ...] = grid or (math.ceil(1 / alpha**2),),
                rows: int = 4000 if name in (BERNSTEIN, TRIG) else settings.scaling_rows[-1] // 4,
            ) -> list[Row]:
                chosen = smallest(_smooth(4000), make, grid, alpha)
                if chosen is None:
                    return []
                return [
                    key
                    | {"parameter": chosen}
                    | timed(_smooth(rows), make(chosen), settings.repeats)
                ]

            yield asked, one

    for alpha in (*_LARGE_ERRORS, *settings.scaling_errors):
        for name in (PMW, SMALL):
            yield _grown("1/α", name, 1 / alpha, alpha, settings.repeats)


def _smooth(rows: int) -> Task:
    """Return the mixture in a box of four bandwidths per axis."""
    task = generated("mixture", rows, 100)
    both = np.concatenate([task.points, task.queries])
    return split(both, 100, name="mixture", title="", bandwidth=2.0, bounds=task.bounds)


def smallest(
    task: Task, make: Callable[[int], Family], grid: tuple[int, ...], alpha: float
) -> int | None:
    """Return the smallest parameter whose largest error without noise is at most α."""
    if len(grid) == 1:  # random families: by their rate, since one draw may be lucky
        return grid[0]
    for parameter in grid:
        answers, _ = tabulate(task, make(parameter)).answer(task.queries, NO_NOISE)
        if np.abs(answers - task.truth).max() <= alpha:
            return parameter
    return None


def _grown(
    axis: str,
    name: str,
    value: float,
    alpha: float,
    repeats: int,
    *,
    rows: int = 2000,
    dim: int = 1,
) -> _Piece:
    key = {"axis": axis, "mechanism": name, "value": value}
    asked = key | {"alpha": alpha, "rows": rows, "dim": dim}
    return asked, partial(_synthetic, key, alpha, rows, dim, repeats)


def _synthetic(key: Row, alpha: float, rows: int, dim: int, repeats: int) -> list[Row]:
    """PMW and SmallDB: a grid for α; 1/(2α)² points for SmallDB, while it can."""
    points: Array = np.random.default_rng(0).uniform(0, 4, size=(rows, dim))
    kernel, bounds = dpkde.Gaussian(1.0), [(0.0, 4.0)] * dim
    mechanism: Any = prior.PMW(rounds=8, alpha=alpha)
    try:
        if key["mechanism"] == SMALL:
            mechanism = prior.SmallDB(size=math.ceil(0.25 / alpha**2), alpha=alpha)
        release = mechanism.release(points, kernel=kernel, bounds=bounds, epsilon=1)
    except dpkde.ParameterError:
        return []  # beyond what it can do, which is the finding
    asked, curating, querying = points[:_QUERIES], [], []
    for _ in range(repeats):
        start = time.perf_counter()
        release = mechanism.release(points, kernel=kernel, bounds=bounds, epsilon=1)
        curating.append(time.perf_counter() - start)
        start = time.perf_counter()
        release.kde(asked)
        querying.append((time.perf_counter() - start) / len(asked))
    size = len(release.points)
    quantities = {"curator_seconds": min(curating), "cells": size, "query_seconds": min(querying)}
    return [key | {"parameter": size} | quantities]


def exponents(rows: list[Row]) -> list[Row]:
    """Return the fitted exponent of every axis, mechanism and quantity, beside the theory."""
    table = []
    for axis in column(rows, "axis"):
        for name in column(rows, "mechanism"):
            some = [r for r in rows if (r["axis"], r["mechanism"]) == (axis, name)]
            if len(some) < 2:
                continue
            some = sorted(some, key=lambda row: row["value"])
            some = some[-max(3, math.ceil(len(some) / 2)) :]
            by_axis = axis == "d" and name != RFF
            across = [row["value"] if by_axis else math.log(row["value"]) for row in some]
            theory = THEORY.get((axis, name), ("", "", ""))
            for place, quantity in enumerate(QUANTITIES):
                fit = fitted(across, [math.log(row[quantity]) for row in some])
                table.append(
                    {
                        "axis": axis,
                        "mechanism": name,
                        "quantity": quantity,
                        "fitted": _factor(fit) if by_axis else str(fit),
                        "slope": fit.slope,
                        "theory": theory[place],
                    }
                )
    return table


def _factor(fit: Fit) -> str:
    return f"×{math.exp(fit.slope):.1f}"


def draw(rows: list[Row]) -> Any:
    """Return a panel for each quantity and axis."""
    axes_names = column(rows, "axis")
    figure, axes = panels(len(QUANTITIES), len(axes_names), width=3.0, height=2.3)
    labels = {
        "curator_seconds": "curator time, s",
        "cells": "numbers released",
        "query_seconds": "time per query, s",
    }
    for line, quantity in zip(axes, QUANTITIES, strict=True):
        for panel, axis in zip(line, axes_names, strict=True):
            logarithmic(panel)
            for name in column(rows, "mechanism"):
                some = sorted(
                    (row["value"], row[quantity])
                    for row in rows
                    if (row["axis"], row["mechanism"]) == (axis, name)
                )
                if some:
                    panel.plot(*zip(*some, strict=True), label=name, **look(name))
            panel.set_xlabel(axis)
            panel.set_ylabel(labels[quantity])
    legend(figure)
    return figure
