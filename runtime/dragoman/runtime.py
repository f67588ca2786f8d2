"""The runtime: owns the store, the bus and the sessions, and installs when a connection needs it."""

from __future__ import annotations

from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

import anyio

from dragoman_api import events
from dragoman_api.errors import DragomanError
from dragoman_api.forms import FieldKind
from dragoman_registry.store import Store

from ._bus import Bus
from ._hooks import Hooks
from .automations import named, shipped
from .connections import Connections, check_values, make_profile
from .loader import LiveDriver
from .plugins import Plugins, Registries
from .plugins.advisories import Advisories
from .plugins.autoinstall import AutoInstall
from .plugins.installs import Installs
from .sandbox.closure import find_closure
from .sandbox.grants import granted
from .sandbox.process import Launch
from .sandbox.spare import Spare
from .session import Session
from .settings import find_paths, read_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType

    from dragoman_api.calls import Call
    from dragoman_api.connections import Profile
    from dragoman_api.events import Event
    from dragoman_registry.generation import Generation

    from ._bus import Subscription
    from ._hooks import Observer
    from .connections import SavedConnection
    from .questions import Confirm
    from .sandbox.policy import Policy

AUDIT_LOG = "audit.ndjson"
"""Name of the audit's record, among what happened."""

LAST_EVENTS_SECONDS = 5.0


