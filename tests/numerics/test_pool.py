"""The thread pool: what still runs where its consumer stops."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dpkde.numerics import pool


@pytest.mark.parametrize("how", ["closes", "fails"])
def test_who_stops_early_waits_only_for_what_has_begun(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four items are in flight, two of them begun; those go on once the pool is told to stop."""
    gate, begun = threading.Event(), []

    class Watched(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            gate.set()
            super().shutdown(wait=wait)

    def work(item: int) -> int:
        begun.append(item)
        if item > 0:
            gate.wait(60)
        elif how == "fails":
            raise ValueError("no")
        return item

    monkeypatch.setattr(pool, "ThreadPoolExecutor", Watched)
    results: Any = pool.mapped(work, range(100), threads=2)
    if how == "fails":
        with pytest.raises(ValueError, match="no"):
            next(results)
    else:
        assert next(results) == 0
        results.close()
    assert gate.is_set()
    assert set(begun) <= {0, 1, 2}
