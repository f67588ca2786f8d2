"""The host side of the conversation with a driver's process: calls that wait, abandoned ones, and exports in parts."""

from __future__ import annotations

import asyncio
import fcntl
import io
import os
from abc import ABC, abstractmethod
from collections import deque
from contextlib import aclosing, nullcontext, suppress
from functools import wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

import anyio
from msgspec import Raw

from dragoman_api.errors import DeadlineExceededError, DriverFaultError, QueryError
from dragoman_api.exports import ExportPart
from dragoman_api.hookspecs import DriverSpec, hookimpl
from dragoman_worker import values, wire
from dragoman_worker.channel import FROM_HOST
from dragoman_worker.hooks_and_deadlines import EXPORT, HOOKS
from dragoman_worker.wire import (
    CREDITS,
    Cancel,
    Chunk,
    Credit,
    Failure,
    HookCall,
    Learned,
    Part,
    Ready,
    Result,
    Sandboxed,
)

from . import sanitizing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from dragoman_api.errors import DragomanError, SandboxError
    from dragoman_api.exports import ExportRequest
    from dragoman_api.masking import Mask
    from dragoman_worker.channel import Channel
    from dragoman_worker.wire import Message

    from .reach.broker import Broker

GRACE_SECONDS = 1.0
"""Time a driver has to obey a cancellation before its process is killed."""
SHARED_GRACE_SECONDS = 10.0
"""The same while other calls wait, which would end with the process: on a busy machine, they may include a write."""
END_SECONDS = 0.5
"""Seconds to wait for a process that is ending by itself."""
HINT = "try again; if it fails again, tell the driver's author"
_FAULT_TEXT = 500
_PIECE = 1 << 20  # bytes of the pipe, and of one read
_LATE_SECONDS = 0.5
"""Seconds to wait for bytes written before the reply ended, since they travel through a separate pipe."""


class Waiting(Protocol):
    """One call that waits."""

    def take(self, message: Part | Chunk | Result) -> None:
        """Handle a message for this call.

        Raises:
            values.FAULTS: The message is malformed.
        """

    def fail(self, error: DragomanError) -> None:
        """End it by an error."""


class PendingCall:
    """A call that waits for its result."""

    def __init__(self, kind: Any) -> None:
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._assembly = values.Assembly(kind)

    def take(self, message: Part | Chunk | Result) -> None:
        """Collect parts; the result ends the wait."""
        if isinstance(message, Part):
            self._assembly.add(message)
        elif isinstance(message, Result):
            value = self._assembly.finish(message.value)
            if not self.future.done():
                self.future.set_result(value)
        else:
            raise values.ValueFaultError("a piece of an export as the answer to a call")

    def fail(self, error: DragomanError) -> None:
        """End it by an error."""
        if not self.future.done():
            self.future.set_exception(error)


class PendingCalls:
    """All calls of one child, by number."""

    def __init__(self, *, on_disobedience: Callable[[float], None]) -> None:
        """Begin with none.

        Args:
            on_disobedience: Called with the grace period, in seconds, when a cancelled call outlasts it.
        """
        self._on_disobedience = on_disobedience
        self._waiting: dict[int, Waiting] = {}
        self._abandoned: dict[int, asyncio.TimerHandle] = {}
        self._last = 0

    def add(self, waiting: Waiting) -> int:
        """Number a call."""
        self._last += 1
        self._waiting[self._last] = waiting
        return self._last

    def dispatch(self, message: Part | Chunk | Result | Failure, *, error: DragomanError | None) -> None:
        """Hand a message to its call.

        Args:
            message: From the child.
            error: Builds the error for a failure.

        Raises:
            values.FAULTS: It belongs to no call, or makes no sense there.
        """
        final = isinstance(message, (Result, Failure))
        if (waiting := self._waiting.get(message.id)) is not None:
            if isinstance(message, Failure):
                assert error is not None
                waiting.fail(error)
            else:
                waiting.take(message)
            if final:  # only now: a call whose answer makes no sense still waits, for the error
                del self._waiting[message.id]
        elif message.id not in self._abandoned:
            raise values.ValueFaultError(f"an answer to call {message.id}, which is not in progress")
        elif final:
            self._abandoned.pop(message.id).cancel()

    def abandon(self, number: int) -> bool:
        """Stop waiting for a call; return whether the child must be notified."""
        if self._waiting.pop(number, None) is None:
            return False
        loop = asyncio.get_running_loop()
        grace = SHARED_GRACE_SECONDS if self._waiting else GRACE_SECONDS
        self._abandoned[number] = loop.call_later(grace, self._on_disobedience, grace)
        return True

    def end(self, make_error: Callable[[], DragomanError]) -> None:
        """Fail everything that still waits."""
        for timer in self._abandoned.values():
            timer.cancel()
        self._abandoned.clear()
        while self._waiting:
            self._waiting.popitem()[1].fail(make_error())


