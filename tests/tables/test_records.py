"""Records and numbers of text: the grammar, a slow twin, and what one record can do to others."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import lzma
import math
import random
import re
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import dpkde
from dpkde.errors import SchemaError
from dpkde.tables import CSV, open_points, records, streams
from dpkde.tables import text as tables
from dpkde.tables.numbers import DOT, NO_MARK, parse_number

GRAMMAR = re.compile(rb"[ \t]*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[ \t]*")
GROUPED = re.compile(rb"[ \t]*[+-]?\d{1,3}(,\d{3})+(\.\d*)?([eE][+-]?\d+)?[ \t]*")
Rows = NDArray[np.float64]


def number(text: bytes, decimal: int = DOT, thousands: int = NO_MARK) -> float:
    array = np.frombuffer(text, dtype=np.uint8)
    return float(parse_number(array, 0, array.size, decimal, thousands))


@given(st.one_of(st.binary(max_size=12), st.from_regex(GRAMMAR, fullmatch=True)))
def test_exactly_the_grammar_is_read(text: bytes) -> None:
    value = number(text)
    if GRAMMAR.fullmatch(text):
        expected = float(text)
        assert value == expected or math.isclose(value, expected, rel_tol=1e-14, abs_tol=1e-320)
    else:
        assert math.isnan(value)


@given(
    st.one_of(
        st.from_regex(GROUPED, fullmatch=True),
        st.from_regex(GRAMMAR, fullmatch=True),
        st.text("0123456789,.-e", max_size=12).map(str.encode),
    )
)
def test_marks_between_thousands_are_read_only_where_they_are_named(text: bytes) -> None:
    value = number(text, thousands=ord(","))
    if GRAMMAR.fullmatch(text) or GROUPED.fullmatch(text):
        assert math.isclose(value, float(text.replace(b",", b"")), rel_tol=1e-14, abs_tol=1e-320)
    else:
        assert math.isnan(value)
    if b"," in text:
        assert math.isnan(number(text))


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=6, min_value=-(10**8), max_value=10**8
    )
)
def test_ordinary_numbers_are_correctly_rounded(value: object) -> None:
    assert number(str(value).encode()) == float(str(value))
    assert number(str(value).replace(".", ",").encode(), ord(","), ord(".")) == float(str(value))


@pytest.mark.parametrize(
    "text",
    [b"nan", b"inf", b"-inf", b"0x1", b"1_0", b"1,5", b"1 2", b"--1", b".", b"", b"e5", b"1e"],
)
def test_what_is_no_number(text: bytes) -> None:
    assert math.isnan(number(text))


def rows_of(text: bytes, header: bytes = b"a,b\n", **options: Any) -> Rows:
    source = open_points(CSV(io.BytesIO(header + text), **options))
    parts = [piece.rows() for piece in source.read()]
    return np.concatenate([np.empty((0, source.dim or 0)), *parts])


def alike(one: Rows, other: Rows) -> bool:
    return np.array_equal(one, other, equal_nan=True)


# Well-formed records: each is one row, whatever is in its text.


def pandas_text(lineterminator: str = "\n") -> tuple[str, pd.DataFrame]:
    """A table as pandas writes it, with all that people write into a column of text."""
    chance = np.random.default_rng(5)
    notes = [
        *('gate "B"', '"', '""', '"quoted"', 'ends with "', ",", '","', "\n", "a\nb", "a\r\nb\n"),
        *(
            '1,2\n3,4\n5,"6"\n',
            "\r",
            "a\rb",
            "",
            " ",
            '\n"\n',
            '",\n"',
            "é, ü",
            "x" * 300,
            "\n" * 9,
        ),
    ]
    size = 200
    frame = pd.DataFrame(
        {
            "a": chance.normal(size=size).round(4),
            "note": chance.choice(np.array(notes, dtype=object), size),
            "b": chance.normal(size=size).round(4),
        }
    )
    return frame.to_csv(index=False, lineterminator=lineterminator), frame


def read(text: bytes, block: int, columns: list[str]) -> Rows:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "TEXT_BLOCK", block)
        source = open_points(io.BytesIO(text), columns)
        return np.concatenate([np.empty((0, 2)), *[p.rows() for p in source.read()]])


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_every_record_of_a_table_with_free_text_counts(ending: str, tmp_path: Path) -> None:
    text, frame = pandas_text(ending)
    expected = frame[["a", "b"]].to_numpy()
    for block in (1, 2, 3, 7, 64, 1000, 4096, 1 << 20):
        assert alike(read(text.encode(), block, ["a", "b"]), expected)
    (tmp_path / "t.csv").write_bytes(text.encode())
    release = dpkde.publish(
        tmp_path / "t.csv",
        kernel=dpkde.Gaussian(1.0),
        bounds=[(-4, 4)] * 2,
        columns=["a", "b"],
        epsilon=10**6,
    )
    assert release.count == len(frame)


def test_a_record_changes_the_sketch_by_its_own_contribution_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bit for bit, whichever record is left out, wherever blocks of text end."""
    text, frame = pandas_text()
    buffer = io.StringIO(newline="")
    lines = []
    for row in frame.itertuples(index=False):
        buffer.seek(0)
        buffer.truncate()
        csv.writer(buffer, lineterminator="\n").writerow(row)
        lines.append(buffer.getvalue().encode())
    head = b"a,note,b\n"
    plan = dpkde.plan(
        kernel=dpkde.Gaussian(1.0),
        bounds=[(-4, 4)] * 2,
        epsilon=1,
        family=dpkde.Fourier(4),
        columns=["a", "b"],
        seed=1,
    )
    whole = dpkde.sketch(io.BytesIO(text.encode()), plan)
    for left_out, (line, block) in enumerate(
        zip(lines[:100], itertools.cycle([1, 5, 33, 256, 1 << 20]), strict=False)
    ):
        monkeypatch.setattr(tables, "TEXT_BLOCK", block)
        rest = head + b"".join(lines[:left_out] + lines[left_out + 1 :])
        alone = dpkde.sketch(io.BytesIO(head + line), plan)
        assert alone._count == 1
        assert dpkde.sketch(io.BytesIO(rest), plan) + alone == whole


