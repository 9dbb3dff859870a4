"""Plans: everything that is fixed in public before a sketch is made.

A `Plan` is frozen and is a file. It holds the frame (kernel, domain, dimension), the family with
all parameters set and its randomness drawn, and the lattice. Whoever has the same plan makes
sketches that can be merged, bit for bit.

`plan` reads no data: it chooses from the caller's public guess of the number of records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

from numpy.typing import NDArray

from dpkde.errors import FormatError, ParameterError
from dpkde.families.base import (
    DEFAULT_CAPACITY_BITS,
    Family,
    Layout,
    Outlook,
    Pair,
    Prediction,
    Tensors,
)
from dpkde.families.registry import FAMILIES, family_from_json
from dpkde.kernels import Kernel, kernel_from_json
from dpkde.numerics.numbers import is_real, is_whole
from dpkde.planning.choice import Candidate, Choice, Typical
from dpkde.planning.outlook import LEAST_DENSITY, outlook
from dpkde.planning.pilots import draw_pilot
from dpkde.planning.promise import Promise, promise, promise_from_json
from dpkde.planning.promised import Promised, Prospect, Prospects, prospect
from dpkde.planning.split import after_count
from dpkde.planning.units import Limit, check_apart, limit_of
from dpkde.privacy.amounts import ONE_RECORD, Unit
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.privacy.laws import Randomness, randomness
from dpkde.privacy.numbers import Exact
from dpkde.release import container
from dpkde.release.files import Filed, Opened
from dpkde.release.parts import NO_PARTS, DeclaredBounds, Part, Parts
from dpkde.scale.wish import Ranges, Wish
from dpkde.space.domain import BoundsLike, Domain, as_domain, domain_from_json
from dpkde.space.frame import Frame, check_kernel
from dpkde.tables.arrays import check_names

MOST_AXES = 1 << 20
"""Most columns that a file may declare."""
_FAMILY = "family."
_FIELDS = {"kernel", "domain", "family", "lattice", "seed", "columns", "promise", "unit", "parts"}


@dataclass(frozen=True, eq=False)
class Plan(Filed):
    """The public half of a mechanism, frozen. Make one with `dpkde.plan`.

    Attributes
    ----------
    pair
        The drawn (f, g), with its layout: family, frame and every parameter.
    capacity_bits
        Sums are kept modulo 2⁶⁴; up to 2^capacity_bits records they cannot wrap.
    seed
        Where the public randomness came from.
    columns
        Names of the columns, if they have any.
    considered
        The families that were compared, the chosen one first, with the errors to expect; empty
        where the number of records was neither guessed nor known.
    promise
        The (α, η) that it was made for, if any; what is published under it keeps that or refuses.
    promised
        What can be promised: how many records it takes. Only in a plan just made.
    pilot
        The share of the budget that `publish` would pay for a look at the data before the plan, if
        it counts them itself; None: it would not look. Only in a plan just made.
    expected_rows
        The public guess of the number of records that it was made for. Only in a plan just made.
    unit
        Whose records are protected together.
    parts
        What else its file holds, by name, such as column types; see `dpkde.release.parts`.
    """

    FORMAT: ClassVar[str] = "dpkde-plan"

    pair: Pair
    capacity_bits: int
    seed: int
    columns: tuple[str, ...] | None = None
    considered: tuple[Candidate, ...] = ()
    promise: Promise | None = None
    promised: Prospect | None = None
    pilot: Fraction | None = None
    unit: Unit = ONE_RECORD
    parts: Parts = NO_PARTS
    expected_rows: int | None = None

    def __post_init__(self) -> None:
        if noisy := [name for name, part in self.parts.items() if part.follows_noise]:
            raise ParameterError(f"a plan is made before any noise: it has no part {noisy[0]!r}")
        self.parts.check(self)

    @property
    def layout(self) -> Layout:
        """The family in its frame, with every parameter set."""
        return self.pair.layout

    @property
    def frame(self) -> Frame:
        """Kernel, domain and dimension."""
        return self.pair.frame

    @property
    def family(self) -> Family:
        """The family, with every parameter set."""
        return self.layout.family

    @property
    def prediction(self) -> Prediction | None:
        """The error to expect, where the number of records was guessed or known."""
        return self.considered[0].prediction if self.considered else None

    @property
    def bits(self) -> int:
        """Bits after the binary point of the lattice."""
        return self.pair.bits

    @cached_property
    def document(self) -> dict[str, Any]:
        """What a file says of this plan, apart from its tensors."""
        return {
            "kernel": {
                "name": self.frame.kernel.name,
                "version": self.frame.kernel.version,
                "parameters": self.frame.kernel.to_json(),
            },
            "domain": {
                "kind": self.frame.domain.kind,
                "dim": self.frame.dim,
                "parameters": self.frame.domain.to_json(),
            },
            "family": {
                "name": self.family.name,
                "version": self.family.version,
                "parameters": self.family.to_json(),
            },
            "lattice": {"bits": self.bits, "capacity_bits": self.capacity_bits},
            "seed": str(self.seed),
            "columns": None if self.columns is None else list(self.columns),
            # Plans without these are described as they were before there were any.
            **({} if self.promise is None else {"promise": asdict(self.promise)}),
            **({} if self.unit == ONE_RECORD else {"unit": asdict(self.unit)}),
            **({"parts": self.parts.to_json()} if self.parts else {}),
        }

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """Its tensors, as they are called in sketches, releases and plans of version 2."""
        own = {_FAMILY + name: array for name, array in self.pair.tensors.items()}
        return own | self.parts.to_tensors()

    @cached_property
    def digest(self) -> str:
        """A fingerprint: sketches merge if and only if it is the same."""
        tensors = {**self.pair.tensors, **self.parts.to_tensors()}
        return container.digest(container.canonical(self.document), tensors)

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.frame.kernel

    @property
    def domain(self) -> Domain:
        """Which points are allowed."""
        return self.frame.domain

    @property
    def dim(self) -> int:
        """Number of columns."""
        return self.frame.dim

    @property
    def format_version(self) -> int:
        """The version of its file: 2 where it has parts, or a unit of its own."""
        return 2 if self.parts or self.unit != ONE_RECORD else 1

    def _described(self) -> container.Contents:
        tensors = dict(self.pair.tensors) if self.format_version == 1 else self.tensors
        return {"plan": self.document}, tensors

    @classmethod
    def _rebuilt(cls, opened: Opened) -> Plan:
        opened.expect(opened.document, {"format", "format_version", "plan"})
        if opened.version == 1:  # all tensors are the family's
            opened.tensors = {_FAMILY + name: array for name, array in opened.tensors.items()}
        return opened_plan(opened)

    def __eq__(self, other: object) -> bool:
        # Bounds of a caller's family come from its code, which the digest does not see.
        return (
            isinstance(other, Plan)
            and self.digest == other.digest
            and self.pair.bounds == other.pair.bounds
        )

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        expectation = f", predicted error {self.prediction.error:.2g}" if self.prediction else ""
        if self.promise is not None:
            expectation += f", for α = {self.promise.alpha:g} at η = {self.promise.eta:g}"
        return (
            f"<Plan: {describe(self)}, {self.pair.bounds.cells} cells on a 2^-{self.bits} "
            f"lattice{protecting(self)}{expectation}>"
        )


def describe(plan: Plan) -> str:
    """Return kernel, family and dimension in a few words."""
    kernel = plan.frame.kernel
    return (
        f"{kernel.name} σ={kernel.bandwidth!r}, {plan.layout.summary}, "
        f"{plan.frame.domain.kind}, d={plan.frame.dim}"
    )


def protecting(plan: Plan) -> str:
    """Return whom a plan protects, where that is not one record."""
    return "" if plan.unit == ONE_RECORD else f", for {plan.unit}"


def opened_plan(opened: Opened) -> Plan:
    """Return the plan that a plan's, a sketch's or a release's file describes."""
    entry = opened.document.get("plan")
    if not isinstance(entry, dict):
        raise FormatError("this file has no plan")
    opened.expect(entry, _FIELDS)
    drawn = opened.under(_FAMILY)
    plan = plan_from_json(entry, drawn, opened.families, opened.kernels)
    if opened.version > 1:
        unit = Unit.from_json(entry["unit"]) if "unit" in entry else ONE_RECORD
        plan = replace(plan, unit=unit, parts=opened.parts(entry))
    return plan


