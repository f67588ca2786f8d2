"""The repetition of a command, as `watch` does it."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING

from .output import plain, say
from .recorded_output import RecordedOutput, screen_lines
from .signals import asked

if TYPE_CHECKING:
    from collections.abc import Callable

LEAST, MOST = 0.1, 86_400.0
"""Seconds between two runs."""

_CLEAR = "\x1b[H\x1b[2J"


def watch(run: Callable[[], int], *, seconds: float, command: str) -> int:
    """Run a command again and again until it fails or Ctrl-C comes; on a terminal, each output replaces the last one.

    Args:
        run: Runs it and returns its exit code.
        seconds: The time between two runs.
        command: What stands above the output.

    Returns:
        The exit code of the run that failed; 0 if Ctrl-C came.
    """
    try:
        while True:
            with RecordedOutput() as output:
                code = run()
            head = f"every {seconds:g} s: {plain(' '.join(command.split()))} · {time.strftime('%H:%M:%S')}"
            if sys.stdout.isatty():
                _replace(output, head)
            else:
                say(head)
                output.release()
            if code:
                return code
            time.sleep(seconds)
    except KeyboardInterrupt:
        if asked:
            raise
        sys.stdout.write("\n")
        return 0


def _replace(output: RecordedOutput, head: str) -> None:
    """Show an output in place of what is on the screen, as much of it as there is room for."""
    size = shutil.get_terminal_size()
    text, room = f"{output.data}{output.said}", size.lines - 4
    lines = text.splitlines(keepends=True)
    shown = 0
    for height in screen_lines(text):
        if (room := room - height) < 0:
            break
        shown += 1
    rest = f"  … {len(lines) - shown} more lines\n" if shown < len(lines) else ""
    sys.stdout.write(f"{_CLEAR}{head[: size.columns - 1]}\n\n{''.join(lines[:shown])}{rest}")
    sys.stdout.flush()
    output.drop()
