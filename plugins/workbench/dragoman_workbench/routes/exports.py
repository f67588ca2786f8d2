"""Exports: to a download, or into the folder given at the start, with progress, cancel and resume."""

from __future__ import annotations

import io
import re
import secrets
from typing import TYPE_CHECKING, Any

import anyio
from anyio.to_thread import run_sync
from msgspec.structs import replace

from dragoman_api.errors import ConfigurationError, ExportError
from dragoman_api.events import ExportProgressed
from dragoman_workbench.messages.routes import ServerEvent
from dragoman_workbench.messages.work import ExportJob, Exports

from .jobs import Jobs

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman import Runtime
    from dragoman_api.events import Event
    from dragoman_workbench.background_work import Work
    from dragoman_workbench.downloads import Downloads, ResponseStream
    from dragoman_workbench.event_stream import EventStream
    from dragoman_workbench.messages.base import Done, Empty
    from dragoman_workbench.messages.work import ExportAsked, ExportNamed
    from dragoman_workbench.open_connections import OpenConnections

_NAME = re.compile(r"[^\x00-\x1f\x7f/\\:*?\"<>|.][^\x00-\x1f\x7f/\\:*?\"<>|]*")
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_FINAL = ("resume-refused", "export-running", "export-not-resumable", "context-lost", "limit-exceeded", "file-exists")
"""Codes of errors that resuming would meet again."""


