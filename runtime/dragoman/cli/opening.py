"""The opening of a command's connection."""

from __future__ import annotations

from contextlib import ExitStack
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from . import output

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from dragoman.runtime import Runtime
    from dragoman.sessions.session import Session

    from .options import Options

    Work = Callable[..., Coroutine[Any, Any, int | None]]


def opens(work: Work) -> Callable[..., Coroutine[Any, Any, int | None]]:
    """Make a command from a coroutine function that needs an open connection."""

    @wraps(work)
    def start(options: Options, connection: str, **arguments: Any) -> Coroutine[Any, Any, int | None]:
        if options.shared is not None:
            return _suggesting(options, options.shared, work, arguments)
        return _with_session(options, warm_runtime(options), connection, work, arguments)

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
    options: Options, runtime: Runtime, connection: str, work: Work, arguments: dict[str, Any]
) -> int | None:
    async with runtime, runtime.open(connection) as session:
        tell_warnings(session)
        return await _suggesting(options, session, work, arguments)


async def _suggesting(options: Options, session: Session, work: Work, arguments: dict[str, Any]) -> int | None:
    from .near_misses import suggesting_names

    place = arguments["choice"].texts.object if "choice" in arguments else arguments.get("object", "")
    async with suggesting_names(session, place):
        return await work(options, session, **arguments)


def tell_warnings(session: Session) -> None:
    """Show the warnings about a newly opened connection, once."""
    for warning in session.warnings:
        output.say(f"warning: {warning}")  # even with --quiet: a sandbox that is off must be visible
