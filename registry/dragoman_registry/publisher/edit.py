"""One edit of a registry: locked, recorded so that a kill leaves nothing behind, and only of what the signer owns."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError, RegistryError
from dragoman_registry.files import locked
from dragoman_registry.index.catalog import Catalog
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.trust.keys import Keys, beside
from dragoman_registry.trust.roles import ONLINE, PUBLISHER, roles_of
from dragoman_registry.trust.tuf_repository import Repository, exists
from dragoman_registry.validation import Fault
from dragoman_registry.wheels.wheel_file import project_of

from . import interrupted_writes
from .folder import Own, write_index, writing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from dragoman_registry.wheels.wheel_report import WheelReport


OWNER = f"{PUBLISHER}owner"
"""Role of an operator who holds the registry's keys and publishes there as well."""


@contextmanager
def reading(
    path: Path, keys: Path | None = None, sign: Path | None = None, now: datetime | None = None
) -> Iterator[Edit]:
    """Read a registry for an edit that is only judged."""
    with writing(path):
        yield Edit(path, keys, sign, now)


@contextmanager
def editing(
    path: Path, keys: Path | None = None, sign: Path | None = None, now: datetime | None = None
) -> Iterator[Edit]:
    """Lock the registry, remove the leftovers of killed work, and record this work so that it leaves none.

    Raises:
        ConfigurationError: There is no registry in the folder; nothing is written there.
    """
    if not exists(path) and not _unsigned(path):
        raise ConfigurationError(f"{path} is not a registry", hint="make one: dragoman registry init FOLDER")
    with writing(path), locked(path):
        edit = Edit(path, keys, sign, now)
        if interrupted_writes.is_unfinished(path):
            interrupted_writes.sweep(path, interrupted_writes.in_use(path, edit.catalog, edit.repository))
            if edit.repository.can_sign(*ONLINE):  # killed work may have left pages newer than the catalog
                every = {project.project for project in edit.catalog.projects}
                write_index(path, edit.repository, edit.catalog, types=edit.types, changed=every)
        with interrupted_writes.recorded(path):
            yield edit


def _unsigned(path: Path) -> bool:
    return (path / "targets").is_dir() and any((path / "targets").iterdir())


class Edit:
    """One operation on a registry: its repository, and the catalog and types as they were at the start."""

    def __init__(
        self, path: Path, keys: Path | None = None, sign: Path | None = None, now: datetime | None = None
    ) -> None:
        self.path = path
        self.stamp = (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.catalog, self.types = Catalog(), dict[str, str]()
        if exists(path):
            self.repository = Repository(path, Keys(keys or beside(path), *([sign] if sign else [])), now=now)
            registry = Registry("registry", str(path), trust=Own(self.repository))
            self.catalog, self.types = registry.catalog(), registry.types()
        elif _unsigned(path):
            hint = "publish its wheels in a new registry: dragoman registry build WHEELS --to FOLDER"
            raise RegistryError(f"{path} is an unsigned registry", hint=hint, code="not-signed")
        self._by_key = sign is not None

    def claims(self, reports: Mapping[Path, WheelReport]) -> Iterator[Fault]:
        """Find projects and types that do not belong to the signer."""
        publishers = roles_of(self.repository.targets) if exists(self.path) else {}
        for path, report in reports.items():
            if report.manifest is None:
                continue
            project = project_of(path.name)
            role = publishers.get(project) if exists(self.path) else OWNER
            mine = role in (None, OWNER) and not self._by_key
            if role is None and not (mine and self.repository.can_sign("targets")):
                reason = "This project has no publisher; run: dragoman registry add-publisher FOLDER NAME"
                yield Fault("no-publisher", f"{reason} --key KEY.pub --project {project}.", path.name)
            for kind in report.manifest.types:
                holder = self.types.get(kind.name)
                if holder not in (None, project):
                    yield Fault("type-taken", f"The type {kind.name!r} is served by {holder}.", path.name)
                if holder is None and exists(self.path) and not (mine and self.repository.can_sign("targets")):
                    reason = f"The type {kind.name!r} is not bound to {project}; run: dragoman registry add-publisher"
                    yield Fault("type-not-bound", f"{reason} FOLDER NAME --type {kind.name}.", path.name)

    def record(self, reports: Mapping[Path, WheelReport]) -> None:
        """Record which files the wheels add, before any is written."""
        names = []
        for path, report in reports.items():
            project, version = project_of(path.name), report.name.version if report.name else ""
            wheel = f"targets/wheels/{project}/{path.name}"
            names += [wheel, *(f"{wheel}.{kind}" for kind in ("metadata", "driver.json", "report.json"))]
            names += [f"targets/docs/{project}/{version}/{name}.md" for name in ("README", "CHANGELOG")]
            names += [f"targets/simple/{project}/index.{kind}" for kind in ("html", "v1+json")]
        interrupted_writes.record(self.path, names)
