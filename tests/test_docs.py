"""Documents tell the truth: every code block runs, every command and file they name exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import dpkde
from dpkde import demo

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def _blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("path", [p for p in PAGES if _blocks(p, "python")], ids=lambda p: p.name)
def test_python_blocks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a page run one after the other, in one namespace and an empty folder."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for block in _blocks(path, "python"):
        exec(compile(block, path.name, "exec"), namespace)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_commands_and_links_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for block in _blocks(path, "sh"):
        for command in re.findall(r"\bmake (\w+)", block):
            assert command in targets
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in link:
            assert (path.parent / link).exists(), link


def test_ci_runs_the_readmes_command() -> None:
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_readme_quotes_the_statement() -> None:
    """The sentences of a privacy statement stand in the README word for word."""
    import numpy as np

    points = np.zeros((10, 2))
    release = dpkde.publish(points, kernel=dpkde.Gaussian(0.5), epsilon=0.5)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for line in str(release.privacy).splitlines():
        if not line.startswith("  - "):
            assert line in text


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
    assert "1-differentially private" in capsys.readouterr().out
