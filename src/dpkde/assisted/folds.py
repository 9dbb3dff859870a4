"""Folds of frequencies: each is predicted by a cloud that was fitted to the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpkde.assisted.cloud import Cloud, Complex, Frequencies

FOLDS = 4
FEWEST = 32
"""Fewest frequencies that a model is fitted to."""


def folds(count: int) -> list[slice]:
    """Return the folds of so many frequencies. They are independent draws: any rule will do.

    >>> folds(6)[1]
    slice(1, 6, 4)
    """
    return [slice(number, count, FOLDS) for number in range(FOLDS)]


def predicted(clouds: Sequence[Cloud], frequencies: Frequencies) -> Complex:
    """Return φ at every frequency, by the cloud of its fold."""
    values = np.empty(len(frequencies), dtype=np.complex128)
    for fold, cloud in zip(folds(len(frequencies)), clouds, strict=True):
        values[fold] = cloud.characteristic(frequencies[fold])
    return values
