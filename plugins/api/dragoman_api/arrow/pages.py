"""Pages of a grid as Arrow tables: every cell whole in its column, or set aside as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from dragoman_api.cells import Json, is_cut
from dragoman_api.columns import ColumnKind

from .schema import MISFIT, may_be_lists, schema_of, table_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api.cells import Cell
    from dragoman_api.columns import Column

    from .schema import TableColumn

_encode = msgspec.json.Encoder(decimal_format="number").encode
_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode
_GUESSED = (ColumnKind.INTEGER, ColumnKind.UNSIGNED, ColumnKind.FLOAT, ColumnKind.BOOLEAN, ColumnKind.TEXT)


def page_table(columns: Sequence[Column], cells: Sequence[Sequence[Cell]]) -> pa.Table:
    """Return a page as a table.

    Types are those of the columns. A column that may hold arrays, and does here, has lists. A column of unknown type,
    as in the answer to an aggregation, has the first type that all its cells fit. The last column holds what does not
    fit, what was cut, and what a list of one does not stand for.
    """
    rows = len(cells)
    texts = [[_text(row[at]) for row in cells] for at in range(len(columns))]
    lists = find_lists(columns, cells)
    resolved_columns = [
        replace(column, many=lists[column.name]) if column.name in lists else _typed(column, values)
        for column, values in zip(columns, texts, strict=True)
    ]
    typed = table_columns(resolved_columns, described=resolved_columns)
    misfits: list[dict[str, msgspec.Raw]] = [{} for _ in range(rows)]
    arrays = []
    for number, column in enumerate(typed):
        values: list[Any] = []
        for at, text in enumerate(texts[number]):
            value = None
            try:
                if text is not None:
                    value = _whole(column, text, cells[at][number])
            except MISFIT:
                misfits[at][column.column.name] = msgspec.Raw(text or b"null")
            if column.many and column.is_aside(value):
                misfits[at][column.column.name] = msgspec.Raw(text or b"null")
            values.append(value)
        arrays.append(column.kind.build(values))
    aside = [_encode(row_misfits).decode() if row_misfits else None for row_misfits in misfits]
    return pa.Table.from_arrays([*arrays, pa.array(aside, pa.string())], schema=schema_of(typed))


def find_lists(columns: Sequence[Column], cells: Sequence[Sequence[Cell]]) -> dict[str, Literal["array", "value"]]:
    """Find the columns that may hold arrays, and do in some rows.

    Returns:
        By the names of those columns, what a list of one stands for (see `Column.many`), whichever is more frequent.
    """
    lists: dict[str, Literal["array", "value"]] = {}
    for at, column in enumerate(columns):
        if not may_be_lists(column):
            continue
        values = [row[at] for row in cells if row[at] is not None and not isinstance(row[at], tuple)]
        begins = "[{" if column.members else "["  # a point may be an array of numbers
        arrays = [value for value in values if isinstance(value, Json) and value.startswith(begins)]
        if arrays:
            singles = sum(not is_cut(array) and _is_single(array) for array in arrays)
            lists[column.name] = "value" if len(values) - len(arrays) > singles else "array"
    return lists


def _is_single(array: Json) -> bool:
    try:
        return len(_elements(array.encode())) == 1
    except (ValueError, RecursionError):
        return False


def _whole(column: TableColumn, text: bytes, cell: Cell) -> Any:
    if is_cut(cell):
        raise ValueError
    return column.value(text)


def _text(cell: Cell) -> bytes | None:
    """Return a cell as JSON text; null and missing ones as None."""
    if cell is None or isinstance(cell, tuple):
        return None
    if isinstance(cell, Json):
        return _encode(str(cell)) if is_cut(cell) else cell.encode()
    return _encode(str(cell) if isinstance(cell, str) else cell)


def _typed(column: Column, texts: Sequence[bytes | None]) -> Column:
    """Return a column with a kind for its cells, if it has neither a kind nor a type."""
    if column.type or column.kind is not ColumnKind.OTHER:
        return column
    guesses = [replace(column, kind=kind) for kind in _GUESSED]
    for guess, table_column in zip(guesses, table_columns(guesses, described=()), strict=True):
        try:
            for text in texts:
                if text is not None:
                    table_column.value(text)
        except MISFIT:
            continue
        return guess
    return column
