"""The server's protocol: what its error answers say, paths, which requests only read, and what a product has.

If in doubt, a request counts as a write. An error becomes an exception of the API by its type, or by its status if it
has none. All that tells the servers and the drivers of a family apart is a `Dialect`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, unquote

import msgspec
from msgspec import Raw

from dragoman_api import (
    AuthenticationError,
    ConnectionFailedError,
    DragomanError,
    HttpRequest,
    QueryError,
    json_text,
    replies,
)
from dragoman_api.columns import Condition, ConditionLevel
from dragoman_api.errors import AccessDeniedError, ObjectNotFoundError, RowNotFoundError, WindowExceededError
from dragoman_api.json_text import encode
from dragoman_api.kit.exchanges import unsure
from dragoman_api.remedies import Remedy, RemedyKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman_api.errors import Detail
    from dragoman_api.replies import Reply

T = TypeVar("T")
_LIMIT = 1_000  # characters of a server's text in one message
_WINDOW = re.compile(
    r"(?:Result window is too large, from \+ size|Batch size is too large, size)"
    r" must be less than or equal to: \[(\d+)] but was \[(\d+)]"
)
_EXPECTED = re.compile(r"Was expecting(?: one of)?:.*", re.DOTALL)  # a parser's list of every token it knows

BUSY = (
    "circuit_breaking_exception", "es_rejected_execution_exception", "rejected_execution_exception",
    "too_many_scroll_contexts_exception",
)  # fmt: skip
"""Error types after which waiting helps; the status is not a guide (a blocked index is 429 as well)."""

_HEALTH = {"green": ConditionLevel.GOOD, "yellow": ConditionLevel.WARNING, "red": ConditionLevel.BAD}

CONTEXT_LOST = "search_context_missing_exception"
"""A point in time or a scroll that the server no longer knows."""

_HINTS = {
    "too_complex_to_determinize_exception": "the pattern is too long: use fewer characters",
    "too_many_clauses": "use fewer values, or compare letter case",
    "too_many_scroll_contexts_exception": "wait, or free scrolls: DELETE /_search/scroll/_all",
    "circuit_breaking_exception": "wait, or ask for fewer rows: the server is short of memory",
    "es_rejected_execution_exception": "wait: the server's queue is full",
    "rejected_execution_exception": "wait: the server's queue is full, or it holds too many scrolls or points in time",
    "index_closed_exception": "open the index: POST /INDEX/_open",
    "cluster_block_exception": "the index is blocked by a setting (index.blocks.*) or by a full disk; waiting does "
    "not help",
}

NDJSON = "application/x-ndjson"
"""The content type of several JSON values, one per line."""


class ErrorAnswer(msgspec.Struct, frozen=True):
    """The content of an error answer, as far as it is the server's own."""

    status: int
    type: str = ""
    types: frozenset[str] = frozenset()
    reasons: tuple[str, ...] = ()
    wait: int = 0
    hint: str = ""

    @property
    def text(self) -> str:
        """The reasons, outermost first, without those that repeat another."""
        text = ""
        for reason in (" ".join(_EXPECTED.sub("", part).split()) for part in self.reasons):
            text = text if reason in text else f"{text}: {reason}" if text else reason
        return text[:_LIMIT]

    @property
    def conflict(self) -> bool:
        """Whether the document differs from what the request expected."""
        return self.type == "version_conflict_engine_exception"

    @property
    def unsure(self) -> bool:
        """Whether a write may have been applied in spite of this answer.

        The only place that decides it, for single writes, rows of a bulk request, drops and the console:

        - 5xx with a type in `BUSY`: no. The queue or the breaker turned the write away before the primary shard saw it.
        - any other 5xx: yes, whatever its type. The server repeats a write whose primary shard went away, and a drop
          whose master did, and then reports the failure of the last attempt only (`TransportReplicationAction`,
          `TransportMasterNodeAction`); a gateway's 502, 503 or 504 may come after the server did the work.
        - 408: yes. The server carries out a bulk request while it still arrives (`IncrementalBulkService`, 8.16).
        - 429: no. The server has too much to do or the index is blocked, or a gateway limits its clients.
        - any other 3xx or 4xx: no. A version conflict may come from an earlier attempt; the sender looks.
        """
        return unsure(self.status, turned_away=self.busy)

    @property
    def busy(self) -> bool:
        """Whether waiting helps: 429 alone does not say so, a blocked index answers 429 too."""
        if not self.type:
            return self.status == 429  # a proxy's
        return self.status in (429, 500, 503) and not self.types.isdisjoint(BUSY)


