"""Ten million rows of a million units: time against the same table without units, and peak memory.

Run: python benchmarks/units.py [rows [units]]

Both sketches are made in turns, from one Parquet file of two columns and the ids. Asked: at most 6
times the processor time, and under 1 GiB.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import dpkde

TIMES, LIMIT = 6.0, 1 << 30
CHUNK = 1_000_000


def table(path: Path, rows: int, units: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(0)
    schema = pa.schema([("who", pa.int64()), ("a", pa.float64()), ("b", pa.float64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, CHUNK):
            size = min(CHUNK, rows - start)
            whose, values = generator.integers(0, units, size), generator.normal(size=(2, size))
            writer.write_table(pa.table([whose, *values], schema=schema))


def main(rows: int = 10_000_000, units: int = 1_000_000) -> None:
    terms: dict[str, Any] = {
        "kernel": dpkde.Gaussian(0.5),
        "bounds": [(-4, 4)] * 2,
        "columns": ["a", "b"],
        "epsilon": 1,
        "expected_rows": rows,
    }
    plain = dpkde.plan(**terms)
    whose = dpkde.plan(**terms, unit="who", rows_per_unit=3)
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.parquet", Path(folder) / "large.parquet"
        table(small, 1000, 10)
        table(large, rows, units)
        used: dict[str, list[float]] = {"rows": [], "units": []}
        walls: dict[str, list[float]] = {"rows": [], "units": []}
        for name, plan in (("rows", plain), ("units", whose)) * 3:
            dpkde.sketch(small, plan)  # loads what is compiled
            start, wall = time.process_time(), time.perf_counter()
            dpkde.sketch(large, plan)
            used[name].append(time.process_time() - start)
            walls[name].append(time.perf_counter() - wall)
    ratio = min(used["units"]) / min(used["rows"])
    elapsed = min(walls["units"]) / min(walls["rows"])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"{rows:,} rows of {units:,} units: {ratio:.1f} times the processor time of rows alone "
        f"({elapsed:.1f} times by the clock) {'ok' if ratio <= TIMES else 'BELOW TARGET'}; peak "
        f"{peak / 2**20:.0f} MiB {'ok' if peak < LIMIT else 'BELOW TARGET'}"
    )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
