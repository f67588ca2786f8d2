"""The indices with exact counts, the view of one, its settings, and one document."""

from __future__ import annotations

import re
from math import inf
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from dragoman_api import DragomanError, HttpRequest, Note, Object, ObjectList, ObjectsRequest
from dragoman_api.columns import Condition
from dragoman_api.errors import (
    AccessDeniedError,
    AuthenticationError,
    ObjectNotFoundError,
    QueryError,
    RowNotFoundError,
)
from dragoman_api.json_text import encode
from dragoman_api.kit.exchanges import Exchange, ask, ask_all, get, post
from dragoman_api.kit.object_lists import choose, describe_span
from dragoman_api.kit.views import digest

from . import protocol
from .columns import mapping
from .protocol import NDJSON, segment, target, whole_documents
from .search import Hit, SearchAnswer, StoredHit, documents

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman_api.replies import Reply

    from .columns.grid_columns import View

LARGE = 16 * 2**10
"""Bytes of mappings, about three hundred fields, from which on they are not read again for every call."""

CLOSED = "close"
"""The status of an index that can neither be read nor counted."""

ALL_OBJECTS = ObjectsRequest()
"""The request for the names, rows and sizes of the first indices."""

_RESOLVE = "/_resolve/index/*?expand_wildcards=open,closed"
_READABLE = "/*/_field_caps?fields=_id"
_SIZES = "format=json&h=index,status,health,store.size&s=index&bytes=b"
_CAT = f"/_cat/indices?{_SIZES}"
_LONGEST_PATH = 3_000  # a server takes 4,096 bytes of method, path and version
_HIDDEN = Note(
    code="objects-hidden",
    reason="the credentials may not list indices: those that they may read are shown, without their size",
    hint="grant the cluster privilege monitor; on OpenSearch, cluster_monitor and indices_monitor",
)

