"""Developer mode: connections of a type run from the working tree, in the sandbox, and every surface says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from dragoman.loader import smoke_test
from dragoman.sandbox.grants import granted
from dragoman.sandbox.process import Launch
from dragoman_registry.installer import unpack

from .project import Built, built

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.sandbox.policy import Policy
    from dragoman_registry.generation import Generation
    from dragoman_registry.manifest import Manifest
    from dragoman_registry.store import Store


def link(path: Path, *, store: Store, wheels: Path | None = None, policy: Policy = "auto") -> Generation:
    """Let a driver run from its working tree from the next opening on, until `Store.unlink`. Blocks.

    What is imported is read afresh at each opening; the manifest is the one of now, so that a changed one is checked.

    Args:
        path: The working tree.
        store: Of the home in which it is linked.
        wheels: Where the wheels of its dependencies lie; None for its own folder ``wheels``.
        policy: Of the sandbox.

    Raises:
        WheelRejectedError: Its wheel would have faults.
        ConfigurationError: It cannot be built.
        SandboxError: It cannot be imported, or its hooks are not those of its manifest.
    """
    with built(path, wheels=wheels) as made:
        made.expect_sound()
        manifest = made.report.manifest
        assert manifest is not None
        trees = _trees(made, manifest, store)
        launch = Launch(driver=manifest.entry, trees=trees, policy=policy, trusted=True)
        anyio.run(smoke_test, granted(launch, manifest.permissions), manifest)
        return store.links.add(manifest, version=made.wheel.name.split("-")[1], trees=trees)


def _trees(made: Built, manifest: Manifest, store: Store) -> tuple[Path, ...]:
    """Name the folders to import from; dependencies are unpacked into the store, as for an installed driver."""
    project, package = made.project.resolve(), manifest.entry.partition(":")[0].partition(".")[0]
    root = project / "src" if (project / "src" / package).is_dir() else project
    digests = []
    for number, wheel in enumerate(made.fitting[1:]):
        with store.trees.staging() as staging:
            unpack(wheel, staging / f"tree-{number}")
            digests.append(store.trees.keep(staging / f"tree-{number}"))
    return (root, *map(store.trees.path, digests))
