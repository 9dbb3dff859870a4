"""``dpkde plan``: the error to expect, before any budget is spent and without reading data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpkde.cli import options as o
from dpkde.cli.exits import speaks_plainly
from dpkde.errors import ParameterError


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
    frequencies: o.Frequencies = None,
    typical_density: o.TypicalDensity = None,
    seed: o.Seed = None,
    settings: o.Settings = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the plan, to sketch apart and merge."),
    ] = None,
) -> None:
    """Predict the error of a release. Reads no data and spends nothing.

    Example: dpkde plan --expected-rows 100000 --bounds 0:10,0:6 --bandwidth 0.4
    --epsilon 0.05,0.2,1
    """
    chosen = o.merged(settings, locals())
    from dpkde.planner import plan as make

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
    lines = [f"{'privacy':<24}{'error':>10}{'noise':>10}{'sampling':>10}{'cells':>10}  family"]
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
        )
        told = made.prediction
        if told is None:
            raise ParameterError("--expected-rows is needed to predict an error")
        promise = f"ε={one}" if one is not None else f"ρ={chosen['rho']}"
        promise += f" δ={chosen['delta']}" if chosen["delta"] else ""
        shown = ", ".join(f"{k}={v}" for k, v in made.family.to_json().items() if k != "step_bits")
        lines.append(
            f"{promise:<24}{told.error:>10.2g}{told.noise:>10.2g}{told.sampling:>10.2g}"
            f"{told.cells:>10}  {made.family.name}({shown})"
        )
    lines.append(
        "error: standard deviation of a KDE value (0 to 1), where that value is about "
        f"{wanted.typical_density}"
    )
    typer.echo("\n".join(lines))
    if output is not None:
        made.save(output)
