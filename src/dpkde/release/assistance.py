"""Assisted answers of a release: a fitted model, and the Fourier estimate of what it misses.

With m the model's KDE (the mean over folds of the clouds' KDEs) and t_j what frequency j says of
the rest, ``Re e^{−iω_j·y}(F_j − φ_m(ω_j))``:

    U(y) = m(y) + mean t,    answer(y) = U(y) − clip((1 − λ)·mean t, ±c·se),    se² = Var(t)/D.

U is unbiased whatever the model, since the cells of a fold are compared with a cloud that was
fitted without them. `interval` and the errors of single queries are those of U; the answer itself
is nearer to the truth on average, and no query's error is much larger (``assisted/method.md``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.assisted.cloud import SCALES, Cloud, Frequencies
from dpkde.assisted.folds import FOLDS, predicted
from dpkde.errors import ParameterError
from dpkde.families.fourier.family import FourierPair
from dpkde.families.fourier.reweighted import ReweightedPair
from dpkde.kernels import Points
from dpkde.release.parts import FittedModel, NoisyMean
from dpkde.space.domain import Box

if TYPE_CHECKING:
    from dpkde.kernels.blur import Blur
    from dpkde.release.answering import Answering
    from dpkde.release.release import Release
    from dpkde.release.views import View

Floats = NDArray[np.float64]

NO_MODEL = FittedModel("none", 0.0, 1.0, 0.0, 0.0)
_FARTHEST_START = 1 << 12
"""Starts further from the center than this many bandwidths are not tried."""


class Look(NamedTuple):
    """What model and frequencies say at some queries."""

    bases: Floats
    """The KDEs of the folds' clouds, shape (folds, n_queries)."""
    rest: Floats
    """The estimate of what they miss."""
    error: Floats
    """Its standard error."""

    @property
    def unbiased(self) -> Floats:
        """U."""
        return np.asarray(self.bases.mean(axis=0) + self.rest)


@dataclass(frozen=True, eq=False)
class Assistance:
    """A model with clouds, and the release whose table it was fitted to."""

    release: Release
    model: FittedModel
    blur: Blur

    @property
    def pair(self) -> FourierPair | ReweightedPair:
        """The frequencies."""
        pair = self.release.plan.pair
        assert isinstance(pair, FourierPair)  # as the part has checked
        return pair

    @cached_property
    def clouds(self) -> tuple[Cloud, ...]:
        """One for each fold."""
        model = self.model
        assert model.weights is not None
        assert model.variances is not None
        assert model.means is not None
        axes = [None] * FOLDS if model.axes is None else list(model.axes)
        factors = [None] * FOLDS if model.factors is None else list(model.factors)
        rows = zip(model.weights, model.variances, model.means, axes, factors, strict=True)
        return tuple(Cloud(*row) for row in rows)

    @cached_property
    def _kdes(self) -> list[Callable[[Floats], Floats]]:
        return [cloud.seen_by(self.blur) for cloud in self.clouds]

    @cached_property
    def residual(self) -> Floats:
        """The table less what the model expects of it, in the table's units."""
        expected = predicted(self.clouds, _frequencies(self.release))
        parts = np.concatenate([expected.real, expected.imag])
        return np.asarray(self.release.table - parts * _scale(self.release))

    def look(self, chunk: Points, groups: int = 1) -> Look:
        """Return what is known at queries. Costs one pass over the frequencies."""
        located = self.pair.frame.locate(chunk)
        bases = np.array([kde(located) for kde in self._kdes])
        rows = float(self.release.rate) * self.release.count
        mean, square = self.pair.means(chunk, self.residual).T / np.array([[rows], [rows**2]])
        error = np.sqrt(np.maximum(square - mean**2, 0.0) / self.pair.count)
        if groups > 1:
            mean = self.pair.respond(chunk, self.residual, groups) / rows
        return Look(bases, mean, error)

    def answers(self, chunk: Points, groups: int = 1) -> Floats:
        """Return the KDE: U, less some of the correction where that is mostly noise."""
        look = self.look(chunk, groups)
        return np.asarray(look.unbiased - self._moved(look))

    def average_variance(self, chunk: Points) -> Floats:
        """Return the mean square error to expect of `answers`, on average over queries.

        The smaller of two: that of U; and what is kept of the correction's, with the squares of
        what folds differ by and of what the model misses of a typical value.
        """
        look = self.look(chunk)
        moved = self._moved(look)
        small = np.abs(look.rest) < 1e-15
        dropped = np.where(small, 1 - self.model.kept, moved / np.where(small, 1.0, look.rest))
        apart = ((look.bases - look.bases.mean(axis=0)) ** 2).sum(axis=0) * (FOLDS - 1) / FOLDS
        mixed = ((1 - dropped) * look.error) ** 2 + moved**2 / 4
        mixed += dropped**2 * (apart + self.model.doubt**2)
        return np.minimum(look.error**2, mixed)

    def _moved(self, look: Look) -> Floats:
        """Return by how much answers are moved from U towards the model."""
        limit = self.model.limit * look.error
        return np.clip((1 - self.model.kept) * look.rest, -limit, limit)


