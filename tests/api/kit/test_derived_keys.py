"""Ids and lines that the kit derives: each id as the database has it, each value once in its line."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from dragoman_api import Column, ColumnKind, ExportPart, ExportRequest, Page, PageRequest, QueryError, Role, RowKey
from dragoman_api.cells import CutText, Json
from dragoman_api.kit.derived_hooks import export_from_pages, page_from_export

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def key(name: str, kind: ColumnKind = ColumnKind.TEXT) -> Column:
    return Column(name=name, type=kind, kind=kind, role=Role.KEY, path=(name,))


async def ids(columns: list[Column], *rows: str) -> list[object]:
    async def export(request: ExportRequest) -> AsyncIterator[ExportPart]:
        yield ExportPart(data="".join(f"{row}\n" for row in rows).encode(), rows=len(rows))

    page = await page_from_export(export, PageRequest(object="t"), columns)
    return [each.id for each in page.keys]


BINARY = base64.b64encode(b"\0\xff").decode()


@pytest.mark.parametrize(
    ("kind", "value", "id"),
    [
        (ColumnKind.TEXT, '"a"', "a"),
        (ColumnKind.TEXT, "17", "17"),
        (ColumnKind.INTEGER, "123456789012345678901234567890", "123456789012345678901234567890"),
        (ColumnKind.DECIMAL, "1.10", "1.10"),
        (ColumnKind.BOOLEAN, "true", "true"),
        (ColumnKind.BINARY, f'"{BINARY}"', b"\0\xff"),
        (ColumnKind.JSON, '["eu", 17]', ["eu", 17]),
        (ColumnKind.BINARY, f'["{BINARY}", 17]', [b"\0\xff", 17]),
    ],
)
async def test_a_single_key_is_the_id_in_its_own_type(kind: ColumnKind, value: str, id: object) -> None:  # noqa: A002
    assert await ids([key("k", kind)], f'{{"k":{value}}}') == [id]


async def test_a_binary_cell_is_bytes_as_its_id_is() -> None:
    async def export(request: ExportRequest) -> AsyncIterator[ExportPart]:
        yield ExportPart(data=f'{{"k":"{BINARY}"}}\n{{"k":"?"}}\n'.encode(), rows=2)

    page = await page_from_export(export, PageRequest(object="t"), [key("k", ColumnKind.BINARY)])
    assert page.cells == [[b"\0\xff"], ["?"]]
    assert page.keys[0].id == page.cells[0][0]


async def test_parts_of_a_key_keep_their_types() -> None:
    columns = [key("a"), key("b", ColumnKind.BINARY), key("c", ColumnKind.INTEGER)]
    assert await ids(columns, f'{{"a":"x","b":"{BINARY}","c":5}}') == [["x", b"\0\xff", 5]]


async def test_one_row_without_an_id_leaves_the_others_theirs() -> None:
    columns = [key("k", ColumnKind.BINARY)]
    odd = ["{}", '{"k":{"a":1}}', '{"k":"not base64"}', '{"k":[]}', json.dumps({"k": [[1]]})]
    assert await ids(columns, *odd, f'{{"k":"{BINARY}"}}') == [*([""] * len(odd)), b"\0\xff"]


def column(*path: str, name: str = "") -> Column:
    return Column(name=name or ".".join(path), type="x", path=path)


async def line(columns: list[Column], cells: list[Any], **more: Any) -> dict[str, Any]:
    async def fetch(request: PageRequest) -> Page:
        return Page(columns=columns, cells=[cells], keys=[RowKey("t", "1")], total=1)

    parts = [part async for part in export_from_pages(fetch, ExportRequest(object="t"), **more)]
    read: dict[str, Any] = json.loads(b"".join(part.data for part in parts))
    return read


NESTED = [column("a", "b"), column("a"), column("a", "c", "d")]


@pytest.mark.parametrize("turn", [0, 1, 2])
@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([1, Json('{"b":1,"c":{"d":2}}'), 2], {"b": 1, "c": {"d": 2}}),
        ([1, Json('{"e":3}'), 2], {"e": 3, "b": 1, "c": {"d": 2}}),
        ([Json("[1]"), Json('[{"b":1}]'), Json("[null]")], [{"b": 1}]),
        ([None, None, None], None),
        ([1, None, None], {"b": 1, "c": {"d": None}}),
        ([None, 5, None], 5),
    ],
)
async def test_a_value_lies_in_the_value_that_holds_it(turn: int, cells: list[Any], expected: object) -> None:
    columns = NESTED[turn:] + NESTED[:turn]
    assert await line(columns, cells[turn:] + cells[:turn]) == {"a": expected}


@pytest.mark.parametrize(
    ("columns", "cells"),
    [
        (NESTED[:2], [1, "text"]),
        (NESTED[:2], [1, Json("1e99999999999999999999")]),
        ([column("a"), column("a", name="other")], [1, 2]),
        ([column("a"), Column(name="a.b", type="x", path=("a", "b"))], [True, 2]),
        ([column("a")], []),
    ],
)
async def test_values_that_exclude_one_another_are_an_error(columns: list[Column], cells: list[Any]) -> None:
    with pytest.raises(QueryError, match="cannot be exported"):
        await line(columns, cells)


async def test_two_columns_of_one_value_are_one_member() -> None:
    assert await line([column("a"), column("a", name="other")], [1, 1]) == {"a": 1}
    assert await line([column("a"), column("a", name="other")], [None, 1]) == {"a": 1}


async def test_a_cell_that_stays_cut_is_no_export() -> None:
    async def fetch_cell(request: object) -> CutText:
        return CutText("ab...")

    with pytest.raises(QueryError, match="a part of it"):
        await line([column("a")], [CutText("a...")], fetch_cell=fetch_cell)
