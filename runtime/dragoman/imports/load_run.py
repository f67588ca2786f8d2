"""One load: rows are read, written several batches at a time, and counted by outcome."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import anyio
import msgspec
from anyio.to_thread import run_sync

from dragoman.sessions.selections import check_owner
from dragoman_api.columns import Note
from dragoman_api.errors import ConfigurationError, ObjectNotFoundError
from dragoman_api.kit.page_columns import columns_left_out

from .batch_sending import ON_CONFLICT, Writer
from .batches import BatchReader, no_counts
from .checkpoints import Ledger
from .readers import FileRows
from .records import DocumentInserts, Wishes, check_id, has_uuids

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dragoman.sessions.rows import Rows
    from dragoman.sessions.session import Session
    from dragoman_api.changes import PlannedRequest
    from dragoman_api.columns import Description

    from .batches import Batch, Maker
    from .column_mapping import RowInserts
    from .copy_plans import CopyPlan
    from .new_objects import TypeProposal
    from .readings import FieldReadings
    from .translations import Translation
else:
    TypeProposal = msgspec.Struct  # for who inspects a report: few loads make an object, and import what does

AT_ONCE = 4
"""The number of batches that are written at the same time."""

MAX_BATCH = 5_000
"""Maximum number of rows of a batch."""

BATCH = 2_000
"""The default number of rows of a batch."""


class LoadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a load, which are arguments of `load`."""

    format: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    id: str | None = None
    on_conflict: str = "fail"
    renamed: Mapping[str, str] = msgspec.field(default_factory=dict)
    types: Mapping[str, str] = msgspec.field(default_factory=dict)
    readings: Mapping[str, str] = msgspec.field(default_factory=dict)
    batch: int = BATCH
    tenant: str | None = None
    undo: Path | None = None
    resume: bool = False
    dry_run: bool = False
    create: bool = False
    ids: str | None = None


class LoadReport(msgspec.Struct, kw_only=True):
    """The outcomes of the rows of a file.

    Attributes:
        file: The file's name.
        object: The object that received the rows.
        format: The format that the file was read as.
        rows: The number of rows that were read, by earlier runs too.
        now: The number of rows that the last run read.
        counts: The number of rows per outcome; contains every outcome. ``refused`` includes rows that cannot be read;
            ``unknown`` rows were sent, but no answer came.
        complete: Every row of the file has its outcome. If not, the load can be resumed.
        resumed: How often the load was resumed.
        rejected: The file of the rows that were not written, with the reasons; None if there are none.
        undo: The file that takes the load back; None if there is none.
        seconds: The duration of the last run.
        notes: Notes for the user.
        proposal: The types of the object's columns, if the load made it, or would make it, for the rows of a table;
            else what was read otherwise than it stands, if anything.
        resumable: The load was stopped, and another run can continue it.
    """

    file: str
    object: str
    format: str
    rows: int = 0
    now: int = 0
    counts: dict[str, int] = msgspec.field(default_factory=no_counts)
    complete: bool = False
    resumed: int = 0
    rejected: str | None = None
    undo: str | None = None
    seconds: float = 0.0
    notes: list[Note] = msgspec.field(default_factory=list)
    proposal: TypeProposal | None = None
    resumable: bool = False


class LoadProgress(msgspec.Struct, frozen=True):
    """The progress of a load.

    Attributes:
        read: The number of rows that were read in all.
        now: The number of rows that this run read.
        part: The fraction of the file that was read; None if its size is not known.
        report: The report of the load, whose counts are those of now; it is complete once the load has ended, in
            whichever way.
    """

    read: int
    now: int
    part: float | None
    report: LoadReport


