"""The driver's process after its start: lock down, import the driver, and answer hook calls until the host ends."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import re
import sys
import time
import traceback
from contextlib import aclosing
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anyio
import anyio._backends._asyncio
import pluggy
from msgspec import Raw
from msgspec.structs import replace

from dragoman_api.changes import Plan, PlannedRequest, PlanRequest
from dragoman_api.connections import Health, Profile, Server
from dragoman_api.errors import (
    ConfigurationError,
    DragomanError,
    DriverFaultError,
    QueryError,
    UnsupportedOperationError,
)
from dragoman_api.hookspecs import PROJECT, DriverSpec, hookimpl
from dragoman_api.http import CALL_ENDS, Http
from dragoman_api.wording import failure

from . import values, wire
from .broker_loop import BrokerClient, BrokerLoop
from .channel import FROM_HOST, Channel, receive
from .hooks_and_deadlines import EXPORT, HOOKS
from .lockdown.confine import Confinement
from .oversized_results import within_budget
from .wire import (
    PLAN_DROPPED,
    Cancel,
    Chunk,
    Config,
    Credit,
    Failure,
    HookCall,
    Learned,
    Ready,
    Result,
    Secret,
)

if TYPE_CHECKING:
    import io
    import socket
    from collections.abc import Awaitable, Generator, Iterable

    from dragoman_api.exports import ExportPart

    from .wire import Message

MAX_PLANS = 8
"""Maximum number of plans that wait; the oldest one is dropped, and planned again."""

_SHARE = 0.9  # of a call's deadline; in the rest, what failed is reported before the host gives up
_LACKS = {
    "temporary directory": "a driver cannot write files: keep the data in memory (io.BytesIO)",
    "getpwuid": "a driver's process knows no users: take the name from the profile",
    "username": "a driver's process knows no users: take the name from the profile",
    "home directory": "a driver has no home directory: ask for a file in the form, with the permission fs:read=FIELD",
    # A resolver's error numbers are negative.
    "[Errno -": "the host resolves names: use the Http that connect receives, or asyncio's own streams",
}
"""Hints for what libraries lack in the sandbox, by words of their errors."""
_FAULT_TEXT = 500  # characters of a foreign exception that leave the process


class Client:
    """The connection's HTTP client as a plugin around the driver.

    It warns after `connect`, tells of nodes that failed after `ping`, and closes with `close`.
    """

    def __init__(self, http: Http) -> None:
        self._http = http

    @hookimpl(wrapper=True)
    def connect(self) -> Generator[None, Awaitable[Server | None], Awaitable[Server | None]]:
        """Add the client's warnings to the server's notes, unless the driver returned them itself."""
        return self._connected((yield))

    @hookimpl(wrapper=True)
    def ping(self) -> Generator[None, Awaitable[Health | None], Awaitable[Health | None]]:
        """Add to a good health what is wrong with other nodes."""
        return self._pinged((yield))

    @hookimpl(wrapper=True)
    def close(self) -> Generator[None, Awaitable[None], Awaitable[None]]:
        """Close the client after the driver."""
        return self._closed((yield))

    async def _connected(self, connecting: Awaitable[Server | None]) -> Server | None:
        if (server := await connecting) is None:
            return None
        warnings = [note.reason for note in self._http.warnings if note.reason not in server.notes]
        return replace(server, notes=[*server.notes, *warnings])

    async def _pinged(self, pinging: Awaitable[Health | None]) -> Health | None:
        health = await pinging
        if health is None or not health.ok or health.reason:
            return health
        return replace(health, reason="; ".join(note.reason for note in self._http.faults))

    async def _closed(self, closing: Awaitable[None]) -> None:
        await closing
        await self._http.__aexit__(None, None, None)


class KeptPlans:
    """Plans of loads that wait here until they are applied, so that their rows cross the wire once.

    Their numbers are random: the plans of an earlier process are no plans of this one.
    """

    def __init__(self) -> None:
        self._plans: dict[int, Plan] = {}

    def outline(self, request: PlanRequest, plan: Plan) -> Plan:
        """Return a plan as it travels: whole, unless the host needs only an outline of it."""
        if not request.outline or not plan.planned or plan.undo:
            return replace(plan, number=0) if plan.number else plan
        number = 1 + int.from_bytes(os.urandom(7))
        self._plans[number] = replace(plan, changes=request.changes, bulk=request.bulk)
        if len(self._plans) > MAX_PLANS:
            del self._plans[next(iter(self._plans))]
        planned = [
            PlannedRequest(request=replace(planned.request, body=None), changes=planned.changes)
            for planned in plan.planned
        ]
        return replace(plan, planned=planned, changes=[], number=number)

    def take(self, number: int) -> Plan:
        """Return a plan that waits, once. Raises QueryError with the detail `PLAN_DROPPED` if it does not."""
        if (plan := self._plans.pop(number, None)) is None:
            hint = "plan the rows again: nothing of them was sent"
            raise QueryError("the plan is no longer there", hint=hint, details={"sent": False, PLAN_DROPPED: True})
        return plan


class Service:
    """One driver and its running calls."""

    def __init__(self) -> None:
        """Prepare what depends on no connection; a fork server does it once for all its processes."""
        self._messages = wire.decoder(wire.HostMessage)
        self._channel = Channel(
            limit=FROM_HOST, encode=wire.encode, on_frame=self._receive, on_fault=self._end, on_end=self._end
        )
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(DriverSpec)
        self._scopes: dict[int, anyio.CancelScope] = {}
        self._credits: dict[int, anyio.Semaphore] = {}
        self._hooks: tuple[str, ...] = ()
        self._plans = KeptPlans()
        self._confinement = Confinement()

    def run(self, control: socket.socket, broker: socket.socket) -> None:
        """Serve one connection until its end.

        Args:
            control: The control socket. The process ends with it.
            broker: The broker's socket.
        """
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding="utf-8", line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")  # to stderr
        self._control, self._broker = control, BrokerClient(broker)
        with asyncio.Runner(loop_factory=lambda: BrokerLoop(self._broker)) as runner:
            config: Config = self._expect(Config)  # a warm spare waits here
            control.sendall(wire.pack(self._confinement.apply(config.lockdown)))
            secret: Secret = self._expect(Secret)
            runner.run(self._serve(config, values.decode_request(Profile | None, secret.profile)))

    def _expect(self, kind: type[Any]) -> Any:
        body = receive(self._control, limit=FROM_HOST)
        if body is None:
            os._exit(0)
        message = self._messages.decode(body)
        if not isinstance(message, kind):
            raise DriverFaultError(f"the host sent {type(message).__name__} instead of {kind.__name__}")
        return message

    async def _serve(self, config: Config, profile: Profile | None) -> None:
        """Load the driver and answer calls until the process ends. Without a profile the driver cannot connect."""
        package = re.split("[.:]", config.driver)[0]
        self._driver_paths = tuple(f"{tree}/{package}" for tree in config.trees)
        if config.under_test:
            from dragoman_api.testing.blocking import sleep  # of no use to a person's connection

            time.sleep = sleep  # type: ignore[assignment]
        async with anyio.create_task_group() as self._tasks:
            await self._channel.attach(self._control)
            try:
                self._hooks = self._register(load_driver(config.driver, config.trees), config.driver)
                self._handed = {"profile": profile, "http": await self._client(profile) if profile else None}
            except BaseException as error:  # noqa: BLE001 - a driver's module may raise anything during its import
                fault = describe(error, "the driver cannot be loaded", driver_paths=self._driver_paths)
                self._channel.send(Failure.of(0, fault))
            else:
                self._channel.send(Ready(self._hooks))
            await anyio.sleep_forever()

    def _end(self, _reason: str = "") -> None:
        sys.stdout.flush()
        os._exit(0)

    def _register(self, driver: object, name: str) -> tuple[str, ...]:
        self._manager.register(driver, name="driver")
        self._manager.check_pending()
        hooks = tuple(caller.name for caller in self._manager.get_hookcallers(driver) or [])
        check_hooks(driver, hooks, name=name)
        return hooks

    async def _client(self, profile: Profile) -> Http:
        http = await Http(profile, on_token=self._tell).__aenter__()
        self._manager.register(Client(http), name="client")
        return http

    def _tell(self, token: str) -> None:
        self._channel.send(Learned(token[: wire.LEARNED_TOKEN]))

    # messages -------------------------------------------------------------------------------------------------------

    def _receive(self, body: bytes) -> None:
        match self._messages.decode(body):
            case HookCall() as call:
                # Made now: the call's cancellation may follow in the same read.
                self._scopes[call.id] = scope = anyio.CancelScope()
                self._tasks.start_soon(self._answer, call, scope)
            case Cancel(id=call_id) if call_id in self._scopes:
                self._scopes[call_id].cancel()
            case Credit(id=call_id, n=n) if call_id in self._credits:
                for _ in range(n):
                    self._credits[call_id].release()

    async def _answer(self, call: HookCall, scope: anyio.CancelScope) -> None:
        end: tuple[Message, ...] = (Failure(id=call.id, code="cancelled", message="cancelled"),)
        if not HOOKS[call.hook].stream:
            CALL_ENDS.set(anyio.current_time() + _SHARE * HOOKS[call.hook].seconds)
        with scope:
            try:
                end = await (self._export(call) if HOOKS[call.hook].stream else self._call(call))
            except BaseException as error:
                if scope.cancel_called and isinstance(error, asyncio.CancelledError):
                    raise
                if isinstance(error, DragomanError):
                    place, function = _place(error, self._driver_paths)
                    if place:  # for its author: a refusal by mistake is found by its line
                        sys.stderr.write(f"{call.hook} raised {type(error).__name__} at {place} in {function}\n")
                clause = f"{call.hook} failed inside the driver"
                end = (Failure.of(call.id, describe(error, clause, driver_paths=self._driver_paths)),)
                _drop_tracebacks(error)
        del self._scopes[call.id]
        self._channel.send(*end)

    async def _call(self, call: HookCall) -> tuple[Message, ...]:
        arguments = self._arguments(call)
        result = await getattr(self._manager.hook, call.hook)(**arguments)
        if isinstance(request := arguments.get("request"), PlanRequest) and isinstance(result, Plan):
            result = self._plans.outline(request, result)
        parts, rest = values.take_apart(result, call=call.id, cut=within_budget)
        for part in parts[:-1]:
            self._channel.send(part)
            await self._channel.drain()
        return (*parts[-1:], Result(call.id, Raw(rest)))  # one write, so that the host wakes once

    def _arguments(self, call: HookCall) -> dict[str, Any]:
        if call.hook not in self._hooks:
            raise UnsupportedOperationError(f"this driver has no {call.hook}", details={"hook": call.hook})
        names, kind = getattr(self._manager.hook, call.hook).spec.argnames, HOOKS[call.hook].request
        if kind is None:
            return {}
        request = values.decode_request(kind, call.request)
        if isinstance(request, Plan) and request.number:
            request = self._plans.take(request.number)
        return {names[-1]: request, **{name: self._handed[name] for name in names[:-1]}}

    async def _export(self, call: HookCall) -> tuple[Message, ...]:
        credit = self._credits[call.id] = anyio.Semaphore(wire.CREDITS)
        pipe = await self._broker.pipe(call.id)
        try:
            async with aclosing(getattr(self._manager.hook, call.hook)(**self._arguments(call))) as parts:
                async for part in parts:
                    await self._export_part(call.id, part, pipe, credit)
        finally:
            pipe.close()
            del self._credits[call.id]
        return (Result(call.id, Raw(values.encode(None))),)

    async def _export_part(self, call: int, part: ExportPart, pipe: io.RawIOBase, credit: anyio.Semaphore) -> None:
        size = len(part.data)
        if size > wire.EXPORT_PART:
            raise DriverFaultError(f"a part of {size:,} bytes; {wire.EXPORT_PART:,} are allowed")
        if len(part.notes) > wire.PART_NOTES:
            raise DriverFaultError(f"a part with {len(part.notes):,} notes; {wire.PART_NOTES} are allowed")
        await credit.acquire()
        fields = {name: getattr(part, name) for name in ("rows", "total", "checkpoint", "notes", "turned_away")}
        self._channel.send(Chunk(id=call, size=size, **fields))
        await _write(pipe, memoryview(part.data))


def _drop_tracebacks(error: BaseException | None) -> None:
    """Free the frames of an error and its causes, which may hold whole answers until the next garbage collection."""
    while error is not None and error.__traceback__ is not None:
        error.__traceback__, error = None, error.__context__


async def _write(pipe: io.RawIOBase, data: memoryview) -> None:
    while data:
        if (written := pipe.write(data)) is None:
            await anyio.wait_writable(pipe)
        else:
            data = data[written:]


def load_driver(name: str, trees: Iterable[str]) -> object:
    """Import a driver and make its one instance. Its module may raise anything.

    Args:
        name: The driver as `module:attribute`.
        trees: The folders of its wheels.
    """
    sys.path.extend(trees)  # at its end: a tree's `http.py` cannot shadow the standard library's
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)()


def check_hooks(driver: object, hooks: Iterable[str], *, name: str) -> None:
    """Check that a driver's hooks are coroutine functions, and `export_rows` an async generator.

    Raises:
        ConfigurationError: A hook has another shape.
    """
    for hook in hooks:
        has_shape = inspect.isasyncgenfunction if hook == EXPORT else inspect.iscoroutinefunction
        if not has_shape(getattr(driver, hook)):
            shape = "an async generator" if hook == EXPORT else "async def"
            raise ConfigurationError(f"{name}.{hook} must be {shape}, as its specification is")


def describe(error: BaseException, clause: str, *, driver_paths: tuple[str, ...] = ()) -> DragomanError:
    """Return the error for a driver's exception; print the traceback of one that is, or comes from, a fault.

    Args:
        error: The exception.
        clause: The clause that the message begins with.
        driver_paths: What paths of the driver's code begin with; the message says which of its lines the fault is in.
    """
    if isinstance(error, DragomanError):
        if not isinstance(error.__cause__, DragomanError | OSError | None):
            traceback.print_exception(error)
        return error
    traceback.print_exception(error)  # into the log, whose last lines the host shows
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    place, function = _place(error, driver_paths)
    reason = failure(error)[:_FAULT_TEXT]
    lacks = [hint for words, hint in _LACKS.items() if words in reason]
    if isinstance(error, PermissionError):
        lacks.append("in the sandbox a driver may only read its own files and reach its server")
    where = f" at {place} in {function}" if place else ""
    details = {"at": place} if place else {}
    return DriverFaultError(f"{clause}: {reason}{where}", hint=lacks[0] if lacks else "", details=details)


def _place(error: BaseException, driver_paths: tuple[str, ...]) -> tuple[str, str]:
    """Return the file and line of a driver where an error came last, and the function; empty if it came from none."""
    place = function = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        for prefix in driver_paths:
            if code.co_filename.startswith(prefix):
                place, function = (
                    f"{code.co_filename[prefix.rindex('/') + 1 :]}:{line}",
                    code.co_qualname.partition(".<locals>.<")[0],
                )
    return place, function
