"""Search requests and answers, as the grid, its walks and exports share them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from dragoman_api import Note
from dragoman_api.errors import QueryError

from . import faults
from .documents import Hit
from .exchange import Exchange, post, raw, target

if TYPE_CHECKING:
    from typing import Any

MATCH_ALL = raw('{"match_all":{}}')


class Total(msgspec.Struct, frozen=True):
    """The number of matching rows, or a lower bound (`relation` `gte`)."""

    value: int
    relation: str = "eq"


class Hits(msgspec.Struct, frozen=True):
    """The rows of an answer."""

    hits: list[Hit] = []
    total: Total | int | None = None


class Shards(msgspec.Struct, frozen=True):
    """How many shards answered."""

    total: int = 0
    failed: int = 0
    failures: list[Raw] = []


class Found(msgspec.Struct, frozen=True):
    """A search answer; documents stay bytes."""

    hits: Hits = Hits()
    shards: Shards = msgspec.field(name="_shards", default=Shards())
    timed_out: bool = False
    pit_id: str | None = None
    scroll_id: str | None = msgspec.field(name="_scroll_id", default=None)

    @property
    def count(self) -> int | None:
        """Give the number of matching rows, None when it was not asked for."""
        total = self.hits.total
        return total.value if isinstance(total, Total) else total

    def partial(self) -> list[Note]:
        """Say what a 200 hides: shards that failed, a search that was cut off."""
        notes = []
        if self.shards.failed:
            text = f"{self.shards.failed} of {self.shards.total} shards failed: rows are missing"
            notes.append(Note(code="partial-result", reason=text))
        if self.timed_out:
            notes.append(Note(code="partial-result", reason="the search timed out on the server: rows are missing"))
        return notes


_found = msgspec.json.Decoder(Found)


def search(path: str, body: dict[str, Any]) -> Exchange[Found]:
    """Search, and decode the answer even where a stored document is no JSON.

    Raises:
        DragomanError: The server's refusal.
    """
    reply = yield post(path, body)
    try:
        return _found.decode(faults.check(reply))
    except (msgspec.DecodeError, UnicodeDecodeError):
        # The server stores comments and lone surrogates as sent and answers them verbatim; asked to filter its
        # answer it writes the documents anew.
        reply = yield post(f"{path}{'&' if '?' in path else '?'}filter_path=*", body)
    return faults.decode(reply, Found)


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
