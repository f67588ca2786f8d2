"""Pages of a grid: what is asked for and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from .cells import MISSING, Cell, Json, Value, is_cut
from .columns import MAX_COLUMNS, MAX_DIMENSIONS, Column, Note
from .errors import QueryError
from .filters import CompiledFilter, TimeRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    RowId = str | bytes | list[str | int | bytes]
    """A row's primary key: a text, bytes, or the parts of a composite key in the order of the key columns."""

    _Rows = list[list[Cell]]
else:
    RowId = Any  # msgspec has no union of texts and bytes; `check_id` stands in for it
    _Rows = Sequence[Any]

MAX_ROWS = 10_000
"""Maximum number of rows of one page."""


MAX_SIMILAR = 1_000
"""Maximum number of rows that are looked for near another one."""

DISTANCE = "_distance"
"""The column of a distance; with more underscores before it where the object has a column of that name."""

MAX_PARTS = 32
"""Maximum number of parts of a composite key."""


def check_id(id: object) -> RowId:  # noqa: A002 - the contract's word
    """Return a row's id if it is one.

    Raises:
        ValueError: It is neither a text nor bytes nor a list of at most 32 texts, integers of 64 bits and bytes.
    """
    if isinstance(id, str | bytes):
        return id
    if isinstance(id, list) and 1 <= len(id) <= MAX_PARTS and all(map(_is_part, id)):
        return id
    raise ValueError(f"an id is a text, bytes or a list of 1 to {MAX_PARTS} texts, integers of 64 bits and bytes")


def _is_part(part: object) -> bool:
    if isinstance(part, int):
        return not isinstance(part, bool) and -(1 << 63) <= part < 1 << 64
    return isinstance(part, str | bytes)


def text_id(id: RowId) -> str:  # noqa: A002 - the contract's word
    """Return an id that must be a text, for a database whose keys are texts.

    Raises:
        QueryError: It is not one.
    """
    if not isinstance(id, str):
        kind = "bytes" if isinstance(id, bytes) else f"{len(id)} parts"
        raise QueryError(f"the id of a row is one text here, and {kind} were given")
    return id


