"""Numbers from text: the grammar, and that a line cannot touch its neighbours."""

from __future__ import annotations

import io
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import dpkde
from dpkde.tables import lines
from dpkde.tables import text as tables
from dpkde.tables.door import open_points

GRAMMAR = re.compile(rb"[ \t]*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[ \t]*")


def number(text: bytes) -> float:
    array = np.frombuffer(text, dtype=np.uint8)
    return float(lines.parse_number(array, 0, array.size))


@given(st.one_of(st.binary(max_size=12), st.from_regex(GRAMMAR, fullmatch=True)))
def test_exactly_the_grammar_is_read(text: bytes) -> None:
    found = number(text)
    if GRAMMAR.fullmatch(text):
        expected = float(text)
        assert found == expected or math.isclose(found, expected, rel_tol=1e-14, abs_tol=1e-320)
    else:
        assert math.isnan(found)


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=6, min_value=-(10**8), max_value=10**8
    )
)
def test_ordinary_numbers_are_correctly_rounded(value: object) -> None:
    assert number(str(value).encode()) == float(str(value))


@pytest.mark.parametrize(
    "text",
    [b"nan", b"inf", b"-inf", b"0x1", b"1_0", b"1,5", b"1 2", b"--1", b".", b"", b"e5", b"1e"],
)
def test_what_is_no_number(text: bytes) -> None:
    assert math.isnan(number(text))


def rows_of(text: bytes, header: bytes = b"a,b\n", **options: Any) -> NDArray[np.float64]:
    source = open_points(io.BytesIO(header + text), **options)
    parts = [piece.rows() for piece in source.read()]
    return np.concatenate([np.empty((0, source.dim or 0)), *parts])


line = st.one_of(
    st.binary(max_size=30).filter(lambda b: b"\n" not in b and b.rstrip(b"\r") != b""),
    st.sampled_from(
        [b"1,2", b'"1","2"', b' "3" , 4', b'"1', b"1,\"2'", b"1", b"1,2,3", b",", b"5,6\r"]
    ),
)


@given(st.lists(line, max_size=12), st.integers(1, 40))
def test_a_line_cannot_touch_its_neighbours(content: list[bytes], block: int) -> None:
    """Whatever a line holds, and wherever blocks end, every line is read as if it were alone."""
    alone = [rows_of(text + b"\n") for text in content]
    assert all(len(rows) == 1 for rows in alone)
    expected = np.concatenate([np.empty((0, 2)), *alone])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "TEXT_BLOCK", block)
        together = rows_of(b"".join(text + b"\n" for text in content))
        without_end = rows_of(b"\n".join(content))
    assert np.array_equal(together, expected, equal_nan=True)
    assert np.array_equal(without_end, expected, equal_nan=True)


def test_rules_of_a_line() -> None:
    text = b'1,2\r\n\n"3", 4 \n5\n6,7,8\n"9,10\n,\nx,1\n11,12'
    expected = [[1, 2], [3, 4], [np.nan] * 2, [np.nan] * 2, [np.nan] * 2, [np.nan] * 2]
    expected += [[np.nan, 1], [11, 12]]
    assert np.array_equal(rows_of(text), np.array(expected, dtype=float), equal_nan=True)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
def test_a_missing_value_in_a_single_column_is_a_record(
    ending: str, last: bool, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There a record without a value can be a blank line; the number of rows must not tell."""
    monkeypatch.setattr(tables, "TEXT_BLOCK", block)
    values = ["", "1", "", "", "2", '""', "3"]
    text = ending.join(values) + (ending if last else "")
    found = rows_of(text.encode(), header=f"a{ending}".encode())
    expected = [np.nan, 1, np.nan, np.nan, 2, np.nan, 3]
    assert np.array_equal(found[:, 0], expected, equal_nan=True)
    assert len(rows_of(b"", header=b"a\n")) == len(rows_of(b"", header=b"a")) == 0
    assert len(rows_of(b"\n\n", header=b"a\n")) == 2


def test_over_long_lines_are_one_bad_record(monkeypatch: pytest.MonkeyPatch) -> None:
    long = b"1" * (lines.MAX_LINE + 1) + b",2"
    for block in (1 << 20, 1 << 18, 1 << 23):
        monkeypatch.setattr(tables, "TEXT_BLOCK", block)
        found = rows_of(b"1,2\n" + long + b"\n3,4\n" + long + long + long + b"\n5,6")
        expected = [[1, 2], [np.nan] * 2, [3, 4], [np.nan] * 2, [5, 6]]
        assert np.array_equal(found, np.array(expected, dtype=float), equal_nan=True)


class Cut:
    """A stream that hands its bytes out in two parts."""

    def __init__(self, data: bytes, at: int) -> None:
        self.parts = [data[:at], data[at:], b""]

    def read(self, size: int, /) -> bytes:
        return self.parts.pop(0) if len(self.parts) > 1 else b""


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r\r\n", b"\r\r\r\n"])
@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_the_longest_line_is_read_alike_wherever_a_block_ends(ending: bytes, extra: int) -> None:
    """Around the limit to the byte, cut at every place near the end of the line."""
    long = b"1," + b"0" * (lines.MAX_LINE - 3 + extra) + b"5"
    data = long + ending + b"3,4\n"
    found = []
    for at in range(len(long) - 2, len(long) + len(ending) + 2):
        pieces = tables._blocks(Cut(data, at), b"", np.arange(2), ",")
        found.append(np.concatenate([piece.rows() for piece in pieces]))
    for rows in found:
        assert np.array_equal(rows, found[0], equal_nan=True)
    assert found[0][1].tolist() == [3.0, 4.0]
    readable = extra <= 0 and ending != b"\r\r\r\n"
    assert found[0][0].tolist() == [1.0, 5.0] if readable else np.isnan(found[0][0]).any()


def test_short_lines_do_not_fill_the_memory() -> None:
    """A wide table of lines that hold one digit: rows of a piece stay below 64 MiB."""
    width = 500
    header = ",".join(f"c{k}" for k in range(width)).encode() + b"\n"
    source = tables.open_text(io.BytesIO(header + b"1\n" * 200_000), None, ",")
    sizes = [piece.rows().nbytes for piece in source.read()]
    assert sum(sizes) == 200_000 * width * 8
    assert max(sizes) < 1 << 27  # the first piece has what reading the header left over


def test_delimiters_and_headers() -> None:
    assert rows_of(b"1;2\n", b"a;b\n", delimiter=";").tolist() == [[1, 2]]
    text = io.BytesIO(b'\xef\xbb\xbf"x, y",z\r\n1,2\r\n')
    assert open_points(text, ["x, y", "z"]).columns == ("x, y", "z")
    assert open_points(io.BytesIO(b'5" pipe,"b" ,c\n1,2,3\n'), ["c", '5" pipe']).dim == 2
    for wrong in (";;", "", '"', "\n", "é"):
        with pytest.raises(dpkde.SchemaError, match="delimiter"):
            rows_of(b"", delimiter=wrong)
    for header in (b"", b"\xff\xfe\x00\n", b"a\0b\n"):
        with pytest.raises(dpkde.SchemaError):
            rows_of(b"", header)
