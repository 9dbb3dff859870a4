"""``dpkde query``: densities at points, from a release file."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpkde.cli import options as o
from dpkde.cli.exits import plain, speaks_plainly
from dpkde.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpkde.release.release import Release
    from dpkde.tables import Source

ROWS_AT_ONCE = 65_536


class Format(StrEnum):
    """How answers are written."""

    CSV = "csv"
    JSON = "json"


class Bias(StrEnum):
    """What an interval allows for a family's bias."""

    TYPICAL = "typical"
    WORST = "worst"


@speaks_plainly
def query(
    release: Annotated[Path, typer.Argument(help="A release file.")],
    points: Annotated[
        list[str] | None, typer.Argument(help="Points: numbers separated by commas.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--points", help="Points in a CSV, Parquet or .npy file; - for CSV on stdin."),
    ] = None,
    level: Annotated[
        float | None,
        typer.Option(help="Also print an interval that holds the KDE with this probability."),
    ] = None,
    bias: Annotated[
        Bias | None,
        typer.Option(
            help="With --level: what the interval allows for the family's bias. typical: right "
            "where records are spread out; worst: for any data, wider. Default: worst in a release "
            "with a promise, else typical."
        ),
    ] = None,
    delimiter: o.Delimiter = None,
    records: o.Records = None,
    decimal: o.Decimal = None,
    thousands: o.Thousands = None,
    encoding: o.Encoding = None,
    format: Annotated[Format, typer.Option(help="csv, or json: one object a line.")] = Format.CSV,
) -> None:
    """Print the KDE at points, with its errors.

    standard_error is what the noise adds, sampling_error what the family adds (an estimate).

    Example: dpkde query trips.dpkde -73.98,40.75 -73.78,40.64
    """
    typed = locals()
    import numpy as np

    from dpkde.release.release import Release

    published = Release.load(release)
    if (points is None or not points) == (file is None):
        both = ", not both" if points else ""
        raise ParameterError(f"give points as arguments, or a file with --points{both}")
    if level is not None:
        published.interval(np.empty((0, published.dim)), level, bias=bias)  # checks, no more
    elif bias is not None:
        raise ParameterError("--bias goes with --level")
    batches = (
        iter([_typed(points, published.dim)])
        if points
        else _read(_open(o.table(str(file), typed), published))
    )
    names = list(published.columns or (f"x{k + 1}" for k in range(published.dim)))
    header = [*names, "kde", "standard_error", "sampling_error"]
    header += [] if level is None else ["low", "high"]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if format is Format.CSV:
        writer.writerow([plain(name) for name in header])
    asked = unreadable = 0
    for batch in batches:
        asked, unreadable = asked + len(batch), unreadable + int(np.isnan(batch).any(axis=1).sum())
        answers = [
            published.kde(batch).tolist(),
            published.standard_error(batch).tolist(),
            published.sampling_error(batch).tolist(),
        ]
        if level is not None:
            answers += [ends.tolist() for ends in published.interval(batch, level, bias=bias)]
        for row, *told in zip(batch.tolist(), *answers, strict=True):
            cells = [*row, *told]
            if format is Format.CSV:
                writer.writerow(["" if cell != cell else f"{cell:.9g}" for cell in cells])
            else:
                named = {
                    k: v if math.isfinite(v) else None for k, v in zip(header, cells, strict=True)
                }
                sys.stdout.write(json.dumps(named, allow_nan=False) + "\n")
    if unreadable:
        typer.echo(
            f"dpkde: note: {unreadable} of {asked} points have a coordinate that is no number, and "
            "no answer",
            err=True,
        )


def _typed(points: list[str], dim: int) -> NDArray[Any]:
    import numpy as np

    for text in points:
        if text.startswith("--"):  # so that points may be negative, unknown options end up here
            raise ParameterError(f"there is no option {text}; see dpkde query --help")
    rows = [o.numbers(text, "a point") for text in points]
    for text, row in zip(points, rows, strict=True):
        if len(row) != dim:
            raise ParameterError(
                f"this release has {dim} columns; the point {text} has {len(row)} numbers"
            )
    return np.array(rows)


def _open(table: Any, release: Release) -> Source:
    """Open a file of points, by the release's column names where it has any."""
    from dpkde.tables import open_points

    source = open_points(table, release.columns)
    if source.dim is not None and source.dim != release.dim:
        raise ParameterError(f"the points have {source.dim} columns, the release {release.dim}")
    return source


def _read(source: Source) -> Iterator[NDArray[Any]]:
    """Yield points, several pieces at a time."""
    import numpy as np

    held: list[NDArray[Any]] = []
    for piece in source.read():
        held.append(piece.rows().astype(np.float64))
        if sum(map(len, held)) >= ROWS_AT_ONCE:
            yield np.concatenate(held)
            held = []
    if held:
        yield np.concatenate(held)
