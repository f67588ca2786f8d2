"""Garbage collection: spent generations, trees without a generation, and drafts of killed processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman_api.errors import InstallError
from dragoman_registry.files import locked

if TYPE_CHECKING:
    from .generation import Generation
    from .store import Store

KEPT = 2
"""Generations of a plugin that are kept without a pin: the active one and the previous one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """One tree, or one draft of a file, that was removed or, in a dry run, would be.

    Attributes:
        plugin: The plugin it belonged to; empty if no generation names it.
        version: The version it belonged to; likewise.
        path: Its path.
        size: Its size in bytes.
    """

    plugin: str
    version: str
    path: Path
    size: int


def collect(store: Store, *, dry_run: bool = False) -> list[Collected]:
    """Remove spent generations, trees that no other generation uses, and drafts that killed processes left.

    Active, previous and pinned generations stay, and so do trees that a living process runs from. Wait for running
    installations to end. Blocks.

    Raises:
        InstallError: The disk fails; data in use is unchanged.
        RegistryError: The state database is damaged.
    """
    trees = store.trees
    try:
        drafts = [
            Collected(plugin="", version="", path=path, size=size)
            for path, size in store.collect_drafts(dry_run=dry_run)
        ]
        if not trees.folder.is_dir():
            return drafts
        with locked(trees.folder):
            spent = [
                generation
                for generation in _spent(store)
                if not any(trees.leased(tree.name) for tree in generation.trees)
            ]
            owners = {
                tree.name: (generation.plugin, generation.version) for generation in spent for tree in generation.trees
            }
            for generation in spent if not dry_run else ():
                store.drop(generation)
            needed = store.trees_in_use(without=spent)
            collected = drafts
            for digest in trees.digests():
                if digest in needed or trees.leased(digest):
                    continue
                plugin, version = owners.get(digest, ("", ""))
                path, size = trees.path(digest), trees.size(digest)
                if dry_run or trees.discard(digest):
                    collected.append(Collected(plugin=plugin, version=version, path=path, size=size))
            return collected
    except OSError as error:
        reason = f"{error.strerror or error}: {error.filename or trees.folder}"
        raise InstallError(f"{trees.folder} cannot be cleaned up: {reason}", hint="dragoman doctor") from error


def _spent(store: Store) -> list[Generation]:
    """List the generations that can be collected: not active, not the previous one, not pinned."""
    spent, seen = [], dict[str, int]()
    for generation in store.by_last_use():
        seen[generation.plugin] = seen.get(generation.plugin, 0) + 1
        if seen[generation.plugin] > KEPT and generation.version != generation.pin:
            spent.append(generation)
    return spent
