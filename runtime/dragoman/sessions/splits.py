"""Exports that are split into parts: the split as plain data, one part of it, and the snapshot."""

from __future__ import annotations

import hashlib
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec
from anyio.to_thread import run_sync

from dragoman.exports.export_run import Export, ExportSource, add_notes
from dragoman.exports.formats import COMPRESSED, ENDINGS, FileFormat, TableColumns, choose
from dragoman_api.columns import Note
from dragoman_api.errors import ConfigurationError, DriverFaultError, ExportError
from dragoman_api.exports import MAX_SHARES, ExportRequest, SnapshotHold, SplitRequest
from dragoman_api.filters import Explanation
from dragoman_api.hookspecs import DriverSpec
from dragoman_api.kit.page_columns import LeftOut

from .driver_calls import until_unchanged
from .whole_reads import plan_read, requested_batches

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from pyarrow import RecordBatch, Schema

    from dragoman.exports.export_run import Parts
    from dragoman_api.events import Event
    from dragoman_api.exports import ExportPart

    from .driver_calls import DriverCalls
    from .selections import RowSelection
    from .whole_reads import Lists

_MEMBERS = {name: ending for ending, name in reversed(ENDINGS.items())} | {"rows": ".ndjson", "bulk": ".ndjson"}
_OUTER = {compression: ending for ending, compression in COMPRESSED.items()}
LEAST_HOLD = 60
"""The minimum number of seconds for which a server holds a snapshot without requests."""


class ExportOrigin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The server and the driver of an export; every process that exports a part compares them with its own.

    Attributes:
        server: Product and version of the server.
        endpoints: SHA-256 of the connection's hosts and ports, in hexadecimal.
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
        requested_parts: The number of parts that the caller asked for.
        format: What each part is; its `lists` are in `table`.
        table: The columns of a table; none for other formats.
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
    requested_parts: int
    format: FileFormat
    table: TableColumns
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
        from dragoman.exports.arrow_parquet import TableReader

        return TableReader.of(self.table, strict=self.format.strict).schema

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
            "choice of lists": [(column.name, column.many) for column in self.table.columns if column.many],
            "format": (self.format.format, self.format.escape, self.format.strict),
            "compression": self.format.compression,
            "number of parts": self.requested_parts,
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


