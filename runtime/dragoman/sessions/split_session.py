"""The methods of a session that export in parts."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio.to_thread import run_sync

from .counts_and_rows import Batches
from .prepared_reads import Scope
from .time_spans import DEFAULT, whole_now

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman.exports import Shape
    from dragoman.exports.parts.coordinator import Runner
    from dragoman.exports.parts.pace import Pace
    from dragoman.exports.parts.split import ExportOrigin, PartResult, PartsResult, Split
    from dragoman_api.events import Event
    from dragoman_api.filters import Filter, RawQuery

    from .driver_calls import Calls
    from .live_driver import LiveDriver
    from .prepared_reads import Preparation
    from .split_exports import SplitExports
    from .time_spans import Span


AT_ONCE = 4
"""The number of parts that one process exports at once."""


class SplitSession:
    """The part of `Session` that exports in parts, which the processes of a cluster may share."""

    _driver: LiveDriver
    _emit: Callable[[Event], None]
    _calls: Calls
    _reads: Preparation
    _keep_alive: int

    @property
    def _split_exports(self) -> SplitExports:
        from .split_exports import SplitExports

        self._driver.expect_open()
        return SplitExports(self._driver, self._calls, self._reads)

    def origin(self) -> ExportOrigin:
        """Return the server and the driver of this connection, as the workers of an export in parts compare them."""
        return self._split_exports.origin()

    async def split(
        self,
        object: str,  # noqa: A002
        *,
        parts: int,
        format: str = "documents",  # noqa: A002
        compress: str | None = None,
        filters: Sequence[Filter | RawQuery] = (),
        match: str = "all",
        columns: Sequence[str] | None = None,
        lists: Sequence[str] | None = None,
        tenant: str | None = None,
        revision: str = "",
        span: Span = DEFAULT,
        keep_alive: int | None = None,
        escape_formulas: bool = False,
        strict: bool = False,
        now: str | None = None,
    ) -> Split:
        """Split an export into parts that any process with the same connection can export, of one snapshot if possible.

        The server holds the snapshot for `keep_alive` seconds; `hold` renews it, and has to free it in the end.

        Args:
            object: Its name.
            parts: The wanted number of parts, 1 to 1,024; there are fewer if the object has fewer rows, or if the
                server cannot split an export, which a note says.
            format: As for `export`, but not by the name of a file.
            compress: As for `export`.
            filters: As for `export`.
            match: As for `export`.
            columns: As for `export`.
            lists: As for `export`; decided once for all parts.
            tenant: As for `export`.
            revision: As for `export`.
            span: As for `export`.
            keep_alive: Seconds for which the server holds the snapshot without requests; at least 60.
            escape_formulas: As for `export`.
            strict: As for `export`.
            now: The instant that relative times count from; by default the present one.

        Returns:
            Plain data, which pickle and msgspec encode. It holds no secret.

        Raises:
            UnsupportedOperationError: The driver splits no exports.
            ConfigurationError: There is no such format or column, or there cannot be so many parts.
        """
        scope = Scope(
            object=object, filters=filters, match=match, span=span, tenant=tenant, revision=revision, now=whole_now(now)
        )  # fmt: skip
        shape = await _part_shape(format=format, compress=compress, escape_formulas=escape_formulas, strict=strict)
        return await self._split_exports.split(
            scope, shape=shape, columns=columns, lists=lists, parts=parts, keep_alive=keep_alive or self._keep_alive
        )

    async def export_part(
        self,
        split: Split,
        *,
        number: int,
        to: Path | str,
        pace: Pace | None = None,
        confirm: Callable[[], object] | None = None,
    ) -> PartResult:
        """Export one part of a split export to a file, which appears only when it is complete.

        Args:
            split: From `split`, perhaps of another process.
            number: The part's number, from 0.
            to: The file, or its URL, as for `export_parts`; `Split.file` is its usual name.
            pace: Shared by all parts of this process, which slow down together while the server is busy.
            confirm: Called in a thread before the complete file appears, which it prevents by raising an error.

        Raises:
            ConfigurationError: This connection leads to another server, or has another driver (``worker-differs``).
            ExportError: The file cannot be written, or the part is short (``parts-differ``).
            QueryError: The server no longer holds the snapshot (``context-lost``).
        """
        return await self._split_exports.part(
            split, number, to=to, emit=self._emit, pace=pace, confirm=confirm or (lambda: None)
        )

    def part_batches(self, split: Split, *, number: int, pace: Pace | None = None) -> Batches:
        """Iterate over the rows of one part of a split export as `pyarrow.RecordBatch`; there is at least one.

        See `batches` for the types, the column ``_misfits``, and a caller that stops early.

        Args:
            split: From `split` with ``format="arrow"``, perhaps of another process.
            number: The part's number, from 0.
            pace: As for `export_part`.

        Raises:
            ConfigurationError: As for `export_part`, or the split is of a format without types.
            ExportError: A value does not fit its type, if the split is strict (``values-misfit``); or the part is short
                (``parts-differ``).
            QueryError: The server no longer holds the snapshot (``context-lost``).
        """
        return Batches(partial(self._split_exports.batches, split, number, pace=pace))

    async def hold(self, split: Split, *, seconds: int) -> bool:
        """Keep the snapshot of a split export for so many seconds from now on; 0 frees it.

        Args:
            split: From `split`, perhaps of another process.
            seconds: The seconds.

        Returns:
            Whether the server held it; true for an export without a snapshot.
        """
        return await self._split_exports.hold(split, seconds)

    async def export_parts(
        self,
        object: str,  # noqa: A002
        *,
        to: Path | str,
        parts: int,
        format: str = "documents",  # noqa: A002
        compress: str | None = None,
        filters: Sequence[Filter | RawQuery] = (),
        match: str = "all",
        columns: Sequence[str] | None = None,
        lists: Sequence[str] | None = None,
        tenant: str | None = None,
        revision: str = "",
        span: Span = DEFAULT,
        keep_alive: int | None = None,
        escape_formulas: bool = False,
        strict: bool = False,
        resume: bool = False,
        now: str | None = None,
        at_once: int = AT_ONCE,
        runner: Runner | None = None,
    ) -> PartsResult:
        """Export an object in parts, each a file of one target, which is complete once it has a ``manifest.json``.

        A part appears when it is complete. An interrupted export frees its snapshot and removes its parts; one that
        failed can be continued while the server holds the snapshot.

        Args:
            object: Its name.
            to: A folder, or a URL that fsspec knows, as ``s3://bucket/orders/``; it must be empty or missing. A part
                for a URL is a private file in the temporary folder first. Credentials come from the environment and
                from the configuration of the backend (`s3fs`, `gcsfs` and so on).
            parts: As for `split`.
            format: As for `split`.
            compress: As for `export`.
            filters: As for `export`.
            match: As for `export`.
            columns: As for `export`.
            lists: As for `export`; decided once for all parts.
            tenant: As for `export`.
            revision: As for `export`.
            span: As for `export`.
            keep_alive: As for `split`.
            escape_formulas: As for `export`.
            strict: As for `export`.
            resume: Export the missing parts of an export that failed.
            now: As for `split`; times relative to now stay relative to the first run of an export that is resumed.
            at_once: The number of parts that are exported at once.
            runner: Runs the parts elsewhere, see `dragoman.dask`; by default they run in this process.

        Returns:
            The content of the manifest.

        Raises:
            ConfigurationError: The URL holds a password, or the package for it is missing.
            ExportError: The target holds something else (``target-occupied``) or cannot be written, another export is
                writing it (``export-running``), there is nothing to resume (``resume-refused``), the snapshot is gone
                (``snapshot-lost``), or rows are missing (``parts-differ``).
            DragomanError: A part failed, as for `split` and `export_part`.
        """
        from .split_exports import in_target

        scope = Scope(object=object, filters=filters, match=match, span=span, tenant=tenant, revision=revision)
        shape = await _part_shape(format=format, compress=compress, escape_formulas=escape_formulas, strict=strict)
        exports = self._split_exports
        return await in_target(
            exports,
            to,
            runner or exports.here(at_once),
            scope,
            shape=shape,
            columns=columns,
            lists=lists,
            parts=parts,
            keep_alive=keep_alive or self._keep_alive,
            resume=resume,
            now=None if now is None else whole_now(now),
            emit=self._emit,
        )


async def _part_shape(*, format: str, compress: str | None, escape_formulas: bool, strict: bool) -> Shape:  # noqa: A002
    """Choose the shape of the files of an export in parts."""
    from dragoman.exports import choose

    about: dict[str, Any] = {"escape_formulas": escape_formulas, "strict": strict}
    return await run_sync(partial(choose, Path("part"), format=format, compress=compress, **about))
