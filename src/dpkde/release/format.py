"""The release file, version 1.

The container (safetensors, canonical JSON document, SHA-256) is specified in `container`. The
document of a release has these fields:

``format``, ``format_version``
    ``"dpkde-release"`` and 1. The version changes when the meaning of a field does, and is apart
    from the package's version. Every version ever released keeps loading.
``release_id``
    32 random hexadecimal digits.
``generator``
    The program that wrote it, such as ``"dpkde 0.1.0"``.
``plan``
    ``kernel`` {name, version, parameters}, ``domain`` {kind, dim, parameters}, ``family`` {name,
    version, parameters}, ``lattice`` {bits, capacity_bits}, ``seed`` (decimal string),
    ``columns`` (list of names or null).
``count``
    The number of records, noisy under add-remove; a whole number, at least 1.
``privacy``
    ``adjacency``, ``unit``, the declared ``epsilon``, ``delta`` and ``rho`` (``"p/q"``, or null),
    and ``spends``: for each, in order, its ``purpose``, ``epsilon`` or ``rho``, ``law``, the
    ``sensitivity`` in the norm of the law (squared for the Gaussian), and ``scale``.
``promise``, ``rate``
    What the answers are promised to be within: null, or ``alpha``, ``eta`` and ``pitch`` (of the
    grid that queries are moved to, in bandwidths, or null); and the probability with which a record
    entered the table, ``"p/q"``. Files without them have null and 1.
``extras``
    An object for the publisher's own use, with namespaced keys.

Tensors: ``table``, int64, one entry a cell, in units of 2^−bits, modulo 2⁶⁴; and the family's own
public randomness, each under ``family.`` and its name (`Fourier`: ``family.frequencies`` int32
(D, dim) in 2⁻³² turns per step; ``family.offsets`` int32 (D,) in the phase form).

Names are looked up in a registry, never imported. The loader also checks that the spends add up to
no more than the declared guarantee and that every scale is large enough for its sensitivity.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import BudgetError, FormatError, ParameterError
from dpkde.families.base import Family
from dpkde.kernels import Kernel
from dpkde.planning.plan import Plan, expect_format, plan_from_json
from dpkde.planning.promise import promise_from_json
from dpkde.privacy.amounts import COUNT, Adjacency, Amount, Bounds
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.privacy.laws import NOISES
from dpkde.privacy.statement import (
    UNIT,
    PrivacyStatement,
    fraction_from_json,
    fraction_to_json,
    statement_to_json,
)
from dpkde.release import container
from dpkde.release.release import Release

FORMAT = "dpkde-release"
VERSION = 1
_PREFIX = "family."
_RATES = frozenset(1 << power for power in range(33))


def to_parts(release: Release) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the document and the tensors of a release."""
    document = {
        "format": FORMAT,
        "format_version": VERSION,
        "release_id": release.release_id,
        "generator": release.generator,
        "plan": release.plan.document,
        "count": release.count,
        "privacy": statement_to_json(release.privacy),
        "promise": None if release.promise is None else asdict(release.promise),
        "rate": fraction_to_json(release.rate),
        "extras": dict(release.extras),
    }
    tensors = {_PREFIX + name: array for name, array in release.plan.pair.tensors.items()}
    return document, tensors | {"table": release.table}


def from_parts(
    document: Mapping[str, Any],
    tensors: Mapping[str, NDArray[Any]],
    families: tuple[type[Family], ...] = (),
    kernels: tuple[type[Kernel], ...] = (),
) -> Release:
    """Rebuild a release from its document and tensors, checking all of it."""
    try:
        return _rebuild(document, tensors, families, kernels)
    except FormatError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError, BudgetError):
        raise FormatError("the description of this release is damaged") from None


