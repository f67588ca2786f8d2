"""Stored objects to cells: arrays and objects become JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Raw

from dragoman_api import Cell, Json
from dragoman_api.json_text import encode
from dragoman_weaviate.columns.field_types import Family, Field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_weaviate.stored_objects import StoredObject

_PLAIN = (str, int, bool, type(None))


def cell(value: Any, *, structured: bool = False) -> Cell:
    """Return the cell of a value; arrays and objects become whole JSON (W11)."""
    if structured or isinstance(value, (dict, list)):
        return Json(encode(value)) if value is not None else None
    return float(bytes(value)) if isinstance(value, Raw) else value


def cells(items: Sequence[StoredObject], fields: Sequence[Field]) -> list[list[Cell]]:
    """Return one cell per row and column; None if an object has no value."""
    if not fields:
        return [[] for _ in items]
    properties = [item.properties or {} for item in items]
    columns = [_column(items, properties, field) for field in fields]
    return [*map(list, zip(*columns, strict=True))]


def _column(items: Sequence[StoredObject], properties: Sequence[dict[str, Any]], field: Field) -> list[Cell]:
    """Return the cells of one column; a page has hundreds of rows of few columns."""
    if field.family in (Family.ID, Family.VECTOR):
        structured = field.family is Family.VECTOR
        return [cell(item.value(field), structured=structured) for item in items]
    values = [members.get(field.prop) for members in properties]
    return [value if value.__class__ in _PLAIN else cell(value) for value in values]
