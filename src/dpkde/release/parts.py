"""Parts: what a file may hold beyond what every reader has to know.

From version 2 on, a release and the plan in any file have ``parts``, and a sketch has them in every
version: an object of at most 64 parts
by name, each an object with its ``version`` (a whole number, from 1), ``required`` (true or false)
and fields of its own, nested 32 levels deep at most. Its tensors are called
``part.<name>.<tensor>``. The names of a release's parts and of its plan's are all different.

A **name** is a word of lower-case letters, digits and hyphens, such as ``ledger``, for parts that
dpkde defines, and has a namespace, as in ``org.example/thing``, for anybody's own. A tensor is a
word of lower-case letters, digits and underscores.

**What a reader does.** A part that it knows, in that version, it reads and checks in full. Any
other part it *skips* where ``required`` is false: it keeps what it does not understand and writes
it again. It *refuses* the file where ``required`` is true. So a part that changes what the rest
means is required, and one that only adds is not. Which of the two holds is fixed for a version of a
part.

A part is added by one class and its name in `KINDS`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpkde.assisted.cloud import MOST_MEANS, RANKS, SCALES
from dpkde.assisted.folds import FOLDS
from dpkde.errors import FormatError, ParameterError, VersionError
from dpkde.kernels.bandwidth import RULES
from dpkde.numerics.numbers import is_real, is_whole
from dpkde.privacy.amounts import is_quotable
from dpkde.release import container
from dpkde.release.container import Arrays
from dpkde.space.moments import ColumnType

if TYPE_CHECKING:
    from dpkde.planning.plan import Plan
    from dpkde.privacy.amounts import Bounds
    from dpkde.release.synthetic import SyntheticRelease

MOST_PARTS = 64
MOST_SHARES = 10_000
_NAME = re.compile(r"([a-z0-9][a-z0-9.-]{0,99}/)?[a-z][a-z0-9-]{0,63}")
_TENSOR = re.compile(r"[a-z][a-z0-9_]{0,63}")
_HEXADECIMAL = re.compile(r"[0-9a-f]+")
_PREFIX = "part."
_LARGEST = 1e100
_MODEL_TENSORS = {
    "weights": (2, 0.0, 1.0),
    "variances": (2, 1e-9, 1e4),
    "means": (3, -1e6, 1e6),
    "axes": (2, 1e-4, 1e3),
    "factors": (3, -1e3, 1e3),
}
"""Dimensions, and what numbers a model may have: more than fits ever find."""


class Part(ABC):
    """One part of a file. Subclasses are frozen dataclasses whose fields are those in the file.

    Attributes
    ----------
    name, version
        What it is called in files, and the version of its fields.
    required
        Whether a reader who does not know it has to refuse the file.
    follows_noise
        Whether it is made from noisy numbers: a release may have it, and a plan may not.
    """

    name: str
    version: int
    required: bool = False
    follows_noise: bool = False

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return its fields."""

    def to_tensors(self) -> Arrays:
        """Return its tensors, by their own names."""
        return {}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any], tensors: Arrays) -> Self:
        """Rebuild it, checking all of it; ValueError or TypeError where it is damaged."""
        return cls(**fields, **tensors)

    def check(self, holder: Plan | SyntheticRelease) -> None:
        """Raise ParameterError where it does not fit the plan, or the points, in its file."""
        return


@dataclass(frozen=True)
class ColumnTypes(Part):
    """What the columns of a plan stand for, one type for each."""

    types: tuple[ColumnType, ...]
    name = "columns"
    version = 1

    def __post_init__(self) -> None:
        try:
            types = tuple(ColumnType(each) for each in self.types)
        except ValueError:
            raise ParameterError(
                f"a column is of type {', '.join(map(repr, map(str, ColumnType)))}, got "
                f"{self.types!r}"
            ) from None
        object.__setattr__(self, "types", types)

    def to_json(self) -> dict[str, Any]:
        """Return the types, in the order of the columns."""
        return {"types": [str(each) for each in self.types]}

    def check(self, holder: Plan | SyntheticRelease) -> None:
        """Refuse another number of types than there are columns."""
        if len(self.types) != holder.dim:
            raise ParameterError(f"{len(self.types)} column types for {holder.dim} columns")


