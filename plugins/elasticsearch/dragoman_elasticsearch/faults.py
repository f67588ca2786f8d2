"""From a server's error answer to an error of the contract: by its type, by status only where there is none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

import msgspec

from dragoman_api import AuthenticationError, ConnectionFailedError, DragomanError, QueryError
from dragoman_api.errors import AccessDeniedError, ObjectNotFoundError, RowNotFoundError, WindowExceededError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman_api.errors import Detail
    from dragoman_api.exchanges import Reply

T = TypeVar("T")
_LIMIT = 1_000  # characters of a server's text in one message
_WINDOW = re.compile(
    r"(?:Result window is too large, from \+ size|Batch size is too large, size)"
    r" must be less than or equal to: \[(\d+)] but was \[(\d+)]"
)
_EXPECTED = re.compile(r"\s*Was expecting(?: one of)?:.*", re.DOTALL)  # a parser's list of all its tokens
_PROXY = "check Host and Port: a proxy may have answered instead of the database"

BUSY = ("circuit_breaking_exception", "es_rejected_execution_exception", "too_many_scroll_contexts_exception")
"""Error types after which waiting helps; the status does not tell (a blocked index is 429 as well)."""

CONTEXT_LOST = "search_context_missing_exception"
"""A point in time or a scroll that the server no longer knows."""

_HINTS = {
    "too_complex_to_determinize_exception": "the pattern is too long: use fewer characters",
    "too_many_clauses": "use fewer values, or compare letter case",
    "too_many_scroll_contexts_exception": "wait, or free scrolls: DELETE /_search/scroll/_all",
    "circuit_breaking_exception": "wait, or ask for fewer rows: the server is short of memory",
    "es_rejected_execution_exception": "wait: the server has more to do than it can queue",
    "index_closed_exception": "open the index: POST /INDEX/_open",
    "cluster_block_exception": "the index is blocked by a setting (index.blocks.*) or by a full disk; waiting does "
    "not help",
}


class Fault(msgspec.Struct, frozen=True):
    """What an error answer says, as far as it is one of Elasticsearch's."""

    status: int
    type: str = ""
    types: frozenset[str] = frozenset()
    reasons: tuple[str, ...] = ()
    wait: int = 0

    @property
    def text(self) -> str:
        """Give the reasons from the outside in, leaving out what another one says already."""
        said = ""
        for reason in (" ".join(_EXPECTED.sub("", each).split()) for each in self.reasons):
            said = said if reason in said else f"{said}: {reason}" if said else reason
        return said[:_LIMIT]

    @property
    def conflict(self) -> bool:
        """Tell whether the document is not what the request expected."""
        return self.type == "version_conflict_engine_exception"

    @property
    def busy(self) -> bool:
        """Tell whether waiting helps: 429 alone does not say so, a blocked index is 429 too."""
        if not self.type:
            return self.status == 429  # of a proxy
        return self.status in (429, 500, 503) and not self.types.isdisjoint(BUSY)


def read(reply: Reply) -> Fault:
    """Read an error answer; `error` may be a plain string, the body HTML or empty (413, HEAD)."""
    try:
        body = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = None
    after = str(reply.headers.get("Retry-After", ""))
    found = describe(reply.status, body.get("error") if isinstance(body, dict) else None)
    return msgspec.structs.replace(found, wait=int(after)) if after.isdecimal() else found


def describe(status: int, error: object) -> Fault:
    """Read what an answer, or one row of it, gives as its error; a row names no root cause."""
    if isinstance(error, str):
        return Fault(status, reasons=(error,))
    if not isinstance(error, dict):
        return Fault(status)
    causes = list(_causes(error if "root_cause" in error else {**error, "root_cause": [error]}))
    return Fault(
        status,
        # Reduce-phase failures have an empty root_cause: then the deepest cause is all there is.
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
        inner = shards[0].get("reason")  # what a query's parser says stands only here
    while isinstance(inner, dict):
        yield _kind(inner), _reason(inner)
        inner = inner.get("caused_by")


def _kind(error: object) -> str:
    return str(error.get("type") or "") if isinstance(error, dict) else ""


def _reason(error: object) -> str:
    return str(error.get("reason") or "") if isinstance(error, dict) else ""


def check(reply: Reply) -> bytes:
    """Let the body of a success pass.

    Raises:
        DragomanError: What any other answer means, see `error`.
    """
    if 200 <= reply.status < 300:
        return reply.body
    raise error(read(reply))


def decode(reply: Reply, kind: type[T] | msgspec.json.Decoder[T]) -> T:
    """Decode the body of a success, as a type or by a decoder.

    Raises:
        DragomanError: What any other answer means, see `error`.
        QueryError: The body is not what was asked for, for example a proxy's page.
    """
    body = check(reply)
    try:
        return kind.decode(body) if isinstance(kind, msgspec.json.Decoder) else msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise QueryError(f"the answer is not the JSON that was asked for: {fault}", hint=_PROXY) from fault


def busy(reply: Reply) -> bool:
    """Tell whether waiting helps."""
    return reply.status in (429, 500, 503) and read(reply).busy


def error(fault: Fault) -> DragomanError:
    """Build the error an answer stands for; 429, 500 and 503 say little without the type beside them."""
    text = fault.text
    details: dict[str, Detail] = {"status": fault.status, "type": fault.type}
    if fault.busy or (fault.wait and not fault.type):
        details["retry_after"] = fault.wait
    if fault.status == 401:
        return AuthenticationError(text or "the server gives no reason", details=details)
    if window := _WINDOW.search(text):
        limits = {"window": int(window[1]), "asked": int(window[2])}
        return WindowExceededError(f"Elasticsearch error: {text}", details=details | limits)
    if fault.type in ("index_not_found_exception", "resource_not_found_exception"):
        return ObjectNotFoundError(f"{text} (404)", hint="list what there is: dragoman objects", details=details)
    if fault.type == "document_missing_exception":
        return RowNotFoundError(text, details=details)
    if fault.status == 403 and fault.type in ("", "security_exception"):
        return AccessDeniedError(f"the credentials do not allow this (403): {text}", details=details)
    if fault.status in (502, 503, 504) and not fault.type:
        hint = "see whether the cluster is up, then try again; or " + _PROXY
        reason = f"HTTP {fault.status} from a proxy or a node that is down"
        return ConnectionFailedError(reason, hint=hint, details=details)
    if fault.status == 413:
        limit = "http.max_content_length, 100 MB by default"
        return QueryError(f"the request is larger than the server takes (HTTP 413; {limit})", details=details)
    hint = next((hint for kind, hint in _HINTS.items() if kind in fault.types), "")
    said = f"{fault.type}: {text}" if fault.type and text else fault.type or text
    return QueryError(f"Elasticsearch error: {said}" if said else f"HTTP {fault.status}", hint=hint, details=details)
