"""The report: claims with their figures, then every experiment's picture and table, in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from experiments import bandwidths, release_queries, sample_complexity, scaling
from experiments.cache import Row
from experiments.claims import Verdict
from experiments.protocol import RFF, SWEPT
from experiments.settings import Settings
from experiments.summary import column, curves, moving_optimum

ALPHAS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005)


def write(
    settings: Settings,
    measured: dict[str, list[Row]],
    modules: dict[str, Any],
    verdicts: Sequence[Verdict],
    missing: Sequence[str],
    described: Sequence[str],
    seconds: float,
) -> str:
    """Return the report of a run."""
    parts = [
        "# The paper's experiments, run again",
        f"A {settings.name} run: {settings.trials} trials, {settings.queries} held-out queries, "
        f"fixed for all trials; {seconds:.0f} s in this run, without what was measured before.",
        "The paper's mechanisms are flattered: n is public, all of ε goes to the table, and each "
        "is read off at the parameter with the least error on the very queries that are asked. "
        "They have the corrected sensitivities. dpkde runs with its defaults and pays for a "
        "private count. No estimate is clipped.",
    ]
    if settings.trials < 10:
        parts.append("With so few trials some checks fail by chance.")
    if described:
        parts += ["## Data", _bullets(described)]
    if missing:
        parts += ["## Not measured", _bullets(missing)]
    if verdicts:
        parts += ["## Claims", claims_table(verdicts)]
    for name, rows in measured.items():
        module = modules[name]
        parts += [f"## {module.TITLE}", module.TEXT]
        if not rows:
            parts.append("Nothing to show for these data.")
            continue
        parts.append(f"![{module.TITLE}]({name}.png)")
        table = _TABLES.get(name)
        if table is not None:
            parts.append(table(rows))
        parts.append(f"Numbers: [{name}.csv]({name}.csv); vectors: [{name}.svg]({name}.svg).")
    return "\n\n".join(parts) + "\n"


def table_of(heads: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table."""
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def claims_table(verdicts: Sequence[Verdict]) -> str:
    """Return one line for each claim, and below what was measured."""
    lines = [(v.name, v.claim, f"**{v.word}**") for v in verdicts]
    details = _bullets(f"**{v.name}** ({v.word}): {v.sentence}." for v in verdicts)
    return table_of(("check", "claim", "result"), lines) + "\n\n" + details


def number(value: float) -> str:
    """Return a figure with two digits that count; a dash for none."""
    if not math.isfinite(value):
        return "–"
    return f"{value:.2g}" if abs(value) < 100 else f"{value:,.0f}"


def _bandwidth_table(rows: list[Row]) -> str:
    heads = ("data", "n", "d", "σ", "mean KDE", "sd", "paper mean", "paper sd")
    return table_of(
        heads,
        [
            (
                row["data"],
                f"{row['rows']:,}",
                row["dim"],
                f"{row['bandwidth']:g}",
                f"{row['mean']:.4f}",
                f"{row['deviation']:.4f}",
                number(row["paper_mean"]),
                number(row["paper_deviation"]),
            )
            for row in rows
        ],
    )


def _budget_table(rows: list[Row]) -> str:
    all_curves, lines = curves(rows), []
    for name in column(rows, "data"):
        for mechanism in SWEPT:
            of_one = {e: c for (d, m, e), c in all_curves.items() if (d, m) == (name, mechanism)}
            if not of_one:
                continue
            fit, _ = moving_optimum(of_one, in_logarithms=mechanism == RFF)
            for epsilon, curve in sorted(of_one.items()):
                at_end = curve.best == len(curve.parameters) - 1
                lines.append(
                    (
                        name,
                        mechanism,
                        f"{epsilon:g}" if math.isfinite(epsilon) else "no noise",
                        f"{curve.parameters[curve.best]:g}"
                        + (" (end of the grid)" if at_end else ""),
                        number(float(curve.means.min())),
                        number(float(curve.means[-1])),
                        str(fit) if epsilon == min(of_one) else "",
                    )
                )
    heads = (
        "data",
        "mechanism",
        "ε",
        "best parameter",
        "error there",
        "error at the end",
        "slope [95 %]",
    )
    return table_of(heads, lines)


