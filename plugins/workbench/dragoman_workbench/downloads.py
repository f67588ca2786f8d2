"""Downloads: the browser fetches each by a ticket, which holds once, because a navigation carries no header."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import anyio.from_thread
import anyio.to_thread
from aiohttp import web

from .access import welcome

if TYPE_CHECKING:
    from dragoman_workbench.background_work import Work

TICKET_SECONDS = 30.0
MAX_TICKETS = 256

Write = Callable[[Any], Awaitable[None]]
"""Writes the download into a binary stream; called in a task of its own."""


class Download:
    """What a ticket stands for."""

    def __init__(self, file: str, write: Write, until: float) -> None:
        self.file, self.write, self.until = file, write, until


class ResponseStream:
    """A binary stream into a response; a slow browser slows the writer down."""

    def __init__(self, response: web.StreamResponse, name: str) -> None:
        self._response = response
        self.name = name
        self.bytes = 0

    def write(self, data: bytes | memoryview) -> int:
        """Send bytes; called in a worker thread. Raises BrokenPipeError if the browser is gone."""
        piece = bytes(data)
        try:
            anyio.from_thread.run(self._response.write, piece)
        except (ConnectionError, RuntimeError) as error:
            raise BrokenPipeError(str(error)) from error
        self.bytes += len(piece)
        return len(piece)

    def flush(self) -> None:
        """Do nothing: every write is sent."""


class Downloads:
    """The tickets that wait for the browser."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._waiting: dict[str, Download] = {}

    def offer(self, write: Write, *, file: str, seconds: float = TICKET_SECONDS) -> str:
        """Offer a download, and return its ticket."""
        now = time.monotonic()
        self._waiting = {ticket: download for ticket, download in self._waiting.items() if download.until > now}
        while len(self._waiting) >= MAX_TICKETS:
            del self._waiting[next(iter(self._waiting))]
        ticket = secrets.token_urlsafe(32)
        self._waiting[ticket] = Download(file, write, now + seconds)
        return ticket

    def offer_bytes(self, data: bytes, *, file: str, seconds: float) -> str:
        """Offer bytes as a download, and return the ticket."""

        async def write(stream: ResponseStream) -> None:
            await anyio.to_thread.run_sync(stream.write, data)

        return self.offer(write, file=file, seconds=seconds)

    def withdraw(self, ticket: str) -> None:
        """Take a ticket back."""
        self._waiting.pop(ticket, None)

    def waits(self, ticket: str) -> bool:
        """Return whether a ticket still holds."""
        return ticket in self._waiting and self._waiting[ticket].until > time.monotonic()

    async def answer(self, request: web.Request, ticket: str) -> web.StreamResponse:
        """Stream a download to the browser."""
        download = self._waiting.pop(ticket, None)
        if download is None or download.until < time.monotonic():
            raise web.HTTPNotFound
        welcome(request)
        plain, encoded = re.sub(r"[^A-Za-z0-9._-]", "_", download.file), quote(download.file, safe="")
        response = web.StreamResponse(
            headers={
                "Content-Type": "application/octet-stream",
                "Content-Disposition": f"attachment; filename={plain}; filename*=UTF-8''{encoded}",
                "Cache-Control": "no-store",
            }
        )
        response.enable_chunked_encoding()
        await response.prepare(request)
        stream = ResponseStream(response, download.file)
        complete = False
        try:
            await self._work.run(lambda: download.write(stream), abortable=True)
            complete = True
        finally:
            if not complete and request.transport is not None:
                request.transport.abort()  # the browser reports a failed download, not a short file
        return response
