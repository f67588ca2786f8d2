"""Rows of an object: a caller chooses them once, and every read is a method of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dragoman_api import events
from dragoman_api.errors import ConfigurationError
from dragoman_api.grid import CellRequest, CountRequest, PreviewRequest
from dragoman_api.hookspecs import DriverSpec

from .driver_calls import DriverCalls, Prepared, until_unchanged
from .selection_codec import SelectionTexts, call_arguments, script
from .selections import (
    Count,
    RowSelection,
    check_row_key,
    check_similar,
    check_summary,
    page_request,
    similar_request,
    summary_request,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

    from pyarrow import Table

    from dragoman.exports.export_run import ExportResult
    from dragoman.exports.formats import FileFormat
    from dragoman_api.cells import Cell
    from dragoman_api.changes import HttpRequest
    from dragoman_api.columns import Description, Note
    from dragoman_api.events import Event
    from dragoman_api.filters import CompiledFilter
    from dragoman_api.grid import Page, RowKey
    from dragoman_api.summaries import ColumnSummary

    from .splits import Pacing, PartResult, Split, SplitExports
    from .whole_reads import Batches, RowStream


@dataclass(frozen=True, slots=True, repr=False)
class Rows:
    """Rows of an object, which are read only when a method is called.

    `Session.rows` makes it. It never changes: each call of a method reads anew, and several may run at the same time.
    Two are equal if they are the same rows of the same open connection. ``async for row in rows`` reads documents in
    constant memory; see `stream`.

    Attributes:
        selection: The choice of rows, as a plain value.
    """

    _calls: DriverCalls
    selection: RowSelection = field(kw_only=True)

    def __repr__(self) -> str:
        return f"<{self._calls.driver.info.name}.rows({call_arguments(self.selection)})>"

    def command(self) -> list[str]:
        """Return the words of the command that shows these rows, not quoted; `shlex.join` makes a line of them.

        Raises:
            ConfigurationError: A filter row has no spelling there, such as one with None in its list.
        """
        return SelectionTexts.of(self.selection).command(self._calls.driver.info.name)

    def script(self) -> str:
        """Return a Python script that prints these rows."""
        return script(self.selection, self._calls.driver.info.name)

    @property
    def connection(self) -> str:
        """The name of the connection."""
        return self._calls.driver.info.name

    @property
    def type(self) -> str:
        """The database type of the connection."""
        return self._calls.driver.info.type

    async def describe(self) -> Description:
        """Describe the columns of the object, as the server has them now."""
        return await self._calls.describe(self.selection.object)

    def __aiter__(self) -> RowStream:
        return self.stream()

    def stream(self, *, form: str = "documents") -> RowStream:
        """Read the rows one by one, in constant memory; integers stay exact.

        An integer of more than 4,300 digits becomes a Decimal; a number beyond the range of Decimal becomes its text.
        `RowStream.notes` says where the filter is approximate, and which rows a default time window leaves out.

        A caller that stops early must close the stream to release the server's resources:
        ``async with aclosing(rows.stream()) as stream``.

        Args:
            form: ``documents`` as they are stored, or ``rows`` with id and metadata.
        """
        from .whole_reads import RowStream, read_rows

        return RowStream(partial(read_rows, self._calls, self.selection, form=form))

    async def page(self, *, limit: int = 100, offset: int = 0, total: bool = True, cursor: str | None = None) -> Page:
        """Fetch one page of rows.

        Args:
            limit: The maximum number of rows of the page, 1 to 10,000.
            offset: The number of rows before the page, 0 or more.
            total: Also count all matching rows.
            cursor: `Page.next` of an earlier page of the same rows, to continue after it. The rows then need
                ``now=page.now``, and ``span=Span.of(page.time)`` if that page has a `time`. None goes by `offset`.

        Raises:
            ConfigurationError: `limit` or `offset` is out of range.
            FilterNotSupportedError: A filter row cannot run as asked; nothing was fetched.
            WindowExceededError: The page is beyond the server's result window.
        """
        request = page_request(self.selection, limit, offset, total=total, cursor=cursor)
        selection = self.selection.at()
        calls, began = self._calls, time.perf_counter()
        page, prepared, notes = await calls.read(DriverSpec.fetch_page, request, selection, rows=limit)
        return self._fetched(page, prepared, notes, began)

    def _fetched(self, page: Page, prepared: Prepared, notes: list[Note], began: float) -> Page:
        """Return a page with the host's part of it, and tell of it."""
        page = msgspec.structs.replace(page, notes=[*notes, *page.notes], time=prepared.time, now=prepared.now)
        self._calls.emit(
            events.PageFetched(
                connection=self.connection,
                object=self.selection.object,
                rows=len(page.cells),
                seconds=time.perf_counter() - began,
                notes=[note.code for note in page.notes],
            )
        )
        return page

    async def similar(
        self,
        key: RowKey | None = None,
        *,
        vector: Sequence[float] | None = None,
        text: str | None = None,
        column: str | None = None,
        limit: int = 10,
    ) -> Page:
        """Find the rows nearest to a row, a vector or a text, among these rows.

        The server finds them by an index of vectors, so the driver cannot evaluate a filter row itself.

        Args:
            key: `Row.key` of a row; it is not among the result.
            vector: A vector, instead of a row.
            text: A text that the server makes a vector of, instead of a row.
            column: The column of vectors; ``COLUMN.NAME`` if it holds several. None for the only one.
            limit: The maximum number of rows, 1 to 1,000.

        Returns:
            The rows, the nearest first. The last column is the distance, in the server's own measure; its name begins
            with an underscore. `Page.notes` say if the server's index may miss near rows.

        Raises:
            ConfigurationError: The rows have a sort, or an argument is not as described.
            RowNotFoundError: The row is gone.
            UnsupportedOperationError: The driver finds no similar rows, or the server makes no vector of a text.
        """
        selection, began = self.selection.of_server(), time.perf_counter()
        request = similar_request(selection, key=key, vector=vector, text=text, column=column, limit=limit)
        page, prepared, notes = await self._calls.read(DriverSpec.similar_rows, request, selection, rows=limit)
        check_similar(request, page)
        return self._fetched(page, prepared, notes, began)

    def _count_request(self) -> CountRequest:
        """Return the request for a count, without its filter and span of time."""
        selection = self.selection
        return CountRequest(object=selection.object, tenant=selection.tenant, revision=selection.revision)

    async def count(self) -> Count:
        """Count the rows; `Count.notes` say what makes the number approximate, if anything does.

        Raises:
            FilterNotSupportedError: A filter row cannot run as asked.
        """
        request, selection = self._count_request(), self.selection.of_server()
        number, prepared, notes = await self._calls.read(DriverSpec.count_rows, request, selection)
        return Count(number, notes, time=prepared.time)

    async def explain(self) -> CompiledFilter:
        """Compile the filter for the columns as the server has them now, and explain each row; no rows are fetched.

        Raises:
            FilterNotSupportedError: A filter row cannot run as asked.
        """
        return await self._calls.compile(self.selection.at(), self.selection.filters, fresh=True)

    async def preview_page(
        self, *, limit: int = 100, offset: int = 0, total: bool = True, cursor: str | None = None
    ) -> list[HttpRequest]:
        """Return the requests that `page` would send first; only what is needed to build them is sent.

        Args:
            limit: The maximum number of rows of the page, 1 to 10,000.
            offset: The number of rows before the page, 0 or more.
            total: Also request the number of all matching rows.
            cursor: `Page.next` of an earlier page of the same rows, to continue after it; None to go by `offset`.

        Raises:
            UnsupportedOperationError: The driver names no requests, or each depends on the answer to another one.
            FilterNotSupportedError: A filter row cannot run as asked.
        """
        request = page_request(self.selection, limit, offset, total=total, cursor=cursor)
        return await self._preview(self.selection.at(), lambda prepared: PreviewRequest(page=prepared.fill(request)))

    async def preview_count(self) -> list[HttpRequest]:
        """Return the requests that `count` would send first, as `preview_page` does.

        Raises:
            UnsupportedOperationError: The driver names no requests, or each depends on the answer to another one.
            FilterNotSupportedError: A filter row cannot run as asked.
        """
        request, selection = self._count_request(), self.selection.of_server()
        return await self._preview(selection, lambda prepared: PreviewRequest(count=prepared.fill(request)))

    async def _preview(
        self, selection: RowSelection, request_of: Callable[[Prepared], PreviewRequest]
    ) -> list[HttpRequest]:
        async def preview() -> list[HttpRequest]:
            request = request_of(await self._calls.prepare(selection))
            return await self._calls.run(DriverSpec.preview_read, request, object=selection.object)

        return (await until_unchanged(preview))[0]

    async def summarize(self, column: str, *, values: int = 10, buckets: int = 20) -> ColumnSummary:
        """Summarize a column: its most frequent values, its extremes, how its values spread.

        The server computes the figures, so the driver cannot evaluate a filter row itself. They may come from several
        requests: rows that are written meanwhile count in some of them only.

        Args:
            column: The column's name.
            values: The maximum number of frequent values to return, 0 to 100.
            buckets: The maximum number of buckets in the histogram, 0 to 50.

        Returns:
            The summary; `ColumnSummary.approximate` and `ColumnSummary.notes` say what is not exact.

        Raises:
            FilterNotSupportedError: A filter row cannot run as asked.
            UnsupportedOperationError: The driver has no summaries, or the server has none for such a column.
        """
        selection = self.selection.of_server()
        request = summary_request(selection, column, values=values, buckets=buckets)
        summary, _, notes = await self._calls.read(DriverSpec.summarize_column, request, selection)
        check_summary(request, summary)
        return msgspec.structs.replace(summary, notes=[*notes, *summary.notes])

    async def cell(self, key: RowKey, column: str) -> Cell:
        """Fetch the whole value of one cell, uncut; `MISSING` if the row does not hold the field.

        Of the choice of rows, only the object and the revision matter.

        Args:
            key: `Row.key` of a row on a page of the same object.
            column: The column's name.

        Raises:
            ConfigurationError: `key` is not a row's key, or is that of another object.
        """
        selection, calls = self.selection, self._calls
        check_row_key(key, selection)
        await calls.know(key.object)
        request = CellRequest(key=key, column=column, revision=selection.revision)

        async def fetch() -> Cell:
            return await calls.run(DriverSpec.fetch_cell, request, object=key.object)

        return (await until_unchanged(fetch))[0]

    def batches(self, *, format: FileFormat | str = "arrow") -> Batches:  # noqa: A002 - the word that people know
        """Iterate over the rows as `pyarrow.RecordBatch`, in constant memory; there is at least one.

        The types of the columns come from the object's description. A value that does not fit its column's type is
        null there, and the last column, ``_misfits``, holds it as it is stored: a JSON object from column to value, or
        null if everything in the row fits. Nothing is rounded, and notes ``values-misfit`` count these values. Rows
        without chosen columns have all columns of an export, in which an array of objects is one column.

        A caller that stops early must close the iterator to release the server's resources:
        ``async with aclosing(rows.batches()) as batches``.

        Args:
            format: A `FileFormat` says how values become typed. Its `lists` name columns in which a row may hold one
                value or several; without them, those are lists that hold an array in one of the first 200 rows, which
                a note (``lists-found``) names. In such a column, a single value becomes a list of one. An array of one
                value becomes the same; the one of these two for which a list of one does not stand is also in
                ``_misfits``. If it is `strict`, a value that does not fit its type is refused (ExportError, code
                ``values-misfit``).

        Raises:
            ConfigurationError: The package pyarrow is not installed, or the format is not ``arrow``.
        """
        from dragoman.exports.formats import in_memory

        from .whole_reads import Batches, read_batches

        return Batches(partial(read_batches, self._calls, self.selection, file_format=in_memory(format)))

    async def table(self, *, format: FileFormat | str = "arrow") -> Table:  # noqa: A002 - the word that people know
        """Read the rows into a `pyarrow.Table`, which pandas, polars and DuckDB take as it is.

        Types and the column ``_misfits`` are those of `batches`. The metadata of the schema hold the notes on the rows,
        as JSON, under ``notes``. They also hold types for pandas, so that `pyarrow.Table.to_pandas` keeps every digit
        of a column of integers in which some are missing.

        Args:
            format: How values become typed, as for `batches`.

        Raises:
            ConfigurationError: The package pyarrow is not installed, or the format is not ``arrow``.
        """
        from .whole_reads import collect_table

        return await collect_table(self.batches(format=format))

    async def export(
        self,
        to: Path | str | BinaryIO,
        *,
        format: FileFormat | str | None = None,  # noqa: A002 - the word that people know
        keep_alive: int | None = None,
        resume: bool = False,
        manifest: bool = True,
    ) -> ExportResult:
        """Export the rows into a file, in constant memory.

        Args:
            to: The path of a file, which appears only when the export is complete, or an open binary stream.
            format: What the file is: the name of a format, or a `FileFormat`; None goes by the file's name.
            keep_alive: Seconds for which an interrupted export can be resumed; None for what `config.toml` says.
            resume: Continue an interrupted export of the same rows into the same file. Relative times still count from
                the beginning of its first run, unless the rows have a `now`.
            manifest: Write ``FILE.manifest.json`` beside the file.

        Returns:
            The content of the manifest, such as the numbers of rows and bytes, and the checksum.

        Raises:
            ConfigurationError: There is no such format or column, a package for it is missing, or the file's ending
                names no format (code ``format-unknown``).
            ExportError: The target cannot be written or resumed.
            QueryError: The server's answer was partial; no file was created.
        """
        from .whole_reads import run_export

        self._calls.driver.check_usable()
        return await run_export(
            self._calls,
            self.selection,
            to=Path(to) if isinstance(to, str) else to,
            file_format=format,
            keep_alive=keep_alive or self._calls.keep_alive,
            resume=resume,
            manifest=manifest,
        )

    async def split(
        self,
        parts: int,
        *,
        format: FileFormat | str = "documents",  # noqa: A002 - the word that people know
        keep_alive: int | None = None,
        earlier: Split | None = None,
    ) -> Split:
        """Split an export into parts that any process with the same connection can export, of one snapshot if possible.

        `part` and `part_batches` read a part. The server holds the snapshot for `keep_alive` seconds. The caller renews
        it with `hold`, and frees it in the end.

        Args:
            parts: The wanted number of parts, 1 to 1,024; there are fewer if the object has fewer rows, or if the
                server cannot split an export, which a note says.
            format: What each part is: the name of a format, or a `FileFormat`. Which columns are lists is decided once
                for all parts.
            keep_alive: Seconds for which the server holds the snapshot without requests, at least 60; None for what
                `config.toml` says.
            earlier: An earlier split whose parts are still wanted; it is returned if these rows and parts are the same,
                counted from its instant unless the rows have a `now`. None for a new split.

        Returns:
            Plain data, which pickle and msgspec encode. It holds no secret.

        Raises:
            UnsupportedOperationError: The driver splits no exports.
            ConfigurationError: There is no such format or column, or there cannot be so many parts.
            ExportError: The earlier split is of other rows, or another format (code ``resume-refused``).
        """
        from .splits import SplitExports

        self._calls.driver.check_open()
        return await SplitExports(self._calls).split_or_continue(
            earlier, self.selection, file_format=format, parts=parts, keep_alive=keep_alive or self._calls.keep_alive
        )

    async def part(
        self,
        split: Split,
        *,
        number: int,
        to: Path | str,
        pace: Pacing | None = None,
        confirm: Callable[[], object] | None = None,
        emit: Callable[[Event], None] | None = None,
    ) -> PartResult:
        """Export one part of a split to a file, which appears only when it is complete.

        Of the choice of rows, only the object matters.

        Args:
            split: The result of `Rows.split`, perhaps in another process.
            number: The part's number, from 0.
            to: The path of the file; `Split.file` is its usual name.
            pace: Shared by all parts of this process, which slow down together while the server is busy; None for no
                pace.
            confirm: Called in a thread before the complete file appears; it prevents that by raising an error.
            emit: Receives the events of this part; None emits them as those of every export.

        Raises:
            ConfigurationError: The rows are of another object than the split's; or this connection leads to another
                server, or has another driver (``worker-differs``).
            ExportError: The file cannot be written, or the part is short (``parts-differ``).
            QueryError: The server no longer holds the snapshot (``context-lost``).
        """
        return await self._parts_of(split).part(
            split, number, to=Path(to), emit=emit or self._calls.emit, pace=pace, confirm=confirm or (lambda: None)
        )

    def part_batches(self, split: Split, *, number: int, pace: Pacing | None = None) -> Batches:
        """Iterate over the rows of one part of a split as `pyarrow.RecordBatch`; there is at least one.

        Of the choice of rows, only the object matters. See `Rows.batches` for the types, the column ``_misfits``, and a
        caller that stops early.

        Args:
            split: The result of `Rows.split` with ``format="arrow"``, perhaps in another process.
            number: The part's number, from 0.
            pace: Shared by all parts of this process, which slow down together while the server is busy; None for no
                pace.

        Raises:
            ConfigurationError: The rows are of another object than the split's; this connection leads to another
                server, or has another driver (``worker-differs``); or the split is of a format without types.
            ExportError: A value does not fit its type, if the split is strict (``values-misfit``); or the part is short
                (``parts-differ``).
            QueryError: The server no longer holds the snapshot (``context-lost``).
        """
        from .whole_reads import Batches

        return Batches(partial(self._parts_of(split).batches, split, number, pace=pace))

    async def hold(self, split: Split, *, seconds: int) -> bool:
        """Keep the snapshot of a split for some time, or free it. Of the choice of rows, only the object matters.

        Args:
            split: The result of `Rows.split`, perhaps in another process.
            seconds: Seconds from now on; 0 to free the snapshot.

        Returns:
            Whether the server held it; true for a split without a snapshot.

        Raises:
            ConfigurationError: The rows are of another object than the split's.
        """
        return await self._parts_of(split).hold(split, seconds)

    def check_origin(self, split: Split) -> None:
        """Check that this connection can read the parts of a split that another process has made; nothing is sent.

        Raises:
            ConfigurationError: The rows are of another object than the split's; or this connection leads to another
                server, or has another driver (``worker-differs``).
        """
        split.origin.check(self._parts_of(split).origin())

    def emit(self, event: Event) -> None:
        """Emit an event as this connection does its own, such as the progress of an export that a caller runs."""
        self._calls.emit(event)

    def _parts_of(self, split: Split) -> SplitExports:
        """Return what reads the parts of a split of these rows' object."""
        from .splits import SplitExports

        self._calls.driver.check_open()
        if split.request.object != (name := self.selection.object):
            reason = f"the split is of {split.request.object!r}, not of {name!r}"
            raise ConfigurationError(reason, hint="use rows of its object: session.rows(split.request.object)")
        return SplitExports(self._calls)
