"""A check in words. Not private."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpkde.nonprivate.census import Census

if TYPE_CHECKING:
    from dpkde.nonprivate.check import Check


EYES = "for the curator's eyes only: exact figures of the table, not private, not to be passed on"


def told(check: Check) -> str:
    """Return what a person reads of a check."""
    parts = (_rows(check.rows), _columns(check.rows), _units(check.rows), _errors(check))
    return "\n".join([EYES, "", *(line for part in parts for line in part)])


def _share(part: int, whole: int) -> str:
    return f"{part:>12,}  {part / max(whole, 1):7.2%}"


def _rows(rows: Census) -> Iterator[str]:
    yield f"{'rows read':<34}{rows.read:>12,}"
    kinds = (
        ("of another length, or malformed", rows.wrong_length),
        ("with a cell that is no number", rows.not_finite),
        ("outside, and dropped", rows.outside),
        ("without an id", rows.no_id),
        ("beyond the rows of their unit", rows.beyond_limit),
    )
    for name, number in kinds:
        if number:
            yield f"{'  ' + name:<34}{_share(number, rows.read)}"
    yield f"{'  that count':<34}{_share(rows.counted, rows.read)}"
    if rows.clipped:
        yield f"{'  moved to the bounds':<34}{_share(rows.clipped, rows.read)}"


def _columns(rows: Census) -> Iterator[str]:
    width = max(32, *(len(column.name) + 2 for column in rows.columns))
    yield ""
    yield f"{'column':<{width}}{'no number':>12}{'below':>12}{'above':>12}"
    for column in rows.columns:
        cells = (column.not_finite, column.below, column.above)
        yield f"{'  ' + column.name:<{width}}{''.join(f'{cell:>12,}' for cell in cells)}"


def _units(rows: Census) -> Iterator[str]:
    units = rows.units
    if units is None:
        return
    half, most, nearly, largest = units.quantiles
    yield ""
    yield f"{units.count:,} different {units.name}; at most {units.limit} rows of each count"
    yield (
        f"  rows of one: {half:,} or fewer for 50% of them, {most:,} for 90%, {nearly:,} for 99%, "
        f"{largest:,} at most"
    )
    yield f"  {units.above:,} have more than count; {units.kept:.1%} of the usable rows count"


def _errors(check: Check) -> Iterator[str]:
    yield ""
    if check.plan is None:
        yield f"a release would be refused; with no noise on the count, it is said: {check.refusal}"
        return
    yield f"a release would be {check.plan.layout.summary}; errors of its plain answers:"
    yield f"{'':<18}{'typical':>10}{'error':>10}{'noise':>10}{'family':>10}{'count':>10}"
    for name, errors in (("at records", check.at_records), ("over the bounds", check.over_space)):
        if errors is not None:
            numbers = (errors.typical, errors.error, errors.noise, errors.own, errors.count)
            yield f"  {name:<16}{''.join(f'{number:>10.2g}' for number in numbers)}"
    if (foreseen := check.prediction) is not None:
        parts = (foreseen.error, foreseen.noise, foreseen.approximation, foreseen.count)
        yield f"  {'plan predicts':<16}{'':>10}{''.join(f'{part:>10.2g}' for part in parts)}"
        if foreseen.assisted is not None:
            yield f"  (with a model that fits the data: error {foreseen.assisted_error:.2g})"
    yield (
        "  error: mean absolute error of a KDE value; noise, family, count: its parts, as root mean"
    )
    yield "  squares; family is exact: its bias, or what one seed does"
    if check.at_records is not None:
        most = check.at_records.largest_own
        yield f"  the most that the family is off by at a record: {most:.2g}"
    if check.moved:
        yield (
            "  rows that were moved, dropped or left out change the KDE at records by "
            f"{check.moved:.2g} on average"
        )
    for trouble in check.troubles:
        yield f"trouble: {trouble}"
