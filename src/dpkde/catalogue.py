"""Which family serves which kernel, and at what price: the tables of ``docs/kernels.md``.

    python -m dpkde.catalogue [docs/kernels.md]

prints them, or puts them in place of those in a page. Everything is asked of the code: obstacles
and terms of the families, and what the planner predicts and chooses.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import dpkde
from dpkde.families.base import Family
from dpkde.families.registry import FAMILIES
from dpkde.kernels import Kernel
from dpkde.space.domain import Domain, as_domain
from dpkde.space.frame import Frame

EXAMPLES: dict[str, Kernel] = {
    "`Gaussian`": dpkde.Gaussian(1.0),
    "`Laplacian`": dpkde.Laplacian(1.0),
    "`Cauchy`": dpkde.Cauchy(1.0),
    "`Hat`": dpkde.Hat(1.0),
    "`ExponentialLp(p, power=p)`, p < 1": dpkde.ExponentialLp(0.8, 0.8),
    "`ExponentialLp(p, power=p)`, p > 1": dpkde.ExponentialLp(1.5, 1.5),
    "`ExponentialLp(p, power=1)`, p > 1": dpkde.ExponentialLp(1.5, 1),
    "`Matern`": dpkde.Matern(1.5),
    "`RationalQuadratic`": dpkde.RationalQuadratic(2.0),
    "`Erfc`": dpkde.Erfc(1.0),
    "`Geodesic`": dpkde.Geodesic(),
    "`Jaccard`": dpkde.Jaccard(),
    "`Product([Hat, Laplacian])`": dpkde.Product([dpkde.Hat(1.0), dpkde.Laplacian(1.0)]),
    "`Mixture([Hat, Laplacian])`": dpkde.Mixture([dpkde.Hat(1.0), dpkde.Laplacian(1.0)]),
}
ROWS, EPSILON = 100_000, "0.5"
WIDE, NARROW = (2, 10.0), (50, 0.2)
"""Axes and their widths in bandwidths, of the boxes that errors are predicted for."""


def _domain(kernel: Kernel, dim: int, width: float) -> Domain:
    return as_domain([(-width / 2, width / 2)] * dim if kernel.home == "space" else None)


def _terms(kind: type[Family], kernel: Kernel) -> str:
    """Return cost, bias and sensitivity, or a dash, for a cell of the table."""
    frame = Frame.of(kernel, _domain(kernel, *WIDE), WIDE[0])
    if kind.obstacle(frame) is not None:
        return "–"
    return "<br>".join(kind.terms(frame))


def _predicted(kernel: Kernel, dim: int, width: float) -> str:
    """Return the families that can serve, best first, with their predicted errors."""
    plan = dpkde.plan(
        kernel=kernel,
        bounds=_domain(kernel, dim, width),
        dim=dim,
        epsilon=EPSILON,
        expected_rows=ROWS,
    )
    return ", ".join(
        f"{entry.name} {entry.prediction.error:.1g}"
        for entry in plan.considered
        if entry.prediction
    )


def tables() -> Iterator[str]:
    """Yield the lines of both tables."""
    yield "| kernel | " + " | ".join(FAMILIES) + " |"
    yield "|---|" + "---|" * len(FAMILIES)
    for name, kernel in EXAMPLES.items():
        cells = [_terms(kind, kernel) for kind in FAMILIES.values()]
        yield f"| {name} | " + " | ".join(cells) + " |"
    yield ""
    boxes = [f"d = {dim}, {width:g} bandwidths wide" for dim, width in (WIDE, NARROW)]
    yield "| kernel | " + " | ".join(boxes) + " |"
    yield "|---|---|---|"
    for name, kernel in EXAMPLES.items():
        cells = [_predicted(kernel, *box) for box in (WIDE, NARROW)]
        yield f"| {name} | " + " | ".join(cells) + " |"


def rewrite(page: Path) -> None:
    """Put both tables in place of those of a page."""
    fresh = iter("\n".join(tables()).split("\n\n"))
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"(?m)(^\|.*\n)+", lambda _: f"{next(fresh)}\n", text)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        rewrite(Path(sys.argv[1]))
    else:
        print("\n".join(tables()))  # noqa: T201
