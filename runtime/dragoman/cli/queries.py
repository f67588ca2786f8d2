"""Saved queries: the commands that keep them, and `@NAME` in place of an object."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from . import output
from .common_arguments import CONNECTION, OBJECT
from .global_options import Command, Group
from .read_options import COLUMNS, SORT, filtered, parse_names, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from dragoman.connections.saved_queries import SavedQueries, SavedQuery
    from dragoman.sessions.time_spans import Span

    from .options import Options

    Work = Callable[..., Coroutine[Any, Any, int | None]]

SAVE_AS = click.option("--save-as", metavar="NAME", help="Save these options under a name, for @NAME.")
ALL_COLUMNS = "*"


def queried(work: Work) -> Callable[..., Coroutine[Any, Any, int | None]]:
    """Let a command take ``@NAME`` as its object; ``@@…`` is an object whose name begins with ``@``.

    Filters of the command line are added to those of the query; every other option takes the place of the query's.
    """

    @wraps(work)
    def run(**arguments: Any) -> Coroutine[Any, Any, int | None]:
        context = click.get_current_context()
        options: Options = context.obj
        name, save_as = arguments["connection"], arguments.pop("save_as", None)
        if arguments["object"].startswith("@@"):
            arguments["object"] = arguments["object"][1:]
        elif arguments["object"].startswith("@"):
            arguments = _merged(
                _queries(options, name).get(arguments["object"][1:]), arguments, explicit=_explicit(context)
            )
        if arguments.get("columns") == ALL_COLUMNS and "sort" not in arguments:  # a page needs to know
            arguments["columns"] = None
        if not save_as:
            return work(**arguments)
        return _saving(_queries(options, name), save_as.removeprefix("@"), _made(**arguments), work(**arguments))

    return run


def _explicit(context: click.Context) -> set[str]:
    from click.core import ParameterSource

    return {name for name in context.params if context.get_parameter_source(name) is not ParameterSource.DEFAULT}


def _queries(options: Options, name: str) -> SavedQueries:
    from dragoman.connections.saved_connections import Connections
    from dragoman.connections.saved_queries import SavedQueries
    from dragoman.settings import read_settings

    paths = options.paths()
    return SavedQueries(Connections(paths), name, folder=read_settings(paths).queries)


async def _saving(
    queries: SavedQueries, name: str, query: SavedQuery, work: Coroutine[Any, Any, int | None]
) -> int | None:
    import anyio

    code = await work
    if not code:
        await anyio.to_thread.run_sync(queries.save, name, query)
        output.say(f"saved as @{name}")
    return code


def _merged(query: SavedQuery, arguments: dict[str, Any], *, explicit: set[str]) -> dict[str, Any]:
    from dragoman.sessions.time_spans import Span

    merged_arguments = arguments | {"object": query.object}
    merged_arguments["filters"] = (*query.filters, *arguments["filters"])
    merged_arguments["raw"] = (*query.raw, *arguments["raw"])
    if "match" not in explicit:
        merged_arguments["match"] = query.match
    if arguments["span"] == Span():
        merged_arguments["span"] = Span(since=query.since, until=query.until)
    if "columns" in arguments and not arguments["columns"] and query.columns:
        merged_arguments["columns"] = ",".join(query.columns)
    if "sort" in arguments and not arguments["sort"]:
        merged_arguments["sort"] = tuple(query.sort)
    return merged_arguments


async def with_defaults(
    options: Options, connection: str, object_: str, *, columns: str | None, sort: tuple[str, ...]
) -> tuple[str | None, tuple[str, ...]]:
    """Return the columns and the sort of a page: those asked for, else the object's defaults, which are told."""
    if columns == ALL_COLUMNS:
        return None, sort
    import anyio

    defaults = await anyio.to_thread.run_sync(lambda: _queries(options, connection).defaults(object_))
    applied = []
    if defaults.columns and not columns:
        columns = ",".join(defaults.columns)
        applied.append(f"columns {columns}")
    if defaults.sort and not sort:
        sort = tuple(defaults.sort)
        applied.append(f"sort {','.join(sort)}")
    if applied:
        options.say(f"defaults of {object_}: {', '.join(applied)} (--columns '*' ignores them)")
    return columns, sort


