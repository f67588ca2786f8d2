"""The driver's process after its start: lock down, import the driver, answer hook calls until the host goes."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import traceback
from contextlib import AsyncExitStack, aclosing
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anyio
import anyio._backends._asyncio
import pluggy
from msgspec import Raw, msgpack
from msgspec.structs import replace

from dragoman_api.connections import Profile, Secrets, Server
from dragoman_api.errors import ConfigurationError, DragomanError, DriverFaultError, UnsupportedOperationError
from dragoman_api.hookspecs import PROJECT, DriverSpec
from dragoman_api.http import Http

from . import finder, values, wire
from .channel import Channel
from .frames import FROM_HOST, receive
from .hooks import EXPORT, HOOKS
from .loop import Broker, BrokerLoop
from .wire import Call, Cancel, Chunk, Config, Credit, Failure, Ready, Result, Secret

if sys.platform == "win32":
    from .windows import Confinement
else:
    from .lockdown.confine import Confinement

if TYPE_CHECKING:
    import io
    import socket

    from dragoman_api.exports import ExportPart

    from .wire import Message

_LACKS = {
    "temporary directory": "a driver can write nowhere: keep it in memory (io.BytesIO)",
    "getpwuid": "a driver's process knows no users: what it needs comes with the profile",
    "username": "a driver's process knows no users: what it needs comes with the profile",
    "home directory": "a driver has no home: ask for a file in the form, with the permission fs:read=FIELD",
    # The numbers of a resolver's errors are negative.
    "[Errno -": "names are resolved by the host: use the Http that connect is given, or asyncio's own streams",
}
"""What libraries miss in the sandbox, by the words they say it in."""
_FAULT_TEXT = 500  # characters of a foreign exception that leave the process


def run(control: socket.socket, broker: socket.socket) -> None:
    """Serve one connection to its end.

    Args:
        control: The control socket; its end is the process's end.
        broker: The broker's socket.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    messages = wire.decoder(wire.HostMessage)

    def expect(kind: type[Any]) -> Any:
        body = receive(control, limit=FROM_HOST)
        if body is None:
            os._exit(0)
        message = messages.decode(body)
        assert isinstance(message, kind)
        return message

    confinement = Confinement()
    service = Service(control, messages, Broker(broker))
    with asyncio.Runner(loop_factory=service.make_loop) as runner:
        config: Config = expect(Config)  # a warm spare waits here
        control.sendall(wire.pack(confinement.apply(config.lockdown)))
        secret: Secret = expect(Secret)
        runner.run(service.serve(config, Secrets(values=secret.values)))


