"""The server's protocol: paths, which requests only read, and what its error answers say.

If in doubt, a request counts as a write. Errors come in four shapes of body, and with status 200.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, unquote

import msgspec

from dragoman_api import AuthenticationError, ConnectionFailedError, DragomanError, QueryError, json_text, replies
from dragoman_api.errors import AccessDeniedError, WindowExceededError
from dragoman_api.kit import exchanges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from msgspec import Raw

    from dragoman_api import HttpRequest
    from dragoman_api.errors import Detail
    from dragoman_api.replies import Reply

T = TypeVar("T")
_LIMIT = 1_000  # characters of a server's text in one message
_WINDOW = re.compile(r"query maximum results exceeded.*offset '(\d+)' and limit '(\d+)'.*'(\d+)'", re.DOTALL)
_NO_GRAPHQL = ("graphql api is disabled", "graphql api is not supported")
_RATE = "429 Too many requests"  # GraphQL's answer to a search beyond MAXIMUM_CONCURRENT_GET_REQUESTS, status 200
_SHORT = 4_096  # bytes of such an answer
UNKNOWN_TENANT = re.compile(r"tenant not found")
"""The server's words about a tenant that a collection does not have."""

UNFOLLOWED = re.compile(r"resolve cross-refs: .*tenan", re.DOTALL)
"""The server's words about a search for a tenant that follows a reference to a collection without that tenant.

The collection has no tenants, or lacks this one, or it is inactive (seen on 1.38.11).
"""

_TENANT = re.compile(r"multi-tenancy enabled, but request was without tenant")
# Both indexes' words; the name of a vector stands before or after the id of the row.
_LENGTHS = re.compile(
    r"alidate vector index (?:(\S+) for target vector )?[^:]*?(?:target vector (\S+))?: (?:new node has a vector with "
    r"length (\d+)\. Existing nodes have vectors with length (\d+)|insert called with a vector of the wrong size: "
    r"(\d+)\. Saved length: (\d+))"
)
_LOCALLY = re.compile(r"(?:put|update) local object: .*alidate vector index ", re.DOTALL)

GRAPHQL_OFF = "graphql-unavailable"
"""The code of the error for a server without GraphQL."""

EMPTY = "no graphql provider present"
"""GraphQL's answer if there is no collection at all."""


class Features(msgspec.Struct, frozen=True):
    """The features of a server's version, found by comparing releases."""

    version: tuple[int, int, int] = (1, 38, 0)

    @property
    def cursor(self) -> bool:
        """Lists go on after an id."""
        return self.version >= (1, 18, 0)

    @property
    def contains(self) -> bool:
        """Filters take ContainsAny."""
        return self.version >= (1, 21, 0)

    @property
    def negation(self) -> bool:
        """Filters take ContainsNone and a Not that works; introspection shows Not long before."""
        return self.version >= (1, 33, 0)

    @property
    def complement(self) -> bool:
        """NotEqual finds all rows that Equal does not."""
        return self.version >= (1, 24, 0)

    @property
    def ordered_keys(self) -> bool:
        """A lone comparison reads the keys of its index in ascending order; seen on 1.38."""
        return self.version >= (1, 38, 0)

    @property
    def zeros(self) -> bool:
        """The indices hold -0.0 as 0.0; the fix is of spring 2026."""
        return self.version >= (1, 38, 0)

    @property
    def literal_patterns(self) -> bool:
        """`Like` takes every character except its two wildcards literally, not as part of a regular expression."""
        return self.version >= {22: (1, 22, 13), 23: (1, 23, 5)}.get(self.version[1], (1, 24, 0))

    @property
    def aliases(self) -> bool:
        """Collections have aliases."""
        return self.version >= (1, 32, 0)


def message(reply: Reply) -> str:
    """Return the message of an error answer; the content type is not a guide, a missing key is text/plain."""
    return shorten(replies.error_text(reply.body))


def shorten(text: str) -> str:
    """Return a text on one line of bounded length."""
    return " ".join(text.split())[:_LIMIT]


def check(reply: Reply) -> bytes:
    """Return the body of a successful answer.

    Raises:
        DragomanError: Any other answer, see `exception`.
    """
    if 200 <= reply.status < 300:
        return reply.body
    raise exception(reply)


def decode(reply: Reply, kind: type[T] | msgspec.json.Decoder[T]) -> T:
    """Decode the body of a success, as a type or by a decoder.

    Raises:
        DragomanError: Any other answer, see `exception`.
        QueryError: The body has another form, for example a proxy's page, or is empty.
    """
    body = check(reply)
    try:
        return json_text.decode(body, kind)
    except ValueError as fault:
        reason = f"the answer is not the expected JSON: {fault}" if body else "the answer is empty"
        raise QueryError(reason, hint=replies.PROXY_HINT, details={"status": reply.status}) from fault


def decode_part(text: Raw, kind: type[T]) -> T:
    """Decode a part of an answer. Raises QueryError if it has another form."""
    try:
        return json_text.decode(bytes(text), kind)
    except ValueError as fault:
        raise QueryError(f"the answer is not the expected JSON: {fault}", hint=replies.PROXY_HINT) from fault


def unsure(reply: Reply) -> bool:
    """Return whether a write may have been applied in spite of this answer.

    The only place that decides it, for rows, drops and the console:

    - 5xx: yes. The server answers 500 whatever failed, even after a part of its shards or replicas took the write; a
      gateway's 502, 503 or 504 may come after the server did the work. Some plain refusals are 500, too: null in an
      array, the deletion from a missing collection (seen on 1.38.11).
    - 500 for a vector of another length: no, if the shard is on the node that answers. It validates all vectors of an
      object before it stores any of it (both kinds of index, POST, PUT and PATCH, seen on 1.38.11).
    - 408: yes. The server has no such answer, and gateways give it when they have waited long enough.
    - any other 3xx or 4xx: no. The server checks before it writes (401, 403, 404, 422), a gateway before it forwards.
    """
    if reply.status == 500 and _LOCALLY.search(message(reply)):
        return False
    return exchanges.unsure(reply.status)


