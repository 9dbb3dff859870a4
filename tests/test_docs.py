"""Documents tell the truth: every code block runs, every command and file they name exists."""

from __future__ import annotations

import json
import math
import pkgutil
import re
import shlex
import sys
import tomllib
from contextlib import suppress
from glob import glob
from pathlib import Path

import pytest

import dpkde
from dpkde import demo
from dpkde.cli.main import run

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def _blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.S)


def _code(path: Path) -> list[str]:
    """Return a page's blocks of Python, the cells of a tutorial among them, in order."""
    return _blocks(path, r"(?:\{code-cell\} )?python")


def _named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# Those of extend.md run in tests/families/test_custom.py, where its family passes the contract.
WITH_CODE = [path for path in PAGES if _code(path) and path.name != "extend.md"]


@pytest.mark.parametrize("path", WITH_CODE, ids=_named)
def test_python_blocks_run(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All blocks of a page run one after the other, in one namespace and an empty folder.

    In a tutorial a cell that begins with an exclamation mark is a command.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    namespace: dict[str, object] = {}
    for block in _code(path):
        if block.startswith("!"):
            assert run(shlex.split(block)[1:]) == 0
        else:
            exec(compile(block, path.name, "exec"), namespace)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.mark.parametrize("path", PAGES, ids=_named)
def test_commands_and_links_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for block in _blocks(path, "sh"):
        for command in re.findall(r"\bmake (\w+)", block):
            assert command in targets
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in link:
            assert (path.parent / link).exists(), link


def _exists(name: str, *modules: str) -> bool:
    for module in modules:
        with suppress(AttributeError, ImportError):
            pkgutil.resolve_name(f"{module}:{name}")
            return True
    return False


# The changelog speaks of what is gone, too.
PRESENT = [path for path in PAGES if path.name != "CHANGELOG.md"]


@pytest.mark.parametrize("path", PRESENT, ids=_named)
def test_names_and_files_exist(path: Path) -> None:
    """Modules, attributes, registries and files that a page names; what it writes <so> is open."""
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"`(dpkde(?:\.\w+)+)", text):
        pkgutil.resolve_name(name)
    for name in re.findall(r"`([A-Z]+[a-z]\w*\.\w+)", text):
        assert _exists(name, "dpkde", "dpkde.families.base", "dpkde.prior"), name
    for file in re.findall(r"`([\w./]+/\w+\.(?:pyi?|md))`", text):
        folders = (ROOT, ROOT / "src", ROOT / "src" / "dpkde")
        assert any((folder / file).is_file() for folder in folders), file
    for name, place in re.findall(r"`([A-Z]+)` (?:of|in)\s+`([\w./]+)`", text):
        module = place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        assert _exists(name, module if module.startswith("dpkde.") else f"dpkde.{module}"), name