class Runtime:
    """Everything behind one home: connections, drivers, sessions, events. An async context manager.

    Attributes:
        paths: Where things lie on disk.
        settings: The contents of `config.toml`.
        connections: Saved connections.
        registries: Where drivers come from.
        plugins: Drivers, offered and installed.
    """

    def __init__(
        self,
        home: Path | None = None,
        *,
        use: Sequence[object] = (),
        confirm: Confirm | None = None,
        sandbox: Policy | None = None,
        surface: str = "cli",
        spare: bool = True,
    ) -> None:
        """Read the settings; nothing is started before the context is entered.

        Args:
            home: Root of everything on disk; None for DRAGOMAN_HOME, else the platform's places.
            use: Automations: modules or objects with the hooks `before_call` and `on_event`.
            confirm: Asked before what needs consent; None refuses instead (unattended).
            sandbox: ``auto``, ``require`` or ``off``; None for what `config.toml` says.
            surface: Where a person meets this runtime: ``cli``, ``desktop``, ``tablet`` or ``phone`` (P6).
            spare: Keep one warm driver process ahead of its use.

        Raises:
            ConfigurationError: `config.toml` cannot be used, or an automation is not one.
        """
        self.paths = find_paths(home)
        self.settings = read_settings(self.paths)
        self.connections = Connections(self.paths)
        self.registries = Registries(self.paths)
        self._bus = Bus()
        guards = shipped(self.settings.guards, confirm=confirm, log=self.paths.state / AUDIT_LOG)
        automations = [*use, *named(self.settings.automations), *guards]
        self._hooks = Hooks(automations, emit=self._bus.emit)
        self._policy: Policy = sandbox or self.settings.sandbox
        self._unattended = confirm is None
        self._spare: Spare | None = None
        self._keep_spare = spare
        store = Store(self.paths.data)
        installs = Installs(
            store,
            cache=self.paths.cache,
            hooks=self._hooks,
            emit=self._bus.emit,
            policy=self._policy,
            confirm=confirm,
        )
        self.plugins = Plugins(
            store, registries=self.registries, installs=installs, hooks=self._hooks, emit=self._bus.emit
        )
        self._drivers = AutoInstall(
            store,
            registries=self.registries,
            advisories=Advisories(store, self.registries),
            installs=installs,
            policy=self._policy,
            surface=surface,
            cache=self.paths.cache,
        )

    def prewarm(self, spare: Spare | None = None) -> None:
        """Start a driver's process now, or take over one already started, so that it is warm on open."""
        if self._spare is None:
            self._spare = spare or Spare(find_closure(self.paths.cache))
        self._spare.fill()

    def events(self) -> AbstractContextManager[Subscription]:
        """Listen to what happens from now on: ``with runtime.events() as stream: async for event in stream``."""
        return self._bus.subscribe()

    def add_sink(self, sink: Callable[[Event], None]) -> None:
        """Call a function with every event at once and in order, for writing them down."""
        self._bus.add_sink(sink)

    async def ask(self, call: Call) -> None:
        """Let the automations see what is about to happen outside of this runtime.

        Raises:
            Refused: One of them vetoed it.
        """
        await self._hooks.ask(call)

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._listening = ExitStack()
        self._told: dict[str, tuple[Subscription, anyio.Event]] = {}
        for observer in self._hooks.observers():  # each with a buffer of its own: one that hangs holds up no other
            stream = self._listening.enter_context(self._bus.subscribe())
            self._told[observer[0]] = stream, anyio.Event()
            self._tasks.start_soon(self._tell, observer)
        if self._keep_spare:
            self.prewarm()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._spare is not None:
            self._spare.__exit__(None, None, None)
        self._listening.close()
        with anyio.CancelScope(shield=True):
            await self._tell_the_rest()
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)  # the block's own exception stays what it is, not a group

    async def _tell_the_rest(self) -> None:
        """Wait for observers as long as they get on, and say which did not."""
        for name, (stream, done) in self._told.items():
            before = stream.waiting + 1
            while not done.is_set() and stream.waiting < before:
                before = stream.waiting
                with anyio.move_on_after(LAST_EVENTS_SECONDS):
                    await done.wait()
            if not done.is_set():
                reason = f"was still busy after {LAST_EVENTS_SECONDS:g} s; {stream.waiting} events were not told"
                self._bus.emit(events.AutomationFailed(automation=name, hook="on_event", reason=reason))

    async def _tell(self, observer: Observer) -> None:
        stream, done = self._told[observer[0]]
        async for event in stream:
            await self._hooks.tell(observer, event)
        done.set()

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[Session]:
        """Open a saved connection, installing its driver if it is missing (P3).

        Args:
            name: The connection's name.

        Yields:
            The session; it closes with the block.

        Raises:
            ConfigurationError: There is no such connection, or it does not fit its driver's form.
            RegistryError: The driver is missing and could not be installed.
            AuthenticationError: The server rejected the credentials.
            ConnectionFailedError: TLS or the network failed.
            SandboxError: The driver could not be started or confined.
        """
        connection = await anyio.to_thread.run_sync(self.connections.get, name)
        try:
            generation = await self._drivers.ready_for(connection.type, connection=name)
            profile = await anyio.to_thread.run_sync(self._profile, connection, generation)
            driver = LiveDriver(
                profile=profile,
                generation=generation,
                launch=await anyio.to_thread.run_sync(self._launch, profile, generation, connection),
                hooks=self._hooks,
                emit=self._bus.emit,
                spare=self._spare,
                unattended=self._unattended,
                notices=await anyio.to_thread.run_sync(self._drivers.notices, generation),
            )
            await driver.__aenter__()
        except DragomanError as error:
            self._bus.emit(events.ConnectionFailed(connection=name, code=error.code, reason=error.message))
            raise
        try:
            if self._keep_spare:
                self.prewarm()
            self._tell_opened(driver)
            limit = self.settings.guards.of(name).limits
            yield Session(driver, emit=self._bus.emit, keep_alive=self.settings.keep_alive, limit=limit)
        finally:
            await driver.__aexit__(None, None, None)
            self._bus.emit(events.ConnectionClosed(connection=name))

    def _tell_opened(self, driver: LiveDriver) -> None:
        self._bus.emit(
            events.ConnectionOpened(
                connection=driver.info.name,
                plugin=driver.generation.plugin,
                version=driver.generation.version,
                product=driver.server.product,
                server_version=driver.server.version,
                sandbox=driver.sandbox,
            )
        )
        for warning in driver.warnings:
            self._bus.emit(events.ConnectionWarned(connection=driver.info.name, code="warning", reason=warning))

    def _profile(self, connection: SavedConnection, generation: Generation) -> Profile:
        """Check the saved values against the driver's form, and read the secrets they name."""
        manifest = generation.manifest
        values = check_values(manifest.form, connection.values, name=connection.name)
        for field in manifest.form:
            if field.kind is FieldKind.FILE and (path := values.get(field.name)):
                values[field.name] = str(Path(str(path)).expanduser().absolute())  # a driver has another home and place
        secrets = {}
        for field in manifest.form:
            if field.kind is FieldKind.SECRET and (reference := values.get(field.name)):
                secrets[field.name] = self.connections.resolve_secret(
                    str(reference), field=field.name, connection=connection.name
                )
        scheme = manifest.scheme(str(values.get("auth_method", "none")))
        return make_profile(connection, values, scheme=scheme, secrets=secrets)

    def _launch(self, profile: Profile, generation: Generation, connection: SavedConnection) -> Launch:
        launch = Launch(
            driver=generation.manifest.entry,
            trees=tuple(generation.trees),
            approved=((profile.host, profile.port),),
            secrets=profile.secrets,
            readable=(Path(profile.client_certificate),) if profile.client_certificate else (),
            policy=self._policy,
            trusted=generation.trusted,
            cache=self.paths.cache,
        )
        return granted(launch, generation.manifest.permissions, chosen=connection.values)


@asynccontextmanager
async def open(  # noqa: A001 - people write dragoman.open
    name: str, *, home: Path | None = None, use: Sequence[object] = ()
) -> AsyncIterator[Session]:
    """Open a saved connection with a Runtime of its own.

    Args:
        name: The connection's name.
        home: As for Runtime.
        use: Automations.

    Yields:
        The session.

    Raises:
        DragomanError: As `Runtime.open`.
    """
    async with Runtime(home, use=use, spare=False) as runtime:
        runtime.prewarm()
        async with runtime.open(name) as session:
            yield session
