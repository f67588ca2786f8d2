"""Residual filters and sorts: what a server cannot run, evaluated here over a bounded number of rows.

A page may allow it (`PageRequest.residual`). The driver compiles the filter rows that the server runs, reads at most
that many of the rows that match them, and the kit evaluates the filter rows and the sort that are left. The page says
how many rows that were. Counts, exports and changes concern all rows, so they refuse a residual filter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from dragoman_api.columns import Note
from dragoman_api.filters import Explanation, Filter

from .filter_rows import compile_rows, refusal, spelled
from .row_evaluation import ValueKind, comparable, operators_of, ordered, row_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dragoman_api.errors import FilterNotSupportedError
    from dragoman_api.filters import FilterRequest, RawQuery
    from dragoman_api.grid import PageRequest, Sort
    from dragoman_api.remedies import Remedy

T = TypeVar("T")


class ResidualRow(msgspec.Struct, frozen=True):
    """A filter row that is evaluated here.

    Attributes:
        number: The number of the filter row, from 0.
        row: The filter row as it was written.
        kind: How its column compares.
        reason: Why the server cannot run it.
    """

    number: int
    row: Filter
    kind: ValueKind
    reason: str

    def test(self) -> Callable[[object], bool]:
        """Return a function that checks a stored value: None, a scalar, or a list of which one element must match.

        Raises:
            ValueError: The kit does not evaluate the operator on that kind, or the operand does not fit the column;
                the message says why.
        """
        return row_test(self.row, self.kind)


class ResidualFilter(msgspec.Struct, frozen=True):
    """The filter rows that a server cannot run; part of a driver's own form of a compiled filter.

    Attributes:
        rows: These rows. With ``any`` they are all rows of the filter.
        match: ``all`` or ``any``.
        limit: The most rows over which they are evaluated.
    """

    rows: list[ResidualRow]
    match: str
    limit: int

    def explained(self) -> list[Explanation]:
        """Return the explanations of the rows."""
        return [
            Explanation(
                row=residual_row.number,
                clause=f"evaluated here: {spelled(residual_row.row)}",
                exact=False,
                approximations=[
                    f"{residual_row.reason}; so at most {self.limit:,} rows are read, and it is evaluated here"
                ],
            )
            for residual_row in self.rows
        ]

    def refusal(self, what: str) -> FilterNotSupportedError:
        """Return the refusal of an operation that concerns all rows.

        Args:
            what: The operation, for the message: ``a count``.
        """
        first = self.rows[0]
        reason = f"{first.reason}; {what} concerns all rows, and it could be evaluated over {self.limit:,} at most"
        return refusal(first.row, reason, number=first.number)


class ResidualKey(msgspec.Struct, frozen=True):
    """A sort key that is evaluated here."""

    column: str
    kind: ValueKind
    descending: bool = False


class Selection(msgspec.Struct, Generic[T], frozen=True):
    """What remains of the rows that were read.

    Attributes:
        rows: The rows that match, in their order.
        notes: ``residual-filter`` and ``residual-sort``.
        total: Number of matching rows; None if the server did not say how many there are.
        total_exact: False if there may be more.
    """

    rows: list[T]
    notes: list[Note]
    total: int | None
    total_exact: bool


class Residual(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a page that the server does not run.

    Attributes:
        limit: The most rows to read.
        where: The filter rows.
        sort: The sort keys, the most significant first.
    """

    limit: int
    where: ResidualFilter | None = None
    sort: list[ResidualKey] = []

    @property
    def columns(self) -> list[str]:
        """The columns whose values it reads, each once."""
        rows = self.where.rows if self.where is not None else []
        return [*dict.fromkeys([*(left.row.column for left in rows), *(key.column for key in self.sort)])]

    def cut(
        self, request: PageRequest, rows: Sequence[T], value: Callable[[T, str], object], *, matched: int | None
    ) -> Selection[T]:
        """Filter and sort the rows that a server returned, and keep those of the page.

        Args:
            request: The page.
            rows: All rows that match what was compiled, or the first `limit` of them.
            value: Returns a row's stored value of a column: None, a scalar, or a list.
            matched: Number of rows that match what was compiled; None if unknown.

        Returns:
            The page's rows, its total if it asks for one, and what it has to say about them.
        """
        if matched is None and len(rows) < self.limit:
            matched = len(rows)
        selection = select(rows, value, limit=self.limit, matched=matched, where=self.where, sort=self.sort)
        if not request.total:
            selection = replace(selection, total=None, total_exact=True)
        return replace(selection, rows=selection.rows[request.offset :][: request.limit])


