"""The columns of a page: which it shows and sorts by, and of which kinds they are where no schema tells."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

from dragoman_api.cells import Json
from dragoman_api.columns import MAX_COLUMNS, ColumnKind, Note
from dragoman_api.errors import QueryError
from dragoman_api.json_text import encode
from dragoman_api.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dragoman_api.cells import Cell
    from dragoman_api.grid import PageRequest, Sort

T = TypeVar("T")

UNKNOWN = "there is no such column"
"""The reason against a filter row on a column that does not exist."""


def choose(
    names: Sequence[str] | None,
    known: Mapping[str, T],
    *,
    object: str,  # noqa: A002 - the design's word
    find: Callable[[str], T | None] | None = None,
) -> list[T]:
    """Return the columns that a request asks for, in its order, each once.

    Args:
        names: The names in the request; None for all, of which a page holds the first 4,096.
        known: The columns by name.
        object: The object's name, for the error.
        find: Finds a column that is not listed, such as a key inside an object.

    Raises:
        QueryError: One of them does not exist; the detail ``column`` names the first.

    >>> choose(["b"], {"a": 1, "b": 2}, object="t")
    [2]
    """
    if names is None:
        return list(known.values())[:MAX_COLUMNS]
    look = find or known.get
    columns = {name: look(name) for name in names}
    if missing := [name for name, column in columns.items() if column is None]:
        raise QueryError(
            f"'{object}' has no column {quoted(missing)}",
            hint="describe the object to see its columns",
            details={"column": missing[0]},
        )
    return [column for column in columns.values() if column is not None]


def sortable(
    sorts: Iterable[Sort], find: Callable[[str], T | None], reason: Callable[[T], str]
) -> tuple[list[tuple[Sort, T]], list[Note]]:
    """Separate the sort keys that have an effect from those that are dropped.

    Args:
        sorts: The sort keys.
        find: Finds a column by name.
        reason: Returns why a column does not sort; empty if it does.

    Returns:
        The sort keys to send, each with its column, and a note ``sort-dropped`` for each of the others.

    Raises:
        QueryError: A column does not exist; the detail ``column`` names the first.
    """
    keys: list[tuple[Sort, T]] = []
    notes: list[Note] = []
    for sort in sorts:
        column = find(sort.column)
        if column is None:
            raise unknown_sort(sort.column)
        if against := reason(column):
            notes.append(Note(code="sort-dropped", column=sort.column, reason=against))
        else:
            keys.append((sort, column))
    return keys, notes


def unknown_sort(column: str) -> QueryError:
    """Return the error for a sort key on a column that does not exist."""
    hint = "describe the object to see its columns"
    return QueryError(f"there is no column {column!r} to sort by", hint=hint, details={"column": column})


def check_bounds(request: PageRequest) -> None:
    """Check that a page begins at an offset of 0 or more and has rows.

    Raises:
        QueryError: It does not.

    >>> from dragoman_api.grid import PageRequest
    >>> check_bounds(PageRequest(object="books", offset=-1))
    Traceback (most recent call last):
    dragoman_api.errors.QueryError: a page needs an offset of at least 0 and a limit of at least 1, not -1 and 100
    """
    offset, limit = request.offset, request.limit
    if offset < 0 or limit < 1:
        raise QueryError(f"a page needs an offset of at least 0 and a limit of at least 1, not {offset} and {limit}")


_KINDS: dict[type, ColumnKind] = {
    str: ColumnKind.TEXT,
    bool: ColumnKind.BOOLEAN,
    int: ColumnKind.INTEGER,
    float: ColumnKind.FLOAT,
    Decimal: ColumnKind.FLOAT,
    Json: ColumnKind.FLOAT,  # a number beyond what Decimal holds, see `exact_number`
    bytes: ColumnKind.BINARY,
    list: ColumnKind.JSON,
    dict: ColumnKind.JSON,
}


def kinds_of(rows: Iterable[Mapping[str, object]]) -> dict[str, ColumnKind]:
    """Return the kind of each name in some rows of decoded JSON, in the order in which the names appear.

    Integers and floats together are floats. Values of other kinds together, or none at all, are of kind ``other``.

    >>> kinds_of([{"id": "a", "n": 1}, {"id": "b", "n": 1.5, "x": None}])
    {'id': <ColumnKind.TEXT: 'text'>, 'n': <ColumnKind.FLOAT: 'float'>, 'x': <ColumnKind.OTHER: 'other'>}
    """
    kinds_by_name: dict[str, set[ColumnKind]] = {}
    for row in rows:
        for name, value in row.items():
            kinds = kinds_by_name.setdefault(name, set())
            if value is not None:
                kinds.add(_KINDS.get(type(value), ColumnKind.OTHER))
    return {name: _joined(kinds) for name, kinds in kinds_by_name.items()}


def cell_of(value: object) -> Cell:
    """Return a value of decoded JSON as a cell: an array or an object becomes its JSON text, whole.

    The driver's process cuts what is too long for a page, see `CELL_BUDGET`.

    >>> cell_of([1, None]), cell_of("a")
    ('[1,null]', 'a')
    """
    return Json(encode(value)) if isinstance(value, list | dict) else value  # type: ignore[return-value]


def _joined(kinds: set[ColumnKind]) -> ColumnKind:
    if kinds == {ColumnKind.INTEGER, ColumnKind.FLOAT}:
        return ColumnKind.FLOAT
    return kinds.pop() if len(kinds) == 1 else ColumnKind.OTHER
