"""Even trigonometric polynomials (Wang et al., 2016): a table of cosines of angles.

The box is scaled to [−1, 1]^d. A record contributes ∏_k cos(r_k·arccos x_k) for r_k = 0 … t−1, the
Chebyshev polynomials T_{r_k}(x_k); a query takes the coefficients of x ↦ k(x, y) in that basis,

    k(x, y) ≈ Σ_r c_r(y) ∏_k T_{r_k}(x_k).

The entry at r = 0 is the same for every record: it is the count, once more and with the noise of
the table.

**Noise.** One record moves the table by L1 ≤ t^d, L2 ≤ t^{d/2} and L∞ ≤ 1. All entries being of one
size, max-norm noise is the cheapest for pure ε, and `dpkde.publish` takes it; Laplace noise is what
the paper has.

**Bias.** What the series leaves out: at most Σ|c_r(y)| over r with some r_k ≥ t. For analytic
kernels it falls at least geometrically, for the Gaussian fast once t passes four times the half
width of the box in bandwidths; with a kink it falls like 1/t. `EvenTrig.largest_bias` estimates it.

Cost: O(t^d) for each record, O(t·N·d + t^d) for each query. The proof is in ``eventrig.proof.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpkde.errors import ParameterError
from dpkde.families.base import about
from dpkde.families.custom import Floats, Limits
from dpkde.kernels import ProductKernel
from dpkde.prior.placed import (
    MOST_CELLS,
    ROOM,
    Placed,
    PlacedAxis,
    box_halves,
    check_cells,
    in_data_units,
    mesh,
    outer,
)
from dpkde.prior.universe import whole
from dpkde.space.frame import Frame

MOST_NODES = 1 << 12
"""Most Chebyshev nodes that an axis gets."""


@dataclass(frozen=True)
class EvenTrig(PlacedAxis):
    """Even trigonometric polynomials with `degree` terms on each axis, as a family.

    Parameters
    ----------
    degree
        t: r = 0 … t−1 on each axis. More terms lower the bias and raise the noise.

    Notes
    -----
    Needs bounds. Serves every product kernel, and others in few dimensions: their coefficients take
    (2t)^d values of the kernel for each query. Queries outside the bounds are answered by the same
    formula.

    Examples
    --------
    >>> import numpy as np
    >>> import dpkde
    >>> points = np.random.default_rng(0).normal(size=(5_000, 1))
    >>> release = dpkde.publish(
    ...     points, kernel=dpkde.Gaussian(2.0), bounds=[(-4, 4)], epsilon=1,
    ...     family=dpkde.prior.EvenTrig(degree=6),
    ... )
    >>> release.table.size
    6
    """

    degree: int
    name: ClassVar[str] = "eventrig"

    def __post_init__(self) -> None:
        number = whole(self.degree, "degree of EvenTrig", most=MOST_NODES // 4)
        object.__setattr__(self, "degree", number)

    def place_in(self, frame: Frame) -> Placed:
        """Return f and g for a kernel and a box."""
        self.check(frame)
        check_cells(self.name, self.degree, frame.dim)
        if not frame.kernel.is_product:
            return _AnyKernel(self.degree, box_halves(frame), frame)
        return _Product(self.degree, box_halves(frame), frame.kernel.shape)

    def axis_values(self, kernel: ProductKernel, half: float, x: Floats, y: Floats) -> Floats:
        """Return Σ_r T_r(x/half)·c_r(y)."""
        waves = np.array([cosines(self.degree, at / half) for at in x.tolist()])
        responses = [coefficients(kernel, self.degree, half, at) for at in y.tolist()]
        return np.asarray(waves @ np.array(responses).T)


class _Cosines(Placed):
    """The contributions, which are the same for all kernels."""

    nonnegative = False

    def __init__(self, degree: int, halves: Floats) -> None:
        self.degree, self.halves = degree, halves.tolist()
        cells = degree ** len(self.halves)
        self.limits = Limits(cells, float(cells), math.sqrt(cells) * ROOM, 1.0)

    def f(self, x: Floats) -> Floats:
        """Return ∏ cos(r_k·arccos x_k)."""
        pairs = zip(x.tolist(), self.halves, strict=True)
        return outer([cosines(self.degree, at / half) for at, half in pairs])


class _Product(_Cosines):
    """A product kernel: its coefficients are products over axes."""

    def __init__(self, degree: int, halves: Floats, kernel: ProductKernel) -> None:
        super().__init__(degree, halves)
        self.kernel = kernel

    def factors(self, y: Floats) -> list[Floats]:
        """Return the coefficients of each axis."""
        pairs = zip(self.halves, y.tolist(), strict=True)
        return [coefficients(self.kernel, self.degree, half, at) for half, at in pairs]


class _AnyKernel(_Cosines):
    """Any kernel: coefficients from its values at a tensor of Chebyshev nodes."""

    def __init__(self, degree: int, halves: Floats, frame: Frame) -> None:
        super().__init__(degree, halves)
        self.frame, self.count = frame, max(2 * degree, 16)
        values = self.count**frame.dim
        if values > MOST_CELLS:
            raise ParameterError(
                f"a query of eventrig would take {self.count}^{frame.dim} = {about(values)} values "
                f"of the {frame.kernel.name} kernel, which is no product over axes; at most 2^20: "
                "use fewer axes, a lower degree or a product kernel"
            )
        axes = [half * chebyshev_nodes(self.count) for half in self.halves]
        self.places = in_data_units(frame, mesh(axes))

    def factors(self, y: Floats) -> list[Floats]:
        """Return one factor, all of g(y): the cosine transform along every axis."""
        query = in_data_units(self.frame, y[np.newaxis])
        values = self.frame.kernel.evaluate(self.places, query)[:, 0]
        transform = cosine_matrix(self.degree, self.count)
        tensor = values.reshape((self.count,) * self.frame.dim)
        for _ in range(self.frame.dim):  # the axis in front is transformed, and goes to the end
            tensor = np.moveaxis(np.tensordot(transform, tensor, axes=(1, 0)), 0, -1)
        return [tensor.reshape(-1)]


def cosines(degree: int, x: float) -> Floats:
    """Return cos(r·arccos x) for r = 0 … degree − 1, x cut to [−1, 1].

    >>> cosines(3, 0.5).round(12).tolist()
    [1.0, 0.5, -0.5]
    """
    return np.asarray(np.cos(np.arange(degree) * math.acos(min(max(x, -1.0), 1.0))))


def chebyshev_nodes(count: int) -> Floats:
    """Return cos((i + ½)π/count): where the cosine transform takes its values."""
    return np.cos((np.arange(count) + 0.5) * np.pi / count)


@lru_cache(maxsize=4)
def cosine_matrix(degree: int, count: int) -> Floats:
    """Return (2 − [r = 0])/count·cos(r·(i + ½)π/count), shape (degree, count): the DCT."""
    waves = np.cos(np.outer(np.arange(degree), (np.arange(count) + 0.5) * np.pi / count))
    waves *= 2 / count
    waves[0] /= 2
    waves.setflags(write=False)
    return np.asarray(waves)


def coefficients(kernel: ProductKernel, degree: int, half: float, y: float) -> Floats:
    """Return the Chebyshev coefficients of x ↦ profile(half·x − y), r = 0 … degree − 1.

    By the cosine transform at N nodes, enough for the kernel and for four times the degree. What
    comes from beyond folds over only from r ≥ 2N − degree.
    """
    enough = max(4 * degree, 64, math.ceil(16 * min(half, float(MOST_NODES))))
    count = min(1 << (enough - 1).bit_length(), MOST_NODES)
    values = kernel.profile(half * chebyshev_nodes(count) - y)
    return np.asarray(cosine_matrix(degree, count) @ values)
