"""Units: whose records are protected together, and how many of each may enter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dpkde.errors import ParameterError
from dpkde.privacy.amounts import ONE_RECORD, Unit
from dpkde.privacy.laws import Randomness
from dpkde.release.parts import Parts, UnitKey

if TYPE_CHECKING:
    from dpkde.planning.plan import Plan


@dataclass(frozen=True)
class Limit:
    """How many records of each unit enter, and the public key by which they are chosen."""

    unit: Unit
    key: int

    @property
    def records(self) -> int:
        """How many of each."""
        return self.unit.records

    @property
    def part(self) -> UnitKey:
        """What a plan's file says of the key."""
        return UnitKey(f"{self.key:016x}")


def check_apart(unit: Unit, columns: Sequence[str] | None) -> None:
    """Refuse to publish the column that tells whose a row is."""
    if unit.name is not None and columns is not None and unit.name in map(str, columns):
        raise ParameterError(
            f"column {unit.name!r} tells whose a row is, and is not one of those to publish as well"
        )


def limit_of(unit: Unit, seed: int | None, chance: Randomness | None = None) -> Limit | None:
    """Return the limit for a new plan, its key drawn or from the seed; None where rows are alone.

    The key is public, and privacy holds for every one.
    """
    if unit.name is None:
        return None
    if seed is None:
        return Limit(unit, (chance or Randomness()).public_bits(64))
    return Limit(unit, seed % (1 << 64))


def with_unit(plan: Plan, unit: Unit) -> Plan:
    """Return a plan that protects a unit; its key follows from the seed, which is public."""
    if unit in (ONE_RECORD, plan.unit):
        return plan
    if plan.unit != ONE_RECORD:
        raise ParameterError(f"this plan protects {plan.unit}, not {unit}")
    check_apart(unit, plan.columns)
    limit = limit_of(unit, plan.seed)
    assert limit is not None
    return replace(plan, unit=unit, parts=Parts([*plan.parts.values(), limit.part]))


def limit_under(plan: Plan) -> Limit | None:
    """Return the limit that a plan has fixed; None where it protects single records."""
    if plan.unit.name is None:
        return None
    part = plan.parts.of(UnitKey)
    return Limit(plan.unit, 0 if part is None else int(part.key, 16))