@dataclass(frozen=True)
class DeclaredBounds(Part):
    """How far a record moves the table of a family that only its author's code describes.

    Whoever reads the file with other code under the same name, whose bounds are others, would add
    noise for those: so the part is required, and the bounds have to be the same.
    """

    cells: int
    l1: int
    l2_squared: int
    linf: int
    nonnegative: bool
    name = "bounds"
    version = 1
    required = True

    @classmethod
    def of(cls, bounds: Bounds) -> Self:
        """Return the part that states these bounds."""
        return cls(**asdict(bounds))

    def to_json(self) -> dict[str, Any]:
        """Return the bounds."""
        return asdict(self)

    def check(self, holder: Plan | SyntheticRelease) -> None:
        """Refuse a family that declares other bounds here."""
        pair = getattr(holder, "pair", None)
        if pair is None or asdict(pair.bounds) != asdict(self):
            raise ParameterError(
                "the family of this file declares other bounds here than where it was written"
            )


@dataclass(frozen=True)
class UnitKey(Part):
    """The public key by which the records of a unit are chosen: 16 hexadecimal digits.

    Without it the key is 0. It is required, since whoever sketched with another one would choose
    other records.
    """

    key: str
    name = "unit-key"
    version = 1
    required = True

    def __post_init__(self) -> None:
        if not isinstance(self.key, str) or not re.fullmatch(r"[0-9a-f]{16}", self.key):
            raise ParameterError(f"the key of a unit has 16 hexadecimal digits, got {self.key!r}")

    def to_json(self) -> dict[str, Any]:
        """Return the key."""
        return {"key": self.key}

    def check(self, holder: Plan | SyntheticRelease) -> None:
        """Refuse a key where no column tells whose a record is."""
        if getattr(getattr(holder, "unit", None), "name", None) is None:
            raise ParameterError("a key of units, and no unit that has a name")


@dataclass(frozen=True)
class LedgerEntry(Part):
    """Where the spend of a release is recorded.

    Attributes
    ----------
    ledger
        Which ledger, by its hexadecimal name.
    entry
        The number of the entry in it, from 0.
    head
        SHA-256 of the ledger's chain up to and with that entry, in hexadecimal.
    """

    ledger: str
    entry: int
    head: str
    name = "ledger"
    version = 1

    def __post_init__(self) -> None:
        for text, least, most in ((self.ledger, 1, 64), (self.head, 64, 64)):
            if not isinstance(text, str) or not _HEXADECIMAL.fullmatch(text):
                raise ParameterError(f"a ledger is named in lower-case hexadecimal, got {text!r}")
            if not least <= len(text) <= most:
                raise ParameterError(f"{text!r} has not from {least} to {most} digits")
        if not is_whole(self.entry) or not 0 <= self.entry < 1 << 63:
            raise ParameterError(f"an entry is a whole number from 0, got {self.entry!r}")
        object.__setattr__(self, "entry", int(self.entry))

    def to_json(self) -> dict[str, Any]:
        """Return ledger, entry and head."""
        return asdict(self)


@dataclass(frozen=True)
class ExpectedRows(Part):
    """A public guess of the number of records that the noisy count refuted; see `troubles`.

    Attributes
    ----------
    rows
        The guess: more than twice as many as there can be, but for chance.
    """

    rows: int
    name = "expected-rows"
    version = 1
    follows_noise = True

    def __post_init__(self) -> None:
        if not is_whole(self.rows) or not 1 <= self.rows < 1 << 62:
            raise ParameterError(f"expected rows are a whole number, got {self.rows!r}")
        object.__setattr__(self, "rows", int(self.rows))

    def to_json(self) -> dict[str, Any]:
        """Return the guess."""
        return {"rows": self.rows}


