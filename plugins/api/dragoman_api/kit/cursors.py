r"""Cursors and checkpoints: texts that say where a query continues, and are refused by any other; walks by key.

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
import operator
import re
import zlib
from collections.abc import Callable
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec

from dragoman_api.errors import QueryError
from dragoman_api.json_text import decode, encode
from dragoman_api.wording import quoted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence

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
Row = TypeVar("Row")
Key = TypeVar("Key")
Condition = tuple[str, Literal["<", ">", "="], object]
"""A column, a comparison and a value."""


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


def continued(request: ExportRequest, kind: type[T]) -> T | None:
    """Return the position after which an export continues; None if it begins.

    Args:
        request: The export, whose checkpoint `seal` made of `query_of` it and a position.
        kind: The position's type.

    Raises:
        QueryError: The checkpoint is none, or belongs to another export.
    """
    if request.checkpoint is None:
        return None
    hint = "export again, without the checkpoint"
    return unseal(
        request.checkpoint, query_of(request), kind, what="checkpoint", code="export-not-resumable", hint=hint
    )


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


class Walk(msgspec.Struct, Generic[Row, Key], kw_only=True):
    """A walk through the rows of one query in the order of a key, which no window ends; it sends nothing itself.

    It needs an order without ties: the sort's keys, then a unique one. It asks for the rows after a key instead of
    those after an offset, so rows that come or go meanwhile move no others: a row that is there all the time, with the
    same keys, is read exactly once.

    >>> walk = Walk(key=lambda row: row, position=3)
    >>> [*walk.accept([4, 6], 2)], walk.position, walk.ended
    ([4, 6], 6, False)
    >>> beyond([("price", True), ("id", False)], [9.5, 17])
    [[('price', '<', 9.5)], [('price', '=', 9.5), ('id', '>', 17)]]

    Attributes:
        key: Returns the key of a row: a text or a number, or a tuple of the sort's values and the unique one.
        position: The key of the last row that was read, None at the beginning; with a cursor, the walk goes on from it.
        until: The last key of the walk, None for no bound.
        before: Whether one key comes before another in the server's order; Python's own order by default.
        what: The word for the result in errors.
        ended: Whether the last row was read.
    """

    key: Callable[[Row], Key]
    position: Key | None = None
    until: Key | None = None
    before: Callable[[Any, Any], bool] = operator.lt
    what: str = "result"
    ended: bool = False

    def accept(self, rows: Sequence[Row], asked: int, keys: list[Key] | None = None) -> Sequence[Row]:
        """Take the rows after `position`, move past them, and return those that belong to the walk.

        Args:
            rows: The server's answer, in order.
            asked: The number of rows that the server was asked for; a shorter answer is the last one.
            keys: The keys of the rows, if the caller has read them already.

        Raises:
            QueryError: There are more rows, or one does not come after the row before it: going on would lose or
                repeat rows. The walk has not moved.
        """
        if len(rows) > asked:
            raise QueryError(f"the {self.what} is wrong: the server returned {len(rows):,} rows instead of {asked:,}")
        keys = [*map(self.key, rows)] if keys is None else keys
        read = keys if self.position is None else [self.position, *keys]
        if not all(map(self.before, read, read[1:])):
            last = next(last for last, key in pairwise(read) if not self.before(last, key))
            raise QueryError(f"the {self.what} is incomplete: the server repeated rows after {last}")
        self.ended = len(rows) < asked
        if self.until is not None and keys and not self.before(keys[-1], self.until):
            while keys and self.before(self.until, keys[-1]):
                keys.pop()
            rows, self.ended = rows[: len(keys)], True
        if keys:
            self.position = keys[-1]
        return rows


async def read_pages(
    walk: Walk[Row, Key], fetch: Callable[[Key | None, int], Awaitable[Sequence[Row]]], *, limit: int = 1_000
) -> AsyncIterator[Sequence[Row]]:
    """Yield the rest of a walk, page by page, for an export; `walk.position` after a page is its checkpoint.

    Args:
        walk: The walk.
        fetch: Returns the first rows after a key, None for the very first, at most as many as the number says.
        limit: Rows of a page.

    Raises:
        QueryError: A page has too many rows, or one does not come after the row before it.
    """
    while not walk.ended:
        if rows := walk.accept(await fetch(walk.position, limit), limit):
            yield rows


def beyond(keys: Sequence[tuple[str, bool]], position: Sequence[object]) -> list[list[Condition]]:
    """Return the condition for rows after a position, for a server that compares single columns.

    Args:
        keys: The sort keys, each with whether it descends; the last is unique.
        position: The values of the last row that was read. None of them is null: no comparison finds what comes after
            a null, so sort by columns that every row has.

    Returns:
        Alternatives, each a list of conditions that hold together.

    Raises:
        ValueError: A value is missing or null.
    """
    if len(keys) != len(position) or any(value is None for value in position):
        raise ValueError(f"{len(keys)} sort keys need as many values, none of them null, not {quoted(list(position))}")
    values = list(zip(keys, position, strict=True))
    return [
        [*((name, "=", value) for (name, _), value in values[:at]), (column, "<" if descending else ">", edge)]
        for at, ((column, descending), edge) in enumerate(values)
    ]
