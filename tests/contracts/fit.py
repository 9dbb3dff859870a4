"""Goodness of fit with a stated false-alarm rate.

`deviance` is a G-statistic over bins of at least 40 expected counts; under the law it is close to
chi-squared. `FALSE_ALARM` is the rate at which a correct law is rejected. Every test that uses it
also shows its power: the same draws must reject the law with its scale 5% larger and 5% smaller.
With N draws and s the information a draw has on ln(scale) (about 1 for Laplace, 2 for Gaussian),
the statistic grows by N·s·0.05²; N is chosen so that this exceeds the threshold plus 5 of its
standard deviations, which leaves a miss below 10⁻⁶.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

FALSE_ALARM = 1e-9
Cdf = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""P(Z ≤ k + ½), at half-integers."""


def bins_of(values: NDArray[np.int64], count: int = 40) -> NDArray[np.float64]:
    """Half-integer edges at quantiles of the values."""
    cuts = np.quantile(values, np.linspace(0, 1, count + 1)[1:-1], method="nearest")
    return np.asarray(np.unique(cuts.astype(np.float64)) + 0.5)


def fits(values: NDArray[np.int64], cdf: Cdf, edges: NDArray[np.float64]) -> bool:
    """Tell whether integer draws fit a law, rejecting a correct one at rate FALSE_ALARM."""
    inner = np.concatenate([[0.0], cdf(edges), [1.0]])
    expected = np.maximum(np.diff(inner) * len(values), 0)
    placed = np.searchsorted(edges, values.astype(np.float64))
    observed = np.bincount(placed, minlength=len(edges) + 1).astype(np.float64)
    expected, observed = _merge(expected, observed)
    if len(expected) == 1:
        return bool(observed[0] == len(values))
    statistic = ((observed - expected) ** 2 / expected).sum()
    return bool(statistic <= chi2.isf(FALSE_ALARM, len(expected) - 1))


def same_law(left: NDArray[np.int64], right: NDArray[np.int64]) -> bool:
    """Tell whether two samples could share a law (two-sample chi-squared)."""
    edges = bins_of(np.concatenate([left, right]), 20)
    counts = [
        np.bincount(np.searchsorted(edges, part.astype(np.float64)), minlength=len(edges) + 1)
        for part in (left, right)
    ]
    pooled = (counts[0] + counts[1]).astype(np.float64)
    keep = pooled > 0
    share = len(left) / (len(left) + len(right))
    statistic = sum(
        ((part[keep] - pooled[keep] * s) ** 2 / (pooled[keep] * s)).sum()
        for part, s in ((counts[0], share), (counts[1], 1 - share))
    )
    return bool(statistic <= chi2.isf(FALSE_ALARM, max(int(keep.sum()) - 1, 1)))


def _merge(
    expected: NDArray[np.float64], observed: NDArray[np.float64], least: float = 40
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Join neighbouring bins until each expects at least `least` counts."""
    merged: list[list[float]] = [[0.0, 0.0]]
    for e, o in zip(expected.tolist(), observed.tolist(), strict=True):
        if merged[-1][0] >= least:
            merged.append([0.0, 0.0])
        merged[-1][0] += e
        merged[-1][1] += o
    if len(merged) > 1 and merged[-1][0] < least:
        last = merged.pop()
        merged[-1][0] += last[0]
        merged[-1][1] += last[1]
    table = np.array(merged)
    return table[:, 0], table[:, 1]
