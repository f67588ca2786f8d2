"""Messages of the grid: pages, counts, cells, filters, changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from dragoman import Filter, RowSelection
from dragoman_api.changes import PlannedRequest
from dragoman_api.columns import Column, Note
from dragoman_api.filters import Explanation, TimeRange

from .base import MAX_NAME, MAX_TEXT, MAX_WORD, Cell, ColumnName, Key, Name, Request, RouteAnswer, Ticket

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_FILTERS, MAX_VALUES, MAX_SORT, MAX_COLUMNS = 200, 10_000, 64, 4_096
"""Filter rows, values of a filter row, sort keys and columns of a request; the host itself has no bounds."""


class RowsAsked(Request, frozen=True, kw_only=True):
    """The rows that a grid shows; values of filter rows are texts, which the driver reads according to the column."""

    connection: Name
    rows: RowSelection

    def __post_init__(self) -> None:
        for place, part, shortest, longest in _bounded_parts(self.rows):
            if part is not None and not shortest <= len(part) <= longest:
                kind = "characters" if isinstance(part, str) else "elements"
                allowed = f"{shortest} to {longest:,} {kind} are possible"
                raise ValueError(f"{allowed}, not {len(part):,} - at `$.rows{place}`")


def _bounded_parts(rows: RowSelection) -> Iterator[tuple[str, Any, int, int]]:
    """Return the place of each part that has a length, the part, and its least and greatest length."""
    yield ".object", rows.object, 1, MAX_NAME
    yield ".tenant", rows.tenant, 0, MAX_NAME
    yield ".revision", rows.revision, 0, MAX_NAME
    yield ".span.since", rows.span.since, 0, MAX_WORD
    yield ".span.until", rows.span.until, 0, MAX_WORD
    yield ".filters", rows.filters, 0, MAX_FILTERS
    yield ".sort", rows.sort, 0, MAX_SORT
    yield ".columns", rows.columns, 0, MAX_COLUMNS
    for number, key in enumerate(rows.sort):
        yield f".sort[{number}].column", key.column, 1, MAX_NAME
    for number, column in enumerate(rows.columns or ()):
        yield f".columns[{number}]", column, 1, MAX_NAME
    for number, row in enumerate(rows.filters):
        place = f".filters[{number}]"
        if not isinstance(row, Filter):
            yield f"{place}.text", row.text, 0, MAX_TEXT
            continue
        yield f"{place}.column", row.column, 1, MAX_NAME
        yield f"{place}.group", row.group, 0, MAX_WORD
        if isinstance(row.value, str):
            yield f"{place}.value", row.value, 0, MAX_TEXT
        elif isinstance(row.value, list):
            yield f"{place}.value", row.value, 0, MAX_VALUES
            texts = [value for value in row.value if isinstance(value, str)]
            yield f"{place}.value[...]", max(texts, key=len, default=None), 0, MAX_TEXT


QueryName = Annotated[str, Meta(min_length=1, max_length=64)]


class SavedQuery(RouteAnswer, frozen=True, kw_only=True):
    """Rows that are kept under a name, beside their connection or in a folder that a team shares.

    Attributes:
        name: ``@NAME`` on the command line.
        shared: It is of a team's folder, which the page does not write.
    """

    name: str
    shared: bool
    rows: RowSelection


class QueryList(RouteAnswer, frozen=True, kw_only=True):
    """The saved queries of a connection, and those that cannot be used, by name with the reason."""

    queries: list[SavedQuery]
    unusable: dict[str, str]


class SaveQuery(RowsAsked, frozen=True, kw_only=True):
    """Save rows under a name; `replace` puts them in place of a query of that name."""

    name: QueryName
    replace: bool = False


class QueryNamed(Request, frozen=True, kw_only=True):
    """Remove a query of the connection itself."""

    connection: Name
    name: QueryName


class PageAsked(RowsAsked, frozen=True, kw_only=True):
    """One page of rows: by `cursor`, else by `offset`."""

    offset: Annotated[int, Meta(ge=0, le=1 << 53)] = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100
    total: bool = True
    cursor: Annotated[str, Meta(max_length=1 << 20)] | None = None


class SimilarAsked(RowsAsked, frozen=True, kw_only=True):
    """The rows nearest to a row, by a column of vectors; null for the only one. The answer is a whole page.

    Attributes:
        key: `GridRow.key` of that row, which is not among them.
    """

    key: Key
    column: ColumnName | None = None
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class GridRow(RouteAnswer, frozen=True, kw_only=True):
    """One row: its cells in the order of the columns.

    Attributes:
        id: For people; empty if the row has none.
        key: What changes and ``cell`` send back; null if no change can name the row.
    """

    id: str
    key: str | None
    cells: list[Cell]


class PageAnswer(RouteAnswer, frozen=True, kw_only=True):
    """One page of rows.

    Attributes:
        notes: What was dropped, cut, partial or approximate; always in sight.
        total: All matching rows; null if not requested or unknown.
        total_exact: False when there are at least `total` rows.
        next: The cursor of the next page; null at the end, or if paging is by offset only.
        revision: The state of the data; empty if unknown.
        time: The range of time that was read, with absolute instants: further pages, counts and exports of the same
            rows have it as their span; null for all rows.
        now: The instant that relative times of the filter count from; further pages, counts and exports of the same
            rows have it, too. Null if it has none.
        near: The id, for people, of the row that these rows are similar to, in the order of their distances, which are
            the first column; empty for rows that are similar to none.
    """

    columns: list[Column]
    rows: list[GridRow]
    notes: list[Note]
    total: int | None
    total_exact: bool
    offset: int
    next: str | None
    revision: str
    seconds: float
    time: TimeRange | None = None
    now: str | None = None
    near: str = ""


class Counted(RouteAnswer, frozen=True, kw_only=True):
    """A number of rows as text, and what makes it approximate."""

    rows: str
    notes: list[Note]


class CellAsked(Request, frozen=True, kw_only=True):
    """The whole value of one cell."""

    connection: Name
    key: Key
    column: ColumnName
    revision: Annotated[str, Meta(max_length=4_096)] = ""


class CellAnswer(RouteAnswer, frozen=True, kw_only=True):
    """The whole value."""

    cell: Cell


class Explained(RouteAnswer, frozen=True, kw_only=True):
    """How each row of the filter is sent, and the same page as a command and as Python."""

    rows: list[Explanation]
    command: str
    python: str


class ChangeEntry(Request, frozen=True, kw_only=True):
    """One change of the change list.

    Attributes:
        object: Of an insert and a drop.
        key: Of an update and a delete: `GridRow.key`.
        values: By column: of an insert and an update.
        id: Of an insert: its primary key; null to let the server make one.
        replace: An insert may replace the row with that id.
        tenant: Of an insert.
    """

    kind: Literal["insert", "update", "delete", "drop"]
    object: Annotated[str, Meta(max_length=4_096)] = ""
    key: Annotated[str, Meta(max_length=65_536)] = ""
    values: Annotated[dict[str, Cell], Meta(max_length=4_096)] = {}
    id: Annotated[str, Meta(max_length=65_536)] | None = None
    replace: bool = False
    tenant: Annotated[str, Meta(max_length=4_096)] | None = None


class PlanAsked(Request, frozen=True, kw_only=True):
    """The exact requests of some changes; nothing is written. A drop stands alone, with the object's name typed."""

    connection: Name
    changes: Annotated[list[ChangeEntry], Meta(min_length=1, max_length=5_000)]
    undo: bool = True
    typed: Annotated[str, Meta(max_length=4_096)] = ""


