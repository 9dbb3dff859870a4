"""Log densities of releases, finite wherever the kernel reaches.

Of the proper density of a release, where it has one (`Release.denoise`). Other tables, such as
those of hashing, or of random features in which no model was found, answer below zero where they
say nothing. There the score is the logarithm of

    E[d | d̂] = t + σ·φ(t/σ)/Φ(t/σ),    t = d̂ − σ²/m,

as in `dpkde.Classifier`: what is to be expected of the density d, given an answer d̂ with noise of
spread σ. It is positive everywhere and about d̂ where that is above the noise, but its integral over
space is not one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpkde.densities.base import Density
from dpkde.errors import ParameterError
from dpkde.release.classifier import truncated_mean, typical
from dpkde.release.release import Release

Floats = NDArray[np.float64]


def proper(release: Release) -> Density | None:
    """Return the proper density of a release; None where it has none."""
    try:
        return release.denoise()
    except ParameterError:
        return None


def log_densities(release: Release, places: Floats) -> Floats:
    """Return the log density at each place, of shape (n_places, dim)."""
    density = proper(release)
    if density is not None:
        return density.log_density(places)
    estimates, errors = release.kde(places, clip=False), release.average_error(places)
    # Too far out for an answer, or for any cell of the table: all is as it is where nothing is.
    lost = np.isnan(estimates) | ((errors == 0) & (estimates <= 0))
    if lost.any():
        estimates[lost] = 0.0
        errors[lost] = release.average_error(release.domain.origin(release.dim)[np.newaxis])
    values = truncated_mean(estimates, errors, typical(release))
    with np.errstate(divide="ignore"):
        return np.log(values) - release.kernel.log_integral(release.dim)
