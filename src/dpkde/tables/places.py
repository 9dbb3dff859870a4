"""Places of tables: files, folders of them, patterns of names, and addresses elsewhere.

``trips.csv``             a file on this machine
``trips/``                a folder: every table in it and in the folders below it, of one kind.
                          Names that begin with ``.`` or ``_`` are left out. In a path such as
                          ``trips/year=2026/part.parquet`` the folder is a column ``year``
``trips/*.parquet``       a pattern, in which ``**`` stands for any folders
``s3://bucket/trips/``    an address that fsspec knows, where that is installed; each of the above

Several files are one table: each has the columns that are asked for, and all of them are looked at
before anything is read. What does not fit is named by its file.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import SchemaError
from dpkde.space.moments import NUMBER
from dpkde.tables.cells import numbers_in
from dpkde.tables.labels import Labelled, labels_in_cells
from dpkde.tables.source import Piece, Source, together
from dpkde.tables.streams import suffix

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PATTERN = re.compile(r"[*?\[]")
Opener = Callable[["Place", Sequence[str] | None, str | None], Source]


class Place(Protocol):
    """A file: a `Path`, or one elsewhere that can do as much."""

    @property
    def name(self) -> str:
        """Its name without folders."""

    @property
    def suffix(self) -> str:
        """The ending of its name."""

    @property
    def suffixes(self) -> list[str]:
        """All endings of its name."""

    def open(self, mode: str) -> Any:
        """Return its bytes."""

    def stat(self) -> Any:
        """Return what has its `st_size`."""


class Elsewhere:
    """A file that fsspec reaches."""

    def __init__(self, system: Any, path: str) -> None:
        self.system, self.path = system, path

    def __str__(self) -> str:
        return self.path

    @property
    def name(self) -> str:
        """Its name without folders."""
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The ending of its name."""
        return Path(self.name).suffix

    @property
    def suffixes(self) -> list[str]:
        """All endings of its name."""
        return Path(self.name).suffixes

    def open(self, mode: str = "rb") -> BinaryIO:
        """Return its bytes."""
        return self.system.open(self.path, mode)  # type: ignore[no-any-return]

    def stat(self) -> os.stat_result:
        """Return its size, as that of a file here."""
        size = int(self.system.size(self.path) or 0)
        return os.stat_result((0, 0, 0, 0, 0, 0, size, 0, 0, 0))


def is_address(text: object) -> bool:
    """Return whether a text is an address elsewhere."""
    return isinstance(text, str) and _ADDRESS.match(text) is not None


def is_place(name: object) -> bool:
    """Return whether something is a path, a pattern or an address."""
    return isinstance(name, (str, os.PathLike))


def files_in(name: str | os.PathLike[str], kinds: Sequence[str]) -> list[tuple[Place, str]]:
    """Return the files of a place, each with its path below that; one file has none.

    `kinds` are the endings that tables have. What there is no file of raises as Python does.
    """
    text = os.fspath(name)
    if is_address(text):
        return _files_elsewhere(text, kinds)
    path = Path(text)
    if path.is_dir():
        found = [
            (each, each.relative_to(path).as_posix())
            for each in sorted(path.rglob("*"))
            if each.is_file()
        ]
        return list(_tables(found, kinds, str(path)))
    if not path.exists() and _PATTERN.search(text):
        matches = [Path(each) for each in sorted(glob.glob(text, recursive=True))]
        root = _root(path.as_posix())
        below = [(each, each.as_posix().removeprefix(root)) for each in matches if each.is_file()]
        return _matching(below, text)
    return [(path, "")]


def _root(pattern: str) -> str:
    """Return the folders of a pattern before its first mark."""
    start = _PATTERN.search(pattern)
    assert start is not None
    return Path(pattern[: pattern.rfind("/", 0, start.start()) + 1]).as_posix().removesuffix(".")


def _files_elsewhere(address: str, kinds: Sequence[str]) -> list[tuple[Place, str]]:
    try:
        import fsspec
    except ImportError:
        raise SchemaError(
            f"{address} needs one more package: pip install fsspec, and the one that it names for "
            "this kind of address"
        ) from None
    try:
        system, path = fsspec.core.url_to_fs(address)
        if _PATTERN.search(path):
            found = sorted(system.glob(path))
            root = _root(path)
            return _matching(
                [(Elsewhere(system, each), each.removeprefix(root)) for each in found], address
            )
        if system.isdir(path):
            root = path.rstrip("/") + "/"
            found = sorted(system.find(path))
            inside = [(Elsewhere(system, each), each.removeprefix(root)) for each in found]
            return list(_tables(inside, kinds, address))
        if not system.exists(path):
            raise FileNotFoundError(f"there is no file {address}")
        return [(Elsewhere(system, path), "")]
    except (FileNotFoundError, SchemaError):
        raise
    except ImportError as error:
        raise SchemaError(f"{address} needs one more package ({error})") from None
    except Exception as error:
        raise SchemaError(f"{address} cannot be reached ({type(error).__name__})") from None


