"""Reading and writing single documents, and bulk requests."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from dragoman_sample.fakes.elasticsearch.calls import Call, Reply, unreadable
from dragoman_sample.fakes.elasticsearch.errors import ServerError, illegal, invalid, not_reproduced
from dragoman_sample.fakes.elasticsearch.hits import source_filter, whole
from dragoman_sample.fakes.elasticsearch.jsontext import decode, encode, pick
from dragoman_sample.fakes.elasticsearch.mapping import Node
from dragoman_sample.fakes.elasticsearch.store import Cluster, Doc, Index, Shard, check_name

if TYPE_CHECKING:
    from collections.abc import Mapping

WRITE_PARAMS = {"refresh", "routing", "if_seq_no", "if_primary_term", "timeout", "wait_for_active_shards", "version"}


@dataclass(frozen=True, slots=True)
class Guard:
    """The sequence number and term that a document must still have."""

    seq_no: int
    term: int

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Guard | None:
        """Read the guard of a request.

        Raises:
            ServerError: if only one half is given.
        """
        if params.get("version") is not None:
            raise invalid(
                "internal versioning can not be used for optimistic concurrency control. Please use `if_seq_no` and "
                "`if_primary_term` instead"
            )
        seq_no, term = params.get("if_seq_no"), params.get("if_primary_term")
        if seq_no is None and term is None:
            return None
        if term is None:
            raise invalid("ifSeqNo is set, but primary term is [0]")
        if seq_no is None:
            raise invalid(f"ifSeqNo is unassigned, but primary term is [{term}]")
        return cls(int(seq_no), int(term))

    def check(self, doc_id: str, present: Doc | None, index: Index, shard: Shard) -> None:
        """Refuse where the document changed meanwhile."""
        if present is not None and (present.seq_no, 1) == (self.seq_no, self.term):
            return
        end = (
            "but no document was found"
            if present is None
            else f"current document has seqNo [{present.seq_no}] and primary term [1]"
        )
        reason = f"required seqNo [{self.seq_no}], primary term [{self.term}]. {end}"
        raise conflict(doc_id, reason, index, shard)


def conflict(doc_id: str, reason: str, index: Index, shard: Shard) -> ServerError:
    """Return a version conflict."""
    extra = {"index_uuid": index.uuid, "shard": str(shard.number), "index": index.name}
    text = f"[{doc_id}]: version conflict, {reason}"
    return ServerError("version_conflict_engine_exception", text, status=409, extra=extra)


def _missing(doc_id: str, index: Index, shard: Shard) -> ServerError:
    extra = {"index_uuid": index.uuid, "shard": str(shard.number), "index": index.name}
    prefix = "[_doc]" if index.release.types else ""
    reason = f"{prefix}[{doc_id}]: document missing"
    return ServerError("document_missing_exception", reason, status=404, extra=extra)


def _check_id(doc_id: str) -> None:
    size = len(doc_id.encode())
    if size > 512:
        raise invalid(f"id [{doc_id}] is too long, must be no longer than 512 bytes but was: {size}")


def _check_routing(index: Index, doc_id: str, routing: str | None, *, read: bool = False) -> None:
    """Refuse a request without a routing that is required; 7.17 fails to name the row of a read."""
    if index.mapping.body.get("_routing", {}).get("required") and routing is None:
        if read and index.release.types:
            raise ServerError("null_pointer_exception", "type must not be null", status=500)
        reason = f"routing is required for [{index.name}]/[{doc_id}]"
        if index.release.types:
            reason = f"routing is required for [{index.name}]/[_doc]/[{doc_id}]"
        raise ServerError("routing_missing_exception", reason, extra={"index_uuid": "_na_", "index": index.name})


def _result(doc: Doc, result: str, shard_count: int = 1) -> dict[str, Any]:
    types = {"_type": "_doc"} if doc.index.release.types else {}
    copies = 1 + int(doc.index.settings.get("index.number_of_replicas", 1))
    shards = {"total": copies if shard_count else 0, "successful": shard_count, "failed": 0}
    return {
        "_index": doc.index.name, **types, "_id": doc.id, "_version": doc.version, "result": result, "_shards": shards,
        "_seq_no": doc.seq_no, "_primary_term": 1,
    }  # fmt: skip


def store(
    index: Index,
    doc_id: str,
    source: bytes,
    *,
    create: bool = False,
    guard: Guard | None = None,
    routing: str | None = None,
) -> tuple[Doc, str]:
    """Index one document; what does not fit the mapping is refused before any conflict is looked for.

    Raises:
        ServerError: for a bad value, an id that exists, or a conflict.
    """
    index.check_open()
    index.check_blocks()
    _check_id(doc_id)
    routing = routing or None  # an empty one is none where a row is written (seen on 8.19.21)
    _check_routing(index, doc_id, routing)
    try:
        value = decode(source)
    except ServerError as fault:
        raise _unreadable(index, fault) from None
    if not isinstance(value, dict):
        if index.release.parts >= (8, 8):
            raise ServerError("document_parsing_exception", "Malformed content, must start with an object")
        reason = "Compressor detection can only be called on some xcontent bytes or compressed xcontent bytes"
        raise _unreadable(index, ServerError("not_x_content_exception", reason))
    if index.stream is not None and "@timestamp" not in value:
        raise illegal("data stream timestamp field [@timestamp] is missing")
    node, ignored = index.mapping.parse(value, doc_id)
    shard = index.shard_of(routing or doc_id)
    present = shard.live.get(doc_id)
    if create and present is not None:
        raise conflict(doc_id, f"document already exists (current version [{present.version}])", index, shard)
    if guard is not None:
        guard.check(doc_id, present, index, shard)
    shard.live.pop(doc_id, None)
    doc = Doc(doc_id, _kept(index, source, value), 0, 0, node, ignored, routing, index)
    shard.take(doc)
    shard.live[doc_id] = doc
    return doc, "updated" if present else "created"


def _kept(index: Index, source: bytes, value: dict[str, Any]) -> bytes:
    """Return what is kept of a document, all of which was indexed: nothing, a part, or what can be rebuilt of it."""
    options = index.mapping.body.get("_source", {})
    mode = index.settings.get("index.mapping.source.mode", options.get("mode"))
    if options.get("enabled", True) in (False, "false") or mode == "disabled":
        return b""
    if options.get("excludes") or options.get("includes"):
        return encode(pick(value, options.get("includes", []), options.get("excludes", []))).encode()
    return encode(_rebuilt(value)).encode() if mode == "synthetic" else source


def _rebuilt(value: Any) -> Any:
    """Return a value as it comes back from doc values: names and arrays in order, keywords once each."""
    if isinstance(value, dict):
        tree: dict[str, Any] = {}
        for name, member in value.items():
            *parents, last = name.split(".")
            at = tree
            for parent in parents:
                at = at.setdefault(parent, {})
            at[last] = _rebuilt(member)
        return dict(sorted(tree.items()))
    if isinstance(value, list):
        if any(isinstance(item, dict | list) for item in value):
            raise not_reproduced("arrays of objects in synthetic documents")
        once = {*value} if all(isinstance(item, str) for item in value) else value
        items = sorted(item for item in once if item is not None)
        return items[0] if len(items) == 1 else items
    return value


def _unreadable(index: Index, cause: ServerError) -> ServerError:
    if cause.kind.startswith("json"):
        cause = unreadable(cause, index.release)
    if index.release.parts >= (8, 8):
        return ServerError("document_parsing_exception", f"[1:1] failed to parse: {cause.reason}", caused_by=cause)
    return ServerError("mapper_parsing_exception", "failed to parse", caused_by=cause)


def remove(index: Index, doc_id: str, *, guard: Guard | None, routing: str | None) -> tuple[Doc, str]:
    """Delete one document; deleting what is not there writes a tombstone too.

    Raises:
        ServerError: on a conflict.
    """
    index.check_open()
    index.check_blocks()
    routing = routing or None  # an empty one is none where a row is written (seen on 8.19.21)
    _check_routing(index, doc_id, routing)
    shard = index.shard_of(routing or doc_id)
    present = shard.live.get(doc_id)
    if guard is not None:
        guard.check(doc_id, present, index, shard)
    shard.live.pop(doc_id, None)
    doc = Doc(doc_id, b"{}", 0, 0, Node(), [], routing, index)
    shard.take(doc)
    return doc, "deleted" if present else "not_found"


UPDATE_KEYS = {"doc", "upsert", "doc_as_upsert", "detect_noop", "_source", "script", "scripted_upsert"}


def update(
    index: Index, doc_id: str, body: dict[str, Any], *, guard: Guard | None, routing: str | None, retries: int = 0
) -> tuple[Doc, str]:
    """Merge a partial document into a stored one; the whole `_source` is written anew.

    Raises:
        ServerError: for a bad body, a missing document, a bad value or a conflict.
    """
    _check_update(body, guard, retries)
    index.check_open()
    index.check_blocks()
    routing = routing or None  # an empty one is none where a row is written (seen on 8.19.21)
    _check_routing(index, doc_id, routing)
    shard = index.shard_of(routing or doc_id)
    present = shard.live.get(doc_id)
    if present is None:
        if "upsert" in body or body.get("doc_as_upsert"):
            first = body["doc"] if body.get("doc_as_upsert") else body["upsert"]
            return store(index, doc_id, encode(first).encode(), routing=routing)
        raise _missing(doc_id, index, shard)
    if guard is not None:
        guard.check(doc_id, present, index, shard)
    if not present.source:
        prefix = "[_doc]" if index.release.types else ""
        raise ServerError("document_source_missing_exception", f"{prefix}[{doc_id}]: document source missing")
    old = decode(present.source)
    new = _deep_merge(old, body["doc"])
    # Lists and numbers are compared by value: `1` and `1.0` differ for the server as well.
    if body.get("detect_noop", True) and encode(new) == encode(old):
        return present, "noop"
    return store(index, doc_id, encode(new).encode(), routing=routing)


def _check_update(body: dict[str, Any], guard: Guard | None, retries: int) -> None:
    for key in body:
        if key not in UPDATE_KEYS:
            raise ServerError("x_content_parse_exception", f"[1:1] [UpdateRequest] unknown field [{key}]", fault=True)
    if "script" in body:
        raise ServerError(
            "illegal_argument_exception",
            "failed to execute script",
            caused_by=illegal("script_lang not supported [painless]"),
        )
    faults = []
    if "doc" not in body:
        faults.append("script or doc is missing")
    if guard is not None:
        if "upsert" in body:
            faults.append("upsert requests don't support `if_seq_no` and `if_primary_term`")
        if body.get("doc_as_upsert"):
            faults.append("compare and write operations can not be used with upsert")
        if retries:
            faults.append("compare and write operations can not be retried")
    if faults:
        raise invalid(*faults)


def _deep_merge(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    merged = dict(old)
    for key, value in new.items():
        present = merged.get(key)
        both = isinstance(present, dict) and isinstance(value, dict)
        merged[key] = _deep_merge(present, value) if both else value  # type: ignore[arg-type]
    return merged


def _seconds(interval: str) -> float:
    units = {"nanos": 1e-9, "micros": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
    unit = next((unit for unit in units if interval.endswith(unit)), "s")
    return float(interval.removesuffix(unit)) * units[unit]


async def _refresh(index: Index, mode: str | None, answer: dict[str, Any]) -> None:
    if mode in ("true", ""):
        index.refresh()
        # The server puts the flag right after `result`.
        names = ("_shards", "_seq_no", "_primary_term")
        rest: dict[str, Any] = {key: answer.pop(key) for key in names if key in answer}
        if answer.get("result") != "noop":
            answer["forced_refresh"] = True
        answer.update(rest)
    elif mode == "wait_for" and answer.get("result") != "noop":
        interval = _seconds(str(index.settings.get("index.refresh_interval", "1s")))
        if interval < 0:
            await index.refreshed.wait()
        else:
            with anyio.move_on_after(interval if interval > 1 else 0):  # up to a second is spared to tests
                await index.refreshed.wait()
            index.refresh()
    elif mode not in (None, "false", "wait_for"):
        raise illegal(f"Unknown value for refresh: [{mode}].")


async def put(call: Call) -> Reply:
    """PUT or POST `/{index}/_doc/{id}`, `/{index}/_create/{id}`, POST `/{index}/_doc`."""
    params = call.params
    doc_id = call.path.get("id")
    automatic = doc_id is None
    create = "_create" in call.path or params.get("op_type") == "create" or automatic
    if not call.raw:
        raise ServerError("parse_exception", "request body is required")
    guard = Guard.of(params)
    if create and guard is not None:
        raise invalid("create operations do not support compare and set. use index instead")
    target = call.cluster.write_target(call.path["index"], create=create)
    _check_backing(target, call.path["index"], create=create, guarded=guard is not None)
    name = doc_id if doc_id is not None else secrets.token_urlsafe(15)
    doc, result = store(target, name, call.raw, create=create, guard=guard, routing=params.get("routing"))
    answer = _result(doc, result)
    await _refresh(target, params.get("refresh"), answer)
    return Reply(answer, 201 if result == "created" else 200)


def _check_backing(index: Index, name: str, *, create: bool, guarded: bool) -> None:
    if index.stream is None or name == index.stream or guarded:
        return
    which = "create" if create else "index and no if_primary_term and if_seq_no set"
    raise illegal(
        f"index request with op_type={which} targeting backing indices is disallowed, target corresponding data stream "
        f"[{index.stream}] instead"
    )


async def delete(call: Call) -> Reply:
    """DELETE `/{index}/_doc/{id}`."""
    name = call.path["index"]
    if name in call.cluster.streams:
        raise illegal("only write ops with an op_type of create are allowed in data streams")
    # A deletion is a write: an alias of several indices needs a write index. It never creates one.
    index = call.cluster.write_target(name, create=False) if call.cluster.aliased(name) else call.cluster.single(name)
    routing = call.params.get("routing")
    doc, result = remove(index, call.path["id"], guard=Guard.of(call.params), routing=routing)
    answer = _result(doc, result)
    await _refresh(index, call.params.get("refresh"), answer)
    return Reply(answer, 200 if result == "deleted" else 404)


async def post_update(call: Call) -> Reply:
    """POST `/{index}/_update/{id}`; a missing index is created before the document is missed."""
    name = call.path["index"]
    if not call.raw:
        raise ServerError("parse_exception", "request body is required")
    guard = Guard.of(call.params)
    retries = int(call.params.get("retry_on_conflict", 0))
    body = call.json()
    _check_update(body, guard, retries)
    index = call.cluster.write_target(name, create=False)
    routing = call.params.get("routing")
    doc, result = update(index, call.path["id"], body, guard=guard, routing=routing, retries=retries)
    answer = _result(doc, result, 0 if result == "noop" else 1)
    await _refresh(index, call.params.get("refresh"), answer)
    return Reply(answer, 201 if result == "created" else 200)


def get(call: Call) -> Reply:
    """GET `/{index}/_doc/{id}` and `/{index}/_source/{id}`."""
    index = call.cluster.single(call.path["index"])
    doc_id, routing = call.path["id"], call.params.get("routing")
    _check_routing(index, doc_id, routing)
    doc = index.shard_of(doc_id if routing is None else routing).live.get(doc_id)  # also by an empty one (8.19.21)
    return Reply(found(index, doc_id, doc, call.params), 404 if doc is None else 200)


def get_source(call: Call) -> Reply:
    """GET `/{index}/_source/{id}`: the bytes alone."""
    index = call.cluster.single(call.path["index"])
    doc_id = call.path["id"]
    doc = index.shard_of(call.params.get("routing") or doc_id).live.get(doc_id)
    if doc is None:
        kind = f"[_doc]/[{doc_id}]" if index.release.types else f"[{doc_id}]"
        raise ServerError("resource_not_found_exception", f"Document not found [{index.name}]/{kind}", status=404)
    return Reply(_filter(call.params, index)(doc.source))


def _filter(params: dict[str, str], index: Index) -> Any:
    selection: Any = True
    if "_source" in params:
        text = params["_source"]
        selection = text in ("true", "") if text in ("true", "false", "") else text.split(",")
    if "_source_includes" in params or "_source_excludes" in params:
        split = {name: params.get(f"_source_{name}", "") for name in ("includes", "excludes")}
        selection = {name: text.split(",") if text else [] for name, text in split.items()}
    return source_filter(selection, index.release)


def found(index: Index, doc_id: str, doc: Doc | None, params: dict[str, str]) -> dict[str, Any]:
    """Return the answer of GET for one document."""
    body: dict[str, Any] = {"_index": index.name}
    if index.release.types:
        body["_type"] = "_doc"
    body["_id"] = doc_id
    if doc is None:
        return {**body, "found": False}
    body |= {"_version": doc.version, "_seq_no": doc.seq_no, "_primary_term": 1}
    if doc.routing is not None:
        body["_routing"] = doc.routing
    if doc.ignored and index.release.types:
        body["_ignored"] = doc.ignored
    body["found"] = True
    vectors = {"exclude_vectors": params.get("_source_exclude_vectors", "true") != "false"}
    source = _filter(params, index)(whole(doc, vectors)) if doc.source else None
    if source is not None:
        body["_source"] = source
    return body


def mget(call: Call) -> Reply:
    """POST `/_mget` and `/{index}/_mget`."""
    body = call.members({"docs", "ids"})
    default = call.path.get("index")
    items = body.get("docs") or [{"_id": doc_id} for doc_id in body.get("ids", [])]
    docs: list[dict[str, Any]] = []
    for item in items:
        name = item.get("_index", default)
        try:
            index = call.cluster.single(name)
            _check_routing(index, item["_id"], item.get("routing"), read=True)
            doc = index.shard_of(item.get("routing") or item["_id"]).live.get(item["_id"])
            docs.append(found(index, item["_id"], doc, call.params))
        except ServerError as fault:
            error = {"root_cause": [fault.bare()], **fault.describe()}
            types = {"_type": None} if call.cluster.release.types else {}
            docs.append({"_index": name, **types, "_id": item["_id"], "error": error})
    return Reply({"docs": docs})


async def bulk(call: Call) -> Reply:
    """POST `/_bulk` and `/{index}/_bulk`."""
    if not call.raw:
        raise ServerError("parse_exception", "request body is required")
    if not call.raw.endswith(b"\n"):
        raise illegal("The bulk request must be terminated by a newline [\\n]")
    lines = call.raw.split(b"\n")[:-1]
    items: list[dict[str, Any]] = []
    touched: dict[str, Index] = {}
    actions = _actions(lines, call)
    if not actions:
        raise invalid("no requests added")
    for number, (action, meta, source) in enumerate(actions):
        item = _bulk_item(call, action, meta, source, touched)
        if call.flag("refresh") and "error" not in item and item["result"] != "noop":
            item["forced_refresh"] = True
        items.append({action: item})
        # Ten thousand documents take a while; let others have their turn.
        if number % 500 == 499:
            await anyio.lowlevel.checkpoint()
    for index in touched.values():
        await _refresh(index, call.params.get("refresh"), {})
    errors = any("error" in item for entry in items for item in entry.values())
    order = ("took", "errors") if call.cluster.release.parts < (8, 8) else ("errors", "took")
    head = {"took": 3, "errors": errors}
    return Reply({**{key: head[key] for key in order}, "items": items})


_META = {"_index", "_id", "routing", "if_seq_no", "if_primary_term", "retry_on_conflict", "require_alias", "version"}
_ACTIONS = ("create", "delete", "index", "update")


def _actions(lines: list[bytes], call: Call) -> list[tuple[str, dict[str, Any], bytes]]:
    listed: list[tuple[str, dict[str, Any], bytes]] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        line = decode(lines[at])
        action, meta = next(iter(line.items()), ("", {})) if isinstance(line, dict) else ("", {})
        if action not in _ACTIONS:
            text = f"expected field [create], [delete], [index] or [update] but found [{action}]"
            raise ServerError(
                "illegal_argument_exception", f"Malformed action/metadata line [{at + 1}], {text}", fault=True
            )
        for key in meta:
            if key not in _META and not (key == "_type" and call.cluster.release.types):
                text = f"Action/metadata line [{at + 1}] contains an unknown parameter [{key}]"
                raise ServerError("illegal_argument_exception", text, fault=True)
        source = b""
        if action != "delete":
            at += 1
            source = lines[at] if at < len(lines) else b""
            if not source:
                break
        listed.append((action, meta, source))
        at += 1
    return listed


def _bulk_item(
    call: Call, action: str, meta: dict[str, Any], source: bytes, touched: dict[str, Index]
) -> dict[str, Any]:
    name = meta.get("_index", call.path.get("index"))
    doc_id = meta.get("_id")
    types = {"_type": "_doc"} if call.cluster.release.types else {}
    try:
        if name is None:
            raise invalid("index is missing")
        if call.principal is not None:
            call.principal.check_index("indices:data/write/bulk[s]", name, call.cluster.release)
        create = action == "create" or (action == "index" and doc_id is None)
        index = _bulk_index(call.cluster, name, action, create=create)
        guard, routing = Guard.of(meta), meta.get("routing")
        doc_id = str(doc_id) if doc_id is not None else secrets.token_urlsafe(15)
        if action == "delete":
            doc, result = remove(index, doc_id, guard=guard, routing=routing)
        elif action == "update":
            doc, result = update(index, doc_id, decode(source), guard=guard, routing=routing)
        else:
            doc, result = store(index, doc_id, source, create=create, guard=guard, routing=routing)
    except ServerError as fault:
        if fault.kind == "action_request_validation_exception":
            raise
        return {"_index": name, **types, "_id": doc_id, "status": fault.status, "error": fault.describe()}
    touched[index.name] = index
    status = {"created": 201, "not_found": 404}.get(result, 200)
    return {**_result(doc, result), "status": status}


def _bulk_index(cluster: Cluster, name: str, action: str, *, create: bool) -> Index:
    if action == "delete" and not cluster.aliased(name):  # which creates no index, unlike an update
        check_name(name)
        return cluster.single(name)
    index = cluster.write_target(name, create=create)
    if action == "index" or create:
        _check_backing(index, name, create=create, guarded=False)
    return index
