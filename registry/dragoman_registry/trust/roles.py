"""The roles of a registry: which keys sign which files, and for how long. Pure."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from tuf.api.metadata import DelegatedRole, Delegations, MetaFile, Root, Snapshot, Targets, Timestamp

from dragoman_registry.names import PROJECT, ROLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from securesystemslib.signer import Key

    Role = Root | Targets | Snapshot | Timestamp

PUBLISHER = "pub-"
"""Prefix of the names of publishers' roles."""
ROOT_KEYS, ROOT_THRESHOLD = 3, 2
ONLINE = ("index", "snapshot", "timestamp")
"""Roles whose keys must be online in a registry that publishes automatically."""
DELEGATED = {"advisories": ("advisories",), "index": ("catalog", "browse")}
"""The registry's own roles below targets, each with its own key, and the files they sign."""
YEAR = 365
"""Default lifetime of a registry's metadata in days."""
LONG = 3 * YEAR
"""Minimum lifetime in days of metadata signed by offline keys or by authors, which mirrors copy unchanged."""


def lifetime(role: str, days: int) -> int:
    """Return the lifetime in days of a role's metadata in a registry whose freshness is `days`."""
    return days if role in ONLINE else max(LONG, days)


def expiry(now: datetime, days: int) -> datetime:
    """Return the expiry date of metadata signed now."""
    return now.replace(microsecond=0) + timedelta(days=days)


def digest_name(path: str, sha256: str) -> str:
    """Return the path below `targets/` where clients of The Update Framework look for a target.

    >>> digest_name("wheels/demo/x.whl", "0f3a"), digest_name("catalog", "0f3a")
    ('wheels/demo/0f3a.x.whl', '0f3a.catalog')
    """
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{sha256}.{name}"


def served_name(path: str, sha256: str) -> str:
    """Return the path where this host looks for a target: pip needs wheels and documents under plain names, too."""
    return path if "/" in path else digest_name(path, sha256)


def patterns(project: str) -> list[str]:
    """Return the path patterns that a project's publisher may sign; each pattern level matches one path level."""
    return [f"wheels/{project}/*", f"docs/{project}/*/*"]


def delegated(targets: Targets) -> dict[str, DelegatedRole]:
    """Return the roles below targets by name, without those whose names are invalid."""
    return {name: role for name, role in _all(targets).items() if ROLE.fits(name)}


def strange(targets: Targets) -> list[str]:
    """List the invalid role names that `delegated` leaves out."""
    return [name for name in _all(targets) if not ROLE.fits(name)]


def _all(targets: Targets) -> dict[str, DelegatedRole]:
    return dict(targets.delegations.roles or {}) if targets.delegations else {}


def publisher_roles(targets: Targets) -> Iterator[DelegatedRole]:
    """Return the publishers' roles."""
    yield from (role for name, role in delegated(targets).items() if name.startswith(PUBLISHER))


def projects_of(role: DelegatedRole) -> list[str]:
    """List the projects that a publisher's role may sign for."""
    return list(_projects(tuple(role.paths or ())))


@lru_cache(maxsize=1 << 14)  # a publication asks several times for those of every publisher
def _projects(paths: tuple[str, ...]) -> tuple[str, ...]:
    projects = (pattern.split("/")[1] for pattern in paths if pattern.startswith("wheels/"))
    return tuple(project for project in projects if PROJECT.fits(project))


def publishers_of(targets: Targets) -> dict[str, str]:
    """Map each project to the operator's name for its publisher."""
    return {project: role.removeprefix(PUBLISHER) for project, role in roles_of(targets).items()}


def roles_of(targets: Targets) -> dict[str, str]:
    """Map each project to the name of the role that may publish it."""
    return {project: role.name for role in publisher_roles(targets) for project in projects_of(role)}


def new_root(keys: dict[str, list[Key]], expires: datetime) -> Root:
    """Build the first root; `keys` maps each role to its keys."""
    root = Root(expires=expires, consistent_snapshot=True)
    for role, entries in keys.items():
        for key in entries:
            root.add_key(key, role)
    root.roles["root"].threshold = min(ROOT_THRESHOLD, len(keys["root"]))
    return root


def replace_keys(root: Root, role: str, keys: Iterable[Key]) -> None:
    """Give a role of the root other keys."""
    for keyid in list(root.roles[role].keyids):
        root.revoke_key(keyid, role)
    for key in keys:
        root.add_key(key, role)


def take_over(root: Root, other: Root, role: str) -> None:
    """Copy a role's keys and threshold from another root."""
    root.roles[role].keyids.clear()
    for keyid in other.roles[role].keyids:
        root.add_key(other.keys[keyid], role)
    root.roles[role].threshold = other.roles[role].threshold


def delegate(targets: Targets, role: str, key: Key, paths: list[str]) -> None:
    """Delegate paths to a role with one key, replacing its earlier keys; publishers' roles come before the others."""
    if targets.delegations is None:
        targets.delegations = Delegations(keys={}, roles={})
    roles = targets.delegations.roles or {}
    for keyid in roles[role].keyids if role in roles else ():
        targets.revoke_key(keyid, role)
    roles[role] = DelegatedRole(role, [], 1, terminating=True, paths=paths)
    ordered = sorted(roles, key=lambda name: (not name.startswith(PUBLISHER), name))
    targets.delegations.roles = {name: roles[name] for name in ordered}
    targets.add_key(key, role)


def describe_file(version: int, data: bytes) -> MetaFile:
    """Return what a snapshot or timestamp says of a file: version, length and digest."""
    return MetaFile(version, len(data), {"sha256": hashlib.sha256(data).hexdigest()})
