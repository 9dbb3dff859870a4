"""``dpkde publish``: from a table on disk to a release file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpkde.cli import options as o
from dpkde.cli.exits import speaks_plainly

if TYPE_CHECKING:
    from dpkde.release.release import Release
    from dpkde.tables import Source

FEW = 5
"""Fewer records than this many standard deviations of their count are worth a note."""


@speaks_plainly
def publish(
    table: Annotated[
        str,
        typer.Argument(
            help="CSV or TSV (also .gz, .zst), Parquet or .npy file; - for CSV on stdin."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The release file to write.")],
    columns: o.Columns = None,
    bounds: o.Bounds = None,
    outside: o.Outside = None,
    bandwidth: o.Bandwidth = None,
    kernel: o.KernelName = None,
    epsilon: o.Epsilon = None,
    delta: o.Delta = None,
    rho: o.Rho = None,
    adjacency: o.AdjacencyName = None,
    family: o.FamilyName = None,
    degree: o.Degree = None,
    spacing: o.Spacing = None,
    order: o.Order = None,
    frequencies: o.Frequencies = None,
    repetitions: o.Repetitions = None,
    buckets: o.Buckets = None,
    expected_rows: o.ExpectedRows = None,
    typical_density: o.TypicalDensity = None,
    alpha: o.Alpha = None,
    eta: o.Eta = None,
    simultaneous: o.Simultaneous = None,
    seed: o.Seed = None,
    delimiter: o.Delimiter = None,
    records: o.Records = None,
    decimal: o.Decimal = None,
    thousands: o.Thousands = None,
    encoding: o.Encoding = None,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", help="A plan that dpkde plan -o wrote, in place of most options."),
    ] = None,
    settings: o.Settings = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.")] = False,
) -> None:
    """Publish a table: read it, add noise, write a release file.

    Rows with missing or bad values contribute nothing, rows outside the bounds are clipped; neither
    is reported, since that would tell about the data. An old file stays until the new one is whole.

    Example: dpkde publish trips.csv -o trips.dpkde --columns lon,lat
    --bounds -74.1:-73.15,40.5:40.9 --bandwidth 0.01 --epsilon 0.5
    """
    chosen = o.merged(settings, locals())
    from dpkde.curator.publish import publish as make
    from dpkde.tables import open_points

    decisions: dict[str, Any]
    if plan is not None:
        from dpkde.planning.plan import Plan

        o.check_fixed(chosen)
        fixed = Plan.load(plan)
        source = open_points(o.table(table, chosen), fixed.columns)
        density = chosen["typical_density"]
        decisions = {"plan": fixed, "typical_density": density}
        decisions |= {**o.guarantee_of(chosen), **o.promise_of(chosen)}
    else:
        source = open_points(o.table(table, chosen), o.names(chosen["columns"]))
        wanted = o.request(chosen, source.dim)
        decisions = {
            "kernel": wanted.kernel,
            "bounds": wanted.domain,
            "family": wanted.family,
            "columns": None if source.columns is None else list(source.columns),
            "typical_density": wanted.typical_density,
            "seed": chosen["seed"],
            **wanted.guarantee,
            **wanted.promise,
        }
    o.check_writable(output)
    with _progress(source, quiet) as watched:
        release = make(watched, expected_rows=chosen["expected_rows"], **decisions)
    release.save(output)
    for doubt in () if quiet else _doubts(release):
        typer.echo(f"dpkde: note: {doubt}", err=True)
    if not quiet and sys.stderr.isatty():
        typer.echo(f"{output}: {release!r}", err=True)


def _doubts(release: Release) -> Iterator[str]:
    """Yield what the release itself tells of a slip: from what is published and nothing else."""
    from dpkde.release.answers import deviation
    from dpkde.space.domain import Unbounded

    spread = deviation(release, "count")
    if release.count < FEW * spread:
        yield (
            f"about {release.count} records, give or take {spread:.3g}: this release says next to "
            "nothing. Rows count only where every column is a finite number, and records of text "
            "only with as many fields as the header has"
        )
    frame = release.plan.frame
    if frame.kernel.home == "space" and isinstance(frame.domain, Unbounded) and frame.dim <= 4:
        yield "without --bounds the error is often many times larger"


@contextmanager
def _progress(source: Source, quiet: bool) -> Iterator[Source]:
    """Show a bar with rate and remaining time, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield source
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("reading"),
        BarColumn(),
        TaskProgressColumn(show_speed=True),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("reading", total=source.size)
        done = 0

        def report(size: int) -> None:
            nonlocal done
            if source.size is not None and done + size > source.size:
                done = 0  # a second pass
            done += size
            bar.update(task, completed=done)

        yield source.watched(report)
