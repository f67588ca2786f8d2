"""The roles of a registry: who signs what, and for how long. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tuf.api.metadata import DelegatedRole, Delegations, Root, Snapshot, Targets, Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from securesystemslib.signer import Key

    Role = Root | Targets | Snapshot | Timestamp

PUBLISHER = "pub-"
"""Beginning of the name of a publisher's role."""
ROOT_KEYS, ROOT_THRESHOLD = 3, 2
ONLINE = ("index", "snapshot", "timestamp")
"""Roles whose keys a registry that publishes by itself must have at hand."""
DELEGATED = {"advisories": ("advisories",), "index": ("catalog", "browse")}
"""Roles of the registry below targets, each with a key of its own, and what they sign."""
YEAR = 365
"""Days a folder's metadata holds, where nothing shorter is asked for."""
LONG = 3 * YEAR
"""Days for what is signed by keys that lie in a drawer, and by authors: a mirror copies these as they are."""


def lifetime(role: str, days: int) -> int:
    """Give for how many days a role's metadata holds in a registry whose freshness is `days`."""
    return days if role in ONLINE else max(LONG, days)


def expiry(now: datetime, days: int) -> datetime:
    """Give when something signed now ends."""
    return now.replace(microsecond=0) + timedelta(days=days)


def served_name(path: str, sha256: str) -> str:
    """Give where a target lies below `targets/`: wheels and documents keep plain names, which pip and uv know."""
    return path if "/" in path else f"{sha256}.{path}"


def patterns(project: str) -> list[str]:
    """Give what the publisher of a project may sign; patterns match level by level."""
    return [f"wheels/{project}/*", f"docs/{project}/*/*"]


def delegated(targets: Targets) -> dict[str, DelegatedRole]:
    """Give the roles below targets, by name."""
    return dict(targets.delegations.roles or {}) if targets.delegations else {}


def publisher_roles(targets: Targets) -> Iterator[DelegatedRole]:
    """Give the publishers' roles."""
    yield from (role for name, role in delegated(targets).items() if name.startswith(PUBLISHER))


def projects_of(role: DelegatedRole) -> list[str]:
    """Give the projects a publisher's role may sign for."""
    return [pattern.split("/")[1] for pattern in role.paths or () if pattern.startswith("wheels/")]


def publishers_of(targets: Targets) -> dict[str, str]:
    """Give who may publish each project, as the operator calls them."""
    roles = publisher_roles(targets)
    return {project: role.name.removeprefix(PUBLISHER) for role in roles for project in projects_of(role)}


def publisher_of(targets: Targets, project: str) -> str | None:
    """Give the name of the role that may publish a project."""
    return next((role.name for role in publisher_roles(targets) if project in projects_of(role)), None)


def new_root(keys: dict[str, list[Key]], expires: datetime) -> Root:
    """Make the first root; `keys` gives role → its keys."""
    root = Root(expires=expires, consistent_snapshot=True)
    for role, entries in keys.items():
        for key in entries:
            root.add_key(key, role)
    root.roles["root"].threshold = min(ROOT_THRESHOLD, len(keys["root"]))
    return root


def take_over(root: Root, other: Root, role: str) -> None:
    """Give a role the keys and the threshold it has in another root."""
    root.roles[role].keyids.clear()
    for keyid in other.roles[role].keyids:
        root.add_key(other.keys[keyid], role)
    root.roles[role].threshold = other.roles[role].threshold


def delegate(targets: Targets, role: str, key: Key, paths: list[str]) -> None:
    """Let a key sign paths in a role of its own, in place of the keys it had; publishers stand before the others."""
    if targets.delegations is None:
        targets.delegations = Delegations(keys={}, roles={})
    roles = targets.delegations.roles or {}
    for keyid in roles[role].keyids if role in roles else ():
        targets.revoke_key(keyid, role)
    roles[role] = DelegatedRole(role, [], 1, terminating=True, paths=paths)
    ordered = sorted(roles, key=lambda name: (not name.startswith(PUBLISHER), name))
    targets.delegations.roles = {name: roles[name] for name in ordered}
    targets.add_key(key, role)
