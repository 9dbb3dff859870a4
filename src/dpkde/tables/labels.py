"""Labels: whose each row of a table is, in the canonical form of `ids`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.privacy.secrecy import no_warnings, unseen
from dpkde.tables.cells import NUMBERS
from dpkde.tables.ids import WHOLE

NO_LABELS = "column {!r} of {}, which tells nobody's id: make text or whole numbers of it"
_EXACT = 2.0**63
_ALL = "surrogatepass"
"""How text is written: half a pair, which a wrong reading leaves, is kept and told from others."""
_LONGEST = 1 << 12
"""Bits of a whole number that is an id: writing out longer ones would take time."""


@dataclass(frozen=True)
class Labels:
    """Whose each row is.

    Attributes
    ----------
    kinds
        `MISSING`, `WHOLE` or `TEXT`, uint8, shape (n,).
    numbers
        The id where that is a whole number, int64, shape (n,).
    text, ends
        The bytes of all texts one after the other, and where that of each row ends, shape (n,).
    """

    kinds: NDArray[np.uint8]
    numbers: NDArray[np.int64]
    text: NDArray[np.uint8]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.kinds)

    def __repr__(self) -> str:
        return f"<Labels (secret): {len(self)}>"


Labelled = tuple[NDArray[Any], Labels]
"""Rows of numbers, and whose they are."""


def nobody(size: int) -> Labels:
    """Return the labels of rows that are nobody's."""
    numbers, ends = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    return Labels(np.zeros(size, np.uint8), numbers, np.zeros(0, np.uint8), ends)


def labels_in_spans(
    text: NDArray[np.uint8], spans: NDArray[np.int64], missing: NDArray[np.bool_] | None = None
) -> Labels:
    """Return the labels that stand in a text: rows of start, stop, and whether it was in quotes.

    Quotes that are doubled inside quotes are one.
    """
    from dpkde.tables.canonical import canonical

    size = int(np.maximum(spans[:, 1] - spans[:, 0], 0).sum())
    kinds, numbers = np.zeros(len(spans), np.uint8), np.zeros(len(spans), np.int64)
    kept, ends = np.empty(size, np.uint8), np.zeros(len(spans), np.int64)
    absent = np.zeros(len(spans), np.bool_) if missing is None else missing
    used = canonical(text, np.ascontiguousarray(spans), absent, kinds, numbers, kept, ends)
    return Labels(kinds, numbers, kept[:used].copy(), ends)


def labels_in_cells(cells: Iterable[Any]) -> Labels:
    """Return the labels that are cells of any type, each read by itself."""
    texts: list[bytes] = []
    present: list[bool] = []
    with no_warnings():
        for cell in cells:
            text = cell.encode("utf-8", _ALL) if type(cell) is str else unseen(_text, cell)
            present.append(text is not None)
            texts.append(text or b"")
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    spans = np.column_stack([starts, ends, np.zeros_like(ends)]).astype(np.int64)
    joined = np.frombuffer(b"".join(texts), dtype=np.uint8)
    return labels_in_spans(joined, spans, ~np.array(present, dtype=np.bool_))


def _text(cell: Any) -> bytes | None:
    """Return the text of a cell, spaces around it not yet taken away; None where it is no id."""
    kind = type(cell)
    if issubclass(kind, str):
        return str.__str__(cell).encode("utf-8", _ALL)
    if issubclass(kind, bytes):
        return bytes.__getitem__(cell, slice(None))
    if issubclass(kind, uuid.UUID):
        return str(uuid.UUID(int=int(cell))).encode()
    if issubclass(kind, (Integral, np.bool_)):
        return _whole(int(cell))
    if issubclass(kind, Decimal):
        return _decimal(Decimal(cell))
    if issubclass(kind, Real):
        real = float(cell)
        # What a float cannot tell from its neighbours, such as a third, would make one of several.
        return _float(float.__float__(real)) if real == cell else None
    return None


def _decimal(number: Decimal) -> bytes | None:
    """Return all digits of a number: `Decimal.normalize` rounds them to those of a context."""
    if not number.is_finite():
        return None
    sign, digits, power = number.as_tuple()
    text = "".join(map(str, digits))
    kept = text.rstrip("0") or "0"
    power = int(power) + len(text) - len(kept) if number else 0
    if power >= 0:
        return _whole(int(number)) if number.adjusted() < _LONGEST else None
    return str(Decimal((sign, tuple(map(int, kept)), power))).encode()


