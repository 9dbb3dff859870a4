"""Shares of partitions: what tasks of clusters return, without a cluster."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpkde
from dpkde.curator.partitions import Fault, Share, added, share_of, under, whole
from dpkde.curator.units.travel import records_of, schema, share_of_records
from dpkde.errors import SourceError

SECRET = "SECRET-4711"
PLAN = dpkde.plan(
    kernel=dpkde.Gaussian(1.0),
    bounds=[(-2, 2)] * 2,
    epsilon=1,
    family=dpkde.Spline(2, 0.7),
    columns=["a", "b"],
)
WHOSE = under(PLAN, "who", 2)
POINTS = np.random.default_rng(0).normal(size=(4_000, 2)).round(6)


def _table(ids: list[Any]) -> pd.DataFrame:
    who = pd.Series([ids[k % len(ids)] for k in range(len(POINTS))], dtype=object)
    return pd.DataFrame({"a": POINTS[:, 0], "b": POINTS[:, 1], "who": who})


def _shuffled(batches: list[Any], partitions: int) -> list[list[Any]]:
    """Return the records as an engine would send them: by their place, and in another order."""
    table = pa.Table.from_batches(batches, schema=schema())
    table = table.take(np.random.default_rng(1).permutation(len(table)))
    places = table["place"].to_numpy() % partitions
    return [table.filter(places == k).to_batches(max_chunksize=300) for k in range(partitions)]


def test_shares_add_up_to_the_sketch_of_all_rows() -> None:
    shares = [share_of(POINTS[k * 1000 : k * 1000 + 1000], PLAN, None, k) for k in range(4)]
    assert whole(shares, PLAN) == dpkde.sketch(POINTS, PLAN)
    tree = added(added(*shares[2:]), added(*shares[:2]))
    made = whole([tree], PLAN)
    assert made == dpkde.sketch(POINTS, PLAN)
    assert len(made._ids) == 1
    assert whole([], PLAN) == dpkde.Sketch.empty(PLAN)


def test_a_share_is_not_changed_by_adding_and_counts_once() -> None:
    """A task that is run anew is given the same shares; one that came twice is noticed."""
    shares: Any = [share_of(POINTS[:10], PLAN, None, k) for k in range(3)]
    before = [share.sums.copy() for share in shares]
    first, again = added(*shares), added(*shares)
    assert isinstance(first, Share)
    assert isinstance(again, Share)
    assert np.array_equal(first.sums, again.sums)
    assert all(np.array_equal(old, share.sums) for old, share in zip(before, shares, strict=True))
    with pytest.raises(SourceError, match="came out of two partitions"):
        whole([first, shares[1]], PLAN)


IDS: dict[str, list[Any]] = {
    "numbers": list(range(-300, 300)),
    "floats": [k / 2 for k in range(600)],
    "text": [f"p{k}" for k in range(600)],
    "odd text": ["é", "\ud800", "x" * 300, "", None, "a\0b", *(f"p{k}" for k in range(300))],
    "alike": [7, "7", " 7 ", 7.0, "a", "a ", np.int8(7), None, *range(100, 700)],
}
"""Ids of the last kind are cells that an engine tells apart, and one id here."""


@pytest.mark.parametrize("kind", IDS)
def test_units_travel(kind: str) -> None:
    table = _table(IDS[kind])
    wanted = dpkde.sketch(table, WHOSE)
    parts = [table.iloc[k * 1000 : k * 1000 + 1000] for k in range(4)]
    batches = [batch for part in parts for batch in records_of(part, WHOSE, None)]
    sent = _shuffled(batches, 3)
    shares = [share_of_records(one, WHOSE) for one in sent]
    made = whole(shares, WHOSE)
    assert made == wanted
    assert made.plan.unit.records == 2


def test_a_unit_in_two_partitions_is_noticed() -> None:
    """Each would have let c of its rows enter: the engine's word is not taken for it."""
    batches = list(records_of(_table(IDS["numbers"]), WHOSE, None))
    halves = [[batch.slice(0, 1500) for batch in batches], [batch.slice(1500) for batch in batches]]
    shares = [share_of_records(half, WHOSE) for half in halves]
    with pytest.raises(SourceError, match="came out of two partitions"):
        whole(shares, WHOSE)


def _raising() -> Iterator[Any]:
    yield [0.0, 0.0]
    raise ValueError(SECRET)


class Unreadable:
    """A frame, as it says, that quotes a cell."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise KeyError(SECRET)


BAD: dict[str, Callable[[Path], Any]] = {
    "a generator that raises": lambda _: _raising(),
    "another library's stream": lambda _: Unreadable(),
    "a text": lambda _: SECRET,
    "a path": lambda folder: folder / SECRET,
    "text as bytes": lambda _: SECRET.encode(),
    "a column that is missing": lambda _: pd.DataFrame({"a": [SECRET], "c": [SECRET]}),
    "columns that are missing": lambda _: np.array([[1.0]]),
    "an object": lambda _: object(),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("plan", [PLAN, WHOSE])
def test_a_partition_that_cannot_be_read_is_a_fault_without_a_cell(
    kind: str, plan: dpkde.Plan, tmp_path: Path
) -> None:
    if plan is PLAN:
        fault = share_of(BAD[kind](tmp_path), plan, plan.columns, 0)
    else:
        batches = list(records_of(BAD[kind](tmp_path), plan, plan.columns))
        fault = share_of_records(batches, plan)
    assert isinstance(fault, Fault)
    assert SECRET not in repr(fault)
    assert pickle.loads(pickle.dumps(fault)) == fault
    good = share_of(POINTS, PLAN, None, 1)
    with pytest.raises(dpkde.DpkdeError) as caught:
        whole([good, added(good, fault)], plan)
    assert type(caught.value).__name__ == fault.kind
    assert caught.value.__context__ is None


def test_lists_of_a_partition_are_rows_and_never_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text in the data may be called like a file that there is."""
    monkeypatch.chdir(tmp_path)
    np.save("points.npy", POINTS)
    assert dpkde.sketch(["points.npy"], PLAN) == dpkde.sketch(POINTS, PLAN)
    share = share_of(["points.npy"], PLAN, None, 0)
    assert whole([share], PLAN) == dpkde.sketch([[np.nan, 0.0]], PLAN)


def test_shares_are_secret() -> None:
    share = share_of(POINTS, PLAN, None, 0)
    assert repr(share) == "<Share (secret)>"