def _privacy_table(rows: list[Row]) -> str:
    all_curves, lines = curves(rows), []
    mechanisms = column(rows, "mechanism")
    for name in column(rows, "data"):
        for epsilon in sorted({e for d, _, e in all_curves if d == name}):
            cells = []
            for mechanism in mechanisms:
                curve = all_curves.get((name, mechanism, epsilon))
                cells.append(
                    "–"
                    if curve is None
                    else f"{number(float(curve.means[0]))} ± {number(float(curve.errors[0].std()))}"
                    + (
                        f" ({curve.parameters[0]:g})"
                        if mechanism.startswith(("LSQ", "Bern"))
                        else ""
                    )
                )
            lines.append((name, f"{epsilon:g}", *cells))
    note = "Mean ± standard deviation over trials; in brackets the best parameter.\n\n"
    return note + table_of(("data", "ε", *mechanisms), lines)


def _runtime_table(rows: list[Row]) -> str:
    lines = []
    for name in column(rows, "data"):
        for epsilon in dict.fromkeys(row["epsilon"] for row in rows):
            for mechanism in column(rows, "mechanism"):
                some = [
                    row
                    for row in rows
                    if (row["data"], row["mechanism"], row["epsilon"]) == (name, mechanism, epsilon)
                ]
                if some:
                    best = min(some, key=lambda row: row["error"])
                    figures = (number(best["error"]), number(best["seconds"]))
                    lines.append((name, f"{epsilon:g}", mechanism, *figures))
    return table_of(("data", "ε", "mechanism", "least error", "curator time there, s"), lines)


def _feasibility_table(rows: list[Row]) -> str:
    lines = [(row["data"], row["dim"], row["mechanism"], row["obstacle"] or "runs") for row in rows]
    return table_of(("data", "d", "mechanism", "runs, or why not"), lines)


def _scaling_table(rows: list[Row]) -> str:
    words = {
        "curator_seconds": "curator time",
        "cells": "release size",
        "query_seconds": "query time",
    }
    lines = [
        (row["axis"], row["mechanism"], words[row["quantity"]], row["fitted"], row["theory"])
        for row in scaling.exponents(rows)
    ]
    return table_of(("axis", "mechanism", "quantity", "fitted [95 %]", "theory"), lines)


def _release_table(rows: list[Row]) -> str:
    sizes = sorted({row["queries"] for row in rows})
    fits, lines = release_queries.exponents(rows), []
    for name in column(rows, "mechanism"):
        means = []
        for size in sizes:
            some = [r["error"] for r in rows if (r["mechanism"], r["queries"]) == (name, size)]
            means.append(number(sum(some) / len(some)))
        lines.append((name, *means, str(fits[name]), release_queries.MECHANISMS[name][2]))
    heads = ("mechanism", *(f"q = {size}" for size in sizes), "exponent [95 %]", "theory")
    return table_of(heads, lines)


def _complexity_table(rows: list[Row]) -> str:
    fits = sample_complexity.exponents(rows)
    lines = [
        (
            name,
            *(_least_rows(rows, name, alpha) for alpha in ALPHAS),
            str(fits[name]),
            sample_complexity.THEORY[name],
        )
        for name in column(rows, "mechanism")
    ]
    heads = ("mechanism", *(f"α = {alpha:g}" for alpha in ALPHAS), "exponent [95 %]", "theory")
    return "Smallest n.\n\n" + table_of(heads, lines)


def _least_rows(rows: list[Row], name: str, alpha: float) -> str:
    least = sample_complexity.smallest_rows(rows, name, alpha)
    fewest = min(row["rows"] for row in rows)
    return f"≤ {fewest}" if least == fewest else number(least)


_TABLES = {
    bandwidths.NAME: _bandwidth_table,
    "budget": _budget_table,
    "privacy": _privacy_table,
    "runtime": _runtime_table,
    "feasibility": _feasibility_table,
    scaling.NAME: _scaling_table,
    release_queries.NAME: _release_table,
    sample_complexity.NAME: _complexity_table,
}
