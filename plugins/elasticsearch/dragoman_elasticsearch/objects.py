"""The indices with exact counts, the view of one, its settings, and one document."""

from __future__ import annotations

import re
from math import inf
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from dragoman_api import HttpRequest, Note, Object, ObjectList
from dragoman_api.columns import MAX_OBJECTS
from dragoman_api.errors import AccessDeniedError, ObjectNotFoundError, QueryError, RowNotFoundError
from dragoman_api.json_text import encode
from dragoman_api.kit.exchanges import Exchange, ask, get, post
from dragoman_api.kit.views import digest

from . import protocol
from .columns import mapping
from .protocol import NDJSON, segment, target, whole_documents
from .search import Hit, SearchAnswer, StoredHit, documents

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .columns.grid_columns import View

LARGE = 16 * 2**10
"""Bytes of mappings, about three hundred fields, from which on they are not read again for every call."""

_BATCH = 200  # searches of one _msearch
_SETTINGS = "index.uuid,index.refresh_interval,index.mode,index.mapping.source.mode"
_UNITS = {"nanos": 1e-9, "micros": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_INTERVAL = re.compile(rf"([0-9]{{1,18}})({'|'.join(_UNITS)})?")
_SIZE = re.compile(r"[0-9]{1,18}")
_stored = msgspec.json.Decoder(StoredHit)


class _Listed(msgspec.Struct, frozen=True):
    index: str
    size: str | None = msgspec.field(name="store.size", default=None)


class IndexSettings(msgspec.Struct, frozen=True):
    """The settings of one index, by dotted name: its own, and, where they are requested, the defaults of others."""

    settings: dict[str, str] = {}
    defaults: dict[str, Any] = {}

    @property
    def synthetic(self) -> bool:
        """Whether the server rebuilds documents by these settings; the mapping may say so, too."""
        return mapping.rebuilds_documents(self.settings)

    @property
    def refresh(self) -> tuple[str, float]:
        """The setting of how often searches see new rows, and its seconds; infinite for never, by default one."""
        text = self.settings.get("index.refresh_interval", "1s")
        match = _INTERVAL.fullmatch(text.lower())
        return text, inf if match is None else int(match[1]) * _UNITS[match[2] or "s"]


class _Counts(msgspec.Struct, frozen=True):
    responses: list[SearchAnswer[Hit]]


def list_objects() -> Exchange[ObjectList]:
    """List concrete indices with their rows and bytes; names beginning with `.` are hidden (E15)."""
    reply = yield from ask(get("/_cat/indices?format=json&h=index,store.size&s=index&bytes=b"))
    notes = []
    if reply.status == 403:  # _cat needs a cluster privilege; field capabilities name every index that may be read
        listed = [_Listed(name) for name in sorted((yield from _readable()))]
        reason = "the credentials may not list indices: those that they may read are shown, without their size"
        notes.append(Note(code="objects-hidden", reason=reason, hint="grant the cluster privilege monitor"))
    else:
        listed = protocol.decode(reply, list[_Listed])
    indices = [index for index in listed if not index.index.startswith(".")]
    if len(indices) > MAX_OBJECTS:
        raise QueryError(
            f"the server lists {len(indices):,} indices; {MAX_OBJECTS:,} can be shown",
            hint="open one by its name",
        )
    rows = yield from _count_rows([index.index for index in indices])
    if uncounted := [name for name, count in rows.items() if count is None]:
        reason = f"the rows of {len(uncounted):,} objects could not be counted"
        notes.append(Note(code="rows-unknown", reason=reason))
    objects = [
        Object(
            index.index, rows.get(index.index), int(index.size) if index.size and _SIZE.fullmatch(index.size) else None
        )
        for index in indices
    ]
    return ObjectList(objects=objects, notes=notes)


def names() -> Exchange[list[str]]:
    """List the names of concrete indices that do not begin with `.`."""
    reply = yield from ask(get("/_cat/indices?format=json&h=index,store.size&s=index&bytes=b"))
    listed = (
        (yield from _readable())
        if reply.status == 403
        else [index.index for index in protocol.decode(reply, list[_Listed])]
    )
    return sorted(name for name in listed if not name.startswith("."))


def _readable() -> Exchange[list[str]]:
    reply = yield from ask(HttpRequest("GET", "/*/_field_caps?fields=_id"))
    return protocol.decode(reply, mapping.FieldCaps).indices


def _count_rows(names: Sequence[str]) -> Exchange[dict[str, int | None]]:
    """Count rows exactly: the count that _cat gives holds the hidden documents of nested arrays too."""
    rows: dict[str, int | None] = {}
    for start in range(0, len(names), _BATCH):
        batch = names[start : start + _BATCH]
        lines = (encode({"index": name}) + '\n{"size":0,"track_total_hits":true}\n' for name in batch)
        reply = yield from ask(HttpRequest("POST", "/_msearch", "".join(lines), NDJSON))
        answers = protocol.decode(reply, _Counts).responses
        if len(answers) != len(batch):
            raise QueryError(f"the server answered {len(answers)} of {len(batch)} searches for row counts")
        rows |= {name: None if answer.partial() else answer.count for name, answer in zip(batch, answers, strict=True)}
    return rows


def view(name: str, *, leaves_out_vectors: bool = False) -> Exchange[View]:
    """Fetch the columns of an object: its mappings, the settings that change them, and what each field can do.

    Args:
        name: Its name.
        leaves_out_vectors: The server may keep vectors apart from documents; needed if the mapping is hidden.

    Raises:
        ObjectNotFoundError: There is no such object.
        QueryError: The name cannot be an object's.
    """
    if not name or (name.startswith("_") and name != "_all"):
        raise QueryError(f"{name!r} is not the name of an index, an alias or a data stream")
    names = ",".join((*mapping.SETTINGS, mapping.VECTORS_APART))
    settings_path = f"/{target(name)}/_settings/{names}?flat_settings=true&include_defaults=true"
    mapped, caps, read_settings = yield [get(_mapping(name)), post(_capabilities(name)), get(settings_path)]
    if mapped.status == 403 and caps.status == 200:
        fields = protocol.decode(caps, mapping.FieldCaps)
        return mapping.read(name, None, fields, vectors_apart=fields.indices if leaves_out_vectors else ())
    mappings = protocol.decode(mapped, dict[str, mapping.IndexMapping])
    capabilities = protocol.decode(caps, mapping.FieldCaps)
    settings = None
    if read_settings.status != 403:
        settings = protocol.decode(read_settings, dict[str, IndexSettings])
    explicit_settings = (
        None if settings is None else {index: own_settings.settings for index, own_settings in settings.items()}
    )
    apart = {
        index for index, own_settings in (settings or {}).items()
        if (own_settings.defaults | own_settings.settings).get(mapping.VECTORS_APART) in (True, "true")
    }  # fmt: skip
    object_view = mapping.read(name, mappings, capabilities, explicit_settings, vectors_apart=apart)
    if len(mapped.body) < LARGE:
        return object_view
    return replace(object_view, identity=(yield from identity(name)))


def current_revision(view: View) -> Exchange[str]:
    """Ask for the revision that an object has now; empty if it is gone, or can no longer be seen.

    The mapping's own version needs `monitor`, which readers lack; their answer is the mapping itself.
    """
    reply = yield from ask(post(_capabilities(view.target)) if view.hidden else get(_mapping(view.target)))
    if reply.status in (403, 404):
        return ""
    if view.hidden:
        return digest(protocol.decode(reply, mapping.FieldCaps))
    return digest(protocol.decode(reply, dict[str, mapping.IndexMapping]))


def identity(name: str) -> Exchange[str]:
    """Ask which indices a name stands for, by the ids that they got when they were made; empty if that is hidden."""
    reply = yield from ask(get(f"/{target(name)}/_settings/index.uuid?flat_settings=true"))
    if reply.status in (403, 404):
        return ""
    return digest(protocol.decode(reply, dict[str, IndexSettings]))


def _mapping(name: str) -> str:
    return f"/{target(name)}/_mapping"


def _capabilities(name: str) -> str:
    return f"/{target(name)}/_field_caps?fields=*"


def index_settings(name: str) -> Exchange[Mapping[str, IndexSettings] | None]:
    """Fetch the concrete indices that a name covers and the settings that writes depend on; None if they are hidden.

    Raises:
        ObjectNotFoundError: There is no such index.
    """
    reply = yield from ask(get(f"/{target(name)}/_settings/{_SETTINGS}?flat_settings=true"))
    try:
        settings = protocol.decode(reply, dict[str, IndexSettings])
    except AccessDeniedError:
        return None
    if not settings:
        raise ObjectNotFoundError(f"there is no index '{name}', and a write would create it")
    return settings


def document(index: str, key: str, routing: str | None = None) -> Exchange[StoredHit]:
    """Fetch one document as it is now.

    Raises:
        RowNotFoundError: It is gone.
        ObjectNotFoundError: Its index is gone.
    """
    path = f"/{target(index)}/_doc/{segment(key)}" + (f"?routing={segment(routing)}" if routing else "")
    try:
        hit, _ = yield from documents(whole_documents(get(path)), _stored)
    except QueryError as error:
        if error.details == {"status": 404, "type": ""}:  # not an error answer: `found` is false
            raise RowNotFoundError(
                f"'{index}' holds no document '{key}'", hint="it may have been deleted: read the page again"
            ) from error
        raise
    if hit.id != key:
        raise QueryError(f"the server returned the document {hit.id!r} instead of {key!r}")
    return hit
