"""What one server has, and what it calls that: all that tells the servers and the drivers of a family apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api import HttpRequest
from dragoman_api.json_text import encode

from . import protocol
from .protocol import DocumentsRequest, target

if TYPE_CHECKING:
    from dragoman_api.replies import Reply

_VECTORS = "_source_exclude_vectors"


class PointInTime(msgspec.Struct, frozen=True):
    """How a server's points in time are opened and freed.

    Attributes:
        path: The endpoint, without slashes.
        key: The member that holds the id, in the answer to opening one and in the request that frees it.
        parameters: What the request that opens one has besides `keep_alive`, with a leading `&`.
        tiebreakers: The sort keys that tell apart the rows of one, whatever is before them.
    """

    path: str
    key: str
    parameters: str = ""
    tiebreakers: tuple[str, ...] = ("_shard_doc",)

    @property
    def order(self) -> list[dict[str, Any]]:
        """The tiebreakers, as a search sorts by them; left out of `search_after` they lose ties without an error."""
        return [{name: {"order": "asc"}} for name in self.tiebreakers]

    def open(self, name: str, *, keep_alive: str, preference: str = "") -> HttpRequest:
        """Return the request that opens one; ids grow with the shards, so they go into bodies only.

        Args:
            name: The object's name.
            keep_alive: How long the server keeps the unused context; each request renews it.
            preference: The name for the choice of shards.
        """
        parameters = self.parameters + (f"&preference={preference}" if preference else "")
        return HttpRequest("POST", f"/{target(name)}/{self.path}?keep_alive={keep_alive}{parameters}")

    def close(self, pit: str) -> HttpRequest:
        """Return the request that frees one."""
        return HttpRequest("DELETE", f"/{self.path}", encode({self.key: pit}))


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """What the console completes besides the words that every server of the family has (`console.text`).

    Attributes:
        paths: Paths that begin without an index.
        of_index: Paths after an index.
        queries: Clauses of the query language.
        aggregations: Aggregations.
        types: Types of fields.
        search: Members of the body of a search.
        mappings: Members of a mapping.
    """

    paths: tuple[str, ...] = ()
    of_index: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    aggregations: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    mappings: tuple[str, ...] = ()


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """What a server has, by its product and version; each driver makes it, and this code asks nothing else.

    Attributes:
        points: How points in time are opened and freed.
        words: What the console completes for this product only.
        point_in_time: Points in time sort by their tiebreakers, without which rows are lost; where they do not, exports
            scroll.
        ties_as_offset: Points in time order ties as pages by offset do; where they do not, deep pages scroll.
        case_insensitive: Term-level queries take `case_insensitive`.
        resolves_names: `_resolve/index` lists names without statistics.
        finds_ignored: `exists` finds strings that are longer than `ignore_above`.
        orders_unsigned: A sort by an `unsigned_long` takes arrays by their smallest and greatest values, and puts rows
            without one last.
        skips_rightly: A sort by a number in a nested array, or by a `scaled_float`, has all rows, and one by `_index`
            succeeds; where they do not, a key before it keeps the server from skipping by an index that does not fit.
        counts_wordless: The total of an `exists` counts texts without a word, which are among its rows.
        reads_any_bound: A range may have a bound that the type of the field has no room for.
        finds_near: Searches take `knn`, with a filter.
        nears_by_clause: Vectors are those of a plugin: `knn` is a clause of a query, and `knn_score` a script.
        leaves_out_vectors: Whether answers leave out vectors unless a parameter forbids it, by the version, by what
            the server takes, or by the settings of an index; None if that has to be tried.
    """

    points: PointInTime
    words: Words = Words()
    point_in_time: bool = False
    ties_as_offset: bool = False
    case_insensitive: bool = False
    resolves_names: bool = False
    finds_ignored: bool = False
    orders_unsigned: bool = True
    skips_rightly: bool = True
    counts_wordless: bool = True
    reads_any_bound: bool = True
    finds_near: bool = False
    nears_by_clause: bool = False
    leaves_out_vectors: bool | None = False

    @property
    def snapshots(self) -> PointInTime | None:
        """The points in time that exports use; None where they scroll."""
        return self.points if self.point_in_time else None

    @property
    def asks_for_vectors(self) -> bool:
        """Requests for whole documents carry the parameter that forbids to leave out vectors."""
        return self.leaves_out_vectors is not False

    def reads(self, request: HttpRequest) -> bool:
        """Return whether a request may be sent again: it writes nothing, and moves no scroll on."""
        scrolls = request.path.startswith("/_search/scroll")
        return not (scrolls or self.may_write(request.method, request.path))

    def may_write(self, method: str, path: str, body: str = "") -> bool:
        """Return whether a request may change something, see `protocol.may_write`."""
        return protocol.may_write(method, path, body, points=self.points.path)

    def complete(self, request: HttpRequest) -> HttpRequest:
        """Return a request as it has to be sent for whole documents.

        Some servers leave out vectors unless a parameter, which others refuse, forbids it.
        """
        if not isinstance(request, DocumentsRequest):
            return request
        whole = f"{'&' if '?' in request.path else '?'}{_VECTORS}=false" if self.asks_for_vectors else ""
        return HttpRequest(request.method, f"{request.path}{whole}", request.body, request.content_type)


def learn(dialect: Dialect, request: HttpRequest, reply: Reply) -> Dialect:
    """Return the dialect after the answer to a completed request, which shows what a hidden version takes.

    A server that does not know the parameter refuses it before it does anything else.
    """
    if dialect.leaves_out_vectors is not None:
        return dialect
    if not isinstance(request, DocumentsRequest) or reply.status not in (200, 400):
        return dialect
    if reply.status == 400 and not _refuses_parameter(reply):
        return dialect
    return msgspec.structs.replace(dialect, leaves_out_vectors=reply.status == 200)


def _refuses_parameter(reply: Reply) -> bool:
    return b"unrecognized parameter" in reply.body and _VECTORS.encode() in reply.body
