"""The workbench as a whole: one runtime, its routes, and a server on the loopback until it is told to end."""

from __future__ import annotations

import asyncio
import html
import logging
import os
import stat
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from aiohttp import web

from dragoman import Runtime
from dragoman_api.errors import ConfigurationError

from .access import DOOR, ENTRY_SECONDS, Access
from .background_work import Work
from .event_stream import EventStream, FileWatch
from .open_connections import OpenConnections
from .questions import Questions
from .routes.all_routes import make_routes
from .samples import Samples
from .server import HttpSide, find_assets
from .uploads import HELD, ReceivedFiles, remove_ended

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
        file: The file that leads a browser into it.
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
    sample: bool = False,
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
        sample: Serve the samples from the start; `connection` may be one of them.
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
    runtime = Runtime(home, use=use, confirm=questions.ask, surface="desktop", **options)
    runtime.add_sink(stream.forward)
    if connection and not sample:
        await anyio.to_thread.run_sync(runtime.connections.get, connection)
    file = await anyio.to_thread.run_sync(EntryFile, runtime.paths.state / "workbench")
    uploads = await anyio.to_thread.run_sync(ReceivedFiles, runtime.paths.state / "workbench")
    assets = await anyio.to_thread.run_sync(find_assets, page)
    samples = Samples(runtime, runtime.paths.state / "workbench", at_once=sample)
    async with runtime, samples, anyio.create_task_group() as tasks:
        work = Work(tasks)
        connections = OpenConnections(runtime, stream=stream, work=work)
        files = FileWatch(runtime.paths, stream=stream)
        routes, download = make_routes(
            runtime,
            connections=connections,
            stream=stream,
            work=work,
            questions=questions,
            files=files,
            first=connection,
            export_folder=export_folder,
            uploads=uploads,
            samples=samples,
        )
        place: Workbench
        server = HttpSide(
            access=access,
            stream=stream,
            work=work,
            assets=assets,
            routes=routes,
            download=download,
            uploads=uploads,
            entered=lambda: place.renew(),
        )
        async with _listening(server.application(), port, tasks) as url:
            place = Workbench(url, runtime=runtime, access=access, file=file)
            await place.renew()
            tasks.start_soon(connections.close_idle)
            tasks.start_soon(connections.watch_health)
            tasks.start_soon(files.run)
            try:
                yield place
            finally:
                file.remove()
                stream.end()
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSING):
            await connections.close_all()
        tasks.cancel_scope.cancel()
    await anyio.to_thread.run_sync(uploads.remove)


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


class EntryFile:
    """A page that redirects to the workbench with a token in the address's fragment."""

    def __init__(self, folder: Path) -> None:
        """Make the folder, which only this user can enter.

        Raises:
            ConfigurationError: The folder cannot be made, or belongs to another user.
        """
        self._folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_private(folder)
            remove_ended(folder, "open-*.html")
        except OSError as error:
            hint = "set DRAGOMAN_HOME to a folder that can be written"
            raise ConfigurationError(f"{folder} cannot be used: {error.strerror}", hint=hint) from error
        self.path = folder / f"open-{os.getpid()}.html"
        HELD.add(self.path)

    def write(self, address: str) -> None:
        """Write the file with an address that holds a new token.

        Raises:
            ConfigurationError: It cannot be written.
        """
        text = (
            '<!doctype html><meta charset="utf-8"><title>dragoman</title><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={html.escape(address)}">'
            f'<p><a href="{html.escape(address)}">Open the workbench</a></p>\n'
        )
        draft = self.path.with_name(f".{self.path.name}")
        try:
            draft.unlink(missing_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(text)
            draft.replace(self.path)
        except OSError as error:
            raise ConfigurationError(f"{self.path} cannot be written: {error.strerror}") from error

    def remove(self) -> None:
        """Remove the file."""
        HELD.discard(self.path)
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


def _check_private(folder: Path) -> None:
    """Close a folder to others."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        reason = f"{folder} belongs to another user, who could read the token"
        raise ConfigurationError(reason, hint="set DRAGOMAN_HOME")
    if stat.S_IMODE(status.st_mode) & 0o077:
        folder.chmod(0o700)
