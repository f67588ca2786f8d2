"""Searches: requests and answers, their hits, and the contexts that the server keeps open between requests.

Stored documents come as they were sent, comments and byte order marks included.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from dragoman_api import HttpRequest, Note, RowKey
from dragoman_api.errors import QueryError
from dragoman_api.json_text import encode, has_signed_zero, widened
from dragoman_api.kit.exchanges import Exchange, ask, post
from dragoman_api.replies import PROXY_HINT

from . import protocol
from .protocol import moves_on, raw, target, whole_documents

if TYPE_CHECKING:
    from .protocol import PointInTime

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A count or a sequence number; anything else in an answer is invalid."""


class Hit(msgspec.Struct, frozen=True):
    """A row of an answer without its document; sort values stay bytes, to be sent back unchanged."""

    index: str = msgspec.field(name="_index", default="")
    id: str = msgspec.field(name="_id", default="")
    score: float | None = msgspec.field(name="_score", default=None)
    seq_no: Count | None = msgspec.field(name="_seq_no", default=None)
    primary_term: Count | None = msgspec.field(name="_primary_term", default=None)
    routing: str | None = msgspec.field(name="_routing", default=None)
    ignored: tuple[str, ...] = msgspec.field(name="_ignored", default=())
    fields: dict[str, list[Any]] = {}
    sort: tuple[Raw, ...] = ()

    @property
    def key(self) -> RowKey:
        """The row's address, with the guard that protects a change of it."""
        guard: dict[str, int | str] = {}
        if self.seq_no is not None and self.primary_term is not None:
            guard = {"seq_no": self.seq_no, "primary_term": self.primary_term}
        return RowKey(self.index, self.id, self.routing, guard)


class DecodedHit(Hit, frozen=True):
    """A row with its document decoded; floats are Raw, to keep their digits."""

    source: dict[str, Any] | None = msgspec.field(name="_source", default=None)


class StoredHit(Hit, frozen=True):
    """A row with its document as bytes; empty if the index keeps none."""

    source: Raw = msgspec.field(name="_source", default=Raw())


T = TypeVar("T")
H = TypeVar("H")
MATCH_ALL = raw('{"match_all":{}}')


class Total(msgspec.Struct, frozen=True):
    """The number of matching rows, or a lower bound (`relation` `gte`)."""

    value: Count
    relation: str = "eq"


class Hits(msgspec.Struct, Generic[H], frozen=True):
    """The rows of an answer."""

    hits: list[H] = []
    total: Total | Count | None = None


class Shards(msgspec.Struct, frozen=True):
    """How many shards answered."""

    total: Count = 0
    failed: Count = 0
    failures: list[Raw] = []


class Reading(msgspec.Struct, frozen=True):
    """How documents were read that are not valid JSON.

    Attributes:
        exact: They are valid.
        commented: Numbers of the documents whose comments were left out; all others are as stored.
        respelled: The server wrote all documents of the answer anew: their numbers may have other digits.
    """

    exact: bool = True
    commented: frozenset[int] = frozenset()
    respelled: bool = False


_NO_HITS = Hits[Any]()
VERBATIM = Reading()


class SearchAnswer(msgspec.Struct, Generic[H], frozen=True):
    """A search answer.

    Attributes:
        hits: Its rows.
        shards: How many shards answered.
        timed_out: The server gave up before the end.
        pit_id: The newest id of a point in time.
        scroll_id: The newest id of a scroll.
        read: How its documents had to be read.
        odd: Its bytes without comments, if documents in it may be invalid JSON, or not on one line.
    """

    hits: Hits[H] = _NO_HITS
    shards: Shards = msgspec.field(name="_shards", default=Shards())
    timed_out: bool = False
    pit_id: str | None = None
    scroll_id: str | None = msgspec.field(name="_scroll_id", default=None)

    read: Reading = VERBATIM
    odd: bytes = b""

    @property
    def count(self) -> int | None:
        """The number of matching rows, None if it was not requested."""
        total = self.hits.total
        return total.value if isinstance(total, Total) else total

    def notes(self) -> list[Note]:
        """Return the notes on the answer as a whole."""
        if self.read.exact:
            return self.partial()
        reason = "a stored document is not valid JSON (a comment, half a character): it is shown rewritten"
        if self.read.respelled:
            reason = f"{reason}, and numbers of all these rows may have other digits"
        return [*self.partial(), Note(code="documents-rewritten", reason=reason)]

    def partial(self) -> list[Note]:
        """Return notes on what a 200 hides: failed shards, a search that timed out."""
        notes = []
        if self.shards.failed:
            text = f"{self.shards.failed} of {self.shards.total} shards failed: rows are missing"
            notes.append(Note(code="partial-result", reason=text))
        if self.timed_out:
            notes.append(Note(code="partial-result", reason="the search timed out on the server: rows are missing"))
        return notes