def _whole(number: int) -> bytes | None:
    return None if number.bit_length() > _LONGEST else str(number).encode()


def _float(number: float) -> bytes | None:
    return _whole(int(number)) if number.is_integer() else _decimal(Decimal(repr(number)))


def labels_in_numbers(numbers: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> Labels:
    """Return the labels that are real numbers of any type."""
    absent = np.zeros(len(numbers), np.bool_) if missing is None else missing
    if numbers.dtype.kind in "bi":
        whole = numbers.astype(np.int64)
        odd = ~absent & (whole == np.iinfo(np.int64).min)  # of which text makes no number
        plain = ~absent & ~odd
    elif numbers.dtype.kind == "u":
        odd = ~absent & (numbers > np.iinfo(np.int64).max)
        plain = ~absent & ~odd
        whole = np.where(plain, numbers, 0).astype(np.int64)
    else:
        with np.errstate(all="ignore"):
            fits = np.isfinite(numbers) & (np.abs(numbers) < _EXACT) & (numbers == np.rint(numbers))
            plain = ~absent & fits
            odd = ~absent & ~fits & np.isfinite(numbers)
            whole = np.where(plain, numbers, 0).astype(np.int64)
    labels = nobody(len(numbers))
    labels.kinds[plain] = WHOLE
    labels.numbers[plain] = whole[plain]
    return labels if not odd.any() else _with(labels, odd, labels_in_cells(numbers[odd].tolist()))


def _with(labels: Labels, places: NDArray[np.bool_], others: Labels) -> Labels:
    """Return labels, which have no text yet, with those of `others` at some places."""
    kinds, numbers = labels.kinds.copy(), labels.numbers.copy()
    kinds[places], numbers[places] = others.kinds, others.numbers
    lengths = np.zeros(len(labels), dtype=np.int64)
    lengths[places] = np.diff(others.ends, prepend=0)
    return Labels(kinds, numbers, others.text, np.cumsum(lengths))


def labels_in_series(series: Any, strings: Callable[[Any], Labels | None]) -> Labels:
    """Return the labels that are a column of a narwhals frame.

    `strings` reads a column that is an Arrow array, where it is one: quicker than cell by cell,
    and where the values of a dictionary are null it is Arrow alone that counts its nulls right.
    """
    values = strings(series)
    if values is not None:
        return values
    if str(series.dtype) in ("Object", "String"):  # of pandas: to look for nulls asks the cells
        return labels_in_cells(series.to_list())
    if not series.null_count():
        cells = series.to_numpy()
        return labels_in_numbers(cells) if cells.dtype.kind in NUMBERS else labels_in_cells(cells)
    missing = series.is_null().to_numpy().astype(bool)
    # Without its nulls a column of whole numbers keeps its type, and its last digits.
    rest = series.drop_nulls().to_numpy()
    if rest.dtype.kind in NUMBERS:
        whole = np.zeros(len(missing), dtype=rest.dtype)
        whole[~missing] = rest
        return labels_in_numbers(whole, missing)
    return labels_in_cells(series.to_list())


def labels_in_arrow(array: Any) -> Labels:
    """Return the labels that are an Arrow array of whole numbers, floats, booleans or text."""
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_dictionary(array.type):
        array = array.dictionary_decode()
    if kinds.is_null(array.type):
        return nobody(len(array))
    missing = np.asarray(array.is_null()) if array.null_count else np.zeros(len(array), np.bool_)
    if kinds.is_boolean(array.type):
        array = array.cast(pa.uint8())
    if kinds.is_integer(array.type) or kinds.is_floating(array.type):
        return labels_in_numbers(array.fill_null(0).to_numpy(zero_copy_only=False), missing)
    array = array.cast(pa.large_binary())
    _, ends, text = array.buffers()
    offsets = np.frombuffer(ends, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    spans = np.column_stack([offsets[:-1], offsets[1:], np.zeros(len(array), np.int64)])
    return labels_in_spans(
        np.frombuffer(text or b"", dtype=np.uint8), spans.astype(np.int64), missing
    )


def is_label_type(arrow_type: Any) -> bool:
    """Return whether ids may be of an Arrow type: whole numbers, floats, booleans, text, nulls."""
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_dictionary(arrow_type):
        inner = arrow_type.value_type
        return kinds.is_binary(inner) or is_label_type(inner)
    tests = (
        *(kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_null),
        *(kinds.is_string, kinds.is_large_string, kinds.is_string_view),
    )
    return any(test(arrow_type) for test in tests)
