"""The nodes of one cluster: which one is asked next, for how long, and what was wrong with the others."""

from __future__ import annotations

import math
import ssl
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, TypeVar

import anyio
import msgspec

from . import _http_profile, tls
from .columns import Note
from .connections import Profile
from .errors import ConfigurationError, ConnectionFailedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .errors import Detail

CALL_ENDS: ContextVar[float] = ContextVar("CALL_ENDS", default=math.inf)
"""The time of the event loop at which the host gives up on the present call: no node may use up all of it."""

AWAY = (502, 503, 504)
"""Statuses of a node, or of a gateway before it, that serves nothing at the moment."""

_REST = 30.0  # seconds for which a node that failed is asked last


class Answered(Protocol):
    """An answer, whole or still arriving."""

    @property
    def status(self) -> int:
        """The HTTP status."""


T = TypeVar("T", bound=Answered)


class Node(msgspec.Struct, eq=False):
    """One host and port of a connection.

    Attributes:
        profile: The connection as if this node were its only one.
        origin: Scheme, host, port and path prefix, the host as sent.
        tls: How its certificate is checked; None for plain HTTP.
        fault: What was wrong with it when it was asked last; empty if it answered.
        rests_until: The time of the event loop until which it is asked last.
    """

    profile: Profile
    origin: str
    tls: ssl.SSLContext | None
    fault: str = ""
    rests_until: float = 0.0


class Nodes:
    """The nodes of a connection, in the order in which a person entered them."""

    def __init__(self, profile: Profile) -> None:
        """Read a connection's hosts. Raises ConfigurationError if they are no addresses."""
        try:
            endpoints = profile.endpoints
        except ValueError as error:
            raise ConfigurationError(f"hosts: {error}", hint="enter host:port, separated by commas") from error
        profiles = [msgspec.structs.replace(profile, host=host, port=port) for host, port in endpoints]
        unpinned = [node_profile for node_profile in profiles if not node_profile.pinned_certificate]
        usual = tls.context(unpinned[0]) if unpinned else None
        self._nodes = [
            Node(
                node_profile,
                _http_profile.origin(node_profile),
                tls.context(node_profile) if node_profile.pinned_certificate else usual,
            )
            for node_profile in profiles
        ]
        self._current = 0

    @property
    def first(self) -> Node:
        """The node that answered last, or the first one."""
        return self._nodes[self._current]

    def notes(self) -> list[Note]:
        """Return a note for each node that failed a short while ago."""
        failed = [node for node in self._nodes if node.fault]
        now = anyio.current_time() if failed else 0.0
        return [Note(code="node-away", reason=node.fault) for node in failed if now < node.rests_until]

    async def ask(
        self,
        send: Callable[[Node, float, float | None], Awaitable[T]],
        *,
        seconds: float,
        read: bool,
        drop: Callable[[T], None] | None = None,
    ) -> T:
        """Send a request to one node after the other until one answers.

        A read goes on to the next node after any failure of the network, and after a status of `AWAY`. Anything else
        goes on only if it certainly has not been sent. Each node gets an equal share of the time that is left.

        Args:
            send: Sends it to a node, given seconds for the answer and to connect (None for the usual ones).
            seconds: Seconds for all nodes together.
            read: The request changes nothing on the server.
            drop: Ends an answer that is not wanted, if it is still arriving.

        Raises:
            ConnectionFailedError: No node answered; the message tells the fault of each.
        """
        if len(self._nodes) == 1:
            return await send(self.first, seconds, None)
        until, order, failures, away = _until(seconds), self._order(), list[ConnectionFailedError](), 0
        for at, node in enumerate(order):
            whole = until - anyio.current_time()
            share = max(whole / (len(order) - at), 0.0)
            try:
                answer = await send(node, share if read else whole, share)
            except ConnectionFailedError as error:
                failures.append(self._failed(node, error))
                if not read and error.details.get("sent") is not False:
                    break
            else:
                if answer.status not in AWAY:
                    node.fault, node.rests_until, self._current = "", 0.0, self._nodes.index(node)
                    return answer
                gone = ConnectionFailedError(f"{node.profile.where}: HTTP {answer.status}", details={"sent": True})
                failures.append(self._failed(node, gone))
                away += 1
                if not read or away == len(order):  # the caller may wait for a cluster that is busy
                    return answer
                if drop is not None:
                    drop(answer)
        raise told(failures)

    def _order(self) -> list[Node]:
        now, ahead = anyio.current_time(), self._nodes[self._current :] + self._nodes[: self._current]
        return sorted(ahead, key=lambda node: now < node.rests_until)

    def _failed(self, node: Node, error: ConnectionFailedError) -> ConnectionFailedError:
        node.fault, node.rests_until = error.message.removeprefix(error.prefix), anyio.current_time() + _REST
        return error


def told(failures: list[ConnectionFailedError]) -> ConnectionFailedError:
    """Return one error for the failures of all nodes that were asked."""
    if len(failures) == 1:
        return failures[0]
    reasons = [error.message.removeprefix(error.prefix) for error in failures]
    details: dict[str, Detail] = {}
    for error in failures:
        details |= error.details
    details["sent"] = any(error.details.get("sent") is not False for error in failures)
    helpful = next((error for error in failures if error.hint or error.remedies), failures[0])
    text = "; ".join(reasons)
    return ConnectionFailedError(text, hint=helpful.hint, remedies=helpful.remedies, details=details)


def _until(seconds: float) -> float:
    now = anyio.current_time()
    ends = CALL_ENDS.get()
    return min(now + seconds, ends) if ends > now else now + seconds
