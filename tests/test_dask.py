"""Dask: collections on a real cluster of two processes give the bits of one process."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array
import dask.bag
import dask.dataframe
import narwhals
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import dpkde
from dpkde.errors import BudgetError, SourceError

SECRET, QUOTED = "SECRET-4711", "SECRET-0815"
ROWS = 5_003
POINTS = np.random.default_rng(0).normal(size=(ROWS, 2)).round(6)
POINTS[7] = np.nan
IDS = [(f"{k % 700}", f" {k % 700} ", f"{SECRET}-{k % 700}")[k % 3] for k in range(ROWS)]
FRAME = pd.DataFrame({"b": POINTS[:, 1], "text": SECRET, "a": POINTS[:, 0], "who": IDS})
PLAN = dpkde.plan(
    kernel=dpkde.Gaussian(1.0),
    bounds=[(-2, 2)] * 2,
    epsilon=1,
    family=dpkde.Spline(2, 0.7),
    columns=["a", "b"],
)
WANTED = dpkde.sketch(POINTS, PLAN)
UNIT: dict[str, Any] = {"unit": "who", "rows_per_unit": 2}
STEP = 1_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    quiet = {"distributed.nanny.environ.NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", "")}
    with (
        dask.config.set(quiet),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as running,
        Client(running) as client,
    ):
        yield client


def _frame(table: pd.DataFrame = FRAME) -> Any:
    return dask.dataframe.from_pandas(table, npartitions=6, sort=False)


def _parts() -> list[Any]:
    return [dask.delayed(FRAME.iloc[k : k + STEP]) for k in range(0, ROWS, STEP)]


KINDS: dict[str, Callable[[], Any]] = {
    "frame": _frame,
    "array": lambda: dask.array.from_array(POINTS, chunks=(STEP, 1)),
    "bag of rows": lambda: dask.bag.from_sequence(POINTS.tolist(), npartitions=5),
    "bag of frames": lambda: dask.bag.from_delayed(
        [dask.delayed(lambda k: [FRAME.iloc[k : k + STEP]])(k) for k in range(0, ROWS, STEP)]
    ),
    "bag of records": lambda: dask.bag.from_sequence(
        FRAME.drop(columns="text").to_dict("records"), npartitions=5
    ),
    "delayed frames": _parts,
    "one delayed array": lambda: dask.delayed(POINTS),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_collection_gives_the_sketch_of_all_its_rows(kind: str, cluster: Client) -> None:
    assert dpkde.dask.sketch(KINDS[kind](), PLAN) == WANTED


def test_columns_go_with_a_plan_that_names_none(cluster: Client) -> None:
    plan = dpkde.plan(
        kernel=dpkde.Gaussian(1.0), bounds=[(-2, 2)] * 2, epsilon=1, family=dpkde.Spline(2, 0.7)
    )
    made = dpkde.dask.sketch(_frame(), plan, columns=["b", "a"])
    assert made == dpkde.sketch(POINTS[:, ::-1], plan)
    with pytest.raises(dpkde.ParameterError, match="already fixed by the plan: columns"):
        dpkde.dask.sketch(_frame(), PLAN, columns=["b", "a"])


def test_columns_of_text_are_read_cell_by_cell() -> None:
    text = FRAME.assign(b=[f"{b}" for b in FRAME["b"]])
    text.loc[11, "b"] = SECRET
    made = dpkde.dask.sketch(_frame(text), PLAN)
    assert made == dpkde.sketch(FRAME.assign(b=FRAME["b"].mask(FRAME.index == 11)), PLAN)


@pytest.mark.parametrize("kind", ["frame", "bag of records"])
def test_units_of_a_collection(kind: str, cluster: Client) -> None:
    """Two of three spellings of an id are the same id to dpkde, and not to Dask."""
    made = dpkde.dask.sketch(KINDS[kind](), PLAN, **UNIT)
    assert made == dpkde.sketch(FRAME, PLAN, **UNIT)
    assert made.plan.unit.records == 2


def _killed_once(part: Any, mark: Path, at: float) -> Any:
    """Return a partition, in which the first worker to see one of them is killed."""
    if at in part["a"].to_numpy():
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return part
        os.kill(os.getpid(), signal.SIGKILL)
    return part


@pytest.mark.parametrize("more", [{}, UNIT], ids=["rows", "units"])
def test_a_worker_that_is_killed_in_the_middle_changes_no_bit(
    more: dict[str, Any], cluster: Client, tmp_path: Path
) -> None:
    at = float(POINTS[4 * STEP, 0])
    frame = _frame().map_partitions(
        _killed_once, tmp_path / "killed", at, meta=FRAME, enforce_metadata=False
    )
    wanted = dpkde.sketch(FRAME, PLAN, **more)
    assert dpkde.dask.sketch(frame, PLAN, **more) == wanted
    assert (tmp_path / "killed").exists()


def _quoting(part: Any) -> Any:
    raise ValueError(f"could not convert string to float: {QUOTED!r}")


@pytest.mark.parametrize("more", [{}, UNIT], ids=["rows", "units"])
def test_a_secret_cell_is_in_no_error_and_no_log(
    more: dict[str, Any], cluster: Client, capfd: pytest.CaptureFixture[str]
) -> None:
    """What dpkde itself stumbles over is raised here alone, and logged nowhere."""
    narrow = dask.delayed(FRAME.rename(columns={"a": "c"}))
    with pytest.raises(dpkde.SchemaError, match="has no column 'a'") as caught:
        dpkde.dask.sketch([*_parts(), narrow], PLAN, **more)
    assert SECRET not in str(caught.value)
    with pytest.raises(dpkde.SchemaError, match="got str"):
        dpkde.dask.sketch([*_parts(), dask.delayed(SECRET)], PLAN, **more)
    odd = dask.delayed([complex(1, 2), {SECRET: SECRET}, SECRET])
    dpkde.dask.sketch([*_parts(), odd], PLAN, **more)
    frame = _frame()
    dpkde.dask.sketch(frame, PLAN, **more)
    logs = str(cluster.get_worker_logs()) + str(cluster.cluster.scheduler.get_logs())
    assert SECRET not in logs
    assert SECRET not in "".join(capfd.readouterr())


@pytest.mark.parametrize("more", [{}, UNIT], ids=["rows", "units"])
def test_what_a_task_of_the_callers_says_does_not_pass(
    more: dict[str, Any], cluster: Client
) -> None:
    """It is in the logs of the worker, as the page says."""
    frame = _frame().map_partitions(_quoting, meta=FRAME)
    with pytest.raises(SourceError, match=r"an error of its own \(ValueError\)") as caught:
        dpkde.dask.sketch(frame, PLAN, **more)
    assert QUOTED not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert QUOTED in str(cluster.get_worker_logs())


def test_the_plan_is_one_key_and_parts_come_in_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = dpkde.plan(
        kernel=dpkde.Gaussian(1.0),
        bounds=[(-2, 2)] * 2,
        epsilon=1,
        family=dpkde.Fourier(4_001),
        expected_rows=ROWS,
    )
    seen: list[dict[Any, Any]] = []
    compute = dask.compute

    def watched(*collections: Any) -> Any:
        seen.extend(dict(one.__dask_graph__()) for one in collections)
        return compute(*collections)

    monkeypatch.setattr(dask, "compute", watched)
    array = dask.array.from_array(POINTS, chunks=(50, 2))
    made = dpkde.dask.sketch(array, plan)
    assert made == dpkde.sketch(POINTS, plan)
    assert made.plan.prediction == plan.prediction is not None
    (graph,) = seen
    words = plan.pair.tensors["frequencies"].tobytes()
    assert [key for key, task in graph.items() if words in pickle.dumps(task)] == [
        key for key in graph if str(key).startswith("dpkde-plan-")
    ]
    sizes = [len(task.dependencies) for key, task in graph.items() if str(key).startswith("added-")]
    assert max(sizes) == 8
    assert len(sizes) == 13 + 2 + 1


def test_publishing_debits_before_a_task_is_run(cluster: Client, tmp_path: Path) -> None:
    def touched(part: Any) -> Any:
        (tmp_path / "read").touch()
        return part

    ledger = dpkde.Ledger.create(tmp_path / "ledger.db", dataset="trips", epsilon=1)
    frame = _frame().map_partitions(touched, meta=FRAME)
    with pytest.raises(BudgetError):
        dpkde.dask.publish(frame, PLAN, epsilon=2, ledger=ledger)
    assert not (tmp_path / "read").exists()
    release = dpkde.dask.publish(frame, PLAN, epsilon="0.75", ledger=ledger, remark="on Dask")
    assert (tmp_path / "read").exists()
    assert release.plan == PLAN
    assert abs(release.count - ROWS) < 200
    assert len(ledger.history()) == 1
    with pytest.raises(BudgetError):
        dpkde.dask.publish(frame, PLAN, epsilon="0.75", ledger=ledger)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "an array of this process": (lambda: POINTS, "goes to dpkde.sketch"),
    "a list of rows": (lambda: POINTS.tolist(), "a Dask collection is needed"),
    "no list at all": (list, "a Dask collection is needed"),
    "a narrow array": (lambda: dask.array.from_array(POINTS[:, :1]), "must have 2 column"),
    "a cube": (lambda: dask.array.zeros((3, 3, 3)), "must have shape"),
    "a missing column": (lambda: _frame(FRAME[["a"]]), "no column 'b'"),
    "a scalar": (lambda: dask.array.from_array(POINTS).sum(), "must have shape"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_such_collection_is_refused_at_once(kind: str) -> None:
    make, words = REFUSED[kind]
    with pytest.raises(dpkde.ParameterError, match=words):
        dpkde.dask.sketch(make(), PLAN)


@pytest.mark.parametrize("kind", KINDS)
def test_the_general_door_collects_nothing(kind: str) -> None:
    collection = KINDS[kind]()
    for take in (
        partial(dpkde.sketch, plan=PLAN),
        partial(dpkde.publish, plan=PLAN, epsilon=1),
        partial(dpkde.publish, kernel=dpkde.Gaussian(1.0), bounds=[(-2, 2)] * 2, epsilon=1),
    ):
        with pytest.raises(dpkde.SchemaError, match=r"use dpkde.dask.sketch\(collection, plan\)"):
            take(collection)


def test_a_list_in_which_one_batch_is_a_collection_is_refused() -> None:
    array = dask.array.from_array(POINTS)
    with pytest.raises(dpkde.SchemaError, match=r"use dpkde.dask.sketch\(collection, plan\)"):
        dpkde.sketch([POINTS, array], PLAN)


def test_a_frame_of_dask_in_the_clothes_of_another_library_is_known() -> None:
    with pytest.raises(dpkde.SchemaError, match=r"use dpkde.dask.sketch\(collection, plan\)"):
        dpkde.sketch(narwhals.from_native(_frame()), PLAN)


def test_without_dask_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask.delayed", None)
    with pytest.raises(dpkde.SchemaError, match=r"pip install 'dpkde\[dask\]'"):
        dpkde.dask.sketch(POINTS, PLAN)
