"""Calls of a driver, and what their answers must be."""

from __future__ import annotations

import functools
from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

from dragoman_api import (
    CellRequest,
    CountRequest,
    Delete,
    DragomanError,
    ExportRequest,
    Filter,
    FilterNotSupportedError,
    FilterRequest,
    Insert,
    OutcomeStatus,
    PageRequest,
    Sort,
    TimeRange,
    UnsupportedOperationError,
    Update,
)
from dragoman_api import Operator as Op
from dragoman_api.cells import is_cut
from dragoman_api.errors import QueryError
from dragoman_api.exports import ExportForm
from dragoman_api.summaries import SummaryRequest

from . import summaries
from .columns import NEGATED, Column, Date, Maybe, MisfitError, every, some
from .documents import MISSING, alike
from .readings import Said, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dragoman_api import CompiledFilter, Page
    from dragoman_api.grid import RowKey

KINDS = {"page": 50, "count": 12, "export": 12, "summary": 12, "cell": 8, "update": 10, "insert": 4, "delete": 4}
"""Kinds of calls, and how often each is made."""

CHANGES = ("update", "insert", "delete")


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call: a page (to the end of its result), a count, an export, a summary, a cell, or a change and its result.

    Attributes:
        kind: One of `KINDS`.
        object: The name it is made for.
        rows: Filter rows.
        match: Whether all must hold, or any.
        sort: Sort keys of a page.
        limit: Rows of each page.
        offset: Where the first page begins.
        form: Of an export.
        id: The row of a cell or a change.
        values: What a change writes: the value that is given, and the one that is stored.
        column: Of a cell or a summary.
        most: Of a summary: the values and the buckets that are asked for.
        tenant: The tenant, where there are any.
        time: The range of time, where the object has a time column.
    """

    kind: str
    object: str
    rows: tuple[Filter, ...] = ()
    match: str = "all"
    sort: tuple[Sort, ...] = ()
    limit: int = 10
    offset: int = 0
    form: ExportForm = ExportForm.ROWS
    id: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    column: str = ""
    most: tuple[int, int] = (0, 0)
    tenant: str | None = None
    time: TimeRange | None = None

    def __str__(self) -> str:
        rows = f" {f' {self.match} '.join(map(_shown, self.rows))}" if self.rows else ""
        keys = [("-" if each.descending else "") + each.column for each in self.sort]
        more = {
            "page": f" sort={keys} limit={self.limit} offset={self.offset}",
            "export": f" form={self.form}",
            "cell": f" id={self.id} column={self.column}",
            "summary": f" column={self.column} most={self.most}",
        }.get(self.kind, f" id={self.id} values={self.values}" if self.id else "")
        tenant = f" tenant={self.tenant}" if self.tenant else ""
        time = f" {self.time.column} from {self.time.since} until {self.time.until}" if self.time else ""
        return f"{self.kind} {self.object}{tenant}{rows}{time}{more}"


def _shown(row: Filter) -> str:
    more = "" if row.value is None else f" {row.value!r}"
    more += f" @{row.group}" if row.group else ""
    return f"[{row.column} {row.op}{more}{'' if row.case is None else f' case={row.case}'}]"


@dataclass(frozen=True, kw_only=True)
class Stored:
    """One row of a world.

    Attributes:
        object: The index or collection that holds it.
        id: Its key.
        text: The document as it was sent.
        value: The document, parsed.
        columns: The columns of its index or collection, by name.
        tenant: Its tenant.
        odd: Its text is JSON with comments, which only the server's own parser reads.
        element: It is an element of a nested array.
    """

    object: str
    id: str
    text: str
    value: Any
    columns: dict[str, Column]
    tenant: str | None = None
    odd: bool = False
    element: bool = False


class World(Protocol):
    """Mappings and documents on a server, and what only a driver's own kind of server knows."""

    rows: list[Stored]
    tells_missing: bool

    def columns(self, name: str) -> list[Column]:
        """Return the columns of all that a name covers; two may have one name."""
        ...

    def held(self, row: Stored, column: Column) -> Any:
        """Return what a row holds in a column, as its cell shows it; MISSING for nothing."""
        ...

    def scalars(self, row: Stored, column: Column) -> list[Any]:
        """Return the scalars that a row holds in a column."""
        ...

    def elements(self, row: Stored, array: str) -> list[Stored]:
        """Return each element of a nested array as a row of its own."""
        ...

    def same(self, cell: Any, value: Any) -> bool:
        """Tell whether a cell shows a stored value."""
        ...

    def key(self, row: Stored) -> RowKey:
        """Return the key of a row, for a cell."""
        ...

    def targets(self, name: str, tenant: str | None) -> list[Stored]:
        """Return the rows that a name covers."""
        ...

    def time_column(self, name: str) -> str:
        """Return the time column that the driver describes; empty for none."""
        ...

    def of_line(self, form: ExportForm, lines: Sequence[bytes], rows: Sequence[Stored]) -> Counter[str]:
        """Return the keys of exported rows, each with what is wrong with it."""
        ...

    def wrong_document(
        self, row: Stored, got: Any, values: dict[str, Any], *, rewritten: bool
    ) -> tuple[str, Any] | None:
        """Return the column whose value is wrong after a change, and its right value; None for a right document.

        Args:
            row: The row before.
            got: Its document now.
            values: What must be stored now, by column.
            rewritten: The plan said that untouched numbers may change their digits.
        """
        ...

    def nulls_first(self, *, descending: bool) -> bool:
        """Tell where rows without a value are in a sort."""
        ...

    async def document(self, rig: Any, key: RowKey) -> Any:
        """Read a document past the driver, parsed; None where there is none."""
        ...

    async def restore(self, rig: Any) -> None:
        """Make the rows what they were before a change."""
        ...


