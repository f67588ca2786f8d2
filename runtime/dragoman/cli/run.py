"""The command that runs a script, unattended."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman_api.errors import ConfigurationError, DragomanError

from . import streams
from .command_files import command_file, load_file, script_fault
from .errors import FAILED, OK
from .options import Command, parse_time

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from .options import Options


@click.command(cls=Command, context_settings={"ignore_unknown_options": True})
@click.option(
    "--timeout", metavar="TIME", help="Interrupt the script after a time such as 90s, 30m or 2h, with exit code 124."
)
@click.argument("file", metavar="FILE.py", callback=command_file())
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def run(options: Options, timeout: str | None, file: str, args: tuple[str, ...]) -> Coroutine[Any, Any, int | None]:
    """Run a script's `async def main(runtime)`; if it returns an integer, that is the exit code.

    It runs unattended, even on a terminal: actions that need consent are refused, unless --yes gives it beforehand.
    Options of dragoman can be anywhere before --; all words after -- are the script's.
    """
    seconds = parse_time(timeout, option="--timeout")
    if seconds is not None:
        streams.heed(seconds=seconds)
    sys.argv = [file, *args]
    main = getattr(load_file(file), "main", None)
    if not inspect.iscoroutinefunction(main):
        raise ConfigurationError(f"{file} has no `async def main(runtime)`", hint="async def main(runtime): ...")
    return _run_script(options, Path(file), main)


async def _run_script(options: Options, file: Path, main: Any) -> int | None:
    async with options.runtime(spare=True, asks=False) as runtime:
        try:
            result = await main(runtime)
        except (DragomanError, ExceptionGroup, OSError):
            raise
        except Exception as error:
            raise DragomanError(script_fault(file, error), code="script-failed") from error
    if isinstance(result, bool):
        return OK if result else FAILED
    return result if isinstance(result, int) else None
