"""The output of one command, held back until it is known how much it is: for a pager, or to be shown at once."""

from __future__ import annotations

import math
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from types import TracebackType

MOST = 16 << 20
"""Maximum number of characters that are held back; more is written as it comes."""

_STYLES = re.compile(r"\x1b\[[0-9;]*m")


class RecordedOutput:
    """Holds back what is written to the standard streams, in order; a context manager.

    A question, which ends without a line break, releases all: it must be seen to be answered. What is written after
    the end is not held back either.
    """

    def __init__(self) -> None:
        self._held: list[tuple[TextIO, str]] = []
        self._size = 0
        self._holds = True
        self._streams = sys.stdout, sys.stderr

    def __enter__(self) -> RecordedOutput:
        sys.stdout, sys.stderr = (cast("TextIO", _Recorder(self, stream)) for stream in self._streams)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.stdout, sys.stderr = self._streams
        if kind is not None:
            self.release()

    @property
    def data(self) -> str:
        """What was written to standard output and is held back."""
        return "".join(text for stream, text in self._held if stream is self._streams[0])

    @property
    def said(self) -> str:
        """What was written to standard error and is held back."""
        return "".join(text for stream, text in self._held if stream is self._streams[1])

    def write(self, stream: TextIO, text: str) -> None:
        """Hold a text back, or write it if nothing is held back any longer."""
        if not self._holds:
            stream.write(text)
            return
        self._held.append((stream, text))
        self._size += len(text)
        if self._size > MOST:
            self.release()

    def flush(self, stream: TextIO) -> None:
        """Flush a stream; if it ends with a question, release all."""
        if self._holds and stream is self._streams[1] and not self.said.endswith("\n") and self.said:
            self.release()
        if not self._holds:
            stream.flush()

    def release(self) -> None:
        """Write what is held back, and hold back nothing from here on."""
        self._holds = False
        for stream, text in self._held:
            stream.write(text)
            stream.flush()
        self._held.clear()

    def drop(self) -> None:
        """Forget what is held back: it has been shown."""
        self._holds = False
        self._held.clear()


class _Recorder:
    """A standard stream whose text is held back; in all else it is the stream."""

    def __init__(self, output: RecordedOutput, stream: TextIO) -> None:
        self._output, self._stream = output, stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Take a text."""
        self._output.write(self._stream, text)
        return len(text)

    def flush(self) -> None:
        """Let a question be seen."""
        self._output.flush(self._stream)


def screen_lines(text: str) -> list[int]:
    """Return for each line of a text how many lines of the terminal it takes."""
    from .output import width_of

    columns = max(shutil.get_terminal_size().columns, 1)
    return [max(1, math.ceil(width_of(_STYLES.sub("", line)) / columns)) for line in text.splitlines()]
