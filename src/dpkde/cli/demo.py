"""``dpkde demo``: the main job on a generated data set."""

from __future__ import annotations

from typing import Annotated

import typer

from dpkde.cli.exits import speaks_plainly


@speaks_plainly
def demo(
    folder: Annotated[str, typer.Argument(help="Where to leave what it makes.")] = "demo",
) -> None:
    """Publish and query a made-up city; leave its table, releases and a picture.

    Example: dpkde demo
    """
    from dpkde.demo import main

    main(folder)
