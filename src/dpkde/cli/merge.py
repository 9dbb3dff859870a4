"""``dpkde merge``: from sketches of parts to the sketch of the whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpkde.cli import request
from dpkde.cli.options import Options
from dpkde.cli.progress import bar
from dpkde.cli.sketch import REMINDER
from dpkde.cli.verb import verb

if TYPE_CHECKING:
    from dpkde.curator.sketch import Sketch


@verb("merge")
def merge(
    options: Options,
    parts: Annotated[list[Path], typer.Argument(help="Files that dpkde sketch or merge wrote.")],
) -> None:
    """Merge sketches of parts that were made under one plan.

    The result is the sketch of all their tables together, bit for bit, and as secret as they are. A
    part that is there twice, or of another plan, is named, and nothing is written.

    Example: dpkde merge monday.sketch tuesday.sketch -o week.sketch
    """
    from dpkde.curator.sketch import Sketch

    output, quiet = options["output"], options["quiet"]
    request.check_writable(output, "dpkde-sketch")
    with bar("merging", not quiet) as report:

        def named() -> Iterator[tuple[str, Sketch]]:
            for number, part in enumerate(parts, 1):
                yield str(part), Sketch.load(part)
                if report is not None:
                    report(number, len(parts))

        whole = Sketch.merge_named(named(), disjoint_units=options["disjoint_units"] or False)
    whole.save(output)
    if not quiet:
        typer.echo(f"dpkde: note: {REMINDER.format(output)}", err=True)
