"""Exports: an object leaves as a stream of raw parts, and the host owns the file."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from .columns import Note
from .filters import CompiledFilter, TimeRange


class ExportForm(StrEnum):
    """The content of one line of an export.

    Attributes:
        DOCUMENTS: A stored document, byte for byte.
        ROWS: A row as the server returns it, with id and metadata; `Column.path` finds a column in it.
        BULK: Input for the server's own bulk endpoint; a row may need several lines.
    """

    DOCUMENTS = "documents"
    ROWS = "rows"
    BULK = "bulk"


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to export an object, or the rows that a filter leaves.

    Attributes:
        object: The object's name.
        filter: From `compile_filter`, None for all rows.
        time: As in `PageRequest`.
        form: The content of one line.
        columns: Names of the wanted columns, None for all. A driver may leave out costly columns that are not
            named, such as vectors, but does not have to.
        tenant: The tenant whose rows are wanted, if the object has tenants.
        revision: `Page.revision` of an earlier page, to export the rows as they were then; empty for now.
        checkpoint: The checkpoint of the last part that is safe on disk, to continue after it.
        keep_alive: Seconds that a checkpoint should stay valid without further requests.
    """

    object: str
    filter: CompiledFilter | None = None
    time: TimeRange | None = None
    form: ExportForm = ExportForm.DOCUMENTS
    columns: list[str] | None = None
    tenant: str | None = None
    revision: str = ""
    checkpoint: str | None = None
    keep_alive: int = 300


class ExportPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One part of an export: whole lines of newline-delimited JSON.

    Attributes:
        data: The bytes; each line ends with a line break. They travel through a pipe, not with the part.
        rows: Number of rows in the part.
        total: Number of rows in the whole export, if known.
        checkpoint: How to continue after this part and all before it; None if the driver cannot.
        notes: Remarks on rows of this part, such as documents that could not be exported as they are stored.
    """

    data: bytes
    rows: int
    total: int | None = None
    checkpoint: str | None = None
    notes: list[Note] = []
