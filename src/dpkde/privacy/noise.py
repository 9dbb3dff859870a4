"""Moved: `dpkde.privacy.laws` draws noise now."""

from __future__ import annotations

import warnings
from typing import Any

_MOVED = ("SAMPLERS", "draw")


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module 'dpkde.privacy.noise' has no attribute {name!r}")
    from dpkde.privacy import laws

    warnings.warn(
        f"dpkde.privacy.noise.{name} has moved to dpkde.privacy.laws.{name}, and will be gone from "
        "here in version 0.3",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(laws, name)
