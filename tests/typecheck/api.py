"""What people write, as a type checker sees it; never executed, only read by mypy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

import dragoman
from dragoman import (
    Answer,
    BlockingSession,
    Delete,
    DragomanError,
    Drop,
    Filter,
    Insert,
    Outcome,
    Page,
    Plan,
    RawQuery,
    Refused,
    RowKey,
    Runtime,
    Session,
    Sort,
    Update,
)
from dragoman.exports.export_run import ExportResult
from dragoman.sessions.selections import Count
from dragoman_api import (
    Call,
    Cell,
    CompiledFilter,
    Description,
    Event,
    ExportPart,
    ExportRequest,
    FilterRequest,
    Health,
    Http,
    HttpRequest,
    Object,
    ObjectList,
    ObjectsRequest,
    PageRequest,
    Profile,
    Server,
    hookimpl,
)
from dragoman_api.cells import Value
from dragoman_api.grid import Row

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


async def script(target: Path) -> None:
    async with dragoman.open("shop") as shop:
        assert_type(shop, Session)
        page = await shop.rows(
            "books", filters=[Filter("price", ">=", 10), RawQuery("a:b")], sort=[Sort("price", descending=True)]
        ).page()
        assert_type(page, Page)
        row = page.rows[0]
        assert_type(row, Row)
        assert_type(row.key, RowKey)
        assert_type(row["price"], Value)
        assert_type(row.is_missing("price"), bool)
        assert_type(page.cells[0][0], Cell)
        plan = await shop.plan(Update(row.key, {"price": 12.5}), Delete(row.key), Insert("books", {}), Drop("books"))
        assert_type(plan, Plan)
        assert_type(plan.requests, list[HttpRequest])
        assert_type(await shop.apply(plan), list[Outcome])
        assert_type(await shop.rows("books").count(), Count)
        assert_type(await shop.ping(), Health)
        assert_type(await shop.describe("books"), Description)
        assert_type(await shop.console("GET /"), list[Answer])
        assert_type(await shop.rows("books").export(to=target), ExportResult)
        async for document in shop.rows("books"):
            assert_type(document, dict[str, Any])


def notebook(target: Path) -> None:
    with dragoman.connect("shop") as shop:
        assert_type(shop, BlockingSession)
        page = shop.rows("books", filters=[Filter("price", ">=", 10)]).page(limit=10)
        assert_type(page, Page)
        assert_type(shop.rows(page.rows[0].key.object).cell(page.rows[0].key, "price"), Cell)
        assert_type(shop.apply(shop.plan(Delete(page.rows[0].key))), list[Outcome])
        assert_type(shop.rows("books", match="any").count(), Count)
        assert_type(shop.console("GET /", variables={"a": "b"}), list[Answer])
        assert_type(shop.rows("books").export(to=target), ExportResult)
        for document in shop.rows("books"):
            assert_type(document, dict[str, Any])
        shop.rows("books").page(limits=10)  # type: ignore[call-arg]
        shop.rows(7).count()  # type: ignore[arg-type]


async def program() -> None:
    async with Runtime(use=[Guard()]) as runtime, runtime.open("shop") as shop:
        assert_type(shop.name, str)
        with runtime.events() as events:
            async for event in events:
                assert_type(event, Event)
        try:
            await shop.objects()
        except DragomanError as error:
            assert_type((error.code, error.message, error.hint), tuple[str, str, str])


class Guard:
    @hookimpl
    async def before_call(self, call: Call) -> None:
        if call.writes and call.connection and call.connection.name == "prod":
            raise Refused("not here", hint="elsewhere")

    @hookimpl
    async def on_event(self, event: Event) -> None:
        assert_type(event.to_json(), str)


class Driver:
    @hookimpl
    async def connect(self, profile: Profile, http: Http) -> Server:
        answer = await http.request("GET", "/", timeout=5)
        assert_type(answer.body, bytes)
        return Server("Demo", str(answer.status))

    @hookimpl
    async def list_objects(self, request: ObjectsRequest) -> ObjectList:
        return ObjectList(objects=[Object("books", rows=1)])

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter:
        return CompiledFilter(object=request.object, body="", rows=[])

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        return Page(columns=[], offset=request.offset)

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        yield ExportPart(data=b"", rows=0, checkpoint=request.checkpoint)
