"""Search requests and answers, shared by the grid, deep pages and exports."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from dragoman_api import Note
from dragoman_api.cells import widened
from dragoman_api.errors import QueryError

from . import error_answers
from .hits import Count, DecodedHit
from .http_requests import Exchange, post, raw, target

if TYPE_CHECKING:
    from dragoman_api import HttpRequest

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


_NO_HITS = Hits[Any]()


class SearchAnswer(msgspec.Struct, Generic[H], frozen=True):
    """A search answer, and its bytes where documents in it may be no JSON, or not on one line."""

    hits: Hits[H] = _NO_HITS
    shards: Shards = msgspec.field(name="_shards", default=Shards())
    timed_out: bool = False
    pit_id: str | None = None
    scroll_id: str | None = msgspec.field(name="_scroll_id", default=None)

    rewritten: bool = False
    odd: bytes = b""

    @property
    def count(self) -> int | None:
        """The number of matching rows, None if it was not requested."""
        total = self.hits.total
        return total.value if isinstance(total, Total) else total

    def notes(self) -> list[Note]:
        """Return the notes on the answer as a whole."""
        if not self.rewritten:
            return self.partial()
        reason = "a stored document is not valid JSON (a comment, half a character): it is shown rewritten"
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


def documents(request: HttpRequest, decoder: Decoder[T]) -> Exchange[tuple[T, bool]]:
    """Send a request whose answer holds stored documents, which are not always valid JSON.

    The server stores comments and unpaired surrogates as sent, and returns them verbatim.

    Returns:
        The answer, and whether documents had to be rewritten to be read.
    """
    found, rewritten, body = yield from _documents(request, decoder)
    if not body.isascii():
        error_answers.parsed(body, Raw)
    return found, rewritten


def _documents(request: HttpRequest, decoder: Decoder[T]) -> Exchange[tuple[T, bool, bytes]]:
    body = error_answers.check((yield request))
    for read in (bytes, widened, mended, lambda text: widened(mended(text))):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return decoder.decode(read(body)), read not in (bytes, widened), body
    # If asked to filter its answer, the server rewrites the documents.
    path = f"{request.path}{'&' if '?' in request.path else '?'}filter_path=*"
    reply = yield msgspec.structs.replace(request, path=path)
    return error_answers.decode(reply, decoder), True, reply.body


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
    found, rewritten, text = yield from _documents(post(path, body), decoder)
    if found.hits is _NO_HITS:  # taken for an empty one, it would end an export early
        raise QueryError("the server answered a search without 'hits'", hint=error_answers.PROXY)
    if len(found.hits.hits) > (asked := body.get("size", len(found.hits.hits))):
        raise QueryError(f"the server returned {len(found.hits.hits):,} rows instead of {asked:,}")
    odd = rewritten or b"\n" in text or b"\r" in text
    return msgspec.structs.replace(found, rewritten=rewritten, odd=text) if odd else found


class _Count(msgspec.Struct, frozen=True):
    count: Count
    shards: Shards = msgspec.field(name="_shards", default=Shards())


def count(name: str, query: Raw) -> Exchange[int]:
    """Count matching rows exactly.

    Raises:
        QueryError: Some shards did not count.
    """
    reply = yield post(f"/{target(name)}/_count", {"query": query})
    answer = error_answers.decode(reply, _Count)
    if answer.shards.failed:
        raise QueryError(f"{answer.shards.failed} of {answer.shards.total} shards failed: the count is too low")
    return answer.count
