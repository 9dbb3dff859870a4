"""Bounds on a probability from a count of hits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def clopper_pearson(
    hits: int | NDArray[np.int64], runs: int, doubt: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper bounds on probabilities, each wrong with chance ≤ `doubt`.

    >>> low, high = clopper_pearson(50, 100, 0.025)
    >>> round(float(low), 4), round(float(high), 4)
    (0.3983, 0.6017)
    """
    from scipy.special import betainccinv, betaincinv

    misses = runs - np.asarray(hits)
    with np.errstate(invalid="ignore"):
        low = np.where(np.equal(hits, 0), 0.0, betaincinv(hits, misses + 1, doubt))
        high = np.where(np.equal(misses, 0), 1.0, betainccinv(np.add(hits, 1), misses, doubt))
    return low, high
