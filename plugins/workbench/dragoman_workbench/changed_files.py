"""Notices that the command line or an editor changed the files of connections and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from .messages import ServerEvent

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Protocol

    from .event_stream import EventStream

    class Paths(Protocol):
        """The files of a home."""

        @property
        def connections(self) -> Path:
            """The file of saved connections."""

        @property
        def settings(self) -> Path:
            """The settings file."""


LOOK_SECONDS = 2.0


class FileWatch:
    """Looks at the two files from time to time.

    Attributes:
        settings_changed: `config.toml` is not what this workbench read at its start.
    """

    def __init__(self, paths: Paths, *, stream: EventStream) -> None:
        self._paths, self._stream = paths, stream
        self.settings_changed = False

    async def run(self) -> None:
        """Tell every tab when one of the files has changed, until it is cancelled."""
        before = await self._stamps()
        first = before[1]
        while True:
            await anyio.sleep(LOOK_SECONDS)
            now = await self._stamps()
            if now != before:
                before = now
                self.settings_changed = now[1] != first
                self._stream.send(ServerEvent(kind="files"))

    async def _stamps(self) -> list[tuple[int, int, int] | None]:
        stamps: list[tuple[int, int, int] | None] = []
        for path in (self._paths.connections, self._paths.settings):
            try:
                status = await anyio.Path(path).stat()
            except OSError:
                stamps.append(None)
            else:
                stamps.append((status.st_mtime_ns, status.st_size, status.st_ino))
        return stamps
