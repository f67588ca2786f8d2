"""Work that is cancelled at a known point, however fast the machine is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def cancelled(work: Awaitable[object], *, when: Callable[[], bool]) -> None:
    """Cancel the work as soon as `when` is true; work that ends before is a failure."""

    async def do() -> None:
        await work
        raise AssertionError("the work ended before it was to be cancelled")

    async with anyio.create_task_group() as group:
        group.start_soon(do)
        while not when():
            await anyio.sleep(0.01)
        group.cancel_scope.cancel()
