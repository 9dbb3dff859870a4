"""Progress bars, on a terminal only: logs and tests stay clean."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def tracked(items: Iterable[Item], label: str) -> Iterator[Item]:
    """Yield the items, with a bar where someone is looking."""
    listed = list(items)
    if not sys.stderr.isatty():
        yield from listed
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(listed, description=label, console=Console(stderr=True), transient=True)
