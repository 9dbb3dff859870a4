"""The same points through streams, queries, folders and addresses; and what never passes a door."""

from __future__ import annotations

import datetime
import importlib
import io
import logging
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import dpkde
from dpkde.errors import SourceError
from dpkde.space.moments import DATE, INSTANT, NUMBER
from dpkde.tables import open_points
from dpkde.tables.foreign import of_library, stream
from dpkde.tables.meaning import meaning_of

ROWS = 5003
POINTS = np.random.default_rng(0).normal(size=(ROWS, 2)).round(6)
POINTS[7] = np.nan
TABLE = pa.table(
    {
        "b": POINTS[:, 1],
        "text": ["secret-cell"] * ROWS,
        "a": pa.array(POINTS[:, 0], from_pandas=True),
        "who": np.arange(ROWS) % 700,
    }
)
PLAN = dpkde.plan(
    kernel=dpkde.Gaussian(1.0),
    bounds=[(-2, 2)] * 2,
    epsilon=1,
    family=dpkde.Spline(2, 0.7),
    columns=["a", "b"],
)
WANTED = dpkde.sketch(POINTS, PLAN)
WHOSE = dpkde.sketch(TABLE, PLAN, unit="who", rows_per_unit=2)


def _file(folder: Path, name: str) -> Path:
    path = folder / name
    if path.suffix == ".parquet":
        pq.write_table(TABLE, path, row_group_size=1000)
    elif path.suffix in (".arrow", ".feather"):
        compression = "lz4" if path.suffix == ".feather" else "uncompressed"
        pa.feather.write_feather(TABLE, path, compression=compression, chunksize=1500)
    elif path.suffix == ".arrows":
        with pa.ipc.new_stream(path, TABLE.schema) as writer:
            writer.write_table(TABLE, max_chunksize=1500)
    else:
        TABLE.to_pandas().to_csv(path, index=False, compression="infer")
    return path


def _folder(folder: Path) -> Path:
    """Return a folder of files with what engines leave between them."""
    (folder / "d" / "deep").mkdir(parents=True, exist_ok=True)
    (folder / "d" / "_SUCCESS").touch()
    (folder / "d" / ".part.parquet.crc").touch()
    (folder / "d" / "_temporary").mkdir(exist_ok=True)
    (folder / "d" / "_temporary" / "half.parquet").write_text("not yet")
    for k, where in enumerate(("x", "y", "deep/z")):
        part = TABLE.slice(k * 2000, 2000)
        pq.write_table(part, folder / "d" / f"{where}.parquet")
    return folder / "d"


def _cursor(_: Path) -> sqlite3.Cursor:
    connection = sqlite3.connect(":memory:")
    TABLE.to_pandas().to_sql("t", connection, index=False)
    return connection.execute("SELECT * FROM t")


def _registered(table: Any) -> Any:
    connection = duckdb.connect()
    connection.register("t", table)
    return connection


def _memory(folder: Path) -> str:
    system = fsspec.filesystem("memory")
    system.mkdirs("/bucket", exist_ok=True)
    for path in _folder(folder).rglob("*.parquet"):
        if not path.parent.name.startswith("_"):
            with system.open(f"/bucket/{path.name}", "wb") as file:
                file.write(path.read_bytes())
    return "memory://bucket"


def _na(name: str) -> Any:
    return getattr(importlib.import_module("nanoarrow"), name)


