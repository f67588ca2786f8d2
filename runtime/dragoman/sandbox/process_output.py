"""A driver process's output: always drained, bounded, harmless for terminals, and free of secrets."""

from __future__ import annotations

import asyncio
import codecs
from collections import deque
from typing import TYPE_CHECKING

from dragoman_api.masking import Mask, MaskedStream

from .sanitizing import harmless

if TYPE_CHECKING:
    from collections.abc import Callable

    from .bare_process import Output

KEPT = 64 << 10
"""Characters of log that are kept."""

_LINE = 2_000  # characters of one line
_BUDGET = 256 << 10  # bytes read per second; the rest is counted and dropped
_PAUSE = 0.02  # seconds a flooding child waits before it is read again


class LogPipe:
    """Reads the pipe of one child's stdout and stderr."""

    def __init__(self, output: Output, *, mask: Mask, on_line: Callable[[str], object] | None) -> None:
        self._output, self._on_line = output, on_line
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._masked = MaskedStream(mask)
        self._lines: deque[str] = deque()
        self._size = 0
        self._raw = ""  # of a line whose end is not here; escapes in it may be half
        self._line = ""  # the same after the mask
        self._torn = False  # the rest of a line whose beginning was dropped is passed over
        self._loop = asyncio.get_running_loop()
        self._second, self._seen, self._dropped = 0.0, 0, 0
        self._timer: asyncio.TimerHandle | None = None
        output.watch(self._loop, self._read)

    @property
    def lines(self) -> list[str]:
        """The kept lines, the newest last."""
        return list(self._lines)

    def _read(self) -> bool:
        try:
            data = self._output.read()
        except BlockingIOError:
            return False
        if not data:
            self._output.unwatch(self._loop)
            return False
        now = self._loop.time()
        if now - self._second > 1:
            self._tell_dropped()
            self._second, self._seen = now, 0
        self._seen += len(data)
        if self._seen > _BUDGET:
            self._dropped += len(data)
            self._output.unwatch(self._loop)
            self._timer = self._loop.call_later(_PAUSE, self._output.watch, self._loop, self._read)
        else:
            self._take(self._decoder.decode(data))
        return True

    def _take(self, text: str) -> None:
        if self._torn:
            _, newline, text = text.partition("\n")
            self._torn = not newline
        *lines, self._raw = (self._raw + text).split("\n")
        clean = "".join(
            f"{harmless(line)}\n" for line in lines
        )  # before the mask: escapes inside a secret would hide it
        if len(self._raw) > _LINE:
            clean, self._raw = clean + harmless(self._raw), ""
        self._show(self._masked.feed(clean))

    def _show(self, text: str) -> None:
        """Keep the lines of sanitised text."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._keep(line)
        if len(self._line) > _LINE:
            self._keep(self._line)
            self._line = ""

    def _keep(self, line: str) -> None:
        line = line[:_LINE]
        self._lines.append(line)
        self._size += len(line)
        while self._size > KEPT or len(self._lines) > _LINE:
            self._size -= len(self._lines.popleft())
        if self._on_line is not None:
            self._on_line(line)

    def _tell_dropped(self) -> None:
        if self._dropped:
            self._flush()
            self._keep(f"[{self._dropped:,} bytes of output dropped]")
            self._decoder.reset()
            self._dropped, self._torn = 0, True

    def _flush(self) -> None:
        """Keep the remaining text, except a possible partial secret."""
        raw, self._raw = harmless(self._raw), ""
        self._show(self._masked.feed(raw) + self._masked.end(torn=True))
        if self._line:
            self._keep(self._line)
            self._line = ""

    def finish(self) -> list[str]:
        """Read what a dead child left in the pipe, and close the pipe."""
        if self._timer is not None:
            self._timer.cancel()
        for _ in range(4):  # a pipe holds no more; do not wait for a grandchild that keeps writing
            if not self._read():
                break
        if self._timer is not None:
            self._timer.cancel()
        self._output.unwatch(self._loop)
        self._output.close()
        self._tell_dropped()
        self._take(self._decoder.decode(b"", final=True))
        self._flush()
        return self.lines
