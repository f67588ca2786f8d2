"""Imports: a file that the browser sent is looked at and loaded, as the command line loads it, and can be resumed."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from anyio.to_thread import run_sync
from msgspec.structs import replace

from dragoman import ChangeSet, load, preview_import
from dragoman_api.columns import Written
from dragoman_api.errors import ConfigurationError, DragomanError, ObjectNotFoundError
from dragoman_workbench.messages.base import Done, answer_of
from dragoman_workbench.messages.imports import (
    ImportAsked,
    ImportJob,
    ImportPreviewed,
    Imports,
    ImportTicket,
    PreviewedRow,
    Proposal,
    RejectedRow,
    RejectedRows,
    TargetColumn,
)
from dragoman_workbench.messages.routes import ServerEvent

from .copies import check_copy, confirming, show_copy
from .jobs import CANCELLED, Jobs

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman_api.changes import PlannedRequest
    from dragoman_workbench.background_work import Work
    from dragoman_workbench.downloads import Downloads, ResponseStream
    from dragoman_workbench.event_stream import EventStream
    from dragoman_workbench.messages.base import Empty
    from dragoman_workbench.messages.imports import (
        CopyAsked,
        CopyPlanAsked,
        CopyPlanned,
        ImportFileAsked,
        ImportNamed,
        ImportPreviewAsked,
        UploadNamed,
    )
    from dragoman_workbench.open_connections import OpenConnections
    from dragoman_workbench.uploads import ReceivedFile, ReceivedFiles

REQUESTS = 3
"""Requests of a dry run that are shown."""

REJECTED = 100
"""Rejected rows that are shown; all are in the download."""

TICKET_SECONDS = 60.0
BEAT = 0.2
"""Seconds between two messages about one import."""

_SHOWN = 4_000  # characters of a request, and of a rejected row
_LINE_BYTES = 8 << 20
_BLOCK = 1 << 20
_FINAL = ("resume-refused", "import-running", "import-unfinished", "not-found")
"""Codes of errors that resuming would meet again."""


class _Rejected(msgspec.Struct):
    row: int
    code: str
    reason: str
    data: msgspec.Raw = msgspec.Raw(b"")


class ImportRoutes:
    """Routes about imports."""

    def __init__(
        self,
        connections: OpenConnections,
        *,
        stream: EventStream,
        work: Work,
        downloads: Downloads,
        uploads: ReceivedFiles,
    ) -> None:
        self._open, self._work, self._downloads, self._uploads = connections, work, downloads, uploads
        self._jobs = Jobs[ImportJob](
            "import", connections, send=lambda job: stream.send(ServerEvent(kind="import", import_job=job))
        )
        self._requests: dict[str, ImportAsked] = {}
        self._copies: dict[str, CopyAsked] = {}
        self._starting = anyio.Lock()  # two tabs may ask for the same at once
        self._begun: set[str] = set()
        self._stopping: set[str] = set()
        self._left: dict[str, list[RejectedRow]] = {}  # rows that an undo left as they are

    @property
    def all(self) -> list[ImportJob]:
        """All imports since the start."""
        return self._jobs.all

    async def imports(self, _: Empty) -> Imports:
        """List the imports."""
        return Imports(imports=self.all)

    async def preview(self, request: ImportPreviewAsked) -> ImportPreviewed:
        """Look at the first rows of a file, and at the object that is to receive them."""
        session, upload = await self._open.session(request.connection), self._uploads.find(request.upload)
        columns, description = [], None
        try:
            description = await session.describe(request.object)
            for column in description.columns:
                writable = column.written is not Written.NEVER
                columns.append(TargetColumn(name=column.name, type=column.type, key=column.is_key, writable=writable))
        except ObjectNotFoundError:
            pass
        try:
            preview = await run_sync(
                lambda: preview_import(
                    upload.path, object=request.object, format=request.format, delimiter=request.delimiter,
                    encoding=request.encoding, id=request.id, renamed=request.renamed, types=request.types,
                    readings=request.readings, description=description,
                ),
            )  # fmt: skip
        except DragomanError as error:
            raise _named(error, upload) from error
        return ImportPreviewed(
            format=preview.format, compression=preview.compression, delimiter=preview.delimiter, likely=preview.likely,
            likely_encoding=preview.likely_encoding, names=preview.names, ids=preview.ids,
            rows=[answer_of(PreviewedRow, row) for row in preview.rows], whole=preview.whole,
            proposal=None if preview.proposal is None else answer_of(Proposal, preview.proposal),
            exists=description is not None, columns=columns,
            tenants=description is not None and description.tenants is not False,
        )  # fmt: skip

    async def start(self, request: ImportAsked) -> ImportJob:
        """Start an import, from the first row."""
        async with self._starting:
            return await self._start(request)

    async def _start(self, request: ImportAsked) -> ImportJob:
        await self._open.session(request.connection)
        upload = self._uploads.find(request.upload)
        self._check_idle(request.upload)
        await self._make_room()
        for job in self.all:  # their files are overwritten
            if self._requests[job.id].upload == request.upload:
                self._jobs.tell(replace(job, resumable=False, rejected=False, undo=False))
        await run_sync(upload.clear)
        number = secrets.token_urlsafe(8)
        job = ImportJob(
            id=number, connection=request.connection, object=request.object, file=upload.name, dry_run=request.dry_run,
            state="running",
        )  # fmt: skip
        self._requests[number] = request
        self._begin(job, request, resume=False)
        return job

    def _check_idle(self, upload: str) -> None:
        if any(job.state == "running" and self._requests[job.id].upload == upload for job in self.all):
            text = "this file is being imported, or its import is being undone"
            raise ConfigurationError(text, hint="wait, or cancel it", code="import-running")

    async def _make_room(self) -> None:
        for number in self._jobs.make_room():
            request = self._requests.pop(number)
            self._left.pop(number, None)
            self._copies.pop(number, None)
            if all(other.upload != request.upload for other in self._requests.values()):
                await self._uploads.discard(request.upload)

    async def resume(self, request: ImportNamed) -> ImportJob:
        """Continue a cancelled or failed import; any tab may, even after a reload."""
        async with self._starting:
            return await self._resume(request)

    async def _resume(self, request: ImportNamed) -> ImportJob:
        job, original = self._jobs.get(request.id), self._requests.get(request.id)
        if job is None or original is None or not job.resumable:
            raise ConfigurationError("this import cannot be resumed", hint="start it again", code="resume-refused")
        await self._make_room()
        await self._open.session(original.connection)
        job = replace(job, state="running", error=None, resumable=False)
        self._begin(job, original, resume=True)
        return job

    def _begin(self, job: ImportJob, request: ImportAsked, *, resume: bool) -> None:
        self._uploads.find(request.upload).needed = True
        self._jobs.tell(job)
        self._work.start(lambda: self._run(job.id, request, resume=resume))

    async def _run(self, number: str, request: ImportAsked, *, resume: bool) -> None:
        upload = self._uploads.find(request.upload)
        latest: list[Any] = []  # the report of the load
        self._stopping.discard(number)
        await self._jobs.run(
            number,
            lambda: self._loaded(number, request, upload, latest, resume=resume),
            resumable=lambda error: (
                bool(latest and latest[0].resumable) and (error is None or error.code not in _FINAL)
            ),
            translate=lambda error: _named(error, upload),
        )
        self._begun.discard(number)
        job = self._job(number)
        if latest:
            job = _reported(job, latest[0])
        upload.needed = job.resumable
        self._jobs.tell(job)
        if not job.resumable and not request.dry_run and job.state == "finished":
            await run_sync(upload.spend)

    async def _loaded(
        self, number: str, request: ImportAsked, upload: ReceivedFile, latest: list[Any], *, resume: bool
    ) -> ImportJob:
        session = await self._open.session(request.connection)
        requests: list[str] = []
        beat = 0.0

        def progress(now: Any) -> None:
            nonlocal beat
            latest[:] = [now.report]
            self._begun.add(number)
            if number in self._stopping:
                raise DragomanError("it was cancelled", code=CANCELLED)
            if (moment := anyio.current_time()) - beat >= BEAT:
                beat = moment
                job = self._job(number)
                self._jobs.tell(replace(job, rows=now.read, part=now.part, counts=dict(now.report.counts)))

        def preview(planned: PlannedRequest) -> None:
            if len(requests) < REQUESTS:
                sent = planned.request
                requests.append(f"{sent.method} {sent.path}\n{sent.body or ''}"[:_SHOWN])

        undo = upload.undo if request.undo and not request.dry_run else None

        with ExitStack() as stack:
            rows = None
            if (copied := self._copies.get(number)) is not None:
                stack.enter_context(self._open.busy(copied.connection))
                rows = (await self._open.session(copied.connection)).select(copied.rows)
            latest[:] = [await load(
                session, request.object, file=upload.path, rows=rows, format=request.format,
                delimiter=request.delimiter, encoding=request.encoding, id=request.id, on_conflict=request.on_conflict,
                renamed=request.renamed, types=request.types, readings=request.readings, tenant=request.tenant,
                undo=undo, resume=resume, create=request.create, dry_run=request.dry_run, progress=progress,
                preview=preview, ids=None if copied is None else copied.ids,
                confirm=None if copied is None else confirming(copied),
            )]  # fmt: skip
        return replace(self._job(number), state="finished", requests=requests, part=1.0)

    async def plan_copy(self, request: CopyPlanAsked) -> CopyPlanned:
        """Say what a copy of rows to another connection would make, and where the objects differ."""
        source, target = await self._open.session(request.connection), await self._open.session(request.target)
        return await show_copy(source, target, request)

    async def copy(self, request: CopyAsked) -> ImportJob:
        """Copy rows to another connection: an import whose rows come from no file."""
        source, target = await self._open.session(request.connection), await self._open.session(request.target)
        await self._make_room()
        await check_copy(source, target, request)
        number, name = secrets.token_urlsafe(8), f"{request.rows.object} of {request.connection}"
        self._requests[number] = ImportAsked(
            connection=request.target, object=request.object, upload=await self._uploads.reserve(name), format="rows",
            on_conflict=request.on_conflict, undo=request.undo, renamed=request.renamed, create=True,
        )  # fmt: skip
        self._copies[number] = request
        job = ImportJob(
            id=number, connection=request.target, object=request.object, file=name, dry_run=False, state="running",
            copies=request.connection, new_ids=request.ids == "new",
        )  # fmt: skip
        self._begin(job, self._requests[number], resume=False)
        return job

    async def undo(self, request: ImportNamed) -> ImportJob:
        """Take an import back: apply the changes that it wrote for that, in a job of its own."""
        async with self._starting:
            return await self._undo(request)

    async def _undo(self, request: ImportNamed) -> ImportJob:
        await self._make_room()
        self._written(request.id, "undo")
        job, original = self._job(request.id), self._requests[request.id]
        self._check_idle(original.upload)
        await self._open.session(job.connection)
        number = secrets.token_urlsafe(8)
        undo = ImportJob(
            id=number, connection=job.connection, object=job.object, file=job.file, dry_run=False, state="running",
            undoes=job.id,
        )  # fmt: skip
        self._requests[number] = original
        upload = self._uploads.find(original.upload)
        upload.needed = True
        self._jobs.tell(replace(job, resumable=False))  # what is taken back does not go on
        self._jobs.tell(undo)
        self._work.start(lambda: self._run_undo(number, upload))
        return undo

    async def _run_undo(self, number: str, upload: ReceivedFile) -> None:
        await self._jobs.run(
            number,
            lambda: self._undone(number, upload),
            resumable=lambda _error: False,
            translate=lambda error: _named(error, upload),
        )
        self._begun.discard(number)
        upload.needed = False
        if (undo := self._job(number)).state == "finished":
            original = self._jobs.get(undo.undoes)
            if original is not None:
                self._jobs.tell(replace(original, undo=False, undone=True))

    async def _undone(self, number: str, upload: ReceivedFile) -> ImportJob:
        job = self._job(number)
        session = await self._open.session(job.connection)
        began = beat = anyio.current_time()
        self._begun.add(number)

        def progress(step: str, done: int, total: int) -> None:
            nonlocal beat
            if number in self._stopping:
                raise DragomanError("it was cancelled", code=CANCELLED)
            if (moment := anyio.current_time()) - beat >= BEAT:
                beat = moment
                part = done / total / 2 + (0.5 if step == "applied" else 0.0)
                self._jobs.tell(replace(self._job(number), rows=total, part=part))

        async with ChangeSet(session, upload.undo, progress=progress) as changes:
            await changes.plan()
            report = await changes.apply()
        self._left[number] = [
            RejectedRow(row=left.line, code=left.status, reason=left.reason[:_SHOWN], text=(left.id or "")[:_SHOWN])
            for left in report.left
        ]
        return replace(
            self._job(number), state="finished", rows=report.lines, counts=dict(report.counts), part=1.0,
            notes=list(report.notes), rejected=bool(report.left), seconds=anyio.current_time() - began,
        )  # fmt: skip

    async def cancel(self, request: ImportNamed) -> Done:
        """Cancel an import once what was sent has its outcome, so that no row is in doubt; asked again, at once."""
        if request.id in self._begun - self._stopping:
            self._stopping.add(request.id)
            return Done()
        return self._jobs.cancel(request.id)

    async def rejected(self, request: ImportNamed) -> RejectedRows:
        """Return the first rows that were not written, or that an undo left as they are."""
        if (left := self._left.get(request.id)) is not None:
            return RejectedRows(rows=left[:REJECTED], whole=len(left) <= REJECTED)
        return await run_sync(_read_rejected, self._written(request.id, "rejected")[0])

    async def download(self, request: ImportFileAsked) -> ImportTicket:
        """Offer a file that an import wrote."""
        path, name = self._written(request.id, request.file)

        async def write(stream: ResponseStream) -> None:
            async with await anyio.open_file(path, "rb") as file:
                while block := await file.read(_BLOCK):
                    await run_sync(stream.write, block)

        return ImportTicket(ticket=self._downloads.offer(write, file=name, seconds=TICKET_SECONDS), file=name)

    async def discard(self, request: UploadNamed) -> Done:
        """Delete a file that nobody wants to import or to resume, with what its imports wrote."""
        jobs = [job for job in self.all if self._requests[job.id].upload == request.upload]
        self._check_idle(request.upload)
        for job in jobs:
            self._jobs.tell(replace(job, resumable=False, rejected=False, undo=False))
        await self._uploads.discard(request.upload)
        return Done()

    def _job(self, number: str) -> ImportJob:
        job = self._jobs.get(number)
        assert job is not None
        return job

    def _written(self, number: str, role: str) -> tuple[Path, str]:
        """Return where a file of an import lies, and its name for a person."""
        job = self._jobs.get(number)
        if job is None or job.undoes or not (job.rejected if role == "rejected" else job.undo):
            raise ConfigurationError("this file is gone", code="not-found")
        upload = self._uploads.find(self._requests[number].upload)
        if role == "undo":
            return upload.undo, f"undo-{job.file}.ndjson"
        return upload.path.with_name(f"{upload.path.name}.rejected.ndjson"), f"{job.file}.rejected.ndjson"


def _reported(job: ImportJob, report: Any) -> ImportJob:
    return replace(
        job, rows=report.rows, counts=dict(report.counts), seconds=report.seconds, notes=report.notes,
        rejected=report.rejected is not None, undo=report.undo is not None,
    )  # fmt: skip


def _named(error: DragomanError, upload: ReceivedFile) -> DragomanError:
    """Have an error name the file as a person knows it, not where it lies."""
    error.message = error.message.replace(str(upload.path), upload.name)
    return error


def _read_rejected(path: Path) -> RejectedRows:
    rows: list[RejectedRow] = []
    with path.open("rb") as file:
        while line := file.readline(_LINE_BYTES):
            if len(rows) == REJECTED:
                return RejectedRows(rows=rows, whole=False)
            try:
                rejected = msgspec.json.decode(line, type=_Rejected)
            except ValueError:  # a line longer than any row
                continue
            text = bytes(rejected.data).decode(errors="replace")[:_SHOWN]
            rows.append(RejectedRow(row=rejected.row, code=rejected.code, reason=rejected.reason[:_SHOWN], text=text))
    return RejectedRows(rows=rows, whole=True)
