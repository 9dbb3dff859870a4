"""Random Fourier features (LSQ-RFF): any positive definite shift-invariant kernel, any dimension.

For frequencies ω₁ … ω_D from the kernel's spectrum,

    k(x, y) = E cos ω·(x − y) ≈ (1/D) Σ_j (cos ω_j·x cos ω_j·y + sin ω_j·x sin ω_j·y).

The form ``"pairs"`` keeps the cosine and the sine of each frequency. The form ``"phase"`` is the
paper's: one feature √2 cos(ω·x + β) a frequency, with a random β. Phases are exact integers (see
`phases`), so a record's contribution is the same in every batch, order, thread and machine. The
proof is in ``proof.md``.

Cost: O(D·d) a record and a query; the release holds D·d 32-bit frequencies and D or 2D cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpkde.assisted import translation
from dpkde.assisted.folds import FEWEST
from dpkde.errors import FormatError, ParameterError
from dpkde.families.base import (
    Family,
    Layout,
    Outlook,
    Pair,
    Prediction,
    Table,
    Tensors,
    Terms,
    Worst,
    check_whole,
    grouped,
    spread_of_repetitions,
)
from dpkde.families.comparison import Comparison, Kind
from dpkde.families.fourier import reweighted, spectrum
from dpkde.families.reading import Asked, Reading, rows_of
from dpkde.kernels import Points
from dpkde.privacy.amounts import Bounds
from dpkde.privacy.laws.weights import Weights
from dpkde.space.domain import Mask
from dpkde.space.frame import Frame

Form = Literal["pairs", "phase"]

MOST_CHOSEN = 1 << 14
"""Most frequencies chosen without being asked: curator time and file size grow with them."""
_STEP_BITS = 14
_LEAST_STEP_BITS, _MOST_STEP_BITS = 6, 20
_LIMIT = 1 << 30
_UNEXPLAINED, _MISSED, _FITTED = 0.05, 0.01, 0.5
"""What a model leaves of q and misses of the density, where it fits; and what of the noise comes
back with its own parameters. About that on word vectors and on clouds of many kinds."""
_SLACK = 310
"""What the check in `phases.turn` lets a pair be longer than 2^bits, for 22 bits; see the proof."""


@dataclass(frozen=True)
class Fourier(Family):
    """Random Fourier features.

    Parameters
    ----------
    frequencies
        Number of frequencies D. None: chosen from the noisy count, ε and `typical_density`.
    form
        ``"pairs"`` (cosine and sine of each frequency) or ``"phase"`` (the paper's single
        feature).
    step_bits
        Coordinates are rounded to 2^−step_bits bandwidths. None: from the bounds.

    Examples
    --------
    >>> Fourier(frequencies=1024)
    Fourier(frequencies=1024, form='pairs', step_bits=None)
    """

    frequencies: int | None = None
    form: Form = "pairs"
    step_bits: int | None = None

    name: ClassVar[str] = "fourier"
    lattice_bits: ClassVar[tuple[int, int]] = (15, 22)

    def __post_init__(self) -> None:
        check_whole(self, "frequencies", 1, 1 << 24, "2^24")
        check_whole(self, "step_bits", _LEAST_STEP_BITS, _MOST_STEP_BITS)
        if self.form not in ("pairs", "phase"):
            raise ParameterError(f"form must be 'pairs' or 'phase', got {self.form!r}")

    @classmethod
    def obstacle(cls, frame: Frame) -> str | None:
        """Every kernel with a spectrum, in any domain that is not wider than 2^24 bandwidths."""
        if not frame.kernel.is_shift_invariant:
            return f"the {frame.kernel.name} kernel has no spectrum to draw frequencies from"
        if frame.dim > spectrum.MOST_COLUMNS:
            return f"{frame.dim} columns are more than the {spectrum.MOST_COLUMNS} that it takes"
        try:
            step_bits_for(frame.reach())
        except ParameterError as error:
            return str(error)
        return None

    @classmethod
    def terms(cls, frame: Frame) -> Terms:
        """The same for every kernel with a spectrum."""
        return Terms("D·d", "none", "Δ₁ = √2·D, Δ₂ = √D, Δ∞ = 1")

    def layout(self, frame: Frame) -> FourierLayout:
        """Return the features, their number being given."""
        if self.frequencies is None:
            raise ParameterError("the number of frequencies is needed here")
        self.check(frame)
        step_bits = step_bits_for(frame.reach()) if self.step_bits is None else self.step_bits
        family = replace(self, step_bits=step_bits)
        return FourierLayout(family, frame, self.frequencies, step_bits)

    def layouts(self, frame: Frame) -> list[FourierLayout]:
        """Return numbers of frequencies, a quarter of an octave apart.

        Pure ε: the noise grows with D, the sampling error falls; best is D ≈ εn√(3q/8) for
        pairs. Gaussian noise does not grow with D: then more is better, up to the point of little
        return or `MOST_CHOSEN`.
        """
        if self.frequencies is not None:
            return [self.layout(frame)]
        powers = range(4, 4 * MOST_CHOSEN.bit_length() - 3)
        counts = (round(2 ** (power / 4)) for power in powers)
        most = spectrum.MOST_NUMBERS_CHOSEN // frame.dim
        return [replace(self, frequencies=d).layout(frame) for d in counts if d <= most]


@dataclass(frozen=True, eq=False)
class FourierLayout(Layout):
    """D frequencies, and how finely coordinates are rounded.

    `is_weighted`: they were drawn for another kernel, and count with weights; see `reweighted`.
    """

    family: Fourier
    frame: Frame
    frequencies: int
    step_bits: int
    is_weighted: bool = False

    def bounds(self, bits: int) -> Bounds:
        """2D cells for pairs, D for the phase form.

        A pair lies in a disc of radius 2^bits plus the slack; see ``proof.md``.
        """
        count, radius = self.frequencies, (1 << bits) + -(-(_SLACK << bits) >> 22)
        if self.family.form == "phase":
            return Bounds(count, count * radius, count * radius**2, radius, nonnegative=False)
        return Bounds(
            cells=2 * count,
            l1=count * (math.isqrt(2 * radius**2) + 1),
            l2_squared=count * radius**2,
            linf=radius,
            nonnegative=False,
        )

    def worst(self, bits: int) -> Worst | None:
        """A record far from the query is worst: ½ + ½k(2Δ) − k(Δ)² ≤ 9/16 where the kernel fades.

        Coordinates are rounded to a step, so that x − y moves by a step at most. None where records
        may be moved from beyond the reach of the steps, and for weights, which have no bound.
        """
        d, frame, reach = self.frequencies, self.frame, self.frame.reach()
        if self.is_weighted or reach is None or reach * 2.0**self.step_bits > _LIMIT:
            return None
        bias = frame.kernel.modulus(frame.dim, 2.0**-self.step_bits) + 4 * 2.0**-bits + 1e-6
        variance = 9 / 16 if frame.kernel.fades else 1.0
        if self.family.form == "phase":
            return Worst(bias, (variance + 0.5) / d, 3 / d, 2 / d**0.5 / 2**bits, 2 / d / 2**bits)
        return Worst(bias, variance / d, 2 / d, 1 / d**0.5 / 2**bits, 1 / d / 2**bits)

    @property
    def nanoseconds(self) -> float:
        """What a record takes, roughly."""
        return self.frequencies * (0.8 + 0.12 * self.frame.dim)

    def predict(self, outlook: Outlook) -> Prediction:
        """Noise from the best law; sampling √(q(1 − q)²/2D), or √2 of that in the phase form.

        q is the mean kernel value over pairs of records, for which `typical_density` stands. If a
        model fits, it explains most of q, drops about half of the noise, and is off by a part of
        the density itself.
        """
        d, form, density = self.frequencies, self.family.form, outlook.typical_density
        # What frequencies say of dense data is more alike: all the same where k = 1 for all pairs.
        spread = density * (1 - density) ** 2 / (2 * d if form == "pairs" else d)
        plain = outlook.prediction(
            self,
            gain=_norm_factor(form) / math.sqrt(d),
            approximation=math.sqrt(spread),
        )
        if not self.can_be_modelled:
            return plain
        left = math.hypot(plain.noise, math.sqrt(_UNEXPLAINED) * plain.approximation)
        gain = math.hypot(plain.noise, plain.approximation) / max(left, 1e-300)
        kept = left * max(translation.remains(translation.limit(gain)), _FITTED)
        return replace(plain, assisted=math.hypot(kept, _MISSED * density))

    @property
    def can_be_modelled(self) -> bool:
        """Whether a model is fitted to such tables: pairs, of a kernel that can be blurred."""
        if self.family.form != "pairs" or self.frequencies < FEWEST or self.is_weighted:
            return False
        return self.frame.kernel.blur(self.frame.dim) is not None

    def draw(self, bits: int, seed: int) -> FourierPair:
        """Draw D frequencies; the first ones of a seed are the same whatever D is."""
        d, kernel, form = self.frequencies, self.frame.kernel, self.family.form
        frequencies, phase = spectrum.draw(kernel, self.frame.dim, d, self.step_bits, seed)
        offsets = phase if form == "phase" else np.zeros(d, dtype=np.int32)
        return FourierPair(self, bits, frequencies, offsets)

    def restore(self, bits: int, tensors: Tensors) -> FourierPair:
        """Rebuild the pair from ``frequencies`` and, in the phase form, ``offsets``."""
        d, form = self.frequencies, self.family.form
        expected: dict[str, tuple[int, ...]] = {"frequencies": (d, self.frame.dim)}
        if form == "phase":
            expected["offsets"] = (d,)
        for key, shape in expected.items():
            if key not in tensors or tensors[key].shape != shape or tensors[key].dtype != np.int32:
                raise FormatError(
                    f"the tensor {key!r} of this file is missing or has a wrong shape"
                )
        if set(tensors) != set(expected):
            raise FormatError("this file holds tensors that the fourier family does not have")
        offsets = tensors.get("offsets", np.zeros(d, dtype=np.int32))
        return FourierPair(self, bits, tensors["frequencies"], offsets)

    @property
    def summary(self) -> str:
        """D and the form, as in ``fourier 1024 (pairs)``."""
        weighted = ", weighted" * self.is_weighted
        return f"fourier {self.frequencies} ({self.family.form}{weighted})"


@dataclass(frozen=True, eq=False)
class FourierPair(Pair):
    """D drawn frequencies. `offsets` are the paper's β in units of 2⁻³² turns, zero for pairs."""

    layout: FourierLayout
    bits: int
    frequencies: NDArray[np.int32]
    offsets: NDArray[np.int32]

    @property
    def count(self) -> int:
        """D, the number of frequencies."""
        return len(self.frequencies)

    @property
    def form(self) -> Form:
        """Pairs, or the phase form."""
        return self.layout.family.form

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The integer frequencies, and the offsets where the form has them."""
        tensors: dict[str, NDArray[Any]] = {"frequencies": self.frequencies}
        return tensors | {"offsets": self.offsets} if self.form == "phase" else tensors

    @cached_property
    def _steps_per_unit(self) -> float:
        return 2.0**self.layout.step_bits

    def quantize(self, coordinates: Points, counts: Mask) -> NDArray[np.int64]:
        """Return each record's integers: the slow twin of `accumulate`, in NumPy."""
        cosines, sines = turn_twin(self._phases(coordinates), self.bits)
        parts = [cosines, sines] if self.form == "pairs" else [cosines]
        return np.concatenate(parts, axis=1) * counts[:, np.newaxis].astype(np.int64)

    def _phases(self, coordinates: Points) -> NDArray[np.int64]:
        with np.errstate(all="ignore"):
            steps = np.rint(coordinates * self._steps_per_unit)
            steps = np.where(steps > -_LIMIT, np.minimum(steps, _LIMIT), -_LIMIT)
        return steps.astype(np.int64) @ self.frequencies.astype(np.int64).T + self.offsets

    def accumulate(self, coordinates: Points, counts: Mask, table: Table) -> None:
        """Add every record's cosines and sines to the table."""
        from dpkde.families.fourier import phases

        steps, masks = self._steps(coordinates, counts)
        tiles, offsets = self._all_tiles
        sums = np.zeros((2, offsets.size), dtype=np.int64)
        phases.accumulate(
            steps, masks, tiles, offsets, self.bits - phases.CHECK_BITS, sums[0], sums[1]
        )
        features = sums[: 2 if self.form == "pairs" else 1, : self.count]
        table += features.reshape(-1)

    def respond(self, queries: Points, table: NDArray[np.float64], groups: int = 1) -> Points:
        """Return the mean over frequencies, or the median of the means of groups of them."""
        parts = grouped(self.count, groups, "frequencies")
        means = [self._means(queries, table, part)[:, 0] for part in parts]
        return means[0] if groups == 1 else np.median(means, axis=0)

    def own_variance(
        self, queries: Points, table: NDArray[np.float64], noise: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the variance of the mean over frequencies beyond the noise; NaN for one."""
        mean, square = self.means(queries, table).T
        return spread_of_repetitions(mean, square, self.count, noise)

    @property
    def unit(self) -> float:
        """What one is in `frequencies`, in radians per bandwidth."""
        return 2 * math.pi * 2.0**-32 * self._steps_per_unit

    def means(self, queries: Points, table: NDArray[np.float64]) -> Points:
        """Return the mean of what frequencies say to each query, and the mean of its square."""
        return self._means(queries, table, slice(0, self.count))

    def _means(self, queries: Points, table: NDArray[np.float64], part: slice) -> Points:
        """Return the same for some frequencies."""
        from dpkde.families.fourier import phases

        whole = part == slice(0, self.count)
        tiles, offsets = self._all_tiles if whole else self._tiles(part)
        weights = table.reshape(-1, self.count)[:, part]
        padded = np.zeros((2, offsets.size))
        padded[: len(weights), : weights.shape[1]] = weights
        padded *= _norm_factor(self.form) ** 2 / 2**self.bits
        located = self.frame.locate(queries)
        steps, _ = self._steps(located, np.ones(len(queries), dtype=np.bool_))
        sums = np.zeros((len(steps), 2))
        phases.respond(steps, tiles, offsets, padded[0], padded[1], sums)
        beyond = ~(np.abs(located) <= _LIMIT / self._steps_per_unit).all(1)
        sums[: len(queries)][beyond] = math.nan
        return np.asarray(sums[: len(queries)] / (part.stop - part.start))

    @property
    def draws(self) -> int:
        """D, the number of frequencies."""
        return self.count

    def comparison(self, other: Pair, kind: Kind) -> Comparison | None:
        """Return the form over the frequencies that both tables have; see `products`."""
        from dpkde.families.fourier import products

        return products.form(self, other, kind) if isinstance(other, FourierPair) else None

    def weights(self, queries: Points) -> Weights:
        """Return cosines and sines over D, or twice the cosines in the phase form."""
        turned = turn_twin(self._phases(self.frame.locate(queries)), 22)
        features = np.concatenate(turned if self.form == "pairs" else turned[:1], axis=1)
        scale = _norm_factor(self.form) ** 2 / self.count / 2.0 ** (22 + self.bits)
        return Weights(features * scale, np.ones(features.shape[1]))

    def read(self, asked: Sequence[Asked]) -> Reading:
        """Return waves integrated over boxes, places among their sides if the kernel is a product.

        Infinite ends are cut beyond the bounds; without bounds they are refused.
        """
        from dpkde.families.fourier import intervals

        frame = self.frame
        halves, reach = frame.halves(), intervals.reach_of(frame)
        sides = [
            entry.of(intervals.WaveAxis(None if halves is None else float(halves[k]), reach))
            for k, entry in enumerate(asked)
        ]
        count = rows_of(asked)
        centers, lengths = (
            np.column_stack([np.broadcast_to(side[i], count) for side in sides]) for i in (0, 1)
        )
        over = int((lengths[:1] >= 0).sum())
        if over == frame.dim:
            integral = frame.kernel.integral(frame.dim) / frame.kernel.bandwidth.determinant(
                frame.dim
            )
        else:
            integral = frame.kernel.shape.integral(over) if over else 1.0
        return intervals.Waves(self, centers, lengths, integral)

    def response_norm(self, queries: Points) -> NDArray[np.float64]:
        """Return 1/√D for pairs; 2‖cos(ω·y + β)‖₂/D for the phase form."""
        if self.form == "pairs":
            return np.full(len(queries), 1 / math.sqrt(self.count) / 2**self.bits)
        cosines = turn_twin(self._phases(self.frame.locate(queries)), 22)[0] / 2.0**22
        return np.asarray(np.sqrt((cosines**2).sum(axis=1)) * (2 / self.count / 2**self.bits))

    def strain(self, frame: Frame) -> float:
        """Return how many frequencies weights for another kernel leave, against how many must."""
        return reweighted.strain(self.layout, frame)

    def reread(self, frame: Frame) -> Pair:
        """Return the same frequencies, with weights for another kernel."""
        return reweighted.reread(self, frame)

    def _steps(
        self, coordinates: Points, counts: Mask
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        from dpkde.families.fourier import phases

        n, dim = coordinates.shape
        rows = max(-(-n // phases.ROWS), 1) * phases.ROWS
        steps = np.empty((rows, -(-dim // phases.AXES) * phases.AXES), dtype=np.int32)
        masks = np.empty(rows, dtype=np.int32)
        phases.round_steps(
            np.ascontiguousarray(coordinates), counts, self._steps_per_unit, _LIMIT, steps, masks
        )
        return steps, masks

    @cached_property
    def _all_tiles(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return self._tiles(slice(None))

    def _tiles(self, part: slice) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return frequencies as (n_tiles, axes, TILE) and offsets as (n_tiles, TILE), padded."""
        from dpkde.families.fourier import phases

        chosen, offsets = self.frequencies[part], self.offsets[part]
        count, dim = chosen.shape
        tiles = -(-count // phases.TILE)
        padded = np.zeros(
            (tiles * phases.TILE, -(-dim // phases.AXES) * phases.AXES), dtype=np.int32
        )
        padded[:count, :dim] = chosen
        shaped = padded.reshape(tiles, phases.TILE, -1).transpose(0, 2, 1)
        starts = np.zeros(tiles * phases.TILE, dtype=np.int32)
        starts[:count] = offsets
        return np.ascontiguousarray(shaped), starts.reshape(tiles, phases.TILE)


def _norm_factor(form: Form) -> float:
    """How long g is, times √D: 1 for pairs; √2 on average for the phase form, f being cos."""
    return 1.0 if form == "pairs" else math.sqrt(2)


def step_bits_for(reach: float | None) -> int:
    """Return how fine coordinates are: 2^−bits of a bandwidth, from the public bounds.

    14 bits where 2³⁰ steps reach the bounds (65,536 bandwidths), fewer in wider domains. Without
    bounds, coordinates further out than that are clipped.
    """
    if reach is None or reach <= 0:
        return _STEP_BITS
    bits = min(_STEP_BITS, math.floor(30 - math.log2(min(reach, 2.0**60))))
    if bits < _LEAST_STEP_BITS:
        raise ParameterError(
            f"the bounds reach {reach:.3g} bandwidths from their center; random Fourier features "
            "resolve at most 2^24 of them: use a larger bandwidth or tighter bounds"
        )
    return bits


def turn_twin(phases: NDArray[np.int64], bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rounded cosine and sine of phases·2⁻³² turns: `phases.turn` in plain NumPy."""
    f32, eighth = np.float32, 1 << 29
    shifted = (phases + eighth) % (1 << 32)
    quarter, rest = shifted >> 30, (shifted & ((1 << 30) - 1)) - eighth
    z = rest.astype(f32) * f32(2 * math.pi * 2.0**-32)
    w = z * z
    inner = f32(-0.16666650772) + w * (f32(0.00833197869) + w * f32(-0.000194956359))
    sine = z + z * w * inner
    inner = f32(0.0416666456) + w * (f32(-0.00138873677) + w * f32(2.44384519e-05))
    cosine = f32(1) + w * (f32(-0.5) + w * inner)
    full = 1 << bits
    s = np.rint(sine * f32(full)).astype(np.int64)
    c = np.rint(cosine * f32(full)).astype(np.int64)
    fits = (c >> (bits - 15)) ** 2 + (s >> (bits - 15)) ** 2 <= (1 << 30) + (1 << 16)
    c, s = c * fits, s * fits
    rotated_c = np.choose(quarter, [c, -s, -c, s])
    rotated_s = np.choose(quarter, [s, c, -s, -c])
    return rotated_c, rotated_s
