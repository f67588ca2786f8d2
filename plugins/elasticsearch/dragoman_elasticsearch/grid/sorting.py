"""Sort keys: what the server sorts by, and what is dropped, with the reason (E24, E25, E37)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman_api import Note, Sort
from dragoman_api.kit.page_columns import sortable
from dragoman_elasticsearch.columns import exactness
from dragoman_elasticsearch.columns.field_types import BOUNDS, Family, Field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_elasticsearch.columns.grid_columns import View
    from dragoman_elasticsearch.connect import Features

SortKeys = list[dict[str, Any]]
MISSING = {"date": (-9223372036854775000, 2**63 - 1), "date_nanos": (0, 2**63 - 1)}
"""What stands for a missing date in a descending and in an ascending sort, by type (milliseconds, nanoseconds).

With `missing: _last` the server leaves out shards whose dates come after the last row that it has so far, which it
writes and reads again in the format of the field; with a number, it asks every shard. The same order, measured on 4
shards of 40 documents, of which many have no date (pages wrong, 22 to 51 of each; `500` and `400` are errors):

    format of the field        by offset: 7.10.2, 7.17.29, 8.7.1    8.19.21    in a point in time: 7.17 and 8.7    8.19
    default, epoch_*, date_time, basic_date          right          right      rows lost      rows lost, descending
    yyyy-MM-dd, dd.MM.yyyy, two formats     rows lost, 500          right      rows lost      rows lost, descending
    yyyy, HH:mm, dd.MM.yy||yyyy-MM-dd            rows lost          right      rows lost      rows lost, descending
    date_nanos, default or epoch_*                   right          right      rows lost      rows lost, descending
    date_nanos, yyyy-MM-dd or dd.MM.yyyy               400          right      rows lost      rows lost, descending

An `alias` field is like its target; runtime dates, sorts in nested arrays and other types are right everywhere. In a
point in time, shards in which no document has a date are left out. `format` in the sort key cures pages by offset on
7.x only: after a missing date, a point in time does not continue (400), and 8.7.1 cannot write one (500).

The smallest number is the first whole second: 8.7.1 cannot write -2**63 as `epoch_millis` (500). 7.10.2 cannot write
either number as `basic_date` (500), nor `_last`. Before 7.11, the server's own sentinel for `date_nanos` is no date
(500); later, it is 0.
"""

_LONGS = frozenset(name for name, (_, maximum) in BOUNDS.items() if maximum < 2**63)

_DOUBLES = frozenset(("byte", "short", "integer", "half_float", "float", "double"))

_FEWER_DIGITS = "some indices hold integers, some fractions: beyond 2^53, neighbours are ordered as if equal"

SHARD_DOC = {"_shard_doc": {"order": "asc"}}
"""The tiebreaker of a point in time; left out of `search_after` it loses ties without an error."""


def compile_sort(sorts: Sequence[Sort], view: View, features: Features) -> tuple[SortKeys, list[Note]]:
    """Translate sort keys; a column that does not sort is dropped with a note.

    Returns:
        The server's sort keys, and notes: ``sort-dropped`` for each dropped column, ``sort-approximate`` for each
        reason why the order differs from that of the stored values.
    """
    pairs, notes = sortable(sorts, view.find, lambda field: field.support[1].get("sort", ""))
    keys: SortKeys = []
    for sort, field in pairs:
        key = _key(field, descending=sort.descending)
        keys.append({field.whole: key})
        reasons = exactness.sort_approximations(field, features)
        if key.get("numeric_type") == "double" and not _DOUBLES.issuperset(field.types):
            reasons.append(_FEWER_DIGITS)
        notes += (Note(code="sort-approximate", column=sort.column, reason=reason) for reason in reasons)
    return keys, notes


def _key(field: Field, *, descending: bool) -> dict[str, Any]:
    if field.family is Family.INDEX:
        return {"order": "desc" if descending else "asc"}
    # Options for missing values and arrays are explicit, so that reversing a key is symmetric.
    key: dict[str, Any] = {
        "order": "desc" if descending else "asc",
        "missing": "_last",
        "mode": "max" if descending else "min",
    }
    if field.family is Family.NUMBER and (len(field.types) > 1 or "half_float" in field.types):
        # 8.19 answers 500 to a half_float that some documents lack. A double has no room for a long.
        key["numeric_type"] = "long" if _LONGS.issuperset(field.types) else "double"
    if field.family is Family.DATE:
        kind = field.types[0]
        if len(field.types) > 1:
            kind = key["numeric_type"] = "date_nanos"
        key["missing"] = MISSING[kind][0 if descending else 1]
    if field.partial:  # else the documents of an index without the field are silently missing
        kind = "keyword" if field.keyword or field.family in (Family.KEYWORD, Family.KEYED) else field.types[0]
        key["unmapped_type"] = "double" if kind in ("scaled_float", "token_count") else kind
    nested: dict[str, Any] = {}
    for path in reversed(field.nested):
        nested = {"path": path, "nested": nested} if nested else {"path": path}
    return key | {"nested": nested} if nested else key


def reverse(keys: SortKeys) -> SortKeys:
    """Reverse every sort key, so that the last row comes first."""
    return [{name: _reversed(key) for name, key in sort_key.items()} for sort_key in keys]


def _reversed(key: dict[str, Any]) -> dict[str, Any]:
    turned = key | {"order": "asc" if key["order"] == "desc" else "desc"}
    if "missing" in key:
        turned["missing"] = {"_last": "_first", "_first": "_last"}.get(key["missing"], key["missing"])
    return turned
