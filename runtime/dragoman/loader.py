"""From an installed driver to a live one: started, connected, and started again after a crash."""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Self

import anyio

from dragoman_api.calls import Call, ConnectionInfo
from dragoman_api.errors import DragomanError, DriverFaultError
from dragoman_api.events import ConnectionDenied, PluginRestarted
from dragoman_registry.trees import leasing

from .sandbox.process import Worker
from .sandbox.proxy import DriverProxy
from .sandbox.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from dragoman_api.connections import Profile, Server
    from dragoman_api.events import Event
    from dragoman_registry.generation import Generation
    from dragoman_registry.manifest import Manifest

    from ._hooks import Hooks
    from .sandbox.process import Launch
    from .sandbox.spare import Spare

CONNECT_SECONDS = 60.0
CLOSE_SECONDS = 5.0
SMOKE_SECONDS = 20.0
DENIALS = 100
"""Hosts and ports that are told as denied, for one connection."""


class LiveDriver:
    """One connection's driver: the hooks of the process that lives now; an async context manager.

    What failed stays failed for the call that met it; the next call meets a fresh driver.

    Attributes:
        info: The connection, without credentials.
        generation: The installed driver.
        server: What answered.
        incarnation: Counts the processes; a driver knows nothing of what its predecessor learned.
        unattended: Nobody is there to be asked.
    """

    def __init__(
        self,
        *,
        profile: Profile,
        generation: Generation,
        launch: Launch,
        hooks: Hooks,
        emit: Callable[[Event], None],
        spare: Spare | None,
        unattended: bool,
        notices: Sequence[str] = (),
    ) -> None:
        self.info = ConnectionInfo(name=profile.name, type=profile.type, host=profile.host, port=profile.port)
        self.generation = generation
        self.server: Server
        self.incarnation = 0
        self.unattended = unattended
        self._profile, self._hooks, self._emit, self._notices = profile, hooks, emit, notices
        self._denials: set[tuple[str, int | None]] = set()
        self._supervisor = Supervisor(lambda: Worker(launch, spare=spare, on_denied=self._denied))
        self._connecting = anyio.Lock()
        self._worker: Worker | None = None
        self._live = hooks

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as held:
            # What is run from here stays on the disk, whatever is installed or collected meanwhile, by whomever.
            lease = leasing(self.generation.trees)
            await anyio.to_thread.run_sync(lease.__enter__)
            held.callback(lease.__exit__, None, None, None)
            await held.enter_async_context(self._supervisor)
            await self.hooks()
            self._held = held.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            if self.alive and self._live.offers("close"):
                with suppress(DragomanError):  # what it held on the server expires by itself
                    await self._live.call("close", deadline=CLOSE_SECONDS)
        await self._held.aclose()

    @property
    def alive(self) -> bool:
        """Tell whether the driver's process lives."""
        return self._lives()

    def _lives(self) -> bool:
        return self._worker is not None and not self._worker.ended.is_set()

    @property
    def sandbox(self) -> str:
        """Give the level that holds the driver, and what is missing from full."""
        return str(self._worker.report) if self._worker else "none"

    @property
    def warnings(self) -> list[str]:
        """Give what a person should know about this connection."""
        notes = [*self.server.notes, *self._notices]
        if self.sandbox != "full":
            notes.append(f"sandbox {self.sandbox}")
        if self.generation.linked:
            notes.append(f"the driver {self.generation.plugin} is linked: it runs from {self.generation.registry}")
        return notes

    def _denied(self, host: str, port: int | None) -> None:
        if len(self._denials) >= DENIALS or (host, port) in self._denials:
            return  # the audit's file is not for a driver to fill
        self._denials.add((host, port))
        self._emit(ConnectionDenied(connection=self.info.name, host=host, port=port))

    def offers(self, hook: str) -> bool:
        """Tell whether the driver implements a hook."""
        return self._live.offers(hook)

    async def hooks(self) -> Hooks:
        """Give the live driver's hooks, starting and connecting it first if need be.

        Raises:
            DriverCrashedError: It was started too often within a minute.
            DragomanError: It could not be started, or not connect.
        """
        if self.alive:
            return self._live
        async with self._connecting:
            if self._lives():  # another call has connected it meanwhile
                return self._live
            worker = await self._supervisor.worker()
            if self.incarnation:
                plugin, attempt = self.generation.plugin, self.incarnation
                self._emit(PluginRestarted(plugin=plugin, connection=self.info.name, attempt=attempt))
            live = self._hooks.with_driver(DriverProxy(worker))
            await live.ask(Call(hook="connect", connection=self.info, unattended=self.unattended))
            # The driver's HTTP client is made in its own process; the host has none to give.
            server: Server | None = await live.call(
                "connect", deadline=CONNECT_SECONDS, profile=self._profile, http=None
            )
            if server is None:
                raise DriverFaultError("the driver's connect said nothing about the server")
            self.server, self._worker, self._live = server, worker, live
            self.incarnation += 1
            return live


async def smoke_test(launch: Launch, manifest: Manifest) -> None:
    """Start an unpacked driver once, locked down and without a connection, and compare it with its manifest.

    Raises:
        DriverFaultError: It cannot be imported, or its hooks are not those it claims.
        SandboxError: It could not be confined as the policy asks.
    """
    with anyio.fail_after(SMOKE_SECONDS):
        async with Worker(launch) as worker:
            if worker.hooks != set(manifest.hooks):
                missing = ", ".join(sorted(set(manifest.hooks) - worker.hooks)) or "none"
                beyond = ", ".join(sorted(worker.hooks - set(manifest.hooks))) or "none"
                raise DriverFaultError(
                    f"{manifest.id} does not implement what its manifest says: missing {missing}, undeclared {beyond}",
                    hint="tell its author; nothing was activated",
                )
