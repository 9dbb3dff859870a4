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
        ProgressColumn,
        Task,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """How much is done in a second; `TaskProgressColumn` shows it only without a total."""

        def render(self, task: Task) -> Text:
            return Text(rate(task.finished_speed or task.speed))

    with Progress(
        TextColumn(label),
        BarColumn(),
        TaskProgressColumn(),
        Rate(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as shown_bar:
        task = shown_bar.add_task(label, total=None)
        yield lambda done, total: shown_bar.update(task, completed=done, total=total)


def rate(speed: float | None) -> str:
    """Return how many rows, bytes or queries a second, in few characters.

    >>> rate(None), rate(12), rate(3_456), rate(78_900_000), rate(2e12)
    ('', '12/s', '3.5k/s', '78.9M/s', '2000.0G/s')
    """
    if speed is None:
        return ""
    for letter, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if speed >= size:
            return f"{speed / size:.1f}{letter}/s"
    return f"{speed:.0f}/s"


@contextmanager
def watched(source: Source, label: str, shown: bool = True) -> Iterator[Source]:
    """Yield a source whose reading moves a bar."""
    with bar(label, shown) as report:
        if report is None:
            yield source
            return
        from dpkde.tables.source import reported

        yield reported(source, report)