class Service:
    """One driver and the calls that are under way."""

    def __init__(self, control: socket.socket, messages: msgpack.Decoder[Any], broker: Broker) -> None:
        self._control, self._messages, self._broker = control, messages, broker
        self._channel = Channel(limit=FROM_HOST, on_frame=self._receive, on_fault=self._end, on_end=self._end)
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(DriverSpec)
        self._scopes: dict[int, anyio.CancelScope] = {}
        self._credits: dict[int, anyio.Semaphore] = {}
        self._http = AsyncExitStack()

    def make_loop(self) -> BrokerLoop:
        """Make the event loop that connects through the broker."""
        return BrokerLoop(self._broker)

    async def serve(self, config: Config, secrets: Secrets) -> None:
        """Load the driver and answer until the process ends."""
        self._secrets = secrets
        async with anyio.create_task_group() as self._tasks:
            await self._channel.attach(self._control)
            try:
                finder.admit_trees(config.trees)
                hooks = self._load(config.driver)
            except BaseException as error:  # noqa: BLE001 - whatever a driver's module does while it is imported
                self._channel.send(Failure.of(0, _describe(error, "the driver cannot be loaded")))
            else:
                self._channel.send(Ready(hooks))
            await anyio.sleep_forever()

    def _end(self, _reason: str = "") -> None:
        sys.stdout.flush()
        os._exit(0)

    def _load(self, name: str) -> tuple[str, ...]:
        module, _, attribute = name.partition(":")
        driver = getattr(import_module(module), attribute)()
        self._manager.register(driver, name="driver")
        self._manager.check_pending()
        callers = self._manager.get_hookcallers(driver) or []
        for caller in callers:
            function = getattr(driver, caller.name)
            wanted = inspect.isasyncgenfunction if caller.name == EXPORT else inspect.iscoroutinefunction
            if not wanted(function):
                shape = "an async generator" if caller.name == EXPORT else "async def"
                raise ConfigurationError(f"{name}.{caller.name} must be {shape}, as its specification is")
        return tuple(caller.name for caller in callers)

    # messages -------------------------------------------------------------------------------------------------------

    def _receive(self, body: bytes) -> None:
        match self._messages.decode(body):
            case Call() as call:
                self._tasks.start_soon(self._answer, call)
            case Cancel(id=call_id) if call_id in self._scopes:
                self._scopes[call_id].cancel()
            case Credit(id=call_id, n=n) if call_id in self._credits:
                for _ in range(n):
                    self._credits[call_id].release()

    async def _answer(self, call: Call) -> None:
        end: tuple[Message, ...] = (Failure(id=call.id, code="cancelled", message="cancelled"),)
        with anyio.CancelScope() as scope:
            self._scopes[call.id] = scope
            try:
                end = await (self._export(call) if call.hook == EXPORT else self._call(call))
            except BaseException as error:
                if scope.cancel_called and isinstance(error, asyncio.CancelledError):
                    raise
                end = (Failure.of(call.id, _describe(error, f"{call.hook} failed inside the driver")),)
        del self._scopes[call.id]
        self._channel.send(*end)

    async def _call(self, call: Call) -> tuple[Message, ...]:
        names, request = self._argument(call)
        arguments = {names[0]: request} if names else {}
        if isinstance(request, Profile):
            profile = replace(request, secrets=self._secrets)
            http = await self._http.enter_async_context(Http(profile))
            arguments = {"profile": profile, "http": http}
        result = await getattr(self._manager.hook, call.hook)(**arguments)
        if isinstance(result, Server):  # what the client has to warn of is said whether the driver repeats it or not
            said = [note for note in http.warnings if note.reason not in result.notes]
            result = replace(result, notes=[*result.notes, *(note.reason for note in said)])
        if call.hook == "close":
            await self._http.aclose()
        parts, rest = values.take_apart(result, call=call.id)
        for part in parts[:-1]:
            self._channel.send(part)
            await self._channel.drain()
        return (*parts[-1:], Result(call.id, Raw(rest)))  # one write, which wakes the host once

    def _argument(self, call: Call) -> tuple[tuple[str, ...], Any]:
        hook = getattr(self._manager.hook, call.hook)
        if not hook.get_hookimpls():
            raise UnsupportedOperationError(f"this driver has no {call.hook}", details={"hook": call.hook})
        names = tuple(hook.spec.argnames)
        return names, values.decode_request(HOOKS[call.hook].request, call.request) if names else None

    async def _export(self, call: Call) -> tuple[Message, ...]:
        credit = self._credits[call.id] = anyio.Semaphore(wire.CREDITS)
        pipe = await self._broker.pipe(call.id)
        try:
            _, request = self._argument(call)
            async with aclosing(self._manager.hook.export_rows(request=request)) as parts:
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
        await credit.acquire()
        self._channel.send(Chunk(id=call, size=size, rows=part.rows, total=part.total, checkpoint=part.checkpoint))
        await _write(pipe, memoryview(part.data))


async def _write(pipe: io.RawIOBase, data: memoryview) -> None:
    while data:
        if (written := pipe.write(data)) is None:
            await anyio.wait_writable(pipe)
        else:
            data = data[written:]


def _describe(error: BaseException, what: str) -> DragomanError:
    if isinstance(error, DragomanError):
        return error
    traceback.print_exception(error)  # into the log, whose last lines the host shows
    reason = f"{type(error).__name__}: {error}"[:_FAULT_TEXT]
    lacks = [hint for words, hint in _LACKS.items() if words in reason]
    if isinstance(error, PermissionError):
        lacks.append("in the sandbox a driver reads its own files and reaches its server; it starts and writes nothing")
    return DriverFaultError(f"{what}: {reason}", hint=lacks[0] if lacks else "")