AGAIN: dict[str, Callable[[Path], Any]] = {
    "arrow": lambda folder: _file(folder, "t.arrow"),
    "feather": lambda folder: _file(folder, "t.feather"),
    "arrows": lambda folder: _file(folder, "t.arrows"),
    "csv.bz2": lambda folder: _file(folder, "t.csv.bz2"),
    "csv.xz": lambda folder: _file(folder, "t.csv.xz"),
    "folder": _folder,
    "folder as text": lambda folder: str(_folder(folder)),
    "pattern": lambda folder: str(_folder(folder) / "**" / "[xyz].parquet"),
    "list of paths": lambda folder: sorted(_folder(folder).rglob("[xyz].parquet")),
    "list of texts": lambda folder: [str(p) for p in _folder(folder).rglob("[xyz].parquet")],
    "address": _memory,
    "pattern at an address": lambda folder: _memory(folder) + "/*.parquet",
    "addresses": lambda folder: [f"{_memory(folder)}/{name}.parquet" for name in "xyz"],
    "dataset": lambda folder: ds.dataset(_folder(folder)),
    "dataset in memory": lambda _: ds.dataset(TABLE),
    "duckdb": lambda _: duckdb.from_arrow(TABLE).filter("true"),
    "lazy polars": lambda _: pl.from_arrow(TABLE).lazy(),  # type: ignore[union-attr]
    "narwhals": lambda _: importlib.import_module("narwhals").from_native(TABLE),
    "nanoarrow": lambda _: _na("Array")(TABLE),
    "list of batches": lambda _: TABLE.to_batches(max_chunksize=1000),
    "list of nanoarrow": lambda _: [_na("c_array")(b) for b in TABLE.to_batches(2000)],
}
ONCE: dict[str, Callable[[Path], Any]] = {
    "scanner": lambda _: ds.dataset(TABLE).scanner(),
    "reader": lambda _: TABLE.to_reader(1000),
    "nanoarrow stream": lambda _: _na("ArrayStream")(TABLE),
    "capsule": lambda _: _na("c_array_stream")(TABLE),
    "iterator of batches": lambda _: iter(TABLE.to_batches(max_chunksize=1000)),
    "duckdb cursor": lambda _: _registered(TABLE).execute("SELECT * FROM t"),
    "sqlite cursor": _cursor,
}


@pytest.mark.parametrize("kind", [*AGAIN, *ONCE])
def test_every_door_gives_the_same_sketch(kind: str, tmp_path: Path) -> None:
    make = {**AGAIN, **ONCE}[kind]
    points = make(tmp_path)
    source = open_points(points, ["a", "b"])
    assert source.once == (kind in ONCE)
    assert source.columns == ("a", "b")
    assert dpkde.sketch(source, PLAN) == WANTED
    if kind in ONCE:
        with pytest.raises(dpkde.SchemaError, match="nothing is left of it"):
            dpkde.sketch(points, PLAN)
    else:
        assert dpkde.sketch(points, PLAN) == WANTED
        release = dpkde.publish(
            points, kernel=dpkde.Gaussian(1.0), bounds=[(-2, 2)] * 2, epsilon=5, columns=["b", "a"]
        )
        assert release.columns == ("b", "a")
        assert abs(release.count - ROWS) < 200


@pytest.mark.parametrize("kind", [*AGAIN, *ONCE])
def test_every_door_tells_whose_a_row_is(kind: str, tmp_path: Path) -> None:
    points = {**AGAIN, **ONCE}[kind](tmp_path)
    assert dpkde.sketch(points, PLAN, unit="who", rows_per_unit=2) == WHOSE


@pytest.mark.parametrize("kind", [*AGAIN, *ONCE])
def test_only_the_schema_raises(kind: str, tmp_path: Path) -> None:
    make = {**AGAIN, **ONCE}[kind]
    with pytest.raises(dpkde.SchemaError, match="has no column 'z'"):
        _rows(make(tmp_path), ["a", "z"])
    if kind in ("csv.bz2", "csv.xz", "sqlite cursor"):
        return  # cells of text are read one by one
    (tmp_path / "again").mkdir()
    with pytest.raises(dpkde.SchemaError, match=r"'text' .*of type .*cast it: ") as error:
        _rows(make(tmp_path / "again"), ["a", "text"])
    assert "secret" not in str(error.value)


def _rows(points: Any, columns: list[str] | None = None) -> NDArray[np.float64]:
    pieces = [piece.rows() for piece in open_points(points, columns).read()]
    return np.concatenate(pieces)


def test_a_postgres_like_cursor_tells_its_columns_with_its_first_rows() -> None:
    class Cursor:
        description: Any = None

        def __init__(self) -> None:
            self.left = list(map(tuple, POINTS.tolist()))

        def fetchmany(self, size: int) -> list[tuple[float, ...]]:
            self.description = [("a", 1), ("b", 2)]
            part, self.left = self.left[:size], self.left[size:]
            return part

    assert dpkde.sketch(Cursor(), PLAN) == WANTED
    with pytest.raises(dpkde.SchemaError, match="execute a query"):
        open_points(sqlite3.connect(":memory:").cursor())


# What types stand for.