def test_free_text_of_many_lines_is_one_record() -> None:
    """Of lines that look like records, too; up to 64 KiB."""
    story = b"1,2\n" * 5000
    rows = rows_of(b'1,"' + story + b'",2\n3,x,4\n', b"a,t,b\n")
    assert rows[:, [0, 2]].tolist() == [[1, 2], [3, 4]]
    longest = records.MAX_FIELD
    for size, expected in ((longest, 1), (longest + 1, 0)):
        text = b'1,"' + b"\n" * size + b'",2\n'
        good = np.isfinite(rows_of(text, b"a,t,b\n")[:, [0, 2]]).all(axis=1)
        assert good.sum() == expected


# A slow twin: the rules again, by regular expressions.

_END = rb"\r{0,2}(?:\n|\Z)"
_PLAIN = rb"(?! *\")[^,\n]*?(?=,|" + _END + rb")"
_FIELDS = {
    True: re.compile(rb' *"((?:[^"]|"")*)" *(?=,|' + _END + rb")|(" + _PLAIN + rb")"),
    False: re.compile(rb' *"((?:[^"\n]|"")*)" *(?=,|' + _END + rb")|(" + _PLAIN + rb")"),
}


def _match(text: bytes, start: int, width: int, unnamed: bool, multiline: bool) -> Any:
    """Return the fields of the record at `start` and its end; None where a rule is broken."""
    fields: list[bytes] = []
    quotes: list[bool] = []
    at = start
    while True:
        field = _FIELDS[multiline].match(text, at)
        if field is None:
            return None
        quoted = field.group(1) is not None
        fields.append(field.group(1) if quoted else field.group(2))
        quotes.append(quoted)
        if quoted and len(fields[-1]) > records.MAX_FIELD:
            return None
        at = field.end()
        if text[at : at + 1] != b",":
            break
        at += 1
    end = re.compile(_END).match(text, at)
    assert end is not None
    extra = len(fields) == width + 1 and (
        unnamed or (not fields[-1].strip(b" ") and not quotes[-1])
    )
    if at - start > records.MAX_RECORD or (len(fields) != width and not extra):
        blank = at == start and width > 1
        return ([], end.end()) if blank else None
    return fields[:width], end.end()


