"""The result of a complete export, which is also the manifest beside its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman_api.columns import Note
from dragoman_api.filters import Explanation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api.filters import CompiledFilter

NOTES = 50
"""Maximum number of a driver's notes per export; a final note says if there are more."""
APPROXIMATE = "filter-approximate"


class ExportResult(msgspec.Struct, frozen=True, kw_only=True):
    """A complete export, as its manifest describes it.

    Attributes:
        target: The file, or the name of the stream.
        connection: The connection's name.
        object: The exported object.
        tenant: The tenant whose rows were exported; None for an object without tenants.
        revision: The revision that the rows were read at; empty if the caller named none.
        time: The span of time that the rows lie in: ``column``, ``since`` and ``until``; None for all rows.
        filter: How each filter row was applied; empty if all rows were exported.
        format: ``documents``, ``rows``, ``json``, ``csv``, ``tsv``, ``bulk``, ``arrow`` or ``parquet``.
        compression: ``gzip``, ``bzip2``, ``zstd`` or None.
        columns: A table's columns in order; for other formats the requested ones, None for all.
        rows: The number of rows in the file.
        bytes: The size of the file.
        sha256: The SHA-256 digest of the file, in hexadecimal.
        server: The server's product and version.
        driver: The plugin's id and version.
        started: When the first run began: ISO 8601, in UTC.
        finished: When the export was complete: ISO 8601, in UTC.
        seconds: The duration of the last run.
        resumed: How often the export was resumed.
        notes: Notes for the user about the file.
    """

    target: str
    connection: str
    object: str
    tenant: str | None
    revision: str = ""
    time: dict[str, str | None] | None = None
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


def add_notes(kept: list[Note], notes: Sequence[Note], *, rows: int, known: int = 0) -> None:
    """Add the notes on a part to those of the export, up to `NOTES` of the driver's.

    Args:
        kept: The notes so far, which this function extends.
        notes: The notes on the part.
        rows: The number of rows up to the end of the part.
        known: The number of notes in `kept` that are not the driver's, and so do not count.
    """
    room = NOTES - (len(kept) - known)
    kept += notes[: max(room, 0)]
    if room >= 0 and len(notes) > room:
        reason = f"the driver told more about rows after the first {rows:,}; these notes are left out"
        kept.append(Note(code="notes-cut", reason=reason))


def filter_notes(compiled: CompiledFilter | None) -> list[Note]:
    """Return a note for each row of a filter that is approximate in more than unlikely cases; none without a filter."""
    return [
        Note(code=APPROXIMATE, reason=f"filter row {row.row + 1} ({row.clause}): {'; '.join(row.approximations)}")
        for row in (compiled.rows if compiled else ())
        if row.approximations or not (row.exact or row.unlikely)
    ]
