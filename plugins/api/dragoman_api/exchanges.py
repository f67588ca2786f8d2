"""Exchanges: an operation as a generator that yields requests and is sent what was answered; it does no I/O itself.

The contract asks for nothing like it. A driver that is written so can be tried without a server, and one module of it
does all the sending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from .errors import DragomanError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")
Result = TypeVar("Result")


class Reply(Protocol):
    """What a server answered to one request, as `dragoman_api.http` gives it."""

    @property
    def status(self) -> int:
        """Give the HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Give the headers, case-insensitive."""

    @property
    def body(self) -> bytes:
        """Give the whole body."""


_encoder = msgspec.json.Encoder(decimal_format="number")


def encode(value: object) -> str:
    """Write JSON text; Decimal keeps its digits, Raw its bytes."""
    return _encoder.encode(value).decode()


async def carry_out(
    exchange: Generator[Asked, Answered, Result], send: Callable[[Asked], Awaitable[Answered]]
) -> Result:
    """Send what an exchange yields, hand it what is answered, and give its result.

    Args:
        exchange: Closed on every way out.
        send: Sends what was yielded, one request or several; a DragomanError of it is raised inside the exchange.

    Raises:
        DragomanError: What the exchange raised, or let through.
    """
    try:
        asked = next(exchange)
        while True:
            try:
                answered = await send(asked)
            except DragomanError as error:
                asked = exchange.throw(error)
            else:
                asked = exchange.send(answered)
    except StopIteration as end:
        result: Result = end.value
        return result
    finally:
        exchange.close()
