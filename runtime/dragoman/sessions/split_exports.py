"""Exports that are split into parts: the split, one part, the snapshot, and all parts in this process."""

from __future__ import annotations

import hashlib
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from anyio.to_thread import run_sync

from dragoman.background import background
from dragoman.exports import TYPED, Export, ExportSource
from dragoman.exports.failures import reporting
from dragoman.exports.formats import column_notes
from dragoman.exports.parts.coordinator import Coordinator
from dragoman.exports.parts.pace import Pace
from dragoman.exports.parts.split import ExportOrigin, PartResult, Split
from dragoman.exports.parts.targets import parts_target
from dragoman.exports.uploads import local_file
from dragoman.exports.values import RowKeys
from dragoman_api.errors import ConfigurationError, DragomanError, DriverFaultError, ExportError
from dragoman_api.events import ExportProgressed
from dragoman_api.exports import MAX_SHARES, ExportRequest, SnapshotHold, SplitRequest
from dragoman_api.hookspecs import DriverSpec

from .prepared_reads import until_unchanged
from .whole_reads import check_format, lists_of, requested_batches, table_columns, with_lists

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path

    from anyio.streams.memory import MemoryObjectSendStream
    from pyarrow import RecordBatch

    from dragoman.exports import Shape
    from dragoman.exports.export import Parts
    from dragoman.exports.parts.coordinator import Runner
    from dragoman.exports.parts.split import PartsResult
    from dragoman.exports.parts.target import PartsTarget
    from dragoman_api.columns import Note
    from dragoman_api.events import Event

    from .driver_calls import Calls
    from .live_driver import LiveDriver
    from .prepared_reads import Preparation, Scope
    from .whole_reads import Lists

LEAST_HOLD = 60
"""The least seconds for which a server holds a snapshot without requests."""