_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F])[0-9a-fA-F]{2}|.)", re.DOTALL
)


class _Address(msgspec.Struct, frozen=True):
    index: str = msgspec.field(name="_index", default="")
    id: str = msgspec.field(name="_id", default="")


class _AddressedHits(msgspec.Struct, frozen=True):
    hits: list[_Address] = []


class _Addresses(_Address, frozen=True):
    """The addresses in an answer: of a search, of several documents, or of one."""

    hits: _AddressedHits = _AddressedHits()
    docs: list[_Address] = []


_addresses = Decoder(_Addresses)


def documents(request: HttpRequest, decoder: Decoder[T]) -> Exchange[tuple[T, bool]]:
    """Send a request whose answer holds stored documents, which are not always valid JSON.

    The server stores comments, byte order marks and unpaired surrogates as sent, and returns them verbatim.

    Returns:
        The answer, and whether its documents are as they are stored.
    """
    answer, read, body = yield from _documents(request, decoder)
    if not body.isascii():
        protocol.parsed(body, Raw)
    return answer, read.exact


def _documents(request: HttpRequest, decoder: Decoder[T]) -> Exchange[tuple[T, Reading, bytes]]:
    body = protocol.check((yield from ask(request)))
    if (answer := _read(body, decoder)) is not None:
        return answer, VERBATIM, body
    if (answer := _read(mended(body), decoder)) is not None:
        return answer, Reading(exact=False), body
    bare = uncommented(body)
    answer, read = _read(mended(bare.body), decoder), Reading(exact=False, commented=bare.rows)
    scrolls = moves_on(request.path)
    if answer is not None and (bare.certain or scrolls):
        return answer, read, bare.body
    if scrolls:  # another request would skip this page
        return protocol.parsed(mended(bare.body), decoder), read, bare.body
    if answer is not None:
        reply = yield from ask(_filtered(request, "hits.hits._index,hits.hits._id,docs._index,docs._id,_index,_id"))
        if _addresses.decode(widened(mended(bare.body))) == protocol.decode(reply, _Addresses):
            return answer, read, bare.body
    reply = yield from ask(_filtered(request, "*"))  # the server rewrites the documents of such an answer
    return protocol.decode(reply, decoder), Reading(exact=False, respelled=True), reply.body


def _filtered(request: HttpRequest, paths: str) -> HttpRequest:
    separator = "&" if "?" in request.path else "?"
    return msgspec.structs.replace(request, path=f"{request.path}{separator}filter_path={paths}")


def _read(body: bytes, decoder: Decoder[T]) -> T | None:
    # Only grids read numbers; documents of other answers stay bytes.
    signed = decoder is READ and has_signed_zero(body)
    for widen in (True,) if signed else (False, True):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return decoder.decode(widened(body) if widen else body)
    return None


def mended(body: bytes) -> bytes:
    """Replace each unpaired surrogate escape with the escape of U+FFFD, which has the same length."""
    return _ESCAPE.sub(lambda escape: b"\\ufffd" if escape[1] else escape[0], body)


READ = Decoder(SearchAnswer[DecodedHit], float_hook=Raw)


