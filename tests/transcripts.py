"""Runs that are recorded and played again, through the table of samplers: commands included."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpkde.curator.auditing.transcript import Player, Recorder, Transcript, transcribe
from dpkde.privacy.laws import SAMPLERS

door = importlib.import_module("dpkde.privacy.laws.draw")  # the module, not the function

GENERATOR = np.random.default_rng(5)
POINTS = GENERATOR.normal(size=(300, 2)).round(3)
STRANGE = {
    "ordinary": [0.5, -0.5],
    "outside": [40.0, -3.0],
    "huge": [1e308, -1e308],
    "missing": [np.nan, 0.0],
    "infinite": [np.inf, 0.0],
}
Tables = list[Any]


def tables(adjacency: str, convert: Callable[[Any], Any] = lambda points: points) -> Tables:
    """Return tables that are to look alike, the first of them the recorded one.

    Where outputs are the same any two tables have to look alike, and not neighbours only: strange
    records are added all at once, and in another table there is none.
    """
    strange = np.array(list(STRANGE.values()))
    if adjacency == "replace":
        changed = np.concatenate([strange, POINTS[len(strange) :]])
        return [convert(each) for each in (POINTS, changed, np.full_like(POINTS, 50.0))]
    return [convert(each) for each in (POINTS, np.concatenate([strange, POINTS]), POINTS[:0])]


def neighbours() -> Tables:
    """Return a table, and each of those that have one strange record more."""
    return [POINTS, *(np.concatenate([POINTS, [row]]) for row in STRANGE.values())]


def recorded(
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[[Any], Any],
    sides: Tables,
    *,
    count: int | None = None,
    folder: Path | None = None,
) -> list[Transcript]:
    """Return the transcripts of a call on tables: of the first recorded, of the others played."""
    recorders = {name: Recorder(base, count) for name, base in SAMPLERS.items()}
    transcripts = []
    for number, table in enumerate(sides):
        each: dict[str, Recorder] = recorders
        if number:
            each = {name: Player(one) for name, one in recorders.items()}
        with monkeypatch.context() as patch:
            patch.setattr(door, "SAMPLERS", each)
            randomness = Recorder()
            transcript = transcribe(partial(call, table), randomness, folder)
        asked = tuple(line for one in each.values() for line in one.asked)
        transcripts.append(replace(transcript, asked=asked))
    return transcripts


def differences(transcripts: list[Transcript]) -> list[str]:
    """Return in what the first differs from the others."""
    first, *others = transcripts
    return [found for other in others for found in first.differences(other)]
