"""Copies of rows to another connection of the same type: what one would make, and the object that receives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api.changes import NewObject
from dragoman_api.columns import Role
from dragoman_api.console import ConsoleRequest
from dragoman_api.errors import ConfigurationError, ObjectNotFoundError, QueryError, UnsupportedOperationError
from dragoman_workbench.messages.imports import CopyColumn, CopyPlanned

if TYPE_CHECKING:
    from dragoman import Session
    from dragoman_api.changes import PlannedRequest
    from dragoman_api.columns import Column, Description
    from dragoman_workbench.messages.imports import CopyAsked, CopyPlanAsked

_SAID = 1_000  # characters of a server's answer in a message


def _check_pair(source: Session, target: Session, request: CopyPlanAsked) -> None:
    if source.type != target.type:
        text = f"{source.name} is {source.type} and {target.name} is {target.type}: their rows have different forms"
        raise ConfigurationError(text, hint="export the rows, and import that file", code="types-differ")
    if (source.name, request.rows.object) == (target.name, request.object):
        raise ConfigurationError("the rows would be copied onto themselves", hint="name another object")


def _stored(description: Description) -> list[Column]:
    """Return the columns that rows hold, also those inside documents."""
    return [column for column in description.columns if column.path and column.role not in (Role.KEY, Role.SERVER)]


async def _described(session: Session, name: str) -> Description | None:
    try:
        return await session.describe(name)
    except ObjectNotFoundError:
        return None


async def _planned_object(target: Session, name: str, structure: str) -> PlannedRequest:
    plan = await target.plan(new=NewObject(name, structure))
    if not plan.planned:
        text = f"{name!r} does not exist, and the driver {target.plugin} does not make objects"
        raise UnsupportedOperationError(text, hint="make it first, then copy")
    return plan.planned[0]


def _shown(planned: PlannedRequest) -> str:
    return f"{planned.request.method} {planned.request.path}\n{planned.request.body or ''}"


async def plan_copy(source: Session, target: Session, request: CopyPlanAsked) -> CopyPlanned:
    """Return what a copy would make, and where the columns of the two objects differ; nothing is written.

    Raises:
        ConfigurationError: The connections have different types (code ``types-differ``), or the rows would be copied
            onto themselves.
        UnsupportedOperationError: The object is missing, and the driver makes none.
        QueryError: The driver cannot make this object.
    """
    _check_pair(source, target, request)
    description = await source.describe(request.rows.object)
    existing = await _described(target, request.object)
    making = "" if existing else _shown(await _planned_object(target, request.object, description.structure))
    types = {column.name: column.type for column in existing.columns} if existing else {}
    columns = [
        CopyColumn(name=column.name, type=column.type, target=types.get(column.name) if existing else column.type)
        for column in _stored(description)
    ]
    return CopyPlanned(exists=existing is not None, making=making, columns=columns)


async def prepare_copy(source: Session, target: Session, request: CopyAsked) -> None:
    """Make the object that receives the rows, if it is missing, by the very request that a person has confirmed.

    Raises:
        ConfigurationError: Another request would make it (code ``plan-gone``), or as `plan_copy`.
        QueryError: The server refused the request.
    """
    _check_pair(source, target, request)
    if await _described(target, request.object) is not None:
        return
    structure = (await source.describe(request.rows.object)).structure
    planned = await _planned_object(target, request.object, structure)
    if _shown(planned) != request.making:
        text = f"{request.object!r} would be made in another way than was shown"
        raise ConfigurationError(text, hint="look at it again", code="plan-gone")
    answer = await target.execute(ConsoleRequest(request=planned.request, writes=True))
    if answer.failed or not 200 <= answer.status < 300:
        reason = answer.failed or " ".join(answer.text.split())[:_SAID]
        raise QueryError(f"{request.object!r} was not made: HTTP {answer.status} {reason}")
