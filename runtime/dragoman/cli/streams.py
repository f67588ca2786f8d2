"""Who may write to standard output: data, or events alone; never what an automation prints."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

if TYPE_CHECKING:
    from typing import Any


def reserve_stdout() -> BinaryIO:
    """Take standard output for events alone; all else that is printed, by child processes too, goes to stderr."""
    out = sys.stdout
    sys.stdout = sys.stderr
    try:
        number = out.fileno()
    except OSError:  # not the one of a process
        return out.buffer
    out.flush()
    events = open(os.dup(number), "wb", buffering=0)  # noqa: SIM115, PTH123 - it lives as long as the process
    os.dup2(sys.stderr.fileno(), number)
    return events


class Aside:
    """Standard output, but for what automations print: that is no data, and goes to stderr with their name."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._begins = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    def write(self, text: str) -> int:
        """Write for whoever prints."""
        from dragoman._hooks import AT_WORK

        if not (name := AT_WORK.get()):
            return self._out.write(text)
        sys.stderr.write(f"{name}: {text}" if self._begins else text)
        self._begins = text.endswith("\n")
        return len(text)


def aside(out: TextIO) -> TextIO:
    """Put what automations print aside."""
    return cast("TextIO", Aside(out))
