"""Which records are of which class: each label compared by itself with the public ones.

What is in a label is private. So its type as a column can raise, and no label does; and no label
changes what another is taken for, as it would where a list of numbers with one word in it became
an array of text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError, SchemaError
from dpkde.numerics.numbers import is_real
from dpkde.privacy.secrecy import no_warnings, unseen
from dpkde.release.parts import MOST_SHARES
from dpkde.tables.frames import only_column

Label = str | bool | int | float
Numbers = NDArray[np.int64]

NO_CLASS = -1
_LARGEST = 1 << 63
_NULLS = (("isna", "dropna"), ("is_null", "drop_nulls"), ("is_null", "drop_null"))
"""How columns of pandas, polars and Arrow tell their nulls, and what they hold beside those."""


def as_classes(classes: Any) -> tuple[Label, ...]:
    """Return public labels, sorted: all texts, all truth values, or all numbers; each once.

    >>> as_classes(["sick", "healthy"]), as_classes(np.array([3, 1]))
    (('healthy', 'sick'), (1, 3))
    """
    if classes is None or isinstance(classes, (str, bytes)):
        raise ParameterError(
            "classes are public and have to be given, such as classes=['healthy', 'sick']: which "
            "labels there are among private records is private"
        )
    try:
        labels = [label.item() if isinstance(label, np.generic) else label for label in classes]
    except TypeError:
        raise ParameterError(f"classes must be a list of labels, got {classes!r}") from None
    kinds = {"text" if type(label) is str else _kind(label) for label in labels}
    if len(kinds) != 1 or None in kinds:
        raise ParameterError(
            "classes must be labels of one kind, texts, numbers or True and False, at least one of "
            f"them, got {labels!r}"
        )
    if len(set(labels)) < len(labels):
        raise ParameterError(f"classes must be named once each, got {labels!r}")
    if len(labels) > MOST_SHARES:
        raise ParameterError(f"there may be {MOST_SHARES} classes at most, got {len(labels)}")
    return tuple(sorted(labels))


def _kind(label: Any) -> str | None:
    """Return the kind of a label that is no text; None where it is no label."""
    if type(label) is bool:
        return "truth"
    return "number" if is_real(label) and abs(label) < _LARGEST else None


def numbered(labels: Any, classes: Sequence[Label]) -> Numbers:
    """Return the number of each record's class; `NO_CLASS` where its label is none of them.

    Guarantee
    ---------
    The number of a record depends on its own label, the type of the column and `classes` alone. No
    label raises, or warns.
    """
    present: NDArray[np.bool_] | None = None
    column: NDArray[Any] | None
    if isinstance(labels, (list, tuple)):
        column = np.empty(len(labels), dtype=object)
        for place, label in enumerate(labels):  # one by one: an array would make them all alike
            column[place] = label
    else:
        with no_warnings():
            present, column = unseen(_present, labels) or (None, None)
    if column is None or column.ndim == 0:
        raise SchemaError("y must be a column of labels, one for each record")
    if column.ndim == 2 and column.shape[1] == 1:
        column = column.reshape(-1)
    if column.ndim != 1:
        raise SchemaError(f"y must be one column of labels, got {column.ndim} dimensions")
    found = _numbers_of(column, classes)
    if present is None:
        return found
    numbers = np.full(len(present), NO_CLASS, dtype=np.int64)
    numbers[present] = found
    return numbers


def _present(labels: Any) -> tuple[NDArray[np.bool_] | None, NDArray[Any]]:
    """Return which labels there are, and those as an array; None: all of them are in the array.

    Columns with nulls are read without those: else one null would make floats of whole numbers,
    which merges large ones, and objects of truth values.
    """
    if isinstance(labels, np.ma.MaskedArray):
        labels = labels.reshape(-1) if labels.shape[1:] == (1,) else labels
        masked = np.ma.getmaskarray(labels)
        return (~masked, labels.data[~masked]) if labels.ndim == 1 else (None, labels.data)
    labels = only_column(labels)
    if not isinstance(getattr(labels, "dtype", None), np.dtype):
        for absent, rest in _NULLS:
            if hasattr(labels, absent) and hasattr(labels, rest):
                missing = np.asarray(getattr(labels, absent)(), dtype=np.bool_)
                return ~missing, np.asarray(getattr(labels, rest)())
    return None, np.asarray(labels)


def _numbers_of(column: NDArray[Any], classes: Sequence[Label]) -> Numbers:
    """Return the numbers of the classes of labels in an array of one dimension."""
    texts = isinstance(classes[0], str)
    kind = column.dtype.kind
    if kind not in "OUTbiuf":
        raise SchemaError(f"y must hold texts, numbers or truth values, got type {column.dtype}")
    if kind != "O" and texts != (kind in "UT"):
        held, given = ("texts", "numbers") if texts is False else ("numbers", "texts")
        raise SchemaError(f"y holds {held}, and classes are {given}: no record could be of any")
    if kind in "OT":
        places = {label: number for number, label in enumerate(classes)}
        found = (unseen(places.get, label, NO_CLASS) for label in column)
        return np.array([NO_CLASS if n is None else n for n in found], dtype=np.int64)
    numbers = np.full(len(column), NO_CLASS, dtype=np.int64)
    with np.errstate(all="ignore"):
        for number, label in enumerate(classes):
            numbers[np.equal(column, label)] = number
    return numbers
