"""The ``dpkde`` command's door."""

from __future__ import annotations

from typing import Any

from dpkde.cli.exits import DONE, fail


def run(arguments: list[str] | None = None) -> Any:
    """Run the command; what the parser has to say comes as one line, too."""
    try:
        from dpkde.cli.app import app
    except ImportError:
        fail("the command line needs more packages: pip install typer rich pyarrow narwhals")
    try:
        code = app(arguments, standalone_mode=False)
    except Exception as error:
        told = getattr(error, "format_message", None)
        if told is None:
            raise
        fail(f"{told().rstrip('.')}; see dpkde --help")
    return code if isinstance(code, int) else DONE
