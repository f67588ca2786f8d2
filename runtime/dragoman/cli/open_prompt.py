"""The command `open`: one connection, with a command per line."""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from dragoman.spellings import did_you_mean, near_names

from . import app
from .advice import ELSEWHERE, inside
from .advice import LINES as COMMANDS
from .errors import USAGE
from .opening import tell_warnings, warm_runtime
from .options import CONNECTION, Command
from .output import plain, say
from .streams import GRACE, ignoring_interrupts, received_signals
from .word_completion import is_console, split_words

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from anyio.from_thread import BlockingPortal

    from dragoman.runtime import Runtime
    from dragoman.sessions.session import Session

    from .line_completion import LineOffer
    from .options import Options

HISTORY = "open-history.jsonl"
"""The lines of earlier sessions, in the state folder."""

LEAVE = ("quit", "exit")
MOVES = ("next", "prev")
OWN = {
    "\\x": "Rows with a line for each column: on, off, or auto, by the width of the terminal.",
    "\\pager": "Long output in a pager: on or off.",
    "next": "The page after the last one.",
    "prev": "The page before the last one.",
    "help": "The commands; help COMMAND explains one.",
    "quit": "Close the connection.",
    "exit": "Close the connection.",
}
"""The commands that only the shell has."""

READS = ("objects", "describe", "page", "count", "summarize", "similar", "cell", "console")
"""The commands whose output may be long."""

SWITCHES = {"\\x": ("on", "off", "auto"), "\\pager": ("on", "off")}
"""How output is shown, with the states of each; the last one follows `on`."""

ABSENT = {
    "open": "one shell holds one connection: leave it with quit, or open the other one in another terminal",
    "mcp": "it serves an agent on standard input and output: let the agent's program start it",
    "workbench": "it serves until Ctrl-C: start it in another terminal",
}
"""The commands that a line cannot be, and why."""


@click.command("open", cls=Command)
@CONNECTION
@click.option("--no-pager", is_flag=True, help="Show long output without a pager (PAGER, by default less).")
@click.pass_obj
def open_(options: Options, connection: str, *, no_pager: bool) -> int:
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
            return _Shell(options, session, portal, runtime, pages=not no_pager).run()