class Load:
    """One load; single use.

    Attributes:
        report: The outcomes of the rows, also if `run` fails.
    """

    def __init__(
        self,
        session: Session,
        object: str,  # noqa: A002 - the design's word
        file: Path | None,
        *,
        options: LoadOptions,
        stdin: BinaryIO | None = None,
        rows: Rows | None = None,
        progress: Callable[[LoadProgress], None] = lambda _progress: None,
        preview: Callable[[PlannedRequest], None] = lambda _planned: None,
        announce: Callable[[PlannedRequest], None] = lambda _planned: None,
        confirm_types: Callable[[TypeProposal], Awaitable[None]] | None = None,
        confirm_copy: Callable[[CopyPlan], Awaitable[None]] | None = None,
    ) -> None:
        """Prepare; nothing is opened.

        Args:
            session: The open connection.
            object: The name of the object that receives the rows.
            file: The path of the file; for a stream, a name that stands for it. None for rows of a connection: the
                object's name in the current folder stands for them.
            options: The options of the load.
            stdin: A stream to read instead of the file.
            rows: Rows of an open connection to read instead of the file.
            progress: Called after each batch.
            preview: Called with each request of a dry run.
            announce: Called with the request that creates the object, before it is sent.
            confirm_types: Awaited with the types of the columns of an object that is to be made, and with how fields
                are read; raises an error if they are not wanted. None if nobody is there to ask: then
                `LoadOptions.types` and `LoadOptions.readings` name all that the file does not say.
            confirm_copy: Awaited with what a copy would do, before anything is written; raises an error if that is not
                wanted. None if nobody is there to ask: then a copy to a connection of another type is refused if it
                would leave out or change what `options` do not name.
        """
        file = file or Path(object.replace("/", "_").replace("\\", "_"))
        self._session, self._object, self._file, self._options = session, object, file, options
        self._stdin, self._copied, self._like = stdin, rows, ""
        self._progress, self._preview, self._announce = progress, preview, announce
        self._confirm_types, self._confirm_copy = confirm_types, confirm_copy
        self._copy_plan: CopyPlan | None = None
        self._translation: Translation | None = None
        self._resources = ExitStack()
        self._one = anyio.CapacityLimiter(1)  # thread at a time writes
        self._reading = anyio.CapacityLimiter(1)
        self._file_rows: FileRows
        self._batches: BatchReader
        self._ledger: Ledger
        self._rows: RowInserts | None = None
        self._readings: FieldReadings = {}
        self.report = LoadReport(file=str(file), object=object, format=options.format or "")

    @property
    def repeatable(self) -> bool:
        """Whether another copy can leave out the rows that this one has written, because they have their ids."""
        return self._copy_plan is None or self._copy_plan.ids != "new"

    async def run(self) -> LoadReport:
        """Load the file.

        Raises:
            ConfigurationError: An option or the file cannot be used; rows that were read before are loaded.
            DragomanError: The load was stopped: a guard vetoed a call, or the server or the driver failed. `report`
                counts the rows by outcome, and says whether another run can continue. An error that
                `progress` or `preview` raises stops the load in the same way.
        """
        _check(self._options)
        if self._copied is None:
            await self._load()
        else:
            await self._copy(self._copied)
        return self.report

    async def _copy(self, rows: Rows) -> None:
        """Load the rows of another connection while they are exported."""
        from .copies import check_copy, stream_rows

        check_copy(rows)
        description = await rows.describe()
        self._like, self._options = description.structure, msgspec.structs.replace(self._options, format="rows")
        wishes = self._options.ids is not None or self._options.types
        if rows.type != self._session.type or self._confirm_copy is not None or wishes:
            await self._plan_copy(rows, description)

        async def load(stream: BinaryIO) -> None:
            self._stdin = stream
            await self._load()

        try:
            notes = await stream_rows(rows, description=description, consume=load)
        except BaseException:
            self.report.complete = False
            raise
        self.report.notes += notes

    async def _plan_copy(self, rows: Rows, description: Description) -> None:
        """Find out what becomes of each column, and have it confirmed; nothing is written yet."""
        from .copy_plans import plan_copy

        options = self._options
        plan = await plan_copy(
            rows, self._session, self._object, renamed=options.renamed, types=options.types, ids=options.ids,
            create=options.create,
        )  # fmt: skip
        if self._confirm_copy is not None:
            await self._confirm_copy(plan)
        else:
            plan.check_confirmed()
        self._copy_plan = plan
        if rows.type == self._session.type:
            return
        self._translation = plan.translation(description)
        names, row_id = self._translation.new_names, self._translation.id_name or None
        self._options = msgspec.structs.replace(options, renamed=names, types={}, id=row_id)

    async def _load(self) -> None:
        began = time.perf_counter()
        description: Description | None = None
        try:
            description = await self._session.describe(self._object)
        except ObjectNotFoundError:
            if not self._options.create:
                raise
        try:
            # Opening may wait for a pipe without a writer.
            await run_sync(self._open, abandon_on_cancel=True)
            if description is None:
                description = await self._create()
            elif self._are_fields_read:
                await self._confirm_fields(description)
            if description is not None:
                await run_sync(self._begin, description)
                await self._work(began)
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(self._resources.close, limiter=self._one)

    async def _work(self, began: float) -> None:
        try:
            self._progress(self._so_far())
            await self._pump()
            await run_sync(self._ledger.complete, limiter=self._one)
            self.report.complete = True
        except BaseException:
            with anyio.CancelScope(shield=True):
                self.report.resumable = await run_sync(self._ledger.give_up, limiter=self._one)
            raise
        finally:
            self._tell(time.perf_counter() - began)

    # opening

    def _open(self) -> None:
        """Open the file."""
        options = self._options
        self._file_rows = self._resources.enter_context(
            closing(
                FileRows(
                    self._file, stdin=self._stdin, format=options.format, delimiter=options.delimiter,
                    encoding=options.encoding, table=self._translation,
                )
            )
        )  # fmt: skip
        self.report.format = self._file_rows.format
        self._wishes = Wishes(
            object=self._object, id=options.id, renamed=options.renamed, replace=options.on_conflict == "overwrite",
            tenant=options.tenant,
        )  # fmt: skip
        keeps = not (self._stdin is not None or options.dry_run)
        self._ledger = Ledger(self._file, keeps=keeps, undo=options.undo, stream=self._stdin)
        if not options.dry_run:
            self._resources.callback(self._ledger.close)
            # Before an object is made: a load that cannot begin, or cannot keep its place, writes nothing.
            self._ledger.reserve(self._identity(self.report.format), resume=options.resume)

    async def _create(self) -> Description | None:
        """Create the object as the first rows need it; None for a dry run, whose rows cannot be planned."""
        from .new_objects import make_object, plan_for_rows

        options = self._options
        if self._copy_plan is not None:
            if self._copy_plan.making is None:
                text = f"{self._object!r} was there when the copy was planned, and is gone now"
                raise ObjectNotFoundError(text, hint="plan the copy again: the object would be made otherwise")
            planned = self._copy_plan.making
        else:
            if self._file_rows.names and not self._like:
                await self._confirm_fields(None)
            planned = await plan_for_rows(
                self._session, self._file_rows, self._wishes, like=self._like, proposal=self.report.proposal
            )
        (self._preview if options.dry_run else self._announce)(planned)
        if options.dry_run:
            text = f"{self._object!r} does not exist, so its rows are not planned before it is made"
            self.report.notes.append(Note(code="object-missing", reason=text))
            return None
        await make_object(self._session, self._object, planned)
        return await self._session.describe(self._object)

    @property
    def _are_fields_read(self) -> bool:
        """Whether readings of fields are proposed, wished for, or kept by an interrupted run."""
        spelled, wishes = self._file_rows.spelled, self._options.readings
        return bool(wishes) or (spelled is not None and (not spelled.exact or self._ledger.earlier is not None))

    async def _confirm_fields(self, description: Description | None) -> None:
        """Find out how the fields of a table are read, and have it confirmed; a resumed load goes on as it began."""
        from .proposals import confirmed_proposal

        options = self._options
        if self._ledger.earlier is not None and description is not None:
            self._readings = self._ledger.readings_kept(options.readings)
            return
        proposal = await confirmed_proposal(
            self._file_rows, self._wishes, types=options.types, readings=options.readings, description=description,
            confirm=self._confirm_types,
        )  # fmt: skip
        if description is None or proposal.field_readings:
            self.report.proposal = proposal
        self._readings = proposal.field_readings

    def _begin(self, description: Description) -> None:
        """Prepare to read the rows, and continue an earlier run that was interrupted."""
        options, chosen = self._options, self.report.format
        check_id(self._wishes, description)
        ledger, file_rows = self._ledger, self._file_rows
        if file_rows.names:
            from .field_values import match_fields

            maker: Maker
            maker = fields = match_fields(
                self._wishes, description, file_rows.names, spelled=file_rows.spelled, readings=self._readings,
                likely=file_rows.likely,
            )  # fmt: skip
            self.report.notes += columns_left_out(fields.left_out)
        elif chosen in ("bulk", "rows"):
            from .column_mapping import RowInserts

            maker = self._rows = RowInserts(
                self._wishes, description, tenants="tenants" in self._session.capabilities,
                copied=self._copied is not None,
            )  # fmt: skip
        else:
            maker = DocumentInserts(self._wishes, description)
        if not options.dry_run:
            ledger.open(self._readings)
        uuids = has_uuids(description)
        if self._translation is not None:
            self._translation.uuids = uuids
        self._batches = BatchReader(
            file_rows.records, maker=maker, rows=options.batch, source=file_rows.source, place=file_rows.place,
            uuids=uuids,
        )  # fmt: skip
        if (earlier := ledger.earlier) is not None:
            self._batches.go_on(earlier.read, doubt=earlier.doubt, waiting=earlier.waiting)

    def _identity(self, chosen: str) -> dict[str, Any]:
        """Return the properties that a resumed run must share, by the names of its arguments."""
        options = self._options
        self._ledger.names = self._file_rows.names
        return {
            "connection": self._session.name,
            "type": self._session.type,
            "object": self._object,
            "format": chosen,
            "delimiter": options.delimiter,
            "encoding": options.encoding,
            "id": options.id,
            "map": dict(options.renamed),
            "on_conflict": options.on_conflict,
            "tenant": options.tenant,
            "undo": str(options.undo) if options.undo else None,
        }

    # the stream

    async def _pump(self) -> None:
        writer = Writer(
            self._session, self._ledger, object=self._object, one=self._one, on_conflict=self._options.on_conflict,
            preview=self._preview, sends=not self._options.dry_run,
        )  # fmt: skip
        slots = anyio.Semaphore(1 if self._options.dry_run else AT_ONCE)
        under_way: dict[int, Batch] = {}

        async def write(batch: Batch) -> None:
            try:
                await writer.write(batch)
            finally:
                del under_way[id(batch)]
                slots.release()
            try:
                self._progress(self._so_far())
            except Exception as error:  # noqa: BLE001 - raised below, as what it is
                writer.stop(error)

        async with anyio.create_task_group() as tasks:
            try:
                while not writer.ended():
                    batch = await run_sync(self._batches.next, limiter=self._reading)
                    if batch is None:
                        break
                    await slots.acquire()
                    while any(not batch.keys.isdisjoint(earlier_batch.keys) for earlier_batch in under_way.values()):
                        await writer.settled.wait()  # two writes of one row keep their order
                    if writer.ended():
                        break
                    if self._options.dry_run:
                        writer.pretend(batch)
                    else:
                        await run_sync(self._ledger.begin, batch, limiter=self._one)
                    if not batch.records:
                        slots.release()
                        continue
                    under_way[id(batch)] = batch
                    tasks.start_soon(write, batch)
            except Exception as error:  # noqa: BLE001 - raised below: what is under way has its outcome first
                writer.stop(error)
        self.report.notes += [*writer.notes.values(), *(self._rows.notes if self._rows else ())]
        if self._copy_plan is not None and self._translation is not None:
            self.report.notes += [*self._copy_plan.left_out, *self._translation.notes]
        writer.check()

    def _so_far(self) -> LoadProgress:
        part = None
        if (source := self._file_rows.source) is not None and source.size:
            part = min(1.0, source.place[0] / source.size)
        self._count()
        return LoadProgress(self._ledger.read, self._ledger.read_now, part, self.report)

    def _count(self) -> None:
        report, ledger = self.report, self._ledger
        report.rows, report.counts, report.resumed = ledger.read, dict(ledger.counts), ledger.resumed

    def _tell(self, seconds: float) -> None:
        report, ledger = self.report, self._ledger
        self._count()
        report.counts["unknown"] += ledger.doubtful
        report.now, report.seconds = ledger.read_now, seconds
        if self._options.dry_run:
            return
        report.rejected = str(ledger.rejected.path) if ledger.rejected.size else None
        report.undo = str(ledger.undo.path) if ledger.undo and ledger.undo.size else None


def _check(options: LoadOptions) -> None:
    check_owner(tenant=options.tenant)
    if options.on_conflict not in ON_CONFLICT:
        raise ConfigurationError(f"on_conflict is {options.on_conflict!r}; it can be {', '.join(ON_CONFLICT)}")
    if not 1 <= options.batch <= MAX_BATCH:
        raise ConfigurationError(f"a batch has 1 to {MAX_BATCH:,} rows, not {options.batch:,}")
