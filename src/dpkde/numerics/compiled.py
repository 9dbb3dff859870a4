"""The one way we compile: numba, single-threaded, `nogil`, kept between processes, no fast-math.

Numba is imported here and in `cache`, and this module is imported only by the modules that hold
compiled loops, so that `import dpkde` stays light.

Why no fast-math: a record's contribution must not depend on whether it falls into the body of a
vectorised loop or its tail. IEEE arithmetic without reassociation or contraction gives the same
bits either way. `answering` allows both, for client code, where only speed is at stake.

Machine code is kept between processes (`cache`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from dpkde.numerics.cache import FINGERPRINT, KeptCode

__all__ = ["FINGERPRINT", "answering", "exactly"]

Function = TypeVar("Function", bound=Callable[..., Any])


def _compile(function: Function, **options: Any) -> Function:
    # Loops specialised to a number are called the same, and machine code goes by names.
    numbers = [str(cell.cell_contents) for cell in function.__closure__ or ()]
    function.__qualname__ = "_".join([function.__qualname__, *numbers])
    compiled = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if compiled is not function:  # as where NUMBA_DISABLE_JIT leaves everything to Python
        compiled._cache = KeptCode(function)
    return compiled  # type: ignore[no-any-return]


def exactly(function: Function) -> Function:
    """Compile a loop whose every bit matters: noise and contributions.

    Fast-math is refused in so many words: a function that says nothing of it inherits it from the
    caller that happens to be compiled first, and would keep it for all others.
    """
    return _compile(function, fastmath=False)


def answering(function: Function) -> Function:
    """Compile a client loop, where sums may be reassociated and multiply-adds fused."""
    return _compile(function, fastmath={"reassoc", "contract"})
