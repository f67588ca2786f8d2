"""Hand the runtime to a script, unattended."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import stops
from .errors import FAILED
from .options import Command, load_file, parse_time, script_fault

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from .options import Options


@click.command(cls=Command, context_settings={"ignore_unknown_options": True})
@click.option("--timeout", metavar="TIME", help="End it after 90s, 30m, 2h, as by Ctrl-C, with exit code 124.")
@click.argument("file", metavar="FILE.py")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def run(options: Options, timeout: str | None, file: str, args: tuple[str, ...]) -> Coroutine[Any, Any, int | None]:
    """Run a script: its `async def main(runtime)`; an integer it returns is the exit code.

    It runs unattended, also on a terminal: what needs consent is refused, unless --yes gives it beforehand. Options of
    dragoman go before FILE.py or anywhere else; after -- all words are the script's.
    """
    from dragoman_api.errors import ConfigurationError

    seconds = parse_time(timeout, option="--timeout")
    if seconds is not None:
        stops.heed(seconds=seconds)
    sys.argv = [file, *args]
    main = getattr(load_file(file), "main", None)
    if not inspect.iscoroutinefunction(main):
        raise ConfigurationError(f"{file} has no `async def main(runtime)`", hint="async def main(runtime): ...")
    return _run_script(options, Path(file), main)


async def _run_script(options: Options, file: Path, main: Any) -> int | None:
    from dragoman_api.errors import DragomanError

    async with options.runtime(spare=True, asks=False) as runtime:
        try:
            result = await main(runtime)
        except (DragomanError, ExceptionGroup, OSError):
            raise
        except Exception as error:
            raise DragomanError(script_fault(file, error), code="script-failed") from error
    return result if isinstance(result, int) else FAILED if result is False else None
