"""The parameters of a worker's start."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.secret_references import NamedFile
from dragoman_api.connections import Profile
from dragoman_api.errors import ConfigurationError
from dragoman_registry.ip_addresses import Nearness
from dragoman_worker.wire import Config

from .levels import Policy
from .lockdown_plan import lockdown_plan
from .via import Via

if TYPE_CHECKING:
    from .host_imports import HostImports

Endpoint = tuple[str, int]
"""A host and a port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The parameters of one start.

    Attributes:
        driver: ``package.module:Class``.
        trees: Directories to import the driver and its dependencies from.
        approved: The saved host and port, which it may reach.
        further: Further hosts and ports that its manifest names.
        remembered: Host → how near it was when first reached; newly reached hosts are added.
        via: What is between this machine and the `approved` hosts; None for nothing.
        via_password: The password that it asks for. It never leaves the host's process but for the proxy.
        profile: The connection, handed over with its credentials once the lock-down is proven; None for a trial.
        files: Further files it may read, such as a client certificate, with their identity when the person named them.
        policy: The requested level.
        trusted: The driver's bytes come from a source that the user trusts.
        memory: Bytes of address space.
        descriptors: Open descriptors.
        cpu: Seconds of processor time for the whole life of the process; None for no limit except deadlines.
        cache: Directory for results that are costly to compute; None for no cache.
    """

    driver: str
    trees: tuple[Path, ...]
    approved: tuple[Endpoint, ...] = ()
    further: tuple[Endpoint, ...] = ()
    remembered: dict[str, Nearness] = field(default_factory=dict)
    via: Via | None = None
    via_password: str = field(default="", repr=False)
    profile: Profile | None = None
    files: tuple[NamedFile, ...] = ()
    policy: Policy = "auto"
    trusted: bool = False
    memory: int = 2 << 30
    descriptors: int = 256
    cpu: int | None = None
    cache: Path | None = None


def configure(launch: Launch, host_imports: HostImports) -> Config:
    """Build the configuration; this reads the file system.

    Raises:
        ConfigurationError: A file that it may read has been replaced since.
    """
    for file in launch.files:
        try:
            same = file.is_that(file.path.lstat())
        except OSError:
            same = False
        if not same:
            reason = f"{file.path} was replaced since the connection was opened"
            raise ConfigurationError(reason, hint="check who replaced it, then open the connection again")
    trees = tuple(str(tree.resolve()) for tree in launch.trees)
    plan = lockdown_plan(
        host_imports,
        readable=trees,
        files=((str(file.path), file.device, file.inode) for file in launch.files),
        policy=launch.policy,
        memory=launch.memory,
        descriptors=launch.descriptors,
        cpu=launch.cpu,
    )
    return Config(lockdown=plan, trees=trees, driver=launch.driver)
