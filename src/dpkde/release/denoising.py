"""Proper densities of releases: which one a release has, and how a sample compares with it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpkde.densities.base import Density
from dpkde.densities.clouds import CloudDensity
from dpkde.densities.fitting import fitted
from dpkde.densities.lattice import LatticeDensity
from dpkde.densities.report import SampleReport
from dpkde.densities.survey import SiteAxis, Survey
from dpkde.errors import ParameterError
from dpkde.kernels.base import graded
from dpkde.numerics.numbers import is_whole
from dpkde.privacy.laws.quantiles import Weights, half_widths
from dpkde.release.answers import deviation
from dpkde.release.assistance import assistance
from dpkde.space.domain import Box
from dpkde.space.frame import Frame
from dpkde.space.queries import places_of
from dpkde.tables.arrays import QueriesLike

if TYPE_CHECKING:
    from dpkde.release.answering import Answering

_FALSE_ALARM = 0.05
"""How often pure noise may have a certain site anywhere."""
_LEAST_POINTS = 100
"""Of fewer, chance cannot be told from the sample itself."""
_AT_ONCE = 1 << 16
"""Sites whose coordinates are in memory at a time."""


def denoised(release: Answering) -> Density:
    """Return the proper density of a release, or say why it has none."""
    survey = release.plan.pair.survey
    if survey is not None:
        return _on_lattice(release, survey)
    helper = assistance(release, True)
    if helper is not None:
        return CloudDensity(release.plan.frame, release.columns, helper.clouds, helper.blur)
    name = release.family.name
    if release.plan.layout.can_be_modelled:
        raise ParameterError(
            "no model was found in this Fourier table that is better than none, and without one "
            "it has no proper density: ask kde, or publish with family='spline'"
        )
    raise ParameterError(
        f"a {name} table of this kernel has no proper density: its answers go below zero, and "
        "nothing in it could be the weights of records. Ask kde, or publish with family='spline' "
        "where columns are few, or 'fourier' with a kernel that a model can be fitted for"
    )


def _on_lattice(release: Answering, survey: Survey) -> LatticeDensity:
    """Return the density of a table that can be read at sites."""
    frame, axes = release.plan.frame, survey.axes
    kernel = frame.kernel.shape
    if (kernel.profile(graded(min(kernel.profile_reach(1e-9), 1e3))) < 0).any():
        raise ParameterError(
            f"the {kernel.name} kernel takes values below zero, so no KDE is a proper density"
        )
    # The count by which answers are divided, where a sample of the records was taken.
    rows = float(release.rate) * release.count
    table, noise = release.table / rows, deviation(release, "table") / rows
    inside = _inside(frame, axes)
    certain = _certain(release, survey)
    weights = fitted(kernel, axes, survey.field(table), noise * survey.gain, inside, certain)
    strips = survey.strips(table, weights, noise)
    return LatticeDensity(frame, release.columns, axes, strips, weights)


def _inside(frame: Frame, axes: tuple[SiteAxis, ...]) -> NDArray[np.bool_]:
    """Return which sites are in the domain, or within half a pitch of it.

    All of them in a box; balls, and boxes that a matrix bandwidth turns, leave some out.
    """
    shape = tuple(axis.count for axis in axes)
    inside = np.ones(shape, dtype=np.bool_)
    if isinstance(frame.domain, Box) and not frame.kernel.bandwidth.is_matrix:
        return inside
    slack = max((axis.pitch for axis in axes), default=0.0) / 2
    for start in range(0, inside.size, _AT_ONCE):
        numbers = np.arange(start, min(start + _AT_ONCE, inside.size))
        coordinates = np.zeros((len(numbers), frame.dim))
        for axis, number in zip(axes, np.unravel_index(numbers, shape), strict=True):
            coordinates[:, axis.column] = axis.places[number]
        inside.reshape(-1)[numbers] = frame.beyond(coordinates) <= slack
    return inside


def _certain(release: Answering, survey: Survey) -> float:
    """Return how many standard errors noise exceeds at some site in one table of twenty at most.

    By the exact law of the noise where its tails are heaviest, and as many places as cells.
    """
    law = release.law("table")
    assert law is not None
    weights = Weights(survey.heaviest[np.newaxis], np.ones(len(survey.heaviest)))
    width = half_widths(law, weights, 1 - 2 * _FALSE_ALARM / release.table.size)
    return float(width[0]) / math.sqrt(law.variance)


def compared(release: Answering, points: QueriesLike, most: int) -> SampleReport:
    """Return how the KDE of a sample compares with the release's, at some points of the sample."""
    rows = places_of(points, release.plan.frame, release.columns)
    if not is_whole(most) or most < 1:
        raise ParameterError(f"most must be a whole number of points, at least 1, got {most!r}")
    if len(rows) < _LEAST_POINTS or not np.isfinite(rows).all():
        raise ParameterError(f"a report needs at least {_LEAST_POINTS} points, of finite numbers")
    queries = rows[: int(most)]
    noise = np.hypot(release.standard_error(queries), release.sampling_error(queries))
    return SampleReport.of(release.denoise(), rows, queries, release.kde(queries), noise)
