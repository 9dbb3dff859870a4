"""Points that can be read only once: a second reading would find nothing, and publish it."""

from __future__ import annotations

import inspect
import weakref
from collections import deque
from contextlib import suppress
from typing import Any

from dpkde.errors import SchemaError

_used: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_used_up: deque[Any] = deque(maxlen=64)
"""Of Python's own iterators there are no weak references: the last few are remembered once they are
used up, when they hold nothing themselves."""


def check_unused(points: Any) -> None:
    """Refuse what was read here before."""
    used = inspect.isgenerator(points) and inspect.getgeneratorstate(points) == inspect.GEN_CLOSED
    used = used or _used.get(id(points)) is points or any(points is one for one in _used_up)
    if used:
        raise SchemaError(
            f"this {type(points).__name__} was read before, and nothing is left of it: make it anew"
        )


def begun(points: Any) -> None:
    """Remember that points are being read."""
    with suppress(TypeError):
        _used[id(points)] = points


def ended(points: Any) -> None:
    """Remember that points were read to their end."""
    if id(points) not in _used:
        _used_up.append(points)