def twin(text: bytes, width: int = 2, unnamed: bool = False, multiline: bool = True) -> list[Any]:
    """Return for each record its fields, or None where it is bad."""
    outcomes: list[Any] = []
    at = 0
    while at < len(text):
        record = _match(text, at, width, unnamed, multiline)
        if record is None:
            outcomes.append(None)
            at = text.find(b"\n", at) + 1 or len(text)
        else:
            if record[0] and not (width > 1 and text[at : record[1]].strip(b"\r\n") == b""):
                outcomes.append(record[0])
            at = record[1]
    return outcomes


def values(twins: list[Any], width: int) -> Rows:
    bad = [math.nan] * width
    return np.array(
        [bad if one is None else [number(cell) for cell in one] for one in twins]
    ).reshape(-1, width)


def fast(text: bytes, width: int, block: int, unnamed: bool, multiline: bool) -> Rows:
    layout = tables._Layout(ord(","), np.arange(width), unnamed, multiline, DOT, NO_MARK)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "TEXT_BLOCK", block)
        parts = [piece.rows() for piece in tables._blocks(io.BytesIO(text).read, b"", layout)]
    return np.concatenate([np.empty((0, width)), *parts])


BITS = [
    b'"',
    b'""',
    b'"',
    b",",
    b"\n",
    b"1",
    b"2",
    b"-3.5",
    b" ",
    b"\r\n",
    b"\r",
    b"x",
    b'",',
    b'\n"',
]
TEXTS = [b"", b"x", b'"', b'"a"', b",", b"1,2", b"\n", b'\n1,2\n"', b"\r\n", b",\n,", b'",', b'"\n']


def well_formed(chance: random.Random, width: int, multiline: bool) -> bytes:
    """A record of RFC 4180: fields in quotes wherever they have to be, and sometimes elsewhere."""
    fields = []
    for _ in range(width):
        text = chance.choice([b"1", b"2.5", b"-7", b"", chance.choice(TEXTS)])
        if not multiline and b"\n" in text:
            text = b"4"
        if chance.random() < 0.1:
            text = b'5"'  # a stray quote, as people write inches: no program would, but it is read
        elif any(c in text for c in b'",\r\n') or chance.random() < 0.2:
            text = b'"' + text.replace(b'"', b'""') + b'"'
        fields.append(text)
    record = b",".join(fields)
    return (record or b'""') + chance.choice([b"\n", b"\n", b"\r\n", b",\n", b"\r\r\n"])


