"""A worker: one driver in a process of its own, from its start to its certain end."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from msgspec import Raw

from dragoman.lifetimes import background
from dragoman_api.errors import DriverCrashedError, DriverFaultError, SandboxError
from dragoman_api.masking import Mask
from dragoman_registry.files import remedy
from dragoman_worker import values, wire
from dragoman_worker.channel import FROM_CHILD, Channel
from dragoman_worker.hooks_and_deadlines import HOOKS
from dragoman_worker.wire import Config, Ready, Sandboxed, Secret

from . import levels
from .bare_process import Child
from .conversation import END_SECONDS, HINT, Conversation
from .fork_server import fork_child
from .host_imports import find_host_imports
from .launch import Launch as Launch
from .launch import configure
from .process_output import LogPipe
from .reach.address_resolver import AddressResolver
from .reach.broker import Broker
from .stages import stage

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from dragoman_registry.wheels.manifest import Manifest

    from .bare_process import Spare
    from .host_imports import HostImports
    from .levels import SandboxReport
    from .reach.address_resolver import NearerError
    from .reach.route import RouteError

_LAST_LINES, _LINE_TEXT = 5, 200


class Worker(Conversation):
    """A driver's process, an async context manager.

    Attributes:
        hooks: What the driver implements.
        report: Its confinement.
        ended: Set when its process has ended, for whatever reason.
    """

    def __init__(
        self,
        launch: Launch,
        *,
        spare: Spare | None = None,
        on_log: Callable[[str], object] | None = None,
        on_denied: Callable[[str, int | None], None] | None = None,
        on_nearer: Callable[[NearerError, int | None], None] | None = None,
        on_route_failed: Callable[[RouteError], None] = lambda _: None,
    ) -> None:
        """Prepare a worker; nothing is started before the context is entered.

        Args:
            launch: What to start.
            spare: May hold a warm child.
            on_log: Receives each line the driver prints, sanitised.
            on_denied: Receives each host that the driver requested without permission, and the port if given.
            on_nearer: Receives each name that resolved nearer than allowed, and the port if given.
            on_route_failed: Receives each failure of what is between this machine and the server.
        """
        profile = launch.profile
        super().__init__(
            mask=Mask(profile.secrets.texts if profile else ()), connection=profile.name if profile else ""
        )
        self.report: SandboxReport
        self._launch, self._spare = launch, spare
        self._on_log, self._on_denied = on_log, on_denied or (lambda host, port: None)
        self._on_nearer = on_nearer or (lambda error, port: self._on_denied(error.host, port))
        self._on_route_failed = on_route_failed
        self._silent = self._reaped = False

    # start and end --------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        with stage("preparation"):
            host_imports, self._config = await anyio.to_thread.run_sync(self._look, abandon_on_cancel=True)
        child = (self._spare and self._spare.take()) or await self._forked(host_imports) or _spawn(host_imports)
        try:
            self._adopt(child)
        except BaseException:
            child.discard()
            raise
        self._stack = AsyncExitStack()
        try:
            await self._enter()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _enter(self) -> None:
        self._stack.push_async_callback(self._end)
        with anyio.CancelScope(shield=True), stage("start"):
            await self._channel.attach(self._child.control)
        tasks = await self._stack.enter_async_context(background())
        tasks.start_soon(self._broker.serve)
        await self._start()

    def _look(self) -> tuple[HostImports, Config]:
        host_imports = self._spare.host_imports if self._spare else find_host_imports(self._launch.cache)
        return host_imports, configure(self._launch, host_imports)

    async def _forked(self, host_imports: HostImports) -> Child | None:
        if not self._launch.forked or self._launch.policy == "off":  # what a server has given up cannot be had again
            return None
        try:
            return await fork_child(host_imports)
        except OSError as error:
            raise _not_started(error) from error

    def _adopt(self, child: Child) -> None:
        self._loop = asyncio.get_running_loop()
        self._channel = Channel(
            limit=FROM_CHILD,
            encode=wire.encode,
            on_frame=self._receive,
            on_fault=self._condemn,
            on_end=self._fell_silent,
        )
        launch = self._launch
        self._child, self._connector = child, launch.connector()
        self._broker = Broker(
            child.broker,
            AddressResolver(launch.approved, launch.further, remembered=launch.remembered),
            connector=self._connector,
            on_denied=self._deny,
            on_nearer=self._on_nearer,
            on_fault=self._condemn,
            on_route_failed=self._on_route_failed,
        )
        self._log = LogPipe(child.output, mask=self._mask, on_line=self._on_log)
        child.watch(self._loop, self._exited)

    async def _start(self) -> None:
        launch = self._launch
        with stage("lock-down"):
            sandboxed: Sandboxed = await self._say(self._config, Sandboxed)
        with stage("assessment"):
            pids = (self._child.process.pid, os.getpid())
            status, own = await anyio.to_thread.run_sync(
                lambda: [levels.read_status(pid) for pid in pids], abandon_on_cancel=True
            )
        own = own if self._child.origin is None else self._child.origin
        self.report = levels.assess(sandboxed, status=status, own=own, policy=launch.policy, cpu=launch.cpu is not None)
        levels.enforce(self.report, policy=launch.policy, trusted=launch.trusted)
        with stage("hand-over"):
            answer = self._ask(Secret(Raw(values.encode_request(launch.profile))), Ready)
            await self._channel.drain()
        with stage("import"):
            ready: Ready = await answer
        self.hooks = frozenset(ready.hooks) & HOOKS.keys()

    async def _end(self) -> None:
        """Close, wait a moment, kill, reap.

        Raises:
            DeadlineExceededError: The kernel does not end the killed process; it can do nothing more.
        """
        if not self._child.process.is_own:
            return
        self._verdict = self._verdict or (DriverCrashedError, "it was closed")
        with anyio.CancelScope(shield=True):
            self._channel.close()
            with anyio.move_on_after(END_SECONDS):
                await self.ended.wait()
            self._kill()
            with stage("end"):
                await self.ended.wait()
            if self._connector is not None:
                await self._connector.close()

    def _kill(self) -> None:
        if not self._reaped:
            self._child.process.kill()

    def _fell_silent(self) -> None:
        """Handle the end of the control socket; a child that closes it while a call waits is finished."""
        self._silent = True
        if self._verdict is None:
            self._loop.call_later(
                END_SECONDS, self._kill
            )  # wait for the exit status of a child that is ending by itself
        self._finish()

    def _exited(self) -> None:
        self._reaped = True
        # Read what it sent before its end; do not wait for a grandchild that holds the socket.
        self._loop.call_later(END_SECONDS, self._channel.close)
        self._finish()

    def _finish(self) -> None:
        if not (self._silent and self._reaped) or self.ended.is_set():
            return
        self._broker.close()
        self._child.control.close()  # of a channel that was never attached
        self._log.finish()
        self.ended.set()
        self._end_calls()

    def obituary(self) -> SandboxError:
        """Describe the end of the process, once it has ended, as an error."""
        code = self._child.process.returncode
        if code is None:  # the program reaped it, or has its kernel do so
            status = "an unknown status"
        else:
            status = f"exit status {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        spent = ", because it used all processor time that its manifest requests" if "SIGXCPU" in status else ""
        kind, reason = self._verdict or (DriverCrashedError, f"it ended with {status}{spent}")
        lines = "".join(f"\n  {line[:_LINE_TEXT]}" for line in self._log.lines[-_LAST_LINES:])
        tail = f"; its last lines:{lines}" if lines else ""
        return kind(f"the driver's process is gone: {reason}{tail}", hint=HINT, details={"status": status})

    def _condemn(self, reason: str) -> None:
        """Kill a child that sends malformed messages."""
        self._verdict = self._verdict or (DriverFaultError, f"it was stopped because it sent {reason}")
        self._channel.close()
        self._kill()

    def _disobeyed(self, grace: float) -> None:
        reason = f"it was killed because it did not stop within {grace:g} s of a cancellation"
        self._verdict = self._verdict or (DriverCrashedError, reason)
        self._kill()

    def _deny(self, host: str, port: int | None) -> None:
        self._on_denied(self._clean(host), port)  # it may contain a secret


def _spawn(host_imports: HostImports) -> Child:
    try:
        child = Child()
    except OSError as error:
        raise _not_started(error) from error
    child.admit(host_imports)
    return child


def _not_started(error: OSError) -> SandboxError:
    text = f"the driver's process cannot be started: {error.strerror}"
    return SandboxError(text, hint=remedy(error))


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
