"""Our own thread pool: ordered results, bounded work in flight.

Compiled kernels are single-threaded and release the interpreter lock; threads come from here.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from dpkde.errors import ParameterError
from dpkde.numerics.numbers import is_whole

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every system tells
        return os.cpu_count() or 1


def mapped(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None
) -> Iterator[Result]:
    """Yield ``function(item)`` in order, with at most two items per thread in flight.

    Never in the caller's own thread, not even for one: Ctrl-C ends up in the main thread, so what
    a function of the caller raises in another is known to be its own (`dpkde.privacy.secrecy`).

    Who stops early, by Ctrl-C or an error, waits for what has begun and for nothing else.

    >>> list(mapped(abs, [-1, 2, -3], threads=2))
    [1, 2, 3]
    """
    if threads is not None and (not is_whole(threads) or threads < 1):
        raise ParameterError(f"threads must be a whole number, at least 1, got {threads!r}")
    count = cores() if threads is None else int(threads)
    pool = ThreadPoolExecutor(count)
    flight: deque[Future[Result]] = deque()
    try:
        for item in items:
            flight.append(pool.submit(function, item))
            if len(flight) >= 2 * count:
                yield flight.popleft().result()
        while flight:
            yield flight.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
