"""The typer application: verbs gathered. Heavy libraries are loaded by the verbs that need them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import typer

from dpkde import __version__
from dpkde.cli.audit import audit
from dpkde.cli.budget import BUDGET
from dpkde.cli.check import check
from dpkde.cli.demo import demo
from dpkde.cli.grid import grid
from dpkde.cli.inspect import inspect
from dpkde.cli.mass import mass
from dpkde.cli.merge import merge
from dpkde.cli.plan import plan
from dpkde.cli.plot import plot
from dpkde.cli.publish import publish
from dpkde.cli.query import query
from dpkde.cli.sample import sample
from dpkde.cli.sketch import sketch
from dpkde.cli.verb import Verb

VERBS = (publish, plan, check, sketch, merge, query, mass, grid, plot, sample, inspect, audit, demo)
GROUPS = {"budget": ("What has been spent of a data set, and what is left: a ledger.", BUDGET)}
"""Verbs of two words: the first, its help, and the verbs behind it."""


def application(
    verbs: Iterable[Verb], groups: Mapping[str, tuple[str, Iterable[Verb]]] = GROUPS
) -> typer.Typer:
    """Return the command with these verbs, in this order, and behind them those of two words."""
    gathered = _gathered(verbs)
    gathered.callback()(about)
    for name, (help_, own) in groups.items():
        gathered.add_typer(_gathered(own), name=name, help=help_)
    return gathered


def _gathered(verbs: Iterable[Verb]) -> typer.Typer:
    several = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
    )
    for verb in verbs:
        unknown = {"ignore_unknown_options": verb.takes_minus}
        several.command(context_settings=unknown)(verb.command())
    return several


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
