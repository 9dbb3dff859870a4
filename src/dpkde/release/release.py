"""The release: a frozen, public answer to every later question.

It holds the plan (public from the start), the noisy table, the noisy count, and the statement of
what is guaranteed. It holds no point and no exact sum; anything computed from it is covered by
its guarantee.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import BudgetError, FormatError, ParameterError
from dpkde.planning.plan import Plan, describe, opened_plan
from dpkde.planning.promise import Promise, promise_from_json
from dpkde.privacy.amounts import ONE_RECORD, Adjacency
from dpkde.privacy.budget import Spend
from dpkde.privacy.laws import Law
from dpkde.privacy.statement import (
    PrivacyStatement,
    fraction_from_json,
    fraction_to_json,
    statement_from_json,
    statement_to_json,
)
from dpkde.release import answers, assistance, container, denoising, intervals
from dpkde.release.container import MOST_LEVELS, is_shallow
from dpkde.release.files import Filed, Opened
from dpkde.release.parts import FittedModel, NoisyMean, Part, Parts
from dpkde.tables.arrays import QueriesLike

if TYPE_CHECKING:
    from dpkde.densities.base import Density
    from dpkde.densities.report import SampleReport
    from dpkde.families.base import Family
    from dpkde.kernels import Kernel
    from dpkde.space.domain import Domain


MOST_EXTRAS = 1 << 20
_RATES = frozenset(1 << power for power in range(33))
_FIELDS = {
    *("format", "format_version", "release_id", "generator", "plan", "count", "privacy"),
    *("promise", "rate", "extras", "parts"),
}


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
    if not is_shallow(checked):
        raise ParameterError(f"extras may be nested {MOST_LEVELS} levels deep, no more")
    try:
        size = len(json.dumps(checked, allow_nan=False))
    except (TypeError, ValueError):
        raise ParameterError("extras must hold JSON values only") from None
    if size > MOST_EXTRAS:
        raise ParameterError(f"extras take {size} characters as JSON, at most {MOST_EXTRAS} fit")
    return checked


class Release(Filed):
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
    parts
        What else its file holds, by name, its plan's included; see `dpkde.release.parts`.
    """

    FORMAT = "dpkde-release"

    __slots__ = (
        "_found",
        "_parts",
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

    _found: dict[str, Any]
    _parts: Parts
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
        parts: Iterable[Part] = (),
    ) -> None:
        from dpkde import __version__

        if privacy.unit != plan.unit:
            raise ParameterError(f"the plan protects {plan.unit}, the statement {privacy.unit}")
        own = Parts(parts)
        Parts((*plan.parts.values(), *own.values())).check(plan)  # no name twice
        _check_mean(own, privacy, plan.frame.dim)
        frozen = np.array(table, dtype=np.int64)
        frozen.setflags(write=False)
        values = {
            "plan": plan,
            "_found": {},
            "_parts": own,
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
        return type(self).of_contents, (self.contents(),)

    @property
    def table(self) -> NDArray[np.int64]:
        """The noisy sums, in units of 2^−bits; read-only."""
        return self._table

    @property
    def parts(self) -> Parts:
        """What else its file holds, by name: its plan's parts and its own."""
        return Parts((*self.plan.parts.values(), *self._parts.values()))

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

    @property
    def model(self) -> FittedModel | None:
        """The model that assisted answers begin with; None where none can be fitted.

        From the file; where that has none, it is fitted when first asked for, to the noisy table
        and public numbers, which may take some seconds.
        """
        if "model" not in self._found:
            held = self._parts.of(FittedModel)
            self._found["model"] = assistance.fitted(self) if held is None else held
        model: FittedModel | None = self._found["model"]
        return model

    @property
    def _assistance(self) -> assistance.Assistance | None:
        if "assistance" not in self._found:
            self._found["assistance"] = assistance.of_model(self, self.model)
        helper: assistance.Assistance | None = self._found["assistance"]
        return helper

    def with_model(self) -> Release:
        """Return this release with its model in it, where one can be fitted."""
        return self if self.model is None else self.with_parts(self.model)

    def kde(
        self,
        queries: QueriesLike,
        *,
        groups: int = 1,
        clip: bool = True,
        assisted: bool | None = None,
    ) -> NDArray[np.float64]:
        """Return the KDE at each query, clipped to [0, 1].

        For `Fourier` it is assisted: a model of the data, fitted to the noisy table, answers, and
        what the table shows that the model misses is added; see `model`. For others, and where no
        model is better than none, it is `kernel_sum` over the count.

        Parameters
        ----------
        queries
            Shape (n_queries, dim), dense or sparse, or one point of shape (dim,); a data frame; or
            sets, as lists of element numbers, where the domain is `Sets`. A query that is not
            finite gets NaN, and so does one that lies further than 65,536 (`Fourier`) or 4,096
            (`Hashing`) bandwidths from the center of the bounds on some axis.
        groups
            J > 1: the median of J means over the family's repetitions, as in the paper.
        clip
            False leaves values below 0 and above 1, which noise produces, as they are.
        assisted
            False: the plain estimate, unbiased before it is clipped. None: assisted, unless
            `groups` are asked for or the release has a `promise`, which plain answers keep.
        """
        return answers.kde(self, queries, groups=groups, clip=clip, assisted=assisted)

    def kernel_sum(self, queries: QueriesLike, *, groups: int = 1) -> NDArray[np.float64]:
        """Return the estimate of Σ k(x, y) at each query.

        Unbiased over noise and seeds for `Fourier` and `Hashing`; `Spline` and `FastGauss` have a
        small bias of their own, which `sampling_error` tells the size of.
        """
        return answers.kernel_sum(self, queries, groups=groups)

    def standard_error(
        self, queries: QueriesLike, *, assisted: bool | None = None
    ) -> NDArray[np.float64]:
        """Return the standard deviation that the noise gives to `kde` at each query.

        Exact where the count is public; otherwise to first order in the count's noise (delta
        method). The family's own randomness comes on top: see `sampling_error`. Assisted answers
        leave out some of the noise where they trust their model; that holds on average, so this is
        the noise of the whole correction, and `average_error` tells the average.
        """
        return answers.standard_error(self, queries, assisted)

    def average_error(self, queries: QueriesLike) -> NDArray[np.float64]:
        """Return the root mean square error to expect of `kde` on average over queries like these.

        For assisted answers it is often several times less than what `standard_error` and
        `sampling_error` claim of each query: where a small group of records lies by itself, a
        single answer may be further off. For plain answers it is the two together.
        """
        return answers.average_error(self, queries)

    def sampling_error(
        self, queries: QueriesLike, *, assisted: bool | None = None
    ) -> NDArray[np.float64]:
        """Return an estimate of what the family itself adds to the error of `kde`.

        From the release alone. For `Fourier` and `Hashing`, the standard deviation over seeds: how
        much the answers of repetitions differ, less what the noise explains; with δ the noise is
        small and this is the larger part. For `Spline` and `FastGauss`, a typical size of their
        bias. For assisted answers, the standard deviation over seeds of model and correction
        together.
        ``hypot(standard_error, sampling_error)`` is the whole error.
        """
        return answers.sampling_error(self, queries, assisted)

    def kernel_sum_standard_error(self, queries: QueriesLike) -> NDArray[np.float64]:
        """Return the standard deviation that the noise gives to `kernel_sum`, exactly."""
        return answers.kernel_sum_standard_error(self, queries)

    def error_bound(self, eta: float) -> float:
        """Return α: the error of `kde` exceeds it with probability at most η, whatever the data.

        At any one query that was not chosen by looking at this release; at all queries inside the
        bounds at once, where it was published with ``simultaneous=True``. It counts the worst
        records and queries there could be, over the noise, the count's included, and the seed; see
        `dpkde.planning.promise`. It is for plain answers: assisted ones and those with ``groups``
        are not covered. What to expect at a query is `interval`.
        """
        return intervals.error_bound(self, eta)

    def interval(
        self,
        queries: QueriesLike,
        level: float = 0.95,
        *,
        bias: str | None = None,
        assisted: bool | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lower and upper ends of an interval for the KDE at each query.

        It holds the KDE of the data with probability `level`, at each query on its own: by the
        exact law of the noise on table and count at this query, widened by the family's own
        error. For `Fourier` and `Hashing` that is what the release shows of it, with room for
        doubt; where answers are assisted, about the model with all of its correction, which is
        unbiased whatever the model. For `Spline` and `FastGauss` it is a bias:

        * ``bias="worst"``: the largest there can be, whatever the data. Small in a release that was
          published with `alpha` and `eta`, often large in others.
        * ``bias="typical"``: twice its typical size. Right where records are spread out; rounded
          values and clusters narrower than a bandwidth have more, and coverage is then lower.

        None: the first where `promise` is set, else the second. A level above 1 − 10⁻⁷ is taken
        for that.
        """
        return intervals.interval(self, queries, level, bias, assisted)

    def denoise(self) -> Density:
        """Return the proper density of this release: not negative, of total mass one.

        For `Spline`: weights at sites that could be those of records, whose KDE is nearest to the
        noisy one (`dpkde.densities.fitting`). Where the table shows nothing above its noise there
        is nothing; dense parts keep their answers. Along axes much narrower than the bandwidth,
        records lie evenly about the mean that the table tells. For `Fourier`: the density of the
        fitted `model`, without the correction that `kde` adds. Other tables have none.

        The same file gives the same density, computed when first asked for: within a second for
        tables of ten thousand cells, some ten for a million. It costs no privacy.
        """
        if "density" not in self._found:
            self._found["density"] = denoising.denoised(self)
        density: Density = self._found["density"]
        return density

    def density(self, queries: QueriesLike, *, support: str = "space") -> NDArray[np.float64]:
        """Return the density of the denoised release at each query, by volume in data units.

        Parameters
        ----------
        queries
            As for `kde`.
        support
            ``"space"``: its integral over all of space is one; the kernel carries some of it
            beyond the bounds. ``"bounds"``: its integral over the box is one, by folding what lies
            beyond back at the faces; zero outside.
        """
        return self.denoise().density(queries, support=support)

    def log_density(self, queries: QueriesLike, *, support: str = "space") -> NDArray[np.float64]:
        """Return the logarithm of `density`: −∞ where that is zero, and never NaN but for NaN."""
        return self.denoise().log_density(queries, support=support)

    def sample(
        self, n: int, *, seed: int | None = None, support: str = "space", smoothed: bool = True
    ) -> NDArray[np.float64]:
        """Return n synthetic points, shape (n, dim): independent draws from `density`, exactly.

        For `Fourier` they are points of the fitted model, without the correction that `kde` adds.
        They follow the smoothed density, so details narrower than the bandwidth are gone, and no
        point is a record; `sample_report` compares them with the release.

        Parameters
        ----------
        n
            How many.
        seed
            Of this public randomness: the same seed gives the same points.
        support
            ``"bounds"`` folds points beyond the bounds back into them.
        smoothed
            False leaves out the kernel's offsets: shares of regions are then nearer to those of
            the records, as are the points' own KDE and this release's.
        """
        return self.denoise().sample(n, seed=seed, support=support, smoothed=smoothed)

    def sample_report(self, points: QueriesLike, *, most: int = 1000) -> SampleReport:
        """Return how the KDE of a sample compares with this release's; see `SampleReport`."""
        return denoising.compared(self, points, most)

    def with_parts(self, *parts: Part) -> Release:
        """Return this release with more parts, in place of those of the same names."""
        own = {**self._parts, **{part.name: part for part in parts}}
        return Release(
            self.plan,
            self._table,
            self.count,
            self.privacy,
            release_id=self.release_id,
            generator=self.generator,
            extras=self.extras,
            promise=self.promise,
            rate=self.rate,
            parts=own.values(),
        )

    @property
    def format_version(self) -> int:
        """The version of its file: 2 where it, its plan or its statement needs that."""
        purposes = [spend.purpose for spend in self.privacy.spends]
        old = purposes in (["count", "table"], ["table"]) and self.privacy.unit == ONE_RECORD
        return 1 if old and not self._parts and self.plan.format_version == 1 else 2

    def _described(self) -> container.Contents:
        document = {
            "release_id": self.release_id,
            "generator": self.generator,
            "plan": self.plan.document,
            "count": self.count,
            "privacy": statement_to_json(self.privacy, self.format_version),
            "promise": None if self.promise is None else asdict(self.promise),
            "rate": fraction_to_json(self.rate),
            "extras": dict(self.extras),
            **({"parts": self._parts.to_json()} if self._parts else {}),
        }
        return document, {**self.plan.tensors, **self._parts.to_tensors(), "table": self._table}

    @classmethod
    def _rebuilt(cls, opened: Opened) -> Release:
        document = opened.document
        opened.expect(document, _FIELDS)
        plan = opened_plan(opened)
        table = opened.tensors.pop("table")
        if table.dtype != np.int64 or table.shape != (plan.pair.bounds.cells,):
            raise FormatError("the table of this release does not fit its plan")
        count, extras = document["count"], document["extras"]
        names = [document[key] for key in ("release_id", "generator")]
        if type(count) is not int or not 1 <= count < 1 << 64:
            raise FormatError("the count of this release is damaged")
        if not isinstance(extras, dict) or not all(isinstance(name, str) for name in names):
            raise FormatError("the description of this release is damaged")
        if opened.version > 1:
            check_extras(extras)
        try:
            privacy = _statement(document["privacy"], opened.version, plan)
        except FormatError:
            raise
        except (KeyError, TypeError, ValueError, ZeroDivisionError, BudgetError):
            raise FormatError("the privacy statement of this release does not add up") from None
        rate = fraction_from_json(document.get("rate", "1"))
        if rate is None or rate.numerator != 1 or rate.denominator not in _RATES:
            raise FormatError("the sampling rate of this release is damaged")
        return cls(
            plan,
            table,
            count,
            privacy,
            release_id=names[0],
            generator=names[1],
            extras=extras,
            promise=promise_from_json(document.get("promise"), plan.frame),
            rate=rate,
            parts=opened.parts(document).values(),
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Release)
            and self.release_id == other.release_id
            and self.plan == other.plan
            and self.count == other.count
            and self.privacy == other.privacy
            and self.extras == other.extras
            and (self.promise, self.rate) == (other.promise, other.rate)
            and self._parts == other._parts
            and bool(np.array_equal(self._table, other._table))
        )

    def __hash__(self) -> int:
        return hash(self.release_id)

    @property
    def _modelled(self) -> str:
        """The model in a few words, where it is known already."""
        model = self._parts.of(FittedModel) or self._found.get("model")
        return "" if model is None else f", model: {model}"

    def __repr__(self) -> str:
        return (
            f"<Release: {describe(self.plan)}, {self._table.size} cells, "
            f"{self.privacy.guarantee}, count≈{self.count}{self._modelled}>"
        )


def _check_mean(parts: Parts, privacy: PrivacyStatement, dim: int) -> None:
    """Refuse a mean that no spend pays for, or a spend for the mean of another table."""
    paid = [spend for spend in privacy.spends if spend.purpose == "mean"]
    if parts.of(NoisyMean) is not None and len(paid) != 1:
        raise ParameterError("a noisy mean is paid for, once, and the statement says so")
    if any(getattr(spend.law, "cells", dim) != dim for spend in paid):
        raise ParameterError(f"the statement has a mean of other than {dim} columns")


def _statement(entry: Mapping[str, Any], version: int, plan: Plan) -> PrivacyStatement:
    """Rebuild the statement; whatever was bought for the table has to fit the plan."""
    statement = statement_from_json(entry, version, {"table": plan.pair.bounds})
    purposes = [spend.purpose for spend in statement.spends]
    needed = ["count", "table"] if statement.adjacency is Adjacency.ADD_REMOVE else ["table"]
    ours = [purpose for purpose in purposes if purpose in ("count", "table")]
    if ours != needed or purposes[-1] != "table" or (version == 1 and purposes != needed):
        raise ParameterError("the spends are not those of a release")
    return statement
