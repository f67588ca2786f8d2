"""Commands and groups that accept the global options at any position, and arguments that many commands share."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .command_files import CommandFile, check_apart, note_files

if TYPE_CHECKING:
    from collections.abc import Callable


def _globals(*, hidden: bool) -> list[click.Option]:
    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value and not (context.resilient_parsing and parameter.name in ("use", "events")):
            assert parameter.name is not None
            before = getattr(context.obj, parameter.name)
            setattr(context.obj, parameter.name, before + value if isinstance(value, tuple) else value)
            if parameter.name == "use":
                note_files(context.obj, [CommandFile(f"--use {file}", Path(file), written=False) for file in value])
            if parameter.name == "events":
                context.obj.reserve() if value == "-" else check_apart(context.obj)

    def option(*names: str, **settings: Any) -> click.Option:
        return click.Option(names, expose_value=False, callback=keep, hidden=hidden, **settings)

    return [
        option("--use", multiple=True, metavar="FILE.py", help="Run the automations of a Python file. Repeatable."),
        option("--events", metavar="FILE|-", help="Append events to a file as JSON lines; - reserves stdout for them."),
        option("--json", is_flag=True, help="Write one JSON document; errors become JSON on stderr."),
        option("--yes", "-y", is_flag=True, help="Answer yes to every question."),
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

    from .options import Options

    saved = read_toml((context.obj or Options()).paths().connections)
    names = sorted(name for name, values in saved.items() if isinstance(values, dict) and name.isprintable())
    return [name for name in names if name.startswith(incomplete)]


def completed(what: str) -> Callable[[click.Context, click.Parameter, str], Any]:
    """Return the completion of `word_completion` that is called `complete_…`; it is imported when it is needed."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> Any:
        from . import word_completion

        return getattr(word_completion, f"complete_{what}")(context, parameter, incomplete)

    return complete


CONNECTION = click.argument("connection", metavar="NAME", shell_complete=complete_connection)
OBJECT = click.argument("object", metavar="OBJECT", shell_complete=completed("object"))
