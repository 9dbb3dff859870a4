"""The release: a frozen, public answer to every later question.

It holds the plan (public from the start), the noisy table, the noisy count, and the statement of
what is guaranteed. It holds no point and no exact sum; anything computed from it is covered by
its guarantee.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpkde.arrays import QueriesLike
from dpkde.errors import ParameterError
from dpkde.planner import Plan, describe
from dpkde.privacy.laws import Law
from dpkde.privacy.statement import PrivacyStatement

if TYPE_CHECKING:
    from dpkde.domain import Domain
    from dpkde.families.base import Family
    from dpkde.kernels import Kernel


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
    try:
        json.dumps(checked, allow_nan=False)
    except (TypeError, ValueError):
        raise ParameterError("extras must hold JSON values only") from None
    return checked


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
    """

    __slots__ = ("_table", "count", "extras", "generator", "plan", "privacy", "release_id")

    _table: NDArray[np.int64]
    plan: Plan
    count: int
    privacy: PrivacyStatement
    release_id: str
    generator: str
    extras: Mapping[str, Any]

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
        return next((s.law for s in self.privacy.spends if s.purpose == purpose), None)

    def kde(
        self, queries: QueriesLike, *, groups: int = 1, clip: bool = True
    ) -> NDArray[np.float64]:
        """Return the KDE at each query: `kernel_sum` over the count, clipped to [0, 1].

        Parameters
        ----------
        queries
            Shape (n_queries, dim), dense or sparse, or one point of shape (dim,); a data frame; or
            sets, as lists of element numbers, where the domain is `Sets`. A query that is not
            finite gets NaN.
        groups
            J > 1: the median of J means over the family's repetitions, as in the paper.
        clip
            False leaves values below 0 and above 1, which noise produces, as they are.
        """
        from dpkde.client import estimate

        return estimate.kde(self, queries, groups=groups, clip=clip)

    def kernel_sum(self, queries: QueriesLike, *, groups: int = 1) -> NDArray[np.float64]:
        """Return the estimate of Σ k(x, y) at each query.

        Unbiased over noise and seeds for `Fourier` and `Hashing`; `Spline` and `FastGauss` have a
        small bias of their own, which `sampling_error` tells the size of.
        """
        from dpkde.client import estimate

        return estimate.kernel_sum(self, queries, groups=groups)

    def standard_error(self, queries: QueriesLike) -> NDArray[np.float64]:
        """Return the standard deviation that the noise gives to `kde` at each query.

        Exact where the count is public; otherwise to first order in the count's noise (delta
        method). The family's own randomness comes on top: see `sampling_error`.
        """
        from dpkde.client import estimate

        return estimate.standard_error(self, queries)

    def sampling_error(self, queries: QueriesLike) -> NDArray[np.float64]:
        """Return an estimate of what the family itself adds to the error of `kde`.

        From the release alone. For `Fourier` and `Hashing`, the standard deviation over seeds: how
        much the answers of repetitions differ, less what the noise explains; with δ the noise is
        small and this is the larger part. For `Spline` and `FastGauss`, a typical size of their
        bias.
        ``hypot(standard_error, sampling_error)`` is the whole error.
        """
        from dpkde.client import estimate

        return estimate.sampling_error(self, queries)

    def kernel_sum_standard_error(self, queries: QueriesLike) -> NDArray[np.float64]:
        """Return the standard deviation that the noise gives to `kernel_sum`, exactly."""
        from dpkde.client import estimate

        return estimate.kernel_sum_standard_error(self, queries)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a file, atomically."""
        from dpkde.release.format import save

        save(self, path)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Release)
            and self.release_id == other.release_id
            and self.plan == other.plan
            and self.count == other.count
            and self.privacy == other.privacy
            and self.extras == other.extras
            and bool(np.array_equal(self._table, other._table))
        )

    def __hash__(self) -> int:
        return hash(self.release_id)

    def __repr__(self) -> str:
        return (
            f"<Release: {describe(self.plan)}, {self._table.size} cells, "
            f"{self.privacy.guarantee}, count≈{self.count}>"
        )
