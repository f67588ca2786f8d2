"""The requests that write rows: one each, or many in one `_bulk` request."""

from __future__ import annotations

import re
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api import HttpRequest, PlannedRequest
from dragoman_api.changes import Change, Insert, InsertBatch
from dragoman_api.json_text import encode
from dragoman_api.kit.row_changes import NotSentError
from dragoman_querydsl.protocol import NDJSON, segment, target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BULK_BYTES = 3 * 2**20
"""Maximum bytes of one bulk request; one element of a driver's answer holds 4 MiB."""

ROW_BYTES = 3 * 2**20
"""Bytes of one document at most, for the same reason."""

ID_BYTES = 512
"""The greatest length of an `_id`, in bytes of UTF-8."""

BULK_ROWS = 5_000
_encoder = msgspec.json.Encoder()
_STEP = re.compile(r"(.*[/\\])?\.\.?([/\\].*)?", re.DOTALL)


class RowWrite(msgspec.Struct, kw_only=True):
    """The write of one row.

    Attributes:
        action: The action of `_bulk`: create, index, update or delete.
        index: The row's index.
        id: The row's id; None lets the server make one.
        body: JSON text, None for a delete.
        guard: `if_seq_no` and `if_primary_term`, or empty.
        routing: The row's routing.
        refresh: Whether to wait until searches see it.
        changes: The numbers of the changes it carries out.
        undo: The change that undoes it, if requested.
    """

    action: str = ""
    index: str
    id: str | None
    body: str | None = None
    guard: dict[str, int | str] = msgspec.field(default_factory=dict)
    routing: str | None = None
    refresh: bool = True
    changes: list[int] = msgspec.field(default_factory=list)
    undo: Change | None = None

    @property
    def size(self) -> int:
        """The bytes of the write and of its undo."""
        before = self.undo.document if isinstance(self.undo, Insert) else None
        return sum(len(text.encode()) for text in (self.body, before) if text)

    @property
    def roams(self) -> bool:
        """Whether a proxy that resolves paths would send the row's own request to another row or index."""
        return self.id is not None and _STEP.fullmatch(self.id) is not None

    @property
    def fits_bulk(self) -> bool:
        """Whether the body is a single line."""
        return "\n" not in (self.body or "") and "\r" not in (self.body or "")

    def check(self, size: int) -> None:
        """Check that a request can name and hold the row, whose longest document has so many bytes.

        Raises:
            NotSentError: It cannot.
        """
        if self.id is not None and not 0 < len(self.id.encode()) <= ID_BYTES:
            raise NotSentError(f"an _id has 1 to {ID_BYTES} bytes")
        if self.roams and not self.fits_bulk:
            raise NotSentError(
                "its id reads like a path, which proxies follow, and the document has several lines: use one"
            )
        if size > ROW_BYTES:
            raise NotSentError(f"the document has {size:,} bytes; a change takes {ROW_BYTES:,}; use the console")

    def planned(self) -> PlannedRequest:
        """Build the row's own request (E28-E30)."""
        method = (
            "DELETE" if self.action == "delete" else "POST" if self.action == "update" or self.id is None else "PUT"
        )
        kind = "_update" if self.action == "update" else "_doc"
        options = {
            "op_type": "create" if self.action == "create" and self.id is not None else None,  # PUT alone overwrites
            **self.guard,
            "refresh": _refresh(self.refresh),
            "routing": None if self.routing is None else segment(self.routing),
        }
        where = f"/{target(self.index)}/{kind}" + ("" if self.id is None else f"/{segment(self.id)}")
        return PlannedRequest(request=HttpRequest(method, path(where, options), self.body), changes=self.changes)

    def lines(self) -> str:
        """Return the row's lines of a bulk request; the path of the request names the index."""
        metadata: dict[str, Any] = {} if self.id is None else {"_id": self.id}
        metadata |= self.guard if self.routing is None else {**self.guard, "routing": self.routing}
        return encode({self.action: metadata}) + "\n" + ("" if self.body is None else f"{self.body}\n")


def path(path: str, options: Mapping[str, object]) -> str:
    """Add options to a path; those that are None are left out."""
    query = "&".join(f"{name}={value}" for name, value in options.items() if value is not None)
    return f"{path}?{query}" if query else path


