"""Rows per second of processor time, and peak memory, of each way into a sketch.

    python benchmarks/sources.py [--rows 50000000] [--postgres 5000000] [source ...]

Two columns of float64, written once to a folder (``--folder`` keeps it): one Parquet file, a folder
of 40, an Arrow file, CSV. Each source is sketched by a process of its own under one plan of
splines. Printed are millions of rows per second of processor time (all threads, start of Python
left out), that over what KDEpy's ``FFTKDE`` does with as many points of the same kind in the same
run, the peak of resident memory, and whether the sums are the same, bit for bit. Asked of Parquet:
less than 500 MiB; of all: the same sums, and memory that does not grow with the rows, for which a
tenth of the rows is sketched as well.

PostgreSQL is a server of this program's own, on a socket in the folder; left out where there is no
``initdb``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import dpkde
from local_postgres import LocalPostgres, postgres_is_there

CHUNK = 500_000
FILES = 40
LIMIT = 500.0
BOUNDS = [(-4.0, 4.0)] * 2


def plan() -> dpkde.Plan:
    return dpkde.plan(
        kernel=dpkde.Gaussian(0.2),
        bounds=BOUNDS,
        epsilon=1,
        family=dpkde.Spline(2, 0.7),
        columns=["a", "b"],
    )


def chunks(rows: int) -> Iterator[Any]:
    import pyarrow as pa

    generator = np.random.default_rng(0)
    for start in range(0, rows, CHUNK):
        size = min(CHUNK, rows - start)
        yield pa.record_batch({name: generator.normal(size=size).round(6) for name in ("a", "b")})


def write(folder: Path, rows: int) -> None:
    """Write the table once in each format."""
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    if (folder / "done").exists():
        return
    (folder / "parts").mkdir(parents=True)
    schema = pa.schema([("a", pa.float64()), ("b", pa.float64())])
    share = -(-rows // FILES)
    with (
        pq.ParquetWriter(folder / "t.parquet", schema) as whole,
        pa.ipc.new_file(folder / "t.arrow", schema) as ipc,
        csv.CSVWriter(folder / "t.csv", schema) as text,
    ):
        part, number, written = None, 0, 0
        for batch in chunks(rows):
            whole.write_batch(batch)
            ipc.write_batch(batch)
            text.write_batch(batch)
            if part is None or written >= share:
                if part is not None:
                    part.close()
                part = pq.ParquetWriter(folder / "parts" / f"{number:02d}.parquet", schema)
                number, written = number + 1, 0
            part.write_batch(batch)
            written += batch.num_rows
        if part is not None:
            part.close()
    plan().save(folder / "plan.dpkde")
    (folder / "done").touch()


def _duckdb(folder: Path) -> Any:
    import duckdb

    connection = duckdb.connect(config={"memory_limit": "200MB", "threads": "2"})
    return connection.read_parquet(str(folder / "t.parquet"))


def _polars(folder: Path) -> Any:
    import polars as pl

    return pl.scan_parquet(folder / "t.parquet")


def _batches(folder: Path) -> Iterator[Any]:
    """Yield polars frames, as a program of the caller's would."""
    import polars as pl
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(folder / "t.parquet", pre_buffer=False).iter_batches(1 << 18):
        yield pl.from_arrow(batch)


def _stream(folder: Path) -> Any:
    import pyarrow as pa

    return pa.ipc.open_stream(_as_stream(folder))


def _as_stream(folder: Path) -> Any:
    """Return the table as an Arrow stream, through a pipe from another process."""
    program = (
        "import sys, pyarrow as pa\n"
        "reader = pa.ipc.open_file(pa.OSFile(sys.argv[1]))\n"
        "with pa.ipc.new_stream(sys.stdout.buffer, reader.schema) as writer:\n"
        "    for k in range(reader.num_record_batches):\n"
        "        for start in range(0, reader.get_batch(k).num_rows, 65536):\n"
        "            writer.write_batch(reader.get_batch(k).slice(start, 65536))\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(folder / "t.arrow")], stdout=subprocess.PIPE
    )
    return child.stdout


def _dataset(folder: Path) -> Any:
    import pyarrow.dataset as ds

    return ds.dataset(folder / "parts")


def _adbc(folder: Path) -> Any:
    import adbc_driver_postgresql.dbapi as adbc

    connection = adbc.connect((folder / "postgres.uri").read_text())
    cursor = connection.cursor()
    cursor.execute("SELECT a, b FROM t")
    return cursor


def _server_side(folder: Path) -> Any:
    import psycopg

    connection = psycopg.connect((folder / "postgres.uri").read_text())
    cursor = connection.cursor(name="all_rows")
    cursor.execute("SELECT a, b FROM t")
    return cursor


