"""Code of others that is run on private rows: what it raises may quote a cell, and never passes.

Databases and engines say what they stumbled over ("could not convert string 'Smith' to double").
`of_library` runs such code: an error of its own becomes one of ours that tells its type and nothing
else, and nothing it warns of is shown. What it writes to a log or to the terminal by itself is
beyond our reach; `docs/sources.md` says what is known of that, and which queries never raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from dpkde.errors import SourceError
from dpkde.privacy.secrecy import no_warnings

Item = TypeVar("Item")
Result = TypeVar("Result")

STOPPED = (
    "{} stopped with an error of its own ({}), which is not shown, since such errors may quote a "
    "cell: run it without dpkde to see it, and mend the table or convert what is no number to "
    "nulls"
)


def of_library(what: str, action: Callable[[], Result]) -> Result:
    """Return what a library's code returns; where it fails, raise with our words, not its own."""

    def quietly() -> Result:
        with no_warnings():
            return action()

    return of_caller(what, quietly)


def of_caller(what: str, action: Callable[[], Result]) -> Result:
    """Return the same of code that the caller wrote: what it warns of is the caller's own."""
    fault: BaseException
    try:
        return action()
    except (KeyboardInterrupt, SystemExit, GeneratorExit) as error:
        fault = type(error)()
    except BaseException as error:  # some libraries' panics are no `Exception`
        fault = SourceError(STOPPED.format(what, type(error).__name__))
    raise fault


def stream(
    what: str, items: Iterable[Item], guard: Callable[[str, Callable[[], Any]], Any] = of_library
) -> Iterator[Item]:
    """Yield the items of others' code, guarded from beginning to end."""
    iterator = guard(what, lambda: iter(items))
    end = object()
    while (item := guard(what, lambda: next(iterator, end))) is not end:
        yield item