def plan_from_json(
    document: Any,
    tensors: Tensors,
    families: tuple[type[Family], ...] = (),
    kernels: tuple[type[Kernel], ...] = (),
) -> Plan:
    """Rebuild a plan from a file's document and the tensors of its family."""
    try:
        kernel = kernel_from_json(
            str(document["kernel"]["name"]),
            int(document["kernel"]["version"]),
            document["kernel"]["parameters"],
            kernels,
        )
        domain = domain_from_json(str(document["domain"]["kind"]), document["domain"]["parameters"])
        dim = document["domain"]["dim"]
        if type(dim) is not int or not 1 <= dim <= MOST_AXES:
            raise ValueError
        family = family_from_json(
            str(document["family"]["name"]),
            int(document["family"]["version"]),
            document["family"]["parameters"],
            dim,
            families,
        )
        bits, capacity = document["lattice"]["bits"], document["lattice"]["capacity_bits"]
        seed, columns = int(document["seed"]), document["columns"]
        if not all(type(v) is int for v in (bits, capacity)):
            raise TypeError
        if columns is not None:
            columns = tuple(str(name) for name in columns)
            if len(columns) != dim:
                raise ValueError
        least, most = family.lattice_bits
        if not (least <= bits <= most and 0 <= capacity <= 62 and seed >= 0):
            raise ValueError
    except FormatError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError):
        raise FormatError("the plan in this file is damaged") from None
    try:
        frame = Frame.of(kernel, domain, dim)
        promised = promise_from_json(document.get("promise"), frame)
        layout = family.layout(frame)
        if layout.family.to_json() != family.to_json():
            raise FormatError(f"the {family.name} family of this file lacks parameters")
        pair = layout.restore(bits, tensors)
    except FormatError:
        raise
    except (ArithmeticError, MemoryError, TypeError, ValueError) as error:
        raise FormatError(f"the plan in this file is damaged: {error}") from None
    return Plan(pair, capacity, seed, columns, promise=promised)