def _made(
    *, object: str, filters: tuple[str, ...], raw: tuple[str, ...], match: str, span: Span,
    sort: tuple[str, ...] = (), columns: str | None = None, **_: Any,
) -> SavedQuery:  # fmt: skip
    """Return the options of a command line as a query; refuse what cannot be read."""
    import msgspec

    from dragoman.connections.saved_queries import SavedQuery
    from dragoman_api.errors import ConfigurationError

    from .filters import parse_rows, parse_sort

    parse_rows(filters, raw)
    parse_sort(sort)
    fields = {
        "object": object, "filters": [*filters], "raw": [*raw], "match": match, "sort": [*sort],
        "columns": (parse_names(columns) or []) if columns != ALL_COLUMNS else [], "since": span.since,
        "until": span.until,
    }  # fmt: skip
    try:
        return msgspec.convert(fields, SavedQuery)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"the query cannot be saved: {error}") from error


@click.group("queries", cls=Group)
def queries() -> None:
    """Save rows to ask for again: dragoman page NAME @QUERY."""


@queries.command("save", cls=Command)
@CONNECTION
@click.argument("query", metavar="QUERY")
@OBJECT
@filtered
@SORT
@COLUMNS
@timed
@click.option("--replace", is_flag=True, help="Replace a query of that name.")
@click.pass_obj
def save(options: Options, /, *, connection: str, query: str, replace: bool, **arguments: Any) -> None:
    """Save a query beside its connection; nothing is sent."""
    _queries(options, connection).save(query.removeprefix("@"), _made(**arguments), replace=replace)
    options.result({"saved": query.removeprefix("@")}, f"saved as @{query.removeprefix('@')}")


@queries.command("list", cls=Command)
@CONNECTION
@click.pass_obj
def list_(options: Options, *, connection: str) -> None:
    """List the queries of a connection, and those that a team shares."""
    saved_queries, hidden = _queries(options, connection).all()
    rows = [[f"@{name}", query.object, place] for name, (place, query) in saved_queries.items()]
    document = [{"name": name, "place": place, "query": query} for name, (place, query) in saved_queries.items()]
    unusable = {name: error.message for name, error in hidden.items()}
    nothing = f"no queries yet: dragoman queries save {connection} NAME OBJECT"
    options.listing({"queries": document, "unusable": unusable}, ["QUERY", "OBJECT", "PLACE"], rows, nothing=nothing)
    if not options.json:
        for reason in unusable.values():
            output.say(reason)


@queries.command("show", cls=Command)
@CONNECTION
@click.argument("query", metavar="QUERY")
@click.pass_obj
def show(options: Options, *, connection: str, query: str) -> None:
    """Show a query as the command that it stands for."""
    from dragoman_api.wording import shell_line

    saved_query = _queries(options, connection).get(query.removeprefix("@"))
    dashed = saved_query.object.startswith("-")  # it would be read as an option
    words = ["dragoman", "page", connection, *([] if dashed else [saved_query.object])]
    for option, values in (("--filter", saved_query.filters), ("--raw", saved_query.raw)):
        words += [word for value in values for word in (option, value)]
    words += ["--match", saved_query.match] if saved_query.match != "all" else []
    words += [f"--sort={key}" for key in saved_query.sort]
    words += ["--columns", ",".join(saved_query.columns)] if saved_query.columns else []
    words += [word for option, text in (("--since", saved_query.since), ("--until", saved_query.until)) if text
              for word in (option, text)]  # fmt: skip
    words += ["--", saved_query.object] if dashed else []
    options.result(saved_query, shell_line(words))


@queries.command("remove", cls=Command)
@CONNECTION
@click.argument("query", metavar="QUERY")
@click.pass_obj
def remove(options: Options, *, connection: str, query: str) -> None:
    """Delete a query of the connection."""
    _queries(options, connection).remove(query.removeprefix("@"))
    options.result({"removed": query.removeprefix("@")}, f"removed @{query.removeprefix('@')}")
