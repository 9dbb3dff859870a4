"""What has to work where dpkde is installed with the packages it requires, and no others.

Run by `wheel.py` in an environment and a folder of its own. A part that is missing is named in one
line, which says what to install.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dpkde

OPTIONAL = ("typer", "rich", "matplotlib", "pyarrow", "narwhals", "pandas", "opendp", "sklearn")
SETTINGS: dict[str, Any] = {
    "kernel": dpkde.Gaussian(0.5),
    "bounds": [(-4, 4), (-4, 4)],
    "epsilon": 1,
    "expected_rows": 2_000,
}


def expect(condition: bool, what: str) -> None:
    """End with a message unless something holds; asserts may be switched off."""
    if not condition:
        sys.exit(f"smoke test: {what}")


def publish_and_ask() -> dpkde.Release:
    """Return a release of a CSV file, after a way through a file and some questions."""
    points = np.random.default_rng(0).normal(size=(2_000, 2))
    np.savetxt("points.csv", points, delimiter=",", header="x,y", comments="")
    release = dpkde.publish("points.csv", columns=["x", "y"], **SETTINGS)
    release.save("points.dpkde")
    loaded: dpkde.Release = dpkde.load("points.dpkde")
    truth = dpkde.nonprivate.kde(points, points[:50], dpkde.Gaussian(0.5))
    error = np.abs(loaded.kde(points[:50]) - truth).mean()
    expect(error < 0.02, f"the answers are off by {error:.2g}")
    expect(loaded.sample(100, seed=1).shape == (100, 2), "no points were drawn")
    loaded.grid(10).save("map.csv")
    ledger = dpkde.Ledger.create("ledger.db", dataset="points", epsilon=2)
    dpkde.publish(points, ledger=ledger, **SETTINGS)
    expect(ledger.left().epsilon == 1, "the ledger has not counted")
    plan = dpkde.plan(**SETTINGS)
    halves = [dpkde.sketch(half, plan) for half in np.split(points, 2)]
    expect(sum(halves) == dpkde.sketch(points, plan), "sketches do not merge")
    return loaded


def expect_one_line(what: str, said: str) -> None:
    """End unless a message is one line that tells what to install."""
    expect("\n" not in said.strip(), f"{what} says more than a line: {said}")
    expect("pip install" in said, f"{what} does not say what to install: {said!r}")


def missing_parts(release: dpkde.Release) -> dict[str, Callable[[], object]]:
    """Return what needs a package that is not here, by name."""
    for name in ("t.parquet", "t.arrow", "t.csv.zst"):
        Path(name).write_bytes(b"PAR1")
    uses: dict[str, Callable[[], object]] = {
        "Parquet": lambda: dpkde.publish("t.parquet", **SETTINGS),
        "Arrow": lambda: dpkde.publish("t.arrow", **SETTINGS),
        "packed text": lambda: dpkde.publish("t.csv.zst", **SETTINGS),
        "an address": lambda: dpkde.publish("s3://bucket/t.csv", **SETTINGS),
        "OpenDP": lambda: dpkde.publish(np.zeros((9, 2)), sampler="opendp", **SETTINGS),
        "a map as Parquet": lambda: release.grid(5).save("map.parquet"),
        "a map as GeoTIFF": lambda: release.grid(5).save("map.tif"),
    }
    if hasattr(release, "plot"):
        uses["a picture"] = release.plot
    return uses


def main() -> None:
    """Try all of it."""
    here = Path(dpkde.__file__).resolve()
    expect("site-packages" in here.parts, f"dpkde is not the one installed, but {here}")
    for name in OPTIONAL:
        expect(importlib.util.find_spec(name) is None, f"{name} is installed")
    for name in dpkde.__all__:
        expect(getattr(dpkde, name) is not None, f"dpkde.{name} is not there")
    release = publish_and_ask()
    for what, use in missing_parts(release).items():
        try:
            use()
        except (dpkde.DpkdeError, ImportError) as error:
            expect_one_line(what, str(error))
        else:
            expect(False, f"{what} works without the packages that it is said to need")
    for door in ("sklearn", "dask", "spark"):
        if importlib.util.find_spec(f"dpkde.{door}"):
            try:
                importlib.import_module(f"dpkde.{door}")
            except ImportError as error:
                expect_one_line(f"dpkde.{door}", str(error))
    command = [sys.executable, "-m", "dpkde", "--version"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    expect(done.returncode == 2, f"the command ended with {done.returncode}")
    expect_one_line("the command", done.stdout + done.stderr)


if __name__ == "__main__":
    main()
