"""``dpkde query``: densities at points, from a release file."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpkde.cli.exits import plain
from dpkde.cli.options import Format, Options
from dpkde.cli.progress import watched
from dpkde.cli.request import numbers, table
from dpkde.cli.verb import verb
from dpkde.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpkde.release.release import Release
    from dpkde.tables import Source

ROWS_AT_ONCE = 65_536
DIM = ("few-records", "noise")
"""Troubles that leave answers next to nothing to say."""


@verb("query", "text", takes_minus=True)
def query(
    options: Options,
    release: Annotated[Path, typer.Argument(help="A release file.")],
    typed: Annotated[
        list[str] | None,
        typer.Argument(metavar="points", help="Points: numbers separated by commas."),
    ] = None,
) -> None:
    """Print the KDE at points, with its errors.

    standard_error is what the noise adds; sampling_error is an estimate of what the family adds.
    Where a model was fitted to the release (dpkde inspect), kde is mostly nearer than they say.
    Outside the bounds there are no records: those were moved or left out, and a note counts the
    points that lie there.

    Example: dpkde query trips.dpkde -73.98,40.75 -73.78,40.64
    """
    file, level, bias = options["points"], options["level"], options["bias"]
    import numpy as np

    from dpkde.release.release import Release

    published = Release.load(release)
    if (not typed) == (file is None):
        both = ", not both" if typed else ""
        raise ParameterError(f"give points as arguments, or a file with --points{both}")
    if level is not None:
        published.interval(np.empty((0, published.dim)), level, bias=bias)  # checks, no more
    elif bias is not None:
        raise ParameterError("--bias goes with --level")
    names = list(published.columns or (f"x{k + 1}" for k in range(published.dim)))
    header = [*names, "kde", "standard_error", "sampling_error"]
    header += [] if level is None else ["low", "high"]
    with _batches(typed, published, options) as batches:
        _answer(published, batches, header, options)


def _answer(
    published: Release, batches: Iterator[NDArray[Any]], header: list[str], options: Options
) -> None:
    """Print the answers, a row for each point."""
    import numpy as np

    level, bias = options["level"], options["bias"]
    assisted = False if options["plain"] else None
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if options["format"] is Format.CSV:
        writer.writerow([plain(name) for name in header])
    points = unreadable = outside = 0
    for batch in batches:
        points += len(batch)
        unreadable += int(np.isnan(batch).any(axis=1).sum())
        outside += int(published.outside(batch).sum())
        answers = [
            published.kde(batch, assisted=assisted).tolist(),
            published.standard_error(batch, assisted=assisted).tolist(),
            published.sampling_error(batch, assisted=assisted).tolist(),
        ]
        if level is not None:
            ends = published.interval(batch, level, bias=bias, assisted=assisted)
            answers += [end.tolist() for end in ends]
        for row, *answer in zip(batch.tolist(), *answers, strict=True):
            cells = [*row, *answer]
            if options["format"] is Format.CSV:
                writer.writerow(["" if cell != cell else f"{cell:.9g}" for cell in cells])
            else:
                named = {
                    k: v if math.isfinite(v) else None for k, v in zip(header, cells, strict=True)
                }
                sys.stdout.write(json.dumps(named, allow_nan=False) + "\n")
    notes = []
    if unreadable:
        notes.append(
            f"{unreadable} of {points} points have a coordinate that is no number, and no answer"
        )
    if outside:
        rule = getattr(published.domain, "outside", "clip")
        became = "left out" if rule == "drop" else "moved to them"
        notes.append(
            f"{outside} of {points} points lie outside the bounds; records out there were "
            f"{became}, so an answer of 0 says nothing of how many there were"
        )
    notes += [f"{each.sentence} (dpkde inspect)" for each in published.troubles if each.code in DIM]
    for note in () if options["quiet"] else notes:
        typer.echo(f"dpkde: note: {note}", err=True)


@contextmanager
def _batches(
    typed: list[str] | None, release: Release, options: Options
) -> Iterator[Iterator[NDArray[Any]]]:
    """Yield points that were typed, or those of a file, whose reading a bar shows.

    Where answers are printed to the terminal themselves, there is no bar between them.
    """
    if typed:
        yield iter([_points(typed, release)])
        return
    source = _open(table(options["points"], options), release)
    shown = not options["quiet"] and not sys.stdout.isatty()
    with watched(source, "asking", shown) as read:
        yield _read(read)


def _points(points: list[str], release: Release) -> NDArray[Any]:
    import numpy as np

    # So that points may be negative, unknown options end up here.
    if unknown := [text for text in points if text.startswith("--")]:
        raise ParameterError(f"there is no option {unknown[0]}; see dpkde query --help")
    rows = [numbers(text, "a point") for text in points]
    dim = release.dim
    for text, row in zip(points, rows, strict=True):
        if len(row) != dim:
            named = "" if release.columns is None else f", {','.join(map(plain, release.columns))}"
            has = "1 column" if dim == 1 else f"{dim} columns"
            raise ParameterError(
                f"this release has {has}{named if dim < 6 else ''}; the point {text} has "
                f"{len(row)}: write the numbers of one point with commas between them and no space"
            )
    return np.array(rows)


def _open(text: Any, release: Release) -> Source:
    """Return a file of points as a source, by the release's column names where it has any."""
    from dpkde.tables import open_points

    source = open_points(text, release.columns)
    if source.dim is not None and source.dim != release.dim:
        raise ParameterError(f"the points have {source.dim} columns, the release {release.dim}")
    return source


def _read(source: Source) -> Iterator[NDArray[Any]]:
    """Yield points, several pieces at a time."""
    import numpy as np

    parts: list[NDArray[Any]] = []
    for piece in source.read():
        parts.append(piece.rows().astype(np.float64))
        if sum(map(len, parts)) >= ROWS_AT_ONCE:
            yield np.concatenate(parts)
            parts = []
    if parts:
        yield np.concatenate(parts)