class SplitExports:
    """The split exports of one session."""

    def __init__(self, calls: DriverCalls) -> None:
        self._calls = calls

    def origin(self) -> ExportOrigin:
        """Return the server and the driver of this connection."""
        driver, generation = self._calls.driver, self._calls.driver.generation
        return ExportOrigin(
            connection=driver.info.name,
            server=f"{driver.server.product} {driver.server.version}",
            endpoints=hashlib.sha256(msgspec.json.encode(driver.endpoints)).hexdigest(),
            plugin=generation.plugin,
            version=generation.version,
            wheel=generation.sha256,
        )

    async def split_or_continue(
        self,
        earlier: Split | None,
        selection: RowSelection,
        *,
        file_format: FileFormat | str,
        parts: int,
        keep_alive: int,
    ) -> Split:
        """Split an export, or return an earlier split whose parts are still wanted.

        Raises:
            ExportError: The earlier split has other rows or another format (code ``resume-refused``).
        """
        chosen = await run_sync(choose, Path("part"), file_format)
        if earlier is None:
            return await self.split(selection, file_format=chosen, parts=parts, keep_alive=keep_alive)
        plan = await self.plan(
            selection.at(earlier.now),
            file_format=chosen,
            parts=parts,
            keep_alive=keep_alive,
            lists=earlier.table.lists if chosen.typed and chosen.lists is None else None,
        )
        identity, earlier_identity = plan.identity(), earlier.identity()
        if differences := [name for name in identity if identity[name] != earlier_identity[name]]:
            reason = f"the unfinished export has another {', another '.join(differences)}"
            hint = "repeat the command as it was, or export into another folder"
            raise ExportError(reason, hint=hint, code="resume-refused")
        return earlier

    async def split(self, selection: RowSelection, *, file_format: FileFormat, parts: int, keep_alive: int) -> Split:
        """Split an export into parts, of one snapshot if the driver has them."""
        plan = await self.plan(selection, file_format=file_format, parts=parts, keep_alive=keep_alive)

        async def divide() -> Split:
            request = SplitRequest(export=plan.request, shares=parts)
            division = await self._calls.run(DriverSpec.split_export, request, object=selection.object)
            if not 1 <= len(division.shares) <= parts:
                raise DriverFaultError(f"the driver made {len(division.shares):,} parts, not 1 to {parts:,}")
            return msgspec.structs.replace(
                plan,
                shares=division.shares,
                snapshot=division.snapshot,
                total=division.total,
                notes=[*plan.notes, *division.notes],
            )

        split, changed = await until_unchanged(divide)
        return msgspec.structs.replace(split, notes=[*split.notes, *changed])

    async def plan(
        self, selection: RowSelection, *, file_format: FileFormat, parts: int, keep_alive: int, lists: Lists = None
    ) -> Split:
        """Return a split without shares, for `Split.identity`; the server holds nothing for it.

        Raises:
            ConfigurationError: The number of parts is out of range.
        """
        if not 1 <= parts <= MAX_SHARES:
            raise ConfigurationError(f"an export has 1 to {MAX_SHARES:,} parts, not {parts:,}")
        selection = selection.of_server()
        hold = max(keep_alive, LEAST_HOLD)
        read = await plan_read(self._calls, selection, file_format=file_format, lists=lists, keep_alive=hold)
        compiled = read.request.filter
        assert selection.now is not None
        return Split(
            origin=self.origin(),
            request=read.request,
            shares=[],
            snapshot="",
            total=None,
            notes=read.notes,
            filter=compiled.rows if compiled else [],
            requested_parts=parts,
            format=file_format,
            table=read.table,
            now=selection.now,
            started=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    async def _know(self, split: Split, number: int) -> None:
        """Check that this connection can read a part, and describe its object if needed.

        Raises:
            ConfigurationError: There is no such part, or the connection differs from that of the export.
        """
        if not 0 <= number < len(split.shares):
            raise ConfigurationError(f"the export has parts 0 to {len(split.shares) - 1:,}, not {number:,}")
        split.origin.check(self.origin())
        await self._calls.know(split.request.object)

    async def part(
        self,
        split: Split,
        number: int,
        *,
        to: Path,
        emit: Callable[[Event], None],
        pace: Pacing | None,
        confirm: Callable[[], object] = lambda: None,
    ) -> PartResult:
        """Export one part to a file, which appears only when it is complete."""
        await self._know(split, number)
        source = ExportSource(
            connection=split.origin.connection,
            object=split.request.object,
            server=split.origin.server,
            plugin=split.origin.plugin,
            version=split.origin.version,
        )
        export = Export(source, to=to, file_format=split.format, resume=False, emit=emit)
        with export.reporting():
            request = split.of_part(number)
            result = await export.run(request, table=split.table, manifest=False, parts=self._at(pace), confirm=confirm)
        earlier_notes = {(note.code, note.reason) for note in split.notes}
        earlier_notes |= {(note.code, note.reason) for note in export.left_out.notes()}
        notes = [note for note in result.notes if (note.code, note.reason) not in earlier_notes]
        _check_rows(split, number, notes)
        return PartResult(
            file=to.name,
            rows=result.rows,
            bytes=result.bytes,
            sha256=result.sha256,
            notes=notes,
            left_out=export.left_out,
        )

    def _at(self, pace: Pacing | None) -> Parts:
        """Return the function that streams the parts of a request, at the pace if there is one."""
        return (lambda request: pace.parts(self._calls.parts(request))) if pace else self._calls.parts

    async def batches(
        self, split: Split, number: int, notes: list[Note], *, pace: Pacing | None
    ) -> AsyncGenerator[RecordBatch, None]:
        """Yield the rows of one part as record batches, and add the notes on them to the list."""
        if not split.format.typed:
            reason = f"a part of the format {split.format.format} has no columns with types"
            raise ConfigurationError(reason, hint="split with format='arrow'")
        await self._know(split, number)
        from dragoman.exports.arrow_parquet import TableReader

        reader = TableReader.of(split.table, strict=split.format.strict)
        async with aclosing(requested_batches(self._at(pace), split.of_part(number), reader, notes)) as batches:
            async for batch in batches:
                yield batch
        _check_rows(split, number, notes)

    async def hold(self, split: Split, seconds: int) -> bool:
        """Keep the snapshot of a split export for some seconds, or free it with 0; return whether it was held."""
        if not split.snapshot:
            return True
        request = SnapshotHold(snapshot=split.snapshot, seconds=seconds)
        return await self._calls.run(DriverSpec.hold_snapshot, request, object=split.request.object)


def _check_rows(split: Split, number: int, notes: Sequence[Note]) -> None:
    """Raise ExportError if a part of a snapshot has more or fewer rows than the server counted."""
    if split.snapshot and (reason := next((note.reason for note in notes if note.code == "rows-differ"), "")):
        raise ExportError(f"part {number:,}: {reason}", code="parts-differ")
