"""An export in three parts, as plain data, and a part of it as a worker writes it."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from dragoman.exports.formats import FileFormat, TableColumns
from dragoman.sessions.splits import ExportOrigin, PartResult, Split
from dragoman_api.columns import Note
from dragoman_api.exports import ExportForm, ExportRequest
from dragoman_api.filters import CompiledFilter, Explanation, TimeRange

ROW = b'{"a":1}\n'
ORIGIN = ExportOrigin(connection="shop", server="Memory 1", endpoints="e0", plugin="memory", version="1.2", wheel="w0")
REQUEST = ExportRequest(
    object="books",
    filter=CompiledFilter(object="books", body="body", rows=[]),
    time=TimeRange(column="at", since="2026-11-23T12:00:00Z"),
    form=ExportForm.ROWS,
    columns=["a"],
    tenant="north",
    revision="r1",
    keep_alive=60,
)
SPLIT = Split(
    origin=ORIGIN,
    request=REQUEST,
    shares=["0", "1", "2"],
    snapshot="held",
    total=3,
    notes=[Note(code="of-split", reason="from the split")],
    filter=[Explanation(row=0, clause="a = 1")],
    requested_parts=5,
    format=FileFormat("rows"),
    table=TableColumns(),
    now=datetime(2026, 11, 23, tzinfo=UTC),
    started="2026-11-23T12:00:00+00:00",
)


def part(split, number, data=ROW, notes=()):
    """Return what a worker says of a part that it wrote."""
    digest = hashlib.sha256(data).hexdigest()
    rows = data.count(b"\n")
    return PartResult(file=split.file(number), rows=rows, bytes=len(data), sha256=digest, notes=[*notes])
