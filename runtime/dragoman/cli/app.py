"""The command line's group of commands, and the run of one command."""

from __future__ import annotations

import gc
import inspect
import io
import os
import sys
from collections import UserDict
from contextlib import closing, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from .advice import at_home
from .options import Group, Options
from .streams import heed, interruptible

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from dragoman.sandbox.bare_process import Spare

    Work = Coroutine[Any, Any, int | None]

_ROOMS = {
    "apply": "changes:apply",
    "cell": "grid:cell",
    "completion": "doctor:completion",
    "connections": "connections:connections",
    "console": "console:console",
    "copy": "import_rows:copy",
    "count": "grid:count",
    "delete": "changes:delete",
    "describe": "grid:describe",
    "doctor": "doctor:doctor",
    "driver": "driver:driver",
    "drop": "changes:drop",
    "export": "export:export",
    "import": "import_rows:import_",
    "insert": "changes:insert",
    "mcp": "mcp:mcp",
    "objects": "grid:objects",
    "open": "open_prompt:open_",
    "page": "grid:page",
    "plugins": "plugins:plugins",
    "queries": "queries:queries",
    "registry": "registry:registry",
    "run": "run:run",
    "sample": "sample:sample",
    "similar": "grid:similar",
    "summarize": "grid:summarize",
    "uninstall": "uninstall:uninstall",
    "update": "changes:update",
    "workbench": "workbench:workbench",
}


class Narration(io.TextIOWrapper):
    """A stderr that no command fails by: what happened to the data counts, also where nobody can be told."""

    def write(self, text: str) -> int:
        """Write a text, or lose it."""
        try:
            return super().write(text)
        except BrokenPipeError:
            raise
        except OSError:
            return len(text)

    def flush(self) -> None:
        """Write what waits, or lose it."""
        with suppress(OSError):
            super().flush()


DESCRIPTORS = 16_384
"""Open descriptors at most that a command asks for."""
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
    """Run the command line of this process and return its exit code."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # closed by the parent process; what is written to stdout must fail
            handle = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if handle != number:
                os.dup2(handle, number)
            stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a server may say anything
    encoding, binary = sys.stderr.encoding, open(2, "wb", closefd=False)  # noqa: SIM115
    sys.stderr = Narration(binary, encoding=encoding, errors="backslashreplace", line_buffering=True)
    os.umask(_narrowed(os.umask(0o077)))
    _allow_descriptors()
    heed()
    options = Options(early=early)
    if early is not None:
        options.cleanup.enter_context(early)
    code = execute(sys.argv[1:], options, wait=_run)
    if options.runs_code_of_others:
        gc.unfreeze()  # the scans at exit write what a file in a cycle still holds
    else:
        gc.freeze()  # they take 30 ms
    return code


def _allow_descriptors() -> None:
    """Use as many descriptors as the system lets this user have: an open connection takes six of the usual 1,024."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < limit:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _narrowed(umask: int) -> int:
    """Return the umask without rights of others to write: the host distrusts files that they can write."""
    if not umask & 0o020:
        from dragoman.folders import in_private_group

        umask |= 0 if in_private_group() else 0o020
    return umask | 0o002


def execute(words: list[str], options: Options, *, wait: Callable[[Work], int | None]) -> int:
    """Run one command line; every failure is reported and becomes the exit code."""
    options.words = tuple(words)
    with at_home(lambda: options.home, words):
        return _execute(words, options, wait)


def _execute(words: list[str], options: Options, wait: Callable[[Work], int | None]) -> int:
    if COMPLETES in os.environ:
        from . import shell_completion  # noqa: F401 - click finds the shells there
    try:
        _check_text(words)
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
        from .streams import explain

        return report(explain(error), as_json=options.json or "--json" in words, command=options.command_path)
    return code or 0


def _check_text(words: list[str]) -> None:
    """Refuse a word that is not UTF-8, before anything happens: events, results and settings keep names as text.

    What follows `run` is the script's.
    """
    for word in words if "run" not in words else ():
        try:
            word.encode()
        except UnicodeEncodeError:
            from dragoman_api.errors import ConfigurationError

            spelling = ascii(os.fsencode(word))[2:-1][:200]
            hint = "use another name, for example of a symbolic link: ln -s"
            raise ConfigurationError(
                f"{spelling} on the command line is not UTF-8; nothing was done", hint=hint
            ) from None


def _run(work: Work) -> int | None:
    import anyio

    from dragoman_worker.late_imports import late_modules

    with late_modules():
        import anyio._backends._asyncio
    gc.freeze()  # what was imported stays
    gc.enable()
    return anyio.run(interruptible, work)
