"""``python -m experiments``: regenerate every figure, table and check with one command."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import dpkde
from experiments.data import MissingDataError, Pairs, of_your_own
from experiments.run import EXPERIMENTS, data_sets, run
from experiments.settings import FULL, QUICK, Settings

RESULTS = Path("experiments/results")


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    command = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Regenerate the paper's figures and tables, with dpkde beside them.",
    )
    command.add_argument(
        "--quick", action="store_true", help="generated data, a few minutes; no data are needed"
    )
    command.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="folder with the data sets, prepared (.npz) or original; default: DPKDE_DATA",
    )
    command.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="where to write; default: experiments/results, and a folder in it named after "
        "--points or --quick",
    )
    command.add_argument(
        "--only",
        nargs="+",
        choices=list(EXPERIMENTS),
        default=[],
        metavar="NAME",
        help=f"some of: {', '.join(EXPERIMENTS)}",
    )
    own = command.add_argument_group(
        "a data set of your own", "with --quick, a few minutes; else the paper's full protocol"
    )
    own.add_argument("--points", type=Path, metavar="FILE", help=".npz (array X), .npy or CSV")
    own.add_argument("--bandwidth", type=float, metavar="S", help="σ in exp(−|x−y|²/σ²)")
    own.add_argument(
        "--bounds",
        type=as_bounds,
        metavar="LOW:HIGH,…",
        help="public range of every column, one for all if alike: --bounds=-3:3,0:10",
    )
    return command


def as_bounds(text: str) -> Pairs:
    """Return pairs from ``low:high,low:high``.

    >>> as_bounds("-1:1,0:2.5")
    [(-1.0, 1.0), (0.0, 2.5)]
    """
    pairs = []
    for part in text.split(","):
        try:
            low, high = (float(end) for end in part.split(":"))
        except ValueError:
            low = high = math.nan
        if not (low < high and math.isfinite(high - low)):
            raise argparse.ArgumentTypeError(
                f"{part!r} is no range: write low:high, such as 0:10, the smaller end first"
            )
        pairs.append((low, high))
    return pairs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; 1 where there is nothing to measure."""
    command = parser()
    options = command.parse_args(arguments)
    settings: Settings = QUICK if options.quick else FULL
    usual = os.environ.get("DPKDE_DATA")
    folder = options.data or (None if usual is None else Path(usual))
    if folder is not None and not folder.is_dir():
        command.error(f"there is no folder {folder}")
    data, label = data_sets(settings, folder), "quick" if options.quick else ""
    if options.points is not None:
        if options.bandwidth is None:
            command.error("--points needs --bandwidth")
        try:
            task = of_your_own(options.points, options.bandwidth, options.bounds, settings.queries)
            task.kernel  # noqa: B018 - refuses a bandwidth that is none
        except (MissingDataError, ValueError, dpkde.ParameterError) as error:
            command.error(str(error))
        data, label = [(task.name, lambda: task)], task.name
    elif options.bandwidth is not None or options.bounds is not None:
        command.error("--bandwidth and --bounds are for --points")
    out = options.out or RESULTS / label
    try:
        out.mkdir(parents=True, exist_ok=True)
        verdicts = run(
            settings, out, only=options.only, data=data, own=options.points is not None, tell=_tell
        )
    except MissingDataError as error:
        _tell(str(error))
        return 1
    except OSError as error:
        command.error(f"{out} cannot be written: {error}")
    for verdict in verdicts:
        print(f"{verdict.word:>12}  {verdict.name}: {verdict.claim}")
    print(f"report: {out / 'report.md'}")
    return 0


def _tell(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
