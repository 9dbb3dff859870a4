"""Other kernels for the table of a release, and the bandwidth that suits it best.

A family says how hard it is to read its table with another kernel (`Pair.strain`): up to 1 it can.
Bandwidths are searched as multiples of one that is given, so that ratios between axes are kept.

The best multiple is chosen by least squares cross-validation. With n records, f̂ = kde/∫k and a
density f of which they are a sample, the risk ∫(f̂ − f)² is ∫f̂² − 2∫f̂f, but for a constant. The
first is known exactly for the density as it is released, noise included: tᵀGt/(n∫k)². The second is
the mean of f̂ over records, each answered without itself, and is estimated without bias by

    (tᵀMt − v·tr M − n·c)/(n(n − 1)∫k),

v being the noise variance of a cell and c what a record's pair with itself adds: see `Energy`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.base import Pair
from dpkde.kernels import Kernel
from dpkde.planning.plan import Plan, make_frame
from dpkde.release.answers import deviation
from dpkde.space.frame import Frame

if TYPE_CHECKING:
    from dpkde.release.release import Release

Floats = NDArray[np.float64]

MOST_LISTED = 17
_LEAST_STEP = 2**0.25
"""Bandwidths in a list are at least this factor apart."""
_FARTHEST = 2.0**24
"""How many times wider or narrower bandwidths are looked for."""
_FINE = 1.002
"""To this factor, the ends of a range are told."""
_PRECISION = 0.02
"""To this part of itself, the best bandwidth is found."""


def reread(release: Release, kernel: Kernel) -> Plan:
    """Return the plan by which a table is read with a kernel; else an error that names one."""
    plan = release.plan
    frame = _frame(release, kernel)
    pair: Pair = plan.pair
    if frame.kernel != plan.frame.kernel:
        if not pair.strain(frame) <= 1:
            raise ParameterError(_advice(release, kernel))
        pair = pair.reread(frame)
    return replace(plan, pair=pair, considered=(), promise=None, promised=None, pilot=None)


def bandwidths(release: Release) -> Floats:
    """Return multiples of the published bandwidth that the table can be read with."""
    base = np.asarray(release.kernel.bandwidth.to_json(), dtype=np.float64)
    return np.multiply.outer(multiples(release), base)


def best_bandwidth(release: Release) -> float | Floats:
    """Return the bandwidth of least estimated risk: the best of the list, and then near it."""
    from scipy.optimize import minimize_scalar

    listed, risk = multiples(release), risks(release)

    def of_log(log: float) -> float:
        return risk(math.exp(log))

    logs = np.log(listed)
    values = [of_log(log) for log in logs.tolist()]
    best = int(np.argmin(values))
    low, high = logs[max(best - 1, 0)], logs[min(best + 1, len(logs) - 1)]
    chosen, least = float(logs[best]), values[best]
    if high > low:
        found = minimize_scalar(
            of_log, bounds=(low, high), method="bounded", options={"xatol": _PRECISION}
        )
        chosen = float(found.x) if found.fun < least else chosen
    scaled = release.kernel.bandwidth.scaled(math.exp(chosen)).to_json()
    return scaled if isinstance(scaled, float) else np.array(scaled)


def risks(release: Release) -> Callable[[float], float]:
    """Return the estimated ∫(f̂ − f)² − ∫f² of the density at each multiple of the bandwidth."""
    energies = release.plan.pair.energies(release.table.astype(np.float64))
    rows, dim = float(release.rate) * release.count, release.dim
    noise = deviation(release, "table") ** 2 / 4.0**release.plan.bits

    def risk(multiple: float) -> float:
        kernel = release.kernel.scaled(multiple)
        energy = energies(_frame(release, kernel))
        volume, mass = kernel.bandwidth.determinant(dim), kernel.integral(dim)
        square = energy.answers * volume / (rows * mass) ** 2
        pairs = energy.pairs - noise * energy.pairs_trace - rows * energy.itself
        return square - 2 * pairs / (rows * max(rows - 1, 1.0) * mass)

    return risk


def multiples(release: Release) -> Floats:
    """Return what the published bandwidth may be multiplied with: both ends, one, and between."""
    release.plan.pair.strain(release.plan.frame)  # says so where there are no others
    strain = _strains(release, release.kernel)
    low, high = _edge(strain, 1 / _FARTHEST), _edge(strain, _widest(release))
    # Steps are cut to fit below and above 1, which adds two at most.
    step = max(math.log(_LEAST_STEP), math.log(high / low) / (MOST_LISTED - 3))
    below, above = (math.ceil(abs(math.log(end)) / step - 0.25) for end in (low, high))
    narrower, wider = np.geomspace(low, 1.0, below + 1), np.geomspace(1.0, high, above + 1)
    return np.concatenate([narrower[:below], [1.0], wider[1:]])


def _widest(release: Release) -> float:
    """Return at which multiple the kernel is as wide as the bounds; at least 1."""
    halves = release.plan.frame.halves()
    return _FARTHEST if halves is None else float(np.clip(2 * halves.max(), 1.0, _FARTHEST))


def _frame(release: Release, kernel: Kernel) -> Frame:
    """Return the frame of the release with another kernel."""
    published = release.plan.frame
    frame = make_frame(kernel, published.domain, published.dim)
    if kernel.home != published.kernel.home:
        raise ParameterError(
            f"the {kernel.name} kernel is for {kernel.home}, and this table for a kernel of "
            f"{published.kernel.home}"
        )
    return frame


def _strains(release: Release, kernel: Kernel) -> Callable[[float], float]:
    """Return the strain at each multiple of a kernel's bandwidth."""

    def strain(multiple: float) -> float:
        try:
            frame = _frame(release, kernel.scaled(multiple))
        except ParameterError:  # too small or too large a number
            return math.inf
        return release.plan.pair.strain(frame)

    return strain


