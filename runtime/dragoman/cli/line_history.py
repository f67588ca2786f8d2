"""The lines typed in `dragoman open`, kept across sessions; a line that may hold a secret is not."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from dragoman_api.masking import is_secret
from dragoman_registry.files import change, exclusively

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAX_LINES = 2_000
"""Maximum number of lines that are kept; the oldest are forgotten."""

MAX_LINE = 20_000
"""Maximum length of a line that is kept, in characters."""

MAX_FILE = 4 << 20
"""Size of the file in bytes from which it is shortened."""

_OPTION = re.compile(r"(?:^|\s)['\"]?--?([A-Za-z][\w-]*)")


class LineHistory:
    """A file that only its owner can read, a JSON text a line; a file that cannot be used is none.

    Args:
        file: Its path.
        mask: Returns a text without the secrets that it may hold.
    """

    def __init__(self, file: Path, *, mask: Callable[[str], str]) -> None:
        self._file, self._mask = file, mask

    def lines(self) -> list[str]:
        """Return the lines, the oldest first; a damaged one is left out, and a file that is too long is shortened."""
        try:
            with open(self._file, "rb") as file:  # noqa: PTH123 - of its end only so much
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - MAX_FILE))
                lines = _texts(file.read())
        except OSError:
            return []
        if len(lines) > MAX_LINES or size > MAX_FILE:
            lines = lines[-MAX_LINES // 2 :]
            with suppress(OSError):
                change(self._file, _shortened)
        return lines

    def add(self, line: str) -> None:
        """Keep a line, unless it begins with a space or may hold a secret; if that fails, it is not kept."""
        line = line.rstrip()
        if not line or line[:1].isspace() or len(line) > MAX_LINE or self.is_secret(line):
            return
        with suppress(OSError):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
            with exclusively(self._file), os.fdopen(os.open(self._file, flags, 0o600), "ab", buffering=0) as file:
                file.write(_encoded(line))

    def is_secret(self, line: str) -> bool:
        """Return whether a line may hold a secret: a known one, or a value that is named like one."""
        return self._mask(line) != line or any(map(is_secret, _OPTION.findall(line)))


def _shortened(data: bytes) -> bytes:
    """Return the contents of a file with the newest lines only."""
    return b"".join(map(_encoded, _texts(data[-MAX_FILE:])[-MAX_LINES // 2 :]))


def _texts(data: bytes) -> list[str]:
    return [*filter(None, map(_text, data.splitlines()))]


def _encoded(line: str) -> bytes:
    return json.dumps(line).encode() + b"\n"


def _text(data: bytes) -> str | None:
    try:
        text = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return text if isinstance(text, str) else None
