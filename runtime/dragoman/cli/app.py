"""The command line's group of commands, and how one of them is run."""

from __future__ import annotations

import inspect
import os
import sys
from collections import UserDict
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from .options import Group, Options
from .stops import heed, interruptible

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Work = Coroutine[Any, Any, int | None]

_ROOMS = {
    "apply": "apply:apply",
    "cell": "grid:cell",
    "completion": "doctor:completion",
    "connections": "connections:connections",
    "console": "console:console",
    "count": "grid:count",
    "delete": "changes:delete",
    "describe": "grid:describe",
    "doctor": "doctor:doctor",
    "driver": "driver:driver",
    "drop": "changes:drop",
    "export": "export:export",
    "insert": "changes:insert",
    "objects": "grid:objects",
    "open": "shell:open_",
    "page": "grid:page",
    "plugins": "plugins:plugins",
    "registry": "registry:registry",
    "run": "run:run",
    "update": "changes:update",
}


class _Rooms(UserDict[str, Any]):
    """Commands by name, each imported when it is looked up: one start pays for one command."""

    def __getitem__(self, name: str) -> click.Command:
        room, _, command = self.data[name].partition(":")
        return getattr(import_module(f"dragoman.cli.{room}"), command)  # type: ignore[no-any-return]


@click.group(
    cls=Group,
    hide_globals=False,
    commands=_Rooms(_ROOMS),
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 ok, 1 refused or failed, 2 usage or configuration, 3 connection, 4 some rows not applied, "
    "124 out of time (run --timeout), 130 interrupted, 143 terminated.",
)
@click.version_option(package_name="dragoman", message="dragoman %(version)s")
def cli() -> None:
    """One grid and one console for databases without SQL; drivers install themselves and run in a sandbox."""


def run() -> int:
    """Run the command line of this process and give its exit code."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by who started this process
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - it is a stream
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a server may say anything
    heed()
    return execute(sys.argv[1:], Options(), wait=_run)


def execute(words: list[str], options: Options, *, wait: Callable[[Work], int | None]) -> int:
    """Run one command line to its end: whatever goes wrong is reported, and becomes the exit code.

    Args:
        words: Without the program's name.
        options: What holds before the words are read.
        wait: Runs the coroutine of a command that has one.
    """
    options.words = tuple(words)
    try:
        with options.cleanup:
            result = cli.main(words, prog_name="dragoman", standalone_mode=False, obj=options)
            code = wait(result) if inspect.iscoroutine(result) else result
        sys.stdout.flush()
    except SystemExit:  # completion, and scripts that end themselves
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, a person reads one message
        from .errors import report
        from .stops import explain

        return report(explain(error), as_json=options.json or "--json" in words)
    return code or 0


def _run(work: Work) -> int | None:
    import anyio

    return anyio.run(interruptible, work)
