"""Attacks on what is shared: memory, descriptors, threads, time, the log."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from contextlib import suppress

from .book import FoiledError, Targets, attack

_SECONDS = 3.0


@attack
def memory_bomb(targets: Targets) -> None:
    bytes(3 << 30)  # asked for and not touched, so that it takes no time where it is given


@attack
def descriptor_bomb(targets: Targets) -> None:
    held = []
    try:
        for _ in range(600):
            held += [os.open("/dev/null", os.O_RDONLY)]
    finally:
        for descriptor in held:
            os.close(descriptor)


@attack
def thread_bomb(targets: Targets) -> None:
    release = threading.Event()
    threads = []
    try:
        for _ in range(500):
            thread = threading.Thread(target=release.wait, daemon=True)
            thread.start()
            threads.append(thread)
    except RuntimeError:
        raise FoiledError("EAGAIN") from None
    finally:
        release.set()
        for thread in threads:
            thread.join()


@attack
def processor_spin(targets: Targets) -> None:
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        pass


@attack
async def endless_await(targets: Targets) -> None:
    await asyncio.sleep(_SECONDS)


@attack
async def stubborn_await(targets: Targets) -> None:
    """Go on through every cancellation."""
    end = time.monotonic() + _SECONDS
    while (left := end - time.monotonic()) > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(left)


@attack
def blocked_loop(targets: Targets) -> None:
    """Block, with every signal that can be blocked shut out."""
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    time.sleep(_SECONDS)


@attack
def stop_itself(targets: Targets) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


@attack
def log_flood(targets: Targets) -> None:
    """Print three megabytes that would clear a terminal, set its title, and answer for the user."""
    line = b"\x1b[2J\x1b]0;owned\x07\x1b[6n\x9b5n" + b"spam " * 200 + b"\n"
    for _ in range(3_000):
        os.write(1, line)
