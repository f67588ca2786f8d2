"""The global options of a command line: its runtime, and its output of results."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from . import output
from .command_files import CommandFile, load_automation
from .streams import aside, attended, reserve_stdout, write_events

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.automations.consent import Question
    from dragoman.folders import Paths
    from dragoman.runtime import Runtime


@dataclass
class Options:
    """The global options of one command line.

    Attributes:
        words: The command line as typed.
        shared: In the shell, the open Session that every line uses.
        current: The Runtime of this command.
        early: A driver's process that was started before the command line was read.
        names: Where completion finds names; by default those kept in the state folder.
        shown: The last page shown, and the number of rows requested.
        reserved: Standard output, if it is reserved for events.
        files: The other files that the command line names.
        vertical: A table has a line for each column of a row; None decides by the width of the terminal.
        wide: A table cuts nothing on a terminal, either.
        escape_formulas: CSV and TSV put an apostrophe before texts that a spreadsheet would run as formulas.
        cleanup: Closed at the end of the command.
    """

    use: tuple[str, ...] = ()
    events: str | None = None
    json: bool = False
    yes: bool = False
    quiet: bool = False
    home: str | None = None
    sandbox: Literal["auto", "require", "off"] | None = None
    words: tuple[str, ...] = ()
    command_path: str = "dragoman"
    shared: Any = None
    current: Any = None
    early: Any = None
    names: Any = None
    shown: Any = None
    reserved: BinaryIO | None = None
    files: tuple[CommandFile, ...] = ()
    vertical: bool | None = None
    wide: bool = False
    escape_formulas: bool = False
    cleanup: ExitStack = field(default_factory=ExitStack)

    def runtime(self, *, spare: bool = False, asks: bool = True) -> Runtime:
        """Make the runtime of this command, with its event sinks; without `asks`, it refuses instead of asking."""
        from dragoman.runtime import Runtime

        home = Path(self.home) if self.home else None
        use = [load_automation(path) for path in self.use]
        self._restoring_stdout()
        sys.stdout = aside(sys.stdout)
        confirm = partial(self._confirm, asks=asks) if self.yes or (asks and attended()) else None
        runtime = Runtime(home=home, use=use, confirm=confirm, spare=spare, sandbox=self.sandbox)
        if self.events:
            runtime.add_sink(self.listener())
        if not self.quiet:
            from .progress import Progress

            runtime.add_sink(self.cleanup.enter_context(closing(Progress())).show)
        self.current = runtime
        return runtime

    def listener(self) -> Callable[[Any], None]:
        """Return the event sink of a command that needs no runtime."""
        if not self.events:
            return lambda _: None
        stdout = (self.reserved or self.reserve()) if self.events == "-" else None
        return write_events(self.events, stdout, self.cleanup)

    def reserve(self) -> BinaryIO:
        """Reserve stdout for events until the command ends."""
        self._restoring_stdout()
        self.reserved = reserve_stdout()
        return self.reserved

    def _restoring_stdout(self) -> None:
        self.cleanup.callback(setattr, sys, "stdout", sys.stdout)

    async def _confirm(self, question: Question, *, asks: bool) -> bool:
        from .prompts import consents

        return await consents(question, yes=self.yes, asks=asks)

    def paths(self) -> Paths:
        """Return the paths on disk, for commands that need no runtime."""
        from dragoman.folders import find_paths

        return find_paths(Path(self.home) if self.home else None)

    async def agree(self, question: str, *, instead: str) -> None:
        """Ask for consent to something irreversible.

        Raises:
            Refused: Consent was denied, or there is no terminal; `instead` is the command that does not ask.
        """
        from .prompts import expect_yes

        await expect_yes(question, yes=self.yes, instead=instead)

    def result(self, document: object, line: str) -> None:
        """Write the result of a command: a line, or with ``--json`` a document."""
        output.write_json(document) if self.json else sys.stdout.write(output.plain(line.rstrip()) + "\n")

    def listing(self, document: object, head: list[str], rows: list[list[str]], *, nothing: str = "") -> None:
        """Write a table, or with ``--json`` a document; without rows, show `nothing`."""
        if self.json:
            output.write_json(document)
        elif rows:
            output.write_table(head, [[*map(output.plain, row)] for row in rows], wrap=True)
        elif nothing:
            self.say(nothing)

    def say(self, text: str) -> None:
        """Show a person a message besides the data, unless ``--quiet`` is set."""
        if not self.quiet:
            output.say(text)

    def hint(self, text: str) -> None:
        """Show a hint, unless ``--quiet`` is set."""
        if not self.quiet:
            output.say_hint(text)

    def format_or(self, format: str) -> str:
        """Return the output format: ``--json`` wins."""
        return "json" if self.json else format
