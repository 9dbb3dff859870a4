"""Commands run in this process: the table they read, options that are right, what they print."""

from __future__ import annotations

import numpy as np
import pytest

from dpkde.cli.main import run

POINTS = np.random.default_rng(0).uniform(0, 1, size=(2000, 2)).round(7)
GOOD = ["--bounds", "0:1,0:1", "--bandwidth", "0.2", "--epsilon", "1"]


def dpkde_(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code and what it printed."""
    capsys.readouterr()
    try:
        code = run(list(arguments))
    except SystemExit as stop:
        code = stop.code
    printed = capsys.readouterr()
    return code, printed.out, printed.err
