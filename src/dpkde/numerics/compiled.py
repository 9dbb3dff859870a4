"""The one way we compile: numba, single-threaded, `nogil`, cached, no fast-math.

Numba is imported here and nowhere else, and this module is imported only by the modules that hold
compiled loops, so that `import dpkde` stays light.

Why no fast-math: a record's contribution must not depend on whether it falls into the body of a
vectorised loop or its tail. IEEE arithmetic without reassociation or contraction gives the same
bits either way. `answering` allows both, for client code, where only speed is at stake.

Machine code is cached between processes. Numba's cache notices a change of the file that a function
stands in, but not of the files whose functions it calls; a stale sampler must never run. So a
fingerprint of all our sources goes into the names under which code is cached.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

_SOURCES = sorted(Path(__file__).parents[1].rglob("*.py"))
FINGERPRINT = hashlib.sha256(b"\0".join(path.read_bytes() for path in _SOURCES)).hexdigest()[:16]

Function = TypeVar("Function", bound=Callable[..., Any])


def _compile(function: Function, **options: Any) -> Function:
    function.__qualname__ = f"{function.__qualname__}_{FINGERPRINT}"
    try:
        if not _SOURCES:
            raise RuntimeError("without sources there is nothing to tell stale code by")
        return numba.njit(nogil=True, cache=True, error_model="numpy", **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # no writable place for the cache either: compile in each process
        return numba.njit(nogil=True, error_model="numpy", **options)(function)  # type: ignore[no-any-return]


def exactly(function: Function) -> Function:
    """Compile a loop whose every bit matters: noise and contributions.

    Fast-math is refused in so many words: a function that says nothing of it inherits it from the
    caller that happens to be compiled first, and would keep it for all others.
    """
    return _compile(function, fastmath=False)


def answering(function: Function) -> Function:
    """Compile a client loop, where sums may be reassociated and multiply-adds fused."""
    return _compile(function, fastmath={"reassoc", "contract"})
