"""Registries' advisories on installed versions: reread on change, cached while a registry is unreadable."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api.errors import DragomanError, InstallError, PluginNotFoundError, RegistryError
from dragoman_registry.client import lockfile

from .registries import ASK_OPERATOR, BUNDLED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dragoman_registry.client.generation import Generation
    from dragoman_registry.client.installed_drivers import Store
    from dragoman_registry.client.lockfile import Locked
    from dragoman_registry.index.registry_reader import Registry

    from .registries import Registries

ASKING_SECONDS = 2.0
"""Seconds that an opening waits for the registries' advisories."""
WEB_SECONDS = 900.0
"""Seconds for which advisories from a web server stay fresh."""
_NOTE = "advisories"


LOCKED_OTHERWISE = "has other bytes than plugins.lock names for this version"
PUBLISHED_OTHERWISE = "has other bytes than the registry {} offers under this version"


def locked_otherwise(generation: Generation, entries: Mapping[str, Locked]) -> bool:
    """Check whether the lock names other bytes for the installed version."""
    entry = entries.get(generation.plugin)
    return entry is not None and generation.locked.contradicts(entry)


def remedy_of(generation: Generation, command: str) -> str:
    """Return the remedy for other bytes: a command only for a driver that came with dragoman, and is replaced with it.

    Elsewhere, other bytes under a published version may be an attack.
    """
    return command if generation.registry == BUNDLED else ASK_OPERATOR


def differs(generation: Generation, registry: Registry) -> bool:
    """Check whether the registry that a driver came from has other bytes under its version. Raises as `releases`."""
    if generation.linked or generation.registry != registry.name:
        return False
    with suppress(PluginNotFoundError):
        return any(map(generation.locked.contradicts, registry.releases(generation.plugin)))
    return False


class Standing(msgspec.Struct, frozen=True):
    """The advisories on a version.

    Attributes:
        quarantined: Why it must not run, None while it may.
        notices: Other notices for the user, one sentence each.
    """

    quarantined: str | None = None
    notices: tuple[str, ...] = ()


class AdvisoryCache:
    """A cache of the configured registries' advisories. Every method blocks."""

    def __init__(self, store: Store, registries: Registries) -> None:
        self._store, self._registries = store, registries
        self._answers: dict[str, Any] | None = None

    def refresh(self, *, force: bool = False) -> None:
        """Reread registries whose cached advisories are stale; cached ones stay valid until the registry changes them.

        A registry that answers after `ASKING_SECONDS` is taken into account when it answers.
        """
        if not self._store.installed():
            return
        answers, now = self._cached_answers(), time.time()
        stamps = {entry.location: _stamp(entry.location) for entry in self._registries.list()}
        stale = [place for place in stamps if force or not _is_fresh(answers.get(place), stamps[place], now)]
        registries = [registry for registry in self._registries.open() if registry.location in stale] if stale else []
        asking = Thread(target=self._ask, args=(registries, stamps), daemon=True)
        asking.start()
        asking.join(ASKING_SECONDS)

    def _ask(self, registries: list[Registry], stamps: dict[str, str]) -> None:
        answers: dict[str, dict[str, Any]] = {}
        for registry in registries:
            answer: dict[str, Any] = {"stamp": "", "at": time.time()}
            with suppress(RegistryError):  # a folder is read again next time, a web server after a while
                advisories = registry.advisories()
                by_status = {
                    "quarantined": advisories.quarantined,
                    "yanked": advisories.yanked,
                    "deprecated": advisories.deprecated,
                }
                answer |= {"stamp": stamps[registry.location], "held": by_status}
                if stamps[registry.location]:  # the whole catalog of a web server is too much for an opening
                    answer["other_bytes"] = [
                        generation.sha256 for generation in self._store.installed() if differs(generation, registry)
                    ]
            answers[registry.location] = answer

        def merge(note: dict[str, Any] | None) -> dict[str, Any]:
            entries = {place: entry for place, entry in (note or {}).items() if place in stamps}
            for place, answer in answers.items():
                entries[place] = {"held": entries.get(place, {}).get("held", {}), **answer}
            return entries

        if answers or self._cached_answers().keys() - stamps.keys():
            self._answers = merge(self._cached_answers())
            with suppress(InstallError):  # without a writable home, they are read again next time
                self._store.change_note(_NOTE, merge)

    def standing(self, generation: Generation) -> Standing:
        """Return every configured registry's advisories on an installed version. Raises RegistryError."""
        reasons: dict[str, str] = {}
        advisories = [
            (status, projects)
            for place in self._cached_answers().values()
            for status, projects in place["held"].items()
            if projects
        ]
        if advisories:
            from dragoman_registry.index.catalog import held_against

            for status, projects in advisories:
                if reason := held_against(projects, generation.project, generation.version):
                    reasons.setdefault(status, reason)
        subject = f"{generation.plugin} {generation.version}"
        notices = [f"is {status}: {reasons[status]}" for status in ("deprecated", "yanked") if status in reasons]
        notices += self._other_bytes(generation)
        return Standing(reasons.get("quarantined"), tuple(f"{subject} {notice}" for notice in notices))

    def _other_bytes(self, generation: Generation) -> Iterator[str]:
        with suppress(DragomanError):  # an unreadable lock keeps no driver from running
            if locked_otherwise(generation, lockfile.read(self._store.lock_file)):
                yield f"{LOCKED_OTHERWISE} ({remedy_of(generation, 'dragoman plugins sync')})"
        if any(generation.sha256 in answer.get("other_bytes", ()) for answer in self._cached_answers().values()):
            remedy = remedy_of(generation, f"dragoman plugins update {generation.plugin}")
            yield f"{PUBLISHED_OTHERWISE.format(generation.registry)} ({remedy})"

    def _cached_answers(self) -> dict[str, Any]:
        return self._answers if self._answers is not None else self._store.note(_NOTE) or {}


def _is_fresh(answer: dict[str, Any] | None, stamp: str, now: float) -> bool:
    if answer is None:
        return False
    return bool(answer["stamp"] == stamp if stamp else 0 <= now - answer["at"] < WEB_SECONDS)


def _stamp(location: str) -> str:
    """Return a stamp of a folder's state; empty for a registry that must be read again."""
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
