"""What every command shares: the global options, the runtime they make, and how a command opens its connection."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack, closing, redirect_stdout
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import click

from . import output
from .streams import aside, reserve_stdout

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from types import ModuleType

    from dragoman.runtime import Runtime
    from dragoman.session import Session
    from dragoman.settings import Paths
    from dragoman_api.errors import ConfigurationError

    Work = Callable[..., Coroutine[Any, Any, int | None]]


@dataclass
class Options:
    """The global options of one command line.

    Attributes:
        words: Of the command line, as they were typed.
        shared: In the shell, the open Session that every line uses.
        current: The Runtime of this command.
        shown: The page that was shown last, and the rows that were asked for.
        reserved: Standard output, where it is kept for events.
        cleanup: What ends with the command.
    """

    use: tuple[str, ...] = ()
    events: str | None = None
    json: bool = False
    yes: bool = False
    quiet: bool = False
    home: str | None = None
    sandbox: Literal["auto", "require", "off"] | None = None
    words: tuple[str, ...] = ()
    shared: Any = None
    current: Any = None
    shown: Any = None
    reserved: BinaryIO | None = None
    cleanup: ExitStack = field(default_factory=ExitStack)

    def runtime(self, *, spare: bool = False, asks: bool = True) -> Runtime:
        """Make the runtime of this command, listening as the options say; what `asks` not, refuses instead."""
        from dragoman.runtime import Runtime

        home = Path(self.home) if self.home else None
        use = [_load_automation(path) for path in self.use]
        self._restoring_stdout()
        sys.stdout = aside(sys.stdout)
        confirm = self._confirm if self.yes or (asks and attended()) else None
        runtime = Runtime(home=home, use=use, confirm=confirm, spare=spare, sandbox=self.sandbox)
        if self.events:
            runtime.add_sink(self._event_writer(self.events))
        if not self.quiet:
            from .progress import Progress

            runtime.add_sink(self.cleanup.enter_context(closing(Progress())).show)
        self.current = runtime
        return runtime

    def listener(self) -> Callable[[Any], None]:
        """Give what takes the events of a command that needs no runtime."""
        return self._event_writer(self.events) if self.events else lambda _: None

    def _event_writer(self, target: str) -> Callable[[Any], None]:
        from dragoman_api.errors import ConfigurationError

        def failed(error: OSError) -> ConfigurationError:
            hint = "choose a file that can be written, or - for stdout"
            return ConfigurationError(f"--events {target} cannot be written: {error.strerror}", hint=hint)

        if target == "-":
            stream = self.reserved or self.reserve()
            return lambda event: _write_event(stream, event)
        try:  # without a buffer, which would fail once more when it is closed
            file = self.cleanup.enter_context(Path(target).open("ab", buffering=0))  # noqa: SIM115 - it is one
        except OSError as error:
            raise failed(error) from error

        def write(event: Any) -> None:
            try:
                file.write(f"{event.to_json()}\n".encode())
            except OSError as error:
                raise failed(error) from error

        return write

    def reserve(self) -> BinaryIO:
        """Keep stdout for events alone, until the command ends."""
        self._restoring_stdout()
        self.reserved = reserve_stdout()
        return self.reserved

    def _restoring_stdout(self) -> None:
        self.cleanup.callback(setattr, sys, "stdout", sys.stdout)

    async def _confirm(self, question: Any) -> bool:
        if self.yes:
            return True
        from .prompts import confirm

        for detail in question.details:
            output.say(detail)
        return await confirm(output.plain(question.text))

    def paths(self) -> Paths:
        """Find where things lie, for commands that need no runtime."""
        from dragoman.settings import find_paths

        return find_paths(Path(self.home) if self.home else None)

    async def agree(self, question: str, *, instead: str) -> None:
        """Ask for consent to something that cannot be taken back.

        Raises:
            Refused: It is not given, or nobody is here to give it; `instead` does without asking.
        """
        from dragoman_api.errors import Refused

        if self.yes:
            return
        if not attended():
            raise Refused(f"{question} Nobody is here to answer; nothing was done", hint=instead)
        from .prompts import confirm

        if not await confirm(output.plain(question)):
            raise Refused("not confirmed; nothing was done")

    def result(self, document: object, line: str) -> None:
        """Write what a command did: a line, or with ``--json`` a document."""
        output.write_json(document) if self.json else sys.stdout.write(output.plain(line.rstrip()) + "\n")

    def listing(self, document: object, head: list[str], rows: list[list[str]], *, nothing: str = "") -> None:
        """Write a table, or with ``--json`` a document; say what `nothing` means when there are no rows."""
        if self.json:
            output.write_json(document)
        elif rows:
            output.write_table(head, [[*map(output.plain, row)] for row in rows], wrap=True)
        else:
            self.say(nothing)

    def say(self, text: str) -> None:
        """Tell a person something beside the data, unless they asked for quiet."""
        if not self.quiet:
            output.say(text)

    def format_or(self, format: str) -> str:
        """Give the format of the output: ``--json`` wins."""
        return "json" if self.json else format


def _write_event(stream: BinaryIO, event: Any) -> None:
    stream.write(f"{event.to_json()}\n".encode())
    stream.flush()


def attended() -> bool:
    """Tell whether a person is there to be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def load_file(path: str) -> ModuleType:
    """Import a Python file by its path: an automation, or a script for `run`.

    Raises:
        ConfigurationError: It is not there, or fails while it is imported.
    """
    from importlib.util import module_from_spec, spec_from_file_location

    from dragoman_api.errors import ConfigurationError

    file = Path(path)
    spec = spec_from_file_location(f"_dragoman_file_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise ConfigurationError(f"{path} is no Python file that can be read", hint="give the path of a .py file")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(file.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _script_failed(file, error) from error
    finally:
        sys.path.pop(0)
    return module


def _load_automation(path: str) -> ModuleType:
    try:
        with redirect_stdout(sys.stderr):
            return load_file(path)
    except SystemExit as error:  # a script of `run` may end itself, but this one is only asked along
        raise _script_failed(Path(path), error) from error


def _script_failed(file: Path, error: BaseException) -> ConfigurationError:
    from dragoman_api.errors import ConfigurationError

    hint = f"correct it; python {file} shows whether it can be read"
    return ConfigurationError(script_fault(file, error), hint=hint, code="script-failed")


def script_fault(file: Path, error: BaseException) -> str:
    """Say in one line where a person's own script failed."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"{file}:{error.lineno}: {type(error).__name__}: {error.msg}"
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{file}{f':{line}' if line else ''}: {type(error).__name__}: {error}"


def parse_time(text: str | None, *, option: str) -> int | None:
    """Read a time like 90s, 30m or 2h into seconds."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,6})([smhd]?)", text)
    seconds = int(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}[found[2]] if found else 0
    if not seconds:
        raise click.UsageError(f"{option} {text!r} is no time: 90s, 30m, 2h")
    return seconds


