"""Bytes of text files as they are stored: packed or not, in any encoding, as UTF-8."""

from __future__ import annotations

import bz2
import codecs
import gzip
import importlib
import io
import lzma
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from dpkde.errors import ParameterError, SchemaError

if TYPE_CHECKING:
    from dpkde.tables.places import Place

_ENCODINGS = (
    *("ascii", "utf-8", "utf-16", "utf-32", "iso8859-", "latin", "cp", "mac-", "koi8-", "kz1048"),
    *("gb2312", "gbk", "gb18030", "big5", "shift_jis", "shift-jis", "euc_", "euc-", "johab"),
    *("ptcp154", "tis-620", "hp-roman8"),
)
"""How the names of encodings begin that read every character by itself. In others, such as utf-7,
iso2022 or punycode, what one record leaves open changes how the next is read, or is warned of."""


@dataclass(frozen=True)
class Stream:
    """What text is read from: `read` returns some bytes, at most so many, and none at the end."""

    read: Callable[[int], bytes]
    close: Callable[[], None]


def suffix(path: Place) -> tuple[str, str]:
    """Return the suffix of a file, and that of its packing, if it is packed.

    >>> from pathlib import Path
    >>> suffix(Path("trips.csv.gz")), suffix(Path("trips.CSV"))
    (('.csv', '.gz'), ('.csv', ''))
    """
    kinds = [kind.lower() for kind in path.suffixes]
    if kinds and kinds[-1] in PACKINGS:
        return (kinds[-2] if len(kinds) > 1 else ""), kinds[-1]
    return (kinds[-1] if kinds else ""), ""


def open_binary(path: Place) -> Stream:
    """Return the bytes of a file, unpacked."""
    packing = suffix(path)[1]
    file = path.open("rb")
    if not packing:
        return Stream(file.read, file.close)
    damaged = f"{path.name} is damaged, or not a {packing} file"
    try:
        unpacked = guarded(damaged, lambda: PACKINGS[packing](file))
    except BaseException:
        file.close()
        raise
    return Stream(lambda size: guarded(damaged, lambda: unpacked.read(size)), file.close)


def guarded(damaged: str, action: Callable[[], Any]) -> Any:
    """Return what a library's reader returns; where it fails, raise with our words, not its own."""
    try:
        return action()
    except (SchemaError, FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception:
        raise SchemaError(damaged) from None


def _zstandard(file: BinaryIO) -> Any:
    with suppress(ImportError):  # in Python from 3.14 on
        return importlib.import_module("compression.zstd").ZstdFile(file)
    try:
        arrow = importlib.import_module("pyarrow")
    except ImportError:
        raise SchemaError(".zst files need one more package: pip install pyarrow") from None
    return arrow.CompressedInputStream(arrow.PythonFile(file, mode="r"), "zstd")


PACKINGS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file, mode="rb"),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": _zstandard,
}


def check_encoding(name: str) -> None:
    """Refuse what is no encoding of text, or one in which a record changes how the next is read."""
    try:
        codec = codecs.lookup(name)
        text = getattr(codec, "_is_text_encoding", True)
    except (LookupError, TypeError, ValueError):
        text = False
    if not text:
        raise ParameterError(f"there is no text encoding {name!r}; such as: utf-8, latin-1, cp1252")
    if not codec.name.startswith(_ENCODINGS):
        raise ParameterError(
            f"in {name} one record can change how the next is read: rewrite the table as UTF-8"
        )


def as_utf8(stream: Stream, encoding: str, what: str) -> Stream:
    """Return a stream of bytes in UTF-8; what cannot be decoded becomes a mark, and never raises.

    UTF-8 itself is passed on as it is: names are checked, and numbers are ASCII.
    """
    codec = codecs.lookup(encoding)
    decoder = codec.incrementaldecoder("replace")

    def read(size: int) -> bytes:
        try:
            data = stream.read(size)
        except SchemaError:
            raise
        except (io.UnsupportedOperation, ValueError):  # closed, or for writing
            raise SchemaError(f"{what} cannot be read: open it anew") from None
        if isinstance(data, str):
            raise SchemaError("open the file in binary mode, as in open(path, 'rb')")
        return bytes(data)

    def recode(size: int) -> bytes:
        while data := read(size):
            if text := decoder.decode(data):
                return text.encode("utf-8", "replace")
        return decoder.decode(b"", final=True).encode("utf-8", "replace")

    plain = codec.name in ("utf-8", "utf-8-sig", "ascii")
    return Stream(read if plain else recode, stream.close)
