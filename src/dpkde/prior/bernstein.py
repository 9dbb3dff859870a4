"""The Bernstein mechanism (Aldà and Rubinstein, 2017): kernel sums at the nodes of a lattice.

The box is scaled to [0, 1]^d. A record contributes its kernel values at the (k+1)^d nodes ν/k, and
a query takes the Bernstein polynomial through the noisy sums,

    ê(y) = Σ_ν F̃_ν ∏_j C(k, ν_j) y_j^{ν_j} (1 − y_j)^{k − ν_j}.

**Noise.** One record moves the table by L1 = sup_x Σ_ν k(x, ν/k), which is computed axis by axis
for product kernels and (k+1)^d for others. The weights of a query are not negative and add up to
one, so the noise of an answer is below that of a node.

**Bias.** The polynomial smooths: for twice differentiable kernels the answer is off by at most
Σ_axes w²·sup|∂²k|/(8k), w the width of the axis. That is slow: halving the bias doubles k and, in
d dimensions, takes 2^d as many nodes. `Bernstein.largest_bias` estimates it.

Cost: O((k+1)^d) for each record and each query, and of memory. The proof is in
``bernstein.proof.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpkde.families.custom import Floats, Limits
from dpkde.kernels import ProductKernel
from dpkde.prior.placed import (
    ROOM,
    Placed,
    PlacedAxis,
    box_halves,
    check_cells,
    in_data_units,
    kernel_values,
    mesh,
    outer,
    unit_values,
)
from dpkde.prior.universe import whole
from dpkde.space.frame import Frame

MOST_ORDER = 1 << 12
"""Beyond it a basis, whose time is the square of the order, would keep a client waiting."""
_PARTS = 256
_WORK = 1 << 22


@dataclass(frozen=True)
class Bernstein(PlacedAxis):
    """The Bernstein mechanism on a lattice of (order + 1)^dim nodes, as a family.

    Parameters
    ----------
    order
        k: the lattice has k + 1 nodes on each axis. More nodes lower the bias, like 1/k, and
        raise the noise.

    Notes
    -----
    Needs bounds, and serves every kernel in space. Queries outside the bounds are answered as for
    the nearest point of the box.

    Examples
    --------
    >>> import numpy as np
    >>> import dpkde
    >>> points = np.random.default_rng(0).normal(size=(5_000, 1))
    >>> release = dpkde.publish(
    ...     points, kernel=dpkde.Gaussian(2.0), bounds=[(-4, 4)], epsilon=1,
    ...     family=dpkde.prior.Bernstein(order=8),
    ... )
    >>> release.table.size
    9
    """

    order: int
    name: ClassVar[str] = "bernstein"

    def __post_init__(self) -> None:
        number = whole(self.order, "order of Bernstein", most=MOST_ORDER)
        object.__setattr__(self, "order", number)

    def place_in(self, frame: Frame) -> Placed:
        """Return f and g for a kernel and a box."""
        self.check(frame)
        check_cells(self.name, self.order + 1, frame.dim)
        halves = box_halves(frame)
        if not frame.kernel.is_product:
            return _AnyKernel(self.order, halves, frame)
        return _Product(self.order, halves, frame.kernel.shape)

    def axis_values(self, kernel: ProductKernel, half: float, x: Floats, y: Floats) -> Floats:
        """Return Σ_ν profile(x − node_ν)·basis_ν(y)."""
        values = kernel.profile(np.subtract.outer(x, nodes(self.order, half)))
        bases = np.array([basis(self.order, half, at) for at in y.tolist()])
        return np.asarray(values @ bases.T)


class _Lattice(Placed):
    """The responses, which are the same for all kernels."""

    nonnegative = True

    def __init__(self, order: int, halves: Floats) -> None:
        self.order, self.halves = order, halves
        self.nodes = [nodes(order, half) for half in halves.tolist()]

    def factors(self, y: Floats) -> list[Floats]:
        """Return the Bernstein basis of each axis."""
        pairs = zip(self.halves.tolist(), y.tolist(), strict=True)
        return [basis(self.order, half, at) for half, at in pairs]


class _Product(_Lattice):
    """A product kernel: values at nodes are products over axes, and so are their norms."""

    def __init__(self, order: int, halves: Floats, kernel: ProductKernel) -> None:
        super().__init__(order, halves)
        self.kernel = kernel
        parts = [axis_norms(kernel, half, order) for half in halves.tolist()]
        l1, l2 = (math.prod(part[i] for part in parts) * ROOM for i in (0, 1))
        self.limits = Limits((order + 1) ** len(halves), l1, l2, 1.0)

    def f(self, x: Floats) -> Floats:
        """Return ∏ profile(x_k − node)."""
        axes = zip(x, self.nodes, strict=True)
        return outer([unit_values(self.kernel.profile(at - places)) for at, places in axes])


class _AnyKernel(_Lattice):
    """Any kernel: its values at the nodes, which are at most one each."""

    def __init__(self, order: int, halves: Floats, frame: Frame) -> None:
        super().__init__(order, halves)
        self.frame = frame
        self.places = in_data_units(frame, mesh(self.nodes))
        cells = len(self.places)
        self.limits = Limits(cells, float(cells), math.sqrt(cells) * ROOM, 1.0)

    def f(self, x: Floats) -> Floats:
        """Return k(x, node)."""
        return kernel_values(self.frame, x, self.places)


def nodes(order: int, half: float) -> Floats:
    """Return order + 1 places from −half to half."""
    return np.linspace(-half, half, order + 1)


def basis(order: int, half: float, y: float) -> Floats:
    """Return C(k, ν)·t^ν·(1 − t)^{k−ν} for ν = 0 … k, t the place of y in the box.

    By the recursion b_{k+1} = (1 − t)·b_k + t·(b_k shifted), which has no large terms. O(k²).

    >>> basis(2, 1.0, 0.0).tolist(), basis(2, 1.0, 9.0).tolist()
    ([0.25, 0.5, 0.25], [0.0, 0.0, 1.0])
    """
    t = min(max((y + half) / (2 * half), 0.0), 1.0)
    terms = np.zeros(order + 1)
    terms[0] = 1.0
    for k in range(order):
        terms[1 : k + 2] = (1 - t) * terms[1 : k + 2] + t * terms[: k + 1]
        terms[0] *= 1 - t
    return terms


@lru_cache(maxsize=256)
def axis_norms(kernel: ProductKernel, half: float, order: int) -> tuple[float, float]:
    """Return bounds on Σ_ν p(x − node_ν) and on √Σ_ν p(x − node_ν)², over |x| ≤ half.

    The axis is cut into short parts. Within one, no value is above that at the end nearest to the
    node, since profiles fall with distance; the sum of those, largest over parts, is a bound.
    """
    places = nodes(order, half)
    parts = order * max(2, min(_PARTS, _WORK // (order + 1) ** 2))
    edges = np.linspace(-half, half, parts + 1)
    largest, squares = 0.0, 0.0
    step = max(1, _WORK // (order + 1))
    for start in range(0, parts, step):
        low, high = edges[start : start + step + 1][:-1], edges[start : start + step + 1][1:]
        below = np.subtract.outer(low, places)
        above = np.subtract.outer(high, places)
        # Zero where the node lies inside the part.
        nearest = np.maximum(np.maximum(below, -above), 0.0)
        values = unit_values(kernel.profile(nearest))
        largest = max(largest, float(values.sum(axis=1).max()))
        squares = max(squares, float((values**2).sum(axis=1).max()))
    nodes_count = float(order + 1)
    return min(largest, nodes_count), math.sqrt(min(squares, nodes_count))
