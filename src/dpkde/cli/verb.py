"""A verb of the command line: a function, and the groups of options that it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Signature, signature
from typing import Any

from dpkde.cli.exits import speaking_plainly
from dpkde.cli.options import in_flags, rows, with_settings


@dataclass(frozen=True)
class Verb:
    """A function of its options and of arguments of its own, to be registered in `cli/verbs.py`.

    The function's first parameter holds the options by name, those of a settings file among them.
    The others are arguments without a flag, as typer takes them. Where such an argument may begin
    with a minus sign, `takes_minus` leaves to the function what looks like an unknown option.
    """

    function: Callable[..., None]
    groups: tuple[str, ...]
    takes_minus: bool

    def command(self) -> Callable[..., None]:
        """Return the function as typer takes it: every option is a parameter."""
        options = rows(*self.groups)
        _, *arguments = signature(self.function, eval_str=True).parameters.values()

        @wraps(self.function)
        def run(**values: Any) -> None:
            with speaking_plainly(lambda message: in_flags(message, options)):
                own = {argument.name: values.pop(argument.name) for argument in arguments}
                self.function(with_settings(values), **own)

        run.__signature__ = Signature(  # type: ignore[attr-defined]
            [*arguments, *(option.parameter() for option in options)]
        )
        return run


def verb(*groups: str, takes_minus: bool = False) -> Callable[[Callable[..., None]], Verb]:
    """Return a decorator that makes a function a verb with these groups of options."""
    return lambda function: Verb(function, groups, takes_minus)
