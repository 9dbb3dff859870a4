"""Sources: points that are ready to be read, in pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dpkde.errors import SchemaError
from dpkde.tables.labels import Labelled, Labels
from dpkde.tables.streams import suffix

_CHUNK_ROWS = 1024
_CHUNK_VALUES = 1 << 16


def chunk_rows(columns: int) -> int:
    """Return how many rows a piece has, where a source can choose: more where rows are short."""
    return max(_CHUNK_ROWS, _CHUNK_VALUES // max(columns, 1))


@dataclass(frozen=True)
class Piece:
    """A few rows, read when asked for: shape (n, dim). `size` is in the units of the source.

    `labelled` reads the same rows, and whose each of them is, where the source knows.
    """

    rows: Callable[[], NDArray[Any]]
    size: int
    labelled: Callable[[], Labelled] | None = None


@dataclass(frozen=True)
class Origin:
    """The file that all pieces of a source come from: the same pieces, whenever it is read.

    `rules` say how it is read, where somebody may choose.
    """

    path: Path
    rules: str = ""


@dataclass(frozen=True)
class Source:
    """Points, ready to be read.

    Attributes
    ----------
    read
        Starts reading: an iterator of pieces.
    dim
        Number of columns, where it is known beforehand.
    columns
        Their names, if they have any.
    once
        Whether the points can be read only once.
    size
        The sizes of all pieces together, in rows or bytes, where it is known. For a progress bar
        on the curator's own terminal and nothing else: under add-remove it is private.
    fallback_dim
        Number of columns where nothing else tells it: 1 for an empty one-dimensional array.
    unit
        The column that tells whose each row is: pieces are `labelled` then.
    wide
        Starts reading points of a known number of columns, where pieces cannot tell it themselves:
        rows in a list.
    origin
        The file that it reads, if that is one.
    members
        The sources that are read one after the other, where it is made of several (`together`).
    passed
        Takes the size of what need not be read again, where somebody watches.
    """

    read: Callable[[], Iterator[Piece]]
    dim: int | None
    columns: tuple[str, ...] | None = None
    once: bool = False
    size: int | None = None
    fallback_dim: int | None = None
    wide: Callable[[int], Iterator[Piece]] | None = None
    unit: str | None = None
    origin: Origin | None = None
    members: tuple[Source, ...] = ()
    passed: Callable[[int], None] | None = None

    def pieces(self, dim: int) -> Iterator[Piece]:
        """Start reading points of `dim` columns."""
        return self.read() if self.wide is None else self.wide(dim)

    def watched(self, report: Callable[[int], None]) -> Source:
        """Return the same source, which reports the size of each piece when it is handed out."""

        def watch(pieces: Iterator[Piece]) -> Iterator[Piece]:
            for piece in pieces:
                report(piece.size)
                yield piece

        if self.members:
            return together([member.watched(report) for member in self.members])
        wide = self.wide
        return replace(
            self,
            read=lambda: watch(self.read()),
            wide=None if wide is None else lambda dim: watch(wide(dim)),
            passed=report,
        )


def reported(source: Source, report: Callable[[int, int | None], object]) -> Source:
    """Return the same source, which reports how far it is read, and how far that is in all."""
    position = 0

    def read(size: int) -> None:
        nonlocal position
        if source.size is not None and position + size > source.size:
            position = 0  # a second pass
        position += size
        report(position, source.size)

    report(0, source.size)
    return source.watched(read)


def together(sources: Sequence[Source]) -> Source:
    """Return tables of the same columns as one, read one after the other."""
    first, *others = sources
    if not others:
        return first
    for number, other in enumerate(others, 2):
        if any(
            None not in (one, another) and one != another
            for one, another in ((first.dim, other.dim), (first.columns, other.columns))
        ):
            what = f"table {number}" if other.origin is None else other.origin.path.name
            raise SchemaError(
                f"{what} has other columns than the first table: where tables have names for "
                "them, name those to read in the plan, as in columns=['age', 'stay']"
            )
    members = tuple(sources)
    sizes = [member.size for member in members]
    # Sizes of some kinds of files are bytes, those of others rows.
    kinds = {member.origin and suffix(member.origin.path)[0] for member in members}

    def wide(dim: int) -> Iterator[Piece]:
        for member in members:
            yield from member.pieces(dim)

    def read() -> Iterator[Piece]:
        for member in members:
            yield from member.read()

    return Source(
        read,
        first.dim,
        first.columns,
        any(member.once for member in members),
        sum(size or 0 for size in sizes) if None not in sizes and len(kinds) == 1 else None,
        first.fallback_dim,
        wide,
        first.unit,
        members=members,
    )


def slices(rows: Callable[[int, int], NDArray[Any]], count: int, step: int) -> Iterator[Piece]:
    """Yield `count` rows in pieces of `step`; `rows` reads those from a start to a stop."""
    for start in range(0, count, step):
        stop = min(start + step, count)
        yield Piece(partial(rows, start, stop), stop - start)


def labelled_slices(
    rows: Callable[[int, int], NDArray[Any]],
    labels: Callable[[int, int], Labels],
    count: int,
    step: int,
) -> Iterator[Piece]:
    """Yield the same with whose each row is, read by `labels`."""

    def both(start: int, stop: int) -> Labelled:
        return rows(start, stop), labels(start, stop)

    for start in range(0, count, step):
        stop = min(start + step, count)
        yield Piece(partial(rows, start, stop), stop - start, partial(both, start, stop))


def no_rows(columns: tuple[str, ...] | None) -> Source:
    """Return an empty source, of any width."""
    return Source(lambda: iter(()), None, columns, size=0, fallback_dim=1)


def is_number(text: str) -> bool:
    """Return whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def choose_columns(
    available: Sequence[str],
    columns: Sequence[str] | None,
    what: str,
    *,
    listed: bool = True,
    hint: str = "",
) -> tuple[tuple[str, ...], list[int]]:
    """Return the names of the columns to read, and where they stand.

    The first line of a text file might be a record after all, so its words are not `listed` in a
    message.
    """
    chosen = tuple(available) if columns is None else tuple(str(name) for name in columns)
    if not chosen:
        raise SchemaError(f"{what} has no columns")
    times = Counter(available)
    for name in chosen:
        if times[name] != 1:
            asked = columns is not None or listed
            which = repr(name) if asked else "of the same name"
            fault = f"{what} has {'more than one' if times[name] else 'no'} column {which}"
            if not listed:
                raise SchemaError(f"{fault} in its first line, the header{hint}")
            if any(map(is_number, available)):  # a record that was taken for a header
                raise SchemaError(f"{fault}; some of its columns have numbers for names")
            shown = ", ".join(available[:20]) + (", …" if len(available) > 20 else "")
            raise SchemaError(f"{fault}; its columns are: {shown}")
    if len(set(chosen)) != len(chosen):
        raise SchemaError("a column is named twice")
    standing = {name: place for place, name in enumerate(available)}
    return chosen, [standing[name] for name in chosen]


def columns_and_unit(
    available: Sequence[str],
    columns: Sequence[str] | None,
    unit: str | None,
    what: str,
    **words: Any,
) -> tuple[tuple[str, ...], list[int], int | None]:
    """Return the names of the columns to read, where they stand, and where the unit's stands.

    Where all columns are to be read, that is all but the unit's.
    """
    if unit is None:
        return (*choose_columns(available, columns, what, **words), None)
    (_,), (place,) = choose_columns(available, [unit], what, **words)
    if columns is None:
        columns = [name for name in available if name != unit]
    elif unit in map(str, columns):
        raise SchemaError(
            f"column {unit!r} tells whose a row is, and is not one of those to publish as well"
        )
    return (*choose_columns(available, columns, what, **words), place)
