"""Requests of a driver that speaks REST: sent with what all of them carry, checked, and read as a type.

    class Driver(RestClient):
        async def _books(self) -> list[Book]:
            return await self.ask(HttpRequest("POST", "/search", '{"of": "books"}'), list[Book])

The mixins whose hooks send requests send them so: `RestConsole`, `WholeRows` and `PingByPath`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import anyio

from dragoman_api.connections import Health
from dragoman_api.errors import DragomanError, QueryError
from dragoman_api.json_text import decode
from dragoman_api.replies import seconds_asked
from dragoman_api.wording import failure

from .retries import SHORT_BUDGET, send_patiently

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Mapping

    from dragoman_api.changes import HttpRequest
    from dragoman_api.http import Http
    from dragoman_api.replies import Reply, Response

T = TypeVar("T")


class RestClient:
    """Sends the requests of a driver.

    Attributes:
        http: The client, which the driver sets in `connect`.
        headers: Headers of every request besides those of the client, such as a key in a header of the server's own.
        busy: Statuses with which the server says that it is too busy: a read is sent again after a pause.
    """

    http: Http
    headers: Mapping[str, str] = MappingProxyType({})
    busy: Collection[int] = (429,)

    async def send(self, request: HttpRequest, *, read: bool | None = None) -> Response:
        """Send one request, a read again while the server is busy, and return the last answer, whatever its status.

        Args:
            request: The request.
            read: As for `Http.request`.

        Raises:
            As `Http.request`.
        """
        return await send_patiently(
            self.http,
            request,
            lambda reply: seconds_asked(reply) if reply.status in self.busy else None,
            read=request.method in ("GET", "HEAD") if read is None else read,
            headers=self.headers,
            until=anyio.current_time() + SHORT_BUDGET,
        )

    async def ask(self, request: HttpRequest, kind: type[T]) -> T:
        """Send one request that changes nothing on the server, and read its answer.

        Args:
            request: The request.
            kind: The type of the answer's JSON.

        Raises:
            As `send` and `read`.
        """
        return self.read(await self.send(request, read=True), kind)

    def read(self, reply: Reply, kind: type[T]) -> T:
        """Return the JSON of a success as a type.

        Raises:
            DragomanError: The status is not a success, see `error`.
            QueryError: The answer is not JSON of this type.
        """
        try:
            return decode(self.check(reply).body, kind)
        except ValueError as error:
            reason = f"the answer of {self.http.profile.where} cannot be read: {failure(error)}"
            raise QueryError(reason) from error

    def check(self, reply: Reply) -> Reply:
        """Return an answer, or raise the error of any status that is not a success."""
        if 200 <= reply.status < 300:
            return reply
        raise self.error(reply)

    def error(self, reply: Reply) -> DragomanError:
        """Return the error that a status stands for; override it for what only this server's statuses mean."""
        return self.http.error(reply)


async def health(check: Awaitable[object]) -> Health:
    """Return what a ping answers: an error of the check is its answer, not an exception.

    Args:
        check: Asks the server for something that needs the credentials.
    """
    try:
        await check
    except DragomanError as error:
        return Health(ok=False, reason=error.message, code=error.code)
    return Health(ok=True)
