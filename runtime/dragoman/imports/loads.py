"""Loads: the rows of a file, or of another connection, are written like any change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from dragoman_api.errors import ConfigurationError, DragomanError

from .load_run import BATCH, Load, LoadOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from dragoman.sessions.rows import Rows
    from dragoman.sessions.session import Session
    from dragoman_api.changes import PlannedRequest

    from .copy_plans import CopyPlan
    from .load_run import LoadProgress, LoadReport


def _place(file: Path | BinaryIO | None, rows: Rows | None) -> tuple[Path | None, BinaryIO | None]:
    """Return the path that a load goes by, None for the name of its object, and the stream that it reads.

    Raises:
        ConfigurationError: Neither a file nor rows are named, or both.
    """
    if rows is not None:
        if file is not None and not isinstance(file, Path):
            raise ConfigurationError("rows are loaded, or a stream, not both", hint="leave `file` out")
        return file, None
    if file is None:
        raise ConfigurationError("nothing is named to load", hint="name `file`, or `rows` of an open connection")
    if isinstance(file, Path):
        return file, None
    stream_path = getattr(file, "name", None)
    return stream_path if isinstance(stream_path, Path) else Path("stream"), file


async def load(
    session: Session,
    object: str,  # noqa: A002 - the design's word
    *,
    file: Path | BinaryIO | None = None,
    rows: Rows | None = None,
    format: str | None = None,  # noqa: A002
    delimiter: str | None = None,
    encoding: str | None = None,
    id: str | None = None,  # noqa: A002
    on_conflict: str = "fail",
    renamed: Mapping[str, str] | None = None,
    types: Mapping[str, str] | None = None,
    readings: Mapping[str, str] | None = None,
    batch: int = BATCH,
    tenant: str | None = None,
    undo: Path | None = None,
    resume: bool = False,
    create: bool = False,
    ids: str | None = None,
    dry_run: bool = False,
    progress: Callable[[LoadProgress], None] | None = None,
    preview: Callable[[PlannedRequest], None] | None = None,
    confirm: Callable[[CopyPlan], Awaitable[None]] | None = None,
) -> LoadReport:
    """Load the rows of a file, or of another connection, into an object, in constant memory, like any change.

    Rows that are not written are lines of ``FILE.rejected.ndjson``, each with its reason. A load of a path keeps a
    checkpoint beside it until every row has its outcome.

    Args:
        session: The open connection.
        object: The object that receives the rows; it must exist, unless `create` is set.
        file: A path, or an open binary stream, which cannot be resumed; its `name`, if a Path, says where it would lie.
            For `rows`, a path that only says where rejected rows go; None for the object's name in the current folder.
        rows: Whole rows of an open connection to copy instead, with ids and vectors. Between connections of one type,
            `create` makes the object as theirs is. To another type go the columns that both sides can carry
            (`plan_copy`). Such a load cannot be resumed; another one with ``on_conflict="skip"`` copies the rest.
        format: ``documents`` or ``ndjson``, ``json``, ``rows``, ``csv``, ``tsv``, ``bulk``, ``parquet``: what an export
            writes. None goes by the manifest of an export beside the file, else by the file's ending.
        delimiter: What separates the fields of CSV, one character; None for a comma, and for the tab of TSV.
        encoding: How the file spells its characters, as ``windows-1252``; None for UTF-8.
        id: The column whose value becomes the row's id; None to take the file's own ids, or the server's.
        on_conflict: What happens to a row whose id exists: ``fail`` rejects it, ``skip`` leaves the stored row, and
            ``overwrite`` replaces it.
        renamed: New names of the file's columns by their old ones; an empty name leaves a column out.
        types: The types of columns of an object that is made for a table, by their new names: ``text``, ``integer``,
            ``float``, ``boolean``, ``timestamp``, ``date`` or ``binary``. Nothing is guessed: a table of CSV or TSV
            needs the type of each column (code ``types-unconfirmed``; `preview_import` proposes them).
        readings: How fields of CSV and TSV are read, by the file's columns: ``plain``, ``decimal-comma``,
            ``decimal-point``, ``day-first``, ``month-first``, ``year-first``, the last three perhaps with a time zone
            (``day-first@Europe/Berlin``, else UTC), or words for true and false, such as ``ja/nein``. If fields do not
            fit their columns as they stand, and a reading fits them, it has to be said (``readings-unconfirmed``).
        batch: The maximum number of rows of a batch, 1 to 5,000.
        tenant: The tenant that receives the rows.
        undo: A new file that receives changes which take the load back.
        resume: Continue an interrupted load of the same file, with the same arguments.
        create: Make the object if it does not exist, as far as the driver can.
        ids: What becomes of the ids of rows that are copied to another type: ``keep``; ``derive`` a UUID from each; or
            ``new`` ones. None keeps them where the target takes them, and elsewhere asks (``copy-unconfirmed``).
        dry_run: Send nothing; `preview` gets the exact requests.
        progress: Called at the start and after each batch.
        preview: Called with each request of a dry run.
        confirm: Awaited with what a copy of `rows` would do, before anything is written; raises an error if that is not
            wanted. Without it, `renamed` and `ids` name all that a copy leaves out or changes (``copy-unconfirmed``).

    Returns:
        What became of the rows.

    Raises:
        ConfigurationError: An argument or the file cannot be used, or the load cannot be resumed (``resume-refused``).
        DragomanError: A guard vetoed a call, or the server or the driver failed; the details count rows by outcome.
    """
    options = LoadOptions(
        format=format, delimiter=delimiter, encoding=encoding, id=id, on_conflict=on_conflict, renamed=renamed or {},
        types=types or {}, readings=readings or {}, batch=batch, tenant=tenant, undo=undo, resume=resume,
        create=create, dry_run=dry_run, ids=ids,
    )  # fmt: skip
    path, stream = _place(file, rows)
    job = Load(
        session, object, path, options=options, stdin=stream, rows=rows, progress=progress or (lambda _progress: None),
        preview=preview or (lambda _planned: None), confirm_copy=confirm,
    )  # fmt: skip
    try:
        return await job.run()
    except DragomanError as error:
        error.details.update(job.report.counts)
        if job.report.resumable:
            error.advise("load with resume=True to continue")
        raise