def opens(work: Work) -> Callable[..., Coroutine[Any, Any, int | None]]:
    """Make a command of a coroutine function that needs an open connection."""

    @wraps(work)
    def start(options: Options, connection: str, **arguments: Any) -> Coroutine[Any, Any, int | None]:
        if options.shared is not None:
            return work(options, options.shared, **arguments)
        return _with_session(options, warm_runtime(options), connection, work, arguments)

    return click.pass_obj(start)


def warm_runtime(options: Options) -> Runtime:
    """Make a runtime for one connection, whose driver's process starts while the runtime is still imported."""
    from dragoman.sandbox.closure import find_closure
    from dragoman.sandbox.spare import Spare

    with ExitStack() as undo:
        spare = undo.enter_context(Spare(find_closure(options.paths().cache)))
        spare.fill()
        runtime = options.runtime()
        runtime.prewarm(spare)
        undo.pop_all()  # the runtime owns it from here on
    return runtime


async def _with_session(
    options: Options, runtime: Runtime, connection: str, work: Work, arguments: dict[str, Any]
) -> int | None:
    async with runtime, runtime.open(connection) as session:
        tell_warnings(session)
        return await work(options, session, **arguments)


def tell_warnings(session: Session) -> None:
    """Tell what a person should know about a connection that was just opened, once."""
    for warning in session.warnings:
        output.say(f"warning: {warning}")  # quiet or not: a sandbox that is off is shouted


def _complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from dragoman.settings import read_toml

    saved = read_toml((context.obj or Options()).paths().connections)
    return [name for name in sorted(saved) if name.startswith(incomplete)]


CONNECTION = click.argument("connection", metavar="NAME", shell_complete=_complete)
OBJECT = click.argument("object", metavar="OBJECT")


def _globals(*, hidden: bool) -> list[click.Option]:
    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value:
            assert parameter.name is not None
            before = getattr(context.obj, parameter.name)
            setattr(context.obj, parameter.name, before + value if isinstance(value, tuple) else value)
            if parameter.name == "events" and value == "-":
                context.obj.reserve()

    def option(*names: str, **more: Any) -> click.Option:
        return click.Option(names, expose_value=False, callback=keep, hidden=hidden, **more)

    return [
        option("--use", multiple=True, metavar="FILE.py", help="Run the automations of a Python file. Repeatable."),
        option(
            "--events", metavar="FILE|-", help="Append events to a file as JSON lines; - keeps stdout for them alone."
        ),
        option("--json", is_flag=True, help="Write one JSON document; errors become JSON on stderr."),
        option("--yes", "-y", is_flag=True, help="Agree to every question."),
        option("--quiet", "-q", is_flag=True, help="Say nothing beside data, notes and errors."),
        option("--home", metavar="DIR", help="Keep everything below this folder (DRAGOMAN_HOME)."),
        option(
            "--sandbox",
            type=click.Choice(["auto", "require", "off"]),
            is_flag=False,
            flag_value="auto",
            help="How drivers are confined; auto where nothing follows.",
        ),
    ]


class Command(click.Command):
    """A command that takes the global options too, wherever they are written."""

    def __init__(self, *args: Any, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.params += _globals(hidden=True)


class Group(click.Group):
    """A group of commands that take the global options too."""

    command_class = Command

    def __init__(self, *args: Any, hide_globals: bool = True, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.params += _globals(hidden=hide_globals)


def take_pairs(args: Iterable[str], *, known: Callable[[str], bool]) -> tuple[list[str], dict[str, str | bool]]:
    """Take the options that are not `known` to the command out of its words.

    Returns:
        The other words, and the values by name with underscores; True where no value was given.
    """
    rest: list[str] = []
    pairs: dict[str, str | bool] = {}
    words = list(args)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            return [*rest, word, *words], pairs
        if not name.startswith("--") or known(name):
            rest.append(word)
        elif equals:
            pairs[name[2:].replace("-", "_")] = value
        else:
            has_value = bool(words) and not words[0].startswith("--")
            pairs[name[2:].replace("-", "_")] = words.pop(0) if has_value else True
    return rest, pairs
