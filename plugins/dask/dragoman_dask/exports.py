"""Exports in parts: the target by its path or URL, one part, and all parts in this process or on a cluster."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync

from dragoman.extending import PartResult, background, reporting, scratch_folder
from dragoman_api.errors import DragomanError
from dragoman_api.events import ExportProgressed

from .coordinator import Coordinator
from .folder_target import FolderTarget
from .object_store_target import ObjectStoreTarget
from .object_stores import ObjectStore, parse_target
from .pace import Pace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from anyio.streams.memory import MemoryObjectSendStream

    from dragoman import FileFormat, Rows, Session
    from dragoman.extending import Split
    from dragoman_api.events import Event

    from .coordinator import Runner
    from .target import PartsResult, PartsTarget

AT_ONCE = 4
"""The default number of parts that one process exports at the same time."""


async def export(
    rows: Rows,
    to: Path | str,
    *,
    parts: int,
    format: FileFormat | str = "documents",  # noqa: A002 - the word that people know
    keep_alive: int | None = None,
    resume: bool = False,
    at_once: int | None = None,
    runner: Runner | None = None,
) -> PartsResult:
    """Export rows in parts, each a file in one folder, which is complete once it holds a ``manifest.json``.

    A part appears when it is complete. An export that is cancelled frees its snapshot and removes its parts; one that
    failed can be continued while the server holds the snapshot. Code without ``async`` calls it by `BlockingRows.run`.

    Args:
        rows: The rows.
        to: A folder, or a URL that fsspec knows, such as ``s3://bucket/orders/``; it must be empty or missing. A part
            for a URL is first written to a private file in the temporary folder. Credentials come from the environment
            and from the configuration of the backend, such as `s3fs` or `gcsfs`.
        parts: The wanted number of parts, 1 to 1,024; there are fewer if the object has fewer rows, or if the server
            cannot split an export.
        format: What each part is: the name of a format, or a `FileFormat`.
        keep_alive: Seconds for which the server holds the snapshot without requests, at least 60; None for what
            `config.toml` says.
        resume: Export the missing parts of an export that failed. Relative times still count from the beginning of its
            first run, unless the rows have a `now`.
        at_once: The number of parts that this process exports at the same time; None for 4.
        runner: Runs the parts elsewhere, such as that of `on_cluster`; None runs them in this process.

    Returns:
        The content of the manifest.

    Raises:
        ConfigurationError: The URL holds a password, or the package for it is missing.
        ExportError: The target holds something else (``target-occupied``) or cannot be written, another export is
            writing it (``export-running``), there is nothing to resume (``resume-refused``), the snapshot is gone
            (``snapshot-lost``), or rows are missing (``parts-differ``).
        DragomanError: The export cannot be split, or a part failed.
    """
    target = await run_sync(parts_target, to)
    with reporting(rows.emit, connection=rows.connection, object=rows.selection.object, target=target.name):
        earlier = await run_sync(lambda: target.open(resume=resume))
        try:
            split = await rows.split(parts, format=format, keep_alive=keep_alive, earlier=earlier)

            async def hold(split: Split, seconds: int) -> bool:
                return await rows.hold(split, seconds=seconds)

            coordinator = Coordinator(target, hold=hold, emit=rows.emit)
            return await coordinator.run(split, runner or in_this_process(rows, at_once or AT_ONCE), resumed=resume)
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(target.leave)


def in_this_process(rows: Rows, at_once: int) -> Runner:
    """Return a runner that exports parts in this process, at most `at_once` at the same time."""

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
                        part = await export_part(rows, split, number, to=file, pace=pace, emit=show)
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


async def _results(
    take: AsyncIterator[tuple[int, PartResult] | DragomanError],
) -> AsyncIterator[tuple[int, PartResult]]:
    async for outcome in take:
        if isinstance(outcome, DragomanError):
            raise outcome
        yield outcome


async def export_part(
    rows: Rows,
    split: Split,
    number: int,
    *,
    to: Path | str,
    pace: Pace | None = None,
    confirm: Callable[[], object] = lambda: None,
    emit: Callable[[Event], None] | None = None,
) -> PartResult:
    """Export one part to a file or to a URL, where it appears only when it is complete; see `Rows.part`."""
    async with local_file(to, confirm=confirm) as (file, ready):
        return await rows.part(split, number=number, to=file, pace=pace, confirm=ready, emit=emit)


@asynccontextmanager
async def local_file(
    to: Path | str, *, confirm: Callable[[], object]
) -> AsyncIterator[tuple[Path, Callable[[], object]]]:
    """Yield the path to write to, and a function to call before its file is complete.

    For a URL, the path is a private one, and its file is uploaded if the block ends without an error.

    Args:
        to: The path or the URL of the file.
        confirm: Called before the file appears at its place; if it raises an error, nothing of the file is left.

    Raises:
        ConfigurationError: It is a URL that holds a password or options, or the package for it is missing.
        ExportError: The upload failed; nothing of the file is left.
    """
    place = await run_sync(parse_target, to)
    if isinstance(place, Path):
        yield place, confirm
        return
    scratch = scratch_folder()
    folder = await run_sync(scratch.__enter__)
    try:
        parent, name = place.split()
        yield folder / name, lambda: None
        await run_sync(partial(parent.put, folder / name, name, confirm=confirm))
    finally:
        with anyio.CancelScope(shield=True):
            await run_sync(scratch.__exit__, None, None, None)


def parts_target(to: Path | str) -> PartsTarget:
    """Return the target that a path or a URL names.

    Raises:
        ConfigurationError: It is a URL that holds a password or options, or the package for it is missing.
    """
    place = parse_target(to)
    if isinstance(place, ObjectStore):
        return ObjectStoreTarget(place)
    return FolderTarget(place)


def unfinished(to: Path | str) -> bool:
    """Return whether a target holds an export in parts that may be continued; False if it cannot be read. Blocks."""
    try:
        return parts_target(to).unfinished()
    except DragomanError:
        return False


async def abandon(to: Path | str, session: Session) -> None:
    """Free the snapshot of an unfinished export and remove its parts, when the process that made them has to stop.

    Args:
        to: The path or the URL of the target.
        session: Another session of the same connection.

    Raises:
        DragomanError: The target cannot be read, or the server did not answer.
    """
    target = await run_sync(parts_target, to)
    split = await run_sync(lambda: target.open(resume=True))
    try:
        if split is not None and split.snapshot:
            await session.rows(split.request.object).hold(split, seconds=0)
            await run_sync(target.discard, split)
    finally:
        await run_sync(target.leave)
