"""A run: data sets one after the other, every experiment on each, then figures and the report."""

from __future__ import annotations

import csv
import gc
import io
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from experiments import (
    bandwidths,
    budget,
    drawing,
    feasibility,
    heatmaps,
    privacy,
    release_queries,
    report,
    runtime,
    sample_complexity,
    scaling,
    scatter,
)
from experiments.cache import Cache, Row, write_text
from experiments.claims import Verdict, verdicts
from experiments.data import NAMES, QUICK_NAMES, MissingDataError, Task, generated, load
from experiments.protocol import Lab
from experiments.settings import Settings

ON_DATA: dict[str, Any] = {
    module.NAME: module
    for module in (bandwidths, budget, privacy, runtime, scatter, heatmaps, feasibility)
}
"""Experiments on a data set, each with ``measure(task, lab)`` and ``draw(rows)``."""
GENERATED: dict[str, Any] = {
    module.NAME: module for module in (scaling, release_queries, sample_complexity)
}
"""Experiments on generated data of their own, with ``measure(lab)`` and ``draw(rows)``."""
EXPERIMENTS = ON_DATA | GENERATED

Load = Callable[[], Task]


def data_sets(settings: Settings, folder: Path | None) -> list[tuple[str, Load]]:
    """Return names and loaders: the paper's data in a full run, stand-ins in a quick one."""

    def later(name: str) -> Load:
        if settings.name == "full":
            return lambda: load(name, folder, settings.queries)
        return lambda: generated(name, settings.rows + settings.queries, settings.queries)

    names = NAMES if settings.name == "full" else QUICK_NAMES
    return [(name, later(name)) for name in names]


def run(
    settings: Settings,
    out: Path,
    *,
    only: Sequence[str] = (),
    data: Sequence[tuple[str, Load]],
    own: bool = False,
    tell: Callable[[str], None] = lambda words: None,
) -> list[Verdict]:
    """Measure, draw and report into a folder; return what came of the claims.

    Parameters
    ----------
    settings
        How much is measured.
    out
        Where figures, numbers and the report go, and ``cache`` with the measured pieces.
    only
        Names of experiments; none: all.
    data
        Names of data sets with what loads them. They are loaded one after the other, so that
        memory is that of the largest.
    own
        Whether the data are the user's: experiments that generate their own are then left out,
        unless named.
    tell
        Takes a line about what is being done.

    Raises `MissingDataError` where there is nothing to measure; nothing is then written.
    """
    start = time.perf_counter()
    lab = Lab(settings, Cache(out / "cache"))
    chosen = [n for n in EXPERIMENTS if n in only or (not only and not (own and n in GENERATED))]
    measured: dict[str, list[Row]] = {name: [] for name in chosen}
    missing: list[str] = []
    described: list[str] = []
    on_data = [name for name in chosen if name in ON_DATA]
    for task in _loaded(data if on_data else (), missing, tell):
        described.append(task.described)
        for name in on_data:
            tell(f"{task.name}: {name}")
            measured[name] += ON_DATA[name].measure(task, lab)
    if on_data and not described and len(on_data) == len(chosen):
        raise MissingDataError("none of the data sets is at hand; --quick needs none")
    if feasibility.NAME in on_data and not own:
        measured[feasibility.NAME] += feasibility.measure(feasibility.stand_in(lab), lab)
    for name in chosen:
        if name in GENERATED:
            tell(name)
            measured[name] = GENERATED[name].measure(lab)
    for name, rows in measured.items():
        if rows:
            write_text(out / f"{name}.csv", as_csv(rows))
            drawing.save(EXPERIMENTS[name].draw(rows), out, name)
    judged = verdicts(measured)
    if own or only:  # of a part, only what was measured is judged
        judged = [verdict for verdict in judged if verdict.passed is not None]
    words = report.write(
        settings, measured, EXPERIMENTS, judged, missing, described, time.perf_counter() - start
    )
    write_text(out / "report.md", words)
    tell(f"{lab.cache.computed} pieces measured, {lab.cache.reused} answered from those kept")
    return judged


def _loaded(
    data: Sequence[tuple[str, Load]], missing: list[str], tell: Callable[[str], None]
) -> Iterator[Task]:
    for _, fetch in data:
        try:
            task = fetch()
        except MissingDataError as error:
            missing.append(str(error))
            tell(str(error))
            continue
        yield task
        del task
        gc.collect()


def as_csv(rows: list[Row]) -> str:
    """Return rows as CSV with a header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
