"""Fetch the slices of an export in parallel, one page ahead of what is taken."""

from __future__ import annotations

import random
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio

from dragoman_api import DragomanError

from .slices import SlicePage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from dragoman_elasticsearch.http_requests import Exchange

    from .slices import Slice

    Run = Callable[[Exchange[SlicePage | float]], Awaitable[SlicePage | float]]

_RENEWED = 40  # seconds, a third of the shortest keep-alive


@asynccontextmanager
async def pages(
    slices: Sequence[Slice], run: Run, renew: Callable[[], Awaitable[None]]
) -> AsyncIterator[MemoryObjectReceiveStream[SlicePage | Exception]]:
    """Fetch all slices, one page of each ahead; leaving the context cancels the requests.

    Args:
        slices: The slices to read to their ends.
        run: Carries out an exchange.
        renew: Renews the search context, however long the consumer of a page takes.

    Yields:
        Pages as they come; an error instead of a page ends its slice, and the consumer raises it.
    """
    give, take = anyio.create_memory_object_stream[SlicePage | Exception](len(slices))
    with give, take:
        # Entered by hand: `async with` would wrap the consumer's errors and GeneratorExit in an exception group.
        tasks = await anyio.create_task_group().__aenter__()
        try:
            for each in slices:
                tasks.start_soon(_fetch, each, run, give)
            tasks.start_soon(_renew, renew)
            yield take
        finally:
            tasks.cancel_scope.cancel()
            await tasks.__aexit__(None, None, None)


async def _fetch(each: Slice, run: Run, give: MemoryObjectSendStream[SlicePage | Exception]) -> None:
    try:
        while each.mark is not True:
            got = await run(each.page())
            if isinstance(got, float | int):
                await anyio.sleep(got * (0.5 + random.random()))  # noqa: S311 - jitter
            else:
                await give.send(got)
    except Exception as error:  # noqa: BLE001 - a task that failed would cancel its owner in the middle of a yield
        await give.send(error)


async def _renew(renew: Callable[[], Awaitable[None]]) -> None:
    while True:
        await anyio.sleep(_RENEWED)
        with suppress(DragomanError):  # the next page will report the error
            await renew()
