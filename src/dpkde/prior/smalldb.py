"""SmallDB: a small synthetic data set, chosen by the exponential mechanism.

Blum, Ligett and Roth (2008). Among all multisets Z of `size` points of a public grid, one is chosen
with probability falling exponentially in how badly its KDE fits that of the data at its worst
query. It needs no noisy count, and answers all queries at once; its running time is the number of
multisets, |U| + size − 1 over size, so that it serves very small grids alone. The proof is in
`smalldb.proof.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpkde.errors import ParameterError
from dpkde.kernels import Points
from dpkde.numerics.compiled import exactly
from dpkde.prior.base import Private
from dpkde.prior.lattice import (
    CAPACITY,
    LATTICE_BITS,
    Integers,
    public_lattice,
    within_capacity,
)
from dpkde.prior.ongrid import OnGrid
from dpkde.prior.universe import Cost, check_alpha, whole
from dpkde.privacy.amounts import Amount
from dpkde.privacy.budget import Budget
from dpkde.privacy.laws import Exponential
from dpkde.privacy.statement import PrivacyStatement
from dpkde.release.synthetic import SyntheticRelease
from dpkde.space.frame import Frame

LARGEST_SIZE = 64
"""With 16 lattice bits and 2⁴⁰ records, losses then stay within 64 bits."""


@dataclass(frozen=True)
class SmallDB(OnGrid):
    """The SmallDB mechanism.

    Parameters
    ----------
    size
        How many points the synthetic data set has. None: ⌈1/α²⌉, for which every data set has a
        coreset of error α.
    alpha
        The error that moving records to the grid may cause; sets the grid's pitch, and the size
        where that is not given.
    points_per_axis
        The grid, in place of what `alpha` asks for.
    queries_sampled
        Compare at so many points of the grid, drawn at random, in place of all of them.
    seed
        Of that draw. It is public; the choice itself has no seed.

    Notes
    -----
    With probability 1 − η the KDE at every query of the loss is off by at most

        coreset error + (2/(εn))·(size·ln|U| + ln(1/η)),

    and by the grid's rounding on top. Sample complexity: n of order size·ln|U|/(εα).

    Examples
    --------
    >>> import dpkde
    >>> points = np.array([0.2] * 600 + [0.8] * 300).reshape(-1, 1)
    >>> release = SmallDB(size=3, points_per_axis=8).release(
    ...     points, kernel=dpkde.Gaussian(0.3), bounds=[(0, 1)], epsilon=2
    ... )
    >>> release.weights.sum().round(12), len(release.points) <= 3
    (np.float64(1.0), True)
    """

    size: int | None = None
    alpha: float | None = None
    points_per_axis: int | None = None
    queries_sampled: int | None = None
    seed: int = 0
    name: ClassVar[str] = "smalldb"

    def __post_init__(self) -> None:
        if self.size is None and self.alpha is None:
            raise ParameterError("give the size of the synthetic data set, or alpha")
        if self.size is not None:
            whole(self.size, "size", most=LARGEST_SIZE)
        self._check_options()

    @property
    def members(self) -> int:
        """How many points the synthetic data set has, repeated ones counted."""
        return coreset_size(self.alpha) if self.size is None else self.size  # type: ignore[arg-type]

    def cost(self, frame: Frame, queries: Points | None = None) -> Cost:
        """Return what a release will take; nothing is read or built."""
        universe, asked = self._sizes(frame, queries)
        options = math.comb(universe + self.members - 1, self.members)
        return Cost("SmallDB", universe, asked, options, "data sets", options * asked)

    def synthesise(
        self, private: Private, queries: Points | None, budget: Budget
    ) -> SyntheticRelease:
        """Spend what is left of a budget on one choice, and return the synthetic data set."""
        frame, size = private.frame, self.members
        universe = self._universe(frame)
        places = self._places(universe, queries)
        lattice = public_lattice(frame, universe.points, places)
        totals = private.kernel_sums(places)
        amount = budget.left_pure() or budget.left_concentrated()
        assert amount is not None
        members = select_small_database(
            totals.sums, totals.size(budget.guarantee.adjacency), lattice, size, amount, budget
        )
        members, times = np.unique(members, return_counts=True)
        return SyntheticRelease(
            universe.points[members],
            times / size,
            frame.kernel,
            PrivacyStatement(budget.guarantee, budget.spends),
            "smalldb",
        )

    def error_bound(self, frame: Frame, *, rows: float, epsilon: float, eta: float) -> float:
        """Return (2/(εn))·ln(N/η), N the number of multisets: what the choice adds to the error.

        It holds with probability 1 − η at all queries of the loss at once; the coreset's error
        and the grid's rounding come on top.
        """
        return 2 / (epsilon * rows) * (math.log(self.cost(frame).options) - math.log(eta))


def coreset_size(alpha: float) -> int:
    """Return ⌈1/α²⌉, a size for which every data set has a coreset of error at most α.

    For a positive definite kernel with k(x, x) = 1, s records drawn at random have a mean in the
    kernel's space whose squared distance from the mean of all is at most 1/s on average; some
    draw is no worse, and no KDE value differs by more than that distance.

    >>> coreset_size(0.5)
    4
    """
    size = math.ceil(1 / check_alpha(alpha) ** 2)
    if size > LARGEST_SIZE:
        raise ParameterError(
            f"alpha={alpha:g} needs a synthetic data set of {size} points, and SmallDB goes up to "
            f"{LARGEST_SIZE}: give size, or use PMW"
        )
    return size


def select_small_database(
    sums: Integers, count: int, lattice: Integers, size: int, amount: Amount, budget: Budget
) -> Integers:
    """Return the indices of the chosen points of the universe, shape (size,), not decreasing.

    Parameters
    ----------
    sums
        S_j = Σ_x rint(k(x, y_j)·2¹⁶), exact; a record's entries lie in [0, 2¹⁶].
    count
        The number of records: secret under add-remove, all rows under replace.
    lattice
        rint(k(z, y_j)·2¹⁶) for every point z of the universe, shape (universe, queries).
    size
        How many points to choose.
    amount, budget
        What the choice is paid with.

    Guarantee
    ---------
    The choice costs `amount`, which is debited first. See `smalldb.proof.md`.
    """
    unit = 1 << LATTICE_BITS
    law = budget.select("synthetic data set", amount, Exponential, size * unit)
    chosen = budget.randomness.choice(law, losses(sums, count, lattice, size))
    return multiset(chosen, len(lattice), size)


def losses(sums: Integers, count: int, lattice: Integers, size: int) -> Integers:
    """Return max_j |size·S_j − n·W_Z(y_j)| for every multiset Z, in lexicographic order."""
    # Sums and count are cut at the capacity: a contraction, so that sensitivities hold.
    targets = size * within_capacity(sums)
    out = np.empty(math.comb(len(lattice) + size - 1, size), dtype=np.int64)
    _fill_losses(np.ascontiguousarray(lattice), targets, min(max(count, 0), CAPACITY), size, out)
    return out


@exactly
def _fill_losses(
    lattice: Integers, targets: Integers, count: int, size: int, out: Integers
) -> None:
    """Write the loss of every multiset. Sums of the first members are kept from one to the next."""
    options, queries = lattice.shape
    partial = np.zeros((size, queries), dtype=np.int64)
    members = np.zeros(size, dtype=np.int64)
    written, level = 0, 0
    while True:
        for place in range(level, size - 1):
            for j in range(queries):
                partial[place + 1, j] = partial[place, j] + lattice[members[place], j]
        for last in range(members[size - 1], options):
            worst = 0
            for j in range(queries):
                apart = abs(targets[j] - count * (partial[size - 1, j] + lattice[last, j]))
                worst = max(worst, apart)
            out[written] = worst
            written += 1
        level = size - 2
        while level >= 0 and members[level] == options - 1:
            level -= 1
        if level < 0:
            return
        members[level:] = members[level] + 1


def multiset(rank: int, options: int, size: int) -> Integers:
    """Return the multiset of a rank in lexicographic order.

    >>> [multiset(rank, 3, 2).tolist() for rank in range(6)]
    [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]]
    """
    members, least = [], 0
    for rest in range(size - 1, -1, -1):
        # So many multisets have `least` here: those of the rest, from `least` on.
        while rank >= (block := math.comb(options - least + rest - 1, rest)):
            rank -= block
            least += 1
        members.append(least)
    return np.array(members, dtype=np.int64)