@dataclass(frozen=True)
class LedgerShare(Part):
    """Which of several releases this is, where one entry of a ledger is for all of them.

    They are of disjoint parts of the data, such as the classes of labelled records, and were made
    together: see `dpkde.privacy.disjoint`. The release is called by what follows from these
    numbers and from the name that the entry has.

    Attributes
    ----------
    number
        Which of them, from 0.
    of
        How many there are.
    """

    number: int
    of: int
    name = "ledger-share"
    version = 1

    def __post_init__(self) -> None:
        if not (is_whole(self.number) and is_whole(self.of) and 0 <= self.number < self.of):
            raise ParameterError("a share is one of several, counted from 0")
        if self.of > MOST_SHARES:
            raise ParameterError(f"an entry has at most {MOST_SHARES} shares, got {self.of}")
        vars(self).update(number=int(self.number), of=int(self.of))

    def to_json(self) -> dict[str, Any]:
        """Return which, and of how many."""
        return asdict(self)


@dataclass(frozen=True)
class SketchIds(Part):
    """Which calls of `dpkde.sketch` are in a sketch, so that none is merged in twice.

    An id is drawn by the operating system, and tells nothing but that two sketches hold the same
    part. Only a sketch has this part: no release, and no plan.

    Attributes
    ----------
    ids
        32 hexadecimal digits each, sorted.
    """

    ids: tuple[str, ...]
    name = "sketch-ids"
    version = 1

    def __post_init__(self) -> None:
        ids = tuple(self.ids)
        if not all(isinstance(each, str) and re.fullmatch(r"[0-9a-f]{32}", each) for each in ids):
            raise ParameterError("the id of a sketch has 32 hexadecimal digits")
        if list(ids) != sorted(set(ids)):
            raise ParameterError("the ids of a sketch are sorted, and none is there twice")
        object.__setattr__(self, "ids", ids)

    def to_json(self) -> dict[str, Any]:
        """Return the ids."""
        return {"ids": list(self.ids)}

    def check(self, holder: Plan | SyntheticRelease) -> None:
        """Refuse every holder but a sketch."""
        raise ParameterError("only a sketch says which sketches are in it")


@dataclass(frozen=True, eq=False)
class NoisyMean(Part):
    """A noisy mean of the records, paid for: where a model may begin.

    `mean` is in bandwidth units from the center of the bounds, shape (dim,).
    """

    mean: NDArray[np.float64]
    name = "mean"
    version = 1
    follows_noise = True

    def __post_init__(self) -> None:
        mean = self.mean
        if mean.dtype != np.float64 or mean.ndim != 1 or not np.isfinite(mean).all():
            raise ParameterError("the mean in this file is damaged")

    def to_json(self) -> dict[str, Any]:
        """It has no fields but its tensor."""
        return {}

    def to_tensors(self) -> Arrays:
        """Return the mean."""
        return {"mean": self.mean}

    def check(self, holder: Plan | SyntheticRelease) -> None:
        """Refuse a mean of other columns."""
        if len(self.mean) != holder.dim:
            raise ParameterError(f"a mean of {len(self.mean)} axes, {holder.dim} columns")
        frame = getattr(holder, "frame", None)
        halves = None if frame is None else frame.halves()
        if halves is None or not (np.abs(self.mean) <= halves * (1 + 1e-9)).all():
            raise ParameterError("a noisy mean lies inside the bounds")


