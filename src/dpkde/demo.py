"""The main job, end to end, on a generated data set: ``python -m dpkde.demo [folder]``.

A made-up city of 100,000 private positions is published at three levels of privacy. The releases
are loaded again, as an analyst would, and drawn beside the truth, which only the demo can know.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dpkde

BOUNDS = [(0.0, 10.0), (0.0, 6.0)]
KERNEL = dpkde.Gaussian(bandwidth=0.25)
EPSILONS = ("0.01", "0.05", "0.5")


def city(people: int, seed: int = 2023) -> NDArray[np.float64]:
    """Return made-up positions: two centers, a river road, suburbs."""
    generator = np.random.default_rng(seed)
    kinds = generator.choice(4, size=people, p=[0.35, 0.2, 0.25, 0.2])
    points = np.empty((people, 2))
    for kind, (center, spread) in enumerate((((3.2, 3.6), 0.45), ((6.8, 2.2), 0.35))):
        chosen = kinds == kind
        points[chosen] = generator.normal(center, spread, size=(int(chosen.sum()), 2))
    road = kinds == 2
    along = generator.uniform(0.5, 9.5, size=int(road.sum()))
    bend = 3 + 1.4 * np.sin(along * 0.8)
    points[road] = np.column_stack([along, bend + generator.normal(0, 0.12, size=len(along))])
    suburbs = kinds == 3
    low, high = np.array(BOUNDS).T
    points[suburbs] = generator.uniform(low, high, size=(int(suburbs.sum()), 2))
    return points


def grid(steps: int = 100) -> NDArray[np.float64]:
    """Return query points covering the bounds, row by row from the bottom."""
    x = np.linspace(*BOUNDS[0], steps)
    y = np.linspace(*BOUNDS[1], round(steps * 0.6))
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def main(folder: str = "demo", people: int = 100_000) -> None:
    """Publish, load, query and draw; leave the table, releases and a picture in `folder`."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    points, queries = city(people), grid()
    table = target / "city.csv"
    np.savetxt(table, points, "%.4f", delimiter=",", header="east,north", comments="")
    truth = dpkde.nonprivate.kde(points, queries, KERNEL)
    panels = [("truth (not published)", truth)]
    print(f"{people:,} private points, Gaussian kernel, bandwidth 0.25, bounds {BOUNDS}\n")
    for epsilon in EPSILONS:
        path = target / f"city-epsilon-{epsilon}.dpkde"
        start = time.perf_counter()
        dpkde.publish(
            points, kernel=KERNEL, bounds=BOUNDS, epsilon=epsilon, columns=["east", "north"]
        ).save(path)
        took = time.perf_counter() - start
        release = dpkde.load(path)
        estimate = release.kde(queries)
        error = np.abs(estimate - truth).mean()
        noise = release.standard_error(queries).mean()
        print(
            f"epsilon {epsilon:>4}: {path} ({path.stat().st_size / 1024:.0f} KiB, {took:.1f} s), "
            f"mean error {error:.2g}, standard error of the noise {noise:.2g}"
        )
        panels.append((f"ε = {epsilon}", estimate))
    print(f"\n{release!r}\n\n{release.privacy}\n")
    picture = target / "city.png"
    draw(panels, picture)
    print(f"table: {table}")


def draw(panels: list[tuple[str, NDArray[np.float64]]], path: Path) -> None:
    """Draw heat maps side by side, on one scale."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no picture: it needs one more package, pip install 'dpkde[plot]'")
        return

    top = max(float(panels[0][1].max()), 1e-9)
    figure = Figure(figsize=(10, 5.8), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True, sharey=True)
    extent = (*BOUNDS[0], *BOUNDS[1])
    for axis, (title, values) in zip(axes.flat, panels, strict=True):
        height = len(values) // 100
        image = axis.imshow(
            values.reshape(height, 100),
            origin="lower",
            extent=extent,
            vmin=0,
            vmax=top,
            cmap="magma",
            interpolation="bilinear",
        )
        axis.set_title(title)
    for axis in axes[-1]:
        axis.set_xlabel("east (km)")
    for axis in axes[:, 0]:
        axis.set_ylabel("north (km)")
    figure.colorbar(image, ax=axes, label="kernel density estimate", shrink=0.8)
    figure.savefig(path, dpi=110)
    print(f"picture: {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "demo")
