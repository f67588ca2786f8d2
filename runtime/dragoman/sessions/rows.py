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
from dragoman_api.grid import MAX_ROWS, CellRequest, CountRequest, PageRequest
from dragoman_api.hookspecs import DriverSpec
from dragoman_api.previews import PreviewRequest
from dragoman_api.summaries import SummaryRequest

from .arguments import check_key
from .counts_and_streams import Batches, Count, RowStream
from .prepared_reads import Preparation, until_unchanged
from .result_checks import check_summary, within
from .selections import RowSelection

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from pyarrow import Table

    from dragoman.exports import ExportResult, FileFormat
    from dragoman.exports.parts.coordinator import Runner
    from dragoman.exports.parts.split import PartsResult, Split
    from dragoman_api.cells import Cell
    from dragoman_api.changes import HttpRequest
    from dragoman_api.filters import CompiledFilter
    from dragoman_api.grid import Page, RowKey
    from dragoman_api.summaries import ColumnSummary


AT_ONCE = 4
"""The default number of parts that one process exports at the same time."""


@dataclass(frozen=True, slots=True, repr=False)
class Rows:
    """Rows of an object, which are read only when a method is called.

    `Session.rows` makes it. It never changes: each call of a method reads anew, and several may run at the same time.
    Two are equal if they are the same rows of the same open connection. ``async for row in rows`` reads documents in
    constant memory; see `stream`.

    Attributes:
        selection: The choice of rows, as a plain value.
    """

    _reads: Preparation
    selection: RowSelection = field(kw_only=True)

    def __repr__(self) -> str:
        chosen = self.selection
        choices = {
            name: getattr(chosen, name)
            for name, default in zip(chosen.__struct_fields__[1:], chosen.__struct_defaults__, strict=True)
            if getattr(chosen, name) != default
        }
        arguments = "".join(f", {name}={list(value) if isinstance(value, tuple) else value!r}"
                            for name, value in choices.items())  # fmt: skip
        return f"<{self._reads.driver.info.name}.rows({chosen.object!r}{arguments})>"

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
        from .whole_reads import read_rows

        return RowStream(partial(read_rows, self._reads, self.selection, form=form))

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
        selection, request = self.selection.at(), self._page_request(limit, offset, total=total, cursor=cursor)
        reads, began = self._reads, 0.0

        async def fetch() -> Page:
            nonlocal began
            prepared = await reads.prepare(selection)
            filled = msgspec.structs.replace(request, filter=prepared.filter, time=prepared.time)
            began = time.perf_counter()
            page = await reads.calls.run(DriverSpec.fetch_page, filled, object=selection.object, rows=limit)
            notes = [*prepared.notes, *page.notes]
            return msgspec.structs.replace(page, notes=notes, time=prepared.time, now=prepared.now)

        page, changed = await until_unchanged(fetch)
        if changed:
            page = msgspec.structs.replace(page, notes=[*changed, *page.notes])
        reads.emit(
            events.PageFetched(
                connection=reads.driver.info.name,
                object=selection.object,
                rows=len(page.cells),
                seconds=time.perf_counter() - began,
                notes=[note.code for note in page.notes],
            )
        )
        return page

    def _page_request(self, limit: int, offset: int, *, total: bool, cursor: str | None) -> PageRequest:
        """Return the request for a page, without its filter and span of time."""
        if offset < 0:
            raise ConfigurationError(f"a page begins at an offset of 0 or more, not {offset:,}")
        if not 1 <= limit <= MAX_ROWS:
            raise ConfigurationError(f"a page has 1 to {MAX_ROWS:,} rows, not {limit:,}")
        selection = self.selection
        return PageRequest(
            object=selection.object,
            sort=list(selection.sort),
            offset=offset,
            limit=limit,
            columns=selection.listed_columns,
            total=total,
            cursor=cursor,
            tenant=selection.tenant,
            revision=selection.revision,
            residual=selection.residual,
        )

    def _count_request(self) -> CountRequest:
        """Return the request for a count, without its filter and span of time."""
        selection = self.selection
        return CountRequest(object=selection.object, tenant=selection.tenant, revision=selection.revision)

    async def count(self) -> Count:
        """Count the rows; `Count.notes` say what makes the number approximate, if anything does.

        Raises:
            FilterNotSupportedError: A filter row cannot run as asked.
        """
        selection, request, reads = self.selection.of_server(), self._count_request(), self._reads

        async def count() -> Count:
            prepared = await reads.prepare(selection)
            filled = msgspec.structs.replace(request, filter=prepared.filter, time=prepared.time)
            number = await reads.calls.run(DriverSpec.count_rows, filled, object=selection.object)
            return Count(number, prepared.notes, time=prepared.time)

        number, changed = await until_unchanged(count)
        return Count(number, [*changed, *number.notes], time=number.time)

    async def explain(self) -> CompiledFilter:
        """Compile the filter for the columns as the server has them now, and explain each row; no rows are fetched.

        Raises:
            FilterNotSupportedError: A filter row cannot run as asked.
        """
        return await self._reads.compile(self.selection.at(), self.selection.filters, fresh=True)

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
        request = PreviewRequest(page=self._page_request(limit, offset, total=total, cursor=cursor))
        return await self._preview(self.selection.at(), request)

    async def preview_count(self) -> list[HttpRequest]:
        """Return the requests that `count` would send first, as `preview_page` does.

        Raises:
            UnsupportedOperationError: The driver names no requests, or each depends on the answer to another one.
            FilterNotSupportedError: A filter row cannot run as asked.
        """
        return await self._preview(self.selection.of_server(), PreviewRequest(count=self._count_request()))

    async def _preview(self, selection: RowSelection, request: PreviewRequest) -> list[HttpRequest]:
        reads = self._reads

        async def preview() -> list[HttpRequest]:
            prepared = await reads.prepare(selection)
            filled = PreviewRequest(
                page=request.page and msgspec.structs.replace(request.page, filter=prepared.filter, time=prepared.time),
                count=request.count
                and msgspec.structs.replace(request.count, filter=prepared.filter, time=prepared.time),
            )
            return await reads.calls.run(DriverSpec.preview_read, filled, object=selection.object)

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
        check_summary(values=values, buckets=buckets)
        selection, reads = self.selection.of_server(), self._reads
        request = SummaryRequest(
            object=selection.object,
            column=column,
            tenant=selection.tenant,
            revision=selection.revision,
            values=values,
            buckets=buckets,
        )

        async def summarize() -> ColumnSummary:
            prepared = await reads.prepare(selection)
            filled = msgspec.structs.replace(request, filter=prepared.filter, time=prepared.time)
            summary = await reads.calls.run(DriverSpec.summarize_column, filled, object=selection.object)
            return within(filled, msgspec.structs.replace(summary, notes=[*prepared.notes, *summary.notes]))

        summary, changed = await until_unchanged(summarize)
        return msgspec.structs.replace(summary, notes=[*changed, *summary.notes])

    async def cell(self, key: RowKey, column: str) -> Cell:
        """Fetch the whole value of one cell, uncut; `MISSING` if the row does not hold the field.

        Of the choice of rows, only the object and the revision matter.

        Args:
            key: `Row.key` of a row on a page of the same object.
            column: The column's name.

        Raises:
            ConfigurationError: `key` is not a row's key, or is that of another object.
        """
        check_key(key)
        selection, reads = self.selection, self._reads
        if key.object != selection.object:
            reason = f"the key is of a row of {key.object!r}, not of {selection.object!r}"
            raise ConfigurationError(reason, hint="use rows of the key's object: session.rows(key.object)")
        await reads.know(key.object)
        request = CellRequest(key=key, column=column, revision=selection.revision)

        async def fetch() -> Cell:
            return await reads.calls.run(DriverSpec.fetch_cell, request, object=key.object)

        return (await until_unchanged(fetch))[0]

    def batches(self, *, lists: Sequence[str] | None = None, strict: bool = False) -> Batches:
        """Iterate over the rows as `pyarrow.RecordBatch`, in constant memory; there is at least one.

        The types of the columns come from the object's description. A value that does not fit its column's type is
        null there, and the last column, ``_misfits``, holds it as it is stored: a JSON object from column to value, or
        null if everything in the row fits. Nothing is rounded, and notes ``values-misfit`` count these values. Rows
        without chosen columns have all columns of an export, in which an array of objects is one column.

        A caller that stops early must close the iterator to release the server's resources:
        ``async with aclosing(rows.batches()) as batches``.

        Args:
            lists: The names of the columns to read as lists, among those in which a row may hold one value or several;
                an empty sequence for none. None reads those as lists that hold an array in one of the first 200 rows,
                which a note (``lists-found``) names. In such a column, a single value becomes a list of one. An array
                of one value becomes the same; the one of these two for which a list of one does not stand is also in
                ``_misfits``.
            strict: Refuse a value that does not fit its type (ExportError, code ``values-misfit``).

        Raises:
            ConfigurationError: The package pyarrow is not installed.
        """
        from dragoman.exports import FileFormat

        from .whole_reads import read_batches

        file_format = FileFormat("arrow", strict=strict, lists=lists)
        return Batches(partial(read_batches, self._reads, self.selection, file_format=file_format))

    async def table(self, *, lists: Sequence[str] | None = None, strict: bool = False) -> Table:
        """Read the rows into a `pyarrow.Table`, which pandas, polars and DuckDB take as it is.

        Types and the column ``_misfits`` are those of `batches`. The metadata of the schema hold the notes on the rows,
        as JSON, under ``notes``. They also hold types for pandas, so that `pyarrow.Table.to_pandas` keeps every digit
        of a column of integers in which some are missing.

        Args:
            lists: The names of the columns that are lists; None for those that hold an array in one of the first 200
                rows.
            strict: Refuse a value that does not fit its type (ExportError, code ``values-misfit``).

        Raises:
            ConfigurationError: The package pyarrow is not installed.
        """
        from .whole_reads import collect_table

        return await collect_table(self.batches(lists=lists, strict=strict))

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

        self._reads.driver.check_open()
        return await run_export(
            self._reads,
            self.selection,
            to=Path(to) if isinstance(to, str) else to,
            file_format=format,
            keep_alive=keep_alive or self._reads.keep_alive,
            resume=resume,
            manifest=manifest,
        )

    async def split(
        self,
        parts: int,
        *,
        format: FileFormat | str = "documents",  # noqa: A002 - the word that people know
        keep_alive: int | None = None,
    ) -> Split:
        """Split an export into parts that any process with the same connection can export, of one snapshot if possible.

        `Session.export_part` and `Session.part_batches` read a part. The server holds the snapshot for `keep_alive`
        seconds. The caller renews it with `Session.hold`, and frees it in the end.

        Args:
            parts: The wanted number of parts, 1 to 1,024; there are fewer if the object has fewer rows, or if the
                server cannot split an export, which a note says.
            format: What each part is: the name of a format, or a `FileFormat`. Which columns are lists is decided once
                for all parts.
            keep_alive: Seconds for which the server holds the snapshot without requests, at least 60; None for what
                `config.toml` says.

        Returns:
            Plain data, which pickle and msgspec encode. It holds no secret.

        Raises:
            UnsupportedOperationError: The driver splits no exports.
            ConfigurationError: There is no such format or column, or there cannot be so many parts.
        """
        from .split_exports import SplitExports, part_format

        self._reads.driver.expect_open()
        return await SplitExports(self._reads).split(
            self.selection,
            file_format=await part_format(format),
            parts=parts,
            keep_alive=keep_alive or self._reads.keep_alive,
        )

    async def export_parts(
        self,
        to: Path | str,
        *,
        parts: int,
        format: FileFormat | str = "documents",  # noqa: A002 - the word that people know
        keep_alive: int | None = None,
        resume: bool = False,
        at_once: int = AT_ONCE,
        runner: Runner | None = None,
    ) -> PartsResult:
        """Export the rows in parts, each a file in one folder, which is complete once it holds a ``manifest.json``.

        A part appears when it is complete. An export that is cancelled frees its snapshot and removes its parts; one
        that failed can be continued while the server holds the snapshot.

        Args:
            to: A folder, or a URL that fsspec knows, such as ``s3://bucket/orders/``; it must be empty or missing. A
                part for a URL is first written to a private file in the temporary folder. Credentials come from the
                environment and from the configuration of the backend, such as `s3fs` or `gcsfs`.
            parts: The wanted number of parts, 1 to 1,024; there are fewer if the object has fewer rows, or if the
                server cannot split an export.
            format: What each part is: the name of a format, or a `FileFormat`.
            keep_alive: Seconds for which the server holds the snapshot without requests, at least 60; None for what
                `config.toml` says.
            resume: Export the missing parts of an export that failed. Relative times still count from the beginning of
                its first run, unless the rows have a `now`.
            at_once: The number of parts to export at the same time.
            runner: Runs the parts elsewhere, such as that of `dragoman.dask`; None runs them in this process.

        Returns:
            The content of the manifest.

        Raises:
            ConfigurationError: The URL holds a password, or the package for it is missing.
            ExportError: The target holds something else (``target-occupied``) or cannot be written, another export is
                writing it (``export-running``), there is nothing to resume (``resume-refused``), the snapshot is gone
                (``snapshot-lost``), or rows are missing (``parts-differ``).
            DragomanError: The export cannot be split, or a part failed.
        """
        from .split_exports import export_parts

        self._reads.driver.expect_open()
        return await export_parts(
            self._reads,
            self.selection,
            to=to,
            file_format=format,
            parts=parts,
            keep_alive=keep_alive or self._reads.keep_alive,
            resume=resume,
            at_once=at_once,
            runner=runner,
        )
