"""One door: the same points through every kind of table give the same sketch, bit for bit."""

from __future__ import annotations

import importlib
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
from dpkde.numerics.pool import mapped
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
    if kind in ("csv", "tsv", "pandas"):
        rows = np.concatenate([p.rows() for p in open_points(table, ["text"]).read()])
        assert np.isnan(rows).all()  # text is no number, and nobody is told
    else:
        with pytest.raises(
            dpkde.SchemaError, match=r"'text' .* is of type .*, not a number; .* cast.*'text'"
        ) as error:
            open_points(table, ["text"])
        assert "secret" not in str(error.value)


def test_a_csv_without_a_header_gives_nothing_away(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("1.5,2.5\n3.5,4.5\n")
    for columns in (None, ["a", "b"]):
        with pytest.raises(dpkde.SchemaError, match="holds numbers; a header") as error:
            open_points(path, columns)
        assert "1.5" not in str(error.value)
    path.write_text("Alice,Bob\n3.5,4.5\n")
    with pytest.raises(dpkde.SchemaError, match="no column 'a' in its first line") as error:
        open_points(path, ["a", "b"])
    assert "Alice" not in str(error.value)
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
        with pytest.raises(dpkde.SchemaError, match="is damaged, or not a") as error:
            open_points(tmp_path / name)
        assert "secret" not in str(error.value)
    np.save(tmp_path / "o.npy", np.array([{"secret": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(dpkde.SchemaError, match="is damaged"):
        open_points(tmp_path / "o.npy")
    np.save(tmp_path / "s.npy", np.array([["secret"]]))
    with pytest.raises(dpkde.SchemaError, match="real numbers") as error:
        open_points(tmp_path / "s.npy")
    assert "secret" not in str(error.value)
    with pytest.raises(
        dpkde.SchemaError,
        match=r"use .csv, .*, .npy \(text also as .gz",
    ):
        open_points(tmp_path / "t.xlsx")
    with pytest.raises(FileNotFoundError):
        open_points(tmp_path / "nothing.csv")
    with pytest.raises(FileNotFoundError):
        open_points(tmp_path / "nothing.parquet")


def test_damage_in_the_middle_of_a_file_is_told_without_its_contents(tmp_path: Path) -> None:
    path = make("parquet", tmp_path)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[4:middle] = (b"secret-cell" * middle)[: middle - 4]
    path.write_bytes(bytes(data))
    with pytest.raises(dpkde.SchemaError, match="damaged") as error:
        dpkde.sketch(path, PLAN)
    assert "secret" not in str(error.value)


def test_objects_are_taken_cell_by_cell() -> None:
    cells = [1, True, None, "7", 10**400, 2.5, np.float32(3.5), 1j, [1]]
    frame = pd.DataFrame({"a": pd.Series(cells, dtype=object)})
    rows = np.concatenate([p.rows() for p in open_points(frame).read()])[:, 0]
    nan = np.nan
    assert np.array_equal(rows, [1, 1, nan, 7, nan, 2.5, 3.5, nan, nan], equal_nan=True)


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
        [np.array([]), np.array([1.0]), np.array([1.0, "x"]), np.array([1.0, None])],
        [
            [np.float64(1.0)],
            [[1.0]],
            [],
            [["x"]],
            [None],
            [np.zeros((2, 1))],
            [[1.0, 2.0]],
            [Loud(1)],
        ],
        [np.ma.array([["1"], ["2"]]), np.ma.array([["1"], ["x"]]), np.ma.array([[1.0], [2.0]])],
    ]
    for kinds in together:
        for table in kinds:
            release = dpkde.publish(
                table, kernel=dpkde.Gaussian(1.0), bounds=[(0, 1)], epsilon=1, columns=None
            )
            assert release.dim == 1
    refused: list[list[Any]] = [
        [pl.DataFrame({"a": [1]}, schema={"a": pl.Int128}), pl.DataFrame(schema={"a": pl.Int128})],
        [pl.DataFrame({"a": ["1"]}), pl.DataFrame({"a": ["x"]})],
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
    for lines in ([], ["1,2"], ["1,2", "", "x,3", "4,5"]):
        for last in ("", ending):
            text = (ending.join([header, *lines]) + last).encode()
            (tmp_path / "t.csv").write_bytes(text)
            for table in (tmp_path / "t.csv", io.BytesIO(text)):
                pieces = [piece.rows() for piece in open_points(table).read()]
                rows = np.concatenate([np.empty((0, 2)), *pieces])
                expected = np.array([[1, 2], [np.nan, 3], [4, 5]])[: {0: 0, 1: 1, 4: 3}[len(lines)]]
                assert np.array_equal(rows, expected, equal_nan=True)


def test_a_header_is_needed(tmp_path: Path) -> None:
    for text in ("", "\n", "\r", "\r\n1,2\r\n", "\r1,2\r"):
        (tmp_path / "t.csv").write_bytes(text.encode())
        with pytest.raises(dpkde.SchemaError, match="no header line"):
            open_points(tmp_path / "t.csv")
    for text in ("a" * 200_000 + ",b\n1,2\n", "a," * (1 << 20), '"lon\r(deg),lat\r\n1,2\r\n'):
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
            names = ("a" * 1023 + ",") * 1023 + "a" * 1021 + ",ab" + "c" * extra
            for drop in (4096, 4095, 1 << 18):
                stream = Drops((names + ending + "1\n").encode())
                stream.drop = drop
                if extra:
                    with pytest.raises(dpkde.SchemaError, match="not a header"):
                        open_points(stream, ["ab"])
                else:
                    assert open_points(stream, ["ab"]).columns == ("ab",)


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
    expected = [0.25, np.nan, 0.5, 0.5, np.nan, np.nan]
    assert np.array_equal(piece.rows()[:, 0], expected, equal_nan=True)


class Loud(float):
    """A number that tells all where it is asked for its value."""

    def __float__(self) -> float:
        raise RuntimeError("the secret")


class Evil:
    """A cell that raises wherever it is touched."""

    def __getattribute__(self, name: str) -> Any:
        raise KeyboardInterrupt("the secret")

    __len__ = __iter__ = __float__ = __index__ = __array__ = __bool__ = __str__ = __eq__ = None  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class LoudText(str):
    """A text that tells all where it is asked for its bytes."""

    def encode(self, *_: Any, **__: Any) -> bytes:
        raise KeyboardInterrupt("the secret")

    __str__ = __repr__ = encode  # type: ignore[assignment]


CELLS = [1.5, "2.5", " 3e0", b"4", Decimal("5"), True, np.float32(7), LoudText("8")]
BAD: list[Any] = [
    "n/a",
    "",
    None,
    "nan",
    "inf",
    "1,000",
    Evil(),
    Loud(1),
    [1, 2],
    {},
    1j,
    "0x1",
    "\ud800",
]


def rows_in(table: Any, dim: int) -> NDArray[np.float64]:
    """Read as the curator does, in another thread."""
    return np.concatenate(list(mapped(lambda piece: piece.rows(), open_points(table).pieces(dim))))


def test_one_bad_cell_does_not_cost_the_column() -> None:
    """As pandas reads a file: text for all of them; each number among them is one."""
    text = "a,b\n" + "".join(f"{i},{i / 2}\n" for i in range(4999)) + "n/a,1\n"
    for options in ({}, {"dtype": str}, {"dtype": "string"}, {"dtype": object}):
        frame = pd.read_csv(io.StringIO(text), keep_default_na=False, **options)
        assert not pd.api.types.is_numeric_dtype(frame["a"].dtype)
        assert dpkde.sketch(frame, PLAN)._count == 4999
    arrow = pd.read_csv(io.StringIO(text), keep_default_na=False, dtype_backend="pyarrow")
    assert dpkde.sketch(arrow, PLAN)._count == 4999
    rows = [[line[0], line[1]] for line in (r.split(",") for r in text.split("\n")[1:-1])]
    for table in (rows, tuple(rows), np.array(rows), np.array(rows, dtype=object), iter(rows)):
        assert dpkde.sketch(table, PLAN)._count == 4999


def test_cells_of_every_kind() -> None:
    good: list[float] = [1.5, 2.5, 3, 4, 5, 1, 7, 8]
    bad = [np.nan] * len(BAD)
    cells = CELLS + BAD
    flat = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        flat[place] = cell
    tables: list[Any] = [pd.DataFrame({"a": flat}), flat]
    tables += [flat[:, np.newaxis], cells, [[cell] for cell in cells], [(cell,) for cell in cells]]
    tables += [iter(cells), [flat[:9], flat[9:]]]
    for table in tables:
        assert np.array_equal(rows_in(table, 1)[:, 0], good + bad, equal_nan=True)
    # A row with a bad cell, or of another length, is one bad record among good ones.
    rows: list[Any] = [
        [1.0, 2.0],
        np.array([3.0, 4.0]),
        (5, 6),
        [7.0],
        [8.0, 9.0, 1.0],
        "10,11",
        12,
        Evil(),
    ]
    records = rows_in(rows, 2)
    assert records[:3].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert np.isnan(records[3:]).all()
    assert len(records) == len(rows)
    assert records.dtype == np.float64
    huge = rows_in([[1, 10**400], [2, 3]], 2)
    assert np.array_equal(huge, np.array([[1, np.nan], [2, 3]]), equal_nan=True)


class Meta(type):
    """Of a class that can neither be hashed nor compared."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(cls, other: object) -> bool:
        raise RuntimeError("the secret")


class Unhashable(metaclass=Meta):
    __module__ = None  # type: ignore[assignment]


class Shady(Fraction):
    """A number whose conversion is warned of."""

    def __float__(self) -> float:
        return np.float64(1.5)


def test_strange_rows_and_cells_are_bad_records_without_a_word() -> None:
    """Warnings are errors here."""
    rows: list[Any] = [[1.0, 2.0], Unhashable(), [Unhashable(), 2.0], {1.0, 2.0}, np.zeros(3)]
    assert np.isnan(rows_in(rows, 2)[1:]).any(axis=1).all()
    rows_in([[1.0, Shady(3)], [2.0, 3.0]], 2)
    texts = np.array([b"1.5", b"x"])
    assert np.array_equal(rows_in(texts, 1)[:, 0], [1.5, np.nan], equal_nan=True)
    # Texts that end like files are cells, unless there are such files.
    terms: dict[str, Any] = {"kernel": dpkde.Gaussian(1.0), "bounds": [(0, 1)], "epsilon": 1}
    for table in ([], ["x.csv"], ["x.csv", "0.5"]):
        assert dpkde.publish(table, **terms).dim == 1


def test_rows_with_names() -> None:
    frame = pd.DataFrame({"a": [1.0, 3.0], "b": [2.0, 4.0], "c": ["x", "y"]})
    expected = frame[["b", "a"]].to_numpy()
    tables: list[Any] = [frame.to_dict("records"), iter(frame.to_dict("records"))]
    tables += [[row[["b", "a"]] for _, row in frame.iterrows()]]
    for table in tables:
        source = open_points(table, ["b", "a"])
        assert np.array_equal(np.concatenate([p.rows() for p in source.read()]), expected)
    rows = np.concatenate([p.rows() for p in open_points([{"a": 1}], ["b", "a"]).read()])
    assert np.isnan(rows).all()
    ways: list[Any] = [frame.columns[:2], np.array(["a", "b"]), ("a", "b")]
    for columns in ways:
        release = dpkde.publish(
            frame, kernel=dpkde.Gaussian(1.0), bounds=[(0, 9)] * 2, epsilon=1, columns=columns
        )
        assert release.columns == ("a", "b")


def test_a_header_that_is_missing_is_not_quoted() -> None:
    frame = pd.read_csv(io.StringIO("5.1182,0.2498\n1,2\n"))
    with pytest.raises(dpkde.SchemaError, match="numbers for names") as error:
        open_points(frame, ["lon", "lat"])
    assert "5.1182" not in str(error.value)


def test_lists_are_read_in_pieces_and_in_order() -> None:
    rows = np.random.default_rng(1).normal(size=(150_000, 2))
    for table in (rows.tolist(), list(rows), iter(rows.tolist()), list(np.array_split(rows, 7))):
        source = open_points(table, ["a", "b"])
        pieces = [piece.rows() for piece in source.read()]
        assert np.array_equal(np.concatenate(pieces), rows)
        assert len(pieces) > 1
    with pytest.raises(dpkde.SchemaError, match="number of columns of a list of rows is open"):
        list(open_points(rows[:3].tolist()).read())
    with pytest.raises(dpkde.ParameterError, match="number of columns is open"):
        dpkde.publish(rows[:3].tolist(), kernel=dpkde.Gaussian(1.0), epsilon=1)


def test_what_was_read_before_is_refused_before_anything_is_spent() -> None:
    """Where that can be told; a fresh one without a record publishes like any other."""

    def batches(count: int) -> Any:
        yield from (POINTS[:10] for _ in range(count))

    terms: dict[str, Any] = {
        "kernel": dpkde.Gaussian(1.0),
        "bounds": [(-2, 2)] * 2,
        "epsilon": 1,
        "expected_rows": 10,
    }
    schema = pa.schema({"a": pa.float64(), "b": pa.float64()})
    for count in (0, 2):
        batch = pa.record_batch({"a": POINTS[:5, 0], "b": POINTS[:5, 1]})
        reader = pa.RecordBatchReader.from_batches(schema, [batch] * count)
        for fresh in (batches(count), reader):
            dpkde.publish(fresh, **terms)
            with pytest.raises(dpkde.SchemaError, match="was read before"):
                dpkde.publish(fresh, **terms)
    rows = POINTS[:9].tolist()
    for fresh in (iter(rows), map(list, rows), zip(rows, rows, strict=True)):
        dpkde.publish(fresh, **terms)
        with pytest.raises(dpkde.SchemaError, match="was read before"):
            dpkde.publish(fresh, **terms)
    spent = batches(1)
    list(spent)
    with pytest.raises(dpkde.SchemaError, match="was read before"):
        dpkde.publish(spent, **terms)
    stream = io.BytesIO(b"a,b\n1,2\n")
    dpkde.publish(stream, **terms)
    with pytest.raises(dpkde.SchemaError, match="open it anew"):
        dpkde.publish(stream, **terms)
    stream.seek(0)
    dpkde.publish(stream, **terms)
    stream.close()
    with pytest.raises(dpkde.SchemaError, match="cannot be read: open it anew"):
        dpkde.publish(stream, **terms)


def test_arrow_without_columns() -> None:
    na = importlib.import_module("nanoarrow")
    for strange in (
        na.Array([1.0], na.float64()),
        na.c_array([1.0], na.float64()),
        na.ArrayStream([1.0], na.float64()),
    ):
        with pytest.raises(dpkde.SchemaError, match="make a table of it"):
            open_points(strange)


class Located(pd.DataFrame):  # type: ignore[misc]
    """A data frame of somebody else's library."""


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
    with pytest.raises(dpkde.SchemaError, match="a Release of dpkde holds no rows to read"):
        open_points(release)
    with pytest.raises(dpkde.SchemaError, match="a Release of dpkde holds no rows to read"):
        release.kde(release)


def test_pieces_report_their_size(tmp_path: Path) -> None:
    for kind in KINDS:
        source = open_points(make(kind, tmp_path), ["a", "b"])
        sizes: list[int] = []
        assert source.size is not None
        for _ in source.watched(sizes.append).read():
            pass
        assert 0.9 * source.size < sum(sizes) <= source.size + 1


def test_a_header_that_may_be_a_record_is_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Smith,HIV,HIV,yes\nJones,flu,flu,no\n")
    with pytest.raises(dpkde.SchemaError, match="more than one column of the same name") as fault:
        open_points(tmp_path / "t.csv")
    assert "HIV" not in str(fault.value)
    with pytest.raises(dpkde.SchemaError, match="more than one column 'HIV'"):
        open_points(tmp_path / "t.csv", ["HIV"])
