"""Rows per second of sketches on clusters: one Dask worker, two of them, and Spark.

    python benchmarks/clusters.py [--rows 40000000] [--folder DIR] [--only dask|spark]

Two columns of float64 in Parquet files of half a million rows, each of which is a partition,
sketched under one plan of splines. Workers and executors are processes with one thread each, on
this machine. Everything is run before it is timed, so that nothing is compiled; of several runs the
best one counts. Printed are rows per second, also of processor time of the workers, and for Dask
where the time of the workers went: in tasks by their kind, in transfers, and in waiting.

Asked of two workers: 1.6 times the rows per second of one, where two cores are otherwise idle. All
sums have to be those of one process, bit for bit.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dpkde
from local_spark import LocalSpark, spark_is_there

CHUNK = 500_000
WANTED = 1.6
RUNS = 3
_FAST = {"spark.sql.codegen.wholeStage": "true", "spark.executor.extraJavaOptions": ""}


def plan() -> dpkde.Plan:
    return dpkde.plan(
        kernel=dpkde.Gaussian(0.2),
        bounds=[(-4.0, 4.0)] * 2,
        epsilon=1,
        family=dpkde.Spline(2, 0.7),
        columns=["a", "b"],
    )


def write(folder: Path, rows: int) -> None:
    """Write the table once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    for k, start in enumerate(range(0, rows, CHUNK)):
        size = min(CHUNK, rows - start)
        columns = {name: generator.normal(size=size).round(6) for name in ("a", "b")}
        if not (path := folder / f"{k:05d}.parquet").exists():
            pq.write_table(pa.table(columns), path)


def best(action: Callable[[], Any], seconds: Callable[[], float]) -> tuple[Any, float, float]:
    """Return what an action returns, and wall and processor time of its best run."""
    action()
    times = []
    for _ in range(RUNS):
        spent, start = seconds(), time.perf_counter()
        made = action()
        times.append((time.perf_counter() - start, seconds() - spent))
    return (made, *min(times))


def used() -> float:
    """Return the processor time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def report(name: str, rows: int, wall: float, processor: float) -> None:
    print(
        f"{name:18} {rows / wall / 1e6:7.2f} million rows/s   "
        f"{rows / processor / 1e6:7.2f} per second of processor time   wall {wall:6.2f} s"
    )


def on_dask(folder: Path, rows: int, workers: int, wanted: dpkde.Sketch) -> float:
    """Return the wall time of a sketch by so many workers."""
    import dask.dataframe
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        frame = dask.dataframe.read_parquet(str(folder), split_row_groups=False)

        def seconds() -> float:
            return sum(map(float, client.run(used).values()))

        def durations() -> dict[str, dict[str, float]]:
            prefixes = cluster.scheduler.task_prefixes
            return {name: dict(each.all_durations) for name, each in prefixes.items()}

        dpkde.dask.sketch(frame, plan())
        before = durations()
        made, wall, processor = best(lambda: dpkde.dask.sketch(frame, plan()), seconds)
        after = durations()
    assert made == wanted, "not the sums of one process"
    report(f"Dask, {workers} worker(s)", rows, wall, processor)
    total = 0.0
    for name, kinds in sorted(after.items()):
        for kind, seconds_in_all in sorted(kinds.items()):
            spent = (seconds_in_all - before.get(name, {}).get(kind, 0.0)) / (RUNS + 1)
            total += spent
            if spent > 0.01:
                print(f"    {name:28} {kind:12} {spent:7.2f} s a run")
    print(f"    all workers, in all {workers * wall:.2f} s, in tasks and transfers {total:.2f} s")
    return wall


def on_spark(folder: Path, rows: int, executors: int, wanted: dpkde.Sketch) -> None:
    """Measure a sketch by so many executors."""
    warnings.filterwarnings("ignore", category=FutureWarning)  # of PySpark, on pandas
    cluster = LocalSpark(executors, settings=_FAST)
    with cluster as session:
        session.sparkContext.setLogLevel("ERROR")
        frame = session.read.parquet(str(folder))
        made, wall, processor = best(lambda: dpkde.spark.sketch(frame, plan()), cluster.seconds)
    assert made == wanted, "not the sums of one process"
    report(f"Spark, {executors} executor(s)", rows, wall, processor)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=40_000_000)
    parser.add_argument("--folder", type=Path, help="keeps the files for the next run")
    parser.add_argument("--only", choices=("dask", "spark"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary) / "parts"
        write(folder, options.rows)
        print(f"{options.rows:,} rows, load of the machine {os.getloadavg()[0]:.1f}")
        one = lambda: dpkde.sketch(folder, plan(), threads=1)  # noqa: E731
        wanted, wall, processor = best(one, used)
        report("one process", options.rows, wall, processor)
        if options.only != "spark":
            alone = on_dask(folder, options.rows, 1, wanted)
            pair = on_dask(folder, options.rows, 2, wanted)
            verdict = "as asked" if alone / pair >= WANTED else f"less than the {WANTED} asked for"
            print(f"two Dask workers are {alone / pair:.2f} times as fast as one: {verdict}")
        if options.only != "dask" and spark_is_there():
            on_spark(folder, options.rows, 1, wanted)
            on_spark(folder, options.rows, 2, wanted)


if __name__ == "__main__":
    main()
