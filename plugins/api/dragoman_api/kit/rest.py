"""Requests of a driver that speaks REST: sent with what all of them carry, checked, and read as a type.

    class Driver(RestClient):
        async def _books(self) -> list[Book]:
            return await self.ask(HttpRequest("POST", "/search", '{"of": "books"}'), list[Book])

The mixins whose hooks send requests send them so: `RestConsole`, `WholeRows` and `PingByPath`.
"""

from __future__ import annotations

import random
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import anyio

from dragoman_api.connections import Health
from dragoman_api.errors import DragomanError, QueryError
from dragoman_api.json_text import decode
from dragoman_api.replies import seconds_asked
from dragoman_api.wording import failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from dragoman_api.changes import HttpRequest
    from dragoman_api.http import Http
    from dragoman_api.replies import Reply, Response

T = TypeVar("T")

PAUSES = (0.2, 0.6, 1.8)
"""Seconds before each further attempt of a read that a busy server turned away."""

BUDGET = 30.0
"""Seconds after the beginning of an operation in which its reads are sent again, whatever the server asks for."""

SHORT_BUDGET = 5.0
"""The same for a ping, whose deadline is shorter, and for each request of a `RestClient`: a hook may send several."""


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


async def send_patiently(
    http: Http,
    request: HttpRequest,
    retry_after: Callable[[Reply], float | None],
    *,
    read: bool,
    headers: Mapping[str, str] | None = None,
    limit: int | None = None,
    pauses: Sequence[float] = PAUSES,
    until: float | None = None,
) -> Response:
    """Send a request, and a read again after a pause while the server is busy.

    Args:
        http: The client.
        request: The request.
        retry_after: Returns the seconds that an answer asks to wait, 0 if it names none; None if waiting does not help.
        read: The request changes nothing on the server; any other is sent once.
        headers: As for `Http.request`.
        limit: As for `Http.request`.
        pauses: Seconds before each further attempt where the server names none.
        until: The latest time of the event loop at which a pause may end; `BUDGET` from now by default.

    Returns:
        The last answer, whatever its status. It is a busy server's if the pauses are used up, or if the server asks for
        more time than is left.

    Raises:
        As `Http.request`.
    """
    until = anyio.current_time() + BUDGET if until is None else until
    for pause in (*pauses, None) if read else (None,):
        reply = await http.request(
            request.method,
            request.path,
            body=request.body,
            content_type=request.content_type,
            headers=headers,
            read=read,
            limit=limit,
        )
        if pause is None or (server_pause := retry_after(reply)) is None:
            break
        seconds = server_pause or jittered(pause)
        if anyio.current_time() + seconds > until:
            break
        await anyio.sleep(seconds)
    return reply


def jittered(pause: float) -> float:
    """Return a pause half shorter to half longer: callers that were turned away together come back one by one."""
    return pause * (0.5 + random.random())  # noqa: S311 - jitter


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
