"""Exports that are split into parts: the split, one part, and the snapshot."""

from __future__ import annotations

import hashlib
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from anyio.to_thread import run_sync

from dragoman.exports import Export, ExportSource, choose
from dragoman.exports.splits import ExportOrigin, PartResult, Split
from dragoman.exports.values import RowKeys
from dragoman_api.errors import ConfigurationError, DriverFaultError, ExportError
from dragoman_api.exports import MAX_SHARES, SnapshotHold, SplitRequest
from dragoman_api.hookspecs import DriverSpec

from .prepared_reads import until_unchanged
from .whole_reads import lists_of, plan_read, requested_batches

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from pyarrow import RecordBatch

    from dragoman.exports import FileFormat
    from dragoman.exports.export import Parts
    from dragoman.exports.splits import Pacing
    from dragoman_api.columns import Note
    from dragoman_api.events import Event

    from .prepared_reads import Preparation
    from .selections import RowSelection
    from .whole_reads import Lists

LEAST_HOLD = 60
"""The minimum number of seconds for which a server holds a snapshot without requests."""


class SplitExports:
    """The split exports of one session."""

    def __init__(self, reads: Preparation) -> None:
        self._reads, self._calls = reads, reads.calls

    def origin(self) -> ExportOrigin:
        """Return the server and the driver of this connection."""
        driver, generation = self._reads.driver, self._reads.driver.generation
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

        Args:
            earlier: The earlier split; None for a new one.
            selection: The rows; relative times count from its instant, or from that of the earlier split.
            file_format: What each part is; if it names no lists, those of the earlier split are used.
            parts: The wanted number of parts.
            keep_alive: Seconds for which the server holds the snapshot without requests.

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
            lists=lists_of(earlier.table) if chosen.typed and chosen.lists is None else None,
        )
        identity, earlier_identity = plan.identity(), earlier.identity()
        if differences := [name for name in identity if identity[name] != earlier_identity[name]]:
            reason = f"the unfinished export has another {', another '.join(differences)}"
            hint = "repeat the command as it was, or export into another folder"
            raise ExportError(reason, hint=hint, code="resume-refused")
        return earlier

    async def split(self, selection: RowSelection, *, file_format: FileFormat, parts: int, keep_alive: int) -> Split:
        """Split an export into parts, of one snapshot if the driver has them.

        Args:
            selection: The rows.
            file_format: What each part is.
            parts: The wanted number of parts.
            keep_alive: Seconds for which the server holds the snapshot without requests.
        """
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
        read = await plan_read(self._reads, selection, file_format=file_format, lists=lists, keep_alive=hold)
        compiled = read.prepared.filter
        assert selection.now is not None
        return Split(
            origin=self.origin(),
            request=read.request,
            shares=[],
            snapshot="",
            total=None,
            notes=[*read.prepared.notes, *read.notes],
            filter=compiled.rows if compiled else [],
            wanted=parts,
            format=file_format,
            table=read.table,
            described=read.described,
            whole=read.whole,
            server_members=read.server_members,
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
        await self._reads.know(split.request.object)

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
            table: dict[str, Any] = {"columns": split.table, "described": split.described, "whole": split.whole}
            table["server_members"] = split.server_members
            result = await export.run(request, **table, manifest=False, parts=self._at(pace), confirm=confirm)
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
        from dragoman.exports.tables import TableReader

        keys = RowKeys(split.described, server_members=split.server_members) if split.whole else None
        reader = TableReader(split.table, described=split.described, strict=split.format.strict, keys=keys)
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
