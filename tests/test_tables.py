"""One door: the same points through every kind of table give the same sketch, bit for bit."""

from __future__ import annotations

import io
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
from numpy.typing import NDArray

import dpkde
from dpkde.tables import open_points

POINTS = np.random.default_rng(0).normal(size=(3001, 2)).round(6)
POINTS[7] = np.nan
PLAN = dpkde.plan(
    kernel=dpkde.Gaussian(1.0),
    bounds=[(-2, 2)] * 2,
    epsilon=1,
    family=dpkde.Fourier(8),
    columns=["a", "b"],
)
FRAME = pd.DataFrame({"a": POINTS[:, 0], "text": "secret-cell", "b": POINTS[:, 1]})
FRAME["text"] = FRAME["text"].astype("string")


def make(kind: str, folder: Path) -> Any:
    arrow = pa.Table.from_pandas(FRAME)
    if kind == "csv":
        FRAME.to_csv(folder / "t.csv", index=False)
        return folder / "t.csv"
    if kind == "tsv":
        FRAME.to_csv(folder / "t.tsv", index=False, sep="\t")
        return str(folder / "t.tsv")
    if kind == "parquet":
        pq.write_table(arrow, folder / "t.parquet", row_group_size=10**6)
        return folder / "t.parquet"
    if kind == "row groups":
        pq.write_table(arrow, folder / "t.parquet", row_group_size=100)
        return folder / "t.parquet"
    if kind in ("npy", "npy fortran"):
        array = POINTS if kind == "npy" else np.asfortranarray(POINTS)
        np.save(folder / "t.npy", array)
        return folder / "t.npy"
    frames = {"pandas": FRAME, "polars": pl.from_pandas(FRAME), "arrow": arrow}
    return frames[kind]


KINDS = ["csv", "tsv", "parquet", "row groups", "npy", "npy fortran", "pandas", "polars", "arrow"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_same_sketch(kind: str, tmp_path: Path) -> None:
    table = make(kind, tmp_path)
    assert dpkde.sketch(table, PLAN) == dpkde.sketch(POINTS, PLAN)
    release = dpkde.publish(
        table, kernel=dpkde.Gaussian(1.0), bounds=[(-2, 2)] * 2, epsilon=5, columns=["b", "a"]
    )
    assert release.columns == ("b", "a")
    assert abs(release.count - 3000) < 200


def test_nulls_integers_booleans_and_single_precision(tmp_path: Path) -> None:
    columns = {
        "a": pa.array([1, None, 3], type=pa.int64()),
        "b": pa.array([True, False, None]),
        "c": pa.array([0.5, 1.5, None], type=pa.float32()),
        "d": pa.array([0.5, None, 2.5], type=pa.float32()),
    }
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "t.parquet")
    expected = [[1, 1, 0.5, 0.5], [np.nan, 0, 1.5, np.nan], [3, np.nan, np.nan, 2.5]]
    frames = [tmp_path / "t.parquet", table, table.to_pandas(), pl.from_arrow(table)]
    for source in frames:
        rows = np.concatenate([p.rows() for p in open_points(source).read()])
        assert np.array_equal(rows, np.array(expected), equal_nan=True)
    rows = np.concatenate([p.rows() for p in open_points(table, ["d", "c"]).read()])
    assert np.array_equal(rows, np.array(expected)[:, [3, 2]], equal_nan=True)


@pytest.mark.parametrize("kind", [k for k in KINDS if "npy" not in k])
def test_only_the_schema_raises(kind: str, tmp_path: Path) -> None:
    table = make(kind, tmp_path)
    listed = "; its columns are: a, text, b" if kind not in ("csv", "tsv") else " in its first line"
    with pytest.raises(dpkde.SchemaError, match=f"no column 'z'{listed}"):
        open_points(table, ["a", "z"])
    with pytest.raises(dpkde.SchemaError, match="columns must be a list"):
        open_points(table, "a")
    with pytest.raises(dpkde.SchemaError, match="named twice"):
        open_points(table, ["a", "a"])
    if kind in ("csv", "tsv"):
        rows = np.concatenate([p.rows() for p in open_points(table, ["text"]).read()])
        assert np.isnan(rows).all()  # text is no number, and nobody is told
    else:
        with pytest.raises(
            dpkde.SchemaError, match=r"'text' .* is of type .*, not a number"
        ) as told:
            open_points(table, ["text"])
        assert "secret" not in str(told.value)


