"""The fast Gauss transform (LSQ-FGT): the Gaussian kernel in a bounded domain of few axes.

Space is cut into cells of one bandwidth. With z the center of the cell of x,

    e^{−‖x−y‖²} = Σ_r ∏_k (x_k − z_k)^{r_k} · h_{r_k}(y_k − z_k)/r_k!,   h_r Hermite functions.

The family keeps r_k = 0 … ρ−1. A record adds its powers to the block of its cell; a query takes
the blocks of the cells whose centers lie within a cutoff of it. The proof is in
``proof.md``.

**Other kernels.** The expansion is Taylor's, in x around z. It serves a kernel that is analytic at
distances below half a cell from every offset y − z, and that fades fast enough for a cutoff.
Laplacian, exponential, hat and every other kernel with a kink at zero is not analytic there. The
Cauchy kernel is, but fades like 1/t²: no cutoff leaves out little, and near cells cover the domain.
So this family serves the Gaussian, with any bandwidth; `Spline` serves every product kernel.

Cost: ρ^d additions a record; ρ^d for each near cell a query, whatever the size of the domain. The
release holds ρ^d cells for each unit cell of the domain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.base import (
    USUAL_SMOOTHNESS,
    Family,
    Layout,
    Outlook,
    Pair,
    Prediction,
    Table,
    Terms,
    Worst,
    check_whole,
    grouped,
)
from dpkde.families.brackets import Allowance
from dpkde.families.fastgauss import worst
from dpkde.families.fastgauss.expansion import hermite_functions, quality, terms
from dpkde.families.reading import Asked, Reading, Separable, rows_of
from dpkde.families.spline.family import MOST_CELLS
from dpkde.families.spline.forecast import MOST_CHOSEN
from dpkde.families.spline.grid import unbounded
from dpkde.kernels import Points
from dpkde.numerics.numbers import is_real
from dpkde.privacy.amounts import Bounds
from dpkde.privacy.laws.weights import Weights
from dpkde.space.domain import Mask
from dpkde.space.frame import Frame

Bound = Literal["refined", "product"]

MAX_ORDER = 24
_CUTOFFS = (2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0)
_ALL_CELLS = 16.0
"""A cutoff that leaves out nothing."""
_BLURRED = 2 / 3
_MANY_AXES, _NARROW = 5, 0.25
"""So many axes, of more than this half width in bandwidths, are too many for a histogram."""
MOST_AXES = 256
"""Beyond few axes there is a single term an axis left, and splines do better."""


@dataclass(frozen=True)
class FastGauss(Family):
    """The fast Gauss transform.

    Parameters
    ----------
    order
        ρ, the number of terms an axis, from 1 to 24. None: chosen from the noisy count and ε.
    cutoff
        Cells whose centers are further than this from a query, in bandwidths, are left out. None:
        √ρ as in the paper where the order is given, and chosen with the order where it is not.
    repetitions
        Copies of the table, each with noise of its own, for the paper's median
        (``kde(queries, groups=repetitions)``). One is best: the budget is divided among them.
    bound
        ``"refined"``: the L1 bound (2(1 − 2^−ρ))^d. ``"product"``: the paper's general one, the
        largest entry times the number of entries, ρ^d; for comparison.

    Examples
    --------
    >>> FastGauss(order=8)
    FastGauss(order=8, cutoff=None, repetitions=1, bound='refined')
    """

    order: int | None = None
    cutoff: float | None = None
    repetitions: int = 1
    bound: Bound = "refined"

    name: ClassVar[str] = "fastgauss"
    lattice_bits: ClassVar[tuple[int, int]] = (16, 30)
    is_biased: ClassVar[bool] = True
    is_random: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_whole(self, "order", 1, MAX_ORDER)
        check_whole(self, "repetitions", 1, 1 << 10)
        if self.repetitions is None:
            raise ParameterError("repetitions must be a whole number from 1 to 1024, got None")
        if self.cutoff is not None:
            if not is_real(self.cutoff) or not 0.5 <= self.cutoff <= 16:
                raise ParameterError(
                    f"cutoff must be a distance from 0.5 to 16 bandwidths, got {self.cutoff!r}"
                )
            object.__setattr__(self, "cutoff", float(self.cutoff))
        if self.bound not in ("refined", "product"):
            raise ParameterError(f"bound must be 'refined' or 'product', got {self.bound!r}")

    @classmethod
    def terms(cls, frame: Frame) -> Terms:
        """Of the Gaussian, the only kernel it serves."""
        return Terms("ρ^d", "0.02 at order ρ = 6, 0.004 at 8", "Δ₁ = (2 − 2^(1−ρ))^d")

    @classmethod
    def obstacle(cls, frame: Frame) -> str | None:
        """The Gaussian kernel, in a bounded domain."""
        if not frame.kernel.is_gaussian:
            return f"it expands the Gaussian kernel only, not the {frame.kernel.name} kernel"
        if frame.dim > MOST_AXES:
            return f"{frame.dim} columns are more than the {MOST_AXES} that it takes"
        return unbounded(frame)

    def layout(self, frame: Frame) -> FastGaussLayout:
        """Return the expansion, its order being given."""
        if self.order is None:
            raise ParameterError("the order of the fast Gauss transform is needed here")
        self.check(frame)
        cutoff = math.sqrt(self.order) if self.cutoff is None else self.cutoff
        return FastGaussLayout(replace(self, cutoff=cutoff), frame, self.order, cutoff)

    def layouts(self, frame: Frame) -> list[FastGaussLayout]:
        """Return every order whose table is not too large, with every cutoff."""
        if self.order is not None:
            return [self.layout(frame)]
        cutoffs = _CUTOFFS if self.cutoff is None else (self.cutoff,)
        # Of order 1 a table is a histogram: off on each axis, and in many by most of it.
        least = 1 + (sum(half > _NARROW for half in _halves(frame)) >= _MANY_AXES)
        every = [
            replace(self, order=order, cutoff=cutoff).layout(frame)
            for order in range(least, MAX_ORDER + 1)
            for cutoff in cutoffs
        ]
        fitting = [layout for layout in every if layout.log_cells <= math.log(MOST_CHOSEN) + 1e-9]
        if not fitting:
            raise ParameterError(
                f"a fast Gauss table has {least}^d cells for each unit cell of the domain, "
                f"10^{every[0].log_cells / math.log(10):.1f} here, and at most 2^22 are chosen: "
                "use another family"
            )
        return fitting


@dataclass(frozen=True, eq=False)
class FastGaussLayout(Layout):
    """The order and the cutoff, over unit cells that are centered on the domain."""

    family: FastGauss
    frame: Frame
    order: int
    cutoff: float

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many unit cells cover each axis."""
        return tuple(max(1, math.ceil(2 * half - 1e-9)) for half in _halves(self.frame))

    @cached_property
    def log_cells(self) -> float:
        """The logarithm of the table's size, which may be beyond all bounds."""
        units = sum(math.log(size) for size in self.sizes) + math.log(self.family.repetitions)
        return units + self.frame.dim * math.log(self.order)

    def bounds(self, bits: int) -> Bounds:
        """See ``proof.md``; ParameterError with what would fit, if the table does not."""
        order, dim, copies = self.order, self.frame.dim, self.family.repetitions
        most = math.log(MOST_CELLS) + 1e-9
        if self.log_cells > most:
            units = self.log_cells - dim * math.log(order)
            fits = [r for r in range(1, order) if units + dim * math.log(r) <= most]
            advice = f"order up to {max(fits)} fits" if fits else "use another family"
            raise ParameterError(
                f"this fast Gauss table would have 10^{self.log_cells / math.log(10):.1f} cells, "
                f"and at most 2^26 are made: {advice}"
            )
        full = 1 << bits
        if self.family.bound == "product":
            l1, l2_squared = order**dim * full, order**dim * full**2
        else:
            counts = terms(order, dim)[: bits + 1]
            l1 = sum(count * (full >> r) for r, count in enumerate(counts))
            l2_squared = sum(count * (full >> r) ** 2 for r, count in enumerate(counts))
        return Bounds(
            cells=math.prod(self.sizes) * copies * order**dim,
            l1=l1 * copies,
            l2_squared=l2_squared * copies,
            linf=full,
            nonnegative=order == 1,
        )

    @property
    def nanoseconds(self) -> float:
        """What a record takes, roughly."""
        return 20 + 5 * self.frame.dim + 2 * float(self.order) ** self.frame.dim

    def predict(self, outlook: Outlook) -> Prediction:
        """Noise: the best law's times ‖g‖; approximation: Taylor's rest and the cutoff's.

        Over rough data less of these averages out, up to three times as much is left; over smooth
        data more, but that all is a little blurred within cells remains: two thirds at least.
        """
        error, squared_norm = quality(self.order, self.cutoff, _halves(self.frame))
        left = max(3 ** (1 - outlook.smoothness / USUAL_SMOOTHNESS), _BLURRED)
        error = min(1.0, error * left)
        return outlook.prediction(
            self,
            gain=math.sqrt(squared_norm / self.family.repetitions),
            approximation=outlook.typical_density * error,
        )

    def worst(self, bits: int) -> Worst:
        """Return the largest error of the expansion and its largest coefficients; see `worst`."""
        copies = self.family.repetitions
        return worst.of_expansion(self.order, self.cutoff, _halves(self.frame), copies, bits)

    def draw(self, bits: int, seed: int) -> FastGaussPair:
        """Return the pair: nothing is random."""
        self.bounds(bits)  # refuses a table that does not fit
        return FastGaussPair(self, bits)

    @property
    def summary(self) -> str:
        """The unit cells and the order, as in ``fastgauss 95×40 (order 8)``."""
        shape = "×".join(str(size) for size in self.sizes if size > 1) or "1"
        copies = self.family.repetitions
        return f"fastgauss {shape} (order {self.order}{f', {copies} copies' * (copies > 1)})"