def condition(health: str | None) -> Condition | None:
    """Return the condition that a word for the health of an index or of the cluster means; None for no word."""
    return Condition(health, _HEALTH.get(health, ConditionLevel.UNKNOWN)) if health else None


def read(reply: Reply) -> ErrorAnswer:
    """Read an error answer; `error` may be a plain string, the body HTML or empty (413, HEAD)."""
    try:
        body = json_text.decode(reply.body, object)
    except ValueError:
        body = None
    seconds = replies.seconds_asked(reply)
    fault = describe(reply.status, body.get("error") if isinstance(body, dict) else None)
    hint = replies.redirection(reply)
    return msgspec.structs.replace(fault, wait=seconds, hint=hint) if seconds or hint else fault


def describe(status: int, error: object) -> ErrorAnswer:
    """Read the error of an answer or of one row; a row has no root cause."""
    if isinstance(error, str):
        return ErrorAnswer(status, reasons=(error,))
    if not isinstance(error, dict):
        return ErrorAnswer(status)
    causes = list(_causes(error if "root_cause" in error else {**error, "root_cause": [error]}))
    return ErrorAnswer(
        status,
        # Reduce-phase failures have an empty root_cause: use the deepest cause.
        causes[0][0] or next((kind for kind, _ in reversed(causes) if kind), ""),
        frozenset(kind for kind, _ in causes),
        tuple(reason for _, reason in causes if reason and reason != "all shards failed"),
    )


def _causes(error: dict[str, object]) -> Iterator[tuple[str, str]]:
    roots = error.get("root_cause")
    yield from ((_kind(root), _reason(root)) for root in (roots if isinstance(roots, list) and roots else [{}])[:1])
    yield _kind(error), _reason(error)
    shards = error.get("failed_shards")
    inner: object = error
    if isinstance(shards, list) and shards and isinstance(shards[0], dict):
        inner = shards[0].get("reason")  # only this holds the query parser's message
    while isinstance(inner, dict):
        yield _kind(inner), _reason(inner)
        inner = inner.get("caused_by")


def _kind(error: object) -> str:
    return str(error.get("type") or "") if isinstance(error, dict) else ""


def _reason(error: object) -> str:
    return str(error.get("reason") or "") if isinstance(error, dict) else ""


def check(reply: Reply) -> bytes:
    """Return the body of a successful answer.

    Raises:
        DragomanError: Any other answer, see `exception`.
    """
    if 200 <= reply.status < 300:
        return reply.body
    raise exception(read(reply))


def decode(reply: Reply, kind: type[T] | msgspec.json.Decoder[T]) -> T:
    """Decode the body of a success, as a type or by a decoder.

    Raises:
        DragomanError: Any other answer, see `exception`.
        QueryError: The body has another form, for example a proxy's page.
    """
    return parsed(check(reply), kind)


def parsed(body: bytes, kind: type[T] | msgspec.json.Decoder[T]) -> T:
    """Decode an answer, or a part that was left undecoded. Raises QueryError as `decode`."""
    try:
        return json_text.decode(body, kind)
    except ValueError as fault:
        raise QueryError(f"the answer is not the expected JSON: {fault}", hint=replies.PROXY_HINT) from fault


def retry_after(reply: Reply) -> int | None:
    """Return the seconds that a busy server asks to wait, 0 if it names none; None if waiting does not help."""
    fault = read(reply) if reply.status in (429, 500, 503) else None
    return fault.wait if fault is not None and fault.busy else None


def exception(fault: ErrorAnswer) -> DragomanError:
    """Build the exception for an error answer; 429, 500 and 503 mean little without their type."""
    text = fault.text
    details: dict[str, Detail] = {"status": fault.status, "type": fault.type}
    if fault.busy or (fault.wait and not fault.type):
        details["retry_after"] = fault.wait
    if fault.status == 401:
        return AuthenticationError(text or "the server gives no reason", details=details)
    if window := _WINDOW.search(text):
        limits = {"window": int(window[1]), "asked": int(window[2])}
        return WindowExceededError(f"server error: {text}", details=details | limits)
    if fault.type in ("index_not_found_exception", "resource_not_found_exception"):
        return ObjectNotFoundError(f"{text} (404)", remedies=[Remedy(RemedyKind.LIST_OBJECTS)], details=details)
    if fault.type == "document_missing_exception":
        return RowNotFoundError(text, details=details)
    if fault.status == 403 and fault.type in ("", "security_exception"):
        return AccessDeniedError(f"the credentials do not allow this (403): {text}", details=details)
    if fault.status in (502, 503, 504) and not fault.type:
        hint = "check that the cluster is up, then try again; or " + replies.PROXY_HINT
        reason = f"HTTP {fault.status} from a proxy or a node that is down"
        return ConnectionFailedError(reason, hint=hint, details=details)
    if fault.status == 413:
        limit = "http.max_content_length, 100 MB by default"
        return QueryError(f"the request is larger than the server accepts (HTTP 413; {limit})", details=details)
    if fault.hint:
        return QueryError(f"the server redirects (HTTP {fault.status})", hint=fault.hint, details=details)
    hint = next((hint for kind, hint in _HINTS.items() if kind in fault.types), "")
    message = f"{fault.type}: {text}" if fault.type and text else fault.type or text
    return QueryError(f"server error: {message}" if message else f"HTTP {fault.status}", hint=hint, details=details)


