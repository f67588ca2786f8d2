"""The command line's group of commands, and the run of one command."""

from __future__ import annotations

import inspect
import os
import sys
from collections import UserDict
from contextlib import closing
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from .advice import at_home
from .global_options import Group
from .options import Options
from .signals import heed, interruptible

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from dragoman.sandbox.spare import Spare

    Work = Coroutine[Any, Any, int | None]

_ROOMS = {
    "apply": "apply:apply",
    "cell": "grid:cell",
    "completion": "doctor:completion",
    "connections": "connections:connections",
    "console": "console:console",
    "copy": "copy_rows:copy",
    "count": "grid:count",
    "delete": "changes:delete",
    "describe": "objects:describe",
    "doctor": "doctor:doctor",
    "driver": "driver:driver",
    "drop": "changes:drop",
    "export": "export:export",
    "import": "import_rows:import_",
    "insert": "changes:insert",
    "objects": "objects:objects",
    "open": "open_prompt:open_",
    "page": "grid:page",
    "plugins": "plugins:plugins",
    "queries": "queries:queries",
    "registry": "registry:registry",
    "run": "run:run",
    "summarize": "summarize:summarize",
    "update": "changes:update",
    "workbench": "workbench:workbench",
}


COMPLETES = "_DRAGOMAN_COMPLETE"
"""The variable by which the script of a shell asks for suggestions instead of running a command."""


class _Rooms(UserDict[str, Any]):
    """Commands by name, imported on lookup, so that a start pays for one command only."""

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


def run(early: Spare | None = None) -> int:
    """Run the command line of this process and return its exit code.

    Args:
        early: A driver's process that was started for it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - it is a stream
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a server may say anything
    os.umask(_narrowed(os.umask(0o077)))
    heed()
    options = Options(early=early)
    if early is not None:
        options.cleanup.enter_context(early)
    return execute(sys.argv[1:], options, wait=_run)


def _narrowed(umask: int) -> int:
    """Return the umask without rights of others to write: the host distrusts files that they can write."""
    if not umask & 0o020:
        from dragoman.file_ownership import in_private_group

        umask |= 0 if in_private_group() else 0o020
    return umask | 0o002


def execute(words: list[str], options: Options, *, wait: Callable[[Work], int | None]) -> int:
    """Run one command line; every failure is reported and becomes the exit code.

    Args:
        words: The arguments, without the program's name.
        options: The options that hold before the words are read.
        wait: Runs the coroutine of an asynchronous command.
    """
    options.words = tuple(words)
    with at_home(lambda: options.home, words):
        return _execute(words, options, wait)


def _execute(words: list[str], options: Options, wait: Callable[[Work], int | None]) -> int:
    if COMPLETES in os.environ:
        from . import shell_completion  # noqa: F401 - click finds the shells there
    try:
        with options.cleanup:
            result = cli.main(words, prog_name="dragoman", standalone_mode=False, obj=options)
            if inspect.iscoroutine(result):
                with closing(result):  # Ctrl-C may come before it is awaited
                    code = wait(result)
            else:
                code = result
        sys.stdout.flush()
    except SystemExit:  # completion, and scripts that end themselves
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, a person reads one message
        from .errors import report
        from .signals import explain

        return report(explain(error), as_json=options.json or "--json" in words, command=options.command_path)
    return code or 0


def _run(work: Work) -> int | None:
    import anyio

    return anyio.run(interruptible, work)
