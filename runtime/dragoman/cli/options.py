"""The options of a command line: the global ones, its runtime, its output of results, and what many commands share."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import click

from dragoman_api.errors import Refused

from . import output
from .command_files import CommandFile, check_apart, foreign_code, load_automation, note_files
from .streams import aside, attended, reserve_stdout, write_driver_log, write_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dragoman.automations.consent import Question
    from dragoman.folders import Paths
    from dragoman.runtime import Runtime


@dataclass
class Options:
    """The global options of one command line.

    Attributes:
        words: The command line as typed.
        shared: In the shell, the open Session that every line uses.
        early: A driver's process that was started before the command line was read.
        names: Where completion finds names; by default those kept in the state folder.
        shown: The last page shown, and the number of rows requested.
        reserved: Standard output, if it is reserved for events.
        files: The other files that the command line names.
        vertical: A table has a line for each column of a row; None decides by the width of the terminal.
        wide: A table cuts nothing on a terminal, either.
        escape_formulas: CSV and TSV put an apostrophe before texts that a spreadsheet would run as formulas.
    """

    use: tuple[str, ...] = ()
    events: str | None = None
    driver_log: str | None = None
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
        runtime = Runtime(
            home, use=use, confirm=confirm, spare=spare, sandbox=self.sandbox, driver_log=self.driver_listener()
        )
        if self.events:
            runtime.add_sink(self.listener())
        if not self.quiet:
            from .progress import Progress

            runtime.add_sink(self.cleanup.enter_context(closing(Progress())).show)
        self.current = runtime
        return runtime

    @property
    def runs_code_of_others(self) -> bool:
        """Whether a script, an automation or a package beside the host may have run in this process."""
        return self.current is None or bool(foreign_code or self.current.settings.automations)

    @property
    def resuming(self) -> list[str]:
        """The words of this command line with `--resume`."""
        return ["dragoman", *self.words, *(["--resume"] if "--resume" not in self.words else [])]

    def listener(self) -> Callable[[Any], None]:
        """Return the event sink of a command that needs no runtime."""
        if not self.events:
            return lambda _: None
        stdout = (self.reserved or self.reserve()) if self.events == "-" else None
        return write_events(self.events, stdout, self.cleanup)

    def driver_listener(self) -> Callable[[str, str], object] | None:
        """Return what receives the lines that drivers print; None if nobody wants them."""
        return write_driver_log(self.driver_log, self.cleanup) if self.driver_log else None

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

    async def agree(
        self, text: str, *, instead: str, piped: bool = False, subject: str = "change", **fields: Any
    ) -> None:
        """Ask for consent to what a command is about to do.

        Args:
            text: The question.
            instead: The command that does not ask.
            piped: The answer may come from a pipe, too, as all answers of this command.
            subject: What the question is about; see `Question`.
            fields: Further fields of the `Question`.

        Raises:
            Refused: Consent was denied, or there is no terminal.
        """
        from dragoman.automations.consent import Question

        if not (self.yes or piped or attended()):
            raise Refused(f"{text} Cannot ask: not a terminal. Nothing was changed.", hint=instead)
        if not await self._confirm(Question(subject=subject, text=text, **fields), asks=True):
            raise Refused("not confirmed; nothing was changed")

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


def _globals(*, hidden: bool) -> list[click.Option]:
    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value and not (context.resilient_parsing and parameter.name in ("use", "events", "driver_log")):
            assert parameter.name is not None
            before = getattr(context.obj, parameter.name)
            setattr(context.obj, parameter.name, before + value if isinstance(value, tuple) else value)
            if parameter.name == "use":
                note_files(context.obj, [CommandFile(f"--use {file}", Path(file), written=False) for file in value])
            if parameter.name == "events":
                context.obj.reserve() if value == "-" else check_apart(context.obj)
            if parameter.name == "driver_log":
                check_apart(context.obj)

    def option(*names: str, **settings: Any) -> click.Option:
        return click.Option(names, expose_value=False, callback=keep, hidden=hidden, **settings)

    return [
        option("--use", multiple=True, metavar="FILE.py", help="Run the automations of a Python file. Repeatable."),
        option("--events", metavar="FILE|-", help="Append events to a file as JSON lines; - reserves stdout for them."),
        option("--driver-log", metavar="FILE|-", help="Append what drivers print and log to a file; - is stderr."),
        option("--json", is_flag=True, help="Write one JSON document; errors become JSON on stderr."),
        option("--yes", "-y", is_flag=True, help="Answer yes, except about an address, a certificate or a sign-in."),
        option("--quiet", "-q", is_flag=True, help="Print only data, notes and errors."),
        option("--home", metavar="DIR", help="Keep everything below this folder (DRAGOMAN_HOME)."),
        option(
            "--sandbox",
            type=click.Choice(["auto", "require", "off"]),
            is_flag=False,
            flag_value="auto",
            help="How drivers are confined; without a value, auto.",
        ),
    ]


class _FileName(click.types.StringParamType):
    """A text that a shell completes as the path of a file or a folder."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(self, _context: click.Context, _parameter: click.Parameter, incomplete: str) -> Any:
        """Leave it to the shell, which knows its files."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type=self._kind)]


_KINDS = {kind: _FileName(kind) for kind in ("file", "dir")}


def _name_files(parameters: list[click.Parameter]) -> None:
    """Let a shell complete the parameters that name files, which their metavariables say."""
    for parameter in parameters:
        if parameter.type is click.STRING and (match := re.search("FILE|DIR", parameter.metavar or "")):
            parameter.type = _KINDS[match[0].lower()]


def _help_of(callback: Any) -> str | None:
    """Return the docstring of a command's function from its source: `python -OO` leaves it out of the code."""
    if callback is None or sys.flags.optimize < 2:
        return None
    import ast
    import inspect
    import textwrap

    try:
        [function] = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(callback)))).body
    except (OSError, SyntaxError, ValueError):
        return None
    return ast.get_docstring(function) if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) else None


