"""What the workbench remembers between its runs: preferences of the page, and histories of the console."""

from __future__ import annotations

import os
import re
import tempfile
import time
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread
import msgspec

from dragoman_api.errors import ConfigurationError

from .messages import HistoryEntry

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")

MAX_FILE = 8 << 20
MAX_PREFERENCES = 4_096
MAX_ENTRIES = 500
MAX_TEXT = 64 << 10
"""Characters of one text of a history; a longer one is not kept."""


class Remembered:
    """Files in a folder that only this user can enter. A damaged file counts as empty, and is replaced."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._one = anyio.Lock()

    async def preferences(self, prefix: str) -> dict[str, str]:
        """Return the preferences whose keys begin with a text."""
        found = await anyio.to_thread.run_sync(self._read, "preferences.json", dict[str, str])
        return {key: value for key, value in (found or {}).items() if key.startswith(prefix)}

    async def set(self, key: str, value: str | None) -> None:
        """Set a preference; None forgets it.

        Raises:
            ConfigurationError: There are too many, or the file cannot be written.
        """
        if value is not None:
            try:
                msgspec.json.decode(value)
            except (ValueError, RecursionError) as error:
                raise ConfigurationError(f"the value of {key[:80]!r} is not JSON", code="bad-request") from error
        async with self._one:
            found = await anyio.to_thread.run_sync(self._read, "preferences.json", dict[str, str]) or {}
            found.pop(key, None)
            if value is not None:
                found[key] = value
            while len(found) > MAX_PREFERENCES:
                del found[next(iter(found))]  # the one that was set longest ago
            await anyio.to_thread.run_sync(self._write, "preferences.json", found)

    async def history(self, connection: str) -> list[HistoryEntry]:
        """Return what was run on a connection, the newest first."""
        found = await anyio.to_thread.run_sync(self._read, _history(connection), list[HistoryEntry]) or []
        return found[::-1]

    async def note(self, connection: str, text: str) -> None:
        """Add a text to a history, without repeating the last one. It must hold no secrets."""
        if not text.strip() or len(text) > MAX_TEXT:
            return
        async with self._one:
            name = _history(connection)
            found = await anyio.to_thread.run_sync(self._read, name, list[HistoryEntry]) or []
            if found and found[-1].text == text:
                found.pop()
            found.append(HistoryEntry(at=time.time(), text=text))
            await anyio.to_thread.run_sync(self._write, name, found[-MAX_ENTRIES:])

    async def forget(self, connection: str) -> None:
        """Remove the history of a connection."""
        await anyio.Path(self._folder / _history(connection)).unlink(missing_ok=True)

    def _read(self, name: str, kind: type[T]) -> T | None:
        try:
            with (self._folder / name).open("rb") as file:
                return msgspec.json.decode(file.read(MAX_FILE), type=kind)
        except (OSError, ValueError, RecursionError):
            return None

    def _write(self, name: str, value: object) -> None:
        data = msgspec.json.encode(value)
        if len(data) > MAX_FILE:
            raise ConfigurationError(f"{name} would be larger than {MAX_FILE:,} bytes", hint="remove saved filters")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, draft = tempfile.mkstemp(dir=self._folder, prefix=".draft-")  # 0600
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                os.replace(draft, self._folder / name)  # noqa: PTH105 - a name, not a Path
            except BaseException:
                os.unlink(draft)  # noqa: PTH108
                raise
        except OSError as error:
            raise ConfigurationError(f"{self._folder / name} cannot be written: {error.strerror}") from error


def _history(connection: str) -> str:
    """Return the file of a connection's history; names of connections are plain, and case may not matter on disk."""
    spelled = re.sub(r"[^a-z0-9_-]", lambda found: f"~{ord(found[0]):x}", connection)
    return f"history-{spelled}.json"
