"""Exports: an object leaves as a stream of raw parts, and the host owns the file."""

from __future__ import annotations

import msgspec

from .filters import CompiledFilter


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole object, or what a filter leaves of it.

    Attributes:
        object: The object's name.
        filter: From `compile_filter`, None for all rows.
        metadata: True yields the server's rows with id and metadata, False the stored documents alone.
        checkpoint: Of the last part that is safe on disk, to go on after it.
    """

    object: str
    filter: CompiledFilter | None = None
    metadata: bool = False
    checkpoint: str | None = None


class ExportPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One part of an export: whole lines of newline-delimited JSON.

    Attributes:
        data: The bytes, each document as stored, each line ended. They travel through a pipe, not with the part.
        rows: Documents in it.
        total: Documents of the whole export as far as known.
        checkpoint: How to go on after this part; None where the driver cannot.
    """

    data: bytes
    rows: int
    total: int | None = None
    checkpoint: str | None = None
