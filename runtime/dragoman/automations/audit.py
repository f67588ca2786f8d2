"""An append-only record of what was asked to be written, and what became of it."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import anyio.to_thread
import msgspec

from dragoman.settings import user_name
from dragoman_api.hookspecs import hookimpl

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dragoman_api.calls import Call
    from dragoman_api.events import Event

_NAMES = "password|passwd|secret|token|api_?key|credential"
_MEMBER = re.compile(rf'("[^"\\]*(?:{_NAMES})[^"\\]*"\s*:\s*)(?:"(?:[^"\\]|\\.)*"|[^\s,}}\]]+)', re.IGNORECASE)
_PARAMETER = re.compile(rf'([?&][^=&"]*(?:{_NAMES})[^=&"]*=)[^&"]*', re.IGNORECASE)
_RECORDED = re.compile(r"(connection|row|object|console|call|plugin|automation|events)\.|export\.(finished|failed)$")


class Audit:
    """Writes who asked for which requests when, one JSON line each, and the events that tell their outcome.

    A write that cannot be recorded is refused. The values of members and parameters that are called like a secret are
    left out of the recorded requests.
    """

    name: ClassVar = "audit"

    def __init__(self, log: Path, watches: Callable[[str], bool]) -> None:
        self._log, self._watches = log, watches
        self._who = f"{user_name()}@{os.uname().nodename}" if hasattr(os, "uname") else user_name()

    @hookimpl
    async def before_call(self, call: Call) -> None:
        """See `dragoman_api.hookspecs.AutomationSpec.before_call`."""
        if not call.writes or (call.connection is not None and not self._watches(call.connection.name)):
            return
        requests = [
            {"method": request.method, "path": _PARAMETER.sub(r"\1…", request.path)}
            | ({"body": _MEMBER.sub(r'\1"…"', request.body)} if request.body is not None else {})
            for request in call.requests
        ]
        connection = call.connection.name if call.connection else None
        await self._append({"call": call.hook, "connection": connection, "object": call.object, "requests": requests})

    @hookimpl
    async def on_event(self, event: Event) -> None:
        """See `dragoman_api.hookspecs.AutomationSpec.on_event`."""
        connection = getattr(event, "connection", None)
        if _RECORDED.match(event.name) and (connection is None or self._watches(connection)):
            await self._append({"event": msgspec.Raw(_PARAMETER.sub(r"\1…", event.to_json()).encode())})

    async def _append(self, record: dict[str, Any]) -> None:
        head = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "who": self._who, "pid": os.getpid()}
        await anyio.to_thread.run_sync(self._write, msgspec.json.encode(head | record) + b"\n")

    def _write(self, line: bytes) -> None:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            if os.write(handle, line) != len(line):  # in one piece, so that lines of two processes never mix
                raise OSError("the disk is full")
            os.fsync(handle)
        finally:
            os.close(handle)