class SplitExports:
    """The split exports of one session."""

    def __init__(self, driver: LiveDriver, calls: Calls, reads: Preparation) -> None:
        self._driver, self._calls, self._reads = driver, calls, reads

    def origin(self) -> ExportOrigin:
        """Return the server and the driver of this connection."""
        driver, generation = self._driver, self._driver.generation
        return ExportOrigin(
            connection=driver.info.name,
            server=f"{driver.server.product} {driver.server.version}",
            endpoints=hashlib.sha256(msgspec.json.encode(driver.endpoints)).hexdigest(),
            plugin=generation.plugin,
            version=generation.version,
            wheel=generation.sha256,
        )

    async def split(
        self,
        scope: Scope,
        *,
        shape: Shape,
        columns: Sequence[str] | None,
        lists: Lists,
        parts: int,
        keep_alive: int,
    ) -> Split:
        """Split an export; see `Session.split`.

        Args:
            scope: The rows.
            shape: Format and compression.
            columns: Of a table, in order; None for all.
            lists: As for `with_lists`.
            parts: The wanted number of parts.
            keep_alive: Seconds for which the server holds the snapshot without requests.
        """
        planned = await self.plan(scope, shape=shape, columns=columns, lists=lists, parts=parts, keep_alive=keep_alive)

        async def divide() -> Split:
            asked = SplitRequest(export=planned.request, shares=parts)
            made = await self._calls.run(DriverSpec.split_export, asked, object=scope.object)
            if not 1 <= len(made.shares) <= parts:
                raise DriverFaultError(f"the driver made {len(made.shares):,} parts, not 1 to {parts:,}")
            return msgspec.structs.replace(
                planned,
                shares=made.shares,
                snapshot=made.snapshot,
                total=made.total,
                notes=[*planned.notes, *made.notes],
            )

        split, changed = await until_unchanged(divide)
        return msgspec.structs.replace(split, notes=[*split.notes, *changed])

    async def plan(
        self,
        scope: Scope,
        *,
        shape: Shape,
        columns: Sequence[str] | None,
        lists: Lists,
        parts: int,
        keep_alive: int,
    ) -> Split:
        """Return a split without shares yet: what `Split.identity` compares. Nothing is held on the server.

        Raises:
            ConfigurationError: There cannot be so many parts.
        """
        if not 1 <= parts <= MAX_SHARES:
            raise ConfigurationError(f"an export has 1 to {MAX_SHARES:,} parts, not {parts:,}")
        self._reads.check(tenant=scope.tenant, revision=scope.revision)
        described = await self._reads.describe(scope.object) if shape.tabular else None
        table = table_columns(described, columns, typed=shape.format in TYPED) if described else []
        made = await self._reads.prepare(scope, fresh=not shape.tabular)
        check_format(lists, typed=shape.format in TYPED)
        notes = made.notes
        if shape.format in TYPED:
            table, found = await with_lists(self._calls, scope, made, table, lists=lists)
            notes = [*notes, *found]
        named = [column.name for column in table] if shape.tabular else columns
        request = ExportRequest(
            object=scope.object,
            filter=made.filter,
            time=made.time,
            form=shape.form,
            columns=None if named is None else list(named),
            tenant=scope.tenant,
            revision=scope.revision,
            keep_alive=max(keep_alive, LEAST_HOLD),
        )
        return Split(
            origin=self.origin(),
            request=request,
            shares=[],
            snapshot="",
            total=None,
            notes=[*notes, *(column_notes(described, columns) if described else ())],
            filter=made.filter.rows if made.filter else [],
            wanted=parts,
            format=shape.format,
            compression=shape.compression,
            escape=shape.escape,
            strict=shape.strict,
            table=table,
            described=described.columns if described else [],
            whole=shape.tabular and columns is None,
            now=scope.now,
            started=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    async def _know(self, split: Split, number: int) -> None:
        """Check that this connection can read a part.

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
        to: Path | str,
        emit: Callable[[Event], None],
        pace: Pace | None,
        confirm: Callable[[], object] = lambda: None,
    ) -> PartResult:
        """Export one part to a file, or to a URL; see `Session.export_part`."""
        await self._know(split, number)
        source = ExportSource(
            connection=split.origin.connection,
            object=split.request.object,
            server=split.origin.server,
            plugin=split.origin.plugin,
            version=split.origin.version,
        )
        async with local_file(to, confirm=confirm) as (file, ready):
            export = Export(source, to=file, shape=split.shape, resume=False, emit=emit)
            with export.reporting():
                request = split.of_part(number)
                about: dict[str, Any] = {"columns": split.table, "described": split.described, "whole": split.whole}
                result = await export.run(request, **about, manifest=False, parts=self._at(pace), confirm=ready)
            told = {(note.code, note.reason) for note in split.notes}
            told |= {(note.code, note.reason) for note in export.left_out.notes()}
            notes = [note for note in result.notes if (note.code, note.reason) not in told]
            _check_rows(split, number, notes)
        return PartResult(
            file=file.name,
            rows=result.rows,
            bytes=result.bytes,
            sha256=result.sha256,
            notes=notes,
            left_out=export.left_out,
        )

    def _at(self, pace: Pace | None) -> Parts:
        """Return what streams the parts of a request, at a pace."""
        return (lambda request: pace.parts(self._calls.parts(request))) if pace else self._calls.parts

    async def batches(
        self, split: Split, number: int, notes: list[Note], *, pace: Pace | None
    ) -> AsyncGenerator[RecordBatch, None]:
        """Yield the rows of one part as record batches; see `Session.part_batches`."""
        if split.format not in TYPED:
            reason = f"a part of the format {split.format} has no columns with types"
            raise ConfigurationError(reason, hint="split with format='arrow'")
        await self._know(split, number)
        from dragoman.exports.tables import TableReader

        keys = RowKeys(split.described) if split.whole else None
        reader = TableReader(split.table, described=split.described, strict=split.strict, keys=keys)
        async with aclosing(requested_batches(self._at(pace), split.of_part(number), reader, notes)) as batches:
            async for batch in batches:
                yield batch
        _check_rows(split, number, notes)

    async def hold(self, split: Split, seconds: int) -> bool:
        """Keep the snapshot of a split export, or free it; see `Session.hold`."""
        if not split.snapshot:
            return True
        asked = SnapshotHold(snapshot=split.snapshot, seconds=seconds)
        return await self._calls.run(DriverSpec.hold_snapshot, asked, object=split.request.object)

    def here(self, at_once: int) -> Runner:
        """Return what runs parts in this process, so many at once."""

        @asynccontextmanager
        async def run(
            split: Split, numbers: Sequence[int], target: PartsTarget, progressed: Callable[[int, int, int], None]
        ) -> AsyncIterator[AsyncIterator[tuple[int, PartResult]]]:
            give, take = anyio.create_memory_object_stream[tuple[int, PartResult] | DragomanError](len(numbers))
            waiting, pace = list(reversed(numbers)), Pace()

            async def work(give: MemoryObjectSendStream[tuple[int, PartResult] | DragomanError]) -> None:
                with give:
                    while waiting:
                        number = waiting.pop()

                        def show(event: Event, number: int = number) -> None:
                            if isinstance(event, ExportProgressed):
                                progressed(number, event.rows, event.bytes)

                        try:
                            file = target.file(split.file(number))
                            part = await self.part(split, number, to=file, emit=show, pace=pace)
                        except DragomanError as error:
                            waiting.clear()
                            await give.send(error)
                            return
                        await give.send((number, part))

            async with background() as tasks, take:
                with give:
                    for _ in range(min(at_once, len(numbers))):
                        tasks.start_soon(work, give.clone())
                yield _results(take)

        return run


def _check_rows(split: Split, number: int, notes: Sequence[Note]) -> None:
    """Raise ExportError if a part of a snapshot has more or fewer rows than the server counted."""
    if split.snapshot and (reason := next((note.reason for note in notes if note.code == "rows-differ"), "")):
        raise ExportError(f"part {number:,}: {reason}", code="parts-differ")


async def _results(
    take: AsyncIterator[tuple[int, PartResult] | DragomanError],
) -> AsyncIterator[tuple[int, PartResult]]:
    async for each in take:
        if isinstance(each, DragomanError):
            raise each
        yield each


async def split_or_continue(
    exports: SplitExports,
    found: Split | None,
    scope: Scope,
    *,
    shape: Shape,
    columns: Sequence[str] | None,
    lists: Lists,
    parts: int,
    keep_alive: int,
    now: datetime | None,
) -> Split:
    """Split an export, or return the unfinished one of its target.

    Args:
        exports: Those of the session.
        found: The unfinished export; None to begin.
        scope: The rows.
        shape: Format and compression.
        columns: Of a table, in order; None for all.
        lists: As for `with_lists`; None for those of the unfinished export, if there is one.
        parts: The wanted number of parts.
        keep_alive: Seconds for which the server holds the snapshot without requests.
        now: The instant that relative times count from; None for the present one, or that of the unfinished export.

    Raises:
        ExportError: The unfinished export is another one (code ``resume-refused``).
    """
    counted = now if now is not None or found is None else found.now
    if counted is not None:
        scope = msgspec.structs.replace(scope, now=counted)
    if found is None:
        return await exports.split(scope, shape=shape, columns=columns, lists=lists, parts=parts, keep_alive=keep_alive)
    if lists is None:
        lists = lists_of(found.table)
    asked = await exports.plan(scope, shape=shape, columns=columns, lists=lists, parts=parts, keep_alive=keep_alive)
    wanted, has = asked.identity(), found.identity()
    if differences := [name for name in wanted if wanted[name] != has[name]]:
        reason = f"the unfinished export has another {', another '.join(differences)}"
        hint = "repeat the command as it was, or export into another folder"
        raise ExportError(reason, hint=hint, code="resume-refused")
    return found


async def abandon(to: Path | str, free: Callable[[Split], Awaitable[object]]) -> None:
    """Free the snapshot of an unfinished export and remove its parts, for a process that was told to stop.

    Raises:
        DragomanError: The target cannot be read, or the server did not answer.
    """
    target = await run_sync(parts_target, to)
    split = await run_sync(lambda: target.open(resume=True))
    try:
        if split is not None and split.snapshot:
            await free(split)
            await run_sync(target.discard, split)
    finally:
        await run_sync(target.leave)


async def in_target(
    exports: SplitExports,
    to: Path | str,
    runner: Runner,
    scope: Scope,
    *,
    shape: Shape,
    columns: Sequence[str] | None,
    lists: Lists,
    parts: int,
    keep_alive: int,
    resume: bool,
    now: datetime | None,
    emit: Callable[[Event], None],
) -> PartsResult:
    """Export in parts into a folder or a store; see `Session.export_parts`."""
    target = await run_sync(parts_target, to)
    with reporting(emit, connection=exports.origin().connection, object=scope.object, target=target.name):
        found = await run_sync(lambda: target.open(resume=resume))
        try:
            split = await split_or_continue(
                exports,
                found,
                scope,
                shape=shape,
                columns=columns,
                lists=lists,
                parts=parts,
                keep_alive=keep_alive,
                now=now,
            )
            return await Coordinator(target, hold=exports.hold, emit=emit).run(split, runner, resumed=resume)
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(target.leave)
