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
from dpkde.release.marginals import MarginalPair
from dpkde.tables.arrays import QueriesLike

if TYPE_CHECKING:
    from dpkde.densities.base import Density
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
        self._check_all(
            "bandwidth or kernel to choose: ask its release, release.best_bandwidth(), and take "
            "release.with_kernel(…).marginal([…])"
        )
        return self.release

    def _check_all(self, missing: str) -> None:
        """Refuse what a view of some columns, or of all in another order, does not have."""
        if isinstance(self.plan.pair, MarginalPair):
            raise ParameterError(f"a view of some columns has no {missing}")

    def denoise(self) -> Density:
        """Return the proper density of this view: that of its kernel; of all columns only."""
        self._check_all(
            "density or sample of its own: take these columns of release.sample(…); its kde over "
            "kernel.integral(dim) is a density, too, but for the noise"
        )
        return super().denoise()

    def error_bound(self, eta: float) -> float:
        """Return α for η, as a release does; of all columns only."""
        self._check_all("error bound: interval(queries) tells how far its answers may be off")
        return super().error_bound(eta)

    def interval(
        self,
        queries: QueriesLike,
        level: float = 0.95,
        *,
        bias: str | None = None,
        assisted: bool | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of an interval at each query, as a release does."""
        if bias == "worst":
            self._check_all("worst case: leave bias out, or write bias='typical'")
        return super().interval(queries, level, bias=bias, assisted=assisted)

    def _viewed(self, plan: Plan) -> View:
        return View(self.release, plan)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Refuse: what is published is the release, and a view is made from it in no time."""
        raise ParameterError("a view cannot be saved: save its release, view.release.save(path)")

    def __repr__(self) -> str:
        names, more = list(self.columns or ()), ", …" * (len(self.columns or ()) > _SHOWN)
        named = f", columns {', '.join(map(repr, names[:_SHOWN]))}{more}" if names else ""
        return f"<View: {describe(self.plan)}{named}, of release {self.release.release_id[:8]}>"
