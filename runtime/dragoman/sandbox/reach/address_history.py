"""How near the saved connections' hosts led when they were first reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman_api.errors import ConfigurationError
from dragoman_api.json_text import decode
from dragoman_registry.files import locked, sweep_drafts, write
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
        with locked(self._file.with_suffix(".lock")):
            entries = self._read()
            sweep_drafts(self._file)
            before = entries.pop(connection, {})
            if hosts is not None:
                entries[connection] = before | hosts
            write(self._file, msgspec.json.format(msgspec.json.encode(entries)), mode=0o600)

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            entries = decode(self._file.read_bytes(), dict[str, dict[str, str]])
            if all(name.upper() in Nearness.__members__ for hosts in entries.values() for name in hosts.values()):
                return entries
            reason = "a class of addresses that is none"
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            reason = str(error)
        hint = f"remove {self._file}: then the next connection counts as the first"
        raise ConfigurationError(f"{self._file} cannot be read: {reason}", code="state-damaged", hint=hint)
