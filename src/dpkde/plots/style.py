"""How pictures look: sizes, colours, names as text, and the files they are written to.

Two sizes are kept in mind, a column of print (3.3 inches wide) and a page (7 inches). Maps rise
evenly from dark to light, so that they are read in grey and by the colour-blind; lines of several
families differ in their dashes and marks, too.
"""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dpkde.errors import ParameterError
from dpkde.numerics.numbers import is_real
from dpkde.release.container import check_not_ours
from dpkde.space.moments import DATE, DAY, NUMBER, ColumnType

ENDINGS = (".png", ".svg", ".pdf")
DPI = 200
"""Of a PNG that is written; pictures in notebooks have less."""
WIDTHS = (1.5, 40.0)
_USUAL = 7.0
PAGE_WIDTH = 5.0
"""From here on remarks are in one line."""
_LONGEST = 40
"""Most letters of a column's name in a picture."""

MAP = "viridis"
"""Of densities: lightness rises evenly."""
LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's colours, which the colour-blind tell apart."""
DARK_LINES = ("#56b4e9", "#e69f00", "#3dc89b", "#cc79a7", "#f0e442", "#4a97d2", "#ffffff")
DASHES = ("solid", "dashed", "dashdot", "dotted")
MARKS = ("o", "s", "^", "D", "v", "P", "X")

PAGE, INK = "#ffffff", "#222222"
DARK_PAGE, DARK_INK = "#14181d", "#dde3ea"


_ALONE = threading.RLock()


@dataclass(frozen=True)
class Style:
    """What a picture is drawn for: so many inches wide, on a light or a dark page."""

    width: float = _USUAL
    dark: bool = False

    @classmethod
    def of(cls, width: Any, dark: Any) -> Style:
        """Return the style that a caller means."""
        if width is None:
            width = _USUAL
        least, most = WIDTHS
        if not is_real(width) or not least <= width <= most:
            raise ParameterError(
                f"width must be from {least:g} to {most:g} inches, such as 3.3 for a column of "
                f"print and 7 for a page, got {width!r}"
            )
        if not isinstance(dark, (bool, np.bool_)):
            raise ParameterError(f"dark must be True or False, got {dark!r}")
        return cls(float(width), bool(dark))

    @property
    def page(self) -> str:
        """The colour of the page."""
        return DARK_PAGE if self.dark else PAGE

    @property
    def ink(self) -> str:
        """The colour of text and axes."""
        return DARK_INK if self.dark else INK

    @property
    def lines(self) -> tuple[str, ...]:
        """Colours of lines."""
        return DARK_LINES if self.dark else LINES

    @property
    def text(self) -> float:
        """The size of text, in points: 7.5 on a column of print, 10 on a page."""
        return float(np.clip(5.3 + 0.67 * self.width, 6.5, 11.0))

    @property
    def settings(self) -> dict[str, Any]:
        """The same in matplotlib's words."""
        return {
            "font.size": self.text,
            "axes.labelsize": self.text,
            "axes.titlesize": 1.1 * self.text,
            "xtick.labelsize": 0.9 * self.text,
            "ytick.labelsize": 0.9 * self.text,
            "legend.fontsize": 0.9 * self.text,
            "figure.facecolor": self.page,
            "savefig.facecolor": "auto",
            "savefig.edgecolor": "auto",
            "axes.facecolor": self.page,
            "axes.edgecolor": self.ink,
            "axes.labelcolor": self.ink,
            "axes.titlecolor": self.ink,
            "axes.linewidth": 0.6,
            "axes.grid": False,
            "axes.formatter.use_mathtext": False,
            "axes.formatter.useoffset": True,
            "text.color": self.ink,
            "text.usetex": False,
            "xtick.color": self.ink,
            "ytick.color": self.ink,
            "xtick.major.width": 0.6,
            "ytick.major.width": 0.6,
            "legend.frameon": False,
            "legend.facecolor": self.page,
            "legend.edgecolor": self.ink,
            "hatch.linewidth": 0.5,
            "image.interpolation": "antialiased",
            "image.origin": "lower",
            "lines.linewidth": 1.2,
            "date.converter": "auto",
        }

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Draw by this style inside; the reader's own settings are as before at the end."""
        with set_aside(self.settings):
            yield


