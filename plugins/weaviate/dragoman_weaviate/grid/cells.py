"""Stored objects to cells: arrays and objects become JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Raw

from dragoman_api import Cell, Json
from dragoman_api.json_text import encode
from dragoman_weaviate.columns.field_types import Family, Field

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dragoman_weaviate.stored_objects import StoredObject


def cell(value: Any, *, structured: bool = False) -> Cell:
    """Return the cell of a value; arrays and objects become whole JSON (W11)."""
    if structured or isinstance(value, (dict, list)):
        return Json(encode(value)) if value is not None else None
    return float(bytes(value)) if isinstance(value, Raw) else value


def cells(items: Iterable[StoredObject], fields: Sequence[Field]) -> list[list[Cell]]:
    """Return one cell per row and column; None if an object has no value."""
    vectors = [each.family is Family.VECTOR for each in fields]
    ways = list(zip(fields, vectors, strict=True))
    return [[cell(item.value(field), structured=vector) for field, vector in ways] for item in items]
