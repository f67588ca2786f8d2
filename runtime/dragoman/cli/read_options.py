"""Options of the commands that read rows: which rows, how they are shown, and curl commands in place of both."""

from __future__ import annotations

import sys
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click
from click.core import ParameterSource
from msgspec import structs

from dragoman.sessions.selection_codec import SelectionTexts, parse_names

from . import output
from .options import completed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from dragoman.sessions.rows import Rows
    from dragoman.sessions.session import Session
    from dragoman_api.changes import HttpRequest, Outcome
    from dragoman_api.grid import Page

    from .options import Options

F = TypeVar("F", bound="Callable[..., Any]")
LISTS = click.option(
    "--lists",
    metavar="A,B,…",
    shell_complete=completed("columns"),
    help="Arrow and Parquet: these columns are lists, '' for none; by default those with an array in the first rows.",
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
REVISION = click.option(
    "--revision", default="", help="Read the rows as they were then: `revision` of an earlier page."
)
ALL_COLUMNS = "*"
"""What ``--columns`` says for all columns, in place of those of a query or of an object's defaults."""

FILTER, TIME = ("filters", "raw", "match"), ("since", "until", "all_time")
OPTIONS = {
    "filters": click.option(
        "--filter",
        "filters",
        multiple=True,
        metavar="ROW",
        shell_complete=completed("filter"),
        help="COLUMN OP VALUE [@GROUP] [+case|-case]. Repeatable.",
    ),
    "raw": click.option(
        "--raw", multiple=True, metavar="TEXT", help="A filter in the server's own syntax. Repeatable."
    ),
    "match": click.option(
        "--match", default="all", type=click.Choice(["all", "any"]), help="Whether all filter rows must match, or any."
    ),
    "sort": click.option(
        "--sort",
        multiple=True,
        metavar="[-]COL",
        shell_complete=completed("sort"),
        help="A column; with a hyphen, descending. Repeatable.",
    ),
    "columns": click.option(
        "--columns",
        metavar="A,B,…",
        shell_complete=completed("columns"),
        help="Only these columns, in this order; '' for none.",
    ),
    "tenant": TENANT,
    "revision": REVISION,
    "since": click.option(
        "--since", metavar="TIME", help="Only rows from this time on: 2026-11-23T12:00:00Z, -1h, now-7d."
    ),
    "until": click.option("--until", metavar="TIME", help="Only rows before this time, written as for --since."),
    "all_time": click.option(
        "--all-time", is_flag=True, help="All rows, even where only the newest are read by default."
    ),
    "now": click.option(
        "--now", metavar="TIME", help="Relative times count from this instant: `now` of an earlier page."
    ),
    "residual": click.option(
        "--residual",
        metavar="ROWS",
        type=int,
        help="Filter and sort here what the server cannot, over at most this many rows that it returns.",
    ),
}
"""The option of each field of `SelectionTexts` but the object."""
AS_CURL = click.option(
    "--as-curl", is_flag=True, help="Print the requests as curl commands, with secrets as variables; send none."
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


class RowChoice(NamedTuple):
    """The rows that the words of a command choose.

    Attributes:
        texts: The selection, as it was typed.
        explicit: The fields that the words name.
    """

    texts: SelectionTexts
    explicit: frozenset[str] = frozenset()

    @classmethod
    def of(cls, fields: Mapping[str, Any], *, explicit: Collection[str]) -> RowChoice:
        """Return the choice of the values of `OPTIONS`, and of the object."""
        values: dict[str, Any] = {
            name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()
        }
        columns = values.get("columns")
        values["columns"] = None if columns in (None, ALL_COLUMNS) else parse_names(columns)
        return cls(SelectionTexts(**values), frozenset(explicit))

    def over(self, query: SelectionTexts) -> RowChoice:
        """Return the choice over a saved query: filters are added to its own, everything else replaces its own."""
        texts, names = self.texts, set(self.explicit)
        if names & {*TIME}:
            names |= {*TIME}
        fields = {name: getattr(texts, name) for name in names & {*OPTIONS}}
        fields |= {"filters": [*query.filters, *texts.filters], "raw": [*query.raw, *texts.raw]}
        return self._replace(texts=structs.replace(query, **fields))

    def rows(self, session: Session) -> Rows:
        """Return the rows; nothing is sent yet."""
        return session.select(self.texts.read())


def choosing(*names: str) -> Callable[[F], F]:
    """Add the options of these fields to a command, which receives them and its object as `choice`."""

    def decorate(function: F) -> F:
        @wraps(function)
        def run(*args: Any, object: str, **parameters: Any) -> Any:
            source = click.get_current_context().get_parameter_source
            explicit = [name for name in names if source(name) is not ParameterSource.DEFAULT]
            fields = {"object": object} | {name: parameters.pop(name) for name in names}
            return function(*args, choice=RowChoice.of(fields, explicit=explicit), **parameters)

        for name in reversed(names):
            run = OPTIONS[name](run)
        return cast("F", run)

    return decorate


def time_words(page: Page) -> list[str]:
    """Return the options that ask for the times of a page again: its range, and what relative times count from."""
    since, until = (page.time.since, page.time.until) if page.time else (None, None)
    return SelectionTexts(object="", since=since, until=until, now=page.now).options


def parse_lists(text: str | None) -> list[str] | None:
    """Read the names of the columns that are lists; None if the option is absent, and none if it is empty."""
    return None if text is None else parse_names(text)


def write_curl(
    options: Options, session: Session, requests: Sequence[HttpRequest], *, refusals: Sequence[Outcome] = ()
) -> None:
    """Write one command per request, and say which variables hold the secrets."""
    curl = session.curl
    commands = [curl.command(request) for request in requests]
    if options.json:
        documents = zip(requests, commands, strict=True)
        output.write_json(
            {
                "requests": [
                    {
                        "method": request.method,
                        "path": request.path,
                        "body": request.body,
                        "content_type": request.content_type,
                        "curl": command,
                    }
                    for request, command in documents
                ],
                "variables": curl.variables,
                "notes": curl.notes,
                "refusals": refusals,
            }
        )
        return
    for command in commands:
        sys.stdout.write(f"{command}\n")  # nothing in it means anything to a terminal
    for name, description in curl.variables.items():
        options.say(f"${name} is {description}")
    for note in curl.notes:
        options.say(note)
    for refusal in refusals:
        output.say(f"{refusal.status}: {refusal.reason}")