@contextmanager
def set_aside(settings: Mapping[str, Any]) -> Iterator[None]:
    """Have these settings of matplotlib inside, in one thread at a time.

    They belong to the whole process: threads that changed them at once would put back those of one
    another in place of the reader's.
    """
    import matplotlib as mpl

    with _ALONE, mpl.rc_context(dict(settings)):
        yield


def check_matplotlib() -> None:
    """Say in a line what is missing, where pictures cannot be drawn."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ParameterError("a picture needs matplotlib: pip install 'dpkde[plot]'") from None


def check_picture(path: str | PathLike[str]) -> Path:
    """Return where a picture is to be written; refuse it before anything else is done."""
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise ParameterError(f"a picture ends in {', '.join(ENDINGS)}, got {str(path)!r}")
    check_matplotlib()
    if target.is_dir():
        raise ParameterError(f"{target} is a folder; name a file to write")
    check_not_ours(target)
    return target


def named(name: str, most: int = _LONGEST) -> str:
    r"""Return the name of a column as a picture shows it: in one line, not too long.

    >>> named("speed\n(km/h)"), named("x" * 100, 8)
    ('speed�(km/h)', 'xxxxxxx…')
    """
    shown = "".join(letter if letter.isprintable() else "�" for letter in name)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def fitted(text: str, points: float, size: float) -> str:
    r"""Return text in lines that fit into so many points, where letters are of this size.

    Lines are about as long as each other: no word is left alone at the end.

    >>> fitted("share per unit of lon × lat", 110, 8)
    'share per unit\nof lon × lat'
    """
    letters = _letters(points, size)
    if len(text) <= letters:
        return text
    lines = textwrap.wrap(text, letters)
    while letters > 8 and len(narrower := textwrap.wrap(text, letters - 1)) == len(lines):
        letters, lines = letters - 1, narrower
    return "\n".join(lines)


def _letters(points: float, size: float) -> int:
    """Return how many letters of this size fit into so many points."""
    return max(int(points / (0.52 * size)), 8)


def joined(remarks: list[str], letters: int) -> list[str]:
    """Return lines of as many remarks as fit into so many letters, one at least.

    >>> joined(["hatched: noise", "band: 95%", "dashed: June"], 30)
    ['hatched: noise; band: 95%', 'dashed: June']
    """
    lines: list[str] = []
    for remark in remarks:
        if lines and len(lines[-1]) + 2 + len(remark) <= letters:
            lines[-1] += f"; {remark}"
        else:
            lines.append(remark)
    return lines


def name_sides(ax: Any, across: str, up: str) -> None:
    """Give axes their names, in as many lines as they need; keep what is at their ends apart."""
    box, figure = ax.get_position(), ax.figure
    size = float(ax.xaxis.label.get_size())
    room = 72 * box.width * figure.get_figwidth(), 72 * box.height * figure.get_figheight()
    ax.set_xlabel(fitted(across, room[0], size), parse_math=False)
    ax.set_ylabel(fitted(up, room[1], size), parse_math=False)
    offset = ax.yaxis.get_offset_text()  # remarks begin where it ended
    offset.set_horizontalalignment("right")
    offset.set_x(-5 / room[0])


def moments(values: Any, kind: ColumnType) -> Any:
    """Return values of a column as matplotlib counts them: dates and instants in its days."""
    if kind is NUMBER:
        return values
    from matplotlib.dates import date2num

    days = np.asarray(values) / (1 if kind is DATE else DAY)
    return days + float(date2num(np.datetime64(0, "D")))


def tell_dates(axis: Any, kind: ColumnType) -> None:
    """Make an axis of dates or instants show them as such."""
    if kind is NUMBER:
        return
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=7)
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator))


def in_percent(share: float | None) -> str:
    """Return a share in per cent, in the digits that it was given in.

    >>> in_percent(0.95), in_percent(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * (share or 0.0):.6g}%"


def add_remarks(ax: Any, remarks: list[str], title: str | None, style: Style) -> None:
    """Put remarks above axes, small, in a line each where it is narrow; and the title above."""
    size = 0.85 * style.text
    room = 72 * ax.get_position().width * ax.figure.get_figwidth()
    lines = remarks if style.width < PAGE_WIDTH else joined(remarks, _letters(room, size))
    if lines:
        ax.annotate(
            "\n".join(lines),
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 3),
            textcoords="offset points",
            fontsize=size,
            va="bottom",
            parse_math=False,
            annotation_clip=False,
        )
    if title is not None:
        ax.set_title(title, pad=4 + 1.35 * size * len(lines), parse_math=False)
