"""Where compiled machine code is kept between processes: one file for each function and its types.

Numba's own cache has an index for each function, a file that names others. It looks in one folder
only, which has to be writable; it knows a function by the path that it is installed at; and of two
processes that fill one index at once, one may later be given the other's code. Here a file is named
for all that its code depends on, so there is no index to race for, and a folder of them serves
wherever it lies, read-only too. A file comes to be under its name whole, or not at all.

The name is a digest of

* the sources of the library, all of them (`fingerprint`): a stale sampler must never run;
* the function, the types of its arguments and the numbers that its loops were specialised to;
* the processor that code was compiled for, and the versions of Python and numba.

Folders, in this order, until one can be written to: the one that ``NUMBA_CACHE_DIR`` names, the
package's own ``__pycache__``, the user's cache. Code is loaded from wherever it is found, and kept
in the last. Who can write into such a folder decides what runs here, as with any Python package.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

PACKAGE = Path(__file__).parents[1]
ENDING = ".code"


def fingerprint() -> str:
    """Return a digest of all sources of the library, wherever it is installed.

    Empty where there are none to tell stale code by: then nothing is kept.
    """
    sources = sorted(PACKAGE.rglob("*.py"))
    joined = b"\0".join(path.read_bytes() for path in sources)
    return hashlib.sha256(joined).hexdigest()[:16] if sources else ""


FINGERPRINT = fingerprint()


@lru_cache(maxsize=8)
def folders(given: str) -> tuple[tuple[Path, ...], Path | None]:
    """Return the folders to look in, and the one to keep code in, if there is any."""
    places = [PACKAGE / "__pycache__", Path(AppDirs("dpkde", appauthor=False).user_cache_dir)]
    seen: list[Path] = []
    for place in [*([Path(given)] if given else []), *places]:
        folder = place / f"dpkde-{FINGERPRINT}"
        seen.append(folder)
        if _is_writable(folder):
            return tuple(seen), folder
    return tuple(seen), None


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


class KeptCode(Cache):  # type: ignore[misc]
    """The cache of one function, in the place of numba's."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_func = function  # for `_index_key`, all that is used of the class above
        self._enabled = bool(FINGERPRINT)

    @property
    def cache_path(self) -> str:
        """The folder that code is kept in."""
        return str(folders(numba.config.CACHE_DIR)[1])

    def flush(self) -> None:
        """Forget nothing: what is kept under a name is right for ever."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for a signature, or None."""
        target_context.refresh()
        if not self._enabled:
            return None
        key = self._key(sig, target_context.codegen())
        for folder in folders(numba.config.CACHE_DIR)[0]:
            # What cannot be read, or is damaged, is compiled again.
            with suppress(Exception):
                stored, code = pickle.loads((folder / self._file(key)).read_bytes())  # noqa: S301
                if stored == key:
                    return CompileResult._rebuild(target_context, *code)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for a signature where that can be done: a full disk stops nobody."""
        folder = folders(numba.config.CACHE_DIR)[1]
        if not self._enabled or folder is None or data.library.has_dynamic_globals or data.lifted:
            return
        key = self._key(sig, data.codegen)
        with suppress(OSError):
            _write(folder / self._file(key), dumps((key, data._reduce())))

    def _key(self, sig: Any, codegen: Any) -> str:
        """Return all that code depends on, as text: the same in every process."""
        function = self._py_func
        name = f"{function.__module__}.{function.__qualname__}:{function.__code__.co_firstlineno}"
        versions = (sys.implementation.cache_tag, numba.__version__)
        _, processor, contents = self._index_key(sig, codegen)
        return repr((FINGERPRINT, name, str(sig), processor, contents, versions))

    def _file(self, key: str) -> str:
        name = self._py_func.__name__.strip("_")
        return f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:32]}{ENDING}"


def _write(path: Path, content: bytes) -> None:
    """Write a file that others may be reading or writing: under another name, then moved."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
