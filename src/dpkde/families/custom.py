"""Families of one's own: write f, g and the bounds of f; the rest is done here.

`CustomFamily` rounds f to integers, **enforces** the declared bounds on every record (one that
breaks them contributes nothing), computes one record at a time (so that no batch can change a bit),
and keeps whatever f does with a private value from being seen (`privacy.secrecy`). So a wrong f
spoils the answers, not the guarantee, as long as f is a function of its arguments alone: what it
remembers from one record to the next, or writes anywhere, nobody can take back. It runs at the
speed of the Python in f: a family that proves useful gets compiled loops and a module of its own.

``docs/extend.md`` has an example; `dpkde.testing.FamilyContract` checks a family.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import FormatError, ParameterError
from dpkde.families.base import (
    Family,
    Layout,
    Outlook,
    Pair,
    Prediction,
    Table,
    Tensors,
    no_repetitions,
)
from dpkde.kernels import Points
from dpkde.privacy.amounts import Bounds
from dpkde.privacy.laws.weights import Weights
from dpkde.privacy.secrecy import no_warnings, unseen
from dpkde.space.domain import Mask
from dpkde.space.frame import Frame

Floats = NDArray[np.float64]
Drawn = dict[str, NDArray[Any]]

_SAMPLE = 64
_RECORD_NANOSECONDS = 2e4


class Limits(NamedTuple):
    """How large f can be, for any record: its length, and bounds on three norms.

    L2 and L∞ may be left out: they are at most the L1 norm.
    """

    cells: int
    l1: float
    l2: float | None = None
    linf: float | None = None


class CustomFamily(Family):
    """A family given by f, g and the limits of f. Subclass it as a frozen dataclass.

    Set `name` and `version`, and write `limits`, `f` and `g`; `randomness` too, where the family
    has any. Parameters are the fields of the dataclass; they go into the release.
    """

    lattice_bits: ClassVar[tuple[int, int]] = (8, 24)
    relative_error: float | None = None
    """A typical error of f·g in a KDE value, as a part of it. None: not known; predictions then
    leave it out, and `Release.sampling_error` is NaN."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.is_random = cls.randomness is not CustomFamily.randomness

    @abstractmethod
    def limits(self, frame: Frame) -> Limits:
        """Return the length of f(x), and bounds on its norms for every record."""

    @abstractmethod
    def f(self, x: Floats, drawn: Drawn) -> Floats:
        """Return f(x), shape (cells,), of one record in bandwidth units. It is private: be pure."""

    @abstractmethod
    def g(self, y: Floats, drawn: Drawn) -> Floats:
        """Return g(y), shape (cells,), of one query in bandwidth units."""

    def randomness(self, frame: Frame, generator: np.random.Generator) -> Drawn:
        """Return what is drawn at random, in public: arrays that go into the release."""
        return {}

    @classmethod
    def obstacle(cls, frame: Frame) -> str | None:
        """Return why the family cannot serve a kernel and domain; by default it can."""
        return None

    def layout(self, frame: Frame) -> CustomLayout:
        """Return the family in a frame: its parameters are set by the caller."""
        self.check(frame)
        return CustomLayout(self, frame)

    @property
    def proof(self) -> str:
        """The docstring of the class."""
        return type(self).__doc__ or ""


@dataclass(frozen=True, eq=False)
class CustomLayout(Layout):
    """A `CustomFamily` in a frame: its parameters are all the caller's."""

    family: CustomFamily
    frame: Frame

    def bounds(self, bits: int) -> Bounds:
        """The limits on the lattice, rounded up, with room for rounding every entry of f."""
        limits = self.family.limits(self.frame)
        norms = [norm for norm in limits[1:] if norm is not None]
        if not 1 <= limits.cells <= 1 << 26 or not all(0 < norm < 2.0**30 for norm in norms):
            raise ParameterError(
                f"{self.family.name}: limits need 1 to 2^26 cells, and norms above 0 and below 2^30"
            )
        unit, slack = 1 << bits, math.ceil(limits.cells / 2) + 1
        l1 = math.ceil(limits.l1 * unit) + slack
        l2 = l1 if limits.l2 is None else math.ceil(limits.l2 * unit) + math.isqrt(limits.cells) + 2
        linf = min(l1, l2) if limits.linf is None else math.ceil(limits.linf * unit) + 1
        return Bounds(limits.cells, l1, l2**2, linf, nonnegative=False)

    @property
    def nanoseconds(self) -> float:
        """What a record takes, roughly: f is plain Python."""
        return _RECORD_NANOSECONDS

    @cached_property
    def gain(self) -> float:
        """The root mean square of ‖g‖ at random places."""
        pair, halves = self.draw(self.family.lattice_bits[0], 0), self.frame.halves()
        places = np.random.default_rng(0).uniform(-1, 1, (_SAMPLE, self.frame.dim))
        norms = pair.norms(places * (3.0 if halves is None else halves))
        return float(np.sqrt(np.mean(norms**2)))

    @property
    def relative_error(self) -> float | None:
        """A typical error of f·g in a KDE value, as a part of it."""
        return self.family.relative_error

    def predict(self, outlook: Outlook) -> Prediction:
        """Noise by the `gain`; bias as declared."""
        bias = outlook.typical_density * (self.relative_error or 0.0)
        return outlook.prediction(self, gain=self.gain, approximation=bias)

    def draw(self, bits: int, seed: int) -> CustomPair:
        """Draw the public randomness."""
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
        return CustomPair(self, bits, self.family.randomness(self.frame, generator))

    def restore(self, bits: int, tensors: Tensors) -> CustomPair:
        """Rebuild the pair; what was drawn must have the shapes that this family draws."""
        usual = self.draw(bits, 0)
        shapes = {name: (array.shape, array.dtype) for name, array in usual.drawn.items()}
        if shapes != {name: (array.shape, array.dtype) for name, array in tensors.items()}:
            raise FormatError(
                f"the tensors of the family {self.family.name!r} in this file are damaged"
            )
        return replace(usual, drawn=dict(tensors))

    @property
    def summary(self) -> str:
        """The cells and the parameters, as in ``quadrature 32 (order 16)``."""
        words = ", ".join(f"{key} {value}" for key, value in self.family.to_json().items())
        cells = self.family.limits(self.frame).cells
        return f"{self.family.name} {cells}" + (f" ({words})" if words else "")


