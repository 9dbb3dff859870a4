"""The synthetic release: public points and weights that stand for the private ones.

Its file is a container (`dpkde.release.container`) whose document has these fields:

``format``, ``format_version``
    ``"dpkde-synthetic"``, and 1 or 2. Version 2 is written where there are parts or a unit other
    than one record, and refuses fields that are not listed here.
``release_id``, ``generator``
    32 random hexadecimal digits, and the program that wrote it.
``mechanism``
    The name of the mechanism, such as ``"smalldb"``.
``kernel``
    {name, version, parameters}; looked up in a registry, never imported.
``count``
    The number of records, noisy under add-remove, at least 1; null where it was not paid for.
``added_error``
    What taking a coreset added to the error, as measured; 0 where none was taken.
``privacy``
    As in `dpkde.privacy.statement`. The loader checks that it adds up.
``parts``
    *Version 2:* what else there is, if anything; see `dpkde.release.parts`.

Tensors: ``points``, float64 (n_points, dim), and ``weights``, float64 (n_points,), not negative,
which add up to 1; and those of parts.
"""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import FormatError, ParameterError
from dpkde.kernels import Kernel, Points, kernel_from_json
from dpkde.numerics.numbers import is_whole
from dpkde.privacy.amounts import ONE_RECORD, Adjacency
from dpkde.privacy.statement import PrivacyStatement, statement_from_json, statement_to_json
from dpkde.release import container
from dpkde.release.files import Filed, Opened
from dpkde.release.parts import NO_PARTS, LedgerEntry, Parts
from dpkde.space.domain import Unbounded
from dpkde.space.frame import Frame
from dpkde.tables.arrays import QueriesLike, as_queries

_FIELDS = {
    *("format", "format_version", "release_id", "generator", "mechanism", "kernel", "count"),
    *("added_error", "privacy", "parts"),
}
_BLOCK = 1 << 22
_SLACK = 1e-9
"""How far weights may be from adding up to 1."""


def _generator() -> str:
    from dpkde import __version__

    return f"dpkde {__version__}"