def _refresh(waits: bool) -> str | None:  # noqa: FBT001 - its only word
    return "wait_for" if waits else None


def planned_requests(writes: Sequence[RowWrite]) -> Iterator[tuple[PlannedRequest, list[RowWrite]]]:
    """Collect the writes of an index in bulk requests; a single write, and a body of several lines, goes alone.

    `_bulk` checks each row's own guard and routing, and answers for each row (seen on 7.10 to 9.5).
    """
    batches: dict[tuple[str, bool], list[RowWrite]] = {}
    for write in writes:
        if not write.fits_bulk:  # keeps its bytes
            yield write.planned(), [write]
        else:
            batches.setdefault((write.index, write.refresh), []).append(write)
    for (index, refresh), batch in batches.items():
        where = path(f"/{target(index)}/_bulk", {"refresh": _refresh(refresh)})
        for part, lines in _parts(batch):
            if len(part) == 1 and not part[0].roams:
                yield part[0].planned(), part
            else:
                request = HttpRequest("POST", where, "".join(lines), NDJSON)
                yield bulk_request(request, [write.changes for write in part]), part


def bulk_request(request: HttpRequest, rows: list[list[int]]) -> PlannedRequest:
    """Build a planned bulk request."""
    return PlannedRequest(request=request, changes=[number for row in rows for number in row], rows=rows)


def batch_request(batch: InsertBatch, *, routed: bool, refresh: bool) -> PlannedRequest | None:
    """Return the one bulk request of the rows of a load; None if some of them need a look of their own.

    Whether all rows can be sent together is seen from the whole: the longest id, the line ends, the size of the body.

    Args:
        batch: The rows.
        routed: The index requires a routing.
        refresh: Whether to wait until searches see them.
    """
    if "" in batch.routings or (routed and None in (batch.routings or [None])):
        return None
    documents = [document for document in batch.documents if document]
    ids = [row_id for row_id in batch.ids if row_id]
    rows = len(batch)
    if not 1 < rows == len(documents) <= BULK_ROWS or batch.values:
        return None
    if len(ids) != len(batch.ids) or len(set(batch.replace)) > 1 or 4 * max(map(len, ids), default=0) > ID_BYTES:
        return None
    if ids and len(set(zip(ids, batch.routings, strict=True) if batch.routings else ids)) != rows:
        return None
    action = "index" if True in batch.replace else "create"
    if batch.routings:
        options = [{} if routing is None else {"routing": routing} for routing in batch.routings]
        keys = [{"_id": row_id} for row_id in ids] or [{}] * rows
        heads = _lines([{action: key | option} for key, option in zip(keys, options, strict=True)])
        before, after = "", "\n"
    elif ids:
        heads, before, after = _lines(ids), f'{{"{action}":{{"_id":', "}}\n"
    else:
        heads, before, after = [f'{{"{action}":{{}}}}'] * rows, "", "\n"
    columns = zip(repeat(before), heads, repeat(after), documents, repeat("\n"))
    body = "".join(chain.from_iterable(columns))
    size = len(body) if body.isascii() else len(body.encode())
    if size > min(BULK_BYTES, ROW_BYTES) or "\r" in body or body.count("\n") != 2 * rows:
        return None
    where = path(f"/{target(batch.object)}/_bulk", {"refresh": _refresh(refresh)})
    return bulk_request(HttpRequest("POST", where, body, NDJSON), [[number] for number in range(rows)])


def _lines(values: Sequence[object]) -> list[str]:
    """Return the JSON text of each value."""
    return _encoder.encode_lines(values).decode().split("\n")[:-1]


def _parts(batch: Sequence[RowWrite]) -> Iterator[tuple[list[RowWrite], list[str]]]:
    """Yield the writes of each bulk request, and their lines."""
    part: list[RowWrite] = []
    lines: list[str] = []
    size = 0
    for write in batch:
        text = write.lines()
        length = len(text) if text.isascii() else len(text.encode())
        if part and (size + length > BULK_BYTES or len(part) == BULK_ROWS):
            yield part, lines
            part, lines, size = [], [], 0
        part.append(write)
        lines.append(text)
        size += length
    if part:
        yield part, lines
