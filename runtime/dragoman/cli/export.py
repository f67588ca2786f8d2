"""Commands that take data away, or hand the runtime to a script: export, run."""

from __future__ import annotations

import inspect
import re
import shlex
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import click

from .errors import FAILED
from .grid import COLUMNS, TENANT, filtered, near_names, parse_names
from .options import CONNECTION, OBJECT, Command, load_file, opens, script_fault
from .output import plain_lines, say, say_notes, write_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from typing import Any

    from dragoman.session import Session

    from .options import Options


FINAL = ("resume-refused", "export-running", "export-not-resumable", "context-lost", "limit-exceeded")
"""Codes of errors after which resuming would meet the same again."""


class _SafeStream:
    """Standard output on a terminal, taking bytes: what a server stored must not drive the terminal."""

    name = "<stdout>"

    def write(self, data: bytes | memoryview) -> int:
        """Write bytes as visible text."""
        sys.stdout.write(plain_lines(bytes(data).decode(errors="backslashreplace")))
        return len(data)

    def flush(self) -> None:
        """Hand everything over to the terminal."""
        sys.stdout.flush()


@click.command(cls=Command)
@CONNECTION
@OBJECT
@filtered
@click.option("-o", "--output", metavar="FILE", help="Appears only when it is complete; stdout when left out.")
@click.option("--format", type=click.Choice(["documents", "ndjson", "rows", "csv", "bulk", "parquet"]),
              help="By the file's name when left out, else documents.")  # fmt: skip
@click.option("--compress", type=click.Choice(["gzip", "zstd"]), help="By the file's name when left out.")
@COLUMNS
@TENANT
@click.option("--resume", is_flag=True, help="Go on where an interrupted export of the same rows to FILE ended.")
@click.option("--keep-alive", metavar="TIME", help="How long it can be resumed: 90s, 30m, 2h.")
@click.option("--no-manifest", is_flag=True, help="Write no FILE.manifest.json.")
@opens
async def export(
    options: Options, session: Session, *, object: str, filters: tuple[str, ...], raw: tuple[str, ...], match: str,
    output: str | None, format: str | None, compress: str | None, columns: str | None, tenant: str | None,
    resume: bool, keep_alive: str | None, no_manifest: bool,
) -> None:  # fmt: skip
    """Export an object, or what a filter leaves of it, however large."""
    from .filters import parse_rows

    rows = parse_rows(filters, raw)
    stream = cast("BinaryIO", _SafeStream() if sys.stdout.isatty() else sys.stdout.buffer)
    async with near_names(session, object), _resumable(options, Path(output) if output else None):
        result = await session.export(
            object, to=Path(output) if output else stream, format=format, compress=compress, filters=rows,
            match=match, columns=parse_names(columns), tenant=tenant, keep_alive=_seconds(keep_alive),
            resume=resume, manifest=not no_manifest,
        )  # fmt: skip
    say_notes(result.notes)
    if options.json and output:
        write_json(result)


@asynccontextmanager
async def _resumable(options: Options, file: Path | None) -> AsyncIterator[None]:
    """Tell how an export that was interrupted goes on, with the words it was typed with."""
    import anyio
    import anyio.to_thread

    from dragoman.exports import unfinished
    from dragoman_api.errors import DragomanError

    try:
        yield
    except BaseException as error:
        known = error if isinstance(error, DragomanError) else None
        if file is None or (known and known.code in FINAL):
            raise
        with anyio.CancelScope(shield=True):
            resumable = await anyio.to_thread.run_sync(unfinished, file)
        if resumable:
            words = ["dragoman", *options.words, *(["--resume"] if "--resume" not in options.words else [])]
            if known:
                known.hint = shlex.join(words)
            else:
                say(f"to go on: {shlex.join(words)}")
        raise


def _seconds(text: str | None) -> int | None:
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,6})([smhd]?)", text)
    seconds = int(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}[found[2]] if found else 0
    if not seconds:
        raise click.UsageError(f"--keep-alive {text!r} is no time: 90s, 30m, 2h")
    return seconds


@click.command(cls=Command, context_settings={"ignore_unknown_options": True})
@click.argument("file", metavar="FILE.py")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def run(options: Options, file: str, args: tuple[str, ...]) -> Coroutine[Any, Any, int | None]:
    """Run a script: its `async def main(runtime)`; an integer it returns is the exit code."""
    from dragoman_api.errors import ConfigurationError

    sys.argv = [file, *args]
    main = getattr(load_file(file), "main", None)
    if not inspect.iscoroutinefunction(main):
        raise ConfigurationError(f"{file} has no `async def main(runtime)`", hint="async def main(runtime): ...")
    return _run_script(options, Path(file), main)


async def _run_script(options: Options, file: Path, main: Any) -> int | None:
    from dragoman_api.errors import DragomanError

    async with options.runtime(spare=True) as runtime:
        try:
            result = await main(runtime)
        except (DragomanError, ExceptionGroup, OSError):
            raise
        except Exception as error:
            raise DragomanError(script_fault(file, error), code="script-failed") from error
    return result if isinstance(result, int) else FAILED if result is False else None
