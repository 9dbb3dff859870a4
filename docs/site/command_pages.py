"""The command's pages: one for each verb, from what its ``--help`` says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import typer

from dpkde.cli.verbs import app


def _verbs() -> Iterator[tuple[str, Any, Any]]:
    """Yield each verb's words, its command, and the context that its help is asked in."""
    whole: Any = typer.main.get_command(app)
    root = whole.context_class(whole, info_name="dpkde")
    for name, command in whole.commands.items():
        context = command.context_class(command, info_name=name, parent=root)
        own = getattr(command, "commands", None)
        if own is None:
            yield f"dpkde {name}", command, context
        for word, second in (own or {}).items():
            inner = second.context_class(second, info_name=word, parent=context)
            yield f"dpkde {name} {word}", second, inner


def _prose(help_: str) -> str:
    """Return the help text as Markdown: a paragraph that begins with Example is a command."""
    parts = []
    for paragraph in dedent(help_).strip().split("\n\n"):
        line = " ".join(paragraph.split())
        head, example, command = line.partition("Example: ")
        if example and not head:
            parts.append(f"```console\n$ {command}\n```")
        else:
            parts.append(_escaped(line))
    return "\n\n".join(parts)


def _escaped(text: str) -> str:
    """Return text as Markdown that shows it as it is, and options as code."""
    plain = re.sub(r"([\\`*_<>\[\]{}$|~])", r"\\\1", text)
    return re.sub(r"(?<!\S)(--[a-z][a-z-]*)", r"`\1`", plain)


def _records(command: Any, context: Any) -> Iterator[tuple[str, str, str]]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            kind = "Options" if parameter.param_type_name == "option" else "Arguments"
            yield kind, *record


def page(words: str, command: Any, context: Any) -> str:
    """Return the page of one verb."""
    usage = command.collect_usage_pieces(context)
    text = f"# {words}\n\n{_prose(command.help or '')}\n\n"
    text += f"```text\nUsage: {words} {' '.join(usage)}\n```\n"
    last = ""
    for kind, typed, meaning in sorted(_records(command, context), key=lambda r: r[0]):
        if kind != last:
            text += f"\n## {kind}\n"
            last = kind
        text += f"\n`{typed}`\n: {_escaped(' '.join(meaning.split()))}\n"
    return text


def pages() -> dict[str, str]:
    """Return all pages of the command by address: one for each verb, and their index."""
    made = {}
    rows = []
    for words, command, context in _verbs():
        address = f"commands/{words.removeprefix('dpkde ').replace(' ', '-')}"
        made[f"{address}.md"] = page(words, command, context)
        rows.append((address, words, _escaped((command.help or "").strip().split("\n")[0])))
    table = "\n".join(f"| [`{words}`]({at}.md) | {line} |" for at, words, line in rows)
    tree = "\n".join(f"{words} <{at}>" for at, words, _ in rows)
    made["commands.md"] = (
        "# The command\n\nEach page says what `--help` says. Options of a release may stand in a "
        "settings file,\ntoo ([how](curator.md#1-decide-in-public)). Exit codes: 0 done, 1 a "
        "defect of dpkde, 2 wrong\nuse or a bad file, 130 interrupted.\n\n"
        f"| command | |\n|---|---|\n{table}\n\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"
    )
    return made
