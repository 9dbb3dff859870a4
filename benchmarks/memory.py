"""Peak memory of publishing tables larger than it: a Parquet file and a stream of CSV.

Run: python benchmarks/memory.py [parquet_rows [csv_gigabytes]]

The Parquet file has 100 float32 columns in one row group. The CSV text is generated and piped into
``dpkde publish -``. Asked: under 1 GiB resident each.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

COMMAND = [sys.executable, "-m", "dpkde", "publish"]
OPTIONS = ["--bounds", "-5:5,...", "--bandwidth", "10", "--epsilon", "1", "-q"]
LIMIT = 1 << 30


def parquet(rows: int, folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "table.parquet"
    schema = pa.schema([(f"c{k}", pa.float32()) for k in range(100)])
    generator = np.random.default_rng(0)
    columns = [generator.normal(size=rows).astype(np.float32) for _ in range(100)]
    pq.write_table(pa.table(columns, schema=schema), path, row_group_size=rows)
    del columns
    start = time.perf_counter()
    child = subprocess.Popen([*COMMAND, str(path), "-o", str(folder / "p.dpkde"), *OPTIONS])
    report(f"Parquet {rows} x 100, one row group", child, start)


def stream(gigabytes: float, folder: Path) -> None:
    generator = np.random.default_rng(0)
    block = "\n".join(
        ",".join(f"{value:.4f}" for value in row) for row in generator.normal(size=(10_000, 10))
    )
    data = (block + "\n").encode()
    start = time.perf_counter()
    child = subprocess.Popen(
        [*COMMAND, "-", "-o", str(folder / "c.dpkde"), *OPTIONS, "--frequencies", "64"],
        stdin=subprocess.PIPE,
    )
    assert child.stdin is not None
    child.stdin.write(",".join(f"c{k}" for k in range(10)).encode() + b"\n")
    for _ in range(round(gigabytes * 1e9 / len(data))):
        child.stdin.write(data)
    child.stdin.close()
    report(f"CSV stream of {gigabytes:g} GB", child, start)


def report(what: str, child: subprocess.Popen[bytes], start: float) -> None:
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    peak = usage.ru_maxrss * 1024
    verdict = "ok" if child.returncode == 0 and peak < LIMIT else "BELOW TARGET"
    print(f"{what}: peak {peak / 2**20:.0f} MiB, {time.perf_counter() - start:.0f} s {verdict}")


def main(rows: int = 1_000_000, gigabytes: float = 10) -> None:
    with tempfile.TemporaryDirectory() as folder:
        parquet(rows, Path(folder))
        stream(gigabytes, Path(folder))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(
        int(arguments[0]) if arguments else 1_000_000,
        float(arguments[1]) if len(arguments) > 1 else 10,
    )
