"""Stored rows: read many at once, and compare them by value."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api import QueryError
from dragoman_api.cells import MAX_DIGITS
from dragoman_api.errors import RowNotFoundError
from dragoman_api.kit.exchanges import post
from dragoman_elasticsearch import error_answers
from dragoman_elasticsearch.http_requests import target, whole_documents
from dragoman_elasticsearch.search import StoredHit, documents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api import DragomanError
    from dragoman_api.kit.exchanges import Exchange


def digest(document: bytes) -> str:
    """Return the digest of a document by value: `_update` reorders and respells it. Raises ValueError as `loaded`."""
    return sha256(json.dumps(loaded(document), sort_keys=True).encode()).hexdigest()


def same(document: bytes, other: bytes) -> bool:
    """Return whether two documents are equal by value; False if one cannot be read."""
    try:
        return document == other or (bool(document) and digest(document) == digest(other))
    except (ValueError, RecursionError):
        return False


def loaded(document: bytes) -> Any:
    """Read a document by value; an integer too long for Python is a text in an array.

    Raises:
        ValueError: It is not UTF-8, or is nested too deeply.
    """
    try:
        return json.loads(document, parse_int=lambda digits: int(digits) if len(digits) <= MAX_DIGITS else [digits])
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


class _StoredDoc(StoredHit, frozen=True):
    exists: bool = msgspec.field(default=False, name="found")
    error: dict[str, Any] | None = None


class _Answer(msgspec.Struct, frozen=True):
    docs: list[_StoredDoc]


_answer = msgspec.json.Decoder(_Answer)
RowId = tuple[str, str | None]
"""Id and routing."""


def read_rows(name: str, keys: Sequence[RowId]) -> Exchange[list[tuple[StoredHit, bool] | DragomanError]]:
    """Read stored rows.

    Returns:
        For each key the row and whether its bytes are exact, or the reason why it cannot be read.
    """
    addresses = [{"_id": key, **({} if routing is None else {"routing": routing})} for key, routing in keys]
    fault, docs, exact = None, [], True
    try:
        answer, exact = yield from documents(
            whole_documents(post(f"/{target(name)}/_mget", {"docs": addresses})), _answer
        )
        docs = answer.docs
    except QueryError as error:
        fault = error
    if not fault and len(docs) != len(keys):
        fault = QueryError(f"the server answered {len(docs)} of {len(keys)} documents")
    if (fault or not exact) and len(keys) > 1:  # find the one invalid document, or read less at once
        alone = []
        for key in keys:
            alone += yield from read_rows(name, [key])
        return alone
    if fault:
        return [fault]
    return [_read(name, key, doc, exact=exact) for (key, _), doc in zip(keys, docs, strict=True)]


def _read(name: str, key: str, doc: _StoredDoc, *, exact: bool) -> tuple[StoredHit, bool] | DragomanError:
    if doc.id != key:
        return QueryError(f"the server answered the document {doc.id!r} in place of {key!r}")
    if doc.error is not None:
        return error_answers.exception(error_answers.describe(400, doc.error))
    if not doc.exists:
        return RowNotFoundError(
            f"'{name}' holds no document '{doc.id}'", hint="it may have been deleted: read the page again"
        )
    if bytes(doc.source)[:1] not in (b"", b"{"):
        return QueryError(f"the document '{key}' in the answer is not a JSON object")
    return doc, exact
