"""Stopping a command from outside, by SIGTERM or a time limit, with the same cleanup as Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from types import FrameType
    from typing import Any

    from dragoman_api.errors import DragomanError

GRACE = 10.0
"""Seconds for the cleanup; after that, running code is interrupted again."""

ENDED = (124, 130, 143)
"""Exit codes of commands stopped from outside."""

asked: list[int] = []
"""The received signals that end this process, in order."""

_ALARM = signal.SIGALRM


def _set_alarm(seconds: float) -> None:
    signal.signal(_ALARM, _stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def heed(*, seconds: float | None = None) -> None:
    """End on SIGTERM as on Ctrl-C, and after a time limit if there is one."""
    signal.signal(signal.SIGTERM, _stop)
    if seconds is not None:
        _set_alarm(seconds)


def _stop(number: int, _frame: FrameType | None) -> None:
    asked.append(number)
    _set_alarm(GRACE)
    signal.raise_signal(signal.SIGINT)


async def interruptible(work: Coroutine[Any, Any, int | None]) -> int | None:
    """Wait for a command; the first interrupt cancels it, and the next one breaks in anywhere.

    asyncio itself would cancel the task through every shield, and leave its threads running unwatched.
    """
    import asyncio

    import anyio

    interrupts: list[int] = []
    loop = asyncio.get_running_loop()
    with anyio.CancelScope() as scope:

        def interrupt(number: int, _frame: FrameType | None) -> None:
            if interrupts:
                raise KeyboardInterrupt
            interrupts.append(number)
            loop.call_soon_threadsafe(scope.cancel)

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            return await work
        finally:
            signal.signal(signal.SIGINT, before)
    raise KeyboardInterrupt


@contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Leave Ctrl-C to the program that a block starts in the foreground, and waits for."""
    # A function, since a program inherits that a signal is ignored, but no function.
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def leave(code: int) -> None:
    """Exit at once if a thread may block forever, for example on a pipe without a writer."""
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # the interpreter would wait for that thread


def explain(error: BaseException) -> BaseException | DragomanError:
    """Return the error to report for an interrupt, which may come from Ctrl-C, a signal or the time limit."""
    inner = error.subgroup(KeyboardInterrupt) if isinstance(error, BaseExceptionGroup) else error
    if not (asked and isinstance(inner, KeyboardInterrupt | BaseExceptionGroup)):
        return error
    from dragoman_api.errors import DragomanError

    if asked[0] == _ALARM:
        return DragomanError("the time limit was reached", hint="allow more time: --timeout 2h", code="timed-out")
    return DragomanError("terminated by SIGTERM", code="terminated")
