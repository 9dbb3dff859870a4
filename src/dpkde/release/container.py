r"""The container of our files: a safetensors file with one JSON document and a digest.

Releases, plans and sketches are all kept so. A file is

    8 bytes            N, the length of the header, little-endian
    N bytes            the safetensors header: JSON, tensors by name with dtype, shape and offsets,
                       and ``__metadata__`` with exactly two strings,
                         ``dpkde``   the document, canonical JSON (sorted keys, no spaces, ASCII)
                         ``sha256``  the digest, lower-case hexadecimal
    the rest           the tensors' bytes, little-endian, row-major

The digest is SHA-256 over the document's bytes, and then, for each tensor in the order of its
name, over ``name\0dtype\0dim,dim,…\0`` and its bytes. It tells damage from a good file; it is
not a signature.

Writing is atomic: a temporary file in the same folder, flushed to disk, then renamed over the
target. Reading is strict and bounded: sizes are checked against the size of the file before
anything is parsed or allocated, and whatever is off raises `FormatError` with one clear line.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import FormatError, ParameterError

MAX_HEADER = 1 << 26
MAX_VALUES = 3 << 21
"""A header has at most so many commas and brackets: each can cost a reader a hundred bytes."""
MAX_FILE = 1 << 34
_DTYPES: dict[str, np.dtype[Any]] = {
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

Arrays = Mapping[str, NDArray[Any]]
Contents = tuple[dict[str, Any], dict[str, NDArray[Any]]]
"""The document and the tensors of a file."""
_Entry = tuple[int, int, str, np.dtype[Any], tuple[int, ...]]
"""Start, stop, name, type and shape of a tensor."""


def canonical(document: Mapping[str, Any]) -> str:
    """Return the document as canonical JSON."""
    return json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def digest(document: str, tensors: Arrays) -> str:
    """Return the SHA-256 over a canonical document and tensors, in hexadecimal."""
    state = hashlib.sha256(document.encode("ascii"))
    for name in sorted(tensors):
        array = _little(tensors[name])
        shape = ",".join(map(str, array.shape))
        state.update(f"{name}\0{_NAMES[array.dtype]}\0{shape}\0".encode())
        state.update(array.tobytes())
    return state.hexdigest()


def pack(document: Mapping[str, Any], tensors: Arrays) -> bytes:
    """Return a file's bytes."""
    from safetensors.numpy import save

    text = canonical(document)
    arrays = {name: _little(array) for name, array in tensors.items()}
    payload: bytes = save(arrays, metadata={"dpkde": text, "sha256": digest(text, arrays)})
    stop = 8 + int.from_bytes(payload[:8], "little")
    # Metadata come in no order; equal things are equal bytes.
    header = json.dumps(json.loads(payload[8:stop]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    if not _is_modest(header):
        raise ParameterError(_NO_ROOM)
    return len(header).to_bytes(8, "little") + header + payload[stop:]


def write(
    path: str | os.PathLike[str],
    document: Mapping[str, Any],
    tensors: Arrays,
    *,
    secret: bool = False,
) -> None:
    """Write a file atomically: after a crash there is the old file or the whole new one.

    Only files of ours, and of the same kind, are written over: what else is there may be the
    private table, or a release whose ε is spent.
    A secret file stays readable by its owner alone, where the system knows such a thing.
    """
    payload = pack(document, tensors)
    target = Path(path)
    if not target.name:
        raise ParameterError(f"{str(path)!r} is not the name of a file to write")
    check_replaceable(target, str(document.get("format")))
    temporary = target.with_name(f"{unfinished(target)}{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(temporary, flags, 0o600 if secret else 0o666)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:  # named after the file that was asked for, not our temporary one
        if error.errno is None:
            raise
        raise type(error)(error.errno, error.strerror, str(target)) from None


def unfinished(path: Path) -> str:
    """Return how the name of a file begins that is to become `path` once it is complete."""
    return f".{path.name}."


def check_room(*parts: Any) -> None:
    """Refuse parts of a document that would leave no room for the rest: a statement, extras."""
    written = json.dumps(canonical({"parts": parts})).encode("ascii")
    if not _is_modest(written, _REST):
        raise ParameterError(_NO_ROOM)


_REST = 1 << 22
_NO_ROOM = (
    "kernel, bounds, names and parameters take more room than a file has for them: "
    f"{MAX_HEADER - _REST >> 20} MiB of text, with {MAX_VALUES - _REST // 2} commas and brackets"
)


def _is_modest(text: bytes, rest: int = 0) -> bool:
    """Tell whether a header in JSON, or all but the rest of it, is as short as a reader wants."""
    values = sum(text.count(mark) for mark in (b",", b"[", b"{"))
    return len(text) <= MAX_HEADER - rest and values <= MAX_VALUES - rest // 2


MOST_LEVELS = 32


def is_shallow(value: Any, levels: int = MOST_LEVELS) -> bool:
    """Tell whether objects and lists are nested at most so many levels deep."""
    level = [value] if isinstance(value, (dict, list, tuple)) else []
    for _ in range(levels):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, (dict, list, tuple))
        ]
    return not level


def check_replaceable(path: Path, kind: str) -> None:
    """Refuse to write over something that does not begin as files of ours of this kind do.

    An empty file is nobody's. A device, a pipe or a dangling link is somebody's; a folder the
    system itself protects.
    """
    if not os.path.lexists(path) or path.is_dir():
        return
    refusal = ParameterError(
        f"{path} exists and is no {kind} file; it is not overwritten: choose another name"
    )
    if not path.is_file():
        raise refusal
    if path.stat().st_size and kind_of(path) != kind:
        raise refusal


def check_not_ours(path: Path) -> None:
    """Refuse to write a table or a map over a file of dpkde: what it has was paid for."""
    kind = kind_of(path)
    if kind is not None:
        raise ParameterError(f"{path} is a {kind} file; it is not overwritten: choose another name")


def kind_of(path: Path) -> str | None:
    """Return which kind of file of ours this begins as, such as ``"dpkde-sketch"``.

    None for others, and where there is no file. The name of the file is not asked, nor its digest.
    """
    if not path.is_file():
        return None
    with path.open("rb") as file:
        try:
            metadata = _header(file, os.fstat(file.fileno()).st_size, FormatError(""))[1]
            kind = json.loads(metadata["dpkde"])["format"]
        except (LookupError, TypeError, ValueError, RecursionError):
            return None
    return kind if isinstance(kind, str) and kind.startswith("dpkde-") else None


def read(path: str | os.PathLike[str]) -> Contents:
    """Return the document and the tensors of a file, its digest checked.

    Raises
    ------
    FormatError
        The file is damaged, hostile, or not ours.
    OSError
        The file cannot be opened.
    """
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_FILE:
            raise FormatError(f"{path} is larger than any dpkde file ({size} bytes)")
        return _typed(lambda error: _read(file, size, error), str(path))


def unpack(data: bytes) -> Contents:
    """Return the document and the tensors of a file's bytes; `FormatError` as for `read`."""
    copy = bytes(data)
    return _typed(lambda error: _read(io.BytesIO(copy), len(copy), error), "what was given")


def _typed(action: Callable[[FormatError], Contents], name: str) -> Contents:
    """Run a reader; whatever it stumbles over is a `FormatError` with one line."""
    error = FormatError(f"{name} is not a dpkde file, or is damaged")
    try:
        return action(error)
    except FormatError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError):
        raise error from None