@pytest.mark.parametrize(
    "name",
    [
        *("curator.md", "analyst.md", "ledger.md", "parts.md", "choosing.md", "gallery.md"),
        *("audit.md", "start.md"),
    ],
)
def test_commands_of_the_tutorials_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every ``dpkde`` line, in an empty folder with a table, settings and points of that name."""
    _prepare(tmp_path, monkeypatch)
    monkeypatch.setattr(demo, "city", lambda people, city=demo.city: city(3_000))
    commands = [
        line
        for block in _blocks(ROOT / "docs" / name, "sh")
        for line in block.splitlines()
        if line.startswith("dpkde ")
    ]
    assert len(commands) >= (1 if name == "choosing.md" else 2)
    if name in ("analyst.md", "gallery.md"):
        commands.insert(0, "dpkde publish trips.csv -o trips.dpkde --settings trips.toml")
    for command in commands:
        words = shlex.split(command)[1:]
        typed = [name for word in words for name in sorted(glob(word)) or [word]]  # as a shell does
        assert run(typed) == 0


def test_the_two_commands_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As they stand, with the table that the demo leaves behind, which tells them too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "city", lambda people, city=demo.city: city(3_000))
    assert run(["demo"]) == 0
    text = capsys.readouterr().out
    (block,) = _blocks(ROOT / "README.md", "console")
    commands = [line.removeprefix("$ ") for line in block.splitlines()]
    assert len(commands) == 2
    for command in commands:
        assert command in text
        assert run(shlex.split(command)[1:]) == 0
    answers = capsys.readouterr().out.splitlines()
    assert answers[0] == "east,north,kde,standard_error,sampling_error"
    kde, error = map(float, answers[1].split(",")[2:4])
    assert abs(kde - 0.053) < 8 * error + 0.01  # by the exact KDE of the demo's city


def test_the_gallery_has_the_pictures_of_its_code() -> None:
    """One for each block that writes one, and shown on the page below it; each is small."""
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    written = re.findall(r'savefig\("(\w+\.png)"', text)
    assert len(written) >= 10
    assert re.findall(r"\]\(gallery/([^)]+)\)", text) == written
    assert sorted(written) == sorted(path.name for path in (ROOT / "docs/gallery").iterdir())
    for name in written:
        picture = (ROOT / "docs" / "gallery" / name).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) < 100_000


def _prepare(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    monkeypatch.chdir(folder)
    trips = np.random.default_rng(0).normal((-73.9, 40.7), 0.05, size=(500, 2))
    np.savetxt("trips.csv", trips, delimiter=",", header="lon,lat", comments="")
    np.savetxt("places.csv", trips[:3], delimiter=",", header="lon,lat", comments="")
    visits = np.column_stack([np.arange(600) % 90, np.abs(trips).repeat(2, axis=0)[:600]])
    np.savetxt("visits.csv", visits, delimiter=",", header="patient_id,age,stay", comments="")
    for name in ("north", "south", "south-annex", "east"):
        np.savetxt(f"{name}.csv", visits, delimiter=",", header="patient_id,age,stay", comments="")
    Path("parts").mkdir()
    district = {"type": "Polygon", "coordinates": [[[-74, 40.6], [-73.8, 40.7], [-73.9, 40.8]]]}
    Path("districts.json").write_text(json.dumps(district))
    (settings,) = _blocks(ROOT / "docs" / "curator.md", "toml")
    Path("trips.toml").write_text(settings)


HELD = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_each_claim_of_the_threat_model_has_its_test() -> None:
    """Each row of a table of claims names tests, and each test that is named exists."""
    text = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| claim \| held by \|\n\|---\|---\|\n((?:\|.*\n)+)", text, re.M)
    claims = [row for table in tables for row in table.splitlines()]
    assert len(tables) >= 5
    assert len(claims) >= 30
    for row in claims:
        assert HELD.search(row), row
    for file, name in HELD.findall(text):
        assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8"), (file, name)
    assert len(re.findall(r"tests/", text)) == len(HELD.findall(text))  # none is written otherwise


def test_what_epsilon_means() -> None:
    """The numbers of the threat model: odds, a guess, a suspicion, a test for membership."""
    text = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.e+]+) \|((?: [\d.]+% \|){3})$", text, re.M)
    assert [epsilon for epsilon, *_ in rows] == ["0.1", "0.5", "1", "2", "4", "10"]
    for epsilon, odds, shares in rows:
        e = math.exp(float(epsilon))
        assert float(odds) == pytest.approx(e, rel=5e-3)
        exact = [
            e / (1 + e),
            e / 99 / (1 + e / 99),
            min(
                0.01 * e, 1 - 0.99 / e
            ),  # both sides of the inequality, for a test and its opposite
        ]
        for told, share in zip(re.findall(r"([\d.]+)%", shares), exact, strict=True):
            digits = len(told.partition(".")[2])
            assert abs(float(told) - 100 * share) <= 0.5001 * 10**-digits


def test_ci_runs_the_readmes_command() -> None:
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_readme_quotes_the_statement() -> None:
    """The sentences of a privacy statement stand in the README word for word."""
    import numpy as np

    bounds = [(-4, 4)] * 2
    points, kernel = np.zeros((50_000, 2)), dpkde.Gaussian(0.5)
    release = dpkde.publish(points, kernel=kernel, bounds=bounds, epsilon=0.5)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert str(release.privacy) in text


def test_as_many_tasks_as_are_promised() -> None:
    """Whoever names their number names that of the page; each begins with its name in bold."""
    page = (ROOT / "docs/tasks.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\*\*", page, re.M)) == 15
    said = [re.findall(r"(\w+) tasks\b", path.read_text(encoding="utf-8")) for path in PAGES]
    numbers = [word.lower() for words in said for word in words if word.lower().endswith("teen")]
    assert len(numbers) >= 5
    assert set(numbers) == {"fifteen"}


def test_versions_agree() -> None:
    assert f"## {dpkde.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f'version: "{dpkde.__version__}"' in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    with (ROOT / "pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["project"]["dynamic"] == ["version"]


def test_the_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo.main(str(tmp_path), people=3_000)
    assert len(list(tmp_path.glob("*.dpkde"))) == 3
    picture = (tmp_path / "city.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000
    assert "0.5-differentially private" in capsys.readouterr().out


@pytest.mark.audit
def test_the_tables_of_kernels_are_those_of_the_code(tmp_path: Path) -> None:
    """Written into a page that lacks the rows of a kernel, they make it the page that we have."""
    from dpkde.catalogue import rewrite

    text = (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
    page = tmp_path / "kernels.md"
    page.write_text(re.sub(r"(?m)^\| `Hat` .*\n", "", text), encoding="utf-8")
    rewrite(page)
    assert page.read_text(encoding="utf-8") == text
