"""What a notebook shows of a release: a small picture, the statement, the fields.

Names and remarks in a file are anybody's words: all of them are escaped. Nothing here raises, and
nothing takes long: a picture that would is left out.
"""

from __future__ import annotations

import base64
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING

from dpkde.plots.style import named
from dpkde.release.parts import FittedModel

if TYPE_CHECKING:
    from dpkde.release.answering import Answering

_WIDTH = 4.2
_MOST_CELLS = 1 << 17
"""Larger tables are not denoised for this."""
_PLACES = {1: 200, 2: 90}
_MOST_WORDS = 400
"""Most letters of a field."""


def html(release: Answering) -> str:
    """Return a release as HTML."""
    picture = ""
    with suppress(Exception):  # whatever is missing, or odd about this release
        picture = _picture(release)
    rows = "".join(
        f"<tr><th style='text-align:left;vertical-align:top'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(named(value, _MOST_WORDS))}</td></tr>"
        for name, value in _fields(release)
    )
    return (
        "<div style='display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start'>"
        f"{picture}<div><table>{rows}</table>"
        "<pre style='white-space:pre-wrap;text-align:left;max-width:46em'>"
        f"{escape(str(release.privacy))}</pre></div></div>"
    )


def _fields(release: Answering) -> list[tuple[str, str]]:
    """Return what is to be known of a release, name by name."""
    law, plan = release.law("count"), release.plan
    spread = "" if law is None else f", give or take {law.variance**0.5:.1f}"
    box = release.domain.to_json()
    columns = ", ".join(release.columns or [f"{release.dim}, not named"])
    fields = [
        ("records", f"{release.count}{spread or ' (exact: their number is public)'}"),
        ("columns", columns),
        ("domain", f"{release.domain.kind} {box or ''}".rstrip()),
        ("kernel", repr(release.kernel)),
        ("family", plan.layout.summary),
        ("table", f"{release.table.size} cells"),
    ]
    if release.promise is not None:
        fields.append(("promise", str(release.promise)))
    extras = getattr(release, "extras", None)
    if extras:
        fields += [(str(key), str(value)) for key, value in extras.items()]
    return fields


def _picture(release: Answering) -> str:
    """Return a small picture as an image in the page; nothing where it would take long."""
    if release.dim > 2 or release.table.size > _MOST_CELLS:
        return ""
    if release.plan.layout.can_be_modelled:
        held = getattr(getattr(release, "release", release), "parts", None)
        if held is None or held.of(FittedModel) is None:
            return ""  # a model would be fitted first
    figure = release.plot(width=_WIDTH, shape=_PLACES[release.dim], level=None, contours=False)
    source = base64.b64encode(figure._repr_png_()).decode("ascii")
    return f"<img alt='density' style='background:white' src='data:image/png;base64,{source}'>"
