"""What two plans differ in, in words: all of a plan is public."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from dpkde.planning.plan import Plan
from dpkde.release import container

_MOST = 3
"""Fields that are named."""
_MOST_TEXT = 60
_DECIDES = {"kernel": "name", "domain": "kind", "family": "name"}
"""Where these differ, parameters cannot be compared."""
_WORDS = {
    "domain.bounds": "bounds",
    "domain.dim": "the number of columns",
    "domain.kind": "the kind of bounds",
    "lattice.bits": "bits",
    "lattice.capacity_bits": "capacity_bits",
}


def differences(one: Plan, other: Plan) -> str:
    """Return which fields of two plans differ, with both values; empty where the plans are equal.

    >>> import dpkde
    >>> first, second = (
    ...     dpkde.plan(
    ...         kernel=dpkde.Gaussian(width), bounds=[(0, 1)], epsilon=1, family=dpkde.FastGauss(4)
    ...     )
    ...     for width in (0.1, 0.2)
    ... )
    >>> differences(first, second)
    'kernel.bandwidth is 0.1 and 0.2'
    """
    if one == other:
        return ""
    faults = [
        f"{_WORDS.get(name, name)}{place} is {_shown(left)} and {_shown(right)}"
        for name, place, left, right in _documents(_document(one), _document(other))
    ]
    faults = faults or [f"what was drawn is not the same: {name}" for name in _tensors(one, other)]
    if not faults:
        left, right = asdict(one.pair.bounds), asdict(other.pair.bounds)
        faults = [
            f"the {name} bound of a record is {left[name]} and {right[name]}"
            for name in left
            if left[name] != right[name]
        ]
    more = [f"and {len(faults) - _MOST} more"] if len(faults) > _MOST else []
    return ", ".join([*faults[:_MOST], *more])


def _document(plan: Plan) -> dict[str, Any]:
    """Return what a file says of a plan, as it is read again: no tuples, no types of our own."""
    return dict(json.loads(container.canonical(plan.document)))


_Difference = tuple[str, str, Any, Any]
"""A field, where in it, as in ``"[0][1]"``, and both values."""


def _documents(one: dict[str, Any], other: dict[str, Any]) -> Iterator[_Difference]:
    for name in sorted(set(one) | set(other)):
        decides = _DECIDES.get(name)
        if decides is not None and one[name][decides] != other[name][decides]:
            yield (f"{name}.{decides}", "", one[name][decides], other[name][decides])
        else:
            yield from _values(name, "", one.get(name), other.get(name))


def _values(name: str, place: str, left: Any, right: Any) -> Iterator[_Difference]:
    """Yield the innermost values that differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted(set(left) | set(right)):
            inner = name if key == "parameters" else f"{name}.{key}"
            yield from _values(inner, place, left.get(key), right.get(key))
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for number, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from _values(name, f"{place}[{number}]", one, other)
    elif repr(left) != repr(right):  # 1 and 1.0 are two digests
        yield name, place, left, right


def _tensors(one: Plan, other: Plan) -> Iterator[str]:
    """Yield the names of tensors that differ."""
    left, right = one.tensors, other.tensors
    for name in sorted(set(left) | set(right)):
        if name not in left or name not in right or not np.array_equal(left[name], right[name]):
            yield name.removeprefix("family.")


def _shown(value: Any) -> str:
    """Return a value in few characters, none of which moves a cursor."""
    text = "not there" if value is None else repr(value)
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 1]}…"
