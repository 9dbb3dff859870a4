"""Several clouds: found one at a time, where the residual of those before has its highest peak.

Clusters a few bandwidths apart are seen from each other. The KDE of what a model misses is known
from the table, with noise: from points around the start and around what was found it is climbed,
the highest peak becomes a part, and all parts are fitted anew.
"""

from __future__ import annotations

import numpy as np

from dpkde.assisted.cloud import Cloud, Complex, Floats, product
from dpkde.assisted.fitting import Sample, Singles, descended, scales_of

_CLIMBERS, _FEW_CLIMBERS = 64, 16
_FEW_AXES = 32
"""Up to which many climbers pay: in more dimensions they meet nobody."""
_STEPS = 40
_DISTANCES = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0)
"""How far climbers set out from what is known, in bandwidths."""
_VARIANCES = np.geomspace(0.02, 4.0, 8)
"""What a new part's variance may be, over the number of axes."""
_WEIGHTS = (0.02, 0.9)


def one_more(sample: Sample, cloud: Cloud | None, start: Floats, seed: int) -> Cloud:
    """Return a cloud of one more part, all of its parts fitted; each with its own mean.

    `seed` steers where climbers set out: public, like all that is done here.
    """
    generator = np.random.default_rng(seed)
    dim, spread = len(start), sample.squares.sum(axis=1, dtype=np.float64)
    rest = sample.cells if cloud is None else sample.cells - sample.expected(cloud)
    peak = _highest(sample.frequencies, rest, _set_out(cloud, start, generator))
    phases = product(sample.frequencies, peak.astype(np.float32))
    heights = np.real(rest) * np.cos(phases) + np.imag(rest) * np.sin(phases)
    falls = np.exp(-0.5 * np.outer(_VARIANCES / dim, spread))
    match, size = product(falls, heights), np.square(falls).sum(axis=1)
    best = int(np.argmax(np.maximum(match, 0.0) ** 2 / size))
    weight, variance = float(np.clip(match[best] / size[best], *_WEIGHTS)), _VARIANCES[best] / dim
    if cloud is None:
        first = Cloud(np.ones(1), np.array([variance]), peak[np.newaxis])
        return _fitted(sample, first, float(np.mean(np.abs(sample.cells) ** 2)))
    more = Cloud(
        np.append(cloud.weights * (1 - weight), weight),
        np.append(cloud.variances, variance),
        np.concatenate([cloud.means, peak[np.newaxis]]),
    )
    return _fitted(sample, more, float(np.mean(np.abs(rest) ** 2)))


def _set_out(cloud: Cloud | None, start: Floats, generator: np.random.Generator) -> Floats:
    """Return where climbers begin: around the start, and half of them around parts."""
    count = _CLIMBERS if len(start) <= _FEW_AXES else _FEW_CLIMBERS
    points = generator.standard_normal((count, len(start)))
    lengths = np.resize(_DISTANCES, count) / np.sqrt(np.square(points).sum(axis=1))
    points *= lengths[:, np.newaxis]
    centers = np.repeat(start[np.newaxis], count, axis=0)
    if cloud is not None:
        half = count // 2
        chosen = generator.choice(len(cloud.weights), half, p=cloud.weights / cloud.weights.sum())
        centers[half:] = cloud.means[chosen]
    return np.asarray(centers + points)


def _highest(frequencies: Singles, rest: Complex, points: Floats) -> Floats:
    """Return the highest peak of mean Re e^{−iω·y}·rest that some climbers reach.

    Steps along the gradient, longer after one that climbed and shorter after one that did not.
    """
    real, imaginary = rest.real.astype(np.float32), rest.imag.astype(np.float32)

    def seen(at: Singles) -> tuple[Singles, Singles]:
        phases = at @ frequencies.T
        cosines, sines = np.cos(phases), np.sin(phases)
        return (real * cosines + imaginary * sines).mean(axis=1), imaginary * cosines - real * sines

    places = points.astype(np.float32)
    lengths = np.full(len(places), 0.4, dtype=np.float32)
    heights, slopes = seen(places)
    for _ in range(_STEPS):
        ways = slopes @ frequencies
        ways /= np.sqrt(np.square(ways).sum(axis=1, keepdims=True)) + np.float32(1e-20)
        tried = places + lengths[:, np.newaxis] * ways
        new_heights, new_slopes = seen(tried)
        higher = new_heights > heights
        places[higher], slopes[higher] = tried[higher], new_slopes[higher]
        heights = np.where(higher, new_heights, heights)
        lengths *= np.where(higher, np.float32(1.3), np.float32(0.4))
    return np.asarray(places[int(np.argmax(heights))], dtype=np.float64)


def _fitted(sample: Sample, cloud: Cloud, loss: float) -> Cloud:
    """Return the cloud with weights, variances and means of all its parts fitted."""
    parts, dim, size = len(cloud.weights), cloud.dim, sample.size
    spread = sample.squares.sum(axis=1, dtype=np.float64)
    start = np.concatenate(
        [np.log(cloud.weights + 1e-6), np.log(cloud.variances), cloud.means.ravel()]
    )

    def objective(theta: Floats) -> tuple[float, Floats]:
        weights, variances, inside = scales_of(theta, parts)
        means = theta[2 * parts :].reshape(parts, dim)
        phases = np.array([product(sample.frequencies, m.astype(np.float32)) for m in means])
        falls = np.exp(-0.5 * np.outer(variances, spread))
        models = falls * (np.cos(phases) + 1j * np.sin(phases))
        rest = product(weights, models) - sample.cells
        inward, across = np.real(np.conj(rest) * models), np.imag(np.conj(models) * rest)
        by_weight = 2 * inward.mean(axis=1)
        by_variance = -(inward * spread).mean(axis=1) * weights * variances * inside
        by_mean = np.array(
            [product(row.astype(np.float32), sample.frequencies) for row in across]
        ) * (2 / size * weights[:, np.newaxis])
        gradient = [weights * (by_weight - weights @ by_weight), by_variance, by_mean.ravel()]
        return float(np.mean(np.abs(rest) ** 2)), np.concatenate(gradient)

    _, end = descended(objective, start, size / max(loss, 1e-300))
    weights, variances, _ = scales_of(end, parts)
    return Cloud(weights, variances, end[2 * parts :].reshape(parts, dim))
