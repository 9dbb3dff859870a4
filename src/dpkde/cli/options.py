"""The options of the command line as one table, and all that follows from it.

A row of `TABLE` is an option: its name, its group, its kind and its help. A verb names the groups
that it takes. The parameters of verbs, the keys of a settings file and the flags in messages are
read off the table, so that a new option is a new row.

A settings file has the names of the options as keys::

    columns = ["lon", "lat"]
    bounds = [[-74.1, -73.15], [40.5, 40.9]]
    bandwidth = 0.01
    epsilon = "0.5"

What is typed on the command line wins over the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from inspect import Parameter
from pathlib import Path
from typing import Any

import typer

from dpkde.errors import ParameterError

Options = Mapping[str, Any]
"""Options of a verb by name; None where one was left out."""


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


Bias = StrEnum("Bias", ["TYPICAL", "WORST"])
"""What an interval allows for a family's bias."""
Format = StrEnum("Format", ["CSV", "JSON"])
"""How answers are written."""
Support = StrEnum("Support", ["BOUNDS", "SPACE"])
"""Where sampled points lie."""

SETTLED = ("data", "family", "spline", "fastgauss", "fourier", "hashing")
"""Groups that a plan has settled; each family has one with its parameters."""
RELEASE = (*SETTLED, "guarantee", "outlook", "promise")
"""Groups that say what to release. A settings file may hold these and "text", for every verb."""


@dataclass(frozen=True)
class Option:
    """A row of the table.

    The name is that of the library's argument, with underscores. `kind` is the type of what is
    typed, or a function that reads it; a settings file may hold that type, or one of `also`. An
    option that is left out is None or `default`; where that is ``...``, it is required. One that is
    on by itself is typed to turn it `off`, as in ``--no-pilot``. Of `many` each one typed counts.
    """

    name: str
    group: str
    kind: Callable[[str], Any]
    help: str
    also: tuple[type, ...] = ()
    short: tuple[str, ...] = ()
    default: Any = None
    off: bool = False
    many: bool = False

    @property
    def flag(self) -> str:
        """How it is typed, as in ``--expected-rows``."""
        return f"--{'no-' * self.off}{self.name.replace('_', '-')}"

    def parameter(self) -> Parameter:
        """Return the option as a parameter that typer understands."""
        kind, parser = (self.kind, None) if isinstance(self.kind, type) else (int, self.kind)
        metavar = parser and f"<{kind.__name__}>"
        typed = f"--{self.name}/{self.flag}" if self.off else self.flag
        option = typer.Option(
            self.default, typed, *self.short, parser=parser, metavar=metavar, help=self.help
        )
        typed_as = list[str] if self.many else kind
        return Parameter(self.name, Parameter.KEYWORD_ONLY, default=option, annotation=typed_as)


NUMBERS = (int, float)
EITHER = ("bandwidth", "bandwidth_std")
"""Options of which one stands for the other."""