def residual_of(
    request: PageRequest,
    where: ResidualFilter | None,
    dropped: Sequence[Note],
    kind: Callable[[str], ValueKind | None],
) -> tuple[Residual | None, list[Note]]:
    """Return what of a page is to be evaluated here.

    Args:
        request: The page.
        where: The filter rows that the server cannot run, from `split_rows`.
        dropped: A note for each sort key that the server does not sort by.
        kind: Returns how a column compares; None if it has no order.

    Returns:
        None if the server runs all that can run; and the notes on sort keys that have no effect.

    Raises:
        FilterNotSupportedError: There are such filter rows, and the page does not allow to evaluate them here.
    """
    if request.residual is None:
        if where is not None:
            raise where.refusal("a page that does not allow it")
        return None, [*dropped]
    keys, notes = residual_keys(request.sort, dropped, kind)
    if where is None and not keys:
        return None, notes
    limit = request.residual if where is None else min(request.residual, where.limit)
    return Residual(limit=limit, where=where, sort=keys), notes


def split_rows(
    request: FilterRequest,
    compile_row: Callable[[int, Filter | RawQuery], T],
    *,
    hint: Callable[[Filter | RawQuery], str | Remedy],
    kind: Callable[[Filter], ValueKind | None],
) -> tuple[list[T], ResidualFilter | None]:
    """Compile the filter rows that the server runs, and leave the others to be evaluated here if the request allows it.

    Args:
        request: The filter rows.
        compile_row: Gets the number of a row, from 0, and the row. It raises ValueError for a row that the server
            cannot run; the message is the reason.
        hint: Returns what to do about a row that cannot run, in words or as a remedy.
        kind: Returns how a row's column compares; None if the row must not be evaluated here.

    Returns:
        What the compiled rows became, and the residual filter. With ``any``, one residual row leaves all rows residual.

    Raises:
        FilterNotSupportedError: A row can neither be compiled nor be evaluated here.
    """
    if request.residual is None:
        return compile_rows(request, compile_row, hint=hint), None

    def attempt(number: int, row: Filter | RawQuery) -> T | ResidualRow:
        try:
            return compile_row(number, row)
        except ValueError as reason:
            if (left := _residual(number, row, str(reason), kind)) is None:
                raise
            return left

    def together(number: int, row: Filter | RawQuery) -> T | ResidualRow:
        reason = "another row of the same alternative cannot run"
        if (left := _residual(number, row, reason, kind)) is None:
            raise ValueError(f"{reason}, and this one cannot be evaluated here")
        return left

    rows = compile_rows(request, attempt, hint=hint)
    left = [row for row in rows if isinstance(row, ResidualRow)]
    if left and request.match == "any":
        reasons = {residual_row.number: residual_row for residual_row in left}
        rows = compile_rows(request, lambda number, row: reasons.get(number) or together(number, row), hint=hint)
        left = [row for row in rows if isinstance(row, ResidualRow)]
    compiled = [row for row in rows if not isinstance(row, ResidualRow)]
    return compiled, ResidualFilter(left, request.match, request.residual) if left else None


def _residual(
    number: int, row: Filter | RawQuery, reason: str, kind: Callable[[Filter], ValueKind | None]
) -> ResidualRow | None:
    if not isinstance(row, Filter) or row.group is not None or (value_kind := kind(row)) is None:
        return None
    if row.op not in operators_of(value_kind):
        return None
    left = ResidualRow(number, row, value_kind, reason)
    left.test()
    return left