def _read(file: BinaryIO, size: int, error: FormatError) -> Contents:
    """Read the header, and the rest only if the header accounts for every byte of it."""
    header, metadata = _header(file, size, error)
    length, text = file.tell() - 8, metadata["dpkde"]
    if not isinstance(text, str) or not text.isascii():
        raise error
    entries = _layout(header, size - 8 - length, error)
    body = memoryview(file.read(size - 8 - length))
    tensors = {
        name: np.frombuffer(body[start:stop], dtype=dtype).reshape(shape)
        for start, stop, name, dtype, shape in entries
    }
    if digest(text, tensors) != metadata["sha256"]:
        raise FormatError(f"{error}: its contents do not match its digest")
    return _object(text.encode("ascii"), error), tensors


def _header(file: BinaryIO, size: int, error: FormatError) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tensors' entries and the metadata."""
    if not size:
        raise FormatError(f"{error}: it is empty")
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(MAX_HEADER, size - 8):
        raise error
    header = _object(file.read(length), error)
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or set(metadata) != {"dpkde", "sha256"}:
        raise error
    return header, metadata


def _object(text: bytes, error: FormatError) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise error  # NaN and infinities are no JSON

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            raise error  # a name that stands twice says two things
        return entries

    if not _is_modest(text):
        raise error
    value = json.loads(text, parse_constant=refuse, object_pairs_hook=once)
    if not isinstance(value, dict):
        raise error
    return value


def _layout(header: Mapping[str, Any], room: int, error: FormatError) -> list[_Entry]:
    """Return where tensors lie; they have to tile the room without gap or overlap."""
    entries: list[_Entry] = []
    for name, entry in header.items():
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise error
        shape, offsets = entry["shape"], entry["data_offsets"]
        if entry["dtype"] not in _DTYPES or not _whole(shape) or not _whole(offsets):
            raise error
        if len(offsets) != 2 or len(shape) > 8 or not name.isascii():
            raise error
        entries.append((offsets[0], offsets[1], name, _DTYPES[entry["dtype"]], tuple(shape)))
    position = 0
    entries.sort(key=lambda entry: entry[:3])
    for start, stop, _, dtype, shape in entries:
        if start != position or stop - start != dtype.itemsize * math.prod(shape):
            raise error
        position = stop
    if position > room:
        raise FormatError(f"{error}: its end is missing")
    if position < room:
        raise error
    return entries


def _whole(values: Any) -> bool:
    return isinstance(values, list) and all(
        isinstance(v, int) and not isinstance(v, bool) and 0 <= v <= MAX_FILE for v in values
    )


def _little(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
