"""The slices of an export at the same time: each asks for its next page while the last one is being written."""

from __future__ import annotations

import random
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio

from dragoman_api import DragomanError

from .slices import Page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from .exchange import Exchange
    from .slices import Slice

    Run = Callable[[Exchange[Page | float]], Awaitable[Page | float]]

_RENEWED = 40  # seconds, a third of the time for which a context is held at least


@asynccontextmanager
async def pages(
    slices: Sequence[Slice], run: Run, renew: Callable[[], Awaitable[None]]
) -> AsyncIterator[MemoryObjectReceiveStream[Page | Exception]]:
    """Fetch all slices, a page of each ahead of what is taken; leaving ends what is under way.

    Args:
        slices: To be walked to their ends.
        run: Carries out an exchange.
        renew: Tells the server that its context is still needed, however long the taker of a page takes.

    Yields:
        Pages as they come; an error in place of a page ends its slice, and is for the taker to raise.
    """
    give, take = anyio.create_memory_object_stream[Page | Exception](len(slices))
    with give, take:
        # By hand: what ends the taker, its own errors and the end of a generator, would come out as a group of errors.
        tasks = await anyio.create_task_group().__aenter__()
        try:
            for each in slices:
                tasks.start_soon(_fetch, each, run, give)
            tasks.start_soon(_renew, renew)
            yield take
        finally:
            tasks.cancel_scope.cancel()
            await tasks.__aexit__(None, None, None)


async def _fetch(each: Slice, run: Run, give: MemoryObjectSendStream[Page | Exception]) -> None:
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
        with suppress(DragomanError):  # the next page will say what is wrong
            await renew()
