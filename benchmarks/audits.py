"""What audits see of a release, and of one with wrong noise: the table of ``docs/audit.md``.

    python benchmarks/audits.py [EPSILON ...]      # some three minutes for 0.1, 1 and 4

One record more on a node of hat splines moves the count by one and one cell by nearly all that it
has. Each line is the bound on ε that one audit found, at an error rate of 10⁻⁶, and how many
outputs it had on each side.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import dpkde
from dpkde.curator.auditing.neighbours import worst
from dpkde.curator.auditing.repeated import Repeated
from dpkde.privacy.audit.mutants import MUTANTS, right
from dpkde.privacy.budget import Guarantee
from dpkde.privacy.laws import DiscreteLaplace

CONFIDENCE = 1 - 1e-6
CROWD = np.array([[0.0], [0.0], [1.0]])

USUAL = 20_000
TRIALS = {
    "0.1": {"half of the noise": 300_000, "a sensitivity too small by √2": 1_200_000},
    "1": {"half of the noise": 30_000, "a sensitivity too small by √2": 60_000},
    "4": {"a sensitivity too small by √2": 30_000},
}
"""Enough for each to be missed with a chance below 10⁻⁶: the bound is about normal, and exceeds ε
on average by 10, 6, 21, 10 and 7 of its standard deviations. Mutants without a number here are told
by an event that is certain, or has a chance above 0.4, on one side, and is next to impossible on
the other: its bound is ln(0.4·N/17) at least, which is 5.9 for 16,000 outputs; to miss 4, 6,400
expected events would have to be fewer than 1,000."""
LEAKS = {"0.1": 150_000, "1": 220_000, "4": 1_600_000}
"""The leak is seen N·2⁻¹⁰ times on one side, never on the other. With the rate shared by five
events the bound is ln(low/16.2), and beyond ε from 52, 91 and 1,061 hits on; of four fifths of
150,000 and 220,000 outputs, and all but 65,536 of 1,600,000, it has 117, 172 and 1,498 on average:
6.0, 6.2 and 11 standard deviations more."""


def trials_for(mutant: str, epsilon: str) -> int:
    """Return how many outputs it takes to refute a mutant."""
    if mutant == "no noise once in a thousand":
        return LEAKS[epsilon]
    return TRIALS[epsilon].get(mutant, USUAL)


def hats(epsilon: str) -> tuple[Repeated, tuple[Any, Any]]:
    """Return a release of hat splines, and neighbours of which one has a record on a node more."""
    plan = dpkde.plan(
        kernel=dpkde.Gaussian(1.0),
        bounds=[(-2, 2)],
        epsilon=1,
        family=dpkde.Spline(1, 1.0),
        seed=1,
    )
    record = worst(plan, DiscreteLaplace).largest
    release = Repeated(plan, Guarantee.declare(epsilon=epsilon))
    return release, (CROWD, np.concatenate([CROWD, record]))


def main(epsilons: list[str]) -> None:
    """Print a table for each ε."""
    for epsilon in epsilons:
        release, sides = hats(epsilon)
        for name, drawing in {"right": right, **MUTANTS}.items():
            trials = USUAL if name == "right" else trials_for(name, epsilon)
            settings: dict[str, Any] = {"confidence": CONFIDENCE, "drawing": drawing}
            result = release.audit(*sides, trials=trials, **settings)
            verdict = "refuted" if result.refutes(float(epsilon)) else "not refuted"
            print(f"ε = {epsilon}  {name}: ε ≥ {result.epsilon_lower:.3g} of {trials:,}, {verdict}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["0.1", "1", "4"])
