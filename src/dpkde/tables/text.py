"""CSV and other delimited text: a header with the names of columns, then records; see `records`."""

from __future__ import annotations

import csv
import os
import re
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError, SchemaError
from dpkde.tables.labels import Labelled, labels_in_spans, nobody
from dpkde.tables.source import Piece, Source, columns_and_unit, is_number, origin_of
from dpkde.tables.streams import Stream, as_utf8, check_encoding, open_binary, suffix

if TYPE_CHECKING:
    from dpkde.tables.places import Place

TEXT_BLOCK = 1 << 20
_NEWLINE = 10
KINDS = (".csv", ".tsv", ".txt")
STREAM = "the stream"
_HEADER_LIMIT = 1 << 20
_LINE_END = re.compile(rb"\r{0,2}\n|\r(?=[^\r\n]|\r[^\n])")
_LAST_END = re.compile(rb"\r")
"""Where a line ends. Returns at the end of what was read may belong to a line break to come."""


@dataclass(frozen=True)
class CSV:
    r"""Delimited text, where it is not written as usual; it goes wherever points go.

    Attributes
    ----------
    source
        A path, also of a packed file (``.gz``, ``.bz2``, ``.xz``, ``.zst``), of a folder or a
        pattern of names, an address, or a binary stream.
    delimiter
        The mark between fields. None: a comma; a tab in ``.tsv`` files.
    records
        ``"quoted"``: fields in quotes may hold line breaks, as RFC 4180 has it. ``"lines"``: every
        line is one record, whatever is in it; for files that were written so, in which no record
        can then touch another, however malformed.
    decimal
        The mark before decimals, as in 1.5.
    thousands
        The mark between groups of three digits, as in 1,000; None: such numbers are bad cells.
    encoding
        How characters are written, such as ``"latin-1"`` or ``"utf-16"``.

    Examples
    --------
    >>> CSV("trips.csv", delimiter=";", decimal=",").records
    'quoted'
    """

    source: str | os.PathLike[str] | BinaryIO
    _: KW_ONLY
    delimiter: str | None = None
    records: Literal["quoted", "lines"] = "quoted"
    decimal: str = "."
    thousands: str | None = None
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        for name, reserved in (
            ("delimiter", '"\r\n'),
            ("decimal", _NUMERIC),
            ("thousands", _NUMERIC),
        ):
            mark = getattr(self, name)
            if mark is not None and not _is_mark(mark, reserved):
                raise SchemaError(
                    f"a {name} mark is one ASCII character that is not part of numbers, words or "
                    f"records, got {mark!r}"
                )
        if not isinstance(self.source, (str, os.PathLike)) and not hasattr(self.source, "read"):
            raise SchemaError(
                f"CSV reads a path or a binary stream, not {type(self.source).__name__}"
            )
        if self.thousands == self.decimal:
            raise SchemaError("the same mark cannot stand before decimals and between thousands")
        if self.records not in ("quoted", "lines"):
            raise ParameterError(f"records must be 'quoted' or 'lines', got {self.records!r}")
        check_encoding(self.encoding)


def is_text(name: str) -> bool:
    """Return whether a file of this name is read as delimited text, packed or not."""
    return suffix(Path(name))[0] in KINDS


_NUMERIC = string.ascii_letters + string.digits + '+-"\r\n'
"""What is part of a number, or of a word, is no mark between digits."""


def _is_mark(mark: object, reserved: str) -> bool:
    return isinstance(mark, str) and len(mark) == 1 and mark.isascii() and mark not in reserved


