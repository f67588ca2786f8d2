"""Sort keys: what the server sorts by, and what is dropped, with the reason (E24, E25, E37)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman_api import Note, Sort
from dragoman_elasticsearch.columns.field_types import Family, Field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_elasticsearch.columns.view import View

SortKeys = list[dict[str, Any]]
SHARD_DOC = {"_shard_doc": {"order": "asc"}}
"""The tiebreaker of a point in time; left out of `search_after` it loses ties without an error."""


def compile_sort(sorts: Sequence[Sort], view: View) -> tuple[SortKeys, list[Note]]:
    """Translate sort keys; a column that does not sort is dropped with a note.

    Returns:
        The server's sort keys, and a note ``sort-dropped`` for each dropped column.
    """
    keys: SortKeys = []
    notes: list[Note] = []
    for sort in sorts:
        found = view.find(sort.column)
        reason = "there is no such column" if found is None else found.support[1].get("sort", "")
        if found is None or reason:
            notes.append(Note(code="sort-dropped", column=sort.column, reason=reason))
        else:
            keys.append({found.whole: _key(found, descending=sort.descending)})
    return keys, notes


def _key(found: Field, *, descending: bool) -> dict[str, Any]:
    if found.family is Family.INDEX:
        return {"order": "desc" if descending else "asc"}
    # Options for missing values and arrays are explicit, so that reversing a key is symmetric.
    key: dict[str, Any] = {
        "order": "desc" if descending else "asc",
        "missing": "_last",
        "mode": "max" if descending else "min",
    }
    if found.family is Family.NUMBER and (len(found.types) > 1 or "half_float" in found.types):
        key["numeric_type"] = "double"  # 8.19 answers 500 to a half_float that some documents lack
    if found.family is Family.DATE and len(found.types) > 1:
        key["numeric_type"] = "date_nanos"
    if found.partial:  # else the documents of an index without the field are silently missing
        kind = "keyword" if found.keyword or found.family in (Family.KEYWORD, Family.KEYED) else found.types[0]
        key["unmapped_type"] = "double" if kind in ("scaled_float", "token_count") else kind
    nested: dict[str, Any] = {}
    for path in reversed(found.nested):
        nested = {"path": path, "nested": nested} if nested else {"path": path}
    return key | {"nested": nested} if nested else key


def reverse(keys: SortKeys) -> SortKeys:
    """Reverse every sort key, so that the last row comes first."""
    return [{name: _reversed(key) for name, key in each.items()} for each in keys]


def _reversed(key: dict[str, Any]) -> dict[str, Any]:
    turned = key | {"order": "asc" if key["order"] == "desc" else "desc"}
    if "missing" in key:
        turned["missing"] = "_first" if key["missing"] == "_last" else "_last"
    return turned
