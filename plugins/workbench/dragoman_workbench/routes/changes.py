"""Changes: planned as exact requests, reviewed, then sent as reviewed, once."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman import Delete, DragomanError, Drop, Filter, Insert, Plan, Update, undo_lines
from dragoman_api.columns import Role
from dragoman_api.errors import ConfigurationError
from dragoman_workbench.cells import answer_page, entered, key_text, read_key, spelled
from dragoman_workbench.messages.rows import Applied, OutcomeAnswer, Planned, RowAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman import Outcome
    from dragoman_workbench.downloads import Downloads
    from dragoman_workbench.messages.rows import ApplyAsked, ChangeEntry, PlanAsked, RowAsked
    from dragoman_workbench.open_connections import OpenConnections

    Change = Insert | Update | Delete | Drop

KEPT_SECONDS = 600.0
MAX_PLANS = 16
"""Plans that are kept; a further one replaces the oldest."""
UNDO_SECONDS = 3_600.0


@dataclass(frozen=True)
class _PendingPlan:
    connection: str
    plan: Plan
    until: float


class ChangeRoutes:
    """Routes that change rows and objects."""

    def __init__(self, connections: OpenConnections, downloads: Downloads) -> None:
        self._open, self._downloads = connections, downloads
        self._plans: dict[str, _PendingPlan] = {}

    async def plan(self, request: PlanAsked) -> Planned:
        """Plan changes; nothing is written."""
        session = await self._open.session(request.connection)
        changes = _changes(request)
        drops = any(isinstance(change, Drop) for change in changes)
        plan = await session.plan(*changes, undo=request.undo and not drops)
        number = secrets.token_urlsafe(16)
        while len(self._plans) >= MAX_PLANS:
            del self._plans[next(iter(self._plans))]
        self._plans[number] = _PendingPlan(request.connection, plan, time.monotonic() + KEPT_SECONDS)
        return Planned(
            plan=number,
            steps=plan.planned,
            refusals=[*map(_outcome, plan.refusals)],
            notes=plan.notes,
            undoable=bool(plan.undo),
        )

    async def apply(self, request: ApplyAsked) -> Applied:
        """Send a plan, once, whatever becomes of the answer."""
        pending = self._plans.pop(request.plan, None)
        if pending is None or pending.connection != request.connection or pending.until < time.monotonic():
            hint = "review the changes again"
            raise ConfigurationError("this plan was sent already, or is too old", hint=hint, code="plan-gone")
        session = await self._open.session(request.connection)
        outcomes = await session.apply(pending.plan)
        lines = undo_lines(pending.plan, outcomes=outcomes)
        name = f"undo-{request.connection}-{time.strftime('%Y%m%d-%H%M%S')}.ndjson"
        undo = self._downloads.offer_bytes(lines, file=name, seconds=UNDO_SECONDS) if lines else ""
        return Applied(outcomes=[*map(_outcome, outcomes)], undo=undo)

    async def row(self, request: RowAsked) -> RowAnswer:
        """Return a row as it is now."""
        session = await self._open.session(request.connection)
        key = read_key(request.key)
        described = await session.describe(key.object)
        names = [column.name for column in described.columns if column.role is Role.KEY]
        parts = key.id if isinstance(key.id, list) else [key.id]
        if len(names) != len(parts):
            reason = f"the rows of {key.object} cannot be found by their key"
            raise DragomanError(reason, code="operation-not-supported")
        filters = [Filter(name, "=", _text(part)) for name, part in zip(names, parts, strict=True)]
        tenant = key.routing if "tenants" in session.capabilities else None
        page = await session.rows(key.object, filters=filters, tenant=tenant).page(limit=2, total=False)
        rows = answer_page(page, seconds=0).rows
        matches = [row for row in rows if row.key is not None and read_key(row.key).id == key.id]
        return RowAnswer(columns=page.columns, row=matches[0] if matches else None)


def _text(part: str | int | bytes) -> str:
    return spelled(part) if isinstance(part, bytes) else str(part)


def _changes(request: PlanAsked) -> Sequence[Change]:
    """Return the changes of a request.

    Raises:
        ConfigurationError: One is incomplete, or a drop is not alone or lacks the typed name of its object.
    """
    if any(entry.kind == "drop" for entry in request.changes):
        [first, *others] = request.changes
        if others:
            raise ConfigurationError("a drop stands alone: send the other changes first")
        if not first.object or request.typed != first.object:
            raise ConfigurationError(f"type the name of the object to drop it: {first.object}", code="name-not-typed")
    return [_change(number, entry) for number, entry in enumerate(request.changes)]


def _change(number: int, entry: ChangeEntry) -> Change:
    try:
        values = {name: entered(cell, column=name) for name, cell in entry.values.items()}
        match entry.kind:
            case "insert":
                return Insert(entry.object, values, id=entry.id, replace=entry.replace, tenant=entry.tenant)
            case "update":
                return Update(read_key(entry.key), values)
            case "delete":
                return Delete(read_key(entry.key))
        return Drop(entry.object)
    except ConfigurationError as error:
        error.details["row"] = number
        raise


def _outcome(outcome: Outcome) -> OutcomeAnswer:
    return OutcomeAnswer(
        change=outcome.change,
        status=outcome.status.value,
        id="" if outcome.id is None else spelled(outcome.id),
        reason=outcome.reason,
        key=None if outcome.key is None else key_text(outcome.key),
    )