def refusal_in_words(text: str) -> str:
    """Return what the server says of a vector of another length, without its own affairs; any other text as it is."""
    if (match := _LENGTHS.search(text[:_LIMIT])) is None:
        return text
    name = match[1] or match[2]
    length, stored = match[3] or match[5], match[4] or match[6]
    vector = f"the vector {name!r}" if name else "the vector"
    return f"{vector} has the length {length}, and those of the collection have the length {stored}"


def retry_after(reply: Reply) -> int | None:
    """Return the seconds that a busy server asks to wait, 0 if it names none; None if it does not say that it is busy.

    A search too many is an error of GraphQL with status 200 (`Traverser.GetClass`, 1.38.11).
    """
    if reply.status == 429 or (reply.status == 503 and reply.headers.get("Retry-After")):
        return replies.seconds_asked(reply)
    rated = reply.status == 200 and len(reply.body) < _SHORT and _RATE.encode() in reply.body
    return 0 if rated and _RATE in message(reply) else None


def exception(reply: Reply) -> DragomanError:
    """Build the exception for an error answer."""
    text = message(reply)
    details = {"status": reply.status}
    if (seconds := retry_after(reply)) is not None:
        details["retry_after"] = seconds
    if reply.status == 401:
        return AuthenticationError(text or "the server gives no reason", details=details)
    if reply.status == 403:
        return _forbidden(text)
    if any(phrase in text for phrase in _NO_GRAPHQL):
        return QueryError(
            f"this server does not answer GraphQL ({text}): filters, sorts, counts and summaries need it",
            hint="unfiltered pages, edits, exports without a filter and REST lines in the console still work",
            code=GRAPHQL_OFF,
            details=details,
        )
    if reply.status in (502, 503, 504):
        reason = f"HTTP {reply.status} from a proxy or a node that is down: {text}"[:_LIMIT]
        hint = "check that the server is up, then try again; or " + replies.PROXY_HINT
        return ConnectionFailedError(reason, hint=hint, details=details)
    if hint := replies.redirection(reply):
        return QueryError(f"the server redirects (HTTP {reply.status})", hint=hint, details=details)
    return refused([text or f"HTTP {reply.status}"], **details)


def refused(texts: Iterable[str], *, status: int, retry_after: int | None = None) -> DragomanError:
    """Build the exception for a server's messages, whatever their status."""
    text = shorten("; ".join(dict.fromkeys(map(refusal_in_words, texts))))
    if window := _WINDOW.search(text):
        last_row, limit = int(window[1]) + int(window[2]), int(window[3])
        return window_exceeded(last_row, limit, status=status)
    if _TENANT.search(text):
        return tenant_required(text)
    details: dict[str, Detail] = {"status": status}
    if retry_after is not None or _RATE in text:
        hint = "wait: the server has more requests than it answers at a time"
        return QueryError(f"Weaviate error: {text}", hint=hint, details=details | {"retry_after": retry_after or 0})
    hint = "the collection may have changed: describe it again" if "Cannot query field" in text else ""
    return QueryError(f"Weaviate error: {text}", hint=hint, details=details)


def _forbidden(text: str) -> DragomanError:
    if "due to GraphQL introspection" in text:
        return AccessDeniedError(
            f"this key may browse, but not filter, sort or count (403): {text}",
            hint="GraphQL needs the permission read_collections on all collections; unfiltered pages work without it",
        )
    return AccessDeniedError(f"the credentials do not allow this (403): {text}")


def window_exceeded(last_row: int, limit: int, *, status: int | None = None) -> WindowExceededError:
    """Build the error for a page beyond what the server reaches by offset (W39)."""
    return WindowExceededError(
        f"row {last_row:,} lies past the {limit:,} rows that pages reach (QUERY_MAXIMUM_RESULTS of the server)",
        hint="narrow the filter, pass on an unfiltered page's `next` as the cursor, or export, which has no limit",
        details={"window": limit, "asked": last_row, "status": status},
    )


def tenant_required(text: str) -> QueryError:
    """Build the error for a collection with tenants of which none was named."""
    return QueryError(
        text, code="tenant-required", hint="name one; in the console, GET /v1/schema/COLLECTION/tenants lists them"
    )


def object_path(collection: str, key: str) -> str:
    """Return the path of one object in its collection."""
    return f"/v1/objects/{quote(collection, safe='')}/{quote(key, safe='')}"


_READING = re.compile(r"/v1/(graphql(/batch)?|objects/validate|search/[^/]+/[^/]+|aggregate/[^/]+)/?")


class _DryRun(msgspec.Struct, rename="camel"):
    dry_run: bool = False


def may_write(request: HttpRequest) -> bool:
    """Return whether a request may change something; True if in doubt.

    GraphQL has no mutations here. A deletion by filter counts as a read only with a literal `dryRun: true`.
    """
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return False
    path = unquote(request.path.partition("?")[0])
    if request.method == "POST":
        return _READING.fullmatch(path) is None
    return not (request.method == "DELETE" and path == "/v1/batch/objects" and _dry(request.body))


def _dry(body: str | None) -> bool:
    keys = re.findall(r'"dryRun"', body or "", re.IGNORECASE)
    try:
        return len(keys) == 1 and json_text.decode(body or "", _DryRun).dry_run
    except ValueError:
        return False
