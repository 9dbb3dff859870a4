"""Spark: frames on a real cluster of several processes give the bits of one process."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpkde
from dpkde.errors import BudgetError, SourceError
from local_spark import LocalSpark, spark_is_there

SECRET, QUOTED = "SECRET-4711", "SECRET-0815"
ROWS = 5_003
POINTS = np.random.default_rng(0).normal(size=(ROWS, 2)).round(6)
POINTS[7] = np.nan
IDS = [(f"{k % 700}", f" {k % 700} ", f"{SECRET}-{k % 700}")[k % 3] for k in range(ROWS)]
FRAME = pd.DataFrame({"b": POINTS[:, 1], "text": SECRET, "a": POINTS[:, 0], "who": IDS})
FRAME.loc[100, "text"] = QUOTED
PLAN = dpkde.plan(
    kernel=dpkde.Gaussian(1.0),
    bounds=[(-2, 2)] * 2,
    epsilon=1,
    family=dpkde.Spline(2, 0.7),
    columns=["a", "b"],
)
UNIT: dict[str, Any] = {"unit": "who", "rows_per_unit": 2}

pytestmark = [
    pytest.mark.audit,  # begun early, and by one process: each would start a cluster of its own
    pytest.mark.skipif(not spark_is_there(), reason="there is no PySpark, or no Java 17 to run it"),
    # What PySpark itself warns of: versions of pandas, and handles that it leaves to the collector.
    pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalSpark]:
    running = LocalSpark()
    with running:
        yield running


@pytest.fixture(scope="module")
def frame(cluster: LocalSpark, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the table in six partitions, as Spark reads it from files."""
    folder = tmp_path_factory.mktemp("spark") / "trips"
    folder.mkdir()
    for k in range(6):
        part = FRAME.iloc[k * 1000 : k * 1000 + 1000] if k < 5 else FRAME.iloc[5000:]
        part.to_parquet(folder / f"{k}.parquet")
    session = cluster.session
    session.conf.set("spark.sql.files.openCostInBytes", str(1 << 27))
    return session.read.parquet(str(folder))


def test_a_frame_gives_the_sketch_of_all_its_rows(frame: Any, cluster: LocalSpark) -> None:
    assert frame.rdd.getNumPartitions() == 6
    assert len(cluster.executors()) == 2
    made = dpkde.spark.sketch(frame, PLAN)
    assert made == dpkde.sketch(FRAME, PLAN)
    assert len(made._ids) == 1


def test_units_of_a_frame(frame: Any, cluster: LocalSpark) -> None:
    """Two of three spellings of an id are the same id to dpkde, and not to Spark."""
    made = dpkde.spark.sketch(frame, PLAN, **UNIT)
    assert made == dpkde.sketch(FRAME, PLAN, **UNIT)
    assert made.plan.unit.records == 2
    assert SECRET not in cluster.logs()


def _executor() -> int:
    """Return the process that runs our Python worker: a daemon's parent."""
    status = Path(f"/proc/{os.getppid()}/status").read_text(encoding="utf-8")
    found = re.search(r"PPid:\s*(\d+)", status)
    assert found is not None
    return int(found[1])


def _killed_once(mark: str, at: float, batches: Any) -> Iterator[Any]:
    """Yield a partition; the first executor to see a certain one of them is killed."""
    for batch in batches:
        if at in batch.column("a").to_numpy(zero_copy_only=False):
            try:
                Path(mark).touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(_executor(), signal.SIGKILL)
        yield batch


@pytest.mark.parametrize("more", [{}, UNIT], ids=["rows", "units"])
def test_an_executor_that_is_killed_in_the_middle_changes_no_bit(
    more: dict[str, Any], frame: Any, cluster: LocalSpark, tmp_path: Path
) -> None:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors cannot import it
    before = set(cluster.executors())
    mark = str(tmp_path / "killed")
    fragile = frame.mapInArrow(partial(_killed_once, mark, POINTS[4_000, 0]), frame.schema)
    assert dpkde.spark.sketch(fragile, PLAN, **more) == dpkde.sketch(FRAME, PLAN, **more)
    assert Path(mark).exists()
    assert before - set(cluster.executors())


def test_large_tables_of_sums_cross_in_pieces(frame: Any) -> None:
    plan = dpkde.plan(
        kernel=dpkde.Gaussian(1.0), bounds=[(-2, 2)] * 2, epsilon=1, family=dpkde.Fourier(9_001)
    )
    made = dpkde.spark.sketch(frame, plan, columns=["b", "a"])
    assert made == dpkde.sketch(POINTS[:, ::-1], plan)


