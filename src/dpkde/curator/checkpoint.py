"""Checkpoints: how far a long sketch has come, so that it can go on after a kill. Secret.

A sketch under a fixed plan is a sum over pieces of files, and integer sums do not care when they
are taken: whoever has the sum of the pieces up to a place, and that place, goes on from there and
ends with the same bits. Nothing else can be resumed. A release never is: noise that was drawn once
must not be drawn again for the same spend, so `dpkde.publish` knows no checkpoints.

**What is in it.** The sums so far, exact, and so as secret as the data; the place, as the number of
a file and of pieces in it; the digest of the plan; and for each file its path, size and time of
change, for those that were begun also a digest of `_BLOCKS` blocks of it. A file that is not the
same any more is refused, never read again without a word. What the digest cannot see is a file of
the same size whose time was put back, changed between those blocks.

**When.** Threads finish pieces in any order, so every `SECONDS` the flow of pieces is held up until
all that were handed out are summed: then the sums are those of a prefix. When that is hangs on the
clock alone. A checkpoint is written beside its place and renamed, readable by its owner alone, and
deleted with all that was left of it once the sketch is complete.

**One process at a time.** A lock on a file beside it, which the system takes back from a process
that was killed.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from dpkde.errors import FormatError, ParameterError, SchemaError
from dpkde.families.base import Table
from dpkde.planning.plan import Plan
from dpkde.privacy.amounts import ONE_RECORD
from dpkde.release import container
from dpkde.release.files import SECRECY, Filed, Opened
from dpkde.tables import Piece, Source
from dpkde.tables.source import Origin

SECONDS = 60.0
"""Between checkpoints; more where writing one takes long."""
_PATIENCE = 20
"""At most one part in so many of the time goes into writing."""
_BLOCKS, _BLOCK = 8, 1 << 15

NO_FILE = (
    "a checkpoint needs points that can be found again: files of this machine, by their paths, a "
    "folder or a pattern of them, or a list of those"
)
_UNITS = (
    "under a unit the rows that count are chosen over the whole table before any is summed, so "
    "there is nothing to go on from: leave out checkpoint="
)


@dataclass
class Sums:
    """Exact sums of contributions, how many records contributed, and how many rows there were."""

    table: Table
    count: int
    rows: int


@dataclass(frozen=True)
class FileState:
    """A file as it was: what tells whether it is the same. `digest` is empty until it is begun."""

    path: str
    rules: str
    size: int
    modified: int
    digest: str = ""

    @classmethod
    def of(cls, origin: Origin) -> FileState:
        """Return a file as it is, without its digest."""
        status = origin.path.stat()
        path = os.path.abspath(origin.path)
        return cls(path, origin.rules, status.st_size, status.st_mtime_ns)

    @classmethod
    def from_json(cls, entry: Any) -> FileState:
        """Rebuild it from what a checkpoint says."""
        state = cls(**entry)
        texts, numbers = (state.path, state.rules, state.digest), (state.size, state.modified)
        if not all(type(each) is str for each in texts):
            raise TypeError
        if not all(type(each) is int for each in numbers):
            raise TypeError
        return state

    def check(self, now: FileState, since: str, advice: str = "") -> None:
        """Refuse a file that is not the same as it was."""
        same = (self.size, self.modified) == (now.size, now.modified)
        if not same or (self.digest and self.digest != _digest(self.path, self.size)):
            raise SchemaError(
                f"{Path(self.path).name} has changed {since}: what was read of it and what it "
                f"holds now do not go together{advice}"
            )


def _digest(path: str, size: int) -> str:
    """Return a digest of some blocks of a file, spread over it; of all of it where it is small."""
    state = hashlib.sha256()
    with open(path, "rb") as file:
        for block in range(_BLOCKS):
            file.seek(max(size - _BLOCK, 0) * block // (_BLOCKS - 1))
            state.update(file.read(_BLOCK))
    return state.hexdigest()


@dataclass(eq=False)
class Checkpoint(Filed):
    """How far a sketch has come: a file, as secret as the data.

    Attributes
    ----------
    plan
        The digest of the plan.
    generator
        The version of dpkde that reads the files, and cuts them into pieces.
    identity
        The id of the sketch that is being made.
    files
        What is read, in this order.
    sums
        Of all pieces before the place.
    file, pieces, size
        The place: so many files are summed as a whole, and of the next one so many pieces, whose
        sizes add up to so much.
    """

    FORMAT = "dpkde-checkpoint"
    SECRET = True

    plan: str
    generator: str
    identity: str
    files: list[FileState]
    sums: Sums = field(repr=False)
    file: int = 0
    pieces: int = 0
    size: int = 0

    @property
    def format_version(self) -> int:
        """The version of its file."""
        return 1

    def _described(self) -> container.Contents:
        names = ("plan", "generator", "identity", "file", "pieces", "size")
        document: dict[str, Any] = {name: getattr(self, name) for name in names}
        document["files"] = [asdict(each) for each in self.files]
        document["secret"] = SECRECY
        totals = np.array([self.sums.count, self.sums.rows], dtype=np.uint64).view(np.int64)
        return document, {"table": self.sums.table, "totals": totals}

    @classmethod
    def _rebuilt(cls, opened: Opened) -> Checkpoint:
        document = opened.document
        table, totals = opened.tensors.pop("table"), opened.tensors.pop("totals")
        if table.ndim != 1 or totals.shape != (2,) or not table.dtype == totals.dtype == np.int64:
            raise FormatError("the sums of this checkpoint are damaged")
        files = [FileState.from_json(entry) for entry in document["files"]]
        plan, generator, identity = (document[name] for name in ("plan", "generator", "identity"))
        if not all(type(each) is str for each in (plan, generator, identity)):
            raise TypeError
        place = [document[name] for name in ("file", "pieces", "size")]
        if not all(type(each) is int and each >= 0 for each in place) or place[0] > len(files):
            raise ValueError
        count, rows = totals.view(np.uint64).tolist()
        return cls(plan, generator, identity, files, Sums(table.copy(), count, rows), *place)


Summing = Callable[[Iterable[Piece]], Sums]
"""Returns the sums of some pieces, all of them summed when it returns."""


@contextmanager
def kept(
    path: str | os.PathLike[str], source: Source, plan: Plan, new_id: str, summed: Summing
) -> Iterator[tuple[Sums, str]]:
    """Yield the sums over a source, and the id of their sketch; go on from a checkpoint if any.

    The checkpoint is deleted when the block inside ends, and kept where that raises.
    """
    place = Path(path)
    if plan.unit != ONE_RECORD:
        raise ParameterError(_UNITS)
    files = [FileState.of(origin) for origin in _origins(source)]
    if place.is_dir() or not place.name:
        raise ParameterError(f"{place} is a folder: name a file for the checkpoint")
    with _locked(place):
        if place.exists():
            state = Checkpoint.load(place)
            _check(state, plan, files, place)
        else:
            nothing = Sums(np.zeros(plan.pair.bounds.cells, dtype=np.int64), 0, 0)
            state = Checkpoint(plan.digest, _generator(), new_id, files, nothing)
        _go_on(state, source.members or (source,), plan.frame.dim, summed, place)
        yield state.sums, state.identity
        place.unlink(missing_ok=True)


def _origins(source: Source) -> list[Origin]:
    """Return the files that a source reads; refuse what is more than files."""
    members = source.members or (source,)
    origins = [member.origin for member in members if member.origin is not None]
    if len(origins) < len(members):
        raise ParameterError(NO_FILE)
    return origins


def _generator() -> str:
    from dpkde import __version__

    return f"dpkde {__version__}"


def _check(state: Checkpoint, plan: Plan, files: Sequence[FileState], path: Path) -> None:
    """Refuse a checkpoint of something else, or of files that have changed."""
    anew = f"; to begin anew, remove {path}"
    if state.generator != _generator():
        raise ParameterError(
            f"the checkpoint {path} was written by {state.generator}, and this is {_generator()}"
            f"{anew}"
        )
    if state.plan != plan.digest:
        raise ParameterError(f"the checkpoint {path} is of another plan{anew}")
    if [each.path for each in state.files] != [each.path for each in files]:
        raise ParameterError(f"the checkpoint {path} is of other files, or in another order{anew}")
    if [each.rules for each in state.files] != [each.rules for each in files]:
        raise ParameterError(f"the checkpoint {path} is of text that was read otherwise{anew}")
    if len(state.sums.table) != plan.pair.bounds.cells:
        raise FormatError(f"the sums in {path} do not fit the plan")
    for was, now in zip(state.files, files, strict=True):
        was.check(now, f"since the checkpoint {path} was begun", anew)


def _go_on(
    state: Checkpoint, members: Sequence[Source], dim: int, summed: Summing, path: Path
) -> None:
    """Sum what is left, and write a checkpoint every now and then."""
    for member in members[: state.file]:
        if member.passed is not None and member.size is not None:
            member.passed(member.size)
    flow, spent, first = _Flow(state, members, dim), 0.0, state.file
    while not flow.ended:
        more = summed(flow.until(time.monotonic() + max(SECONDS, _PATIENCE * spent)))
        # All that was handed out is summed: the place is where the flow stands.
        for was, member in zip(state.files[first:], members[first : state.file + 1], strict=False):
            assert member.origin is not None
            was.check(FileState.of(member.origin), "while it was read")
        first = state.file
        state.sums.table += more.table
        state.sums.count = (state.sums.count + more.count) % (1 << 64)
        state.sums.rows = (state.sums.rows + more.rows) % (1 << 64)
        if not flow.ended:
            start = time.monotonic()
            state.save(path)
            spent = time.monotonic() - start


class _Flow:
    """The pieces from a place on. The place is that behind the last piece that was handed out."""

    def __init__(self, state: Checkpoint, members: Sequence[Source], dim: int) -> None:
        self.state = state
        self.ended = False
        self._pieces = self._from_here(members, dim)

    def until(self, deadline: float) -> Iterator[Piece]:
        """Yield pieces until it is late, at least one if there is any."""
        for piece in self._pieces:
            yield piece
            if time.monotonic() >= deadline:
                return
        self.ended = True

    def _from_here(self, members: Sequence[Source], dim: int) -> Iterator[Piece]:
        state = self.state
        while state.file < len(members):
            pieces = members[state.file].in_order(dim)
            if state.pieces:
                self._skip(pieces)
            else:
                was = state.files[state.file]
                digest = _digest(was.path, was.size)
                state.files[state.file] = replace(was, digest=digest)
            for piece in pieces:
                state.pieces += 1
                state.size += piece.size
                yield piece
            state.file, state.pieces, state.size = state.file + 1, 0, 0

    def _skip(self, pieces: Iterator[Piece]) -> None:
        """Pass over what is summed; its sizes tell that it is cut into pieces as it was."""
        sizes = [piece.size for _, piece in zip(range(self.state.pieces), pieces, strict=False)]
        if len(sizes) < self.state.pieces or sum(sizes) != self.state.size:
            name = Path(self.state.files[self.state.file].path).name
            raise SchemaError(
                f"{name} is cut into other pieces than when the checkpoint was written, as another "
                "version of pyarrow may do: remove the checkpoint, and begin anew"
            )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a checkpoint, and leave nothing unfinished beside it."""
    lock = path.with_name(f".{path.name}.lock")
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(handle, "r+b") as file:
            if not _is_ours(file):
                raise ParameterError(
                    f"another process is making this sketch, and has the checkpoint {path}: wait "
                    "for it, or name another file"
                )
            if not _is_there(file, lock):
                continue  # whoever had it before has removed it since we opened it
            try:
                _remove_unfinished(path)
                yield
            finally:
                with suppress(OSError):  # not every system removes what is open
                    lock.unlink()
            return


def _is_there(file: BinaryIO, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    return False


def _remove_unfinished(path: Path) -> None:
    """Remove what a process that was killed has left of a checkpoint that it was writing."""
    name = re.compile(re.escape(container.unfinished(path)) + r"[0-9a-f]{16}\.tmp")
    for other in path.parent.iterdir():
        if name.fullmatch(other.name):
            other.unlink(missing_ok=True)


if sys.platform == "win32":
    import msvcrt

    def _is_ours(file: BinaryIO) -> bool:
        """Take the lock; False where another process has it."""
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _is_ours(file: BinaryIO) -> bool:
        """Take the lock; False where another process has it."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
