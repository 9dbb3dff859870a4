"""What Sphinx is told; `__main__.py` lays out the pages that it reads."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"

from numpydoc.docscrape import NumpyDocString
from numpydoc.docscrape_sphinx import SphinxDocString
from sphinx.application import Sphinx

import dpkde

project = "dpkde"
author = "the authors of dpkde"
copyright = author
version = release = dpkde.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["files"]
templates_path = [str(Path(__file__).parent / "templates")]  # not beside the laid-out pages
smartquotes = False  # text is shown as it is written: -- begins an option
nitpicky = True
nitpick_ignore_regex = [
    ("py:obj", ".*"),  # the default role: what docstrings put in single quotes may be an argument
    ("py:(class|data)", ".*"),  # annotations name types of other libraries and of our own modules
]
default_role = "py:obj"

# Pages: anchors as the repository's own readers make them, so that links work in both places.
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4

# Tutorials run at each build, in a folder of their own; one that fails fails the build.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
nb_execution_show_tb = True

# The reference: signatures from annotations, text from docstrings.
autosummary_generate = True
autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
autodoc_type_aliases = {
    name: name
    for name in (
        "ArrayLike",
        "BoundsLike",
        "Exact",
        "LedgerLike",
        "NDArray",
        "PointsLike",
        "Points",
    )
}
numpydoc_validation_checks = {  # those about sections, summaries and names of parameters
    *("GL03", "GL05", "GL09", "GL10", "SS01", "SS04", "SS05"),
    *("PR02", "PR05", "PR06", "PR07", "PR09", "PR10", "RT02", "RT03", "RT04", "RT05"),
}

html_theme = "pydata_sphinx_theme"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_title = f"dpkde {version}"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "dpkde"},
    "navbar_align": "left",
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["theme-version"],
    "footer_end": [],
    "navigation_with_keys": False,
}

_PLAIN = SphinxDocString._str_section


def _with_guarantee(self: SphinxDocString, name: str) -> Any:
    """Return a section of a docstring; before the notes stands what is guaranteed."""
    before = _PLAIN(self, "Guarantee") if name == "Notes" else []
    return [*before, *_PLAIN(self, name)]


NumpyDocString.sections["Guarantee"] = []
SphinxDocString._str_section = _with_guarantee


def _bars_are_bars(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: Any) -> None:
    """Keep |x − y| from being read as a name to substitute."""
    literal = False
    for at, line in enumerate(lines):
        literal = literal and (not line.strip() or line.startswith(" "))
        if not literal and not line.lstrip().startswith((">>>", "...")):
            lines[at] = "``".join(
                part if odd % 2 else re.sub(r"(?<!\\)\|", r"\\|", part)
                for odd, part in enumerate(line.split("``"))
            )
        literal = literal or line.rstrip().endswith("::")


def _aliases_by_name(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, typed: str | None, back: Any
) -> tuple[str | None, Any]:
    """Return a signature that names an alias of a type as its author does."""
    return typed and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", typed), back


def _is_of_others(
    app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what a class has from scikit-learn, which documents it."""
    return True if str(getattr(thing, "__module__", "")).startswith("sklearn.") else None


def setup(app: Sphinx) -> None:
    """Register what this site does of its own."""
    app.connect("autodoc-process-docstring", _bars_are_bars, priority=900)
    app.connect("autodoc-skip-member", _is_of_others)
    app.connect("autodoc-process-signature", _aliases_by_name, priority=900)
