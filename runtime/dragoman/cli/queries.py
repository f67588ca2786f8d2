"""Saved queries: the commands that keep them, and `@NAME` in place of an object."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

from dragoman_api.wording import shell_line

from . import output
from .options import CONNECTION, OBJECT, Command, Group
from .read_options import OPTIONS, RowChoice, choosing

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from dragoman.sessions.saved_queries import SavedQueries
    from dragoman.sessions.selection_codec import SelectionTexts

    from .options import Options

    Work = Callable[..., Coroutine[Any, Any, int | None]]

SAVE_AS = click.option("--save-as", metavar="NAME", help="Save these options under a name, for @NAME.")


def queried(work: Work) -> Callable[..., Coroutine[Any, Any, int | None]]:
    """Let a command with a `choice` take ``@NAME`` as its object; ``@@…`` is an object whose name begins with ``@``."""

    @wraps(work)
    def run(*, connection: str, choice: RowChoice, save_as: str | None = None, **arguments: Any) -> Any:
        options: Options = click.get_current_context().obj
        place = choice.texts.object
        if place.startswith("@@"):
            choice = choice._replace(texts=structs.replace(choice.texts, object=place[1:]))
        elif place.startswith("@"):
            choice = choice.over(_queries(options, connection).get(place[1:]))
        command = work(connection=connection, choice=choice, **arguments)
        if not save_as:
            return command
        return _saving(_queries(options, connection), save_as.removeprefix("@"), choice.texts, command)

    return run


def _queries(options: Options, name: str) -> SavedQueries:
    from dragoman.connections.saved_connections import Connections
    from dragoman.sessions.saved_queries import SavedQueries
    from dragoman.settings import read_settings

    paths = options.paths()
    return SavedQueries(Connections(paths), name, folder=read_settings(paths.settings).queries)


async def _saving(
    queries: SavedQueries, name: str, query: SelectionTexts, work: Coroutine[Any, Any, int | None]
) -> int | None:
    import anyio
    import anyio.to_thread

    code = await work
    if not code:
        await anyio.to_thread.run_sync(queries.save, name, query)
        output.say(f"saved as @{name}")
    return code


async def with_defaults(options: Options, connection: str, choice: RowChoice) -> RowChoice:
    """Return a choice with the default columns and sort of its object where it names none, and say so."""
    texts = choice.texts
    if "columns" in choice.explicit and texts.columns is None:  # all columns
        return choice
    import anyio

    defaults = await anyio.to_thread.run_sync(lambda: _queries(options, connection).defaults(texts.object))
    columns = defaults.columns if texts.columns is None and defaults.columns else None
    sort = defaults.sort if not texts.sort else []
    applied = [f"columns {','.join(columns)}"] if columns else []
    applied += [f"sort {','.join(sort)}"] if sort else []
    if applied:
        options.say(f"defaults of {texts.object}: {', '.join(applied)} (--columns '*' ignores them)")
    return choice._replace(texts=structs.replace(texts, columns=columns or texts.columns, sort=[*sort] or texts.sort))


@click.group("queries", cls=Group)
def queries() -> None:
    """Save rows to ask for again: dragoman page NAME @QUERY."""


@queries.command("save", cls=Command)
@CONNECTION
@click.argument("query", metavar="QUERY")
@OBJECT
@choosing(*OPTIONS)
@click.option("--replace", "replaces", is_flag=True, help="Replace a query of that name.")
@click.pass_obj
def save(options: Options, /, *, connection: str, query: str, replaces: bool, choice: RowChoice) -> None:
    """Save a query beside its connection; nothing is sent."""
    _queries(options, connection).save(query.removeprefix("@"), choice.texts, replace=replaces)
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
    texts = _queries(options, connection).get(query.removeprefix("@"))
    options.result(texts, shell_line(texts.command(connection)))


@queries.command("remove", cls=Command)
@CONNECTION
@click.argument("query", metavar="QUERY")
@click.pass_obj
def remove(options: Options, *, connection: str, query: str) -> None:
    """Delete a query of the connection."""
    _queries(options, connection).remove(query.removeprefix("@"))
    options.result({"removed": query.removeprefix("@")}, f"removed @{query.removeprefix('@')}")
