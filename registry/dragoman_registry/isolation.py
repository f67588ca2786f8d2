"""Handles untrusted bytes in a separate process, bounded in time and memory, that can be stopped at any time.

A thread cannot be killed, and many parsers hold the GIL, which blocks every other thread.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from contextlib import suppress
from threading import Event, Lock, Timer
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from dragoman_api.errors import DragomanError, RegistryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

P = ParamSpec("P")
T = TypeVar("T")

SECONDS = 60.0
"""Maximum seconds for one call."""
MEMORY = 2 << 30
"""Maximum address space of the process in bytes."""
_START = "import sys; sys.path[:] = sys.argv[1:]; from dragoman_registry.isolation import main; main()"


class Apart:
    """A process that runs one call after another; a context manager. The first call starts it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._turn, self._ended = Lock(), Event()

    def __enter__(self) -> Apart:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a module-level function in the helper process; arguments and result must be picklable. Blocks.

        Raises:
            DragomanError: The function raised it.
            OSError: The function raised it.
            RegistryError: It took too much time or memory, or failed otherwise (code ``work-ended``).
        """
        with self._turn:
            if self._ended.is_set():
                raise _given_up("this program is ending")
            process = self._process = self._process or _started()
            if self._ended.is_set():  # `end` may have run since the first check
                process.kill()
            assert process.stdin
            assert process.stdout
            seconds, began = SECONDS, time.monotonic()
            overdue = Timer(seconds, process.kill)
            overdue.daemon = True
            overdue.start()
            try:
                pickle.dump((function, args, kwargs, seconds), process.stdin)
                process.stdin.flush()
                done, answer = pickle.load(process.stdout)  # noqa: S301 - our own code wrote it
            except (OSError, EOFError, pickle.UnpicklingError) as error:
                self._stop()
                raise _given_up(f"it took more than {seconds:.0f} s or too much memory") from error
            finally:
                overdue.cancel()
                overdue.join()  # else it might kill the process in the next call
            if time.monotonic() - began > seconds:  # the process may have been killed after it answered
                self._stop()
                raise _given_up(f"it took more than {seconds:.0f} s")
        if done:
            return answer  # type: ignore[no-any-return]
        raise answer if isinstance(answer, Exception) else _given_up(f"it failed: {answer}")

    def end(self) -> None:
        """Kill the process; a waiting `call` raises."""
        self._ended.set()
        if self._process is not None:
            self._process.kill()
        with self._turn:
            self._stop()

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            with suppress(BrokenPipeError), self._process:  # close the pipes, even with unread data, and wait
                self._process = None


def _given_up(reason: str) -> RegistryError:
    return RegistryError(reason, code="work-ended")


def _started() -> subprocess.Popen[bytes]:
    # Keep the host's environment, which may hold tokens, from this process.
    environment = {name: os.environ[name] for name in ("SYSTEMROOT", "TMPDIR", "TEMP") if name in os.environ}
    command = [sys.executable, "-I", "-B", "-c", _START, *filter(None, sys.path)]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing, env=environment)  # noqa: S603 - our own text


def main() -> None:
    """Run as the helper process: read calls from stdin until it ends, and answer on stdout."""
    calls, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep other output out of the answers
    while True:
        try:
            function, args, kwargs, seconds = pickle.load(calls)  # noqa: S301 - the parent wrote it
        except EOFError:
            return
        _bound(seconds)
        answers.write(_answer(function, args, kwargs))
        answers.flush()


def _answer(function: Callable[..., Any], args: Any, kwargs: Any) -> bytes:
    try:
        return pickle.dumps((True, function(*args, **kwargs)))
    except (DragomanError, OSError) as error:
        return pickle.dumps((False, error))
    except Exception as error:  # noqa: BLE001 - report any failure and serve the next call
        return pickle.dumps((False, f"{type(error).__name__}: {str(error)[:500]}"))


def _bound(seconds: float) -> None:
    import resource

    usage = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(usage.ru_utime + usage.ru_stime + seconds) + 1  # this limit still applies if the parent dies
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