SOURCES: dict[str, Callable[[Path], Any]] = {
    "parquet": lambda folder: folder / "t.parquet",
    "folder": lambda folder: folder / "parts",
    "dataset": _dataset,
    "arrow": lambda folder: folder / "t.arrow",
    "stream": _stream,
    "duckdb": _duckdb,
    "polars": _polars,
    "polars batches": _batches,
    "csv": lambda folder: folder / "t.csv",
}
POSTGRES: dict[str, Callable[[Path], Any]] = {"adbc": _adbc, "psycopg": _server_side}


def sketched(name: str, folder: Path) -> dict[str, Any]:
    """Sketch one source in this process, and return what it took."""
    settled = dpkde.Plan.load(folder / "plan.dpkde")
    dpkde.sketch(np.zeros((8, 2)), settled)  # compiled, and loaded
    points = {**SOURCES, **POSTGRES}[name](folder)
    start, clock = time.process_time(), time.perf_counter()
    sums = dpkde.sketch(points, settled)
    spent = time.process_time() - start
    table = sums.contents()[1]["table"]
    return {
        "seconds": spent,
        "clock": time.perf_counter() - clock,
        "peak": peak(),
        "digest": hashlib.sha256(table.tobytes()).hexdigest()[:16],
    }


def peak() -> float:
    """Return the most memory that this process has had, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # `ru_maxrss` would count what our parent had when it began us
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fftkde(rows: int) -> float | None:
    """Return KDEpy's rows per second of processor time on two columns; None without KDEpy."""
    try:
        from KDEpy import FFTKDE
    except ImportError:
        return None
    points = np.concatenate(
        [np.column_stack([b.column(0), b.column(1)]) for b in chunks(min(rows, 4_000_000))]
    )
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        FFTKDE(kernel="gaussian", bw=0.2 / 2**0.5).fit(points).evaluate(128)
        best = min(best, time.process_time() - start)
    return len(points) / best


def child(name: str, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--one", name, "--folder", str(folder)],
        check=True,
        capture_output=True,
        text=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def report(names: list[str], folder: Path, small: Path, rows: int, peer: float | None) -> None:
    first: str | None = None
    for name in names:
        few, took = child(name, small), child(name, folder)
        first = first or took["digest"]
        speed = rows / took["seconds"]
        ratio = "" if peer is None else f", {speed / peer:.2f} of FFTKDE"
        sums = "the same sums" if took["digest"] == first else "OTHER SUMS"
        limit = " BELOW TARGET" if name == "parquet" and took["peak"] >= LIMIT else ""
        print(
            f"{name:15} {speed / 1e6:6.2f} million rows a second{ratio}; {took['clock']:.0f} s; "
            f"peak {took['peak']:.0f} MiB, {few['peak']:.0f} for a tenth{limit}; {sums}",
            flush=True,
        )


@contextmanager
def loaded(server: LocalPostgres, folder: Path) -> Iterator[None]:
    """Copy the table into a server, and tell the children where that is."""
    server.run("CREATE UNLOGGED TABLE t (a double precision, b double precision)")
    server.copy("t", folder / "t.csv")
    (folder / "postgres.uri").write_text(server.uri)
    yield
    server.run("DROP TABLE t")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="*", help=", ".join([*SOURCES, *POSTGRES]))
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--postgres", type=int, default=5_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--one")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(sketched(options.one, options.folder)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary) if options.folder is None else options.folder
        names = options.sources or [*SOURCES, *POSTGRES]
        peer = fftkde(options.rows)
        if peer is not None:
            print(f"KDEpy's FFTKDE: {peer / 1e6:.2f} million rows a second")
        if files := [name for name in names if name in SOURCES]:
            large, small = root / "all", root / "tenth"
            write(small, options.rows // 10)
            write(large, options.rows)
            report(files, large, small, options.rows, peer)
        if databases := [name for name in names if name in POSTGRES]:
            if not postgres_is_there():
                print("no PostgreSQL here (initdb is not found): left out")
                return
            large, small = root / "database", root / "database-tenth"
            write(small, options.postgres // 10)
            write(large, options.postgres)
            with LocalPostgres() as server:
                for name in ["csv", *databases]:
                    with loaded(server, small):
                        few = child(name, small)
                    with loaded(server, large):
                        took = child(name, large)
                    speed = options.postgres / took["seconds"]
                    print(
                        f"{name:15} {speed / 1e6:6.2f} million rows a second; "
                        f"{took['clock']:.0f} s; peak {took['peak']:.0f} MiB, "
                        f"{few['peak']:.0f} for a tenth; sums {took['digest']}",
                        flush=True,
                    )


if __name__ == "__main__":
    os.environ.setdefault("POLARS_MAX_THREADS", "2")
    main()
