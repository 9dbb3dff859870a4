"""``dpkde demo``: the main job on a generated data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpkde.cli.options import Options
from dpkde.cli.verb import verb


@verb()
def demo(
    options: Options,
    folder: Annotated[Path, typer.Argument(help="The folder to leave its files in.")] = Path(
        "demo"
    ),
) -> None:
    """Publish and query a made-up city.

    Its table, three releases and a picture are left in the folder.

    Example: dpkde demo
    """
    from dpkde.demo import main

    main(str(folder))
    typer.echo(
        "to publish the table yourself, and to query it:\n"
        f"  dpkde publish {folder / 'city.csv'} -o {folder / 'city.dpkde'} --columns east,north "
        "--bounds 0:10,0:6 --bandwidth 0.25 --epsilon 0.5\n"
        f"  dpkde query {folder / 'city.dpkde'} 3.2,3.6 6.8,2.2"
    )
