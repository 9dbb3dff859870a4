"""From options to what the library takes: tables, kernels, bounds, families, and their checks."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from dpkde.cli.options import SETTLED, Options, arguments_of, rows
from dpkde.errors import ParameterError

if TYPE_CHECKING:
    from dpkde.families.base import Family
    from dpkde.kernels import Kernel
    from dpkde.space.domain import Domain
    from dpkde.tables import Source

FEW_COLUMNS = 4
"""Up to so many the error without bounds is often many times larger."""
NONE = "none"
"""In place of bounds: records can be anywhere."""

Item = TypeVar("Item")

REST = "..."
"""Behind the last of several: it is meant for all columns that are left."""


def table(name: str, options: Options) -> Any:
    """Return what a verb reads: a path, or text with the rules that were typed; - for stdin."""
    from dpkde.tables import CSV, is_text

    rules = arguments_of(options, "text")
    if rules.get("delimiter") in ("tab", "\\t"):
        rules["delimiter"] = "\t"
    if name == "-":
        return CSV(sys.stdin.buffer, **rules)
    if rules and not is_text(name) and not Path(name).is_dir():
        raise ParameterError(f"--{next(iter(rules))} goes with CSV text, not with {name}")
    return CSV(name, **rules) if rules else name  # a path would make another of an address


def kind_of(name: str) -> str | None:
    """Return which kind of file of ours is where a table may be; None for all others.

    Its content tells; a file that calls itself a sketch is one, if only a damaged one.
    """
    from dpkde.release import container

    path = Path(name)
    if name == "-" or not path.is_file():
        return None
    claimed = "dpkde-sketch" if path.suffix == ".sketch" and path.is_file() else None
    return container.kind_of(path) or claimed


def numbers(value: Any, what: str, words: str = "") -> list[float]:
    """Return numbers that were typed with commas, or stand in a list; `words` may stand for them.

    >>> numbers("1,2.5", "bandwidth")
    [1.0, 2.5]
    """
    parts = value if isinstance(value, list) else str(value).split(",")
    try:
        return [float(part) for part in parts]
    except (TypeError, ValueError):
        raise ParameterError(
            f"{what} must be numbers separated by commas{words}, got {value!r}"
        ) from None


def pairs(value: Any, what: str = "bounds") -> list[tuple[float, float]]:
    """Return bounds that were typed as low:high,low:high, or stand in a list of pairs.

    >>> pairs("-1:2.5,0:1e3")
    [(-1.0, 2.5), (0.0, 1000.0)]
    """
    parts = value if isinstance(value, list) else str(value).split(",")
    ends = [part.split(":") if isinstance(part, str) else part for part in parts]
    try:
        return [(float(low), float(high)) for low, high in ends]
    except (TypeError, ValueError):
        raise ParameterError(
            f"{what} must be low:high for each column, separated by commas, such as 0:1,-5:5"
            f"{', or private' if what == 'bounds' else ''}; got {value!r}"
        ) from None


def for_each(items: list[Item], rest: bool, dim: int | None, flag: str) -> list[Item]:
    """Return one item for each column, where the last may be meant for all that are left.

    One alone is refused where there are several columns: bounds of the wrong column would move all
    of its records, and ε would be spent before anybody sees it.

    >>> for_each(["0:9", "0:1"], True, 4, "--bounds")
    ['0:9', '0:1', '0:1', '0:1']
    """
    if rest and dim is None:
        raise ParameterError(
            f"{flag} ends in {REST}, and nothing says how many columns there are: name them by "
            "--columns"
        )
    if len(items) == 1 and not rest and dim not in (None, 1):
        raise ParameterError(
            f"{flag} has one low:high for {dim} columns: write one for each, separated by commas; "
            f"0:1,{REST} is 0:1 for all"
        )
    return items + items[-1:] * (dim - len(items) if rest and dim is not None else 0)


def without_rest(value: Any) -> tuple[Any, bool]:
    """Return what was typed or stands in a list, and whether ``...`` came last, which is left out.

    >>> without_rest("0:9,0:1,..."), without_rest("0:1"), without_rest([[0, 1], "..."])
    (('0:9,0:1', True), ('0:1', False), ([[0, 1]], True))
    """
    if isinstance(value, list):
        return (value[:-1], True) if value[1:] and value[-1] == REST else (value, False)
    before, comma, last = str(value).rpartition(",")
    return (before, True) if comma and last.strip() == REST else (value, False)


def names(value: Any) -> list[str] | None:
    """Return column names that were typed with commas, in quotes if need be, or stand in a list.

    >>> names('lon,"speed, km/h"')
    ['lon', 'speed, km/h']
    """
    if value is None:
        return None
    if not isinstance(value, list):
        value = next(csv.reader([str(value)], skipinitialspace=True), [])
    return [str(name).strip() for name in value]


def request(options: Options, dim: int | None) -> dict[str, Any]:
    """Return options as the library takes them; `dim` is what the table says."""
    return {
        "kernel": kernel_of(options),
        "bounds": domain_of(options, dim),
        "ranges": ranges_of(options["ranges"], dim),
        "family": family_named(options["family"] or "auto", options),
        "seed": options["seed"],
        "unit": options["unit"],
        "rows_per_unit": options["rows_per_unit"],
        **terms(options),
    }


def opened(text: Any, options: Options) -> tuple[Source, dict[str, Any]]:
    """Return a table, and what is decided for a release of it: by a plan's file, or as typed."""
    from dpkde.planning.plan import Plan
    from dpkde.tables import open_points

    if options["plan"] is not None:
        check_settled(options)
        plan = Plan.load(options["plan"])
        source = open_points(text, plan.columns, unit=plan.unit.name)
        return source, {"plan": plan, **terms(options)}
    source = open_points(text, names(options["columns"]), unit=options["unit"])
    return source, {"columns": source.columns, **request(options, source.dim)}


