"""A registry's last trusted claims, stored on this machine for times when the registry cannot be trusted."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from dragoman_registry.files import change, read_plain
from dragoman_registry.validation import Unreadable, decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

MAX_CLAIMS = 64 << 20
"""Maximum bytes of a record: room for everything that a registry may offer."""


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a registry.

    Attributes:
        types: Maps database types to the project each is bound to; None if they were never read.
        names: Plugins and projects; None if they were never read.
    """

    types: dict[str, str] | None = None
    names: tuple[str, ...] | None = None


class Memory:
    """One registry's claims, in a file. Every method blocks."""

    def __init__(self, file: Path) -> None:
        """Set the file; it need not exist."""
        self._file = file

    def keep_types(self, types: Mapping[str, str]) -> None:
        """Store the type bindings, which the caller has just verified."""
        self._keep(types=dict(types))

    def keep_names(self, names: Iterable[str]) -> None:
        """Store the names of plugins and projects, which the caller has just verified."""
        self._keep(names=tuple(sorted(set(names))))

    def claims_type(self, kind: str) -> bool | None:
        """Check whether it claims a database type; None if unknown."""
        types = self._read().types
        return None if types is None else kind in types

    def claims_name(self, name: str) -> bool | None:
        """Check whether it claims a plugin or project; None if unknown."""
        claims = self._read()
        return None if claims.names is None else name in claims.names or name in (claims.types or {}).values()

    def _read(self) -> Claims:
        try:
            return _claims(read_plain(self._file, limit=MAX_CLAIMS))
        except OSError:
            return Claims()

    def _keep(self, **changes: object) -> None:
        claims = self._read()
        if replace(claims, **changes) != claims:
            with suppress(OSError):  # a read-only home keeps its old record
                change(self._file, lambda data: msgspec.json.encode(replace(_claims(data), **changes)), mode=0o644)


def _claims(data: bytes) -> Claims:
    try:
        return decode(data, Claims) if data else Claims()
    except Unreadable:
        return Claims()  # unknown claims exclude no name
