"""Checkpoints: how much of an unfinished export file is safe on disk, and how to continue after it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dragoman_api.columns import Note
from dragoman_api.errors import ConfigurationError
from dragoman_api.json_text import decode
from dragoman_api.kit.page_columns import LeftOut
from dragoman_registry import files

if TYPE_CHECKING:
    from pathlib import Path

CHECKPOINT_SECONDS = 1.0
CHECKPOINT_BYTES = 64 << 20
MAX_CHECKPOINT = 1 << 20
"""Maximum size of a checkpoint in bytes."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of a running export that is safe on disk, and how to continue after it.

    Attributes:
        identity: Properties that another run must share to be the same export, by name.
        part: The name of the unfinished file.
        offset: The number of its first bytes that are safe.
        sha256: The SHA-256 digest of these bytes, in hexadecimal.
        rows: The number of rows in these bytes.
        misfits: The number of values in each column that do not fit its type.
        formulas: The number of cells that a spreadsheet would read as a formula.
        notes: The driver's notes on these rows.
        left_out: What the file does not hold of these rows.
        driver: The driver's own checkpoint; None once it has sent everything.
        started: When the export's first run began, UTC.
        resumed: How often it was resumed.
    """

    version: Literal[1] = 1
    identity: dict[str, Any]
    part: str
    offset: int
    sha256: str
    rows: int
    formulas: int = 0
    misfits: list[int] = []
    notes: list[Note] = []
    left_out: LeftOut = msgspec.field(default_factory=LeftOut)
    driver: str | None
    started: str
    resumed: int


def checkpoint_path(final: Path) -> Path:
    """Return the path of a file's export checkpoint."""
    return final.with_name(f".{final.name}.checkpoint")


def read_checkpoint(path: Path) -> Checkpoint | None:
    """Read a checkpoint; None if it is missing, unreadable, or of another user, who could choose other rows.

    Raises:
        ConfigurationError: It is of a newer version of dragoman (code ``state-newer``).
    """
    try:
        data = files.read_plain(path, limit=MAX_CHECKPOINT, own=True)
    except (OSError, ValueError):
        return None
    try:
        return decode(data, Checkpoint)
    except ValueError:
        from dragoman_api.file_versions import refuse_newer

        refuse_newer(path, data)
        return None


def unfinished(final: Path) -> bool:
    """Return whether an export of this file can be resumed."""
    with suppress(ConfigurationError):
        return bool(final.name) and read_checkpoint(checkpoint_path(final)) is not None
    return False


def checkpoint_due(*, written: int, seconds: float) -> bool:
    """Return whether a checkpoint is due, by the bytes written and the seconds passed since the last one."""
    return written >= CHECKPOINT_BYTES or seconds >= CHECKPOINT_SECONDS
