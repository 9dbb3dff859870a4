"""Names that are loaded when they are first used, listed once: in the stub beside a package.

The stub ``__init__.pyi`` tells readers and type checkers what a package has; at run time it tells
which module to load for a name.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def attach(
    package: str, file: str, *more: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package, from its stub.

    `more` are names that the package has anyway.
    """
    tree = ast.parse(Path(file).with_name("__init__.pyi").read_text(encoding="utf-8"))
    homes = {
        alias.name: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    names = sorted([*homes, *more])

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        inside = home == package  # a module of the package itself
        module = importlib.import_module(f"{package}.{name}" if inside else home)
        value = module if inside else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: names, names