class Command(click.Command):
    """A command that also accepts the global options, at any position."""

    def __init__(self, *args: Any, **attrs: Any) -> None:
        super().__init__(*args, **{**attrs, "help": attrs.get("help") or _help_of(attrs.get("callback"))})
        self.params += _globals(hidden=True)
        _name_files(self.params)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words of the command; an option whose value is being completed must not hide the arguments."""
        if ctx.resilient_parsing and args and args[-1].startswith("-"):
            args = args[:-1]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, whose name a later usage error tells."""
        ctx.obj.command_path = ctx.command_path
        return super().invoke(ctx)


class Group(click.Group):
    """A group of commands that also accept the global options."""

    command_class = Command

    def __init__(self, *args: Any, hide_globals: bool = True, **attrs: Any) -> None:
        super().__init__(*args, **{**attrs, "help": attrs.get("help") or _help_of(attrs.get("callback"))})
        self.params += _globals(hidden=hide_globals)
        _name_files(self.params)


def complete_connection(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the saved connections that begin with what was typed."""
    from dragoman.settings import read_toml

    saved = read_toml((context.obj or Options()).paths().connections)
    names = sorted(name for name, values in saved.items() if isinstance(values, dict) and name.isprintable())
    return [name for name in names if name.startswith(incomplete)]


def completed(kind: str) -> Callable[[click.Context, click.Parameter, str], Any]:
    """Return the completion of `word_completion` that is called `complete_…`; it is imported when it is needed."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> Any:
        from . import word_completion

        return getattr(word_completion, f"complete_{kind}")(context, parameter, incomplete)

    return complete


def parse_time(text: str | None, *, option: str) -> int | None:
    """Return the seconds of a time such as 90s, 30m or 2h."""
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,6})([smhd]?)", text)
    seconds = int(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}[match[2]] if match else 0
    if not seconds:
        raise click.UsageError(f"{option} {text!r} is not a time such as 90s, 30m or 2h")
    return seconds


def take_pairs(args: Iterable[str], *, is_known: Callable[[str], bool]) -> tuple[list[str], dict[str, str | bool]]:
    """Extract the options that the command does not know (`is_known`) from its words.

    Returns:
        The other words, and the values by name with underscores; True for an option without a value.
    """
    rest: list[str] = []
    pairs: dict[str, str | bool] = {}
    words = list(args)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            return [*rest, word, *words], pairs
        if not name.startswith("--") or is_known(name):
            rest.append(word)
        elif equals:
            pairs[name[2:].replace("-", "_")] = value
        else:
            has_value = bool(words) and not words[0].startswith("--")
            pairs[name[2:].replace("-", "_")] = words.pop(0) if has_value else True
    return rest, pairs


PATH_TYPE = click.Path(path_type=Path)
CONNECTION = click.argument("connection", metavar="NAME", shell_complete=complete_connection)
OBJECT = click.argument("object", metavar="OBJECT", shell_complete=completed("object"))