def residual_keys(
    sorts: Sequence[Sort], dropped: Sequence[Note], kind: Callable[[str], ValueKind | None]
) -> tuple[list[ResidualKey], list[Note]]:
    """Choose the sort keys to evaluate here: if one that the server drops can be, all are.

    Args:
        sorts: The sort keys of the request.
        dropped: A note for each key that the server does not sort by.
        kind: Returns how a column compares; None if it has no order.

    Returns:
        The keys, none if nothing is to be evaluated here; and the notes that remain.
    """
    names = {note.column for note in dropped}
    if not any(sort.column in names and kind(sort.column) is not None for sort in sorts):
        return [], list(dropped)
    sorts_with_kinds = [(sort, kind(sort.column)) for sort in sorts]
    keys = [
        ResidualKey(sort.column, value_kind, sort.descending)
        for sort, value_kind in sorts_with_kinds
        if value_kind is not None
    ]
    key_columns = {key.column for key in keys}
    notes = {note.column: note for note in dropped if note.column not in key_columns}
    for sort, value_kind in sorts_with_kinds:
        if value_kind is None and sort.column not in notes:
            reason = "the rows are sorted here, and its values cannot be compared here"
            notes[sort.column] = Note(code="sort-dropped", column=sort.column, reason=reason)
    return keys, list(notes.values())


def select(
    rows: Sequence[T],
    value: Callable[[T, str], object],
    *,
    limit: int,
    matched: int | None,
    where: ResidualFilter | None = None,
    sort: Sequence[ResidualKey] = (),
) -> Selection[T]:
    """Filter and sort the rows that a server returned.

    Args:
        rows: All rows that match what was compiled, or the first `limit` of them.
        value: Returns a row's stored value of a column: None, a scalar, or a list.
        limit: The most rows that could be read.
        matched: Number of rows that match what was compiled; None if unknown.
        where: The residual filter.
        sort: The residual sort, the most significant key first; rows without a value come last.

    Returns:
        The matching rows in their order, and what the page has to say about them.

    >>> keys = [ResidualKey("n", ValueKind.NUMBER, descending=True)]
    >>> select([{"n": 1}, {"n": 2}], dict.get, limit=10, matched=2, sort=keys).rows
    [{'n': 2}, {'n': 1}]
    """
    if len(rows) > limit:
        raise ValueError(f"{len(rows):,} rows were read, and {limit:,} are allowed")
    whole = len(rows) == matched or (matched is None and len(rows) < limit)
    matching_rows = list(rows)
    if where is not None:
        tests = [(residual_row.row.column, residual_row.test()) for residual_row in where.rows]
        join = all if where.match == "all" else any
        matching_rows = [row for row in matching_rows if join(test(value(row, column)) for column, test in tests)]
    for key in reversed(sort):
        matching_rows = _ordered(matching_rows, value, key)
    notes = _notes(len(rows), matched, where, sort, whole=whole)
    if where is None:
        return Selection(matching_rows, notes, matched, total_exact=True)
    return Selection(matching_rows, notes, len(matching_rows), total_exact=whole)


def _notes(
    read: int, matched: int | None, where: ResidualFilter | None, sort: Iterable[ResidualKey], *, whole: bool
) -> list[Note]:
    of = f"all {read:,} rows" if whole else f"the first {read:,} rows" + (f" of {matched:,}" if matched else "")
    hint = "" if whole else "allow more rows, or narrow the filter by rows that the server runs"
    notes = []
    if where is not None:
        rows = ", ".join(spelled(residual_row.row) for residual_row in where.rows)
        rest = "" if whole else "; rows beyond them were not looked at"
        notes.append(Note(code="residual-filter", reason=f"{rows}: evaluated here over {of}{rest}", hint=hint))
    if columns := ", ".join(f"'{key.column}'" for key in sort):
        rest = "" if whole else "; this is the order among them, not among all"
        notes.append(Note(code="residual-sort", reason=f"{columns}: sorted here, over {of}{rest}", hint=hint))
    return notes


def _ordered(rows: list[T], value: Callable[[T, str], object], key: ResidualKey) -> list[T]:
    return ordered(rows, lambda row: comparable(value(row, key.column), key.kind), descending=key.descending)