# fmt: off
TABLE = (
    Option("output", "publish", Path, "The release file to write.", short=("-o",), default=...),
    Option("output", "plan", Path, "Write the plan to this file, for dpkde publish --plan.",
           short=("-o",)),
    Option("plot", "plan", Path,
           "Draw the error to expect against ε and the number of rows, for each family, as .png, "
           ".svg or .pdf (needs matplotlib)."),
    Option("plan", "sketch", Path, "The plan, a file that dpkde plan -o wrote.", default=...),
    Option("output", "sketch", Path, "The sketch to write. Secret.", short=("-o",), default=...),
    Option("unit", "sketch", str,
           "Where the plan protects single rows: the column that tells whose a row is. Goes with "
           "--rows-per-unit."),
    Option("rows_per_unit", "sketch", whole, "How many rows of each unit may count."),
    Option("checkpoint", "sketch", Path,
           "Keep in this file, every minute, how far it has come, and go on from there if it was "
           "killed. Secret; deleted once the sketch is written."),
    Option("threads", "sketch", whole,
           "How many threads. Default: one per core. The result does not depend on it."),
    Option("quiet", "sketch", bool, "Show no progress and no notes.", short=("-q",)),
    Option("output", "merge", Path, "The sketch to write. Secret.", short=("-o",), default=...),
    Option("disjoint_units", "merge", bool,
           "Your word that no unit has rows in two of the parts, as where each hospital has "
           "patients of its own. Otherwise noise is for the rows of a unit in every part."),
    Option("quiet", "merge", bool, "Show no progress and no notes.", short=("-q",)),
    Option("trials", "audit", whole,
           "Outputs to draw on each side of an audit. Default: 20000. More tell more, and take "
           "longer."),
    Option("mutants", "audit", bool,
           "Audit wrong noise too, to see what would have been caught."),
    Option("json", "audit", bool, "Print the report as JSON."),
    Option("quiet", "audit", bool, "Show no progress.", short=("-q",)),
    Option("json", "inspect", bool, "Print the whole description as JSON."),
    Option("points", "query", str, "Points in a CSV, Parquet or .npy file; - for CSV on stdin."),
    Option("level", "query", float,
           "Also print an interval that holds the KDE with this probability."),
    Option("bias", "query", Bias,
           "With --level: what the interval allows for the family's bias. typical: right where "
           "records are spread out; worst: for any data, wider. Default: worst in a release with a "
           "promise, else typical."),
    Option("plain", "query", bool,
           "Answer without the model that was fitted to the release, if there is one."),
    Option("format", "query", Format, "csv, or json: one object per line.", default=Format.CSV),
    Option("box", "mass", str,
           "A box, low:high for some columns: lon=-74:-73.9,lat=40.7:40.8. Columns or ends that "
           "are left out are open. Repeat it for more boxes.", many=True),
    Option("geojson", "mass", Path, "Polygons in a GeoJSON file, for two columns."),
    Option("level", "mass", float,
           "Also print an interval that holds the share with this probability."),
    Option("bias", "mass", Bias,
           "With --level: what the interval allows for the family's bias. worst, the default: for "
           "any data; typical: right where records are spread out, shorter."),
    Option("plain", "mass", bool,
           "Answer without the model that was fitted to the release, if there is one."),
    Option("format", "mass", Format, "csv, or json: one object per line.", default=Format.CSV),
    Option("quiet", "mass", bool, "Show no notes.", short=("-q",)),
    Option("output", "grid", Path,
           "The file to write: .csv, .parquet, .npy or .tif. An old file of that name is replaced.",
           short=("-o",), default=...),
    Option("shape", "grid", str, "Number of places per column: 200x100, or one number for all.",
           default=...),
    Option("extent", "grid", str,
           "Bounds of the map, low:high for each column; 0:1,... is 0:1 for all. Default: the "
           "release's."),
    Option("crs", "grid", str,
           "For .tif: the coordinate system of the columns, such as EPSG:4326."),
    Option("plain", "grid", bool,
           "Answer without the model that was fitted to the release, if there is one."),
    Option("quiet", "grid", bool, "Show no progress.", short=("-q",)),
    Option("quiet", "query", bool, "Show no progress and no notes.", short=("-q",)),
    Option("output", "plot", Path,
           "The picture to write: .png, .svg or .pdf (needs matplotlib). An old file of that name "
           "is replaced.", short=("-o",), default=...),
    Option("columns", "plot", str,
           "Which columns to draw: lon,lat. One: a curve; two: a map; up to six: all their "
           "marginals. Default: all."),
    Option("log", "plot", bool, "A logarithmic scale, from the typical noise up."),
    Option("denoised", "plot", bool,
           "The denoised density, or the noisy answers. Default: the first, where the table itself "
           "has one (spline).", off=True),
    Option("outlines", "plot", Path, "Lines, polygons and points to draw on a map: GeoJSON."),
    Option("extent", "plot", str,
           "Bounds of the picture, low:high for each column drawn; 0:1,... is 0:1 for all. "
           "Default: the release's."),
    Option("shape", "plot", str,
           "Number of places per column: 200x100, or one number for all. Default: as fine as the "
           "kernel asks for."),
    Option("title", "plot", str, "What to write above it."),
    Option("width", "plot", float,
           "How wide it is, in inches: 3.3 for a column of print, 7 (the default) for a page."),
    Option("dark", "plot", bool, "For a dark page."),
    Option("quiet", "plot", bool, "Show no progress.", short=("-q",)),
    Option("n", "sample", whole, "How many points to draw.", short=("-n",), default=1000),
    Option("output", "sample", Path,
           "The file to write, .csv or .parquet; an old file of that name is replaced. Default: "
           "CSV on the standard output.",
           short=("-o",)),
    Option("seed", "sample", int,
           "Seed of the draws: the same one gives the same points. Default: others each time."),
    Option("support", "sample", Support,
           "bounds: fold points beyond the bounds back into them (default where they are a box); "
           "space: leave them where the kernel takes them."),
    Option("smoothed", "sample", bool,
           "Do not move points by the kernel: shares of regions are then nearer to those of the "
           "records.", off=True),
    Option("report", "sample", bool,
           "Say on the standard error how the KDE of the points compares with the release; for 100 "
           "points or more."),
    Option("columns", "data", str, "Columns to publish, in this order: lon,lat. Default: all.",
           also=(list,)),
    Option("dim", "plan", int, "Number of columns, if no other option tells it."),
    Option("bounds", "data", str,
           "Public bounds, low:high for each column: -74.1:-73.15,40.5:40.9. 0:1,... is 0:1 "
           "for all. Never take them from the data. Or: private, to have them found privately; "
           "none, to do without, which suits many columns.", also=(list,)),
    Option("ranges", "data", str,
           "With --bounds private: what is public of each column, low:high, or - for nothing, as "
           "in -180:180,-. 0:1,... is 0:1 for all. Finding less costs less.", also=(list,)),
    Option("outside", "data", str, "Rows outside the bounds: clip (default) or drop."),
    Option("bandwidth", "data", str,
           "Kernel bandwidth σ: one number, or one per column. Or to have it found privately: auto "
           "(least expected error of the release), scott or silverman.", also=(*NUMBERS, list)),
    Option("bandwidth_std", "data", str,
           "In place of --bandwidth, for the gaussian kernel: its standard deviation, σ/√2, which "
           "scikit-learn calls bandwidth. One number, or one per column.",
           also=(*NUMBERS, list)),
    Option("unit", "data", str,
           "Protect all the rows of somebody together: the column that tells whose a row is, such "
           "as patient_id. Goes with --rows-per-unit."),
    Option("rows_per_unit", "data", whole,
           "How many rows of each unit may count; of who has more, so many are chosen.",
           also=(int,)),
    Option("kernel", "data", str,
           "gaussian (default), laplacian, cauchy, hat, exponential-lp:p=1.5,power=1, "
           "matern:nu=1.5, rational-quadratic:alpha=2, erfc, geodesic or jaccard."),
    Option("epsilon", "guarantee", str,
           "Privacy bound ε, such as 0.5 or 1/3. dpkde plan compares several: 0.1,0.5,1.",
           also=NUMBERS),
    Option("delta", "guarantee", str, "δ of (ε, δ)-privacy. Default: 0, which is pure privacy.",
           also=NUMBERS),
    Option("rho", "guarantee", str, "ρ of zero-concentrated privacy, in place of ε.", also=NUMBERS),
    Option("adjacency", "guarantee", str,
           "add-remove (default: the number of rows is private) or replace (it is public)."),
    Option("family", "family", str,
           "auto (default: least predicted error), spline, fastgauss, fourier or hashing."),
    Option("degree", "spline", str,
           "Degree of the spline family: one number, or one per column. Default: chosen.",
           also=(int, list)),
    Option("spacing", "spline", str,
           "Spacing of the spline family in bandwidths: one number, or one per column. Default: "
           "chosen.", also=(*NUMBERS, list)),
    Option("order", "fastgauss", int,
           "Number of terms per axis of the fastgauss family. Default: chosen."),
    Option("frequencies", "fourier", int,
           "Number of frequencies of the fourier family. Default: chosen."),
    Option("repetitions", "hashing", int,
           "Number of repetitions of the hashing family. Default: chosen."),
    Option("buckets", "hashing", int,
           "Number of buckets per repetition of the hashing family, a power of two. Default: "
           "chosen."),
    Option("seed", "family", int,
           "Seed of the family's public randomness; never of the noise. Default: drawn."),
    Option("expected_rows", "outlook", whole,
           "A public guess of the number of rows; needed to plan.", also=NUMBERS),
    Option("typical_density", "outlook", float,
           "A public guess of a typical KDE value. Default: planned for 0.01 to 0.25; less in wide "
           "bounds.", also=(int,)),
    Option("pilot", "outlook", bool,
           "Do not pay a few per cent of the budget for a look at how dense and smooth the data "
           "are, before the plan.", off=True),
    Option("alpha", "promise", float,
           "Promise an error that is exceeded with probability --eta at most, whatever the data.",
           also=(int,)),
    Option("eta", "promise", float, "The probability with which that error may be exceeded.",
           also=(int,)),
    Option("simultaneous", "promise", bool, "Promise it for all queries in the bounds at once."),
    Option("delimiter", "text", str,
           "What is between CSV fields, such as ; or tab. Default: comma; tab in .tsv files."),
    Option("records", "text", str,
           "quoted (default: CSV fields in quotes may hold line breaks) or lines (every line is "
           "one record, whatever is in it)."),
    Option("decimal", "text", str, "The decimal mark of numbers in CSV. Default: a dot."),
    Option("thousands", "text", str,
           "What is between groups of three digits in CSV, as in 1,000. Default: nothing."),
    Option("encoding", "text", str,
           "The encoding of CSV text, such as latin-1 or utf-16. Default: utf-8."),
    Option("plan", "publish", Path, "A plan that dpkde plan -o wrote, in place of most options."),
    Option("plan", "check", Path, "A plan that dpkde plan -o wrote, in place of most options."),
    Option("queries", "check", whole,
           "At how many records, and at how many places over the bounds, errors are measured.",
           default=200),
    Option("threads", "check", whole, "How many threads. Default: one per core."),
    Option("quiet", "check", bool, "Show no progress.", short=("-q",)),
    Option("ledger", "ledger", Path,
           "The ledger to enter it in: the whole guarantee is reserved before anything is read."),
    Option("dataset", "ledger", str,
           "What the table is called in the ledger; may be left out where there is only one."),
    Option("part", "ledger", str, "Which part of the data set it is, such as 2026-01."),
    Option("remark", "ledger", str, "What the release is for, in the ledger. Public."),
    Option("dataset", "budget-create", str, "What the data set is called from now on.",
           default=...),
    Option("unit", "budget-create", str,
           "Whose records are protected together, such as patient_id. Default: one record."),
    Option("rows_per_unit", "budget-create", whole,
           "How many records of each may count in one release, at most."),
    Option("part", "budget-create", str,
           "A part, such as 2026-01. Parts are disjoint: a release of one costs the others "
           "nothing. Repeat it for more.", many=True),
    Option("dataset", "budget-read", str, "Which data set. Default: the only one."),
    Option("part", "budget-show", str, "What is left for one part."),
    Option("plot", "budget-show", Path,
           "Draw the budget over time, as .png, .svg or .pdf (needs matplotlib)."),
    Option("in_advance", "budget-show", bool,
           "Also show dp-accounting's ε, which holds if all releases had been fixed in advance; it "
           "decides nothing (needs dp-accounting)."),
    Option("dataset", "budget-history", str, "Which data set. Default: all."),
    Option("releases", "budget-verify", bool,
           "Also check the release files that are named behind the ledger."),
    Option("json", "as-json", bool, "Print it as JSON, amounts as exact fractions."),
    Option("settings", "settings", Path, "A TOML file with options of the release."),
    Option("quiet", "publish", bool, "Show no progress and no notes.", short=("-q",)),
)
# fmt: on


