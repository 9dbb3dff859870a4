"""``dpkde plan``: the error to expect, before any budget is spent and without reading data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpkde.cli import options as o
from dpkde.cli.exits import speaks_plainly
from dpkde.errors import ParameterError

if TYPE_CHECKING:
    from dpkde.planning.plan import Plan


@speaks_plainly
def plan(
    expected_rows: o.ExpectedRows = None,
    columns: o.Columns = None,
    dim: Annotated[
        int | None, typer.Option(help="Number of columns, if nothing else tells.")
    ] = None,
    bounds: o.Bounds = None,
    outside: o.Outside = None,
    bandwidth: o.Bandwidth = None,
    kernel: o.KernelName = None,
    epsilon: Annotated[
        str | None, typer.Option(help="ε, or several to compare: 0.1,0.5,1.")
    ] = None,
    delta: o.Delta = None,
    rho: o.Rho = None,
    adjacency: o.AdjacencyName = None,
    family: o.FamilyName = None,
    degree: o.Degree = None,
    spacing: o.Spacing = None,
    order: o.Order = None,
    frequencies: o.Frequencies = None,
    repetitions: o.Repetitions = None,
    buckets: o.Buckets = None,
    typical_density: o.TypicalDensity = None,
    alpha: o.Alpha = None,
    eta: o.Eta = None,
    simultaneous: o.Simultaneous = None,
    seed: o.Seed = None,
    settings: o.Settings = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the plan, to sketch apart and merge."),
    ] = None,
) -> None:
    """Predict the error of a release. Reads no data and spends nothing.

    With --alpha and --eta it also tells how many rows that promise takes.

    Example: dpkde plan --expected-rows 100000 --bounds 0:10,0:6 --bandwidth 0.4
    --epsilon 0.05,0.2,1
    """
    chosen = o.merged(settings, locals())
    from dpkde.planning.outlook import typical
    from dpkde.planning.plan import plan as make

    if output is not None:
        o.check_writable(output)
    named = o.names(chosen["columns"])
    if named is not None and dim not in (None, len(named)):
        raise ParameterError(f"--dim {dim} does not agree with {len(named)} columns")
    axes = dim if named is None else len(named)
    given = chosen["epsilon"]
    several = [None] if given is None else [e.strip() for e in str(given).split(",")]
    if output is not None and len(several) > 1:
        raise ParameterError("a plan is made for one ε: give one with --output")
    blocks = []
    for one in several:
        wanted = o.request(chosen | {"epsilon": one}, axes)
        made = make(
            kernel=wanted.kernel,
            bounds=wanted.domain,
            family=wanted.family,
            dim=axes,
            columns=named,
            expected_rows=chosen["expected_rows"],
            typical_density=wanted.typical_density,
            seed=chosen["seed"],
            **wanted.guarantee,
            **wanted.promise,
        )
        if made.prediction is None:
            raise ParameterError("--expected-rows is needed to predict an error")
        promise = f"ε = {one}" if one is not None else f"ρ = {chosen['rho']}"
        promise += f", δ = {chosen['delta']}" if chosen["delta"] else ""
        blocks.append("\n".join([promise, *_promised(made, wanted, chosen), *_considered(made)]))
    typer.echo("\n\n".join(blocks))
    typer.echo(
        "\nerror: mean absolute error of a KDE value (0 to 1), where that value is about "
        f"{1 if made.promised else typical(made.frame, wanted.typical_density):.2g}\n"
        "noise, family, count: its parts, as standard deviations; family is bias or, for fourier "
        "and hashing, what the seed does\n"
        "time: of the curator, on one core, without starting up"
    )
    if output is not None:
        made.save(output)


def _promised(plan: Plan, wanted: o.Request, chosen: Mapping[str, Any]) -> list[str]:
    """Return how many records a promise takes, and what those expected can be promised."""
    if plan.promised is None:
        return []
    alpha, eta = wanted.promise["alpha"], wanted.promise["eta"]
    lines = [f"  α = {alpha:g} at η = {eta:g} takes about {plan.promised.rows:,} records"]
    rows = chosen["expected_rows"]
    if rows is not None:
        verdict = "kept" if plan.promised.bound <= alpha else "refused"
        lines.append(
            f"  {rows:,} records can be promised α = {plan.promised.bound:.3g}: it will likely be "
            f"{verdict}"
        )
    return lines


def _considered(plan: Plan) -> list[str]:
    """Return a line for each family that was considered, and why the first was chosen."""
    from dpkde.planning.choice import AS_GOOD

    able = [(c.layout, c.prediction) for c in plan.considered if c.layout and c.prediction]
    shown = [layout.summary for layout, _ in able]
    width = max(28, *(len(text) + 2 for text in shown))
    lines = [
        f"  {'':<{width}}{'error':>9}{'noise':>9}{'family':>9}{'count':>9}{'cells':>10}{'time':>10}"
        "  law"
    ]
    for text, (_, told) in zip(shown, able, strict=True):
        numbers = "".join(
            f"{value:>9.2g}" for value in (told.error, told.noise, told.approximation, told.count)
        )
        mark = "*" if text == shown[0] else " "
        lines.append(
            f"{mark} {text:<{width}}{numbers}{told.cells:>10}{_duration(told.seconds):>10}"
            f"  {told.law}"
        )
    lines += [f"  {c.name}: not here, {c.obstacle}" for c in plan.considered if c.obstacle]
    best = able[0][1]
    if len(able) > 1:
        times = max(able[1][1].error / best.error, 1.0)
        less = f"{times:.2g} times less than" if times >= 1.1 else "about that of"
        why = f"for the least predicted error, {less} {able[1][0].family.name}"
        passed = [
            layout.family.name for layout, told in able[1:] if AS_GOOD * told.error < best.error
        ]
        if passed:
            names = " and ".join(passed)
            why = f"since the bias of {names} may be most of the density: there errors count twice"
        lines.append(f"  chosen: {able[0][0].family.name}, {why}")
    elif len(plan.considered) > 1:
        lines.append(f"  chosen: {able[0][0].family.name}, since no other family can be used here")
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
