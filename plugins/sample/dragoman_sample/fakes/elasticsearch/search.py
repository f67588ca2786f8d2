"""Searches: the checked request, the walk over the shards, the page that is cut out of it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.elasticsearch import aggregations, hits, leaving_out, queries, sorting, vectors
from dragoman_sample.fakes.elasticsearch.errors import ServerError, all_shards_failed, illegal, invalid
from dragoman_sample.fakes.elasticsearch.sorting import Compiled, Key
from dragoman_sample.fakes.elasticsearch.store import NODE, Context, Doc, View

if TYPE_CHECKING:
    from dragoman_sample.fakes.elasticsearch.queries import Clause, Scope
    from dragoman_sample.fakes.elasticsearch.store import Cluster, Index

KEYS = {
    "query", "from", "size", "sort", "search_after", "track_total_hits", "track_scores", "seq_no_primary_term",
    "version", "_source", "docvalue_fields", "fields", "pit", "slice", "timeout", "stored_fields", "aggs",
    "aggregations", "terminate_after", "rescore", "knn",
}  # fmt: skip


@dataclass
class Request:
    """One search, checked."""

    body: dict[str, Any]
    keys: list[Key] | None
    size: int
    start: int
    total: bool | int
    partial: bool
    scroll: str | None = None


@dataclass
class Found:
    """What a search matched: rows in order, the shards that failed, and how to write sort values."""

    rows: list[tuple[list[Any], int, Doc]]
    keys: list[Key]
    compiled: dict[str, list[Compiled]]
    scores: dict[str, float]
    failures: list[tuple[View, ServerError]] = field(default_factory=list)
    shards: int = 0
    near: dict[int, float] = field(default_factory=dict)  # the score of each document, where they differ

    def score(self, doc: Doc) -> float:
        """Return the score of a document."""
        return self.near.get(id(doc), self.scores[doc.index.name])


def read(body: Any, params: dict[str, str], cluster: Cluster) -> Request:
    """Check the body and the parameters of a search.

    Raises:
        ServerError: for unknown keys, as a fault, and for what the server refuses before it asks a shard.
    """
    release = cluster.release
    if not isinstance(body, dict):
        raise ServerError(
            "parsing_exception",
            "Expected [START_OBJECT] but found [START_ARRAY]",
            fault=True,
            extra={"line": 1, "col": 1},
        )
    for key, value in body.items():
        if key not in KEYS:
            kind = {dict: "START_OBJECT", list: "START_ARRAY", str: "VALUE_STRING", bool: "VALUE_BOOLEAN"}
            name = kind.get(type(value), "VALUE_NUMBER")
            raise ServerError(
                "parsing_exception", f"Unknown key for a {name} in [{key}].", fault=True, extra={"line": 1, "col": 1}
            )
    if "query" in body:
        queries.check(body["query"])
    if "knn" in body:
        vectors.check(body["knn"], release.parts)
        queries.check(body["knn"].get("filter", {"match_all": {}}))
    keys = sorting.check(body["sort"], release) if body.get("sort") else None
    if "sort" in params:
        keys = sorting.check(
            [dict([part.split(":")]) if ":" in part else part for part in params["sort"].split(",")], release
        )
    size = int(params.get("size") or body.get("size", 10))
    start = int(params.get("from") or body.get("from", 0))
    if size == -1 and release.types:
        size = 10
    if size < 0:
        raise illegal(f"[size] parameter cannot be negative, found [{size}]")
    total = _tracked(params.get("track_total_hits", body.get("track_total_hits", 10_000)))
    partial = params.get("allow_partial_search_results", "true") != "false"
    request = Request(body, keys, size, start, total, partial, params.get("scroll"))
    _check_combination(request, cluster)
    return request


def _tracked(value: Any) -> bool | int:
    if isinstance(value, str):
        return int(value) if value.isdigit() else value == "true"
    tracked: bool | int = value
    return tracked


def _check_combination(request: Request, cluster: Cluster) -> None:
    body, release = request.body, cluster.release
    faults = []
    if request.start < 0:
        if release.types:
            # 7.x reads -1 as "not given".
            if request.start == -1:
                request.start = 0
                return
            raise ServerError("null_pointer_exception", None, status=500)
        raise illegal(f"[from] parameter cannot be negative but was [{request.start}]")
    modern = release.parts >= (8, 19)
    if request.scroll:
        if request.start:
            faults.append("using [from] is not allowed in a scroll context")
        if request.total is False or (request.total is not True and "track_total_hits" in body):
            faults.append("disabling [track_total_hits] is not allowed in a scroll context")
        if request.size == 0:
            faults.append("[size] cannot be [0] in a scroll context")
    sliced = "slice" in body and not request.scroll and "pit" not in body
    after = "search_after" in body
    if modern:
        if after and request.start > 0:
            faults.append("[from] parameter must be set to 0 when [search_after] is used")
        if after and request.scroll:
            faults.append("`search_after` cannot be used in a scroll context.")
        if sliced:
            faults.append("[slice] can only be used with [scroll] or [point-in-time] requests")
    if faults:
        raise invalid(*faults)
    if not modern:
        if after and request.start > 0:
            raise _search_fault("`from` parameter must be set to 0 when `search_after` is used.", cluster)
        if after and request.scroll:
            raise _search_fault("`search_after` cannot be used in a scroll context.", cluster)
        if sliced:
            text = "[slice] can only be used with [scroll] or [point-in-time] requests"
            old = "`slice` cannot be used outside of a scroll context"
            raise _search_fault(text if release.parts >= (7, 15) else old, cluster)
    slice_ = body.get("slice")
    if slice_ is not None:
        number, count = int(slice_.get("id", -1)), int(slice_.get("max", -1))
        if count <= 1:
            raise illegal("max must be greater than 1")
        if number < 0 or number >= count:
            raise illegal("max must be greater than id")
        if request.scroll and count > 1_024:
            reason = (
                f"The number of slices [{count}] is too large. It must be less than [1024]. This limit can be set by "
            )
            raise illegal(reason + "changing the [index.max_slices_per_scroll] index level setting.")


def _search_fault(reason: str, cluster: Cluster) -> ServerError:
    cause = ServerError("search_exception", reason, status=500)
    index = next(iter(cluster.indices), "_na_")
    return all_shards_failed([{"shard": 0, "index": index, "node": NODE, "reason": cause.describe()}], [cause])


def run(request: Request, views: list[View], cluster: Cluster, context: Context | None = None) -> dict[str, Any]:
    """Search the views and return the answer, `took` and all.

    Raises:
        ServerError: if all shards fail, or some do and partial results are refused.
    """
    started = time.perf_counter()
    pit = context is not None and request.scroll is None
    keys = _with_tiebreaker(request, pit=pit and cluster.release.parts >= (7, 12))
    result = _cached(request, keys, views, cluster, context)
    after = request.body.get("search_after")
    rows = result.rows
    if after is not None and result.compiled:
        rows = _after(rows, after, result, cluster)
    rows = leaving_out.kept(rows, keys, views, cluster.release, room=request.start + request.size, pit=pit)
    page = rows[request.start : request.start + request.size]
    answer: dict[str, Any] = {"took": int((time.perf_counter() - started) * 1000), "timed_out": False}
    answer["_shards"] = _shards(result, request)
    writer = hits.Writer(request.body, cluster.release, result)
    total = len(result.rows) - (_wordless(request.body.get("query"), result.rows) if cluster.opensearch else 0)
    answer["hits"] = {**_total(request, total), **writer.write(page)}
    requested = request.body.get("aggs", request.body.get("aggregations"))
    if requested is not None:
        answer["aggregations"] = aggregations.run(requested, [row[2] for row in result.rows], cluster)
    return answer


def _wordless(query: Any, rows: list[Any]) -> int:
    """Count the rows that OpenSearch 3.9.0 leaves out of the total of an `exists`: texts without a word."""
    field = (query or {}).get("exists", {}).get("field", "")
    values = [row[2].node.values.get(field, [""]) for row in rows if field]
    return sum(not any(getattr(value, "words", True) for value in texts) for texts in values)


def _with_tiebreaker(request: Request, *, pit: bool) -> list[Key]:
    keys = list(request.keys or [])
    names = {key.name for key in keys}
    if not pit or not keys or "_shard_doc" in names:
        return keys
    after = request.body.get("search_after")
    # Without a full search_after the server leaves the tiebreaker out, and ties are lost.
    if after is None or len(after) == len(keys) + 1:
        keys.append(sorting.Key("_shard_doc", descending=False))
    return keys


def _cached(request: Request, keys: list[Key], views: list[View], cluster: Cluster, context: Context | None) -> Found:
    if context is None:
        return _find(request, keys, views, cluster)
    parts = {name: request.body.get(name) for name in ("query", "slice", "size", "from")}
    name = json.dumps([parts, [(key.name, key.descending, key.options) for key in keys]], sort_keys=True)
    if name not in context.sorted:
        context.sorted.clear()
        context.sorted[name] = _find(request, keys, views, cluster)
    result: Found = context.sorted[name]
    return result


def _find(request: Request, keys: list[Key], views: list[View], cluster: Cluster) -> Found:
    result = Found([], keys, {}, {}, shards=len(views))
    ready: dict[str, Clause] = {}
    faults: dict[str, ServerError] = {}
    for view in views:
        name = view.index.name
        if name not in ready and name not in faults:
            try:
                ready[name] = _compile(request, keys, view.index, cluster, result)
            except ServerError as fault:
                if fault.fault:
                    raise
                faults[name] = fault
        if cluster.indices.get(name) is not view.index:
            result.failures.append((view, ServerError("no_shard_available_action_exception", None, status=503)))
        elif (name, view.shard.number) in cluster.failing_shards:
            result.failures.append((view, ServerError("exception", "the fake was told to fail this shard", status=500)))
        elif name in faults:
            result.failures.append((view, faults[name]))
        elif _half_float_fails(request, keys, view, cluster):
            result.failures.append((view, ServerError("unsupported_operation_exception", None, status=500)))
    broken = {id(view) for view, _ in result.failures}
    live = [view for view in views if id(view) not in broken]
    _check_failures(result, request, live)
    _check_kinds(result, cluster)
    for position, view in enumerate(views):
        if id(view) not in broken:
            _collect(view, position, ready[view.index.name], request, len(views), result)
    if result.near and not keys:
        result.rows.sort(key=lambda row: -result.score(row[2]))
    if "knn" in request.body:
        del result.rows[request.body["knn"]["k"] :]
    for number in range(len(keys) - 1, -1, -1):
        key = keys[number]
        _sort(result, number, key)
    return result


def _sort(result: Found, number: int, key: Key) -> None:
    result.rows.sort(key=lambda row: sorting.order_value(row[0][number], key), reverse=key.descending)


def _compile(request: Request, keys: list[Key], index: Index, cluster: Cluster, result: Found) -> Clause:
    from dragoman_sample.fakes.elasticsearch.queries import Scope

    scope: Scope = Scope(cluster, index)
    index.check_open()
    _check_window(request, index)
    clause = queries.build(request.body["query"], scope) if "query" in request.body else queries.ALL
    if "knn" in request.body:
        clause = vectors.clause(request.body["knn"], scope)
    compiled = [sorting.compile_key(key, scope, clause.score) for key in keys]
    after = request.body.get("search_after")
    if after is not None:
        if not keys:
            raise illegal("Sort must contain at least one field.")
        if len(after) != len(keys):
            raise illegal(f"search_after has {len(after)} value(s) but sort has {len(keys)}.")
    result.compiled[index.name] = compiled
    result.scores[index.name] = clause.score
    return clause


def _half_float_fails(request: Request, keys: list[Key], view: View, cluster: Cluster) -> bool:
    """Tell whether 8.19 fails on a sort: an indexed half_float, gaps, and more documents than the page holds."""
    for key in keys:
        target = view.index.mapping.field(key.name)
        if target is None or target.type != "half_float" or not target.indexed or "numeric_type" in key.options:
            continue
        having = sum(target.path in doc.node.values for doc in view.docs)
        if (8, 19) <= cluster.release.parts < (9, 1) and 0 < having < len(view.docs) > request.start + request.size:
            return True
    return False


def _check_window(request: Request, index: Index) -> None:
    end, limit = request.start + request.size, index.window
    if end <= limit:
        return
    if request.scroll:
        raise illegal(
            f"Batch size is too large, size must be less than or equal to: [{limit}] but was [{end}]. Scroll batch "
            "sizes cost as much memory as result windows so they are controlled by the [index.max_result_window] index "
            "level setting."
        )
    raise illegal(
        f"Result window is too large, from + size must be less than or equal to: [{limit}] but was [{end}]. See the "
        "scroll api for a more efficient way to request large data sets. This limit can be set by changing the "
        "[index.max_result_window] index level setting."
    )


def _collect(view: View, position: int, clause: Clause, request: Request, shards: int, result: Found) -> None:
    readers = [key.read for key in result.compiled[view.index.name]]
    in_slice = _slice_test(request.body.get("slice"), position, shards, len(view.docs))
    test, rows = clause.test, result.rows
    for at, doc in enumerate(view.docs):
        if in_slice is not None and not in_slice(at):
            continue
        if test(doc, doc.node):
            if clause.score_of is not None:
                result.near[id(doc)] = clause.score_of(doc) or 0.0
            rows.append(([read(doc, position) for read in readers], position, doc))


def _slice_test(slice_: dict[str, Any] | None, shard: int, shards: int, docs: int) -> Any:
    if slice_ is None:
        return None
    number, count = int(slice_["id"]), int(slice_["max"])
    if count <= shards:
        return None if shard % count == number else lambda _at: False
    # More slices than shards: each shard is shared by some of them, in runs of documents.
    sharing = [slice_number for slice_number in range(count) if slice_number % shards == shard]
    if number not in sharing:
        return lambda _at: False
    span = -(-docs // len(sharing)) or 1
    mine = sharing.index(number)
    return lambda at: at // span == mine


def _after(rows: list[Any], after: list[Any], result: Found, cluster: Cluster) -> list[Any]:
    compiled = next(iter(result.compiled.values()))
    keys = result.keys
    if len(after) != len(keys):
        _refuse(illegal(f"search_after has {len(after)} value(s) but sort has {len(keys)}."), result, cluster)
    bounds = []
    for value, how, key in zip(after, compiled, keys, strict=True):
        try:
            bounds.append(sorting.order_value(sorting.cursor_value(value, how, key, cluster.release), key))
        except ServerError as fault:
            _refuse(fault, result, cluster)

    def later(row: Any) -> bool:
        for value, bound, key in zip(row[0], bounds, keys, strict=True):
            mine = sorting.order_value(value, key)
            if mine != bound:
                return bool(mine < bound if key.descending else mine > bound)
        return False

    low, high = 0, len(rows)
    while low < high:
        middle = (low + high) // 2
        if later(rows[middle]):
            high = middle
        else:
            low = middle + 1
    return rows[low:]


def _refuse(cause: ServerError, result: Found, cluster: Cluster) -> None:
    index = next(iter(result.compiled), None) or next(iter(cluster.indices))
    raise all_shards_failed([{"shard": 0, "index": index, "node": NODE, "reason": cause.describe()}], [cause])


def _grouped(result: Found) -> tuple[list[dict[str, Any]], list[ServerError]]:
    listed: list[dict[str, Any]] = []
    causes: list[ServerError] = []
    seen = set()
    for view, cause in result.failures:
        key = (view.index.name, cause.kind, cause.reason)
        if key in seen:
            continue
        seen.add(key)
        described = {"shard": view.shard.number, "index": view.index.name, "node": NODE, "reason": cause.describe()}
        if cause.kind == "no_shard_available_action_exception":
            described["node"] = None
        listed.append(described)
        causes.append(cause)
    return listed, causes


def _check_failures(result: Found, request: Request, live: list[View]) -> None:
    if not result.failures or (live and request.partial):
        return
    listed, causes = _grouped(result)
    missing = causes[0].kind == "no_shard_available_action_exception"
    if missing and not request.partial:
        name = result.failures[0][0].index.name
        extra = {"index_uuid": result.failures[0][0].index.uuid, "index": name}
        raise ServerError("index_not_found_exception", f"no such index [{name}]", status=404, extra=extra)
    fault = all_shards_failed(listed, causes)
    if live:
        fault.reason = "Partial shards failure"
        fault.caused_by = None
        fault.root = causes
    raise fault


def _check_kinds(result: Found, cluster: Cluster) -> None:
    """Refuse sort keys whose values cannot be compared between indices."""
    for number, key in enumerate(result.keys):
        kinds = sorted({compiled[number].kind for compiled in result.compiled.values()} - {"FLOAT"})
        if len(kinds) < 2 or "STRING" not in kinds:
            continue
        if cluster.release.types:
            cause = ServerError("class_cast_exception", "class java.lang.Long cannot be cast to class java.lang.String")
            status = 500
        else:
            text = " and ".join(f"[{kind}]" for kind in kinds)
            reason = f"Can't sort on field [{key.name}]; the field has incompatible sort types: {text} across shards!"
            cause, status = illegal(reason), 400
        phase = "query" if status == 500 else "rank"
        extra: dict[str, Any] = {"phase": phase, "grouped": True, "failed_shards": []}
        raise ServerError("search_phase_execution_exception", "", status=status, root=[], caused_by=cause, extra=extra)


def _shards(result: Found, request: Request) -> dict[str, Any]:
    failed = len(result.failures)
    counts: dict[str, Any] = {
        "total": result.shards,
        "successful": result.shards - failed,
        "skipped": 0,
        "failed": failed,
    }
    if failed:
        counts["failures"] = _grouped(result)[0]
    return counts


def _total(request: Request, count: int) -> dict[str, Any]:
    if request.total is False or request.total == -1:
        return {}
    if request.total is True or count <= request.total:
        return {"total": {"value": count, "relation": "eq"}}
    return {"total": {"value": int(request.total), "relation": "gte"}}


def matches(body: dict[str, Any], views: list[View], cluster: Cluster) -> Found:
    """Return every match in no order, for `_count`.

    Raises:
        ServerError: if all shards fail.
    """
    request = Request(body, keys=None, size=0, start=0, total=True, partial=True)
    return _find(request, [], views, cluster)
