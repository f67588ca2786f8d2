"""Search requests and answers, as the grid, its walks and exports share them."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from dragoman_api import Note
from dragoman_api.errors import QueryError

from . import faults
from .documents import Read
from .exchange import Exchange, post, raw, target

if TYPE_CHECKING:
    from typing import Any

    from dragoman_api import HttpRequest

T = TypeVar("T")
H = TypeVar("H")
MATCH_ALL = raw('{"match_all":{}}')


class Total(msgspec.Struct, frozen=True):
    """The number of matching rows, or a lower bound (`relation` `gte`)."""

    value: int
    relation: str = "eq"


class Hits(msgspec.Struct, Generic[H], frozen=True):
    """The rows of an answer."""

    hits: list[H] = []
    total: Total | int | None = None


class Shards(msgspec.Struct, frozen=True):
    """How many shards answered."""

    total: int = 0
    failed: int = 0
    failures: list[Raw] = []


class Found(msgspec.Struct, Generic[H], frozen=True):
    """A search answer, and its bytes where documents in it may be no JSON, or not on one line."""

    hits: Hits[H] = Hits()
    shards: Shards = msgspec.field(name="_shards", default=Shards())
    timed_out: bool = False
    pit_id: str | None = None
    scroll_id: str | None = msgspec.field(name="_scroll_id", default=None)

    rewritten: bool = False
    odd: bytes = b""

    @property
    def count(self) -> int | None:
        """Give the number of matching rows, None when it was not asked for."""
        total = self.hits.total
        return total.value if isinstance(total, Total) else total

    def notes(self) -> list[Note]:
        """Say what must be said of the answer as a whole."""
        if not self.rewritten:
            return self.partial()
        reason = "a stored document is no proper JSON (a comment, half a character): it is shown written anew"
        return [*self.partial(), Note(code="documents-rewritten", reason=reason)]

    def partial(self) -> list[Note]:
        """Say what a 200 hides: shards that failed, a search that was cut off."""
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
    """Send a request whose answer holds stored documents, which are not always JSON.

    The server stores comments and halves of surrogate pairs as they were sent, and answers them verbatim.

    Returns:
        The answer, and whether documents had to be written anew to be read.
    """
    found, rewritten, _ = yield from _documents(request, decoder)
    return found, rewritten


def _documents(request: HttpRequest, decoder: Decoder[T]) -> Exchange[tuple[T, bool, bytes]]:
    body = faults.check((yield request))
    for read in (bytes, mended):
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            return decoder.decode(read(body)), read is mended, body
    # Asked to filter its answer, the server writes the documents anew.
    path = f"{request.path}{'&' if '?' in request.path else '?'}filter_path=*"
    reply = yield msgspec.structs.replace(request, path=path)
    return faults.decode(reply, decoder), True, reply.body


def mended(body: bytes) -> bytes:
    """Put a replacement character in the place of each half of a surrogate pair, as long as it was."""
    return _ESCAPE.sub(lambda escape: b"\\ufffd" if escape[1] else escape[0], body)


READ = Decoder(Found[Read], float_hook=Raw)


def search(path: str, body: dict[str, Any], decoder: Decoder[Found[H]]) -> Exchange[Found[H]]:
    """Search.

    Args:
        path: With its parameters.
        body: The query and what belongs to it.
        decoder: Of the rows, `READ` for a grid's.

    Raises:
        DragomanError: The server's refusal.
    """
    found, rewritten, text = yield from _documents(post(path, body), decoder)
    odd = rewritten or b"\n" in text or b"\r" in text
    return msgspec.structs.replace(found, rewritten=rewritten, odd=text) if odd else found


class _Count(msgspec.Struct, frozen=True):
    count: int
    shards: Shards = msgspec.field(name="_shards", default=Shards())


def count(name: str, query: Raw) -> Exchange[int]:
    """Count matching rows exactly.

    Raises:
        QueryError: Some shards did not count.
    """
    reply = yield post(f"/{target(name)}/_count", {"query": query})
    answer = faults.decode(reply, _Count)
    if answer.shards.failed:
        raise QueryError(f"{answer.shards.failed} of {answer.shards.total} shards failed: the count is too low")
    return answer.count
