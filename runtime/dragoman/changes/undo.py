"""Undo files: change files that take a change set back, whatever became of it."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman_api.changes import Insert
from dragoman_api.errors import ConfigurationError
from dragoman_registry.files import replacing, sync

from .files import read_line, write_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dragoman_api.changes import Change
    from dragoman_api.grid import RowKey


class UndoFile:
    """The file that takes changes back: complete on the disk before the first of them is sent.

    At first its lines find only rows that are as the changes leave them, by their content; when the outcomes are known
    they name the rows' new guards, and lines of what was not applied are dropped.

    Attributes:
        path: Where it is.
        lines: How many there are.
        rows: Which of them to keep in the end, with the place of the row where it is known.
    """

    def __init__(self, path: Path) -> None:
        """Make the file.

        Raises:
            ConfigurationError: It is there already, or cannot be made.
        """
        self.path, self.lines = path, 0
        self.rows: dict[int, RowKey | None] = {}
        try:
            self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")
        except FileExistsError as error:
            hint = "name another file: this one may be all that takes earlier changes back"
            raise ConfigurationError(f"{path} is there already", hint=hint) from error
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(f"{self.path} cannot be written: {error.strerror}", hint="nothing was applied")

    def add(self, undo: Sequence[Change]) -> None:
        """Write what takes rows back."""
        try:
            for change in undo:
                self._file.write(write_line(change))  # type: ignore[arg-type]  # a drop has no undo
        except OSError as error:
            raise self._failed(error) from error
        self.lines += len(undo)

    def sync(self) -> None:
        """See that all of it is on the disk."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            sync(self.path.parent)
        except OSError as error:
            raise self._failed(error) from error

    def complete(self) -> None:
        """Keep the lines of `rows`, with the new places of the rows where they are known; without any, remove it."""
        if not self.rows:
            self.remove()
            return
        with self._file, replacing(self.path, mode=0o600) as new:
            self._file.seek(0)
            for at, line in enumerate(self._file):
                if at in self.rows:
                    key = self.rows[at]
                    new.write(line if key is None else _at(line, key))

    def remove(self) -> None:
        """Remove the file: there is nothing to take back."""
        self.path.unlink(missing_ok=True)
        with suppress(OSError):  # what a full disk did not take is not missed
            self._file.close()


def _at(line: bytes, key: RowKey) -> bytes:
    """Let a line speak of a row where it is now."""
    change = read_line(line)
    if not isinstance(change, Insert):
        return write_line(replace(change, key=key))
    if not change.replace:  # the row is gone; there is nothing that could be guarded
        return line
    about = {"object": key.object, "id": key.id, "routing": key.routing, "guard": key.guard}
    return write_line(replace(change, **about))