def raw(text: str) -> Raw:
    """Embed JSON text in a value that is encoded later."""
    return Raw(text.encode())


def segment(text: str) -> str:
    """Percent-encode one path segment, `/` and `%` included: ids may hold anything."""
    return quote(text, safe="")


def target(name: str) -> str:
    """Percent-encode the name of one or several indices; `,` and `*` stay: encoding would not change their meaning."""
    return quote(name, safe=",*")


_TARGET = "((?!_)[^/]+/|_all/)?"
_READS = (
    r"_search(/(scroll|template))?|_msearch(/template)?|_count|_validate/query|_explain/[^/]+|_field_caps|_mget"
    r"|_m?termvectors(/[^/]+)?|_async_search|_knn_search|_render/template(/[^/]+)?|_rank_eval|_terms_enum"
    r"|_sql(/translate)?|_query|_eql/search|_analyze|_search_shards"
)
_POST_READS = re.compile(
    rf"{_TARGET}({_READS})"
    r"|_security/user/(_has_privileges|[^/]+/_has_privileges)|_ingest/pipeline/([^/]+/)?_simulate"
    r"|_scripts/painless/_execute"
)
_HOUSEKEEPING = re.compile(r"_search/scroll(/[^/]+)?|_async_search/[^/]+")
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


class PointInTime(msgspec.Struct, frozen=True):
    """How a server's points in time are opened and freed.

    Attributes:
        path: The endpoint, without slashes.
        key: The member that holds the id, in the answer to opening one and in the request that frees it.
        parameters: What the request that opens one has besides `keep_alive`, with a leading `&`.
        tiebreakers: The sort keys that tell apart the rows of one, whatever is before them.
    """

    path: str
    key: str
    parameters: str = ""
    tiebreakers: tuple[str, ...] = ("_shard_doc",)

    @property
    def order(self) -> list[dict[str, Any]]:
        """The tiebreakers, as a search sorts by them; left out of `search_after` they lose ties without an error."""
        return [{name: {"order": "asc"}} for name in self.tiebreakers]

    def open(self, name: str, *, keep_alive: str, preference: str = "") -> HttpRequest:
        """Return the request that opens one; ids grow with the shards, so they go into bodies only.

        Args:
            name: The object's name.
            keep_alive: How long the server keeps the unused context; each request renews it.
            preference: The name for the choice of shards.
        """
        parameters = self.parameters + (f"&preference={preference}" if preference else "")
        return HttpRequest("POST", f"/{target(name)}/{self.path}?keep_alive={keep_alive}{parameters}")

    def close(self, pit: str) -> HttpRequest:
        """Return the request that frees one."""
        return HttpRequest("DELETE", f"/{self.path}", encode({self.key: pit}))


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """What the console completes besides the words that every server of the family has (`console.text`).

    Attributes:
        paths: Paths that begin without an index.
        of_index: Paths after an index.
        queries: Clauses of the query language.
        aggregations: Aggregations.
        types: Types of fields.
        search: Members of the body of a search.
        mappings: Members of a mapping.
    """

    paths: tuple[str, ...] = ()
    of_index: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    aggregations: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    mappings: tuple[str, ...] = ()


class DocumentsRequest(HttpRequest, frozen=True):
    """A request whose answer has to hold whole documents; some servers leave vectors out unless asked for them."""


def whole_documents(request: HttpRequest) -> DocumentsRequest:
    """Say of a request that its answer holds whole documents."""
    return DocumentsRequest(**msgspec.structs.asdict(request))


