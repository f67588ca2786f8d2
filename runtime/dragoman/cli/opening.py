"""The opening of a command's connection, and what to say about names that it does not have."""

from __future__ import annotations

import shlex
from contextlib import ExitStack, asynccontextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from dragoman.spellings import did_you_mean, near_names
from dragoman_api.errors import DragomanError, ObjectNotFoundError

from . import output

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from dragoman.runtime import Runtime
    from dragoman.sessions.session import Session

    from .options import Options

    Work = Callable[..., Coroutine[Any, Any, int | None]]
    from collections.abc import AsyncIterator, Iterable


def opens(work: Work, *, describes: bool = True) -> Callable[..., Coroutine[Any, Any, int | None]]:
    """Make a command from a coroutine function that needs an open connection.

    Args:
        work: The coroutine function.
        describes: It needs the definition of its object, if it has one.
    """

    @wraps(work)
    def start(options: Options, connection: str, **arguments: Any) -> Coroutine[Any, Any, int | None]:
        if options.shared is not None:
            return _suggesting(options, options.shared, work, arguments)
        first_object = (describes and _object_of(arguments)) or None
        return _with_session(options, warm_runtime(options), connection, work, arguments, first_object=first_object)

    return click.pass_obj(start)


def warm_runtime(options: Options) -> Runtime:
    """Make a runtime for one connection, and start the driver's process while the runtime is imported."""
    from dragoman.sandbox.bare_process import Spare
    from dragoman.sandbox.host_imports import find_host_imports

    with ExitStack() as undo:
        early, options.early = options.early, None
        spare = undo.enter_context(early or Spare(find_host_imports(options.paths().cache)))
        spare.fill()
        runtime = options.runtime()
        runtime.prewarm(spare)
        undo.pop_all()  # the runtime owns it from here on
    return runtime


async def _with_session(
    options: Options,
    runtime: Runtime,
    connection: str,
    work: Work,
    arguments: dict[str, Any],
    *,
    first_object: str | None,
) -> int | None:
    async with runtime, runtime.open(connection, first_object=first_object) as session:
        tell_warnings(session)
        return await _suggesting(options, session, work, arguments)


async def _suggesting(options: Options, session: Session, work: Work, arguments: dict[str, Any]) -> int | None:
    async with suggesting_names(session, _object_of(arguments)):
        return await work(options, session, **arguments)


def _object_of(arguments: dict[str, Any]) -> str:
    """Return the object that a command is about; empty if there is none."""
    place = arguments["choice"].texts.object if "choice" in arguments else arguments.get("object")
    return str(place or "")


def tell_warnings(session: Session) -> None:
    """Show the warnings about a newly opened connection, once."""
    for warning in session.warnings:
        output.say(f"warning: {warning}")  # even with --quiet: a sandbox that is off must be visible


@asynccontextmanager
async def suggesting_names(session: Session, object: str) -> AsyncIterator[None]:
    """Add similar names to an error about an unknown column or object; an empty object names none."""
    try:
        yield
    except DragomanError as error:
        name = object and str(error.details.get("column") or (object if isinstance(error, ObjectNotFoundError) else ""))
        if name:
            names = await _known_names(session, object, objects=isinstance(error, ObjectNotFoundError))
            if name not in names:
                suggestion = did_you_mean(near_names(name, names))
                error.message = error.message.removesuffix(suggestion) + suggestion  # some errors say it themselves
                look = ["objects"] if isinstance(error, ObjectNotFoundError) else ["describe", object]
                error.advise(shlex.join(["dragoman", look[0], session.name, *look[1:]]))
        raise


async def near_columns(session: Session, object: str, names: Iterable[str]) -> list[str]:
    """Return a line for each name that is not a column of an object but resembles one."""
    columns = await _known_names(session, object, objects=False)
    suggestions = {name: near_names(name, columns) for name in names if name not in columns}
    return [f"{name}: did you mean {' or '.join(near)}?" for name, near in suggestions.items() if near]


async def _known_names(session: Session, object: str, *, objects: bool) -> list[str]:
    try:
        if objects:
            return [node.name for node in await session.objects(counts=False)]
        return [column.name for column in (await session.describe(object)).columns]
    except DragomanError:  # report the first error
        return []
