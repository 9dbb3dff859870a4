"""``dpkde audit``: try to catch a release at telling more than it may, on this machine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpkde.cli import request
from dpkde.cli.exits import DEFECT, fail, plain
from dpkde.cli.options import RELEASE, Options
from dpkde.cli.progress import bar
from dpkde.cli.verb import verb
from dpkde.errors import ParameterError

if TYPE_CHECKING:
    from dpkde.curator.auditing.course import Course, Finding

MADE_UP = 1000
"""Records of a table that is made up, where no number of them is expected."""
FROM_A_TABLE = (
    "computed from the exact table, and nothing was paid for it: for the curator's eyes, not to be "
    "published"
)
FROM_NOTHING = "of a table that was made up: nothing in it is secret"
KINDS = {
    "transcript": ("transcripts: {} of {} alike", "alike", "NOT ALIKE"),
    "audit": ("audits: {} of {} not refuted", "kept", "REFUTED"),
    "mutant": ("wrong noise: {} of {} caught (more --trials catch more)", "caught", "missed"),
}
"""What is said of each kind of finding: over all, and where it is as it should be or is not."""


@verb("audit", *RELEASE, "text", "settings")
def audit(
    options: Options,
    table: Annotated[
        str | None,
        typer.Argument(
            help="A table, as for dpkde publish: its first million rows. Left out: one is "
            "made up, evenly spread over the bounds."
        ),
    ] = None,
) -> None:
    """Audit the release that these options would make, on this machine.

    It is made of the table, and played again on others with the same noisy outputs: nothing that
    is published, printed or paid for may differ. Then its noise is drawn many times, on tables that
    differ by one record: no event may refute the guarantee. With --mutants wrong noise is audited
    as well, which shows what would have been caught here. An audit can prove a release wrong; it
    cannot prove it right. Nothing is written, released or debited.

    What it says of a table of yours is for your eyes: it is computed from the exact table. Exit
    code 1 where something is wrong; please report it.

    Example: dpkde audit --bounds 0:10,0:6 --bandwidth 1 --epsilon 0.5 --trials 4000
    """
    course = _course(table, options)
    with bar("auditing", not options["quiet"]) as report:
        findings = list(course.run(report))
    whose = FROM_NOTHING if table is None else FROM_A_TABLE
    epsilon, delta = course.claim
    if options["json"]:
        document = {
            "what this is": whose,
            "epsilon": epsilon,
            "delta": delta,
            "trials": course.trials,
            "findings": [asdict(finding) for finding in findings],
        }
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        claim = f"ε = {epsilon:.4g}" + (f", δ = {delta:.4g}" if delta else "")
        lines = [f"claimed: {claim} ({course.guarantee})", *_lines(findings), f"note: {whose}"]
        typer.echo("\n".join(map(plain, lines)))
    if any(not finding.as_it_should for finding in findings if finding.kind != "mutant"):
        fail("the audit found a defect of dpkde, told above; please report it", DEFECT)


def _lines(findings: Sequence[Finding]) -> list[str]:
    """Return a heading for each kind of finding, and a line for each finding."""
    lines = []
    for kind, (title, good, bad) in KINDS.items():
        own = [finding for finding in findings if finding.kind == kind]
        if not own:
            continue
        lines.append(title.format(sum(finding.as_it_should for finding in own), len(own)))
        for finding in own:
            lines.append(f"  {finding.name}: {good if finding.as_it_should else bad}")
            if finding.detail:
                lines.append(f"    {finding.detail}")
    return lines


def _course(table: str | None, options: Options) -> Course:
    """Return what is to be audited, from what was typed."""
    from dpkde.curator.auditing.course import MOST_ROWS, Course, rows_of
    from dpkde.curator.auditing.neighbours import places
    from dpkde.curator.publish import Errand
    from dpkde.planning.plan import as_families, check_density, check_rows, check_switch, make_frame
    from dpkde.planning.promise import promise
    from dpkde.privacy.budget import Budget, Guarantee
    from dpkde.scale.wish import Wish
    from dpkde.tables import open_points

    columns = request.names(options["columns"])
    source = None
    if table is not None:
        if kind := request.kind_of(table):
            raise ParameterError(f"{table} is a {kind} file, and not a table")
        source = open_points(request.table(table, options), columns)
    dim = None if source is None else source.dim
    decisions = request.request(options, dim if columns is None else len(columns))
    unsupported = [name for name in ("unit", "rows_per_unit") if decisions[name] is not None]
    if unsupported:
        raise ParameterError("audits are of single rows: leave unit= and rows_per_unit= out")
    if Wish.of(decisions["kernel"], decisions["bounds"], decisions["ranges"], columns) is not None:
        raise ParameterError(
            "audits are of bounds and a bandwidth in numbers: give those that a release has found, "
            "which dpkde inspect tells"
        )
    if source is None:
        dim = None if columns is None else len(columns)
    frame = make_frame(decisions["kernel"], decisions["bounds"], dim)
    rows_guess = check_rows(decisions.get("expected_rows"))
    promised = promise(
        decisions.get("alpha"), decisions.get("eta"), bool(decisions.get("simultaneous")), frame
    )
    names = ("epsilon", "delta", "rho", "adjacency")
    guarantee = Guarantee.declare(**{k: decisions[k] for k in names if k in decisions})
    errand = Errand(
        Budget(guarantee),
        expected_rows=rows_guess,
        typical_density=check_density(decisions.get("typical_density")),
        promise=promised,
        pilot=check_switch(decisions.get("pilot", True), "pilot"),
    )
    if source is None:
        rows = places(frame, min(rows_guess or MADE_UP, MOST_ROWS))
    else:
        rows = rows_of(source, frame.dim)
    more: dict[str, Any] = {"mutants": bool(options["mutants"])}
    if options["trials"] is not None:
        more["trials"] = options["trials"]
    families = as_families(decisions["family"])
    return Course(rows, frame, families, errand, decisions["seed"], **more)
