"""The runtime: owns the store, the bus and the sessions, and installs the drivers that connections need."""

from __future__ import annotations

import os
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Self

import anyio
import anyio.to_thread
import msgspec

from dragoman_api import events, tls
from dragoman_api.errors import ConfigurationError, ConnectionFailedError, DragomanError, PermissionDeniedError
from dragoman_registry.client.installed_drivers import Store

from .automations import ProductionLocks, named, shipped
from .automations.event_bus import Bus
from .automations.hook_manager import CLIENT, Hooks
from .connections.form_values import check_values, to_save
from .connections.profiles import make_profile, open_files
from .connections.saved_connections import Connections
from .folders import find_paths, share_home
from .lifetimes import Lifetime, running_loop, runtime_closed
from .plugins.advisory_cache import AdvisoryCache
from .plugins.install_on_open import InstallOnOpen
from .plugins.install_steps import PluginInstaller
from .plugins.lifecycle import Plugins
from .plugins.registries import Registries
from .references import Reference, regular_file
from .sandbox.bare_process import Spare
from .sandbox.driver_process import Launch
from .sandbox.fork_server import ForkClaim
from .sandbox.host_imports import find_host_imports
from .sandbox.launch import granted
from .sandbox.levels import achievable_level
from .sandbox.reach.route import IDENTITY, PASSWORD, HttpProxy
from .sandbox.reach.ssh_tunnel import find_ssh
from .sandbox.stages import stage
from .sessions.consents import Consents, check_pins, check_sign_in
from .sessions.live_driver import LiveDriver
from .sessions.saved_queries import SavedQueries
from .sessions.session import Session
from .settings import change_file, read_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import TracebackType

    from dragoman_api.connections import Profile
    from dragoman_api.events import Call, Event
    from dragoman_registry.client.generation import Generation

    from .automations.consent import Confirm
    from .automations.event_bus import Subscription
    from .automations.hook_manager import Observer
    from .connections.saved_connections import SavedConnection
    from .sandbox.levels import Policy
    from .sandbox.reach.route import Route

AUDIT_LOG = "audit.ndjson"
"""File name of the audit log."""

LAST_EVENTS_SECONDS = 5.0


