"""How near the saved connections' hosts led when they were first reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman_api.errors import ConfigurationError
from dragoman_api.json_text import decode
from dragoman_registry.files import change
from dragoman_registry.ip_addresses import Nearness

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class AddressHistory:
    """The file that records this. Every method blocks."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def of(self, connection: str) -> dict[str, Nearness]:
        """Return how near a connection's hosts were. Raises ConfigurationError if the file is damaged."""
        return {host: Nearness[name.upper()] for host, name in self._read().get(connection, {}).items()}

    def note(self, connection: str, hosts: Mapping[str, Nearness]) -> None:
        """Remember how near hosts of a connection led. Raises OSError, and ConfigurationError as `of`."""
        self._change(connection, {host: near.name.lower() for host, near in hosts.items()})

    def forget(self, connection: str) -> None:
        """Delete a connection's records. Raises as `note`."""
        if connection in self._read():
            self._change(connection, None)

    def _change(self, connection: str, hosts: dict[str, str] | None) -> None:
        def edit(data: bytes) -> bytes:
            entries = self._decode(data)
            before = entries.pop(connection, {})
            if hosts is not None:
                entries[connection] = before | hosts
            return msgspec.json.format(msgspec.json.encode(entries))

        change(self._file, edit)

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            return self._decode(self._file.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._damaged(str(error)) from error

    def _decode(self, data: bytes) -> dict[str, dict[str, str]]:
        if not data:
            return {}
        try:
            entries = decode(data, dict[str, dict[str, str]])
            if all(name.upper() in Nearness.__members__ for hosts in entries.values() for name in hosts.values()):
                return entries
            reason = "a class of addresses that is none"
        except ValueError as error:
            reason = str(error)
        raise self._damaged(reason)

    def _damaged(self, reason: str) -> ConfigurationError:
        hint = f"remove {self._file}: then the next connection counts as the first"
        return ConfigurationError(f"{self._file} cannot be read: {reason}", code="state-damaged", hint=hint)
