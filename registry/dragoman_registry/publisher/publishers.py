"""The publishers of a registry: their keys, their projects, and the database types that these serve."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError
from dragoman_registry.names import PROJECT, TYPE
from dragoman_registry.names import PUBLISHER as PUBLISHER_NAME
from dragoman_registry.trust import Publisher
from dragoman_registry.trust.keys import read_public
from dragoman_registry.trust.roles import PUBLISHER, delegated, patterns, projects_of, publisher_of

from .edit import editing
from .folder import write_index

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path


def add_publisher(
    path: Path,
    name: str,
    *,
    key: Path,
    projects: Iterable[str],
    types: Collection[str] = (),
    rebind: bool = False,
    keys: Path | None = None,
) -> Publisher:
    """Let the holder of a key publish projects, and bind database types to the first project.

    An existing publisher keeps their projects, and this key replaces the earlier one. Their releases are offered
    again once they have signed them with the new key.

    Args:
        path: The registry.
        name: The publisher's name: lower-case letters, digits and dashes.
        key: The file with the publisher's public key.
        projects: Further distributions that they may publish.
        types: Database types that the first project serves from now on.
        rebind: Take the types away from the projects that serve them.
        keys: Folder of keys; by default beside the registry.

    Raises:
        ConfigurationError: The name or key is invalid, or a project or type belongs to another.
    """
    project_names = [PROJECT.check(re.sub(r"[-_.]+", "-", project).lower()) for project in projects]
    types = list(map(TYPE.check, types))
    role, public = f"{PUBLISHER}{PUBLISHER_NAME.check(name)}", read_public(key)
    with editing(path, keys) as edit:
        edit.repository.expect("targets", "snapshot", "timestamp")
        delegation = delegated(edit.repository.targets).get(role)
        project_names = list(dict.fromkeys([*project_names, *(projects_of(delegation) if delegation else [])]))
        if not project_names:
            raise ConfigurationError(f"{name} has no project to publish", hint="--project NAME-OF-THE-DISTRIBUTION")
        for project in project_names:
            if (other := publisher_of(edit.repository.targets, project)) not in (None, role):
                holder = str(other).removeprefix(PUBLISHER)
                raise ConfigurationError(f"{project} is published by {holder}", hint="choose another project")
        holders = {
            kind: edit.types[kind] for kind in types if edit.types.get(kind, project_names[0]) != project_names[0]
        }
        if holders and not rebind:
            message = ", ".join(f"the type {kind!r} is served by {holder}" for kind, holder in holders.items())
            raise ConfigurationError(message, hint=f"--rebind makes {project_names[0]} serve it from now on")
        edit.repository.delegate(role, public, [pattern for project in project_names for pattern in patterns(project)])
        bound = edit.types | dict.fromkeys(types, project_names[0])
        write_index(path, edit.repository, edit.catalog, types=bound)
    return Publisher(name=name, keys=(public.keyid,))
