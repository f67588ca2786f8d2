"""The smoke test: the first start of an unpacked driver, before its activation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api.errors import DriverFaultError

from .driver_process import Worker
from .stages import stage

if TYPE_CHECKING:
    from dragoman_registry.wheels.manifest import Manifest

    from .launch import Launch


async def smoke_test(launch: Launch, manifest: Manifest) -> None:
    """Start an unpacked driver once, locked down and without a connection, and compare it with its manifest.

    Raises:
        DriverFaultError: It cannot be imported, or its hooks differ from its manifest.
        SandboxError: It could not be confined as the policy asks.
    """
    with stage("smoke test"):
        async with Worker(launch) as worker:
            if worker.hooks != set(manifest.hooks):
                missing = ", ".join(sorted(set(manifest.hooks) - worker.hooks)) or "none"
                beyond = ", ".join(sorted(worker.hooks - set(manifest.hooks))) or "none"
                raise DriverFaultError(
                    f"{manifest.id} has other hooks than its manifest: missing {missing}, undeclared {beyond}",
                    hint="tell its author; nothing was activated",
                )
