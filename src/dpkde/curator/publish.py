"""From private points to a public release: the stages, composed.

    points ─► count ─► noisy count ─► plan ─► sketch ─► noisy table ─► Release ─► its model
        ├───► pilot ─► noisy pilot ────┘                                  ▲
        └───► mean ──► noisy mean ────────────────────────────────────────┘

Every choice after the noisy count is made from it, from the pilot where that is paid for
(`dpkde.planning.pilot`), and from public numbers. Where the points can be
read only once, or the plan is given, the sketch comes first and the count is taken from it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from dpkde.curator.sketch import (
    WHOLE,
    Sketch,
    Summed,
    Totals,
    count_and_look,
    sketch,
    sketch_source,
    watched,
)
from dpkde.curator.units.limit import limited
from dpkde.errors import ParameterError, ReleaseWarning
from dpkde.families.base import DEFAULT_CAPACITY_BITS, NO_WORST, Family, Outlook, Table
from dpkde.families.fourier.middle import MEAN_SHARES, Middle
from dpkde.kernels import Kernel
from dpkde.planning.choice import Choice, Typical
from dpkde.planning.outlook import outlook
from dpkde.planning.pilot import Pilot, affordable
from dpkde.planning.pilots import draw_pilot
from dpkde.planning.plan import (
    Families,
    Plan,
    as_families,
    check_capacity,
    check_density,
    check_plan,
    check_room,
    check_rows,
    check_seed,
    check_switch,
    draw_plan,
    make_frame,
)
from dpkde.planning.promise import Promise, Setting, promise
from dpkde.planning.promised import Priced, Promised, Prospects, subsampling, too_few
from dpkde.planning.split import after_count, count_amount
from dpkde.planning.units import check_apart, limit_of
from dpkde.privacy.amounts import COUNT, Amount, Unit
from dpkde.privacy.budget import Budget, Guarantee, cheapest
from dpkde.privacy.laws import law_of_a_number, randomness
from dpkde.privacy.ledger.booking import LedgerLike, Reservation, page_of, reserving
from dpkde.privacy.numbers import Exact
from dpkde.privacy.secrecy import sealed
from dpkde.privacy.statement import PrivacyStatement
from dpkde.release.parts import NoisyMean, Part
from dpkde.release.release import Release, check_extras
from dpkde.release.troubles import Trouble, expected_rows_of, refuted
from dpkde.scale.settlement import Settlement
from dpkde.scale.wish import Ranges, Wish
from dpkde.space.domain import BoundsLike, as_domain, universe_of
from dpkde.space.frame import Frame
from dpkde.tables import PointsLike, Source, open_points
from dpkde.tables.arrays import check_names


@sealed
def publish(
    points: PointsLike | Sketch,
    *,
    kernel: Kernel | None = None,
    bounds: BoundsLike | Literal["private"] = None,
    ranges: Ranges | None = None,
    epsilon: Exact | None = None,
    delta: Exact = 0,
    rho: Exact | None = None,
    family: Families | None = "auto",
    adjacency: str = "add-remove",
    seed: int | None = None,
    expected_rows: int | None = None,
    typical_density: float | None = None,
    alpha: float | None = None,
    eta: float | None = None,
    simultaneous: bool = False,
    pilot: bool = True,
    plan: Plan | None = None,
    columns: Sequence[str] | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    capacity_bits: int = DEFAULT_CAPACITY_BITS,
    sampler: str = "dpkde",
    threads: int | None = None,
    extras: Mapping[str, Any] | None = None,
    ledger: LedgerLike | None = None,
    dataset: str | None = None,
    part: str | None = None,
    remark: str | None = None,
) -> Release:
    """Return a differentially private release of the density of private points.

    Parameters
    ----------
    points
        Array of shape (n_points, dim), dense or sparse, a data frame (pandas, polars, Arrow), the
        path of a CSV, Parquet or ``.npy`` file, a `CSV`, a list of rows, an iterable of arrays, or
        a `Sketch`; an iterable of sets where bounds are `Sets`. A row of another length than the
        others contributes nothing.
    kernel
        Such as ``dpkde.Gaussian(bandwidth=0.01)``. With ``bandwidth="auto"`` it is found privately:
        the one of least expected error of the release, per column; ``"scott"`` and ``"silverman"``
        are the usual rules. The page ``docs/bandwidth.md`` says how, and what it costs.
    bounds
        Public bounds: one (low, high) pair per column, a `Box`, `Ball`, `Sphere`, `Sets`, or None.
        ``"private"``: found privately. Of no column do they leave out more than a share of its
        records that the release tells (its part ``scale``), with probability 95%; these are moved
        onto the bounds. With enough records that is a per cent or two.
    ranges
        With private bounds: what is public of each column, a (low, high) pair, or None for nothing.
    epsilon, delta, rho
        The guarantee: exactly one of `epsilon` (with `delta`, if wanted) and `rho` (zCDP). Floats
        are rounded down; strings and fractions are exact.
    family
        ``"auto"``: the one of least predicted error; ``"spline"``, ``"fastgauss"``,
        ``"fourier"``, ``"hashing"``; a family with its parameters, such as
        ``dpkde.Spline(degree=3, spacing=0.5)``; or a list of some to choose among.
    adjacency
        ``"add-remove"``: the number of records is private. ``"replace"``: it is public.
    seed
        Of the family's public randomness. The noise has no seed.
    expected_rows
        A public guess of the number of records that count. It saves a pass over the points, and
        sets the share of the budget that the count gets: worth giving for small tables.
    typical_density
        A public guess of a typical answer, the mean KDE value at the records; steers accuracy, not
        privacy. What is chosen has the least expected error over a range around it. None: from 0.01
        to 0.25, or down to 0.002 where bounds are very wide against the bandwidth. At least what
        records spread evenly over the bounds would have is assumed.
    alpha, eta
        A promise: at any one query the error of `Release.kde` exceeds α with probability at most
        η, whatever the data. Family and parameters are then those of the least error that can be
        promised, in place of the least that is typical. AccuracyError where the noisy count is too
        small for it; the count's share of the budget is then spent.
    simultaneous
        True: the promise holds for all queries inside the bounds at once, however they are chosen.
    pilot
        False: no private look at the data before the plan. Otherwise, where the noisy count makes
        it worth it, two to four per cent of the budget are paid for how dense and smooth the
        data are; and one to five for a noisy mean, where a `Fourier` table in wide bounds is
        planned, for its model to begin with. There is none where the points are read only once
        (`expected_rows`, a plan, a sketch, a family with its parameters) or where something is
        promised.
    plan
        A plan made beforehand, in place of kernel, bounds, family and seed.
    columns
        Which columns of a named table, in this order; for arrays, the names of theirs. Kept in
        the release.
    unit, rows_per_unit
        Protect all the rows of somebody together: `unit` is the column that tells whose a row is,
        such as ``"patient_id"``, and `rows_per_unit` how many rows of each may count. Of who has
        more, a public key chooses so many; who has no id does not count. Noise grows in proportion
        to it. For tables that have columns with names; both or neither.
    capacity_bits
        Sums cannot wrap up to 2^capacity_bits records.
    sampler
        ``"dpkde"``, or ``"opendp"`` for OpenDP's reference samplers.
    threads
        How many threads; by default one per core.
    extras
        Public remarks to keep in the release, as JSON values under namespaced keys such as
        ``"org.example/contact"``.
    ledger
        A `Ledger`, or the path of one. The whole guarantee is reserved in it before anything is
        read; `BudgetError` where that is more than is left. The release carries its entry, and its
        first file is entered as written. AccuracyError, and every other refusal of dpkde's, reduces
        the entry to what was spent; after a crash it stays whole.
    dataset, part
        What the points are called in the ledger; the data set may be left out where there is only
        one. A part is one of those that were declared when it was made: the points are then all
        records of that part and no others.
    remark
        What the release is for, in the ledger. Public.

    Warns
    -----
    ReleaseWarning
        For each of the release's `Release.troubles`: far fewer records than expected, many of them
        at the bounds, noise above a typical answer, a bandwidth that is too small for it, ε above
        10. By noisy numbers and public settings alone. Where warnings are errors, the release is in
        the warning (``warning.release``): it is paid for.

    Guarantee
    ---------
    The release satisfies the declared guarantee for neighbouring `points`. What raises, warns or
    is logged depends on a value in the data or, under add-remove, on their number only through
    noisy numbers that were paid for. An empty table publishes like any other. Bounds and a
    bandwidth that are found are made from noisy histograms, each in the statement as ``scale`` or
    ``shape``.

    Notes
    -----
    Rows with a value that is not finite contribute nothing. Under add-remove they are not counted;
    under replace the count is the number of rows, whatever is in them. With a unit such rows are
    left out before its rows are chosen, and under replace the count is noised as well.

    Examples
    --------
    >>> import numpy as np
    >>> import dpkde
    >>> angle = np.arange(10_000.0)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> release = dpkde.publish(circle, kernel=dpkde.Gaussian(1.0), bounds=[(-4, 4)] * 2, epsilon=1)
    >>> abs(float(release.kde([0.0, 0.0])[0]) - 0.368) < 0.1
    True
    """
    whose = Unit.declare(unit, rows_per_unit)
    fixed = points.plan if isinstance(points, Sketch) else plan
    if fixed is not None:
        fixed = check_plan(fixed)
    guarantee = Guarantee.declare(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        adjacency=adjacency,
        unit=whose if fixed is None else fixed.unit,
    )
    errand = Errand(
        Budget(guarantee, randomness(sampler)),
        check_capacity(capacity_bits),
        check_rows(expected_rows),
        check_density(typical_density),
        threads,
        check_extras(extras),
        pilot=check_switch(pilot, "pilot"),
    )
    page = page_of(ledger, dataset, part, remark)
    promise(alpha, eta, simultaneous)  # what is wrong with it is said first
    if fixed is not None:
        settled = {
            "kernel": kernel,
            "bounds": bounds,
            "ranges": ranges,
            "family": None if family in (None, "auto") else family,
            "seed": seed,
            "columns": columns,
            "unit": unit,
            "rows_per_unit": rows_per_unit,
        }
        extra = [name for name, value in settled.items() if value is not None]
        if extra:
            raise ParameterError(f"already fixed by the plan: {', '.join(extra)}; leave that out")
        if plan is not None and plan != fixed:
            raise ParameterError("the sketch was made under another plan")
        asked = promise(alpha, eta, simultaneous, fixed.frame) or fixed.promise
        with reserving(page, errand.budget, "release") as reservation:
            errand = replace(errand, promise=asked, reservation=reservation)
            sums = points if isinstance(points, Sketch) else sketch(points, fixed, threads=threads)
            return _warned(_handed_on(publish_sketch(sums, errand), reservation))
    if kernel is None:
        raise ParameterError("kernel is needed, such as kernel=dpkde.Gaussian(bandwidth=0.1)")
    check_names(columns)
    check_apart(whose, columns)
    families = as_families("auto" if family is None else family)
    if (wish := Wish.of(kernel, bounds, ranges, columns)) is not None:
        if promise(alpha, eta, simultaneous) is not None:
            raise ParameterError(
                "alpha and eta go with bounds and a bandwidth in numbers: what is found privately "
                "is not known where an error is promised"
            )
        source = watched(open_points(points, columns, unit=whose.name))
        frame = wish.frame(source.dim, source.fallback_dim)
        check_room(wish.standin(frame.dim), source.columns, families)
        with reserving(page, errand.budget, "release") as reservation:
            errand = replace(errand, reservation=reservation)
            release = publish_open(source, wish, frame, families, errand, check_seed(seed))
            return _warned(_handed_on(release, reservation))
    domain = as_domain(bounds, columns)  # type: ignore[arg-type]
    source = open_points(points, columns, universe=universe_of(domain), unit=whose.name)
    source = watched(source)
    frame = make_frame(kernel, domain, source.dim, source.fallback_dim)
    check_room(frame, source.columns, families)
    asked = promise(alpha, eta, simultaneous, frame)
    with reserving(page, errand.budget, "release") as reservation:
        errand = replace(errand, promise=asked, reservation=reservation)
        release = publish_source(source, frame, families, errand, check_seed(seed))
        return _warned(_handed_on(release, reservation))


_UNTOLD: ContextVar[bool] = ContextVar("the caller tells troubles", default=False)


@contextmanager
def untold() -> Iterator[None]:
    """Leave it to the caller to tell the troubles of what is published inside."""
    token = _UNTOLD.set(True)
    try:
        yield
    finally:
        _UNTOLD.reset(token)


def _warned(release: Release) -> Release:
    """Return a release, with a warning for each of its troubles; see `dpkde.release.troubles`."""
    for trouble in () if _UNTOLD.get() else troubles_of(release):
        # at the line that called `publish`, which is sealed
        warnings.warn(ReleaseWarning(str(trouble), release, trouble), stacklevel=4)
    return release


def troubles_of(release: Release) -> tuple[Trouble, ...]:
    """Return the troubles of what was just published.

    Nothing that happens here may lose what is paid for: where it fails, there is none.
    """
    found: tuple[Trouble, ...] = ()
    with suppress(Exception, KeyboardInterrupt):
        found = release.troubles
    return found


def _handed_on(release: Release, reservation: Reservation | None) -> Release:
    """Return a release, having entered that the caller has it."""
    return release if reservation is None else reservation.handed_on(release)


@dataclass(frozen=True)
class Errand:
    """What is to be published, apart from the points and the frame: public decisions, and a budget.

    Attributes
    ----------
    budget
        Every debit is made here; it may be the caller's own.
    capacity_bits, expected_rows, typical_density, threads, extras
        As for `publish`.
    promise
        An error to promise, or None.
    pilot
        Whether some of the budget may be paid for a look before the plan.
    reservation
        Its entry in a ledger, or None.
    """

    budget: Budget
    capacity_bits: int = DEFAULT_CAPACITY_BITS
    expected_rows: int | None = None
    typical_density: float | None = None
    threads: int | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    promise: Promise | None = None
    pilot: bool = True
    reservation: Reservation | None = None

    def outlook(self, frame: Frame, rows: int | None) -> Outlook:
        """Return what is known in public, for so many rows."""
        # A promise covers the largest KDE values there can be.
        level = self.typical_density if self.promise is None else 1.0
        return outlook(self.budget, frame, rows, level, self.capacity_bits)

    @property
    def objective(self) -> Typical | Promised:
        """What layouts are compared by."""
        return Typical() if self.promise is None else Promised(self.promise)

    def prospects(self, choice: Choice, frame: Frame, promised: Promised) -> Prospects:
        """Return what can be foreseen of the promise, from all that the budget was."""
        whole, guess = self.budget.on_paper(), self.expected_rows
        return Prospects(choice, promised, frame, whole, self.capacity_bits, guess)


def publish_source(
    source: Source, frame: Frame, families: Sequence[Family], errand: Errand, seed: int | None
) -> Release:
    """Return a release of points that no plan was made for: count, split, plan, sketch, noise.

    Guarantee
    ---------
    Whatever is released is paid for in `errand.budget`, before noise is drawn.
    """
    choice = Choice.among(families, frame, errand.objective)
    if isinstance(choice.objective, Promised):
        errand.prospects(choice, frame, choice.objective).check_possible()
    settled = errand.expected_rows is not None or choice.is_settled
    chance = errand.budget.randomness
    limit = limit_of(errand.budget.guarantee.unit, seed, chance)
    if limit is not None:
        source = limited(source, frame, limit, errand.threads)
    first = errand.outlook(frame, errand.expected_rows)
    if settled:
        # Nothing waits for the count: the points are read once, and it comes with them.
        view = after_count(choice, errand.budget, first)
        plan = draw_plan(
            choice, view, seed=seed, columns=source.columns, limit=limit, chance=chance
        )
        plan = replace(plan, considered=())
        return publish_sketch(sketch_source(source, plan, errand.threads), errand)
    # The family's parameters wait for the noisy count: a pass of its own.
    if source.once:
        raise ParameterError(
            "these points can be read only once, so the family's parameters cannot wait for their "
            "count: give expected_rows=, a plan, or a family with its parameters set, such as "
            "frequencies="
        )
    pilot = None
    if errand.pilot and isinstance(choice.objective, Typical):
        pilot = draw_pilot(
            frame, errand.capacity_bits, chance.public_bits(128) if seed is None else seed
        )
    middle = Middle.of(frame, errand.capacity_bits) if _may_be_modelled(choice, errand) else None
    looks = [None if pilot is None else pilot.look, middle]
    totals, taken = count_and_look(
        source, frame, [look for look in looks if look is not None], errand.threads
    )
    count = _noisy_count(totals, choice, first, errand)
    view = errand.outlook(frame, count)
    if pilot is not None:
        view = _looked(pilot, taken[0], choice, view, errand)
    plan = draw_plan(choice, view, seed=seed, columns=source.columns, limit=limit, chance=chance)
    parts = [] if middle is None else _located(middle, taken[-1], plan, count, errand)
    rate = _kept(errand, choice, plan, count)
    sums = sketch_source(source, plan, errand.threads, rate)
    return _noised(sums, count, errand, rate, parts)


def publish_open(
    source: Source,
    wish: Wish,
    frame: Frame,
    families: Sequence[Family],
    errand: Errand,
    seed: int | None,
) -> Release:
    """Return a release whose bounds or bandwidth are found: count, scale, plan, sketch, noise.

    `frame` is that in which records are looked at.

    Guarantee
    ---------
    Whatever is released is paid for in `errand.budget`, before noise is drawn. Bounds, bandwidth
    and plan are made from noisy numbers and public ones: ``scale/proof.md`` has the argument.
    """
    if source.once:
        raise ParameterError(
            "these points can be read only once, and bounds or a bandwidth that are found need "
            "several passes: give a file, an array or a table, or both as numbers"
        )
    chance = errand.budget.randomness
    limit = limit_of(errand.budget.guarantee.unit, seed, chance)
    if limit is not None:
        source = limited(source, frame, limit, errand.threads)
    standin = wish.standin(frame.dim)
    choice = Choice.among(families, standin, errand.objective)
    search = wish.search(frame)
    totals, (sums,) = count_and_look(source, frame, [search.first], errand.threads)
    count = _noisy_count(totals, choice, errand.outlook(standin, errand.expected_rows), errand)

    def taken(look: Summed) -> Table:
        return count_and_look(source, frame, [look], errand.threads)[1][0]

    settled = Settlement(wish, families, errand.budget, errand.capacity_bits, count)
    scale = settled.covered(search.run(sums, errand.budget, count, taken))
    found, density = settled.found(scale, frame)
    guess = errand.typical_density if errand.typical_density is not None else density
    view = outlook(errand.budget, found, count, guess, errand.capacity_bits)
    choice = Choice.among(families, found, errand.objective)
    plan = draw_plan(choice, view, seed=seed, columns=source.columns, limit=limit, chance=chance)
    sums_ = sketch_source(source, plan, errand.threads)
    return _noised(sums_, count, errand, parts=[settled.part(scale)])


def publish_sketch(sums: Sketch, errand: Errand) -> Release:
    """Return a release of a sketch, whose plan is fixed: count, noise."""
    plan = sums.plan
    choice = Choice((plan.layout,), (), errand.objective)
    view = errand.outlook(plan.frame, errand.expected_rows)
    count = _noisy_count(Totals(sums._count, sums._rows), choice, view, errand)
    _kept(errand, choice, plan, count)
    return _noised(sums, count, errand)


def _noisy_count(totals: Totals, choice: Choice, view: Outlook, errand: Errand) -> int:
    """Return the number of rows where it is public; else spend its share, and return it noisy."""
    budget, amount = errand.budget, None
    if not budget.guarantee.count_is_public:
        amount = count_amount(choice, budget, view)
    return noisy_count(totals, budget, amount)


def _looked(pilot: Pilot, sums: Table, choice: Choice, view: Outlook, errand: Errand) -> Outlook:
    """Return the outlook with what the pilot leaves of its range; unchanged where it does not pay.

    Guarantee
    ---------
    Whether it is paid for hangs on public numbers and the noisy count. The sums are read once,
    after the debit, with noise.
    """
    budget = errand.budget
    offer = pilot.worthwhile(choice, budget, view)
    if offer is None:
        return view
    spend = budget.spend("pilot", offer.amount, offer.law, offer.bounds)
    noisy = budget.noised(spend, sums[pilot.cells(offer)])
    guesses = pilot.range(noisy, offer, view.rows, errand.typical_density)
    middle = guesses[len(guesses) // 2]
    return replace(
        view,
        typical_density=middle.density,
        smoothness=middle.smoothness,
        range=guesses,
        options=budget.options,
    )


def _may_be_modelled(choice: Choice, errand: Errand) -> bool:
    """Tell whether a model may be fitted to what is published, by public numbers."""
    if not errand.pilot or not isinstance(choice.objective, Typical):
        return False
    return any(layout.can_be_modelled for layout in choice.layouts)


def _located(
    middle: Middle, sums: Table, plan: Plan, count: int, errand: Errand
) -> list[NoisyMean]:
    """Return a noisy mean for a model to begin with, where that is near enough to be worth it.

    Guarantee
    ---------
    Whether it is paid for hangs on public numbers, the noisy count and the plan. The sums are read
    once, after the debit, with noise.
    """
    budget = errand.budget
    if not plan.layout.can_be_modelled:
        return []
    for share in MEAN_SHARES:
        price = middle.price(affordable(budget, share), count, budget.guarantee)
        if price is not None:
            spend = budget.spend("mean", price.amount, price.law, middle.bounds)
            noisy = budget.noised(spend, sums)
            return [NoisyMean(middle.mean(noisy, count))]
    return []


def noisy_count(totals: Totals, budget: Budget, amount: Amount | None) -> int:
    """Return the number of records, at least 1: exact where it is public, else noisy, paid first.

    `amount` may be None where the number of rows is public.
    """
    if budget.guarantee.count_is_public:
        return max(totals.rows, 1)
    assert amount is not None
    spend = budget.spend("count", amount, law_of_a_number(amount), COUNT)
    exact = np.array([totals.records % (1 << 64)], dtype=np.uint64).view(np.int64)
    return max(int(budget.noised(spend, exact)[0]), 1)


def _kept(errand: Errand, choice: Choice, plan: Plan, count: int) -> Fraction:
    """Return the rate at which records may enter; AccuracyError where a promise cannot be kept.

    From public numbers and the noisy count alone, before the table's share is spent.
    """
    objective, budget = choice.objective, errand.budget
    if not isinstance(objective, Promised):
        return WHOLE
    worst = plan.layout.worst(plan.bits)
    if worst is None:
        raise ParameterError(NO_WORST.format(plan.family.name))
    law = cheapest(budget.options, budget.guarantee.moved(plan.pair.bounds))[2]
    entry = Priced(plan.layout, plan.pair.bounds.cells, law, worst)
    spent = budget.spent_on("count")
    setting = Setting(count, None if spent is None else spent.law, constant=plan.pair.constant)
    least = objective.bound(entry, setting)
    if least > objective.promise.alpha:
        raise too_few(errand.prospects(choice, plan.frame, objective), count, least, spent)
    seconds = plan.prediction.seconds if plan.prediction is not None else 0.0
    return subsampling(entry, setting, objective, seconds)


def _noised(
    sums: Sketch,
    count: int,
    errand: Errand,
    rate: Fraction = WHOLE,
    parts: Sequence[Part] = (),
) -> Release:
    """Spend what is left on the table, and assemble the release."""
    plan, budget = sums.plan, errand.budget
    bounds = plan.pair.bounds
    amount, law, _ = cheapest(budget.options, budget.guarantee.moved(bounds))
    spend = budget.spend("table", amount, law, bounds)
    table = budget.noised(spend, sums._table)
    statement = PrivacyStatement(budget.guarantee, budget.spends)
    paid = errand.reservation
    counted = budget.spent_on("count")
    guess = expected_rows_of(errand.expected_rows, plan)
    parts = [*parts, *refuted(guess, count, None if counted is None else counted.law)]
    release = Release(
        plan,
        table,
        count,
        statement,
        release_id=budget.randomness.public_name() if paid is None else paid.release_id,
        extras=errand.extras,
        promise=errand.promise,
        rate=rate,
        parts=parts if paid is None else [*parts, *paid.parts],
    )
    try:
        return release.with_model()  # from what is public by now
    except KeyboardInterrupt:  # it ends the fit, and not what is paid for
        return release
