"""How fast CSV text is read, against pandas' reader in the same run, on one core.

Three files of a million records: numbers alone; with a text column of which half is in quotes; and
with quotes, doubled quotes and line breaks in it. Times are of the processor, the best of five.

    python benchmarks/text.py
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from dpkde.tables import open_points

ROWS = 1_000_000
NOTES = {
    "numbers alone": None,
    "half in quotes": ["x" * 40, "y, z" * 10],
    "free text": ["gate B", "the, quick", 'north "A" exit', "plain words here", "two\nlines"],
}


def best(action: Callable[[], object], tries: int = 5) -> float:
    """Return the least processor time of a few tries."""
    times = []
    for _ in range(tries):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def ours(path: Path) -> int:
    """Read two columns, and return how many records there are."""
    return sum(len(piece.rows()) for piece in open_points(path, ["lon", "lat"]).read())


def main() -> None:
    """Print megabytes per second, and the ratio."""
    chance = np.random.default_rng(0)
    frame = pd.DataFrame(
        chance.normal((-73.9, 40.7), 0.1, (ROWS, 2)).round(6), columns=["lon", "lat"]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        for name, notes in NOTES.items():
            table = frame
            if notes is not None:
                cells = np.array(notes, dtype=object)[chance.integers(0, len(notes), ROWS)]
                table = frame.assign(note=cells)
            table.to_csv(path, index=False)
            assert ours(path) == ROWS
            mine = best(lambda: ours(path))
            other = best(lambda: pd.read_csv(path, usecols=["lon", "lat"]), 2)
            rate = path.stat().st_size / 1e6 / mine
            print(f"{name:<16} {rate:6.0f} MB/s, {other / mine:.1f} times pandas' reader")


if __name__ == "__main__":
    main()