def scrap(chance: random.Random) -> bytes:
    """What no program should write."""
    return b"".join(chance.choices(BITS, k=chance.randrange(1, 12))) + b"\n"


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.audit) for seed in range(1, 5))]
)
def test_files_well_formed_and_malformed(seed: int) -> None:
    """What one record changes stays within what is stated, in 10,000 files."""
    chance = random.Random(seed)
    touched = swallowed = 0
    for _ in range(10_000):
        width = chance.choice([1, 2, 3])
        unnamed = chance.random() < 0.2
        multiline = chance.random() < 0.8
        lined = chance.random() < 0.5  # whether every other record stands on one line
        good = [
            well_formed(chance, width, multiline and not lined)
            for _ in range(chance.randrange(1, 7))
        ]
        settings = (width, chance.choice([1, 2, 5, 17, 1 << 20]), unnamed, multiline)
        # Well-formed records: each its own row, as if it stood alone.
        alone = [fast(record, *settings) for record in good]
        assert all(len(rows) == 1 for rows in alone)
        assert alike(fast(b"".join(good), *settings), np.concatenate(alone))
        # One that is not, among them.
        place = chance.randrange(len(good) + 1)
        bad = scrap(chance)
        text = b"".join([*good[:place], bad, *good[place:]])
        rows = fast(text, *settings)
        twins = twin(text, width, unnamed, multiline)
        assert alike(rows, values(twins, width))
        before = np.concatenate([np.empty((0, width)), *alone[:place]])
        assert alike(rows[:place], before)
        if not lined and multiline:
            continue  # nothing is promised of those after it
        # It adds at most a row for each of its lines; of those after it the first few are lost,
        # and only where it leaves a quote open.
        after, lines = alone[place:], bad.count(b"\n")
        left = [k for k in range(len(after) + 1) if _ends(rows[place:], after[k:], lines, width)]
        assert left
        if not multiline or _closed(bad):
            assert left[0] == 0
        touched += 1
        swallowed += left[0] > 0
    assert touched > 2000
    assert swallowed > 10  # so that the rule is needed


def _ends(rows: Rows, after: list[Rows], lines: int, width: int) -> bool:
    others = np.concatenate([np.empty((0, width)), *after])
    own = len(rows) - len(others)
    return 0 <= own <= lines and alike(rows[own:], others)


_OPEN = re.compile(rb'(?:(?: *"(?:[^"]|"")*" *|(?! *")[^,\n]*),)* *"(?:[^"]|"")*\Z')


def _closed(bad: bytes) -> bool:
    """Tell whether no line of a malformed record leaves a quote open at its end."""
    starts = [0, *(line.end() for line in re.finditer(rb"\n", bad))]
    return not any(_OPEN.match(bad, start) for start in starts)