def _rebuild(
    document: Mapping[str, Any],
    tensors: Mapping[str, NDArray[Any]],
    families: tuple[type[Family], ...],
    kernels: tuple[type[Kernel], ...],
) -> Release:
    own = {n.removeprefix(_PREFIX): a for n, a in tensors.items() if n.startswith(_PREFIX)}
    plan = plan_from_json(document.get("plan"), own, families, kernels)
    table = tensors.get("table")
    cells = plan.pair.bounds.cells
    if table is None or len(tensors) != len(own) + 1:
        raise FormatError("this release has no table, or tensors beside it that do not belong")
    if table.dtype != np.int64 or table.shape != (cells,):
        raise FormatError("the table of this release does not fit its plan")
    count, extras = document.get("count"), document.get("extras")
    identity, generator = document.get("release_id"), document.get("generator")
    if type(count) is not int or not 1 <= count < 1 << 64:
        raise FormatError("the count of this release is damaged")
    if not (isinstance(extras, dict) and isinstance(identity, str) and isinstance(generator, str)):
        raise FormatError("the description of this release is damaged")
    try:
        privacy = _statement(document["privacy"], plan)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, BudgetError):
        raise FormatError("the privacy statement of this release does not add up") from None
    rate = fraction_from_json(document.get("rate", "1"))
    if rate is None or rate.numerator != 1 or rate.denominator not in _RATES:
        raise FormatError("the sampling rate of this release is damaged")
    return Release(
        plan,
        table,
        count,
        privacy,
        release_id=identity,
        generator=generator,
        extras=extras,
        promise=promise_from_json(document.get("promise"), plan.frame),
        rate=rate,
    )


def save(release: Release, path: str | os.PathLike[str]) -> None:
    """Write a release to a file, atomically."""
    container.write(path, *to_parts(release))


def to_bytes(release: Release) -> bytes:
    """Return a release as the bytes of a file."""
    return container.pack(*to_parts(release))


def from_bytes(
    data: bytes,
    *,
    families: Sequence[type[Family]] = (),
    kernels: Sequence[type[Kernel]] = (),
) -> Release:
    """Read a release from the bytes of a file; as `load`."""
    document, tensors = container.unpack(data)
    expect_format(document, FORMAT, VERSION, "what was given")
    return from_parts(document, tensors, tuple(families), tuple(kernels))


def load(
    path: str | os.PathLike[str],
    *,
    families: Sequence[type[Family]] = (),
    kernels: Sequence[type[Kernel]] = (),
) -> Release:
    """Read a release from a file.

    Parameters
    ----------
    path
        What `Release.save` wrote.
    families, kernels
        Custom families and kernels that the release may use; names are never imported.

    Raises
    ------
    FormatError
        The file is damaged, hostile, or not a release.
    """
    document, tensors = container.read(path)
    expect_format(document, FORMAT, VERSION, str(path))
    return from_parts(document, tensors, tuple(families), tuple(kernels))


def _statement(entry: Mapping[str, Any], plan: Plan) -> PrivacyStatement:
    """Rebuild the statement by spending again, and compare the laws with those in the file."""
    guarantee = Guarantee.declare(
        epsilon=fraction_from_json(entry["epsilon"]),
        delta=fraction_from_json(entry["delta"]) or Fraction(0),
        rho=fraction_from_json(entry["rho"]),
        adjacency=entry["adjacency"],
    )
    budget = Budget(guarantee)
    wanted = ["count", "table"] if guarantee.adjacency is Adjacency.ADD_REMOVE else ["table"]
    if [item["purpose"] for item in entry["spends"]] != wanted or entry["unit"] != UNIT:
        raise ParameterError("the spends are not those of a release")
    for item in entry["spends"]:
        bounds: Bounds = {"count": COUNT, "table": plan.pair.bounds}[item["purpose"]]
        law = NOISES[item["law"]]
        if item["purpose"] == "count" and not law.is_scalar:
            raise ParameterError("a count has noise of its own, not that of a table")
        amount = Amount(
            epsilon=fraction_from_json(item["epsilon"]), rho=fraction_from_json(item["rho"])
        )
        spend = budget.spend(item["purpose"], amount, law, bounds)
        if fraction_from_json(item["scale"]) != spend.law.scale or item["sensitivity"] != str(
            spend.sensitivity
        ):
            raise ParameterError("a scale does not fit its sensitivity")
    return PrivacyStatement(guarantee, budget.spends)
