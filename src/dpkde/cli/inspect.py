"""``dpkde inspect``: what is in a release file, and what it guarantees."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpkde.cli.exits import plain
from dpkde.cli.options import TABLE, Options, in_flags
from dpkde.cli.verb import verb

if TYPE_CHECKING:
    from dpkde.release.parts import FoundScale, Part


@verb("inspect")
def inspect(
    options: Options, release: Annotated[Path, typer.Argument(help="A release file.")]
) -> None:
    """Show what a release file holds, what it guarantees, and what is wrong with it.

    What makes it of less use than it might be is told from the noisy numbers in it: as trouble,
    with what to do; in --json under troubles, a list that is empty where there is none.

    Example: dpkde inspect trips.dpkde
    """
    from dpkde.privacy.amounts import ONE_RECORD
    from dpkde.release.assistance import can_be_fitted
    from dpkde.release.parts import ExpectedRows, FittedModel, FoundScale, LedgerEntry
    from dpkde.release.release import Release

    published = Release.load(release)
    document, tensors = published.contents()
    if options["json"]:
        sizes = {name: list(array.shape) for name, array in tensors.items()}
        troubles = [asdict(trouble) for trouble in published.troubles]
        described = document | {"tensors": sizes, "troubles": troubles}
        text = json.dumps(described, indent=2, ensure_ascii=False)
        typer.echo("\n".join(map(plain, text.split("\n"))))
        return
    law = published.law("count")
    spread = None if law is None else f", give or take {law.variance**0.5:.1f}"
    count = f"{published.count}{spread or ' (exact: the number of records is public)'}"
    parameters = [f"{key} {json.dumps(value)}" for key, value in published.kernel.to_json().items()]
    unit = published.privacy.unit
    columns = ", ".join(published.columns or [f"{published.dim}, not named"])
    lines = [
        f"records    {count}",
        f"columns    {columns}",
        *([] if unit == ONE_RECORD else [f"unit       {unit}"]),
        f"domain     {_domain(document['plan']['domain'], published.columns)}",
        f"kernel     {', '.join([published.kernel.name, *parameters])}",
        f"family     {published.plan.layout.summary}",
        f"table      {published.table.size} cells, {release.stat().st_size} bytes in the file",
        f"release    {published.release_id}, written by {published.generator}",
        "digest     verified",
    ]
    if published.promise is not None:
        lines.append(f"promise    {published.promise}")
    if published.rate < 1:
        lines.append(f"sample     each record entered with probability {published.rate}")
    model = published.parts.of(FittedModel)
    if model is not None:
        lines.append(f"model      {model}")
    elif can_be_fitted(published):
        lines.append("model      none in this file: fitted when the first query is asked")
    lines += [f"trouble    {in_flags(str(trouble), TABLE)}" for trouble in published.troubles]
    entry = published.parts.of(LedgerEntry)
    if entry is not None:
        lines.append(f"ledger     {entry.ledger}, entry {entry.entry}, head {entry.head}")
    found = published.parts.of(FoundScale)
    if found is not None:
        lines.append(f"found      {_found(found)}")
    named = (model, entry, found, published.parts.of(ExpectedRows))
    if others := [part for part in published.parts.values() if part not in named]:
        lines.append(f"parts      {', '.join(map(_part, others))}")
    if published.extras:
        lines.append(f"extras     {json.dumps(dict(published.extras), ensure_ascii=False)}")
    typer.echo("\n".join([str(published.privacy), "", *map(plain, lines)]))


def _domain(domain: Mapping[str, Any], columns: Sequence[str] | None) -> str:
    """Return a domain in words: of a box the bounds of each column, by its name."""
    kind, parameters = domain["kind"], domain["parameters"]
    if kind != "box":
        return f"{kind} {json.dumps(parameters) if parameters else ''}".rstrip()
    bounds, outside = parameters["bounds"], parameters["outside"]
    names = columns or [f"column {k}" for k in range(len(bounds))]
    ends = [f"{name} from {low} to {high}" for name, (low, high) in zip(names, bounds, strict=True)]
    moved = {"clip": "were moved to them", "drop": "do not count"}
    return f"box: {', '.join(ends)}; records outside the bounds {moved[outside]}"


def _found(found: FoundScale) -> str:
    """Return in words what was found privately, and how sure it is."""
    told = [] if found.bandwidth is None else [f"the bandwidth, by the rule {found.bandwidth}"]
    if found.left_out is not None and found.sure is not None:
        told.append(
            f"bounds, which leave out at most {100 * found.left_out:.3g}% of any column's records, "
            f"with probability {100 * found.sure:.6g}%"
        )
    return f"privately: {'; '.join(told)}"


def _part(part: Part) -> str:
    """Return a part in a few words, as in ``ledger {"entry": 7, ...}`` or ``model version 3``."""
    from dpkde.release.parts import UnknownPart

    if isinstance(part, UnknownPart):
        return f"{part.name} version {part.version} (kept, not used: install a newer dpkde)"
    return f"{part.name} {json.dumps(part.to_json(), ensure_ascii=False)}"
