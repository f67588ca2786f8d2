"""Which columns a page shows and sorts by, and what is said about the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from dragoman_api.columns import MAX_COLUMNS, Note
from dragoman_api.errors import QueryError
from dragoman_api.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dragoman_api.grid import Sort

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
