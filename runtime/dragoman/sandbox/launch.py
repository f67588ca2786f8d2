"""What a worker is started from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman_api.connections import Secrets
from dragoman_worker.wire import Config

from .broker import Endpoint
from .policy import Policy, lockdown_plan

if TYPE_CHECKING:
    from .closure import Closure


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What to start.

    Attributes:
        driver: ``package.module:Class``.
        trees: Directories to import the driver and its dependencies from.
        approved: Host and port pairs it may reach.
        secrets: Credentials, handed over once the lock-down is proven.
        readable: Further files it may read: a client certificate.
        policy: Which level is asked for.
        trusted: The driver's bytes come from a source that the user trusts.
        memory: Bytes of address space.
        descriptors: Open descriptors.
        cpu: Seconds of processor time for the whole life of the process; None for no bound but deadlines.
        cache: Directory for what is costly to find out; None for no cache.
    """

    driver: str
    trees: tuple[Path, ...]
    approved: tuple[Endpoint, ...] = ()
    secrets: Secrets = field(default_factory=Secrets)
    readable: tuple[Path, ...] = ()
    policy: Policy = "auto"
    trusted: bool = False
    memory: int = 2 << 30
    descriptors: int = 256
    cpu: int | None = None
    cache: Path | None = None


def configure(launch: Launch, closure: Closure) -> Config:
    """Write the configuration; it takes a look at the file system."""
    trees = tuple(str(tree.resolve()) for tree in launch.trees)
    plan = lockdown_plan(
        closure,
        readable=(*trees, *(str(path.resolve()) for path in launch.readable)),
        policy=launch.policy,
        memory=launch.memory,
        descriptors=launch.descriptors,
        cpu=launch.cpu,
    )
    return Config(lockdown=plan, trees=trees, driver=launch.driver)
