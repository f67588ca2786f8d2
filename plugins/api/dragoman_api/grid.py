"""Pages of a grid: what is asked for and what comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from .cells import Cell, CutText
from .columns import MAX_COLUMNS, Column, Note
from .filters import CompiledFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ROWS = 10_000
"""Maximum number of rows of one page."""


class Sort(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One key of a sort."""

    column: str
    descending: bool = False


class PageRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One page of one object.

    Attributes:
        object: The object's name.
        filter: From `compile_filter`, None for all rows.
        sort: The sort keys, the most significant first.
        offset: Rows before the page.
        limit: Rows of the page, 1 to 10,000.
        columns: Names to return, None for all.
        total: Whether the number of all matching rows is wanted.
        cursor: `Page.next` of an earlier page, to continue after it.
        tenant: The tenant whose rows are wanted, if the object has tenants.
    """

    object: str
    filter: CompiledFilter | None = None
    sort: list[Sort] = []
    offset: int = 0
    limit: int = 100
    columns: list[str] | None = None
    total: bool = True
    cursor: str | None = None
    tenant: str | None = None


class RowKey(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The location of a row, and its state when it was read.

    Attributes:
        object: The concrete object that holds it, never an alias.
        id: The row's primary key; empty if it has none, and then no change can name the row (W27).
        routing: What else the server needs to find the row: a routing value or a tenant.
        guard: Values, by the server's names, that a change compares so that it cannot overwrite a newer row.
    """

    object: str
    id: str
    routing: str | None = None
    guard: dict[str, int | str] = {}


class Page(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One page: cells by row, and every note about them.

    Attributes:
        columns: The columns of the cells, in order.
        cells: One list per row, as long as `columns`.
        keys: One per row; empty if rows have no keys (a console's table).
        notes: What was dropped, cut, partial or approximate.
        total: Number of rows in the whole result; None if not requested or unknown.
        total_exact: False when there are at least `total` rows.
        offset: Rows before this page.
        next: The cursor of the next page; None at the end, or if paging is by offset only.
    """

    columns: Annotated[list[Column], msgspec.Meta(max_length=MAX_COLUMNS)]
    cells: list[list[Cell]] = []
    keys: list[RowKey] = []
    notes: list[Note] = []
    total: int | None = None
    total_exact: bool = True
    offset: int = 0
    next: str | None = None

    @property
    def rows(self) -> list[Row]:
        """The rows as views, each with its key and its cells by name."""
        index = {column.name: at for at, column in enumerate(self.columns)}
        keys: list[RowKey | None] = [*self.keys] if self.keys else [None] * len(self.cells)
        return [Row(index, cells, key) for cells, key in zip(self.cells, keys, strict=True)]


class Row:
    """One row of a page: a read-only mapping from column name to cell, with a key."""

    __slots__ = ("_cells", "_index", "_key")

    def __init__(self, index: dict[str, int], cells: list[Cell], key: RowKey | None) -> None:
        self._index, self._cells, self._key = index, cells, key

    @property
    def key(self) -> RowKey:
        """The key that identifies the row in a change.

        Raises:
            LookupError: The rows of this result have no keys.
        """
        if self._key is None:
            raise LookupError("the rows of this result have no keys")
        return self._key

    def __getitem__(self, column: str) -> Cell:
        return self._cells[self._index[column]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._cells)

    def __repr__(self) -> str:
        return f"Row({self.to_dict()!r})"

    def is_cut(self, column: str) -> bool:
        """Check whether the cell holds only the beginning of the value."""
        return isinstance(self[column], CutText)

    def to_dict(self) -> dict[str, Cell]:
        """Return the cells by column name."""
        return dict(zip(self._index, self._cells, strict=True))


class CellRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One whole cell, however long."""

    key: RowKey
    column: str


class CountRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The number of rows of an object, or of one tenant in it, under a filter."""

    object: str
    filter: CompiledFilter | None = None
    tenant: str | None = None
