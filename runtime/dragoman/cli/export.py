"""The command `export`."""

from __future__ import annotations

import shlex
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from dragoman_api.errors import DragomanError

from .advice import command
from .command_files import command_file, load_distribution
from .opening import opens
from .options import CONNECTION, OBJECT, Command, parse_time
from .output import plain_lines, say, say_notes, write_json
from .queries import queried
from .read_options import ESCAPE, FILTER, LISTS, TIME, RowChoice, choosing, parse_lists

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from dragoman.exports.formats import FileFormat
    from dragoman.sessions.rows import Rows
    from dragoman.sessions.session import Session

    from .options import Options

PACKAGE = "dragoman_dask"
"""A wheel of its own, which only exports in parts need and nothing else imports."""

FINAL = (
    "context-lost", "export-not-resumable", "export-running", "limit-exceeded", "parts-differ", "resume-refused",
    "snapshot-lost", "target-occupied",
)  # fmt: skip
"""Codes of errors that resuming would meet again."""

_CLEANUP_SECONDS = 8  # less than the time after which a command is interrupted again


class _SafeStream:
    """Standard output on a terminal, for bytes: stored data must not control the terminal."""

    name = "<stdout>"

    def write(self, data: bytes | memoryview) -> int:
        """Write bytes as visible text."""
        sys.stdout.write(plain_lines(bytes(data).decode(errors="backslashreplace")))
        return len(data)

    def flush(self) -> None:
        """Flush the terminal."""
        sys.stdout.flush()


def _beside(file: Path) -> tuple[Path, ...]:
    from dragoman.exports.target_files import files_beside

    return files_beside(file)


def _with_distribution(context: click.Context, _parameter: click.Parameter, parts: int | None) -> int | None:
    """Refuse an export in parts before anything is opened if the wheel that does it is missing."""
    if parts is not None and not context.resilient_parsing:
        words = context.find_root().obj.words
        _distribution(s3=any(word.removeprefix("--output=").startswith(("s3://", "s3a://")) for word in words))
    return parts