def rows(*groups: str) -> tuple[Option, ...]:
    """Return the options of these groups, in the order of the table."""
    return tuple(row for row in TABLE if row.group in groups)


def arguments_of(options: Options, *groups: str) -> dict[str, Any]:
    """Return those options of these groups that were not left out, as the library's arguments."""
    return {o.name: options[o.name] for o in rows(*groups) if options[o.name] is not None}


def with_settings(typed: Options) -> Options:
    """Return the options that were typed, put over those of a settings file if one is named."""
    path = typed.get("settings")
    if path is None:
        return typed
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path} is not a TOML file: {error}") from None
    settings = {key.replace("-", "_"): value for key, value in document.items()}
    known = {row.name: row for row in rows(*RELEASE, "text")}
    if unknown := sorted(set(settings) - set(known)):
        raise ParameterError(
            f"{path} has no such setting: {', '.join(unknown)}; there are: "
            f"{', '.join(sorted(known))}"
        )
    for name, value in settings.items():
        if type(value) not in (known[name].kind, *known[name].also):
            hint = '; write kernel = "matern:nu=1.5"' if name == "kernel" else ""
            raise ParameterError(f"{path}: {name} cannot be {value!r}{hint}")
    for one, other in (EITHER, EITHER[::-1]):  # what is typed wins over both
        if typed.get(one) is not None:
            settings.pop(other, None)
    return {name: settings.get(name) if value is None else value for name, value in typed.items()}