TYPED = {
    "int8": pa.array([1, None], pa.int8()),
    "uint64": pa.array([2**64 - 1, 0], pa.uint64()),
    "half": pa.array([0.5, None], pa.float16()),
    "bool": pa.array([True, None]),
    "decimal": pa.array([Decimal("0.10"), None], pa.decimal128(9, 2)),
    "decimal32": pa.array([Decimal("0.10"), None], pa.decimal32(9, 2)),
    "decimal64": pa.array([Decimal("-0.10"), None], pa.decimal64(9, 2)),
    "long": pa.array([Decimal("12345678901234567890.1"), Decimal("-0.1")], pa.decimal256(60, 1)),
    "date": pa.array([datetime.date(1970, 1, 3), None]),
    "date64": pa.array([datetime.date(1970, 1, 3), None], pa.date64()),
    "s": pa.array([1, None], pa.timestamp("s")),
    "ns": pa.array([-1_500_000_000, None], pa.timestamp("ns", tz="Europe/Berlin")),
    "time": pa.array([datetime.time(1, 0), None]),
    "time32": pa.array([3600, None], pa.time32("s")),
    "duration": pa.array([1500, None], pa.duration("ms")),
    "coded": pa.array([7.5, None]).dictionary_encode(),
    "coded dates": pa.array([datetime.date(1970, 1, 2), None]).dictionary_encode(),
    "null": pa.nulls(2),
}
NUMBERS = {
    "int8": [1, None],
    "uint64": [2.0**64, 0],
    "half": [0.5, None],
    "bool": [1, None],
    "decimal": [0.1, None],
    "decimal32": [0.1, None],
    "decimal64": [-0.1, None],
    "long": [12345678901234567890.1, -0.1],
    "date": [2, None],
    "date64": [2, None],
    "s": [1, None],
    "ns": [-1.5, None],
    "time": [3600, None],
    "time32": [3600, None],
    "duration": [1.5, None],
    "coded": [7.5, None],
    "coded dates": [1, None],
    "null": [None, None],
}
TYPES = {"date": DATE, "date64": DATE, "coded dates": DATE, "s": INSTANT, "ns": INSTANT}


def test_types_stand_for_numbers(tmp_path: Path) -> None:
    table = pa.table(TYPED)
    expected = np.array([NUMBERS[name] for name in TYPED], dtype=np.float64).T
    pa.feather.write_feather(table, tmp_path / "t.feather")
    for points in (table, tmp_path / "t.feather", table.to_reader()):
        source = open_points(points)
        rows = np.concatenate([piece.rows() for piece in source.read()])
        assert np.array_equal(rows, expected, equal_nan=True)
        assert source.types == tuple(TYPES.get(name, NUMBER) for name in TYPED)
    slices = [open_points(table.slice(k, 1)) for k in range(2)]
    rows = np.concatenate([piece.rows() for source in slices for piece in source.read()])
    assert np.array_equal(rows, expected, equal_nan=True)


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["secret"]),
        pa.array([b"secret"]),
        pa.array(["secret"]).dictionary_encode(),
        pa.array([["secret"]]),
        pa.array([{"secret": 1}]),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    ],
    ids=lambda array: str(array.type),
)
def test_other_types_are_refused(array: Any) -> None:
    assert meaning_of(array.type) is None
    for table in (pa.table({"a": array}), pa.table({"a": array[:0]})):
        with pytest.raises(dpkde.SchemaError, match=r"'a' .*is of type .*, not a number") as error:
            open_points(table.to_reader())
        assert "secret" not in str(error.value).replace("struct<secret: int64>", "")


def test_frames_have_the_same_types() -> None:
    typed = {name: TYPED[name] for name in ("decimal", "date", "s", "ns", "time", "coded")}
    table = pa.table(typed)
    expected = np.array([NUMBERS[name] for name in typed], dtype=np.float64).T
    narrow = table.drop_columns(["s", "coded"])  # polars has neither seconds nor coded numbers
    polars = pl.from_arrow(narrow)
    at = [list(typed).index(name) for name in narrow.column_names]
    for points, wanted in (
        (table, expected),
        (table.to_pandas(types_mapper=pd.ArrowDtype), expected),
        (table.to_pandas().drop(columns=["date", "time"]), expected[:, [0, 2, 3, 5]]),
        (polars, expected[:, at]),
        (polars.lazy(), expected[:, at]),  # type: ignore[union-attr]
        (duckdb.from_arrow(narrow), expected[:, at]),
    ):
        assert np.array_equal(_rows(points), wanted, equal_nan=True), type(points)


