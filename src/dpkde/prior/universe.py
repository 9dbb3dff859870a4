"""The universe: a public grid over the box that synthetic points are taken from.

SmallDB and multiplicative weights need a finite universe. A grid of pitch h (in bandwidth units)
has a point within h√d/2 of every point of the box, and the kernel is L-Lipschitz, so that moving
every record there changes no KDE value by more than α for h = 2α/(L√d). For the Gaussian
L = √(2/e) = 0.858. (The paper's pitch α/(4Φ√d) is finer by a factor of about 9Φ than it has to be.)

A grid has (width/h)^d points, and these mechanisms spend at least that much time: sizes are
predicted from public numbers, and what will not fit is refused before any record is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpkde.errors import ParameterError
from dpkde.kernels import Points
from dpkde.numerics.numbers import is_real, is_whole
from dpkde.prior.placed import mesh
from dpkde.space.frame import Frame

MOST_OPTIONS = 20_000_000
MOST_OPERATIONS = 10**10
MOST_ENTRIES = 50_000_000
"""Most entries of the table of kernel values between universe and queries: 400 MB."""
BEYOND = 10**100
"""Where the size of a universe stops being counted."""
_PER_SECOND = 10**9


class Cost(NamedTuple):
    """What a mechanism over a universe will take, from public numbers."""

    mechanism: str
    universe: int
    queries: int
    options: int
    kind: str
    """What the options are: data sets to choose among, or rounds."""
    operations: int

    @property
    def entries(self) -> int:
        """Kernel values between universe and queries."""
        return self.universe * self.queries

    @property
    def memory(self) -> int:
        """Bytes: the table of kernel values, and one loss per option."""
        return 8 * (self.entries + self.options)

    @property
    def seconds(self) -> int:
        """At 10⁹ operations per second, rounded up; numbers here may be beyond any float."""
        return -(-self.operations // _PER_SECOND)

    def check(self) -> None:
        """Raise `ParameterError` with the cost where it is too large."""
        if (
            self.options > MOST_OPTIONS
            or self.operations > MOST_OPERATIONS
            or self.entries > MOST_ENTRIES
        ):
            raise ParameterError(
                f"{self}: that is too much. Use a larger alpha, fewer points_per_axis, "
                "queries_sampled, for SmallDB a smaller size, or dpkde.publish, whose cost is "
                "linear"
            )

    def __str__(self) -> str:
        return (
            f"{self.mechanism} over a universe of {_short(self.universe)} points and "
            f"{_short(self.queries)} queries would go through {_short(self.options)} {self.kind} "
            f"in {_short(self.operations)} operations, some {_short(self.seconds)} s and "
            f"{_short(-(-self.memory // 10**6))} MB"
        )


def _short(value: int) -> str:
    """Write a whole number of any size.

    >>> _short(12345), _short(10**400)
    ('12345', '1.0e400')
    """
    if value < 10**6:
        return str(value)
    log = math.log10(value)
    return f"{math.floor(10 ** (log % 1 + 1)) / 10}e{math.floor(log)}"


@dataclass(frozen=True, eq=False)
class Universe:
    """A public grid of points, one in the middle of every cell of the box.

    Attributes
    ----------
    points
        Shape (size, dim).
    shape
        How many points each axis has.
    rounding
        By how much a kernel value changes at most where a record of the box moves to its nearest
        point; None where no bound is known.
    """

    points: Points
    shape: tuple[int, ...]
    rounding: float | None

    @property
    def size(self) -> int:
        """How many points there are."""
        return math.prod(self.shape)

    def sample(self, count: int | None, seed: int) -> Points:
        """Return the points to ask at: all of them, or so many drawn in public."""
        if count is None or count >= self.size:
            return self.points
        generator = np.random.default_rng(seed)
        return self.points[np.sort(generator.choice(self.size, count, replace=False))]

    @classmethod
    def over(
        cls, frame: Frame, *, alpha: float | None = None, points_per_axis: int | None = None
    ) -> Universe:
        """Return the grid over a frame's box. Check its cost first: it is built here."""
        shape = grid_shape(frame, alpha=alpha, points_per_axis=points_per_axis)
        center, halves = frame.domain.origin(frame.dim), frame.domain.halves(frame.dim)
        assert halves is not None
        axes = [
            center[k] + halves[k] * (2 * np.arange(count) + 1 - count) / count
            for k, count in enumerate(shape)
        ]
        points = mesh(axes)
        points.setflags(write=False)
        speed, widths = frame.kernel.lipschitz(frame.dim), frame.halves()
        if not math.isfinite(speed) or widths is None or frame.kernel.bandwidth.is_matrix:
            return cls(points, shape, None)
        return cls(points, shape, speed * math.hypot(*(widths / np.array(shape)).tolist()))


def grid_shape(
    frame: Frame, *, alpha: float | None = None, points_per_axis: int | None = None
) -> tuple[int, ...]:
    """Return how many points each axis of the grid has; nothing is built."""
    halves = frame.halves()
    if frame.kernel.home != "space" or halves is None:
        raise ParameterError("a universe needs bounds in space, such as bounds=[(0, 1), (-5, 5)]")
    if points_per_axis is not None:
        return (whole(points_per_axis, "points_per_axis"),) * frame.dim
    if alpha is None:
        raise ParameterError("give alpha, such as alpha=0.1, or points_per_axis")
    speed = frame.kernel.lipschitz(frame.dim)
    if not math.isfinite(speed) or frame.kernel.bandwidth.is_matrix:
        raise ParameterError(
            "no pitch is known for this kernel or a matrix bandwidth: give points_per_axis"
        )
    pitch = 2 * check_alpha(alpha) / (speed * math.sqrt(frame.dim))
    counts = 2 * halves / pitch
    if not np.isfinite(counts).all() or counts.max() > 2.0**60:
        raise ParameterError("the bounds are too wide against the bandwidth for a grid")
    return tuple(max(1, math.ceil(count)) for count in counts.tolist())


def whole(value: Any, name: str, least: int = 1, most: int = 1 << 31) -> int:
    """Return a whole number within its range."""
    if not is_whole(value) or not least <= value <= most:
        raise ParameterError(f"{name} must be a whole number from {least} to {most}, got {value!r}")
    return int(value)


def check_alpha(alpha: Any) -> float:
    """Return α as a float between 0 and 1."""
    if not is_real(alpha) or not 0 < alpha < 1:
        raise ParameterError(f"alpha must be above 0 and below 1, got {alpha!r}")
    return float(alpha)
