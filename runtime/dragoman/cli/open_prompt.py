"""The command `open`: one connection, with a command per line."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from dragoman.near_names import did_you_mean, near_names

from . import app
from .advice import LINES as COMMANDS
from .advice import inside
from .common_arguments import CONNECTION
from .errors import USAGE
from .global_options import Command
from .opening import tell_warnings, warm_runtime
from .output import plain, say
from .signals import asked

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from anyio.from_thread import BlockingPortal

    from dragoman.sessions.session import Session

    from .options import Options

LEAVE = ("quit", "exit")
MOVES = ("next", "prev")


@click.command("open", cls=Command)
@CONNECTION
@click.pass_obj
def open_(options: Options, connection: str) -> int:
    """Open a connection and read commands line by line, without the connection's name.

    On a terminal, the next line follows a failed one; from a pipe, the first failure ends the command.
    """
    # Line editing blocks, so it runs in a thread beside the connection's event loop.
    from anyio.from_thread import start_blocking_portal

    runtime = warm_runtime(options)
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        stack.enter_context(portal.wrap_async_context_manager(runtime))
        session = stack.enter_context(portal.wrap_async_context_manager(runtime.open(connection)))
        tell_warnings(session)
        options.say(f"connected: {session.server.product} {session.server.version} · sandbox {session.sandbox}")
        with inside(session.name):
            return _Shell(options, session, portal).run()


class _Shell:
    def __init__(self, options: Options, session: Session, portal: BlockingPortal) -> None:
        self._options, self._session, self._portal = options, session, portal
        self._attended = sys.stdin.isatty()
        self._paging: list[str] = []  # the words of the last page, without its position
        self._shown: Any = None

    def run(self) -> int:
        """Run the lines and return the exit code of the last one."""
        code = 0
        for number, line in enumerate(self._lines(), 1):
            words = self._words(line)
            if not words or words[0].startswith("#"):
                continue
            if words[0] in LEAVE:
                break
            code = self._one(words, line)
            if code and not self._attended:
                sys.stderr.write(f"  stopped at line {number}\n")
                break
        return 0 if self._attended else code

    def _lines(self) -> Iterator[str]:
        if not (self._attended and sys.stdout.isatty()):
            yield from sys.stdin
            return
        with suppress(ImportError):
            import readline  # noqa: F401 - gives input() its line editing and history
        while True:
            try:
                yield input(f"{plain(self._session.name)}> ")
            except EOFError:
                sys.stdout.write("\n")
                return
            except KeyboardInterrupt:  # as in other shells: forget the line
                if asked:
                    raise
                sys.stdout.write("\n")

    def _words(self, line: str) -> list[str]:
        line = line.strip()
        if line.startswith("console ") and (text := line.removeprefix("console ").strip())[:1] not in ("'", '"', "-"):
            return ["console", text]  # a request contains quotes
        try:
            return shlex.split(line)
        except ValueError:
            return [line]

    def _one(self, words: list[str], line: str) -> int:
        if words[0] == "help":
            return self._help(words[1:])
        if words[0] in MOVES:
            return self._move(back=words[0] == "prev")
        if words[0] not in COMMANDS:
            meant = did_you_mean(near_names(words[0], COMMANDS, most=1))
            # GET: the server's own language
            instead = f"console {line.strip()}" if words[0].isupper() else "help"
            say(f"unknown command {words[0]!r}{meant}")
            say(f"try: {instead}")
            return USAGE
        code = self._execute(words)
        if words[0] == "page" and not code:
            at = words.index("--cursor") if "--cursor" in words else len(words)
            self._paging = [word for word in words[:at] + words[at + 2 :] if word != "--last"]
        return code

    def _execute(self, words: list[str]) -> int:
        # An option of a line, such as --json, ends with it.
        options = replace(self._options, shared=self._session, cleanup=ExitStack())
        code = app.execute([words[0], self._session.name, *words[1:]], options, wait=self._wait)
        self._shown = options.shown or self._shown
        return code

    def _move(self, *, back: bool) -> int:
        """Show the page before or after the last one shown."""
        if not self._paging:
            say("No page yet. To show one: page OBJECT")
            return USAGE
        page, limit = self._shown
        if back:
            at, limit = max(0, page.offset - limit), min(limit, page.offset)
        else:
            at = page.offset + len(page.cells)
        if not limit or not (back or page.cells) or at == page.total:
            say(f"no rows {'before' if back else 'after'} these")
            return 0
        more = ["--cursor", page.next] if page.next and not back else []
        if page.revision and "revisions" in self._session.capabilities:  # all pages show the same state
            more += ["--revision", page.revision]
        from .read_options import range_words

        more += range_words(page.time)  # the later of two equal options counts, and a relative one has moved on
        return self._execute([*self._paging, "--offset", str(at), "--limit", str(limit), *more])

    def _wait(self, coroutine: Coroutine[Any, Any, int | None]) -> int | None:
        async def main() -> int | None:
            return await coroutine

        future = self._portal.start_task_soon(main)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _help(self, words: list[str]) -> int:
        if words and words[0] in COMMANDS:
            app.execute([words[0], "--help"], replace(self._options, cleanup=ExitStack()), wait=self._wait)
            sys.stdout.write(f"\nOmit NAME here: {words[0]} …\n")
            return 0
        commands: Callable[[str], click.Command] = app.cli.commands.__getitem__
        for name in COMMANDS:
            sys.stdout.write(f"{name:<10}{commands(name).get_short_help_str(limit=90)}\n")
        sys.stdout.write(f"{'next prev':<10}The page after or before the last one.\n")
        sys.stdout.write(f"{'help':<10}This list; help COMMAND explains one.\n{'quit':<10}Close the connection.\n")
        return 0