_BATCH = 500  # searches of one _msearch
_AT_ONCE = 4  # requests that count; each is spread over the nodes by itself
_COUNTED = "responses.status,responses.timed_out,responses._shards.total,responses._shards.failed,responses.hits.total"
_SETTINGS = "index.uuid,index.refresh_interval,index.mode,index.mapping.source.mode,index.derived_source.enabled"
_UNITS = {"nanos": 1e-9, "micros": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_INTERVAL = re.compile(rf"([0-9]{{1,18}})({'|'.join(_UNITS)})?")
_SIZE = re.compile(r"[0-9]{1,18}")
_stored = msgspec.json.Decoder(StoredHit)


class _Listed(msgspec.Struct, frozen=True):
    index: str
    status: str | None = None
    health: str | None = None
    size: str | None = msgspec.field(name="store.size", default=None)

    @property
    def bytes(self) -> int | None:
        return int(self.size) if self.size and _SIZE.fullmatch(self.size) else None

    @property
    def state(self) -> Condition | None:
        """Its health; that it is closed comes first, for then it is not read, unless it has lost shards too."""
        if self.status == CLOSED and self.health != "red":
            return Condition("closed")
        return protocol.condition(self.health)


class _Listing(msgspec.Struct, frozen=True):
    indices: dict[str, _Listed]
    notes: list[Note]
    lacks_sizes: bool


class _ResolvedIndex(msgspec.Struct, frozen=True):
    name: str
    attributes: list[str] = []


class _Resolved(msgspec.Struct, frozen=True):
    indices: list[_ResolvedIndex] = []


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


def list_objects(
    request: ObjectsRequest = ALL_OBJECTS, *, resolves_names: bool = False, secured: bool = False
) -> Exchange[ObjectList]:
    """List a part of the concrete indices, with rows and bytes; names beginning with `.` are hidden (E15).

    The names come first. Rows are counted and sizes read for the part only, together.

    Args:
        request: Which part.
        resolves_names: The server lists names without statistics, see `Dialect`.
        secured: The server has users, who may see some of the indices only.
    """
    listing = yield from _indices(resolves_names=resolves_names, secured=secured)
    indices, notes = listing.indices, listing.notes
    choice = choose(request, indices)
    rows: Mapping[str, int | None] = {}
    sizes = {name: indices[name].bytes for name in choice.names}
    states = {name: indices[name].state for name in choice.names}
    if request.counts:
        size_requests = _size_requests(choice.names, of=len(indices)) if listing.lacks_sizes else []
        batches = _batches([name for name in choice.names if indices[name].status != CLOSED])
        searches = [_searches(batch) for batch in batches]
        replies, reason = yield from ask_all([*size_requests, *searches], at_once=_AT_ONCE)
        if reason and len(replies) < len(size_requests):  # the sizes, most likely: they need all shards' statistics
            notes.append(Note(code="sizes-unknown", reason=f"the sizes could not be read: {reason}"))
            size_requests = []
            replies, reason = yield from ask_all(searches, at_once=_AT_ONCE)
        sized, size_notes = _read_sizes(replies[: len(size_requests)])
        sizes |= {name: index.bytes for name, index in sized.items() if name in sizes}
        states |= {name: index.state for name, index in sized.items() if name in states}
        rows, count_reason = _read_rows(batches, replies[len(size_requests) :])
        notes += [*size_notes, *_uncounted(choice.names, rows, indices, reason or count_reason)]
    objects = [Object(name, rows.get(name), sizes[name], state=states[name]) for name in choice.names]
    return ObjectList(objects=objects, notes=notes, next=choice.next, total=choice.total)


def names(*, resolves_names: bool = False, secured: bool = False) -> Exchange[list[str]]:
    """List the names of concrete indices that do not begin with `.`."""
    return sorted((yield from _indices(resolves_names=resolves_names, secured=secured)).indices)


def _indices(*, resolves_names: bool, secured: bool) -> Exchange[_Listing]:
    """List all indices: by their names alone, which a server knows at once, or together with their sizes.

    `_cat` gathers the statistics of all shards whatever it is asked for. `_resolve` names what a user may see, field
    capabilities what one may read.
    """
    notes: list[Note] = []
    listed: list[_Listed] = []
    if resolves_names:
        replies, reason = yield from ask_all([get(_RESOLVE), get(_READABLE)] if secured else [], at_once=_AT_ONCE)
        if not replies:  # without an answer of field capabilities, most likely: they ask every shard
            replies = [(yield from ask(get(_RESOLVE)))]
        if replies[0].status == 200:
            entries = protocol.decode(replies[0], _Resolved).indices
            listed = [_Listed(entry.name, CLOSED if "closed" in entry.attributes else None) for entry in entries]
        for reply in replies[1:]:
            if reply.status == 200:
                listed_names = {index.index for index in listed}
                read_names = protocol.decode(reply, mapping.FieldCaps).indices
                listed += [_Listed(name) for name in read_names if name not in listed_names]
            elif reply.status != 403:  # then there are none
                reason = f"HTTP {reply.status}"
        if reason and listed:
            text = f"indices that the credentials may only read may be missing: {reason}"
            notes.append(Note(code="objects-hidden", reason=text))
    lacks_sizes = bool(listed)
    if not listed:
        reply = yield from ask(get(_CAT))
        if reply.status == 403:  # _cat needs a cluster privilege
            reply = yield from ask(get(_READABLE))
            listed = [_Listed(name) for name in protocol.decode(reply, mapping.FieldCaps).indices]
            notes.append(_HIDDEN)
        else:
            listed = protocol.decode(reply, list[_Listed])
    indices = {index.index: index for index in listed if not index.index.startswith(".")}
    return _Listing(indices, notes, lacks_sizes)


def _batches(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[start : start + _BATCH] for start in range(0, len(names), _BATCH)]


def _size_requests(names: Sequence[str], *, of: int) -> list[HttpRequest]:
    """Build the requests for the sizes of some indices, in few paths that a server takes, or of all indices."""
    paths = [""]
    for name in names:
        path = f"{paths[-1]},{target(name)}" if paths[-1] else target(name)
        if len(path) > _LONGEST_PATH and paths[-1]:
            paths.append(target(name))
        else:
            paths[-1] = path
    if 2 * len(names) >= of or len(paths) > _AT_ONCE:
        return [get(_CAT)]
    return [get(f"/_cat/indices/{path}?{_SIZES}&ignore_unavailable=true") for path in paths if path]


def _read_sizes(replies: Sequence[Reply]) -> tuple[dict[str, _Listed], list[Note]]:
    sized: dict[str, _Listed] = {}
    notes: list[Note] = []
    for reply in replies:
        try:
            sized |= {index.index: index for index in protocol.decode(reply, list[_Listed])}
        except AuthenticationError:
            raise
        except AccessDeniedError:
            notes = [_HIDDEN]
        except DragomanError as error:  # the names are worth showing all the same
            notes = [Note(code="sizes-unknown", reason=f"some sizes could not be read: {error.message}")]
    return sized, notes


def _read_rows(batches: Sequence[Sequence[str]], replies: Sequence[Reply]) -> tuple[dict[str, int | None], str]:
    """Read exact counts: those that _cat gives hold the hidden documents of nested arrays too.

    Returns:
        The rows by name, and the reason of the first request that failed as a whole; empty if none did.
    """
    rows: dict[str, int | None] = {}
    reasons: list[str] = []
    for batch, reply in zip(batches, replies):  # noqa: B905 - there are no replies if sending failed
        try:
            protocol.check(reply)
        except AuthenticationError:
            raise
        except DragomanError as error:  # too busy, or not allowed
            reasons.append(error.message)
            continue
        answers = protocol.decode(reply, _Counts).responses
        if len(answers) != len(batch):
            raise QueryError(f"the server answered {len(answers)} of {len(batch)} searches for row counts")
        rows |= {name: None if answer.partial() else answer.count for name, answer in zip(batch, answers, strict=True)}
    return rows, reasons[0] if reasons else ""


def _searches(names: Sequence[str]) -> HttpRequest:
    lines = (encode({"index": name}) + '\n{"size":0,"track_total_hits":true}\n' for name in names)
    return HttpRequest("POST", f"/_msearch?filter_path={_COUNTED}", "".join(lines), NDJSON)


def _uncounted(
    names: Sequence[str], rows: Mapping[str, int | None], indices: Mapping[str, _Listed], reason: str
) -> list[Note]:
    """Return notes on the indices whose rows are unknown, by what is the cause."""
    closed = [name for name in names if indices[name].status == CLOSED]
    others = [name for name in names if rows.get(name) is None and indices[name].status != CLOSED]
    notes = []
    if closed:
        notes.append(Note(code="rows-unknown", reason=f"{describe_span(closed)} closed: no number of rows"))
    if others:
        cause = f": {reason}" if reason else ""
        notes.append(
            Note(code="rows-unknown", reason=f"the rows of {describe_span(others)} could not be counted{cause}")
        )
    return notes


def view(name: str, *, leaves_out_vectors: bool = False, orders_unsigned: bool = True) -> Exchange[View]:
    """Fetch the columns of an object: its mappings, the settings that change them, and what each field can do.

    Args:
        name: Its name.
        leaves_out_vectors: The server may keep vectors apart from documents; needed if the mapping is hidden.
        orders_unsigned: See `Dialect.orders_unsigned`.

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
        may_be_apart = fields.indices if leaves_out_vectors else ()
        return mapping.read(name, None, fields, vectors_apart=may_be_apart, orders_unsigned=orders_unsigned)
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
    object_view = mapping.read(
        name, mappings, capabilities, explicit_settings, vectors_apart=apart, orders_unsigned=orders_unsigned
    )
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
