"""What verbs have in common: options, how they are written, and a TOML file that can hold them.

A settings file has the names of the options as keys::

    columns = ["lon", "lat"]
    bounds = [[-74.1, -73.15], [40.5, 40.9]]
    bandwidth = 0.01
    epsilon = "0.5"

What is typed on the command line wins over the file.
"""

from __future__ import annotations

import csv
import os
import sys
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpkde.errors import ParameterError

if TYPE_CHECKING:
    from dpkde.families.base import Family
    from dpkde.kernels import Kernel
    from dpkde.space.domain import Domain

Columns = Annotated[
    str | None, typer.Option(help="Columns to publish, in this order: lon,lat. Default: all.")
]
Bounds = Annotated[
    str | None,
    typer.Option(
        help="Public bounds, low:high for each column: -74.1:-73.15,40.5:40.9. One pair serves all "
        "columns. Never take them from the data."
    ),
]
Outside = Annotated[
    str | None, typer.Option(help="Rows outside the bounds: clip (default) or drop.")
]
Bandwidth = Annotated[
    str | None, typer.Option(help="Kernel bandwidth σ: one number, or one for each column.")
]
KernelName = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        help="gaussian (default), laplacian, cauchy, hat, exponential-lp:p=1.5,power=1, "
        "matern:nu=1.5, rational-quadratic:alpha=2, erfc, geodesic or jaccard.",
    ),
]
Epsilon = Annotated[str | None, typer.Option(help="Privacy bound ε, such as 0.5 or 1/3.")]
Delta = Annotated[str | None, typer.Option(help="δ of (ε, δ)-privacy. Default: 0, pure.")]
Rho = Annotated[str | None, typer.Option(help="ρ of zero-concentrated privacy, in place of ε.")]
AdjacencyName = Annotated[
    str | None,
    typer.Option(
        "--adjacency",
        help="add-remove (default: the number of rows is private) or replace (it is public).",
    ),
]
FamilyName = Annotated[
    str | None,
    typer.Option(
        "--family",
        help="auto (default: least predicted error), spline, fastgauss, fourier or hashing.",
    ),
]
Frequencies = Annotated[
    int | None, typer.Option(help="Number of frequencies of the fourier family. Default: chosen.")
]
Order = Annotated[
    int | None, typer.Option(help="Terms an axis of the fastgauss family. Default: chosen.")
]
Degree = Annotated[
    str | None,
    typer.Option(help="Degree of the spline family: one number, or one a column. Default: chosen."),
]
Spacing = Annotated[
    str | None,
    typer.Option(
        help="Spacing of the spline family in bandwidths: one number, or one a column. "
        "Default: chosen."
    ),
]
Repetitions = Annotated[
    int | None, typer.Option(help="Repetitions of the hashing family. Default: chosen.")
]
Buckets = Annotated[
    int | None,
    typer.Option(
        help="Buckets a repetition of the hashing family, a power of two. Default: chosen."
    ),
]


def whole(text: str) -> int:
    """Return a whole number, written in any way that Python reads one.

    >>> whole("1e5"), whole("100_000")
    (100000, 100000)
    """
    for read in (int, float):
        with suppress(ValueError):
            if (value := read(text)) == value // 1 < 2.0**63:
                return int(value)
    raise typer.BadParameter(f"a whole number such as 100000 is needed, got {text!r}")


ExpectedRows = Annotated[
    int | None,
    typer.Option(
        parser=whole, metavar="<int>", help="A public guess of the number of rows; needed to plan."
    ),
]
TypicalDensity = Annotated[
    float | None,
    typer.Option(help="A public guess of a typical KDE value. Default: 0.05; less in wide bounds."),
]
Alpha = Annotated[
    float | None,
    typer.Option(help="Promise an error: exceeded with probability --eta at most, any data."),
]
Eta = Annotated[float | None, typer.Option(help="How often the promised error may be exceeded.")]
Simultaneous = Annotated[
    bool | None,
    typer.Option("--simultaneous", help="Promise it for all queries in the bounds at once."),
]
Seed = Annotated[
    int | None, typer.Option(help="Seed of the family's public randomness; never of the noise.")
]
Delimiter = Annotated[
    str | None,
    typer.Option(help="Between CSV fields, such as ; or tab. Default: comma; tab in .tsv files."),
]
Records = Annotated[
    str | None,
    typer.Option(
        help="quoted (default: CSV fields in quotes may hold line breaks) or lines (every line is "
        "one record, whatever is in it)."
    ),
]
Decimal = Annotated[str | None, typer.Option(help="Before decimals in CSV. Default: a dot.")]
Thousands = Annotated[
    str | None,
    typer.Option(help="Between groups of three digits in CSV, as in 1,000. Default: none."),
]
Encoding = Annotated[
    str | None, typer.Option(help="Of CSV text, such as latin-1 or utf-16. Default: utf-8.")
]
Settings = Annotated[
    Path | None, typer.Option("--settings", help="A TOML file with options of the release.")
]


