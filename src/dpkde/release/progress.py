"""How far an answer, or the reading of a table, has come, for whoever wants to know.

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

Report = Callable[[int, int | None], object]
"""Takes how many queries are done, and how many there are; or rows or bytes of a table, and None
where nobody knows how many."""

_CURRENT: ContextVar[Report | None] = ContextVar("progress", default=None)


@contextmanager
def progress(report: Report | None) -> Iterator[None]:
    """Call ``report(done, total)`` after every few thousand queries of what is asked inside.

    And for every few thousand rows that `dpkde.sketch` and `dpkde.publish` read: in rows, or in
    bytes where the table is text, for each pass from 0. The total is None where nobody knows it.
    How large a table is, is private: for the curator's own screen.

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


def is_reporting() -> bool:
    """Tell whether anybody wants to know."""
    return _CURRENT.get() is not None


def _nothing(done: int, total: int | None) -> None:
    """Report nothing."""