class _HeldOutput(io.StringIO):
    """Holds back what a command writes to one of the terminal's streams."""

    encoding = property(lambda _: sys.__stdout__ and sys.__stdout__.encoding)

    def __init__(self, release: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._release = release

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        """Let a question, which ends without a line break, be seen; it has to be answered."""
        if (text := self.getvalue()) and not text.endswith("\n"):
            self._release()

    def take(self) -> str:
        """Return what is held back, and hold it back no longer."""
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text


class _Shell:
    def __init__(
        self, options: Options, session: Session, portal: BlockingPortal, runtime: Runtime, *, pages: bool
    ) -> None:
        self._options, self._session, self._portal, self._runtime = options, session, portal, runtime
        self._attended = sys.stdin.isatty()
        self._pages = pages and self._attended and sys.stdout.isatty()
        self._vertical: bool | None = None
        self._paging: list[str] = []  # the words of the last page, without its position
        self._shown: Any = None

    def run(self) -> int:
        """Run the lines and return the exit code of the last one."""
        code = 0
        for number, line in enumerate(self._lines(), 1):
            words = split_words(line)
            if not words or words[0].startswith("#"):
                continue
            if words[0] in LEAVE:
                break
            try:
                code = self._one(words, line)
            except KeyboardInterrupt:  # between the calls of a command; it ends the line, not the shell
                if received_signals or not self._attended:
                    raise
                sys.stdout.write("\n")
            if code and not self._attended:
                sys.stderr.write(f"  stopped at line {number}\n")
                break
        return 0 if self._attended else code

    def _lines(self) -> Iterator[str]:
        if not (self._attended and sys.stdout.isatty()):
            yield from sys.stdin
            return
        read = self._reader()
        while True:
            try:
                text = read()
            except EOFError:
                sys.stdout.write("\n")
                return
            except KeyboardInterrupt:  # as in other shells: forget the line
                if received_signals:
                    raise
                sys.stdout.write("\n")
            else:
                yield from [text] if is_console(text) else text.splitlines()

    def _reader(self) -> Callable[[], str]:
        """Return what reads a line from the terminal."""
        if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
            with suppress(ImportError):
                import readline  # noqa: F401 - gives input() its line editing and history
            return lambda: input(f"{plain(self._session.name)}> ")
        from .line_prompt import LineHistory, LinePrompt

        history = LineHistory(self._runtime.paths.state / HISTORY, mask=self._runtime.masked)
        return LinePrompt(self._session.name, history=history, offers=self._offers()).read

    def _offers(self) -> Callable[[str, int], Iterator[LineOffer]]:
        from .known_names import KnownNames
        from .line_completion import LiveNames, offers

        names = LiveNames(self._session, self._portal, kept=KnownNames(self._runtime.paths))
        options = replace(self._options, names=names)
        context: dict[str, Any] = {"names": names, "connection": self._session.name, "own": OWN, "local": COMMANDS}
        return lambda line, at: offers(line, at, options=replace(options), **context)

    def _one(self, words: list[str], line: str) -> int:
        if words[0] == "help":
            return self._help(words[1:])
        if words[0] in MOVES:
            with self._paged(words):
                return self._move(back=words[0] == "prev")
        if words[0] in SWITCHES:
            return self._switch(*words)
        if words[0] in ABSENT:
            say(f"{words[0]}: {ABSENT[words[0]]}")
            return USAGE
        if words[0] in ELSEWHERE:
            options = replace(self._options, current=None, cleanup=ExitStack())
            return app.execute(words, options, wait=self._wait)
        if words[0] not in COMMANDS:
            return self._unknown(words[0], line)
        with self._paged(words):
            code = self._execute(words)
        if words[0] == "page" and not code:
            at = words.index("--cursor") if "--cursor" in words else len(words)
            self._paging = [word for word in words[:at] + words[at + 2 :] if word != "--last"]
        return code

    @contextmanager
    def _paged(self, words: list[str]) -> Iterator[None]:
        """Show the output of a line that reads with the user's pager if it is longer than the screen."""
        reads = words[0] in (*READS, *MOVES) and not any(word.startswith("--events") for word in words)
        if not (self._pages and reads):
            yield
            return
        streams = sys.stdout, sys.stderr

        def release() -> None:
            for stream, buffer in zip(streams, (output, messages), strict=True):
                stream.write(buffer.take())
                stream.flush()

        output, messages = _HeldOutput(), _HeldOutput(release)
        try:
            with redirect_stdout(output), redirect_stderr(messages):
                yield
            text, size = output.getvalue(), shutil.get_terminal_size()
            lines = sum(1 + len(click.unstyle(line)) // size.columns for line in text.splitlines())
            if lines >= size.lines:
                with suppress(OSError, ValueError), ignoring_interrupts():  # no such program, or no words for a shell
                    click.echo_via_pager(text.rstrip("\n"))
                    output.take()
        finally:
            release()

    def _switch(self, name: str, value: str = "", *_rest: str) -> int:
        """Set how output is shown; without a value, change it."""
        states = SWITCHES[name]
        if not value:
            before = self._vertical if name == "\\x" else self._pages
            value = "on" if not before else states[-1]
        if value not in states:
            say(f"{name} takes {' or '.join(states)}, not {value!r}")
            return USAGE
        if name == "\\x":
            self._vertical = {"on": True, "off": False, "auto": None}[value]
        else:
            self._pages = value == "on" and sys.stdout.isatty()
        self._options.say(f"{name} is {value}")
        return 0

    def _unknown(self, word: str, line: str) -> int:
        suggestion = did_you_mean(near_names(word, (*COMMANDS, *ELSEWHERE, *OWN), most=1))
        # GET: the server's own language
        instead = f"console {line.strip()}" if word.isupper() else "help"
        say(f"unknown command {word!r}{suggestion}")
        say(f"try: {instead}")
        return USAGE

    def _execute(self, words: list[str]) -> int:
        # An option of a line, such as --json, ends with it.
        options = replace(self._options, shared=self._session, vertical=self._vertical, cleanup=ExitStack())
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
        arguments = ["--cursor", page.next] if page.next and not back else []
        if page.revision and "revisions" in self._session.capabilities:  # all pages show the same state
            arguments += ["--revision", page.revision]
        from .read_options import time_words

        arguments += time_words(page)  # the later of two equal options counts, and a relative one has moved on
        return self._execute([*self._paging, "--offset", str(at), "--limit", str(limit), *arguments])

    def _wait(self, coroutine: Coroutine[Any, Any, int | None]) -> int | None:
        began, ended = threading.Event(), threading.Event()

        async def main() -> int | None:
            began.set()
            try:
                return await coroutine
            finally:
                ended.set()

        future = self._portal.start_task_soon(main)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            if began.is_set():  # it must have left the event loop before it is closed here
                ended.wait(GRACE)
            raise

    def _help(self, words: list[str]) -> int:
        if words and words[0] in (*COMMANDS, *ELSEWHERE):
            app.execute([words[0], "--help"], replace(self._options, cleanup=ExitStack()), wait=self._wait)
            if words[0] in COMMANDS:
                sys.stdout.write(f"\nOmit NAME here: {words[0]} …\n")
            return 0
        commands: Callable[[str], click.Command] = app.cli.commands.__getitem__
        widest = max(map(len, (*COMMANDS, *ELSEWHERE, *OWN))) + 2
        room = max(shutil.get_terminal_size().columns - widest, 40)
        help_texts = {name: commands(name).get_short_help_str(limit=room) for name in (*COMMANDS, *ELSEWHERE)}
        for name, help_text in (help_texts | OWN).items():
            sys.stdout.write(f"{name:<{widest}}{help_text}\n")
        return 0
