"""What every proper density answers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpkde.densities.reflection import check_support, folded
from dpkde.errors import ParameterError
from dpkde.kernels import Points
from dpkde.numerics.numbers import is_whole
from dpkde.numerics.pool import mapped
from dpkde.space.domain import Box
from dpkde.space.frame import Frame
from dpkde.space.queries import places_of
from dpkde.tables.arrays import QueriesLike

Floats = NDArray[np.float64]

CHUNK_QUERIES = 4096
_MOST_NUMBERS = 1 << 31
_FAINT = 1e-250
"""Below it numbers lose digits, or terms, and logarithms are added instead."""


@dataclass(frozen=True, eq=False)
class Density(ABC):
    """A measure on the frame's space, smoothed by its kernel: not negative, of total mass one.

    Attributes
    ----------
    frame
        Kernel, domain and dimension.
    columns
        Names of the columns, if they were given.
    """

    frame: Frame
    columns: tuple[str, ...] | None
    caveat: ClassVar[str | None] = None
    """What anyone who uses it should know, in a line."""

    @abstractmethod
    def _kde(self, located: Points) -> Floats:
        """Return Σ w·k at coordinates."""

    @abstractmethod
    def _folded_kde(self, located: Points) -> Floats:
        """Return the same with all that lies beyond the bounds folded into them."""

    @abstractmethod
    def _draw(self, generator: np.random.Generator, count: int) -> Points:
        """Return coordinates of points of the measure, before the kernel moves them."""

    @abstractmethod
    def marginal(self, columns: Sequence[int]) -> Density:
        """Return the density of some columns, by their numbers, each once; in that order."""

    @property
    def dim(self) -> int:
        """Number of columns."""
        return self.frame.dim

    def _part(self, columns: Sequence[int]) -> tuple[Frame, tuple[str, ...] | None]:
        """Return the frame and the names of some columns; refuse where they are none by themselves.

        A kernel that is a product over the columns has the same smoothing on each, whatever the
        others are; no other kernel has.
        """
        kernel, kept = self.frame.kernel, list(columns)
        if not kernel.is_product or kernel.bandwidth.is_matrix:
            raise ParameterError(
                f"no marginal of this density is known: the {kernel.name} kernel with this "
                "bandwidth is no product over the columns"
            )
        domain, halves = self.frame.domain, self.frame.domain.halves(self.dim)
        if halves is not None:
            origin = domain.origin(self.dim)
            domain = Box(np.column_stack([origin - halves, origin + halves])[kept])
        names = None if self.columns is None else tuple(self.columns[column] for column in kept)
        return Frame(kernel.along(kept), domain, len(kept)), names

    @cached_property
    def _integral(self) -> float:
        return self.frame.kernel.written_integral(self.dim)

    def kde(self, queries: QueriesLike) -> Floats:
        """Return the denoised KDE at each query: the density times the kernel's integral."""
        return self._answered(queries, self._kde)

    def kde_on_grid(self, axes: Sequence[Floats]) -> Floats:
        """Return `kde` at all places of a grid, one array of values for each column.

        The same as place by place but for rounding, and faster where that can be.
        """
        meshed = np.meshgrid(*axes, indexing="ij")
        places = np.stack([mesh.reshape(-1) for mesh in meshed], axis=1)
        return self.kde(places).reshape([len(axis) for axis in axes])

    def density(self, queries: QueriesLike, *, support: str = "space") -> Floats:
        """Return the density at each query, by volume in the units of the columns.

        Parameters
        ----------
        queries
            As for `Release.kde`. A query that is not finite gets NaN.
        support
            ``"space"``: a density over all of space, which the kernel carries beyond the bounds.
            ``"bounds"``: over the box alone, what lies beyond being folded back at its faces; zero
            outside.
        """
        integral = self._integral
        if not check_support(support, self.frame):
            return self.kde(queries) / integral
        return self._answered(queries, self._within) / integral

    def _within(self, located: Points) -> Floats:
        halves = self.frame.halves()
        assert halves is not None
        outside = (np.abs(located) > halves * (1 + 1e-12)).any(axis=1)
        values = self._folded_kde(np.clip(located, -halves, halves))
        return np.where(outside, 0.0, values)

    def log_density(self, queries: QueriesLike, *, support: str = "space") -> Floats:
        """Return the logarithm of `density`: −∞ where that is zero.

        It is where nothing of the measure is within the kernel's reach. Over all of space the
        logarithm is finite where the density is below the least number, too: a Gaussian's a
        thousand standard deviations away. Within bounds it is then −∞.
        """
        if check_support(support, self.frame):
            with np.errstate(divide="ignore"):
                return np.log(self.density(queries, support=support))
        return self._answered(queries, self._log) - self.frame.kernel.log_integral(self.dim)

    def _log(self, located: Points) -> Floats:
        values = self._kde(located)
        faint = values < _FAINT
        logs = np.log(np.where(faint, 1.0, values))
        if faint.any():
            logs[faint] = self._log_kde(located[faint])
        return np.asarray(logs)

    def _log_kde(self, located: Points) -> Floats:
        """Return ln Σ w·k where that may be far below the numbers, at whatever cost."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._kde(located)))

    def sample(
        self, n: int, *, seed: int | None = None, support: str = "space", smoothed: bool = True
    ) -> Points:
        """Return n independent points of the density, shape (n, dim), exactly.

        Parameters
        ----------
        n
            How many.
        seed
            Of this randomness, which is public: the same seed gives the same points, None others
            each time.
        support
            ``"bounds"``: folded into the box, as `density` is.
        smoothed
            True: a point of the measure, moved by an offset that is drawn from the kernel. False:
            not moved, or by less than the sites are apart; nearer to the records, whose KDE the
            measure has, and shares of regions nearer to theirs; but `density` is another.
        """
        if not is_whole(n) or not 0 <= n * self.dim <= _MOST_NUMBERS:
            raise ParameterError(
                f"n must be a whole number of points, with at most 2^31 numbers in all, got {n!r}"
            )
        if seed is not None and not (is_whole(seed) and seed >= 0):
            raise ParameterError(f"seed must be a whole number, not negative, got {seed!r}")
        if not isinstance(smoothed, (bool, np.bool_)):
            raise ParameterError(f"smoothed must be True or False, got {smoothed!r}")
        within, count = check_support(support, self.frame), int(n)
        generator = np.random.default_rng(seed)
        coordinates = self._draw(generator, count)
        if smoothed:
            coordinates = coordinates + self.frame.kernel.draw(generator, count, self.dim)
        else:
            coordinates = coordinates + self._jitter(generator, count)
        points = self.frame.point_at(coordinates)
        return folded(points, self.frame) if within else points

    def _jitter(self, generator: np.random.Generator, count: int) -> Points:
        """Return offsets that hide where points of the measure lie, where that is on a lattice."""
        return np.zeros((count, self.dim))

    def standard_error(self, queries: QueriesLike) -> Floats:
        """Refuse: no error is known that covers.

        What is near zero was put there, and what is dense left as it was: the error depends on
        the data. `Release.standard_error` and `Release.interval` are those of the noisy answers.
        """
        raise ParameterError(
            "a denoised density has no standard error: how much was denoised depends on the data. "
            "Ask standard_error or interval of the release itself, whose answers are unbiased"
        )

    def _answered(self, queries: QueriesLike, function: Any) -> Floats:
        places = places_of(queries, self.frame, self.columns)
        finite = np.asarray(np.isfinite(places).all(axis=1))
        rows = np.where(finite[:, np.newaxis], places, 0.0)
        starts = range(0, len(rows), CHUNK_QUERIES)
        chunks = (self.frame.locate(rows[start : start + CHUNK_QUERIES]) for start in starts)
        results = mapped(function, chunks) if len(rows) > CHUNK_QUERIES else map(function, chunks)
        answers = np.concatenate([np.empty(0), *results])
        answers[~finite] = math.nan
        return answers
