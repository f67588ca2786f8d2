"""The stages of opening a connection, each with a deadline, and with a name in the error that its end is late."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

from dragoman_api.errors import DeadlineExceededError

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = {
    "lease": 60.0,  # of the driver's files, which a collector of old ones may hold for a moment
    "secrets": 120.0,  # from commands and keyrings, which may ask a person
    "preparation": 60.0,  # what the process may import and read
    "start": 10.0,  # of the process, until its socket is attached to the event loop
    "lock-down": 30.0,  # and its self-test
    "assessment": 10.0,  # of the lock-down, from outside
    "hand-over": 10.0,  # of the connection and its secrets
    "import": 30.0,  # of the driver
    "smoke test": 45.0,  # a first start without a connection, all its stages together
    "certificates": 60.0,  # a look at those that were refused, of all servers
    "record": 10.0,  # of how near the server is, which other processes record, too
    "end": 10.0,  # of the process, after it was killed
}
"""Deadlines by stage. `connect` has that of its hook; the ways to a server have their own."""

_HINT = "try again; if it fails again, run: dragoman doctor"


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Give the block the deadline of a stage.

    Args:
        name: A key of `SECONDS`.

    Raises:
        DeadlineExceededError: It was not done in time; the detail ``stage`` names it.
    """
    seconds = SECONDS[name]
    with anyio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        text = f"opening the driver stopped at the stage {name!r}, which did not end within {seconds:g} s"
        raise DeadlineExceededError(text, hint=_HINT, details={"stage": name})
