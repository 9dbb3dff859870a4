"""How far an answer has come, for whoever wants to know.

>>> import dpkde
>>> points = [[0.1], [0.4], [0.5]]
>>> release = dpkde.publish(points, kernel=dpkde.Gaussian(1.0), bounds=[(0, 1)], epsilon=1)
>>> with dpkde.progress(lambda done, total: print(f"{done} of {total}")):
...     answers = release.kde([[0.2], [0.7]])
2 of 2
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Report = Callable[[int, int], object]
"""Takes how many queries are done, and how many there are."""

_CURRENT: ContextVar[Report | None] = ContextVar("progress", default=None)


@contextmanager
def progress(report: Report | None) -> Iterator[None]:
    """Call ``report(done, total)`` after every few thousand queries of what is asked inside.

    In this thread, in order, and no longer once the block ends; None reports nothing. A call that
    goes through its queries several times, as `Release.interval` does, counts up as often.
    """
    token = _CURRENT.set(report)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def reporting() -> Report:
    """Return what is to be called."""
    return _CURRENT.get() or _nothing


def _nothing(done: int, total: int) -> None:
    """Report nothing."""
