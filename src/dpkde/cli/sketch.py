"""``dpkde sketch``: from tables on disk to a secret file, under a plan that others have too."""

from __future__ import annotations

from typing import Annotated

import typer

from dpkde.cli import request
from dpkde.cli.options import Options
from dpkde.cli.progress import watched
from dpkde.cli.verb import verb
from dpkde.errors import ParameterError

REMINDER = "{0} is secret: exact sums, as secret as the table; remove it once it is of no more use"


@verb("sketch", "text")
def sketch(
    options: Options,
    tables: Annotated[
        list[str],
        typer.Argument(
            help="Files, folders, patterns or addresses, as for dpkde publish; - for CSV on stdin. "
            "Several are one table, read one after the other."
        ),
    ],
) -> None:
    """Sketch tables under a plan: exact sums, as secret as the tables, to be merged.

    This adds no noise and spends nothing. What it writes is secret: for dpkde merge and dpkde
    publish, and for nobody else. The file is readable by its owner alone.

    Example: dpkde sketch trips.csv --plan trips.plan -o monday.sketch
    """
    from dpkde.curator.sketch import resumed
    from dpkde.curator.sketch import sketch as sketch_of
    from dpkde.planning.plan import Plan
    from dpkde.planning.units import with_unit
    from dpkde.privacy.amounts import Unit
    from dpkde.tables import open_points, open_tables

    output, quiet, kept = options["output"], options["quiet"], options["checkpoint"]
    for table in tables:
        if kind := request.kind_of(table):
            hint = ": use dpkde merge" if kind == "dpkde-sketch" else ""
            raise ParameterError(f"{table} is a {kind} file, and not a table{hint}")
    whose = Unit.declare(options["unit"], options["rows_per_unit"])
    plan = with_unit(Plan.load(options["plan"]), whose)
    request.check_writable(output, "dpkde-sketch")
    if kept is not None:
        request.check_writable(kept, "dpkde-checkpoint")
        if kept.resolve() == output.resolve():
            raise ParameterError("--checkpoint and --output name the same file")
    opened = [request.table(table, options) for table in tables]
    if len(opened) == 1:
        source = open_points(opened[0], plan.columns, unit=plan.unit.name)
    else:
        source = open_tables(opened, plan.columns, unit=plan.unit.name)
    threads = options["threads"]
    with watched(source, "reading", not quiet) as read:
        if kept is None:
            sketch_of(read, plan, threads=threads).save(output)
        else:  # which is deleted once the sketch is on the disk
            with resumed(read, plan, kept, threads) as sums:
                sums.save(output)
    if not quiet:
        typer.echo(f"dpkde: note: {REMINDER.format(output)}", err=True)