def test_what_spark_says_of_a_cell_does_not_pass(
    frame: Any, cluster: LocalSpark, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is in Spark's own logs, as the page says; a cast that makes nulls does not raise."""
    casting = frame.selectExpr("a", "cast(text AS DOUBLE) AS b")
    with pytest.raises(SourceError, match="an error of its own") as caught:
        dpkde.spark.sketch(casting, PLAN)
    for cell in (SECRET, QUOTED):
        assert cell not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert "SECRET" not in "".join(capsys.readouterr())  # what PySpark logs in this process
    assert "SECRET" in cluster.logs()
    mended = frame.selectExpr("a", "try_cast(text AS DOUBLE) AS b")
    assert dpkde.spark.sketch(mended, PLAN) == dpkde.sketch(FRAME.assign(b=np.nan), PLAN)


def test_publishing_debits_before_a_task_is_run(frame: Any, tmp_path: Path) -> None:
    def touched(batches: Any) -> Any:
        (tmp_path / "read").touch()
        return batches

    ledger = dpkde.Ledger.create(tmp_path / "ledger.db", dataset="trips", epsilon=1)
    watched = frame.mapInArrow(touched, frame.schema)
    with pytest.raises(BudgetError):
        dpkde.spark.publish(watched, PLAN, epsilon=2, ledger=ledger)
    assert not (tmp_path / "read").exists()
    release = dpkde.spark.publish(watched, PLAN, epsilon="0.75", ledger=ledger)
    assert (tmp_path / "read").exists()
    assert abs(release.count - ROWS) < 200
    assert len(ledger.history()) == 1


def test_refusals_are_told_at_once(frame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.classic.dataframe import DataFrame

    def never(*_: Any) -> Any:
        raise AssertionError("a task was run")

    monkeypatch.setattr(DataFrame, "collect", never)
    cast = r"'b' of this Spark frame is of type string, .*expr\('try_cast\(`b` AS DOUBLE\)'\)"
    for points, words in {
        frame.selectExpr("a", "text AS b"): cast,
        frame.selectExpr("a", "array(b) AS b"): "'b' of this Spark frame is of type list",
        frame.select("a"): "has no column 'b'",
        frame.select("a", "a", "b"): "more than one column 'a'",
    }.items():
        with pytest.raises(dpkde.SchemaError, match=words):
            dpkde.spark.sketch(points, PLAN)
    with pytest.raises(dpkde.ParameterError, match="a Spark frame is needed, got DataFrame"):
        dpkde.spark.sketch(FRAME, PLAN)
    with pytest.raises(dpkde.ParameterError, match="a stream has no end"):
        dpkde.spark.sketch(frame.sparkSession.readStream.format("rate").load(), PLAN)
    for take in (
        partial(dpkde.sketch, plan=PLAN),
        partial(dpkde.publish, plan=PLAN, epsilon=1),
        partial(dpkde.publish, kernel=dpkde.Gaussian(1.0), bounds=[(-2, 2)] * 2, epsilon=1),
    ):
        with pytest.raises(dpkde.SchemaError, match=r"use dpkde.spark.sketch\(frame, plan\)"):
            take(frame)
        with pytest.raises(dpkde.SchemaError, match=r"use dpkde.spark.sketch\(rdd.toDF\(\), plan"):
            take(frame.rdd)


def test_types_that_stand_for_numbers(frame: Any) -> None:
    """Dates, instants, decimals and booleans mean what they mean elsewhere."""
    kinds = frame.selectExpr(
        "CAST(a AS DECIMAL(12, 6)) AS a",
        "date_add(DATE'1970-01-01', CAST(b AS INT)) AS day",
        "timestamp_seconds(a) AS at",
        "a > 0 AS positive",
    )
    plan = dpkde.plan(
        kernel=dpkde.Gaussian(1.0), bounds=[(-2, 2)] * 4, epsilon=1, family=dpkde.Fourier(65)
    )
    assert dpkde.spark.sketch(kinds, plan) == dpkde.sketch(kinds.toArrow(), plan)


def test_the_page_on_clusters(cluster: LocalSpark) -> None:
    text = (Path(__file__).parents[1] / "docs" / "clusters.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```py\n(.*?)```", text, re.S)
    namespace: dict[str, Any] = {"spark": cluster.session, "dpkde": dpkde}
    for block in blocks:
        exec(compile(block, "clusters.md", "exec"), namespace)
    assert isinstance(namespace["release"], dpkde.Release)


def test_without_pyspark_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(dpkde.SchemaError, match=r"pip install 'dpkde\[spark\]'"):
        dpkde.spark.sketch(FRAME, PLAN)