def assistance(release: Answering, assisted: bool | None, groups: int = 1) -> Assistance | None:
    """Return what helps to answer, or None for plain answers.

    `assisted` None: yes, unless the release has a promise, which is kept by plain answers, or a
    median over groups is asked for.
    """
    if assisted is not None and not isinstance(assisted, (bool, np.bool_)):
        raise ParameterError(f"assisted must be True, False or None, got {assisted!r}")
    wanted = release.promise is None and groups == 1 if assisted is None else assisted
    return release._assistance if wanted else None


def of_model(release: Release, model: FittedModel | None) -> Assistance | None:
    """Return the assistance of a model that has clouds."""
    if model is None or model.kind == "none":
        return None
    blur = release.kernel.blur(release.dim)
    return None if blur is None else Assistance(release, model, blur)


@dataclass(frozen=True, eq=False)
class Borrowed(Assistance):
    """The model of a release, for a view of its frequencies with another kernel.

    How much of a correction is noise was judged for the kernel that was published: here all of it
    is kept, and answers are U.
    """

    view: View
    ratios: Floats
    """The published bandwidth over the view's, axis by axis."""

    @property
    def pair(self) -> FourierPair | ReweightedPair:
        """The weighted frequencies."""
        pair = self.view.plan.pair
        assert isinstance(pair, ReweightedPair)
        return pair

    @cached_property
    def _kdes(self) -> list[Callable[[Floats], Floats]]:
        return [cloud.scaled(self.ratios).seen_by(self.blur) for cloud in self.clouds]


def of_view(view: View) -> Assistance | None:
    """Return the assistance of a view: the release's own, with its model seen by another kernel."""
    release, frame = view.release, view.plan.frame
    if view.plan.pair is release.plan.pair:
        return release._assistance
    if not isinstance(view.plan.pair, ReweightedPair):
        return None
    blur = frame.kernel.blur(frame.dim)
    ratios = release.kernel.bandwidth.ratios(frame.kernel.bandwidth, frame.dim)
    if blur is None or ratios is None:
        return None
    model = release.model
    if model is None or model.weights is None:
        return None
    stretched = model.axes is not None or np.ptp(ratios) > 0
    if stretched and not blur.takes_axes(frame.dim, model.weights.shape[1]):
        return None
    if model.factors is not None and not blur.takes_factors:
        return None
    return Borrowed(release, replace(model, kept=1.0, limit=0.0), blur, view, ratios)


def can_be_fitted(release: Release) -> bool:
    """Tell whether a model may be tried: Fourier pairs, of a kernel that averages over clouds."""
    return release.plan.layout.can_be_modelled


def fitted(release: Release) -> FittedModel | None:
    """Return the model of a release, from its noisy table and public numbers; None without one.

    Costs no privacy, and some seconds where there are thousands of frequencies and columns. It
    never raises: where a fit fails, answers are plain.
    """
    if not can_be_fitted(release):
        return None
    from dpkde.assisted.crossfit import fit

    law, rate = release.law("table"), float(release.rate)
    assert law is not None
    cosines, sines = release.table.reshape(2, -1) / _scale(release)
    # A sample of rate q adds the variance (1 − q)/(qn) of its own to a cell.
    noise = 2 * law.variance / _scale(release) ** 2 + (1 - rate) / (rate * release.count)
    blur = release.kernel.blur(release.dim)
    assert blur is not None
    try:
        with np.errstate(all="ignore"):
            found = fit(
                cosines + 1j * sines,
                _frequencies(release),
                noise,
                _starts(release),
                takes_factors=blur.takes_factors,
                takes_axes=blur.takes_axes(release.dim, SCALES),
            )
        stacked = {
            name: np.array([getattr(cloud, name) for cloud in found.clouds])
            for name in ("weights", "variances", "means", "axes", "factors")
            if found.clouds and getattr(found.clouds[0], name) is not None
        }
        doubt = min(found.doubt, 1.0)
        return FittedModel(found.kind, found.share, found.kept, found.limit, doubt, **stacked)
    except Exception:
        # Noise can lead a fit to numbers that no file may hold, and a machine can be short of
        # memory or threads. The budget is spent: plain answers are better than none.
        return NO_MODEL


def _scale(release: Release) -> float:
    """Return what a cell of the table would be if every record turned it fully."""
    return float(release.rate) * release.count * 2.0**release.plan.bits


def _frequencies(release: Release) -> Frequencies:
    pair = release.plan.pair
    assert isinstance(pair, FourierPair)  # as the part has checked
    return Frequencies(pair.frequencies, pair.unit)


def _starts(release: Release) -> Floats:
    """Return public points where a cloud may lie, in bandwidth units.

    The center of the bounds, two corners and zero: tables of counts lie near one, vectors around
    another. And the noisy mean, where one was paid for.
    """
    frame, paid = release.plan.frame, release.parts.of(NoisyMean)
    points = [frame.domain.origin(frame.dim), np.zeros(frame.dim)]
    if isinstance(frame.domain, Box):
        points += list(frame.domain.corners)
    located = np.unique(frame.locate(np.array(points)), axis=0)
    near = np.sqrt(np.square(located).sum(axis=1)) <= _FARTHEST_START
    halves = frame.halves()
    if halves is not None:
        near &= (np.abs(located) <= halves * (1 + 1e-9)).all(axis=1)
    near |= ~located.any(axis=1)  # the center always counts
    starts = located[near]
    return starts if paid is None else np.concatenate([starts, paid.mean[np.newaxis]])
