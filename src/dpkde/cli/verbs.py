"""The typer application: verbs gathered. Heavy libraries are loaded by the verbs that need them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from dpkde import __version__
from dpkde.cli.demo import demo
from dpkde.cli.grid import grid
from dpkde.cli.inspect import inspect
from dpkde.cli.mass import mass
from dpkde.cli.plan import plan
from dpkde.cli.publish import publish
from dpkde.cli.query import query
from dpkde.cli.sample import sample
from dpkde.cli.verb import Verb

VERBS = (publish, plan, query, mass, grid, sample, inspect, demo)


def application(verbs: Iterable[Verb]) -> typer.Typer:
    """Return the command with these verbs, in this order."""
    gathered = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
    )
    gathered.callback()(about)
    for verb in verbs:
        unknown = {"ignore_unknown_options": verb.takes_minus}
        gathered.command(context_settings=unknown)(verb.command())
    return gathered


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"dpkde {__version__}")
        raise typer.Exit


def about(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Publish the density of a private data set once; let anyone query it forever.

    Exit codes: 0 done, 1 a defect of dpkde, 2 wrong use or a bad file, 130 interrupted.
    """


app = application(VERBS)
