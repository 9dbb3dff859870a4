"""The typer application: verbs gathered. Heavy libraries are loaded by the verbs that need them."""

from __future__ import annotations

from typing import Annotated

import typer

from dpkde import __version__
from dpkde.cli.demo import demo
from dpkde.cli.inspect import inspect
from dpkde.cli.plan import plan
from dpkde.cli.publish import publish
from dpkde.cli.query import query

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpkde {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Publish the density of a private data set once; let anyone query it for ever.

    Exit codes: 0 done, 1 a defect of dpkde, 2 wrong use or a bad file, 130 interrupted.
    """


for verb in (publish, plan, inspect, demo):
    app.command()(verb)
# Points may begin with a minus sign.
app.command(context_settings={"ignore_unknown_options": True})(query)
