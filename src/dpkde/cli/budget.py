"""``dpkde budget``: ledgers made, read and verified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpkde.cli import request
from dpkde.cli.exits import plain
from dpkde.cli.options import Options, arguments_of
from dpkde.cli.verb import verb

if TYPE_CHECKING:
    from dpkde.privacy.ledger.book import Account

WRONG = 2
LedgerFile = Annotated[Path, typer.Argument(help="A ledger file.")]


@verb("guarantee", "budget-create", "as-json")
def create(options: Options, ledger: LedgerFile) -> None:
    """Make a ledger for a data set, or add a data set to a ledger.

    The options say what all releases together may spend. They cannot be changed later.

    Example: dpkde budget create ledger.db --dataset trips --epsilon 2
    """
    from dpkde.privacy.ledger.ledger import Ledger

    terms = request.guarantee(options)
    protected = arguments_of(options, "budget-create")
    parts = protected.pop("part", None) or ()
    made = Ledger.create(ledger, parts=parts, **terms, **protected)
    _show(made.path, made.account(protected["dataset"]), None, options["json"])


@verb("budget-read", "budget-show", "as-json")
def show(options: Options, ledger: LedgerFile) -> None:
    """Show what was spent of a data set, and what is left.

    Example: dpkde budget show ledger.db --dataset trips
    """
    from dpkde.privacy.ledger.ledger import Ledger

    picture: Path | None = options["plot"]
    if picture is not None:
        request.check_picture(picture)
    opened = Ledger.open(ledger)
    names = opened.datasets if options["dataset"] is None else (options["dataset"],)
    if picture is not None or options["part"] is not None:
        names = (opened.account(options["dataset"]).name,)
    for name in names:
        account = opened.account(name)
        if picture is not None:
            from dpkde.plots.budget import plot_budget
            from dpkde.plots.figure import save

            save(plot_budget(account), picture)
        _show(opened.path, account, options["part"], options["json"], options["in_advance"])


@verb("budget-history", "as-json")
def history(options: Options, ledger: LedgerFile) -> None:
    """List every reservation, and what became of it.

    Example: dpkde budget history ledger.db
    """
    from dpkde.privacy.ledger.ledger import Ledger
    from dpkde.privacy.ledger.words import amount

    bookings = Ledger.open(ledger).history(options["dataset"])
    if options["json"]:
        _print_json([booking.to_json() for booking in bookings])
        return
    for booking in bookings:
        where = booking.dataset if booking.part is None else f"{booking.dataset}, {booking.part}"
        remark = "" if booking.remark is None else f", “{booking.remark}”"
        typer.echo(
            plain(
                f"{booking.number}  {booking.date}  {where}  {booking.kind}  "
                f"{amount(booking.guarantee)}  {booking.state}  {booking.release_id}{remark}"
            )
        )


@verb("budget-verify", "as-json")
def verify(
    options: Options,
    ledger: LedgerFile,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="releases", help="Release files.")
    ] = None,
) -> None:
    """Check that no entry was changed, removed or moved.

    With release files (ledger.db --releases *.dpkde) also that each is where it says it is, so that
    a cut-off end or an old copy of the ledger is found. Ends with code 2 where something is wrong.

    Example: dpkde budget verify ledger.db
    """
    from dpkde.errors import ParameterError
    from dpkde.privacy.ledger.verification import verify_file

    if bool(files) != bool(options["releases"]):
        raise ParameterError("releases goes with release files behind the ledger")
    verdict = verify_file(ledger, files or ())
    if options["json"]:
        _print_json(verdict.to_json())
    else:
        for line in str(verdict).splitlines():
            typer.echo(plain(line))
    if not verdict:
        raise SystemExit(WRONG)


@verb("budget-read", "as-json")
def statement(options: Options, ledger: LedgerFile) -> None:
    """Print what all releases of a data set together guarantee, to be quoted.

    Example: dpkde budget statement ledger.db --dataset trips
    """
    from dpkde.privacy.ledger.ledger import Ledger

    told = Ledger.open(ledger).statement(options["dataset"])
    if options["json"]:
        _print_json(told.to_json())
        return
    for line in str(told).splitlines():
        typer.echo(plain(line))


BUDGET = (create, show, history, verify, statement)


def _show(
    path: Path, account: Account, part: str | None, as_json: bool, in_advance: bool = False
) -> None:
    """Print what is known of a data set."""
    from dpkde.privacy.ledger.reference import MARK, epsilon_in_advance
    from dpkde.privacy.ledger.statement import charged, counts, left_to_json, spent_in_words
    from dpkde.privacy.ledger.words import amount, left_in_words
    from dpkde.privacy.statement import neighbours

    account.check_part(part)
    left = account.left(part)
    figure = None
    if in_advance:
        figure = epsilon_in_advance(*charged(account, part))
    if as_json:
        document = left_to_json(path, account, part)
        _print_json(document | ({} if figure is None else {"epsilon_in_advance": figure}))
        return
    named = account.name if part is None else f"{account.name}, part {part}"
    lines = [
        named,
        f"  total   {amount(account.total)}",
        f"  spent   {spent_in_words(account, part)}"
        + (", of the part charged most" if account.parts and part is None else ""),
        f"  left    {left_in_words(left, account.total)}"
        + (", for the whole" if account.parts and part is None else ""),
        f"  for     {neighbours(account.total.adjacency, account.unit)}",
        f"  of      {counts(account)}",
    ]
    if account.parts and part is None:
        lines += [
            f"{'  parts   ' if place == account.parts[0] else ' ' * 10}{place}: left "
            f"{left_in_words(account.left(place), account.total)}"
            for place in account.parts
        ]
    if figure is not None:
        lines.append(f"  ε = {figure:.4g} {MARK}")
    for line in lines:
        typer.echo(plain(line))


def _print_json(document: Any) -> None:
    text = json.dumps(document, indent=2, ensure_ascii=False)
    typer.echo("\n".join(map(plain, text.split("\n"))))
