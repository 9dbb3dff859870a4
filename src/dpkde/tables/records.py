r"""Records of delimited text as numbers: compiled, one record after the other, never an error.

Records are those of RFC 4180: fields between delimiters, records between line breaks; a field in
quotes may hold delimiters, line breaks and, doubled, quotes. Why not a library's CSV reader: in
those a stray quote in one record can swallow, shift or end all the records after it, and their
errors quote the offending cell. Here a record is read as if it stood alone:

* A quote opens a field only at its start, and closes it only before a delimiter, a line break or
  the end of the text (spaces between are passed over). Any other quote within the field has to be
  doubled. A quote inside a field that did not begin with one is a character like any other.
* A record has as many fields as the header. One empty field more is forgiven, for the delimiter
  that some programs write behind each record; where the header ends with a delimiter too, the last
  field may hold anything, or be missing.
* A field in quotes has at most `MAX_FIELD` bytes, a record at most `MAX_RECORD`.
* Where one of these rules is broken, **the first line of the record is one bad record**, a row of
  NaN, and reading goes on at the next line, as if nothing had been before it.
* With ``multiline=False`` a line break ends a record wherever it stands, so every line is one.

Lines end with ``\n``, ``\r\n`` or ``\r\r\n`` (text translated twice, on Windows); where a header
ends with ``\r`` alone, `text` makes every ``\r`` a line break. Blank lines are no records, except
in a table of one column, where a missing value leaves nothing else of its line. Spaces around a
field are ignored. `numbers` says what a number is; any other field is NaN.

**Which records one can touch.** Of a table of well-formed records, each adds its own row and
changes no other: a reading that starts where a record starts ends where that record ends. A
malformed record without a quote is one bad record. One that leaves a quote open can be read
together with records after it, until a rule is broken or a line ends with all fields complete. If
every other record stands on a line of its own, reading is in step again there: lost are at most
records that begin within `MAX_RECORD` bytes of the malformed one, and no more of them than
`MAX_FIELD` for each field, since all of them begin in its quotes. If others hold line breaks in
quotes, reading may go on out of step, inside their texts, as long as those look like records from
within; a stretch of `MAX_FIELD` bytes without a quote ends that too. With ``multiline=False`` no
line touches another.

**Cost.** O(bytes), up to a factor of the number of fields for text made to be slow: a reading that
fails has passed at most one line for each of its fields at which another such reading can begin.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import exactly
from dpkde.tables.cells import RAGGED
from dpkde.tables.numbers import parse_number

MAX_RECORD = 1 << 20
MAX_FIELD = 1 << 16

_NEWLINE, _RETURN, _SPACE, _QUOTE = 10, 13, 32, 34
_UNDECIDED, _GOOD, _BLANK, _BAD = 0, 1, 2, 3


@exactly
def whole_records(
    text: NDArray[np.uint8],
    start: int,
    most: int,
    final: bool,
    delimiter: int,
    targets: NDArray[np.int64],
    unnamed: bool,
) -> tuple[int, int]:
    """Return where records that begin at `start` end, in some `most` bytes, and how many they are.

    It stops before the first record that needs more text to be read, unless `final` tells that
    none is to come. What is before it can be read apart: `parse_records` makes the same of it as of
    the whole. For that, a reading that fails beyond the cut must fail at the cut too. It does: the
    cut is behind a line break, where a record is either over or in the middle of a quoted field,
    and at the end of the text an open quote is a broken rule.
    """
    nowhere, nobody = np.empty(0), np.empty(0, dtype=np.int64)
    position, records = start, 0
    while position < min(text.size, start + most):
        outcome, after = _read(
            text, position, final, delimiter, targets, unnamed, True, 0, 0, nowhere, -1, nobody
        )
        if outcome == _UNDECIDED:
            break
        records += outcome != _BLANK
        position = after
    return min(position, text.size), records


@exactly
def parse_records(
    text: NDArray[np.uint8],
    delimiter: int,
    targets: NDArray[np.int64],
    unnamed: bool,
    multiline: bool,
    decimal: int,
    thousands: int,
    rows: NDArray[np.float64],
    label: int,
    spans: NDArray[np.int64],
) -> int:
    """Write the fields of each record that have a target; return how many records there were.

    Parameters
    ----------
    text
        Whole records, from the start of one.
    delimiter
        The byte between fields.
    targets
        One entry for each field of the header: the column of `rows` to write it to, or −1.
    unnamed
        Whether the header ends with a delimiter: one more field may hold anything.
    multiline
        Whether fields in quotes may hold line breaks.
    decimal, thousands
        As in `parse_number`.
    rows
        Written to, shape (at least the number of records and at least 1, columns).
    label, spans
        The field that tells whose a record is, or −1; and where that stands in each record: start,
        stop, and whether it is in quotes. As many rows, or none; zeros for bad records.
    """
    n, position = 0, 0
    while position < text.size:
        # Behind the last record there may be blank lines, for which no row was made.
        row = rows[n] if n < len(rows) else rows[0, :0]
        span = spans[n] if n < len(spans) else spans[:0].reshape(0)
        outcome, position = _read(
            *(text, position, True, delimiter, targets, unnamed, multiline, decimal, thousands),
            *(row, label, span),
        )
        if outcome == _BAD:
            rows[n, :] = RAGGED
            span[:] = 0
        if outcome != _BLANK:
            n += 1
    return n


@exactly
def _read(
    text: NDArray[np.uint8],
    start: int,
    final: bool,
    delimiter: int,
    targets: NDArray[np.int64],
    unnamed: bool,
    multiline: bool,
    decimal: int,
    thousands: int,
    row: NDArray[np.float64],
    label: int,
    span: NDArray[np.int64],
) -> tuple[int, int]:
    """Read the record at `start`: return what became of it, and where the next one begins.

    `final` tells whether nothing follows the text. An empty `row` or `span` is not written to.
    """
    size, fields = text.size, targets.size
    space = _SPACE if delimiter != _SPACE else -1
    position, field, broken = start, 0, False
    while True:
        first = position
        while first < size and text[first] == space:
            first += 1
        quoted = first < size and text[first] == _QUOTE
        if quoted:
            first += 1
            last = first
            while True:
                while last < size and text[last] != _QUOTE:
                    if not multiline and text[last] == _NEWLINE:
                        break
                    last += 1
                if last - first > MAX_FIELD or (last < size and text[last] == _NEWLINE):
                    broken = True
                elif last + 1 < size and text[last + 1] == _QUOTE:
                    last += 2
                    continue
                break
            position = last + 1
            while position < size and text[position] == space:
                position += 1
            if not broken and last < size and position < size and text[position] != delimiter:
                # Only a line break may follow now, with up to two returns before it.
                end = position
                while end < min(position + 2, size) and text[end] == _RETURN:
                    end += 1
                broken = end < size and text[end] != _NEWLINE
                if not broken:
                    position = end
            if last == size and final:
                broken = True
        else:
            while position < size and text[position] != delimiter and text[position] != _NEWLINE:
                position += 1
            last = position
        if broken:
            break
        if position >= size and not final:
            # Two bytes more than the limit may still be returns before a line break to come.
            broken = size - start > MAX_RECORD + 2
            break
        more = position < size and text[position] == delimiter
        if not quoted and not more:
            returns = 0
            while returns < 2 and last > first and text[last - 1] == _RETURN:
                last -= 1
                returns += 1
        if field < fields:
            if row.size and targets[field] >= 0:
                row[targets[field]] = parse_number(text, first, last, decimal, thousands)
            if field == label and span.size:
                span[0], span[1], span[2] = first, last, 1 if quoted else 0
        elif field > fields or more or (not unnamed and (quoted or first < last)):
            broken = True
            break
        field += 1
        if not more:
            content = position - start
            while content > max(position - start - 2, 0) and text[start + content - 1] == _RETURN:
                content -= 1
            if content == 0 and fields > 1:
                return _BLANK, position + 1
            broken = field < fields or content > MAX_RECORD
            if not broken:
                return _GOOD, position + 1
            break
        position += 1
    if not broken:
        return _UNDECIDED, start
    end = start
    while end < size and text[end] != _NEWLINE:
        end += 1
    if end == size and not final:
        return _UNDECIDED, start
    return _BAD, end + 1
