"""The answer of a GraphQL Aggregate as tables: a table for each collection, a row for each group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api import Column, ColumnKind, Json, Note, Page, Written
from dragoman_api.cells import MISSING, exact_number
from dragoman_api.columns import MAX_COLUMNS
from dragoman_api.grid import MAX_ROWS
from dragoman_api.json_text import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dragoman_api import Cell


class _Data(msgspec.Struct):
    data: dict[str, dict[str, list[dict[str, Any]] | None]]


_answer = msgspec.json.Decoder(_Data, float_hook=exact_number)


def pages(body: bytes) -> list[tuple[str, Page]]:
    """Return the aggregated collections of an answer, each with its name, or alias, in the query.

    An object becomes dotted columns (`price.mean`, `groupedBy.value`), an array JSON.

    Raises:
        ValueError: It is no such answer.
    """
    groups_by_name = decode(body, _answer).data.get("Aggregate", {})
    return [(f"Aggregate {name}", _page(rows)) for name, rows in groups_by_name.items() if rows is not None]


def _page(groups: list[dict[str, Any]]) -> Page:
    rows = [dict(_flat(row)) for row in groups[:MAX_ROWS]]
    names = [*dict.fromkeys(name for row in rows for name in row)]
    notes = []
    if len(groups) > MAX_ROWS:
        notes.append(Note(code="rows-cut", reason=f"{len(groups):,} rows; the first {MAX_ROWS:,} are shown"))
    if len(names) > MAX_COLUMNS:
        notes.append(Note(code="columns-cut", reason=f"{len(names)} columns; the first {MAX_COLUMNS} are shown"))
        del names[MAX_COLUMNS:]
    return Page(
        columns=[Column(name=name, type="", kind=ColumnKind.OTHER, written=Written.NEVER) for name in names],
        cells=[[row.get(name, MISSING) for name in names] for row in rows],
        notes=notes,
    )


def _flat(members: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Cell]]:
    for name, value in members.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", Json(encode(value)) if isinstance(value, list) else value
