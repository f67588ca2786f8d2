r"""Cursors and checkpoints: texts that say where a query continues, and are refused by any other query.

A text is short and needs no quoting in a URL or a shell. It holds a version, digests of the query's parts, a checksum,
and a position of any type that msgspec encodes as JSON. It is neither secret nor signed: a person can build one, so a
driver judges a position like any other input.

>>> from dragoman_api import PageRequest
>>> query = query_of(PageRequest(object="books", columns=["title"]))
>>> text = seal(query, ["Dune", 17])
>>> unseal(text, query, tuple[str, int])
('Dune', 17)
>>> unseal(text, query_of(PageRequest(object="films", columns=["title"])), tuple[str, int])
Traceback (most recent call last):
    ...
dragoman_api.errors.QueryError: the cursor belongs to another object
"""

from __future__ import annotations

import base64
import re
import zlib
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeVar

import msgspec

from dragoman_api.errors import QueryError
from dragoman_api.json_text import decode, encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman_api.exports import ExportRequest
    from dragoman_api.grid import PageRequest

T = TypeVar("T")

INVALID = "cursor-invalid"
"""The code of the error for a text that is not a cursor of the query."""

MAX_CURSOR = 64_000
"""Maximum number of characters in a text; `seal` raises ValueError for a position that needs more."""

_VERSION = "1"
_TEXT = re.compile(r"[0-9][A-Za-z0-9_-]*", re.ASCII)
_sorted = msgspec.json.Encoder(order="sorted")
_DIGEST, _CHECK = 4, 4  # bytes
_PACK = 128  # bytes of a position that may be worth compressing
_MOST = 1 << 20  # bytes of a position


def query_of(request: PageRequest | ExportRequest) -> dict[str, object]:
    """Return the parts of a request that a position depends on, by name.

    The revision is not among them: the first page names it, so the position holds it; see `revision_of`.
    """
    columns = None if request.columns is None else sorted(set(request.columns))
    parts: dict[str, object] = {
        "object": request.object,
        "filter": None if request.filter is None else request.filter.body,
        "tenant": request.tenant,
        "time range": request.time,
        "choice of columns": columns,
    }
    names = ("sort", "form")  # of a page, of an export
    return parts | {name: getattr(request, name) for name in names if hasattr(request, name)}


def revision_of(request: PageRequest, pinned: str) -> str:
    """Return the revision at which a page continues: the one of the pages before it, which a position may hold.

    Args:
        request: The request with a cursor; it names that revision, or none.
        pinned: The revision in the cursor's position.

    Raises:
        QueryError: The request names another one.
    """
    if request.revision not in ("", pinned):
        hint = f"pass on revision {pinned} with the cursor, or none; another revision begins with its first page"
        raise QueryError("the cursor belongs to another revision", hint=hint, code=INVALID)
    return pinned


def seal(query: Mapping[str, object], position: object) -> str:
    """Return the text for a position in a query.

    Args:
        query: The parts of the query by name, see `query_of`; an error names the part that differs.
        position: Anything that msgspec encodes as JSON; decimals and integers keep every digit.

    Raises:
        ValueError: The text would be longer than `MAX_CURSOR`.
    """
    plain = encode(position).encode()
    packed = zlib.compress(plain) if len(plain) > _PACK else plain
    body = b"\1" + packed if len(packed) < len(plain) else b"\0" + plain
    sealed = bytes([len(query)]) + b"".join(_digests(query).values()) + body
    text = _write(_checksum(sealed) + sealed)
    if len(text) > MAX_CURSOR or len(plain) > _MOST:
        raise ValueError(f"the position needs {len(text):,} characters; a cursor has at most {MAX_CURSOR:,}")
    return text


def unseal(
    text: str, query: Mapping[str, object], kind: type[T], *, what: str = "cursor", code: str = INVALID, hint: str = ""
) -> T:
    """Return the position that a text holds.

    Args:
        text: From `seal`, or anything else.
        query: The query that continues.
        kind: The position's type.
        what: The word for the text in errors.
        code: The code of the errors.
        hint: The hint of the errors; empty for the one about pages.

    Raises:
        QueryError: The text was not made by `seal`, was cut or altered, or belongs to another query.
    """
    hint = hint or "begin with the first page, and pass on its `next` and `time` unchanged, with the same query"

    def refusal(reason: str) -> QueryError:
        return QueryError(f"the {what} {reason}", hint=hint, code=code)

    sealed = _read(text)
    if sealed is None:
        raise refusal("cannot be read: it is not one, or it was cut or altered")
    digests, end = _digests(query), 1 + sealed[0] * _DIGEST
    if sealed[0] != len(digests):
        raise refusal("belongs to another kind of query")
    expected = {name: sealed[at : at + _DIGEST] for name, at in zip(digests, range(1, end, _DIGEST), strict=True)}
    if others := [name for name, digest in digests.items() if expected[name] != digest]:
        raise refusal(f"belongs to another {', another '.join(others)}")
    try:
        plain = _unpacked(sealed[end + 1 :]) if sealed[end] else sealed[end + 1 :]
        return decode(plain, kind)
    except (IndexError, ValueError, zlib.error) as error:
        raise refusal(f"cannot be read: it does not hold a position of this query ({error})") from error


def refuse(request: PageRequest) -> None:
    """Refuse any cursor: for a driver whose pages continue by offset, so that none of them has a `next`.

    Raises:
        QueryError: The request has a cursor.
    """
    if request.cursor is not None:
        reason = f"pages of '{request.object}' continue by offset, so there is no cursor to continue after"
        hint = "leave the cursor out, and say with the offset where the page begins"
        raise QueryError(reason, hint=hint, code=INVALID)


def _digests(query: Mapping[str, object]) -> dict[str, bytes]:
    values = ((name, _sorted.encode([name, query[name]])) for name in sorted(query))
    return {name: blake2b(value, digest_size=_DIGEST).digest() for name, value in values}


def _checksum(sealed: bytes) -> bytes:
    return blake2b(sealed, digest_size=_CHECK).digest()


def _write(data: bytes) -> str:
    return _VERSION + base64.urlsafe_b64encode(data).decode().rstrip("=")


def _read(text: str) -> bytes | None:
    """Return the sealed bytes of a text; None if `seal` did not make it."""
    if len(text) > MAX_CURSOR or not _TEXT.fullmatch(text) or text[0] != _VERSION:
        return None
    try:
        data = base64.urlsafe_b64decode(text[1:] + "=" * (-len(text[1:]) % 4))
    except ValueError:
        return None
    sealed = data[_CHECK:]
    whole = _write(data) == text and data[:_CHECK] == _checksum(sealed)  # several texts decode to the same bytes
    return sealed if whole and sealed else None


def _unpacked(data: bytes) -> bytes:
    reader = zlib.decompressobj()
    plain = reader.decompress(data, _MOST)
    if not reader.eof:
        raise ValueError("it is longer than a position may be")
    return plain
