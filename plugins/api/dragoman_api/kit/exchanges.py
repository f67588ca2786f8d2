"""Exchanges: operations as generators that yield requests and receive answers, and do no I/O themselves.

The contract does not require them. A driver written this way can be tested without a server, and one of its modules
sends all requests.
"""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import msgspec

from dragoman_api.errors import DragomanError, QueryError
from dragoman_api.wording import failure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Sequence

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")
Result = TypeVar("Result")
T = TypeVar("T")

MISREAD = (LookupError, TypeError, ValueError, AttributeError, RecursionError, msgspec.MsgspecError)
"""Errors of code that reads an answer which is not the expected JSON."""


async def send_all(
    requests: Sequence[Asked], send: Callable[[Asked], Awaitable[Answered]], *, at_once: int = 8
) -> list[Answered]:
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
    answers: dict[int, Answered] = {}
    failures: list[DragomanError] = []
    limiter = anyio.CapacityLimiter(at_once)

    async def one(at: int, request: Asked) -> None:
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


async def carry_out(
    exchange: Generator[Asked, Answered, Result], send: Callable[[Asked], Awaitable[Answered]]
) -> Result:
    """Send the requests of an exchange, pass it the answers, and return its result.

    Args:
        exchange: The exchange; it is closed in every case.
        send: Sends the yielded request or requests; its DragomanErrors are raised inside the exchange.

    Raises:
        QueryError: An answer has a form that the exchange cannot read.
        DragomanError: The exchange raised it, or did not catch it.
    """
    try:
        request = next(exchange)
        while True:
            try:
                answered = await send(request)
            except DragomanError as error:
                request = exchange.throw(error)
            else:
                request = _read(exchange, answered)
    except StopIteration as end:
        result: Result = end.value
        return result
    finally:
        exchange.close()


def _read(exchange: Generator[Asked, Answered, Result], answered: Answered) -> Asked:
    try:
        return exchange.send(answered)
    except MISREAD as error:
        reason = f"the server's answer is not the expected JSON: {failure(error)}"
        raise QueryError(reason, hint="check Host and Port, and that the server's version is supported") from error
