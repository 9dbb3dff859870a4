"""The one way we compile: numba, single-threaded, `nogil`, cached, no fast-math.

Numba is imported here and nowhere else, and this module is imported only by the modules that hold
compiled loops, so that `import dpkde` stays light.

Why no fast-math: a record's contribution must not depend on whether it falls into the body of a
vectorised loop or its tail. IEEE arithmetic without reassociation or contraction gives the same
bits either way. `answering` allows both, for client code, where only speed is at stake.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def _compile(function: Function, **options: Any) -> Function:
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy", **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # no writable place for the cache: compile again in each process
        return numba.njit(nogil=True, error_model="numpy", **options)(function)  # type: ignore[no-any-return]


def exactly(function: Function) -> Function:
    """Compile a loop whose every bit matters: noise and contributions."""
    return _compile(function)


def answering(function: Function) -> Function:
    """Compile a client loop, where sums may be reassociated and multiply-adds fused."""
    return _compile(function, fastmath={"reassoc", "contract"})
