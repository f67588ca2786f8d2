"""The command `export`."""

from __future__ import annotations

import shlex
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import click

from .advice import command
from .command_files import command_file
from .export_parts import export_in_parts, in_parts
from .global_options import CONNECTION, OBJECT, Command
from .opening import opens
from .option_values import parse_time
from .output import plain_lines, say, say_notes, write_json
from .queries import queried
from .read_options import ESCAPE, FILTER, LISTS, TIME, RowChoice, choosing, parse_lists

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dragoman.sessions.session import Session

    from .options import Options


FINAL = ("resume-refused", "export-running", "export-not-resumable", "context-lost", "limit-exceeded")
"""Codes of errors that resuming would meet again."""


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
    from dragoman.exports import files_beside

    return files_beside(file)


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
    """Export an object of any size, or its rows that match a filter."""
    from dragoman.exports import FileFormat, is_url

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

    from dragoman.exports import unfinished
    from dragoman_api.errors import DragomanError

    try:
        yield
    except BaseException as error:
        failure = error if isinstance(error, DragomanError) else None
        if file is None or (failure and failure.code in FINAL):
            raise
        with anyio.CancelScope(shield=True):
            resumable = await anyio.to_thread.run_sync(unfinished, file)
        if resumable:
            words = ["dragoman", *options.words, *(["--resume"] if "--resume" not in options.words else [])]
            if failure:
                failure.advise(shlex.join(words))
            else:
                say(f"to continue: {command(*words)}")
        raise
