r"""GraphQL Aggregate: figures of one property, its frequent values, and counts of many filters in one request.

What 1.38.11 answers (a test repeats each on a real server):

- `topOccurrences` exists for texts only, and counts each element of an array. Without a filter, it writes texts as they
  are escaped in JSON: `R&D` as `R\u0026D`, a line break as `\n`. `groupBy` takes every scalar type, counts a
  row once for each different value, and names values as text: floats as Go prints them, dates as they were written.
- Both cut by shard: each shard gives its `limit` most frequent values, and the sums are neither completed nor cut
  again. So counts over several shards are too low, unless fewer than `limit` values come back: then no shard left any
  out.
- Without a filter, figures of numbers, booleans and dates are read from the index of the property
  (`indexFilterable`), and fail without it; with a filter, from the objects. The index holds integers from 2^63 - 512 on
  as the smallest one, and dates outside 1677 to 2262 as others.
- A `uuid`, an object and a property without a scalar value are not fields of an Aggregate; a `blob` is, and fails.
- Filters in one request, under aliases, are each evaluated by themselves. A comparison reads the keys of its range, 5
  to 10 microseconds each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from . import protocol
from .columns.field_types import Count
from .graphql import Where, literal, query, scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api import HttpRequest
    from dragoman_api.replies import Reply

    from .columns.grid_columns import View

_OWN = ("meta", "groupedBy")
"""Fields of an Aggregate that a property of this name hides behind."""


class _Error(msgspec.Struct, frozen=True):
    message: str = ""


class _Data(msgspec.Struct, frozen=True, rename="pascal"):
    aggregate: dict[str, list[dict[str, Raw]] | None] | None = None


class _Answer(msgspec.Struct, frozen=True):
    data: _Data | None = None
    errors: list[_Error] | None = None


class _Meta(msgspec.Struct, frozen=True):
    count: Count


class _GroupedBy(msgspec.Struct, frozen=True):
    value: str


class _Occurrence(msgspec.Struct, frozen=True):
    value: str
    occurs: Count


class Figures(msgspec.Struct, frozen=True, rename="camel"):
    """Figures of a property; those that were not asked for are None.

    Attributes:
        count: Number of values.
        minimum: The smallest, a date as text.
        maximum: The greatest.
        total_true: How often a boolean is true.
        total_false: How often it is false.
        top_occurrences: The most frequent texts.
    """

    count: Count
    minimum: int | float | str | None = None
    maximum: int | float | str | None = None
    total_true: Count | None = None
    total_false: Count | None = None
    top_occurrences: list[_Occurrence] | None = None


class PropertyQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked about a property.

    Attributes:
        prop: The property.
        figures: The figures, as GraphQL selects them; none if empty.
        groups: The maximum number of values to group rows by, for each shard; 0 for none.
        missing: A filter whose rows have no value, None if there is no such filter.
    """

    prop: str
    figures: str = ""
    groups: int = 0
    missing: Where | None = None


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked about a property; None for what was not.

    Attributes:
        rows: The rows that the filter selects.
        figures: The figures.
        groups: Values as text, each with its number of rows.
        missing: Rows without a value.
    """

    rows: int
    figures: Figures | None = None
    groups: list[tuple[str, int]] | None = None
    missing: int | None = None


def has_figures(prop: str) -> bool:
    """Return whether a property can be selected for its figures."""
    return prop not in _OWN


def joined(*clauses: Where | None) -> Where | None:
    """Return the clause that holds where all of several hold; None for no restriction."""
    operands = [clause for clause in clauses if clause is not None]
    return {"operator": "And", "operands": operands} if len(operands) > 1 else next(iter(operands), None)


def ask(view: View, property_query: PropertyQuery, *, where: Where | None, tenant: str | None) -> HttpRequest:
    """Build the request for what is wanted of a property, over the rows of a filter."""
    figures = f" {property_query.prop}{{{property_query.figures}}}" if property_query.figures else ""
    parts = [_part("rows", view, scope(where, tenant), f"meta{{count}}{figures}")]
    if property_query.groups:
        grouped = [*scope(where, tenant), f"groupBy:{literal([property_query.prop])}", f"limit:{property_query.groups}"]
        parts.append(_part("groups", view, grouped, "meta{count} groupedBy{value}"))
    if property_query.missing is not None:
        parts.append(_part("missing", view, scope(joined(where, property_query.missing), tenant), "meta{count}"))
    return _query(parts)


def read(reply: Reply, property_query: PropertyQuery) -> Aggregate:
    """Read the answer. Raises DragomanError if the server refused, or answered in part."""
    rows_by_alias = _read(reply)
    row = next(iter(rows_by_alias.get("rows", ())), {})
    figures = (
        protocol.decode_part(row[property_query.prop], Figures)
        if property_query.figures and property_query.prop in row
        else None
    )
    values = figures.top_occurrences if figures is not None else None
    groups = [(occurrence.value, occurrence.occurs) for occurrence in values] if values is not None else None
    if property_query.groups:
        groups = [
            (protocol.decode_part(group["groupedBy"], _GroupedBy).value, _count(group))
            for group in rows_by_alias.get("groups", ())
        ]
    missing = None if property_query.missing is None else _counted(rows_by_alias, "missing")
    return Aggregate(rows=_counted(rows_by_alias, "rows"), figures=figures, groups=groups, missing=missing)


def ask_counts(view: View, clauses: Sequence[Where | None], *, tenant: str | None) -> HttpRequest:
    """Build the request that counts the rows of each of several filters."""
    return _query(
        [_part(f"n{at}", view, scope(clause, tenant), "meta{count}") for at, clause in enumerate(clauses)],
    )


def read_counts(reply: Reply, number: int) -> list[int]:
    """Read that many counts. Raises DragomanError if the server refused, or answered in part."""
    rows_by_alias = _read(reply)
    return [_counted(rows_by_alias, f"n{at}") for at in range(number)]


def _part(alias: str, view: View, arguments: Sequence[str], selected: str) -> str:
    inner = f"({','.join(arguments)})" if arguments else ""
    return f"{alias}:{view.target}{inner}{{{selected}}}"


def _query(parts: Sequence[str]) -> HttpRequest:
    return query(f"{{Aggregate{{{' '.join(parts)}}}}}")


def _read(reply: Reply) -> dict[str, list[dict[str, Raw]]]:
    answer = protocol.decode(reply, _Answer)
    if answer.errors or answer.data is None or answer.data.aggregate is None:
        texts = [error.message for error in answer.errors or []]
        raise protocol.refused(texts or ["the answer contains neither data nor a reason"], status=reply.status)
    return {alias: rows or [] for alias, rows in answer.data.aggregate.items()}


def _counted(rows_by_alias: dict[str, list[dict[str, Raw]]], alias: str) -> int:
    rows = rows_by_alias.get(alias)
    if not rows:
        raise protocol.refused([f"the answer lacks the count {alias!r}"], status=200)
    return _count(rows[0])


def _count(row: dict[str, Raw]) -> int:
    return protocol.decode_part(row.get("meta", Raw(b"null")), _Meta).count
