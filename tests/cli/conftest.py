"""A table to publish, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from commands import POINTS


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    np.savetxt("t.csv", POINTS, delimiter=",", header="lon,lat", comments="", fmt="%.7f")
    return "t.csv"
