"""Hands inputs to a process of their own, and starts another one when an input ended it."""

from __future__ import annotations

import os
import select
import shutil
import signal
import struct
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from . import child
from .child import HEAD, OURS, Told

if TYPE_CHECKING:
    from typing import Self

    from .target import Target

FACTOR = 4
"""How many times its bounds an input may take before its process is ended."""
STUCK = 60.0
"""Seconds of the clock that an input may take while it does nothing."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of an input: ``ok`` or ``refused``, or what is wrong and where.

    Attributes:
        kind: ``ok``, ``refused``, ``error``, ``slow``, ``large``, ``hang``, ``crash`` or ``stuck``.
        where: Function.
        told: Measured.
    """

    kind: str
    where: str
    told: Told

    @property
    def sound(self) -> bool:
        """Tell whether nothing is wrong."""
        return self.kind in ("ok", "refused")


class Server:
    """One target's process; a context manager."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._pid = 0

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="dragoman-fuzz-")).resolve()
        self._dump = tempfile.TemporaryFile()
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop(signal.SIGKILL)
        self._dump.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        reading, self._to = os.pipe()
        self._from, writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.close(self._to)
                os.close(self._from)
                folder = self._folder / str(os.getpid())
                folder.mkdir()
                os.chdir(folder)
                child.serve(self.target, reading, writing, folder, self._dump.fileno())
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(reading)
        os.close(writing)

    def _stop(self, number: int = 0) -> int:
        if number:
            os.kill(self._pid, number)
        _, status = os.waitpid(self._pid, 0)
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self._folder / str(self._pid), ignore_errors=True)
        return status

    def trace(self, data: bytes) -> int:
        """Run an input that is known to be harmless; give how many lines it is the first to reach."""
        return self._ask(data, traced=True, seconds=0, mb=0).told.lines

    def run(self, data: bytes) -> Result:
        """Run an input and judge it; what costs too much is run again, for a machine that is busy may be to blame."""
        bounds, size = self.target.bounds, len(data)
        seconds, mb = bounds.time(size), bounds.memory(size)
        result = self._ask(data, seconds=FACTOR * seconds, mb=FACTOR * mb)
        for kind, over in (("slow", result.told.seconds / seconds), ("large", result.told.mb / mb)):
            if result.sound and over > 1:
                again = self._ask(data, seconds=FACTOR * seconds, mb=FACTOR * mb)
                if kind == "slow" and again.told.seconds > seconds:
                    where = self._ask(data, seconds=again.told.seconds / 2, mb=FACTOR * mb).where
                    return Result("slow", where, again.told)
                if kind == "large" and again.told.mb > mb:
                    where = self._ask(data, seconds=FACTOR * seconds, mb=again.told.mb / 2).where
                    return Result("large", where, again.told)
        return result

    def _ask(self, data: bytes, *, traced: bool = False, seconds: float, mb: float) -> Result:
        message = HEAD.pack(len(data), traced, seconds, mb) + data
        try:
            view = memoryview(message)
            while view:
                view = view[os.write(self._to, view) :]
            ready, _, _ = select.select([self._from], [], [], STUCK)
            if not ready:
                self._restart(signal.SIGKILL)
                return Result("stuck", "?", Told("error", 0, 0, error=f"nothing for {STUCK:.0f} s"))
            head = os.read(self._from, 4)
            if head:
                size, body = struct.unpack("<I", head)[0], b""
                while len(body) < size and (piece := os.read(self._from, size - len(body))):
                    body += piece
                told = msgspec.msgpack.decode(body, type=Told)
                kind = "large" if told.error.startswith("MemoryError") else told.end
                return Result(kind, told.where, told)
        except BrokenPipeError:
            pass
        status = self._restart()
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        kind = "hang" if number == signal.SIGPROF else "crash"
        error = (
            f"signal {signal.Signals(number).name}" if number else f"exit status {os.waitstatus_to_exitcode(status)}"
        )
        return Result(kind, self._dumped(), Told("error", seconds, 0, error=error))

    def _restart(self, number: int = 0) -> int:
        status = self._stop(number)
        self._start()
        return status

    def _dumped(self) -> str:
        """Name the innermost function of the product that was running when the process was ended."""
        self._dump.seek(0)
        text = self._dump.read().decode(errors="replace")
        self._dump.seek(0)
        self._dump.truncate()
        for line in text.splitlines():
            _, _, rest = line.partition('File "')
            file, _, rest = rest.partition('", line ')
            if file.startswith(OURS):
                return child.place(file, rest.partition(" in ")[2])
        return "?"
