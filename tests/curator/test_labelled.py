"""Labelled records: which count where, what nobody tells, and what each release may cost."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpkde
from contracts.rigged import constant, install
from dpkde.curator.labelled.labels import NO_CLASS, as_classes, numbered
from dpkde.curator.labelled.publish import Labelled, publish_labelled
from dpkde.privacy.amounts import Adjacency

CLEAR = 10**6
"""An ε at which noise on a count is below a half, but for once in e^{1000} tables."""
SETTINGS: dict[str, Any] = {
    "kernel": dpkde.Gaussian(1.0),
    "bounds": [(-4, 4)],
    "family": dpkde.Spline(3, 0.5),
}


def published(points: Any, labels: Any, classes: Any, **changes: Any) -> Labelled:
    arguments = {"epsilon": CLEAR} | SETTINGS | changes
    return publish_labelled(points, labels, classes=classes, **arguments)


def counts(points: Any, labels: Any, classes: Any, **changes: Any) -> dict[Any, int]:
    releases = published(points, labels, classes, **changes).releases
    return {label: release.count for label, release in releases.items()}


class Rude:
    """A label whose code raises whenever it is looked at."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("my value is 7")

    def __hash__(self) -> int:
        raise RuntimeError("my value is 7")

    def __repr__(self) -> str:
        raise RuntimeError("my value is 7")


ODD: list[Any] = [None, "x", b"a", 3.5, float("nan"), [1], Rude(), object(), 10**400, 1j, pd.NA]


@pytest.mark.parametrize(("classes", "label"), [(["a", "b"], "a"), ([1, 2], 1), ([0.5, 1.5], 0.5)])
def test_odd_labels_touch_no_other(classes: list[Any], label: Any) -> None:
    """What stands beside a label, in a list or in an array of objects, changes nothing for it."""
    for odd in ODD:
        for labels in ([label, odd, label], (odd, label, label)):
            assert sorted(numbered(labels, as_classes(classes))) == [NO_CLASS, 0, 0]
        column = np.empty(2, dtype=object)
        column[:] = [label, odd]
        assert numbered(column, as_classes(classes)).tolist() == [0, NO_CLASS]


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        (np.array([3, 1, 2, 1]), [1, 3], [1, 0, -1, 0]),
        (np.array([3, 1, 2, 1], np.uint8), [1, 3, 300], [1, 0, -1, 0]),
        (np.array([1.0, np.nan, np.inf, 2.5]), [1, 2.5], [0, -1, -1, 1]),
        (np.array([True, False]), [False, True], [1, 0]),
        (np.array([True, False]), [0, 1], [1, 0]),
        (np.array(["b", "a", "long"]), ["a", "b"], [1, 0, -1]),
        (np.array(["b", "a"], object), ["a", "b"], [1, 0]),
        (np.array(["b", "a"], np.dtypes.StringDType()), ["a", "b"], [1, 0]),
        (np.array([[1], [2]]), [2], [-1, 0]),
        (pd.Series([1, None, 2], dtype="Int64"), [1, 2], [0, -1, 1]),
        (pd.Series(["a", None, "b"], dtype="category"), ["a", "b"], [0, -1, 1]),
        (pl.Series([1, None, 2]), [1, 2], [0, -1, 1]),
        (pl.Series(["a", None, "b"]), ["a", "b"], [0, -1, 1]),
        ([], [1], []),
    ],
    ids=str,
)
def test_columns_of_labels(labels: Any, classes: Any, expected: list[int]) -> None:
    assert numbered(labels, as_classes(classes)).tolist() == expected


NULLABLE: dict[str, Any] = {
    "pandas": lambda cells, whole: pd.Series(cells, dtype="Int64" if whole else "boolean"),
    "pandas, Arrow": lambda cells, whole: pd.Series(
        cells, dtype="int64[pyarrow]" if whole else "bool[pyarrow]"
    ),
    "pandas index": lambda cells, whole: pd.Index(cells, dtype="Int64" if whole else "boolean"),
    "pandas frame": lambda cells, whole: pd.DataFrame(
        {"y": cells}, dtype="Int64" if whole else "boolean"
    ),
    "polars": lambda cells, whole: pl.Series(cells, dtype=pl.Int64 if whole else pl.Boolean),
    "polars frame": lambda cells, whole: pl.DataFrame(
        {"y": cells}, schema={"y": pl.Int64 if whole else pl.Boolean}
    ),
    "Arrow": lambda cells, whole: pa.array(cells, pa.int64() if whole else pa.bool_()),
    "Arrow, in chunks": lambda cells, whole: pa.chunked_array(
        [cells], pa.int64() if whole else pa.bool_()
    ),
    "NumPy, masked": lambda cells, whole: np.ma.MaskedArray(
        [cell or 0 for cell in cells], [cell is None for cell in cells], int if whole else bool
    ),
}


