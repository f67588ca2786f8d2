"""Versions of file formats: a file that a newer dragoman wrote is refused by name, and stays as it is."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from .errors import ConfigurationError
from .installation import upgrade_command

if TYPE_CHECKING:
    from .errors import DragomanError


def file_newer(
    name: object, *, version: int, newest: int, kind: type[DragomanError] = ConfigurationError
) -> DragomanError:
    """Return the error for a file of a newer format (code ``state-newer``), which stays as it is."""
    reason = f"{name} was written by a newer dragoman: its format has version {version}, and this one knows {newest}"
    return kind(f"{reason}; nothing was changed", hint=upgrade_command(), code="state-newer")


def refuse_newer(
    name: object,
    data: bytes,
    *,
    member: str = "version",
    newest: int = 1,
    kind: type[DragomanError] = ConfigurationError,
) -> None:
    """Refuse JSON text that could not be read, if its version is the reason. Raises `kind`, see `file_newer`."""
    with suppress(ValueError, RecursionError):
        version = msgspec.json.decode(msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get(member, b""), type=int)
        if version > newest:
            raise file_newer(name, version=version, newest=newest, kind=kind)
