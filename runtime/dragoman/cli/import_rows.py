"""The commands `import` and `copy`: rows of a file or another connection, loaded through the change path."""

from __future__ import annotations

import shlex
import sys
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman_api.errors import ConfigurationError, DragomanError

from .advice import command
from .command_files import command_file
from .errors import NOT_APPLIED
from .opening import opens, suggesting_names, tell_warnings, warm_runtime
from .options import CONNECTION, OBJECT, Command, complete_connection
from .output import dumps, plain, request_document, say, say_notes, show_rows, write_json, write_request
from .progress import StatusLine
from .read_options import FILTER, TENANT, RowChoice, choosing
from .streams import attended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

    from dragoman.imports.copy_plans import CopyPlan
    from dragoman.imports.load_run import Load, LoadReport
    from dragoman.imports.new_objects import ColumnProposal, TypeProposal
    from dragoman.sessions.session import Session

    from .options import Options

FORMATS = ("ndjson", "documents", "json", "rows", "csv", "tsv", "bulk", "parquet")
FINAL = ("resume-refused", "import-running", "import-unfinished")
"""Codes of errors that resuming would meet again."""

_ALWAYS = ("applied", "skipped", "conflict", "failed")
"""Outcomes that the summary names even if there are none."""


def _beside(file: Path) -> tuple[Path, ...]:
    from dragoman.imports.checkpoints import checkpoint_path, rejected_path

    return checkpoint_path(file), rejected_path(file)


