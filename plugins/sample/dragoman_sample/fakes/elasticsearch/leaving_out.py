"""Shards that a sort by date leaves out, as real servers do (measured: `dragoman_querydsl.grid.pages`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.elasticsearch.errors import ServerError, all_shards_failed, illegal
from dragoman_sample.fakes.elasticsearch.store import NODE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_sample.fakes.elasticsearch.fields import Field
    from dragoman_sample.fakes.elasticsearch.sorting import Key
    from dragoman_sample.fakes.elasticsearch.store import View
    from dragoman_sample.fakes.elasticsearch.versions import Release


def kept(
    rows: list[Any], keys: Sequence[Key], views: Sequence[View], release: Release, *, room: int, pit: bool
) -> list[Any]:
    """Return the rows of those shards that the server asks for them, in their order.

    A server compares the dates of a shard with the last row that it has so far; rows without a date have a sentinel.

    Args:
        rows: The sorted rows: sort values, the position of the shard, the document.
        keys: The sort keys; the first one decides.
        views: The shards.
        release: What the server is.
        room: Rows up to the end of the page.
        pit: The search runs in a point in time.

    Raises:
        ServerError: The sentinel, written in the format of the field, cannot be read again.
    """
    key = keys[0] if keys else None
    if key is None or not room or "nested" in key.options or key.options.get("missing", "_last") != "_last":
        return rows
    dates = {at: target for at, view in enumerate(views) if (target := _date(view, key)) is not None}
    having = {at for at, target in dates.items() if any(target.path in doc.node.values for doc in views[at].docs)}
    positions: list[int] = []
    for at in sorted(range(len(views)), key=lambda at: at not in having):
        full = len(positions) >= room
        if full and at in dates and at not in having and pit and (key.descending or release.parts < (8, 19)):
            continue
        if full and at in having and release.parts < (8, 19):
            last = rows[positions[room - 1]]
            if dates[at].path not in last[2].node.values and _misread(dates[at], views[at], descending=key.descending):
                continue
        positions = sorted([*positions, *(number for number, row in enumerate(rows) if row[1] == at)])
    return [rows[number] for number in positions]


def _date(view: View, key: Key) -> Field | None:
    target = view.index.mapping.field(key.name)
    return target if target is not None and target.family == "date" and target.indexed else None


def _misread(target: Field, view: View, *, descending: bool) -> bool:
    """Tell whether the sentinel comes back as another date: in a format of letters a year has no sign."""
    if not {"yyyy", "dd.MM.yyyy"} & {target.formats.split("||")[0].split("-")[0]}:
        return False
    if descending:
        return target.type == "date"
    cause = ServerError("arithmetic_exception", "long overflow", status=500)
    if target.type == "date_nanos":
        cause = illegal("date[2262-04-11T23:59:59.999999999Z] is after 2262-04-11T23:47:16.854775807 and cannot be")
    failure = {"shard": view.shard.number, "index": view.index.name, "node": NODE, "reason": cause.describe()}
    raise all_shards_failed([failure], [cause])
