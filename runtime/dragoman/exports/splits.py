"""A split export as plain data, from which a process with the same connection can read any part."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from dragoman_api.columns import Column, Note
from dragoman_api.errors import ConfigurationError, ExportError
from dragoman_api.exports import ExportRequest
from dragoman_api.filters import Explanation
from dragoman_api.kit.left_out import LeftOut

from .formats import COMPRESSED, ENDINGS, FileFormat
from .results import add_notes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from pyarrow import Schema

    from dragoman_api.exports import ExportPart

_MEMBERS = {name: ending for ending, name in reversed(ENDINGS.items())} | {"rows": ".ndjson", "bulk": ".ndjson"}
_OUTER = {compression: ending for ending, compression in COMPRESSED.items()}


class ExportOrigin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The server and the driver of an export; every process that exports a part compares them with its own.

    Attributes:
        connection: The connection's name.
        server: Product and version of the server.
        endpoints: SHA-256 of the connection's hosts and ports, in hexadecimal.
        plugin: The driver's id.
        version: The driver's version.
        wheel: SHA-256 of the driver's wheel, as in `plugins.lock`; empty for a linked driver.
    """

    connection: str
    server: str
    endpoints: str
    plugin: str
    version: str
    wheel: str

    def check(self, own: ExportOrigin, *, where: str = "") -> None:
        """Compare a process's own connection with that of the export.

        Args:
            own: The origin of the process's own connection.
            where: The process, for the error's message; empty for this one.

        Raises:
            ConfigurationError: The origins differ (code ``worker-differs``).
        """
        for name, label in _COMPARED.items():
            actual, expected = getattr(own, name), getattr(self, name)
            if actual != expected:
                comparison = f": {actual or 'none'} instead of {expected or 'none'}" if name != "endpoints" else ""
                reason = f"{where or 'this process'} has another {label} for {self.connection!r}{comparison}"
                hint = "give every worker the same connection and the same plugins.lock: dragoman plugins sync"
                raise ConfigurationError(reason, hint=hint, code="worker-differs")


_COMPARED = {
    "endpoints": "host or port",
    "server": "server",
    "plugin": "driver",
    "version": "version of the driver",
    "wheel": "wheel of the driver",
}


class Split(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An export that was split into parts.

    Attributes:
        origin: The server and the driver.
        request: The request for the rows; each part adds its share.
        shares: The share of each part, a text of the driver's.
        snapshot: The driver's text for the snapshot that the server holds; empty if it holds none.
        total: The number of rows of all parts; None if it is not known.
        notes: Notes on the request and on the split.
        filter: How each filter row is applied.
        wanted: The number of parts that the caller asked for.
        format: What each part is; its `lists` are in `table`.
        table: The columns of a table, in order; empty for other formats.
        described: All columns of the object, for a table; empty for other formats.
        whole: The table shows all of these columns, so that fields without a column are counted.
        server_members: Members that the server adds to every row, which are not counted.
        now: The instant that relative times count from.
        started: When the export began: ISO 8601, in UTC.
    """

    version: Literal[1] = 1
    origin: ExportOrigin
    request: ExportRequest
    shares: list[str]
    snapshot: str
    total: int | None
    notes: list[Note]
    filter: list[Explanation]
    wanted: int
    format: FileFormat
    table: list[Column]
    described: list[Column]
    whole: bool
    server_members: list[str]
    now: datetime
    started: str

    def __post_init__(self) -> None:
        """Refuse a plan that is damaged, or of a later version of dragoman. Raises ValueError."""
        if self.format.format not in _MEMBERS or self.format.compression not in (None, *_OUTER):
            raise ValueError(f"unknown format or compression: {self.format}")

    def file(self, number: int) -> str:
        """Return the name of a part's file, which is always the same for the same part."""
        name, compression = self.format.format, self.format.compression
        outer = "" if name == "parquet" or not compression else _OUTER[compression]
        return f"part-{number:05}{_MEMBERS[name]}{outer}"

    def schema(self) -> Schema:
        """Return the columns and types of the batches of each part, for a split with `table`."""
        from .tables import TableReader

        return TableReader(self.table, described=self.described).schema

    def of_part(self, number: int) -> ExportRequest:
        """Return the request for the rows of a part."""
        return msgspec.structs.replace(self.request, share=self.shares[number])

    def result_notes(self, parts: Sequence[PartResult], *, host_notes: Sequence[Note] = ()) -> list[Note]:
        """Return the notes on a whole export of which these are the parts.

        Args:
            parts: All parts, in the order of their numbers.
            host_notes: Further notes on the export, beside the driver's.

        Raises:
            ExportError: The parts of a snapshot have more or fewer rows than the server counted (``parts-differ``).
        """
        rows = sum(part.rows for part in parts)
        notes = [*self.notes, *host_notes]
        host_note_count, left_out = len(notes), LeftOut()
        for part in parts:
            add_notes(notes, part.notes, rows=rows, known=host_note_count)
            left_out.merge(part.left_out)
        notes += left_out.notes()
        if self.total is not None and rows != self.total:
            reason = f"{self.total:,} rows were counted beforehand, but {rows:,} arrived"
            if self.snapshot:
                raise ExportError(reason, hint="remove the folder and export again", code="parts-differ")
            notes.append(Note(code="rows-differ", reason=reason))
        return notes

    def identity(self) -> dict[str, Any]:
        """Return the properties that two runs must share to be one export, by the word for each in messages."""
        request = self.request
        return {
            "connection": self.origin.connection,
            "server": self.origin.server,
            "host or port": self.origin.endpoints,
            "driver": (self.origin.plugin, self.origin.version, self.origin.wheel),
            "object": request.object,
            "tenant": request.tenant,
            "revision": request.revision,
            "time": request.time,
            "filter": request.filter and request.filter.body,
            "choice of columns": request.columns,
            "choice of lists": [(column.name, column.many) for column in self.table if column.many],
            "format": (self.format.format, self.format.escape, self.format.strict),
            "compression": self.format.compression,
            "number of parts": self.wanted,
        }


class Pacing(Protocol):
    """How fast the parts of a split are read: one that reads several can slow all of them down."""

    def parts(
        self, stream: AbstractAsyncContextManager[AsyncIterator[ExportPart]]
    ) -> AbstractAsyncContextManager[AsyncIterator[ExportPart]]:
        """Stream what the driver sends at this pace; `ExportPart.turned_away` says that the server is busy."""


class PartResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One part that is complete under its name.

    Attributes:
        file: The name of the file in the folder.
        rows: The number of rows in the file.
        bytes: The size of the file.
        sha256: The SHA-256 digest of the file, in hexadecimal.
        notes: Notes on the rows.
        left_out: The fields of the rows that the file does not hold.
    """

    file: str
    rows: int
    bytes: int
    sha256: str
    notes: list[Note] = []
    left_out: LeftOut = msgspec.field(default_factory=LeftOut)
