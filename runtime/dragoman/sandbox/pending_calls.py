"""The host side of calls, those that wait for a child: dispatch answers to them, and track abandoned ones."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from dragoman_worker import values
from dragoman_worker.wire import Chunk, Failure, Part, Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_api.errors import DragomanError

GRACE_SECONDS = 1.0
"""Time a driver has to obey a cancellation before its process is killed."""


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

    def __init__(self, *, on_disobedience: Callable[[], None]) -> None:
        """Begin with none.

        Args:
            on_disobedience: Called when a cancelled call outlasts the grace period.
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
        self._abandoned[number] = loop.call_later(GRACE_SECONDS, self._on_disobedience)
        return True

    def end(self, make_error: Callable[[], DragomanError]) -> None:
        """Fail everything that still waits."""
        for timer in self._abandoned.values():
            timer.cancel()
        self._abandoned.clear()
        while self._waiting:
            self._waiting.popitem()[1].fail(make_error())
