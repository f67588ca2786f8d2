"""The search endpoints: search, count, validate, points in time, scrolls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.elasticsearch import hits, jsontext, queries, search
from dragoman_sample.fakes.elasticsearch.calls import Call, Reply
from dragoman_sample.fakes.elasticsearch.errors import ServerError, all_shards_failed, illegal, invalid
from dragoman_sample.fakes.elasticsearch.store import NODE, Index, View, missing_context, seconds

if TYPE_CHECKING:
    from dragoman_sample.fakes.elasticsearch.store import Context

SEARCH_PARAMS = {
    "size", "from", "sort", "scroll", "track_total_hits", "allow_partial_search_results", "preference", "routing",
    "ignore_unavailable", "expand_wildcards", "allow_no_indices", "_source", "_source_includes", "_source_excludes",
    "_source_exclude_vectors", "q", "timeout", "request_cache", "rest_total_hits_as_int", "typed_keys",
    "seq_no_primary_term",
}  # fmt: skip


def targets(call: Call) -> list[Index]:
    """Return the indices a search means; a wildcard leaves closed ones out."""
    expression = call.path.get("index", "_all")
    indices = call.indices()
    if "*" in expression or expression == "_all":
        indices = [index for index in indices if not index.closed]
    return indices


def post_search(call: Call) -> Reply:
    """GET or POST `/_search` and `/{index}/_search`."""
    body = call.json()
    if "q" in call.params:
        body = {**body, "query": {"query_string": {"query": call.params["q"]}}}
    for name in ("_source_includes", "_source_excludes"):
        if name in call.params:
            members = body.get("_source") if isinstance(body.get("_source"), dict) else {}
            body = {**body, "_source": {**members, name.removeprefix("_source_"): call.params[name].split(",")}}
    if "_source_exclude_vectors" in call.params:  # a parameter of the source replaces the body's
        body = {**body, "_source": {"exclude_vectors": call.flag("_source_exclude_vectors")}}
    if "_source" in call.params:
        text = call.params["_source"]
        body = {**body, "_source": text == "true" if text in ("true", "false") else text.split(",")}
    request = search.read(body, call.params, call.cluster)
    if "pit" in body:
        return _pit_search(call, body, request)
    if any(key.name == "_shard_doc" for key in request.keys or ()) and (7, 12) <= call.cluster.release.parts < (8, 19):
        raise invalid("[_shard_doc] sort field cannot be used without [point in time]")
    indices = targets(call)
    views = call.cluster.views(indices, call.params.get("preference", ""), call.params.get("routing", ""))
    if request.scroll:
        return _open_scroll(call, request, views)
    answer = search.run(request, views, call.cluster)
    return Reply(_shape(call, answer))


def _shape(call: Call, answer: dict[str, Any]) -> dict[str, Any]:
    if call.flag("rest_total_hits_as_int") and "total" in answer["hits"]:
        answer["hits"]["total"] = answer["hits"]["total"]["value"]
    return answer


def _pit_search(call: Call, body: dict[str, Any], request: search.Request) -> Reply:
    pit = body["pit"]
    faults = []
    if "index" in call.path:
        detail = ". Do not specify any index with point in time." if call.cluster.release.parts >= (7, 11) else ""
        faults.append(f"[indices] cannot be used with point in time{detail}")
    parameters = [name for name in ("routing", "preference") if name in call.params]
    faults += [f"[{name}] cannot be used with point in time" for name in parameters]
    if "ignore_unavailable" in call.params or "expand_wildcards" in call.params:
        faults.append("[indicesOptions] cannot be used with point in time")
    if request.scroll:
        faults.append("using [point in time] is not allowed in a scroll context")
    if faults:
        raise invalid(*faults)
    for key in pit:
        if key not in ("id", "keep_alive"):
            raise ServerError("x_content_parse_exception", f"[1:1] [point_in_time] unknown field [{key}]", fault=True)
    context = call.cluster.context(str(pit["id"]), pit.get("keep_alive"))
    answer = search.run(request, context.views, call.cluster, context)
    return Reply({"pit_id": pit["id"], **answer})


def open_pit(call: Call) -> Reply:
    """POST `/{index}/_pit?keep_alive=`."""
    keep_alive = call.params.get("keep_alive")
    release = call.cluster.release
    if keep_alive is None:
        if release.types and release.parts >= (7, 11):
            raise ServerError("null_pointer_exception", "[keep_alive] parameter must be non null", status=500)
        raise invalid("[keep_alive] is not specified")
    _check_span(keep_alive)
    if "allow_partial_search_results" in call.params and release.parts < (8, 16):
        raise unknown_parameter(call, "allow_partial_search_results")
    views = call.cluster.views(targets(call), call.params.get("preference", ""), call.params.get("routing", ""))
    if not views and release.parts < (7, 11):
        raise ServerError("null_pointer_exception", None, status=500)
    answer: dict[str, Any] = {"id": call.cluster.open_context(views, keep_alive, call.path["index"], "pit")}
    if release.parts >= (8, 16):
        answer["_shards"] = {"total": len(views), "successful": len(views), "skipped": 0, "failed": 0}
    return Reply(answer)


def _check_span(keep_alive: str) -> None:
    if seconds(keep_alive, "keep_alive") > 86_400:
        raise illegal(
            f"Keep alive for request ({keep_alive}) is too large. It must be less than (1d). This limit can be set by "
            "changing the [search.max_keep_alive] cluster level setting."
        )


def unknown_parameter(call: Call, name: str) -> ServerError:
    """Return the refusal of a parameter that the route of this release does not have."""
    uri = "/" + "/".join(call.path.values())
    return illegal(f"request [{uri}] contains unrecognized parameter: [{name}]", fault=True)


def close_pit(call: Call) -> Reply:
    """DELETE `/_pit`."""
    key = call.members({"id"}).get("id")
    if not isinstance(key, str):
        raise ServerError("illegal_argument_exception", "id is not provided or not a string")
    context = call.cluster.contexts.pop(key, None)
    if context is None:
        fault = missing_context(key, call.cluster.release)
        if fault.kind == "illegal_argument_exception":
            raise fault
        return Reply({"succeeded": False, "num_freed": 0}, 404)
    return Reply({"succeeded": True, "num_freed": len(context.views)})


def _open_scroll(call: Call, request: search.Request, views: list[View]) -> Reply:
    assert request.scroll is not None
    _check_span(request.scroll)
    limit = int(call.cluster.settings.get("search.max_open_scroll_context", 500))
    if sum(context.scroll is not None for context in call.cluster.contexts.values()) >= limit:
        reason = (
            f"Trying to create too many scroll contexts. Must be less than or equal to: [{limit}]. This limit can be "
            "set by changing the [search.max_open_scroll_context] setting."
        )
        modern = call.cluster.release.parts >= (8, 19)
        kind, status = ("too_many_scroll_contexts_exception", 429) if modern else ("exception", 500)
        cause = ServerError(kind, reason, status=status)
        raise all_shards_failed(
            [{"shard": 0, "index": views[0].index.name, "node": NODE, "reason": cause.describe()}], [cause]
        )
    key = call.cluster.open_context(views, request.scroll, call.path.get("index", "_all"), "scroll")
    context = call.cluster.contexts[key]
    context.scroll = request
    try:
        answer = search.run(request, views, call.cluster, context)
    except ServerError:
        del call.cluster.contexts[key]
        raise
    return Reply({"_scroll_id": key, **_shape(call, answer)})


def next_scroll(call: Call) -> Reply:
    """POST or GET `/_search/scroll`."""
    body = call.members({"scroll", "scroll_id"})
    key = str(body.get("scroll_id", call.params.get("scroll_id", "")))
    context = _scroll(call, key, body.get("scroll", call.params.get("scroll")))
    request: search.Request = context.scroll
    request.start += request.size
    # The window counts for the first page only.
    sorted_before = dict(context.sorted)
    answer = _page(call, request, context)
    context.sorted = sorted_before or context.sorted
    return Reply({"_scroll_id": key, **answer})


def _page(call: Call, request: search.Request, context: Context) -> dict[str, Any]:
    (result,) = context.sorted.values()
    if call.cluster.opensearch and result.keys:  # it skips rows by an index that does not fit, by the first key only
        fields = [view.index.mapping.field(result.keys[0].name) for view in context.views]
        if "nested" in result.keys[0].options or any(field and field.type == "scaled_float" for field in fields):
            raise ServerError("unsupported_operation_exception", None, status=500)
    page = result.rows[request.start : request.start + request.size]
    writer = hits.Writer(request.body, call.cluster.release, result)
    total = {"total": {"value": len(result.rows), "relation": "eq"}}
    shards = {"total": result.shards, "successful": result.shards, "skipped": 0, "failed": 0}
    return {"took": 1, "timed_out": False, "_shards": shards, "hits": {**total, **writer.write(page)}}


def _scroll(call: Call, key: str, keep_alive: str | None) -> Context:
    try:
        return call.cluster.context(key, keep_alive)
    except ServerError as fault:
        if fault.kind == "illegal_argument_exception":
            cause = ServerError("e_o_f_exception", "tried to read: 105 bytes but only 1 remaining")
            if call.cluster.release.parts < (7, 11):
                cause = ServerError("array_index_out_of_bounds_exception", None)
            raise ServerError("illegal_argument_exception", "Cannot parse scroll id", caused_by=cause) from None
        raise


def clear_scroll(call: Call) -> Reply:
    """DELETE `/_search/scroll`."""
    body = call.members({"scroll_id"})
    keys = body.get("scroll_id", [])
    freed = 0
    for key in keys if isinstance(keys, list) else [keys]:
        if key == "_all":
            freed += sum(context.scroll is not None for context in call.cluster.contexts.values())
            call.cluster.contexts = {k: c for k, c in call.cluster.contexts.items() if c.scroll is None}
        elif key in call.cluster.contexts:
            freed += len(call.cluster.contexts.pop(key).views)
        else:
            fault = missing_context(key, call.cluster.release)
            if fault.kind == "illegal_argument_exception":
                _scroll(call, key, None)
    return Reply({"succeeded": True, "num_freed": freed}, 200 if freed else 404)


def count(call: Call) -> Reply:
    """GET or POST `/_count` and `/{index}/_count`."""
    body = call.json()
    for key in body:
        if key != "query":
            raise ServerError(
                "parsing_exception", f"request does not support [{key}]", fault=True, extra={"line": 1, "col": 1}
            )
    if "query" in body:
        queries.check(body["query"])
    elif "q" in call.params:
        body = {"query": {"query_string": {"query": call.params["q"]}}}
    views = call.cluster.views(targets(call), call.params.get("preference", ""), call.params.get("routing", ""))
    result = search.matches(body, views, call.cluster)
    failed = len(result.failures)
    shards = {"total": len(views), "successful": len(views) - failed, "skipped": 0, "failed": failed}
    return Reply({"count": len(result.rows), "_shards": shards})


def validate(call: Call) -> Reply:
    """GET or POST `/{index}/_validate/query`."""
    body = call.members({"query"})
    if "query" not in body and "q" not in call.params:
        raise invalid("query cannot be null")
    explain = call.flag("explain")
    indices = targets(call)
    explanations = []
    valid = True
    if "query" in body:
        queries.check(body["query"])
    for index in indices:
        try:
            clause = queries.build(body.get("query", {"match_all": {}}), queries.Scope(call.cluster, index))
            explanations.append({"index": index.name, "valid": True, "explanation": clause.text})
        except ServerError as fault:
            if fault.fault:
                raise
            valid = False
            text = f"[{index.name}/{index.uuid}] {fault.kind.upper()}: {fault.reason}"
            explanations.append({"index": index.name, "valid": False, "error": text})
    answer: dict[str, Any] = {"_shards": {"total": 1, "successful": 1, "failed": 0}, "valid": valid}
    if explain:
        answer["explanations"] = explanations
    return Reply(answer)


def msearch(call: Call) -> Reply:
    """POST `/_msearch`: pairs of a header and a body."""
    lines = [line for line in call.raw.split(b"\n") if line.strip()]
    responses = []
    for head, body in zip(lines[::2], lines[1::2], strict=True):
        header = jsontext.decode(head)
        name = header.get("index", call.path.get("index", "_all"))
        path = {"index": name if isinstance(name, str) else ",".join(name)}
        inner = Call(call.cluster, "POST", path, {}, body, principal=call.principal, action=call.action)
        try:
            responses.append({**post_search(inner).body, "status": 200})
        except ServerError as fault:
            if fault.fault:
                raise
            responses.append(fault.body())
    return Reply({"took": 1, "responses": responses})
