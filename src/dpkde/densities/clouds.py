"""The model of a Fourier release as a density: mixtures of Gaussians, smoothed by the kernel.

The table's correction, which assisted answers add to the model, has parts below zero and is left
out: this is the density of the model, as near to the data as the model is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpkde.assisted.cloud import Cloud
from dpkde.densities.base import Density
from dpkde.errors import ParameterError
from dpkde.kernels import Points
from dpkde.kernels.blur import Blur

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CloudDensity(Density):
    """The mean of some clouds' densities, each smoothed by the kernel."""

    clouds: tuple[Cloud, ...]
    blur: Blur
    caveat: ClassVar[str | None] = (
        "this is the density of the model that was fitted to the release, without the correction "
        "that kde adds"
    )

    @cached_property
    def _kdes(self) -> list[Callable[[Floats], Floats]]:
        return [cloud.seen_by(self.blur) for cloud in self.clouds]

    def _kde(self, located: Points) -> Floats:
        return np.asarray(np.mean([kde(located) for kde in self._kdes], axis=0))

    def _log_kde(self, located: Points) -> Floats:
        logs = [cloud.log_seen_by(self.blur)(located) for cloud in self.clouds]
        return np.asarray(np.logaddexp.reduce(logs, axis=0) - math.log(len(logs)))

    def _folded_kde(self, located: Points) -> Floats:
        raise ParameterError(
            "the model of a Fourier release is a density over all of space: leave "
            "support='bounds' out; sample(..., support='bounds') can keep points inside"
        )

    def _draw(self, generator: np.random.Generator, count: int) -> Points:
        owners = generator.integers(0, len(self.clouds), count)
        points = np.empty((count, self.dim))
        for number, cloud in enumerate(self.clouds):
            own = owners == number
            points[own] = cloud.points(generator, int(own.sum()))
        return points

    def marginal(self, columns: Sequence[int]) -> CloudDensity:
        """Return the density of some columns: each Gaussian without its other axes."""
        (frame, names), kept = self._part(columns), list(columns)
        blur = frame.kernel.blur(len(kept))
        assert blur is not None  # as all columns have one
        clouds = tuple(
            replace(
                cloud,
                means=cloud.means[:, kept],
                axes=None if cloud.axes is None else cloud.axes[kept],
                factors=None if cloud.factors is None else cloud.factors[kept],
            )
            for cloud in self.clouds
        )
        return CloudDensity(frame, names, clouds, blur)

    def __repr__(self) -> str:
        parts = sum(len(cloud.weights) for cloud in self.clouds)
        return f"<CloudDensity: {parts} Gaussians, without the correction, d={self.dim}>"
