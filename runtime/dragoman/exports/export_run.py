"""One export, from beginning to end: it reads parts while it converts and writes earlier ones."""

from __future__ import annotations

import time
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import anyio
import msgspec
from anyio.to_thread import run_sync

from dragoman_api import events
from dragoman_api.columns import Note
from dragoman_api.errors import DragomanError, ExportError
from dragoman_api.exports import ExportPart
from dragoman_api.filters import Explanation
from dragoman_api.kit.page_columns import LeftOut

from .checkpoints import Checkpoint, checkpoint_due
from .formats import SEPARATED, Compressor
from .target_files import FileTarget, StreamTarget, reporting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from anyio.abc import TaskGroup
    from anyio.streams.memory import MemoryObjectReceiveStream

    from dragoman_api.events import Event
    from dragoman_api.exports import ExportRequest

    from .arrow_parquet import ArrowStream
    from .csv_lines import Csv, JsonArray
    from .formats import FileFormat, TableColumns
    from .values import RowKeys

    Converter = Csv | JsonArray | ArrowStream
    Parts = Callable[[ExportRequest], AbstractAsyncContextManager[AsyncIterator[ExportPart]]]

NOTES = 50
"""Maximum number of a driver's notes per export; a final note says if there are more."""


class ExportSource(msgspec.Struct, frozen=True, kw_only=True):
    """The source of an export.

    Attributes:
        connection: The connection's name.
        object: The exported object.
        server: Product and version.
        plugin: The driver's id.
        version: The driver's version.
    """

    connection: str
    object: str
    server: str
    plugin: str
    version: str