@pytest.mark.parametrize("column", NULLABLE.values(), ids=NULLABLE.keys())
def test_a_null_touches_no_other_label(column: Any) -> None:
    """It makes no floats of the whole numbers beside it, of which two large ones may be one."""
    large = [2**53, 2**53 + 1]
    assert numbered(column(large, True), large).tolist() == [0, 1]
    assert numbered(column([*large, None], True), large).tolist() == [0, 1, NO_CLASS]
    assert numbered(column([True, None, False], False), [False, True]).tolist() == [1, NO_CLASS, 0]


@pytest.mark.parametrize("column", NULLABLE.values(), ids=NULLABLE.keys())
@pytest.mark.parametrize("whole", [True, False])
def test_no_null_decides_whether_a_type_raises(column: Any, whole: bool) -> None:
    one = 1 if whole else True
    for cells in ([], [one], [one, None], [None]):
        with pytest.raises(dpkde.SchemaError, match="y holds numbers, and classes are texts"):
            numbered(column(cells, whole), ["a"])


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        (np.array(["a"]), [1], "y holds texts, and classes are numbers"),
        (np.array([1]), ["a"], "y holds numbers, and classes are texts"),
        (np.zeros((3, 2)), [1], "one column of labels, got 2 dimensions"),
        (np.array(1), [1], "a column of labels"),
        (np.array([1j]), [1], "got type complex128"),
        (np.array(["2026-01-01"], "M8[D]"), [1], r"got type datetime64\[D\]"),
    ],
)
def test_types_of_columns_may_raise(labels: Any, classes: Any, message: str) -> None:
    """They are the schema: an empty column of the type raises the same."""
    for column in (labels, labels[:0]) if labels.ndim else (labels,):
        with pytest.raises(dpkde.SchemaError, match=message):
            numbered(column, as_classes(classes))


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (None, "which labels there are among private records is private"),
        ("ab", "have to be given"),
        (3, "a list of labels"),
        ([], "labels of one kind"),
        ([1, "a"], "labels of one kind"),
        ([True, 1], "labels of one kind"),
        ([None], "labels of one kind"),
        ([float("nan")], "labels of one kind"),
        ([2**70], "labels of one kind"),
        ([1, 1.0], "named once each"),
        (range(10_001), "10000 classes at most"),
    ],
)
def test_wrong_classes(classes: Any, message: str) -> None:
    with pytest.raises(dpkde.ParameterError, match=message):
        as_classes(classes)


def test_a_record_counts_in_its_own_class_alone() -> None:
    points, labels = np.linspace(-3, 3, 60)[:, None], np.repeat(["a", "b", "rare"], [30, 20, 10])
    assert counts(points, labels, ["b", "a"]) == {"a": 30, "b": 20}
    points[3] = np.nan
    assert counts(points, labels, ["b", "a"]) == {"a": 29, "b": 20}
    both = published(points, labels, ["b", "a"]).releases
    assert list(both) == ["a", "b"]
    assert both["a"].kde([[-1.5]]) > 0.1 > both["b"].kde([[-1.5]])


def test_classes_without_records_publish_like_any_other() -> None:
    assert counts(np.zeros((3, 1)), [7, 7, 7], [1, 2]) == {1: 1, 2: 1}
    assert counts(np.zeros((0, 1)), [], [1, 2]) == {1: 1, 2: 1}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_their_names(frame: Any) -> None:
    table = frame({"age": np.arange(40.0), "stay": np.arange(40) % 4})
    settings = {"bounds": [(0, 40), (0, 4)], "kernel": dpkde.Gaussian([10, 2])}
    releases = published(table, table["stay"], [0, 1], **settings).releases
    assert [release.columns for release in releases.values()] == [("age", "stay")] * 2
    assert [release.count for release in releases.values()] == [10, 10]
    only = published(table, table["stay"], [0, 1], columns=["age"], bounds=[(0, 40)]).releases
    assert only[0].columns == ("age",)


