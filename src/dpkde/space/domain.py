"""Domains: which points are allowed, declared in public, and what happens to the others.

A domain places each private record: it decides whether the record counts, moves it inside where
it lies outside, and subtracts a public origin. The result for a row depends on that row alone, bit
for bit, and nothing about the rows is ever raised, warned of or logged:

* a row with a value that is not finite contributes nothing;
* a row outside is moved to the nearest allowed point (``outside="clip"``) or contributes nothing
  (``outside="drop"``);
* a row that has no nearest point (the zero vector for `Sphere`) contributes nothing.

Queries are the client's own and are not moved: the kernel reaches beyond the bounds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import FormatError, ParameterError
from dpkde.kernels import Points
from dpkde.numerics.numbers import LARGEST, is_whole

Outside = Literal["clip", "drop"]
Mask = NDArray[np.bool_]

HUGE = 1e300
"""Coordinates are taken to at most this size before lengths are computed from them."""


@dataclass(frozen=True)
class Domain(ABC):
    """A public set of allowed points, with the dimension it prescribes."""

    kind: ClassVar[str]

    @property
    def dim(self) -> int | None:
        """Number of coordinates; None where the points decide."""
        return None

    def origin(self, dim: int) -> NDArray[np.float64]:
        """Return the public point that coordinates are counted from: by default, zero."""
        return np.zeros(dim)

    def reach(self, dim: int) -> float | None:
        """Return the largest distance of an allowed point from the origin; None: no bound."""
        return None

    def halves(self, dim: int) -> NDArray[np.float64] | None:
        """Return half the widths of a box around the origin that holds every allowed point."""
        reach = self.reach(dim)
        return None if reach is None else np.full(dim, reach)

    @abstractmethod
    def _settle(self, rows: Points) -> tuple[Points, Mask]:
        """Return finite rows moved inside, and which of them count."""

    def nearest(self, rows: Points) -> Points:
        """Return the nearest allowed point of each, for points that are public."""
        return self._settle(rows)[0]

    def to_json(self) -> dict[str, Any]:
        """Return the parameters, without the kind."""
        return asdict(self)

    def place(self, rows: Points) -> tuple[Points, Mask]:
        """Return the offset of each row from the origin, and which rows contribute.

        Rows that contribute nothing come back as zeros. Pure, row by row, silent.
        """
        with np.errstate(all="ignore"):
            counts = np.asarray(np.isfinite(rows).all(axis=1))
            if not counts.all():
                rows = np.where(counts[:, np.newaxis], rows, 0.0)
            moved, inside = self._settle(rows)
            counts &= inside
            offsets = np.subtract(moved, self.origin(rows.shape[1]))
            if not counts.all():
                offsets[~counts] = 0.0
            return offsets, counts


@dataclass(frozen=True)
class Unbounded(Domain):
    """All of space. Written ``bounds=None``."""

    kind: ClassVar[str] = "unbounded"

    def _settle(self, rows: Points) -> tuple[Points, Mask]:
        return rows, np.ones(len(rows), dtype=np.bool_)


@dataclass(frozen=True, init=False)
class Box(Domain):
    """A box given by (low, high) for each axis. Written as a plain list of pairs.

    Clipped rows gather on the faces of the box, and count there: bounds that cut into the data
    raise the density at the edge. Dropped rows do not.

    >>> Box([(-74.1, -73.15), (40.5, 40.9)]).dim
    2
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    outside: Outside
    kind: ClassVar[str] = "box"

    def __init__(
        self,
        bounds: Sequence[Sequence[float]] | NDArray[Any],
        outside: Outside = "clip",
        *,
        columns: Sequence[str] | None = None,
    ) -> None:
        # Names are for the messages below, and go no further.
        try:
            array = np.array([tuple(pair) for pair in bounds], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            array = np.empty(0)
        if array.ndim != 2 or array.shape[1] != 2:
            raise ParameterError(
                "bounds must be one (low, high) pair of finite numbers for each column, "
                "such as [(0, 1), (-5, 5)]"
            )
        names = [] if columns is None or isinstance(columns, str) else [str(n) for n in columns]
        for axis, (low, high) in enumerate(array.tolist()):
            what = f"bounds of column {names[axis] if len(names) == len(array) else axis}"
            if not math.isfinite(low) or not math.isfinite(high):
                raise ParameterError(f"{what} must be finite numbers, got ({low:g}, {high:g})")
            if low > high:
                raise ParameterError(
                    f"{what} are reversed: ({low:g}, {high:g}); write ({high:g}, {low:g})"
                )
            if low == high:
                raise ParameterError(
                    f"{what} are a single point, ({low:g}, {high:g}); give one "
                    "(low, high) pair for each column"
                )
            _check_size(np.array([low, high]), what)
        vars(self).update(
            low=tuple(array[:, 0].tolist()),
            high=tuple(array[:, 1].tolist()),
            outside=_outside(outside),
        )

    @property
    def dim(self) -> int:
        """Number of axes."""
        return len(self.low)

    @cached_property
    def corners(self) -> NDArray[np.float64]:
        """The lowest and the highest corner, shape (2, dim)."""
        return np.array([self.low, self.high])

    def origin(self, dim: int) -> NDArray[np.float64]:
        """Return the middle of the box."""
        return np.asarray(self.corners[0] / 2 + self.corners[1] / 2)

    def reach(self, dim: int) -> float:
        """Return half the box's diagonal."""
        return math.hypot(*self.halves(dim).tolist())

    def halves(self, dim: int) -> NDArray[np.float64]:
        """Return half the widths of the box."""
        return np.asarray(self.corners[1] / 2 - self.corners[0] / 2)

    def _settle(self, rows: Points) -> tuple[Points, Mask]:
        clipped = np.maximum(rows, self.corners[0])
        np.minimum(clipped, self.corners[1], out=clipped)
        if self.outside == "clip":
            return clipped, np.ones(len(rows), dtype=np.bool_)
        return clipped, (clipped == rows).all(axis=1)

    def to_json(self) -> dict[str, Any]:
        """Return the pairs and the rule for points outside."""
        return {
            "bounds": [list(pair) for pair in zip(self.low, self.high, strict=True)],
            "outside": self.outside,
        }


@dataclass(frozen=True, init=False)
class Ball(Domain):
    """A Euclidean ball. Points outside move to its surface along the radius, or are dropped.

    >>> Ball(center=(0, 0, 0), radius=2).reach(3)
    2.0
    """

    center: tuple[float, ...]
    radius: float
    outside: Outside
    kind: ClassVar[str] = "ball"

    def __init__(self, center: Sequence[float], radius: float, outside: Outside = "clip") -> None:
        try:
            array = np.array(center, dtype=np.float64)
            size = float(radius)
        except (TypeError, ValueError, OverflowError):
            array, size = np.empty(0), math.nan
        if array.ndim != 1 or not array.size or not np.isfinite(array).all():
            raise ParameterError("the center of a Ball must be a point: one finite number per axis")
        if not (0 < size < math.inf):
            raise ParameterError(f"the radius of a Ball must be positive, got {radius!r}")
        _check_size(np.append(array, size), "bounds")
        vars(self).update(center=tuple(array.tolist()), radius=size, outside=_outside(outside))

    @property
    def dim(self) -> int:
        """Number of axes."""
        return len(self.center)

    def origin(self, dim: int) -> NDArray[np.float64]:
        """Return the ball's center."""
        return np.array(self.center)

    def reach(self, dim: int) -> float:
        """Return the radius."""
        return self.radius

    def nearest(self, rows: Points) -> Points:
        """Return points outside moved along the radius."""
        return replace(self, outside="clip")._settle(rows)[0]

    def _settle(self, rows: Points) -> tuple[Points, Mask]:
        offsets = np.clip(rows, -HUGE, HUGE) - np.array(self.center)
        lengths = row_norms(offsets)
        beyond = lengths > self.radius
        if self.outside == "drop":
            return rows, ~beyond
        unit = offsets / np.where(beyond, lengths, 1.0)[:, np.newaxis]
        moved = np.array(self.center) + unit * self.radius
        return np.where(beyond[:, np.newaxis], moved, rows), np.ones(len(rows), dtype=np.bool_)


@dataclass(frozen=True)
class Sphere(Domain):
    """The unit sphere: every row is divided by its length; the zero vector contributes nothing.

    Queries are not moved: ask at points of the sphere.
    """

    kind: ClassVar[str] = "sphere"

    def reach(self, dim: int) -> float:
        """Return 1."""
        return 1.0

    def _settle(self, rows: Points) -> tuple[Points, Mask]:
        rows = np.clip(rows, -HUGE, HUGE)
        lengths = row_norms(rows)
        directed = lengths > 0
        unit = rows / np.where(directed, lengths, 1.0)[:, np.newaxis]
        return np.where(directed[:, np.newaxis], unit, 0.0), directed


@dataclass(frozen=True)
class Sets(Domain):
    """Subsets of a universe of `universe` elements, one column per element.

    Every value other than zero means that the element is in the set. Points and queries may also
    be lists of sets: iterables of element numbers from 0 to universe − 1.
    """

    universe: int
    kind: ClassVar[str] = "sets"

    def __post_init__(self) -> None:
        if not is_whole(self.universe) or not 1 <= self.universe < 1 << 31:
            raise ParameterError("the universe of Sets must be a positive whole number")
        object.__setattr__(self, "universe", int(self.universe))

    @property
    def dim(self) -> int:
        """Size of the universe."""
        return self.universe

    def origin(self, dim: int) -> NDArray[np.float64]:
        """Return ½ for every element."""
        return np.full(dim, 0.5)

    def reach(self, dim: int) -> float:
        """Return √universe/2."""
        return math.sqrt(self.universe) / 2

    def halves(self, dim: int) -> NDArray[np.float64]:
        """Return ½ for every element."""
        return np.full(dim, 0.5)

    def _settle(self, rows: Points) -> tuple[Points, Mask]:
        return (rows != 0).astype(np.float64), np.ones(len(rows), dtype=np.bool_)


def row_norms(rows: Points) -> NDArray[np.float64]:
    """Return the Euclidean length of each row, bit for bit a function of that row alone.

    Sums over columns in a fixed order, of entries scaled by the row's largest, so that no square
    overflows or vanishes.
    """
    largest = np.abs(rows).max(axis=1, initial=0.0)
    safe = np.where(largest > 0, largest, 1.0)
    total = np.zeros(len(rows))
    for k in range(rows.shape[1]):
        total += (rows[:, k] / safe) ** 2
    return np.asarray(np.sqrt(total) * largest)


def _check_size(values: NDArray[np.float64], what: str) -> None:
    if not (np.abs(values) <= LARGEST).all():
        raise ParameterError(
            f"{what} go beyond 1e150, and numbers so large overflow when they are squared: use "
            "narrower bounds, or other units"
        )


def _outside(rule: str) -> Outside:
    if rule not in ("clip", "drop"):
        raise ParameterError(f"outside must be 'clip' or 'drop', got {rule!r}")
    return rule  # type: ignore[return-value]


def universe_of(domain: Domain) -> int | None:
    """Return the size of the universe where records are sets, to open them as such."""
    return domain.universe if isinstance(domain, Sets) else None


DOMAINS: dict[str, type[Domain]] = {
    kind.kind: kind for kind in (Unbounded, Box, Ball, Sphere, Sets)
}

BoundsLike = Domain | Sequence[Sequence[float]] | NDArray[Any] | None
"""What a caller may pass for bounds."""


def as_domain(bounds: BoundsLike, columns: Sequence[str] | None = None) -> Domain:
    """Return the domain that a caller means: a domain, a list of pairs, or None."""
    if isinstance(bounds, Domain):
        return bounds
    if isinstance(bounds, str):
        raise ParameterError(
            "bounds must be one (low, high) pair for each column, such as [(0, 1), (-5, 5)]; "
            f"bounds='private' is for dpkde.publish, which finds them; got {bounds!r}"
        )
    return Unbounded() if bounds is None else Box(bounds, columns=columns)


def domain_from_json(kind: str, parameters: Mapping[str, Any]) -> Domain:
    """Return a domain from what a release file says of it."""
    if kind not in DOMAINS:
        raise FormatError(f"this file declares a domain of unknown kind {kind!r}")
    try:
        return DOMAINS[kind](**parameters)
    except (ParameterError, TypeError) as error:
        raise FormatError(f"the {kind} domain in this file is damaged: {error}") from None