@dataclass(frozen=True, eq=False)
class SyntheticRelease(Filed):
    """A published data set of synthetic points. `SmallDB.release` and `PMW.release` make them.

    Load one with `dpkde.load`.

    Attributes
    ----------
    points
        Shape (n_points, dim): points of a public grid; read-only.
    weights
        Shape (n_points,), adding up to 1; read-only.
    kernel
        The kernel that the points were chosen for.
    privacy
        What is guaranteed, with every spend.
    mechanism
        ``"smalldb"`` or ``"pmw"``.
    count
        The number of records: noisy under add-remove, exact under replace, None if it was not
        released.
    added_error
        What taking a `coreset` added to the error.
    parts
        What else its file holds, by name; see `dpkde.release.parts`.
    """

    FORMAT: ClassVar[str] = "dpkde-synthetic"

    points: Points
    weights: NDArray[np.float64]
    kernel: Kernel
    privacy: PrivacyStatement
    mechanism: str
    count: int | None = None
    added_error: float = 0.0
    release_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    generator: str = field(default_factory=_generator)
    parts: Parts = NO_PARTS

    def __post_init__(self) -> None:
        for name in ("points", "weights"):
            frozen = np.array(getattr(self, name), dtype=np.float64)
            frozen.setflags(write=False)
            object.__setattr__(self, name, frozen)
        self.parts.check(self)

    def __getstate__(self) -> dict[str, Any]:
        # What is done when it is saved is this process's.
        return {name: value for name, value in vars(self).items() if name != "_when_saved"}

    @property
    def dim(self) -> int:
        """Number of columns."""
        return int(self.points.shape[1])

    def kde(self, queries: QueriesLike) -> NDArray[np.float64]:
        """Return Σ_i w_i·k(z_i, y) at each query. O(n_points·n_queries·d).

        Queries have shape (n_queries, dim), or (dim,) for one point. The answers to however many
        are covered by the same guarantee.
        """
        return weighted_kde(self.points, self.weights, as_queries(queries, self.dim), self.kernel)

    def standard_error(self, queries: QueriesLike) -> NDArray[np.float64]:
        """Return NaN at each query: how far the noise moves these answers is not known.

        The points and weights come out of choices among many data sets, or of many rounds of them,
        and no law of the answers follows that a release could tell; 0 would claim too much. What is
        known: `added_error` of a coreset, and beforehand, for a number of records, the bound
        `SmallDB.error_bound` and the theorem in `PMW`.
        """
        return np.full(len(as_queries(queries, self.dim)), math.nan)

    def coreset(self, size: int) -> SyntheticRelease:
        """Return a release of `size` points, repeated ones joined, with nearly the same KDE.

        Kernel herding: points are taken one after the other, each the one at which the KDE is
        furthest above that of the points so far. Deterministic, computed from what is public
        already. `added_error` is the largest difference between the two KDEs at the points of
        this release, which is as large as 1/√size at most in theory and less in practice.
        O(n_points²·d + size·n_points·d).
        """
        if not is_whole(size) or not 1 <= size <= 1 << 20:
            raise ParameterError(f"size must be a whole number of at least 1, got {size!r}")
        density = self.kde(self.points)
        taken = np.zeros(len(self.points), dtype=np.int64)
        summed = np.zeros(len(self.points))
        for number in range(1, size + 1):
            best = int(np.argmax(density * number - summed))
            taken[best] += 1
            summed += self.kernel.evaluate(self.points[best : best + 1], self.points)[0]
        members = np.flatnonzero(taken)
        weights = taken[members] / size
        coreset = replace(
            self,
            points=self.points[members],
            weights=weights,
            release_id=uuid.uuid4().hex,
            # Its spend is entered under the name of the release that it is made from.
            parts=Parts(part for part in self.parts.values() if not isinstance(part, LedgerEntry)),
        )
        apart = float(np.abs(coreset.kde(self.points) - density).max())
        return replace(coreset, added_error=self.added_error + apart)

    @property
    def format_version(self) -> int:
        """The version of its file: 2 where it has parts, or a unit other than one record."""
        return 2 if self.parts or self.privacy.unit != ONE_RECORD else 1

    def _described(self) -> container.Contents:
        document = {
            "release_id": self.release_id,
            "generator": self.generator,
            "mechanism": self.mechanism,
            "kernel": {
                "name": self.kernel.name,
                "version": self.kernel.version,
                "parameters": self.kernel.to_json(),
            },
            "count": self.count,
            "added_error": self.added_error,
            "privacy": statement_to_json(self.privacy, self.format_version),
            **({"parts": self.parts.to_json()} if self.parts else {}),
        }
        own = {"points": self.points, "weights": self.weights}
        return document, own | self.parts.to_tensors()

    @classmethod
    def _rebuilt(cls, opened: Opened) -> SyntheticRelease:
        document, entry = opened.document, opened.document["kernel"]
        opened.expect(document, _FIELDS)
        kernel = kernel_from_json(
            str(entry["name"]), int(entry["version"]), entry["parameters"], opened.kernels
        )
        points, weights = opened.tensors.pop("points"), opened.tensors.pop("weights")
        if (
            not points.dtype == weights.dtype == np.float64
            or points.ndim != 2
            or min(points.shape) < 1
            or weights.shape != points.shape[:1]
            or not np.isfinite(points).all()
            or not (weights >= 0).all()
            or not abs(float(weights.sum()) - 1) <= _SLACK
        ):
            raise FormatError("the synthetic points of this file are damaged")
        Frame.of(kernel, Unbounded(), points.shape[1])  # a bandwidth of another dimension raises
        count, added = document["count"], document["added_error"]
        if count is not None and (type(count) is not int or not 1 <= count < 1 << 64):
            raise FormatError("the count of this file is damaged")
        if type(added) not in (int, float) or not 0 <= added < math.inf:
            raise FormatError("the error of this file is damaged")
        names = [document[key] for key in ("mechanism", "release_id", "generator")]
        if not all(isinstance(name, str) for name in names):
            raise FormatError("the names in this file are damaged")
        privacy = statement_from_json(document["privacy"], opened.version)
        if privacy.unit != ONE_RECORD:
            raise FormatError("a synthetic release protects one record, and this file claims more")
        paid = any(spend.purpose == "count" for spend in privacy.spends)
        if count is not None and privacy.adjacency is Adjacency.ADD_REMOVE and not paid:
            raise FormatError("this file tells a count that nothing was spent on")
        return cls(
            points,
            weights,
            kernel,
            privacy,
            names[0],
            count,
            float(added),
            names[1],
            names[2],
            opened.parts(document),
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SyntheticRelease)
            and self.release_id == other.release_id
            and self.kernel == other.kernel
            and self.privacy == other.privacy
            and (self.mechanism, self.count) == (other.mechanism, other.count)
            and (self.added_error, self.parts) == (other.added_error, other.parts)
            and np.array_equal(self.points, other.points)
            and np.array_equal(self.weights, other.weights)
        )

    def __hash__(self) -> int:
        return hash(self.release_id)

    def __repr__(self) -> str:
        return (
            f"<SyntheticRelease: {self.mechanism}, {self.kernel!r}, {len(self.points)} points, "
            f"d={self.dim}, {self.privacy.guarantee}>"
        )


def weighted_kde(
    points: Points, weights: NDArray[np.float64], queries: Points, kernel: Kernel
) -> NDArray[np.float64]:
    """Return Σ_i w_i·k(z_i, y) at each query, in blocks of bounded memory."""
    step = max(1, _BLOCK // max(1, len(points)))
    parts = [
        weights @ kernel.evaluate(points, queries[start : start + step])
        for start in range(0, len(queries), step)
    ]
    return np.concatenate([np.zeros(0), *parts])
