"""Derived hooks: what the hook below says of its rows is said of what is made of them."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from dragoman_api import Column, ExportPart, ExportRequest, Note, Page, PageRequest
from dragoman_api.columns import Role
from dragoman_api.errors import WindowExceededError
from dragoman_api.kit.derived_hooks import export_from_pages, page_from_export

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

KEY = Column(name="id", type="text", role=Role.KEY, path=("id",))
REGION = Column(name="region", type="text", role=Role.KEY, path=("region",))


async def two_parts(request: ExportRequest) -> AsyncIterator[ExportPart]:
    yield ExportPart(data=b"", rows=0, notes=[Note(code="shards-away", reason="one shard of two is away")])
    yield ExportPart(data=b'{"id": 1}\n{"id": 2}\n', rows=2, notes=[Note(code="slow", reason="it is slow")])
    yield ExportPart(data=b'{"id": 3}\n', rows=1, notes=[Note(code="slow", reason="it is slow")])


@pytest.mark.parametrize("offset", [0, 2])
async def test_a_page_of_an_export_tells_the_notes_of_all_parts_that_were_read(offset: int) -> None:
    request = PageRequest(object="books", offset=offset, limit=2)
    page = await page_from_export(two_parts, request, [KEY])
    assert [note.code for note in page.notes] == ["shards-away", "slow"]


@pytest.mark.parametrize("key", [[KEY], [REGION, KEY]])
async def test_W27_a_row_without_a_key_has_no_id(key: list[Column]) -> None:
    """A change would otherwise name the row `None`, which may be another one."""

    async def export(request: ExportRequest) -> AsyncIterator[ExportPart]:
        yield ExportPart(data=b'{"id": null, "region": "eu"}\n{"region": "eu"}\n', rows=2)

    page = await page_from_export(export, PageRequest(object="books"), key)
    assert [each.id for each in page.keys] == ["", ""]


async def test_a_line_of_an_export_ends_at_a_line_feed_alone() -> None:
    async def export(request: ExportRequest) -> AsyncIterator[ExportPart]:
        yield ExportPart(data=b'{"id":\r1}\r\n{"id": 2}\n', rows=2)

    page = await page_from_export(export, PageRequest(object="books"), [KEY])
    assert page.cells == [[1], [2]]


async def test_an_export_of_pages_tells_each_of_their_notes_once() -> None:
    note = Note(code="column-left-out", reason="the key may not read it")

    async def fetch(request: PageRequest) -> Page:
        cells = [[1], [2], [3]][request.offset : request.offset + request.limit]
        late = [Note(code="approximate", reason="late")] if request.offset == 2 else []
        return Page(columns=[KEY], cells=cells, notes=[note, *late])

    async with aclosing(export_from_pages(fetch, ExportRequest(object="books"), limit=1)) as parts:
        found = [part async for part in parts]
    assert [json.loads(part.data) for part in found] == [{"id": 1}, {"id": 2}, {"id": 3}]
    codes = [[each.code for each in part.notes] for part in found]
    assert codes == [["derived-export", "column-left-out"], [], ["approximate"]]


async def test_rows_of_a_single_page_are_exported_by_a_driver_without_offsets() -> None:
    async def fetch(request: PageRequest) -> Page:
        if request.offset:
            raise WindowExceededError("there is no offset")
        return Page(columns=[KEY], cells=[[1], [2]], total=2)

    async with aclosing(export_from_pages(fetch, ExportRequest(object="books"))) as parts:
        assert [part.rows async for part in parts] == [2]