@dataclass(frozen=True)
class _Layout:
    """How records are laid out, as the compiled loops take it."""

    delimiter: int
    targets: NDArray[np.int64]
    unnamed: bool
    multiline: bool
    decimal: int
    thousands: int
    label: int = -1
    """The field that tells whose a record is."""

    @property
    def columns(self) -> int:
        return int(self.targets.max()) + 1

    def cut(self, text: bytes, most: int, final: bool) -> Iterator[tuple[int, int | None]]:
        """Yield where whole records end, some `most` bytes apart, and how many are in between.

        Where no field can hold a line break, lines will tell how many at most.
        """
        if not self.multiline or b'"' not in text:
            end = len(text) if final else text.rfind(b"\n") + 1
            if end:
                yield end, None
            return
        from dpkde.tables.records import whole_records

        codes, start = np.frombuffer(text, dtype=np.uint8), 0
        while True:
            end, count = whole_records(
                codes, start, most, final, self.delimiter, self.targets, self.unnamed
            )
            if end == start:
                return
            yield end, count
            start = end

    def parse(self, text: bytes, count: int | None) -> NDArray[np.float64]:
        """Return the rows of whole records, of which there are `count` if that is known."""
        return self._parsed(np.frombuffer(text, dtype=np.uint8), count, 0)[0]

    def parse_labelled(self, text: bytes, count: int | None) -> Labelled:
        """Return the same, and whose each record is."""
        codes = np.frombuffer(text, dtype=np.uint8)
        rows, spans = self._parsed(codes, count, 1)
        return rows, labels_in_spans(codes, spans)

    def _parsed(
        self, text: NDArray[np.uint8], count: int | None, labels: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        from dpkde.tables.records import parse_records

        most = int((text == _NEWLINE).sum()) + 1 if count is None else max(count, 1)
        rows, spans = np.empty((most, self.columns)), np.zeros((labels * most, 3), dtype=np.int64)
        n = parse_records(
            text,
            self.delimiter,
            self.targets,
            self.unnamed,
            self.multiline,
            self.decimal,
            self.thousands,
            rows,
            self.label,
            spans,
        )
        return rows[:n], spans[:n]


def open_text(
    table: CSV,
    columns: Sequence[str] | None,
    unit: str | None = None,
    place: Place | None = None,
) -> Source:
    """Return delimited text as a source; from a stream it can be read only once.

    `place` is the file, where the table's own source is a folder, a pattern or an address.
    """
    path = place
    if place is None and isinstance(table.source, (str, os.PathLike)):
        path = Path(table.source)
    what = STREAM if path is None else path.name
    kind = "" if path is None else suffix(path)[0]
    delimiter = table.delimiter or ("\t" if kind == ".tsv" else ",")
    multiline = table.records == "quoted"

    def begin() -> tuple[list[str], bytes, Stream]:
        # A stream of the caller's is the caller's to close.
        borrowed = cast("BinaryIO", table.source)
        stream = Stream(borrowed.read, lambda: None) if path is None else open_binary(path)
        try:
            return _header(as_utf8(stream, table.encoding, what), what, delimiter, multiline)
        except BaseException:
            stream.close()
            raise

    opened = begin()
    opened[2].close()
    names = opened[0]
    # Some programs write a delimiter behind every record, the header included.
    unnamed = len(names) > 1 and not names[-1]
    if unnamed:
        names = names[:-1]
    hint = (
        f"; if its fields are not between {delimiter!r}, name the delimiter with delimiter=, such "
        "as ';'"
        if len(names) == 1
        else ""
    )
    chosen, places, whose = columns_and_unit(names, columns, unit, what, listed=False, hint=hint)
    targets = np.full(len(names), -1, dtype=np.int64)
    targets[places] = np.arange(len(places))
    from dpkde.tables.numbers import NO_MARK

    layout = _Layout(
        ord(delimiter),
        targets,
        unnamed,
        multiline,
        ord(table.decimal),
        NO_MARK if table.thousands is None else ord(table.thousands),
        -1 if whose is None else whose,
    )

    def read() -> Iterator[Piece]:
        _, start, stream = opened if path is None else begin()
        try:
            yield from _blocks(stream.read, start, layout)
        finally:
            stream.close()

    size = None if path is None or suffix(path)[1] else path.stat().st_size
    # Names that the caller did not give could be a record's words: they are not passed on.
    given = None if columns is None else chosen
    header = chosen if columns is None else None
    origin = origin_of(path, repr(replace(table, source="")))
    return Source(
        read, len(chosen), given, path is None, size, unit=unit, header=header, origin=origin
    )


@dataclass
class _Header:
    """The first lines of a text, until its header is complete."""

    stream: Stream
    what: str
    data: bytes = b""
    start: int = 0
    end: re.Match[bytes] | None = None
    beyond: bool = False
    """Whether a line was asked for that is not there."""

    @property
    def wrong(self) -> SchemaError:
        return SchemaError(f"the first line of {self.what} is not a header with column names")

    def lines(self, most: int | None) -> Iterator[str]:
        """Yield lines as text, with their ends."""
        encoding = "utf-8-sig"
        while most is None or most > 0:
            line = self._line()
            if not line:
                break
            try:
                yield line.decode(encoding)
            except UnicodeDecodeError:
                raise SchemaError(
                    f"the first line of {self.what} is not UTF-8 text: say its encoding, such as "
                    "latin-1, cp1252 or utf-16"
                ) from None
            encoding, most = "utf-8", None if most is None else most - 1
        self.beyond = True

    def _line(self) -> bytes:
        self.start = 0 if self.end is None else self.end.end()
        self.end, position = None, self.start
        while (end := _LINE_END.search(self.data, position)) is None:
            more = self.stream.read(1 << 12)
            if not more:
                break
            position = max(self.start, len(self.data) - 2)
            self.data += more
            if len(self.data) > _HEADER_LIMIT + (1 << 12) + 2:
                raise self.wrong
        self.end = end or _LAST_END.search(self.data, self.start)
        return self.data[self.start : len(self.data) if self.end is None else self.end.end()]


def _header(
    stream: Stream, what: str, delimiter: str, multiline: bool
) -> tuple[list[str], bytes, Stream]:
    """Return the names, what was read beyond them, and the stream, its lines ended as usual.

    A table without records may end with its header, line break or not.
    """
    head = _Header(stream, what)
    try:
        names = next(
            csv.reader(
                head.lines(None if multiline else 1), delimiter=delimiter, skipinitialspace=True
            ),
            [],
        )
    except csv.Error:
        raise head.wrong from None
    names = [name.strip() for name in names]
    if not names:
        again = "; if it was read before, open it anew" if what == STREAM else ""
        raise SchemaError(f"{what} has no header line with column names{again}")
    size = len(head.data) if head.end is None else head.end.start()
    if head.beyond or size > _HEADER_LIMIT or any("\0" in name for name in names):
        raise head.wrong
    if any(is_number(name) for name in names):
        raise SchemaError(f"the first line of {what} holds numbers; a header with names is needed")
    rest = b"" if head.end is None else head.data[head.end.end() :]
    if head.end is None or head.end.group() != b"\r":
        return names, rest, stream

    def read(size: int) -> bytes:  # lines end with returns alone, as some spreadsheets write them
        return stream.read(size).replace(b"\r", b"\n")

    return names, rest.replace(b"\r", b"\n"), Stream(read, stream.close)


def _piece(layout: _Layout, text: bytes, count: int | None) -> Piece:
    labelled = None if layout.label < 0 else partial(layout.parse_labelled, text, count)
    return Piece(partial(layout.parse, text, count), len(text), labelled)


def _lost(layout: _Layout) -> Piece:
    """Return the record of a line that is too long to be one."""
    row = np.full((1, layout.columns), np.nan)
    return Piece(lambda: row, 0, None if layout.label < 0 else lambda: (row, nobody(1)))


def _blocks(read: Callable[[int], bytes], start: bytes, layout: _Layout) -> Iterator[Piece]:
    """Yield pieces of whole records. A record is cut from its neighbours here, and nowhere else."""
    from dpkde.tables.records import MAX_RECORD

    # Records can be as short as two bytes, bad ones included: rows of a block stay below 64 MiB.
    size = min(TEXT_BLOCK, max((1 << 24) // layout.columns, 1))
    tail, too_long = start, False
    while True:
        more = read(size)
        text = tail + more
        if too_long:  # the end of a line that was given up: one record, without a number
            _, newline, text = text.partition(b"\n")
            too_long = bool(more) and not newline
            if not too_long:
                yield _lost(layout)
        done = 0
        for end, count in layout.cut(text, size, not more):
            yield _piece(layout, text[done:end], count)
            done = end
        if not more:
            return
        tail = text[done:]
        # Two bytes more than the limit may still be returns before a line break to come; what is
        # given up here has to be what `parse_records` would refuse, wherever the block ends.
        if len(tail) > MAX_RECORD + 2 and b"\n" not in tail:
            tail, too_long = b"", True