Families = str | Family | Sequence[str | Family]
"""What a caller may give for families: ``"auto"``, one of them, or some to choose among."""


def as_families(family: Families) -> tuple[Family, ...]:
    """Return the families that a caller means: one, by name or instance, some, or all."""
    if isinstance(family, (list, tuple)) and family:
        return tuple(one for each in family for one in as_families(each))
    if isinstance(family, Family):
        return (family,)
    if isinstance(family, type) and issubclass(family, Family):
        raise ParameterError(f"family must be an instance: write {family.__name__}()")
    if family == "auto":
        return tuple(kind() for kind in FAMILIES.values())
    if not isinstance(family, str) or family not in FAMILIES:
        raise ParameterError(
            f"family must be 'auto', {', '.join(map(repr, FAMILIES))} or a family, got {family!r}"
        )
    return (FAMILIES[family](),)


def check_density(value: float | None) -> float | None:
    """Check a guess of a typical KDE value."""
    if value is None:
        return None
    if not is_real(value) or not LEAST_DENSITY <= value <= 1:
        raise ParameterError(
            f"typical_density is a guess of a typical KDE value, from {LEAST_DENSITY:g} to 1, got "
            f"{value!r}"
        )
    return float(value)


def check_capacity(bits: int) -> int:
    """Check a declared capacity of 2^bits records."""
    if not is_whole(bits) or not 1 <= bits <= 47:
        raise ParameterError(f"capacity_bits must be from 1 to 47, got {bits!r}")
    return int(bits)


def check_rows(value: int | None) -> int | None:
    """Check a public guess of the number of records."""
    if value is None:
        return None
    if not is_real(value) or not 1 <= value < 2**62 or value != int(value):
        raise ParameterError(
            f"expected_rows is a public guess of n, a whole number from 1 to 2^62, got {value!r}"
        )
    return int(value)


def check_switch(value: bool, name: str) -> bool:
    """Check what is to be on or off."""
    if not isinstance(value, bool):
        raise ParameterError(f"{name} must be True or False, got {value!r}")
    return value


def check_seed(seed: int | None) -> int | None:
    """Check a seed of the family's public randomness."""
    if seed is not None and (not is_whole(seed) or seed < 0):
        raise ParameterError(f"seed must be a whole number, at least 0, got {seed!r}")
    return seed


def draw_plan(
    choice: Choice,
    view: Outlook,
    *,
    seed: int | None,
    columns: Sequence[str] | None,
    limit: Limit | None = None,
    chance: Randomness | None = None,
) -> Plan:
    """Take the best layout, draw the public randomness, by `chance` if it is given, and freeze."""
    considered = choice.rank(view)
    layout = considered[0].layout
    assert layout is not None  # the first one can serve
    if seed is None:
        bits = (chance or Randomness()).public_bits
        seed = bits(128) if layout.family.is_random else 0
    names = None if columns is None else tuple(str(name) for name in columns)
    check_width(names, layout.frame.dim)
    pair = layout.draw(layout.lattice(view), int(seed))
    known = FAMILIES.get(layout.family.name) is type(layout.family)
    parts: list[Part] = [] if known else [DeclaredBounds.of(pair.bounds)]
    unit = ONE_RECORD
    if limit is not None:
        unit, parts = limit.unit, [*parts, limit.part]
    return Plan(
        *(pair, view.capacity_bits, int(seed), names, considered),
        unit=unit,
        parts=Parts(parts),
    )