NAMES = (
    "adjacency",
    "alpha",
    "bandwidth",
    "bounds",
    "buckets",
    "columns",
    "decimal",
    "degree",
    "delimiter",
    "delta",
    "encoding",
    "epsilon",
    "eta",
    "expected_rows",
    "family",
    "frequencies",
    "kernel",
    "order",
    "outside",
    "records",
    "repetitions",
    "rho",
    "seed",
    "simultaneous",
    "spacing",
    "thousands",
    "typical_density",
)
"""What a settings file may hold; one file serves `publish` and `plan`."""


_NUMERIC = (str, int, float)
_TYPES: dict[str, tuple[type, ...]] = {
    "alpha": (int, float),
    "bandwidth": (*_NUMERIC, list),
    "bounds": (str, list),
    "buckets": (int,),
    "columns": (str, list),
    "degree": (str, int, list),
    "delta": _NUMERIC,
    "epsilon": _NUMERIC,
    "eta": (int, float),
    "expected_rows": (int, float),
    "frequencies": (int,),
    "order": (int,),
    "repetitions": (int,),
    "rho": _NUMERIC,
    "seed": (int,),
    "simultaneous": (bool,),
    "spacing": (*_NUMERIC, list),
    "typical_density": (int, float),
}
"""What a settings file may hold for each; text for the others."""


