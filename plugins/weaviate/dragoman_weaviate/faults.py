"""From a server's error answer to an error of the contract: four shapes of body, and errors that come with 200."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dragoman_api import AuthenticationError, ConnectionFailedError, DragomanError, QueryError
from dragoman_api.errors import AccessDeniedError, WindowExceededError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_api.exchanges import Reply

T = TypeVar("T")
_LIMIT = 1_000  # characters of a server's text in one message
_PROXY = "check Host and Port: a proxy may have answered instead of the database"
_WINDOW = re.compile(r"query maximum results exceeded.*offset '(\d+)' and limit '(\d+)'.*'(\d+)'", re.DOTALL)
_NO_GRAPHQL = ("graphql api is disabled", "graphql api is not supported")
_TENANT = re.compile(r"multi-tenancy enabled, but request was without tenant")

GRAPHQL_OFF = "graphql-unavailable"
"""Code of the error that says that the server answers no GraphQL."""

EMPTY = "no graphql provider present"
"""What GraphQL answers where there is no collection at all."""


def message(reply: Reply) -> str:
    """Give what an error answer says; the type of its content tells nothing, a missing key is text/plain."""
    try:
        body: Any = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = reply.body.decode(errors="replace")
    return shorten(_said(body))


def shorten(text: str) -> str:
    """Write a text on one line of bounded length."""
    return " ".join(text.split())[:_LIMIT]


def _said(body: object) -> str:
    if isinstance(body, list):
        return "; ".join(dict.fromkeys(filter(None, map(_said, body))))
    if isinstance(body, dict):
        return _said(body.get("error") or body.get("message") or body.get("errors") or "")
    return body if isinstance(body, str) else ""


def check(reply: Reply) -> bytes:
    """Let the body of a success pass.

    Raises:
        DragomanError: What any other answer means, see `error`.
    """
    if 200 <= reply.status < 300:
        return reply.body
    raise error(reply)


def decode(reply: Reply, kind: type[T] | msgspec.json.Decoder[T]) -> T:
    """Decode the body of a success, as a type or by a decoder.

    Raises:
        DragomanError: What any other answer means, see `error`.
        QueryError: The body is not what was asked for: a proxy's page, or nothing at all.
    """
    body = check(reply)
    try:
        return kind.decode(body) if isinstance(kind, msgspec.json.Decoder) else msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        what = f"the answer is not the JSON that was asked for: {fault}" if body else "the answer is empty"
        raise QueryError(what, hint=_PROXY, details={"status": reply.status}) from fault


def error(reply: Reply) -> DragomanError:
    """Build the error an answer stands for."""
    text = message(reply)
    details = {"status": reply.status}
    if reply.status == 401:
        return AuthenticationError(text or "the server gives no reason", details=details)
    if reply.status == 403:
        return _forbidden(text)
    if any(each in text for each in _NO_GRAPHQL):
        return QueryError(
            f"this server answers no GraphQL ({text}): filters, sorts and counts need it",
            hint="unfiltered pages, edits, exports without a filter and REST lines in the console still work",
            code=GRAPHQL_OFF,
            details=details,
        )
    if reply.status in (502, 503, 504):
        reason = f"HTTP {reply.status} from a proxy or a node that is down: {text}"[:_LIMIT]
        hint = "see whether the server is up, then try again; or " + _PROXY
        return ConnectionFailedError(reason, hint=hint)
    return refused([text or f"HTTP {reply.status}"], status=reply.status)


def refused(texts: Iterable[str], *, status: int) -> DragomanError:
    """Build the error that a server's words stand for, whatever status they came with."""
    text = shorten("; ".join(dict.fromkeys(texts)))
    if window := _WINDOW.search(text):
        asked, limit = int(window[1]) + int(window[2]), int(window[3])
        return window_exceeded(asked, limit, status=status)
    if _TENANT.search(text):
        return tenant_required(text)
    hint = "the collection may have changed: describe it again" if "Cannot query field" in text else ""
    return QueryError(f"Weaviate error: {text}", hint=hint, details={"status": status})


def _forbidden(text: str) -> DragomanError:
    if "due to GraphQL introspection" in text:
        return AccessDeniedError(
            f"this key may browse, but neither filter, sort nor count (403): {text}",
            hint="GraphQL wants the right read_collections on all collections; unfiltered pages work without it",
        )
    return AccessDeniedError(f"the credentials do not allow this (403): {text}")


def window_exceeded(asked: int, limit: int, *, status: int | None = None) -> WindowExceededError:
    """Say that a page lies past what the server reaches by offset (W39)."""
    return WindowExceededError(
        f"row {asked:,} lies past the {limit:,} rows that pages reach (QUERY_MAXIMUM_RESULTS of the server)",
        hint="narrow the filter, follow an unfiltered page's `next` with --cursor, or export: no limit there",
        details={"window": limit, "asked": asked, "status": status},
    )


def tenant_required(text: str) -> QueryError:
    """Say that a collection's rows belong to tenants and none was named."""
    return QueryError(text, code="tenant-required", hint="name one with --tenant; GET /v1/schema/COLLECTION/tenants")
