"""How `dragoman driver test` opens a driver for the tests of its author: in the sandbox, from the built wheel."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.sandbox.grants import granted
from dragoman.sandbox.process import Launch, Worker
from dragoman.sandbox.proxy import DriverProxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dragoman_api.connections import Profile

OPENER = f"{__name__}:opened"
VARIABLE = "DRAGOMAN_DRIVER_TEST"
"""Tells the process of the tests, as JSON, what to open drivers from, how, and where to note what became of it."""


@asynccontextmanager
async def opened(driver: type, profile: Profile) -> AsyncIterator[DriverProxy]:
    """Start a driver in its sandbox and connect it; gives its proxy.

    Args:
        driver: The class, imported here for its name only.
        profile: The connection, secrets included.
    """
    given = json.loads(os.environ[VARIABLE])
    denied: list[str] = []
    launch = Launch(
        driver=f"{driver.__module__}:{driver.__qualname__}",
        trees=tuple(map(Path, given["trees"])),
        approved=((profile.host, profile.port),),
        secrets=profile.secrets,
        readable=(Path(profile.client_certificate),) if profile.client_certificate else (),
        policy=given["policy"],
        trusted=True,
    )
    launch = granted(launch, given["permissions"], chosen=profile.options)
    async with Worker(launch, on_denied=lambda host, port: denied.append(f"{host}:{port or '…'}")) as worker:
        proxy = DriverProxy(worker)
        try:
            await proxy.connect(profile)
            yield proxy
            if "close" in worker.hooks:
                await proxy.close()
        finally:
            with Path(given["notes"]).open("a", encoding="utf-8") as file:  # noqa: ASYNC230 - one line, in tests
                file.write(json.dumps({"sandbox": str(worker.report), "denied": denied}) + "\n")
