"""Progress: counted up to the end, in order, and forgotten afterwards."""

from __future__ import annotations

import numpy as np
import pytest

import dpkde
from dpkde.release.answers import CHUNK_QUERIES

POINTS = np.random.default_rng(0).uniform(0, 1, size=(500, 2))
RELEASE = dpkde.publish(
    POINTS, kernel=dpkde.Gaussian(0.3), bounds=[(0, 1)] * 2, epsilon=1, pilot=False
)


def test_every_chunk_is_counted() -> None:
    seen: list[tuple[int, int]] = []
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
    assert (inner, outer) == ([3, 3], [5])


def test_a_report_that_fails_ends_the_answer() -> None:
    with pytest.raises(ZeroDivisionError), dpkde.progress(lambda done, total: 1 // 0):
        RELEASE.kde(POINTS)
    assert RELEASE.kde(POINTS).shape == (500,)


def test_a_map_is_counted_as_a_whole() -> None:
    seen: list[tuple[int, int]] = []
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
