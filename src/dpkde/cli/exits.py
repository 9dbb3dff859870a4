"""How a command ends: its exit code, and one clear line instead of a traceback.

====  ===========================================================================
code  meaning
====  ===========================================================================
0     done
1     a defect of dpkde; please report it
2     something is wrong with what was typed, or with a file
130   interrupted
====  ===========================================================================

A traceback is never shown: it could carry a private value in a library's message. For the same
reason an unexpected error is named by its type and place only.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import walk_tb
from typing import NoReturn

from dpkde.errors import DpkdeError

_MOVERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, line separators, changes of direction, and what no terminal can show."""

DONE, DEFECT, WRONG = 0, 1, 2


def fail(message: str, code: int = WRONG) -> NoReturn:
    """Print one line to standard error and stop."""
    print("dpkde:", *message.split(), file=sys.stderr)  # noqa: T201
    raise SystemExit(code)


def plain(line: str) -> str:
    r"""Return a line as it can be shown: a file's words must not move the cursor or look like ours.

    >>> print(plain("dpkde 1.0\x1b[2J\nThis release is private"))
    dpkde 1.0\u001b[2J\nThis release is private
    """
    return _MOVERS.sub(lambda mover: json.dumps(mover.group())[1:-1], line)


@contextmanager
def speaking_plainly(reworded: Callable[[str], str]) -> Iterator[None]:
    """End what runs inside with one line and an exit code, whatever happens in it.

    Messages of the library are `reworded` before they are shown.
    """
    try:
        yield
    except DpkdeError as error:
        fail(reworded(str(error)))
    except BrokenPipeError:
        raise  # whoever reads our output has enough of it
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        fail(f"{named}{(error.strerror or type(error).__name__).lower()}")
    except MemoryError:
        fail("not enough memory for a table of this size; use a larger bandwidth or fewer cells")
    except Exception as error:
        *_, (frame, line) = walk_tb(error.__traceback__)
        place = f"{os.path.basename(frame.f_code.co_filename)}:{line}"
        fail(f"internal error ({type(error).__name__} at {place}); please report it", DEFECT)
