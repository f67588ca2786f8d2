"""What the kit may evaluate, of what the server cannot run, over the rows of a page that allows it.

A row stays refused where a plain comparison could mean something else than the server's: equality of texts that the
server splits into words. The rules that demand a refusal hold as well: regular expressions (W20), ``null`` and
``empty`` without their index (W18, W19), comparisons and patterns on other types (W14, W15).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import Operator as Op
from dragoman_api.cells import exact_number
from dragoman_api.columns import PATTERNS
from dragoman_api.kit.residual import ResidualFilter, ResidualKey, ValueKind
from dragoman_weaviate.columns.field_types import COMPARISONS, EQUALITY, LISTS, ORDERED, Family, Field

if TYPE_CHECKING:
    from dragoman_api import Filter
    from dragoman_weaviate.columns.grid_columns import View
    from dragoman_weaviate.stored_objects import StoredObject

_KINDS = {
    Family.TEXT: ValueKind.TEXT,
    Family.INT: ValueKind.NUMBER,
    Family.NUMBER: ValueKind.NUMBER,
    Family.BOOLEAN: ValueKind.BOOLEAN,
    Family.DATE: ValueKind.TIMESTAMP,
}
_SORTED = _KINDS | {Family.ID: ValueKind.TEXT, Family.UUID: ValueKind.TEXT}


class Residual(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a page that the server does not run.

    Attributes:
        limit: The most rows to read.
        where: The filter rows.
        sort: The sort keys, the most significant first.
    """

    limit: int
    where: ResidualFilter | None = None
    sort: list[ResidualKey] = msgspec.field(default_factory=list)

    def fields(self, view: View) -> list[Field]:
        """Return the columns that it reads."""
        rows = self.where.rows if self.where is not None else []
        names = [*(condition.row.column for condition in rows), *(key.column for key in self.sort)]
        return [view.fields[name] for name in dict.fromkeys(names)]


def kind_of(row: Filter, view: View) -> ValueKind | None:
    """Return how the column of a filter row compares; None if the row must not be evaluated here."""
    field = view.fields.get(row.column)
    if field is None or field.family not in _KINDS:
        return None
    text = field.family is Family.TEXT
    if row.op in PATTERNS:
        return ValueKind.TEXT if text else None
    if row.op in EQUALITY or row.op in LISTS:
        return _KINDS[field.family] if field.exact_tokens or not text else None
    ordered = row.op in COMPARISONS or row.op is Op.BETWEEN
    return _KINDS[field.family] if ordered and field.family in ORDERED else None


def sort_kind(name: str, view: View) -> ValueKind | None:
    """Return how a column is ordered; None if its values have no order."""
    field = view.fields.get(name)
    return _SORTED.get(field.family) if field is not None and not field.array else None


def stored_value(item: StoredObject, field: Field) -> Any:
    """Return the stored value of a column with numbers that compare."""
    value = item.value(field)
    return [_number(element) for element in value] if isinstance(value, list) else _number(value)


def _number(value: Any) -> Any:
    return exact_number(bytes(value).decode()) if isinstance(value, Raw) else value
