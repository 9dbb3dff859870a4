"""``dpkde mass``: shares of boxes and polygons, from a release file."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpkde.cli.exits import plain
from dpkde.cli.options import Format, Options
from dpkde.cli.verb import verb
from dpkde.errors import ParameterError

if TYPE_CHECKING:
    from dpkde.release.release import Release

_HEADER = ("region", "mass", "standard_error", "records", "records_standard_error")


@verb("mass")
def mass(
    options: Options,
    release: Annotated[Path, typer.Argument(help="A release file.")],
) -> None:
    """Print the share of the density in boxes or polygons, with its errors.

    Shares are of the smoothed density. standard_error is what the noise adds; records is the same
    in numbers of records.

    Example: dpkde mass trips.dpkde --box lon=-74:-73.9,lat=40.7:40.8 --box lat=:40.6
    """
    from dpkde.release.release import Release

    published, level = Release.load(release), options["level"]
    if level is None and options["bias"] is not None:
        raise ParameterError("--bias goes with --level")
    if (not options["box"]) == (options["geojson"] is None):
        both = ", not both" if options["box"] else ""
        raise ParameterError(f"give boxes with --box, or a file with --geojson{both}")
    if options["box"]:
        names, regions = options["box"], [_box(text, published) for text in options["box"]]
    else:
        names, regions = _drawn(options["geojson"])
    assisted = False if options["plain"] else None
    answers = [
        published.mass(regions, assisted=assisted),
        published.mass_standard_error(regions, assisted=assisted),
        published.records(regions),
        published.records_standard_error(regions),
    ]
    header = [*_HEADER]
    if level is not None:
        bias = options["bias"] or "worst"
        answers += published.mass_interval(regions, level, assisted=assisted, bias=bias)
        header += ["low", "high"]
    rows = zip(names, *(answer.tolist() for answer in answers), strict=True)
    if options["format"] is Format.CSV:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(header)
        for name, *numbers in rows:
            cells = ("" if number != number else f"{number:.9g}" for number in numbers)
            writer.writerow([plain(name), *cells])
    else:
        for name, *numbers in rows:
            finite = [number if math.isfinite(number) else None for number in numbers]
            named = dict(zip(header, [plain(name), *finite], strict=True))
            sys.stdout.write(json.dumps(named, allow_nan=False) + "\n")
    for note in () if options["quiet"] else _heaped(published, regions if options["box"] else None):
        typer.echo(f"dpkde: note: {note}", err=True)


def _heaped(release: Release, boxes: list[Any] | None) -> Iterator[str]:
    """Yield the bounds at which records are heaped, where a box reaches them; None: of them all."""
    from dpkde.release.heaps import shown_heaps

    for face in shown_heaps(release):
        ends = [box.get(face.column, (None, None)) for box in boxes or [{}]]
        if any(
            (low is None or low <= face.place) and (high is None or face.place <= high)
            for low, high in ends
        ):
            name = _names(release)[face.column]
            yield (
                f"records are heaped at {face.place:g}, the {('lower', 'upper')[face.side]} bound "
                f"of {plain(name)}, or were moved there from beyond it: regions that reach it "
                "count them"
            )


def _names(release: Release) -> list[str]:
    return list(release.columns or (f"x{k + 1}" for k in range(release.dim)))


def _box(text: str, release: Release) -> dict[Any, tuple[float | None, float | None]]:
    """Return intervals by column that were typed as name=low:high,name=low:high.

    Quotes keep commas in names; an end that is left out is open.
    """
    known = _names(release)
    box: dict[Any, tuple[float | None, float | None]] = {}
    for part in next(csv.reader([text], skipinitialspace=True), []):
        name, equals, interval = part.rpartition("=")
        low, colon, high = interval.partition(":")
        if not equals or not colon:
            raise ParameterError(
                f"--box must be name=low:high for some columns, separated by commas, such as "
                f"{known[0]}=0:1; got {text!r}"
            )
        if name.strip() not in known:
            raise ParameterError(f"there is no column {name.strip()!r}: {', '.join(known)}")
        try:
            ends = [float(end) if end.strip() else None for end in (low, high)]
        except ValueError:
            raise ParameterError(f"the ends of --box must be numbers, got {part!r}") from None
        number = known.index(name.strip())
        if number in box:
            raise ParameterError(f"--box has the column {name.strip()!r} twice: {text!r}")
        box[number] = (ends[0], ends[1])
    return box


def _drawn(path: Path) -> tuple[list[str], list[Any]]:
    """Return the names and the geometries of a GeoJSON file."""
    from dpkde.release.polygons import contents

    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ParameterError(f"{path} is not a GeoJSON file") from None
    if not isinstance(document, Mapping) or not isinstance(document.get("type"), str):
        raise ParameterError(f"{path} is not a GeoJSON file")
    single = document["type"] != "FeatureCollection"
    members = [document] if single else contents(document)
    return [_name(member, number) for number, member in enumerate(members, 1)], members


def _name(member: Any, number: int) -> str:
    """Return what a feature calls itself, or its number."""
    if isinstance(member, Mapping):
        properties = member.get("properties")
        own = properties.get("name") if isinstance(properties, Mapping) else None
        for name in (own, member.get("id")):
            if isinstance(name, (str, int, float)):
                return str(name)
    return f"region {number}"
