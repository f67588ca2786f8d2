"""Indices, mappings, settings, aliases, templates, and what lists them."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.elasticsearch import security
from dragoman_sample.fakes.elasticsearch.calls import Call, Reply
from dragoman_sample.fakes.elasticsearch.errors import ServerError, illegal, no_such_index, not_reproduced
from dragoman_sample.fakes.elasticsearch.fields import java_text
from dragoman_sample.fakes.elasticsearch.store import flat

if TYPE_CHECKING:
    from dragoman_sample.fakes.elasticsearch.fields import Field
    from dragoman_sample.fakes.elasticsearch.store import Index
    from dragoman_sample.fakes.elasticsearch.versions import Release

_SETTINGS = {
    "number_of_shards", "number_of_replicas", "max_result_window", "refresh_interval", "hidden", "max_terms_count",
    "blocks.read_only_allow_delete", "blocks.read_only", "blocks.write", "mapping.total_fields.limit",
    "max_refresh_listeners", "mapping.source.mode", "mapping.coerce", "mapping.ignore_malformed",
}  # fmt: skip
_SHOWN_DEFAULTS = {"index.max_result_window": "10000", "index.refresh_interval": "1s", "index.max_terms_count": "65536"}
VECTORS_APART = "index.mapping.exclude_source_vectors"
OK = {"acknowledged": True}


def root(call: Call) -> Reply:
    """GET `/`."""
    release = call.cluster.release
    version = {
        "number": release.number, "build_flavor": "default", "build_type": "tar", "build_hash": release.build_hash,
        "build_date": release.build_date, "build_snapshot": False, "lucene_version": release.lucene,
        "minimum_wire_compatibility_version": release.wire, "minimum_index_compatibility_version": release.index,
    }  # fmt: skip
    body: dict[str, Any] = {"name": "n1", "cluster_name": call.cluster.name, "cluster_uuid": call.cluster.uuid}
    return Reply({**body, "version": version, "tagline": "You Know, for Search"})


def authenticate(call: Call) -> Reply:
    """GET `/_security/_authenticate`."""
    assert call.principal is not None
    return Reply(security.describe(call.principal, call.cluster.release))


def health(call: Call) -> Reply:
    """GET `/_cluster/health`."""
    shards = sum(len(index.shards) for index in call.cluster.indices.values())
    missing = sum(
        int(index.settings.get("index.number_of_replicas", 1)) * len(index.shards)
        for index in call.cluster.indices.values()
    )
    body = {
        "cluster_name": call.cluster.name, "status": "yellow" if missing else "green", "timed_out": False,
        "number_of_nodes": 1, "number_of_data_nodes": 1, "active_primary_shards": shards, "active_shards": shards,
        "relocating_shards": 0, "initializing_shards": 0, "unassigned_shards": missing,
        "unassigned_primary_shards": 0, "delayed_unassigned_shards": 0, "number_of_pending_tasks": 0,
        "number_of_in_flight_fetch": 0, "task_max_waiting_in_queue_millis": 0,
        "active_shards_percent_as_number": 100.0 * shards / (shards + missing) if shards else 100.0,
    }  # fmt: skip
    if call.cluster.release.types:
        del body["unassigned_primary_shards"]
    return Reply(body)


def put_settings(call: Call) -> Reply:
    """PUT `/_cluster/settings`; only the switches that the fake obeys."""
    body = call.members({"persistent", "transient"})
    requested = {**body.get("persistent", {}), **body.get("transient", {})}
    settings = {name.removeprefix("index."): value for name, value in flat(requested).items()}
    for name, value in settings.items():
        if name not in ("search.allow_expensive_queries", "search.max_open_scroll_context"):
            raise not_reproduced(f"the cluster setting {name}")
        call.cluster.settings[name] = value
        if value is None:
            del call.cluster.settings[name]
    return Reply({**OK, "persistent": body.get("persistent", {}), "transient": body.get("transient", {})})


def create(call: Call) -> Reply:
    """PUT `/{index}`."""
    body = call.json()
    for key in body:
        if key not in ("settings", "mappings", "aliases"):
            raise ServerError("parse_exception", f"unknown key [{key}] for create index", fault=True)
    settings = _check_settings(body.get("settings", {}), call.cluster.release)
    index = call.cluster.create(call.path["index"], settings, body.get("mappings"))
    index.aliases = {name: dict(options) for name, options in body.get("aliases", {}).items()}
    return Reply({**OK, "shards_acknowledged": True, "index": index.name})


def _check_settings(requested: dict[str, Any], release: Release) -> dict[str, Any]:
    settings = flat(requested)
    allowed = _SETTINGS | ({"mapping.ignore_above"} if release.parts >= (8, 15) else set())
    allowed |= {"mapping.exclude_source_vectors"} if release.parts >= (9, 2) else set()
    for name in settings:
        if name.removeprefix("index.") not in allowed:
            reason = f"unknown setting [{name}] please check that any required plugins are installed, or check the "
            raise illegal(reason + "breaking changes documentation for removed settings", fault=True)
    return settings


def delete(call: Call) -> Reply:
    """DELETE `/{index}`."""
    cluster = call.cluster
    doomed: dict[str, Index] = {}
    for name in call.path["index"].split(","):
        wild = "*" in name or name == "_all"
        if wild and not cluster.release.types and name != "*,-*":
            raise illegal("Wildcard expressions or all indices are not allowed")
        if not wild and name not in cluster.indices:
            if name in cluster.streams:
                fault = no_such_index(name)
                fault.extra["excluded_ds"] = "true"
                raise fault
            if cluster.aliased(name):
                text = f"The provided expression [{name}] matches an alias, specify the corresponding concrete indices "
                raise illegal(text + "instead.")
        for index in cluster.resolve(name):
            if index.stream is not None and cluster.streams[index.stream][-1] == index.name:
                text = f"index [{index.name}] is the write index for data stream [{index.stream}] and cannot be deleted"
                raise illegal(text)
            doomed[index.name] = index
    for index in doomed.values():
        index.check_blocks(metadata=True)
        del cluster.indices[index.name]
    return Reply(OK)


def get_index(call: Call) -> Reply:
    """GET or HEAD `/{index}`."""
    answer = {}
    for index in call.indices():
        settings = _tree(_all_settings(index), strip="index.")
        answer[index.name] = {
            "aliases": index.aliases,
            "mappings": index.mapping.shown(),
            "settings": {"index": settings},
        }
    return Reply(answer)


def get_mapping(call: Call) -> Reply:
    """GET `/_mapping` and `/{index}/_mapping`."""
    return Reply({index.name: {"mappings": index.mapping.shown()} for index in call.indices()})


def put_mapping(call: Call) -> Reply:
    """PUT `/{index}/_mapping`."""
    for index in call.indices():
        index.mapping.merge(call.json(required=True))
    return Reply(OK)


def _all_settings(index: Index) -> dict[str, Any]:
    major, minor, patch = index.release.parts
    settings = {
        "index.creation_date": str(index.created), "index.number_of_replicas": "1", "index.number_of_shards": "1",
        "index.provided_name": index.name, "index.uuid": index.uuid,
        "index.version.created": f"{major}{minor:02d}{patch:02d}99", **index.settings,
    }  # fmt: skip
    if index.release.parts >= (7, 13):
        settings["index.routing.allocation.include._tier_preference"] = "data_content"
    return {name: java_text(value) for name, value in sorted(settings.items())}


def _tree(flat_settings: dict[str, Any], strip: str = "") -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in flat_settings.items():
        *parents, last = name.removeprefix(strip).split(".")
        at = tree
        for parent in parents:
            at = at.setdefault(parent, {})
        at[last] = value
    return tree


def get_settings(call: Call) -> Reply:
    """GET `/{index}/_settings` and `/{index}/_settings/{name}`."""
    patterns = call.path.get("name", "*").split(",")
    answer = {}
    for index in call.indices():
        groups = {"settings": _all_settings(index)}
        if call.flag("include_defaults"):
            apart = {VECTORS_APART: "true"} if index.release.parts >= (9, 2) else {}
            groups["defaults"] = {k: v for k, v in (_SHOWN_DEFAULTS | apart).items() if k not in groups["settings"]}
        for group, values in groups.items():
            matching = {k: v for k, v in values.items() if any(fnmatch.fnmatchcase(k, pattern) for pattern in patterns)}
            groups[group] = matching if call.flag("flat_settings") else _tree(matching)
        answer[index.name] = groups
    if "name" in call.path and not call.flag("include_defaults"):
        answer = {name: groups for name, groups in answer.items() if groups["settings"]}
    return Reply(answer)


def put_index_settings(call: Call) -> Reply:
    """PUT `/{index}/_settings`."""
    body = call.json(required=True)
    for index in call.indices():
        for name, value in _check_settings(body.get("settings", body), index.release).items():
            if name == "index.number_of_shards":
                final = f"Can't update non dynamic settings [[{name}]] for open indices [[{index.name}/{index.uuid}]]"
                raise illegal(final)
            index.settings[name] = value
            if value is None:
                del index.settings[name]
    return Reply(OK)


def set_open(call: Call) -> Reply:
    """POST `/{index}/_open` and `/{index}/_close`."""
    closing = call.path["verb"] == "_close"
    for index in call.indices():
        index.closed = closing
    indices = {index.name: {"closed": True} for index in call.indices()}
    return Reply({**OK, "shards_acknowledged": True, **({"indices": indices} if closing else {})})


def refresh(call: Call) -> Reply:
    """POST or GET `/_refresh` and `/{index}/_refresh`."""
    indices = call.indices()
    for index in indices:
        index.check_open()
        index.refresh()
    total = sum(len(index.shards) * (1 + int(index.settings.get("index.number_of_replicas", 1))) for index in indices)
    return Reply({"_shards": {"total": total, "successful": sum(len(i.shards) for i in indices), "failed": 0}})


def stats(call: Call) -> Reply:
    """GET `/{index}/_stats?level=shards`: the sequence numbers of each shard."""
    indices = {}
    for index in call.indices():
        shards = {}
        for shard in index.shards:
            last = shard.next_seq_no - 1
            shards[str(shard.number)] = [
                {
                    "routing": {"state": "STARTED", "primary": True, "node": "n1", "relocating_node": None},
                    "docs": {"count": sum(doc.node.count() for doc in shard.seen), "deleted": 0},
                    "seq_no": {"max_seq_no": last, "local_checkpoint": last, "global_checkpoint": last},
                }
            ]
        indices[index.name] = {"uuid": index.uuid, "shards": shards}
    return Reply({"indices": indices})


def aliases(call: Call) -> Reply:
    """POST `/_aliases`."""
    for action in call.members({"actions"}).get("actions", []):
        ((verb, options),) = action.items()
        names = options.get("indices") or [options["index"]]
        for name in names:
            for index in call.cluster.resolve(name):
                for alias in options.get("aliases") or [options.get("alias")]:
                    if verb == "add":
                        index.aliases[alias] = {
                            k: v for k, v in options.items() if k in ("is_write_index", "is_hidden")
                        }
                    elif verb == "remove":
                        index.aliases.pop(alias, None)
                    else:
                        raise not_reproduced(f"the alias action {verb}")
                if options.get("filter"):
                    raise not_reproduced("filtered aliases")
    return Reply({**OK, "errors": False} if call.cluster.release.parts >= (8, 12) else OK)


def put_template(call: Call) -> Reply:
    """PUT `/_index_template/{name}`."""
    call.cluster.templates[call.path["name"]] = call.members(
        {"index_patterns", "template", "data_stream", "priority", "composed_of", "version", "_meta"}
    )
    return Reply(OK)


def put_stream(call: Call) -> Reply:
    """PUT `/_data_stream/{name}`."""
    call.cluster.create_stream(call.path["name"])
    return Reply(OK)


def delete_stream(call: Call) -> Reply:
    """DELETE `/_data_stream/{name}`."""
    name = call.path["name"]
    if name not in call.cluster.streams:
        raise no_such_index(name)
    for backing in call.cluster.streams.pop(name):
        del call.cluster.indices[backing]
    return Reply(OK)


def resolve(call: Call) -> Reply:
    """GET `/_resolve/index/{name}`."""
    cluster, expression = call.cluster, call.path["name"]
    expanded = set(call.params.get("expand_wildcards", "open").split(","))
    wide = bool({"all", "hidden"} & expanded)
    closed_too = bool({"all", "closed"} & expanded)
    names = expression.split(",")
    existing = {
        *cluster.indices,
        *cluster.streams,
        *(alias for index in cluster.indices.values() for alias in index.aliases),
    }
    for name in names:
        if "*" not in name and name not in existing and not cluster.release.types:
            raise no_such_index(name)

    def wanted(name: str) -> bool:
        return call.visible(name) and any(fnmatch.fnmatchcase(name, pattern) for pattern in names)

    indices = []
    for name, index in sorted(cluster.indices.items()):
        if not wanted(name) or (index.hidden and not wide and name not in names):
            continue
        if index.closed and not closed_too and name not in names:
            continue
        attributes = ["closed" if index.closed else "open"] + (["hidden"] if index.hidden else [])
        entry: dict[str, Any] = {"name": name}
        if index.aliases:
            entry["aliases"] = sorted(index.aliases)
        entry["attributes"] = sorted(attributes)
        if index.stream:
            entry["data_stream"] = index.stream
        if cluster.release.parts >= (9, 1):
            entry["mode"] = "standard"
        indices.append(entry)
    alias_names = sorted({alias for index in cluster.indices.values() for alias in index.aliases if wanted(alias)})
    listed = [{"name": alias, "indices": sorted(i.name for i in cluster.aliased(alias))} for alias in alias_names]
    streams = [
        {"name": name, "backing_indices": backing, "timestamp_field": "@timestamp"}
        for name, backing in sorted(cluster.streams.items())
        if wanted(name)
    ]
    return Reply({"indices": indices, "aliases": listed, "data_streams": streams})


_META_FIELDS = {
    "_id": (True, False), "_index": (True, True), "_seq_no": (True, True), "_source": (False, False),
    "_routing": (True, False), "_version": (False, True), "_ignored": (True, False), "_field_names": (True, False),
    "_doc_count": (False, False), "_nested_path": (True, False), "_tier": (True, True),
}  # fmt: skip


def field_caps(call: Call) -> Reply:
    """GET or POST `/{index}/_field_caps?fields=`."""
    body = call.members({"fields", "index_filter", "runtime_mappings"})
    patterns = call.params.get("fields", "").split(",") if "fields" in call.params else body.get("fields", [])
    if not patterns or patterns == [""]:
        raise ServerError("illegal_argument_exception", "specified fields can't be null or empty")
    if body.keys() - {"fields"}:
        raise not_reproduced(f"field_caps with {sorted(body)}")
    indices = call.indices()
    seen: dict[str, dict[str, dict[str, tuple[bool, bool]]]] = {}
    for index in indices:
        if index.closed:
            if call.cluster.release.parts < (7, 11):
                continue
            if call.cluster.release.parts >= (8, 19):
                index.check_open()
            reason = f"index [{index.name}] blocked by: [FORBIDDEN/4/index closed];"
            raise ServerError("cluster_block_exception", reason, status=403)
        for name, kind, can in _caps(index):
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                seen.setdefault(name, {}).setdefault(kind, {})[index.name] = can
    fields = {
        name: {
            kind: _merged_caps(name, kind, mapped, mixed=len(kinds) > 1, release=call.cluster.release)
            for kind, mapped in kinds.items()
        }
        for name, kinds in seen.items()
    }
    return Reply({"indices": [index.name for index in indices], "fields": fields})


def _caps(index: Index) -> list[tuple[str, str, tuple[bool, bool]]]:
    mapping, listed = index.mapping, []
    for name, can in _META_FIELDS.items():
        kind = {"_doc_count": "integer", "_tier": "keyword"}.get(name, name)
        both = (True, True) if name == "_id" and index.release.types else can
        if name == "_version" and index.release.parts < (7, 11):
            both = (False, False)
        if name == "_ignored" and index.release.parts >= (8, 15):
            both = (True, True)
        if name in ("_nested_path", "_tier") and index.release.types:
            continue
        listed.append((name, kind, both))
    for path, target in mapping.fields.items():
        listed.append((path, target.type, _can(target, index)))
    for alias, path in mapping.aliases.items():
        listed.append((alias, mapping.fields[path].type, _can(mapping.fields[path], index)))
    for path, kind in mapping.objects.items():
        below = any(name.startswith(path + ".") for name in mapping.fields)
        # Empty and disabled objects are not listed at all.
        if kind == "nested" or (kind == "object" and below):
            listed.append((path, kind, (False, False)))
    return listed


def _can(target: Field, index: Index) -> tuple[bool, bool]:
    searchable = target.indexed or (target.doc_values and not index.release.types and target.family != "opaque")
    return searchable, target.doc_values


def _merged_caps(
    name: str, kind: str, by_index: dict[str, tuple[bool, bool]], *, mixed: bool, release: Release
) -> dict[str, Any]:
    caps: dict[str, Any] = {"type": kind}
    if release.parts >= (7, 13):
        caps["metadata_field"] = name in _META_FIELDS
    if release.parts >= (9, 1):
        caps["inference"] = False
    for at, word in enumerate(("searchable", "aggregatable")):
        lacking = sorted(index for index, can in by_index.items() if not can[at])
        caps[word] = not lacking
        if lacking and len(lacking) < len(by_index):
            caps[f"non_{word}_indices"] = lacking
    if mixed:
        caps["indices"] = sorted(by_index)
    return caps


def cat_indices(call: Call) -> Reply:
    """GET `/_cat/indices` and `/_cat/indices/{index}`."""
    release = call.cluster.release
    expression = call.path.get("index", "*")
    expand = call.params.get("expand_wildcards", "")
    wide = bool({"all", "hidden"} & set(expand.split(",")))
    _check_cat(call)
    indices = call.cluster.resolve(expression, hidden=wide, lenient=call.flag("ignore_unavailable"))
    if release.parts >= (8,) and "index" not in call.path:
        # Backing indices of data streams are listed although they are hidden.
        indices += [i for i in call.cluster.indices.values() if i.stream is not None and i not in indices]
    rows = []
    for index in sorted(indices, key=lambda candidate: candidate.name):
        copies = int(index.settings.get("index.number_of_replicas", 1))
        size = None if index.closed else _size(index.size(), call.params.get("bytes"))
        row = {
            "health": "yellow" if copies else "green", "status": "close" if index.closed else "open",
            "index": index.name, "uuid": index.uuid, "pri": str(len(index.shards)), "rep": str(copies),
            "docs.count": None if index.closed else str(index.lucene_count()),
            "docs.deleted": None if index.closed else str(index.deleted_count()),
            "store.size": size, "pri.store.size": size,
        }  # fmt: skip
        if release.parts >= (8, 15):
            row["dataset.size"] = size
        rows.append(row)
    short = {"i": "index", "idx": "index", "dc": "docs.count", "docsCount": "docs.count", "h": "health", "s": "status"}
    return _cat(call, rows, {**short, "ss": "store.size", "storeSize": "store.size", "p": "pri", "r": "rep"})


def cat_nodes(call: Call) -> Reply:
    """GET `/_cat/nodes`: the one node there is, with every role."""
    release = call.cluster.release
    heap, heap_max, disk, disk_max = 214 << 20, 512 << 20, 61 << 30, 250 << 30
    row = {
        "ip": "127.0.0.1", "heap.percent": str(100 * heap // heap_max), "ram.percent": "60", "cpu": "3",
        "load_1m": "0.42", "load_5m": "0.40", "load_15m": "0.38",
        "node.role": "dilm" if release.types else "cdfhilmrstw", "master": "*", "name": "sample-1",
        "version": call.cluster.release.number, "heap.current": _size(heap, call.params.get("bytes")),
        "heap.max": _size(heap_max, call.params.get("bytes")), "disk.used": _size(disk, call.params.get("bytes")),
        "disk.total": _size(disk_max, call.params.get("bytes")),
    }  # fmt: skip
    if "h" not in call.params:
        row = {name: row[name] for name in [*row][:10]}
    return _cat(call, [row], {"n": "name", "v": "version", "r": "node.role", "role": "node.role", "m": "master"})


def _check_cat(call: Call) -> None:
    """Refuse those who lack any of the privileges that the listing needs; the refusals come together."""
    principal, release = call.principal, call.cluster.release
    if principal is None:
        return
    refused: list[ServerError] = []
    first = "indices:monitor/settings/get"
    for action in (first, "cluster:monitor/state", "indices:monitor/stats", "cluster:monitor/health"):
        if action == "cluster:monitor/health" and not release.types:
            continue
        try:
            if action in security.CLUSTER_ACTIONS:
                principal.check_cluster(action, release)
            else:
                principal.check_index(action, "", release)
        except ServerError as fault:
            refused.append(fault)
            # 7.x asks for the rest only after the first was granted.
            if action == first and release.types:
                break
    if refused:
        if len(refused) > 1:
            refused[0].extra["suppressed"] = [fault.bare() for fault in refused[1:]]
        raise refused[0]


def cat_aliases(call: Call) -> Reply:
    """GET `/_cat/aliases`."""
    rows = [
        {
            "alias": alias, "index": index.name, "filter": "-", "routing.index": "-", "routing.search": "-",
            "is_write_index": str(options.get("is_write_index", "-")).lower(),
        }
        for index in call.cluster.indices.values()
        for alias, options in index.aliases.items()
        if fnmatch.fnmatchcase(alias, call.path.get("alias", "*"))
    ]  # fmt: skip
    return _cat(call, rows, {"a": "alias", "i": "index", "idx": "index"})


def _size(count: int, unit: str | None) -> str:
    if unit == "b":
        return str(count)
    if unit is not None:
        raise not_reproduced(f"bytes={unit}")
    for suffix, scale in (("gb", 2**30), ("mb", 2**20), ("kb", 2**10)):
        if count >= scale:
            text = f"{count * 10 // scale / 10:.1f}".removesuffix(".0")
            return text + suffix
    return f"{count}b"


def _cat(call: Call, rows: list[dict[str, Any]], short: dict[str, str]) -> Reply:
    columns = list(rows[0]) if rows else []
    if "h" in call.params:
        # Unknown columns are left out silently.
        headers = [short.get(name, name) for name in call.params["h"].split(",")]
        available = set(columns)
        columns = [name for name in headers if name in available or not rows]
    for order in reversed(call.params["s"].split(",")) if "s" in call.params else ():
        name, _, direction = order.partition(":")
        if rows and short.get(name, name) not in rows[0]:
            raise ServerError(
                "unsupported_operation_exception", f"Unable to sort by unknown sort key `{name}`", status=500
            )
        rows.sort(key=lambda row: _natural(row[short.get(name, name)]), reverse=direction == "desc")
    if call.params.get("format") == "json" or (
        call.accept.startswith("application/json") and "format" not in call.params
    ):
        return Reply([{name: row[name] for name in columns} for row in rows])
    if call.params.get("format") not in (None, "text"):
        raise not_reproduced(f"format={call.params['format']}")
    table = [[str(row[name] if row[name] is not None else "") for name in columns] for row in rows]
    if call.flag("v"):
        table.insert(0, columns)
    right = {"pri", "rep", "docs.count", "docs.deleted", "store.size", "pri.store.size", "dataset.size"}
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    lines = (
        " ".join(
            c.rjust(w) if n in right else c.ljust(w) for c, w, n in zip(row, widths, columns, strict=True)
        ).rstrip()
        + "\n"
        for row in table
    )
    return Reply(text="".join(lines))


def _natural(value: Any) -> tuple[int, float, str]:
    text = str(value or "")
    return (0, float(text), "") if text.isdigit() else (1, 0.0, text)
