"""``python -m experiments``: regenerate every figure, table and check with one command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.data import MissingDataError, Pairs, of_your_own
from experiments.run import EXPERIMENTS, data_sets, run
from experiments.settings import FULL, QUICK, Settings


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Regenerate the paper's figures and tables, with dpkde beside them.",
    )
    made.add_argument(
        "--quick", action="store_true", help="generated data, a few minutes; no data are needed"
    )
    made.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="folder with the data sets, prepared (.npz) or original; default: DPKDE_DATA",
    )
    made.add_argument("--out", type=Path, default=Path("experiments/results"), metavar="FOLDER")
    made.add_argument(
        "--only",
        nargs="+",
        choices=list(EXPERIMENTS),
        default=[],
        metavar="NAME",
        help=f"some of: {', '.join(EXPERIMENTS)}",
    )
    own = made.add_argument_group("a data set of your own")
    own.add_argument("--points", type=Path, metavar="FILE", help=".npz (array X), .npy or CSV")
    own.add_argument("--bandwidth", type=float, metavar="S", help="σ in exp(−|x−y|²/σ²)")
    own.add_argument(
        "--bounds", type=as_bounds, metavar="LOW:HIGH,…", help="public range of every column"
    )
    return made


def as_bounds(text: str) -> Pairs:
    """Return pairs from ``low:high,low:high``.

    >>> as_bounds("-1:1,0:2.5")
    [(-1.0, 1.0), (0.0, 2.5)]
    """
    pairs = []
    for part in text.split(","):
        low, high = (float(end) for end in part.split(":"))
        if not low < high:
            raise argparse.ArgumentTypeError(f"{part} is no range")
        pairs.append((low, high))
    return pairs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; 0 unless the data cannot be read."""
    made = parser()
    given = made.parse_args(arguments)
    settings: Settings = QUICK if given.quick else FULL
    folder = given.data or (Path(os.environ["DPKDE_DATA"]) if "DPKDE_DATA" in os.environ else None)
    data = data_sets(settings, folder)
    if given.points is not None:
        if given.bandwidth is None:
            made.error("--points needs --bandwidth")
        try:
            task = of_your_own(given.points, given.bandwidth, given.bounds, settings.queries)
        except (MissingDataError, ValueError) as error:
            made.error(str(error))
        data = [(task.name, lambda: task)]
    found = run(
        settings, given.out, only=given.only, data=data, own=given.points is not None, tell=_tell
    )
    for verdict in found:
        print(f"{verdict.word:>12}  {verdict.name}: {verdict.claim}")
    print(f"report: {given.out / 'report.md'}")
    return 0


def _tell(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
