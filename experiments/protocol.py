"""The paper's protocol: held-out queries, trials with independent seeds, the spread shown.

A mechanism is sketched once for a parameter and a seed, and asked at every ε with fresh noise.

**The paper's mechanisms** get what the paper gives them: n is public, all of ε goes to the table,
Laplace noise; each is later read off at its best parameter, which nobody could choose in practice.
**Ours** gets what a user gets: ``dpkde.publish`` with its defaults, a private count, the whole
budget counted; where it is a Fourier table its answers are assisted, and shown once more without
that. The paper's are sums of their tables, never assisted. No estimate is clipped to [0, 1],
neither theirs nor ours.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpkde
from dpkde import prior
from dpkde.curator.sketch import sketch
from dpkde.families.base import DEFAULT_CAPACITY_BITS, Family, Pair
from dpkde.planning.plan import Plan, make_frame
from dpkde.privacy.amounts import Amount, Bounds
from dpkde.privacy.laws import DiscreteLaplace, draw
from dpkde.space.domain import as_domain
from experiments.cache import Cache, Row
from experiments.data import Array, Task, exact_kde
from experiments.progress import tracked
from experiments.settings import Settings

BITS = 22
NO_NOISE = math.inf
"""ε of a family without its noise."""
MOST_CELLS = 1 << 21
"""Larger tables take longer to draw noise for than an experiment can wait; none is ever best."""
SAMPLE = 100
"""Records whose mean density NoisySample gives as its answer."""

RFF, FGT = "LSQ-RFF", "LSQ-FGT"
BERNSTEIN, TIGHT = "Bernstein", "Bernstein, tight"
SAMPLED, OURS = "NoisySample", "dpkde"
UNASSISTED = "dpkde, plain"
"""The same releases as ours, asked without their models, where they have some."""
PAPERS = (RFF, FGT)
PLAIN = "LSQ-FGT, plain"
"""With the noise of the paper's general bound, ρ^d, in place of the sharper one."""
SWEPT = (RFF, FGT, PLAIN)
"""What is shown over its computational budget; elsewhere the sharper bound stands for both."""


@dataclass(frozen=True)
class Lab:
    """What every experiment is given: how much to measure, and where measured rows are kept."""

    settings: Settings
    cache: Cache


def exactly(epsilon: float) -> Fraction:
    """Return ε as the decimal that was meant."""
    return Fraction(str(epsilon))


@dataclass(frozen=True, eq=False)
class Table:
    """Sums of a family over the points, which can be asked again and again with fresh noise."""

    pair: Pair
    sums: NDArray[np.int64]
    rows: int
    seconds: float
    bounds: Bounds

    @property
    def cells(self) -> int:
        """Numbers in a release."""
        return int(self.sums.size)

    def answer(self, queries: Array, epsilon: float) -> tuple[Array, float]:
        """Return estimates of the KDE, and how long the noise took."""
        start = time.perf_counter()
        noisy = self.sums.astype(np.float64)
        if epsilon != NO_NOISE:
            law = DiscreteLaplace.bought(Amount(epsilon=exactly(epsilon)), self.bounds)
            noisy += draw(law, self.cells)
        spent = time.perf_counter() - start
        return self.pair.respond(queries, noisy) / self.rows + self.pair.constant, spent

    def part(self, pair: Pair) -> Table:
        """Return the sums of the first features: those of a seed are the same whatever follows."""
        return Table(pair, self.sums[: pair.bounds.cells], self.rows, math.nan, pair.bounds)


def drawn(task: Task, family: Family, seed: int) -> Pair:
    """Return (f, g) of a family for a task."""
    frame = make_frame(task.kernel, as_domain(task.bounds), task.dim)
    return family.layout(frame).draw(BITS, seed)


def tabulate(task: Task, family: Family, seed: int = 0) -> Table:
    """Return the family's sums over the points, and the time it took to make them."""
    frame = make_frame(task.kernel, as_domain(task.bounds), task.dim)
    start = time.perf_counter()
    pair = family.layout(frame).draw(BITS, seed)
    plan = Plan(pair, DEFAULT_CAPACITY_BITS, seed)
    sums = sketch(task.points, plan)._table
    seconds = time.perf_counter() - start
    return Table(pair, sums, len(task.points), seconds, pair.bounds)


def warm(task: Task, family: Family) -> None:
    """Let loops be compiled on a few points, so that the first time taken is like the others."""
    tabulate(replace(task, points=task.points[:64]), family)


