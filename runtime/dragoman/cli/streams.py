"""The standard streams of the process, the target of events, and how a command is stopped from outside."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

from dragoman_api.errors import ConfigurationError, DragomanError

from .command_files import open_to_append

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
    from contextlib import ExitStack
    from types import FrameType
    from typing import Any

    from dragoman_api.events import Event

GRACE = 10.0
"""Seconds for the cleanup; after that, running code is interrupted again."""

ENDED = (124, 130, 143)
"""Exit codes of commands stopped from outside."""

received_signals: list[int] = []
"""The received signals that end this process, in order."""

_ALARM = signal.SIGALRM


def reserve_stdout() -> BinaryIO:
    """Reserve standard output for events; all other output, of child processes too, goes to stderr."""
    out = sys.stdout
    sys.stdout = sys.stderr
    try:
        number = out.fileno()
    except OSError:  # an object without a descriptor
        return out.buffer
    out.flush()
    events = open(os.dup(number), "wb", buffering=0)  # noqa: SIM115, PTH123 - it lives as long as the process
    os.dup2(sys.stderr.fileno(), number)
    return events


class Aside:
    """Standard output, except that what automations print goes to stderr with their name."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._begins = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    def write(self, text: str) -> int:
        """Write a text to the stream that its printer may use."""
        from dragoman.automations.hook_manager import AT_WORK

        if not (name := AT_WORK.get()):
            return self._out.write(text)
        sys.stderr.write(f"{name}: {text}" if self._begins else text)
        self._begins = text.endswith("\n")
        return len(text)


def aside(out: TextIO) -> TextIO:
    """Send to stderr what automations print."""
    return cast("TextIO", Aside(out))


def attended() -> bool:
    """Return whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def write_events(target: str, stdout: BinaryIO | None, cleanup: ExitStack) -> Callable[[Event], None]:
    """Return a sink that writes each event to a file as a line of JSON.

    If the file lacks events in the end, as on a full disk, the cleanup raises an error. What happens meanwhile goes on:
    a write that was sent has its outcome, whoever can be told.

    Raises:
        ConfigurationError: It cannot be written, now or at the cleanup.
    """

    def failed(error: OSError) -> ConfigurationError:
        hint = "choose a writable file, or - for stdout"
        return ConfigurationError(f"--events {target} cannot be written: {error.strerror}", hint=hint)

    def check(_kind: object, error: BaseException | None, _trace: object) -> None:
        if (failure := lines.failure) is not None and error is None:
            raise failure if isinstance(failure, BrokenPipeError) else failed(failure)

    file = stdout
    if target != "-":
        try:
            file = cleanup.enter_context(open_to_append(Path(target)))
        except OSError as error:
            raise failed(error) from error
    assert file is not None
    lines = _Lines(file, f"--events {target} lacks events")
    cleanup.push(check)
    return lambda event: lines.write(f"{event.to_json()}\n".encode())


def write_driver_log(target: str, cleanup: ExitStack) -> Callable[[str, str], object]:
    """Return what writes each line of a driver's output with its connection, to a file or to stderr (`-`).

    Raises:
        ConfigurationError: The file cannot be opened.
    """
    if target == "-":
        return lambda connection, line: sys.stderr.write(f"{connection}: {line}\n")
    try:
        file = cleanup.enter_context(open_to_append(Path(target)))
    except OSError as error:
        hint = "choose a writable file, or - for stderr"
        raise ConfigurationError(f"--driver-log {target} cannot be written: {error.strerror}", hint=hint) from error

    lines = _Lines(file, f"--driver-log {target} lacks lines")
    return lambda connection, line: lines.write(f"{connection}: {line}\n".encode(errors="backslashreplace"))


class _Lines:
    """Appends lines to a file. A line that cannot be written, as on a full disk, stops nothing; it is said once.

    Attributes:
        failure: The first error; None if there was none.
    """

    def __init__(self, file: BinaryIO, complaint: str) -> None:
        self._file, self._complaint = file, complaint
        self._torn = False
        self.failure: OSError | None = None

    def write(self, line: bytes) -> None:
        try:
            _write_whole(self._file, b"\n" + line if self._torn else line)  # else it would continue what was begun
            self._torn = False
        except OSError as error:
            self._torn = True
            if self.failure is None:
                self.failure = error
                if not isinstance(error, BrokenPipeError):
                    sys.stderr.write(f"{self._complaint}: {error.strerror}\n")


def _write_whole(stream: BinaryIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:  # without a buffer, a write may take only the beginning
        rest = rest[stream.write(rest) :]
    stream.flush()


def _set_alarm(seconds: float) -> None:
    signal.signal(_ALARM, _stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def heed(*, seconds: float | None = None) -> None:
    """End on SIGTERM as on Ctrl-C, and after a time limit if there is one."""
    signal.signal(signal.SIGTERM, _stop)
    if seconds is not None:
        _set_alarm(seconds)


def _stop(number: int, _frame: FrameType | None) -> None:
    received_signals.append(number)
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
    if not (received_signals and isinstance(inner, KeyboardInterrupt | BaseExceptionGroup)):
        return error

    if received_signals[0] == _ALARM:
        return DragomanError("the time limit was reached", hint="allow more time: --timeout 2h", code="timed-out")
    return DragomanError("terminated by SIGTERM", code="terminated")


@asynccontextmanager
async def told_to_end() -> AsyncIterator[Callable[[], Awaitable[object]]]:
    """Receive the signals that end a server from now on, and yield a function that waits for one."""
    import anyio

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        yield lambda: anext(signals)
