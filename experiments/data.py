"""Data sets with their kernels and public bounds: the paper's four, generated ones, one's own.

A folder (``--data`` or DPKDE_DATA) may hold prepared files, ``taxi.npz`` and so on with one array
``X``, or the original public files, under the names they are published with. The quick run needs
none: it generates stand-ins of the same character.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import itertools
import warnings
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dpkde

Array = NDArray[np.float64]
Pairs = list[tuple[float, float]]

NAMES = ("taxi", "diabetes", "covertype", "glove")
TAXI_BOX: Pairs = [(-74.1, -73.15), (40.5, 40.9)]
_HELD_OUT_SEED = 1
_BLOCK = 1 << 22
"""Kernel values that are held at a time."""


class MissingDataError(Exception):
    """A data set is not in the folder; the message says how to get it."""


@dataclass(frozen=True, eq=False)
class Task:
    """A data set, what is asked of it, and in which kernel.

    Attributes
    ----------
    points, queries
        Shapes (n_points, dim) and (n_queries, dim); the queries are held out from the points.
    bounds
        Public; None where there are none.
    window
        What a heat map shows; None: the bounds.
    paper
        Mean and standard deviation of the KDE at queries, as the paper reports them.
    """

    name: str
    title: str
    points: Array
    queries: Array
    bandwidth: float
    bounds: Pairs | None
    window: Pairs | None = None
    paper: tuple[float, float] | None = None

    @property
    def dim(self) -> int:
        """Number of columns."""
        return int(self.points.shape[1])

    @property
    def is_low(self) -> bool:
        """Whether a lattice over all columns can be made at all."""
        return self.dim <= 3

    @property
    def described(self) -> str:
        """What was measured on, in a line."""
        if self.bounds is None:
            box = "no bounds"
        elif self.dim <= 3:
            box = "bounds " + ", ".join(f"{low:g} to {high:g}" for low, high in self.bounds)
        else:
            box = f"bounds for all {self.dim} columns"
        return (
            f"{self.name}: {len(self.points):,} points of {self.dim} columns, {len(self.queries)} "
            f"held out as queries, σ = {self.bandwidth:g}, {box}"
        )

    @cached_property
    def kernel(self) -> dpkde.Gaussian:
        """exp(−‖x − y‖²/σ²)."""
        return dpkde.Gaussian(self.bandwidth)

    @cached_property
    def truth(self) -> Array:
        """The exact KDE at the queries."""
        return exact_kde(self.points, self.queries, self.bandwidth)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of points, queries, bandwidth and bounds: what measured rows depend on."""
        digest = hashlib.sha256(repr((self.bandwidth, self.bounds, self.window)).encode())
        for array in (self.points, self.queries):
            digest.update(repr(array.shape).encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def exact_kde(points: Array, queries: Array, bandwidth: float) -> Array:
    """Return the mean of exp(−‖x − y‖²/σ²) over points. O(n·q·d) in matrix products.

    Points are taken relative to the mean query, so that squares lose no digits to an offset; the
    memory is that of a block.
    """
    center = queries.mean(axis=0)
    targets = (queries - center) / bandwidth
    squares = (targets**2).sum(axis=1)
    total = np.zeros(len(queries))
    step = max(1, _BLOCK // max(1, len(queries)))
    for start in range(0, len(points), step):
        rows = (points[start : start + step] - center) / bandwidth
        distances = (rows**2).sum(axis=1)[:, np.newaxis] + squares - 2 * rows @ targets.T
        total += np.exp(-np.maximum(distances, 0.0)).sum(axis=0)
    return total / max(1, len(points))


def split(
    rows: Array,
    queries: int,
    *,
    name: str,
    title: str,
    bandwidth: float,
    bounds: Pairs | None,
    window: Pairs | None = None,
    paper: tuple[float, float] | None = None,
) -> Task:
    """Return a task with random rows held out as queries; points outside the bounds are clipped."""
    if len(rows) <= queries:
        raise ValueError(f"{name} has {len(rows)} rows, too few to hold out {queries} as queries")
    order = np.random.default_rng(_HELD_OUT_SEED).permutation(len(rows))
    points, asked = rows[order[queries:]], rows[order[:queries]]
    if bounds is not None:
        low, high = np.array(bounds, dtype=np.float64).T
        np.clip(points, low, high, out=points)
    return Task(name, title, points, asked, bandwidth, bounds, window, paper)


def generated(name: str, rows: int, queries: int) -> Task:
    """Return a stand-in: ``mixture``, ``lattice``, or ``clusters-20`` with any dimension."""
    # One shape whatever the number of rows: only then do curves over n compare like with like.
    generator = np.random.default_rng(len(name))
    if name == "mixture":
        centers, widths = generator.normal(size=(8, 2)) * 1.5, generator.uniform(0.1, 0.8, 8)
        label = generator.integers(0, 8, rows)
        points = centers[label] + generator.normal(size=(rows, 2)) * widths[label, np.newaxis]
        box: Pairs = [(-4.0, 4.0)] * 2
        return split(points, queries, name=name, title="mixture, d = 2", bandwidth=0.5, bounds=box)
    if name == "lattice":
        age = np.clip(np.rint(generator.normal(6.5, 1.6, rows) - 0.5), 0, 9) + 0.5
        days = np.clip(np.rint(generator.gamma(2.2, 2.0, rows)), 1, 14)
        points, box = np.column_stack([age, days]), [(0.0, 10.0), (1.0, 14.0)]
        return split(points, queries, name=name, title="lattice, d = 2", bandwidth=1.0, bounds=box)
    if name.startswith("clusters-"):
        dim = int(name.removeprefix("clusters-"))
        centers = generator.normal(size=(12, dim)) * 0.35
        points = centers[generator.integers(0, 12, rows)]
        # Few columns are wide and the rest narrow, as in tables of measurements and indicators.
        widths = np.where(np.arange(dim) < 2, 1.0, 0.15)
        points = points * np.where(np.arange(dim) < 2, 2.0, 0.3)
        points += generator.normal(size=points.shape) * widths
        box = [(-4.0, 4.0) if axis < 2 else (-0.75, 0.75) for axis in range(dim)]
        return split(
            points, queries, name=name, title=f"clusters, d = {dim}", bandwidth=1.5, bounds=box
        )
    raise ValueError(f"no generated data set is called {name!r}")


QUICK_NAMES = ("mixture", "lattice", "clusters-20", "clusters-50")


def of_your_own(path: Path, bandwidth: float, bounds: Pairs | None, queries: int) -> Task:
    """Return a task from a file: ``.npz`` (key ``X``), ``.npy``, or numbers in a CSV.

    Rows with values that are not finite are left out, as `dpkde.publish` does. One pair of bounds
    serves all columns.
    """
    if not path.is_file():
        raise MissingDataError(f"there is no file {path}")
    try:
        rows = _numbers(path)
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as numbers: {error}") from None
    if not rows.size:
        raise ValueError(f"{path} holds no rows")
    rows = rows.reshape(len(rows), -1)
    rows = rows[np.isfinite(rows).all(axis=1)]
    if bounds is not None and len(bounds) == 1:
        bounds = bounds * rows.shape[1]
    if bounds is not None and len(bounds) != rows.shape[1]:
        raise ValueError(f"{path} has {rows.shape[1]} columns, and --bounds {len(bounds)} pairs")
    title = f"{path.stem}, d = {rows.shape[1]}"
    return split(rows, queries, name=path.stem, title=title, bandwidth=bandwidth, bounds=bounds)


def _numbers(path: Path) -> Array:
    if path.suffix == ".npz":
        return _npz(path)
    if path.suffix == ".npy":
        return np.asarray(np.load(path), dtype=np.float64)
    with warnings.catch_warnings():  # of an empty file, which is told in our own words
        warnings.simplefilter("ignore", UserWarning)
        try:
            return np.loadtxt(path, delimiter=",", ndmin=2)
        except ValueError:  # a line of names
            return np.loadtxt(path, delimiter=",", ndmin=2, skiprows=1)


def load(name: str, folder: Path | None, queries: int) -> Task:
    """Return one of the paper's data sets; `MissingDataError` says how to get it."""
    if name not in _PREPARED:
        raise ValueError(f"no data set is called {name!r}; there are {', '.join(NAMES)}")
    original, read, how, make = _PREPARED[name]
    if folder is None:
        raise MissingDataError(
            f"{name}: no data folder is given. Use --data FOLDER or set DPKDE_DATA; {how}"
        )
    prepared = folder / f"{name}.npz"
    if prepared.exists():
        return make(_npz(prepared), queries)
    for file in original:
        if (folder / file).exists():
            return make(read(folder / file), queries)
    raise MissingDataError(
        f"{name}: {folder} holds neither {name}.npz (an array X) nor {' or '.join(original)}; {how}"
    )


def _npz(path: Path) -> Array:
    with np.load(path) as file:
        if "X" not in file:
            raise MissingDataError(f"{path} has no array X")
        return np.asarray(file["X"], dtype=np.float64)


def _lines(path: Path) -> Iterable[str]:
    with (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8", newline="")
    ) as file:
        yield from file


def read_covertype(path: Path) -> Array:
    """Return ``covtype.data``: 54 features and the class, as numbers."""
    return np.loadtxt(_lines(path), delimiter=",", dtype=np.int16).astype(np.float64)


def read_diabetes(path: Path) -> Array:
    """Return age bracket midpoint / 10 and days in hospital from ``diabetic_data.csv``."""
    rows = []
    for row in csv.DictReader(_lines(path)):
        low, high = row["age"].strip("[)").split("-")
        rows.append(((float(low) + float(high)) / 20, float(row["time_in_hospital"])))
    return np.array(rows)


def read_taxi(path: Path) -> Array:
    """Return the first 100,000 pickups in the paper's box from Kaggle's ``train.csv``."""
    (west, east), (south, north) = TAXI_BOX

    def inside() -> Iterable[tuple[float, float]]:
        for row in csv.DictReader(_lines(path)):
            try:
                x, y = float(row["pickup_longitude"]), float(row["pickup_latitude"])
            except ValueError:
                continue
            if west < x < east and south < y < north:
                yield x, y

    return np.array(list(itertools.islice(inside(), 100_000)))


def read_glove(path: Path) -> Array:
    """Return the vectors of ``glove.6B.100d.txt``."""
    vectors = (np.array(line.rstrip().split(" ")[-100:], dtype=np.float32) for line in _lines(path))
    return np.array(list(vectors)).astype(np.float64)


def _taxi(rows: Array, queries: int) -> Task:
    return split(
        rows,
        queries,
        name="taxi",
        title="NYC Taxi, d = 2",
        bandwidth=0.01,
        bounds=TAXI_BOX,
        window=[(-74.03, -73.92), (40.69, 40.82)],
        paper=(0.08, 0.03),
    )


def _diabetes(rows: Array, queries: int) -> Task:
    return split(
        rows,
        queries,
        name="diabetes",
        title="Diabetes, d = 2",
        bandwidth=1.0,
        bounds=[(0.0, 10.0), (1.0, 14.0)],
        paper=(0.06, 0.03),
    )


def _covertype(rows: Array, queries: int) -> Task:
    # The documentation of this public table gives every column's range, so they count as known.
    ranges = list(zip(rows.min(0).tolist(), np.maximum(rows.max(0), 1).tolist(), strict=True))
    return split(
        rows,
        queries,
        name="covertype",
        title="Covertype, d = 55",
        bandwidth=500.0,
        bounds=ranges,
        paper=(0.02, 0.01),
    )


def _glove(rows: Array, queries: int) -> Task:
    # The paper's million vectors need 3.33; in the public file of words the same is reached at 2.2.
    return split(
        rows,
        queries,
        name="glove",
        title="GloVe, d = 100",
        bandwidth=2.2,
        bounds=None,
        paper=(0.01, 0.01),
    )


_Make = Callable[[Array, int], Task]
_PREPARED: dict[str, tuple[tuple[str, ...], Callable[[Path], Array], str, _Make]] = {
    "taxi": (
        ("train.csv",),
        read_taxi,
        "train.csv is in Kaggle's competition 'New York City Taxi Fare Prediction'.",
        _taxi,
    ),
    "diabetes": (
        ("diabetic_data.csv",),
        read_diabetes,
        "diabetic_data.csv is in UCI's 'Diabetes 130-US Hospitals for Years 1999-2008'.",
        _diabetes,
    ),
    "covertype": (
        ("covtype.data", "covtype.data.gz"),
        read_covertype,
        "covtype.data.gz is in UCI's 'Covertype'.",
        _covertype,
    ),
    "glove": (
        ("glove.6B.100d.txt",),
        read_glove,
        "glove.6B.100d.txt is in glove.6B.zip of the Stanford NLP group's GloVe page; a "
        "make_glove.sh beside the prepared files makes glove.npz.",
        _glove,
    ),
}
