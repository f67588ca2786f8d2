"""Walks: pages in the order of a key, each after the last row of the page before, so that no window ends them.

A walk needs an order without ties: the sort's keys, then a unique one. It asks for the rows after a key instead of
those after an offset, so rows that come or go meanwhile move no others: a row that is there all the time, with the same
keys, is read exactly once.

>>> walk = Walk(key=lambda row: row, position=3)
>>> [*walk.accept([4, 6], 2)], walk.position, walk.ended
([4, 6], 6, False)
>>> beyond([("price", True), ("id", False)], [9.5, 17])
[[('price', '<', 9.5)], [('price', '=', 9.5), ('id', '>', 17)]]
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec

from dragoman_api.errors import QueryError
from dragoman_api.wording import quoted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Sequence

Row = TypeVar("Row")
Key = TypeVar("Key")
Condition = tuple[str, Literal["<", ">", "="], object]
"""A column, a comparison and a value."""


class Walk(msgspec.Struct, Generic[Row, Key], kw_only=True):
    """A walk through the rows of one query; it sends nothing itself.

    Attributes:
        key: Returns the key of a row: a text or a number, or a tuple of the sort's values and the unique one.
        position: The key of the last row that was read, None at the beginning; with a cursor, the walk goes on from it.
        until: The last key of the walk, None for no bound.
        before: Whether one key comes before another in the server's order; Python's own order by default.
        what: The word for the result in errors.
        ended: Whether the last row was read.
    """

    key: Callable[[Row], Key]
    position: Key | None = None
    until: Key | None = None
    before: Callable[[Any, Any], bool] = operator.lt
    what: str = "result"
    ended: bool = False

    def accept(self, rows: Sequence[Row], asked: int, keys: list[Key] | None = None) -> Sequence[Row]:
        """Take the rows after `position`, move past them, and return those that belong to the walk.

        Args:
            rows: The server's answer, in order.
            asked: The number of rows that the server was asked for; a shorter answer is the last one.
            keys: The keys of the rows, if the caller has read them already.

        Raises:
            QueryError: There are more rows, or one does not come after the row before it: going on would lose or
                repeat rows. The walk has not moved.
        """
        if len(rows) > asked:
            raise QueryError(f"the {self.what} is wrong: the server returned {len(rows):,} rows instead of {asked:,}")
        keys = [*map(self.key, rows)] if keys is None else keys
        read = keys if self.position is None else [self.position, *keys]
        if not all(map(self.before, read, read[1:])):
            last = next(last for last, key in pairwise(read) if not self.before(last, key))
            raise QueryError(f"the {self.what} is incomplete: the server repeated rows after {last}")
        self.ended = len(rows) < asked
        if self.until is not None and keys and not self.before(keys[-1], self.until):
            while keys and self.before(self.until, keys[-1]):
                keys.pop()
            rows, self.ended = rows[: len(keys)], True
        if keys:
            self.position = keys[-1]
        return rows


async def read_pages(
    walk: Walk[Row, Key], fetch: Callable[[Key | None, int], Awaitable[Sequence[Row]]], *, limit: int = 1_000
) -> AsyncIterator[Sequence[Row]]:
    """Yield the rest of a walk, page by page, for an export; `walk.position` after a page is its checkpoint.

    Args:
        walk: The walk.
        fetch: Returns the first rows after a key, None for the very first, at most as many as the number says.
        limit: Rows of a page.

    Raises:
        QueryError: A page has too many rows, or one does not come after the row before it.
    """
    while not walk.ended:
        if rows := walk.accept(await fetch(walk.position, limit), limit):
            yield rows


def beyond(keys: Sequence[tuple[str, bool]], position: Sequence[object]) -> list[list[Condition]]:
    """Return the condition for rows after a position, for a server that compares single columns.

    Args:
        keys: The sort keys, each with whether it descends; the last is unique.
        position: The values of the last row that was read. None of them is null: no comparison finds what comes after
            a null, so sort by columns that every row has.

    Returns:
        Alternatives, each a list of conditions that hold together.

    Raises:
        ValueError: A value is missing or null.
    """
    if len(keys) != len(position) or any(value is None for value in position):
        raise ValueError(f"{len(keys)} sort keys need as many values, none of them null, not {quoted(list(position))}")
    values = list(zip(keys, position, strict=True))
    return [
        [*((name, "=", value) for (name, _), value in values[:at]), (column, "<" if descending else ">", edge)]
        for at, ((column, descending), edge) in enumerate(values)
    ]
