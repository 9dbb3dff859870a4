"""Bytes of text files as they are stored: packed or not, in any encoding, as UTF-8."""

from __future__ import annotations

import codecs
import gzip
import importlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from dpkde.errors import ParameterError, SchemaError

_ENCODINGS = (
    *("ascii", "utf-8", "utf-16", "utf-32", "iso8859-", "latin", "cp", "mac-", "koi8-", "kz1048"),
    *("gb2312", "gbk", "gb18030", "big5", "shift_jis", "shift-jis", "euc_", "euc-", "johab"),
    *("ptcp154", "tis-620", "hp-roman8"),
)
"""How the names of encodings begin that read every character by itself. In others, such as utf-7,
iso2022 or punycode, what one record leaves open changes how the next is read, or is warned of."""


class Readable(Protocol):
    """What text is read from."""

    def read(self, size: int, /) -> bytes:
        """Return some bytes, at most `size`; none at the end."""

    def close(self) -> None:
        """Give back what is held."""


def suffix(path: Path) -> tuple[str, str]:
    """Return the suffix of a file, and that of its packing, if it is packed.

    >>> suffix(Path("trips.csv.gz")), suffix(Path("trips.CSV"))
    (('.csv', '.gz'), ('.csv', ''))
    """
    kinds = [kind.lower() for kind in path.suffixes]
    if kinds and kinds[-1] in _PACKINGS:
        return (kinds[-2] if len(kinds) > 1 else ""), kinds[-1]
    return (kinds[-1] if kinds else ""), ""


def open_binary(path: Path) -> Readable:
    """Open a file to read its bytes, unpacked."""
    packing = suffix(path)[1]
    file = path.open("rb")
    if not packing:
        return file
    damaged = f"{path.name} is damaged, or not a {packing} file"
    return _Guarded(file, lambda: _PACKINGS[packing](file), damaged)


def _gzip(file: BinaryIO) -> Any:
    return gzip.GzipFile(fileobj=file, mode="rb")


def _zstandard(file: BinaryIO) -> Any:
    try:  # in Python from 3.14 on
        return importlib.import_module("compression.zstd").ZstdFile(file)
    except ImportError:
        pass
    try:
        arrow = importlib.import_module("pyarrow")
    except ImportError:
        raise SchemaError(".zst files need one more package: pip install pyarrow") from None
    return arrow.CompressedInputStream(arrow.PythonFile(file, mode="r"), "zstd")


_PACKINGS: dict[str, Callable[[BinaryIO], Any]] = {".gz": _gzip, ".zst": _zstandard}


class _Guarded:
    """A reader of another library, whose errors are told in our own words."""

    def __init__(self, file: BinaryIO, unpack: Callable[[], Any], damaged: str) -> None:
        self._file, self._damaged = file, damaged
        self._stream = self._try(unpack)

    def _try(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except SchemaError:
            raise
        except Exception:
            raise SchemaError(self._damaged) from None

    def read(self, size: int, /) -> bytes:
        data: bytes = self._try(lambda: self._stream.read(size))
        return data

    def close(self) -> None:
        self._file.close()


def check_encoding(name: str) -> None:
    """Refuse what is no encoding of text, or one that remembers."""
    try:
        known = codecs.lookup(name)
        text = getattr(known, "_is_text_encoding", True)
    except (LookupError, TypeError, ValueError):
        text = False
    if not text:
        raise ParameterError(f"there is no text encoding {name!r}; such as: utf-8, latin-1, cp1252")
    if not known.name.startswith(_ENCODINGS):
        raise ParameterError(
            f"in {name} one record can change how the next is read: rewrite the table as UTF-8"
        )


def as_utf8(stream: Any, encoding: str, what: str) -> Readable:
    """Return a stream of bytes in UTF-8; what cannot be decoded becomes a mark, and never raises.

    UTF-8 itself is passed on as it is: names are checked, and numbers are ASCII.
    """
    known = codecs.lookup(encoding).name
    if known in ("utf-8", "utf-8-sig", "ascii"):
        return _Binary(stream, what)
    return _Recoded(_Binary(stream, what), codecs.getincrementaldecoder(known)("replace"))


class _Binary:
    """A stream that has to hand out bytes."""

    def __init__(self, stream: Any, what: str) -> None:
        self._stream, self._what = stream, what
        self.close = stream.close

    def read(self, size: int, /) -> bytes:
        try:
            data = self._stream.read(size)
        except SchemaError:
            raise
        except (io.UnsupportedOperation, ValueError):  # closed, or for writing
            raise SchemaError(f"{self._what} cannot be read: open it anew") from None
        if isinstance(data, str):
            raise SchemaError("open the file in binary mode, as in open(path, 'rb')")
        return bytes(data)


class _Recoded:
    """A stream in another encoding."""

    def __init__(self, stream: Readable, decoder: codecs.IncrementalDecoder) -> None:
        self._stream, self._decoder = stream, decoder
        self.close = stream.close

    def read(self, size: int, /) -> bytes:
        while data := self._stream.read(size):
            if text := self._decoder.decode(data):
                return text.encode("utf-8", "replace")
        return self._decoder.decode(b"", final=True).encode("utf-8", "replace")
