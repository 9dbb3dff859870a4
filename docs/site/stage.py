"""Lay the site's pages out as Sphinx reads them, in a folder of their own.

Pages stand where readers of the repository find them: in `docs/`, beside the code that they prove,
at the root. On the site each has a short address. Links are written for the repository, as
relative paths, and changed here to those of the site; a link to a file that is no page, such as a
module or the licence, becomes a download. The repository itself is never written to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
PROOFS = {
    "families": "Families of functions",
    "privacy/laws": "Laws of noise and of choices",
    "privacy/ledger": "The ledger",
    "curator/units": "People, not rows",
    "assisted": "Models that assist",
    "prior": "Mechanisms of others",
}
"""Rooms of the package that hold proofs, and what they are called; the rest is under “More”."""

_LINK = re.compile(r"(\]\()([^)#\s]*)((?:#[^)\s]*)?\))")
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")


def _is_outside(target: str) -> bool:
    return "://" in target or target.startswith("mailto:")


def proofs(root: Path = ROOT) -> list[Path]:
    """Return the files beside the code that say why it is right."""
    package = root / "src" / "dpkde"
    texts = (*package.rglob("*proof.md"), *package.rglob("method.md"))
    return sorted(text for text in texts if "__pycache__" not in text.parts)


def pages(root: Path = ROOT) -> dict[Path, PurePosixPath]:
    """Return where each Markdown file of the repository goes on the site."""
    placed = {
        page: PurePosixPath(page.relative_to(root / "docs").as_posix())
        for page in sorted((root / "docs").rglob("*.md"))
        if not page.is_relative_to(root / "docs" / "site")
    }
    placed |= {root / name: PurePosixPath(name.lower()) for name in PROJECT}
    placed[root / "experiments" / "report" / "report.md"] = PurePosixPath("report.md")
    for proof in proofs(root):
        name = proof.name.removesuffix(".md").removesuffix("proof").rstrip(".")
        own = name if name not in ("", "method") else proof.parent.name
        placed[proof] = PurePosixPath("proofs") / f"{own}.md"
    if len(set(placed.values())) < len(placed):
        raise ValueError("two pages have one name")
    return placed


def lines_of(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it is in a block of code or one of its fences."""
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        yield line, bool(mark or fence)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""


def prose(text: str) -> Iterator[str]:
    """Yield the lines of a page that are in no block of code."""
    return (line for line, is_code in lines_of(text) if not is_code)


def moved(text: str, page: Path, placed: dict[Path, PurePosixPath], root: Path = ROOT) -> str:
    """Return a page's text with its relative links as they are on the site."""
    here = placed[page].parent

    def link(found: re.Match[str]) -> str:
        start, target, end = found.groups()
        if not target or _is_outside(target):
            return found[0]
        file = (page.parent / target).resolve()
        if file == root / "README.md":
            there = PurePosixPath("index.md")
        else:
            there = placed.get(file) or PurePosixPath("files") / file.relative_to(root).as_posix()
        return f"{start}{os.path.relpath(there, here).replace(os.sep, '/')}{end}"

    return "\n".join(line if is_code else _LINK.sub(link, line) for line, is_code in lines_of(text))


def linked(text: str, page: Path) -> Iterator[Path]:
    """Yield the files that a page links to."""
    for hit in _LINK.finditer("\n".join(prose(text))):
        if hit[2] and not _is_outside(hit[2]):
            yield (page.parent / hit[2]).resolve()


def index_of_proofs(root: Path = ROOT) -> str:
    """Return the page that lists all proofs, room by room."""
    placed, rest = pages(root), proofs(root)
    text = (
        "# Proofs\n\nBeside the code of each family, law and mechanism stands why it is "
        "right: what has to hold before,\nwhat holds then, and the argument in steps that name the "
        "functions.\n"
    )
    for room, caption in (*PROOFS.items(), ("", "More")):
        inside = [p for p in rest if p.is_relative_to(root / "src" / "dpkde" / room)]
        rest = [p for p in rest if p not in inside]
        if inside:
            names = "\n".join(placed[p].with_suffix("").as_posix() for p in inside)
            text += f"\n```{{toctree}}\n:caption: {caption}\n:maxdepth: 1\n\n{names}\n```\n"
    return text


def write(place: Path, content: str | bytes) -> None:
    """Write a file unless it is there with that content: what did not change is not built again."""
    new = content.encode() if isinstance(content, str) else content
    if not place.is_file() or place.read_bytes() != new:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(new)


def stage(target: Path, extra: dict[str, str], root: Path = ROOT) -> None:
    """Lay all pages out in a folder: those of the repository, and `extra` ones by address."""
    placed = pages(root)
    present = set()
    for page, there in placed.items():
        text = page.read_text(encoding="utf-8")
        write(target / there, moved(text, page, placed, root))
        present.add(target / there)
        for file in linked(text, page):
            if file not in placed and file != root / "README.md":
                copy = target / "files" / file.relative_to(root)
                write(copy, file.read_bytes())
                present.add(copy)
    for address, text in {"proofs.md": index_of_proofs(root), **extra}.items():
        write(target / address, text)
        present.add(target / address)
    for old in list(target.rglob("*")):  # pages that are gone
        if old.is_file() and old not in present:
            old.unlink()
