"""Parquet files that are decoded by the threads that sum: every row once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpkde
from dpkde.numerics.pool import mapped
from dpkde.tables import open_points, stretches
from dpkde.tables.source import chunk_rows

STEP = chunk_rows(2)
ROWS = 9 * STEP + 17


def _write(path: Path, groups: int, kind: Any = None) -> np.ndarray[Any, Any]:
    rows = np.random.default_rng(1).normal(size=(ROWS, 2))
    table = pa.table({"x": rows[:, 0], "y": rows[:, 1]})
    if kind is not None:
        names = pa.array(np.arange(ROWS) % 7).cast(pa.string())
        names = names.dictionary_encode() if kind == "dictionary" else names
        table = table.append_column("who", names)
    pq.write_table(table, path, row_group_size=groups)
    return rows


@pytest.mark.parametrize("groups", [9999, STEP, 8 * STEP + 1, ROWS])
@pytest.mark.parametrize("kind", [None, "text", "dictionary"])
def test_every_row_is_read_once(
    groups: int, kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stretches, "cores", lambda: 3)
    rows = _write(tmp_path / "t.parquet", groups, kind)
    source = open_points(tmp_path / "t.parquet", ["x", "y"], unit=None if kind is None else "who")
    pieces = list(source.pieces(2))
    assert sum(piece.size for piece in pieces) == ROWS
    assert max(piece.size for piece in pieces) <= STEP
    if kind is None:
        read = np.concatenate(list(mapped(lambda piece: piece.rows(), pieces, 3)))
    else:
        readers = [piece.labelled for piece in pieces if piece.labelled is not None]
        labelled = list(mapped(lambda reader: reader(), readers, 3))
        read = np.concatenate([part for part, _ in labelled])
        assert sum(len(labels.kinds) for _, labels in labelled) == ROWS
    assert np.array_equal(read[np.lexsort(read.T)], rows[np.lexsort(rows.T)])
    ordered = np.concatenate([piece.rows() for piece in source.read()])
    assert np.array_equal(ordered, rows)  # answers of queries are in the order of the file


def test_who_sums_decodes_and_nothing_is_read_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never the thread that hands out pieces; and no batch before its piece is asked for."""
    monkeypatch.setattr(stretches, "cores", lambda: 2)
    _write(tmp_path / "t.parquet", 8 * STEP)
    decoders: set[int] = set()
    taken = []
    take = stretches.Stretch.take

    def watched(self: Any, columns: Any) -> Any:
        decoders.add(threading.get_ident())
        taken.append(1)
        return take(self, columns)

    monkeypatch.setattr(stretches.Stretch, "take", watched)
    pieces = open_points(tmp_path / "t.parquet", None).pieces(2)
    first = [next(pieces) for _ in range(5)]
    assert not taken
    first[3].rows()
    assert len(taken) == 1
    decoders.clear()
    plan = dpkde.plan(
        kernel=dpkde.Gaussian(1.0), bounds=[(-3, 3)] * 2, epsilon=1, family=dpkde.Spline(2, 0.9)
    )
    whole = dpkde.sketch(tmp_path / "t.parquet", plan, threads=2)
    assert decoders
    assert threading.get_ident() not in decoders
    assert whole == dpkde.sketch(pq.read_table(tmp_path / "t.parquet"), plan)


def test_stretches_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces in flight are of as many stretches as there are threads, so that none waits."""
    monkeypatch.setattr(stretches, "cores", lambda: 2)
    groups = [8 * STEP] * 3
    chosen: list[Any] = [turn.take.__wrapped__.func.__self__ for turn in stretches.turns(  # type: ignore[attr-defined]
        lambda: None, groups, STEP, ["x"]
    )]  # fmt: skip
    assert len(set(map(id, chosen))) == 3
    assert len(set(map(id, chosen[:2]))) == 2
    assert chosen[0] is chosen[2]


@pytest.mark.parametrize(
    ("columns", "groups", "alone"), [(2, 3, False), (2, 1, True), (90, 3, True)]
)
def test_arrows_threads_help_where_there_is_one_stretch_at_a_time(
    columns: int, groups: int, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a single row group, or of tables so wide that two decoders would hold much."""
    monkeypatch.setattr(stretches, "cores", lambda: 4)
    asked = []

    class File:
        def iter_batches(self, **options: Any) -> Any:
            asked.append(options["use_threads"])
            return iter([])

        def close(self) -> None:
            pass

    for turn in stretches.turns(File, [8 * STEP] * groups, STEP, ["x"] * columns):
        turn.take()
    assert asked == [alone] * groups
