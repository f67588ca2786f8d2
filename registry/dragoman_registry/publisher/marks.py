"""Marks on published versions: yanked, deprecated, quarantined, or active again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from dragoman_api.errors import ConfigurationError, PluginNotFoundError
from dragoman_registry.names import PLUGIN
from dragoman_registry.trust.roles import ONLINE

from .catalog_merge import releases
from .edit import editing
from .folder import write_index

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from dragoman_registry.index.catalog import Release


Status = Literal["active", "yanked", "deprecated", "quarantined"]


def mark(
    path: Path,
    *,
    project: str,
    version: str,
    status: Status,
    reason: str = "",
    replaced_by: str = "",
    keys: Path | None = None,
    now: datetime | None = None,
) -> Release:
    """Yank, deprecate or quarantine a version, or offer it again.

    Raises:
        PluginNotFoundError: There is no such version.
        ConfigurationError: The change needs a reason and has none, a key is missing, or the version is quarantined,
            which only `active` lifts.
    """
    if status != "active" and not reason:
        raise ConfigurationError(f"marking {project} {version} as {status} needs a reason", hint="--reason TEXT")
    if replaced_by:
        PLUGIN.check(replaced_by)
    with editing(path, keys, now=now) as edit:
        edit.repository.expect(*ONLINE, "advisories")
        matches = [r for r in releases(edit.catalog) if project in (r.project, r.plugin) and r.version == version]
        if not matches:
            raise PluginNotFoundError(f"{path} has no {project} {version}", hint="dragoman plugins browse")
        quarantine = matches[0].quarantined
        if quarantine is not None and status in ("yanked", "deprecated"):
            hint = f"lift the quarantine first: dragoman registry mark {path} {project} {version} active"
            raise ConfigurationError(f"{project} {version} is quarantined ({quarantine})", hint=hint)
        marked = replace(
            matches[0],
            yanked=reason if status == "yanked" else None,
            quarantined=reason if status == "quarantined" else None,
            deprecated=reason if status == "deprecated" else None,
            replaced_by=replaced_by if status == "deprecated" else "",
        )
        projects = tuple(
            replace(entry, releases=tuple(marked if release is matches[0] else release for release in entry.releases))
            for entry in edit.catalog.projects
        )
        write_index(path, edit.repository, replace(edit.catalog, projects=projects))
    return marked