def test_the_most_that_a_malformed_record_can_take_with_it() -> None:
    """An open quote: 65,536 bytes of others for each field, all of which may begin a record."""
    most = records.MAX_FIELD
    others = b"\n" * (most - 1)  # in a table of one column, blank lines are records
    assert len(rows_of(b'"\n' + others + b'"\n5\n', b"a\n")) == 2
    # One byte more, and nothing but the malformed line itself is lost.
    assert len(rows_of(b'"\n' + others + b'\n"\n5\n', b"a\n")) == 1 + most + 2
    # Two fields take twice as much, and a third is one too many.
    lines = b"1,2\n" * (most // 4 - 2)
    rows = rows_of(b'"\n' + lines + b'","' + lines + b'"\n7,8\n')
    assert len(rows) == 2
    assert rows[-1].tolist() == [7, 8]
    rows = rows_of(b'"\n' + lines + b'","' + lines + b'","' + lines + b'"\n7,8\n')
    assert (rows == [1, 2]).all(axis=1).sum() == 3 * (most // 4 - 2) - 2
    # However it goes on, a record ends within 1 MiB.
    header = ",".join(f"c{k}" for k in range(100)).encode() + b"\n"
    field = b'"' + b"\n" * 60_000 + b'",'
    rows = rows_of(field * 99 + b"1\n" + b"2," * 99 + b"2\n", header)
    assert np.isnan(rows[:-1]).all()
    assert rows[-1].tolist() == [2] * 100


def test_text_made_to_be_slow_is_read_in_time() -> None:
    """Lines from each of which a reading goes on as far as it may: counted in records, not time."""
    for line in (b'a","\n', b'"\n', b'a,"\n', b'"",\n', b'""""x\n', b'x"",""",\n'):
        text = line * (200_000 // len(line))
        assert len(rows_of(text)) <= text.count(b"\n")


# Every line is a record.

line = st.one_of(
    st.binary(max_size=30).filter(lambda b: b"\n" not in b and b.rstrip(b"\r") != b""),
    st.sampled_from(
        [b"1,2", b'"1","2"', b' "3" , 4', b'"1', b"1,\"2'", b"1", b"1,2,3", b",", b"5,6\r"]
    ),
)


@given(st.lists(line, max_size=12), st.integers(1, 40))
def test_a_line_cannot_touch_its_neighbours(content: list[bytes], block: int) -> None:
    """Whatever a line holds, and wherever blocks end, every line is read as if it were alone."""
    lines: dict[str, Any] = {"records": "lines"}
    alone = [rows_of(text + b"\n", **lines) for text in content]
    assert all(len(rows) == 1 for rows in alone)
    expected = np.concatenate([np.empty((0, 2)), *alone])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "TEXT_BLOCK", block)
        together = rows_of(b"".join(text + b"\n" for text in content), **lines)
        without_end = rows_of(b"\n".join(content), **lines)
    assert alike(together, expected)
    assert alike(without_end, expected)


def test_rules_of_a_record() -> None:
    text = b'1,2\r\n\n"3", 4 \n5\n6,7,8\n"9,10\n,\nx,1\n11,12,\n13,"1""4"\n1,"5"x\n16,17'
    nan = np.nan
    bad = [nan, nan]
    expected = [[1, 2], [3, 4], bad, bad, bad, bad, [nan, 1], [11, 12], [13, nan], bad, [16, 17]]
    for how in ("quoted", "lines"):
        assert alike(rows_of(text, records=how), np.array(expected))
    # A delimiter behind the header, too: the field after it may hold anything.
    trailing = rows_of(b"1,2,\n3,4\n5,6,x\n7,8,,\n9\n", b"a,b,\n")
    assert alike(trailing, np.array([[1, 2], [3, 4], [5, 6], bad, bad]))
    assert open_points(io.BytesIO(b"a,b,\n"), None).dim == 2
    # Spaces between fields, and around quotes.
    assert rows_of(b'1 "2"\n', b"a b\n", delimiter=" ").tolist() == [[1, 2]]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("how", ["quoted", "lines"])
def test_a_missing_value_in_a_single_column_is_a_record(
    ending: str, last: bool, block: int, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There a record without a value can be a blank line; the number of rows must not tell."""
    monkeypatch.setattr(tables, "TEXT_BLOCK", block)
    cells = ["", "1", "", "", "2", '""', "3"]
    text = ending.join(cells) + (ending if last else "")
    rows = rows_of(text.encode(), header=f"a{ending}".encode(), records=how)
    assert alike(rows[:, 0], np.array([np.nan, 1, np.nan, np.nan, 2, np.nan, 3]))
    assert len(rows_of(b"", header=b"a\n")) == len(rows_of(b"", header=b"a")) == 0
    assert len(rows_of(b"\n\n", header=b"a\n")) == 2


@pytest.mark.parametrize("quote", [b"", b'"', b'","'])
def test_over_long_lines_are_one_bad_record(quote: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    long = quote + b"1" * (records.MAX_RECORD + 1) + b",2"
    for block in (1 << 20, 1 << 18, 1 << 23):
        monkeypatch.setattr(tables, "TEXT_BLOCK", block)
        rows = rows_of(b"1,2\n" + long + b"\n3,4\n" + long + long + long + b"\n5,6")
        expected = [[1, 2], [np.nan] * 2, [3, 4], [np.nan] * 2, [5, 6]]
        assert alike(rows, np.array(expected, dtype=float))


class Cut(io.RawIOBase):
    """A stream that hands its bytes out in two parts."""

    def __init__(self, data: bytes, at: int) -> None:
        self.parts = [data[:at], data[at:], b""]

    def read(self, size: int = -1, /) -> bytes:
        return self.parts.pop(0) if len(self.parts) > 1 else b""


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r\r\n", b"\r\r\r\n"])
@pytest.mark.parametrize("extra", [-1, 0, 1])
@pytest.mark.parametrize("quoted", [False, True])
def test_the_longest_record_is_read_alike_wherever_a_block_ends(
    ending: bytes, extra: int, quoted: bool
) -> None:
    """Around the limit to the byte, cut at every place near the end of the line."""
    start = b'"1",' if quoted else b"1,"
    long = start + b"0" * (records.MAX_RECORD - len(start) - 1 + extra) + b"5"
    data = long + ending + b"3,4\n"
    layout = tables._Layout(ord(","), np.arange(2), False, True, DOT, NO_MARK)
    readings = []
    for at in range(len(long) - 2, len(long) + len(ending) + 2):
        pieces = tables._blocks(Cut(data, at).read, b"", layout)
        readings.append(np.concatenate([piece.rows() for piece in pieces]))
    for rows in readings:
        assert alike(rows, readings[0])
    assert readings[0][1].tolist() == [3.0, 4.0]
    readable = extra <= 0 and ending != b"\r\r\r\n"
    assert readings[0][0].tolist() == [1.0, 5.0] if readable else np.isnan(readings[0][0]).any()


def test_short_lines_do_not_fill_the_memory() -> None:
    """A wide table of lines that hold one digit: rows of a piece stay below 64 MiB."""
    width = 500
    header = ",".join(f"c{k}" for k in range(width)).encode() + b"\n"
    source = open_points(io.BytesIO(header + b"1\n" * 200_000))
    sizes = [piece.rows().nbytes for piece in source.read()]
    assert sum(sizes) == 200_000 * width * 8
    assert max(sizes) < 1 << 27  # the first piece has what reading the header left over


def test_line_breaks_in_quotes_do_not_fill_the_memory() -> None:
    """Rows are made for records, not for the lines in their texts, however wide the table."""
    width = 2000
    header = ",".join(f"c{k}" for k in range(width)).encode() + b"\n"
    good = b",".join([b"1"] * width) + b"\n"
    text = b'"' + b"\n" * 60_000 + b'"'
    rich = b",".join([text] * 15 + [b"1"] * (width - 15)) + b"\n"
    torn = b",".join([b'"' + b"a\n" * 32_000 + b'"'] * 15) + b"\n"  # too few fields
    source = open_points(io.BytesIO(header + good + rich + good + torn + good))
    shapes = [piece.rows().shape for piece in source.read()]
    assert max(rows for rows, _ in shapes) * width * 8 < 1 << 27
    assert sum(rows for rows, _ in shapes) > 480_000
    assert len(rows_of(good + rich + good, header)) == 3


def test_the_last_line_of_a_text_that_was_given_up_may_open_a_quote() -> None:
    """As docs/threats.md says: others are lost then, until reading is in step again."""
    others = b"1,2\n" * 50
    for bad in (b'"x\n"\n', b'1,"' + b"a log\n" * 20_000 + b'"\n'):
        text = bad + others + b'3,",5"\n' + b"4,5\n" * 9
        rows = rows_of(text)
        assert rows[-9:].tolist() == [[4, 5]] * 9
        assert (rows == [1, 2]).all(axis=1).sum() == 0
        lined = rows_of(text, records="lines")
        assert (lined == [1, 2]).all(axis=1).sum() == 50


def test_many_columns_are_found_in_time() -> None:
    names = [f"c{k}" for k in range(60_000)]
    source = open_points(io.BytesIO(",".join(names).encode() + b"\n"), names[::-1])
    assert source.dim == len(names)


def test_delimiters_and_headers() -> None:
    assert rows_of(b"1;2\n", b"a;b\n", delimiter=";").tolist() == [[1, 2]]
    text = io.BytesIO(b'\xef\xbb\xbf"x, y",z\r\n1,2\r\n')
    assert open_points(text, ["x, y", "z"]).columns == ("x, y", "z")
    assert open_points(io.BytesIO(b'5" pipe,"b" ,c\n1,2,3\n'), ["c", '5" pipe']).dim == 2
    broken = io.BytesIO(b'"lon\r\n(deg)","say ""lat"""\r\n1,2\r\n')
    source = open_points(broken, ["lon\r\n(deg)", 'say "lat"'])
    assert next(source.read()).rows().tolist() == [[1, 2]]
    for wrong in (";;", "", '"', "\n", "é"):
        with pytest.raises(dpkde.SchemaError, match="delimiter"):
            rows_of(b"", delimiter=wrong)
    for header in (b"", b"\xff\xfe\x00\n", b"a\0b\n", b'"a,b\n'):
        with pytest.raises(dpkde.SchemaError):
            rows_of(b"", header)
    with pytest.raises(dpkde.SchemaError, match="not a header"):
        rows_of(b"", b'"lon\n(deg)",lat\n', records="lines")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"thousands": "."}, "same mark"),
        ({"thousands": "1"}, "thousands"),
        ({"thousands": ""}, "thousands"),
        ({"decimal": "-"}, "decimal"),
        ({"records": "rows"}, "'quoted' or 'lines'"),
        ({"encoding": "klingon"}, "no text encoding 'klingon'"),
        ({"encoding": "base64"}, "no text encoding"),
        ({"encoding": None}, "no text encoding"),
        ({"encoding": "utf-7"}, "one record can change how the next is read"),
        ({"encoding": "iso2022_jp"}, "one record can change how the next is read"),
        ({"encoding": "punycode"}, "one record can change how the next is read"),
        ({"encoding": "unicode_escape"}, "one record can change how the next is read"),
        ({"encoding": "idna"}, "one record can change how the next is read"),
        ({"delimiter": "\n"}, "not part of"),
        ({"decimal": "x"}, "not part of"),
        ({"thousands": "M"}, "not part of"),
    ],
)
def test_rules_that_are_none(options: dict[str, Any], message: str) -> None:
    with pytest.raises(dpkde.ParameterError, match=message):
        CSV("t.csv", **options)
    with pytest.raises(dpkde.SchemaError, match="a path or a binary stream, not CSV"):
        CSV(CSV("t.csv"))  # type: ignore[arg-type]


