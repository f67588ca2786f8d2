"""Retries: how long a driver waits before it sends again what a busy server turned away, and when it gives up."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import anyio
import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dragoman_api.changes import HttpRequest
    from dragoman_api.errors import DragomanError
    from dragoman_api.http import Http
    from dragoman_api.replies import Reply, Response

PAUSES = (0.2, 0.6, 1.8)
"""Seconds before each further attempt of a read that a busy server turned away."""

WRITE_PAUSES = (*PAUSES, 5.4)
"""Seconds before rows that a busy server turned away are sent again."""

BUDGET = 30.0
"""Seconds after the beginning of an operation in which its reads are sent again, whatever the server asks for."""

SHORT_BUDGET = 5.0
"""The same for a ping, whose deadline is shorter, and for each request of a `RestClient`: a hook may send several."""

_BUSY = (0.25, 0.5, 1, 2, 4, 8, 8, 8)  # seconds before each attempt, if the server is busy
_AWAY = (0.2, 0.6, 1.8)  # if no answer came
_PATIENCE = 75.0  # seconds without an answer; the host gives up soon after


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


class Patience(msgspec.Struct):
    """The pauses of a read that is sent again, until another attempt is pointless.

    An export reads each of its parts with one: the server may be busy or unavailable for a while, and what has been
    read would be lost. It gives up a little before the host does.
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
