"""The ``dpkde`` command's door."""

from __future__ import annotations

import os
import sys
from typing import Any

from dpkde.cli.exits import DONE, INTERRUPTED, fail


def run(arguments: list[str] | None = None) -> Any:
    """Run the command; what the parser has to say comes as one line, too."""
    typed = sys.argv[1:] if arguments is None else arguments
    try:
        from dpkde.cli.app import app
    except ImportError:
        fail("the command line needs more packages: pip install typer rich pyarrow narwhals")
    except KeyboardInterrupt:
        fail("interrupted; nothing was written", INTERRUPTED)
    try:
        code = app(typed or ["--help"], prog_name="dpkde", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return _enough()
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            return _enough()
        raise
    except Exception as error:
        told = getattr(error, "format_message", None)
        if told is None and type(error).__name__ == "Abort":
            fail("interrupted; nothing was written", INTERRUPTED)
        if told is None:
            raise
        fail(f"{told().rstrip('.')}; see dpkde --help")
    return code if isinstance(code, int) else DONE


def _enough() -> int:
    """Whoever reads our output has enough of it: keep Python from complaining at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return DONE
