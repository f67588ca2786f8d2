"""A split export as plain data, from which a process with the same connection can export any part."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from dragoman.exports.formats import COMPRESSED, ENDINGS, FileFormat
from dragoman_api.columns import Column, Note
from dragoman_api.errors import ConfigurationError
from dragoman_api.exports import ExportRequest
from dragoman_api.filters import Explanation
from dragoman_api.kit.left_out import LeftOut

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

    def of_part(self, number: int) -> ExportRequest:
        """Return the request for the rows of a part."""
        return msgspec.structs.replace(self.request, share=self.shares[number])

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
