"""The documentation site, as far as it can be checked without building it: nothing is forgotten."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest

import command_pages
import dpkde
import dpkde.prior
import stage
from dpkde.cli.verbs import GROUPS, VERBS
from offline import loaded_from_elsewhere

ROOT = Path(__file__).parents[1]
PLACED = stage.pages()
_TREE = re.compile(r"```\{toctree\}\n(.*?)```", re.S)


def _entries(text: str, page: PurePosixPath) -> list[str]:
    """Return the pages that the toctrees of a page name, without an ending."""
    lines = [line.strip() for block in _TREE.findall(text) for line in block.splitlines()]
    names = [line for line in lines if line and not line.startswith(":")]
    bare = [found[1] if (found := re.search(r"<(.+)>$", name)) else name for name in names]
    return [(page.parent / name).as_posix() for name in bare]


def _texts() -> dict[str, str]:
    """Return the text of each page of the site by its address without an ending."""
    own = {there: page.read_text(encoding="utf-8") for page, there in PLACED.items()}
    made = {PurePosixPath(at): text for at, text in command_pages.pages().items()}
    made[PurePosixPath("proofs.md")] = stage.index_of_proofs()
    return {at.with_suffix("").as_posix(): text for at, text in (own | made).items()}


def test_every_page_is_in_one_toctree() -> None:
    """A page that was written and not listed could be found by nobody."""
    texts = _texts()
    listed = [entry for at, text in texts.items() for entry in _entries(text, PurePosixPath(at))]
    assert sorted([*listed, "index"]) == sorted(texts), "list the page in a toctree of docs/"


def _slugs(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MyST make them."""
    found: list[str] = []
    for line in stage.prose(text):
        if heading := re.match(r"#{1,4} (.+)", line):
            plain = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading[1]).strip().lower()
            slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
            found.append(f"{slug}-{found.count(slug)}" if slug in found else slug)
    return set(found)


@pytest.mark.parametrize("page", PLACED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_have_their_anchors(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", "\n".join(stage.prose(text))):
        if "://" not in target:
            other = (page.parent / target).resolve() if target else page
            assert anchor in _slugs(other.read_text(encoding="utf-8")), f"{target}#{anchor}"


def test_slugs() -> None:
    assert _slugs("# A promise: `alpha` and `eta`\n## 1. Plan\n## 1. Plan\n```\n# no\n```") == {
        "a-promise-alpha-and-eta",
        "1-plan",
        "1-plan-1",
    }


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    modules = re.split(r"currentmodule:: ", text)[1:]
    listed = {module.split()[0]: set(re.findall(r"^   (\w+)$", module, re.M)) for module in modules}
    doors = {name for name in dpkde.__all__ if isinstance(getattr(dpkde, name), ModuleType)}
    assert listed.keys() >= {f"dpkde.{door}" for door in doors}
    public = set(dpkde.__all__) - doors - {"__version__"}
    assert listed["dpkde"] == public
    assert listed["dpkde.prior"] == set(dpkde.prior.__all__)


def test_links_are_those_of_the_site() -> None:
    page = ROOT / "docs" / "tutorials" / "curator.md"
    text = (
        "[a](../curator.md#x) [b](../../SECURITY.md) [c](../../LICENSE) [d](https://x.org/y.md)\n"
        "[e](../../src/dpkde/families/spline/proof.md) [f](../../README.md) [g](#here)\n"
        "```\n[h](../curator.md)\n```"
    )
    assert stage.moved(text, page, PLACED) == (
        "[a](../curator.md#x) [b](../security.md) [c](../files/LICENSE) [d](https://x.org/y.md)\n"
        "[e](../proofs/spline.md) [f](../index.md) [g](#here)\n"
        "```\n[h](../curator.md)\n```"
    )


def test_pages_are_laid_out(tmp_path: Path) -> None:
    """Every page and every file that one links to; what is gone in the repository goes there."""
    (tmp_path / "gone.md").write_text("# Gone\n")
    stage.stage(tmp_path, {"commands.md": "# The command\n"})
    assert not (tmp_path / "gone.md").exists()
    assert (tmp_path / "commands.md").read_text() == "# The command\n"
    assert all((tmp_path / there).is_file() for there in PLACED.values())
    assert (tmp_path / "files" / "docs" / "city.png").stat().st_size > 10_000
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.md")}
    stage.stage(tmp_path, {"commands.md": "# The command\n"})
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.md")} == before


def test_every_proof_is_on_the_site() -> None:
    index = stage.index_of_proofs()
    names = {proof.parent.name for proof in stage.proofs() if proof.name == "proof.md"}
    assert {"spline", "fourier", "laplace", "ledger", "units"} <= names
    assert all(f"proofs/{name}\n" in index for name in names)


def test_every_verb_has_a_page_with_its_options() -> None:
    pages = command_pages.pages()
    verbs = [verb.function.__name__ for verb in VERBS]
    verbs += [f"{group}-{verb.function.__name__}" for group in GROUPS for verb in GROUPS[group][1]]
    assert {f"commands/{verb}.md" for verb in verbs} == set(pages) - {"commands.md"}
    page = pages["commands/publish.md"]
    assert page.startswith("# dpkde publish\n")
    assert "```console\n$ dpkde publish trips.csv -o trips.dpkde" in page
    assert re.search(r"^`-o, --output <path>`\n: .+\[required\\\]$", page, re.M)
    assert "`--epsilon <str>`\n: Privacy bound ε" in page


def test_extras_are_told() -> None:
    """Each extra for users, and no other, has a row in the table on the first page."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])
    text = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.M)) == extras - {"bench", "dev", "docs"}


@pytest.mark.parametrize(
    ("text", "fetches"),
    [
        ('<script src="https://cdn.example/x.js"></script>', True),
        ('<link rel="stylesheet" href="//fonts.example/x.css">', True),
        ('<img alt="" src="http://example.org/x.png">', True),
        ("<style>@import url(https://fonts.example/x.css)</style>", True),
        ('<script src="_static/x.js"></script><a href="https://example.org">x</a>', False),
        ('<link rel="canonical" href="https://example.org/x.html">', False),
    ],
)
def test_what_is_loaded_from_elsewhere_is_found(text: str, fetches: bool, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(text)
    assert bool(loaded_from_elsewhere(tmp_path)) == fetches
