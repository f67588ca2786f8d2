"""Columns of rows that have no schema: their kinds are those of the values that some rows hold."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from dragoman_api.cells import Json
from dragoman_api.columns import ColumnKind
from dragoman_api.json_text import encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dragoman_api.cells import Cell

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
