"""The fourier family: `family` is what the caller writes and what is drawn, ``proof.md`` why."""

from __future__ import annotations

from dpkde.families.fourier.family import Fourier

__all__ = ["Fourier"]
