"""One connection's driver: the only owner of its process, from the first start through restarts to the end."""

from __future__ import annotations

import asyncio
import shlex
from collections import deque
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeGuard

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from dragoman.connections.curl_commands import CurlCommands
from dragoman.lifetimes import Lifetime, connection_closed, connection_closed_meanwhile
from dragoman.sandbox.conversation import HINT, DriverProxy
from dragoman.sandbox.driver_process import Worker
from dragoman.sandbox.reach.route import NAME, HttpProxy, RouteError
from dragoman.sandbox.stages import stage
from dragoman_api.connections import AuthScheme
from dragoman_api.errors import (
    ConnectionFailedError,
    DeadlineExceededError,
    DragomanError,
    DriverCrashedError,
    DriverFaultError,
    PermissionDeniedError,
    Refused,
    SandboxError,
)
from dragoman_api.events import Call, ConnectionDenied, ConnectionInfo, PluginCrashed, PluginRestarted
from dragoman_registry.client.trees import leasing
from dragoman_registry.ip_addresses import canonical
from dragoman_worker.hooks_and_deadlines import HOOKS

from .consents import explained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from anyio.abc import TaskStatus

    from dragoman.automations.hook_manager import Hooks
    from dragoman.sandbox.bare_process import Spare
    from dragoman.sandbox.driver_process import Launch
    from dragoman.sandbox.reach.address_history import AddressHistory
    from dragoman.sandbox.reach.address_resolver import NearerError
    from dragoman.sandbox.reach.route import Route
    from dragoman_api.connections import Profile, Server
    from dragoman_api.events import Event
    from dragoman_registry.client.generation import Generation

RESTARTS = 3
"""Maximum restarts within `WINDOW_SECONDS`."""
WINDOW_SECONDS = 60.0
DENIALS = 100
"""Maximum number of denials that are reported for one connection."""

DECISION_SECONDS = 2.0
"""Maximum time between the opening of a connection and the call that the automations decided on meanwhile."""

_AUTHOR_HINT = "--driver-log - shows its traceback, and what it prints and logs"


class _Decision(msgspec.Struct, frozen=True):
    """What the automations decided on a call before it was made."""

    call: Call
    veto: Refused | None
    until: float = 0.0


