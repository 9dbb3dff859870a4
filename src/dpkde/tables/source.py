"""Sources: points that are ready to be read, in pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import SchemaError
from dpkde.space.moments import NUMBER, ColumnType, converted
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
    """The file that all pieces of a source come from: the same whenever they are read in order.

    `rules` say how it is read, where somebody may choose.
    """

    path: Path
    rules: str = ""


def origin_of(place: Any, rules: str = "") -> Origin | None:
    """Return the file that a place is, where it is one of this machine."""
    return Origin(place, rules) if isinstance(place, Path) else None


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
    types
        What the columns stand for, where their types tell it: dates, instants or numbers.
    header
        Names that were found and not asked for. They might be a record's cells, and are for
        comparing alone.
    origin
        The file that it reads, if that is one.
    members
        The sources that are read one after the other, where it is made of several (`together`).
    passed
        Takes the size of what need not be read again, where somebody watches.
    scattered
        Starts reading in whichever order is quickest, for sums. None: as `read` does.
    """

    read: Callable[[], Iterator[Piece]]
    dim: int | None
    columns: tuple[str, ...] | None = None
    once: bool = False
    size: int | None = None
    fallback_dim: int | None = None
    wide: Callable[[int], Iterator[Piece]] | None = None
    unit: str | None = None
    types: tuple[ColumnType, ...] | None = None
    header: tuple[str, ...] | None = None
    origin: Origin | None = None
    members: tuple[Source, ...] = ()
    passed: Callable[[int], None] | None = None
    scattered: Callable[[], Iterator[Piece]] | None = None

    def pieces(self, dim: int) -> Iterator[Piece]:
        """Start reading points of `dim` columns, in any order."""
        return self.in_order(dim) if self.scattered is None else self.scattered()

    def in_order(self, dim: int) -> Iterator[Piece]:
        """Start reading points of `dim` columns, in the same order whenever they are read."""
        return self.read() if self.wide is None else self.wide(dim)

    def through(self, change: Callable[[Iterator[Piece]], Iterator[Piece]]) -> Source:
        """Return the same source, whose pieces go through a function whenever it is read."""
        if self.members:
            changed = together([member.through(change) for member in self.members])
            return replace(
                self,
                read=changed.read,
                wide=changed.wide,
                members=changed.members,
                scattered=changed.scattered,
            )
        wide, scattered = self.wide, self.scattered
        return replace(
            self,
            read=lambda: change(self.read()),
            scattered=None if scattered is None else lambda: change(scattered()),
            wide=None if wide is None else lambda dim: change(wide(dim)),
        )

    def watched(self, report: Callable[[int], None]) -> Source:
        """Return the same source, which reports the size of each piece when it is handed out."""

        def watch(pieces: Iterator[Piece]) -> Iterator[Piece]:
            for piece in pieces:
                report(piece.size)
                yield piece

        seen = self.through(watch)
        members = tuple(replace(member, passed=report) for member in seen.members)
        return replace(seen, members=members, passed=report)


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
            for one, another in (
                (first.dim, other.dim),
                (first.columns, other.columns),
                (first.header, other.header),
            )
        ):
            name = [
                f"table {k}" if one.origin is None else one.origin.path.name
                for k, one in ((number, other), (1, first))
            ]
            raise SchemaError(
                f"{name[0]} has other columns than {name[1]}: name those to publish, as in "
                "columns=['age', 'stay']"
            )
    members = tuple(sources)
    sizes = [member.size for member in members]
    # Sizes of some kinds of files are bytes, those of others rows.
    kinds = {member.origin and suffix(member.origin.path)[0] for member in members}
    known = [member.types for member in members if member.types is not None]

    def wide(dim: int) -> Iterator[Piece]:
        for member in members:
            yield from member.in_order(dim)

    def scattered() -> Iterator[Piece]:
        for member in members:
            yield from member.read() if member.scattered is None else member.scattered()

    def read() -> Iterator[Piece]:
        for member in members:
            yield from member.read()

    # Files whose pieces come in any order know their width; others may have to be told it.
    is_scattered = any(member.scattered is not None for member in members)
    is_scattered &= all(member.wide is None for member in members)

    return Source(
        read,
        first.dim,
        first.columns,
        any(member.once for member in members),
        sum(size or 0 for size in sizes) if None not in sizes and len(kinds) == 1 else None,
        first.fallback_dim,
        wide,
        first.unit,
        types=tuple(map(_agreed, zip(*known, strict=True))) if known else None,
        header=first.header,
        members=members,
        scattered=scattered if is_scattered else None,
    )


def _agreed(types: Sequence[ColumnType]) -> ColumnType:
    """Return what a column stands for in all of several tables; numbers are of either kind."""
    moments = set(types) - {NUMBER}
    if len(moments) > 1:
        raise SchemaError("a column of these tables holds dates in one and instants in another")
    return moments.pop() if moments else NUMBER


def standing_for(source: Source, types: Sequence[ColumnType] | None) -> Source:
    """Return a source whose dates and instants are told as they are wanted, days or seconds."""
    have = source.types
    if have is None or types is None or len(have) != len(types):
        return source
    apart = [
        (k, one, want)
        for k, (one, want) in enumerate(zip(have, types, strict=True))
        if converted(1.0, one, want) != 1.0
    ]
    if not apart:
        return replace(source, types=tuple(types))

    def told(rows: NDArray[Any]) -> NDArray[np.float64]:
        rows = rows.astype(np.float64)
        for k, one, want in apart:
            rows[:, k] = converted(rows[:, k], one, want)
        return rows

    def numbers(piece: Piece) -> NDArray[Any]:
        return told(piece.rows())

    def labelled(piece: Piece) -> Labelled:
        assert piece.labelled is not None
        rows, labels = piece.labelled()
        return told(rows), labels

    def change(pieces: Iterator[Piece]) -> Iterator[Piece]:
        for piece in pieces:
            marked = None if piece.labelled is None else partial(labelled, piece)
            yield Piece(partial(numbers, piece), piece.size, marked)

    return replace(source.through(change), types=tuple(types))


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
