"""What must not be seen of private values: in what is raised, and in what the caller's code does.

`sealed` goes around every public function that holds exact numbers. What leaves such a function by
an exception is its message, its type and the lines it passed; no frame that can be reached from it
holds a local variable, and no other exception hangs on to it. So a program that logs its errors
with all variables logs nothing of the data.

`unseen` runs a function of the caller (an f, a kernel, a cell's own methods) on a private value.
"""

from __future__ import annotations

import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_ONE_AT_A_TIME = threading.RLock()


def sealed(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return the function, with nothing but public words in what it raises.

    Guarantee
    ---------
    In the traceback of an exception that leaves the function, and of its causes and contexts, no
    frame at or below the function still has local variables, but for the one that raises here: it
    holds the exception and the function.
    """

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        handled = sys.exception()  # of the caller's, if we are called in its handler
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            fault = _emptied(error, handled)
        del args, kwargs, handled
        raise fault

    return call


def _emptied(error: BaseException, handled: BaseException | None) -> BaseException:
    """Return the exception alone; the frames it passed keep their lines and lose their variables.

    Frames are emptied in all exceptions that it came from, before those are let go: somebody may
    still hold them. What the caller was handling when it called us is the caller's.
    """
    waiting, seen = [error], {id(handled)}
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        waiting += [other for other in (one.__cause__, one.__context__) if other is not None]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
        traceback.clear_frames(one.__traceback__)  # running ones, our caller's, are left alone
        if one is not error:
            one.__traceback__ = None
    error.__cause__ = error.__context__ = None
    return error


def unseen(function: Callable[..., Result], *arguments: Any) -> Result | None:
    """Return what a function of the caller makes of a private value; None where it raises.

    Not even a KeyboardInterrupt passes: Ctrl-C goes to the main thread, and records are read in
    others (`dpkde.numerics.pool`). In the main thread it cannot be told from one that the function
    raised itself, and goes on without its text.
    """
    interrupted = False
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        interrupted = threading.current_thread() is threading.main_thread()
    except BaseException:  # noqa: S110 - a private value must not be seen to fail
        pass
    if interrupted:
        raise KeyboardInterrupt
    return None


@contextmanager
def no_warnings() -> Iterator[None]:
    """Keep warnings from being shown: they may quote a private value.

    Filters of warnings belong to the process, so one thread at a time; a function of the caller
    holds the interpreter anyway.
    """
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
