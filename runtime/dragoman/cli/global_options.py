"""Commands and groups that accept the global options at any position."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .command_files import CommandFile, check_apart, note_files


def _globals(*, hidden: bool) -> list[click.Option]:
    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value:
            assert parameter.name is not None
            before = getattr(context.obj, parameter.name)
            setattr(context.obj, parameter.name, before + value if isinstance(value, tuple) else value)
            if parameter.name == "use":
                note_files(context.obj, [CommandFile(f"--use {file}", Path(file), written=False) for file in value])
            if parameter.name == "events":
                context.obj.reserve() if value == "-" else check_apart(context.obj)

    def option(*names: str, **more: Any) -> click.Option:
        return click.Option(names, expose_value=False, callback=keep, hidden=hidden, **more)

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


class Command(click.Command):
    """A command that also accepts the global options, at any position."""

    def __init__(self, *args: Any, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.params += _globals(hidden=True)


class Group(click.Group):
    """A group of commands that also accept the global options."""

    command_class = Command

    def __init__(self, *args: Any, hide_globals: bool = True, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.params += _globals(hidden=hide_globals)
