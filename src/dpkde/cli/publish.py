"""``dpkde publish``: from a table on disk to a release file."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpkde.cli import request
from dpkde.cli.exits import plain
from dpkde.cli.options import RELEASE, TABLE, Options, arguments_of, in_flags
from dpkde.cli.progress import watched
from dpkde.cli.verb import verb
from dpkde.errors import ParameterError, ReleaseWarning

if TYPE_CHECKING:
    from dpkde.curator.sketch import Sketch
    from dpkde.release.release import Release


@verb("publish", *RELEASE, "text", "settings", "ledger")
def publish(
    options: Options,
    table: Annotated[
        str,
        typer.Argument(
            help="A file of CSV or TSV (also packed), Parquet, Arrow or .npy; a folder or a "
            "pattern of such files, or an address; - for CSV on stdin. Or a sketch that dpkde "
            "sketch or merge wrote."
        ),
    ],
) -> None:
    """Publish a table, or a sketch of it: add noise, write a release file.

    Rows with missing or bad values contribute nothing; rows outside the bounds are moved to them,
    or dropped. Neither is reported, since that would reveal something about the data. An old
    release file stays until the new one is complete. What the plan of a sketch has fixed is not
    given again.

    Example: dpkde publish trips.csv -o trips.dpkde --columns lon,lat
    --bounds -74.1:-73.15,40.5:40.9 --bandwidth 0.01 --epsilon 0.5
    """
    from dpkde.curator.publish import publish as release_of

    output, quiet, kind = options["output"], options["quiet"], request.kind_of(table)
    if kind is not None:
        sums, decisions = _sketched(table, kind, options)
        request.check_writable(output, "dpkde-release")
        _finish(_made(release_of, sums, decisions, options), options)
        return
    text = request.table(table, options)
    source, decisions = request.opened(text, options)
    request.check_writable(output, "dpkde-release")
    if options["plan"] is None:
        request.check_bounded(options, source.dim)
    with watched(source, "reading", not quiet) as read:
        release = _made(release_of, read, decisions, options)
    _finish(release, options)


def _made(
    release_of: Callable[..., Release], points: Any, decisions: dict[str, Any], options: Options
) -> Release:
    """Return the release; its troubles are told in notes, and not by warnings as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReleaseWarning)
        return release_of(points, **decisions, **arguments_of(options, "ledger"))


def _sketched(table: str, kind: str, options: Options) -> tuple[Sketch, dict[str, Any]]:
    """Return the sketch in a file, and what is decided for its release."""
    from dpkde.curator.sketch import Sketch
    from dpkde.planning.plan import Plan

    if kind != Sketch.FORMAT:
        raise ParameterError(f"{table} is a {kind} file, not a table and not a sketch")
    sums = Sketch.load(table)
    request.check_settled(options)
    if rules := arguments_of(options, "text"):
        raise ParameterError(f"--{next(iter(rules))} goes with CSV text, not with a sketch")
    decisions = request.terms(options)
    if options["plan"] is not None:
        decisions["plan"] = Plan.load(options["plan"])
    return sums, decisions


def _finish(release: Release, options: Options) -> None:
    """Write a release, and tell what it tells of itself."""
    output, quiet = options["output"], options["quiet"]
    release.save(output)
    for doubt in () if quiet else _doubts(release):
        typer.echo(f"dpkde: note: {plain(doubt)}", err=True)
    if not quiet and sys.stderr.isatty():
        typer.echo(f"{output}: {release!r}", err=True)


def _doubts(release: Release) -> Iterator[str]:
    """Yield what the release itself tells of a slip: from what is published and nothing else."""
    from dpkde.space.domain import Unbounded

    for trouble in release.troubles:
        yield in_flags(str(trouble), TABLE)
    frame = release.plan.frame
    few = frame.dim <= request.FEW_COLUMNS
    if frame.kernel.home == "space" and isinstance(frame.domain, Unbounded) and few:
        yield "without --bounds the error is often many times larger"