def fits(whole: NDArray[np.int64], bounds: Bounds) -> bool:
    """Tell whether integers below 2⁶² in size keep all the bounds, exactly."""
    low, high = int(whole.min()), int(whole.max())
    if max(high, -low) > bounds.linf or (bounds.nonnegative and low < 0):
        return False
    if bounds.cells * bounds.linf**2 < 1 << 62:  # no sum below can wrap
        total, squares = int(np.abs(whole).sum()), int((whole * whole).sum())
    else:
        sizes = np.abs(whole).tolist()
        total, squares = sum(sizes), sum(v * v for v in sizes)
    return total <= bounds.l1 and squares <= bounds.l2_squared


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that nobody can write to: its memory is that of immutable bytes."""
    plain = np.ascontiguousarray(array)
    if not plain.size:
        return np.empty(plain.shape, dtype=plain.dtype)
    return np.frombuffer(plain.tobytes(), dtype=plain.dtype).reshape(plain.shape)


@dataclass(frozen=True, eq=False)
class CustomPair(Pair):
    """f and g of a `CustomFamily`, with what was drawn."""

    layout: CustomLayout
    bits: int
    drawn: Drawn

    def __post_init__(self) -> None:
        """Freeze what was drawn: no record may reach another, or the file, through it."""
        frozen = {name: _frozen(array) for name, array in self.drawn.items()}
        object.__setattr__(self, "drawn", frozen)

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """What was drawn."""
        return dict(self.drawn)

    def quantize(self, coordinates: Points, counts: Mask) -> NDArray[np.int64]:
        """Return each record's integers."""
        rows = np.zeros((len(coordinates), self.bounds.cells), dtype=np.int64)
        with no_warnings():
            for row, x, counted in zip(rows, coordinates, counts, strict=True):
                if counted:
                    row += self._contribution(x)
        return rows

    def accumulate(self, coordinates: Points, counts: Mask, table: Table) -> None:
        """Add every record's integers to the table."""
        with no_warnings():
            for x, counted in zip(coordinates, counts, strict=True):
                if counted:
                    table += self._contribution(x)

    def _contribution(self, x: Floats) -> NDArray[np.int64]:
        """Return f(x) in integers; zeros where it fails, has another length, or is too large."""
        contribution = unseen(lambda: self._rounded(np.asarray(self._value(x.copy()))))
        return np.zeros(self.bounds.cells, dtype=np.int64) if contribution is None else contribution

    def _value(self, x: Floats) -> Floats:
        """Return what f makes of a record."""
        return self.layout.family.f(x, dict(self.drawn))

    def _rounded(self, values: NDArray[Any]) -> NDArray[np.int64] | None:
        """Return what f gave in integers; None where that is not within the bounds."""
        bounds = self.bounds
        if values.dtype.kind not in "fiub" or values.shape != (bounds.cells,):
            return None
        with np.errstate(all="ignore"):  # f may have changed what NumPy does here
            scaled = np.rint(values.astype(np.float64) * 2.0**self.bits)
            # NaN fails every comparison, so that it is refused here too.
            if not np.abs(scaled).max() <= min(bounds.linf, 1 << 62):
                return None
        whole = scaled.astype(np.int64)
        return whole if fits(whole, bounds) else None

    def _responses(self, located: Points) -> Floats:
        rows = [np.asarray(self.layout.family.g(y, self.drawn), dtype=np.float64) for y in located]
        wrong = [row.shape for row in rows if row.shape != (self.bounds.cells,)]
        if wrong:
            raise ParameterError(
                f"g of {self.layout.family.name} has shape {wrong[0]}, not ({self.bounds.cells},)"
            )
        return np.array(rows).reshape(len(rows), self.bounds.cells)

    def respond(self, queries: Points, table: NDArray[np.float64], groups: int = 1) -> Points:
        """Return ⟨table, g(y)⟩ / 2^bits."""
        no_repetitions(self.layout.family.name, groups)
        return np.asarray(self._responses(self.frame.locate(queries)) @ table / 2**self.bits)

    def own_variance(
        self, queries: Points, table: NDArray[np.float64], noise: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the square of the declared relative error, times the answer's."""
        known = self.layout.relative_error
        error = math.nan if known is None else known
        return np.asarray((error * self.respond(queries, table)) ** 2)

    def weights(self, queries: Points) -> Weights:
        """Return g(y) / 2^bits, zeros included."""
        rows = self._responses(self.frame.locate(queries))
        return Weights(rows / 2**self.bits, np.ones(self.bounds.cells))

    def norms(self, located: Points) -> Floats:
        """Return ‖g(y)‖₂ at places in bandwidth units."""
        return np.asarray(np.sqrt((self._responses(located) ** 2).sum(axis=1)))

    def response_norm(self, queries: Points) -> NDArray[np.float64]:
        """Return ‖g(y)‖₂ / 2^bits."""
        return np.asarray(self.norms(self.frame.locate(queries)) / 2**self.bits)
