"""Near misses: the known names beside an unknown one, in every command that names an object."""

from __future__ import annotations

import shlex
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from dragoman.near_names import did_you_mean, near_names

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from dragoman.sessions.session import Session


@asynccontextmanager
async def suggesting_names(session: Session, object: str) -> AsyncIterator[None]:
    """Add similar names to an error about an unknown column or object; an empty object names none."""
    from dragoman_api.errors import DragomanError, ObjectNotFoundError

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
    from dragoman_api.errors import DragomanError

    try:
        if objects:
            return [node.name for node in await session.objects()]
        return [column.name for column in (await session.describe(object)).columns]
    except DragomanError:  # report the first error
        return []
