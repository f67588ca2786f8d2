"""The workbench as a whole: one runtime, its rooms, and a server on the loopback until it is told to end."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from aiohttp import web

from dragoman import Runtime
from dragoman_api.errors import ConfigurationError

from .access import ENTRY_SECONDS, Access
from .assets import find_assets
from .background_work import Work
from .changed_files import FileWatch
from .consent import Questions
from .door import DOOR
from .entry_file import EntryFile
from .event_stream import EventStream
from .open_connections import OpenConnections
from .production import ProductionLock
from .rooms import make_routes
from .server import HttpSide

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from anyio.abc import TaskGroup

PAGE = Path(__file__).parent / "page"
GRACE = 0.2
"""Seconds for running answers when the server ends."""
CLOSING = 0.7
"""Seconds for closing connections when the server ends; then their processes are killed with this one."""
HEADER_BYTES = 16 << 10


class Workbench:
    """Where a running workbench is.

    Attributes:
        url: Its address, without a token.
        file: The file that leads a browser into it.
        runtime: Its runtime.
    """

    def __init__(self, url: str, *, runtime: Runtime, access: Access, file: EntryFile) -> None:
        self.url, self.runtime, self.file = url, runtime, file
        self._access, self._token = access, ""

    def address(self) -> str:
        """Return an address that holds a one-time token."""
        if not self._access.holds(self._token):
            self._token = self._access.token(seconds=ENTRY_SECONDS)
        return f"{self.url}/#token={self._token}"

    async def renew(self) -> None:
        """Write a new token into the file, if the last one was used."""
        if not self._access.holds(self._token):
            await anyio.to_thread.run_sync(self.file.write, self.address())


@asynccontextmanager
async def serving(
    home: Path | None = None,
    *,
    port: int = 0,
    connection: str = "",
    export_folder: Path | None = None,
    use: Sequence[object] = (),
    page: Path = PAGE,
    **options: Any,
) -> AsyncIterator[Workbench]:
    """Serve the workbench on 127.0.0.1 while the block runs.

    Args:
        home: Root of everything on disk; None for DRAGOMAN_HOME, else the platform's places.
        port: The port; 0 for a free one.
        connection: The connection to open first; empty for none.
        export_folder: Where exports may be written; None if they can only be downloaded.
        use: Automations.
        page: The folder of the built page.
        options: Passed on to Runtime.

    Yields:
        Where it is.

    Raises:
        ConfigurationError: The port is taken, a folder cannot be used, or `config.toml` is wrong.
    """
    if export_folder is not None and not await anyio.Path(export_folder).is_dir():
        raise ConfigurationError(f"{export_folder} is not a folder", hint=f"mkdir -p {export_folder}")
    stream, access = EventStream(), Access()
    questions = Questions(stream)
    lock = ProductionLock(lambda name: runtime.settings.guards.of(name).production)
    runtime = Runtime(home, use=[*use, lock], confirm=questions.ask, surface="desktop", **options)
    runtime.add_sink(stream.forward)
    if connection:
        await anyio.to_thread.run_sync(runtime.connections.get, connection)
    file = await anyio.to_thread.run_sync(EntryFile, runtime.paths.state / "workbench")
    assets = await anyio.to_thread.run_sync(find_assets, page)
    async with runtime, anyio.create_task_group() as tasks:
        work = Work(tasks)
        connections = OpenConnections(runtime, stream=stream, work=work, lock=lock)
        files = FileWatch(runtime.paths, stream=stream)
        rooms = make_routes(
            runtime,
            connections=connections,
            stream=stream,
            work=work,
            lock=lock,
            questions=questions,
            files=files,
            first=connection,
            export_folder=export_folder,
        )
        place: Workbench
        server = HttpSide(
            access=access,
            stream=stream,
            work=work,
            assets=assets,
            routes=rooms.routes,
            download=rooms.download,
            entered=lambda: place.renew(),
        )
        async with _listening(server.application(), port, tasks) as url:
            place = Workbench(url, runtime=runtime, access=access, file=file)
            await place.renew()
            tasks.start_soon(connections.close_idle)
            tasks.start_soon(files.run)
            try:
                yield place
            finally:
                file.remove()
                stream.end()
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSING):
            await connections.close_all()
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def _listening(app: web.Application, port: int, tasks: TaskGroup) -> AsyncIterator[str]:
    app.logger = logging.getLogger("dragoman.workbench")
    runner = web.AppRunner(
        app,
        access_log=None,
        handle_signals=False,
        handler_cancellation=True,
        shutdown_timeout=GRACE,
        max_field_size=HEADER_BYTES,
        max_line_size=HEADER_BYTES,
    )
    await runner.setup()
    assert runner.server is not None
    door = app[DOOR]
    loop = asyncio.get_running_loop()
    try:
        try:
            listener = await loop.create_server(door.before(runner.server), "127.0.0.1", port, reuse_address=True)
        except (OSError, OverflowError) as error:
            why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
            reason = f"the workbench cannot listen on port {port}: {why}"
            raise ConfigurationError(reason, hint="--port 0 picks a free port") from error
        tasks.start_soon(door.watch)
        try:
            yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        finally:
            listener.close()
    finally:
        await runner.cleanup()
