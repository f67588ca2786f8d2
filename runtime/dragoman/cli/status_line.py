"""A line of progress on the terminal."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

_PAUSE = 0.1
"""Seconds between two texts."""


class StatusLine:
    """A line on stderr that each text replaces, if stderr is a terminal that shows lines; a context clears it.

    Args:
        quiet: Show nothing.
        patience: Seconds before the first text.
    """

    def __init__(self, *, quiet: bool = False, patience: float = 0.0) -> None:
        self._live = sys.stderr.isatty() and not quiet
        self._next = time.monotonic() + patience
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, text: str) -> None:
        """Show a text, unless the last one is too new to be replaced."""
        if not self._live or time.monotonic() < self._next or _taken():
            return
        self._next = time.monotonic() + _PAUSE
        self._write(text[: shutil.get_terminal_size().columns - 1])
        self._shown = True

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            self._shown = False
            self._write("")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def _taken() -> bool:
    """Return whether another program reads single keys from the terminal, as a pager does, and so draws on it."""
    import termios

    with suppress(OSError, ValueError, termios.error):  # it is closed, or has no descriptor
        return not termios.tcgetattr(sys.stderr.fileno())[3] & termios.ICANON
    return False
