"""A fake database that can lose answers: it does the work, and then a gateway answers or the connection ends."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, TypeVar

from aiohttp import web
from aiohttp.test_utils import TestServer

from dragoman_api import HttpRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator


class LossyServer:
    """A server with a log of the requests that arrived.

    Attributes:
        log: These requests, a growing list.
        app: The routes; a subclass adds its own.
        said: The name under which the server writes an error.
    """

    said = "message"

    def __init__(self) -> None:
        self.log: list[HttpRequest] = []
        self.app = web.Application(middlewares=[self._note])
        self._lost: tuple[HttpRequest, int] | None = None
        self._begin = 0

    @contextmanager
    def lose(self, request: HttpRequest, status: int) -> Iterator[None]:
        """Lose the answers from one request on: a gateway answers with a status, or the connection ends if it is 0."""
        self._lost, self._begin = (request, status), len(self.log)
        try:
            yield
        finally:
            self._lost = None

    @web.middleware
    async def _note(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        body, kind = await request.text() or None, request.headers.get("Content-Type", "application/json")
        self.log.append(HttpRequest(request.method, request.raw_path, body, kind))
        done = await handler(request)
        if self._lost is None or self._lost[0] not in self.log[self._begin :]:
            return done
        if self._lost[1] == 0 and request.transport is not None:
            request.transport.close()
        return web.json_response({self.said: "gateway"}, status=self._lost[1] or 502)


Lossy = TypeVar("Lossy", bound=LossyServer)


@asynccontextmanager
async def serving(store: Lossy) -> AsyncIterator[tuple[Lossy, str, int]]:
    """Serve a fake on a free port, and yield it with host and port."""
    async with TestServer(store.app) as server:
        yield store, str(server.host), server.port or 0
