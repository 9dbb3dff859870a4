"""Fitting clouds to a part of a noisy table: least squares, from the stiffest to the loosest.

Each candidate starts where the one before ended. A ridge holds the mean near its start, a public
point, and the axes near each other: where frequencies tell too little of them, they stay there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize  # now: its threads are limited where fits are made

from dpkde.assisted.cloud import SCALES, Cloud, Complex, Floats, Frequencies, product

Singles = NDArray[np.float32]
Objective = Callable[[Floats], tuple[float, Floats]]

_FIRST_VARIANCES = (0.05, 0.2, 0.8, 3.2)
"""Where fits start, in units of 2 over the median ‖ω‖²."""
_LOG_VARIANCES = (-18.0, 6.0)
_LOG_AXES = (-8.0, 5.0)
_OPTIONS = {"maxiter": 150, "ftol": 1e-7, "gtol": 1e-2}
_STIFF, _LOOSE = 30.0, 3.0
"""Ridges on the mean, in units of the loss over the number of frequencies."""
_STIFF_AXES, _LOOSE_AXES, _FACTORS = 3.0, 0.5, 0.5


@dataclass(frozen=True, eq=False)
class Sample:
    """Some cells of a table: what a fit may see.

    Attributes
    ----------
    cells
        F, the noisy characteristic function, shape (n,).
    frequencies, squares
        ω and ω², shape (n, dim), in single precision: a fit needs no more, and moves less memory.
    noise
        The variance of the noise on a complex cell.
    """

    cells: Complex
    frequencies: Singles
    squares: Singles
    noise: float

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.cells)

    @classmethod
    def of(cls, cells: Complex, frequencies: Frequencies, noise: float) -> Sample:
        """Return what a fit may see of a table."""
        numbers = (frequencies.numbers * frequencies.unit).astype(np.float32)
        return cls(cells, numbers, np.square(numbers), noise)

    def part(self, chosen: NDArray[np.bool_]) -> Sample:
        """Return some of its cells."""
        return Sample(
            self.cells[chosen], self.frequencies[chosen], self.squares[chosen], self.noise
        )

    def seen_from(self, point: Floats) -> Sample:
        """Return the same with the origin at a point."""
        phases = product(self.frequencies, point.astype(np.float32))
        return replace(self, cells=self.cells * (np.cos(phases) - 1j * np.sin(phases)))

    def seen_from_best(self, starts: Floats) -> tuple[Floats, Sample]:
        """Return the point of which the table sees most, and the table seen from there."""
        views = [(start, self.seen_from(start)) for start in starts]
        return max(views, key=lambda pair: float(np.real(pair[1].cells).mean()))

    def expected(self, cloud: Cloud) -> Complex:
        """Return what a cloud would have in these cells."""
        return cloud.characteristic(Frequencies(self.frequencies, 1.0))

    def loss(self, cloud: Cloud) -> float:
        """Return the mean of |F − φ|²."""
        return float(np.mean(np.abs(self.cells - self.expected(cloud)) ** 2))


@dataclass(frozen=True)
class Ridges:
    """What holds a fit: on squares of the mean, of ln u, and of B; over the number of cells."""

    mean: float
    axes: float = 0.0
    factors: float = 0.0


@dataclass(frozen=True, eq=False)
class Candidate:
    """A cloud, and what held it when it was fitted."""

    cloud: Cloud
    ridges: Ridges


def candidates(sample: Sample, starts: Floats) -> dict[str, Candidate]:
    """Return the clouds about one point to choose from, by name.

    `starts` are public points, shape (n, dim), in bandwidth units: the one that the table sees most
    of is where every candidate begins.
    """
    start, view = sample.seen_from_best(starts)
    one, three = round_cloud(view, 1), round_cloud(view, SCALES)
    loss = view.loss(three)
    stiff, loose = Ridges(_STIFF * loss), Ridges(_LOOSE * loss)
    near = moved(view, three, stiff, loss)
    free = moved(view, near, loose, loss)
    floor = max(view.loss(free), sample.noise)
    stiff_axes = Ridges(_STIFF * loss, _STIFF_AXES * loss)
    loose_axes = Ridges(_LOOSE * floor, _LOOSE_AXES * floor)
    ones = np.ones(three.dim)
    found = {
        "one scale": (one, stiff),
        "three scales": (three, stiff),
        "near mean": (near, stiff),
        "free mean": (free, loose),
        "near axes": (moved(view, replace(near, axes=ones), stiff_axes, loss), stiff_axes),
        "free axes": (moved(view, replace(free, axes=ones), loose_axes, floor), loose_axes),
    }
    return {
        name: Candidate(replace(cloud, means=cloud.means + start), ridges)
        for name, (cloud, ridges) in found.items()
    }


def round_cloud(sample: Sample, scales: int) -> Cloud:
    """Return a cloud about zero, all axes alike: a fit to one number a frequency."""
    heights = np.real(sample.cells)
    spread = sample.squares.sum(axis=1, dtype=np.float64)
    unit = 2 / max(float(np.median(spread)), 1e-300)
    factor = sample.size / max(float(np.mean(np.abs(sample.cells) ** 2)), 1e-300)

    def objective(theta: Floats) -> tuple[float, Floats]:
        weights, variances, inside = scales_of(theta, scales)
        falls = np.exp(-0.5 * np.outer(variances, spread))
        rest = product(weights, falls) - heights
        by_weight = 2 * product(falls, rest) / sample.size
        by_variance = -product(falls, spread * rest) / sample.size * weights * variances * inside
        value = float(np.mean(rest * rest))
        return value, np.concatenate([weights * (by_weight - weights @ by_weight), by_variance])

    widths = np.geomspace(0.4, 2.5, scales) if scales > 1 else np.ones(1)
    ends = [
        descended(
            objective, np.concatenate([np.zeros(scales), np.log(first * unit * widths)]), factor
        )
        for first in _FIRST_VARIANCES
    ]
    weights, variances, _ = scales_of(min(ends, key=lambda end: end[0])[1], scales)
    return Cloud(weights, variances, np.zeros((1, sample.squares.shape[1])))


def moved(sample: Sample, cloud: Cloud, ridges: Ridges, loss: float) -> Cloud:
    """Return a cloud about one mean, set free with the axes and factors that it has."""
    scales, dim, size = len(cloud.weights), cloud.dim, sample.size
    with_axes, factors = cloud.axes is not None, cloud.factors
    rank = 0 if factors is None else factors.shape[1]
    start = np.concatenate(
        [
            np.log(cloud.weights + 1e-6),
            np.log(cloud.variances),
            cloud.means[0],
            np.empty(0) if cloud.axes is None else np.log(cloud.axes),
            np.empty(0) if factors is None else factors.ravel(),
        ]
    )
    places = np.cumsum([2 * scales, dim, dim * with_axes])
    plain_spread = sample.squares.sum(axis=1, dtype=np.float64)
    frequencies, squares = sample.frequencies, sample.squares

    def objective(theta: Floats) -> tuple[float, Floats]:
        weights, variances, inside = scales_of(theta, scales)
        _, mean, logs, directions = np.split(theta, places)
        bounded = np.clip(logs, *_LOG_AXES)
        axes, directions = np.exp(bounded), directions.reshape(dim, rank)
        spread = product(squares, axes.astype(np.float32)) if with_axes else plain_spread
        along = frequencies @ directions.astype(np.float32) if rank else None
        if along is not None:
            spread = spread + np.square(along).sum(axis=1)
        falls = np.exp(-0.5 * np.outer(variances, spread))
        phases = product(frequencies, mean.astype(np.float32))
        turns = np.cos(phases) + 1j * np.sin(phases)
        model = product(weights, falls) * turns
        rest = model - sample.cells
        value = float(np.mean(np.abs(rest) ** 2)) + ridges.mean / size * float(mean @ mean)
        inward = np.real(np.conj(rest) * turns)
        across = np.imag(np.conj(model) * rest)
        by_weight = 2 * product(falls, inward) / size
        by_variance = -product(falls, spread * inward) / size * weights * variances * inside
        by_mean = product(across.astype(np.float32), frequencies) * (2 / size)
        by_spread = (-product(weights * variances, falls) * inward / size).astype(np.float32)
        gradient = [
            weights * (by_weight - weights @ by_weight),
            by_variance,
            by_mean + 2 * ridges.mean / size * mean,
        ]
        if with_axes:
            value += ridges.axes / size * float(bounded @ bounded)
            by_axes = product(by_spread, squares) * axes
            gradient.append((by_axes + 2 * ridges.axes / size * bounded) * (logs == bounded))
        if along is not None:
            value += ridges.factors / size * float(np.sum(directions**2))
            by_factors = 2 * (frequencies.T @ (by_spread[:, np.newaxis] * along))
            gradient.append((by_factors + 2 * ridges.factors / size * directions).ravel())
        return value, np.concatenate(gradient)

    _, end = descended(objective, start, size / max(loss, 1e-300))
    weights, variances, _ = scales_of(end, scales)
    _, mean, logs, directions = np.split(end, places)
    return Cloud(
        weights,
        variances,
        mean[np.newaxis],
        np.exp(np.clip(logs, *_LOG_AXES)) if with_axes else None,
        directions.reshape(dim, rank) if rank else None,
    )


def stretched(sample: Sample, found: Candidate, start: Floats, rank: int) -> Candidate:
    """Return a cloud that varies along `rank` directions of its own, from one of fewer.

    New directions are those along which a little more variance lowers the loss most: the lowest
    eigenvectors of the loss's derivative by the covariance, Σ_j (∂L/∂spread_j)·ω_j ω_jᵀ. The ridge
    on B is one on the trace of BBᵀ.
    """
    view, cloud = sample.seen_from(start), found.cloud
    cloud = replace(cloud, means=cloud.means - start)
    loss = max(view.loss(cloud), sample.noise)
    expected = view.expected(cloud)
    size = np.abs(expected)
    inward = np.real(np.conj(expected - view.cells) * expected) / np.maximum(size, 1e-300)
    slopes = (-inward * size * float(cloud.weights @ cloud.variances)).astype(np.float32)
    curve = view.frequencies.T @ (slopes[:, np.newaxis] * view.frequencies)
    _, directions = np.linalg.eigh(curve.astype(np.float64))
    held = np.empty((cloud.dim, 0)) if cloud.factors is None else cloud.factors
    mean_axis = 1.0 if cloud.axes is None else float(cloud.axes.mean())
    more = directions[:, : rank - held.shape[1]] * np.sqrt(0.5 * mean_axis)
    wider = replace(cloud, factors=np.concatenate([held, more], axis=1))
    ridges = replace(found.ridges, factors=_FACTORS * loss)
    end = moved(view, wider, ridges, loss)
    return Candidate(replace(end, means=end.means + start), ridges)


def scales_of(theta: Floats, scales: int) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return weights, variances, and which variances are inside their limits."""
    logits, logs = theta[:scales], theta[scales : 2 * scales]
    weights = np.exp(logits - logits.max())
    bounded = np.clip(logs, *_LOG_VARIANCES)
    return weights / weights.sum(), np.exp(bounded), logs == bounded


def descended(objective: Objective, start: Floats, factor: float) -> tuple[float, Floats]:
    """Return the least value found and where; `factor` gives the tolerances their meaning."""

    def scaled(theta: Floats) -> tuple[float, Floats]:
        value, gradient = objective(theta)
        return value * factor, gradient * factor

    found = minimize(scaled, start, jac=True, method="L-BFGS-B", options=_OPTIONS)
    return float(found.fun), np.asarray(found.x)
