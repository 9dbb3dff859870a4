"""What is drawn of one or two columns: values at the centers of cells, their noise, their unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpkde.densities.base import Density
from dpkde.errors import ParameterError
from dpkde.numerics.numbers import is_real
from dpkde.release.boxes import number_of
from dpkde.release.differences import whole_of
from dpkde.release.heaps import shown_heaps
from dpkde.release.maps import centers_of, check_space, ends_of, grid, sizes_of
from dpkde.release.parts import ColumnTypes
from dpkde.release.polygons import northing_first
from dpkde.space.frame import Frame
from dpkde.space.moments import DATE, INSTANT, NUMBER, ColumnType

if TYPE_CHECKING:
    from dpkde.release.answering import Answering

Floats = NDArray[np.float64]

STANDS_OUT = 5.0
"""Standard errors that noise alone hardly ever exceeds, wherever one looks."""
SCALES = ("density", "kde")
_FINE = {1: (8.0, 300, 2000), 2: (3.0, 160, 500)}
"""Of one and of two columns: places in a bandwidth, and how many at least and at most."""
_SLOW = {1: 300, 2: 120}
"""How many where each place is asked for by itself."""


@dataclass(frozen=True, eq=False)
class Layer:
    """Values on a grid of one or two columns, with all that a picture says of them.

    Attributes
    ----------
    axes
        The centers of cells, one array for each column.
    bounds
        (low, high) of each column.
    values
        One axis for each column.
    noise
        Standard errors in the same unit; None where none are known.
    band
        Of one column, the ends of intervals; None where none were asked for or are known.
    columns, types
        Names, and what numbers stand for.
    unit
        What values are, in words.
    turned
        Whether the first of two columns goes up and the second across, as latitude and longitude.
    faces
        Bounds at which records are heaped, where what is drawn looks like a mode: for each the
        number of the column, and the place.
    """

    axes: tuple[Floats, ...]
    bounds: tuple[tuple[float, float], ...]
    values: Floats
    noise: Floats | None
    band: tuple[Floats, Floats] | None
    columns: tuple[str, ...]
    types: tuple[ColumnType, ...]
    unit: str
    turned: bool = False
    faces: tuple[tuple[int, float], ...] = ()

    @property
    def caveat(self) -> str | None:
        """What anyone who looks at it should know, in a line."""
        if self.noise is None:
            return "of the fitted model, whose errors are not known"
        with np.errstate(all="ignore"):
            if not (self.values > STANDS_OUT * self.noise).any() and self.noise.any():
                return "nothing stands out from the noise"
        return None

    @property
    def drowned(self) -> NDArray[np.bool_]:
        """Where the noise exceeds the values."""
        if self.noise is None:  # of a model none is known
            return np.zeros(self.values.shape, dtype=np.bool_)
        return self.noise > self.values


@dataclass(frozen=True)
class Wish:
    """How values are asked for: see `Release.plot`."""

    scale: str | None = None
    denoised: bool | None = None
    shape: Any = None
    bounds: Any = None
    level: float | None = None

    def __post_init__(self) -> None:
        if self.scale is not None and self.scale not in SCALES:
            raise ParameterError(f"scale must be 'density' or 'kde', got {self.scale!r}")
        if self.denoised not in (None, True, False):
            raise ParameterError(f"denoised must be True, False or None, got {self.denoised!r}")
        if self.level is not None and not (is_real(self.level) and 0 < self.level < 1):
            raise ParameterError(f"level must be between 0 and 1, or None, got {self.level!r}")


def kept_of(release: Answering, columns: Any) -> tuple[int, ...]:
    """Return the numbers of the columns that a caller means, by names or numbers; None: all."""
    if columns is None:
        return tuple(range(release.dim))
    one = isinstance(columns, str) or not isinstance(columns, (Sequence, np.ndarray))
    asked = [columns] if one else list(columns)
    kept = tuple(number_of(column, release.dim, release.columns) for column in asked)
    if not kept or len(set(kept)) < len(kept):
        raise ParameterError(f"give one column or more to draw, each once, got {columns!r}")
    return kept


def types_of(release: Answering) -> tuple[ColumnType, ...]:
    """Return what the numbers of each column stand for."""
    known = release.plan.parts.of(ColumnTypes)
    return known.types if known is not None else (NUMBER,) * release.dim


def names_of(release: Answering) -> tuple[str, ...]:
    """Return the names of the columns; x1, x2, … where it has none."""
    return release.columns or tuple(f"x{k + 1}" for k in range(release.dim))


def density_of(release: Answering, denoised: bool | None) -> Density | None:
    """Return the proper density to draw; None where noisy answers are.

    One that leaves out a part of the answers, and says so, is drawn only where it is asked for.
    """
    if denoised is False:
        return None
    try:
        density = release.denoise()
    except ParameterError:
        if denoised:
            raise
        return None
    return density if denoised or density.caveat is None else None


def layer_of(release: Answering, kept: tuple[int, ...], wish: Wish) -> Layer:
    """Return what is drawn of one or two columns of a release."""
    check_space(release.plan.frame)
    density = density_of(release, wish.denoised)
    noisy: Answering | None = release
    if kept != tuple(range(release.dim)):
        noisy, density = _marginals(release, kept, density, wish.denoised)
    frame = (noisy.plan if noisy is not None else _known(density)).frame
    names = tuple(names_of(release)[column] for column in kept)
    one = isinstance(wish.bounds, (tuple, list)) and all(map(is_real, wish.bounds))
    pairs = [wish.bounds] if one and len(kept) == 1 else wish.bounds
    ends = ends_of(frame, names, pairs, (2,) * len(kept))
    shape = fine_enough(frame, ends, noisy) if wish.shape is None else wish.shape
    sizes = sizes_of(shape, len(kept))
    scale, integral = _scaled(release if noisy is None else noisy, wish.scale, density)
    noise = band = None
    if noisy is not None:
        drawn = grid(noisy, sizes, ends)
        axes, values = drawn.axes, drawn.values / integral
        noise = drawn.standard_error / integral
        if wish.level is not None and len(kept) == 1:
            low, high = noisy.interval(axes[0][:, np.newaxis], wish.level)
            band = low / integral, high / integral
    else:
        axes = tuple(centers_of(ends, sizes))
    if density is not None:
        values = density.kde_on_grid(axes) / integral
    types = tuple(types_of(release)[column] for column in kept)
    unit, turned = unit_of(scale, names, types), len(kept) == 2 and northing_first(names)
    faces = faces_of(release, kept, ends)
    return Layer(axes, ends, values, noise, band, names, types, unit, turned, faces)


def faces_of(
    release: Answering, kept: Sequence[int], ends: Sequence[tuple[float, float]]
) -> tuple[tuple[int, float], ...]:
    """Return the bounds in a picture at which records are heaped, as those from beyond them are."""
    faces = [(list(kept).index(face.column), face.place) for face in shown_heaps(release, kept)]
    return tuple(
        (number, place) for number, place in faces if ends[number][0] <= place <= ends[number][1]
    )


def _known(density: Density | None) -> Density:
    assert density is not None  # one of both is there
    return density


def _marginals(
    release: Answering, kept: tuple[int, ...], density: Density | None, denoised: bool | None
) -> tuple[Answering | None, Density | None]:
    """Return what answers for some columns, and their density.

    Tables that have no marginals may have a model that has: then nothing is known of its noise.
    """
    try:
        noisy = release.marginal(kept)
    except ParameterError as error:
        model = None if denoised is False else _modelled(release, kept)
        if model is None:
            raise error from None
        return None, model
    return noisy, None if density is None else density.marginal(kept)


def _modelled(release: Answering, kept: tuple[int, ...]) -> Density | None:
    """Return the density of some columns of a model, whatever it leaves out."""
    try:
        return release.denoise().marginal(kept)
    except ParameterError:
        return None


def fine_enough(
    frame: Frame, ends: Sequence[tuple[float, float]], noisy: Answering | None
) -> tuple[int, ...]:
    """Return how many places to ask for along each column, where the caller does not say."""
    per_bandwidth, least, most = _FINE[frame.dim]
    if noisy is not None:
        centers = [np.array([(low + high) / 2]) for low, high in ends]
        if noisy.plan.pair.response_norm_on_grid(centers) is None:
            least = most = _SLOW[frame.dim]
    halves, box = frame.halves(), frame.domain.halves(frame.dim)
    if halves is None or box is None:
        return (least,) * frame.dim
    sizes = []
    for k, (low, high) in enumerate(ends):
        bandwidths = (high - low) * float(halves[k]) / float(box[k]) if box[k] > 0 else 0.0
        sizes.append(int(np.clip(math.ceil(min(per_bandwidth * bandwidths, 1e6)), least, most)))
    return tuple(sizes)


def _scaled(release: Answering, scale: str | None, density: Density | None) -> tuple[str, float]:
    """Return the scale and by what a KDE value is divided on it."""
    if scale == "kde":
        return scale, 1.0
    frame = release.plan.frame if density is None else density.frame
    try:
        integral = frame.kernel.integral(frame.dim)
    except OverflowError:
        integral = math.inf
    if 0 < integral < math.inf:
        return "density", integral
    if scale is None:
        return "kde", 1.0
    return "density", whole_of(release)


def unit_of(scale: str, names: Sequence[str], types: Sequence[ColumnType]) -> str:
    """Return what values are, in words.

    >>> unit_of("density", ("lon", "lat"), (NUMBER, NUMBER))
    'density: share per unit of lon × lat'
    >>> unit_of("density", ("day", "fare"), (DATE, NUMBER))
    'density: share per day × unit of fare'
    """
    from dpkde.plots.style import named

    if scale == "kde":
        return "KDE"
    times = {DATE: "day", INSTANT: "second"}
    if all(kind is NUMBER for kind in types):
        return f"density: share per unit of {' × '.join(map(named, names))}"
    parts = [
        times.get(kind, f"unit of {named(name)}") for name, kind in zip(names, types, strict=True)
    ]
    return f"density: share per {' × '.join(parts)}"
