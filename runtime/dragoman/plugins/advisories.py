"""What registries hold against installed versions: read again when it changed, remembered while it cannot be read."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman_api.errors import InstallError, RegistryError

if TYPE_CHECKING:
    from dragoman_registry.generation import Generation
    from dragoman_registry.store import Store

    from .registries import Registries

WEB_SECONDS = 900.0
"""How long the word of a registry behind a web server holds."""
_NOTE = "advisories"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a version stands.

    Attributes:
        quarantined: Why it must not run, None while it may.
        notices: What else a person should know, one sentence each.
    """

    quarantined: str | None = None
    notices: tuple[str, ...] = ()


class Advisories:
    """What the configured registries last said. Every method blocks for some milliseconds, `refresh` for longer."""

    def __init__(self, store: Store, registries: Registries) -> None:
        self._store, self._registries = store, registries
        self._kept: dict[str, Any] | None = None

    def refresh(self, *, force: bool = False) -> None:
        """Ask the registries whose word is no longer fresh; what one said before holds until it says otherwise."""
        if not self._store.installed():
            return
        known, now = self._known(), time.time()
        stamps = {entry.location: _stamp(entry.location) for entry in self._registries.list()}
        fresh = {place: known[place] for place in stamps if place in known}
        stale = [place for place in stamps if force or not _is_fresh(known.get(place), stamps[place], now)]
        for registry in self._registries.open() if stale else ():
            if registry.location not in stale:
                continue
            held, stamp = fresh.get(registry.location, {}).get("held", {}), ""
            with suppress(RegistryError):  # a folder is asked again the next time, the web after a while
                said = registry.advisories()
                held = {"quarantined": said.quarantined, "yanked": said.yanked, "deprecated": said.deprecated}
                stamp = stamps[registry.location]
            fresh[registry.location] = {"stamp": stamp, "at": now, "held": held}
        if fresh != known:
            self._kept = fresh
            with suppress(InstallError):  # a home that cannot be written asks again next time
                self._store.set_note(_NOTE, fresh)

    def standing(self, generation: Generation) -> Standing:
        """Say how an installed version stands with every configured registry. Raises RegistryError."""
        found: dict[str, str] = {}
        for place in self._known().values():
            for status, projects in place["held"].items():
                if reason := projects.get(generation.project, {}).get(generation.version):
                    found.setdefault(status, reason)
        named = f"{generation.plugin} {generation.version} is"
        notices = tuple(f"{named} {status}: {found[status]}" for status in ("deprecated", "yanked") if status in found)
        return Standing(found.get("quarantined"), notices)

    def _known(self) -> dict[str, Any]:
        return self._kept if self._kept is not None else self._store.note(_NOTE) or {}


def _is_fresh(known: dict[str, Any] | None, stamp: str, now: float) -> bool:
    if known is None:
        return False
    return bool(known["stamp"] == stamp if stamp else 0 <= now - known["at"] < WEB_SECONDS)


def _stamp(location: str) -> str:
    """Say of a folder in which state it is; empty for what must be asked."""
    if location.startswith("file:"):
        from urllib.parse import unquote, urlsplit

        location = unquote(urlsplit(location).path)
    if "://" in location:
        return ""
    stamps = []
    for name in ("metadata/timestamp.json", "targets/advisories"):
        with suppress(OSError):
            status = (Path(location).expanduser() / name).stat()
            stamps.append(f"{status.st_mtime_ns} {status.st_size}")
    return ", ".join(stamps)
