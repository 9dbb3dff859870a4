"""A folder of machine code, so that no other process compiles: ``python -m dpkde.warm FOLDER``.

    python -m dpkde.warm FOLDER [PLAN.dpkde ...]

Sketches made-up points by each family, or under each of the plans, in single and double precision;
publishes them and asks the releases. Without plans, and for plans with units, it sketches text and
rows of units as well. All that had to be compiled for it is in FOLDER afterwards, one file for each
function. A process with ``NUMBA_CACHE_DIR=FOLDER`` takes it from there, if its processor, its
Python, numba and dpkde are the same; it needs no right to write. See `numerics.cache`.

Nothing private comes near it: points are made up, and their releases are thrown away.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpkde
from dpkde.privacy.amounts import ONE_RECORD
from dpkde.space.domain import Sets

_ROWS = 64
_BOX = [(-2.0, 2.0), (-1.0, 3.0)]


def examples() -> Iterator[dpkde.Plan]:
    """Yield plans that together need every loop of a sketch: each family, in each of its kinds."""
    gaussian = dpkde.Gaussian(0.7)
    kinds: list[tuple[dpkde.Kernel, Any, dpkde.Family]] = [
        (gaussian, _BOX, dpkde.Spline(3, 0.75)),
        (gaussian, _BOX, dpkde.FastGauss(6)),
        (gaussian, _BOX, dpkde.Fourier(33)),
        (gaussian, _BOX, dpkde.Fourier(33, form="phase")),
        (dpkde.Laplacian(0.7), _BOX, dpkde.Hashing(24, 16)),
        (dpkde.Hat(2.0), _BOX, dpkde.Hashing(24, 8, signed=False)),
        (dpkde.ExponentialLp(1.5, 1, 0.7), _BOX, dpkde.Hashing(12, 16)),
        (dpkde.Geodesic(), None, dpkde.Hashing(40, 1)),
        (dpkde.Jaccard(), Sets(2), dpkde.Hashing(24, 16)),
    ]
    for kernel, bounds, family in kinds:
        yield dpkde.plan(kernel=kernel, bounds=bounds, family=family, dim=2, seed=0, epsilon=1)


def fill(plans: Iterable[dpkde.Plan]) -> None:
    """Sketch, publish and ask under each plan, so that all of it is compiled and kept."""
    for plan in plans:
        points = np.random.default_rng(0).normal(size=(_ROWS, plan.frame.dim))
        for kind in (np.float32, np.float64):
            alone = dpkde.Plan(plan.pair, plan.capacity_bits, plan.seed)  # of nobody's rows
            sketch = dpkde.sketch(points.astype(kind), alone, threads=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpkde.ReleaseWarning)
            for delta in (0.0, 1e-6):  # discrete Laplace or max-norm noise, and discrete Gaussian
                for epsilon in (1, 1000):  # what a release tells of itself hangs on its noise
                    release = dpkde.publish(sketch, epsilon=epsilon, delta=delta)
                    release.kde(points[:4])
                    _read_wider(release, points[:4])


def _read_wider(release: dpkde.Release, points: NDArray[np.float64]) -> None:
    """Read a release with a wider kernel, as it may do itself, where its family can."""
    with suppress(dpkde.ParameterError):
        release.with_kernel(release.kernel.scaled(2)).kde(points)


def fill_text() -> None:
    """Sketch text, and rows of units with numbers and with names."""
    plan = dpkde.plan(
        kernel=dpkde.Gaussian(0.7), bounds=_BOX, columns=["x", "y"], family=dpkde.Spline(3, 0.75),
        epsilon=1,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "points.csv"
        rows = [f"{k / 64},{k / 32},{k % 9},n{k % 9}" for k in range(_ROWS)]
        table.write_text("\n".join(["x,y,number,name", *rows]), encoding="utf-8")
        dpkde.sketch(table, plan, threads=1)
        for unit in ("number", "name"):
            dpkde.sketch(table, plan, unit=unit, rows_per_unit=2, threads=1)


def main(folder: str, *plans: str) -> None:
    """Fill a folder; with names of plans, with what they need."""
    os.environ["NUMBA_CACHE_DIR"] = str(Path(folder).resolve())  # numba is loaded after this
    from dpkde.numerics import cache

    target = cache.folders(os.environ["NUMBA_CACHE_DIR"])[1]
    if target is None or not target.is_relative_to(Path(folder).resolve()):
        sys.exit(f"nothing can be written to {folder}")
    given = [dpkde.Plan.load(plan) for plan in plans]
    fill(given or examples())
    if not given or any(plan.unit != ONE_RECORD for plan in given):
        fill_text()
    count = len(list(target.glob(f"*{cache.ENDING}")))
    print(f"{count} functions in {folder}: start processes with NUMBA_CACHE_DIR={folder}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m dpkde.warm FOLDER [PLAN.dpkde ...]")
    main(*sys.argv[1:])