class ExportRoutes:
    """Routes about exports."""

    def __init__(
        self,
        runtime: Runtime,
        connections: OpenConnections,
        *,
        stream: EventStream,
        work: Work,
        downloads: Downloads,
        folder: Path | None,
    ) -> None:
        self._open, self._stream, self._work = connections, stream, work
        self._downloads, self._folder = downloads, folder
        self._jobs = Jobs[ExportJob](
            "export", connections, send=lambda job: stream.send(ServerEvent(kind="export", export=job))
        )
        self._requests: dict[str, ExportAsked] = {}
        self._targets: dict[str, str] = {}
        runtime.add_sink(self._progressed)

    @property
    def all(self) -> list[ExportJob]:
        """All exports since the start; a download that no browser fetched in time is cancelled."""
        for export in self._jobs.all:
            if export.state == "waiting" and not self._downloads.waits(export.ticket):
                self._jobs.tell(replace(export, state="cancelled", ticket=""))
        return self._jobs.all

    async def exports(self, _: Empty) -> Exports:
        """List the exports."""
        return Exports(exports=self.all)

    async def start(self, request: ExportAsked) -> ExportJob:
        """Start an export into the folder, or offer one as a download."""
        (await self._open.session(request.connection)).select(request.rows)  # what no driver can read is reported now
        self._make_room()
        _check_name(request.file)
        if request.to == "folder" and self._folder is None:
            hint = "dragoman workbench --export-to FOLDER"
            raise ConfigurationError("no folder for exports was given at the start; download it instead", hint=hint)
        place = self._folder / request.file if request.to == "folder" and self._folder else io.BytesIO()
        await run_sync(request.format.file_format.choose, place)  # a download could only break off
        number = secrets.token_urlsafe(8)
        export = ExportJob(
            id=number,
            connection=request.connection,
            object=request.rows.object,
            file=request.file,
            to=request.to,
            state="running",
        )
        if request.to == "download":
            ticket = self._downloads.offer(lambda stream: self._to_browser(number, request, stream), file=request.file)
            export = replace(export, state="waiting", ticket=ticket)
            self._jobs.tell(export)
        else:
            assert self._folder is not None
            target = self._folder / request.file
            if await anyio.Path(target).exists():
                raise ExportError(f"{target} exists already", hint="choose another name", code="file-exists")
            self._jobs.tell(export)
            self._work.start(lambda: self._run(number, request, target, target_name=str(target)))
        self._requests[number] = request
        return export

    def _make_room(self) -> None:
        assert self.all is not None  # downloads that nobody fetched have ended
        for number in self._jobs.make_room():
            del self._requests[number]

    async def resume(self, request: ExportNamed) -> ExportJob:
        """Continue a cancelled or failed export into the folder; any tab may, even after a reload."""
        export, original = self._jobs.get(request.id), self._requests.get(request.id)
        if export is None or original is None or not export.resumable or self._folder is None:
            raise ExportError("this export cannot be resumed", hint="start it again", code="resume-refused")
        self._make_room()
        await self._open.session(original.connection)
        target = self._folder / original.file
        export = replace(export, state="running", error=None, resumable=False)
        self._jobs.tell(export)
        self._work.start(lambda: self._run(export.id, original, target, target_name=str(target), resume=True))
        return export

    async def cancel(self, request: ExportNamed) -> Done:
        """Cancel an export."""
        done, export = self._jobs.cancel(request.id), self._jobs.get(request.id)
        if export is not None and export.state == "waiting":
            self._downloads.withdraw(export.ticket)
            self._jobs.tell(replace(export, state="cancelled", ticket=""))
        return done

    async def _to_browser(self, number: str, request: ExportAsked, stream: ResponseStream) -> None:
        self._jobs.tell(replace(self._job(number), state="running", ticket=""))
        stream.name = f"{request.file} (download {number})"  # two downloads may have one file name
        await self._run(number, request, stream, target_name=stream.name)
        if self._job(number).state != "finished":
            raise ExportError("the export did not finish")

    async def _run(
        self, number: str, request: ExportAsked, target: Any, *, target_name: str, resume: bool = False
    ) -> None:
        self._targets.setdefault(target_name, number)  # a second export into one file is refused
        try:
            await self._jobs.run(
                number,
                lambda: self._written(number, request, target, resume=resume),
                resumable=lambda error: self._begun(number, request) and (error is None or error.code not in _FINAL),
            )
        finally:
            if self._targets.get(target_name) == number:
                del self._targets[target_name]

    async def _written(self, number: str, request: ExportAsked, target: Any, *, resume: bool) -> ExportJob:
        try:
            return await self._export(number, request, target, resume=resume)
        except OSError as error:  # the browser is gone
            text = f"the download ended early: {error.strerror or error}"
            raise ExportError(text, hint="start it again") from error

    async def _export(self, number: str, request: ExportAsked, target: Any, *, resume: bool) -> ExportJob:
        session = await self._open.session(request.connection)
        try:
            result = await session.select(request.rows).export(target, format=request.format.file_format, resume=resume)
        except ExportError as error:
            if not resume or error.code != "resume-refused":
                raise
            return await self._export(number, request, target, resume=False)  # nothing can go on: from the first row
        return replace(
            self._job(number),
            state="finished",
            rows=result.rows,
            bytes=result.bytes,
            sha256=result.sha256,
            notes=result.notes,
        )

    def _job(self, number: str) -> ExportJob:
        job = self._jobs.get(number)
        assert job is not None
        return job

    def _begun(self, number: str, request: ExportAsked) -> bool:
        """Return whether a file in the folder holds rows already; without them, nothing is there to go on with."""
        return request.to == "folder" and self._job(number).rows > 0

    def _progressed(self, event: Event) -> None:
        if isinstance(event, ExportProgressed):
            export = self._jobs.get(self._targets.get(event.target, ""))
            if export is not None and export.state == "running":
                self._jobs.tell(replace(export, rows=event.rows, bytes=event.bytes, total=event.total))


def _check_name(name: str) -> None:
    """Refuse a file's name that leads elsewhere, or that a system does not take."""
    if not _NAME.fullmatch(name) or _DEVICES.fullmatch(name) or name.endswith((" ", ".")) or len(name.encode()) > 240:
        hint = "for example orders.csv"
        raise ConfigurationError(f"{name[:80]!r} cannot name a file", hint=hint, code="name-invalid")