class DifferenceError(Exception):
    """An answer that is not what the stored documents say."""

    def __init__(
        self,
        kind: str,
        expected: object,
        got: object,
        *,
        said: Sequence[Said] = (),
        notes: Sequence[Any] = (),
        column: str = "",
    ) -> None:
        super().__init__(f"{kind}: expected {expected}, got {got}")
        self.kind, self.expected, self.got, self.said, self.notes = kind, expected, got, said, notes
        self.column = column


@dataclass
class Tally:
    """What a run saw."""

    kinds: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)


async def check(rig: Any, world: World, call: Call, tally: Tally) -> None:
    """Make a call, and compare its answer with what the stored documents say.

    Raises:
        DifferenceError: It differs.
    """
    tally.kinds[call.kind] += 1
    if call.kind in CHANGES:
        try:
            await _changed(rig, world, call, tally)
        finally:
            await world.restore(rig)
        return
    if call.kind == "cell":
        await _cell(rig, world, call)
        return
    if call.time is not None and world.time_column(call.object) != call.time.column:
        call = replace(call, time=None)
    try:
        compiled, said = await _compiled(rig, call)
    except FilterNotSupportedError as refusal:
        if not str(refusal.details.get("reason", "")).strip():
            raise DifferenceError("refusal", "a reason", refusal.details) from None
        tally.answers["refused"] += 1
        return
    for each in said:
        tally.unread.update(each.unread)
        tally.answers["exact" if each.exact else "approximate"] += 1
    rows = world.targets(call.object, call.tenant)
    misfit = _misfit(world, call, said)
    if misfit:  # no row holds such a value
        nothing = len(call.rows) == 1 and call.rows[0].op not in NEGATED
        judged = dict.fromkeys([(row.object, row.id) for row in rows], False if nothing else None)
    else:
        judged = {(row.object, row.id): judge(world, call, row, said) for row in rows}
    if call.time is not None:
        tally.answers["time range"] += 1
        judged = {
            (row.object, row.id): every([judged[row.object, row.id], _within(world, row, call.time)]) for row in rows
        }
    try:
        await {"page": _pages, "count": _count, "export": _export, "summary": _summary}[call.kind](
            rig, world, call, compiled, judged, said, rows
        )
    except UnsupportedOperationError as refusal:
        if call.kind != "summary" or not refusal.message.strip():
            raise
        tally.answers["summary refused"] += 1
    except QueryError as error:
        if not misfit:
            raise DifferenceError("error", "an answer", f"{type(error).__name__}: {error}", said=said) from None
        tally.answers["refused by the server"] += 1


def _misfit(world: World, call: Call, said: Sequence[Said]) -> bool:
    """Tell whether a filter row has a value that a column cannot have."""
    columns = world.columns(call.object)
    for each, explained in zip(call.rows, said, strict=True):
        for column in columns:
            if column.name == each.column:
                try:
                    column.holds(each, [], explained)
                except MisfitError:
                    return True
    return False


