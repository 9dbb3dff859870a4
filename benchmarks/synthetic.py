"""Multiplicative weights: how many rounds, and the last weights against their average.

    python benchmarks/synthetic.py

For mixtures of Gaussians at ε = 1, pure and with δ = 10⁻⁶, this prints the largest error over the
grid of the last weights and of the average over rounds, means of `RUNS` runs; `usual_rounds` and
the docstring of `dpkde.prior.pmw` come from it. The count is taken as public.
"""

from __future__ import annotations

from fractions import Fraction
from unittest import mock

import numpy as np

import dpkde
from dpkde.prior import pmw
from dpkde.prior.base import Private
from dpkde.prior.lattice import LATTICE_BITS
from dpkde.prior.measurements import better_amount
from dpkde.prior.universe import Universe
from dpkde.prior.weights import Floats, Weights
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.privacy.laws import Exponential

RUNS = 6
ROUNDS = (2, 4, 8, 16, 32, 64, 128)


class Recorded(Weights):
    """Weights that remember what they were before each measurement."""

    past: list[Floats]

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.past = []

    def learn(self, column: Floats, target: float) -> None:
        """Remember the weights as they are, and take one more step."""
        self.past.append(self.values)
        super().learn(column, target)


def mixture(rows: int, dim: int) -> Floats:
    """Return three clusters in [−2, 2]^d."""
    generator = np.random.default_rng(0)
    centers = generator.normal(0, 0.8, size=(3, dim))
    points = centers[generator.integers(0, 3, rows)] + generator.normal(0, 0.3, size=(rows, dim))
    return np.clip(points, -2, 2)


def main() -> None:
    print(f"{'d':>2} {'n':>6} {'δ':>6} {'rounds':>6} {'last':>8} {'average':>8}  (rule's rounds)")
    for dim, axis, width in ((1, 40, 0.5), (2, 15, 0.8)):
        for rows in (1_000, 10_000):
            kernel = dpkde.Gaussian(width)
            private = Private.open(mixture(rows, dim), kernel, [(-2, 2)] * dim)
            universe = Universe.over(private.frame, points_per_axis=axis)
            totals = private.kernel_sums(universe.points, LATTICE_BITS)
            table = kernel.evaluate(universe.points, universe.points)
            truth = totals.sums / (rows << LATTICE_BITS)
            for delta in ("0", "1e-6"):
                guarantee = Guarantee.declare(epsilon=1, delta=delta, adjacency="replace")
                for rounds in ROUNDS:
                    errors = np.zeros(2)
                    for _ in range(RUNS):
                        budget = Budget(guarantee)
                        part = Fraction(1, 2 * rounds)
                        amount = better_amount(budget, part, Exponential)
                        with mock.patch.object(pmw, "Weights", Recorded):
                            learned = pmw.multiply_weights(
                                totals.sums, rows, table, rounds, amount, budget
                            )
                        assert isinstance(learned, Recorded)
                        averaged = np.mean(learned.past, axis=0)
                        for i, weights in enumerate((learned.values, averaged)):
                            errors[i] += np.abs(weights @ table - truth).max() / RUNS
                    rule = pmw.usual_rounds(amount, rows)
                    print(
                        f"{dim:>2} {rows:>6} {delta:>6} {rounds:>6} {errors[0]:>8.4f} "
                        f"{errors[1]:>8.4f}  ({rule})"
                    )


if __name__ == "__main__":
    main()
