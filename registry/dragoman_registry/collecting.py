"""Collecting what nobody uses any more: generations that nobody goes back to, and trees that belong to none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman_api.errors import InstallError

from .files import locked

if TYPE_CHECKING:
    from .store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """One tree that was removed, or would be.

    Attributes:
        plugin: What it was a part of, empty if no generation names it.
        version: Likewise.
        path: Where it lay.
        size: Bytes.
    """

    plugin: str
    version: str
    path: Path
    size: int


def collect(store: Store, *, dry_run: bool = False) -> list[Collected]:
    """Remove spent generations and the trees that only they are made of.

    What is active, was active before, is pinned, or is run from by a living process, stays. Waits for installations
    that are under way. Blocks.

    Raises:
        InstallError: The disk fails; nothing that is in use has changed.
        RegistryError: The state database is damaged.
    """
    trees = store.trees
    if not trees.folder.is_dir():
        return []
    try:
        with locked(trees.folder):
            spent = [one for one in store.spent() if not any(trees.leased(tree.name) for tree in one.trees)]
            owners = {tree.name: (one.plugin, one.version) for one in spent for tree in one.trees}
            for one in spent if not dry_run else ():
                store.drop(one)
            needed = store.trees_in_use(without=spent)
            found = []
            for digest in trees.digests():
                if digest in needed or trees.leased(digest):
                    continue
                plugin, version = owners.get(digest, ("", ""))
                path, size = trees.path(digest), trees.size(digest)
                if dry_run or trees.discard(digest):
                    found.append(Collected(plugin=plugin, version=version, path=path, size=size))
            return found
    except OSError as error:
        reason = f"{error.strerror or error}: {error.filename or trees.folder}"
        raise InstallError(f"{trees.folder} cannot be cleared: {reason}", hint="dragoman doctor") from error
