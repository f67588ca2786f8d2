"""How a command is stopped from outside: by SIGTERM, or because its time is over; both clean up as Ctrl-C does."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import FrameType
    from typing import Any

    from dragoman_api.errors import DragomanError

GRACE = 10.0
"""Seconds to clean up, after which code that does not let go is interrupted once more, and harder."""

asked: list[int] = []
"""Signals that asked this process to end, in order."""


if sys.platform == "win32":  # no signal comes from a clock, so a thread acts as if one had come
    import _thread
    from threading import Timer

    _ALARM = 14
    _clocks: list[Timer] = []

    def _set_alarm(seconds: float) -> None:
        while _clocks:
            _clocks.pop().cancel()
        _clocks.append(Timer(seconds, _ring))
        _clocks[0].daemon = True
        _clocks[0].start()

    def _ring() -> None:
        asked.append(_ALARM)
        _set_alarm(GRACE)
        _thread.interrupt_main(signal.SIGINT)

else:
    _ALARM = signal.SIGALRM

    def _set_alarm(seconds: float) -> None:
        signal.signal(_ALARM, _stop)
        signal.setitimer(signal.ITIMER_REAL, seconds)


def heed(*, seconds: float | None = None) -> None:
    """End on SIGTERM as on Ctrl-C, and after a time if one is given."""
    signal.signal(signal.SIGTERM, _stop)
    if seconds is not None:
        _set_alarm(seconds)


def _stop(number: int, _frame: FrameType | None) -> None:
    asked.append(number)
    _set_alarm(GRACE)
    signal.raise_signal(signal.SIGINT)


async def interruptible(work: Coroutine[Any, Any, int | None]) -> int | None:
    """Wait for a command, which the first interrupt cancels; a further one breaks in wherever it is.

    asyncio's own way would cancel its task, through every shield: what a thread just does for it would go on unwatched.
    """
    import asyncio

    import anyio

    told: list[int] = []
    loop = asyncio.get_running_loop()
    with anyio.CancelScope() as scope:

        def interrupt(number: int, _frame: FrameType | None) -> None:
            if told:
                raise KeyboardInterrupt
            told.append(number)
            loop.call_soon_threadsafe(scope.cancel)

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            return await work
        finally:
            signal.signal(signal.SIGINT, before)
    raise KeyboardInterrupt


def explain(error: BaseException) -> BaseException | DragomanError:
    """Give the error to report for an interrupt, which may have been none by Ctrl-C."""
    inner = error.subgroup(KeyboardInterrupt) if isinstance(error, BaseExceptionGroup) else error
    if not (asked and isinstance(inner, KeyboardInterrupt | BaseExceptionGroup)):
        return error
    from dragoman_api.errors import DragomanError

    if asked[0] == _ALARM:
        return DragomanError("the time it was given is over", hint="give it more: --timeout 2h", code="timed-out")
    return DragomanError("asked to end, by SIGTERM", code="terminated")
