"""Parts of a list of objects, for drivers that learn all names at once and send further requests for their rows.

The contract does not require this module::

    async def list_objects(self, request: ObjectsRequest) -> ObjectList:
        choice = choose(request, await self.names())
        rows = await self.count(choice.names) if request.counts else {}
        objects = [Object(name, rows.get(name)) for name in choice.names]
        return ObjectList(objects=objects, next=choice.next, total=choice.total)
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import msgspec

from dragoman_api.errors import QueryError
from dragoman_api.wording import quoted

from .cursors import INVALID

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dragoman_api.columns import ObjectsRequest


class ListPart(msgspec.Struct, frozen=True, kw_only=True):
    """The names of one part.

    Attributes:
        groups: The names of each group, sorted.
        next: The value of `ObjectList.next`.
        total: The value of `ObjectList.total`.
    """

    groups: tuple[list[str], ...]
    next: str | None
    total: int

    @property
    def names(self) -> list[str]:
        """The names of all groups."""
        return [name for group in self.groups for name in group]


def describe_span(names: Sequence[str]) -> str:
    """Return the number of some objects and the first and the last name: a note on one part is not that of another.

    >>> describe_span(["a", "b", "c"]), describe_span(["a"])
    ("3 objects ('a' to 'c')", "1 object ('a')")
    """
    if len(names) == 1:
        return f"1 object ({quoted(names[0])})"
    return f"{len(names):,} objects ({quoted(names[0])} to {quoted(names[-1])})"


def choose(request: ObjectsRequest, *groups: Iterable[str]) -> ListPart:
    """Choose the names that a request wants.

    A cursor holds the last name of its part, so names that come or go between two parts move no others.

    Args:
        request: What is wanted: names with a text, after a cursor, up to a limit.
        groups: The names of all objects; those of one group are listed before those of the next, for example
            collections before aliases.

    Raises:
        QueryError: The cursor is not one of `ListPart.next` (code ``cursor-invalid``).

    >>> from dragoman_api import ObjectsRequest
    >>> choose(ObjectsRequest(limit=2, contains="O"), ["sold", "books", "films", "orders"], ["old"])
    ListPart(groups=(['books', 'orders'], []), next='0:orders', total=4)
    >>> choose(ObjectsRequest(limit=2, contains="O", cursor="0:orders"), ["sold", "books"], ["old"]).names
    ['sold', 'old']
    """
    text = request.contains.casefold()
    matches = [
        (number, name) for number, names in enumerate(groups) for name in sorted(names) if text in name.casefold()
    ]
    start = 0 if request.cursor is None else bisect_right(matches, _place(request.cursor))
    part = matches[start : start + request.limit]
    number, name = part[-1] if part else (0, "")
    return ListPart(
        groups=tuple([name for place, name in part if place == group] for group in range(len(groups))),
        next=f"{number}:{name}" if part and start + len(part) < len(matches) else None,
        total=len(matches),
    )


def _place(cursor: str) -> tuple[int, str]:
    number, colon, name = cursor.partition(":")
    if not colon or not number.isascii() or not number.isdigit() or len(number) > 3:
        raise QueryError(f"{quoted(cursor)} is not the cursor of a list of objects", code=INVALID)
    return int(number), name