def plan(
    *,
    kernel: Kernel,
    bounds: BoundsLike | Literal["private"] = None,
    ranges: Ranges | None = None,
    epsilon: Exact | None = None,
    delta: Exact = 0,
    rho: Exact | None = None,
    family: Families = "auto",
    adjacency: str = "add-remove",
    seed: int | None = None,
    expected_rows: int | None = None,
    typical_density: float | None = None,
    alpha: float | None = None,
    eta: float | None = None,
    simultaneous: bool = False,
    pilot: bool = True,
    dim: int | None = None,
    columns: Sequence[str] | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    capacity_bits: int = DEFAULT_CAPACITY_BITS,
    sampler: str = "dpkde",
) -> Plan:
    """Return a plan, made from public numbers. Reads no data and spends nothing.

    Parameters are those of `dpkde.publish`; `expected_rows` is a public guess of the number of
    records (with `alpha` and `eta` it may be left out: the plan is then for as many as the promise
    needs, ``plan.promised.rows``), `dim` the number of columns where neither bounds nor bandwidth
    tell it, and 2^capacity_bits the number of records up to which sums cannot wrap. ``plan.pilot``
    tells whether `dpkde.publish` would look at the data first, which it can where it counts them
    itself; what is predicted here is without. Of bounds and a bandwidth that are to be found it
    raises a ParameterError that says what `dpkde.publish` would pay for them.

    >>> from dpkde import Gaussian
    >>> plan(kernel=Gaussian(0.1), bounds=[(0, 1), (0, 1)], epsilon=1, expected_rows=100_000)
    ... # doctest: +ELLIPSIS
    <Plan: gaussian σ=0.1, spline ... (degree ...), box, d=2, ... cells ..., predicted error ...>
    """
    whose = Unit.declare(unit, rows_per_unit)
    guarantee = Guarantee.declare(
        epsilon=epsilon, delta=delta, rho=rho, adjacency=adjacency, unit=whose
    )
    density, rows = check_density(typical_density), check_rows(expected_rows)
    guess = rows
    check_names(columns)
    check_apart(whose, columns)
    if (wish := Wish.of(kernel, bounds, ranges, columns)) is not None:
        budget = Budget(guarantee, randomness(sampler))
        raise ParameterError(
            f"a plan is made of numbers, and {wish.told(dim, budget, rows)}: leave the plan out, "
            "or give bounds and a bandwidth as numbers"
        )
    frame = make_frame(kernel, as_domain(bounds, columns), dim)  # type: ignore[arg-type]
    families = as_families(family)
    names = None if columns is None else tuple(str(name) for name in columns)
    check_room(frame, names, families)
    capacity = check_capacity(capacity_bits)
    budget = Budget(guarantee, randomness(sampler))
    asked, promised = promise(alpha, eta, simultaneous, frame), None
    objective = Typical() if asked is None else Promised(asked)
    choice = Choice.among(families, frame, objective)
    if isinstance(objective, Promised):
        density = 1.0
        promised = prospect(Prospects(choice, objective, frame, budget, capacity, rows), rows)
        rows = rows or promised.rows
    if rows is None and not choice.is_settled:
        raise ParameterError(
            "expected_rows is needed to choose the family's parameters: a public guess of the "
            "number of records"
        )
    view = after_count(choice, budget, outlook(budget, frame, rows, density, capacity))
    limit = limit_of(whose, check_seed(seed))
    chosen = draw_plan(choice, view, seed=seed, columns=names, limit=limit)
    if check_switch(pilot, "pilot") and rows is not None and not choice.is_settled:
        look = draw_pilot(frame, capacity, 0)
        offer = None if look is None else look.worthwhile(choice, budget, view)
        chosen = replace(chosen, pilot=None if offer is None else offer.share)
    if rows is None:
        chosen = replace(chosen, considered=())  # nothing is foreseen of a number nobody guessed
    return replace(chosen, promise=asked, promised=promised, expected_rows=guess)


def check_plan(plan: Any) -> Plan:
    """Check that a plan is one, and not the path of its file."""
    if not isinstance(plan, Plan):
        raise ParameterError("plan must be a Plan; read one from a file by dpkde.Plan.load(path)")
    if plan.unit.name is None and plan.unit != ONE_RECORD:
        raise ParameterError(
            f"this plan protects {plan.unit}, and no column tells whose a record is: make a plan "
            "with unit="
        )
    return plan


def check_room(frame: Frame, columns: Sequence[str] | None, families: Sequence[Family]) -> None:
    """Refuse what no file could describe, before anything is spent on it."""
    check_width(columns, frame.dim)
    parameters = [family.to_json() for family in families]
    container.check_room(frame.kernel.to_json(), frame.domain.to_json(), columns, parameters)


def check_width(columns: Sequence[str] | None, dim: int) -> None:
    """Refuse another number of names than there are columns."""
    if columns is not None and len(columns) != dim:
        raise ParameterError(f"{len(columns)} column names for {dim} columns")


def make_frame(
    kernel: Kernel, domain: Domain, dim: int | None, fallback_dim: int | None = None
) -> Frame:
    """Check the kernel and build the frame; `fallback_dim` counts where nothing tells the width."""
    check_kernel(kernel)
    return Frame.of(kernel, domain, dim, fallback_dim)
