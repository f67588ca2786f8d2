"""Open a driver for `dragoman driver test`: in the sandbox, from the built wheel."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from dragoman.sandbox.driver_process import DriverProxy, Launch, Worker
from dragoman.sandbox.launch import granted
from dragoman.secret_references import regular_file
from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from dragoman.secret_references import NamedFile
    from dragoman_api.connections import Profile
    from dragoman_api.forms import FieldValue

OPENER = f"{__name__}:opened"
VARIABLE = "DRAGOMAN_DRIVER_TEST"
"""The variable that tells the tests, as JSON, how to open drivers and where to note the result."""


@asynccontextmanager
async def opened(driver: type, profile: Profile) -> AsyncIterator[DriverProxy]:
    """Start a driver in its sandbox, connect it, and yield its proxy.

    Args:
        driver: The class; only its name is used here.
        profile: The connection, secrets included.
    """
    settings = json.loads(os.environ[VARIABLE])
    denied: list[str] = []
    field_values = {**profile.options, "client_certificate": profile.client_certificate}
    files = await anyio.to_thread.run_sync(_found, field_values)
    launch = Launch(
        driver=f"{driver.__module__}:{driver.__qualname__}",
        trees=tuple(map(Path, settings["trees"])),
        approved=tuple(profile.reach),
        profile=profile,
        files=tuple(file for key, file in files.items() if key == "client_certificate"),
        policy=settings["policy"],
        trusted=True,
    )
    launch = granted(launch, settings["permissions"], files=files)
    async with Worker(launch, on_denied=lambda host, port: denied.append(f"{host}:{port or '…'}")) as worker:
        proxy = DriverProxy(worker)
        try:
            await proxy.connect()
            yield proxy
            if "close" in worker.hooks:
                await proxy.close()
        finally:
            with Path(settings["notes"]).open("a", encoding="utf-8") as file:  # noqa: ASYNC230 - one line, in tests
                file.write(json.dumps({"sandbox": str(worker.report), "denied": denied}) + "\n")


def _found(field_values: Mapping[str, FieldValue]) -> dict[str, NamedFile]:
    """List the files that a profile names."""
    files = {}
    for key, value in field_values.items():
        if isinstance(value, str) and value:
            with suppress(ConfigurationError):
                files[key] = regular_file(value, where=key)
    return files