def merged(settings: Path | None, typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a settings file, with those that were typed put over them."""
    found: dict[str, Any] = {}
    if settings is not None:
        try:
            with settings.open("rb") as file:
                found = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ParameterError(f"{settings} is not a TOML file: {error}") from None
        found = {key.replace("-", "_"): value for key, value in found.items()}
        unknown = sorted(set(found) - set(NAMES))
        if unknown:
            raise ParameterError(
                f"{settings} has no such setting: {', '.join(unknown)}; there are: "
                f"{', '.join(NAMES)}"
            )
        for name, value in found.items():
            kinds = _TYPES.get(name, (str,))
            if isinstance(value, bool) is not (kinds == (bool,)) or not isinstance(value, kinds):
                hint = '; write kernel = "matern:nu=1.5"' if name == "kernel" else ""
                raise ParameterError(f"{settings}: {name} cannot be {value!r}{hint}")
    chosen = {name: typed.get(name) for name in NAMES}
    return {name: found.get(name) if value is None else value for name, value in chosen.items()}


def table(name: str, options: Mapping[str, Any]) -> Any:
    """Return what a verb reads: a path, or text with the rules that were typed; - for stdin."""
    from dpkde.tables import CSV, is_text

    kinds = ("delimiter", "records", "decimal", "thousands", "encoding")
    given = {key: options[key] for key in kinds if options[key] is not None}
    if given.get("delimiter") in ("tab", "\\t"):
        given["delimiter"] = "\t"
    if name == "-":
        return CSV(sys.stdin.buffer, **given)
    if not given:
        return Path(name)
    if not is_text(name):
        raise ParameterError(f"--{next(iter(given))} goes with CSV text, not with {name}")
    return CSV(name, **given)


def numbers(value: Any, what: str) -> list[float]:
    """Return numbers that were typed with commas, or stand in a list.

    >>> numbers("1,2.5", "bandwidth")
    [1.0, 2.5]
    """
    parts = value if isinstance(value, (list, tuple)) else str(value).split(",")
    try:
        return [float(part) for part in parts]
    except (TypeError, ValueError):
        raise ParameterError(f"{what} must be numbers separated by commas, got {value!r}") from None


def pairs(value: Any) -> list[tuple[float, float]]:
    """Return bounds that were typed as low:high,low:high, or stand in a list of pairs.

    >>> pairs("-1:2.5,0:1e3")
    [(-1.0, 2.5), (0.0, 1000.0)]
    """
    wrong = ParameterError(
        "bounds must be low:high for each column, separated by commas, such as 0:1,-5:5; "
        f"got {value!r}"
    )
    parts = value if isinstance(value, (list, tuple)) else str(value).split(",")
    found = []
    for part in parts:
        ends = part.split(":") if isinstance(part, str) else part
        try:
            low, high = ends
            found.append((float(low), float(high)))
        except (TypeError, ValueError):
            raise wrong from None
    return found


def names(value: Any) -> list[str] | None:
    """Return column names that were typed with commas, in quotes if need be, or stand in a list.

    >>> names('lon,"speed, km/h"')
    ['lon', 'speed, km/h']
    """
    if value is None:
        return None
    listed = isinstance(value, (list, tuple))
    parts = value if listed else next(csv.reader([str(value)], skipinitialspace=True), [])
    return [str(part).strip() for part in parts]


@dataclass(frozen=True)
class Request:
    """Checked options, as the library takes them."""

    kernel: Kernel
    domain: Domain
    family: str | Family
    guarantee: dict[str, Any]
    typical_density: float | None
    promise: dict[str, Any]


def request(options: Mapping[str, Any], dim: int | None) -> Request:
    """Turn options into what the library takes; `dim` is what the table says."""
    from dpkde.planning.plan import as_family
    from dpkde.space.domain import Box, as_domain

    kernel = kernel_named(options["kernel"] or "gaussian", options["bandwidth"])
    domain = as_domain(None)
    if options["bounds"] is not None:
        given = pairs(options["bounds"])
        if len(given) == 1 and dim is not None:
            given = given * dim
        domain = Box(given, options["outside"] or "clip", columns=names(options["columns"]))
    elif options["outside"] is not None:
        raise ParameterError("--outside goes with --bounds")
    name = options["family"] or "auto"
    as_family(name)
    family = _with_parameters(name, options)
    guarantee, promise = guarantee_of(options), promise_of(options)
    return Request(kernel, domain, family, guarantee, options["typical_density"], promise)


def guarantee_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is guaranteed, as the library takes it."""
    if options["epsilon"] is None and options["rho"] is None:
        raise ParameterError("--epsilon is needed (or --rho): how much may be learned of a record")
    return {
        "epsilon": options["epsilon"],
        "delta": 0 if options["delta"] is None else options["delta"],
        "rho": options["rho"],
        "adjacency": options["adjacency"] or "add-remove",
    }


def promise_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is promised, as the library takes it."""
    return {
        "alpha": options["alpha"],
        "eta": options["eta"],
        "simultaneous": bool(options["simultaneous"]),
    }


FIXED = (
    *(
        "columns",
        "bounds",
        "outside",
        "bandwidth",
        "kernel",
        "family",
        "degree",
        "spacing",
        "order",
    ),
    *("frequencies", "repetitions", "buckets", "seed"),
)
"""What a plan has settled."""


def check_fixed(options: Mapping[str, Any]) -> None:
    """Refuse options that a plan has settled."""
    given = [f"--{name}" for name in FIXED if options[name] is not None]
    if given:
        raise ParameterError(f"{', '.join(given)} is already fixed by the plan: leave it out")


def kernel_named(text: str, bandwidth: Any) -> Kernel:
    """Return the kernel that was typed, as in ``matern:nu=1.5``.

    >>> kernel_named("exponential-lp:p=1.5,power=1", "0.2")
    ExponentialLp(p=1.5, power=1.0, bandwidth=0.2)
    """
    from dpkde.kernels import KERNELS

    name, _, rest = text.partition(":")
    simple = {k: kind for k, kind in KERNELS.items() if "kernels" not in signature(kind).parameters}
    if name not in simple:
        extra = "; products and mixtures are made in Python" if name in KERNELS else ""
        raise ParameterError(f"--kernel must be one of {', '.join(simple)}, got {name!r}{extra}")
    kind = simple[name]
    given: dict[str, Any] = {}
    for part in rest.split(",") if rest else ():
        key, _, value = part.partition("=")
        given[key.strip()] = numbers(value, f"--kernel {name}:{key}")[0]
    taken = signature(kind).parameters
    wanted = [key for key in taken if key != "bandwidth"]
    if set(given) - set(wanted):
        raise ParameterError(
            f"--kernel {name} takes {' and '.join(wanted) or 'no parameters'}, got {rest!r}"
        )
    missing = [k for k in wanted if k not in given and taken[k].default is Parameter.empty]
    if missing:
        raise ParameterError(f"--kernel {name} needs {missing[0]}, as in {name}:{missing[0]}=1.5")
    if "bandwidth" not in taken:
        if bandwidth is not None:
            raise ParameterError(f"the {name} kernel has no bandwidth: leave out --bandwidth")
    elif bandwidth is None:
        raise ParameterError("--bandwidth is needed: how far a point's influence reaches")
    else:
        widths = numbers(bandwidth, "--bandwidth")
        given["bandwidth"] = widths[0] if len(widths) == 1 else widths
    kernel: Kernel = kind(**given)
    return kernel


_PARAMETERS = {
    "buckets": "hashing",
    "repetitions": "hashing",
    "frequencies": "fourier",
    "order": "fastgauss",
    "degree": "spline",
    "spacing": "spline",
}
"""Which family an option is for."""


def _with_parameters(name: str, options: Mapping[str, Any]) -> str | Family:
    """Return the family that is meant, with the parameters that were given."""
    from dpkde.families.registry import registry

    given: dict[str, Any] = {}
    for option, owner in _PARAMETERS.items():
        value = options[option]
        if value is None:
            continue
        if name != owner:
            raise ParameterError(f"--{option} goes with --family {owner}")
        if option in ("degree", "spacing"):
            found = numbers(value, f"--{option}")
            if option == "degree":
                found = [int(v) if v == int(v) else v for v in found]
            value = found[0] if len(found) == 1 else tuple(found)
        given[option] = value
    return registry()[name](**given) if given else name


def check_writable(output: Path) -> None:
    """Fail before anything is read or spent, not after; and never write over a table."""
    from dpkde.release import container

    if output.is_dir():
        raise ParameterError(f"{output} is a folder; name a file to write")
    folder = output.parent
    if not folder.is_dir():
        raise ParameterError(f"there is no folder {folder} to write to")
    if not os.access(folder, os.W_OK):
        raise ParameterError(f"no permission to write to {folder}")
    if container.is_foreign(output):
        raise ParameterError(
            f"{output} exists and is no dpkde file; it is not overwritten: choose another name"
        )
