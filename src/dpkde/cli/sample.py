"""``dpkde sample``: synthetic points, from a release file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dpkde.cli import request
from dpkde.cli.exits import plain
from dpkde.cli.options import Options, Support
from dpkde.cli.verb import verb


@verb("sample")
def sample(
    options: Options,
    release: Annotated[Path, typer.Argument(help="A release file.")],
) -> None:
    """Draw synthetic points from the density of a release.

    They follow the denoised density: none where the release shows nothing above its noise. Drawing
    costs no privacy, and no point is a record.

    Example: dpkde sample trips.dpkde -n 1000 -o points.csv
    """
    from dpkde.release.release import Release
    from dpkde.tables.writing import check_writable, write_csv, write_rows

    output: Path | None = options["output"]
    if output is not None:
        check_writable(output)
        request.check_writable(output)
    published = Release.load(release)
    density = published.denoise()
    usual = Support.BOUNDS if published.domain.kind == "box" else Support.SPACE
    support = str(options["support"] or usual)
    points = published.sample(
        options["n"],
        seed=options["seed"],
        support=support,
        smoothed=options["smoothed"] is not False,
    )
    # Before anything is written, since it may have too few points.
    report = str(published.sample_report(points)) if options["report"] else None
    names = list(published.columns or (f"x{k + 1}" for k in range(published.dim)))
    if output is None:
        write_csv(sys.stdout, [plain(name) for name in names], points)
    else:
        write_rows(output, names, points)
    if density.caveat is not None:
        typer.echo(f"dpkde: note: {density.caveat}", err=True)
    if report is not None:
        typer.echo(report, err=True)
