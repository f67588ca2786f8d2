"""The configured registries: where drivers come from, in the order they are asked."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from dragoman.settings import RegistryEntry, change_settings, read_settings
from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman.settings import Paths
    from dragoman_registry.index import Registry
    from dragoman_registry.trust import Publisher, Target
    from dragoman_registry.trust.client import TufTrust

BUNDLED = "bundled"
"""Name of the registry that ships inside the host: a folder of package data, never imported."""


def locate(location: str) -> str:
    """Give an address as it is, and a path in full."""
    return location if "://" in location else str(Path(location).expanduser().absolute())


class Signed:
    """The signatures of a configured registry; what verifies them is loaded when it is first asked."""

    def __init__(self, paths: Paths, entry: RegistryEntry, *, allow_stale: bool = False) -> None:
        self._paths, self._entry, self._allow_stale = paths, entry, allow_stale

    def admit(self, target: Target) -> Target:
        """Hold a target to what was signed for it."""
        return self._trust.admit(target)

    def publishers(self) -> Mapping[str, Publisher]:
        """Give who may publish what."""
        return self._trust.publishers()

    def verified(self) -> Mapping[str, bytes]:
        """Give the verified metadata, for a mirror."""
        return self._trust.verified()

    def pin(self) -> str:
        """Verify the registry; give the digest of the root that is trusted."""
        return self._trust.pin()

    @cached_property
    def _trust(self) -> TufTrust:
        from dragoman_registry.sources import open_source
        from dragoman_registry.trust.client import TufTrust

        entry = self._entry
        place = hashlib.sha256(f"{entry.location} {entry.root}".encode()).hexdigest()[:12]
        return TufTrust(
            open_source(entry.location),
            where=entry.location,
            cache=self._paths.data / "tuf" / f"{quote(entry.name, safe='')}-{place}",
            root=entry.root,
            # Whoever can change a folder on this disk can change the configuration as well.
            first_use=not entry.location.startswith(("http:", "https:")),
            allow_stale=self._allow_stale or read_settings(self._paths).allow_stale,
            on_stale=self._note,
        )

    def _note(self, reason: str) -> None:
        head = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "pid": os.getpid()}
        line = {**head, "registry": self._entry.name, "accepted": "expired signatures", "reason": reason}
        log = self._paths.state / "audit.ndjson"
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(msgspec.json.encode(line) + b"\n")


class Registries:
    """Adds, lists and removes registries in `config.toml`."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def list(self) -> list[RegistryEntry]:
        """Give every registry in the order it is asked: as configured, then the bundled one."""
        entries = [*read_settings(self._paths).registries]
        bundled = Path(__file__).parents[1] / BUNDLED
        if (bundled / "targets").is_dir():
            entries.append(RegistryEntry(BUNDLED, str(bundled)))
        return entries

    def open(self, *, allow_stale: bool = False) -> tuple[Registry, ...]:
        """Give readers of all registries; nothing is read yet.

        Args:
            allow_stale: Accept signatures that have expired, for what a lock names already; else `config.toml` decides.
        """
        return tuple(self._reader(entry, allow_stale=allow_stale) for entry in self.list())

    def _reader(self, entry: RegistryEntry, *, allow_stale: bool = False) -> Registry:
        from dragoman_registry.index import Registry
        from dragoman_registry.trust import Pinned

        if entry.name == BUNDLED:
            return Registry(entry.name, entry.location, trust=Pinned(Path(entry.location)))
        return Registry(entry.name, entry.location, trust=Signed(self._paths, entry, allow_stale=allow_stale))

    def add(self, location: str, *, name: str | None = None, root: str = "") -> RegistryEntry:
        """Add a registry, to be asked after those that are there.

        Args:
            location: The path of a folder or a bundle, or a ``file:``, ``http:`` or ``https:`` URL.
            name: What to call it; the folder's name when not given.
            root: SHA-256 of its root, from which all its signatures follow. Empty takes that of a folder on trust.

        Returns:
            The entry with the root that is trusted from now on.

        Raises:
            ConfigurationError: The name is taken.
            TrustError: No root is given for an address on the web (code ``root-unknown``), it has another one, or its
                signatures are not in order.
            RegistryError: There is no registry at the location.
        """
        location = locate(location)
        entry = RegistryEntry(
            name or location.replace(os.sep, "/").rstrip("/").rsplit("/", 1)[-1] or "registry", location, root
        )
        entries = list(read_settings(self._paths).registries)
        if entry.name == BUNDLED or any(known.name == entry.name for known in entries):
            hint = "choose another: --name NAME"
            raise ConfigurationError(f"a registry called {entry.name!r} is there already", hint=hint)
        entry = msgspec.structs.replace(entry, root=Signed(self._paths, entry).pin())
        self._reader(entry).catalog()  # a registry that cannot be read is not added
        self._write([*entries, entry])
        return entry

    def remove(self, name: str) -> None:
        """Forget a registry; what was installed from it stays.

        Raises:
            ConfigurationError: There is none of that name, or it is the bundled one.
        """
        entries = list(read_settings(self._paths).registries)
        kept = [entry for entry in entries if entry.name != name]
        if len(kept) == len(entries):
            known = ", ".join(entry.name for entry in entries) or "none"
            raise ConfigurationError(f"no registry called {name!r} is configured (there are: {known})")
        self._write(kept)

    def _write(self, entries: Sequence[RegistryEntry]) -> None:
        values = [{key: value for key, value in msgspec.structs.asdict(entry).items() if value} for entry in entries]
        change_settings(self._paths, "registries", values or None)