def terms(options: Options) -> dict[str, Any]:
    """Return what is guaranteed, expected and promised, as the library takes it."""
    return {**guarantee(options), **arguments_of(options, "outlook", "promise")}


def guarantee(options: Options) -> dict[str, Any]:
    """Return what is guaranteed, as the library takes it."""
    if options["epsilon"] is None and options["rho"] is None:
        raise ParameterError("--epsilon is needed (or --rho): how much may be learned of a record")
    return arguments_of(options, "guarantee")


def check_settled(options: Options) -> None:
    """Refuse options that a plan has settled."""
    if flags := [row.flag for row in rows(*SETTLED) if options[row.name] is not None]:
        raise ParameterError(f"already fixed by the plan: {', '.join(flags)}; leave that out")


def domain_of(options: Options, dim: int | None) -> Domain | Literal["private"]:
    """Return the domain that was declared."""
    from dpkde.scale.wish import PRIVATE
    from dpkde.space.domain import Box, as_domain

    if options["bounds"] == PRIVATE:
        if options["outside"] is not None:
            raise ParameterError("--outside goes with public --bounds; private ones clip")
        return PRIVATE
    if options["bounds"] in (None, NONE):
        if options["outside"] is not None:
            raise ParameterError("--outside goes with --bounds")
        return as_domain(None)
    typed, rest = without_rest(options["bounds"])
    bounds = for_each(pairs(typed), rest, dim, "--bounds")
    return Box(bounds, options["outside"] or "clip", columns=names(options["columns"]))


def check_bounded(options: Options, dim: int | None) -> None:
    """Refuse few columns for which nothing is said of bounds, before anything is spent.

    Who forgot them would learn from the release what they are good for, with ε gone.
    """
    if options["bounds"] is not None or dim is None or dim > FEW_COLUMNS:
        return
    if kernel_of(options).home == "space":
        raise ParameterError(
            "--bounds is needed: where records can be, low:high for each column, from what is "
            "known in public; private has them found for a share of ε, and none does without, "
            "which suits many columns and not few"
        )


def kernel_of(options: Options) -> Kernel:
    """Return the kernel that was typed, with its bandwidth or its standard deviation."""
    from dpkde.kernels import KERNELS

    name, bandwidth, std = (options[key] for key in ("kernel", "bandwidth", "bandwidth_std"))
    name = name or "gaussian"
    if std is None:
        return kernel_named(name, bandwidth)
    if bandwidth is not None:
        raise ParameterError("give --bandwidth or --bandwidth-std, not both")
    from_std: Callable[[Any], Kernel] | None = getattr(KERNELS.get(name), "from_std", None)
    if from_std is None:
        raise ParameterError(f"--bandwidth-std goes with --kernel gaussian, not with {name}")
    widths = numbers(std, "--bandwidth-std")
    return from_std(widths[0] if len(widths) == 1 else widths)


