"""Requests: how they are built, and whether one only reads or may write; if in doubt, it counts as a write."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

import msgspec
from msgspec import Raw

from dragoman_api import HttpRequest

NDJSON = "application/x-ndjson"
"""The content type of several JSON values, one per line."""


class DocumentsRequest(HttpRequest, frozen=True):
    """A request whose answer has to hold whole documents; some servers leave vectors out unless asked for them."""


def raw(text: str) -> Raw:
    """Embed JSON text in a value that is encoded later."""
    return Raw(text.encode())


def whole_documents(request: HttpRequest) -> DocumentsRequest:
    """Say of a request that its answer holds whole documents."""
    return DocumentsRequest(**msgspec.structs.asdict(request))


def segment(text: str) -> str:
    """Percent-encode one path segment, `/` and `%` included: ids may hold anything."""
    return quote(text, safe="")


def target(name: str) -> str:
    """Percent-encode the name of one or several indices; `,` and `*` stay: encoding would not change their meaning."""
    return quote(name, safe=",*")


_READS = (
    r"_search(/(scroll|template))?|_msearch(/template)?|_count|_validate/query|_explain/[^/]+|_field_caps|_mget"
    r"|_m?termvectors(/[^/]+)?|_pit|_async_search|_knn_search|_render/template(/[^/]+)?|_rank_eval|_terms_enum"
    r"|_sql(/translate)?|_query|_eql/search|_analyze|_search_shards"
)
_POST_READS = re.compile(
    rf"((?!_)[^/]+/|_all/)?({_READS})"
    r"|_security/user/(_has_privileges|[^/]+/_has_privileges)|_ingest/pipeline/([^/]+/)?_simulate"
    r"|_scripts/painless/_execute"
)
_HOUSEKEEPING = re.compile(r"_search/scroll(/[^/]+)?|_pit|_async_search/[^/]+")
_ACTIONS = {"_flush", "_refresh", "_forcemerge", "_close", "_reindex", "_cache"}
"""They act on the server though some of them answer to GET."""


def segments(path: str) -> list[str]:
    """Return the decoded segments of a path, without its query string."""
    parts = [part for part in path.partition("?")[0].split("/") if part]
    return [unquote(part) for part in parts] if "%" in path else parts


def moves_on(path: str) -> bool:
    """Return whether a request moves a scroll on, so that sending it again would skip rows.

    >>> moves_on("/_search/scroll"), moves_on("/books/_search?scroll=1m"), moves_on("/scroll/_search")
    (True, True, False)
    """
    return segments(path)[:2] == ["_search", "scroll"] or "/_search?scroll=" in path


def may_write(method: str, path: str, body: str = "") -> bool:
    """Return whether a request may change something.

    `POST /index/_doc/_search` searches on 7.17 and writes the document `_search` on 8.x, so suffixes decide nothing.
    Freeing a search context of one's own is a read; `DELETE /_search/scroll/_all` ends those of all users, by its path,
    its parameter `scroll_id` or its body.

    Args:
        method: In capitals.
        path: Percent-encoded, from the first slash.
        body: As text; empty if there is none.

    >>> may_write("POST", "/books/_search"), may_write("POST", "/books/_doc/_search"), may_write("GET", "/books/_flush")
    (False, True, True)
    """
    parts = segments(path)
    if method in ("GET", "HEAD", "OPTIONS"):
        return not _ACTIONS.isdisjoint(parts)
    if any("/" in part or part in (".", "..") for part in parts):  # a proxy may resolve them to another path
        return True
    if method == "DELETE" and ("_all" in unquote(path) or "_all" in body or "\\" in body):
        return True
    allowed = {"POST": _POST_READS, "DELETE": _HOUSEKEEPING}.get(method)
    return allowed is None or allowed.fullmatch("/".join(parts)) is None


def reads(request: HttpRequest) -> bool:
    """Return whether a request may be sent again: it writes nothing, and moves no scroll on."""
    scrolls = request.path.startswith("/_search/scroll")
    return not (scrolls or may_write(request.method, request.path))
