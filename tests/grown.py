"""One of each kind of file that needs version 2, as later versions of dpkde will make them.

Run as a program it writes the golden files of version 2; their noise makes them different each
time, so that is done once.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import dpkde
from dpkde.prior import SyntheticRelease
from dpkde.privacy.amounts import COUNT, Amount, Bounds, Unit
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.privacy.laws import DiscreteLaplace, Exponential, Law, draw
from dpkde.privacy.statement import PrivacyStatement
from dpkde.release.parts import ColumnTypes, LedgerEntry, Part, Parts, UnknownPart

GOLDEN = Path(__file__).parent / "release" / "golden"
PATIENT = Unit("patient_id", 8)
TILES = UnknownPart(
    "org.example/tiles", 3, {"zoom": [1, 2], "note": None}, {"grid": np.arange(6, dtype=np.int32)}
)
MODEL = UnknownPart(
    "org.example/model", 2, {"penalty": 0.5}, {"coefficients": np.array([0.25, -1.0])}
)
LEDGER = LedgerEntry("0f" * 16, 7, "ab" * 32)
TYPES = ColumnTypes(("number", "date"))  # type: ignore[arg-type]
HISTOGRAM = Bounds(cells=64, l1=1, l2_squared=1, linf=1, nonnegative=True)
_TENTH = Amount(epsilon=Fraction(1, 10))


def plain_plan() -> dpkde.Plan:
    """Return a plan that version 1 suffices for."""
    return dpkde.plan(
        kernel=dpkde.Gaussian([0.7, 2.0]),
        bounds=[(-2, 2), (0, 3)],
        epsilon=1,
        family=dpkde.Fourier(4),
        columns=["lon", "day"],
        seed=5,
    )


def grown_plan(unit: Unit = PATIENT, *parts: Part) -> dpkde.Plan:
    """Return a plan with a unit and parts, one of them unknown and with a tensor."""
    return replace(plain_plan(), unit=unit, parts=Parts(parts or (TYPES, TILES)))


def grown_sketch() -> dpkde.Sketch:
    """Return a sketch under that plan."""
    points = np.arange(40.0).reshape(20, 2) % 3
    return dpkde.Sketch(grown_plan(), dpkde.sketch(points, plain_plan())._table, 20, 20)


def statement(
    plan: dpkde.Plan,
    *,
    law: type[Law] = DiscreteLaplace,
    adjacency: str = "add-remove",
    records: int | None = None,
    **guarantee: Any,
) -> PrivacyStatement:
    """Return a statement with spends for a histogram and a choice, before count and table."""
    unit = plan.unit if records is None else replace(plan.unit, records=records)
    declared = Guarantee.declare(**(guarantee or {"epsilon": 1}), adjacency=adjacency, unit=unit)
    budget = Budget(declared)
    budget.spend("histogram lon", _TENTH, DiscreteLaplace, HISTOGRAM)
    budget.select("bandwidth", _TENTH, Exponential, unit.records)
    if not declared.count_is_public:
        budget.spend("count", _TENTH, DiscreteLaplace, COUNT)
    left = budget.left_pure() if law.paid_in == "epsilon" else budget.left_concentrated()
    assert left is not None
    budget.spend("table", left, law, plan.pair.bounds)
    return PrivacyStatement(replace(declared, unit=plan.unit), budget.spends)


def grown_release() -> dpkde.Release:
    """Return a release of that sketch, with a reference to a ledger and an unknown part."""
    sketch = grown_sketch()
    privacy = statement(sketch.plan)
    law = privacy.spends[-1].law
    assert isinstance(law, Law)
    table = sketch._table + draw(law, len(sketch._table))
    return dpkde.Release(sketch.plan, table, 20, privacy, parts=(LEDGER, MODEL))


def grown_synthetic() -> SyntheticRelease:
    """Return a synthetic release with parts."""
    budget = Budget(Guarantee.declare(epsilon=1))
    budget.select("synthetic data set", Amount(epsilon=Fraction(1)), Exponential, 8 << 16)
    return SyntheticRelease(
        np.array([[0.0, 1.0], [2.0, 3.0]]),
        np.array([0.25, 0.75]),
        dpkde.Gaussian(0.5),
        PrivacyStatement(budget.guarantee, budget.spends),
        "smalldb",
        parts=Parts((LEDGER, TILES)),
    )


GROWN: dict[str, Any] = {
    "plan": grown_plan,
    "sketch": grown_sketch,
    "release": grown_release,
    "synthetic": grown_synthetic,
}

if __name__ == "__main__":
    for name, make in GROWN.items():
        make().save(GOLDEN / f"{name}-v2.dpkde")
