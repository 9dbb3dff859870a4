"""The hashing family: `family` is what the caller writes and what is drawn, ``proof.md`` why."""

from __future__ import annotations

from dpkde.families.hashing.family import Hashing

__all__ = ["Hashing"]
