"""``dpkde check``: what becomes of a table's rows, and how near a release would be. Not private."""

from __future__ import annotations

from typing import Annotated

import typer

from dpkde.cli import request
from dpkde.cli.exits import plain
from dpkde.cli.options import RELEASE, TABLE, Options, arguments_of, in_flags
from dpkde.cli.progress import watched
from dpkde.cli.verb import verb
from dpkde.errors import ParameterError


@verb("check", *RELEASE, "text", "settings")
def check(
    options: Options,
    table: Annotated[
        str,
        typer.Argument(
            help="A table, as for dpkde publish; - for CSV on stdin, which is kept in memory."
        ),
    ],
) -> None:
    """Show what becomes of a table's rows, and the error of a release: for the curator's eyes only.

    Options are those of dpkde publish. It tells exact figures, which are not private and not to be
    passed on, and spends and writes nothing. It is for finding slips before they cost budget:
    bounds and bandwidths that are chosen by what it tells are chosen by the data.

    Example: dpkde check trips.csv --columns lon,lat
    --bounds -74.1:-73.15,40.5:40.9 --bandwidth 0.01 --epsilon 0.5
    """
    from dpkde.nonprivate import check as checked

    if kind := request.kind_of(table):
        raise ParameterError(f"{table} is a {kind} file: give the table that it was made from")
    source, decisions = request.opened(request.table(table, options), options)
    own = {k: v for k, v in arguments_of(options, "check").items() if k in ("queries", "threads")}
    with watched(source, "reading", not options["quiet"]) as read:
        found = checked(read, **decisions, **own)
    typer.echo("\n".join(plain(in_flags(line, TABLE)) for line in str(found).split("\n")))
