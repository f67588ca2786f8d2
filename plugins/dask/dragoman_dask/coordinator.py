"""The coordinator of an export in parts: it keeps the snapshot, counts what is done, and writes the manifest last."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import msgspec
from anyio.to_thread import run_sync

from dragoman.extending import background
from dragoman_api import events
from dragoman_api.errors import DragomanError, ExportError

from .target import PartsResult

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from dragoman.extending import PartResult, Split
    from dragoman_api.events import Event

    from .target import PartsTarget

FREE_SECONDS = 5
"""Maximum seconds to free a snapshot."""

RENEWALS = 3
"""The number of renewals of a snapshot within the time that the server keeps it."""


class Runner(Protocol):
    """Runs parts of an export: here, or on a cluster."""

    def __call__(
        self, split: Split, numbers: Sequence[int], target: PartsTarget, progressed: Callable[[int, int, int], None]
    ) -> AbstractAsyncContextManager[AsyncIterator[tuple[int, PartResult]]]:
        """Run parts, and yield the number and the result of each complete one; leaving the context cancels the others.

        Args:
            split: The export.
            numbers: The numbers of the wanted parts.
            target: The target that the files go to.
            progressed: Called with a part's number, and the numbers of its rows and bytes so far.
        """


class Coordinator:
    """One export in parts, from the split to the manifest; single use."""

    def __init__(
        self, target: PartsTarget, *, hold: Callable[[Split, int], Awaitable[bool]], emit: Callable[[Event], None]
    ) -> None:
        """Prepare an export.

        Args:
            target: The target of the export, open.
            hold: Keeps the snapshot for a number of seconds from now on, or frees it (0). It returns whether the server
                held it, and true if there is none.
            emit: Receives the events of the export.
        """
        self._target, self._hold, self._emit = target, hold, emit
        self._began = time.perf_counter()
        self._progress: dict[int, tuple[int, int]] = {}
        self._total: int | None = None
        self._about: dict[str, Any] = {}
        self._lost: DragomanError | None = None

    async def run(self, split: Split, runner: Runner, *, resumed: bool) -> PartsResult:
        """Run the parts that are missing, and write the manifest.

        After an error, the snapshot stays as long as the server keeps it, so that the export can be continued; if no
        part is complete, nothing stays. A cancelled export frees the snapshot, and removes its parts, which could not
        be continued without it.

        Raises:
            ExportError: The snapshot is gone (code ``snapshot-lost``), a part arrived short (``parts-differ``), or the
                target cannot be written.
            DragomanError: A part failed.
        """
        if resumed:
            await self._keep(split)
            done = await run_sync(self._target.done, split)
        else:
            try:
                await run_sync(self._target.begin, split)
            except DragomanError:
                await self._free(split)
                raise
            done = {}
        self._progress = {number: (part.rows, part.bytes) for number, part in done.items()}
        self._total = split.total
        self._about = {
            "connection": split.origin.connection,
            "object": split.request.object,
            "target": self._target.name,
        }
        self._emit(events.ExportStarted(resumed=self._rows, **self._about))
        numbers = [number for number in range(len(split.shares)) if number not in done]
        try:
            with anyio.CancelScope() as scope:
                async with background() as tasks, runner(split, numbers, self._target, self._progressed) as parts:
                    tasks.start_soon(self._keep_alive, split, scope)
                    async for number, part in parts:
                        done[number] = part
                        await run_sync(self._target.record, part)
                        self._progressed(number, part.rows, part.bytes)
            if self._lost is not None:
                raise self._lost
            result = await run_sync(self._result, split, [done[number] for number in sorted(done)])
            await run_sync(self._target.finish, result)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                if split.snapshot and await self._free(split):
                    await run_sync(self._target.discard, split)
            raise
        except DragomanError as error:
            if not done:  # nothing would be saved
                await self._free(split)
                await run_sync(self._target.discard, split)
            elif not error.hint:
                error.advise("export with resume=True to fetch the missing parts")
            raise
        with anyio.CancelScope(shield=True):
            await self._free(split)
        digest = await run_sync(self._target.digest)
        figures = {name: getattr(result, name) for name in ("rows", "bytes", "seconds")}
        self._emit(events.ExportFinished(sha256=digest, **figures, **self._about))
        return result

    @property
    def _rows(self) -> int:
        return sum(rows for rows, _ in self._progress.values())

    def _progressed(self, number: int, rows: int, bytes_: int) -> None:
        self._progress[number] = rows, bytes_
        size = sum(bytes_ for _, bytes_ in self._progress.values())
        self._emit(events.ExportProgressed(rows=self._rows, bytes=size, total=self._total, **self._about))

    async def _keep(self, split: Split) -> None:
        if not await self._hold(split, split.request.keep_alive):
            raise ExportError(
                f"the server no longer holds the snapshot of the export in {self._target.name}",
                hint="remove the folder and export again; --keep-alive TIME keeps a snapshot longer",
                code="snapshot-lost",
            )

    async def _keep_alive(self, split: Split, scope: anyio.CancelScope) -> None:
        """Renew the snapshot until the end; a failed renewal is repeated, and only a lost snapshot ends the export."""
        while split.snapshot:
            await anyio.sleep(split.request.keep_alive / RENEWALS)
            try:
                await self._keep(split)
            except DragomanError as error:
                if error.code == "snapshot-lost":
                    self._lost = error
                    scope.cancel()
                    return

    async def _free(self, split: Split) -> bool:
        """Free the snapshot, if there is one; return False if that failed, and the snapshot expires by itself."""
        with anyio.move_on_after(FREE_SECONDS), suppress(DragomanError):
            await self._hold(split, 0)
            return True
        return False

    def _result(self, split: Split, parts: list[PartResult]) -> PartsResult:
        request = split.request
        return PartsResult(
            target=self._target.name,
            connection=split.origin.connection,
            object=request.object,
            tenant=request.tenant,
            revision=request.revision,
            time=msgspec.structs.asdict(request.time) if request.time else None,
            filter=split.filter,
            format=split.format.format,
            compression=split.format.compression,
            columns=request.columns,
            rows=sum(part.rows for part in parts),
            total=split.total,
            snapshot=bool(split.snapshot),
            bytes=sum(part.bytes for part in parts),
            parts=parts,
            server=split.origin.server,
            driver=f"{split.origin.plugin} {split.origin.version}",
            dragoman=version("dragoman"),
            started=split.started,
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=time.perf_counter() - self._began,
            notes=split.result_notes(parts, host_notes=self._target.notes),
        )
