"""10⁶ draws of each law, against OpenDP where it has the law.

OpenDP draws 10⁴ at a time here, a hundredth of the work, and its time is scaled up.

Run: python benchmarks/noise.py
"""

from __future__ import annotations

from fractions import Fraction

from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace, MaxNorm, draw
from peers import race, report

DRAWS = 1_000_000
PEER_DRAWS = DRAWS // 100


def main() -> None:
    scale = Fraction((1 << 24) + 5)
    for law, target in ((DiscreteLaplace(scale), 5), (DiscreteGaussian(scale**2), 5)):
        ours, peer = race(
            lambda law=law: draw(law, DRAWS),  # type: ignore[misc]
            lambda law=law: draw(law, PEER_DRAWS, sampler="opendp"),  # type: ignore[misc]
            3,
        )
        report(f"{DRAWS} {law.name} draws, vs OpenDP", ours, peer * 100, target)
        if isinstance(law, DiscreteLaplace):
            print(f"  at most 1 s: {'ok' if ours <= 1 else 'BELOW TARGET'}")
    wide = MaxNorm(scale, DRAWS)
    ours, _ = race(lambda: draw(wide, DRAWS), lambda: None, 2)
    print(f"one {wide.name} draw of {DRAWS} cells: {ours:.3f} s (OpenDP has no such law)")


if __name__ == "__main__":
    main()
