"""Exports in parts: what `export --parts` does, by a wheel of its own."""

from __future__ import annotations

import shlex
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .output import say_notes, write_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from dragoman.exports import FileFormat
    from dragoman.sessions.rows import Rows
    from dragoman.sessions.session import Session

    from .options import Options

PACKAGE = "dragoman_dask"
"""A wheel of its own, which only exports in parts need and nothing else imports."""

_FINAL = (
    "export-running", "limit-exceeded", "parts-differ", "context-lost", "resume-refused", "snapshot-lost",
    "target-occupied",
)  # fmt: skip
"""Codes of errors that resuming would meet again."""

_CLEANUP_SECONDS = 8  # less than the time after which a command is interrupted again


def in_parts(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of exports in parts."""
    for option in (
        click.option("--insecure-cluster", is_flag=True, help="Accept the address of a cluster without encryption."),
        click.option("--workers", type=click.IntRange(1, 1024), help="Processes of a local cluster."),
        click.option("--cluster", metavar="ADDRESS|local", help="Let a Dask cluster export the parts."),
        click.option("--max-requests", type=click.IntRange(1, 1024), metavar="N",
                     help="At most so many parts at a time, each with one request under way."),
        click.option("--parts", type=click.IntRange(1, 1024), metavar="N",
                     help="Export so many parts, each a file below FILE: a folder, or s3://BUCKET/FOLDER."),
    ):  # fmt: skip
        command = option(command)
    return command


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


def _distribution() -> Any:
    """Return the package that exports in parts. Raises ConfigurationError if its wheel is not installed."""
    from .command_files import load_distribution

    reason = "exports in parts, into stores and on clusters need dragoman-dask, which is not installed"
    return load_distribution(PACKAGE, reason=reason, install="pip install dragoman-dask")


@asynccontextmanager
async def _unfinished(options: Options, session: Session, target: str, dask: Any) -> AsyncIterator[None]:
    """Name the command that continues a failed export, and clean up after an interrupted one."""
    import anyio

    from dragoman.exports import is_url
    from dragoman_api.errors import DragomanError

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
        if error.code not in _FINAL and await anyio.to_thread.run_sync(dask.unfinished, target):
            words = ["dragoman", *options.words, *(["--resume"] if "--resume" not in options.words else [])]
            error.advise(shlex.join(words))
        raise