class LiveDriver:
    """One connection's driver, whatever process it runs in now; an async context manager.

    A process lives in a task of its own, so that any call may start it again. A call that failed is not repeated; the
    next call uses a new process.

    Attributes:
        info: The connection, without credentials.
        server: The product and version of the server that answered.
        incarnation: The number of processes so far; a new process knows nothing of the earlier ones.
        unattended: No person is there to answer a question.
        curl: Requests of the connection as curl commands.
    """

    def __init__(
        self,
        *,
        generation: Generation,
        launch: Launch,
        hooks: Hooks,
        emit: Callable[[Event], None],
        spare: Spare | None,
        reached: AddressHistory,
        unattended: bool,
        notices: Sequence[str] = (),
        ca_file: str = "",
        first_object: str | None = None,
        driver_log: Callable[[str, str], object] | None = None,
    ) -> None:
        profile = launch.profile
        assert profile is not None
        self._profile = profile
        self.info = ConnectionInfo(name=profile.name, type=profile.type, host=profile.host, port=profile.port)
        self.curl = CurlCommands.of(profile, ca_file=ca_file, via=launch.route)
        self.generation = generation
        self.server: Server
        self.incarnation = 0
        self.unattended = unattended
        self._hooks, self._emit, self._notices = hooks.for_connection(), emit, list(notices)
        self._denials: set[tuple[str, int | None, str]] = set()
        self._nearer: NearerError | None = None
        self._route, self._route_failures = launch.route, deque[tuple[float, RouteError]](maxlen=1)
        self._launch = launch
        self._reached, self._remembered, self._kept = reached, launch.remembered, dict(launch.remembered)
        self._make = partial(
            Worker,
            launch,
            spare=spare,
            on_log=partial(driver_log, profile.name) if driver_log else None,
            on_denied=self._denied,
            on_nearer=self._led_nearer,
            on_route_failed=self._note_route_failure,
        )
        self._first_object = first_object
        self._decision: _Decision | None = None
        self._worker: Worker | None = None
        self._connected = False
        self._restarts: deque[float] = deque(maxlen=RESTARTS)
        self._lock = anyio.Lock()
        self._life = Lifetime("the connection", error=connection_closed)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            # Lease the trees so that no process deletes them while the driver runs.
            lease = leasing(self.generation.trees)
            with stage("lease"):  # if it is abandoned, the end of the thread frees it
                await anyio.to_thread.run_sync(lease.__enter__, abandon_on_cancel=True)
            stack.callback(lease.__exit__, None, None, None)
            self._tasks = await self._life.begin()
            stack.push_async_callback(self._life.end)
            await self.hooks()
            self._resources = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._life.can_end():
            return
        self._life.closed = True
        with anyio.CancelScope(shield=True):
            if self.alive and self._hooks.offers("close"):
                with suppress(DragomanError):  # what it held on the server expires by itself
                    await self._hooks.call("close", deadline=HOOKS["close"].seconds)
            await self._remember()
        await self._resources.aclose()

    @property
    def alive(self) -> bool:
        """Whether the driver's process lives and is connected."""
        return self._connected and self._runs(self._worker)

    @staticmethod
    def _runs(worker: Worker | None) -> TypeGuard[Worker]:
        return worker is not None and not worker.ended.is_set()

    @property
    def endpoints(self) -> list[tuple[str, int]]:
        """Every host and port that the connection may reach."""
        return self._profile.endpoints

    @property
    def sandbox(self) -> str:
        """The sandbox level of the driver, and what it lacks of ``full``."""
        return str(self._worker.report) if self._worker else "none"

    @property
    def warnings(self) -> list[str]:
        """Warnings about this connection."""
        notes = [*self.server.notes, *self._notices]
        if self.sandbox != "full":
            notes.append(f"sandbox {self.sandbox}")
        if self.generation.linked:
            notes.append(f"the driver {self.generation.plugin} is linked: it runs from {self.generation.registry}")
        return notes

    def _denied(self, host: str, port: int | None, address: str = "") -> None:
        if len(self._denials) >= DENIALS or (host, port, address) in self._denials:
            return  # a driver must not fill the audit log
        self._denials.add((host, port, address))
        self._emit(ConnectionDenied(connection=self.info.name, host=host, port=port, address=address))

    def _led_nearer(self, error: NearerError, port: int | None) -> None:
        self._nearer = error
        self._denied(error.host, port, error.address)

    def _note_route_failure(self, error: RouteError) -> None:
        self._route_failures.append((anyio.current_time(), error))
        if error.nearer is not None and isinstance(self._route, HttpProxy):
            self._led_nearer(error.nearer, self._route.port)

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Add to an error of the block what the driver cannot know.

        That is a failure between this machine and the server, that the connection was closed meanwhile, or where the
        author of a linked driver sees its traceback.
        """
        since = anyio.current_time()
        try:
            yield
        except DriverFaultError as error:
            if self.generation.linked and error.hint == HINT:
                error.advise(_AUTHOR_HINT)
            raise
        except SandboxError as error:
            if self._life.closed:
                raise connection_closed_meanwhile() from error
            raise
        except ConnectionFailedError as error:
            if self._route_failures and self._route_failures[0][0] >= since:
                _explain(error, self._route_failures[0][1], self.info)
            raise

    async def _remember(self) -> None:
        """Record how near the hosts are that were reached for the first time."""
        if (new := dict(self._remembered)) == self._kept:
            return
        self._kept = new
        try:
            with stage("record"):
                await anyio.to_thread.run_sync(self._reached.note, self.info.name, new, abandon_on_cancel=True)
        except (OSError, DragomanError) as error:
            self._notices.append(f"the address of its host cannot be recorded: {error}")

    def offers(self, hook: str) -> bool:
        """Return whether the driver implements a hook."""
        return self._hooks.offers(hook)

    def check_usable(self) -> None:
        """Raise ConfigurationError if the connection is closed, or belongs to another process or event loop."""
        self._life.check_usable()

    def check_open(self) -> None:
        """Raise ConfigurationError if the connection is closed, or the caller is a fork; any thread may call this."""
        self._life.check_open()

    async def hooks(self) -> Hooks:
        """Return the driver's hooks; start and connect the driver first if it does not run.

        Raises:
            ConfigurationError: The connection is closed, or belongs to another process or event loop.
            DriverCrashedError: The driver was started too often within a minute.
            DragomanError: The driver could not be started or connected.
        """
        self._life.check_usable()
        if not self.alive:
            async with self._lock:
                self._life.check_usable()
                if not self.alive:  # no other call connected it meanwhile
                    await self._connect(self._worker if self._runs(self._worker) else await self._start())
        return self._hooks

    async def _start(self) -> Worker:
        if self.incarnation:
            now = anyio.current_time()
            if len(self._restarts) == RESTARTS and now - self._restarts[0] < WINDOW_SECONDS:
                raise DriverCrashedError(
                    f"the driver's process ended {RESTARTS + 1} times within a minute and is not started again",
                    hint="wait a minute, or look at the driver's last lines in the log",
                )
            self._restarts.append(now)
        self._connected = False
        try:
            self._worker = await self._tasks.start(self._run)
        except BaseException:
            # A caller of another task sees the end of the group as its own cancellation.
            if self._life.closed and not ((task := asyncio.current_task()) and task.cancelling()):
                raise connection_closed() from None
            raise
        if self.incarnation:
            plugin, attempt = self.generation.plugin, self.incarnation
            self._emit(PluginRestarted(plugin=plugin, connection=self.info.name, attempt=attempt))
        self.incarnation += 1
        return self._worker

    async def _run(self, *, task_status: TaskStatus[Worker]) -> None:
        async with self._make() as worker:
            task_status.started(worker)
            await worker.ended.wait()
            reason = worker.obituary().message
            self._emit(PluginCrashed(plugin=self.generation.plugin, connection=self.info.name, reason=reason))

    async def _connect(self, worker: Worker) -> None:
        self._hooks.set_driver(DriverProxy(worker))
        await self._hooks.ask(self.call_of("connect"))
        first_object = await self._ask_about_first_object()
        self._nearer = None
        try:
            with self.explaining():
                server: Server | None = await self._hooks.call(
                    "connect", None, None, first_object, deadline=HOOKS["connect"].seconds
                )
        except DeadlineExceededError as error:
            where, seconds = f"{self.info.host}:{self.info.port}", HOOKS["connect"].seconds
            raise ConnectionFailedError(
                f"{where} gave no answer within {seconds:g} s",
                hint="check Host and Port, and whether the server hangs",
                details={**error.details, "stage": "connect"},
            ) from error
        except DragomanError as error:
            if self._nearer is None:
                failure = await self._met(error)
                raise failure from failure.__cause__
            raise _refused(self._nearer, self._profile, self._route) from self._nearer
        if server is None:
            raise DriverFaultError("the driver's connect returned nothing about the server")
        self.server, self._connected = server, True
        if self._decision is not None:
            self._decision = replace(self._decision, until=anyio.current_time() + DECISION_SECONDS)
        await self._remember()

    def call_of(self, hook: str, **fields: Any) -> Call:
        """Return what the automations are asked about before a hook of this connection is called."""
        return Call(hook=hook, connection=self.info, unattended=self.unattended, **fields)

    async def _ask_about_first_object(self) -> str | None:
        """Ask the automations about the first description, whose requests a driver may send while it connects.

        Where a person's password signs in, or a proxy or an SSH host is on the way, a driver hears of no object: a
        wrong password that goes out with several requests at once counts as several attempts, and locks the account.

        Returns:
            The object's name; None if there is none, or an automation vetoed its description.
        """
        name, self._first_object, self._decision = self._first_object, None, None
        by_password = self._profile.auth_scheme is AuthScheme.BASIC or self._route is not None
        if name is None or by_password or not self._hooks.offers("describe_object"):
            return None
        call, veto = self.call_of("describe_object", object=name), None
        try:
            await self._hooks.ask(call)
        except Refused as error:
            veto = error
        self._decision = _Decision(call, veto)
        return None if veto else name

    async def ask(self, call: Call) -> None:
        """Ask the automations about a call, unless they decided on it while the connection was opened.

        Raises:
            Refused: One of them vetoed it.
        """
        decision, self._decision = self._decision, None
        if decision is None or decision.call != call or anyio.current_time() > decision.until:
            await self._hooks.ask(call)
        elif decision.veto is not None:
            raise decision.veto

    async def _met(self, error: DragomanError) -> DragomanError:
        """Return the error, with the certificate that the server showed if that was refused."""
        if not (isinstance(error, ConnectionFailedError) and error.details.get("certificate") == "untrusted"):
            return error
        from dragoman.sandbox.server_certificates import meet

        try:
            with stage("certificates"):
                certificates = await meet(self._launch)
        except DeadlineExceededError:
            return error
        return explained(error, certificates, name=self.info.name)


def _explain(error: ConnectionFailedError, failure: RouteError, info: ConnectionInfo) -> None:
    error.message = f"{error.prefix}{info.host}:{info.port}: {failure.reason}"
    error.args = (error.message,)
    error.advise(failure.hint.replace(NAME, shlex.quote(info.name)))


def _refused(error: NearerError, profile: Profile, route: Route | None) -> PermissionDeniedError:
    name, entered = shlex.quote(profile.name), [canonical(host) for host, _ in profile.reach]
    own = error.host in entered
    field, value = ("host", profile.host) if error.host == entered[0] else ("hosts", str(profile.options.get("hosts")))
    if error.host not in [canonical(host) for host, _ in profile.endpoints]:
        field, value = "token-url", str(profile.options.get("token_url"))
    between = route if isinstance(route, HttpProxy) and not own and canonical(route.host) == error.host else None
    if error.now is None:
        where = "as Host" if own else "as the proxy" if between else ""
        hint = f"enter such an address itself, {where}" if where else "tell the driver's author"
    elif between:
        proxy = shlex.quote(f"http://{between.address}")
        hint = f"dragoman connections edit {name} --proxy {proxy}\nonly if it should lead there"
    elif own:
        hint = f"dragoman connections edit {name} --{field} {shlex.quote(value)}\nonly if it should lead there"
    else:
        hint = f"dragoman connections test {name}\nat a terminal, it asks whether the name may lead there"
    return PermissionDeniedError(
        f"{error.strerror}; nothing was sent there",
        code="address-refused",
        hint=hint,
        details={
            "host": error.host,
            "address": error.address,
            "now": "metadata" if error.now is None else error.now.name.lower(),
            "before": None if error.before is None else error.before.name.lower(),
        },
    )
