"""A look at some stored objects: whether they hold values by which the server compares something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Raw

from dragoman_weaviate.columns.field_types import Family
from dragoman_weaviate.http_requests import Exchange, ask, get
from dragoman_weaviate.stored_objects import read_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman_weaviate.columns.grid_columns import View

    from .exactness import Sample

ROWS = 100
"""Objects that a look reads at most, by REST, which keeps the digits of integers."""

LIMIT = 4 << 20
"""Bytes of its answer at most."""

_FAMILIES = (Family.TEXT, Family.INT, Family.NUMBER, Family.DATE)


def take_sample(view: View) -> Exchange[Sample | None]:
    """Read a sample of a collection; None if there are no objects, or if they belong to tenants.

    Raises:
        DragomanError: The server refused.
    """
    if view.collection.tenancy.enabled:
        return None
    reply = yield from ask(get("/v1/objects", **{"class": view.target}, limit=ROWS))
    items = read_list(reply, view, None)
    if not items:
        return None
    columns = [field for field in view.fields.values() if field.family in _FAMILIES]
    return {field.name: [values for item in items if (values := [*_values(item.value(field))])] for field in columns}


def _values(stored: Any) -> Iterator[Any]:
    for value in stored if isinstance(stored, list) else [stored]:
        if value is not None:
            yield float(bytes(value)) if isinstance(value, Raw) else value