def renamed_columns(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Read the values of `--map`."""
    names: dict[str, str] = {}
    for value in values:
        old, sign, new = value.partition("=")
        if not old or not sign or old in names:
            raise click.BadParameter(f"{value!r} is not OLD=NEW, or names a column twice")
        names[old] = new
    return names


def _column_choices(_context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Read the values of `--type` or `--read`; a name may hold a sign of equality, and no type or reading does."""
    choices: dict[str, str] = {}
    for value in values:
        column, sign, choice = value.rpartition("=")
        if not column or not sign or column in choices:
            raise click.BadParameter(f"{value!r} is not {parameter.metavar}, or names a column twice")
        choices[column] = choice
    return choices


def loading(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of how rows are written."""
    for option in (
        click.option("--batch", type=click.IntRange(1, 5_000), default=2_000,
                     help="Maximum number of rows of a batch."),
        click.option("--map", "renamed", multiple=True, metavar="OLD=NEW", callback=renamed_columns,
                     help="Rename a column, or a vector; OLD= leaves it out. Repeatable."),
        click.option("--on-conflict", default="fail", type=click.Choice(["fail", "skip", "overwrite"]),
                     help="A row whose id exists: reject it, keep the stored row, or replace that row."),
    ):  # fmt: skip
        command = option(command)
    return command


def _delimiter(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    return "\t" if value in ("tab", "\\t") else value


@click.command("import", cls=Command)
@CONNECTION
@OBJECT
@click.argument("file", metavar="FILE|-", callback=command_file(beside=_beside))
@click.option("--format", type=click.Choice(FORMATS), help="By default chosen by the file's ending, else documents.")
@click.option("--delimiter", metavar="CHARACTER", callback=_delimiter,
              help="What separates the fields of CSV, for example ';' or tab; by default a comma.")  # fmt: skip
@click.option("--encoding", metavar="NAME", help="How the file spells characters, such as windows-1252.")
@click.option("--id", "id_", metavar="COLUMN", help="The column whose value becomes the row's id.")
@loading
@TENANT
@click.option("--undo", metavar="FILE", callback=command_file(written=True),
              help="Write an undo file, a change file that takes the load back.")  # fmt: skip
@click.option("--resume", is_flag=True, help="Continue an interrupted load of the same file.")
@click.option(
    "--create", is_flag=True, help="Make the object if it does not exist; the types of a table are confirmed."
)
@click.option("--type", "types", multiple=True, metavar="COLUMN=TYPE", callback=_column_choices,
              help="The type of a column that --create makes: text, integer, float, boolean, timestamp, date or "
                   "binary. Repeatable.")  # fmt: skip
@click.option("--read", "readings", multiple=True, metavar="COLUMN=READING", callback=_column_choices,
              help="How a column of CSV or TSV spells values: decimal-comma, decimal-point, day-first, month-first, "
                   "year-first (@Europe/Berlin adds a zone), words such as ja/nein, or plain. Repeatable.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show the exact requests without sending them.")
@opens
async def import_(
    options: Options, session: Session, *, object: str, file: str, format: str | None, delimiter: str | None,
    encoding: str | None, id_: str | None, on_conflict: str, renamed: dict[str, str], batch: int, tenant: str | None,
    undo: str | None, resume: bool, create: bool, types: dict[str, str], readings: dict[str, str], dry_run: bool,
) -> int | None:  # fmt: skip
    """Load the rows of a file into an object, which must exist unless --create is given.

    FILE is what an export writes: NDJSON, JSON, CSV, TSV, Parquet, rows or bulk lines, perhaps packed with gzip,
    bzip2 or zstd. Rows that are not written go to FILE.rejected.ndjson, each with its reason.
    """
    from dragoman.imports.load_run import Load, LoadOptions

    streamed = file == "-"
    if streamed and resume:
        raise click.UsageError("standard input cannot be resumed; name a file")
    if types and not create:
        raise click.UsageError("--type says the types of an object that --create makes")
    if not dry_run and attended() and not options.yes:
        await options.agree(f"Load {plain(file)} into {plain(object)} of {plain(session.name)}?", instead="--yes")
    wishes = LoadOptions(
        format=format, delimiter=delimiter, encoding=encoding, id=id_, on_conflict=on_conflict, renamed=renamed,
        types=types, readings=readings, batch=batch, tenant=tenant, undo=Path(undo) if undo and not dry_run else None,
        resume=resume, dry_run=dry_run, create=create,
    )  # fmt: skip
    line = StatusLine(quiet=options.quiet)
    load = Load(
        session, object, Path("stdin" if streamed else file), options=wishes,
        stdin=sys.stdin.buffer if streamed else None, progress=progress_in(line, object), preview=previewed(options),
        announce=announced(options, object), confirm_types=confirming(options, line, sends=not dry_run),
    )  # fmt: skip
    with _resumable(options, load), line:
        await load.run()
    tell(options, session, load.report, sent=not dry_run)
    return code_of(load.report, on_conflict)


def code_of(report: LoadReport, on_conflict: str) -> int | None:
    """Return the exit code of a load: rows that were not written count, unless they were to be skipped."""
    successes = {"applied", "skipped"} if on_conflict == "skip" else {"applied"}
    return NOT_APPLIED if any(count for status, count in report.counts.items() if status not in successes) else None


def previewed(options: Options) -> Callable[[Any], None]:
    """Return what shows each request of a dry run."""

    def as_json(planned: Any) -> None:
        sys.stdout.write(dumps(request_document(planned)) + "\n")

    return as_json if options.json else write_request


def announced(options: Options, name: str) -> Callable[[Any], None]:
    """Return what tells of the request that makes an object."""

    def tell_of(planned: Any) -> None:
        request = planned.request
        options.say(f"{plain(name)} does not exist and is made: {request.method} {plain(request.path)}")

    return tell_of


def confirming(options: Options, line: StatusLine, *, sends: bool) -> Callable[[TypeProposal], Awaitable[None]]:
    """Return what shows how fields are read and the types of a new object, and asks whether that is right."""
    from dragoman.imports.new_objects import READINGS_UNCONFIRMED
    from dragoman.imports.readings import PLAIN

    async def confirm(proposal: TypeProposal) -> None:
        line.clear()
        if proposal.exists and not (proposal.unsaid or proposal.field_readings):
            return
        if options.json and not sends:
            write_json(proposal)
        elif not options.json:
            _say_types(options, proposal)
        if not sends or not (proposal.guessed or proposal.unsaid):
            return
        if (doubtful := next(iter(proposal.undecided), None)) is not None:
            hint = f"{_saying(doubtful)}, once you know; {PLAIN} reads the fields as they stand"
            raise ConfigurationError(f"{doubtful.column!r}: {doubtful.doubt}", hint=hint, code=READINGS_UNCONFIRMED)
        question = f"Make {plain(proposal.object)} with these types?"
        instead = "--yes, or --type COLUMN=TYPE"
        if not proposal.guessed:
            question = f"Read the file into {plain(proposal.object)} so?"
            instead = " ".join(["--yes, or", *map(_saying, proposal.unsaid)])
        try:
            await options.agree(question, instead=instead)
        except DragomanError as error:
            if proposal.guessed:
                error.details["types"] = ", ".join(f"{column.name}={column.type}" for column in proposal.columns)
            if proposal.unsaid:
                error.details["readings"] = " ".join(map(_saying, proposal.unsaid))
            raise

    return confirm


def _saying(column: ColumnProposal) -> str:
    """Return the option that says the reading of a column, as a shell reads it."""
    return f"--read {shlex.quote(f'{column.column}={column.likely_reading}')}"


def _say_types(options: Options, proposal: TypeProposal) -> None:
    looked_at = f"{'all' if proposal.whole else 'the first'} {show_rows(proposal.rows)}"
    state = "exists; fields to be read" if proposal.exists else "does not exist; types"
    options.say(f"{plain(proposal.object)} {state} after a look at {looked_at}:")
    columns = [column for column in proposal.columns if column.reading or column.doubt or not proposal.exists]
    width = max((len(plain(column.name)) for column in columns), default=0)
    for column in columns:
        kind = f"{column.type}{'[]' if column.repeated else ''}"
        options.say(f"  {plain(column.name):{width}}  {kind:9}  {_evidence(column)}")


def _evidence(column: ColumnProposal) -> str:
    examples = ", ".join(plain(example) for example in column.examples)
    text = f"{column.values:,} values, such as {examples}" if column.values else "no value"
    misfits = ", ".join(plain(misfit) for misfit in column.misfits)
    if column.reading:
        example = next((choice for choice in column.readings if choice.reading == column.reading), None)
        read = f"{plain(example.field)} → {plain(example.value)}" if example else "none of them fits"
        text = f"{column.values:,} values, {plain(column.reading)}: {read}"
    if column.doubt:
        return f"{text}; {plain(column.doubt)}"
    if column.nearly is not None:
        nearly = f"{column.nearly} with {column.nearly_reading}" if column.nearly_reading else column.nearly
        return f"{text}; {nearly} but for {misfits}"
    return f"{text}; does not fit, and is rejected: {misfits}" if misfits else text


def progress_in(line: StatusLine, name: str) -> Callable[[Any], None]:
    """Return what shows the progress of a load into an object in a line."""
    import time

    began = time.monotonic()

    def show(done: Any) -> None:
        rate = float(f"{done.now / max(time.monotonic() - began, 1e-6):.2g}")
        part = "" if done.part is None else f"  {done.part:.0%}"
        line.show(f"  {plain(name)}  {show_rows(done.read)}{part}  {rate:,.0f} rows/s")

    return show


@contextmanager
def _resumable(options: Options, load: Load) -> Iterator[None]:
    """Tell what became of the rows of a load that was stopped, and print the command that continues it."""
    try:
        yield
    except BaseException as error:
        failure = error if isinstance(error, DragomanError) else None
        report = load.report
        if any(report.counts.values()):
            say(f"stopped after {show_rows(report.rows)}: {counts_of(report)}")
        if not load.report.resumable or (failure and failure.code in FINAL):
            raise
        if failure:
            failure.details.update(report.counts)
            failure.advise(shlex.join(options.resuming))
        else:
            say(f"to continue: {command(*options.resuming)}")
        raise


def counts_of(report: LoadReport) -> str:
    """Return the counts of a load for people."""
    counts = [(status, count) for status, count in report.counts.items() if count or status in _ALWAYS]
    return " · ".join(f"{status} {count:,}" for status, count in counts)


def tell(options: Options, session: Session, report: LoadReport, *, sent: bool) -> None:
    """Tell what became of the rows of a load."""
    if options.json and sent:
        return write_json(report)
    if not sent:
        refused = report.counts["refused"] + report.counts["conflict"] + report.counts["skipped"]
        options.say(f"{show_rows(report.rows)}, {refused:,} of them not to be sent; nothing was sent (--dry-run)")
        return say_notes(report.notes)
    rate = float(f"{report.now / max(report.seconds, 1e-6):.2g}")
    options.say(f"{plain(report.object)}  {show_rows(report.rows)}  {rate:,.0f} rows/s  {counts_of(report)}")
    say_notes(report.notes)
    if report.rejected is not None:
        say(f"not written, each with its reason: {plain(report.rejected)}")
    if report.undo is not None:
        options.say(f"to take it back: dragoman apply {plain(session.name)} {plain(report.undo)}")
    return None


@click.command(cls=Command)
@click.argument("source", metavar="SOURCE", shell_complete=complete_connection)
@click.argument("object", metavar="OBJECT")
@click.argument("target", metavar="TARGET", shell_complete=complete_connection)
@click.argument("to", metavar="TARGET-OBJECT")
@choosing(*FILTER, "tenant")
@loading
@click.option("--to-tenant", metavar="NAME", help="The tenant that receives them; by default the same.")
@click.option("--create", is_flag=True, help="Make the target object as the source is, if it does not exist.")
@click.option("--type", "types", multiple=True, metavar="COLUMN=TYPE", callback=_column_choices,
              help="The type of a column that --create makes in another type of database. Repeatable.")  # fmt: skip
@click.option("--ids", type=click.Choice(["keep", "derive", "new"]),
              help="The ids in another type of database: the same, a UUID derived from each, or new ones.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show what becomes of each column, and the exact requests; send nothing.")
@click.pass_obj
def copy(options: Options, /, **arguments: Any) -> Coroutine[Any, Any, int | None]:
    """Copy rows, with their ids and vectors, to TARGET-OBJECT, which must exist unless --create is given.

    Between two types of databases go the columns that both can carry; what is left out or changes is shown first. Rows
    that are not written go to TARGET-OBJECT.rejected.ndjson. After an interruption, the same command with --on-conflict
    skip copies the rest.
    """
    return _copy(options, **arguments)


async def _copy(
    options: Options, *, source: str, choice: RowChoice, target: str, to: str, on_conflict: str,
    renamed: dict[str, str], batch: int, to_tenant: str | None, create: bool, types: dict[str, str], ids: str | None,
    dry_run: bool,
) -> int | None:  # fmt: skip
    from dragoman.imports.load_run import Load, LoadOptions

    if types and not create:
        raise click.UsageError("--type says the types of an object that --create makes")
    selection = choice.texts.read()
    if (source, selection.object, selection.tenant) == (target, to, to_tenant or selection.tenant):
        raise click.UsageError("the rows would be copied onto themselves; name another object")
    async with AsyncExitStack() as stack:
        runtime = options.current or await stack.enter_async_context(warm_runtime(options))
        source_session = await stack.enter_async_context(runtime.open(source))
        target_session = source_session if source == target else await stack.enter_async_context(runtime.open(target))
        for session in {id(session): session for session in (source_session, target_session)}.values():
            tell_warnings(session)
        rows = source_session.select(selection)
        async with suggesting_names(source_session, selection.object):
            await source_session.describe(selection.object)
        if not create:
            async with suggesting_names(target_session, to):
                await target_session.describe(to)
        question = f"Copy {plain(selection.object)} of {plain(source)} into {plain(to)} of {plain(target)}?"
        differs = source_session.type != target_session.type
        if not (differs or dry_run) and attended() and not options.yes:
            await options.agree(question, instead="--yes")
        wishes = LoadOptions(
            on_conflict=on_conflict, renamed=renamed, batch=batch, tenant=to_tenant, create=create, types=types,
            ids=ids, dry_run=dry_run,
        )  # fmt: skip
        line = StatusLine(quiet=options.quiet)
        load = Load(
            target_session, to, None, options=wishes, rows=rows, progress=progress_in(line, to),
            announce=announced(options, to), preview=previewed(options),
            confirm_copy=confirming_copy(options, question, sends=not dry_run) if differs else None,
        )  # fmt: skip
        try:
            with line:
                await load.run()
        except BaseException:
            if any(load.report.counts.values()):
                say(f"stopped after {show_rows(load.report.rows)}: {counts_of(load.report)}")
                if load.repeatable:
                    say("to copy the rest, run the same command with --on-conflict skip")
                else:
                    say("the rows have new ids, so the same command would add them again: delete these first")
            raise
    tell(options, target_session, load.report, sent=not dry_run)
    return None if dry_run else code_of(load.report, on_conflict)


def confirming_copy(options: Options, question: str, *, sends: bool) -> Callable[[CopyPlan], Awaitable[None]]:
    """Return what shows what becomes of each column in another type of database, and asks whether that is right."""

    async def confirm(plan: CopyPlan) -> None:
        if options.json and not sends:
            write_json(plan.document)
        elif not options.json:
            _say_copy(options, plan)
        if sends and (attended() or plan.doubtful or not plan.ids_consent) and not options.yes:
            try:
                await options.agree(question, instead=_agreeing(plan))
            except DragomanError as error:
                columns = [f"{column.column}: {column.reason}" for column in plan.doubtful]
                error.details["columns"] = "; ".join(columns)
                error.details["ids"] = plan.ids
                raise

    return confirm


def _agreeing(plan: CopyPlan) -> str:
    from dragoman.spellings import map_option

    words = [map_option(column.column, column.name) for column in plan.doubtful]
    words += [] if plan.ids_consent else [f"--ids {plan.ids}"]
    return f"--yes, or {' '.join(words)}" if words else "--yes"


def _say_copy(options: Options, plan: CopyPlan) -> None:
    state = "exists" if plan.exists else "does not exist"
    options.say(f"{plain(plan.object)} {state}; the columns, after a look at the first {show_rows(plan.rows)}:")
    sources = [f"{plain(column.column)} ({plain(column.type)})" for column in plan.columns]
    width = max(map(len, sources), default=0)
    for source, column in zip(sources, plan.columns, strict=True):
        words = f"{plain(column.name)} ({plain(column.target)})" if column.name else ""
        parts = [part for part in (words, plain(column.reason)) if part]
        options.say(f"  {source:{width}}  {'→ ' if words else ''}{', '.join(parts)}")
    options.say(f"  ids: {plain(plan.ids_reason)}")
    say_notes(plan.notes)
