"""Exchanges: operations as generators that yield requests and receive answers, and do no I/O themselves.

The contract does not require them. A driver written this way can be tested without a server, and one of its modules
sends all requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from .errors import DragomanError, QueryError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")
Result = TypeVar("Result")
T = TypeVar("T")


class Reply(Protocol):
    """A server's answer to one request, as `dragoman_api.http` returns it."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, case-insensitive."""

    @property
    def body(self) -> bytes:
        """The whole body."""


_BUSY = (0.25, 0.5, 1, 2, 4, 8, 8, 8)  # seconds before each attempt, if the server is busy
_AWAY = (0.2, 0.6, 1.8)  # if no answer came
_PATIENCE = 75.0  # seconds without an answer; the host gives up soon after
_REDIRECTS = (301, 302, 303, 307, 308)
_MISREAD = (LookupError, TypeError, ValueError, AttributeError, RecursionError, msgspec.MsgspecError)
_encoder = msgspec.json.Encoder(decimal_format="number")


def encode(value: object) -> str:
    """Encode JSON text; Decimal keeps its digits, Raw its bytes."""
    return _encoder.encode(value).decode()


def decode(text: bytes | str, kind: type[T] | msgspec.json.Decoder[T]) -> T:
    """Decode untrusted JSON text, by type or decoder; integers keep every digit, and Raw parts are valid UTF-8.

    Raises:
        ValueError: The text is not JSON, not of that type, not UTF-8, nested too deeply, or has a number out of range.
    """
    if isinstance(text, str):
        text = text.encode()  # msgspec rejects subclasses of str
    elif not text.isascii():
        text.decode()
    try:
        return kind.decode(text) if isinstance(kind, msgspec.json.Decoder) else msgspec.json.decode(text, type=kind)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def indented(text: bytes) -> str:
    """Indent untrusted JSON text. Raises ValueError as `decode` does."""
    try:
        return msgspec.json.format(text, indent=2).decode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def redirection(reply: Reply) -> str:
    """Return a hint about an answer that redirects; empty for any other answer."""
    to = reply.headers.get("Location") if reply.status in _REDIRECTS else None
    return (
        f"it redirects to {to}, and redirects are not followed; if the database is there, enter that address"
        if to
        else ""
    )


@dataclass(slots=True)
class Patience:
    """The pauses of a read that is sent again, until another attempt is pointless.

    An export reads each of its parts with one: the server may be busy or away for a while, and what has been read would
    be lost. It gives up a little before the host does.
    """

    _failures: int = 0
    _waited: float = 0.0

    def pause(self, error: DragomanError, *, away: bool) -> float | None:
        """Return the seconds to wait after a failed attempt; None to give up.

        Args:
            error: The failure. The detail ``retry_after`` says that the server is busy, and the seconds that it asks
                for, or 0.
            away: The failure may pass although the server did not say that it is busy.
        """
        busy = "retry_after" in error.details
        pauses = _BUSY if busy else _AWAY if away else ()
        pause = max([float(str(error.details.get("retry_after", 0))), *pauses[self._failures : self._failures + 1]])
        if self._failures >= len(pauses) or self._waited + pause > _PATIENCE:
            return None
        self._failures, self._waited = self._failures + 1, self._waited + pause
        return pause

    def renew(self) -> None:
        """Forget the failures: an attempt succeeded."""
        self._failures, self._waited = 0, 0.0


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
        asked = next(exchange)
        while True:
            try:
                answered = await send(asked)
            except DragomanError as error:
                asked = exchange.throw(error)
            else:
                asked = _read(exchange, answered)
    except StopIteration as end:
        result: Result = end.value
        return result
    finally:
        exchange.close()


def _read(exchange: Generator[Asked, Answered, Result], answered: Answered) -> Asked:
    try:
        return exchange.send(answered)
    except _MISREAD as error:
        reason = f"the server's answer is not the expected JSON: {type(error).__name__}: {error}"
        raise QueryError(reason, hint="check Host and Port, and that the server's version is supported") from error
