"""The table of options: what is read off it, how a verb is added, and whose words messages use."""

from __future__ import annotations

import ast
import inspect
import json
import re
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

import dpkde
from commands import GOOD, dpkde_
from dpkde.cli.options import RELEASE, SETTLED, TABLE, Option, Options, arguments_of, in_flags, rows
from dpkde.cli.verb import verb
from dpkde.cli.verbs import GROUPS, VERBS, app, application
from dpkde.errors import ParameterError
from dpkde.families.registry import FAMILIES

SOURCE = Path(dpkde.__file__).parent
LIBRARY = sorted(path for path in SOURCE.rglob("*.py") if "cli" not in path.parts)


@verb("text", "outlook", "settings")
def count(
    options: Options, tables: Annotated[list[str], typer.Argument(help="Any number of words.")]
) -> None:
    """Say what was typed."""
    if options["expected_rows"] is None:
        raise ParameterError("expected_rows is needed: give expected_rows=, never alpha=")
    typer.echo(json.dumps([tables, arguments_of(options, "text", "outlook")]))


def test_a_verb_is_a_function_and_a_word_in_a_list(tmp_path: Path) -> None:
    """It has the rows of its groups and no others, settings and flags in messages included."""
    toy, runner = application([*VERBS, count]), CliRunner()
    assert " count " in runner.invoke(toy, ["--help"]).output
    text = runner.invoke(toy, ["count", "--help"]).output
    assert set(re.findall(r"(?<= )--[a-z-]+", text)) == {
        *("--delimiter", "--records", "--decimal", "--thousands", "--encoding"),
        *("--expected-rows", "--typical-density", "--pilot", "--no-pilot", "--settings", "--help"),
    }
    for row in rows("text", "outlook"):
        assert row.help.split()[0] in text
    settings = tmp_path / "s.toml"
    settings.write_text('decimal = ","\ndelimiter = ";"\nepsilon = 1\n')
    typed = ["count", "a", "b", "--settings", str(settings), "--delimiter", "tab"]
    result = runner.invoke(toy, [*typed, "--expected-rows", "1e3"])
    assert result.exit_code == 0
    assert json.loads(result.output) == [
        ["a", "b"],
        {"expected_rows": 1000, "delimiter": "tab", "decimal": ","},
    ]
    result = runner.invoke(toy, typed)
    assert result.exit_code == 2
    line = "dpkde: --expected-rows is needed: give --expected-rows, never alpha=\n"
    assert result.output == line  # there is no --alpha here


def test_every_option_is_a_row() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert list(commands) == [*(verb.function.__name__ for verb in VERBS), *GROUPS]
    every = [(entry, commands[entry.function.__name__]) for entry in VERBS]
    for name, (_, own) in GROUPS.items():
        inner = commands[name].commands
        assert list(inner) == [entry.function.__name__ for entry in own]
        every += [(entry, inner[entry.function.__name__]) for entry in own]
    for entry, command in every:
        parameters = command.params
        typed = [p for p in parameters if p.param_type_name == "option" and p.name != "help"]
        flags = [p.secondary_opts or p.opts for p in typed]
        assert flags == [[row.flag, *row.short] for row in rows(*entry.groups)]
    groups = {group for entry, _ in every for group in entry.groups}
    assert {row.group for row in TABLE} == groups


def test_rows_are_named_as_the_library_names_its_arguments() -> None:
    """Else their values could not be handed on, and flags in messages would not be found."""
    taken = set(inspect.signature(dpkde.publish).parameters)
    for family in FAMILIES.values():
        names = set(inspect.signature(family).parameters)
        assert {row.name for row in rows(family.name)} <= names
    plain = {row.name for row in rows(*RELEASE) if row.group not in FAMILIES}
    assert plain - taken == {"outside", "bandwidth", "bandwidth_std"}  # of domain and kernel
    assert {row.name for row in rows("text")} <= set(inspect.signature(dpkde.CSV).parameters)
    assert set(FAMILIES) <= set(SETTLED)
    for entry in VERBS:
        flags = [row.flag for row in rows(*entry.groups)]
        assert len(flags) == len(set(flags))