async def _compiled(rig: Any, call: Call) -> tuple[CompiledFilter | None, list[Said]]:
    if not call.rows:
        return None, []
    request = FilterRequest(object=call.object, rows=list(call.rows), match=call.match)
    compiled = await rig.driver.compile_filter(request)
    if [each.row for each in compiled.rows] != [*range(len(call.rows))]:
        raise DifferenceError("explanations", f"{len(call.rows)} in order", [each.row for each in compiled.rows])
    for each in compiled.rows:
        if not each.exact and not all(map(str.strip, [*each.approximations, *each.unlikely] or [""])):
            raise DifferenceError("explanations", "a reason for what is approximate", each)
        if not each.clause:
            raise DifferenceError("explanations", "the clause that is sent", each)
    return compiled, list(map(read, compiled.rows))


def judge(world: World, call: Call, row: Stored, said: Sequence[Said]) -> Maybe:
    """Tell whether a row is in the result of a filter."""
    join = some if call.match == "any" and call.rows else every
    groups: dict[tuple[str, str], list[int]] = {}
    answers: list[Maybe] = []
    for number, each in enumerate(call.rows):
        column = row.columns.get(each.column)
        if each.group and column is not None and column.nested:
            groups.setdefault((each.group, column.nested), []).append(number)
        else:
            answers.append(_one(world, row, each, said[number]))
    for (_, array), numbers in groups.items():
        if len(numbers) == 1:
            answers.append(_one(world, row, call.rows[numbers[0]], said[numbers[0]]))
            continue
        elements = world.elements(row, array)
        answers.append(
            some([join([_one(world, each, call.rows[at], said[at]) for at in numbers]) for each in elements])
        )
    return join(answers)


def _one(world: World, row: Stored, each: Filter, said: Said) -> Maybe:
    column = row.columns.get(each.column)
    if said.unread:
        return None
    if column is None:  # an index behind the name does not map it
        return each.op in (*NEGATED, Op.NULL)
    if column.nested and each.op is Op.NOT_EMPTY and not row.element:  # one element is enough
        elements = world.elements(row, column.nested)
        return some([column.holds(each, world.scalars(element, column), said) for element in elements])
    return column.holds(each, world.scalars(row, column), said)


def _within(world: World, row: Stored, time: TimeRange) -> bool:
    """Tell whether a row has an instant in a range of time."""
    column = row.columns.get(time.column)
    if not isinstance(column, Date):
        return False
    since, until = (None if each is None else column.instant(each) for each in (time.since, time.until))
    return any(
        (since is None or since <= value) and (until is None or value < until)
        for value in column.read(world.scalars(row, column))
    )


Judged = dict[tuple[str, str], Maybe]


async def _pages(
    rig: Any, world: World, call: Call, compiled: Any, judged: Judged, said: Sequence[Said], rows: Sequence[Stored]
) -> None:
    found: list[tuple[str, str]] = []
    by_key = {(row.object, row.id): row for row in rows}
    notes: list[Any] = []
    total: int | None = None
    while True:
        request = PageRequest(
            object=call.object,
            filter=compiled,
            sort=list(call.sort),
            offset=call.offset + len(found),
            limit=call.limit,
            tenant=call.tenant,
            time=call.time,
        )
        page: Page = await rig.driver.fetch_page(request)
        notes += page.notes
        if page.total is None or not page.total_exact:
            raise DifferenceError("total", "an exact total", (page.total, page.total_exact), said=said, notes=notes)
        total = page.total
        keys = [(key.object, key.id) for key in page.keys]
        _cells(world, by_key, page, keys, notes)
        found += keys
        if len(keys) < call.limit:
            break
        if len(found) > len(rows) + call.limit:
            raise DifferenceError("rows", "an end", found, said=said, notes=notes)
    if twice := [key for key, times in Counter(found).items() if times > 1]:
        raise DifferenceError("rows", "each row once", f"twice: {twice}", said=said, notes=notes)
    if call.offset == 0:
        _set(judged, found, said, notes)
        if total != len(found):
            raise DifferenceError("total", len(found), total, said=said, notes=notes)
    elif stray := [key for key in found if key not in judged or judged[key] is False]:
        raise DifferenceError("rows", "only rows of the filter", stray, said=said, notes=notes)
    if None not in judged.values():
        wanted = sum(map(bool, judged.values()))
        if len(found) != max(0, wanted - call.offset) or total != wanted:
            raise DifferenceError("rows", (wanted, call.offset), (len(found), total), said=said, notes=notes)
    _order(world, call, [by_key[key] for key in found], notes)


