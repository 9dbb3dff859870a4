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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import BudgetError, FormatError, ParameterError
from dpkde.planning.plan import Plan, describe, opened_plan
from dpkde.planning.promise import Promise, promise_from_json
from dpkde.privacy.amounts import ONE_RECORD
from dpkde.privacy.statement import (
    PrivacyStatement,
    fraction_from_json,
    fraction_to_json,
    statement_from_json,
    statement_to_json,
)
from dpkde.release import assistance, container
from dpkde.release import troubles as troubling
from dpkde.release.answering import Answering
from dpkde.release.container import MOST_LEVELS, is_shallow
from dpkde.release.files import Filed, Opened
from dpkde.release.parts import FittedModel, NoisyMean, Part, Parts
from dpkde.release.troubles import Trouble
from dpkde.release.views import View

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


class Release(Answering, Filed):
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
        "_when_saved",
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
    def _source(self) -> Release:
        return self

    def _viewed(self, plan: Plan) -> View:
        return View(self, plan)

    @property
    def parts(self) -> Parts:
        """What else its file holds, by name: its plan's parts and its own."""
        return Parts((*self.plan.parts.values(), *self._parts.values()))

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """What makes it of less use than it might be, as far as it tells itself; none is best.

        From the noisy numbers and public settings: whoever has the file sees the same. `publish`
        warns of each. Computed when first asked for, in some milliseconds mostly.
        """
        if "troubles" not in self._found:
            self._found["troubles"] = troubling.troubles(self)
        found: tuple[Trouble, ...] = self._found["troubles"]
        return found

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
    needed = ["table"] if statement.guarantee.count_is_public else ["count", "table"]
    ours = [purpose for purpose in purposes if purpose in ("count", "table")]
    if ours != needed or purposes[-1] != "table" or (version == 1 and purposes != needed):
        raise ParameterError("the spends are not those of a release")
    return statement
