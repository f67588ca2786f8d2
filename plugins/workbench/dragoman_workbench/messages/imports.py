"""Messages of imports and copies: a file that the browser sent, what it holds, and what becomes of its rows."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from dragoman_api.columns import ColumnKind, Note

from .base import ColumnName, Name, ObjectName, Request, RequestFailure, RouteAnswer, Ticket
from .rows import RowsAsked

MAX_COLUMNS = 4_096
"""Maximum number of columns that an import renames or whose types it says."""

Columns = Annotated[dict[str, Annotated[str, Meta(max_length=4_096)]], Meta(max_length=MAX_COLUMNS)]
FileFormat = Literal["documents", "json", "rows", "csv", "tsv", "bulk", "parquet"]


class Uploaded(RouteAnswer, frozen=True, kw_only=True):
    """A file that was received; `id` stands for it until it is discarded, or imported."""

    id: str
    name: str
    bytes: int


class UploadNamed(Request, frozen=True, kw_only=True):
    """A file that was received."""

    upload: Ticket


class ImportPreviewAsked(Request, frozen=True, kw_only=True):
    """How a file is read, as `dragoman.load` takes it.

    Attributes:
        object: The object that receives the rows; it may be missing.
        renamed: New names of the file's columns by their old ones; an empty one leaves the column out.
        types: The types of columns of an object that is to be made, by their new names.
        readings: How fields are read, by the file's columns, as `dragoman.load` takes it.
    """

    connection: Name
    object: ObjectName
    upload: Ticket
    format: FileFormat | None = None
    delimiter: Annotated[str, Meta(min_length=1, max_length=1)] | None = None
    encoding: Annotated[str, Meta(max_length=40)] | None = None
    id: ColumnName | None = None
    renamed: Columns = {}
    types: Columns = {}
    readings: Columns = {}


class PreviewedRow(RouteAnswer, frozen=True, kw_only=True):
    """One of the first rows; long texts are cut."""

    number: int
    fields: list[str | None]
    text: str
    fault: str


class OfferedReading(RouteAnswer, frozen=True, kw_only=True):
    """A reading that fits values of a column: what it makes of a field, and how many values it does not fit."""

    reading: str
    type: ColumnKind
    field: str
    value: str
    misfits: int


class ProposedColumn(RouteAnswer, frozen=True, kw_only=True):
    """The type of a column and how its fields are read, with the evidence; see `dragoman.TypeProposal`."""

    column: str
    name: str
    type: ColumnKind
    repeated: bool
    source: Literal["rows", "file", "caller", "object"]
    values: int
    examples: list[str]
    nearly: ColumnKind | None
    nearly_reading: str
    misfits: list[str]
    reading: str
    consent: bool
    readings: list[OfferedReading]
    doubt: str


class Proposal(RouteAnswer, frozen=True, kw_only=True):
    """Types for a new object, and readings of fields, after a look at some rows."""

    rows: int
    whole: bool
    columns: list[ProposedColumn]


class TargetColumn(RouteAnswer, frozen=True, kw_only=True):
    """A column of the object that receives the rows; `writable` says whether an insert may name it."""

    name: str
    type: str
    key: bool
    writable: bool


class ImportPreviewed(RouteAnswer, frozen=True, kw_only=True):
    """What a file holds.

    Attributes:
        likely: The character that seems to separate the fields instead; empty if the delimiter does.
        likely_encoding: The encoding that the file seems to have; empty if all rows looked at are UTF-8.
        names: The columns of a table; empty for documents.
        ids: The columns whose value can become the row's id.
        whole: The rows are all rows of the file.
        proposal: For a table, the types of a new object and how its fields are read; if the object exists, the columns
            of numbers, times and truths, and how their fields are read.
        exists: The object is there; `columns` are its columns.
        tenants: The object may have tenants, one of which receives the rows.
    """

    format: str
    compression: str | None
    delimiter: str
    likely: str
    likely_encoding: str
    names: list[str]
    ids: list[str]
    rows: list[PreviewedRow]
    whole: bool
    proposal: Proposal | None
    exists: bool
    tenants: bool
    columns: list[TargetColumn]


class ImportAsked(ImportPreviewAsked, frozen=True, kw_only=True):
    """Import a file.

    Attributes:
        create: Make the object if it is missing, with `types` for a table.
        undo: Keep a file of changes that take the import back.
        dry_run: Send nothing, and show the first requests.
    """

    on_conflict: Literal["fail", "skip", "overwrite"] = "fail"
    create: bool = False
    undo: bool = True
    dry_run: bool = False
    tenant: Annotated[str, Meta(min_length=1, max_length=4_096)] | None = None


class CopyPlanAsked(RowsAsked, frozen=True, kw_only=True):
    """Rows to copy to another connection, which is open, too.

    Attributes:
        target: The connection that receives them.
        object: Its object, which may be missing.
        renamed: New names of columns by their old ones; an empty name leaves the column out.
        ids: What becomes of the ids in another type of database; None to choose what loses nothing, else to ask.
    """

    target: Name
    object: ObjectName
    renamed: Columns = {}
    ids: Literal["keep", "derive", "new"] | None = None


class CopyColumn(RouteAnswer, frozen=True, kw_only=True):
    """What becomes of a column in a copy.

    Attributes:
        target: Its type where it goes; None if the object there has no such column.
        to: The name of the column that receives its values; empty if it is left out.
        reason: Why it is left out, or what changes; empty if it is carried as it is.
        consent: The request agrees to that.
        lost: It is left out under any name.
    """

    name: str
    type: str
    target: str | None
    to: str
    reason: str
    consent: bool
    lost: bool


class CopyPlanned(RouteAnswer, frozen=True, kw_only=True):
    """What a copy would do.

    Attributes:
        making: The request that makes the object; empty if it exists.
        differs: The connections have different types.
        rows: The number of rows that were looked at.
        ids_reason: What becomes of the ids, as a sentence.
        ids_consent: The request agrees to that, or nothing is lost by it.
    """

    exists: bool
    making: str
    columns: list[CopyColumn]
    differs: bool
    rows: int
    ids: Literal["keep", "derive", "new"]
    ids_reason: str
    ids_consent: bool
    notes: list[Note]


class CopyAsked(CopyPlanAsked, frozen=True, kw_only=True):
    """Copy rows.

    Attributes:
        making: `CopyPlanned.making`, as a person has confirmed it; only this request makes the object.
        undo: Keep a file of changes that take the copy back.
    """

    making: Annotated[str, Meta(max_length=4 << 20)] = ""
    on_conflict: Literal["fail", "skip", "overwrite"] = "fail"
    undo: bool = True


class ImportJob(RouteAnswer, frozen=True, kw_only=True):
    """An import, as ``imports`` and the event ``import`` report it.

    Attributes:
        file: The name of the file.
        part: The fraction of the file that was read; None if it is not known.
        counts: The number of rows by outcome.
        rejected: Rows were not written: ``imports/rejected``.
        undo: There is a file that takes the import back: ``imports/undo``, ``imports/download``.
        requests: The first requests of a dry run.
        resumable: It can go on where it ended: ``imports/resume``.
        copies: The connection that the rows come from, if it is a copy; empty for a file.
        new_ids: The rows get new ids, so that another copy adds them again.
        undoes: The import that this one takes back; empty for any other.
        undone: It was taken back.
        changes: How often it has changed; of two reports, that with the larger number is the newer one.
    """

    id: str
    connection: str
    object: str
    file: str
    dry_run: bool
    state: Literal["running", "finished", "failed", "cancelled"]
    rows: int = 0
    part: float | None = None
    counts: dict[str, int] = {}
    seconds: float = 0.0
    rejected: bool = False
    undo: bool = False
    requests: list[str] = []
    notes: list[Note] = []
    error: RequestFailure | None = None
    resumable: bool = False
    copies: str = ""
    new_ids: bool = False
    undoes: str = ""
    undone: bool = False
    changes: int = 0


class ImportNamed(Request, frozen=True, kw_only=True):
    """An import by id."""

    id: Ticket


class Imports(RouteAnswer, frozen=True, kw_only=True):
    """All imports since the start."""

    imports: list[ImportJob]


class RejectedRow(RouteAnswer, frozen=True, kw_only=True):
    """A row that was not written, with the reason; `row` is its number in the file."""

    row: int
    code: str
    reason: str
    text: str


class RejectedRows(RouteAnswer, frozen=True, kw_only=True):
    """The first rows that were not written; `whole` says whether these are all."""

    rows: list[RejectedRow]
    whole: bool


class ImportFileAsked(ImportNamed, frozen=True, kw_only=True):
    """A file that an import wrote."""

    file: Literal["rejected", "undo"]


class ImportTicket(RouteAnswer, frozen=True, kw_only=True):
    """A ticket for ``/download/TICKET``, and the name of the file."""

    ticket: str
    file: str
