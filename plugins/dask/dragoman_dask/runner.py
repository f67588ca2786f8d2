"""Running the parts of an export on a Dask cluster."""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from anyio.to_thread import run_sync

from dragoman_api.errors import ConfigurationError, DragomanError, ExportError
from dragoman_api.wording import failure

from . import workers as tasks
from .clusters import LOCAL, check_address, client_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from dragoman.extending import PartResult, Split

    from .coordinator import Runner
    from .target import PartsTarget

STOP_SECONDS = 10
"""How long the workers may take to end their tasks after a cancellation."""


def on_cluster(
    address: str = LOCAL,
    *,
    workers: int | None = None,
    insecure: bool = False,
    home: Path | None = None,
    max_requests: int | None = None,
) -> Runner:
    """Return a runner of parts for `export`, on a Dask cluster.

    Before any part starts, every worker opens the connection of the same name from its own home, and compares server,
    hosts and driver with those of this process, and writes to the target: all must have it under the same path or URL.

    Args:
        address: ``local`` for a cluster on this machine that ends with the export, or ``tls://HOST:PORT``.
        workers: Processes of a local cluster; by default one for each core.
        insecure: Accept an address that is not encrypted.
        home: The home of local workers, as for Runtime; workers of an existing cluster always have their own.
        max_requests: The maximum number of parts under way on all workers, each of which has one request under way.

    Raises:
        ConfigurationError: The address is refused.
    """
    check_address(address, insecure=insecure)
    of_workers = str(home) if home is not None and address == LOCAL else ""

    @asynccontextmanager
    async def run(
        split: Split, numbers: Sequence[int], target: PartsTarget, progressed: Callable[[int, int, int], None]
    ) -> AsyncIterator[AsyncIterator[tuple[int, PartResult]]]:
        if not target.everywhere:
            hint = "export without --cluster, or into a folder or an object store that all workers reach"
            raise ConfigurationError(f"{target.name} is the memory of one process", hint=hint)
        async with client_of(address, workers=workers, insecure=insecure) as client:
            connection, futures = split.origin.connection, dict[Any, int]()
            try:
                share_pace(client)
                await compare(client, split, of_workers, target)
                key = secrets.token_hex(8)

                def submit(number: int) -> Any:
                    part_split = msgspec.structs.replace(split, shares=[split.shares[number]])
                    future = client.submit(
                        tasks.export_part,
                        msgspec.json.encode(part_split),
                        target.address,
                        split.file(number),
                        target.claim,
                        of_workers,
                        key=f"dragoman-{key}-{number}",
                        pure=False,
                    )
                    futures[future] = number
                    return future

                yield _parts(submit, numbers, target, futures, limit=max_requests or len(numbers))
            finally:
                # The scheduler may be gone.
                with anyio.move_on_after(STOP_SECONDS, shield=True), suppress(Exception):
                    await client.cancel(list(futures))
                    await client.run(tasks.stop, connection, of_workers, on_error="ignore")

    return run


def share_pace(client: Any) -> None:
    """Let all workers of a client slow down when the server turns a request of one of them away."""

    async def slow_down(event: tuple[float, list[str]]) -> None:
        with suppress(Exception):  # the scheduler may be gone, a worker ending
            await client.run(tasks.slow_down, *event[1], on_error="ignore")

    client.subscribe_topic(tasks.BUSY, slow_down)


async def compare(client: Any, split: Split, home: str, target: PartsTarget | None = None) -> None:
    """Let every worker compare its connection with that of the export, and try to write to the target.

    Args:
        client: The client, in the loop of the caller.
        split: The export.
        home: The home of the workers; empty for that of each.
        target: The target of the export; None to read only.

    Raises:
        ConfigurationError: There is no worker, or one differs or lacks the connection or the target; the message names
            it.
    """
    addresses = list((await client.scheduler.identity(n_workers=-1))["workers"])
    if not addresses:
        hint = "start one: dask worker tls://HOST:PORT"
        raise ConfigurationError("the cluster has no worker", hint=hint, code="worker-differs")
    plan = msgspec.json.encode(msgspec.structs.replace(split, shares=[]))
    arguments = (plan, home) if target is None else (plan, home, target.address, target.claim)
    futures = {
        address: client.submit(tasks.compare, *arguments, workers=[address], allow_other_workers=False, pure=False)
        for address in addresses
    }
    for address, future in futures.items():
        if (done := await _done(future)).code:
            hint = done.hint or "give every worker the same connection and the same plugins.lock"
            raise ConfigurationError(f"worker {address}: {done.message}", hint=hint, code="worker-differs")


async def _parts(
    submit: Callable[[int], Any], numbers: Sequence[int], target: PartsTarget, futures: dict[Any, int], *, limit: int
) -> AsyncIterator[tuple[int, PartResult]]:
    """Submit parts, at most so many at a time, and yield those that are done."""
    from distributed import as_completed

    waiting = iter(numbers)
    running = as_completed([submit(number) for number in islice(waiting, limit)])
    async for future in running:
        for number in islice(waiting, 1):
            running.add(submit(number))
        done = await _done(future)
        if done.part is None:
            raise ExportError(f"part {futures[future]:,}: {done.message}", hint=done.hint, code=done.code)
        await run_sync(_check, target, done.part)
        yield futures[future], done.part


async def _done(future: Any) -> tasks.TaskEnd:
    """Return the end of a task.

    Raises:
        ExportError: The worker died several times, or its environment cannot run the task (code ``worker-failed``);
            or the scheduler is gone (``cluster-lost``).
    """
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError

    try:
        return msgspec.json.decode(await future, type=tasks.TaskEnd)
    except DragomanError:
        raise
    # This process cancels a part only if nobody waits for it; a result may be on its way when the scheduler dies.
    except (FutureCancelledError, CommClosedError) as error:
        raise ExportError("the connection to the Dask scheduler was lost", code="cluster-lost") from error
    except Exception as error:
        reason = f"a worker could not run a part: {failure(error)}"
        hint = "look at the log of the worker; every worker needs the same version of dragoman and enough memory"
        raise ExportError(reason, hint=hint, code="worker-failed") from error


def _check(target: PartsTarget, part: PartResult) -> None:
    """Raise ExportError if the file of a part is not here as the worker wrote it."""
    size = target.size(part.file)
    if size != part.bytes:
        difference = f"has {size:,} bytes instead of {part.bytes:,}" if size >= 0 else "is not here"
        reason = f"{target.name}/{part.file} {difference}, although a worker has written it"
        hint = "export into a folder or an object store that this machine and all workers have under the same path"
        raise ExportError(reason, hint=hint, code="parts-differ")
