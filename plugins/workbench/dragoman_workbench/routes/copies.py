"""Copies of rows to another connection: what one would do, and whether that is still what a person has confirmed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman import plan_copy
from dragoman_api.errors import ConfigurationError
from dragoman_workbench.messages.imports import CopyColumn, CopyPlanned

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dragoman import Session
    from dragoman_workbench.messages.imports import CopyAsked, CopyPlanAsked


def _shown(plan: Any) -> str:
    """Return the request that makes the object as a person reads it; empty if the object exists."""
    if plan.making is None:
        return ""
    sent = plan.making.request
    return f"{sent.method} {sent.path}\n{sent.body or ''}"


async def _plan(source: Session, target: Session, request: CopyPlanAsked) -> Any:
    if (source.name, request.rows.object) == (target.name, request.object):
        raise ConfigurationError("the rows would be copied onto themselves", hint="name another object")
    return await plan_copy(
        source.select(request.rows), target, request.object, renamed=request.renamed, ids=request.ids, create=True
    )


async def show_copy(source: Session, target: Session, request: CopyPlanAsked) -> CopyPlanned:
    """Return what a copy would do, in each column; nothing is written.

    Raises:
        ConfigurationError: The rows would be copied onto themselves, or two columns would become one.
        UnsupportedOperationError: The object is missing, and the driver makes none.
        QueryError: The driver cannot make this object.
    """
    plan = await _plan(source, target, request)
    columns = [
        CopyColumn(
            name=column.column, type=column.type, target=column.target or None, to=column.name, reason=column.reason,
            consent=column.consent, lost=column.column in plan.lost,
        )
        for column in plan.columns
    ]  # fmt: skip
    return CopyPlanned(
        exists=plan.exists, making=_shown(plan), columns=columns, differs=source.type != target.type, rows=plan.rows,
        ids=plan.ids, ids_reason=plan.ids_reason, ids_consent=plan.ids_consent, notes=plan.notes,
    )  # fmt: skip


async def check_copy(source: Session, target: Session, request: CopyAsked) -> None:
    """Check that a copy would do what a person has confirmed.

    Raises:
        ConfigurationError: It would do something else (code ``plan-gone``), or as `show_copy`.
    """
    await confirming(request)(await _plan(source, target, request))


def confirming(request: CopyAsked) -> Callable[[Any], Awaitable[None]]:
    """Return what checks that a plan is the one that a person has confirmed."""

    async def confirm(plan: Any) -> None:
        if plan.making is not None and _shown(plan) != request.making:
            text = f"{request.object!r} would be made in another way than was shown"
        elif plan.doubtful or not plan.ids_consent:
            text = f"a copy into {request.object!r} would leave out or change something that was not shown"
        else:
            return
        raise ConfigurationError(text, hint="look at it again", code="plan-gone")

    return confirm
