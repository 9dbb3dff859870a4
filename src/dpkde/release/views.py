"""Other readings of a release's table: with another kernel, or of some of its columns.

A view holds no numbers of its own: it reads the table of its release by another plan. So it costs
nothing, and is covered by the same guarantee. It keeps no promise, and is not a file.
"""

from __future__ import annotations

import os
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.planning.plan import Plan, describe
from dpkde.privacy.statement import PrivacyStatement
from dpkde.release import assistance
from dpkde.release.answering import Answering

if TYPE_CHECKING:
    from dpkde.release.release import Release


_SHOWN = 8
"""Names of columns that are shown, at most."""


class View(Answering):
    """A release, read by another plan whose table has the same cells."""

    __slots__ = ("_found", "plan", "promise", "release")

    _found: dict[str, Any]
    release: Release

    def __init__(self, release: Release, plan: Plan) -> None:
        object.__setattr__(self, "_found", {})
        object.__setattr__(self, "release", release)
        object.__setattr__(self, "plan", plan)
        object.__setattr__(self, "promise", None)
        object.__setattr__(self, "_found", {})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a view is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a view is frozen")

    def __reduce__(self) -> Any:
        return View, (self.release, self.plan)

    @property
    def table(self) -> NDArray[np.int64]:
        """That of the release."""
        return self.release.table

    @property
    def count(self) -> int:  # type: ignore[override]
        """That of the release."""
        return self.release.count

    @property
    def privacy(self) -> PrivacyStatement:  # type: ignore[override]
        """That of the release: a view adds nothing to it."""
        return self.release.privacy

    @property
    def rate(self) -> Fraction:  # type: ignore[override]
        """That of the release."""
        return self.release.rate

    @property
    def _assistance(self) -> assistance.Assistance | None:
        if "assistance" not in self._found:
            self._found["assistance"] = assistance.of_view(self)
        helper: assistance.Assistance | None = self._found["assistance"]
        return helper

    @property
    def _source(self) -> Release:
        if self.dim != self.release.dim:
            raise ParameterError(
                "this is a view of some columns: ask its release for another kernel first, "
                "release.with_kernel(…).marginal([…])"
            )
        return self.release

    def _viewed(self, plan: Plan) -> View:
        return View(self.release, plan)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Refuse: what is published is the release, and a view is made from it in no time."""
        raise ParameterError("a view cannot be saved: save its release, view.release.save(path)")

    def __repr__(self) -> str:
        names, more = list(self.columns or ()), ", …" * (len(self.columns or ()) > _SHOWN)
        named = f", columns {', '.join(map(repr, names[:_SHOWN]))}{more}" if names else ""
        return f"<View: {describe(self.plan)}{named}, of release {self.release.release_id[:8]}>"