def test_a_csv_without_a_header_gives_nothing_away(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("1.5,2.5\n3.5,4.5\n")
    for columns in (None, ["a", "b"]):
        with pytest.raises(dpkde.SchemaError, match="holds numbers; a header") as told:
            open_points(path, columns)
        assert "1.5" not in str(told.value)
    path.write_text("Alice,Bob\n3.5,4.5\n")
    with pytest.raises(dpkde.SchemaError, match="no column 'a' in its first line") as told:
        open_points(path, ["a", "b"])
    assert "Alice" not in str(told.value)
    # Names that the caller did not give do not reach the release.
    release = dpkde.publish(path, kernel=dpkde.Gaussian(1.0), bounds=[(0, 9)] * 2, epsilon=1)
    assert release.columns is None
    with path.open() as text, pytest.raises(dpkde.SchemaError, match="binary mode"):
        open_points(text)


def test_frames_without_names() -> None:
    frame = pd.DataFrame(POINTS)
    assert open_points(frame).columns == ("0", "1")
    for columns in (None, [0, 1], ["0", "1"]):
        rows = np.concatenate([p.rows() for p in open_points(frame, columns).read()])  # type: ignore[arg-type]
        assert np.array_equal(rows, POINTS, equal_nan=True)


def test_a_single_column() -> None:
    for series in (pd.Series([1.0, 2.0], name="x"), pl.Series("x", [1.0, 2.0])):
        assert open_points(series).columns is None
        assert open_points(series, ["age"]).columns == ("age",)
        rows = np.concatenate([p.rows() for p in open_points(series).read()])
        assert rows.tolist() == [[1.0], [2.0]]
        with pytest.raises(dpkde.SchemaError, match="no column 'b'"):
            open_points(series, ["a", "b"])


def test_what_objects_are_called_does_not_matter() -> None:
    """A column of objects is read whether it holds text, numbers or both."""
    for cells in (["a", "b"], [1, "b"], [1, 2], [None, None]):
        frame = pd.DataFrame({"a": pd.Series(cells, dtype=object)})
        assert open_points(frame).dim == 1


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    for name in ("t.parquet", "t.npy"):
        (tmp_path / name).write_bytes(b"secret-cell" * 100)
        with pytest.raises(dpkde.SchemaError, match="is damaged, or not a") as told:
            open_points(tmp_path / name)
        assert "secret" not in str(told.value)
    np.save(tmp_path / "o.npy", np.array([{"secret": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(dpkde.SchemaError, match="is damaged"):
        open_points(tmp_path / "o.npy")
    np.save(tmp_path / "s.npy", np.array([["secret"]]))
    with pytest.raises(dpkde.SchemaError, match="real numbers") as told:
        open_points(tmp_path / "s.npy")
    assert "secret" not in str(told.value)
    with pytest.raises(dpkde.SchemaError, match=r"use .csv, .tsv, .parquet or .npy"):
        open_points(tmp_path / "t.xlsx")
    with pytest.raises(FileNotFoundError):
        open_points(tmp_path / "nothing.csv")
    with pytest.raises(FileNotFoundError):
        open_points(tmp_path / "nothing.parquet")
    with pytest.raises(dpkde.SchemaError, match="lazy"):
        open_points(pl.from_pandas(FRAME).lazy())


def test_damage_in_the_middle_of_a_file_is_told_without_its_contents(tmp_path: Path) -> None:
    path = make("parquet", tmp_path)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[4:middle] = (b"secret-cell" * middle)[: middle - 4]
    path.write_bytes(bytes(data))
    with pytest.raises(dpkde.SchemaError, match="damaged") as told:
        dpkde.sketch(path, PLAN)
    assert "secret" not in str(told.value)


def test_objects_are_taken_cell_by_cell() -> None:
    cells = [1, True, None, "7", 10**400, 2.5, np.float32(3.5), 1j, [1]]
    frame = pd.DataFrame({"a": pd.Series(cells, dtype=object)})
    rows = np.concatenate([p.rows() for p in open_points(frame).read()])[:, 0]
    nan = np.nan
    assert np.array_equal(rows, [1, 1, nan, nan, nan, 2.5, 3.5, nan, nan], equal_nan=True)


def _signalling(dtype: str) -> Any:
    if dtype == "float32":
        return np.array([0x7FA00000, 0x3F800000], np.uint32).view(np.float32)
    return np.array([0x7FF4000000000000, 0x3FF0000000000000], np.uint64).view(np.float64)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bounds", [[(-2, 2)] * 2, dpkde.Ball((0, 0), 2), None, dpkde.Sphere()])
def test_a_signalling_nan_is_as_silent_as_any(dtype: str, bounds: Any, tmp_path: Path) -> None:
    """Warnings are errors here."""
    frame = pd.DataFrame({"a": _signalling(dtype), "b": [1.0, 1.0]})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet")
    array = np.stack([_signalling(dtype)] * 2, axis=1)
    np.save(tmp_path / "t.npy", array)
    kinds = [frame, pl.from_pandas(frame), array, tmp_path / "t.parquet", tmp_path / "t.npy"]
    for table in kinds:
        assert dpkde.publish(table, kernel=dpkde.Gaussian(1.0), bounds=bounds, epsilon=1).count >= 1


def test_values_do_not_decide_whether_a_table_is_read() -> None:
    """Pairs of tables of one kind that differ in a value: both are read, or both refused."""
    together: list[list[Any]] = [
        [pd.Series([True, False], dtype="boolean"), pd.Series([True, None], dtype="boolean")],
        [pd.Series([1.0, 2.0], dtype=object), pd.Series([1.0, "x"], dtype=object)],
        [pl.Series([True, False]), pl.Series([True, None])],
        [pa.chunked_array([[True]]), pa.chunked_array([[True, None]])],
        [pl.DataFrame({"a": [None, 1.0]}), pl.DataFrame({"a": [None]}), pl.DataFrame({"a": []})],
        [[pd.DataFrame({"a": [1.0]})], [pd.DataFrame({"a": pd.Series(["x"], dtype=object)})]],
        [np.array([]), np.array([1.0])],
    ]
    for kinds in together:
        for table in kinds:
            release = dpkde.publish(
                table, kernel=dpkde.Gaussian(1.0), bounds=[(0, 1)], epsilon=1, columns=None
            )
            assert release.dim == 1
    refused: list[list[Any]] = [
        [np.ma.array([["1"], ["2"]]), np.ma.array([["1"], ["x"]])],
        [pl.DataFrame({"a": [1]}, schema={"a": pl.Int128}), pl.DataFrame(schema={"a": pl.Int128})],
        [pl.DataFrame({"a": ["1"]}).cast(pl.Decimal(10, 2))],
        [[np.float64(1.0)], [[1.0]]],
        [pd.DataFrame([[1, 2]], columns=["a", "a"])],
        [pa.record_batch({"a": [[1]]})],
    ]
    for kinds in refused:
        for table in kinds:
            with pytest.raises(dpkde.SchemaError):
                dpkde.publish(table, kernel=dpkde.Gaussian(1.0), bounds=[(0, 1)], epsilon=1)
    # Without bounds, too, no rows and one row of a one-dimensional array are alike.
    for table in (np.array([]), np.array([1.0])):
        assert dpkde.publish(table, kernel=dpkde.Gaussian(1.0), epsilon=1).dim == 1


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r\r\n", "\r"])
@pytest.mark.parametrize("header", ["a,b", *("a" * k + ",b" for k in (4094, 4093, 4092, 4091))])
def test_lines_may_end_in_each_of_four_ways(ending: str, header: str, tmp_path: Path) -> None:
    """With and without a last line break, and where the header ends with the first bytes read."""
    for rows in ([], ["1,2"], ["1,2", "", "x,3", "4,5"]):
        for last in ("", ending):
            text = (ending.join([header, *rows]) + last).encode()
            (tmp_path / "t.csv").write_bytes(text)
            for table in (tmp_path / "t.csv", io.BytesIO(text)):
                pieces = [piece.rows() for piece in open_points(table).read()]
                found = np.concatenate([np.empty((0, 2)), *pieces])
                expected = np.array([[1, 2], [np.nan, 3], [4, 5]])[: {0: 0, 1: 1, 4: 3}[len(rows)]]
                assert np.array_equal(found, expected, equal_nan=True)


def test_a_header_is_needed(tmp_path: Path) -> None:
    for text in ("", "\n", "\r", "\r\n1,2\r\n", "\r1,2\r"):
        (tmp_path / "t.csv").write_bytes(text.encode())
        with pytest.raises(dpkde.SchemaError, match="no header line"):
            open_points(tmp_path / "t.csv")
    for text in ("a" * 200_000 + ",b\n1,2\n", "a," * (1 << 20), '"lon\r(deg)",lat\r\n1,2\r\n'):
        (tmp_path / "t.csv").write_bytes(text.encode())
        with pytest.raises(dpkde.SchemaError, match="not a header"):
            open_points(tmp_path / "t.csv")


def test_the_longest_header_is_read_alike_however_it_arrives() -> None:
    class Drops(io.BytesIO):
        drop = 1

        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 1, self.drop))

    for ending in ("\n", "\r\n", "\r\r\n", "\r"):
        for extra in (0, 1):
            names = "a," * ((1 << 19) - 1) + "ab" + "c" * extra
            for drop in (4096, 4095, 1 << 18):
                found = Drops((names + ending + "1\n").encode())
                found.drop = drop
                if extra:
                    with pytest.raises(dpkde.SchemaError, match="not a header"):
                        open_points(found, ["ab"])
                else:
                    assert open_points(found, ["ab"]).columns == ("ab",)


def test_an_empty_table_may_end_with_its_header(tmp_path: Path) -> None:
    """As joined lines do: whether there is a record must not decide whether there is an error."""
    for content, count in (("a,b", 0), ("a,b\n", 0), ("a,b\n1,2", 1)):
        (tmp_path / "t.csv").write_text(content)
        source = open_points(tmp_path / "t.csv", ["b", "a"])
        assert source.columns == ("b", "a")
        assert sum(len(piece.rows()) for piece in source.read()) == count


def test_decimals_are_numbers() -> None:
    """As a database's columns of exact numbers arrive."""
    cells = [Decimal("0.25"), Decimal("NaN"), Fraction(1, 2), "0.5", None, Loud(1)]
    (piece,) = open_points(pd.DataFrame({"a": cells})).read()
    assert np.array_equal(piece.rows()[:, 0], [0.25, np.nan, 0.5, *[np.nan] * 3], equal_nan=True)


class Located(pd.DataFrame):  # type: ignore[misc]
    """A data frame of somebody else's library."""


class Loud(float):
    """A number that tells all where it is asked for its value."""

    def __float__(self) -> float:
        raise RuntimeError("the secret")


class Strange:
    """An array with columns of which we know nothing."""

    columns = ("lat", "lon")

    def __array__(self, *_: object, **__: object) -> NDArray[np.float64]:
        return np.zeros((3, 2))


def test_columns_are_chosen_by_name_in_every_frame() -> None:
    rows = {"lat": [1.0, 2.0], "lon": [3.0, 4.0]}
    for frame in (pd.DataFrame(rows), Located(rows)):
        (piece,) = open_points(frame, ["lon", "lat"]).read()
        assert piece.rows().tolist() == [[3.0, 1.0], [4.0, 2.0]]
    with pytest.raises(dpkde.SchemaError, match="has columns, but is no data frame known here"):
        open_points(Strange(), ["lon", "lat"])
    release = dpkde.publish(pd.DataFrame(rows), kernel=dpkde.Gaussian(1.0), epsilon=1)
    with pytest.raises(dpkde.SchemaError, match="has columns, but is no data frame known here"):
        release.kde(Strange())


def test_pieces_report_their_size(tmp_path: Path) -> None:
    for kind in KINDS:
        source = open_points(make(kind, tmp_path), ["a", "b"])
        seen: list[int] = []
        assert source.size is not None
        for _ in source.watched(seen.append).read():
            pass
        assert 0.9 * source.size < sum(seen) <= source.size + 1