class Runtime:
    """Everything in one home: connections, drivers, sessions, events. An async context manager.

    Attributes:
        paths: File locations on disk.
        settings: The contents of `config.toml`.
        connections: Saved connections.
        registries: The sources of drivers.
        plugins: Offered and installed drivers.
        locks: The locks of production connections, which hold for every surface but ``cli``.
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
        driver_log: Callable[[str, str], object] | None = None,
    ) -> None:
        """Read the settings; entering the context starts the rest.

        Args:
            home: Root of everything on disk; None for DRAGOMAN_HOME, else the platform's places.
            use: Automations: modules or objects with the hooks `before_call` and `on_event`.
            confirm: Called before an action that needs consent; None refuses it (unattended).
            sandbox: ``auto``, ``require`` or ``off``; None for what `config.toml` says.
            surface: The user interface: ``cli``, ``desktop``, ``tablet``, ``phone`` (P6), or ``agent``.
            spare: Keep ready what starts a driver's process fast: a fork server, or one warm process if `config.toml`
                says ``processes = "spawn"`` or ``sandbox = "off"``, or if processes cannot be forked here. False is for
                a single connection.
            driver_log: Receives the connection and the text of each line that a driver prints or logs, sanitised; it
                must not block or raise.

        Raises:
            ConfigurationError: `config.toml` cannot be used, or `use` holds something other than an automation.
        """
        self.paths = find_paths(home)
        self.settings = read_settings(self.paths.settings)
        self.connections = Connections(self.paths)
        self.registries = Registries(self.paths)
        self._bus = Bus()
        self._life = Lifetime("the runtime", error=runtime_closed)
        self.locks = ProductionLocks()
        guards = shipped(
            self.settings.guards,
            confirm=confirm,
            locks=None if surface == "cli" else self.locks,
            log=self.paths.state / AUDIT_LOG,
            mask=self._bus.mask,
        )
        automations = [*use, *named(self.settings.automations), *guards]
        self._hooks = Hooks(automations, emit=self._bus.emit, surface=surface)
        self._policy: Policy = sandbox or self.settings.sandbox
        self._confirm, self._unattended = confirm, confirm is None
        self._consents = Consents(self.connections, confirm)
        self._spare: Spare | None = None
        self._keep_spare, self._driver_log = spare, driver_log
        store = Store(self.paths.data)
        installer = PluginInstaller(
            store,
            cache=self.paths.cache,
            hooks=self._hooks,
            emit=self._bus.emit,
            policy=self._policy,
            confirm=confirm,
        )
        self.plugins = Plugins(
            store, registries=self.registries, installer=installer, hooks=self._hooks, emit=self._bus.emit
        )
        self._drivers = InstallOnOpen(
            store,
            registries=self.registries,
            advisories=AdvisoryCache(store, self.registries),
            installer=installer,
            policy=self._policy,
            surface=surface,
            cache=self.paths.cache,
        )

    def queries(self, connection: str) -> SavedQueries:
        """Return the saved queries of a connection, and those that a team shares: rows to read again by a name."""
        return SavedQueries(self.connections, connection, folder=self.settings.queries)

    def masked(self, text: str) -> str:
        """Return a text without the secrets of opened connections, and without values that are named like secrets."""
        return self._bus.mask.request(text)

    def change_file(self, path: Path, *, edit: Callable[[bytes], bytes]) -> None:
        """Change a file of this home that other processes may change, too, so that no change is lost. Blocks.

        Args:
            path: A file below one of the folders of `paths`.
            edit: Makes the new contents of the present ones, which are empty if there is no file.

        Raises:
            ConfigurationError: The file cannot be locked, read or written; it is unchanged.
        """
        change_file(path, edit)

    def prewarm(self, spare: Spare | None = None) -> None:
        """Start the fork server, or the driver's process, that the next opening takes; or adopt a running process.

        Raises:
            ConfigurationError: The runtime is closed (code ``runtime-closed``).
        """
        self._life.check_open()
        if self._spare is None:
            make = ForkClaim if self.settings.processes == "fork" and self._policy != "off" else Spare
            self._spare = spare or make(find_host_imports(self.paths.cache))
        self._spare.fill()

    def events(self) -> AbstractContextManager[Subscription]:
        """Subscribe to events from now on: ``with runtime.events() as stream: async for event in stream``.

        Raises:
            ConfigurationError: The runtime is closed (code ``runtime-closed``).
        """
        self._life.check_open()
        return self._bus.subscribe()

    def add_sink(self, sink: Callable[[Event], None]) -> None:
        """Call a function with every event, immediately and in order, for example to log it.

        An error that it raises does not stop what happens: every listener receives it as `automation.failed`.
        """
        self._bus.add_sink(sink)

    def emit(self, event: Event) -> None:
        """Emit an event as the runtime does its own: every listener and the audit receive it."""
        self._bus.emit(event)

    @contextmanager
    def calling_for(self, client: str) -> Iterator[None]:
        """Let automations see the name of an agent's program in the calls of this task, and of tasks that it starts.

        Args:
            client: What `Call.client` says.
        """
        token = CLIENT.set(client)
        try:
            yield
        finally:
            CLIENT.reset(token)

    @property
    def sandbox(self) -> str:
        """The sandbox level that drivers can reach on this machine, and what it lacks: ``full``, ``partial: …``."""
        return "off" if self._policy == "off" else str(achievable_level())

    async def ask(self, call: Call) -> None:
        """Ask the automations about an action that is about to happen outside this runtime.

        Raises:
            Refused: One of them vetoed it.
            ConfigurationError: The runtime is closed (code ``runtime-closed``).
        """
        self._life.check_open()
        await self._hooks.ask(call)

    async def __aenter__(self) -> Self:
        if self._keep_spare:
            await anyio.to_thread.run_sync(find_host_imports, self.paths.cache)  # which remembers it
        tasks = await self._life.begin()
        self._listening = ExitStack()
        try:
            home = await anyio.to_thread.run_sync(share_home, self.paths)
        except BaseException:
            self._life.closed = True
            with anyio.CancelScope(shield=True):
                await self._life.end()
            raise
        if home is not None:
            self._listening.callback(os.close, home)
        self._deliveries: dict[str, tuple[Subscription, anyio.Event]] = {}
        for observer in self._hooks.observers():  # each has its own buffer, so one that hangs does not delay the others
            stream = self._listening.enter_context(self._bus.subscribe())
            self._deliveries[observer[0]] = stream, anyio.Event()
            tasks.start_soon(self._tell, observer)
        if self._keep_spare:
            self.prewarm()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._life.can_end():
            return
        self._life.closed = True
        spare, self._spare = self._spare, None  # a second life prepares its own
        try:
            if spare is not None:
                spare.__exit__(None, None, None)
        finally:
            self._listening.close()
            with anyio.CancelScope(shield=True):
                await self._tell_the_rest()
            self._bus.close()
            await self._life.end()

    async def _tell_the_rest(self) -> None:
        """Wait for observers while they make progress, and report those that stall."""
        for name, (stream, done) in self._deliveries.items():
            before = stream.waiting + 1
            while not done.is_set() and stream.waiting < before:
                before = stream.waiting
                with anyio.move_on_after(LAST_EVENTS_SECONDS):
                    await done.wait()
            if not done.is_set():
                reason = f"was still busy after {LAST_EVENTS_SECONDS:g} s; {stream.waiting} events were not delivered"
                self._bus.emit(events.AutomationFailed(automation=name, hook="on_event", reason=reason))

    async def _tell(self, observer: Observer) -> None:
        stream, done = self._deliveries[observer[0]]
        async for event in stream:
            await self._hooks.tell(observer, event)
        done.set()

    @asynccontextmanager
    async def open(
        self,
        name: str | SavedConnection,
        *,
        secrets: Mapping[str, str] | None = None,
        first_object: str | None = None,
    ) -> AsyncIterator[Session]:
        """Open a connection, installing its driver if it is missing (P3).

        Args:
            name: A saved connection's name; or a connection itself, to try it before it is saved.
            secrets: Typed secrets by field, for its references of the scheme ``stored`` that are not stored yet.
            first_object: The object that is read first. A driver may then request its definition while it connects,
                which saves a round trip to the server.

        Yields:
            The session; it closes with the block.

        Raises:
            ConfigurationError: The connection does not exist, or does not fit its driver's form.
            RegistryError: The driver is missing and could not be installed.
            AuthenticationError: The server rejected the credentials.
            ConnectionFailedError: TLS or the network failed.
            SandboxError: The driver could not be started or confined.
        """
        self._life.check_usable()
        trial = not isinstance(name, str)
        if isinstance(name, str):
            connection, secrets = await anyio.to_thread.run_sync(self.connections.get, name), {}
        else:
            connection, name = name, name.name
        try:
            generation = await self._drivers.ready_for(connection.type, connection=name)
            driver = await self._started(connection, generation, secrets or {}, trial=trial, first_object=first_object)
        except DragomanError as error:
            self._bus.emit(events.ConnectionFailed(connection=name, code=error.code, reason=error.message))
            raise
        try:
            if self._keep_spare:
                self.prewarm()
            self._tell_opened(driver)
            limit = self.settings.guards.of(name).limits
            yield Session(
                driver,
                emit=self._bus.emit,
                keep_alive=self.settings.keep_alive,
                limit=limit,
                time_zone=self.settings.time_zone,
            )
        finally:
            try:
                await driver.__aexit__(None, None, None)
            finally:  # even if the caller was cancelled
                self._bus.emit(events.ConnectionClosed(connection=name))

    async def save(
        self,
        connection: SavedConnection,
        *,
        secrets: Mapping[str, str] | None = None,
        replace: bool = False,
        before: SavedConnection | None = None,
    ) -> SavedConnection:
        """Check a connection against its driver's form, and save it.

        Args:
            connection: What a person entered; its values may lack those that the form has by default.
            secrets: Typed secrets by field, which its references of the scheme ``stored`` name; they go into a file
                that only this user can read.
            replace: A connection of that name may be replaced.
            before: The connection to replace as it was read; if it was edited since, nothing is saved.

        Returns:
            What was saved.

        Raises:
            PluginNotFoundError: There is no driver for its type.
            ConfigurationError: It does not fit the form (``details["field"]`` names the first field that does not),
                its name is taken, or the file cannot be written.
        """
        self._life.check_open()
        form = await self.plugins.form(connection.type)
        values = to_save(form, connection.values, name=connection.name, new=not (replace or before))
        saved = msgspec.structs.replace(connection, values=values)
        await anyio.to_thread.run_sync(partial(self.connections.save, saved, replace=replace, before=before))
        for field, secret in (secrets or {}).items():
            await anyio.to_thread.run_sync(self.connections.store_secret, saved.name, field, secret)
        return saved

    async def _start(
        self,
        connection: SavedConnection,
        generation: Generation,
        typed: Mapping[str, str],
        *,
        first_object: str | None,
    ) -> LiveDriver:
        launch, profile, notices, ca_file = await self._prepared(connection, generation, typed)
        self._bus.mask.add((*profile.secrets.texts, launch.route_password))
        driver = LiveDriver(
            generation=generation,
            launch=launch,
            hooks=self._hooks,
            emit=self._bus.emit,
            spare=self._spare,
            reached=self.connections.reached,
            unattended=self._unattended,
            notices=notices,
            ca_file=ca_file,
            first_object=first_object,
            driver_log=self._driver_log,
        )
        return await driver.__aenter__()

    async def _started(
        self,
        connection: SavedConnection,
        generation: Generation,
        typed: Mapping[str, str],
        *,
        trial: bool,
        first_object: str | None,
    ) -> LiveDriver:
        """Start a driver, and again after each consent that it turns out to need."""
        while True:
            try:
                return await self._start(connection, generation, typed, first_object=first_object)
            except (PermissionDeniedError, ConnectionFailedError) as error:
                agreed = await self._consents.after(error, connection, trial=trial)
                if agreed is None:
                    raise
                connection = agreed

    async def pin(self, name: str, *, fingerprints: Sequence[str]) -> SavedConnection:
        """Pin the certificates that a saved connection's servers show now; the driver is not started.

        Args:
            name: The connection's name.
            fingerprints: The SHA-256 fingerprints of the certificates, one for each if servers differ.

        Returns:
            The connection as it is saved now.

        Raises:
            ConfigurationError: A fingerprint is malformed, no server shows its certificate, its name or dates
                are refused, or the SSL mode checks no certificates.
        """
        from .sandbox.server_certificates import meet

        self._life.check_open()
        digests = list(map(_fingerprint, fingerprints))
        connection = await anyio.to_thread.run_sync(self.connections.get, name)
        generation = await self._drivers.ready_for(connection.type, connection=name)
        launch, profile, _, _ = await self._prepared(connection, generation, {})
        if not profile.ssl_mode.verifies or profile.skip_tls_verification:
            hint = f"dragoman connections edit {name} --ssl-mode verify-identity --no-skip-tls-verification"
            raise ConfigurationError(f"connection {name!r} checks no certificate, so none can be pinned", hint=hint)
        with stage("certificates"):
            certificates = await meet(launch)
        pins = check_pins(digests, certificates, name=name)
        return await self._consents.record(connection, pins=pins)

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

    async def _prepared(
        self, connection: SavedConnection, generation: Generation, typed: Mapping[str, str]
    ) -> tuple[Launch, Profile, tuple[str, ...], str]:
        with stage("secrets"):
            return await anyio.to_thread.run_sync(self._prepare, connection, generation, typed, abandon_on_cancel=True)

    def _prepare(
        self, connection: SavedConnection, generation: Generation, typed: Mapping[str, str]
    ) -> tuple[Launch, Profile, tuple[str, ...], str]:
        """Check the saved values against the driver's form; resolve only references that a person entered."""
        manifest, name = generation.manifest, connection.name
        values = check_values(manifest.form, connection.values, name=name)
        if any(isinstance(value, Reference) for value in values.values()):
            self.connections.check_own()
        files = open_files(values)
        secrets = {
            key: typed[key] if key in typed else self.connections.secret(value, connection=name, field=key)
            for key, value in values.items()
            if isinstance(value, Reference) and key not in files
        }
        route, password = self._route(connection)
        scheme = manifest.scheme(str(values.get("auth_method", "none")))
        profile = make_profile(connection, values, scheme=scheme, secrets=secrets, files=files)
        check_sign_in(connection, profile)
        launch = Launch(
            driver=manifest.entry,
            trees=tuple(generation.trees),
            approved=tuple(profile.reach),
            remembered=self.connections.reached.of(connection.name),
            route=route,
            route_password=password,
            profile=profile,
            files=tuple(file for key, file in files.items() if key == "client_certificate"),
            policy=self._policy,
            trusted=generation.trusted,
            cache=self.paths.cache,
            forked=self.settings.processes == "fork",
        )
        notices = (*self._drivers.notices(generation), *(exposure.reason for exposure in self.connections.exposures()))
        authority = str(files["ca_file"].path) if "ca_file" in files else ""
        return granted(launch, manifest.permissions, files=files), profile, notices, authority

    def _route(self, connection: SavedConnection) -> tuple[Route | None, str]:
        """Return what is between this machine and the host, its file resolved, and its password."""
        route = connection.via
        if route is None:
            return None, ""
        self.connections.check_own()  # else another user could have this user sign in somewhere
        if isinstance(route, HttpProxy):
            if route.password is None:
                return route, ""
            return route, self.connections.secret(route.password, connection=connection.name, field=PASSWORD)
        find_ssh()
        if route.identity is not None:
            file = regular_file(route.identity.target, where=IDENTITY)
            route = msgspec.structs.replace(route, identity=Reference("path", str(file.path)))
        return route, ""


def _fingerprint(text: str) -> str:
    try:
        return tls.read_fingerprint(text)
    except ValueError as error:
        hint = "openssl x509 -noout -fingerprint -sha256 -in CERTIFICATE prints it"
        raise ConfigurationError(str(error), hint=hint) from None


@asynccontextmanager
async def open(  # noqa: A001 - people write dragoman.open
    name: str, *, home: Path | None = None, use: Sequence[object] = ()
) -> AsyncIterator[Session]:
    """Open a saved connection in its own Runtime.

    Args:
        name: The connection's name.
        home: Root of everything on disk; None for DRAGOMAN_HOME, else the platform's places.
        use: Automations.

    Yields:
        The session.

    Raises:
        DragomanError: The connection does not exist, or its driver or its server cannot be reached.
    """
    running_loop()
    async with await anyio.to_thread.run_sync(partial(Runtime, home, use=use, spare=False)) as runtime:
        await anyio.to_thread.run_sync(find_host_imports, runtime.paths.cache)  # which remembers it
        runtime.prewarm()
        async with runtime.open(name) as session:
            yield session
