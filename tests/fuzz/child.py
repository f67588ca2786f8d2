"""The process that runs inputs: bounded in memory and processor time, watched for what a parser never does."""

from __future__ import annotations

import faulthandler
import gc
import os
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from . import ROOT

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from .target import Target

HEAD = struct.Struct("<I?dd")
"""Before an input: its length, whether its lines are traced, seconds of the processor, MB."""

OURS = tuple(str(ROOT / folder) for folder in ("runtime", "registry", "plugins"))
_HARNESS = str(Path(__file__).parent)
_FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "pty.spawn")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class ForbiddenError(BaseException):
    """Something that no parser does: a program, a connection, a file elsewhere."""


class Told(msgspec.Struct):
    """What became of one input.

    Attributes:
        end: ``ok``, ``refused`` by an error of the product's own, or ``error``.
        seconds: Of the processor.
        mb: Of memory at most, beyond what there was before.
        where: Function the error comes from.
        error: The error as text.
        lines: New lines of the product that it reached, where that was asked.
    """

    end: str
    seconds: float
    mb: float
    where: str = ""
    error: str = ""
    lines: int = 0


def serve(target: Target, reading: int, writing: int, folder: Path, dump: int) -> None:
    """Run inputs until there are no more, or one of them ends this process."""
    warnings.simplefilter("ignore")
    sys.dont_write_bytecode = True
    os.environ.update(DRAGOMAN_HOME=str(folder / "home"), HOME=str(folder), TMPDIR=str(folder))
    tempfile.tempdir = str(folder)
    run = target.make(folder)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    faulthandler.register(signal.SIGPROF, file=dump, all_threads=False, chain=True)  # then the signal ends the process
    seen: set[tuple[CodeType, int]] = set()
    _forbid(folder, loopback=target.loopback)
    gc.collect()
    while len(head := _read(reading, HEAD.size)) == HEAD.size:
        size, traced, seconds, mb = HEAD.unpack(head)
        data = _read(reading, size)
        if traced:
            before = len(seen)
            sys.settrace(_tracer(seen))
            told = _run(target, run, data)
            sys.settrace(None)
            told.lines = len(seen) - before
        else:
            told = _measured(target, run, data, seconds, mb)
        body = msgspec.msgpack.encode(told)
        os.write(writing, struct.pack("<I", len(body)) + body)


def _read(descriptor: int, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := os.read(descriptor, size - len(data))):
        data += piece
    return data


def _measured(target: Target, run: Any, data: bytes, seconds: float, mb: float) -> Told:
    before = _memory("VmRSS")
    _reset_peak()
    most = (_memory("VmSize") << 10) + int(mb * 1_000_000)
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    began = time.process_time()
    told = _run(target, run, data)
    told.seconds = time.process_time() - began
    signal.setitimer(signal.ITIMER_PROF, 0)
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    told.mb = max(0, _memory("VmHWM") - before) * 1024 / 1_000_000
    if told.mb > 4:
        gc.collect()
    return told


def _run(target: Target, run: Any, data: bytes) -> Told:
    try:
        run(data)
    except target.allowed as error:
        return Told("refused", 0, 0, error=_named(error))
    except (Exception, ForbiddenError) as error:
        return Told("error", 0, 0, where=_where(error), error=_named(error))
    return Told("ok", 0, 0)


def _named(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:300].encode(errors="backslashreplace").decode()
    except Exception:
        return type(error).__name__


def _where(error: BaseException) -> str:
    """Name the innermost function of the product, or of the harness where a promise of the result is broken."""
    frames = traceback.extract_tb(error.__traceback__)
    for roots in (OURS, (_HARNESS,)):
        for frame in reversed(frames):
            if frame.filename.startswith(roots):
                return place(frame.filename, frame.name)
    return "?"


def place(file: str, function: str) -> str:
    """Name a function."""
    parts = Path(file).relative_to(ROOT).parts
    return f"{'/'.join(parts[-3:] if 'pages' in parts else parts[-2:])}:{function}"


def _tracer(seen: set[tuple[CodeType, int]]) -> Any:
    def line(frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            seen.add((frame.f_code, frame.f_lineno))
        return line

    return lambda frame, _event, _argument: line if frame.f_code.co_filename.startswith(OURS) else None


def _reset_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return  # without it the peak only grows


def _memory(name: str) -> int:
    """Return a figure of this process, in KiB."""
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123 - quick
        return next(int(line.split()[1]) for line in status if line.startswith(name))


def _forbid(folder: Path, *, loopback: bool) -> None:
    """Stop what no parser does, before it happens."""
    inside = (str(folder), "/dev/null", "/proc/self/")

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _FORBIDDEN:
            raise ForbiddenError(f"it starts a program: {event} {arguments[:2]!r}")
        if event in ("socket.connect", "socket.sendto"):
            host = arguments[1][0] if isinstance(arguments[1], tuple) else arguments[1]
            if not (loopback and host == "127.0.0.1" and arguments[1][1] == watched.get("port")):
                raise ForbiddenError(f"it connects to {arguments[1]!r}")
        elif event == "socket.getaddrinfo" and not (loopback and arguments[0] == "127.0.0.1"):
            raise ForbiddenError(f"it asks for the address of {arguments[0]!r}")
        elif event == "open" and isinstance(arguments[0], str | bytes) and (arguments[2] or 0) & _WRITES:
            path = os.path.abspath(os.fsdecode(arguments[0]))  # noqa: PTH100 - quick
            if not path.startswith(inside):
                raise ForbiddenError(f"it writes {path}")

    sys.addaudithook(watch)


watched: dict[str, int] = {}
"""What a target on the loopback listens on."""
