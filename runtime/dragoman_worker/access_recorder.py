"""A driver that loads another one and records its access attempts. It helps authors and is not part of the sandbox."""

from __future__ import annotations

import builtins
import json
import os
import socket
import sys
import time
from importlib import import_module
from inspect import signature
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

import anyio

from dragoman_api.columns import Description
from dragoman_api.connections import Server
from dragoman_api.hookspecs import hookimpl
from dragoman_api.masking import Mask

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType, ModuleType

    from dragoman_api.connections import Profile
    from dragoman_api.http import Http

CONNECT_SECONDS = 3.0
ENTRY = f"{__name__}:AccessRecorder"

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = frozenset(
    f"os.{name}"
    for name in "remove rename mkdir rmdir chmod chown link symlink truncate utime setxattr".split()  # noqa: SIM905
)
_PROGRAMS = ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.kill", "pty.")


class AccessRecorder:
    """Imports a driver in `describe_object` and calls its `connect`. The answers list the attempts."""

    def __init__(self) -> None:
        self._notes: list[list[str]] = []
        self._leaks: list[str] = []
        self._slowest, self._nested = (0.0, ""), 0.0
        self._stage = ""
        sys.addaudithook(self._hear)

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        """Import ``package.module:Class`` and create an instance. Without a name, list the attempts.

        The answer states the duration in seconds of CPU time: wall time depends on how busy the machine is. It names
        the slowest import statement of the driver's code.
        """
        if not name:
            record = {"notes": self._notes, "leaks": self._leaks}
            return Description(object=name, columns=[], structure=json.dumps(record))
        module, _, attribute = name.partition(":")
        self._package, failure, began, self._stage = module.partition(".")[0], "", time.process_time(), "import"
        self._import, builtins.__import__ = builtins.__import__, self._timed_import  # type: ignore[assignment]
        try:
            self._driver = getattr(import_module(module), attribute)()
        except BaseException as error:  # noqa: BLE001 - a module may raise anything during its import
            failure = f"{type(error).__name__}: {error}{self._raised_at(error)}"
        self._stage, seconds, builtins.__import__ = "", time.process_time() - began, self._import
        slowest = self._slowest[1] if 2 * self._slowest[0] > seconds else ""
        record = {"seconds": seconds, "slowest": slowest, "failure": failure, "notes": self._notes}
        return Description(object=name, columns=[], structure=json.dumps(record))

    @hookimpl
    async def connect(self, profile: Profile, http: Http) -> Server:
        """Connect the driver to a server that refuses everything."""
        self._stage = "connect"
        try:
            names = signature(self._driver.connect).parameters
            handed = {"profile": profile, "http": http, "first_object": None}
            with anyio.move_on_after(CONNECT_SECONDS):
                await self._driver.connect(**{name: handed[name] for name in names})
        except BaseException as error:  # noqa: BLE001 - a driver may raise anything
            text = repr((error.args, vars(error)))
            if Mask(profile.secrets.texts)(text) != text:
                self._leaks.append(f"its {type(error).__name__}{self._raised_at(error)}")
        self._stage = ""
        return Server("probe")

    def _timed_import(
        self, name: str, caller: Mapping[str, Any] | None = None, *arguments: Any, **options: Any
    ) -> ModuleType:
        """Import as Python does, and keep which statement of the driver takes longest without those inside it."""
        line = sys._getframe(1).f_lineno  # noqa: SLF001 - the only way to the driver's own line
        place = self._place(str((caller or {}).get("__file__", "")), line)
        began, self._nested, outer = time.process_time(), 0.0, self._nested
        try:
            return self._import(name, caller, *arguments, **options)
        finally:
            seconds = time.process_time() - began
            if place:
                self._slowest = max(self._slowest, (seconds - self._nested, place))
            self._nested = outer + (seconds if place else self._nested)

    def _raised_at(self, error: BaseException) -> str:
        """Return the last line of the driver's code that an error came through, between brackets."""
        places = [self._place(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
        return next((f" ({place})" for place in reversed(places) if place), "")

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if self._stage and (note := _note(event, args)) is not None:
            self._notes.append([self._stage, *note, self._where()])

    def _where(self) -> str:
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to the driver's own line
        while frame is not None:
            if place := self._place(frame.f_code.co_filename, frame.f_lineno):
                return place
            frame = frame.f_back
        return ""

    def _place(self, path: str, line: int) -> str:
        """Return file and line if the file is one of the driver's."""
        _, inside, file = path.replace(os.sep, "/").rpartition(f"/{self._package}/")
        return f"{self._package}/{file}:{line}" if inside else ""


def _note(event: str, args: tuple[Any, ...]) -> tuple[str, str] | None:
    """Return the action and the target of an audit event, or None for events that are not checked."""
    if event in ("open", "os.listdir", "os.scandir") or event in _CHANGES:
        path = args[0]
        if not isinstance(path, str | bytes | os.PathLike):
            return None
        flags = args[2] if event == "open" and isinstance(args[2], int) else 0
        written = event in _CHANGES or flags & _WRITES or (event == "open" and set(args[1] or "") & set("wax+"))
        return "write" if written else "list" if event != "open" else "read", os.fsdecode(path)
    if event.startswith(_PROGRAMS):
        return "run", str(args[0] if args else event)
    if event == "ctypes.dlopen":
        return "load", str(args[0])
    if event in ("socket.connect", "socket.bind", "socket.sendto"):
        return "reach", str(args[1])
    if event.startswith("socket.get") and event != "socket.gethostname":
        return "reach", str(args[0])
    if event == "socket.__new__" and args[1] not in (-1, socket.AF_INET, socket.AF_INET6):  # -1: an existing socket
        return "reach", f"a socket of family {args[1]}"
    return None