def _edge(strain: Callable[[float], float], limit: float) -> float:
    """Return how far from 1, where the strain is at most 1, it stays so on the way to a limit."""
    good, step = 1.0, 2.0 if limit > 1 else 0.5
    while good != limit:
        far = min(good * step, limit) if limit > 1 else max(good * step, limit)
        if strain(far) > 1:
            break
        good = far
    else:
        return good
    while max(good / far, far / good) > _FINE:
        middle = math.sqrt(good * far)
        good, far = (middle, far) if strain(middle) <= 1 else (good, middle)
    return good


def _advice(release: Release, kernel: Kernel) -> str:
    """Return what to say of a kernel that the table cannot serve: the nearest one that it can."""
    strain = _strains(release, kernel)
    steps = np.arange(1, 1 + int(math.log2(_FARTHEST)))
    for step in steps.tolist():
        for power, word in ((step, "at least"), (-step, "at most")):
            near = 2.0**power
            if strain(near) <= 1:
                back = _edge(lambda m, near=near: strain(near * m), 1 / near)  # type: ignore[misc]
                nearest = kernel.scaled(near * back).bandwidth.to_json()
                told = _short(nearest, power > 0)
                needs = f"a {kernel.name} kernel needs a bandwidth of {word} {told} here"
                if isinstance(nearest, list):  # less may do in some columns
                    times = _short(near * back, power > 0)
                    needs = f"such a kernel would have to be {word} {times} times as wide, {told}"
                return (
                    f"this table cannot be read with {kernel!r}: it was made for "
                    f"{release.kernel!r} as {release.plan.layout.summary}, and {needs}"
                )
    return (
        f"this table cannot be read with a {kernel.name} kernel: it was made for "
        f"{release.kernel!r} as {release.plan.layout.summary}"
    )


def _short(value: float | list[float] | list[list[float]], up: bool) -> str:
    """Return numbers with three digits, rounded to the safe side."""
    if isinstance(value, list):
        return f"[{', '.join(_short(entry, up) for entry in value)}]"
    digits = 10.0 ** (2 - math.floor(math.log10(abs(value)))) if value else 1.0
    return f"{(math.ceil if up else math.floor)(value * digits) / digits:g}"
