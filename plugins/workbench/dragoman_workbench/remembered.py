"""What the workbench remembers between its runs: preferences of the page, and histories of the console."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.to_thread
import msgspec

from dragoman_api.errors import ConfigurationError

from .messages.work import HistoryEntry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Protocol

    class FileEditor(Protocol):
        """Changes a file that other processes may change, too, as `Runtime.change_file` does."""

        def __call__(self, path: Path, *, edit: Callable[[bytes], bytes]) -> None:
            """Make the new contents of the present ones."""


T = TypeVar("T")

MAX_FILE = 8 << 20
MAX_PREFERENCES = 4_096
MAX_ENTRIES = 500
MAX_TEXT = 64 << 10
"""Characters of one text of a history; a longer one is not kept."""


class Remembered:
    """Files in a folder that only this user can enter. A damaged file counts as empty, and is replaced."""

    def __init__(self, folder: Path, *, change_file: FileEditor, mask: Callable[[str], str]) -> None:
        """Read nothing yet."""
        self._folder, self._change_file, self._mask = folder, change_file, mask

    async def preferences(self, prefix: str) -> dict[str, str]:
        """Return the preferences whose keys begin with a text."""
        preferences = await anyio.to_thread.run_sync(self._read, "preferences.json", dict[str, str])
        return {key: value for key, value in (preferences or {}).items() if key.startswith(prefix)}

    async def set(self, key: str, value: str | None) -> None:
        """Set a preference; None forgets it.

        Raises:
            ConfigurationError: There are too many, or the file cannot be written.
        """
        if value is not None:
            try:
                value = msgspec.json.encode(self._masked(msgspec.json.decode(value))).decode()
            except (ValueError, RecursionError) as error:
                raise ConfigurationError(f"the value of {key[:80]!r} is not JSON", code="bad-request") from error

        def edit(preferences: dict[str, str] | None) -> dict[str, str]:
            changed = {name: text for name, text in (preferences or {}).items() if name != key}
            if value is not None:
                changed[key] = value
            while len(changed) > MAX_PREFERENCES:
                del changed[next(iter(changed))]  # the one that was set longest ago
            return changed

        await anyio.to_thread.run_sync(self._change, "preferences.json", dict[str, str], edit)

    async def history(self, connection: str) -> list[HistoryEntry]:
        """Return what was run on a connection, the newest first."""
        entries = await anyio.to_thread.run_sync(self._read, _history(connection), list[HistoryEntry]) or []
        return entries[::-1]

    async def note(self, connection: str, text: str) -> None:
        """Add a text to a history, without repeating the last one."""
        if not text.strip() or len(text) > MAX_TEXT:
            return
        masked = self._mask(text)

        def edit(entries: list[HistoryEntry] | None) -> list[HistoryEntry]:
            others = entries or []
            if others and others[-1].text == masked:
                others.pop()
            return [*others, HistoryEntry(at=time.time(), text=masked)][-MAX_ENTRIES:]

        await anyio.to_thread.run_sync(self._change, _history(connection), list[HistoryEntry], edit)

    def _masked(self, value: Any) -> Any:
        """Return decoded JSON whose texts are masked."""
        match value:
            case str():
                return self._mask(value)
            case list():
                return [self._masked(item) for item in value]
            case dict():
                return {self._mask(key): self._masked(item) for key, item in value.items()}
        return value

    def _read(self, name: str, kind: type[T]) -> T | None:
        try:
            with (self._folder / name).open("rb") as file:
                return _decoded(file.read(MAX_FILE), kind)
        except OSError:
            return None

    def _change(self, name: str, kind: type[T], edit: Callable[[T | None], T]) -> None:
        def change(data: bytes) -> bytes:
            after = msgspec.json.encode(edit(_decoded(data[:MAX_FILE], kind)))
            if len(after) > MAX_FILE:
                raise ConfigurationError(
                    f"{name} would be larger than {MAX_FILE:,} bytes", hint=f"delete {self._folder / name}"
                )
            return after

        self._change_file(self._folder / name, edit=change)


def _decoded(data: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError):
        return None


def _history(connection: str) -> str:
    """Return the file of a connection's history; names of connections are plain, and case may not matter on disk."""
    spelled = re.sub(r"[^a-z0-9_-]", lambda match: f"~{ord(match[0]):x}", connection)
    return f"history-{spelled}.json"
