"""The fastgauss family: `family` is what the caller writes and what is drawn, ``proof.md`` why."""

from __future__ import annotations

from dpkde.families.fastgauss.family import FastGauss

__all__ = ["FastGauss"]
