"""A store, a registry and a host to install with: the whole pipeline without a runtime around it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

import wheelhouse
from dragoman_registry.client import lockfile
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.client.installer import install
from dragoman_registry.client.resolver import resolve
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.wheels.host_environment import Host

if TYPE_CHECKING:
    from dragoman_registry.client.generation import Generation
    from dragoman_registry.client.installer import SmokeTest
    from dragoman_registry.client.resolver import Resolution
    from dragoman_registry.wheels.manifest import Manifest


async def passes(trees: tuple[Path, ...], manifest: Manifest) -> None:
    """Look at the trees as a worker would, and find nothing wrong."""
    module = manifest.entry.partition(":")[0].replace(".", "/")
    assert await anyio.Path(trees[0], f"{module}.py").is_file()


@dataclass
class Place:
    """Where something is installed from and to."""

    root: Path
    wheels: Iterable[Path] = ()
    host: Host = field(default_factory=Host.here)
    progress: list[tuple[str, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if wheels := list(self.wheels):
            wheelhouse.registry(self.root / "registry", wheels)
        self.registry = Registry("team", str(self.root / "registry"), trust=wheelhouse.TrustedPath())
        self.store = Store(self.root / "home")

    def publish(self, *wheels: Path) -> None:
        wheelhouse.registry(self.root / "registry", wheels)

    def resolve(self, name: str = "demo", *, pinned: str | None = None, obey_lock: bool = False) -> Resolution:
        locked = lockfile.read(self.store.lock_file).get(name) if obey_lock else None
        return resolve(self.registry.releases(name), host=self.host, locked=locked, pinned=pinned)

    async def start(self, choice: Resolution, *, smoke_test: SmokeTest = passes, trusted: bool = False) -> Generation:
        return await install(
            choice,
            store=self.store,
            registry=self.registry,
            host=self.host,
            smoke_test=smoke_test,
            on_progress=lambda *step: self.progress.append(step),
            trusted=trusted,
        )

    def install(
        self,
        name: str = "demo",
        *,
        pinned: str | None = None,
        smoke_test: SmokeTest = passes,
        trusted: bool = False,
        obey_lock: bool = False,
    ) -> Generation:
        choice = self.resolve(name, pinned=pinned, obey_lock=obey_lock)
        return anyio.run(partial(self.start, choice, smoke_test=smoke_test, trusted=trusted))

    def leftovers(self) -> list[Path]:
        drafts = self.root / "home/store/.tmp"
        return list(drafts.iterdir()) if drafts.is_dir() else []
