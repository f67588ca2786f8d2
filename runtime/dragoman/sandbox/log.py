"""What a driver's process prints: always drained, bounded, made harmless for terminals, and free of secrets."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .system import Output

KEPT = 64 << 10
"""Characters of log that are kept."""

_LINE = 2_000  # characters of one line
_BUDGET = 256 << 10  # bytes a second that are looked at; the rest is counted and dropped
_PAUSE = 0.02  # seconds a flooding child waits before it is read again
_SHORTEST_SECRET = 4  # characters; masking shorter ones would tear up ordinary words

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)|[\x90\x98\x9d-\x9f].*?(?:\x07|\x9c|\x1b\\|$)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """Strip terminal escapes, control characters and bidi controls; tabs and newlines stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


class Mask:
    """Replaces secrets by a mark."""

    def __init__(self, secrets: Iterable[str]) -> None:
        lines = {line for secret in secrets for line in secret.splitlines()}
        known = sorted((line for line in lines if len(line) >= _SHORTEST_SECRET), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, known))) if known else None
        self.longest = len(known[0]) if known else 0

    def __call__(self, text: str) -> str:
        """Give the text with a mark in place of each secret."""
        return self._pattern.sub("***", text) if self._pattern else text


class LogPipe:
    """Reads the pipe of one child's stdout and stderr."""

    def __init__(self, output: Output, *, mask: Mask, on_line: Callable[[str], None] | None) -> None:
        self._output, self._mask, self._on_line = output, mask, on_line
        self._lines: deque[str] = deque()
        self._kept = 0
        self._rest = ""
        self._loop = asyncio.get_running_loop()
        self._second, self._seen, self._dropped = 0.0, 0, 0
        self._timer: asyncio.TimerHandle | None = None
        output.watch(self._loop, self._read)

    @property
    def lines(self) -> list[str]:
        """Give the lines that are kept, the newest last."""
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
            self._take(data.decode(errors="replace"))
        return True

    def _take(self, text: str) -> None:
        *lines, rest = (self._rest + text).split("\n")
        for line in lines:
            self._keep(line)
        if len(rest) > _LINE + self._mask.longest:
            # Cut where no secret can lie across, so that half of one is never shown.
            rest = self._mask(harmless(rest))
            cut = len(rest) - self._mask.longest
            self._keep(rest[:cut])
            rest = rest[cut:]
        self._rest = rest

    def _keep(self, line: str) -> None:
        line = self._mask(harmless(line))[:_LINE]  # in this order: escapes inside a secret would hide it
        self._lines.append(line)
        self._kept += len(line)
        while self._kept > KEPT or len(self._lines) > _LINE:
            self._kept -= len(self._lines.popleft())
        if self._on_line is not None:
            self._on_line(line)

    def _tell_dropped(self) -> None:
        if self._dropped:
            self._keep(f"[{self._dropped:,} bytes of output dropped]")
            self._dropped, self._rest = 0, ""

    def finish(self) -> list[str]:
        """Take what a dead child left in the pipe, and close it."""
        if self._timer is not None:
            self._timer.cancel()
        for _ in range(4):  # a pipe holds no more; a grandchild that keeps writing is not waited for
            if not self._read():
                break
        if self._timer is not None:
            self._timer.cancel()
        self._output.unwatch(self._loop)
        self._output.close()
        self._tell_dropped()
        if self._rest:
            self._keep(self._rest)
            self._rest = ""
        return self.lines
