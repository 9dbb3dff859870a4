"""Ids in one canonical form, whatever the table is made of."""

from __future__ import annotations

import io
import uuid
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpkde
from dpkde.tables import CSV, open_points
from dpkde.tables.ids import MISSING, TEXT, WHOLE
from dpkde.tables.labels import Labels, labels_in_cells, labels_in_numbers

UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")


def _listed(labels: Labels) -> list[Any]:
    """Ids as Python's own: None, numbers, bytes."""
    ends = labels.ends.tolist()
    starts = [0, *ends[:-1]][: len(ends)]
    texts = [labels.text[a:b].tobytes() for a, b in zip(starts, ends, strict=True)]
    return [
        {MISSING: None, WHOLE: number, TEXT: text}[kind]
        for kind, number, text in zip(
            labels.kinds.tolist(), labels.numbers.tolist(), texts, strict=True
        )
    ]


def _labels(points: Any, unit: str = "who") -> list[Any]:
    listed: list[Any] = []
    for piece in open_points(points, None, unit=unit).pieces(1):
        assert piece.labelled is not None
        rows, labels = piece.labelled()
        assert len(rows) == len(labels)
        listed += _listed(labels)
    return listed


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (7, 7),
        ("7", 7),
        (" 7\t", 7),
        (7.0, 7),
        (Decimal("7.00"), 7),
        (np.int8(7), 7),
        (True, 1),
        (np.bool_(False), 0),
        (-7, -7),
        ("-7", -7),
        ("0", 0),
        (-0.0, 0),
        ("-0", b"-0"),
        ("07", b"07"),
        ("7.0", b"7.0"),
        ("+7", b"+7"),
        (2**63 - 1, 2**63 - 1),
        (str(2**63 - 1), 2**63 - 1),
        (2**63, b"9223372036854775808"),
        (str(2**63), b"9223372036854775808"),
        (-(2**63), b"-9223372036854775808"),
        (np.uint64(2**63), b"9223372036854775808"),
        (2.0**63, b"9223372036854775808"),
        (1e300, str(int(1e300)).encode()),
        (0.1, b"0.1"),
        ("0.1", b"0.1"),
        (Decimal("0.10"), b"0.1"),
        (b"raw", b"raw"),
        ("Anna", b"Anna"),
        ("anna", b"anna"),
        ("ünal", "ünal".encode()),
        ('say "no"', b'say "no"'),
        (UUID, str(UUID).encode()),
        ("", None),
        ("  ", None),
        (None, None),
        (float("nan"), None),
        (float("inf"), None),
        (Decimal("NaN"), None),
        (pd.NA, None),
        (pd.NaT, None),
        ([7], None),
        (object(), None),
        pytest.param(10**5000, None, id="huge"),
    ],
)
def test_cells(cell: Any, expected: Any) -> None:
    assert _listed(labels_in_cells([cell])) == [expected]
    neighbours = _listed(labels_in_cells(["left", cell, "right"]))
    assert neighbours == [b"left", expected, b"right"]


DIGITS = "1234567890123456789012345678.12345"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Decimal(DIGITS), Decimal(DIGITS[:-1] + "6")),
        (Decimal(10**500), Decimal(10**500 + 1)),
        ("M\udcfcller", "M\udcf6ller"),
        ("M\udcfcller", "M?ller"),
        (2.0**53, 2**53 + 1),
    ],
    ids=["digits", "whole", "halves", "mark", "floats"],
)
def test_two_ids_stay_two(one: Any, other: Any) -> None:
    """Taken for one they would have one choice: without the one, c of the other's rows enter."""
    first, second = _listed(labels_in_cells([one, other]))
    assert first is not None
    assert first != second


def test_one_number_is_one_id_whatever_its_type() -> None:
    assert len(set(_listed(labels_in_cells([1e-7, Decimal("1e-7"), Decimal("0.00000010")])))) == 1
    assert _listed(labels_in_cells([10**500])) == _listed(labels_in_cells([Decimal("1e500")]))


def test_what_could_be_anybody_is_nobody() -> None:
    """Numbers that no float holds, and characters that could not be read."""
    third = Fraction(1, 3)
    cells = [third, third + Fraction(1, 10**30), Fraction(1, 4), "M\ufffdller", Decimal("1e5000")]
    assert _listed(labels_in_cells(cells)) == [None, None, b"0.25", None, None]
    text = b"who,a\nM\x81ller,1\nM\x8dller,2\nM\xfcller,3\n"
    assert _labels(CSV(io.BytesIO(text), encoding="cp1252")) == [None, None, "Müller".encode()]


