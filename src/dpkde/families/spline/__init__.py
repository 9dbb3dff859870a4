"""The spline family: `family` is what the caller writes and what is drawn, ``proof.md`` why."""

from __future__ import annotations

from dpkde.families.spline.family import Spline

__all__ = ["Spline"]