_VECTORS = "_source_exclude_vectors"


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """What a server has, by its product and version; each driver makes it, and this code asks nothing else.

    Attributes:
        points: How points in time are opened and freed.
        words: What the console completes for this product only.
        point_in_time: Points in time sort by their tiebreakers, without which rows are lost; where they do not, exports
            scroll.
        ties_as_offset: Points in time order ties as pages by offset do; where they do not, deep pages scroll.
        case_insensitive: Term-level queries take `case_insensitive`.
        resolves_names: `_resolve/index` lists names without statistics.
        finds_ignored: `exists` finds strings that are longer than `ignore_above`.
        orders_unsigned: A sort by an `unsigned_long` takes arrays by their smallest and greatest values, and puts rows
            without one last.
        skips_rightly: A sort by a number in a nested array, or by a `scaled_float`, has all rows, and one by `_index`
            succeeds; where they do not, a key before it keeps the server from skipping by an index that does not fit.
        counts_wordless: The total of an `exists` counts texts without a word, which are among its rows.
        reads_any_bound: A range may have a bound that the type of the field has no room for.
        finds_near: Searches take `knn`, with a filter.
        nears_by_clause: Vectors are those of a plugin: `knn` is a clause of a query, and `knn_score` a script.
        leaves_out_vectors: Whether answers leave out vectors unless a parameter forbids it, by the version, by what
            the server takes, or by the settings of an index; None if that has to be tried.
    """

    points: PointInTime
    words: Words = Words()
    point_in_time: bool = False
    ties_as_offset: bool = False
    case_insensitive: bool = False
    resolves_names: bool = False
    finds_ignored: bool = False
    orders_unsigned: bool = True
    skips_rightly: bool = True
    counts_wordless: bool = True
    reads_any_bound: bool = True
    finds_near: bool = False
    nears_by_clause: bool = False
    leaves_out_vectors: bool | None = False

    @property
    def snapshots(self) -> PointInTime | None:
        """The points in time that exports use; None where they scroll."""
        return self.points if self.point_in_time else None

    @property
    def asks_for_vectors(self) -> bool:
        """Requests for whole documents carry the parameter that forbids to leave out vectors."""
        return self.leaves_out_vectors is not False

    def reads(self, request: HttpRequest) -> bool:
        """Return whether a request may be sent again: it writes nothing, and moves no scroll on."""
        scrolls = request.path.startswith("/_search/scroll")
        return not (scrolls or self.may_write(request.method, request.path))

    def may_write(self, method: str, path: str, body: str = "") -> bool:
        """Return whether a request may change something.

        `POST /index/_doc/_search` searches on 7.17 and writes the document `_search` on 8.x, so suffixes decide
        nothing. Freeing a search context of one's own is a read; `DELETE /_search/scroll/_all` ends those of all users,
        by its path, its parameter `scroll_id` or its body.

        Args:
            method: In capitals.
            path: Percent-encoded, from the first slash.
            body: As text; empty if there is none.

        >>> dialect = Dialect(points=PointInTime("_pit", "id"))
        >>> dialect.may_write("POST", "/books/_search"), dialect.may_write("POST", "/books/_doc/_search")
        (False, True)
        """
        parts = segments(path)
        if method in ("GET", "HEAD", "OPTIONS"):
            return not _ACTIONS.isdisjoint(parts)
        if any("/" in part or part in (".", "..") for part in parts):  # a proxy may resolve them to another path
            return True
        if method == "DELETE" and ("_all" in unquote(path) or "_all" in body or "\\" in body):
            return True
        route, points = "/".join(parts), self.points.path
        if method == "DELETE":
            return route != points and _HOUSEKEEPING.fullmatch(route) is None
        opens = re.fullmatch(_TARGET + re.escape(points), route)
        return method != "POST" or not (opens or _POST_READS.fullmatch(route))

    def complete(self, request: HttpRequest) -> HttpRequest:
        """Return a request as it has to be sent for whole documents.

        Some servers leave out vectors unless a parameter, which others refuse, forbids it.
        """
        if not isinstance(request, DocumentsRequest):
            return request
        whole = f"{'&' if '?' in request.path else '?'}{_VECTORS}=false" if self.asks_for_vectors else ""
        return HttpRequest(request.method, f"{request.path}{whole}", request.body, request.content_type)


def learn(dialect: Dialect, request: HttpRequest, reply: Reply) -> Dialect:
    """Return the dialect after the answer to a completed request, which shows what a hidden version takes.

    A server that does not know the parameter refuses it before it does anything else.
    """
    if dialect.leaves_out_vectors is not None:
        return dialect
    if not isinstance(request, DocumentsRequest) or reply.status not in (200, 400):
        return dialect
    if reply.status == 400 and not _refuses_parameter(reply):
        return dialect
    return msgspec.structs.replace(dialect, leaves_out_vectors=reply.status == 200)


def _refuses_parameter(reply: Reply) -> bool:
    return b"unrecognized parameter" in reply.body and _VECTORS.encode() in reply.body
