"""What keeps a driver that is under test from blocking its event loop."""

from __future__ import annotations

import asyncio
import time

_sleep = time.sleep


def sleep(seconds: float) -> None:
    """Sleep as `time.sleep` does, but never in a thread that runs an event loop.

    It takes the place of `time.sleep` while a driver is tested: the error's place is the line to change.

    Args:
        seconds: How long.

    Raises:
        RuntimeError: The thread runs an event loop, in which no other call of the connection goes on meanwhile.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        _sleep(seconds)
    else:
        raise RuntimeError("time.sleep blocks every other call of the connection: await anyio.sleep instead")
