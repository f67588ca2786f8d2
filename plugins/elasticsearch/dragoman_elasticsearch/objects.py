"""What can be browsed: the list of indices with exact counts, one object's view, one document."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman_api import HttpRequest, Object
from dragoman_api.errors import QueryError, RowNotFoundError
from dragoman_api.exchanges import encode

from . import faults, mapping
from .documents import Hit, Stored
from .exchange import Exchange, get, post, segment, target
from .search import Found, documents

if TYPE_CHECKING:
    from collections.abc import Sequence

_BATCH = 200  # searches of one _msearch
_NDJSON = "application/x-ndjson"
_stored = msgspec.json.Decoder(Stored)


class _Listed(msgspec.Struct, frozen=True):
    index: str
    size: str | None = msgspec.field(name="store.size", default=None)


class _Counts(msgspec.Struct, frozen=True):
    responses: list[Found[Hit]]


def list_objects() -> Exchange[list[Object]]:
    """List concrete indices with their rows and bytes; names beginning with `.` are hidden (E15)."""
    reply = yield get("/_cat/indices?format=json&h=index,store.size&s=index&bytes=b")
    if reply.status == 403:  # _cat needs a cluster privilege; field capabilities name every index that may be read
        listed = [_Listed(name) for name in sorted((yield from _readable()))]
    else:
        listed = faults.decode(reply, list[_Listed])
    shown = [each for each in listed if not each.index.startswith(".")]
    rows = yield from _count_rows([each.index for each in shown])
    return [
        Object(each.index, rows.get(each.index), int(each.size) if each.size and each.size.isdigit() else None)
        for each in shown
    ]


def _readable() -> Exchange[list[str]]:
    reply = yield HttpRequest("GET", "/*/_field_caps?fields=_id")
    return faults.decode(reply, mapping.FieldCaps).indices


def _count_rows(names: Sequence[str]) -> Exchange[dict[str, int | None]]:
    """Count rows exactly: the count that _cat gives holds the hidden documents of nested arrays too."""
    rows: dict[str, int | None] = {}
    for start in range(0, len(names), _BATCH):
        batch = names[start : start + _BATCH]
        lines = (encode({"index": name}) + '\n{"size":0,"track_total_hits":true}\n' for name in batch)
        reply = yield HttpRequest("POST", "/_msearch", "".join(lines), _NDJSON)
        answers = faults.decode(reply, _Counts).responses
        rows |= {name: None if each.partial() else each.count for name, each in zip(batch, answers, strict=True)}
    return rows


def view(name: str) -> Exchange[mapping.View]:
    """Learn the columns of an object: its mappings and what the server can do with each field.

    Raises:
        ObjectNotFoundError: There is no such object.
        QueryError: The name is no name of an object.
    """
    if not name or (name.startswith("_") and name != "_all"):
        raise QueryError(f"{name!r} is no name of an index, an alias or a data stream")
    mapped = yield get(f"/{target(name)}/_mapping")
    caps = yield post(f"/{target(name)}/_field_caps?fields=*")
    hidden = mapped.status == 403 and caps.status == 200
    mappings = None if hidden else faults.decode(mapped, dict[str, mapping.IndexMapping])
    return mapping.read(name, mappings, faults.decode(caps, mapping.FieldCaps))


def document(index: str, key: str, routing: str | None = None) -> Exchange[Stored]:
    """Fetch one document as it is now.

    Raises:
        RowNotFoundError: It is gone.
        ObjectNotFoundError: Its index is gone.
    """
    path = f"/{target(index)}/_doc/{segment(key)}" + (f"?routing={segment(routing)}" if routing else "")
    try:
        hit, _ = yield from documents(get(path), _stored)
    except QueryError as error:
        if error.details == {"status": 404, "type": ""}:  # an answer of its own, not an error: found is false
            raise RowNotFoundError(f"'{index}' holds no document '{key}'", hint="reload the page") from error
        raise
    return hit
