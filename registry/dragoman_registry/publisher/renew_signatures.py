"""Signs a registry again: roles that expire soon, and roles whose keys change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_registry.trust.roles import ONLINE, PUBLISHER

from .edit import OWNER, editing
from .folder import add_digest_names

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path


def sign(
    path: Path,
    *,
    keys: Path | None = None,
    sign: Path | None = None,
    rotate: Iterable[str] = (),
    days: int | None = None,
    now: datetime | None = None,
) -> list[str]:
    """Renew the roles that expire soon and whose keys are available; replace the keys of roles.

    Args:
        path: The registry.
        keys: Folder of keys; by default beside the registry.
        sign: A publisher's key: it signs their accepted role again, which then waits for `accept`.
        rotate: Roles that get new keys.
        days: New lifetime in days of the registry's own metadata.
        now: The time of the signatures.

    Returns:
        The names of the signed roles.

    Raises:
        ConfigurationError: A role is unknown, or a key is missing.
    """
    with editing(path, keys, sign, now) as edit:
        repository = edit.repository
        rotated = list(rotate)
        for role in rotated:
            repository.rotate(role)
        again = [name for name in repository.names() if name.startswith(PUBLISHER) and repository.can_sign(name)]
        for name in again if sign or OWNER in again else ():
            repository.resign(name)
        waiting = repository.pending() if repository.can_sign(*ONLINE) and not sign else {}
        for name in set(waiting) & set(again):
            repository.adopt(name, waiting[name])
        renewed = repository.renew(days=days)
        add_digest_names(path, repository, {project.project for project in edit.catalog.projects})
        repository.commit()
        return [*rotated, *(name for name in [*again, *renewed] if name not in rotated)]
