"""Exchanges: operations as generators that yield requests and receive replies, and do no I/O themselves.

The contract does not require them. A driver written this way can be tested without a server, and one of its modules
sends all requests::

    def find(name: str) -> Exchange[str]:
        reply = yield from ask(get("/find", name=name))  # one request
        first, second = yield [get("/1"), get("/2")]  # several under way together
        ...

    class Driver:
        async def connect(self, profile: Profile, http: Http) -> Server:
            self._exchanges = Exchanges(http, reads=reads, retry_after=retry_after)
            return await self._exchanges.run(identify())
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

import anyio
import msgspec

from dragoman_api.changes import HttpRequest
from dragoman_api.errors import AuthenticationError, DragomanError, QueryError
from dragoman_api.json_text import encode
from dragoman_api.replies import Reply
from dragoman_api.wording import failure

from .rest import health
from .retries import BUDGET, PAUSES, SHORT_BUDGET, WRITE_PAUSES, jittered, send_patiently

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from dragoman_api.connections import Health
    from dragoman_api.http import Http

T = TypeVar("T")
R = TypeVar("R")

Exchange = Generator[Sequence[HttpRequest], Sequence[Reply], T]
"""An operation that yields requests which may be under way together, is sent their replies, and returns a result."""

AHEAD_SECONDS = 2.0
"""Seconds for which replies to requests that were sent ahead wait for the exchange that takes them, and the maximum
time that the exchange before it waits for them."""

MISREAD = (LookupError, TypeError, ValueError, AttributeError, RecursionError, msgspec.MsgspecError)
"""Errors of code that reads an answer which is not the expected JSON."""


def ask(request: HttpRequest) -> Exchange[Reply]:
    """Send one request and wait for its reply."""
    [reply] = yield (request,)
    return reply


def ask_all(requests: Sequence[HttpRequest], *, at_once: int) -> Exchange[tuple[list[Reply], str]]:
    """Send any number of requests, at most some of them at once, until one gets no answer.

    Returns:
        The replies to the first requests, and why there are no more; an empty text if each was answered.

    Raises:
        AuthenticationError: The server rejected the credentials.
    """
    replies: list[Reply] = []
    for start in range(0, len(requests), at_once):
        try:
            replies += yield requests[start : start + at_once]
        except AuthenticationError:
            raise
        except DragomanError as error:
            return replies, error.message
    return replies, ""


def get(path: str, /, **query: object) -> HttpRequest:
    """Build a GET request; parameters that are None are left out."""
    return HttpRequest("GET", with_query(path, **query))


def post(path: str, body: object = None) -> HttpRequest:
    """Build a POST request with a JSON body; searches use it too, since some proxies drop the body of a GET."""
    return HttpRequest("POST", path, None if body is None else encode(body))


def with_query(path: str, /, **query: object) -> str:
    """Add parameters to a path; those that are None are left out."""
    parameters = query and urlencode(
        {name: value for name, value in query.items() if value is not None}, quote_via=quote
    )
    return f"{path}?{parameters}" if parameters else path


class Exchanges:
    """Carries out the exchanges of one connection.

    Attributes:
        http: The client of the connection.
    """

    def __init__(
        self,
        http: Http,
        *,
        reads: Callable[[HttpRequest], bool],
        retry_after: Callable[[Reply], float | None],
        rejected: Callable[[AuthenticationError], AuthenticationError] = lambda error: error,
    ) -> None:
        """Set how requests are sent.

        Args:
            http: The client of the connection.
            reads: Returns whether a request changes nothing on the server; any other is sent once.
            retry_after: Returns the seconds that an answer asks to wait, 0 if it names none; None if waiting does not
                help.
            rejected: Returns what an exchange raises instead of an AuthenticationError.
        """
        self.http, self._reads, self._retry_after, self._rejected = http, reads, retry_after, rejected
        self._ahead: _Ahead | None = None

    async def run(
        self,
        exchange: Exchange[T],
        *,
        budget: float = BUDGET,
        pauses: Sequence[float] = PAUSES,
        limit: int | None = None,
    ) -> T:
        """Carry out an exchange, see `carry_out`; its reads are sent again while the server is busy.

        Args:
            exchange: The exchange.
            budget: Seconds from now in which a pause may end, as the host ends a call at its deadline.
            pauses: Seconds before each further attempt, with jitter, if the server names none.
            limit: The maximum size of one answer in bytes; None for the client's limit.
        """
        send = partial(self.send, pauses=pauses, until=anyio.current_time() + budget, limit=limit)
        try:
            return await carry_out(exchange, send, ahead=self._take_ahead if self._ahead else None)
        except AuthenticationError as error:
            raise self._rejected(error) from error

    async def run_ahead_of(self, following: Exchange[Any], exchange: Exchange[T]) -> T:
        """Carry out an exchange, and send the first requests of the one that follows together with its own.

        That saves a round trip where the requests of `following` are known before the result of `exchange` is, for
        example to read a definition while the server is identified. The next run of an exchange that begins with the
        same requests gets their replies. It sends them again if it begins with other ones, if it comes too late, or if
        the server was busy or gave no answer: what goes wrong with requests that were sent ahead is never an error.

        Args:
            following: The exchange that probably comes next. It is not carried out; only reads of it are sent.
            exchange: The exchange.

        Returns:
            The result of `exchange`.
        """
        try:
            requests = tuple(next(following))
        except (DragomanError, StopIteration):
            requests = ()
        finally:
            following.close()
        if not requests or not all(map(self._reads, requests)):
            return await self.run(exchange)
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._send_ahead, requests)
            try:
                result = await self.run(exchange)
            except Exception as error:  # noqa: BLE001 - raised below, outside of the group
                failure = error
                tasks.cancel_scope.cancel()
            else:
                tasks.cancel_scope.deadline = anyio.current_time() + AHEAD_SECONDS
        if failure is not None:
            raise failure
        return result

    async def _send_ahead(self, requests: tuple[HttpRequest, ...]) -> None:
        with suppress(DragomanError):
            replies = await send_all(requests, partial(self.send, pauses=()))
            if not any(reply.status == 401 or reply.status >= 500 or self._is_busy(reply) for reply in replies):
                self._ahead = _Ahead(requests, replies, anyio.current_time() + AHEAD_SECONDS)

    def _is_busy(self, reply: Reply) -> bool:
        return self._retry_after(reply) is not None

    def _take_ahead(self, requests: Sequence[HttpRequest]) -> Sequence[Reply] | None:
        """Return the replies to requests that were sent ahead, once; None if there are none, or no longer."""
        ahead = self._ahead
        if ahead is None:
            return None
        late = anyio.current_time() >= ahead.until
        if not late and tuple(requests) != ahead.requests:
            return None
        self._ahead = None  # also late ones for nobody: they may be large
        return None if late else ahead.replies

    async def send(
        self,
        request: HttpRequest,
        *,
        pauses: Sequence[float] = PAUSES,
        until: float | None = None,
        limit: int | None = None,
    ) -> Reply:
        """Send one request; send a read again while the server is busy.

        Args:
            request: The request.
            pauses: As for `run`.
            until: The latest time of the event loop at which a pause may end; `BUDGET` from now by default.
            limit: As for `run`.

        Returns:
            The last answer, whatever its status. It is a busy server's if the pauses are used up, or if the server asks
            for more time than is left.

        Raises:
            DragomanError: The request cannot be sent, or no complete answer came.
        """
        read = self._reads(request)
        if not read:  # it may change what was read ahead
            self._ahead = None
        return await send_patiently(
            self.http, request, self._retry_after, read=read, limit=limit, pauses=pauses, until=until
        )

    async def ping(self, exchange: Exchange[Health]) -> Health:
        """Carry out the exchange of a ping; an error becomes its result."""
        return await health(self.run(exchange, budget=SHORT_BUDGET))

    async def write(self, attempt: Callable[[], Exchange[bool]]) -> None:
        """Carry out attempts at a write, with pauses, until one returns that no row was turned away."""
        for pause in (*WRITE_PAUSES, 0.0):
            if not await self.run(attempt()) or not pause:
                break
            await anyio.sleep(jittered(pause))


class _Ahead(msgspec.Struct, frozen=True):
    """Replies to requests that were sent ahead of their exchange."""

    requests: tuple[HttpRequest, ...]
    replies: Sequence[Reply]
    until: float


async def carry_out(
    exchange: Exchange[T],
    send: Callable[[HttpRequest], Awaitable[Reply]],
    *,
    ahead: Callable[[Sequence[HttpRequest]], Sequence[Reply] | None] | None = None,
) -> T:
    """Send the requests of an exchange, pass it the replies, and return its result.

    Args:
        exchange: The exchange; it is closed in every case.
        send: Sends one request; its DragomanErrors are raised inside the exchange.
        ahead: Returns the replies to the first requests if these were sent before, else None.

    Raises:
        QueryError: An answer has a form that the exchange cannot read.
        DragomanError: The exchange raised it, or did not catch it.
    """
    try:
        requests = next(exchange)
        replies = ahead(requests) if ahead else None
        if replies is not None:
            requests = pass_on(exchange, replies)
        while True:
            try:
                replies = await send_all(requests, send)
            except DragomanError as error:
                requests = exchange.throw(error)
            else:
                requests = pass_on(exchange, replies)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        exchange.close()


def pass_on(exchange: Exchange[Any], replies: Sequence[Reply]) -> Sequence[HttpRequest]:
    """Pass an exchange the replies to its requests, and return the next ones.

    Raises:
        QueryError: They have a form that the exchange cannot read.
        StopIteration: The exchange ends.
    """
    try:
        return exchange.send(replies)
    except MISREAD as error:
        reason = f"the server's answer is not the expected JSON: {failure(error)}"
        raise QueryError(reason, hint="check Host and Port, and that the server's version is supported") from error


async def send_all(requests: Sequence[T], send: Callable[[T], Awaitable[R]], *, at_once: int = 8) -> list[R]:
    """Send requests together, and return their answers in the order of the requests.

    Args:
        requests: The requests.
        send: Sends one.
        at_once: The maximum number of requests under way.

    Raises:
        DragomanError: The first one that a request met; the others are cancelled.
    """
    if len(requests) == 1:
        return [await send(requests[0])]
    answers: dict[int, R] = {}
    failures: list[DragomanError] = []
    limiter = anyio.CapacityLimiter(at_once)

    async def one(at: int, request: T) -> None:
        async with limiter:
            try:
                answers[at] = await send(request)
            except DragomanError as error:
                failures.append(error)
                tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for at, request in enumerate(requests):
            tasks.start_soon(one, at, request)
    if failures:
        raise failures[0]
    return [answers[at] for at in range(len(requests))]


@asynccontextmanager
async def read_together(
    readers: Sequence[AsyncGenerator[T]], *, beside: Callable[[], Coroutine[Any, Any, None]] | None = None
) -> AsyncIterator[AsyncIterator[T]]:
    """Read several streams together, each one item ahead of what is taken.

    Args:
        readers: The streams; each of them is closed in every case.
        beside: Runs until the end, to keep something alive meanwhile.

    Yields:
        The items as they come. The first error of a stream is raised in its place. Leaving the context cancels what is
        under way.
    """
    give, take = anyio.create_memory_object_stream[T | _Failure](len(readers))
    # Entered by hand: `async with` would wrap the consumer's errors and GeneratorExit in an exception group.
    tasks = await anyio.create_task_group().__aenter__()
    try:
        with give, take:
            for reader in readers:
                tasks.start_soon(_read_ahead, reader, give.clone())
            give.close()
            if beside is not None:
                tasks.start_soon(beside)
            async with aclosing(_taken(take)) as items:
                yield items
    finally:
        tasks.cancel_scope.cancel()
        await tasks.__aexit__(None, None, None)


class _Failure(msgspec.Struct, frozen=True):
    error: Exception


async def _read_ahead(reader: AsyncGenerator[T], give: MemoryObjectSendStream[T | _Failure]) -> None:
    with give:
        try:
            async with aclosing(reader):
                async for item in reader:
                    await give.send(item)
        except Exception as error:  # noqa: BLE001 - a task that failed would cancel its owner in the middle of a yield
            await give.send(_Failure(error))


async def _taken(take: MemoryObjectReceiveStream[T | _Failure]) -> AsyncGenerator[T, None]:
    async for item in take:
        if isinstance(item, _Failure):
            raise item.error
        yield item


def unsure(status: int, *, turned_away: bool = False) -> bool:
    """Return whether a write may have been carried out in spite of an error answer.

    It may after 408 and 5xx: a server can fail after a part of its work, and a gateway's 502, 503 or 504 can come after
    the server did all of it. Any other 3xx or 4xx says that the request was judged and not carried out.

    >>> unsure(502), unsure(408), unsure(503, turned_away=True), unsure(429), unsure(404)
    (True, True, False, False, False)

    Args:
        status: The HTTP status.
        turned_away: The body says that the server was too busy to begin.
    """
    return status == 408 or status < 200 or (status >= 500 and not turned_away)