@dataclass(frozen=True)
class Mechanism:
    """One of the paper's mechanisms that publish a noisy table.

    Attributes
    ----------
    family
        From the parameter.
    grid
        Parameters to try, from the settings.
    is_random
        Whether the family has randomness of its own, so that each trial needs a sketch.
    widen
        The L1 bound that the noise is for, where it is not the family's own.
    """

    name: str
    family: Callable[[int], Family]
    grid: Callable[[Task, Settings], tuple[int, ...]]
    is_random: bool = False
    widen: Callable[[Bounds], Bounds] = field(default=lambda bounds: bounds)

    def obstacle(self, task: Task, parameter: int) -> str | None:
        """Return why it cannot be made, in the library's words; None if it can."""
        try:
            cells = drawn(task, self.family(parameter), 0).bounds.cells
        except dpkde.ParameterError as error:
            return str(error)
        return None if cells <= MOST_CELLS else f"{cells:,} cells: more than are made here"

    def tables(self, task: Task, parameters: tuple[int, ...], trial: int) -> Iterator[Table]:
        """Yield a table for each parameter; later trials of a random family make the largest."""
        if not self.is_random or trial == 0:
            for parameter in parameters:
                table = tabulate(task, self.family(parameter), trial)
                yield replace(table, bounds=self.widen(table.bounds))
            return
        largest = tabulate(task, self.family(max(parameters)), trial)
        for parameter in parameters:
            yield largest.part(drawn(task, self.family(parameter), trial))


def _features(task: Task, settings: Settings) -> tuple[int, ...]:
    return settings.features if task.is_low else settings.high_features


def _orders(task: Task, settings: Settings) -> tuple[int, ...]:
    # Order 1 is a histogram: of use to see where the best order lies, and no transform by itself.
    return tuple(order for order in settings.orders if task.is_low or order > 1)


def _every_node(bounds: Bounds) -> Bounds:
    """Return the L1 bound of the original: one per node, whatever the kernel."""
    return replace(bounds, l1=bounds.cells * bounds.linf)


MECHANISMS = (
    Mechanism(RFF, lambda m: dpkde.Fourier(m, form="phase"), _features, is_random=True),
    Mechanism(FGT, lambda rho: dpkde.FastGauss(rho), _orders),
    Mechanism(PLAIN, lambda rho: dpkde.FastGauss(rho, bound="product"), _orders),
    Mechanism(
        BERNSTEIN,
        lambda k: prior.Bernstein(k),
        lambda task, chosen: chosen.lattice_orders,
        widen=_every_node,
    ),
    Mechanism(TIGHT, lambda k: prior.Bernstein(k), lambda task, chosen: chosen.lattice_orders),
)


def epsilons_of(task: Task, settings: Settings) -> tuple[float, ...]:
    """Return the budgets at which a task is measured."""
    return settings.epsilons if task.is_low else settings.high_epsilons


def sweep(task: Task, lab: Lab) -> list[Row]:
    """Return errors of every mechanism at every parameter and ε, in every trial.

    Columns: data, mechanism, parameter, epsilon (infinity: without noise), trial, error (mean
    absolute error over queries), seconds (curator, NaN where not timed), cells (of the release).
    """
    settings, rows = lab.settings, []
    for key, measure in tracked(list(_pieces(task, settings)), f"{task.name}: errors"):
        asked = {"sweep": task.fingerprint, "data": task.name, **key}
        rows += lab.cache.rows(asked, measure)
    return rows


def compared(task: Task, lab: Lab) -> list[Row]:
    """Return the sweep without what is swept for the sake of its curve only.

    And without plain answers at an ε where only some of our releases have a model to leave out.
    """
    rows = [row for row in sweep(task, lab) if row["mechanism"] != PLAIN]
    ours, plain = (
        Counter(row["epsilon"] for row in rows if row["mechanism"] == name)
        for name in (OURS, UNASSISTED)
    )
    return [
        row
        for row in rows
        if row["mechanism"] != UNASSISTED or plain[row["epsilon"]] == ours[row["epsilon"]]
    ]


_Piece = tuple[dict[str, Any], Callable[[], list[Row]]]


