"""The table before noise never changes: digests of it, for fixed plans and points of every family.

A change of code that moves one of these moves what files of old plans mean; it needs a new version
of the family. Points are uniform draws, the same doubles on every machine.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde.prior import Bernstein, EvenTrig

BOX = [(-2.0, 2.0), (0.0, 3.0)]
MATRIX = [[0.9, 0.2], [0.2, 0.5]]

PLANS: dict[str, tuple[Any, Any, Any]] = {
    "fourier": (dpkde.Gaussian(0.7), BOX, dpkde.Fourier(33)),
    "fourier, no bounds": (dpkde.Laplacian([0.7, 2.0]), None, dpkde.Fourier(20)),
    "fourier, phase": (dpkde.Matern(1.5, 0.7), BOX, dpkde.Fourier(21, form="phase")),
    "fourier, matrix": (dpkde.Gaussian(MATRIX), BOX, dpkde.Fourier(16)),
    "fourier, ball": (dpkde.Cauchy(0.7), dpkde.Ball((0.0, 1.0), 1.5, "drop"), dpkde.Fourier(16)),
    "spline": (dpkde.Gaussian(0.7), BOX, dpkde.Spline(3, 0.75)),
    "spline, per axis": (dpkde.Laplacian(0.7), BOX, dpkde.Spline((1, 2), (0.5, 1.0))),
    "spline, narrow": (dpkde.Gaussian([9.0, 0.5]), BOX, dpkde.Spline(2, 0.9)),
    "fastgauss": (dpkde.Gaussian(0.7), BOX, dpkde.FastGauss(6)),
    "hashing": (dpkde.Laplacian(0.7), BOX, dpkde.Hashing(24, 16)),
    "hashing, plain": (dpkde.Hat(2.0), BOX, dpkde.Hashing(24, 8, signed=False)),
    "hashing, cuts": (dpkde.ExponentialLp(1.5, 1, 0.7), BOX, dpkde.Hashing(12, 16)),
    "hashing, directions": (dpkde.Geodesic(), None, dpkde.Hashing(40, 1)),
    "bernstein": (dpkde.Gaussian(2.0), BOX, Bernstein(4)),
    "eventrig": (dpkde.Gaussian(2.0), BOX, EvenTrig(4)),
}

DIGESTS = {
    "fourier": "80d53c10abffaa59",
    "fourier, no bounds": "397605fbbbbce22c",
    "fourier, phase": "be957c243f11a0ea",
    "fourier, matrix": "0e44ba5455fa08a0",
    "fourier, ball": "7ff24b339b46e869",
    "spline": "64facf1820af3795",
    "spline, per axis": "88bea5c1d1fb07c2",
    "spline, narrow": "fb83c195b6f04e17",
    "fastgauss": "bfe7330b1dfa5e27",
    "hashing": "4f8a9c3e55fc2238",
    "hashing, plain": "0cf24a3168736400",
    "hashing, cuts": "aae337b247cc3d95",
    "hashing, directions": "4edfaa798539e5a2",
    "bernstein": "4d9a2ea8cca8defe",
    "eventrig": "dcd8f7c13b6c5f28",
}


@pytest.mark.parametrize("name", PLANS)
def test_tables_before_noise(name: str) -> None:
    kernel, bounds, family = PLANS[name]
    plan = dpkde.plan(kernel=kernel, bounds=bounds, epsilon=1, family=family, dim=2, seed=7)
    points = np.random.default_rng(3).random((300, 2)) * 5 - 2.25
    points[5] = np.nan
    sketch = dpkde.sketch(points, plan)
    state = hashlib.sha256(sketch._table.astype("<i8").tobytes())
    state.update(f"{sketch._count} {sketch._rows} {plan.bits}".encode())
    assert state.hexdigest()[:16] == DIGESTS[name]