def _halves(frame: Frame) -> tuple[float, ...]:
    halves = frame.halves()
    assert halves is not None
    return tuple(halves.tolist())


@dataclass(frozen=True, eq=False)
class FastGaussPair(Pair):
    """Powers around cell centers, and Hermite functions."""

    layout: FastGaussLayout
    bits: int

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        return np.array(self.layout.sizes, dtype=np.int64)

    def quantize(self, coordinates: Points, counts: Mask) -> NDArray[np.int64]:
        """Return each record's integers: the slow twin of `accumulate`, in NumPy."""
        order, sizes = self.layout.order, self.layout.sizes
        n, full = len(coordinates), 1 << self.bits
        place = np.zeros(n, dtype=np.int64)
        values = np.full((n, 1), full, dtype=np.int64)
        for k, size in enumerate(sizes):
            t = np.clip(coordinates[:, k] + size * 0.5, 0.0, float(size))
            cell = np.minimum(t.astype(np.int64), size - 1)
            place = place * size + cell
            u = t - cell - 0.5
            powers = np.full((n, order), full, dtype=np.int64)
            for r in range(1, order):
                powers[:, r] = np.rint(powers[:, r - 1] * u).astype(np.int64)
            products = values[:, :, np.newaxis] * (powers[:, np.newaxis, :] / full)
            values = np.rint(products).astype(np.int64).reshape(n, -1)
        whole = np.zeros((n, math.prod(sizes), values.shape[1]), dtype=np.int64)
        whole[np.arange(n), place] = values * counts[:, np.newaxis].astype(np.int64)
        return np.tile(whole.reshape(n, -1), (1, self.layout.family.repetitions))

    def accumulate(self, coordinates: Points, counts: Mask, table: Table) -> None:
        """Add every record's powers to the table, to each copy of it."""
        from dpkde.families.fastgauss import hermite

        copies = table.reshape(self.layout.family.repetitions, -1)
        once = copies[0] if len(copies) == 1 else np.zeros(copies.shape[1], dtype=np.int64)
        rows = np.ascontiguousarray(coordinates)
        hermite.accumulate(rows, counts, 1 << self.bits, self.layout.order, self._sizes, once)
        if len(copies) > 1:
            copies += once

    def respond(self, queries: Points, table: NDArray[np.float64], groups: int = 1) -> Points:
        """Return the mean over copies, or the median of the means of groups of them."""
        copies = table.reshape(self.layout.family.repetitions, -1)
        parts = grouped(len(copies), groups, "repetitions")
        means = (np.ascontiguousarray(copies[part].mean(axis=0)) for part in parts)
        answers = [self._answer(queries, mean)[0] for mean in means]
        return np.median(answers, axis=0) if groups > 1 else answers[0]

    def _answer(self, queries: Points, table: NDArray[np.float64]) -> tuple[Points, Points]:
        from dpkde.families.fastgauss import hermite

        order, cutoff = self.layout.order, self.layout.cutoff
        located = self.frame.locate(queries)
        answers, lengths = np.empty(len(located)), np.empty(len(located))
        hermite.respond(located, order, cutoff, self._sizes, table, answers, lengths)
        return answers / 2**self.bits, lengths

    def weights(self, queries: Points) -> Weights:
        """Return the Hermite functions of the cells within the cutoff, over 2^bits."""
        order, cutoff = self.layout.order, self.layout.cutoff
        located = self.frame.locate(queries)
        copies = self.layout.family.repetitions
        count = len(located)
        rows = np.full((count, 1, 1), 1 / copies / 2**self.bits)
        squares = np.zeros((count, 1))
        for k, size in enumerate(self.layout.sizes):
            # Cells near the query along this axis, as (n_queries, cells); those beyond it last.
            middle = located[:, k, np.newaxis] + (size - 1) / 2
            most = min(size, int(2 * cutoff) + 1)
            near = np.clip(np.ceil(middle - cutoff), 0, size - most) + np.arange(most)
            squares = squares[:, :, np.newaxis] + ((middle - near) ** 2)[:, np.newaxis]
            squares = squares.reshape(count, -1)
            factors = hermite_functions(middle - near, order)
            rows = rows[:, :, np.newaxis, :, np.newaxis] * factors[:, np.newaxis, :, np.newaxis]
            rows = rows.reshape(count, squares.shape[1], -1)
        rows[squares > cutoff**2] = 0.0
        flat = rows.reshape(count, -1)
        return Weights(flat, np.full(flat.shape[1], float(copies)))

    def read(self, asked: Sequence[Asked]) -> Reading:
        """Return a product over axes, of all cells: the cutoff is left out."""
        from dpkde.families.fastgauss.intervals import CellAxis

        rows = zip(_halves(self.frame), self.layout.sizes, strict=True)
        axes = [CellAxis(half, size, self.layout.order) for half, size in rows]
        factors = tuple(entry.of(axis) for entry, axis in zip(asked, axes, strict=True))
        copies = self.layout.family.repetitions
        return Separable(rows_of(asked), factors, 1 / 2**self.bits, copies, self.axis_by_axis)

    def axis_by_axis(self, copy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return one copy of the table with the powers of an axis beside its cells."""
        sizes, dim = self.layout.sizes, self.frame.dim
        tensor = copy.reshape(*sizes, *[self.layout.order] * dim)
        return tensor.transpose([k for axis in range(dim) for k in (axis, dim + axis)])

    def box_bias(
        self, asked: Sequence[Asked], table: NDArray[np.float64], variance: float
    ) -> NDArray[np.float64]:
        """Return what records can do where the table says that they are; see `bias`."""
        from dpkde.families.fastgauss import bias

        return bias.of_boxes(self, asked, table, variance)

    def box_bound(self, asked: Sequence[Asked], table: NDArray[np.float64]) -> Allowance:
        """Return what polynomials above the error tell in each cell; see `bias`."""
        from dpkde.families.fastgauss import bias

        return bias.bound_of_boxes(self, asked, table)

    def region_bound(
        self, asked: Sequence[Asked], coefficients: NDArray[np.float64], table: NDArray[np.float64]
    ) -> Allowance:
        """Return what polynomials above the error tell in each cell; see `bias`."""
        from dpkde.families.fastgauss import bias

        return bias.bound_of_strips(self, asked, coefficients, table)

    @property
    def knows_the_whole(self) -> bool:
        """The first power of a cell is the number of its records."""
        return True

    def edge_error(self, columns: Sequence[int]) -> tuple[float, NDArray[np.float64]]:
        """Return the relative error; at an edge half of it, since shares leave nothing out."""
        halves = _halves(self.frame)
        kept = tuple(halves[column] for column in columns)
        error = quality(self.layout.order, _ALL_CELLS, kept)[0]
        return error, np.full(len(columns), error / 2)

    def response_norm(self, queries: Points) -> NDArray[np.float64]:
        """Return the length of g, over √repetitions and 2^bits."""
        squares = self._answer(queries, np.empty(0))[1]
        return np.asarray(np.sqrt(squares / self.layout.family.repetitions) / 2**self.bits)

    def own_variance(
        self, queries: Points, table: NDArray[np.float64], noise: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the square of a typical bias: the relative error, times the answer."""
        error = quality(self.layout.order, self.layout.cutoff, _halves(self.frame))[0]
        return np.asarray((error * self.respond(queries, table)) ** 2)
