"""The families that files may name, and that ``family="auto"`` compares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpkde.errors import FormatError, ParameterError
from dpkde.families.base import Family
from dpkde.families.fastgauss import FastGauss
from dpkde.families.fourier import Fourier
from dpkde.families.hashing import Hashing
from dpkde.families.spline import Spline

FAMILIES: dict[str, type[Family]] = {
    family.name: family for family in (Spline, FastGauss, Fourier, Hashing)
}
"""By the name that a family has in a release file; one entry is all it takes to add one."""


def family_from_json(
    name: str,
    version: int,
    parameters: Mapping[str, Any],
    dim: int,
    extra: tuple[type[Family], ...] = (),
) -> Family:
    """Rebuild a family from what a file says of it. Names are looked up, never imported."""
    known = FAMILIES | {family.name: family for family in extra}
    if name not in known:
        raise FormatError(
            f"this file uses the family {name!r}, which is unknown here; "
            "pass it as dpkde.load(path, families=[...])"
        )
    if version != known[name].version:
        raise FormatError(f"this file uses version {version} of the family {name!r}")
    try:
        return known[name].from_json(parameters, dim)
    except (ParameterError, TypeError) as error:
        raise FormatError(f"the parameters of the family {name!r} are damaged: {error}") from None
