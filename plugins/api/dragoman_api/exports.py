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
        time: The span of time that the rows must lie in, None for all; only with the capability ``time-range``.
        form: The content of one line.
        columns: Names of the wanted columns, None for all. A driver may leave out costly columns that are not
            named, such as vectors, but does not have to.
        tenant: The tenant whose rows are wanted, if the object has tenants.
        revision: `Page.revision` of an earlier page, to export the rows as they were then; empty for now.
        checkpoint: The checkpoint of the last part that is safe on disk, to continue after it.
        keep_alive: Seconds that a checkpoint, or the snapshot of a split export, should stay valid without requests.
        share: One of `ExportSplit.shares`, to read no more than that share, from its beginning; None for all rows.
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
    share: str | None = None

    def __post_init__(self) -> None:
        if self.share is not None and self.checkpoint is not None:
            raise ValueError("a share of an export is read from its beginning, so it has no checkpoint")


class ExportPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One part of an export: whole lines of newline-delimited JSON.

    Attributes:
        data: The bytes; each line ends with a line break. They travel through a pipe, not with the part.
        rows: Number of rows in the part.
        total: Number of rows in the whole export, if known.
        checkpoint: How to continue after this part and all before it; None if the driver cannot.
        notes: Remarks on rows of this part, such as documents that could not be exported as they are stored.
        turned_away: Number of requests that a busy server turned away since the previous part. A driver that reads a
            share says so at once, in a part without rows, so that the other processes slow down, too.
    """

    data: bytes
    rows: int
    total: int | None = None
    checkpoint: str | None = None
    notes: list[Note] = []
    turned_away: int = 0


MAX_SHARES = 1024
"""The most shares of one export; Elasticsearch has no more slices of one search by default."""

NO_SNAPSHOT = "no-snapshot"
"""The code of the note that says what an export without a snapshot does not guarantee."""


class SplitRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to divide an export into shares that several processes read.

    Attributes:
        export: The export; neither a share nor continued.
        shares: The wanted number of shares, 1 to `MAX_SHARES`.
    """

    export: ExportRequest
    shares: int

    def __post_init__(self) -> None:
        if not 1 <= self.shares <= MAX_SHARES:
            raise ValueError(f"an export has 1 to {MAX_SHARES:,} shares, not {self.shares:,}")
        if self.export.share is not None or self.export.checkpoint is not None:
            raise ValueError("a whole export is split, not a share or the rest of one")


class ExportSplit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An export that was divided into shares: each row is in exactly one of them.

    Attributes:
        shares: One text for each share, for `ExportRequest.share`, on any connection with the same driver to the same
            server. At least one, at most the wanted number.
        snapshot: What the server keeps for the shares, for `SnapshotHold.snapshot`; empty if it keeps nothing. With a
            snapshot, a share yields the same bytes each time, whatever is written meanwhile.
        total: The number of rows of all shares, if known.
        notes: Remarks; without a snapshot, one of code `NO_SNAPSHOT` that says what is not guaranteed.
    """

    shares: list[str]
    snapshot: str = ""
    total: int | None = None
    notes: list[Note] = []


class SnapshotHold(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to keep a snapshot, or to free it.

    Attributes:
        snapshot: `ExportSplit.snapshot`.
        seconds: How long the server keeps it from now on without requests; 0 frees it.
    """

    snapshot: str
    seconds: int
