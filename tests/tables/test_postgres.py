"""PostgreSQL, a real server: Arrow batches through ADBC, rows through a cursor on its side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import numpy as np
import psycopg
import pytest

import dpkde
from dpkde.errors import SourceError
from dpkde.tables import open_points
from local_postgres import LocalPostgres, postgres_is_there

ROWS = 20_011
SECRET = "SECRET-4711"
PLAN = dpkde.plan(
    kernel=dpkde.Gaussian(1.0),
    bounds=[(-2, 2), (18_000, 21_000)],
    epsilon=1,
    family=dpkde.Spline(2, 0.7),
    columns=["a", "day"],
)
QUERY = "SELECT a, who, day - date '1970-01-01' AS day FROM trips"
DATES = "SELECT a, who, day FROM trips"

pytestmark = pytest.mark.skipif(
    not postgres_is_there(), reason="there is no PostgreSQL server to start (initdb, pg_ctl, psql)"
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    generator = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("postgres") / "trips.csv"
    with path.open("w", encoding="utf-8") as file:
        file.write("a,who,text,day\n")
        for k, a in enumerate(generator.normal(size=ROWS).round(4)):
            cell = SECRET if k == ROWS - 1 else "1.5"
            file.write(f"{'' if k % 97 == 0 else a},p{k % 500},{cell},{18_100 + k % 2_000}\n")
    return path


@pytest.fixture(scope="module")
def server(table: Path) -> Iterator[LocalPostgres]:
    with LocalPostgres() as running:
        running.run("CREATE TABLE raw (a double precision, who text, text text, day integer);")
        running.copy("raw", table)
        running.run(
            "CREATE TABLE trips AS SELECT a, who, text, date '1970-01-01' + day AS day FROM raw"
        )
        yield running


@contextmanager
def executed(kind: str, server: LocalPostgres, query: str) -> Iterator[Any]:
    """Yield a cursor that has a result: of ADBC, on the server's side, or with all rows here."""
    connect = adbc.connect if kind == "adbc" else psycopg.connect
    name = {"name": "rows"} if kind == "named" else {}
    with connect(server.uri) as connection, connection.cursor(**name) as cursor:
        cursor.execute(query)
        yield cursor


@pytest.mark.parametrize("kind", ["adbc", "named", "plain"])
@pytest.mark.parametrize("unit", [{}, {"unit": "who", "rows_per_unit": 2}])
def test_a_database_gives_the_sketch_of_its_csv(
    kind: str, unit: dict[str, Any], server: LocalPostgres, table: Path
) -> None:
    wanted = dpkde.sketch(table, PLAN, **unit)
    with executed(kind, server, QUERY) as cursor:
        assert dpkde.sketch(cursor, PLAN, **unit) == wanted
        with pytest.raises(dpkde.SchemaError, match="nothing is left of it"):
            dpkde.sketch(cursor, PLAN, **unit)


def test_dates_are_days(server: LocalPostgres, table: Path) -> None:
    with executed("adbc", server, DATES) as cursor:
        assert dpkde.sketch(cursor, PLAN) == dpkde.sketch(table, PLAN)


@pytest.mark.parametrize("kind", ["adbc", "named"])
def test_what_a_server_says_of_a_cell_does_not_pass(
    kind: str, server: LocalPostgres, capfd: pytest.CaptureFixture[str]
) -> None:
    query = "SELECT text::double precision AS a, 0 AS day FROM trips"
    with suppress(Exception), executed(kind, server, query) as cursor:
        with pytest.raises(SourceError, match="an error of its own") as caught:
            dpkde.sketch(cursor, PLAN)
        raise InterruptedError  # what is left of the transaction says it again
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None
    assert SECRET not in "".join(capfd.readouterr())


def test_types_without_a_number_are_refused(server: LocalPostgres) -> None:
    with (
        executed("adbc", server, "SELECT text, 1.5::numeric AS n FROM trips") as cursor,
        pytest.raises(dpkde.SchemaError, match=r"'text' .* CAST\(text AS DOUBLE"),
    ):
        open_points(cursor, ["text"])