def _set(judged: Judged, found: Iterable[tuple[str, str]], said: Sequence[Said], notes: Sequence[Any] = ()) -> None:
    got = set(found)
    lost = sorted(key for key, holds in judged.items() if holds and key not in got)
    stray = sorted(key for key in got if judged.get(key, False) is False)
    if lost or stray:
        raise DifferenceError(
            "rows", f"also {lost}" if lost else f"without {stray}", sorted(got), said=said, notes=notes
        )


def _order(world: World, call: Call, rows: Sequence[Stored], notes: Sequence[Any]) -> None:
    """Compare the order of rows with their sort keys; a dropped key must be noted."""
    dropped = {note.column for note in notes if note.code == "sort-dropped"}
    hidden = {note.column for note in notes if note.code == "value-not-indexed"}  # they have no place in a sort
    approximate = {note.column for note in notes if note.code == "sort-approximate"}
    keys = [each for each in call.sort if each.column not in dropped]
    indices = max(Counter(column.name for column in world.columns(call.object)).values())
    for each in call.sort:
        able = [column.sortable for column in world.columns(call.object) if column.name == each.column]
        if each.column in dropped and all(able) and len(able) == indices:
            raise DifferenceError("sort", f"a sort by {each.column}", [note.reason for note in notes], notes=notes)
    if any(each.column in hidden for each in keys):
        return

    def compare(one: Stored, other: Stored) -> int:
        for each in keys:
            if each.column in approximate:
                return 0  # what the server takes for equal, the next key orders
            first, second = (_rank(world, row, each) for row in (one, other))
            if first == second and (str(first) != str(second) or zeros(first, second)):
                return 0  # servers may order -0.0 before 0
            if first != second:
                if (first is None or second is None) and any(
                    each.column in row.columns
                    and row.columns[each.column].end(descending=each.descending) in (first, second)
                    for row in (one, other)
                ):
                    return 0
                if first is None or second is None:
                    return (-1 if first is None else 1) * (1 if world.nulls_first(descending=each.descending) else -1)
                return (-1 if first < second else 1) * (-1 if each.descending else 1)
        return 0

    for one, other in pairwise(rows):
        if compare(one, other) > 0:
            shown = [(row.id, *(_rank(world, row, each) for each in keys)) for row in rows]
            wanted = [row.id for row in sorted(rows, key=functools.cmp_to_key(compare))]
            raise DifferenceError("order", wanted, shown, notes=notes)


def zeros(first: Any, second: Any) -> bool:
    """Tell whether both values are zero and one is negative: of an integer -0, a server may not keep the sign."""
    return first == 0 == second and "-" in f"{first}{second}"


def _rank(world: World, row: Stored, sort: Sort) -> Any:
    column = row.columns.get(sort.column)
    return None if column is None else column.rank(world.scalars(row, column), descending=sort.descending)


def _cells(world: World, rows: dict[Any, Stored], page: Page, keys: Sequence[Any], notes: Sequence[Any]) -> None:
    for key, cells in zip(keys, page.cells, strict=True):
        row = rows.get(key)
        if row is None:
            raise DifferenceError("rows", "rows that are stored", key, notes=notes)
        for shown, cell in zip(page.columns, cells, strict=True):
            if (column := row.columns.get(shown.name)) is not None:
                _same(world, row, column, cell, notes)


def _same(world: World, row: Stored, column: Column, cell: Any, notes: Sequence[Any] = ()) -> None:
    if row.odd:
        return
    held = world.held(row, column)
    if is_cut(cell) and len(cell) > 10_000:
        return
    if held is MISSING and cell is (MISSING if world.tells_missing else None):
        return
    if held is None and cell is None:
        return
    if held is MISSING or not world.same(cell, held):
        raise DifferenceError("cell", f"{row.id} {column.name}: {held!r}", repr(cell), notes=notes, column=column.name)


async def _count(
    rig: Any, world: World, call: Call, compiled: Any, judged: Judged, said: Sequence[Said], rows: Sequence[Stored]
) -> None:
    count = await rig.driver.count_rows(
        CountRequest(object=call.object, filter=compiled, tenant=call.tenant, time=call.time)
    )
    least, most = (sum(each is True or (each is None and loose) for each in judged.values()) for loose in (False, True))
    if not least <= count <= most:
        raise DifferenceError("count", least if least == most else (least, most), count, said=said)


