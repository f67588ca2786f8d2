"""What a thief of a registry's keys can sign: the tests hold what comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_registry.files import write
from dragoman_registry.trust.keys import Keys, beside
from dragoman_registry.trust.roles import roles_of, served_name
from dragoman_registry.trust.tuf_repository import Repository

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_ROLES = {"catalog": "index", "browse": "index", "advisories": "advisories", "types": "targets"}


def forge(root: Path, files: Mapping[str, bytes], *, keys: Path | None = None) -> None:
    """Put files below `targets/` and sign them as their roles would, without any of the checks of publishing."""
    repository = Repository(root, Keys(keys or beside(root)))
    for path, data in files.items():
        if path in _ROLES:
            digest = repository.vouch(_ROLES[path], path, data)
            write(root / "targets" / served_name(path, digest), data)
        write(root / "targets" / path, data)
    for path, data in files.items():
        if path not in _ROLES and (role := roles_of(repository.targets).get(path.split("/")[1])):
            repository.submit(role, {path: data})
            repository.adopt(role, repository.pending()[role])
    repository.commit()
