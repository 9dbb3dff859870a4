"""The release: a frozen, public answer to every later question.

It holds the plan (public from the start), the noisy table, the noisy count, and the statement of
what is guaranteed. It holds no point and no exact sum; anything computed from it is covered by
its guarantee.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.planning.plan import Plan, describe
from dpkde.planning.promise import Promise
from dpkde.privacy.budget import Spend
from dpkde.privacy.laws import Law
from dpkde.privacy.statement import PrivacyStatement
from dpkde.tables.arrays import QueriesLike

if TYPE_CHECKING:
    from dpkde.families.base import Family
    from dpkde.kernels import Kernel
    from dpkde.space.domain import Domain


MOST_EXTRAS, MOST_LEVELS = 1 << 20, 32


def check_extras(extras: Mapping[str, Any] | None) -> dict[str, Any]:
    """Check a publisher's remarks: namespaced keys, JSON values."""
    if extras is not None and not isinstance(extras, Mapping):
        raise ParameterError("extras must be a mapping, such as {'org.example/note': 'text'}")
    checked = dict(extras or {})
    for key in checked:
        if not isinstance(key, str) or "/" not in key:
            raise ParameterError(
                f"extras need namespaced keys such as 'org.example/note', got {key!r}"
            )
    if not _is_shallow(checked, MOST_LEVELS):
        raise ParameterError(f"extras may be nested {MOST_LEVELS} levels deep, no more")
    try:
        size = len(json.dumps(checked, allow_nan=False))
    except (TypeError, ValueError):
        raise ParameterError("extras must hold JSON values only") from None
    if size > MOST_EXTRAS:
        raise ParameterError(f"extras take {size} characters as JSON, at most {MOST_EXTRAS} fit")
    return checked


def _is_shallow(value: Any, levels: int) -> bool:
    """Tell whether containers are nested at most so many levels deep."""
    if not isinstance(value, (Mapping, list, tuple)):
        return True
    inside = value.values() if isinstance(value, Mapping) else value
    return levels > 0 and all(_is_shallow(each, levels - 1) for each in inside)


