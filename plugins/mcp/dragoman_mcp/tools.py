"""What each tool does: reads of sessions, within the rules of their connection."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dragoman import Filter, RowKey, Rows, RowSelection, Sort, Span
from dragoman_api import Note, Role
from dragoman_api.errors import ConfigurationError
from dragoman_api.wording import quoted

from . import schemas
from .answers import MASKED, Handles, as_json, harmless, is_shown_cut, rows_within, shown_cell, whole_text
from .failures import bounded
from .rules import matches

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dragoman import Page, Runtime, Session
    from dragoman_api import Cell, Column, Object

    from .failures import Helper
    from .open_sessions import OpenSessions
    from .rules import ConnectionRules

MOST_ROWS = 50_000
"""Rows whose handles are kept."""
MOST_CURSORS = 64
"""Answers that can be continued."""
_ESCAPED = 8  # bytes of one character of a cell, at most about
LEVEL = 1_000
"""Objects of one request for a list."""
MOST_PARTS = 100
"""Requests for one list: a server may say without end that there is more."""


class _Rest(NamedTuple):
    """What an answer did not hold: the rest of its page, and where the page after it begins.

    Attributes:
        choice: The rows as the call chose them.
        selection: The same rows for further pages, of the same instant.
        cursor: Where the next page begins; or `offset`, for a driver that has no cursors. Both are None at the end.
    """

    choice: RowSelection
    selection: RowSelection
    columns: list[str]
    rows: list[list[Any]]
    keys: list[str]
    cursor: str | None
    offset: int | None
    total: int | None
    total_exact: bool


class Reader:
    """The tools that read.

    Attributes:
        rules: The connections that agents may use, with their rules.
    """

    def __init__(self, runtime: Runtime, sessions: OpenSessions, rules: Mapping[str, ConnectionRules]) -> None:
        self._runtime, self._sessions, self.rules = runtime, sessions, rules
        self._keys = Handles[RowKey](MOST_ROWS, letter="r")
        self._rests = Handles[_Rest](MOST_CURSORS, letter="c")

    def rules_for(self, connection: str) -> ConnectionRules:
        """Return the rules of a connection.

        Raises:
            ConfigurationError: Agents may not use it, whether or not it exists.
        """
        if (rules := self.rules.get(connection)) is None:
            reason = f"{quoted(connection[:200])} is no connection that agents may use"
            raise ConfigurationError(reason, code="connection-unknown", hint="list_connections names those")
        return rules

    def key(self, connection: str, row: str) -> RowKey:
        """Return the key that a handle stands for. Raises ConfigurationError if it stands for none."""
        return self._keys.get(connection, row)

    def add_key(self, connection: str, key: RowKey) -> str:
        """Return a handle of a row."""
        return self._keys.add(connection, key)

    async def list_connections(self, _call: schemas.ListConnections, _helper: Helper) -> schemas.ServedConnections:
        """List what agents may use."""
        served = []
        for name, rules in self.rules.items():
            rows_left, bytes_left = rules.allowance.left()
            served.append(
                schemas.ServedConnection(
                    name=name, type=rules.type, allow=rules.power, rows_left=rows_left, bytes_left=bytes_left
                )
            )
        return schemas.ServedConnections(connections=served)

    async def find_drivers(self, call: schemas.FindDrivers, _helper: Helper) -> schemas.FoundDrivers:
        """Find drivers that the registries offer."""
        listings = await self._runtime.plugins.browse(call.words)
        return schemas.FoundDrivers(
            drivers=[
                schemas.FoundDriver(
                    id=bounded(listing.id),
                    label=bounded(listing.label),
                    types=[*map(bounded, listing.types)],
                    version=bounded(listing.version),
                    state=listing.state,
                    summary=bounded(listing.summary),
                )
                for listing in listings[: call.limit]
            ],
            total=len(listings),
        )

    async def list_objects(self, call: schemas.ListObjects, helper: Helper) -> schemas.ObjectPage:
        """List the objects of one level whose names match a pattern."""
        rules = self.rules_for(call.connection)
        limit = rules.rows_for(call.limit)
        async with self._sessions.using(call.connection) as session:
            if call.parent is not None:
                await self.check_object(session, rules, call.parent)
            listed, notes = await self._level(session, rules, pattern=call.pattern, parent=call.parent)
        listing = [
            schemas.ListedObject(
                name=harmless(item.name),
                rows=item.rows,
                size=item.size,
                kind="" if item.kind == "table" else harmless(item.kind),
                branch=item.branch,
                state=harmless(item.state.word) if item.state else "",
            )
            for item in listed[call.start : call.start + limit]
        ]
        following = call.start + len(listing)
        return schemas.ObjectPage(
            notes=helper.remarks(notes),
            objects=listing,
            total=len(listed),
            next=following if following < len(listed) else None,
        )

    async def _level(
        self, session: Session, rules: ConnectionRules, *, pattern: str, parent: str | None
    ) -> tuple[list[Object], list[Note]]:
        """Return all objects of one level that agents see and that match a pattern."""
        contains = max(pattern.replace("?", "*").split("*"), key=len)
        listed: list[Object] = []
        notes: list[Note] = []
        cursor: str | None = None
        for _ in range(MOST_PARTS):
            part = await session.objects(parent=parent, contains=contains, cursor=cursor, limit=LEVEL)
            listed += [item for item in part if rules.sees(item.name) and matches(item.name, pattern)]
            notes += [note for note in part.notes if note not in notes]
            cursor = part.next
            if cursor is None:
                return listed, notes
        reason = f"only the first {MOST_PARTS * LEVEL:,} objects were looked at"
        return listed, [*notes, Note(code="objects-cut", reason=reason)]

    async def check_object(self, session: Session, rules: ConnectionRules, name: str) -> None:
        """Refuse an object that agents do not see: where objects are limited, its very name must have been listed.

        Raises:
            ObjectNotFoundError: It does not exist for agents.
        """
        if not rules.limits_objects or rules.is_listed(name):
            return
        await self._level(session, rules, pattern=name, parent=None)
        if not rules.is_listed(name):
            raise rules.no_such_object(name)

    async def describe_object(self, call: schemas.DescribeObject, helper: Helper) -> schemas.ObjectDescription:
        """Describe the columns of an object whose names match a pattern."""
        rules = self.rules_for(call.connection)
        limit = rules.rows_for(call.limit)
        async with self._sessions.using(call.connection) as session:
            await self.check_object(session, rules, call.object)
            description = await session.describe(call.object)
        seen = [column for column in description.columns if not rules.hides(column)]
        hidden = {column.name for column in description.columns} - {column.name for column in seen}
        matching = [column for column in seen if matches(column.name, call.columns)]
        operator_sets: list[list[str]] = []
        listing = []
        for column in matching[call.start : call.start + limit]:
            operators = [str(operator) for operator in column.operators]
            if operators not in operator_sets:
                operator_sets.append(operators)
            listing.append(
                schemas.ShownColumn(
                    name=harmless(column.name),
                    type=harmless(column.type),
                    kind="" if column.kind == column.type else str(column.kind),
                    operators=operator_sets.index(operators),
                    sortable=column.sortable,
                    repeated=column.repeated,
                    role=column.role.value,
                    written=column.written.value,
                    dimensions=column.dimensions,
                    masked=rules.masks(column),
                )
            )
        following = call.start + len(listing)
        time = description.time
        return schemas.ObjectDescription(
            notes=helper.remarks(description.notes, hidden),
            columns=listing,
            operator_sets=operator_sets,
            total=len(matching),
            time_column=None if time is None or time.column in hidden else harmless(time.column),
            next=following if following < len(matching) else None,
        )

    async def explain_rows(self, call: schemas.ExplainRows, _helper: Helper) -> schemas.FilterExplanation:
        """Say how each filter row would run."""
        rules = self.rules_for(call.connection)
        async with self._sessions.using(call.connection) as session:
            compiled = await (await self.chosen(session, rules, call)).explain()
        return schemas.FilterExplanation(
            rows=[
                schemas.ExplainedRow(
                    clause=bounded(explanation.clause),
                    exact=explanation.exact,
                    approximations=[bounded(text) for text in (*explanation.approximations, *explanation.unlikely)],
                )
                for explanation in compiled.rows
            ]
        )

    async def count_rows(self, call: schemas.CountRows, helper: Helper) -> schemas.RowCount:
        """Count rows."""
        rules = self.rules_for(call.connection)
        async with self._sessions.using(call.connection) as session:
            number = await (await self.chosen(session, rules, call)).count()
        notes = [note for note in number.notes if note.code != "time-window"]
        return schemas.RowCount(notes=helper.remarks(number.notes), rows=int(number), exact=not notes)

    async def read_rows(self, call: schemas.ReadRows, helper: Helper) -> schemas.RowPage:
        """Read rows, as many as the budget holds."""
        rules = self.rules_for(call.connection)
        limit, budget = rules.rows_for(call.limit), rules.bytes_for()
        async with self._sessions.using(call.connection) as session:
            rows = await self.chosen(session, rules, call, columns=call.columns, sort=call.sort)
            if call.cursor is None:
                page = await rows.page(limit=limit)
                return self._answer(call, page, rows.selection, helper, budget=budget)
            rest = self._rests.get(call.connection, call.cursor)
            if rest.choice != rows.selection:
                reason = "the cursor belongs to another choice of rows"
                raise ConfigurationError(reason, hint="repeat the arguments of the call that returned it")
            if rest.rows:
                return self._within(call.connection, rest, [], limit=limit, budget=budget)
            rows = session.select(rest.selection)
            page = await rows.page(limit=limit, offset=rest.offset or 0, cursor=rest.cursor, total=False)
        page = msgspec.structs.replace(page, total=rest.total, total_exact=rest.total_exact)
        return self._answer(call, page, rest.choice, helper, budget=budget)

    async def similar_rows(self, call: schemas.FindSimilar, helper: Helper) -> schemas.RowPage:
        """Find the rows nearest to a row, a vector or a text."""
        rules = self.rules_for(call.connection)
        if sum(origin is not None for origin in (call.row, call.vector, call.text)) != 1:
            raise ConfigurationError("rows are similar to exactly one of row, vector and text")
        limit, budget = rules.rows_for(call.limit), rules.bytes_for()
        key = None if call.row is None else self._keys.get(call.connection, call.row)
        async with self._sessions.using(call.connection) as session:
            rows = await self.chosen(session, rules, call, columns=call.columns)
            column = call.column
            if rules.limits_columns:
                column = _origin(rules, await self._sessions.columns(session, call.object), column)
            page = await rows.similar(key, vector=call.vector, text=call.text, column=column, limit=limit)
        return self._answer(call, page, rows.selection, helper, budget=budget, whole=True)

    async def read_cell(self, call: schemas.ReadCell, _helper: Helper) -> schemas.CellText:
        """Read the value of one cell, from a character on."""
        rules = self.rules_for(call.connection)
        rules.rows_for(1)
        key = self._keys.get(call.connection, call.row)
        async with self._sessions.using(call.connection) as session:
            if rules.limits_columns:
                rules.check_columns([call.column], await self._sessions.columns(session, key.object))
            value = await session.rows(key.object).cell(key, call.column)
        kind, text = whole_text(value)
        part, budget = text[call.start : call.start + call.length], rules.bytes_for()
        while len(part) > 1 and (size := len(as_json(harmless(part)).encode())) > budget:
            part = part[: max(1, len(part) * budget // size - 1)]
        following = call.start + len(part)
        return schemas.CellText(
            kind=kind, text=harmless(part), length=len(text), next=following if following < len(text) else None
        )

    async def summarize_column(self, call: schemas.SummarizeColumn, helper: Helper) -> schemas.SummaryAnswer:
        """Summarize a column."""
        rules = self.rules_for(call.connection)
        most_values = rules.rows_for(max(1, call.values))
        async with self._sessions.using(call.connection) as session:
            rows = await self.chosen(session, rules, call, decisive=[call.column])
            summary = await rows.summarize(call.column, values=min(call.values, most_values), buckets=call.buckets)
        cell = _cells(schemas.CELL)
        return schemas.SummaryAnswer(
            notes=helper.remarks(summary.notes),
            rows=summary.rows,
            missing=summary.missing,
            values=[[cell(item.value), item.rows] for item in summary.values],
            distinct=summary.distinct,
            minimum=cell(summary.minimum),
            maximum=cell(summary.maximum),
            buckets=[[cell(bucket.lower), cell(bucket.upper), bucket.rows] for bucket in summary.buckets],
            approximate={str(figure): bounded(reason) for figure, reason in summary.approximate.items()},
            absent={str(figure): bounded(reason) for figure, reason in summary.absent.items()},
        )

    async def chosen(
        self,
        session: Session,
        rules: ConnectionRules,
        choice: schemas.ChosenRows,
        *,
        columns: Sequence[str] | None = None,
        sort: Sequence[schemas.SortKey] = (),
        decisive: Sequence[str] = (),
    ) -> Rows:
        """Return the rows that a call chooses, if the rules let it.

        Raises:
            DragomanError: The rules hide what it names.
        """
        await self.check_object(session, rules, choice.object)
        if choice.raw:
            rules.check_raw("a filter in the server's syntax")
        if rules.limits_columns:
            description = await self._sessions.described(session, choice.object)
            if choice.since is not None or choice.until is not None:
                rules.check_span(description)
            described = description.columns
            filtering = [row.column for row in choice.filters]
            rules.check_columns([*filtering, *(key.column for key in sort), *decisive], described)
            rules.check_columns(columns or (), described, readable=False)
            if columns is None:
                columns = [column.name for column in described if not rules.hides(column)]
        return session.rows(
            choice.object,
            filters=[Filter(row.column, row.operator, row.value, row.group, row.case) for row in choice.filters],
            match=choice.match,
            raw=choice.raw,
            sort=[Sort(key.column, descending=key.descending) for key in sort],
            columns=columns,
            tenant=choice.tenant,
            span=Span(since=choice.since, until=choice.until, all_time=choice.all_time),
        )

    def _answer(
        self,
        call: schemas.ReadRows | schemas.FindSimilar,
        page: Page,
        selection: RowSelection,
        helper: Helper,
        *,
        budget: int,
        whole: bool = False,
    ) -> schemas.RowPage:
        """Return a page as an agent sees it: no hidden columns, no masked values, no more than the budget."""
        rules = self.rules_for(call.connection)
        last = len(page.columns) - 1 if whole else None  # the distance, which a driver adds
        left_out = {Role.SERVER} if call.columns is None else set()
        hidden = {column.name for column in page.columns if rules.hides(column)}
        places = [
            place
            for place, column in enumerate(page.columns)
            if place == last or not (column.role in left_out or column.name in hidden)
        ]
        masked = [rules.masks(page.columns[place]) for place in places]

        def shown(row: Sequence[Cell], length: int) -> list[Any]:
            cell = _cells(length)
            return [MASKED if covered else cell(row[place]) for place, covered in zip(places, masked, strict=True)]

        rows = [shown(row, call.cell_length) for row in page.cells]
        length = call.cell_length
        while length > 1 and len(places) * length > budget // _ESCAPED:  # else no row alone is longer than the budget
            length //= 2
            rows = [
                shown(stored, length) if len(as_json(row).encode()) > budget else row
                for row, stored in zip(rows, page.cells, strict=True)
            ]
        row_keys = [key if key.id not in ("", b"") else None for key in page.keys]
        keys = [self._keys.add(call.connection, key) for key in row_keys] if any(row_keys) else []
        following = page.offset + len(rows)
        goes_on = page.next is not None or (page.total is not None and following < page.total and bool(rows))
        rest = _Rest(
            choice=selection,
            selection=msgspec.structs.replace(
                selection,
                now=datetime.fromisoformat(page.now) if page.now else None,
                span=Span.of(page.time) if page.time is not None else selection.span,
            ),
            columns=[harmless(page.columns[place].name) for place in places],
            rows=rows,
            keys=keys,
            cursor=page.next,
            offset=following if goes_on and page.next is None else None,
            total=page.total,
            total_exact=page.total_exact,
        )
        if whole:
            rest = rest._replace(cursor=None, offset=None)
        remarks = helper.remarks(page.notes, hidden)
        return self._within(call.connection, rest, remarks, limit=len(rows), budget=budget)

    def _within(
        self, connection: str, rest: _Rest, notes: list[schemas.Remark], *, limit: int, budget: int
    ) -> schemas.RowPage:
        """Return the first rows of what is left that fit into a budget, and a cursor to go on."""
        number, _ = rows_within(rest.rows[:limit], budget)
        page_rows, keys = rest.rows[:number], rest.keys[:number]
        left = rest._replace(rows=rest.rows[number:], keys=rest.keys[number:])
        following = None
        if left.rows or left.cursor is not None or left.offset is not None:
            following = self._rests.add(connection, left)
        if number < len(rest.rows[:limit]):
            reason = f"{number} of {len(rest.rows[:limit])} rows fit into the {budget:,} bytes of an answer"
            call = schemas.ToolCall(why="choose few columns, or go on with `next`")
            notes = [schemas.Remark(code="answer-cut", reason=reason, calls=[call]), *notes]
        cut = sorted({rest.columns[place] for row in page_rows for place, cell in enumerate(row) if is_shown_cut(cell)})
        if cut:
            first = next((at for at, row in enumerate(page_rows) if any(map(is_shown_cut, row))), 0)
            place = next(place for place, cell in enumerate(page_rows[first]) if is_shown_cut(cell))
            arguments = {"connection": connection, "row": keys[first] if keys else "", "column": rest.columns[place]}
            call = schemas.ToolCall(why="read a whole value", tool="read_cell", arguments=arguments)
            reason = f"long values are cut: {', '.join(cut[:20])}"
            notes = [*notes, schemas.Remark(code="values-cut", reason=reason, calls=[call])]
        return schemas.RowPage(
            notes=notes,
            columns=rest.columns,
            rows=page_rows,
            first_key=keys[0] if keys else "",
            total=None if following is None and rest.total == number else rest.total,
            total_exact=rest.total_exact,
            next=following,
        )


def _cells(length: int) -> Callable[[Cell], Any]:
    """Return what shows cells of at most so many characters."""
    return lambda cell: shown_cell(cell, length=length)


def _origin(rules: ConnectionRules, columns: Sequence[Column], name: str | None) -> str:
    """Return the column of vectors that a call means, where rules limit columns.

    Raises:
        DragomanError: Agents do not see it, it holds no vectors, or the call names none and there are several.
    """
    vectors = [column.name for column in columns if column.dimensions is not None and not rules.hides(column)]
    hint = "describe_object lists columns; those of vectors have dimensions"
    if name is None and len(vectors) != 1:
        reason = f"there are {len(vectors)} columns of vectors, and the call names none"
        raise ConfigurationError(reason, hint=hint)
    column = vectors[0] if name is None else name
    around = [vector for vector in vectors if f"{column}.".startswith(f"{vector}.")]
    rules.check_columns(around or [column], columns)
    if not around:
        raise ConfigurationError(f"{quoted(column[:200])} is no column of vectors", hint=hint)
    return column
