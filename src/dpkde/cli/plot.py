"""``dpkde plot``: a picture of a release, or of the difference of two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dpkde.cli import request
from dpkde.cli.grid import extent_of, shape_of
from dpkde.cli.options import Options
from dpkde.cli.progress import bar
from dpkde.cli.verb import verb
from dpkde.errors import ParameterError


@verb("plot")
def plot(
    options: Options,
    releases: Annotated[list[Path], typer.Argument(help="A release file, or two to compare.")],
) -> None:
    """Draw a release: a curve, a map, or the marginals of several columns.

    The density is drawn, denoised where the release has such a one, with a band or hatching that
    tells the noise. Of two releases, the difference of their densities, where it exceeds chance.

    Example: dpkde plot trips.dpkde -o map.png --log
    """
    from dpkde.plots.layers import kept_of, names_of
    from dpkde.release.progress import progress
    from dpkde.release.release import Release

    output = options["output"]
    request.check_picture(output)
    from dpkde.plots.figure import save  # where matplotlib is there

    if len(releases) > 2:
        raise ParameterError(f"one release is drawn, or two are compared, got {len(releases)}")
    first, *others = [Release.load(path) for path in releases]
    columns = request.names(options["columns"])
    kept = kept_of(first, columns)
    look: dict[str, Any] = {name: options[name] for name in ("title", "width")}
    look["dark"] = bool(options["dark"])
    if options["outlines"] is not None:
        look["outlines"] = _geojson(options["outlines"])
    if options["shape"] is not None:
        look["shape"] = shape_of(options["shape"])
    with bar("asking", not options["quiet"]) as report, progress(report):
        if others:
            for name in ("log", "denoised", "extent"):
                if options[name] is not None:
                    raise ParameterError(f"{name}= goes with one release, not with a difference")
            from dpkde.plots.difference import plot_difference

            names = (releases[0].stem, releases[1].stem)
            figure = plot_difference(first, others[0], columns, names=names, **look)
        else:
            if options["extent"] is not None:
                known = names_of(first)
                look["bounds"] = extent_of(options["extent"], [known[column] for column in kept])
            denoised = None if options["denoised"] is None else bool(options["denoised"])
            figure = first.plot(columns, log=bool(options["log"]), denoised=denoised, **look)
    save(figure, output)


def _geojson(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ParameterError(f"{path} is not a GeoJSON file") from None