def ranges_of(value: Any, dim: int | None) -> list[tuple[float, float] | None] | None:
    """Return public ranges; ``-`` stands for a column of which nothing is public.

    >>> ranges_of("-180:180,-", 2), ranges_of("0:1,...", 2)
    ([(-180.0, 180.0), None], [(0.0, 1.0), (0.0, 1.0)])
    """
    if value is None:
        return None
    typed, rest = without_rest(value)
    parts = typed if isinstance(typed, list) else str(typed).split(",")
    ranges = [None if part in ("-", None) else pairs([part], "ranges")[0] for part in parts]
    return for_each(ranges, rest, dim, "--ranges")


def kernel_named(text: str, bandwidth: Any) -> Kernel:
    """Return the kernel that was typed, as in ``matern:nu=1.5``.

    >>> kernel_named("exponential-lp:p=1.5,power=1", "0.2")
    ExponentialLp(p=1.5, power=1.0, bandwidth=0.2)
    """
    from dpkde.kernels import KERNELS
    from dpkde.kernels.bandwidth import RULES

    name, _, rest = text.partition(":")
    simple = {k: kind for k, kind in KERNELS.items() if "kernels" not in signature(kind).parameters}
    if name not in simple:
        extra = "; products and mixtures are made in Python" if name in KERNELS else ""
        raise ParameterError(f"--kernel must be one of {', '.join(simple)}, got {name!r}{extra}")
    kind: type[Kernel] = simple[name]
    parameters: dict[str, Any] = {}
    for part in rest.split(",") if rest else ():
        key, _, value = part.partition("=")
        parameters[key.strip()] = numbers(value, f"--kernel {name}:{key}")[0]
    known = signature(kind).parameters
    shapes = [key for key in known if key != "bandwidth"]
    if set(parameters) - set(shapes):
        raise ParameterError(
            f"--kernel {name} takes {' and '.join(shapes) or 'no parameters'}, got {rest!r}"
        )
    needed = [key for key in shapes if known[key].default is Parameter.empty]
    if missing := [key for key in needed if key not in parameters]:
        raise ParameterError(f"--kernel {name} needs {missing[0]}, as in {name}:{missing[0]}=1.5")
    if "bandwidth" not in known:
        if bandwidth is not None:
            raise ParameterError(f"the {name} kernel has no bandwidth: leave out --bandwidth")
    elif bandwidth is None:
        raise ParameterError(
            "--bandwidth is needed: how far a point's influence reaches (or --bandwidth-std)"
        )
    elif isinstance(bandwidth, str) and bandwidth.strip() in RULES:
        parameters["bandwidth"] = bandwidth.strip()
    else:
        widths = numbers(bandwidth, "--bandwidth", f", or one of {', '.join(RULES)}")
        parameters["bandwidth"] = widths[0] if len(widths) == 1 else widths
    return kind(**parameters)


def family_named(name: str, options: Options) -> str | Family:
    """Return the family that was typed, with the parameters that were typed for it."""
    from dpkde.families.registry import FAMILIES
    from dpkde.planning.plan import as_families

    as_families(name)
    parameters: dict[str, Any] = {}
    for owner in FAMILIES:
        for option, value in arguments_of(options, owner).items():
            if name != owner:
                raise ParameterError(f"--{option} goes with --family {owner}")
            parts = [int(v) if v.is_integer() else v for v in numbers(value, f"--{option}")]
            parameters[option] = parts[0] if len(parts) == 1 else tuple(parts)
    return FAMILIES[name](**parameters) if parameters else name


def check_writable(output: Path, kind: str | None = None) -> None:
    """Refuse what cannot be written, or written over, before anything is read or spent.

    A file of one of our kinds replaces only such a file; others replace all but ours.
    """
    from dpkde.release import container

    if output.is_dir():
        raise ParameterError(f"{output} is a folder; name a file to write")
    folder = output.parent
    if not folder.is_dir():
        raise ParameterError(f"there is no folder {folder} to write to")
    if not os.access(folder, os.W_OK):
        raise ParameterError(f"no permission to write to {folder}")
    if kind is None:
        container.check_not_ours(output)
    else:
        container.check_replaceable(output, kind)


def check_picture(output: Path) -> None:
    """Refuse a picture that cannot be drawn or written, before anything is read or computed."""
    from dpkde.plots.style import check_picture

    check_writable(check_picture(output))