class Export:
    """One export into one target; single use."""

    def __init__(
        self,
        source: ExportSource,
        *,
        to: Path | BinaryIO,
        file_format: FileFormat,
        resume: bool,
        emit: Callable[[Event], None],
    ) -> None:
        """Prepare an export; nothing is opened.

        Args:
            source: The source, as events and the manifest describe it.
            to: The path of the file, or an open binary stream.
            file_format: What the file is, as `choose` decided it.
            resume: Continue after an earlier run's checkpoint.
            emit: Receives the events of the export.
        """
        self._source, self._format, self._resume, self._emit = source, file_format, resume, emit
        self._target = FileTarget(to) if isinstance(to, Path) else StreamTarget(to)
        self._began = time.perf_counter()
        self._started = _now()
        self._resumed = 0
        self._rows = 0
        self._total: int | None = None  # the driver's count from before the export
        self._notes: list[Note] = []  # the driver's
        self._request_notes: list[Note] = []  # on the request
        self._driver: str | None = None  # the driver's checkpoint of the last part written
        self._begun = False
        self._torn = False  # a write failed: data after the last checkpoint is unreliable
        self._secured: Checkpoint | None = None
        self._securing = False
        self._before_tail: Checkpoint | None = None  # all rows; what follows them is no place to go on
        self._marked = (0, self._began)  # bytes and time of the last checkpoint
        self._keys: RowKeys | None = None  # counts what a table of all columns does not show
        self._arrow: ArrowStream | None = None  # what converts to columns that have types
        compression = None if file_format.format == "parquet" else file_format.compression
        self._compressor = Compressor(compression) if compression else None

    @property
    def resumable(self) -> bool:
        """Whether the export can resume after an interruption, if the driver supports it."""
        return self._target.resumable

    @property
    def left_out(self) -> LeftOut:
        """The fields of the rows so far that the file does not hold."""
        return self._keys.left_out if self._keys else LeftOut()

    def now(self) -> datetime:
        """Read when the first run of this export began, for relative times to count from; blocks on the disk."""
        begun = self._target.begun() if self._resume and isinstance(self._target, FileTarget) else None
        return begun or datetime.fromisoformat(self._started)

    def lists(self) -> dict[str, str] | None:
        """Read which columns of a resumed export its first run read as lists; blocks on the disk.

        Returns:
            What a list of one stands for in each column of lists, by the column's name; None if nothing was decided.
        """
        return self._target.lists() if self._resume and isinstance(self._target, FileTarget) else None

    def reporting(self) -> AbstractContextManager[None]:
        """Emit `ExportFailed` for any error of the block, a cancellation too."""
        source = self._source
        return reporting(self._emit, connection=source.connection, object=source.object, target=self._target.name)

    def _tell(self, kind: Callable[..., Event], **fields: Any) -> None:
        self._emit(kind(connection=self._source.connection, object=self._source.object, **fields))

    async def run(
        self,
        request: ExportRequest,
        *,
        table: TableColumns,
        manifest: bool,
        parts: Parts,
        notes: Sequence[Note] = (),
        confirm: Callable[[], object] = lambda: None,
    ) -> ExportResult:
        """Run the export.

        Args:
            request: The request to the driver; `run` fills in its checkpoint.
            table: The columns of a table; none for other formats.
            manifest: Write a manifest beside the file.
            parts: Streams the parts of a request.
            notes: Notes on the request, for the manifest.
            confirm: Called before the file gets its final name; an error that it raises prevents that.

        Raises:
            ExportError: The target cannot be written or resumed.
            DragomanError: The driver failed; no file exists under the final name.
        """
        self._request_notes = list(notes)
        self._width = len(table.columns)
        self._converter = self._make_converter(table)
        self._identity = {
            **self._identify(request),
            "filter": request.filter.body if request.filter else None,
            "driver": self._source.plugin,
            "escaping": self._format.escape or None,
            "strict": self._format.strict or None,
            "lists": table.lists,
        }
        try:
            replaced = await run_sync(self._open)
            self._tell(events.ExportStarted, target=self._target.name, resumed=self._rows, replaced=replaced)
            try:
                if not (self._secured and self._secured.driver is None):
                    await self._stream(msgspec.structs.replace(request, checkpoint=self._driver), parts)
                await run_sync(self._begin)
                await run_sync(self._make)
                await run_sync(confirm)
                await run_sync(self._target.place)
            except BaseException as error:
                with anyio.CancelScope(shield=True):  # a cancelled export must still clean up
                    await run_sync(self._give_up, error)
                raise
            result = self._result(request)
            if manifest and isinstance(self._target, FileTarget):
                await run_sync(self._target.tell, result)
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(self._target.close)
        summary = {name: getattr(result, name) for name in ("target", "rows", "bytes", "sha256", "seconds")}
        self._tell(events.ExportFinished, **summary)
        return result

    def _identify(self, request: ExportRequest) -> dict[str, Any]:
        """Return the properties that identify an export across its runs, by name."""
        return {
            "connection": self._source.connection,
            "object": request.object,
            "tenant": request.tenant,
            "revision": request.revision,
            "time": request.time and msgspec.structs.asdict(request.time),
            "format": self._format.format,
            "compression": self._format.compression,
            "columns": request.columns,
        }

    def _open(self) -> int | None:
        """Lock the target; return the number of rows of an unfinished export that this one replaces."""
        self._target.open()
        if not isinstance(self._target, FileTarget):
            if self._resume:
                raise ExportError("only a file can be resumed", hint="name it with -o", code="resume-refused")
            return None
        if not self._resume:
            return self._target.left_over()
        checkpoint = self._secured = self._target.resume(self._identity)
        self._rows, self._driver, self._started = checkpoint.rows, checkpoint.driver, checkpoint.started
        self._notes = list(checkpoint.notes)
        if self._keys:
            self._keys.left_out = checkpoint.left_out
        if self._converter:
            self._converter.go_on(checkpoint.rows, checkpoint.formulas)
        if self._arrow:
            self._arrow.go_on(checkpoint.rows, checkpoint.formulas, checkpoint.misfits)
        self._resumed = checkpoint.resumed + 1
        return None

    def _begin(self) -> None:
        """Start to write once the first part is there, so that an export that fails at once replaces no older one."""
        if self._begun:
            return
        self._begun = True
        if not self._resume:
            self._target.begin()
            self._write(self._converter.head() if self._converter else b"")
        self._marked = (self._target.bytes, time.perf_counter())

    # the stream -------------------------------------------------------------------------------------------------------

    async def _stream(self, request: ExportRequest, parts: Parts) -> None:
        send, receive = anyio.create_memory_object_stream[ExportPart](1)
        failure: DragomanError | None = None
        try:
            # The receiving end closes last: if the writer fails, the reader is cancelled without an error of its own.
            with receive:
                async with anyio.create_task_group() as tasks, send:
                    tasks.start_soon(self._take, receive, tasks)
                    try:
                        async with parts(request) as stream:
                            async for part in stream:
                                await send.send(part)
                    except DragomanError as error:  # still write what arrived before the error
                        failure = error
        except BaseExceptionGroup as group:
            raise _innermost(group) from None
        if failure is not None:
            raise failure

    async def _take(self, parts: MemoryObjectReceiveStream[ExportPart], tasks: TaskGroup) -> None:
        async for part in parts:
            checkpoint = await run_sync(self._put, part)
            if checkpoint is not None:
                tasks.start_soon(self._keep, checkpoint)
            size, target = self._target.bytes, self._target.name
            self._tell(events.ExportProgressed, rows=self._rows, bytes=size, total=part.total, target=target)

    def _put(self, part: ExportPart) -> Checkpoint | None:
        """Write one part; return a checkpoint when one is due."""
        self._begin()
        if self._converter:
            self._convert(part, self._converter)
        else:
            self._write(part.data)
        self._rows += part.rows
        add_notes(self._notes, part.notes, rows=self._rows)
        self._total = part.total
        self._driver = part.checkpoint
        size, at = self._marked
        due = checkpoint_due(written=self._target.bytes - size, seconds=time.perf_counter() - at)
        return self._mark() if due and self.resumable and self._driver is not None and not self._securing else None

    def _convert(self, part: ExportPart, converter: Converter) -> None:
        from .values import UNREADABLE, blocks, unreadable

        try:
            for block in blocks(part.data, rows=part.rows, columns=self._width):
                self._write(converter.convert(block))
                self._torn = True  # until the whole part is written
        except UNREADABLE as error:
            raise unreadable(f"a row after the first {self._rows:,}", error) from error
        self._torn = False

    def _write(self, data: bytes, *, end: bool = False, last: bool = False) -> None:
        self._torn = True
        if self._compressor:
            # Even empty output needs a compression member, or it cannot be unpacked.
            ready = self._compressor.compress(data) if data or last else b""
            data = ready + (self._compressor.end() if end or last else b"")
        self._target.write(data)
        self._torn = False

    def _mark(self) -> Checkpoint:
        """End the compression member, so that the file can be truncated here, and return the checkpoint."""
        self._write(b"", end=True)
        self._marked = (self._target.bytes, time.perf_counter())
        return Checkpoint(
            identity=self._identity,
            part=self._target.part.name if isinstance(self._target, FileTarget) else "",
            offset=self._target.bytes,
            sha256=self._target.sha256,
            rows=self._rows,
            formulas=self._converter.formulas if self._converter else 0,
            misfits=self._arrow.misfits if self._arrow else [],
            notes=self._notes,
            left_out=deepcopy(self.left_out),  # it is written while rows are counted
            driver=self._driver,
            started=self._started,
            resumed=self._resumed,
        )

    async def _keep(self, checkpoint: Checkpoint) -> None:
        self._securing = True
        await run_sync(self._secure, checkpoint)
        self._securing = False

    def _secure(self, checkpoint: Checkpoint) -> None:
        assert isinstance(self._target, FileTarget)
        self._target.secure(checkpoint)
        self._secured = checkpoint

    # the end ----------------------------------------------------------------------------------------------------------

    def _make_converter(self, table: TableColumns) -> Converter | None:
        """Return the converter of the driver's lines to the bytes of the file; None if they stay as they are."""
        if self._format.typed:
            from .arrow_parquet import ArrowStream, TableReader

            reader = TableReader.of(table, strict=self._format.strict)
            self._keys, self._arrow = reader.keys, ArrowStream(reader)
            return self._arrow
        if self._format.format in (*SEPARATED, "json"):
            from .csv_lines import Csv, JsonArray

            if self._format.format == "json":
                return JsonArray()
            self._keys = table.row_keys()
            return Csv(table.columns, keys=self._keys, escape=self._format.escape, tabs=self._format.format == "tsv")
        return None

    def _make(self) -> None:
        """Write the end of the file; a Parquet file is built only now, from the complete Arrow stream."""
        tail = self._converter.tail() if self._converter else b""
        if tail and self.resumable and self._driver is not None:
            self._before_tail = self._mark()
        self._write(tail, last=True)
        if self._format.format != "parquet":
            return
        from .arrow_parquet import write_parquet

        assert isinstance(self._target, FileTarget)
        if self._driver is not None:
            self._driver = None
            self._secure(self._mark())
        with self._target.guarding():
            write_parquet(
                self._target.part, self._target.made, compression=self._format.compression, mode=self._target.mode
            )
        self._target.take(self._target.made)

    def _give_up(self, error: BaseException) -> None:
        """Keep what another run can resume from, and remove the rest."""
        if not self._begun:
            self._target.leave()
        elif self.resumable and self._driver is not None and (self._before_tail or not self._torn):
            with suppress(DragomanError):  # the disk is full; the previous checkpoint is still valid
                self._secure(self._before_tail or self._mark())
        if self._begun and self._secured is None:
            self._target.discard()
        if self._secured is not None and isinstance(error, DragomanError) and not error.hint:
            error.advise("export with resume=True to continue")

    def _result(self, request: ExportRequest) -> ExportResult:
        value_notes = self._arrow.notes if self._arrow else self.left_out.notes()
        notes = [*self._request_notes, *self._notes, *value_notes]
        if self._converter and self._converter.formulas:
            from .csv_lines import formula_notes

            notes += formula_notes(self._converter.formulas, escaped=self._format.escape)
        if self._total is not None and self._total != self._rows:
            reason = f"{self._total:,} rows were counted beforehand, but {self._rows:,} arrived"
            notes = [*notes, Note(code="rows-differ", reason=reason)]
        return ExportResult(
            target=self._target.name,
            **self._identify(request),
            filter=request.filter.rows if request.filter else [],
            rows=self._rows,
            bytes=self._target.bytes,
            sha256=self._target.sha256,
            server=self._source.server,
            driver=f"{self._source.plugin} {self._source.version}",
            started=self._started,
            finished=_now(),
            seconds=time.perf_counter() - self._began,
            resumed=self._resumed,
            notes=notes,
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _innermost(error: BaseException) -> BaseException:
    """Return the error inside the exception groups of task groups; one that has a code is preferred."""
    while isinstance(error, BaseExceptionGroup):
        coded_group = error.subgroup(DragomanError)
        error = (coded_group or error).exceptions[0]
    return error


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