def test_the_classes_are_those_that_publish_would_make() -> None:
    """Bit for bit, apart from noise: with the same plan the same sketch, whatever the order."""
    generator = np.random.default_rng(0)
    points, labels = generator.normal(size=(5_000, 1)), generator.integers(0, 3, 5_000)
    releases = published(points, labels, [0, 1, 2], seed=0).releases
    for label, release in releases.items():
        own = dpkde.publish(points[labels == label], epsilon=CLEAR, seed=0, **SETTINGS)
        noise = (release.table - own.table) / 2.0**release.plan.bits
        assert np.abs(noise).max() < 0.01
        assert release.count == own.count


@pytest.mark.parametrize(
    ("total", "each"),
    [
        ({"epsilon": 1}, {"epsilon": 1, "delta": 0, "rho": None}),
        ({"epsilon": 1, "adjacency": "replace"}, {"epsilon": 0.5, "delta": 0, "rho": None}),
        ({"epsilon": None, "rho": 1}, {"epsilon": None, "rho": 1}),
        ({"epsilon": None, "rho": 1, "adjacency": "replace"}, {"epsilon": None, "rho": 0.25}),
    ],
)
def test_what_each_release_has(total: dict[str, Any], each: dict[str, Any]) -> None:
    """Its own statement, spends included, and that of all."""
    made = published(np.zeros((50, 1)), [1] * 50, [1, 2], **total)
    assert made.privacy.classes == (1, 2)
    assert str(made.privacy.guarantee.adjacency) == total.get("adjacency", "add-remove")
    for release in made.releases.values():
        assert release.privacy.adjacency is Adjacency.ADD_REMOVE
        assert {name: getattr(release.privacy, name) for name in each} == each
        assert [spend.purpose for spend in release.privacy.spends] == ["count", "table"]


def test_the_number_of_a_class_is_noisy_under_replace() -> None:
    """At ε = 1 a count of 100 comes out as 100 with probability 0.24 at most: never 40 times."""
    settings: dict[str, Any] = {"epsilon": 1, "adjacency": "replace"}
    told = [counts(np.zeros((100, 1)), [1] * 100, [1], **settings)[1] for _ in range(40)]
    assert len(set(told)) > 1  # else by chance 0.24^40 < 1e-24


def test_nothing_is_told_of_values(recwarn: pytest.WarningsRecorder) -> None:
    points: Any = np.full((4, 1), np.nan)
    assert counts(points, [1, 2, Rude(), None], [1, 2]) == {1: 1, 2: 1}
    # What a release tells of itself it tells by noisy numbers.
    assert not [w for w in recwarn if w.category.__name__ != "ReleaseWarning"]
    with pytest.raises(dpkde.SchemaError) as caught:
        published(np.zeros((7, 1)), [1] * 9, [1])
    assert not re.search(r"\d", str(caught.value))


def test_troubles_are_told_with_the_class_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the line that called; here of a label that no record has, as where one is misspelt."""
    install(monkeypatch, constant(0))
    points = np.linspace(-3, 3, 2000)[:, None]
    with pytest.warns(dpkde.ReleaseWarning) as caught:
        done = publish_labelled(points, ["a"] * 2000, classes=["a", "A"], **SETTINGS, epsilon=1)
    told = [str(one.message) for one in caught]
    assert len(told) == 1
    assert told[0].startswith("class 'A': about ")
    assert "only where their label is written as there" in told[0]
    assert caught[0].message.release is done.releases["A"]  # type: ignore[union-attr]
    assert Path(caught[0].filename).name == Path(__file__).name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unit": "user", "rows_per_unit": 2}, "classes go without unit="),
        ({"plan": 3}, "classes go without plan="),
        ({"epsilon": None}, "exactly one of epsilon and rho"),
        ({"dataset": "x"}, "goes with ledger="),
    ],
)
def test_what_classes_go_without(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(dpkde.ParameterError, match=message):
        published(np.zeros((3, 1)), [1, 1, 1], [1], **changes)
    with pytest.raises(dpkde.SchemaError, match="only the rows"):
        published([[0.0], [1.0]], [1, 1], [1])
