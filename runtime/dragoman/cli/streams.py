"""The standard streams: the writers of standard output, the target of events, and whether a terminal is there."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

from .command_files import open_events

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack
    from typing import Any

    from dragoman_api.events import Event


def reserve_stdout() -> BinaryIO:
    """Reserve standard output for events; all other output, of child processes too, goes to stderr."""
    out = sys.stdout
    sys.stdout = sys.stderr
    try:
        number = out.fileno()
    except OSError:  # an object without a descriptor
        return out.buffer
    out.flush()
    events = open(os.dup(number), "wb", buffering=0)  # noqa: SIM115, PTH123 - it lives as long as the process
    os.dup2(sys.stderr.fileno(), number)
    return events


class Aside:
    """Standard output, except that what automations print goes to stderr with their name."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._begins = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    def write(self, text: str) -> int:
        """Write a text to the stream that its printer may use."""
        from dragoman.automations.hook_manager import AT_WORK

        if not (name := AT_WORK.get()):
            return self._out.write(text)
        sys.stderr.write(f"{name}: {text}" if self._begins else text)
        self._begins = text.endswith("\n")
        return len(text)


def aside(out: TextIO) -> TextIO:
    """Send to stderr what automations print."""
    return cast("TextIO", Aside(out))


def attended() -> bool:
    """Return whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def write_events(target: str, stdout: BinaryIO | None, cleanup: ExitStack) -> Callable[[Event], None]:
    """Return a sink that writes each event to a file as a line of JSON.

    Args:
        target: Its path; ``-`` for `stdout`.
        stdout: The result of `reserve_stdout`.
        cleanup: Closes the file.

    Raises:
        ConfigurationError: It cannot be written, now or later.
    """
    from dragoman_api.errors import ConfigurationError

    def failed(error: OSError) -> ConfigurationError:
        hint = "choose a writable file, or - for stdout"
        return ConfigurationError(f"--events {target} cannot be written: {error.strerror}", hint=hint)

    if target == "-":
        assert stdout is not None
        return lambda event: _write_event(stdout, event)
    try:
        file = cleanup.enter_context(open_events(Path(target)))
    except OSError as error:
        raise failed(error) from error

    def write(event: Event) -> None:
        try:
            _write_event(file, event)
        except OSError as error:
            raise failed(error) from error

    return write


def _write_event(stream: BinaryIO, event: Event) -> None:
    rest = memoryview(f"{event.to_json()}\n".encode())
    while rest:  # without a buffer, a write may take only the beginning
        rest = rest[stream.write(rest) :]
    stream.flush()