async def _export(
    rig: Any, world: World, call: Call, compiled: Any, judged: Judged, said: Sequence[Said], rows: Sequence[Stored]
) -> None:
    request = ExportRequest(object=call.object, filter=compiled, form=call.form, tenant=call.tenant, time=call.time)
    data, count = b"", 0
    async with aclosing(rig.driver.export_rows(request)) as parts:
        async for part in parts:
            data, count = data + part.data, count + part.rows
    if data and not data.endswith(b"\n"):
        raise DifferenceError("export", "a line break at the end", data[-80:], said=said)
    lines = data.split(b"\n")[:-1]
    found = world.of_line(call.form, lines, rows)
    if sum(found.values()) != count:
        raise DifferenceError("export", f"{count} rows", sum(found.values()), said=said)
    by_id = {row.id: (row.object, row.id) for row in rows}
    _set(judged, [by_id[each] for each in found], said)
    if twice := [each for each, times in found.items() if times > 1]:
        raise DifferenceError("export", "each row once", twice, said=said)


async def _summary(
    rig: Any, world: World, call: Call, compiled: Any, judged: Judged, said: Sequence[Said], rows: Sequence[Stored]
) -> None:
    values, buckets = call.most
    request = SummaryRequest(
        object=call.object,
        column=call.column,
        filter=compiled,
        tenant=call.tenant,
        time=call.time,
        values=values,
        buckets=buckets,
    )
    summary = await rig.driver.summarize_column(request)
    least, most = (sum(each is True or (each is None and loose) for each in judged.values()) for loose in (False, True))
    if not least <= summary.rows <= most:
        raise DifferenceError("summary", (least, most), summary.rows, said=said)
    if least < most:
        return
    held = summaries.held(world, [row for row in rows if judged[row.object, row.id]], call.column)
    column = next(each for each in world.columns(call.object) if each.name == call.column)
    for right, told in summaries.wrong(summary, held, column, values=values, buckets=buckets):
        if right != told:
            raise DifferenceError("summary", (right, told), summary, said=said, column=call.column)


async def _cell(rig: Any, world: World, call: Call) -> None:
    row = next(each for each in world.rows if each.id == call.id)
    cell = await rig.driver.fetch_cell(CellRequest(key=world.key(row), column=call.column))
    if is_cut(cell):
        raise DifferenceError("cell", "the whole cell", cell[-40:])
    _same(world, row, row.columns[call.column], cell)


async def _changed(rig: Any, world: World, call: Call, tally: Tally) -> None:
    """Make a change, and compare the document with what it was and what was asked for."""
    values = {name: given for name, (given, _) in call.values.items()}
    asked = {name: stored for name, (_, stored) in call.values.items()}
    row = next((each for each in world.rows if each.id == call.id), None)
    change: Any
    if call.kind == "insert":
        change = Insert(call.object, values, id=call.id, tenant=call.tenant)
    else:
        assert row is not None
        key = world.key(row)
        change = Update(key, values) if call.kind == "update" else Delete(key)
    plan = await rig.plan(change)
    refused = [each.reason for each in plan.refusals]
    if refused:
        if not all(map(str.strip, refused)):
            raise DifferenceError("refusal", "a reason", plan.refusals)
        tally.answers["change refused"] += 1
        return
    try:
        [outcome] = await rig.driver.apply_change(plan)
    except DragomanError as error:
        raise DifferenceError("change", "an outcome", f"{type(error).__name__}: {error}", notes=plan.notes) from None
    if outcome.status is not OutcomeStatus.APPLIED:
        if not outcome.reason:
            raise DifferenceError("change", "a reason", outcome)
        tally.answers["change not applied"] += 1
    applied = outcome.status is OutcomeStatus.APPLIED
    before = None if row is None else row.value
    where = world.key(row) if row is not None else outcome.key
    got = await world.document(rig, where) if where is not None else None
    if not applied or call.kind == "delete":
        wanted = None if applied else before
        if (got is None) is not (wanted is None) or (got is not None and not alike(got, wanted)):
            raise DifferenceError("change", wanted, got, notes=[*plan.notes, outcome])
        return
    tally.answers["change applied"] += 1
    base = row or Stored(object=call.object, id=call.id, text="{}", value={}, columns={})
    rewritten = any(note.code == "digits-rewritten" for note in plan.notes)
    if wrong := world.wrong_document(base, got, asked, rewritten=rewritten):
        name, value = wrong
        raise DifferenceError("change", f"{name} as {value!r}", got, notes=[*plan.notes, outcome], column=name)