class Sort(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One key of a sort."""

    column: str
    descending: bool = False


class PageRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One page of one object.

    Attributes:
        object: The object's name.
        filter: From `compile_filter`, None for all rows.
        time: The span of time that the rows must lie in, None for all; only with the capability ``time-range``.
        sort: The sort keys, the most significant first.
        offset: The number of rows before the page.
        limit: The maximum number of rows of the page, 1 to 10,000.
        columns: Names to return, None for all.
        total: Whether the number of all matching rows is wanted.
        cursor: `Page.next` of an earlier page, to continue after it. A driver refuses it for another query, another
            time range or another revision.
        tenant: The tenant whose rows are wanted, if the object has tenants.
        residual: The most rows, 1 to 10,000, that the driver may read to run filter rows and sorts that the server
            cannot. With None it drops such sorts; `FilterRequest.residual` allows such filter rows.
        revision: `Page.revision` of an earlier page, to read the rows as they were then; empty for now.
    """

    object: str
    filter: CompiledFilter | None = None
    time: TimeRange | None = None
    sort: list[Sort] = []
    offset: int = 0
    limit: int = 100
    columns: list[str] | None = None
    total: bool = True
    cursor: str | None = None
    tenant: str | None = None
    residual: int | None = None
    revision: str = ""


class RowKey(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """The location of a row, and its state when it was read.

    Attributes:
        object: The concrete object that holds it, never an alias.
        id: The row's primary key: a text, bytes, or the parts of a composite key in the order of the key columns
            (those with the role ``key``), each a text, an integer of 64 bits or bytes. A number or an instant is part
            of a key as the text that finds the row again. An empty text if the row has none, and then no change can
            name it (W27).
        routing: What else the server needs to find the row: a routing value or a tenant.
        guard: Values, by the server's names, that a change compares so that it cannot overwrite a newer row: a sequence
            number, or the revision in which the row was read.
    """

    object: str
    id: RowId
    routing: str | None = None
    guard: dict[str, int | str] = {}

    def __post_init__(self) -> None:
        if self.id.__class__ is not str:  # a page has thousands of texts
            check_id(self.id)

    @property
    def text(self) -> str:
        """The id, for a database whose keys are texts; QueryError if it is not a text."""
        return text_id(self.id)


class CellColumns(_Rows):
    """The cells of a page, kept by column; it reads as the list of their rows, which it makes when they are read.

    A driver that reads whole columns at once may give this as `Page.cells`. If no cell has to be cut, they travel as
    they are: nothing is made of each row, nor of each JSON text.

    Attributes:
        columns: The cells of each column, all of the same length.
        json: The columns whose texts are all JSON; they are plain texts here, and `Json` in the rows.
    """

    __slots__ = ("_length", "_rows", "columns", "json")
    __hash__ = None

    def __init__(
        self,
        columns: Sequence[Sequence[Cell]],
        length: int,
        *,
        json: Iterable[int] = (),
    ) -> None:
        """Keep the columns.

        Args:
            columns: The cells of each column.
            length: The number of rows, which there are without columns, too.
            json: The columns whose texts are all JSON, by number.
        """
        self.columns, self._length, self.json = columns, length, frozenset(json)
        self._rows: list[list[Cell]] | None = None

    @property
    def untouched(self) -> bool:
        """Whether nobody has read its rows, which are lists and may have been changed since."""
        return self._rows is None

    @property
    def rows(self) -> list[list[Cell]]:
        """The rows."""
        if self._rows is None:
            columns = [
                [Json(cell) if cell.__class__ is str else cell for cell in column] if at in self.json else column
                for at, column in enumerate(self.columns)
            ]
            self._rows = list(map(list, zip(*columns, strict=True))) if columns else [[] for _ in range(self._length)]
        return self._rows

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            return self.rows[index]
        length = len(range(self._length)[index])
        return CellColumns([column[index] for column in self.columns], length, json=self.json)

    def __eq__(self, other: object) -> bool:
        return self.rows == (other.rows if isinstance(other, CellColumns) else other)

    def __repr__(self) -> str:
        return repr(self.rows)


class Page(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One page: cells by row, and every note about them.

    Attributes:
        columns: The columns of the cells, in order.
        cells: One list per row, as long as `columns`. `MISSING` is a field that the row does not hold, None a null.
        keys: One per row; empty if rows have no keys (a console's table).
        notes: What was dropped, cut, partial or approximate.
        total: Number of rows in the whole result; None if not requested or unknown.
        total_exact: False when there are at least `total` rows.
        offset: Rows before this page.
        next: The cursor of the next page; None at the end, or if paging is by offset only.
        revision: The state of the server's data that the page shows, in the server's own spelling; empty if unknown. A
            request may carry it if the manifest has the capability ``revisions``.
        time: The time range that the request carried, with absolute instants; None for all rows. The host fills it
            in, and the pages that `next` leads to are asked for with the same range.
        now: The instant that relative times of the filter count from, RFC 3339; None if it has none. The host fills it
            in, and the pages that `next` leads to are asked for with the same one.
    """

    columns: Annotated[list[Column], msgspec.Meta(max_length=MAX_COLUMNS)]
    cells: list[list[Cell]] = []
    keys: list[RowKey] = []
    notes: list[Note] = []
    total: int | None = None
    total_exact: bool = True
    offset: int = 0
    next: str | None = None
    revision: str = ""
    time: TimeRange | None = None
    now: str | None = None

    @property
    def rows(self) -> list[Row]:
        """The rows as views, each with its key and its cells by name."""
        index = {column.name: at for at, column in enumerate(self.columns)}
        keys: list[RowKey | None] = [*self.keys] if self.keys else [None] * len(self.cells)
        return [Row(index, cells, key) for cells, key in zip(self.cells, keys, strict=True)]

    def _repr_html_(self) -> str:
        """Return the page as a notebook shows it: a table, and its notes beneath."""
        from .notebook_html import page_html  # only notebooks need it

        return page_html(
            self.columns,
            self.cells,
            offset=self.offset,
            total=self.total,
            total_exact=self.total_exact,
            notes=self.notes,
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the page as an Arrow stream, which pandas, polars and DuckDB read; it needs pyarrow.

        The last column, ``_misfits``, holds the cells that do not fit their column's type, and those that were cut: a
        JSON object from column to cell.
        """
        return self._table().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Return the schema of the Arrow stream."""
        return self._table().schema.__arrow_c_schema__()

    def _table(self) -> Any:
        try:
            from .arrow.pages import page_table
        except ImportError as error:
            from .installation import packages_missing

            raise packages_missing("this needs the package pyarrow", "dragoman[arrow]") from error
        return page_table(self.columns, self.cells)


class Row:
    """One row of a page: a read-only mapping from column name to value, with a key.

    A field that the row does not hold is None, as a null is; `is_missing` tells them apart.
    """

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

    def __getitem__(self, column: str) -> Value:
        cell = self._cells[self._index[column]]
        return None if isinstance(cell, tuple) else cell

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._cells)

    def __repr__(self) -> str:
        return f"Row({self.to_dict()!r})"

    def is_cut(self, column: str) -> bool:
        """Check whether the cell holds only the beginning of the value."""
        return is_cut(self[column])

    def is_missing(self, column: str) -> bool:
        """Check whether the row does not hold the field; False for a null, and if the driver cannot tell."""
        return self._cells[self._index[column]] is MISSING

    def to_dict(self, *, missing: bool = True) -> dict[str, Value]:
        """Return the values by column name.

        Args:
            missing: Whether fields that the row does not hold are included, as None.
        """
        cells = zip(self._index, self._cells, strict=True)
        return {name: self[name] for name, cell in cells if missing or cell is not MISSING}


class CellRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One whole cell, however long.

    Attributes:
        key: The row.
        column: The column's name.
        revision: `Page.revision` of an earlier page, to read the row as it was then; empty for now.
    """

    key: RowKey
    column: str
    revision: str = ""


class CountRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The number of rows of an object, or of one tenant in it, under a filter.

    Attributes:
        object: The object's name.
        filter: From `compile_filter`, None for all rows.
        time: The span of time that the rows must lie in, None for all; only with the capability ``time-range``.
        tenant: The tenant whose rows are wanted, if the object has tenants.
        revision: `Page.revision` of an earlier page, to count the rows as they were then; empty for now.
    """

    object: str
    filter: CompiledFilter | None = None
    time: TimeRange | None = None
    tenant: str | None = None
    revision: str = ""


class SimilarRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rows nearest to a row, a vector or a text.

    Attributes:
        object: The object's name.
        column: The column of vectors in which rows are near; for one of several vectors of a column (`Column.members`),
            its name after the column's and a dot. None for the only one.
        key: The row whose nearest rows are wanted, without itself. Exactly one of `key`, `vector` and `text` is there.
        vector: The vector whose nearest rows are wanted.
        text: A text that the server makes a vector of.
        limit: The maximum number of rows, 1 to 1,000.
        columns: Names to return, None for all.
        filter: From `compile_filter`, None for all rows.
        time: The span of time that the rows must lie in, None for all; only with the capability ``time-range``.
        tenant: The tenant whose rows are wanted, if the object has tenants.
        revision: `Page.revision` of an earlier page, to read the rows as they were then; empty for now.
    """

    object: str
    column: str | None = None
    key: RowKey | None = None
    vector: Annotated[list[float], msgspec.Meta(min_length=1, max_length=MAX_DIMENSIONS)] | None = None
    text: str | None = None
    limit: int = 10
    columns: list[str] | None = None
    filter: CompiledFilter | None = None
    time: TimeRange | None = None
    tenant: str | None = None
    revision: str = ""

    def __post_init__(self) -> None:
        if sum(origin is not None for origin in (self.key, self.vector, self.text)) != 1:
            raise ValueError("rows are similar to a row, a vector or a text: exactly one of them")


class PreviewRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The read whose requests are wanted: either a page or a count.

    Attributes:
        page: The request that `fetch_page` would receive; None for a count.
        count: The request that `count_rows` would receive; None for a page.
    """

    page: PageRequest | None = None
    count: CountRequest | None = None

    def __post_init__(self) -> None:
        if (self.page is None) is (self.count is None):
            raise ValueError("a preview is of either a page or a count")

    @property
    def read(self) -> PageRequest | CountRequest:
        """The read itself."""
        request = self.page or self.count
        assert request is not None
        return request
