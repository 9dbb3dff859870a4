"""From labelled private records to a release for each class, under one guarantee.

    points ─┬─► those of class a ─► publish ─► Release ─┐
    labels ─┼─► those of class b ─► publish ─► Release ─┼─► {label: Release}, one statement
            └─► with another label: nowhere             ┘

``proof.md`` says why one record moves one release, and what each may cost.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.curator.labelled.labels import Label, as_classes, numbered
from dpkde.curator.publish import publish, troubles_of, untold
from dpkde.errors import ParameterError, ReleaseWarning, SchemaError
from dpkde.privacy.budget import Guarantee
from dpkde.privacy.disjoint import LabelledStatement, each_of
from dpkde.privacy.ledger.booking import LedgerLike, page_of
from dpkde.privacy.ledger.sharing import sharing
from dpkde.privacy.numbers import Exact
from dpkde.privacy.secrecy import sealed
from dpkde.release.release import Release
from dpkde.tables import PointsLike, Source, open_points
from dpkde.tables.source import Piece, chunk_rows

_OF_ALL = ("unit", "rows_per_unit", "plan")
"""What `publish` takes and classes do not have, or not each alike."""
_LABELS = "records are of a class only where their label is written as there; "


class Labelled(NamedTuple):
    """Releases by label, and what they guarantee together."""

    releases: dict[Label, Release]
    privacy: LabelledStatement


@sealed
def publish_labelled(
    points: PointsLike,
    labels: Any,
    *,
    classes: Any,
    epsilon: Exact | None = None,
    delta: Exact = 0,
    rho: Exact | None = None,
    adjacency: str = "add-remove",
    ledger: LedgerLike | None = None,
    dataset: str | None = None,
    part: str | None = None,
    remark: str | None = None,
    **settings: Any,
) -> Labelled:
    """Return a release of the records of each class, all of them under one guarantee.

    Parameters
    ----------
    points
        As for `dpkde.publish`, one row for each label. They are held in memory.
    labels
        One for each row. A record whose label is none of `classes` is in no release.
    classes
        The labels, which are public: they come from no data.
    epsilon, delta, rho, adjacency
        The guarantee of all releases together, for labelled records as neighbours: one more or
        less, or, under ``"replace"``, one with other values or another label.
    ledger, dataset, part, remark
        As for `dpkde.publish`: one debit for all of them.
    **settings
        More of `dpkde.publish`, the same for each class. Units have none: the rows of one may be of
        several classes.

    Guarantee
    ---------
    The releases together satisfy the guarantee. No label or value raises.
    """
    known = as_classes(classes)
    total = Guarantee.declare(epsilon=epsilon, delta=delta, rho=rho, adjacency=adjacency)
    each = each_of(total)
    for name in _OF_ALL:
        if settings.get(name) is not None:
            raise ParameterError(
                f"classes go without {name}=: publish them one by one, each with a part of ε"
            )
    page = page_of(ledger, dataset, part, remark)
    source = open_points(points, settings.pop("columns", None))
    if source.dim is None:
        raise SchemaError(
            "only the rows of these points tell how many columns there are: give an array of shape "
            "(n_points, dim), or a data frame"
        )
    own: dict[str, Any] = {"epsilon": each.epsilon, "delta": each.delta, "rho": each.rho}
    releases: dict[Label, Release] = {}
    with sharing(page, total, len(known)) as pages:
        rows, numbers = _rows(source, source.dim), numbered(labels, known)
        if len(numbers) != len(rows):
            raise SchemaError("points and labels are not as many: there is one label for each row")
        for number, (label, share) in enumerate(zip(known, pages, strict=True)):
            part_of_them = _of_class(rows, numbers, number, source.columns)
            with untold():
                releases[label] = publish(part_of_them, **own, ledger=share, **settings)
    for label, release in releases.items():  # once all of them are published
        for trouble in troubles_of(release):
            hint = _LABELS if trouble.code == "few-records" else ""
            told = f"class {label!r}: {trouble.sentence}: {hint}{trouble.advice}"
            warnings.warn(ReleaseWarning(told, release, trouble), stacklevel=3)
    return Labelled(releases, LabelledStatement(total, each, known))


def _rows(source: Source, dim: int) -> NDArray[np.float64]:
    """Return all rows in order."""
    pieces = [np.asarray(piece.rows(), dtype=np.float64) for piece in source.in_order(dim)]
    return np.concatenate([np.empty((0, dim)), *pieces])


def _of_class(
    rows: NDArray[np.float64],
    numbers: NDArray[np.int64],
    number: int,
    names: tuple[str, ...] | None,
) -> Source:
    """Return the rows of a class as a source, which takes a few of them at a time."""
    places, dim = np.flatnonzero(numbers == number), rows.shape[1]

    def read() -> Iterator[Piece]:
        step = chunk_rows(dim)
        for start in range(0, len(places), step):
            some = places[start : start + step]
            yield Piece(partial(rows.__getitem__, some), len(some))

    return Source(read, dim, names)
