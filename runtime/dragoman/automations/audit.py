"""An append-only log of requested writes and their outcomes."""

from __future__ import annotations

import hashlib
import json
import os
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import anyio.to_thread
import msgspec

from dragoman.settings import user_name
from dragoman_api.hookspecs import hookimpl
from dragoman_api.json_text import exact_number
from dragoman_api.masking import Mask, MaskedStream, escaped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dragoman_api.changes import HttpRequest
    from dragoman_api.events import Call, Event

WHOLE = 64 << 10
"""Characters of a body that is recorded whole; a longer one is recorded by its beginning, size and digest."""

BEGINNING = 4 << 10
"""Characters of the beginning of a long body."""

LINE = 1 << 20
"""Bytes of the requests in one line, about; those beyond are recorded by their number and one digest."""

_RECORDED = re.compile(
    r"(agent|connection|rows?|object|console|call|plugin|automation|events)\.|export\.(finished|failed)$"
)
_decoder = msgspec.json.Decoder(float_hook=exact_number)
_encoder = msgspec.json.Encoder(decimal_format="number")
_UNREADABLE = (ValueError, RecursionError, ArithmeticError)  # msgspec's errors are ValueErrors


class Audit:
    """Logs each write's requests, origin and time as a JSON line, and the events that report the outcome.

    A write that cannot be recorded is refused. Secrets are omitted before a line is written: known ones, and the
    values of members, parameters and headers with a secret-like name.
    """

    name: ClassVar = "audit"

    def __init__(self, log: Path, watches: Callable[[str], bool], *, mask: Mask | None = None) -> None:
        self._log, self._watches, self._mask = log, watches, mask or Mask()
        self._who = f"{user_name()}@{os.uname().nodename}" if hasattr(os, "uname") else user_name()

    @hookimpl
    async def before_call(self, call: Call) -> None:
        if not call.writes or (call.connection is not None and not self._watches(call.connection.name)):
            return
        connection = call.connection.name if call.connection else None
        caller = {"client": call.client} if call.client else {}
        record = self._mask.structure({"call": call.hook, "connection": connection, "object": call.object} | caller)
        await anyio.to_thread.run_sync(self._append, record, call.requests, call.statements)

    @hookimpl
    async def on_event(self, event: Event) -> None:
        connection = getattr(event, "connection", None)
        if _RECORDED.match(event.name) and (connection is None or self._watches(connection)):
            record = {"event": self._mask.structure(msgspec.to_builtins(event))}
            await anyio.to_thread.run_sync(self._append, record)

    def _append(
        self,
        record: dict[str, Any],
        requests: tuple[HttpRequest, ...] | None = None,
        statements: tuple[str, ...] = (),
    ) -> None:
        head = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "who": self._who, "pid": os.getpid()}
        line = _encode(head | record)
        if requests is not None:
            line = b'%b,"requests":%b}' % (line[:-1], self._requests(requests, statements))
        self._write(escaped(line.decode()).encode() + b"\n")

    def _requests(self, requests: tuple[HttpRequest, ...], statements: tuple[str, ...]) -> bytes:
        """Return the records of requests as a JSON array, cut to the first ones that fit a line."""
        records: list[bytes] = []
        room = LINE
        for at, request in enumerate(requests):
            statement = statements[at] if at < len(statements) else ""
            records.append(_encode(self._request(request, statement)))
            room -= len(records[-1])
            if room < 0 and at + 1 < len(requests):
                rest = requests[at + 1 :]
                digest = hashlib.sha256("\n".join(map(str, rest)).encode(errors="replace")).hexdigest()
                records.append(_encode({"more": len(rest), "sha256": digest}))
                break
        return b"[" + b",".join(records) + b"]"

    def _request(self, request: HttpRequest, statement: str) -> dict[str, Any]:
        record: dict[str, Any] = {"method": request.method[:100], "path": self._mask.request(request.path[:WHOLE])}
        if statement:
            record["statement"] = self._mask.request(statement)
        if request.body is not None:
            record |= self._body(request.body)
        return record

    def _body(self, body: str) -> dict[str, Any]:
        """Return a body as JSON, JSON lines or text, whichever it is."""
        if len(body) > WHOLE:
            data = body.encode(errors="replace")
            stream = MaskedStream(self._mask)
            begin = stream.feed(self._mask.request(body[:BEGINNING])) + stream.end(torn=True)
            return {"body": begin, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        try:
            return {"body": self._mask.structure(_decoder.decode(body))}
        except _UNREADABLE:
            pass
        try:
            return {"lines": [self._mask.structure(_decoder.decode(line)) for line in body.split("\n") if line.strip()]}
        except _UNREADABLE:
            return {"body": self._mask.request(body)}

    def _write(self, line: bytes) -> None:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            written = os.write(handle, line)  # in one piece, so that lines of two processes never mix
            if written != len(line):
                end = os.lseek(handle, 0, os.SEEK_CUR)
                if end == os.fstat(handle).st_size:  # half a line would spoil the next one as well
                    os.ftruncate(handle, end - written)
                raise OSError("the disk is full")
            os.fsync(handle)
        finally:
            os.close(handle)


def _encode(value: Any) -> bytes:
    """Write one line of JSON, whatever a text holds."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(value, default=str).encode()
