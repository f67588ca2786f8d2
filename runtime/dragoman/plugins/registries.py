"""The configured registries, the sources of drivers, in lookup order."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from dragoman.settings import RegistryEntry, change_registries, read_settings
from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman.folders import Paths
    from dragoman_registry.index.registry_reader import Registry
    from dragoman_registry.trust.trust import Publisher, SignedFile
    from dragoman_registry.trust.tuf_client import TufTrust

BUNDLED = "bundled"
"""Name of the registry that ships inside the host: a folder of package data, never imported."""
ASK_OPERATOR = "ask the registry's operator why: a published version never changes"


def locate(location: str) -> str:
    """Return an address unchanged, and a path as an absolute path."""
    return location if "://" in location else str(Path(location).expanduser().absolute())


def trusted_of(paths: Paths, entry: RegistryEntry) -> Path:
    """Return the folder that holds a registry's verified metadata."""
    place = hashlib.sha256(f"{entry.location} {entry.root}".encode()).hexdigest()[:12]
    return paths.data / "tuf" / f"{quote(entry.name, safe='')}-{place}"


class Signed:
    """A configured registry's signatures; the verifying code is loaded on first use."""

    def __init__(self, paths: Paths, entry: RegistryEntry, *, allow_stale: bool | None = None) -> None:
        """Set the trusted root; without `allow_stale`, `config.toml` decides."""
        self._paths, self._entry, self._allow_stale = paths, entry, allow_stale

    def admit(self, target: SignedFile) -> SignedFile:
        """Check a target against its signed metadata."""
        return self._trust.admit(target)

    def publishers(self) -> Mapping[str, Publisher]:
        """Return the publishers and what each may publish."""
        return self._trust.publishers()

    def verified(self) -> Mapping[str, bytes]:
        """Return the verified metadata, for a mirror."""
        return self._trust.verified()

    def pin(self) -> str:
        """Verify the registry; return the digest of its trusted root."""
        return self._trust.pin()

    @cached_property
    def _trust(self) -> TufTrust:
        from dragoman_registry.sources import on_the_web, open_source
        from dragoman_registry.trust.tuf_client import TufTrust

        entry, accepts_stale = self._entry, self._allow_stale
        if accepts_stale is None:
            accepts_stale = read_settings(self._paths.settings).allow_stale
        return TufTrust(
            open_source(entry.location),
            where=entry.location,
            cache=trusted_of(self._paths, entry),
            root=entry.root,
            # A user who can change a local folder can change the configuration as well.
            first_use=not on_the_web(entry.location),
            allow_stale=accepts_stale,
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
        """Return every registry in lookup order: the configured ones, then the bundled one.

        Raises:
            ConfigurationError: `config.toml` gives the name of the bundled one to another registry.
        """
        entries = [*read_settings(self._paths.settings).registries]
        if any(entry.name == BUNDLED for entry in entries):
            text = f"{self._paths.settings}: {BUNDLED!r} is reserved for the registry that comes with dragoman"
            raise ConfigurationError(text, hint=f"dragoman registry remove {BUNDLED}")
        bundled = Path(__file__).parents[1] / BUNDLED
        if (bundled / "targets").is_dir():
            entries.append(RegistryEntry(BUNDLED, str(bundled)))
        return entries

    def open(self, *, allow_stale: bool = False) -> tuple[Registry, ...]:
        """Open a reader for each registry; only `config.toml` is read yet. Blocks.

        Args:
            allow_stale: Accept expired signatures, for drivers in a lock; else `config.toml` decides.
        """
        stale = allow_stale or read_settings(self._paths.settings).allow_stale  # once, and not for each registry
        return tuple(self._reader(entry, allow_stale=stale) for entry in self.list())

    def _reader(self, entry: RegistryEntry, *, allow_stale: bool | None = None) -> Registry:
        from dragoman_registry.index.registry_reader import Memory, Registry
        from dragoman_registry.trust.trust import Pinned

        if entry.name == BUNDLED:
            return Registry(entry.name, entry.location, trust=Pinned(Path(entry.location)))
        memory = Memory(trusted_of(self._paths, entry) / "claims.json")
        trust = Signed(self._paths, entry, allow_stale=allow_stale)
        return Registry(entry.name, entry.location, trust=trust, memory=memory)

    def add(self, location: str, *, name: str | None = None, root: str = "") -> RegistryEntry:
        """Add a registry at the end of the lookup order.

        Args:
            location: The path of a folder or a bundle, or a ``file:``, ``http:`` or ``https:`` URL.
            name: Its name; by default the folder's name.
            root: SHA-256 of its root, which anchors its signatures. If empty, the root of a folder is trusted.

        Returns:
            The entry with the root that is trusted from now on.

        Raises:
            ConfigurationError: The name is taken.
            TrustError: No root is given for an address on the web (code ``root-unknown``), it has another one, or its
                signatures are invalid.
            RegistryError: There is no registry at the location.
        """
        location = locate(location)
        entry = RegistryEntry(
            name or location.replace(os.sep, "/").rstrip("/").rsplit("/", 1)[-1] or "registry", location, root
        )
        _check_free(entry.name, read_settings(self._paths.settings).registries)
        entry = msgspec.structs.replace(entry, root=Signed(self._paths, entry).pin())
        reader = self._reader(entry)  # one that cannot be read is not added; a record that cannot hides itself
        reader.sifted()
        reader.types()  # record its claims from now on

        def append(entries: Sequence[RegistryEntry]) -> Sequence[RegistryEntry]:
            _check_free(entry.name, entries)
            return [*entries, entry]

        change_registries(self._paths.settings, append)
        return entry

    def remove(self, name: str) -> None:
        """Remove a registry; drivers installed from it stay.

        Raises:
            ConfigurationError: No registry has that name, or it is the bundled one.
        """

        def drop(entries: Sequence[RegistryEntry]) -> Sequence[RegistryEntry]:
            others = [entry for entry in entries if entry.name != name]
            if len(others) == len(entries):
                names = ", ".join(entry.name for entry in entries) or "none"
                raise ConfigurationError(f"no registry called {name!r} is configured (configured: {names})")
            return others

        change_registries(self._paths.settings, drop)


def _check_free(name: str, entries: Sequence[RegistryEntry]) -> None:
    if name == BUNDLED or any(entry.name == name for entry in entries):
        hint = "choose another: --name NAME"
        raise ConfigurationError(f"a registry called {name!r} already exists", hint=hint)
