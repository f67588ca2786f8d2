"""Undo files: change files that revert a change set, whatever its outcome."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman.sessions.plans import undoable_rows
from dragoman_api.changes import Insert, OutcomeStatus
from dragoman_api.errors import ConfigurationError
from dragoman_registry.files import replacing, sync

from .files import read_line, write_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dragoman_api.changes import Change, Outcome, Plan
    from dragoman_api.grid import RowKey


class UndoFile:
    """The file that reverts changes; it is complete on disk before the first change is sent.

    At first, a line applies to a row only if the row's content is what the change leaves. Once the outcomes are known,
    the lines name the rows' new guards, and lines of changes that were not applied are dropped.

    Attributes:
        path: The file's path.
        lines: The number of lines.
        rows: The numbers of the lines to keep in the end, with the row's new place if it is known.
    """

    def __init__(self, path: Path) -> None:
        """Create the file.

        Raises:
            ConfigurationError: The file exists already, or cannot be created.
        """
        self.path, self.lines = path, 0
        self.rows: dict[int, RowKey | None] = {}
        try:
            self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")
        except FileExistsError as error:
            hint = "name another file: this one may be the only undo of earlier changes"
            raise ConfigurationError(f"{path} already exists", hint=hint) from error
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(f"{self.path} cannot be written: {error.strerror}", hint="nothing was applied")

    def add(self, undo: Sequence[Change]) -> None:
        """Write the changes that restore the rows."""
        try:
            for change in undo:
                self._file.write(write_line(change))  # type: ignore[arg-type]  # a drop has no undo
        except OSError as error:
            raise self._failed(error) from error
        self.lines += len(undo)

    def sync(self) -> None:
        """Sync the file to disk."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            sync(self.path.parent)
        except OSError as error:
            raise self._failed(error) from error

    def complete(self) -> None:
        """Keep the lines of `rows`, with the rows' new places if known; remove the file if no line is left."""
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
        """Remove the file: there is nothing to undo."""
        self.path.unlink(missing_ok=True)
        with suppress(OSError):  # data that a full disk rejected is not needed
            self._file.close()


def undo_lines(plan: Plan, *, outcomes: Sequence[Outcome]) -> bytes:
    """Return the text of a change file that takes back what a plan changed; empty if there is nothing to take back.

    Args:
        plan: A plan that was made with `undo`.
        outcomes: The result of `Session.apply` for the plan. A row of unknown outcome keeps its line, which applies to
            the row only as the plan would have left it.
    """
    outcomes_by_change = {outcome.change: outcome for outcome in outcomes}
    lines = []
    for row, change in zip(undoable_rows(plan, plan.changes), plan.undo, strict=True) if plan.undo else ():
        end = outcomes_by_change.get(row[0])
        status = end.status if end else OutcomeStatus.UNKNOWN
        if status is OutcomeStatus.APPLIED and end is not None and end.key is not None:
            lines.append(_at(write_line(change), end.key))  # type: ignore[arg-type]  # a drop has no undo
        elif status in (OutcomeStatus.APPLIED, OutcomeStatus.UNKNOWN):
            lines.append(write_line(change))  # type: ignore[arg-type]
    return b"".join(lines)


def _at(line: bytes, key: RowKey) -> bytes:
    """Point a line at the row's current place."""
    change = read_line(line)
    if not isinstance(change, Insert):
        return write_line(replace(change, key=key))
    if not change.replace:  # the row is gone, so there is nothing to guard
        return line
    fields = {"object": key.object, "id": key.id, "routing": key.routing, "guard": key.guard}
    return write_line(replace(change, **fields))
