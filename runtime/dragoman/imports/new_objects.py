"""What is confirmed before a table is loaded, and new objects: their types, and the creation that the driver plans."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import msgspec
from anyio.to_thread import run_sync

from dragoman_api.changes import NewColumn, NewObject
from dragoman_api.columns import ColumnKind, Description
from dragoman_api.console import ConsoleRequest
from dragoman_api.errors import QueryError, UnsupportedOperationError

from .records import DocumentInserts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman.sessions.session import Session
    from dragoman_api.changes import Plan, PlannedRequest

    from .readers import FileRows
    from .readings import FieldReadings
    from .records import Record, Wishes

TYPES_UNCONFIRMED = "types-unconfirmed"
"""The code of the error for a new object whose types nobody has confirmed."""

READINGS_UNCONFIRMED = "readings-unconfirmed"
"""The code of the error for fields that do not stand for themselves, and whose reading nobody has confirmed."""

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


class ReadingChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A reading that fits values of a column.

    Attributes:
        reading: Its name.
        type: The type that its values have.
        field: A field of the file.
        value: What the reading makes of it.
        misfits: How many of the values do not fit.
    """

    reading: str
    type: ColumnKind
    field: str
    value: str
    misfits: int


class ColumnProposal(msgspec.Struct, frozen=True, kw_only=True):
    """How the fields of one column of a table are read, and the type of the column that receives them.

    Attributes:
        column: The column of the file.
        name: The name of the column that receives its values.
        type: The type of that column. A proposed one fits every value that was looked at.
        repeated: Every value is an array of such values.
        source: Who says so: the values that were looked at (``rows``), the file itself, the caller, or the object,
            which exists.
        values: How many of the rows have a value.
        examples: Some values.
        nearly: Another type, which fits most values; None if there is none.
        nearly_reading: The reading with which it does; empty if the values stand for themselves.
        misfits: Some values that do not fit `nearly`; if there is none, those that do not fit `type`, and are rejected.
        reading: How fields of the file are read; empty if they stand for themselves.
        consent: The caller says the reading, or that there is none.
        readings: What other readings would make of the fields, and `reading` itself.
        doubt: Why no reading is proposed, although some fit; empty if there is no doubt.
    """

    column: str
    name: str
    type: ColumnKind
    repeated: bool = False
    source: Literal["rows", "file", "caller", "object"]
    values: int
    examples: tuple[str, ...] = ()
    nearly: ColumnKind | None = None
    nearly_reading: str = ""
    misfits: tuple[str, ...] = ()
    reading: str = ""
    consent: bool = False
    readings: tuple[ReadingChoice, ...] = ()
    doubt: str = ""

    @property
    def likely_reading(self) -> str:
        """The proposed reading, or those that fit most values, with bars between them, where there is a doubt."""
        least = min((choice.misfits for choice in self.readings), default=0)
        fitting = [choice.reading for choice in self.readings if choice.misfits == least]
        return self.reading or "|".join(fitting) or "plain"


class TypeProposal(msgspec.Struct, frozen=True, kw_only=True):
    """The types of the columns of a new object, and how the fields of the file are read.

    Attributes:
        object: The name of the object.
        rows: The number of rows that were looked at.
        whole: These are all rows of the file.
        columns: The columns that are written; of an object that exists, those of numbers, times and truths.
        exists: The object exists, and says the types.
    """

    object: str
    rows: int
    whole: bool
    columns: tuple[ColumnProposal, ...]
    exists: bool = False

    @property
    def guessed(self) -> list[ColumnProposal]:
        """The columns whose type neither the file nor the caller says."""
        return [column for column in self.columns if column.source == "rows"]

    @property
    def unsaid(self) -> list[ColumnProposal]:
        """The columns whose reading, or the doubt about it, nobody has confirmed."""
        return [column for column in self.columns if not column.consent and (column.reading or column.doubt)]

    @property
    def undecided(self) -> list[ColumnProposal]:
        """The columns of another type than text with a doubt that somebody has to settle: consent does not."""
        return [column for column in self.unsaid if column.doubt and column.source != "rows"]

    @property
    def field_readings(self) -> FieldReadings:
        """What reads the fields, by the columns of the file."""
        return {column.column: [column.reading, str(column.type)] for column in self.columns if column.reading}

    def new_columns(self, row_id: str | None) -> list[NewColumn]:
        """Return the columns as a driver makes them; the values of the file's column `row_id` become the ids."""
        return [
            NewColumn(column.name, column.type, repeated=column.repeated, is_id=column.column == row_id)
            for column in self.columns
        ]


async def plan_for_rows(
    session: Session,
    rows: FileRows,
    wishes: Wishes,
    *,
    like: str,
    proposal: TypeProposal | None,
) -> PlannedRequest:
    """Return the request that creates an object as its first rows need it.

    Args:
        session: The open connection.
        rows: The rows, which are read again later.
        wishes: What the load says of the object and its columns.
        like: The structure of an object that the new one shall have; empty to look at the rows.
        proposal: The confirmed types of a table's columns; None for documents.

    Raises:
        ConfigurationError: The file cannot be used.
        UnsupportedOperationError: The driver creates no objects.
        QueryError: The driver cannot create this one.
    """
    samples: list[str] = []
    columns = [] if proposal is None else proposal.new_columns(wishes.id)
    if not like and proposal is None:
        first = await run_sync(rows.look_ahead, SAMPLES, abandon_on_cancel=True)
        samples = sampled(first, wishes, rows=rows.format in ("rows", "bulk"))
    plan = await plan_new(session, NewObject(wishes.object, like, samples, columns))
    return plan.planned[0]


async def plan_new(session: Session, new: NewObject) -> Plan:
    """Return the plan of the request that creates an object.

    Raises:
        UnsupportedOperationError: The driver creates no objects.
        QueryError: The driver cannot create this one.
    """
    plan = await session.plan(new=new)
    if not plan.planned:
        text = f"{new.name!r} does not exist, and the driver {session.plugin} does not make objects"
        raise UnsupportedOperationError(text, hint="make it first, then load the rows into it")
    return plan


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