@pytest.mark.parametrize("scale", [0, 2, 22, 23, 38])
def test_decimals_are_the_nearest_floats(scale: int) -> None:
    """As of the same digits in text, however many there are."""
    chance = np.random.default_rng(scale)
    cells = [
        Decimal(
            int(chance.integers(-9, 10)) * 10**k + int(chance.integers(10 ** min(k, 18)))
        ).scaleb(-scale)
        for k in range(37)
        for _ in range(20)
    ]
    for kind in (pa.decimal128(38, scale), pa.decimal256(76, scale)):
        array = pa.array(cells, kind)
        read = meaning_of(kind)
        assert read is not None
        assert read.numbers(array).tolist() == [float(cell) for cell in cells]
        assert read.numbers(array[5:]).tolist() == [float(cell) for cell in cells[5:]]


def test_an_instant_is_one_number_in_every_unit() -> None:
    micro = np.random.default_rng(0).integers(-(10**12), 10**12, 1000)
    table = pa.table(
        {
            "us": pa.array(micro, pa.timestamp("us")),
            "ns": pa.array(micro // 1000 * 10**6, pa.timestamp("ns")),
            "ms": pa.array(micro // 1000, pa.timestamp("ms")),
        }
    )
    rows = _rows(table)
    assert np.array_equal(rows[:, 1], rows[:, 2])
    exact = [float(Decimal(int(ticks)) / 10**6) for ticks in micro]
    assert np.allclose(rows[:, 0], exact, rtol=0, atol=2e-6)


# Folders.


def test_folders_that_are_columns(tmp_path: Path) -> None:
    pq.write_to_dataset(
        TABLE.append_column("year", pa.array(np.arange(ROWS) % 3 + 2024)),
        tmp_path / "t",
        partition_cols=["year"],
    )
    rows = _rows(tmp_path / "t", ["year", "b"])
    assert sorted(set(rows[:, 0])) == [2024, 2025, 2026]
    order = np.lexsort(rows.T)
    wanted = np.column_stack([np.arange(ROWS) % 3 + 2024.0, POINTS[:, 1]])
    assert np.array_equal(rows[order], wanted[np.lexsort(wanted.T)], equal_nan=True)
    assert dpkde.sketch(tmp_path / "t", PLAN) == WANTED
    assert dpkde.sketch(ds.dataset(tmp_path / "t", partitioning="hive"), PLAN) == WANTED
    assert dpkde.sketch(tmp_path / "t", PLAN, unit="who", rows_per_unit=2) == WHOSE
    assert dpkde.sketch(tmp_path / "t", PLAN, unit="year", rows_per_unit=5) == dpkde.sketch(
        ds.dataset(tmp_path / "t", partitioning="hive").to_table(),
        PLAN,
        unit="year",
        rows_per_unit=5,
    )
    with pytest.raises(dpkde.SchemaError, match="folders are columns as well"):
        open_points(tmp_path / "t")
    with pytest.raises(dpkde.SchemaError, match="all are folders"):
        open_points(tmp_path / "t", ["year"])


def test_folders_that_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(dpkde.SchemaError, match="holds no table"):
        open_points(tmp_path)
    _file(tmp_path, "a.csv")
    _file(tmp_path, "b.parquet")
    with pytest.raises(dpkde.SchemaError, match=r"several kinds, \.csv, \.parquet: give a pattern"):
        open_points(tmp_path)
    assert open_points(tmp_path / "*.csv", ["a"]).dim == 1
    with pytest.raises(FileNotFoundError, match="a name like"):
        open_points(tmp_path / "*.npy")
    with pytest.raises(FileNotFoundError):
        open_points([tmp_path / "a.csv", tmp_path / "c.csv"], ["a", "b"])
    with pytest.raises(FileNotFoundError):  # one is there, so all are taken for names
        open_points([str(tmp_path / "a.csv"), str(tmp_path / "c.csv")], ["a", "b"])
    with pytest.raises(dpkde.SchemaError, match=r"one more package .*s3fs"):
        open_points("s3://b/t.parquet")
    with pytest.raises(FileNotFoundError, match="memory://nothing"):
        open_points("memory://nothing/t.csv")


def test_columns_of_several_files_are_told_by_name(tmp_path: Path) -> None:
    """Without names they have to stand alike, and dates are not mixed with instants."""
    day, instant = TYPED["date"], TYPED["s"]
    tables = {
        "a": {"x": [1.0, 2.0], "t": day},
        "b": {"t": day, "x": [3.0, 4.0]},
        "c": {"x": [1.0, 2.0], "t": pa.nulls(2)},
        "d": {"x": [1.0, 2.0], "t": instant},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")

    def paths(names: str) -> list[Path]:
        return [tmp_path / f"{name}.parquet" for name in names]

    with pytest.raises(dpkde.SchemaError, match=r"b\.parquet has other columns than a\.parquet"):
        open_points(paths("ab"))
    assert _rows(paths("ab"), ["x"])[:, 0].tolist() == [1, 2, 3, 4]
    for names in ("ac", "ca"):
        assert open_points(paths(names)).types == (NUMBER, DATE)
    with pytest.raises(dpkde.SchemaError, match="dates in one and instants in another"):
        open_points(paths("ad"))


def test_hidden_files_are_no_data(tmp_path: Path) -> None:
    _folder(tmp_path)
    (tmp_path / "d" / "_temporary" / "half.parquet").write_text("not yet")
    assert dpkde.sketch(str(tmp_path / "d" / "**" / "*.parquet"), PLAN) == WANTED
    with pytest.raises(dpkde.SchemaError, match="damaged"):  # it was named
        open_points(tmp_path / "d" / "_temporary" / "*.parquet")


def test_files_with_other_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("y,x\n3,4\n")
    (tmp_path / "c.csv").write_text("Smith,y\n3,4\n")
    names = [str(tmp_path / f"{name}.csv") for name in "ab"]
    with pytest.raises(dpkde.SchemaError, match=r"b\.csv has other columns than a.csv"):
        open_points(names)
    assert _rows(names, ["x", "y"]).tolist() == [[1, 2], [4, 3]]
    with pytest.raises(dpkde.SchemaError, match=r"c\.csv has other columns") as error:
        open_points([names[0], str(tmp_path / "c.csv")])
    assert "Smith" not in str(error.value)
    with pytest.raises(dpkde.SchemaError, match=r"c\.csv has no column 'x'") as error:
        open_points([names[0], str(tmp_path / "c.csv")], ["x", "y"])
    assert "Smith" not in str(error.value)
    (tmp_path / "d.csv").write_text("x;y\n1,5;2\n")
    rows = _rows(dpkde.CSV(tmp_path / "[d].csv", delimiter=";", decimal=","))
    assert rows.tolist() == [[1.5, 2]]


def test_arrays_at_an_address() -> None:
    system = fsspec.filesystem("memory")
    for array, dim in ((POINTS, 2), (POINTS.astype(np.float32), 2), (np.arange(5), 1)):
        buffer = io.BytesIO()
        np.save(buffer, array)
        with system.open("/t.npy", "wb") as file:
            file.write(buffer.getvalue())
        rows = list(open_points("memory://t.npy").read())
        found = np.concatenate([piece.rows() for piece in rows])
        assert np.array_equal(found, array.reshape(len(array), dim), equal_nan=True)
    for broken in (buffer.getvalue()[:20], b"secret-cell" * 9):
        with system.open("/t.npy", "wb") as file:
            file.write(broken)
        with pytest.raises(dpkde.SchemaError, match="damaged"):
            open_points("memory://t.npy")


# No cell in a message.

SECRET = "SECRET-4711"


def _failing(kind: str, folder: Path) -> Any:
    """Return a source whose own code stumbles over a cell, and quotes it."""
    table = pa.table({"a": ["1.5"] * 4000 + [SECRET], "b": np.zeros(4001)})
    if kind == "duckdb":
        return duckdb.from_arrow(table).project("CAST(a AS DOUBLE) AS a, b")
    if kind == "duckdb cursor":
        return _registered(table).execute("SELECT CAST(a AS DOUBLE) AS a, b FROM t")
    if kind == "polars":
        frame = pl.from_arrow(table)
        return frame.lazy().with_columns(pl.col("a").cast(pl.Float64))  # type: ignore[union-attr]
    if kind == "cursor":

        class Cursor:
            description = (("a", 1), ("b", 2))

            def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
                raise ValueError(f"could not convert {SECRET!r} to any of {size}")

        return Cursor()
    if kind == "arrow csv":
        (folder / "t.csv").write_text("a,b\n" + "1.5,0\n" * 4000 + f"{SECRET},0\n")
        options = pa.csv.ConvertOptions(column_types={"a": pa.float64(), "b": pa.float64()})
        read = pa.csv.ReadOptions(block_size=4096)
        return pa.csv.open_csv(folder / "t.csv", convert_options=options, read_options=read)
    if kind == "pandas chunks":
        (folder / "t.csv").write_text("a,b\n" + "1.5,0\n" * 4000 + f"{SECRET},0\n")
        return pd.read_csv(folder / "t.csv", dtype=float, chunksize=1000)

    def batches() -> Iterator[Any]:
        yield from table.select(["b", "b"]).rename_columns(["a", "b"]).to_batches(1000)
        warnings.warn(f"{SECRET} is strange", stacklevel=1)
        logging.getLogger("somebody").debug("not shown")
        raise RuntimeError(f"cannot read {SECRET}")

    if kind == "generator":
        return batches()
    assert kind == "reader"
    schema = pa.schema({"a": pa.float64(), "b": pa.float64()})
    return pa.RecordBatchReader.from_batches(schema, batches())


FAILING = (
    *("duckdb", "duckdb cursor", "polars", "cursor", "arrow csv", "pandas chunks"),
    *("generator", "reader"),
)


@pytest.mark.parametrize("kind", FAILING)
@pytest.mark.filterwarnings("ignore:.*is strange")
def test_no_foreign_error_quotes_a_cell(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.DEBUG),
        pytest.raises(SourceError, match="an error of its own") as caught,
    ):
        dpkde.sketch(_failing(kind, tmp_path), PLAN)
    assert SECRET not in str(caught.value) + repr(caught.value.args)
    error: BaseException = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    trace = error.__traceback__
    while trace is not None:
        if "dpkde" in trace.tb_frame.f_code.co_filename and "tests" not in str(
            trace.tb_frame.f_code.co_filename
        ):
            assert SECRET not in repr(trace.tb_frame.f_locals)
        trace = trace.tb_next
    out, err = capfd.readouterr()
    assert SECRET not in out + err + caplog.text


def test_a_cast_that_gives_nulls_never_raises() -> None:
    table = pa.table({"a": ["1.5"] * 4000 + [SECRET], "b": np.zeros(4001)})
    rows = np.column_stack([[1.5] * 4000 + [np.nan], np.zeros(4001)])
    wanted = dpkde.sketch(rows, PLAN)
    relation = duckdb.from_arrow(table).project("* REPLACE (TRY_CAST(a AS DOUBLE) AS a)")
    assert dpkde.sketch(relation, PLAN) == wanted
    frame: Any = pl.from_arrow(table)
    lazy = frame.lazy().with_columns(pl.col("a").cast(pl.Float64, strict=False))
    assert dpkde.sketch(lazy, PLAN) == wanted


def test_a_query_keeps_its_order_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are in the order of queries, and labels in that of records; sums are in none."""
    asked, collect = [], pl.LazyFrame.collect_batches

    def collected(frame: pl.LazyFrame, **options: Any) -> Any:
        asked.append(options["maintain_order"])
        return collect(frame, **options)

    monkeypatch.setattr(pl.LazyFrame, "collect_batches", collected)
    source = open_points(pl.DataFrame({"x": [1.0, 2.0]}).lazy())
    for pieces in (source.read(), source.in_order(1), source.pieces(1)):
        assert sorted(float(x) for piece in pieces for x in piece.rows()[:, 0]) == [1.0, 2.0]
    assert asked == [True, True, False]


def test_guards_let_interruptions_pass_and_no_words() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt(SECRET)

    with pytest.raises(KeyboardInterrupt) as caught:
        of_library("it", interrupted)
    assert not caught.value.args

    def whoever() -> Iterator[int]:
        """Raise an error of our type, with words that are not ours."""
        yield 1
        raise dpkde.SchemaError(SECRET)

    with pytest.raises(SourceError, match=r"\(SchemaError\)") as stopped:
        list(stream("it", whoever()))
    assert SECRET not in str(stopped.value)