_SUBJECT = re.compile(r"^([a-z]+_[a-z_]+|[a-z]+(?= (?:must|goes with)\b))()(?= )")
_LETTER = re.compile(r"(?<![\w.:'\"/-])(epsilon|delta|rho|alpha|eta)()(?=[\s,;)]|$)")
_ARGUMENT = re.compile(r"(?<![\w.:'\"/-])(?<!\w\()([a-z_]+)='?((?:\w[\w.+-]*)?)'?(?=[\s,;)]|$)")


def in_flags(message: str, options: Iterable[Option]) -> str:
    """Return a message of the library with its arguments written as options.

    A name with an equals sign is an argument, and so is a Greek letter, and what a message begins
    with where it has an underscore or must be something. What is code, in quotes or in a path is
    left alone, and so are plain words.

    >>> in_flags("give dim=, or family='fourier' in place of Spline(order=3)", TABLE)
    'give --dim, or --family fourier in place of Spline(order=3)'
    >>> in_flags("expected_rows is needed", TABLE), in_flags("delta goes with epsilon", TABLE)
    ('--expected-rows is needed', '--delta goes with --epsilon')
    """
    flags = {row.name: row.flag for row in options}
    for pattern in (_SUBJECT, _ARGUMENT, _LETTER):
        message = pattern.sub(
            lambda hit: f"{flags[hit[1]]} {hit[2]}".rstrip() if hit[1] in flags else hit[0], message
        )
    return message