def test_numbers_as_they_are_written_elsewhere() -> None:
    text = b'"1,234.5",2\n"12,34",3\n1,"1,000,000"\n'
    assert np.isnan(rows_of(text)[:, 0]).tolist() == [True, True, False]
    nan = np.nan
    expected = np.array([[1234.5, 2], [nan, 3], [1, 1e6]])
    assert alike(rows_of(text, thousands=","), expected)
    european = b"1.234,5;2\n1,5;0,25\n"
    rows = rows_of(european, b"a;b\n", delimiter=";", decimal=",", thousands=".")
    assert rows.tolist() == [[1234.5, 2], [1.5, 0.25]]
    assert rows_of(b"1 000;2\n", b"a;b\n", delimiter=";", thousands=" ").tolist() == [[1000, 2]]


@pytest.mark.parametrize("ending", [b"\n", b"\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_stream_of_the_callers_is_read_and_not_closed(ending: bytes, encoding: str) -> None:
    """Also where its header is wrong; and `read` is all that it needs."""

    class Bare:
        def __init__(self, text: bytes) -> None:
            self.read = io.BytesIO(text).read

    for text in (b"a,b\n1,2\n", b"1,2\n3,4\n"):
        data = text.replace(b"\n", ending).decode().encode(encoding)
        stream = io.BytesIO(data)
        bare: Any = Bare(data)
        for one in (stream, bare):
            table = CSV(one, encoding=encoding)
            if text.startswith(b"a"):
                pieces = [piece.rows() for piece in open_points(table, ["b"]).read()]
                assert np.concatenate(pieces).tolist() == [[2]]
            else:
                with pytest.raises(dpkde.SchemaError, match="holds numbers"):
                    open_points(table)
        assert not stream.closed


def test_encodings() -> None:
    text = 'größe,b,note\r\n1,2,"ä, ""ö""\r\nü"\r\n3,4,-\r\n'
    for encoding in ("utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32"):
        CSV("t.csv", encoding=encoding.upper())
        source = open_points(CSV(io.BytesIO(text.encode(encoding)), encoding=encoding), ["größe"])
        assert np.concatenate([p.rows() for p in source.read()]).tolist() == [[1], [3]]
    with pytest.raises(dpkde.SchemaError, match=r"not UTF-8 text: say its encoding, such as latin"):
        open_points(io.BytesIO(text.encode("latin-1")))
    # In a record a strange byte is a bad cell, or part of a text that nobody asked for.
    strange = b"\xff,2,x\n1,2,\xe9\n"
    assert alike(rows_of(strange, b"a,b,c\n")[:, :2], np.array([[np.nan, 2], [1, 2]]))
    for encoding in ("utf-16", "shift_jis", "utf-32"):
        assert len(rows_of(b"", "a,b\n".encode(encoding) + b"\x00\xd8\xff", encoding=encoding)) < 2


def _pack(kind: str, text: bytes) -> bytes:
    if kind == ".gz":
        return gzip.compress(text[:50]) + gzip.compress(text[50:])  # in two members
    if kind in (".bz2", ".xz"):
        pack = bz2.compress if kind == ".bz2" else lzma.compress
        return pack(text[:50]) + pack(text[50:])
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(text)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


@pytest.mark.parametrize("kind", [".gz", ".bz2", ".xz", ".zst"])
def test_packed_files(kind: str, tmp_path: Path) -> None:
    text, frame = pandas_text()
    path = tmp_path / f"t.csv{kind}"
    packed = _pack(kind, text.encode())
    path.write_bytes(packed)
    source = open_points(path, ["a", "b"])
    assert source.size is None
    for _ in range(2):  # it can be read again
        rows = np.concatenate([piece.rows() for piece in source.read()])
        assert alike(rows, frame[["a", "b"]].to_numpy())
    (tmp_path / f"t.tsv{kind}").write_bytes(_pack(kind, b"a\tb\n1\t2\n" + b"\n" * 60))
    assert next(open_points(tmp_path / f"t.tsv{kind}").read()).rows().tolist() == [[1, 2]]
    for damaged in (packed[: len(packed) // 2], b"a,b\n1,2\n" * 20):
        path.write_bytes(damaged)
        with pytest.raises(dpkde.SchemaError, match=f"damaged, or not a {kind} file"):
            list(open_points(path).read())
    with pytest.raises(dpkde.SchemaError, match="is not a table that can be read"):
        open_points(tmp_path / f"t{kind}")
    with pytest.raises(dpkde.SchemaError, match="unpack it first"):
        open_points(tmp_path / "t.csv.zip")


def test_zstandard_from_its_own_program(tmp_path: Path) -> None:
    """Frames of which several stand in one file, as `cat` and parallel packers leave them."""
    text = b"a,b\n" + b"1,2\n" * 1000
    (tmp_path / "t.csv.zst").write_bytes(_pack(".zst", text[:100]) + _pack(".zst", text[100:]))
    rows = np.concatenate([p.rows() for p in open_points(tmp_path / "t.csv.zst").read()])
    assert len(rows) == 1000


def test_a_packed_file_is_closed_where_it_cannot_be_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[BinaryIO] = []

    def refuse(file: BinaryIO) -> None:
        opened.append(file)
        raise SchemaError("one more package")

    monkeypatch.setitem(streams.PACKINGS, ".zst", refuse)
    path = tmp_path / "t.csv.zst"
    path.write_bytes(b"x")
    with pytest.raises(SchemaError, match="one more package"):
        streams.open_binary(path)
    assert opened[0].closed
