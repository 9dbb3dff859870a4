"""Progress: counted up to the end, in order, and forgotten afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dpkde
from dpkde.release.answers import CHUNK_QUERIES

POINTS = np.random.default_rng(0).uniform(0, 1, size=(500, 2))
RELEASE = dpkde.publish(
    POINTS, kernel=dpkde.Gaussian(0.3), bounds=[(0, 1)] * 2, epsilon=1, pilot=False
)


def test_every_chunk_is_counted() -> None:
    seen: list[tuple[int, int | None]] = []
    queries = np.zeros((2 * CHUNK_QUERIES + 5, 2))
    with dpkde.progress(lambda done, total: seen.append((done, total))):
        RELEASE.kde(queries)
    total = len(queries)
    assert seen == [(CHUNK_QUERIES, total), (2 * CHUNK_QUERIES, total), (total, total)]
    RELEASE.kde(queries)
    assert len(seen) == 3  # it ended with the block


def test_blocks_nest_and_nothing_is_reported_by_none() -> None:
    outer: list[int] = []
    inner: list[int] = []
    with dpkde.progress(lambda done, total: outer.append(done)):
        with dpkde.progress(lambda done, total: inner.append(done)):
            RELEASE.interval(POINTS[:3])
        with dpkde.progress(None):
            RELEASE.kde(POINTS[:4])
        RELEASE.kde(POINTS[:5])
    assert (inner, outer) == ([3], [5])


def test_a_report_that_fails_ends_the_answer() -> None:
    with pytest.raises(ZeroDivisionError), dpkde.progress(lambda done, total: 1 // 0):
        RELEASE.kde(POINTS)
    assert RELEASE.kde(POINTS).shape == (500,)


def test_a_map_is_counted_as_a_whole() -> None:
    seen: list[tuple[int, int | None]] = []
    release = dpkde.publish(
        POINTS,
        kernel=dpkde.Gaussian(0.3),
        bounds=[(0, 1)] * 2,
        epsilon=1,
        family=dpkde.FastGauss(order=3),
    )
    with dpkde.progress(lambda done, total: seen.append((done, total))):
        release.grid((300, 250))
    assert seen == [(65_536, 75_000), (75_000, 75_000)]


def _seen(action: Callable[[], object]) -> list[tuple[int, int | None]]:
    seen: list[tuple[int, int | None]] = []
    with dpkde.progress(lambda done, total: seen.append((done, total))):
        action()
    return seen


def test_tables_that_are_read_are_counted(tmp_path: Path) -> None:
    """Rows, or bytes of text; each pass from the start; and no total where nobody knows one."""
    plan = dpkde.plan(
        kernel=dpkde.Gaussian(0.3), bounds=[(0, 1)] * 2, epsilon=1, family=dpkde.FastGauss(order=3)
    )
    rows = np.zeros((40_000, 2))
    np.save(tmp_path / "t.npy", rows)
    np.savetxt(tmp_path / "t.csv", POINTS, delimiter=",", header="a,b", comments="")
    expected = [(0, 40_000), (32_768, 40_000), (40_000, 40_000)]
    assert _seen(lambda: dpkde.sketch(rows, plan)) == expected
    kept = tmp_path / "c"
    assert _seen(lambda: dpkde.sketch(tmp_path / "t.npy", plan, checkpoint=kept)) == expected
    assert _seen(lambda: dpkde.publish(rows, plan=plan, epsilon=1)) == expected
    size = (tmp_path / "t.csv").stat().st_size
    assert _seen(lambda: dpkde.sketch(tmp_path / "t.csv", plan))[-1] == (size - len("a,b\n"), size)
    assert _seen(lambda: dpkde.sketch([rows, rows[:5]], plan))[-1] == (40_005, None)
    twice = _seen(
        lambda: dpkde.publish(rows, kernel=dpkde.Gaussian(0.3), bounds=[(0, 1)] * 2, epsilon=1)
    )
    assert twice == [*expected, *expected[1:]]
