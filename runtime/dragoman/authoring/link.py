"""Developer mode: run a type's connections from the working tree, in the sandbox; every surface says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from dragoman.sandbox.driver_process import Launch, smoke_test
from dragoman.sandbox.launch import granted
from dragoman_registry.client.installer import unpack

from .wheel_build import Built, built

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.sandbox.levels import Policy
    from dragoman_registry.client.generation import Generation
    from dragoman_registry.client.store import Store
    from dragoman_registry.wheels.manifest import Manifest


def link(path: Path, *, store: Store, wheels: Path | None = None, policy: Policy = "auto") -> Generation:
    """Run a driver from its working tree, from the next opening until `Store.unlink`. Blocks.

    Each opening imports the current code. The manifest is the one at linking time, so a changed one must be linked and
    checked again.

    Args:
        path: The working tree.
        store: The store of the home in which it is linked.
        wheels: The folder of its dependencies' wheels; None for its own folder ``wheels``.
        policy: The sandbox policy.

    Raises:
        WheelRejectedError: Its wheel would have faults.
        ConfigurationError: It cannot be built.
        SandboxError: It cannot be imported, or its hooks differ from its manifest.
    """
    with built(path, wheels=wheels) as build:
        build.expect_sound()
        manifest = build.report.manifest
        assert manifest is not None
        trees = _trees(build, manifest, store)
        launch = Launch(driver=manifest.entry, trees=trees, policy=policy, trusted=True)
        anyio.run(smoke_test, granted(launch, manifest.permissions), manifest)
        return store.links.add(manifest, version=build.wheel.name.split("-")[1], trees=trees)


def _trees(build: Built, manifest: Manifest, store: Store) -> tuple[Path, ...]:
    """List the folders to import from; unpack dependencies into the store, as for an installed driver."""
    project, package = build.project.resolve(), manifest.entry.partition(":")[0].partition(".")[0]
    root = project / "src" if (project / "src" / package).is_dir() else project
    digests = []
    for number, wheel in enumerate(build.fitting[1:]):
        with store.trees.staging() as staging:
            unpack(wheel, staging / f"tree-{number}")
            digests.append(store.trees.keep(staging / f"tree-{number}"))
    return (root, *map(store.trees.path, digests))
