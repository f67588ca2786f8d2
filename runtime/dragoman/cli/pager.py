"""Output that is longer than the screen, shown with the user's pager."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from .recorded_output import RecordedOutput, screen_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

LESS = "FRX"
"""Options of less unless LESS sets others: end if it fits, keep colours, leave the screen as it is."""


def pager_command() -> list[str]:
    """Return the words that start the pager: PAGER, else less; none if there is none."""
    if "PAGER" in os.environ:
        try:
            words = shlex.split(os.environ["PAGER"])
        except ValueError:
            return []
        return words if words != ["cat"] else []
    return ["less"] if shutil.which("less") else []


@contextmanager
def paged() -> Iterator[None]:
    """Show what the block writes to standard output with the pager, if it is longer than the screen.

    Messages on standard error follow when the pager has ended.
    """
    command = pager_command()
    if not command or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    with RecordedOutput() as output:
        yield
    text = output.data
    if sum(screen_lines(text)) >= shutil.get_terminal_size().lines and _show(command, text):
        sys.stderr.write(output.said)
        output.drop()
    else:
        output.release()


def _show(command: list[str], text: str) -> bool:
    """Show a text with the pager and wait for its end; return whether it could be started."""
    environment = {"LESS": LESS, **os.environ}
    sys.stdout.flush()
    with _heedless():  # Ctrl-C is the pager's
        try:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)  # noqa: S603 - the user's own
        except OSError:
            return False
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:  # it ended before the end of the text
            process.stdin.write(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))
        process.wait()
    return True


@contextmanager
def _heedless() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, lambda *_: None)  # unlike SIG_IGN, the pager does not inherit it
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
