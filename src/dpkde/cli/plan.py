"""``dpkde plan``: the error to expect, before any budget is spent and without reading data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from dpkde.cli import request
from dpkde.cli.options import RELEASE, Options
from dpkde.cli.verb import verb
from dpkde.errors import ParameterError

if TYPE_CHECKING:
    from dpkde.planning.plan import Plan


@verb("plan", *RELEASE, "settings")
def plan(options: Options) -> None:
    """Predict the error of a release.

    This reads no data and spends nothing. With --alpha and --eta it also tells how many rows such a
    promise takes.

    Example: dpkde plan --expected-rows 100000 --bounds 0:10,0:6 --bandwidth 0.4
    --epsilon 0.05,0.2,1
    """
    from dpkde.planning.outlook import density_range
    from dpkde.planning.plan import plan as planned

    output, dim, columns = options["output"], options["dim"], request.names(options["columns"])
    picture = options["plot"]
    if output is not None:
        request.check_writable(output, "dpkde-plan")
    if picture is not None:
        request.check_picture(picture)
    if columns is not None and dim not in (None, len(columns)):
        raise ParameterError(f"--dim {dim} does not agree with {len(columns)} columns")
    axes = dim if columns is None else len(columns)
    typed = options["epsilon"]
    epsilons = [None] if typed is None else [part.strip() for part in str(typed).split(",")]
    if output is not None and len(epsilons) > 1:
        raise ParameterError("a plan is made for one ε: with --output give a single --epsilon")
    blocks = []
    for one in epsilons:
        decisions = request.request({**options, "epsilon": one}, axes)
        if (told := _open(decisions, columns, axes)) is not None:
            if output is not None:
                raise ParameterError(f"a plan is made of numbers, and {told}: leave --output out")
            blocks.append(f"{_title(one, options)}\n  scale: {told}")
            continue
        drawn = planned(dim=axes, columns=columns, **decisions)
        if drawn.prediction is None:
            raise ParameterError("--expected-rows is needed to predict an error")
        title = _title(one, options)
        lines = [*_promised(drawn, options), *_considered(drawn), *_pilot(drawn), *_unit(drawn)]
        blocks.append("\n".join([title, *lines]))
    typer.echo("\n\n".join(blocks))
    if told is not None:
        typer.echo("\nerror: known once bounds and bandwidth are; see dpkde inspect of the release")
        return
    low, high = density_range(drawn.frame, options["typical_density"])
    level = f"to expect where typical ones are from {low:.2g} to {high:.2g}"
    typer.echo(
        "\nerror: mean absolute error of a KDE value (0 to 1) "
        f"{'that is as large as any, for the promise' if drawn.promised else level}\n"
        "noise, family, count: its parts, as standard deviations; family is bias or, for fourier "
        "and hashing, what the seed does\n"
        "time: of the curator, on one core, without starting up"
    )
    if picture is not None:
        from dpkde.plots.figure import save
        from dpkde.plots.prospects import plot_prospects

        if epsilons != [None]:
            decisions["epsilon"] = epsilons
        save(plot_prospects(dim=axes, columns=columns, **decisions), picture)
    if output is not None:
        drawn.save(output)


def _title(epsilon: str | None, options: Options) -> str:
    """Return what is guaranteed, in a line."""
    title = f"ρ = {options['rho']}" if epsilon is None else f"ε = {epsilon}"
    return title + (f", δ = {options['delta']}" if options["delta"] else "")


def _open(decisions: dict[str, Any], columns: list[str] | None, dim: int | None) -> str | None:
    """Return what publishing would pay for bounds and a bandwidth; None where they are given."""
    from dpkde.privacy.amounts import Unit
    from dpkde.privacy.budget import Budget, Guarantee
    from dpkde.scale.wish import Wish

    wish = Wish.of(decisions["kernel"], decisions["bounds"], decisions["ranges"], columns)
    if wish is None:
        return None
    names = ("epsilon", "delta", "rho", "adjacency")
    unit = Unit.declare(decisions["unit"], decisions["rows_per_unit"])
    guarantee = Guarantee.declare(**{k: decisions[k] for k in names if k in decisions}, unit=unit)
    return wish.told(dim, Budget(guarantee), decisions.get("expected_rows"))


def _promised(plan: Plan, options: Options) -> list[str]:
    """Return how many records a promise takes, and what those expected can be promised."""
    if plan.promised is None:
        return []
    alpha, eta, rows = options["alpha"], options["eta"], options["expected_rows"]
    lines = [f"  α = {alpha:g} at η = {eta:g} takes about {plan.promised.rows:,} records"]
    if rows is not None:
        verdict = "kept" if plan.promised.bound <= alpha else "refused"
        lines.append(
            f"  {rows:,} records can be promised α = {plan.promised.bound:.3g}: α = {alpha:g} will "
            f"likely be {verdict}"
        )
    return lines


def _pilot(plan: Plan) -> list[str]:
    """Return whether publishing would look at the data first."""
    if plan.pilot is None:
        return []
    return [
        f"  pilot: publish pays {float(plan.pilot):.0%} of the budget for a first look at the data "
        "and plans by it, if it counts the rows itself (no --expected-rows, no --plan)"
    ]


def _unit(plan: Plan) -> list[str]:
    """Return what protecting all the rows of somebody does to the noise."""
    records = plan.unit.records
    if plan.unit.name is None:
        return []
    counts, times = "1 row", "the noise"
    if records > 1:
        counts, times = f"up to {records} rows", f"{records} times the noise"
    return [
        f"  unit: {counts} of each {plan.unit.name} may count, with {times} of single rows; "
        "compare other --rows-per-unit, each with the --expected-rows that then count"
    ]


def _considered(plan: Plan) -> list[str]:
    """Return a line for each family that was considered, and why the first was chosen."""
    from dpkde.planning.choice import AS_GOOD

    candidates = [(c.layout, c.prediction) for c in plan.considered if c.layout and c.prediction]
    width = max(28, *(len(layout.summary) + 2 for layout, _ in candidates))
    lines = [
        f"  {'':<{width}}{'error':>9}{'noise':>9}{'family':>9}{'count':>9}{'cells':>10}{'time':>10}"
        "  law"
    ]
    (chosen, best), *others = candidates
    for layout, one in candidates:
        numbers = (one.error, one.noise, one.approximation, one.count)
        lines.append(
            f"{'*' if layout.summary == chosen.summary else ' '} {layout.summary:<{width}}"
            f"{''.join(f'{number:>9.2g}' for number in numbers)}{one.cells:>10}"
            f"{_duration(one.seconds):>10}  {one.law}"
        )
    lines += [f"  {c.name}: not here, {c.obstacle}" for c in plan.considered if c.obstacle]
    if others:
        second, next_best = others[0]
        times = max(next_best.error / best.error, 1.0)
        less = f"{times:.2g} times less than" if times >= 1.1 else "about that of"
        why = f"for the least predicted error, {less} {second.family.name}"
        if passed := [o.family.name for o, one in others if AS_GOOD * one.error < best.error]:
            why = (
                f"since the bias of {' and '.join(passed)} may be far larger than is told: "
                "such errors count twice"
            )
        lines.append(f"  chosen: {chosen.family.name}, {why}")
    elif len(plan.considered) > 1:
        lines.append(f"  chosen: {chosen.family.name}, since no other family can be used here")
    modelled = [(layout, one) for layout, one in candidates if one.assisted is not None]
    lines += [
        f"  {layout.family.name}: error {one.assisted_error:.2g} if a model fits the data, as it "
        "mostly does in many columns; families are compared without"
        for layout, one in modelled
    ]
    return lines


def _duration(seconds: float) -> str:
    """Return a rough time.

    >>> _duration(0.003), _duration(0.034), _duration(210), _duration(7e5), _duration(1e11)
    ('<0.01 s', '0.034 s', '3.5 min', '8.1 days', '3e+03 yr')
    """
    if seconds < 0.01:
        return "<0.01 s"
    for unit, size, most in (("s", 1, 100), ("min", 60, 100), ("h", 3600, 48), ("days", 86400, 99)):
        if seconds < most * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds / 31_557_600:.1g} yr"
