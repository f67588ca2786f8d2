"""Commands that take data away, or hand the runtime to a script: export, run."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import click

from .errors import FAILED
from .grid import filtered, near_names
from .options import CONNECTION, OBJECT, Command, load_file, opens, script_fault
from .output import plain_lines, write_json

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from dragoman.session import Session

    from .options import Options


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
@click.option("--format", type=click.Choice(["ndjson", "csv"]), help="By the file's name when left out, else ndjson.")
@opens
async def export(
    options: Options, session: Session, *, object: str, filters: tuple[str, ...], raw: tuple[str, ...], match: str,
    output: str | None, format: str | None,
) -> None:  # fmt: skip
    """Export an object, or what a filter leaves of it, however large."""
    from .filters import parse_rows

    rows = parse_rows(filters, raw)
    stream = cast("BinaryIO", _SafeStream() if sys.stdout.isatty() else sys.stdout.buffer)
    to = Path(output) if output else stream
    by_name = "csv" if output and output.endswith(".csv") else "ndjson"
    async with near_names(session, object):
        result = await session.export(object, to=to, format=format or by_name, filters=rows, match=match)
    if options.json and output:
        write_json(result)


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
