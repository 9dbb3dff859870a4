"""The ``dpkde`` command's door, and what Ctrl-C does there."""

from __future__ import annotations

import io
import os
import signal
import sys
from types import FrameType
from typing import Any

INTERRUPTED = 130


class _Interrupts:
    """Ctrl-C from the first moment to the last: it ends in one line, never in a traceback.

    The first one unwinds what is under way, so that no half-written file stays behind; what turns
    up on the way, in a library that was in the middle of something, is not an error of its own. A
    second one does not wait. Where there is nothing left to stop, it is ignored.
    """

    def __init__(self) -> None:
        self.happened = self.announced = False

    def watch(self) -> None:
        """Begin, if this is the main thread, which is the one that Ctrl-C interrupts."""
        try:
            signal.signal(signal.SIGINT, self._stop)
        except ValueError:  # not the main thread: Ctrl-C does not end up here
            return
        uncaught, unraisable = sys.excepthook, sys.unraisablehook

        def quiet(*exception: Any) -> None:
            self.announce() if self.happened else uncaught(*exception)

        def dropped(exception: sys.UnraisableHookArgs) -> None:
            # An exception that reaches nobody would not stop anybody either.
            self.leave() if self.happened else unraisable(exception)

        sys.excepthook, sys.unraisablehook = quiet, dropped

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.happened:
            self.leave()
        self.happened = True
        raise KeyboardInterrupt

    def announce(self) -> None:
        if not self.announced:
            self.announced = True
            os.write(2, b"dpkde: interrupted\n")

    def leave(self) -> None:
        self.announce()
        os._exit(INTERRUPTED)

    def end(self) -> None:
        """Ignore Ctrl-C from now on: there is nothing left to stop."""
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        except ValueError:
            return


def run(arguments: list[str] | None = None) -> Any:
    """Run the command, and return its exit code; errors of the parser come as one line, too."""
    interrupts = _Interrupts()
    try:
        if arguments is None:  # as a command of its own: nobody else minds what Ctrl-C does
            interrupts.watch()
            _spell_out_letters()
        code = _run(sys.argv[1:] if arguments is None else arguments)
        if interrupts.happened or code == INTERRUPTED:  # the parser may have caught it
            raise KeyboardInterrupt
        return code
    except BaseException as error:
        if interrupts.happened or isinstance(error, KeyboardInterrupt):
            interrupts.announce()
            raise SystemExit(INTERRUPTED) from None
        raise
    finally:
        if arguments is None:
            interrupts.end()


def _spell_out_letters() -> None:
    """Let ε be written as an escape where the output has no such letter, as the error output does.

    On Windows what is piped or redirected is in the code page of the country, mostly without it.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _run(typed: list[str]) -> Any:
    from dpkde.cli.exits import DONE, fail

    try:
        from dpkde.cli.verbs import app
    except ImportError:
        fail("the command line needs more packages: pip install 'dpkde[cli]'")
    try:
        code = app(typed or ["--help"], prog_name="dpkde", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return _enough()
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            return _enough()
        raise
    except Exception as error:
        if type(error).__name__ == "Abort":
            raise KeyboardInterrupt from None
        if not hasattr(error, "format_message"):
            raise
        if type(error).__name__ == "NoArgsIsHelpError":  # a group without a verb, as dpkde alone
            return _run([*typed, "--help"])
        verb = getattr(getattr(error, "ctx", None), "command_path", "dpkde")
        fail(f"{error.format_message().rstrip('.?')}; see {verb} --help")
    return code if isinstance(code, int) else DONE


def _enough() -> int:
    """Return 0: whoever reads our output has enough. Python shall not complain of it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
