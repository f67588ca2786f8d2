"""The result of a complete export in parts, which is also the manifest in its folder."""

from __future__ import annotations

import msgspec

from dragoman.extending import PartResult
from dragoman_api.columns import Note
from dragoman_api.filters import Explanation


class PartsResult(msgspec.Struct, frozen=True, kw_only=True):
    """A complete export in parts, as the manifest in its folder describes it.

    Attributes:
        target: The path or the URL of the folder.
        connection: The connection's name.
        object: The exported object.
        tenant: The tenant whose rows were exported; None for an object without tenants.
        revision: The revision that the rows were read at; empty if the caller named none.
        time: The span of time that the rows lie in: ``column``, ``since`` and ``until``; None for all rows.
        filter: How each filter row was applied.
        format: ``documents``, ``rows``, ``json``, ``csv``, ``tsv``, ``bulk``, ``arrow`` or ``parquet``.
        compression: ``gzip``, ``bzip2``, ``zstd`` or None.
        columns: A table's columns in order; for other formats the requested ones, None for all.
        rows: The number of rows in all parts.
        total: The number of rows that the server counted at the start; None if it did not.
        snapshot: Whether all parts are of one snapshot of the server.
        bytes: The size of all parts.
        parts: The parts, in the order of their numbers.
        server: The server's product and version.
        driver: The plugin's id and version.
        dragoman: The version of dragoman that coordinated the export.
        started: When the first run began: ISO 8601, in UTC.
        finished: When the export was complete: ISO 8601, in UTC.
        seconds: The duration of the last run.
        notes: Notes for the user.
    """

    target: str
    connection: str
    object: str
    tenant: str | None
    revision: str
    time: dict[str, str | None] | None
    filter: list[Explanation]
    format: str
    compression: str | None
    columns: list[str] | None
    rows: int
    total: int | None
    snapshot: bool
    bytes: int
    parts: list[PartResult]
    server: str
    driver: str
    dragoman: str
    started: str
    finished: str
    seconds: float
    notes: list[Note] = []
