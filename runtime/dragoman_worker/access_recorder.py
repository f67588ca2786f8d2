"""A driver that loads another one and records its access attempts. It helps authors and is not part of the sandbox."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from contextlib import suppress
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

import anyio

from dragoman_api.columns import Description
from dragoman_api.connections import Server
from dragoman_api.hookspecs import hookimpl

if TYPE_CHECKING:
    from types import FrameType

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
        self._stage = ""
        sys.addaudithook(self._hear)

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        """Import ``package.module:Class`` and create an instance. Without a name, list the attempts.

        The answer states the duration in seconds of CPU time: wall time depends on how busy the machine is.
        """
        if not name:
            return Description(object=name, columns=[], structure=json.dumps({"notes": self._notes}))
        module, _, attribute = name.partition(":")
        self._package, failure, began, self._stage = module.partition(".")[0], "", time.process_time(), "import"
        try:
            self._driver = getattr(import_module(module), attribute)()
        except BaseException as error:  # noqa: BLE001 - a module may raise anything during its import
            failure = f"{type(error).__name__}: {error}"
        self._stage, seconds = "", time.process_time() - began
        record = {"seconds": seconds, "failure": failure, "notes": self._notes}
        return Description(object=name, columns=[], structure=json.dumps(record))

    @hookimpl
    async def connect(self, profile: Profile, http: Http) -> Server:
        """Connect the driver to a server that refuses everything."""
        self._stage = "connect"
        with suppress(BaseException), anyio.move_on_after(CONNECT_SECONDS):
            names = signature(self._driver.connect).parameters
            handed = {"profile": profile, "http": http, "first_object": None}
            await self._driver.connect(**{name: handed[name] for name in names})
        self._stage = ""
        return Server("probe")

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if self._stage and (note := _note(event, args)) is not None:
            self._notes.append([self._stage, *note, self._where()])

    def _where(self) -> str:
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to the driver's own line
        while frame is not None:
            path = frame.f_code.co_filename.replace(os.sep, "/")
            if f"/{self._package}/" in path:
                return f"{self._package}/{path.rpartition(f'/{self._package}/')[2]}:{frame.f_lineno}"
            frame = frame.f_back
        return ""


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
