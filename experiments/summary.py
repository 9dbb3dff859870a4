"""Numbers out of rows: means, spreads, best parameters, optima and fitted exponents."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.cache import Row

RESAMPLES = 400
SLACK = 0.1
Find = Callable[[NDArray[np.float64], NDArray[np.float64]], float]


@dataclass(frozen=True)
class Curve:
    """Errors over a parameter, at one data set, mechanism and ε.

    Attributes
    ----------
    parameters
        Sorted, shape (n_parameters,).
    errors
        Shape (n_parameters, n_trials).
    seconds
        Median curator time at each parameter.
    """

    parameters: NDArray[np.float64]
    errors: NDArray[np.float64]
    seconds: NDArray[np.float64]

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean error at each parameter."""
        return np.asarray(self.errors.mean(axis=1))

    @property
    def best(self) -> int:
        """Which parameter has the least mean error."""
        return int(np.argmin(self.means))


def column(rows: Iterable[Row], name: str) -> list[str]:
    """Return the values of a column, each once, in order of appearance."""
    return list(dict.fromkeys(row[name] for row in rows))


def curves(rows: Iterable[Row]) -> dict[tuple[str, str, float], Curve]:
    """Return a curve for each data set, mechanism and ε."""
    groups: dict[tuple[str, str, float], dict[float, dict[int, Row]]] = defaultdict(dict)
    for row in rows:
        key = (row["data"], row["mechanism"], float(row["epsilon"]))
        parameter = row["parameter"]
        parameter = 0.0 if parameter is None or math.isnan(parameter) else float(parameter)
        groups[key].setdefault(parameter, {})[row["trial"]] = row
    by_key = {}
    for key, group in groups.items():
        parameters = sorted(group)
        trials = sorted(set.intersection(*(set(group[p]) for p in parameters)))
        errors = [[group[p][t]["error"] for t in trials] for p in parameters]
        by_key[key] = Curve(
            np.array(parameters),
            np.array(errors),
            np.array([_median([r["seconds"] for r in group[p].values()]) for p in parameters]),
        )
    return by_key


def _median(values: Sequence[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return float(np.median(finite)) if finite else math.nan


def optimum(parameters: NDArray[np.float64], errors: NDArray[np.float64]) -> float:
    """Return where the error is least, between parameters: a parabola through the lowest three.

    In logarithms of both. At an end of the grid it is the end.
    """
    lowest = int(np.argmin(errors))
    if not 0 < lowest < len(parameters) - 1:
        return float(parameters[lowest])
    around = slice(lowest - 1, lowest + 2)
    square, slope, _ = np.polyfit(np.log(parameters[around]), np.log(errors[around]), 2)
    return float(np.exp(-slope / (2 * square)))


def enough(parameters: NDArray[np.float64], errors: NDArray[np.float64]) -> float:
    """Return the smallest parameter whose error is within a tenth of the least.

    Where the curve is flat past its optimum the lowest point is a matter of chance; this is not.
    """
    return float(parameters[int(np.argmax(errors <= (1 + SLACK) * errors.min()))])


@dataclass(frozen=True)
class Fit:
    """A fitted slope with a 95 % interval."""

    slope: float
    low: float
    high: float

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.slope:.2f}"
        return f"{self.slope:.2f} [{self.low:.2f}, {self.high:.2f}]"


def fitted(x: Sequence[float], y: Sequence[float]) -> Fit:
    """Return the least squares slope of y over x, its interval by Student's t; NaN for too few."""
    from scipy import stats

    across, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    keep = np.isfinite(across) & np.isfinite(up)
    across, up = across[keep], up[keep]
    if len(across) < 2 or np.ptp(across) == 0:
        return Fit(math.nan, math.nan, math.nan)
    slope, offset = np.polyfit(across, up, 1)
    if len(across) == 2:
        return Fit(float(slope), math.nan, math.nan)
    left = up - slope * across - offset
    error = math.sqrt(left @ left / (len(across) - 2) / ((across - across.mean()) ** 2).sum())
    reach = float(stats.t.ppf(0.975, len(across) - 2)) * error
    return Fit(float(slope), float(slope - reach), float(slope + reach))


def moving_optimum(
    of_one: dict[float, Curve], *, in_logarithms: bool, find: Find = optimum
) -> tuple[Fit, list[tuple[float, float]]]:
    """Return how the best parameter grows with ln ε, with an interval over trials; and the optima.

    The interval is a bootstrap: trials are drawn again with replacement, optima and slope found
    anew. Budgets whose optimum is at an end of the grid are left out. `in_logarithms`: slope of
    ln(parameter), an exponent; else of the parameter itself. `find` says what counts as best.
    """
    inside = {}
    for epsilon, curve in sorted(of_one.items()):
        at = find(curve.parameters, curve.means)
        if math.isfinite(epsilon) and curve.parameters[0] < at < curve.parameters[-1]:
            inside[epsilon] = curve
    optima = [(e, find(c.parameters, c.means)) for e, c in inside.items()]
    if len(inside) < 2:
        return Fit(math.nan, math.nan, math.nan), optima

    def slope(places: Sequence[float]) -> float:
        values = np.log(places) if in_logarithms else np.asarray(places)
        return float(np.polyfit(np.log(list(inside)), values, 1)[0])

    generator = np.random.default_rng(0)
    drawn = []
    for _ in range(RESAMPLES):
        resampled = []
        for curve in inside.values():
            count = curve.errors.shape[1]
            means = curve.errors[:, generator.integers(0, count, count)].mean(axis=1)
            resampled.append(find(curve.parameters, means))
        drawn.append(slope(resampled))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Fit(slope([value for _, value in optima]), float(low), float(high)), optima
