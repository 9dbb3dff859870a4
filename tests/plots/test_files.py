"""Pictures as files and in notebooks."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde.plots.figure import save


@pytest.fixture(scope="module")
def release() -> dpkde.Release:
    return dpkde.publish(
        np.random.default_rng(0).normal(0.5, 0.1, size=(500, 2)),
        kernel=dpkde.Gaussian(0.2),
        bounds=[(0, 1)] * 2,
        epsilon=1,
        columns=["<script>alert(1)</script>", "b & c"],
        extras={"org.example/note": "<img src=x onerror=alert(2)>"},
        family=dpkde.Spline(3, 0.75),
    )


@pytest.mark.parametrize(
    ("ending", "begin"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_the_same_picture_is_the_same_file(
    release: dpkde.Release, tmp_path: Path, ending: str, begin: bytes
) -> None:
    contents = []
    for name in ("a", "b"):
        save(release.plot(shape=20), tmp_path / f"{name}.{ending}")
        contents.append((tmp_path / f"{name}.{ending}").read_bytes())
    assert contents[0].startswith(begin)
    assert contents[0] == contents[1]
    assert not re.search(rb"20[2-9]\d-\d\d-\d\d|D:20\d\d", contents[0])  # no time of day
    assert {path.name for path in tmp_path.iterdir()} == {f"a.{ending}", f"b.{ending}"}
    stream = io.BytesIO()
    release.plot(shape=20).savefig(stream, format=ending)
    assert stream.getvalue().startswith(begin)


def test_refusals(release: dpkde.Release, tmp_path: Path) -> None:
    figure = release.plot(shape=5)
    with pytest.raises(dpkde.ParameterError, match=r"ends in .png, .svg, .pdf"):
        save(figure, tmp_path / "map.jpg")
    release.save(tmp_path / "map.png")
    with pytest.raises(dpkde.ParameterError, match="not overwritten"):
        save(figure, tmp_path / "map.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(dpkde.ParameterError, match="is a folder"):
        save(figure, tmp_path / "folder.png")
    with pytest.raises(FileNotFoundError, match=r"nowhere.map.png"):
        save(figure, tmp_path / "nowhere" / "map.png")


def test_without_matplotlib(release: dpkde.Release, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says what to install; a notebook shows the rest."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ways: list[Callable[[], Any]] = [
        release.plot,
        lambda: dpkde.plot_difference(release, release),
    ]
    for draw in ways:
        with pytest.raises(dpkde.ParameterError, match=r"pip install 'dpkde\[plot\]'") as caught:
            draw()
        assert len(str(caught.value).splitlines()) == 1
    page = release._repr_html_()
    assert "<img" not in page
    assert "differentially private" in page


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") for name, _ in attrs)
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.words += data


def test_in_a_notebook(release: dpkde.Release) -> None:
    """A picture, the statement and the fields; hostile names are words, and never tags."""
    page = _Tags()
    page.feed(release._repr_html_())
    assert page.tags.count("img") == 1
    assert set(page.tags) <= {"div", "img", "table", "tr", "th", "td", "pre"}
    assert str(release.privacy) in page.words
    for word in ("<script>alert(1)</script>, b & c", "onerror=alert(2)", "spline", "org.example"):
        assert word in page.words
    assert release.plot(shape=9)._repr_png_().startswith(b"\x89PNG")
    view = _Tags()
    view.feed(release.marginal("b & c")._repr_html_())
    assert view.tags.count("img") == 1


def test_a_notebook_never_sees_an_error(
    release: dpkde.Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no screen")

    monkeypatch.setattr(dpkde.Release, "plot", broken)
    page = release._repr_html_()
    assert "<img" not in page
    assert "differentially private" in page
