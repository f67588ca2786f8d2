"""Options that commands which read rows share: format, filter, span of time, columns."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from . import output
from .common_arguments import completed

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_api.grid import Page


F = TypeVar("F", bound="Callable[..., Any]")
COLUMNS = click.option(
    "--columns", metavar="A,B,…", shell_complete=completed("columns"), help="Only these columns, in this order."
)
LISTS = click.option(
    "--lists",
    metavar="A,B,…",
    shell_complete=completed("columns"),
    help="Arrow and Parquet: these columns are lists, '' for none; by default those with an array in the first rows.",
)
SORT = click.option(
    "--sort",
    multiple=True,
    metavar="[-]COL",
    shell_complete=completed("sort"),
    help="A column; with a hyphen, descending. Repeatable.",
)
ESCAPE = click.option(
    "--escape-formulas",
    is_flag=True,
    expose_value=False,
    callback=lambda *arguments: _set("escape_formulas", *arguments),
    help="CSV and TSV: put an apostrophe before texts that a spreadsheet would run as formulas.",
)
VERTICAL = click.option(
    "--vertical/--no-vertical",
    default=None,
    expose_value=False,
    callback=lambda *arguments: _set("vertical", *arguments),
    help="Print a line for each column of a row; the default on a narrow terminal.",
)
WIDE = click.option(
    "--wide",
    is_flag=True,
    expose_value=False,
    callback=lambda *arguments: _set("wide", *arguments),
    help="Cut no value to fit a table into the terminal.",
)
TENANT = click.option("--tenant", metavar="NAME", help="The tenant, if the object has tenants.")
NOW = click.option("--now", metavar="TIME", help="Relative times count from this instant: `now` of an earlier page.")
REVISION = click.option(
    "--revision", default="", help="Read the rows as they were then: `revision` of an earlier page."
)


def _set(name: str, context: click.Context, _parameter: click.Parameter, value: bool | None) -> None:
    if value is not None:
        setattr(context.obj, name, value)


def formatted(function: F) -> F:
    """Add the options for the output of rows to a command."""
    option = click.option(
        "--format", default="table", type=click.Choice(output.FORMATS), help="The output format of rows."
    )
    return option(ESCAPE(function))


def viewed(function: F) -> F:
    """Add the options for how a table is shown to a command."""
    return VERTICAL(WIDE(function))


def filtered(function: F) -> F:
    """Add the options of a filter to a command."""
    for option in (
        click.option(
            "--match",
            default="all",
            type=click.Choice(["all", "any"]),
            help="Whether all filter rows must match, or any.",
        ),
        click.option("--raw", multiple=True, metavar="TEXT", help="A filter in the server's own syntax. Repeatable."),
        click.option(
            "--filter",
            "filters",
            multiple=True,
            metavar="ROW",
            shell_complete=completed("filter"),
            help="COLUMN OP VALUE [@GROUP]. Repeatable.",
        ),
    ):
        function = option(function)
    return function


def time_words(page: Page) -> list[str]:
    """Return the options that ask for the times of a page again: its range, and what relative times count from."""
    time = page.time
    bounds = (("--since", time.since), ("--until", time.until)) if time else ()
    return [word for option, bound in (*bounds, ("--now", page.now)) if bound for word in (option, bound)]


def timed(function: F) -> F:
    """Add the options of a span of time to a command, which receives it as `span`."""

    @wraps(function)
    def run(*args: Any, since: str | None, until: str | None, all_time: bool, **parameters: Any) -> Any:
        from dragoman.sessions.time_spans import Span

        return function(*args, span=Span(since=since, until=until, all_time=all_time), **parameters)

    for option in (
        click.option("--all-time", is_flag=True, help="All rows, even where only the newest are read by default."),
        click.option("--until", metavar="TIME", help="Only rows before this time, written as for --since."),
        click.option("--since", metavar="TIME", help="Only rows from this time on: 2026-11-23T12:00:00Z, -1h, now-7d."),
    ):
        run = option(run)
    return cast("F", run)


def parse_lists(text: str | None) -> list[str] | None:
    """Read the names of the columns that are lists; None if the option is absent, and none if it is empty."""
    return [] if text == "" else parse_names(text)


def parse_names(text: str | None) -> list[str] | None:
    """Read the names of columns; None if the option is absent."""
    return [name.strip() for name in text.split(",")] if text else None