@pytest.mark.parametrize("values", [["x", None, "y"], [5, None, 7], [b"x", None, b"y"]])
def test_nulls_in_a_dictionary_are_nobodys(values: list[Any]) -> None:
    """An error would tell that there are some."""
    for codes in ([0, 1, 2], [0, 1, 2, None], [2, 0]):
        array = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(values))
        expected = _listed(labels_in_cells([None if c is None else values[c] for c in codes]))
        table = pa.table({"who": array, "a": np.zeros(len(codes))})
        frame = pd.DataFrame({"who": pd.Series(array, dtype=pd.ArrowDtype(array.type)), "a": 0.0})
        assert _labels(table) == _labels(frame) == expected


def test_a_cell_whose_methods_raise_is_nobodys() -> None:
    class Bad(int):
        def __int__(self) -> int:
            raise RuntimeError("secret")

    assert _listed(labels_in_cells([Bad(3), 4]))[1] == 4
    # pandas asks decimals whether they are null, and one that signals raises.
    for bad in (Bad(3), Decimal("sNaN"), Fraction(1, 3)):
        frame = pd.DataFrame({"who": pd.Series([bad, 4], dtype=object), "a": 0.0})
        assert _labels(frame) == [None, 4]
        late = pd.DataFrame({"who": pd.Series(["x"] * 200 + [bad], dtype=object), "a": 0.0})
        assert _labels(late) == [b"x"] * 200 + [None]


@pytest.mark.parametrize("kind", "bhilqBHILQfd")
def test_numbers_of_every_type_are_what_cells_of_them_are(kind: str) -> None:
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        values = np.array([0.0, -0.0, 1.5, -7, 2**62, 2.0**63, np.nan, np.inf, 1e30], dtype)
    else:
        info = np.iinfo(dtype)
        values = np.array([0, 1, info.min, info.max], dtype=dtype)
    assert _listed(labels_in_numbers(values)) == _listed(labels_in_cells(values.tolist()))


IDS: list[Any] = ["7", "anna", None, "a,b", 'the "x"', "-12", "007", "ünal", "x" * 40, " padded "]
TABLE = pd.DataFrame({"who": IDS, "a": np.arange(float(len(IDS)))})
EXPECTED = _listed(labels_in_cells(IDS))


def _files(folder: Path) -> list[Any]:
    TABLE.to_csv(folder / "t.csv", index=False)
    TABLE.to_csv(folder / "t.csv.gz", index=False)
    TABLE.to_csv(folder / "t.tsv", index=False, sep="\t")
    TABLE.to_parquet(folder / "t.parquet")
    TABLE.to_csv(folder / "latin.csv", index=False, encoding="latin-1")
    quoted = CSV(io.BytesIO(TABLE.to_csv(index=False, quoting=1).encode()))
    return [
        *(folder / f"t.{kind}" for kind in ("csv", "csv.gz", "tsv", "parquet")),
        CSV(folder / "latin.csv", encoding="latin-1"),
        quoted,
    ]


def test_one_form_for_all_formats(tmp_path: Path) -> None:
    arrow = pa.table({"who": IDS, "a": np.arange(float(len(IDS)))})
    kinds = (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()))
    other = [arrow.set_column(0, "who", arrow["who"].cast(kind)) for kind in kinds]
    cut = pa.concat_tables([arrow.slice(0, 3), arrow.slice(3)])
    pq.write_table(other[2], tmp_path / "dictionary.parquet")
    frames = [
        *(TABLE, TABLE.astype({"who": "string"}), TABLE.astype({"who": "category"})),
        *(arrow, cut, *other, pl.DataFrame(TABLE)),
        pl.DataFrame(TABLE).with_columns(pl.col("who").cast(pl.Categorical)),
        *(tmp_path / "dictionary.parquet",),
        *([TABLE[:4], TABLE[4:]],),
        *(TABLE.to_dict("records"),),
    ]
    for points in [*_files(tmp_path), *frames]:
        columns = ["a"] if isinstance(points, list) else None
        source = open_points(points, columns, unit="who")
        listed: list[Any] = []
        for piece in source.pieces(1):
            assert piece.labelled is not None
            rows, labels = piece.labelled()
            listed += _listed(labels)
            assert (rows == piece.rows()).all()
        assert listed == EXPECTED, type(points)


