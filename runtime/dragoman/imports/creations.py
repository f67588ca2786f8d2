"""Objects that are created for a load: the driver plans the request, which is sent like one of a console."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dragoman_api.columns import Description
from dragoman_api.console import ConsoleRequest
from dragoman_api.errors import QueryError, UnsupportedOperationError

from .row_documents import DocumentInserts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman.sessions.session import Session
    from dragoman_api.changes import NewObject, PlannedRequest

    from .records import Record
    from .row_documents import Wishes

SAMPLES = 200
"""The number of rows that show a driver what the object has to hold."""

_SAID = 1_000  # characters of a server's answer in a message


def sampled(records: Iterable[Record], wishes: Wishes, *, rows: bool) -> list[str]:
    """Return rows as JSON texts, with the new names of their columns; unreadable rows are left out."""
    maker, texts = DocumentInserts(wishes, Description(object=wishes.object, columns=[])), []
    for record in records:
        with suppress(ValueError, RecursionError):
            if record.fault or not isinstance(record.data, bytes):
                continue
            if rows:
                texts.append(record.data.rpartition(b"\n")[2].decode())
            else:
                maker.fill(record)
                texts.append(record.document or "")
    return texts


async def plan_object(session: Session, new: NewObject) -> PlannedRequest:
    """Return the request that creates an object.

    Raises:
        UnsupportedOperationError: The driver creates no objects.
        QueryError: The driver cannot create this one.
    """
    plan = await session.plan(new=new)
    if not plan.planned:
        text = f"{new.name!r} does not exist, and the driver {session.plugin} does not make objects"
        raise UnsupportedOperationError(text, hint="make it first, then import without --create")
    return plan.planned[0]


async def make_object(session: Session, name: str, planned: PlannedRequest) -> None:
    """Send the request that creates an object; guards see it as a write.

    Raises:
        QueryError: The server refused the request.
        DragomanError: A guard vetoed the request, or no answer came.
    """
    answer = await session.execute(ConsoleRequest(request=planned.request, writes=True))
    if answer.failed or not 200 <= answer.status < 300:
        reason = answer.failed or " ".join(answer.text.split())[:_SAID]
        raise QueryError(f"{name!r} was not made: HTTP {answer.status} {reason}", details={"status": answer.status})
