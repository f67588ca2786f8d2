"""What is told of an export: the manifest of a complete one, the checkpoint of one under way."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from dragoman_api.columns import Note
from dragoman_api.filters import Explanation


class ExportResult(msgspec.Struct, frozen=True, kw_only=True):
    """A complete export, as its manifest tells it.

    Attributes:
        target: The file, or the name of the stream.
        connection: The connection's name.
        object: What was exported.
        tenant: Whose rows, None for an object without tenants.
        filter: What became of each row of the filter; empty for all rows.
        format: ``documents``, ``rows``, ``csv``, ``bulk`` or ``parquet``.
        compression: ``gzip``, ``zstd`` or None.
        columns: Of a table, in order; for other formats those that were asked for, None for all.
        rows: Rows in the file.
        bytes: Its size.
        sha256: Its digest in hexadecimal.
        server: Product and version.
        driver: The plugin's id and version.
        started: When it began first, UTC.
        finished: When it was complete, UTC.
        seconds: Duration of the last run.
        resumed: How often it went on after an interruption.
        notes: What a person should know about the file.
    """

    target: str
    connection: str
    object: str
    tenant: str | None
    filter: list[Explanation]
    format: str
    compression: str | None
    columns: list[str] | None
    rows: int
    bytes: int
    sha256: str
    server: str
    driver: str
    started: str
    finished: str
    seconds: float
    resumed: int = 0
    notes: list[Note] = []


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is safe on disk of an export under way, and how to go on after it.

    Attributes:
        identity: What must be the same for another run to be the same export, by name.
        part: Name of the file it is about.
        offset: Bytes of it that are safe.
        sha256: Their digest in hexadecimal.
        rows: Rows in them.
        driver: The driver's own checkpoint; None when it has given everything.
        started: When the export began first, UTC.
        resumed: How often it went on after an interruption.
    """

    version: Literal[1] = 1
    identity: dict[str, Any]
    part: str
    offset: int
    sha256: str
    rows: int
    driver: str | None
    started: str
    resumed: int