def _matching(found: Sequence[tuple[Place, str]], pattern: str) -> list[tuple[Place, str]]:
    """Return the files that a pattern means: hidden ones only where there are no others."""
    if not found:
        raise FileNotFoundError(f"no file has a name like {pattern}")
    return [file for file in found if not _is_hidden(file[1])] or list(found)


def _is_hidden(below: str) -> bool:
    """Return whether a name, or that of a folder on the way, says that it is no data."""
    return any(part.startswith((".", "_")) for part in below.split("/"))


def _tables(
    found: Sequence[tuple[Place, str]], kinds: Sequence[str], folder: str
) -> Iterator[tuple[Place, str]]:
    """Yield the tables of a folder; refuse one without any, or with several kinds of them."""
    seen: dict[str, None] = {}
    tables = []
    for place, below in found:
        if _is_hidden(below):
            continue
        kind = suffix(place)[0]
        if kind in kinds:
            seen[kind] = None
            tables.append((place, below))
    if not tables:
        raise SchemaError(
            f"the folder {folder} holds no table that can be read: {', '.join(kinds)}"
        )
    if len(seen) > 1:
        raise SchemaError(
            f"the folder {folder} holds tables of several kinds, {', '.join(seen)}: give a pattern "
            f"such as '{folder.rstrip('/')}/**/*{next(iter(seen))}'"
        )
    yield from tables


def check_distinct(places: Iterable[Place]) -> None:
    """Refuse a file that is there twice, by whatever name: its records would count twice."""
    seen = set()
    for place in places:
        real = os.path.realpath(place) if isinstance(place, Path) else str(place)
        if real in seen:
            raise SchemaError(
                f"{place.name} is there twice: each of its records would count as two"
            )
        seen.add(real)


def partitions(below: str) -> dict[str, str]:
    """Return the columns that the folders of a path are, with their one value each.

    >>> partitions("year=2026/month=3/part-0.parquet")
    {'year': '2026', 'month': '3'}
    """
    pairs = (part.partition("=") for part in below.split("/")[:-1])
    return {unquote(key): unquote(value) for key, equals, value in pairs if key and equals}


@dataclass(frozen=True)
class File:
    """A file to read, its path below the folder or the pattern it is of, and what opens it."""

    place: Place
    below: str
    opener: Opener


def open_files(files: Sequence[File], columns: Sequence[str] | None, unit: str | None) -> Source:
    """Return files as one source."""
    check_distinct([file.place for file in files])
    keys = [partitions(file.below) for file in files]
    known = list(dict.fromkeys(key for each in keys for key in each))
    if known and columns is None:
        raise SchemaError(
            f"these folders are columns as well ({', '.join(known)}): name those to publish, as in "
            f"columns=['{known[0]}', …]"
        )
    return together(
        [
            _with_folders(file, constants, columns, unit)
            for file, constants in zip(files, keys, strict=True)
        ]
    )


def _with_folders(
    file: File,
    constants: Mapping[str, str],
    columns: Sequence[str] | None,
    unit: str | None,
) -> Source:
    """Return a file as a source, with the columns that its folders are."""
    if not constants or columns is None:
        return file.opener(file.place, columns, unit)
    names = [str(name) for name in columns]
    inner = [name for name in names if name not in constants]
    if not inner:
        raise SchemaError(
            f"{file.place.name} has to hold one of the columns itself: all are folders"
        )
    source = file.opener(file.place, inner, None if unit in constants else unit)
    fixed = {name: float(numbers_in([constants[name]])[0]) for name in names if name in constants}
    whose = constants.get(unit) if unit is not None else None

    def widened(rows: NDArray[Any]) -> NDArray[np.float64]:
        whole = np.empty((len(rows), len(names)))
        for k, name in enumerate(names):
            whole[:, k] = fixed[name] if name in fixed else rows[:, inner.index(name)]
        return whole

    def numbers(piece: Piece) -> NDArray[np.float64]:
        return widened(piece.rows())

    def labelled(piece: Piece) -> Labelled:
        if whose is not None:
            rows = numbers(piece)
            return rows, labels_in_cells([whose] * len(rows))
        assert piece.labelled is not None
        rows, labels = piece.labelled()
        return widened(rows), labels

    def change(pieces: Iterator[Piece]) -> Iterator[Piece]:
        for piece in pieces:
            marked = None if unit is None else partial(labelled, piece)
            yield Piece(partial(numbers, piece), piece.size, marked)

    types = None
    if source.types is not None:
        given = dict(zip(inner, source.types, strict=True))
        types = tuple(given.get(name, NUMBER) for name in names)
    whole = source.through(change)
    return replace(whole, dim=len(names), columns=tuple(names), unit=unit, types=types)
