"""A bar with rate and remaining time, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpkde.tables import Source

Report = Callable[[int, int | None], object]


@contextmanager
def bar(label: str, shown: bool = True) -> Iterator[Report | None]:
    """Yield what takes how much is done, and of how much; None where nobody looks."""
    if not shown or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn(label),
        BarColumn(),
        TaskProgressColumn(show_speed=True),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as shown_bar:
        task = shown_bar.add_task(label, total=None)
        yield lambda done, total: shown_bar.update(task, completed=done, total=total)


@contextmanager
def watched(source: Source, label: str, shown: bool = True) -> Iterator[Source]:
    """Yield a source whose reading moves a bar."""
    with bar(label, shown) as report:
        if report is None:
            yield source
            return
        position = 0

        def read(size: int) -> None:
            nonlocal position
            if source.size is not None and position + size > source.size:
                position = 0  # a second pass
            position += size
            report(position, source.size)

        report(0, source.size)
        yield source.watched(read)