def test_whole_numbers_beside_missing_ones_keep_their_last_digit(tmp_path: Path) -> None:
    """As floats two of these would be one person."""
    large = [2**62 + 1, None, 2**62 + 2, 3]
    frame = pd.DataFrame({"who": pd.array(large, dtype="Int64"), "a": 0.0})
    frame.to_parquet(tmp_path / "t.parquet")
    for points in (frame, tmp_path / "t.parquet", pl.DataFrame(frame), pa.table(frame)):
        assert _labels(points) == large
    unsigned = pa.table({"who": pa.array([2**64 - 1, None], pa.uint64()), "a": [0.0, 1.0]})
    pq.write_table(unsigned, tmp_path / "u.parquet")
    for points in (unsigned, tmp_path / "u.parquet", pl.DataFrame(unsigned)):
        assert _labels(points) == [b"18446744073709551615", None]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2], pa.timestamp("s")),
        pa.array([1, 2], pa.date32()),
        pa.array([[1], [2]]),
        pa.array([{"x": 1}, {"x": 2}]),
        pa.array([b"a", b"b"]),
    ],
    ids=["instants", "dates", "lists", "structs", "bytes"],
)
def test_other_types_are_refused_by_their_type(values: Any, tmp_path: Path) -> None:
    table = pa.table({"who": values, "a": [0.0, 1.0]})
    pq.write_table(table, tmp_path / "t.parquet")
    for points in (table, tmp_path / "t.parquet"):
        with pytest.raises(
            dpkde.SchemaError, match=r"column 'who' of .* is of type .* text or whole"
        ):
            open_points(points, None, unit="who")


def test_nulls_alone_are_nobody(tmp_path: Path) -> None:
    table = pa.table({"who": pa.nulls(2), "a": [0.0, 1.0]})
    pq.write_table(table, tmp_path / "t.parquet")
    for points in (table, tmp_path / "t.parquet", pl.DataFrame(table)):
        assert _labels(points) == [None, None]


def test_what_has_no_columns_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", np.zeros((3, 2)))
    for points in (np.zeros((3, 2)), tmp_path / "t.npy", TABLE["a"]):
        with pytest.raises(dpkde.SchemaError, match="no column 'who'"):
            open_points(points, None, unit="who")
    with pytest.raises(dpkde.SchemaError, match="an array has no column 'who'"):
        list(open_points([np.zeros((3, 1))], ["a"], unit="who").pieces(1))
    with pytest.raises(dpkde.SchemaError, match="no column 'whom'"):
        open_points(TABLE, None, unit="whom")
    with pytest.raises(dpkde.SchemaError, match="not one of those to publish"):
        open_points(TABLE, ["who", "a"], unit="who")
    assert open_points(TABLE, None, unit="who").columns == ("a",)
    for points in ([], [{"a": 1.0, "who": 5}], [[1.0]], [TABLE], iter([TABLE])):
        with pytest.raises(dpkde.SchemaError, match="name those to publish"):
            open_points(points, None, unit="who")
    # Rows of an iterable are private, and so is what they are made of: no error tells of them.
    assert _labels_of_rows([[1.0], {"a": 1.0}, {"a": 1.0, "who": 5}, 3.0]) == [None, None, 5, None]


def _labels_of_rows(rows: list[Any]) -> list[Any]:
    (piece,) = open_points(rows, ["a"], unit="who").pieces(1)
    assert piece.labelled is not None
    return _listed(piece.labelled()[1])


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=12), max_size=8))
def test_texts_survive_a_csv_file(texts: list[str]) -> None:
    """Quoted as the csv module does; a field with a lone return or NUL in it may be no record."""
    texts = [text.replace("\r", " ").replace("\0", " ") for text in texts]
    data = pd.DataFrame({"who": texts, "a": 1.0}).to_csv(index=False, quoting=2).encode()
    assert _labels(CSV(io.BytesIO(data))) == _listed(labels_in_cells(texts))


def test_malformed_records_are_nobodys() -> None:
    text = b'who,a\n1,2\n3\n"4,5\n6,7,8\n7,1\n"8"x,2\n9,3'
    labels = _labels(CSV(io.BytesIO(text)))
    assert labels == [1, None, None, None, 7, None, 9]


def test_labels_are_secret() -> None:
    assert "anna" not in repr(labels_in_cells(["anna"]))