def search(path: str, body: dict[str, Any], decoder: Decoder[SearchAnswer[H]]) -> Exchange[SearchAnswer[H]]:
    """Search.

    Args:
        path: The path with its parameters.
        body: The query and its options.
        decoder: The decoder of the rows, `READ` for a grid's.

    Raises:
        DragomanError: The server refused, answered more rows than requested, or answered something else.
    """
    request = post(path, body)
    if "_source" not in body:
        request = whole_documents(request)
    answer, read, text = yield from _documents(request, decoder)
    if answer.hits is _NO_HITS:  # taken for an empty one, it would end an export early
        raise QueryError("the server answered a search without 'hits'", hint=PROXY_HINT)
    if len(answer.hits.hits) > (size := body.get("size", len(answer.hits.hits))):
        raise QueryError(f"the server returned {len(answer.hits.hits):,} rows instead of {size:,}")
    odd = not read.exact or b"\n" in text or b"\r" in text
    return msgspec.structs.replace(answer, read=read, odd=text) if odd else answer


class _Count(msgspec.Struct, frozen=True):
    count: Count
    shards: Shards = msgspec.field(name="_shards", default=Shards())


def count(name: str, query: Raw) -> Exchange[int]:
    """Count matching rows exactly.

    Raises:
        QueryError: Some shards did not count.
    """
    reply = yield from ask(post(f"/{target(name)}/_count", {"query": query}))
    answer = protocol.decode(reply, _Count)
    if answer.shards.failed:
        raise QueryError(f"{answer.shards.failed} of {answer.shards.total} shards failed: the count is too low")
    return answer.count


_opened = Decoder(dict[str, Raw])


def open_context(points: PointInTime, name: str, *, keep_alive: str, preference: str = "") -> Exchange[str]:
    """Open a point in time and return its id, see `PointInTime.open`."""
    reply = yield from ask(points.open(name, keep_alive=keep_alive, preference=preference))
    return protocol.parsed(bytes(protocol.decode(reply, _opened).get(points.key, b"null")), str)


def close_scroll(scroll: str) -> HttpRequest:
    """Free a scroll."""
    return HttpRequest("DELETE", "/_search/scroll", encode({"scroll_id": [scroll]}))


# Possessive, and an unclosed comment reaches to the end: no byte is scanned twice.
_RUN = rb'[^"/{}\[\]\xef]++|"(?:[^"\\]++|\\.)*+"'
_TOKEN = re.compile(
    rb"((?:%b)(?:%b|)*+)|([{\[])|([}\]])|(/\*.*?(?:\*/|\Z)|//[^\r\n]*+|\xef\xbb\xbf)|." % (_RUN, _RUN),
    re.DOTALL,
)
# What the server writes after a document, if more than closing brackets.
_BEHIND = re.compile(rb',"(?:fields|highlight|ignored_field_values|matched_queries|sort)":|\},\{"_index":"')
_SOURCE = b'"_source":'


class Uncommented(msgspec.Struct, frozen=True):
    """An answer without comments.

    Attributes:
        body: The answer with a blank for each byte of a comment or mark: all others keep their places.
        rows: The documents that held one, by their number in the answer.
        certain: No comment runs into the server's own text. The server puts nothing between a document and what
            follows it, so the end of such a comment is a guess: a comment may hold the text of a row.
    """

    body: bytes
    rows: frozenset[int]
    certain: bool


def uncommented(answer: bytes) -> Uncommented:
    """Remove the comments outside of strings from an answer that holds documents."""
    body, rows, certain = bytearray(answer), set[int](), True
    depth, around, count = 0, -1, 0  # around: the depth of what holds the current document, -1 between two
    at, end, before = 0, len(answer), b""
    while token := _TOKEN.match(answer, at):
        run, opening, closing, comment = token.groups()
        begin, at = token.span()
        if run:
            before = run.rstrip()
        elif opening:
            if around < 0 and before.endswith(_SOURCE):
                around, count = depth, count + 1
            depth, before = depth + 1, b""
        elif closing:
            depth, before = depth - 1, b""
            around = -1 if depth == around else around
        elif comment:
            rows.add(count if around < 0 and before.endswith(_SOURCE) else count - 1)
            if around < 0 and comment.startswith(b"//"):
                seam = _BEHIND.search(answer, begin, at)
                behind = seam.start() if seam else end - depth
                if behind < at:
                    at, certain = max(behind, begin), False
            body[begin:at] = b" " * (at - begin)
            if at == begin:
                break
    return Uncommented(bytes(body), frozenset(rows), certain)
