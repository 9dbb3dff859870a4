"""A check of the built site: whoever reads it fetches nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*\b(?:src|data)=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b(?![^>]*\brel=["']?(?:canonical|author|next|prev|search))[^>]*\bhref=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|@import\s+(?:url\()?["']?(?:https?:)?//[^"')\s]+|url\(["']?(?:https?:)?//[^"')\s]+"""
)


def loaded_from_elsewhere(site: Path) -> list[str]:
    """Return what pages and styles of a built site would fetch from the network."""
    found = []
    for file in sorted((*site.rglob("*.html"), *site.rglob("*.css"))):
        text = file.read_text(encoding="utf-8")
        found += [f"{file.relative_to(site)}: {hit[0]}" for hit in _LOADED.finditer(text)]
    return found