def _pieces(task: Task, settings: Settings) -> Iterator[_Piece]:
    epsilons = (NO_NOISE, *epsilons_of(task, settings))
    trials = range(settings.trials)
    for mechanism in MECHANISMS:
        grid = mechanism.grid(task, settings)
        if mechanism.obstacle(task, min(grid)) is not None:
            continue
        grid = tuple(p for p in grid if mechanism.obstacle(task, p) is None)
        units = (
            [(grid, (trial,)) for trial in trials]
            if mechanism.is_random
            else [((parameter,), tuple(trials)) for parameter in grid]
        )
        for parameters, some in units:
            key = {
                "mechanism": mechanism.name,
                "parameters": parameters,
                "trials": some,
                "epsilons": epsilons,
            }

            def measure(
                mechanism: Mechanism = mechanism,
                parameters: tuple[int, ...] = parameters,
                some: tuple[int, ...] = some,
            ) -> list[Row]:
                return _of_tables(task, mechanism, parameters, some, epsilons)

            yield key, measure
    for trial in trials:
        for name, function in ((SAMPLED, _of_sample), (OURS, _of_ours)):
            own = {"mechanism": name, "trial": trial, "epsilons": epsilons[1:]}

            def one(function: Callable[..., list[Row]] = function, trial: int = trial) -> list[Row]:
                return function(task, trial, epsilons[1:])

            yield own, one


def _row(
    task: Task, name: str, parameter: float, epsilon: float, trial: int, answers: Array
) -> Row:
    return {
        "data": task.name,
        "mechanism": name,
        "parameter": parameter,
        "epsilon": epsilon,
        "trial": trial,
        "error": float(np.abs(answers - task.truth).mean()),
    }


def _of_tables(
    task: Task,
    mechanism: Mechanism,
    parameters: tuple[int, ...],
    trials: tuple[int, ...],
    epsilons: tuple[float, ...],
) -> list[Row]:
    rows = []
    warm(task, mechanism.family(parameters[0]))
    tables = mechanism.tables(task, parameters, trials[0])
    for parameter, table in zip(parameters, tables, strict=True):
        for trial in trials:
            for epsilon in epsilons:
                answers, spent = table.answer(task.queries, epsilon)
                row = _row(task, mechanism.name, parameter, epsilon, trial, answers)
                rows.append(row | {"seconds": table.seconds + spent, "cells": table.cells})
    return rows


def _of_sample(task: Task, trial: int, epsilons: tuple[float, ...]) -> list[Row]:
    """NoisySample; the exact mean is shared by all ε, as `prior.NoisySample` would find it."""
    start = time.perf_counter()
    size = min(SAMPLE, len(task.points))
    chosen = np.random.default_rng(trial).choice(len(task.points), size, replace=False)
    mean = exact_kde(task.points, task.points[chosen], task.bandwidth).mean()
    seconds = time.perf_counter() - start
    rows = []
    for epsilon in epsilons:
        law = DiscreteLaplace(Fraction(1 << 20) / exactly(epsilon))
        noise = float(draw(law, 1)[0]) / (1 << 20) / len(task.points)
        answers = np.full(len(task.queries), mean + noise)
        row = _row(task, SAMPLED, SAMPLE, epsilon, trial, answers)
        rows.append(row | {"seconds": seconds, "cells": 1})
    return rows


def _of_ours(task: Task, trial: int, epsilons: tuple[float, ...]) -> list[Row]:
    rows = []
    for epsilon in epsilons:
        start = time.perf_counter()
        release = publish(task, epsilon, trial)
        seconds = time.perf_counter() - start
        for name in (OURS,) if release.model is None else (OURS, UNASSISTED):
            answers = _asked(release, name, task.queries)
            row = _row(task, name, math.nan, epsilon, trial, answers)
            rows.append(row | {"seconds": seconds, "cells": release.table.size})
    return rows


def _asked(release: dpkde.Release, name: str, queries: Array) -> Array:
    """Return our answers, as by default or without the model."""
    return release.kde(queries, clip=False, assisted=False if name == UNASSISTED else None)


def publish(task: Task, epsilon: float, seed: int, family: str | Family = "auto") -> dpkde.Release:
    """Return our release of a task, with defaults."""
    return dpkde.publish(
        task.points,
        kernel=task.kernel,
        bounds=task.bounds,
        epsilon=exactly(epsilon),
        family=family,
        seed=seed,
    )


def noisy_answers(
    task: Task, name: str, parameter: int, epsilon: float, trial: int, queries: Array
) -> Array:
    """Return one release's estimates at other queries, by a mechanism at a parameter."""
    if name in (OURS, UNASSISTED):
        return _asked(publish(task, epsilon, trial), name, queries)
    mechanism = next(m for m in MECHANISMS if m.name == name)
    table = next(mechanism.tables(task, (parameter,), trial))
    return table.answer(queries, epsilon)[0]
