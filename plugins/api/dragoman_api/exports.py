"""Exports: an object leaves as a stream of raw parts, and the host owns the file."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from .filters import CompiledFilter


class ExportForm(StrEnum):
    """What one line of an export is.

    Attributes:
        DOCUMENTS: A stored document, byte for byte.
        ROWS: A row as the server gives it, with id and metadata; `Column.path` finds a column in it.
        BULK: What the server's own bulk endpoint takes back; a row may need several lines.
    """

    DOCUMENTS = "documents"
    ROWS = "rows"
    BULK = "bulk"


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole object, or what a filter leaves of it.

    Attributes:
        object: The object's name.
        filter: From `compile_filter`, None for all rows.
        form: What one line is.
        columns: Names of the columns that are wanted, None for all; a driver may leave out what is costly and not
            named (a vector), and need not leave out anything.
        tenant: Whose rows, where the object has tenants.
        checkpoint: Of the last part that is safe on disk, to go on after it.
        keep_alive: Seconds for which a checkpoint should stay good while nobody asks for more.
    """

    object: str
    filter: CompiledFilter | None = None
    form: ExportForm = ExportForm.DOCUMENTS
    columns: list[str] | None = None
    tenant: str | None = None
    checkpoint: str | None = None
    keep_alive: int = 300


class ExportPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One part of an export: whole lines of newline-delimited JSON.

    Attributes:
        data: The bytes, each line ended. They travel through a pipe, not with the part.
        rows: Rows in it.
        total: Rows of the whole export as far as known.
        checkpoint: How to go on after this part and all before it; None where the driver cannot.
    """

    data: bytes
    rows: int
    total: int | None = None
    checkpoint: str | None = None