def in_parts(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of exports in parts."""
    for option in (
        click.option("--insecure-cluster", is_flag=True, help="Accept the address of a cluster without encryption."),
        click.option("--workers", type=click.IntRange(1, 1024), help="Processes of a local cluster."),
        click.option("--cluster", metavar="ADDRESS|local", help="Let a Dask cluster export the parts."),
        click.option("--max-requests", type=click.IntRange(1, 1024), metavar="N",
                     help="At most so many parts at a time, each with one request under way."),
        click.option("--parts", type=click.IntRange(1, 1024), metavar="N", callback=_with_distribution,
                     help="Export so many parts, each a file below FILE: a folder, or s3://BUCKET/FOLDER."),
    ):  # fmt: skip
        command = option(command)
    return command


@click.command(cls=Command)
@CONNECTION
@OBJECT
@choosing(*FILTER, "columns", "tenant", "revision", *TIME, "now")
@click.option("-o", "--output", metavar="FILE", callback=command_file(written=True, beside=_beside),
              help="The file, which appears only when it is complete; by default stdout.")  # fmt: skip
@click.option("--format", type=click.Choice(["documents", "ndjson", "json", "rows", "csv", "tsv", "bulk", "arrow",
                                            "parquet"]),
              help="By default chosen by the file's ending, else documents.")  # fmt: skip
@click.option("--compress", type=click.Choice(["gzip", "bzip2", "zstd"]), help="By default chosen by the file's name.")
@ESCAPE
@click.option("--strict", is_flag=True, help="Refuse a value that does not fit its type, in Arrow and Parquet files.")
@LISTS
@click.option("--resume", is_flag=True, help="Continue an interrupted export of the same rows to FILE.")
@click.option("--keep-alive", metavar="TIME", help="How long an interrupted export can be resumed: 90s, 30m, 2h.")
@in_parts
@click.option("--no-manifest", is_flag=True, help="Write no FILE.manifest.json.")
@queried
@opens
async def export(
    options: Options, session: Session, *, choice: RowChoice, output: str | None, format: str | None,
    compress: str | None, lists: str | None, resume: bool, keep_alive: str | None, no_manifest: bool, strict: bool,
    parts: int | None, cluster: str | None, workers: int | None, insecure_cluster: bool, max_requests: int | None,
) -> None:  # fmt: skip
    """Export an object of any size, or its rows that match a filter.

    Lines of documents, rows and bulk files are whole; --columns adds to them what they leave out, such as a vector.
    """
    from dragoman.exports.formats import FileFormat
    from dragoman.exports.target_files import is_url

    if options.reserved and not output:
        raise click.UsageError("--events - reserves stdout; name a file for the export: -o FILE")
    rows = choice.rows(session)
    file_format = FileFormat(
        format or "", compression=compress, escape=options.escape_formulas, strict=strict, lists=parse_lists(lists)
    )
    seconds = parse_time(keep_alive, option="--keep-alive")
    if insecure_cluster or any(option is not None for option in (parts, cluster, workers, max_requests)):
        await export_in_parts(
            options, session, rows, output=output, parts=parts, cluster=cluster, workers=workers,
            insecure_cluster=insecure_cluster, max_requests=max_requests, manifest=not no_manifest,
            file_format=file_format, resume=resume, keep_alive=seconds,
        )  # fmt: skip
        return
    if output and is_url(output):
        raise click.UsageError("a single file cannot be a URL; add --parts 1 for a folder there with one file")
    if not output and sys.stdout.isatty() and (format == "arrow" or compress):
        raise click.UsageError("a terminal cannot show Arrow or compressed data; name a file, -o FILE, or use a pipe")
    stream = cast("BinaryIO", _SafeStream() if sys.stdout.isatty() else sys.stdout.buffer)
    async with _resumable(options, Path(output) if output else None):
        result = await rows.export(
            Path(output) if output else stream, format=file_format, resume=resume, manifest=not no_manifest,
            keep_alive=seconds,
        )  # fmt: skip
    say_notes(result.notes)
    if options.json and output:
        write_json(result)


@asynccontextmanager
async def _resumable(options: Options, file: Path | None) -> AsyncIterator[None]:
    """Print the command that continues an interrupted export."""
    import anyio
    import anyio.to_thread

    from dragoman.exports.checkpoints import unfinished

    try:
        yield
    except BaseException as error:
        failure = error if isinstance(error, DragomanError) else None
        if file is None or (failure and failure.code in FINAL):
            raise
        with anyio.CancelScope(shield=True):
            resumable = await anyio.to_thread.run_sync(unfinished, file)
        if resumable:
            if failure:
                failure.advise(shlex.join(options.resuming))
            else:
                say(f"to continue: {command(*options.resuming)}")
        raise


async def export_in_parts(
    options: Options, session: Session, rows: Rows, *, output: str | None, parts: int | None,
    cluster: str | None, workers: int | None, insecure_cluster: bool, max_requests: int | None, manifest: bool,
    file_format: FileFormat, resume: bool, keep_alive: int | None,
) -> None:  # fmt: skip
    """Export in parts, here or on a cluster, and print the manifest with --json."""
    if parts is None:
        raise click.UsageError("this is for an export in parts; say how many: --parts 64")
    if not output:
        raise click.UsageError("an export in parts needs a folder or a URL: -o FOLDER")
    if not manifest:
        raise click.UsageError("an export in parts always has a manifest: omit --no-manifest")
    dask, runner = _distribution(), None
    if cluster is not None:
        home = Path(options.home) if options.home else None
        runner = dask.on_cluster(
            cluster, workers=workers, insecure=insecure_cluster, home=home, max_requests=max_requests
        )
    elif workers is not None or insecure_cluster:
        raise click.UsageError("--workers and --insecure-cluster belong to --cluster")
    async with _unfinished(options, session, output, dask):
        result = await dask.export(
            rows, output, parts=parts, format=file_format, keep_alive=keep_alive, resume=resume,
            at_once=max_requests, runner=runner,
        )  # fmt: skip
    say_notes(result.notes)
    if options.json:
        write_json(result)


def _distribution(*, s3: bool = False) -> Any:
    """Return the package that exports in parts. Raises ConfigurationError if its wheel is not installed."""
    reason = "exports in parts, into stores and on clusters need dragoman-dask, which is not installed"
    return load_distribution(PACKAGE, reason=reason, requirement="dragoman-dask[s3]" if s3 else "dragoman-dask")


@asynccontextmanager
async def _unfinished(options: Options, session: Session, target: str, dask: Any) -> AsyncIterator[None]:
    """Name the command that continues a failed export, and clean up after an interrupted one."""
    import anyio

    from dragoman.exports.target_files import is_url

    folder = None if is_url(target) else anyio.Path(target)
    is_new = folder is not None and not await folder.exists()
    try:
        yield
    except anyio.get_cancelled_exc_class():
        # The driver ended with the command, so another one frees what the server holds.
        with anyio.move_on_after(_CLEANUP_SECONDS, shield=True), suppress(DragomanError):
            if await anyio.to_thread.run_sync(dask.unfinished, target):
                async with options.runtime(asks=False) as runtime, runtime.open(session.name) as another:
                    await dask.abandon(target, another)
            if folder is not None and is_new:
                with suppress(OSError):  # it is not empty
                    await folder.rmdir()
        raise
    except DragomanError as error:
        if error.code not in FINAL and await anyio.to_thread.run_sync(dask.unfinished, target):
            error.advise(shlex.join(options.resuming))
        raise