class OutcomeAnswer(RouteAnswer, frozen=True, kw_only=True):
    """What became of one change.

    Attributes:
        change: Its number in the list, from 0.
        status: ``unknown`` if the server may have carried it out without saying so.
        reason: One sentence; empty when applied as asked.
        key: The row's new key, for a further change.
    """

    change: int
    status: Literal["applied", "skipped", "refused", "conflict", "failed", "unknown"]
    id: str = ""
    reason: str = ""
    key: str | None = None


class Planned(RouteAnswer, frozen=True, kw_only=True):
    """A plan: the server keeps it for ten minutes under `plan`, and ``apply`` sends exactly this.

    Attributes:
        refusals: Changes that are not sent, and why.
        notes: Remarks to read before sending.
    """

    plan: str
    steps: list[PlannedRequest]
    refusals: list[OutcomeAnswer]
    notes: list[Note]
    undoable: bool


class ApplyAsked(Request, frozen=True, kw_only=True):
    """Send a plan, once."""

    connection: Name
    plan: Ticket


class Applied(RouteAnswer, frozen=True, kw_only=True):
    """What became of each change; `undo` is the ticket of a change file (``/download/TICKET``), empty for none."""

    outcomes: list[OutcomeAnswer]
    undo: str = ""


class RowAsked(Request, frozen=True, kw_only=True):
    """One row as it is now, to show beside a conflicting change."""

    connection: Name
    key: Key


class RowAnswer(RouteAnswer, frozen=True, kw_only=True):
    """The row, or null if it is gone."""

    columns: list[Column]
    row: GridRow | None


class SummaryAsked(RowsAsked, frozen=True, kw_only=True):
    """One column at a glance, over the rows that a grid shows."""

    column: ColumnName
    values: Annotated[int, Meta(ge=0, le=50)] = 10
    buckets: Annotated[int, Meta(ge=0, le=50)] = 20


class FrequentValue(RouteAnswer, frozen=True, kw_only=True):
    """A value and the number of rows that hold it."""

    cell: Cell
    rows: int


class Bar(RouteAnswer, frozen=True, kw_only=True):
    """The number of rows with a value from `lower`, included, to `upper`, excluded."""

    lower: Cell
    upper: Cell
    rows: int


class Summarized(RouteAnswer, frozen=True, kw_only=True):
    """One column at a glance; a figure that `approximate` does not name is exact.

    Attributes:
        rows: Rows that the filter selects.
        missing: How many of them have no value; null if unknown.
        values: The most frequent first.
        distinct: Number of different values; null if unknown.
        bars: In order, empty ones included; none for columns that are neither numbers nor dates.
        approximate: Why a figure is not exact, by the names of `dragoman_api.summaries.Figure`.
        absent: Why a figure is not given although the column has values, by the same names.
    """

    column: Column
    rows: int
    missing: int | None
    values: list[FrequentValue]
    distinct: int | None
    minimum: Cell
    maximum: Cell
    bars: list[Bar]
    approximate: dict[str, str]
    absent: dict[str, str]
    notes: list[Note]
    seconds: float