def open_pipe() -> tuple[io.RawIOBase, io.FileIO]:
    """Create a non-blocking pipe for an export; return the read end and the end to hand over."""
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    with suppress(AttributeError, OSError):  # Linux; where a user's pipes may not be larger, it works all the same
        fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, _PIECE)  # so that both ends wake up seldom
    return io.FileIO(reading), io.FileIO(writing, "w")


class ExportReply:
    """A stream that waits for its next chunk; accepts only as many as it gave credit for."""

    def __init__(self, pipe: io.RawIOBase) -> None:
        """Begin.

        Args:
            pipe: The read end, non-blocking.
        """
        self._pipe = pipe
        self._chunks: deque[Chunk] = deque()
        self._arrived = anyio.Event()
        self._credit = CREDITS
        self._over = False
        self._error: DragomanError | None = None
        self._waiting = anyio.CancelScope()

    def take(self, message: Part | Chunk | Result) -> None:
        """Queue a chunk; the result ends the stream."""
        if isinstance(message, Part):
            raise values.ValueFaultError("a part of a result as the answer to an export")
        if isinstance(message, Result):
            self._end()
        else:
            self._credit -= 1
            if self._credit < 0:
                raise values.ValueFaultError("a piece of an export without credit")
            self._chunks.append(message)
        self._arrived.set()

    def fail(self, error: DragomanError) -> None:
        """End the stream with an error, after the announced parts."""
        self._error = error
        self._end()
        self._arrived.set()

    def _end(self) -> None:
        """Note that no more is written to the pipe, though it may stay open."""
        self._over = True
        self._waiting.cancel()

    async def part(self) -> ExportPart | None:
        """Wait for the next part and its bytes; None at the end.

        Raises:
            DragomanError: The driver's, or its process ended.
            ValueFaultError: The pipe or the reply ended inside a part, or bytes came that belong to none.
        """
        while not self._chunks:
            if self._error is not None:
                raise self._error
            if self._over:
                if surplus := self._pipe.read(_PIECE):
                    raise values.ValueFaultError(f"{len(surplus):,} bytes of an export that no part announced")
                return None
            self._arrived = anyio.Event()
            await self._arrived.wait()
        chunk = self._chunks.popleft()
        pieces, missing = [], chunk.size
        while missing:
            piece = self._pipe.read(min(missing, _PIECE))
            if piece is None and await self._more():
                continue
            if not piece:
                if self._error is not None:
                    raise self._error
                raise values.ValueFaultError(f"{chunk.size - missing:,} bytes of a part of {chunk.size:,}")
            pieces.append(piece)
            missing -= len(piece)
        self._credit += 1
        fields = {name: getattr(chunk, name) for name in ("rows", "total", "checkpoint", "notes", "turned_away")}
        return ExportPart(data=b"".join(pieces), **fields)

    async def _more(self) -> bool:
        """Wait until the pipe may have data; return False if no more will come."""
        if not self._over:
            with anyio.CancelScope() as self._waiting:
                await anyio.wait_readable(self._pipe)
            return True
        with anyio.move_on_after(_LATE_SECONDS) as late:
            await anyio.wait_readable(self._pipe)
        return not late.cancelled_caught