class Release:
    """A published density. Load one with `dpkde.load`, make one with `dpkde.publish`.

    Attributes
    ----------
    privacy
        What is guaranteed, with every spend; ``print(release.privacy)``.
    plan
        Kernel, domain, family and lattice.
    table
        The noisy sums, in units of 2^−bits; read-only.
    count
        The number of records: noisy under add-remove, exact under replace. At least 1.
    release_id
        A random name for this release.
    extras
        Whatever the publisher added, by namespaced keys such as ``"org.example/note"``.
    promise
        The (α, η) that it was published for, if any; ``print(release.promise)``.
    rate
        The probability with which a record entered the table: 1, or less where a promise allowed
        it. Answers account for it.
    """

    __slots__ = (
        "_table",
        "count",
        "extras",
        "generator",
        "plan",
        "privacy",
        "promise",
        "rate",
        "release_id",
    )

    _table: NDArray[np.int64]
    plan: Plan
    count: int
    privacy: PrivacyStatement
    release_id: str
    generator: str
    extras: Mapping[str, Any]
    promise: Promise | None
    rate: Fraction

    def __init__(
        self,
        plan: Plan,
        table: NDArray[np.int64],
        count: int,
        privacy: PrivacyStatement,
        *,
        release_id: str | None = None,
        generator: str | None = None,
        extras: Mapping[str, Any] | None = None,
        promise: Promise | None = None,
        rate: Fraction = Fraction(1),
    ) -> None:
        from dpkde import __version__

        frozen = np.array(table, dtype=np.int64)
        frozen.setflags(write=False)
        values = {
            "plan": plan,
            "_table": frozen,
            "count": count,
            "privacy": privacy,
            "release_id": release_id or uuid.uuid4().hex,
            "generator": generator or f"dpkde {__version__}",
            "extras": MappingProxyType(dict(extras or {})),
            "promise": promise,
            "rate": rate,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a release is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a release is frozen")

    def __reduce__(self) -> Any:
        from dpkde.release.format import from_parts, to_parts

        return from_parts, to_parts(self)

    @property
    def table(self) -> NDArray[np.int64]:
        """The noisy sums, in units of 2^−bits; read-only."""
        return self._table

    @property
    def kernel(self) -> Kernel:
        """The kernel that was published."""
        return self.plan.frame.kernel

    @property
    def domain(self) -> Domain:
        """The public bounds."""
        return self.plan.frame.domain

    @property
    def family(self) -> Family:
        """The family, with its parameters."""
        return self.plan.family

    @property
    def dim(self) -> int:
        """Number of columns."""
        return self.plan.frame.dim

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns, if they were given."""
        return self.plan.columns

    def law(self, purpose: str) -> Law | None:
        """Return the law of the noise on ``"table"`` or ``"count"``; None if there was none."""
        spends = [s for s in self.privacy.spends if isinstance(s, Spend)]
        return next((s.law for s in spends if s.purpose == purpose), None)

    def kde(
        self, queries: QueriesLike, *, groups: int = 1, clip: bool = True
    ) -> NDArray[np.float64]:
        """Return the KDE at each query: `kernel_sum` over the count, clipped to [0, 1].

        Parameters
        ----------
        queries
            Shape (n_queries, dim), dense or sparse, or one point of shape (dim,); a data frame; or
            sets, as lists of element numbers, where the domain is `Sets`. A query that is not
            finite gets NaN, and so does one that lies further than 65,536 (`Fourier`) or 4,096
            (`Hashing`) bandwidths from the centre of the bounds on some axis.
        groups
            J > 1: the median of J means over the family's repetitions, as in the paper.
        clip
            False leaves values below 0 and above 1, which noise produces, as they are.
        """
        from dpkde.release import answers as estimate

        return estimate.kde(self, queries, groups=groups, clip=clip)

    def kernel_sum(self, queries: QueriesLike, *, groups: int = 1) -> NDArray[np.float64]:
        """Return the estimate of Σ k(x, y) at each query.

        Unbiased over noise and seeds for `Fourier` and `Hashing`; `Spline` and `FastGauss` have a
        small bias of their own, which `sampling_error` tells the size of.
        """
        from dpkde.release import answers as estimate

        return estimate.kernel_sum(self, queries, groups=groups)

    def standard_error(self, queries: QueriesLike) -> NDArray[np.float64]:
        """Return the standard deviation that the noise gives to `kde` at each query.

        Exact where the count is public; otherwise to first order in the count's noise (delta
        method). The family's own randomness comes on top: see `sampling_error`.
        """
        from dpkde.release import answers as estimate

        return estimate.standard_error(self, queries)

    def sampling_error(self, queries: QueriesLike) -> NDArray[np.float64]:
        """Return an estimate of what the family itself adds to the error of `kde`.

        From the release alone. For `Fourier` and `Hashing`, the standard deviation over seeds: how
        much the answers of repetitions differ, less what the noise explains; with δ the noise is
        small and this is the larger part. For `Spline` and `FastGauss`, a typical size of their
        bias.
        ``hypot(standard_error, sampling_error)`` is the whole error.
        """
        from dpkde.release import answers as estimate

        return estimate.sampling_error(self, queries)

    def kernel_sum_standard_error(self, queries: QueriesLike) -> NDArray[np.float64]:
        """Return the standard deviation that the noise gives to `kernel_sum`, exactly."""
        from dpkde.release import answers as estimate

        return estimate.kernel_sum_standard_error(self, queries)

    def error_bound(self, eta: float) -> float:
        """Return α: the error of `kde` exceeds it with probability at most η, whatever the data.

        At any one query that was not chosen by looking at this release; at all queries inside the
        bounds at once, where it was published with ``simultaneous=True``. It counts the worst
        records and queries there could be, over the noise, the count's included, and the seed; see
        `dpkde.planning.promise`. Answers with ``groups`` are not covered. What to expect at a query
        is `interval`.
        """
        from dpkde.release import intervals as bounds

        return bounds.error_bound(self, eta)

    def interval(
        self, queries: QueriesLike, level: float = 0.95, *, bias: str | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lower and upper ends of an interval for the KDE at each query.

        It holds the KDE of the data with probability `level`, at each query on its own: by the
        exact law of the noise on table and count at this query, widened by the family's own
        error. For `Fourier` and `Hashing` that is what the release shows of it, with room for
        doubt. For `Spline` and `FastGauss` it is a bias:

        * ``bias="worst"``: the largest there can be, whatever the data. Small in a release that was
          published with `alpha` and `eta`, often large in others.
        * ``bias="typical"``: twice its typical size. Right where records are spread out; rounded
          values and clusters narrower than a bandwidth have more, and coverage is then lower.

        None: the first where `promise` is set, else the second. A level above 1 − 10⁻⁷ is taken
        for that.
        """
        from dpkde.release import intervals as bounds

        return bounds.interval(self, queries, level, bias)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a file, atomically; never over a file that is not dpkde's."""
        from dpkde.release.format import save

        save(self, path)

    def to_bytes(self) -> bytes:
        """Return what `save` would write."""
        from dpkde.release.format import to_bytes

        return to_bytes(self)

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        *,
        families: Sequence[type[Family]] = (),
        kernels: Sequence[type[Kernel]] = (),
    ) -> Release:
        """Read a release from what `to_bytes` returned, or from the bytes of a file."""
        from dpkde.release.format import from_bytes

        return from_bytes(data, families=families, kernels=kernels)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Release)
            and self.release_id == other.release_id
            and self.plan == other.plan
            and self.count == other.count
            and self.privacy == other.privacy
            and self.extras == other.extras
            and (self.promise, self.rate) == (other.promise, other.rate)
            and bool(np.array_equal(self._table, other._table))
        )

    def __hash__(self) -> int:
        return hash(self.release_id)

    def __repr__(self) -> str:
        return (
            f"<Release: {describe(self.plan)}, {self._table.size} cells, "
            f"{self.privacy.guarantee}, count≈{self.count}>"
        )
