"""CSV and other delimited text: a header line, then one record a line; see `lines`."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import SchemaError
from dpkde.tables.source import Piece, Source, choose_columns

TEXT_BLOCK = 1 << 20
_HEADER_LIMIT = 1 << 20
_LINE_END = re.compile(rb"\r{0,2}\n|\r(?=[^\r\n]|\r[^\n])")
_LAST_END = re.compile(rb"\r")
"""Where a header ends. Returns at the end of what was read may belong to a line break to come."""


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def open_text(
    source: Path | BinaryIO, columns: Sequence[str] | None, delimiter: str, *, once: bool = False
) -> Source:
    """Return delimited text as a source; from a stream it can be read only once."""
    what = source.name if isinstance(source, Path) else "the stream"
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise SchemaError(f"a delimiter is one ASCII character, got {delimiter!r}")
    if isinstance(source, Path):
        with source.open("rb") as file:
            header, _, _ = _header(file, what)
    else:
        header, rest, stream = _header(source, what)
    names = _names(header, delimiter, what)
    wanted, places = choose_columns(names, columns, what, listed=False)
    targets = np.full(len(names), -1, dtype=np.int64)
    targets[places] = np.arange(len(places))

    def read() -> Iterator[Piece]:
        if isinstance(source, Path):
            with source.open("rb") as file:
                _, start, lines = _header(file, what)
                yield from _blocks(lines, start, targets, delimiter)
        else:
            yield from _blocks(stream, rest, targets, delimiter)

    size = source.stat().st_size if isinstance(source, Path) else None
    # Names that the caller did not give could be a record's words: they are not passed on.
    return Source(read, len(wanted), None if columns is None else wanted, once, size)


class _Returns:
    """A stream whose lines end with returns alone, as some spreadsheets write them."""

    def __init__(self, stream: _Readable) -> None:
        self._stream = stream

    def read(self, size: int, /) -> bytes:
        return self._stream.read(size).replace(b"\r", b"\n")


def _header(stream: _Readable, what: str) -> tuple[bytes, bytes, _Readable]:
    """Return the first line, what was read beyond it, and the stream, its lines ended as usual.

    A table without records may end with its header, line break or not.
    """
    data, end = b"", None
    while end is None and (more := stream.read(1 << 12)):
        if isinstance(more, str):
            raise SchemaError("open the file in binary mode, as in open(path, 'rb')")
        seen = max(0, len(data) - 2)
        data += more
        end = _LINE_END.search(data, seen)
        if end is None and len(data) > _HEADER_LIMIT + 2:
            raise SchemaError(f"the first line of {what} is not a header with column names")
    end = end or _LAST_END.search(data)
    line, rest = (data, b"") if end is None else (data[: end.start()], data[end.end() :])
    if not line:
        raise SchemaError(f"{what} has no header line with column names")
    if end is not None and end.group() == b"\r":
        return line, rest.replace(b"\r", b"\n"), _Returns(stream)
    return line, rest, stream


def _names(header: bytes, delimiter: str, what: str) -> list[str]:
    try:
        text = header.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SchemaError(f"the first line of {what} is not text") from None
    wrong = SchemaError(f"the first line of {what} is not a header with column names")
    if "\0" in text or len(header) > _HEADER_LIMIT:
        raise wrong
    try:
        first, *others = csv.reader([text, ""], delimiter=delimiter)
    except csv.Error:
        raise wrong from None
    if not others:  # a quote that never closes has swallowed the line after it
        raise wrong
    names = [name.strip() for name in first]
    if not names:
        raise SchemaError(f"{what} has no header line with column names")
    if any(_is_number(name) for name in names):
        raise SchemaError(f"the first line of {what} holds numbers; a header with names is needed")
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _blocks(
    stream: _Readable, start: bytes, targets: NDArray[np.int64], delimiter: str
) -> Iterator[Piece]:
    """Yield pieces of whole lines. A line is cut from its neighbours here, and nowhere else."""
    from dpkde.tables import lines

    columns = int(targets.max()) + 1

    def parse(block: bytes) -> NDArray[np.float64]:
        text = np.frombuffer(block, dtype=np.uint8)
        rows = np.empty((lines.count_lines(text), columns))
        return rows[: lines.parse_lines(text, ord(delimiter), targets, rows)]

    # Lines can be as short as two bytes, ragged ones included: rows of a block stay below 64 MiB.
    size = min(TEXT_BLOCK, max((1 << 24) // columns, 1))
    tail = start
    too_long = False
    while True:
        more = stream.read(size)
        block, newline, rest = (tail + more).rpartition(b"\n")
        if not more:
            block, rest = tail.removesuffix(b"\n"), b""
        if newline or not more:
            lined = bool(tail or newline)
            if too_long:  # the end of a line that was given up: one record, without a number
                _, between, block = block.partition(b"\n")
                lined = bool(between)
                yield Piece(partial(np.full, (1, columns), np.nan), 0)
                too_long = False
            if lined:
                yield Piece(partial(parse, block), len(block) + 1)
        tail = rest
        if not more:
            return
        # Two bytes more than the limit may still be returns before a line break to come; what is
        # given up here has to be what `parse_lines` would refuse, wherever the block ends.
        if len(tail) > lines.MAX_LINE + 2:
            tail, too_long = b"", True