@dataclass(frozen=True)
class FoundScale(Part):
    """What of the plan was found privately, from noisy histograms that the statement lists.

    Attributes
    ----------
    bandwidth
        The rule by which the bandwidth was found; null where it was public.
    left_out, sure
        Bounds that were found leave out no larger share of any column's records, but for a chance
        of 1 − `sure`; such records are moved onto the bounds. Null where bounds were public.
    """

    bandwidth: str | None
    left_out: float | None
    sure: float | None
    name = "scale"
    version = 1
    follows_noise = True

    def __post_init__(self) -> None:
        sound = self.bandwidth is None or self.bandwidth in RULES
        sound &= (self.left_out is None) == (self.sure is None)
        for share in (self.left_out, self.sure):
            sound &= share is None or (is_real(share) and 0 <= share <= 1)
        if not sound or (self.bandwidth is None and self.left_out is None):
            raise ParameterError("what this file says of its scale is damaged")

    def to_json(self) -> dict[str, Any]:
        """Return its fields."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class FittedModel(Part):
    """A model of the data, fitted to the noisy table: what assisted answers begin with.

    It is kept so that everybody gets the same answers; see `dpkde.assisted`.

    Attributes
    ----------
    kind
        Which model; ``"none"`` where none was better than none. It then has no tensors.
    share
        How much of the mean square of the table it explains, the noise apart.
    kept, limit, doubt
        How much of the correction is kept, by how many standard errors an answer is moved at most,
        and what is missed of a typical value.
    weights, variances
        Of the parts of each fold's cloud, shape (folds, parts).
    means
        Of these parts, shape (folds, parts, dim), or of all of them, (folds, 1, dim); in bandwidth
        units.
    axes, factors
        Of each fold's cloud, shape (folds, dim) and (folds, dim, rank); both may be missing.
    """

    kind: str
    share: float
    kept: float
    limit: float
    doubt: float
    weights: NDArray[np.float64] | None = None
    variances: NDArray[np.float64] | None = None
    means: NDArray[np.float64] | None = None
    axes: NDArray[np.float64] | None = None
    factors: NDArray[np.float64] | None = None
    name = "model"
    version = 1
    follows_noise = True

    def __post_init__(self) -> None:
        numbers = (self.share, self.kept, self.limit, self.doubt)
        sound = is_quotable(self.kind) and len(self.kind) <= 64
        sound &= all(is_real(each) and 0 <= each <= _LARGEST for each in numbers)
        sound &= self.share <= 1 and self.kept <= 1 and self.limit <= 2
        tensors = self.to_tensors()
        for name, array in tensors.items():
            dims, least, most = _MODEL_TENSORS[name]
            sound &= array.dtype == np.float64 and array.ndim == dims
            sound &= len(array) == FOLDS and bool(((array >= least) & (array <= most)).all())
        if self.kind == "none":
            sound &= not tensors
        elif self.weights is None or self.variances is None or self.means is None:
            sound = False
        elif sound:
            (_, parts), (_, means, dim) = self.weights.shape, self.means.shape
            sound &= self.variances.shape == self.weights.shape
            sound &= means in (1, parts) and 1 <= parts <= (SCALES if means == 1 else MOST_MEANS)
            sound &= bool((np.abs(self.weights.sum(axis=1) - 1) < 1e-6).all())
            sound &= self.axes is None or self.axes.shape[1] == dim
            sound &= self.factors is None or self.factors.shape[1] == dim
            sound &= self.factors is None or (means == 1 and self.factors.shape[2] <= RANKS[-1])
        if not sound:
            raise ParameterError("the model in this file is damaged")

    def to_json(self) -> dict[str, Any]:
        """Return its name and numbers."""
        names = ("kind", "share", "kept", "limit", "doubt")
        return {name: getattr(self, name) for name in names}

    def to_tensors(self) -> Arrays:
        """Return the parameters of the clouds."""
        names = ("weights", "variances", "means", "axes", "factors")
        arrays = {name: getattr(self, name) for name in names}
        return {name: array for name, array in arrays.items() if array is not None}

    def check(self, holder: Plan | SyntheticRelease) -> None:
        """Refuse a model of other columns, or of another family than it is fitted for."""
        from dpkde.families.fourier.family import FourierPair

        pair = getattr(holder, "pair", None)
        if not isinstance(pair, FourierPair) or pair.form != "pairs":
            raise ParameterError("a model goes with a Fourier table of pairs")
        if self.means is not None and self.means.shape[2] != holder.dim:
            raise ParameterError(f"a model of {self.means.shape[2]} axes, {holder.dim} columns")
        blur, kernel = pair.frame.kernel.blur(holder.dim), pair.frame.kernel.name
        if self.factors is not None and (blur is None or not blur.takes_factors):
            raise ParameterError(f"the {kernel} kernel takes no factors")
        parts = 0 if self.weights is None else self.weights.shape[1]
        if self.axes is not None and (blur is None or not blur.takes_axes(holder.dim, parts)):
            raise ParameterError(f"the {kernel} kernel takes no axes of {parts} parts here")

    def __str__(self) -> str:
        if self.kind == "none":
            return "none: answers are plain"
        return f"{self.kind}, explains {self.share:.0%} of the table's mean square"


@dataclass(frozen=True, eq=False)
class UnknownPart(Part):
    """A part that this dpkde does not know, or not in this version: kept as it came."""

    name: str
    version: int
    fields: Mapping[str, Any]
    tensors: Arrays = field(repr=False)

    def __post_init__(self) -> None:
        if not container.is_shallow(dict(self.fields)):
            raise ParameterError("a part is nested too deeply")
        if not all(map(_TENSOR.fullmatch, self.tensors)):
            raise ParameterError("a tensor of a part has no name that is allowed")
        container.canonical(self.fields)  # what could not be written again raises now

    def to_json(self) -> dict[str, Any]:
        """Return its fields, whatever they mean."""
        return dict(self.fields)

    def to_tensors(self) -> Arrays:
        """Return its tensors, whatever they mean."""
        return self.tensors


KINDS: dict[str, type[Part]] = {
    kind.name: kind
    for kind in (
        *(ColumnTypes, DeclaredBounds, UnitKey, LedgerEntry, LedgerShare, ExpectedRows, SketchIds),
        *(NoisyMean, FittedModel, FoundScale),
    )
}
"""The parts that this dpkde knows, each in one version."""

_Kind = TypeVar("_Kind", bound=Part)


class Parts(Mapping[str, Part]):
    """Parts by name, read-only. ``parts.of(LedgerEntry)`` is the one of a kind, or None."""

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        ordered = sorted(parts, key=lambda part: part.name)
        self._held = {part.name: part for part in ordered}
        if len(self._held) < len(ordered):
            raise ParameterError("a file has no two parts of the same name")
        if len(ordered) > MOST_PARTS:
            raise ParameterError(f"a file has at most {MOST_PARTS} parts, got {len(ordered)}")

    def __getitem__(self, name: str) -> Part:
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def of(self, kind: type[_Kind]) -> _Kind | None:
        """Return the part of a kind; None where there is none that this dpkde knows."""
        return next((part for part in self.values() if isinstance(part, kind)), None)

    def check(self, holder: Plan | SyntheticRelease) -> None:
        """Raise ParameterError where one does not fit the plan, or the points, in its file."""
        for part in self.values():
            part.check(holder)

    def to_json(self) -> dict[str, Any]:
        """Return what a file says of them."""
        return {
            name: {**part.to_json(), "version": part.version, "required": part.required}
            for name, part in self.items()
        }

    def to_tensors(self) -> dict[str, NDArray[Any]]:
        """Return the tensors of all of them, by their names in a file."""
        return {
            f"{_PREFIX}{name}.{own}": array
            for name, part in self.items()
            for own, array in part.to_tensors().items()
        }

    @cached_property
    def _digest(self) -> str:
        return container.digest(container.canonical(self.to_json()), self.to_tensors())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parts) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        return f"<Parts: {', '.join(f'{p.name} {p.version}' for p in self.values()) or 'none'}>"


NO_PARTS = Parts()


def parts_from_json(entry: Any, tensors: dict[str, NDArray[Any]]) -> Parts:
    """Rebuild parts from what a file says of them; their tensors are taken out of `tensors`."""
    if not isinstance(entry, dict) or len(entry) > MOST_PARTS:
        raise FormatError(f"a file has parts by name, at most {MOST_PARTS} of them")
    return Parts(_part_from_json(name, fields, tensors) for name, fields in entry.items())


def _part_from_json(name: str, entry: Any, tensors: dict[str, NDArray[Any]]) -> Part:
    if not _NAME.fullmatch(name):
        raise FormatError(f"a part has the name {name!r}, which no part may have")
    own = [each for each in tensors if each.rpartition(".")[0] == _PREFIX + name]
    own_tensors = {each.rpartition(".")[2]: tensors.pop(each) for each in own}
    try:
        fields = dict(entry)
        version, required = fields.pop("version"), fields.pop("required")
        if type(version) is not int or version < 1 or type(required) is not bool:
            raise TypeError
        kind = KINDS.get(name)
        if kind is not None and kind.version == version:
            if kind.required != required:
                raise ValueError
            return kind.from_json(fields, own_tensors)
        if not required:
            return UnknownPart(name, version, fields, own_tensors)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        raise FormatError(f"the part {name!r} of this file is damaged") from None
    raise VersionError(
        f"this file cannot be understood without its part {name!r}, version {version}, which this "
        "dpkde does not know: install a newer dpkde"
    )
