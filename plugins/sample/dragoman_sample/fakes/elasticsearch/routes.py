"""Which request goes where, and what each route takes; everything else is refused as the server refuses it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote

from dragoman_sample.fakes.elasticsearch import admin, documents, searching
from dragoman_sample.fakes.elasticsearch.errors import PlainError, ServerError, illegal
from dragoman_sample.fakes.elasticsearch.store import check_name

if TYPE_CHECKING:
    from dragoman_sample.fakes.elasticsearch.calls import Call, Reply
    from dragoman_sample.fakes.elasticsearch.store import Cluster
    from dragoman_sample.fakes.elasticsearch.versions import Release

Handler = Callable[["Call"], "Reply | Awaitable[Reply]"]
COMMON = {"pretty", "human", "error_trace", "filter_path", "format"}
_EXPAND = {"expand_wildcards", "ignore_unavailable", "allow_no_indices", "master_timeout", "timeout", "local"}
_CAT = {"h", "s", "v", "bytes", "time", "help", "expand_wildcards", "ignore_unavailable", "local"}


@dataclass(frozen=True)
class Route:
    """One route: methods, path with `{names}`, handler, parameters, and the action that security asks about."""

    methods: tuple[str, ...]
    path: str
    handler: Handler
    params: frozenset[str]
    action: str
    since: tuple[int, ...] = (7,)

    @cached_property
    def segments(self) -> list[str]:
        """Return the parts of the path."""
        return [part for part in self.path.split("/") if part]


def _route(
    methods: str, path: str, handler: Handler, params: set[str], action: str, since: tuple[int, ...] = (7,)
) -> Route:
    names = tuple(methods.split())
    return Route(
        (*names, "HEAD") if names == ("GET",) and path in _HEAD else names,
        path,
        handler,
        frozenset(params | COMMON),
        action,
        since,
    )


_HEAD = {"/", "/{index}", "/{index}/_doc/{id}", "/{index}/_source/{id}"}
_WRITE = documents.WRITE_PARAMS
_READ_DOC = {
    "routing",
    "preference",
    "realtime",
    "refresh",
    "_source",
    "_source_includes",
    "_source_excludes",
    "_source_exclude_vectors",
    "version",
}
_DATA = "indices:data/"
_ADMIN = "indices:admin/"

ROUTES = [
    _route("GET", "/", admin.root, set(), "cluster:monitor/main"),
    _route("GET", "/_security/_authenticate", admin.authenticate, set(), ""),
    _route("GET", "/_cluster/health", admin.health, {"wait_for_status", "timeout", "level"}, "cluster:monitor/health"),
    _route("PUT", "/_cluster/settings", admin.put_settings, {"flat_settings"}, "cluster:admin/settings/update"),
    _route("GET", "/_cat/indices", admin.cat_indices, _CAT, ""),
    _route("GET", "/_cat/indices/{index}", admin.cat_indices, _CAT, ""),
    _route("GET", "/_cat/nodes", admin.cat_nodes, _CAT, "cluster:monitor/state"),
    _route("GET", "/_cat/aliases", admin.cat_aliases, _CAT, "indices:admin/aliases/get"),
    _route("GET", "/_cat/aliases/{alias}", admin.cat_aliases, _CAT, "indices:admin/aliases/get"),
    _route("GET", "/_resolve/index/{name}", admin.resolve, {"expand_wildcards"}, "indices:admin/resolve/index", (7, 9)),
    _route("PUT POST", "/_index_template/{name}", admin.put_template, {"create"}, "indices:admin/index_template/put"),
    _route("PUT", "/_data_stream/{name}", admin.put_stream, set(), _ADMIN + "create", (7, 9)),
    _route("DELETE", "/_data_stream/{name}", admin.delete_stream, set(), _ADMIN + "delete", (7, 9)),
    _route("POST", "/_aliases", admin.aliases, set(), "indices:admin/aliases"),
    _route("PUT", "/{index}", admin.create, {"wait_for_active_shards", "timeout"}, _ADMIN + "create"),
    _route("DELETE", "/{index}", admin.delete, _EXPAND, _ADMIN + "delete"),
    _route("GET", "/{index}", admin.get_index, _EXPAND | {"flat_settings", "include_defaults"}, _ADMIN + "get"),
    _route("GET", "/_mapping", admin.get_mapping, _EXPAND, _ADMIN + "mappings/get"),
    _route("GET", "/{index}/_mapping", admin.get_mapping, _EXPAND, _ADMIN + "mappings/get"),
    _route("PUT POST", "/{index}/_mapping", admin.put_mapping, _EXPAND, _ADMIN + "mapping/put"),
    _route(
        "PUT",
        "/{index}/_settings",
        admin.put_index_settings,
        _EXPAND | {"preserve_existing"},
        _ADMIN + "settings/update",
    ),
    _route("GET", "/{index}/_stats", admin.stats, {"level"}, "indices:monitor/stats"),
    _route("POST GET", "/_refresh", admin.refresh, _EXPAND, _ADMIN + "refresh"),
    _route("POST GET", "/{index}/_refresh", admin.refresh, _EXPAND, _ADMIN + "refresh"),
    _route("POST GET", "/_search", searching.post_search, searching.SEARCH_PARAMS, _DATA + "read/search"),
    _route("POST GET", "/{index}/_search", searching.post_search, searching.SEARCH_PARAMS, _DATA + "read/search"),
    _route("POST GET", "/_msearch", searching.msearch, {"rest_total_hits_as_int"}, _DATA + "read/search"),
    _route("POST GET", "/{index}/_msearch", searching.msearch, {"rest_total_hits_as_int"}, _DATA + "read/search"),
    _route("POST GET", "/_search/scroll", searching.next_scroll, {"scroll", "scroll_id"}, _DATA + "read/search"),
    _route("DELETE", "/_search/scroll", searching.clear_scroll, set(), _DATA + "read/search"),
    _route("DELETE", "/_pit", searching.close_pit, set(), _DATA + "read/open_point_in_time", (7, 10)),
    _route("POST", "/_mget", documents.mget, _READ_DOC, _DATA + "read/mget"),
    _route("POST", "/{index}/_mget", documents.mget, _READ_DOC, _DATA + "read/mget"),
    _route("POST PUT", "/_bulk", documents.bulk, {"refresh", "timeout", "routing"}, _DATA + "write/bulk"),
    _route("POST PUT", "/{index}/_bulk", documents.bulk, {"refresh", "timeout", "routing"}, _DATA + "write/bulk"),
    _route("POST", "/{index}/_doc", documents.put, _WRITE | {"op_type"}, _DATA + "write/index"),
    _route("PUT POST", "/{index}/_doc/{id}", documents.put, _WRITE | {"op_type"}, _DATA + "write/index"),
    _route("PUT POST", "/{index}/_create/{id}", documents.put, _WRITE, _DATA + "write/index"),
    _route("GET", "/{index}/_doc/{id}", documents.get, _READ_DOC, _DATA + "read/get"),
    _route("GET", "/{index}/_source/{id}", documents.get_source, _READ_DOC, _DATA + "read/get"),
    _route("DELETE", "/{index}/_doc/{id}", documents.delete, _WRITE, _DATA + "write/delete"),
    _route(
        "POST", "/{index}/_update/{id}", documents.post_update, _WRITE | {"retry_on_conflict"}, _DATA + "write/update"
    ),
    _route("POST GET", "/_validate/query", searching.validate, {"explain", "q", *_EXPAND}, ""),
    _route(
        "POST GET", "/{index}/_validate/query", searching.validate, {"explain", *_EXPAND}, _ADMIN + "validate/query"
    ),
]
for _name in ("_count", "_field_caps", "_settings", "_settings/{name}", "_pit", "{verb}"):
    _both, _handler, _params, _action, _since = {
        "_count": ("POST GET", searching.count, {"preference", "routing", "q", *_EXPAND}, _DATA + "read/search", (7,)),
        "_field_caps": (
            "POST GET",
            admin.field_caps,
            {"fields", "include_unmapped", *_EXPAND},
            _DATA + "read/field_caps",
            (7,),
        ),
        "_settings": (
            "GET",
            admin.get_settings,
            {"include_defaults", "flat_settings", *_EXPAND},
            "indices:monitor/settings/get",
            (7,),
        ),
        "_settings/{name}": (
            "GET",
            admin.get_settings,
            {"include_defaults", "flat_settings", *_EXPAND},
            "indices:monitor/settings/get",
            (7,),
        ),
        "_pit": (
            "POST",
            searching.open_pit,
            {"keep_alive", "preference", "routing", "allow_partial_search_results", *_EXPAND},
            _DATA + "read/open_point_in_time",
            (7, 10),
        ),
        "{verb}": ("POST", admin.set_open, _EXPAND | {"wait_for_active_shards"}, "indices:admin/open", (7,)),
    }[_name]
    ROUTES.append(_route(_both, "/{index}/" + _name, _handler, _params, _action, _since))
    if _name in ("_count", "_field_caps"):
        ROUTES.append(_route(_both, "/" + _name, _handler, _params, _action, _since))

_ROUTES_BY_LENGTH: dict[int, list[Route]] = {}
for _entry in ROUTES:
    _ROUTES_BY_LENGTH.setdefault(len(_entry.segments), []).append(_entry)


def find(method: str, raw_path: str, cluster: Cluster) -> tuple[Route, dict[str, str]]:
    """Return the route of a request and the names in its path.

    Raises:
        ServerError: for a path or a method that the server (or the fake) does not have, as a fault.
    """
    parts = [unquote(part) for part in raw_path.split("/") if part]
    allowed: list[str] = []
    for route in _ROUTES_BY_LENGTH.get(len(parts), ()):
        names = _match(route, parts)
        if names is None or cluster.release.parts < route.since:
            continue
        if method in route.methods:
            if "_create" in route.path:
                names["_create"] = ""
            return route, names
        allowed += [name for name in route.methods if name not in allowed]
    raise _refusal(method, raw_path, parts, allowed, cluster)


def methods(raw_path: str, cluster: Cluster) -> list[str]:
    """Return the methods that a path takes; none for a path that the server does not have."""
    parts = [unquote(part) for part in raw_path.split("/") if part]
    routes = (
        route
        for route in _ROUTES_BY_LENGTH.get(len(parts), ())
        if cluster.release.parts >= route.since and _match(route, parts) is not None
    )
    return list(dict.fromkeys(method for route in routes for method in route.methods))


def _match(route: Route, parts: list[str]) -> dict[str, str] | None:
    segments = route.segments
    if segments and segments[-1] != parts[-1] and segments[-1][0] != "{":
        return None  # most routes differ here
    names = {}
    for segment, part in zip(segments, parts, strict=True):
        if segment == "{index}":
            # A name of an API is no index; `_all` is.
            if part.startswith("_") and part != "_all":
                return None
            names["index"] = part
        elif segment == "{verb}":
            if part not in ("_open", "_close"):
                return None
            names["verb"] = part
        elif segment.startswith("{"):
            names[segment[1:-1]] = part
        elif segment != part:
            return None
    return names


def _refusal(method: str, raw_path: str, parts: list[str], allowed: list[str], cluster: Cluster) -> ServerError:
    release = cluster.release
    if not allowed and len(parts) == 1:
        if method != "POST":
            try:
                check_name(parts[0])
            except ServerError as fault:
                fault.fault = True
                return fault
        allowed = ["GET", "PUT", "DELETE", "HEAD"]
    elif not allowed and len(parts) == 2:
        if method == "POST":
            return _typed(raw_path, parts, release, cluster)
        # 9.x has no route of the shape /{index}/{something} left.
        allowed = ["POST"] if release.parts < (9,) or not parts[0].startswith("_") else []
    if allowed and method not in allowed:
        listed = ", ".join(allowed)
        text = f"Incorrect HTTP method for uri [{raw_path}] and method [{method}], allowed: [{listed}]"
        return PlainError(text, status=405, fault=True, headers=[("Allow", ",".join(allowed))])
    return _no_handler(raw_path, method)


def _typed(raw_path: str, parts: list[str], release: Release, cluster: Cluster) -> ServerError:
    if not release.types:
        return _no_handler(raw_path, "POST")
    # On 7.x the last part is read as a type, and the index is made before the type is refused.
    if parts[0] not in cluster.indices and not parts[0].startswith("_"):
        cluster.create(parts[0])
    if release.parts < (7, 11) and parts[1].startswith("_"):
        reason = f"mapping type name [{parts[1]}] can't start with '_' unless it is called [_doc]"
        return ServerError("invalid_type_name_exception", reason, fault=True)
    return illegal(f"Invalid type: expecting [_doc] but got [{parts[1]}]", fault=True)


def _no_handler(raw_path: str, method: str) -> ServerError:
    text = f"no handler found for uri [{raw_path}] and method [{method}]"
    return PlainError(text, status=400, with_status=False, fault=True)


def without_security(method: str, raw_path: str, release: Release) -> ServerError:
    """Return the refusal of the security API by a server that has none."""
    if release.parts >= (9,):
        fault = _no_handler(raw_path, method)
        fault.fault = False
        return fault
    text = f"Incorrect HTTP method for uri [{raw_path}] and method [{method}], allowed: [POST]"
    return PlainError(text, status=405, headers=[("Allow", "POST")])


def check_params(route: Route, raw_path: str, params: dict[str, str], release: Release) -> None:
    """Refuse URL parameters that the route does not take.

    Raises:
        ServerError: illegal_argument_exception, as a fault.
    """
    allowed = route.params - ({"_source_exclude_vectors"} if release.parts < (9, 2) else set())
    unknown = sorted(set(params) - allowed)
    if not unknown:
        return
    plural = "s" if len(unknown) > 1 else ""
    listed = ", ".join(f"[{name}]" for name in unknown)
    raise illegal(f"request [{raw_path}] contains unrecognized parameter{plural}: {listed}", fault=True)
