"""The results of a count, and of reads of all rows: values that carry notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

    from dragoman_api.columns import Note
    from dragoman_api.filters import TimeRange


T = TypeVar("T")


class Count(int):
    """A number of rows.

    Attributes:
        notes: Remarks on what was counted: what the filter makes approximate, a default time window, columns that
            changed meanwhile.
        time: The range of time of the rows, as `dragoman_api.grid.Page.time`.
    """

    notes: list[Note]
    time: TimeRange | None

    def __new__(cls, number: int, notes: Iterable[Note] = (), *, time: TimeRange | None = None) -> Self:
        """Make a count of its number, notes and range of time."""
        count = super().__new__(cls, number)
        count.notes, count.time = list(notes), time
        return count


class _Stream(Generic[T]):
    """An async iterator that reads while it is used, and carries notes."""

    def __init__(self, read: Callable[[list[Note]], AsyncGenerator[T, None]]) -> None:
        """Begin; `read` yields the items and adds its notes to the list."""
        self.notes: list[Note] = []
        self._items = read(self.notes)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        return await anext(self._items)

    async def aclose(self) -> None:
        """Release the server's resources."""
        await self._items.aclose()


class RowStream(_Stream[dict[str, Any]]):
    """The rows of an object, an async iterator that reads them while they arrive.

    Attributes:
        notes: Remarks on the rows, as for an export; known from the first row on, and complete after the last one.
    """


class Batches(_Stream[Any]):
    """The rows of an object as Arrow record batches, an async iterator that reads them while they arrive.

    Attributes:
        notes: Remarks on the rows, as for an export; known from the first batch on, and complete after the last one.
            The notes ``values-misfit`` count what does not fit its column's type, and come after the last batch.
    """
