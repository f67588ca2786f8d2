"""The tools that may change something: plans of changes, and the console."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import anyio
from msgspec import structs

from dragoman import Delete, Insert, Update
from dragoman_api import Json, Role
from dragoman_api.cells import as_bytes
from dragoman_api.errors import ConfigurationError, Refused

from . import schemas
from .answers import as_json, harmless, rows_within, shown_cell
from .failures import UNSAID

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from dragoman import Answer, Outcome, Plan, Session
    from dragoman_api import Column, ConsoleRequest
    from dragoman_api.changes import PlannedRequest

    from .failures import Helper
    from .open_sessions import OpenSessions
    from .rules import ConnectionRules
    from .tools import Reader

MOST_PLANS = 32
"""Plans that wait to be applied."""
MOST_REQUESTS = 100
"""Requests of one console text."""
QUESTION = 40_000
"""Characters of the requests that a question to a person shows."""


class Changer:
    """The tools that plan and send changes, those of the console, and exports.

    Attributes:
        folder: Where exports may be written; None for nowhere.
    """

    def __init__(self, sessions: OpenSessions, reader: Reader, *, folder: Path | None) -> None:
        self._sessions, self._reader, self.folder = sessions, reader, folder
        self._plans: OrderedDict[str, tuple[str, Plan]] = OrderedDict()

    async def question(self, call: object) -> str:
        """Return the exact requests of a call that writes, for a person to agree to; empty if it only reads.

        Raises:
            DragomanError: The rules do not allow it; or there is no such plan.
        """
        if isinstance(call, schemas.ApplyPlan):
            self._reader.rules_for(call.connection).check_power("write")
            requests = self._plan(call).requests
        elif isinstance(call, schemas.RunConsole):
            rules = self._reader.rules_for(call.connection)
            async with self._sessions.using(call.connection) as session:
                parsed = await self._parsed(session, rules, call)
                requests = [request.request for request in parsed if not rules.reads(request)]
        else:
            return ""
        return "\n\n".join(harmless(str(request)) for request in requests)

    def forget(self, call: object) -> None:
        """Drop the plan that a person has refused."""
        if isinstance(call, schemas.ApplyPlan):
            self._plans.pop(call.plan, None)

    def _plan(self, call: schemas.ApplyPlan) -> Plan:
        connection, plan = self._plans.get(call.plan, ("", None))
        if plan is None or connection != call.connection:
            reason = f"there is no plan {call.plan[:100]!r} for {call.connection}, or it was applied"
            raise ConfigurationError(reason, code="plan-gone", hint="plan the changes again")
        return plan

    async def plan_changes(self, call: schemas.PlanChanges, helper: Helper) -> schemas.ChangePlan:
        """Build the exact requests of changes; nothing is written."""
        rules = self._reader.rules_for(call.connection)
        rules.check_power("plan")
        async with self._sessions.using(call.connection) as session:
            changes = [await self._change(session, rules, change) for change in call.changes]
            plan = await session.plan(*changes)
            notes = helper.remarks(plan.notes)
            if rules.limits_columns:
                objects = {(c.object, False) if isinstance(c, Insert) else (c.key.object, True) for c in changes}
                for name, keyed in sorted(objects):
                    columns = await self._sessions.columns(session, name)
                    rules.check_requests(plan.requests, columns, keyed=keyed)
                # A driver's reason may hold a figure of a row that it read to plan the change.
                notes = [structs.replace(note, reason=UNSAID) for note in notes]
        requests = [_request_text(planned) for planned in plan.planned]
        size = sum(len(as_json(request).encode()) for request in requests)
        if size > (budget := rules.bytes_for()):
            reason = f"the requests have {size:,} bytes, and an answer that shows them all may have {budget:,}"
            raise Refused(reason, code="limit-exceeded", hint="plan fewer changes at a time")
        name = ""
        if plan.planned:
            name = f"p{secrets.token_urlsafe(6)}"
            self._plans[name] = call.connection, plan
            while len(self._plans) > MOST_PLANS:
                self._plans.popitem(last=False)
        return schemas.ChangePlan(
            notes=notes,
            plan=name,
            requests=requests,
            refusals=[self._outcome(call.connection, outcome, helper) for outcome in plan.refusals],
        )

    async def _change(
        self, session: Session, rules: ConnectionRules, change: schemas.RowChange
    ) -> Insert | Update | Delete:
        """Return a change as the host takes it.

        Raises:
            DragomanError: It lacks what its kind needs, or the rules do not allow it.
        """
        wrong = change.object is None if change.kind == "insert" else change.row is None
        surplus = change.row if change.kind == "insert" else change.object or change.id or change.tenant
        if wrong or surplus or (change.kind == "delete" and change.values):
            reason = "an insert names `object` and `values`; an update `row` and `values`; a delete `row` alone"
            raise ConfigurationError(reason, code="argument-invalid")
        if change.kind == "insert":
            object_name = str(change.object)
            await self._reader.check_object(session, rules, object_name)
        else:
            key = self._reader.key(rules.name, str(change.row))
            object_name = key.object
        if change.values and rules.limits_columns:
            columns: Iterable[Column] = await self._sessions.columns(session, object_name)
            rules.check_columns(change.values, [*columns])
        values = {name: _entered(value, column=name) for name, value in change.values.items()}
        if change.kind == "insert":
            return Insert(object_name, values, change.id, tenant=change.tenant)
        return Update(key, values) if change.kind == "update" else Delete(key)

    async def apply_plan(self, call: schemas.ApplyPlan, helper: Helper) -> schemas.AppliedPlan:
        """Send the requests of a plan, once."""
        self._reader.rules_for(call.connection).check_power("write")
        plan = self._plan(call)
        del self._plans[call.plan]
        async with self._sessions.using(call.connection) as session:
            outcomes = await session.apply(plan)
        return schemas.AppliedPlan(outcomes=[self._outcome(call.connection, outcome, helper) for outcome in outcomes])

    def _outcome(self, connection: str, outcome: Outcome, helper: Helper) -> schemas.ChangeOutcome:
        key = outcome.key
        return schemas.ChangeOutcome(
            change=outcome.change,
            status=outcome.status.value,
            reason=helper.text(outcome.reason),
            holds=outcome.holds,
            row="" if key is None or key.id in ("", b"") else self._reader.add_key(connection, key),
        )

    async def export_rows(self, call: schemas.ExportRows, helper: Helper) -> schemas.WrittenExport:
        """Export rows into a new file of the folder; they count as rows of this hour."""
        rules = self._reader.rules_for(call.connection)
        if self.folder is None:
            raise Refused("no folder is allowed for exports", code="not-allowed", hint="dragoman mcp --export-to DIR")
        path = self.folder / call.file
        if await anyio.Path(path).exists():
            raise ConfigurationError(f"there is a file {call.file!r} already", code="file-exists", hint="name another")
        async with self._sessions.using(call.connection) as session:
            columns = call.columns
            if rules.limits_columns:
                if call.format == "documents":
                    raise Refused("whole documents hold what is hidden from agents", code="not-allowed", hint="csv")
                described = await self._sessions.columns(session, call.object)
                visible = [
                    column.name
                    for column in described
                    if column.path
                    and column.role is not Role.SERVER
                    and not (rules.hides(column) or rules.masks(column))
                ]
                columns = visible if columns is None else columns
                rules.check_columns(columns, described)
            rows = await self._reader.chosen(session, rules, call, columns=columns)
            number = await rows.count() if rules.allowance.left()[0] is not None else 0
            left, _ = rules.allowance.left()
            if left is not None and number > left:
                reason = f"there are {number:,} rows, and this hour allows {left:,} more"
                raise Refused(reason, code="limit-exceeded", hint="filter more")
            rules.allowance.charge(rows=number, size=0)  # before another export takes them for its own
            result = await rows.export(path, format=call.format, manifest=False)
            rules.allowance.charge(rows=max(0, result.rows - number), size=0)
        return schemas.WrittenExport(
            notes=helper.remarks(result.notes),
            file=str(path),
            rows=result.rows,
            bytes=result.bytes,
            sha256=result.sha256,
        )

    async def _parsed(self, session: Session, rules: ConnectionRules, call: schemas.RunConsole) -> list[ConsoleRequest]:
        """Return the requests of a console text, if agents may send them. Raises Refused if they may not."""
        rules.check_console([])
        requests = await session.parse(call.text)
        if len(requests) > MOST_REQUESTS:
            reason = f"{len(requests):,} requests; {MOST_REQUESTS} are the most of one call"
            raise Refused(reason, code="too-many", hint="send fewer")
        rules.check_console(requests)
        return requests

    async def run_console(self, call: schemas.RunConsole, helper: Helper) -> schemas.ConsoleReplies:
        """Send the requests of a console text; all replies together are one answer."""
        rules = self._reader.rules_for(call.connection)
        budget, most_rows = rules.bytes_for(), rules.rows_for(10_000)
        replies: list[schemas.ConsoleReply] = []
        cut = 0
        async with self._sessions.using(call.connection) as session:
            for request in await self._parsed(session, rules, call):
                answer: Answer | None = await session.execute(request)
                while answer is not None:
                    reply = _reply(answer, helper, budget=budget, most_rows=most_rows)
                    budget -= len(as_json([reply.text, reply.rows]).encode())
                    most_rows -= len(reply.rows)
                    if answer.page is not None and not answer.text:
                        cut += len(answer.page.cells) - len(reply.rows)
                    replies.append(reply)
                    answer = answer.next
        reason = f"{cut:,} rows do not fit into the answer"
        notes = [schemas.Remark(code="answer-cut", reason=reason)] if cut else []
        return schemas.ConsoleReplies(notes=notes, replies=replies)


def _request_text(planned: PlannedRequest) -> str:
    """Return a request as an agent reads it: method and path, what it does if that is hard to read, and the body."""
    line, *body = str(planned.request).split("\n", 1)
    statement = f"   # {planned.statement}" if planned.statement else ""
    return harmless("\n".join([line + statement.replace("\n", " "), *body]))


def _reply(answer: Answer, helper: Helper, *, budget: int, most_rows: int) -> schemas.ConsoleReply:
    """Return one answer, as much of it as fits: its status alone, where nothing fits any more."""
    failed = helper.text(answer.failed)
    if answer.page is not None and not answer.text:
        cells = answer.page.cells[: most_rows if budget > 0 else 0]
        rows = [[shown_cell(cell, length=schemas.CELL) for cell in row] for row in cells]
        number, _ = rows_within(rows, budget)
        columns = [harmless(column.name) for column in answer.page.columns] if number else []
        return schemas.ConsoleReply(status=answer.status, columns=columns, rows=rows[:number], failed=failed)
    text = harmless(answer.text)
    part = text if budget > 0 else ""
    while len(part) > 1 and (size := len(as_json(part).encode())) > budget:
        part = part[: max(1, len(part) * budget // size - 1)]
    length = len(text) if len(part) < len(text) else 0
    return schemas.ConsoleReply(status=answer.status, text=part, length=length, failed=failed)


def _entered(value: Any, *, column: str) -> Any:
    """Return the value that an agent gives for a column, spelled as answers spell values.

    Raises:
        ConfigurationError: It is none (code ``value-invalid``).
    """
    if not isinstance(value, dict) or not any(name.startswith("$") for name in value):
        if value == {}:
            reason = f"{column}: a change cannot remove a field; null stores a null"
            raise ConfigurationError(reason, code="value-invalid")
        return value
    match value:
        case {"$integer": str(digits)} if len(value) == 1 and digits.removeprefix("-").isdecimal() and digits.isascii():
            return int(digits)
        case {"$decimal": str(digits)} if len(value) == 1:
            try:
                return Decimal(digits)
            except InvalidOperation:
                pass
        case {"$json": str(text)} if len(value) == 1:
            return Json(text)
        case {"$bytes": str(text)} if len(value) == 1:
            try:
                return as_bytes(text)
            except ValueError:
                pass
    raise ConfigurationError(f"{column}: this is no value that can be stored", code="value-invalid")