VALUES = {
    "columns": ["lon"],
    "bounds": [[0, 1]],
    "bandwidth": 0.2,
    "bandwidth_std": [0.1, 0.2],
    "epsilon": 1,
    "spacing": [0.5],
    "degree": 3,
    "expected_rows": 2e3,
    "rows_per_unit": 3,
    "typical_density": 1,
    "alpha": 1,
    "eta": 0.5,
}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.name} of {row.group}")
def test_a_settings_file_holds_what_the_table_says(
    row: Option, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told that there is no such setting, or that a value is not of its kinds."""
    settings = {entry.name for entry in rows(*RELEASE, "text")}  # a sample has a seed, too
    usual: dict[object, object] = {bool: True, int: 1}
    right, wrong = json.dumps(VALUES.get(row.name, usual.get(row.kind, "x"))), "2026-11-16"
    for value in (right, wrong):
        Path("s.toml").write_text(f"{row.name.replace('_', '-')} = {value}\n")
        code, _, err = dpkde_("plan", "--settings", "s.toml", capsys=capsys)
        assert code == 2
        if row.name not in settings:
            assert "no such setting" in err
        else:
            assert ("cannot be" in err) is (value == wrong)


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_library_never_quotes_a_flag(path: Path) -> None:
    """Nor a piece of one: whoever calls it from Python has none."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not re.search(r"(?<![\w-])--(?=[a-z{]|\Z)", node.value), node.value


@pytest.mark.parametrize(
    ("message", "typed"),
    [
        ("give expected_rows=, a plan, or dim=", "give --expected-rows, a plan, or --dim"),
        ("such as epsilon=0.5", "such as --epsilon 0.5"),
        ("such as delta=1e-6, or rho", "such as --delta 1e-6, or --rho"),
        ("no hash (family='auto' takes one)", "no hash (--family auto takes one)"),
        ("typical_density is a guess", "--typical-density is a guess"),
        ("epsilon must be positive", "--epsilon must be positive"),
        ("alpha and eta go together", "--alpha and --eta go together"),
        ("seed must be whole", "--seed must be whole"),
        ("bounds of column a are reversed", "bounds of column a are reversed"),
        ("there is no column 'expected_rows'", "there is no column 'expected_rows'"),
        ("no column 'dim='", "no column 'dim='"),
        ("points_per_axis is needed", "points_per_axis is needed"),
        ("use bounds=dpkde.Sets(universe)", "use bounds=dpkde.Sets(universe)"),
        ("such as bounds=[(0, 1)]", "such as bounds=[(0, 1)]"),
        ("dpkde.Gaussian(bandwidth=0.1)", "dpkde.Gaussian(bandwidth=0.1)"),
        ("dpkde.publish(paths, epsilon=...)", "dpkde.publish(paths, epsilon=...)"),
        ("matern:alpha=1 and ./expected_rows here", "matern:alpha=1 and ./expected_rows here"),
    ],
)
def test_arguments_become_flags(message: str, typed: str) -> None:
    assert in_flags(message, TABLE) == typed


def test_the_same_error_in_both_languages(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = dpkde.Gaussian(0.2)
    with pytest.raises(dpkde.ParameterError, match=r"^expected_rows is needed"):
        dpkde.plan(kernel=kernel, bounds=[(0, 1)] * 2, epsilon=1)
    assert "--expected-rows is needed" in dpkde_("plan", *GOOD, capsys=capsys)[2]
    with pytest.raises(dpkde.ParameterError, match="dim= to plan"):
        dpkde.plan(kernel=kernel, epsilon=1, expected_rows=9)
    free = ["plan", "--bandwidth", "1", "--epsilon", "1", "--expected-rows", "9"]
    assert "--dim to plan" in dpkde_(*free, capsys=capsys)[2]
    with pytest.raises(dpkde.ParameterError, match=r"give expected_rows=,.* such as frequencies=$"):
        dpkde.publish((x for x in [[[0.5, 0.5]]]), kernel=kernel, bounds=[(0, 1)] * 2, epsilon=1)