class Conversation(ABC):
    """The host's part of the conversation with one child: what it asks, and what becomes of the answers.

    A subclass owns the process.

    Attributes:
        ended: Set when the process has ended, for whatever reason.
        hooks: What the driver implements.
    """

    _channel: Channel
    _broker: Broker

    def __init__(self, *, mask: Mask, connection: str) -> None:
        """Begin without calls.

        Args:
            mask: Removes secrets from a text; learns those that the child tells of.
            connection: The connection's name, which belongs to the driver's remedies.
        """
        self.ended = anyio.Event()
        self.hooks: frozenset[str] = frozenset()
        self._mask, self._connection = mask, connection
        self._messages = wire.decoder(wire.ChildMessage)
        self._calls = PendingCalls(on_disobedience=self._disobeyed)
        self._step: tuple[type[Any], asyncio.Future[Any]] | None = None
        self._verdict: tuple[type[SandboxError], str] | None = None

    @abstractmethod
    def obituary(self) -> SandboxError:
        """Describe the end of the process, once it has ended, as an error."""

    @abstractmethod
    def _condemn(self, reason: str) -> None:
        """Kill a child that sends malformed messages."""

    @abstractmethod
    def _disobeyed(self, grace: float) -> None:
        """Kill a child that did not stop a cancelled call."""

    def _end_calls(self) -> None:
        """Fail everything that still waits."""
        self._calls.end(self.obituary)
        if self._step is not None and not self._step[1].done():
            self._step[1].set_exception(self.obituary())

    # messages -------------------------------------------------------------------------------------------------------

    def _ask(self, message: Message, answer: type[Any]) -> asyncio.Future[Any]:
        """Send one message of the start; return what gets its answer."""
        if self.ended.is_set():
            raise self.obituary()
        self._step = (answer, asyncio.get_running_loop().create_future())
        self._channel.send(message)
        return self._step[1]

    async def _say(self, message: Message, answer: type[Any]) -> Any:
        """Send one message of the start and wait for its answer."""
        return await self._ask(message, answer)

    def _receive(self, body: bytes) -> None:
        if self._verdict is not None and self._verdict[0] is DriverFaultError:
            return  # condemned: ignore all further messages
        try:
            message = self._messages.decode(body)
            if self._step is not None:
                self._take_step(message, self._step)
            elif isinstance(message, Learned):
                self._mask.learn(message.token)
            elif isinstance(message, (Sandboxed, Ready)):
                raise values.ValueFaultError("a message of the start after the start")
            else:
                self._calls.dispatch(message, error=self._error(message))
        except values.FAULTS as error:
            self._condemn(sanitizing.harmless(str(error))[:_FAULT_TEXT] or type(error).__name__)

    def _take_step(self, message: Any, step: tuple[type[Any], asyncio.Future[Any]]) -> None:
        kind, future = step
        error = self._error(message)
        if error is None and not isinstance(message, kind):
            raise values.ValueFaultError(f"{type(message).__name__} instead of {kind.__name__}")
        self._step = None
        if future.done():
            return
        if error is None:
            future.set_result(message)
        else:
            future.set_exception(error)

    def _error(self, message: Any) -> DragomanError | None:
        """Build the error that a failure stands for, harmless and without secrets."""
        if not isinstance(message, Failure):
            return None
        error = sanitizing.driver_error(message, self._clean, connection=self._connection)
        if isinstance(error, DriverFaultError) and not error.hint:
            error.advise(HINT)
        return error

    def _clean(self, text: str) -> str:
        return self._mask(sanitizing.harmless(text))

    # calls ----------------------------------------------------------------------------------------------------------

    async def call(self, hook: str, request: object = None, *, deadline: float | None = None) -> Any:
        """Call one hook of the driver.

        Args:
            hook: Its name; not `export_rows`.
            request: What travels of its arguments.
            deadline: Seconds; None leaves it to the caller's own scope.

        Returns:
            The hook's result, None where the driver has no answer.

        Raises:
            DriverError: What the driver raised.
            UnsupportedOperationError: It does not implement the hook.
            DriverFaultError: It raised something other than a DragomanError, or its answer is malformed.
            DriverCrashedError: Its process ended.
            DeadlineExceededError: It did not answer in time.
            QueryError: The request cannot be sent.
        """
        reply = PendingCall(HOOKS[hook].result)
        number = self._send(reply, hook, request)
        try:
            # A scope costs a third of an empty call, so there is none without a deadline.
            with nullcontext() if deadline is None else anyio.fail_after(deadline):
                await self._channel.drain()
                result = await reply.future
                return sanitizing.received(result, self._clean, self._mask, connection=self._connection)
        except TimeoutError:
            raise DeadlineExceededError(f"{hook} took longer than {deadline:g} s") from None
        finally:
            self._abandon(number)

    async def export(self, request: ExportRequest, *, deadline: float) -> AsyncGenerator[ExportPart, None]:
        """Stream an export; close the iterator at the end.

        Args:
            request: What to export.
            deadline: Seconds between two parts.

        Yields:
            Parts as the driver gave them.

        Raises:
            As `call`.
        """
        reading, writing = open_pipe()
        with reading, writing:
            reply = ExportReply(reading)
            number = self._send(reply, EXPORT, request)
            try:
                self._broker.hand_over(number, writing)
                writing.close()
                while True:
                    with anyio.fail_after(deadline):
                        part = await reply.part()
                    if part is None:
                        return
                    yield sanitizing.received(part, self._clean, connection=self._connection)
                    self._channel.send(Credit(number, 1))
            except TimeoutError:
                raise DeadlineExceededError(f"{EXPORT} yielded nothing for {deadline:g} s") from None
            except values.ValueFaultError as error:
                with anyio.move_on_after(END_SECONDS):  # a dying process says more than its broken pipe
                    await self.ended.wait()
                self._condemn(str(error))
                await self.ended.wait()
                raise self.obituary() from None
            finally:
                self._abandon(number)

    def _send(self, waiting: Waiting, hook: str, request: object) -> int:
        if self.ended.is_set():
            error = self.obituary()
            error.details["sent"] = False
            raise error
        try:
            body = values.encode_request(request)
        except values.ValueFaultError as error:
            text = f"the request of {hook} cannot be sent to the driver: {error}"
            raise QueryError(text, details={"sent": False}) from error
        if len(body) > FROM_HOST - 1_000:
            text = f"the request of {hook} has {len(body):,} bytes; {FROM_HOST:,} are allowed"
            raise QueryError(text, details={"sent": False})
        number = self._calls.add(waiting)
        self._channel.send(HookCall(number, hook, Raw(body)))
        return number

    def _abandon(self, number: int) -> None:
        if not self.ended.is_set() and self._calls.abandon(number):
            self._channel.send(Cancel(number))


class DriverProxy(SimpleNamespace):
    """Represents a driver in a pluggy manager of the host. The caller's scope sets a call's deadline."""

    def __init__(self, conversation: Conversation) -> None:
        super().__init__(**{hook: hookimpl(_forward(conversation, hook)) for hook in conversation.hooks})


def _forward(conversation: Conversation, hook: str) -> Callable[..., Any]:
    kind, spec = HOOKS[hook], getattr(DriverSpec, hook)  # whose names of arguments pluggy finds by `wraps`

    @wraps(spec)
    async def call(*values: Any) -> Any:
        return await conversation.call(hook, None if kind.request is None or not values else values[-1])

    @wraps(spec)
    async def stream(request: Any) -> AsyncGenerator[Any, None]:
        async with aclosing(conversation.export(request, deadline=HOOKS[hook].seconds)) as parts:
            async for part in parts:
                yield part

    return stream if kind.stream else call
