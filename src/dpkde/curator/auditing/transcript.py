"""Transcripts: all that a run lets be seen, to be compared with a run on other points.

Noise hides records only if nothing else tells of them. To see whether anything does, a run is
recorded, and played again on other points with **the same noisy outputs**: whatever the exact sums
are, the noise is supplied that leads to what came out before,

    noise′ = noise + exact − exact′,

and so are seeds, keys and names. Then nothing that is public may differ: neither the release, byte
for byte, nor its size, nor what was paid for and in which order, nor warnings, messages, log lines,
errors, or anything printed. A choice that looked at the exact number of records, a warning about
clipped rows, a share of the budget that hangs on them: each makes a difference.

Since outcomes may hang on noisy outputs alone, any two tables may be compared under add-remove, not
neighbours only: an empty one with a large one, ordinary records with extreme ones. Under replace
the number of rows is public, and has to be the same.

Records of transcripts are as public as what they are of; recordings (`Recorder`) hold noisy outputs
of sums that no budget was debited for, and are secret: let go of them.
"""

from __future__ import annotations

import io
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpkde.privacy.laws import Exponential, Law, Randomness
from dpkde.release.files import Filed

Ints = NDArray[np.int64]
QUIET = ("numba", "asyncio")
"""Loggers of others that say what was compiled, and nothing of data."""


@dataclass(eq=False)
class Recorder(Randomness):
    """Randomness that remembers what came of it.

    Attributes
    ----------
    base
        Where it comes from.
    count
        What the first noisy number is to be, whatever was counted; None for what comes. So a small
        table can be published like a large one.
    """

    base: Randomness = field(default_factory=Randomness)
    count: int | None = None
    asked: list[str] = field(default_factory=list)
    outputs: list[Ints] = field(default_factory=list)
    public: list[int] = field(default_factory=list)
    choices: list[int] = field(default_factory=list)
    name: ClassVar[str] = "recorder"

    def has(self, law: type[Law]) -> bool:
        """Tell whether this law can be drawn."""
        return self.base.has(law)

    def noise(self, law: Law, size: int) -> Ints:
        """Return noise. By itself it cannot be played again: its exact sums are not known here."""
        self.asked.append(f"{law}, {size}")
        return self.base.noise(law, size)

    def added(self, sums: Ints, noise: Ints) -> Ints:
        """Return exact sums with noise, and remember what came out."""
        output = self.base.added(sums, noise)
        if self.count is not None and not self.outputs and len(sums) == 1:
            output = np.array([self.count], dtype=np.int64)
        self.outputs.append(output.copy())
        return output

    def public_bits(self, number: int) -> int:
        """Return public random bits, and remember them."""
        self.asked.append(f"{number} public bits")
        self.public.append(self.base.public_bits(number))
        return self.public[-1]

    def choice(self, law: Exponential, losses: Ints) -> int:
        """Return a choice, and remember it."""
        self.asked.append(f"{law}, one of {len(losses)}")
        self.choices.append(self.base.choice(law, losses))
        return self.choices[-1]


class Player(Recorder):
    """Randomness that returns what a recorder remembers, in that order.

    What is asked for beyond that, or in another size, is drawn anew: `asked` tells.
    """

    name: ClassVar[str] = "player"

    def __init__(self, recording: Recorder) -> None:
        super().__init__(recording.base, recording.count)
        self._outputs = iter(recording.outputs)
        self._public = iter(recording.public)
        self._choices = iter(recording.choices)

    def added(self, sums: Ints, noise: Ints) -> Ints:
        """Return the noisy output that was recorded, whatever the sums are."""
        output = super().added(sums, noise)
        recorded = next(self._outputs, output)
        return recorded.copy() if len(recorded) == len(output) else output

    def public_bits(self, number: int) -> int:
        """Return the bits that were recorded."""
        self.asked.append(f"{number} public bits")
        known = next(self._public, None)
        return self.base.public_bits(number) if known is None else known

    def choice(self, law: Exponential, losses: Ints) -> int:
        """Return the choice that was recorded."""
        own = super().choice(law, losses)
        return next(self._choices, own)


@dataclass(frozen=True)
class Transcript:
    """All that a run let be seen.

    Attributes
    ----------
    result
        What it returned: the bytes of its file where it has one, else what it prints as.
    error
        What it raised: type, message, and the lines that it passed.
    asked
        Which noise was drawn of which law, for how many numbers, in which order.
    warnings, logged
        Each with its place; of the log, from the least important lines on.
    printed, complained
        What came on the standard output and the standard error.
    files
        What it left in its folder, by name.
    """

    result: bytes = b""
    error: str = ""
    asked: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    logged: tuple[str, ...] = ()
    printed: str = ""
    complained: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)

    def differences(self, other: Transcript) -> list[str]:
        """Return in what they differ, in words that say where and nothing of what."""
        found = []
        for each in fields(self):
            one, two = getattr(self, each.name), getattr(other, each.name)
            if one != two:
                found.append(f"{each.name}: {_where(one, two)}")
        return found


def _where(one: Any, two: Any) -> str:
    """Return where two values differ first."""
    if isinstance(one, Mapping):
        if one.keys() != two.keys():
            return "not the same files"
        return "; ".join(f"{k}: {_where(one[k], two[k])}" for k in one if one[k] != two[k])
    if len(one) != len(two):
        return f"{len(one)} against {len(two)} long"
    at = next(i for i, (a, b) in enumerate(zip(one, two, strict=True)) if a != b)
    return f"at {at} of {len(one)}"


def transcribe(
    action: Callable[[], Any], randomness: Recorder, folder: Path | None = None
) -> Transcript:
    """Return the transcript of an action that draws by `randomness`, and leaves files in `folder`.

    Only an interrupt passes; every other exception is part of the transcript.
    """
    result, error = b"", ""
    out, err = io.StringIO(), io.StringIO()
    with _logged() as lines, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with redirect_stdout(out), redirect_stderr(err):
            try:
                result = _bytes_of(action())
            except KeyboardInterrupt:
                raise
            except BaseException as raised:
                error = "".join(traceback.format_exception(raised))
    told = tuple(f"{w.filename}:{w.lineno}: {w.category.__name__}: {w.message}" for w in caught)
    files = {} if folder is None else {p.name: p.read_bytes() for p in sorted(folder.iterdir())}
    asked = tuple(randomness.asked)
    return Transcript(
        result, error, asked, told, tuple(lines), out.getvalue(), err.getvalue(), files
    )


def _bytes_of(result: Any) -> bytes:
    return result.to_bytes() if isinstance(result, Filed) else repr(result).encode()


@contextmanager
def _logged() -> Iterator[list[str]]:
    """Yield the lines that are logged, of whatever level, without the time."""
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if not record.name.startswith(QUIET):
                lines.append(f"{record.name} {record.levelname} {record.getMessage()}")

    root, handler = logging.getLogger(), Kept(logging.NOTSET)
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.NOTSET)
    try:
        yield lines
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
