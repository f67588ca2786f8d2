"""The results of a count and of reads of all rows, with their notes."""

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
        notes: Remarks on the count: where the filter is approximate, a default time window, columns that changed during
            the count.
        time: The span of time that the counted rows lie in; None for all rows.
    """

    notes: list[Note]
    time: TimeRange | None

    def __new__(cls, number: int, notes: Iterable[Note] = (), *, time: TimeRange | None = None) -> Self:
        """Build a count from its number, notes and span of time."""
        count = super().__new__(cls, number)
        count.notes, count.time = list(notes), time
        return count


class _Stream(Generic[T]):
    """An async iterator that reads as it is consumed, and holds notes."""

    def __init__(self, read: Callable[[list[Note]], AsyncGenerator[T, None]]) -> None:
        """Prepare; `read` yields the items and adds notes to the list that it gets."""
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
        notes: Remarks on the rows: some are there with the first row, all of them after the last one.
    """


class Batches(_Stream[Any]):
    """The rows of an object as Arrow record batches, an async iterator that reads them while they arrive.

    Attributes:
        notes: Remarks on the rows: some are there with the first batch, all of them after the last one. The notes
            ``values-misfit``, which count the values that do not fit their column's type, come after the last batch.
    """
