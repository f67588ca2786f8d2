"""Drivers that write connect, list, describe, and one of export and page; the kit derives the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from dragoman_api import (
    Column,
    ColumnKind,
    Description,
    Object,
    ObjectList,
    ObjectsRequest,
    Page,
    Role,
    RowKey,
    Server,
    Written,
    hookimpl,
)
from dragoman_api.cells import cut
from dragoman_api.errors import ObjectNotFoundError, QueryError, RowNotFoundError, UnsupportedOperationError
from dragoman_api.exports import ExportForm, ExportPart, ExportRequest
from dragoman_api.kit import cursors
from dragoman_api.kit.derived_hooks import CountFromExport, CountFromPages, ExportFromPages, PageFromExport
from dragoman_api.kit.page_columns import sortable
from memory_server import MemoryServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dragoman_api.grid import PageRequest

REASONS = {
    "sort": "the server does not sort",
    "filter": "the server does not filter",
    "edit": "the server is read-only",
}


class _Base:
    def __init__(self, server: MemoryServer | None = None) -> None:
        self.server = server or MemoryServer()

    @hookimpl
    async def connect(self, profile: Any, http: Any) -> Server:
        """Name the server."""
        return Server("memory", "1")

    @hookimpl
    async def list_objects(self, request: ObjectsRequest) -> ObjectList:
        """List the objects."""
        objects = [Object(each["name"], rows=each["rows"]) for each in self.server.send("GET", "/")[1]]
        return ObjectList(objects=objects)

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        """Describe the same columns for all objects."""
        self._rows(name)
        kinds = {"id": ColumnKind.TEXT, **self.server.kinds}
        columns = [
            Column(
                name=each,
                type=kind,
                kind=kind,
                role=Role.KEY if each == "id" else Role.NONE,
                written=Written.NEVER,
                reasons=REASONS,
                path=(each,),
            )
            for each, kind in kinds.items()
        ]
        return Description(object=name, columns=columns)

    def _rows(self, name: str) -> list[dict[str, Any]]:
        status, rows = self.server.send("GET", f"/{quote(name, safe='')}")
        if status == 404:
            raise ObjectNotFoundError(f"there is no object {name!r}")
        return [{"id": each["id"], **each["row"]} for each in rows]


class ExportingDriver(PageFromExport, CountFromExport, _Base):
    """Writes an export, in parts of five rows."""

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        """Stream all rows."""
        if request.form is ExportForm.BULK:
            raise UnsupportedOperationError("there is no bulk endpoint")
        rows = self._rows(request.object)
        for at in range(0, len(rows), 5):
            lines = [msgspec.json.encode(row) + b"\n" for row in rows[at : at + 5]]
            yield ExportPart(data=b"".join(lines), rows=len(lines))


class PagingDriver(ExportFromPages, CountFromPages, _Base):
    """Writes pages by offset."""

    async def page(self, request: PageRequest, offset: int) -> Page:
        """Cut out a page."""
        columns = {column.name: column for column in (await self.describe_object(request.object)).columns}
        if unknown := {*(request.columns or ())} - {*columns}:
            raise QueryError(f"there is no column {min(unknown)!r}")
        chosen = [columns[name] for name in request.columns or columns]
        rows = self._rows(request.object)[offset : offset + request.limit]
        return Page(
            columns=chosen,
            cells=[[_cell(row.get(column.name)) for column in chosen] for row in rows],
            keys=[RowKey(request.object, row["id"]) for row in rows],
            notes=sortable(request.sort, columns.get, lambda _: REASONS["sort"])[1],
            offset=offset,
        )

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        """Fetch a page by offset."""
        cursors.refuse(request)
        return await self.page(request, request.offset)

    @hookimpl
    async def fetch_cell(self, request: Any) -> Any:
        """Fetch one whole cell."""
        row = next((row for row in self._rows(request.key.object) if row["id"] == request.key.id), None)
        if row is None:
            raise RowNotFoundError(f"there is no row {request.key.id!r}")
        value = row.get(request.column)
        return cut(msgspec.json.encode(value).decode(), limit=10**9) if isinstance(value, list) else value


class CursorDriver(PagingDriver):
    """Writes pages by cursor."""

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        """Fetch a page by cursor or offset."""
        query, offset = cursors.query_of(request), request.offset
        if request.cursor is not None:
            offset = cursors.unseal(request.cursor, query, int)
        page = await self.page(request, offset)
        if len(page.cells) < request.limit:
            return page
        return msgspec.structs.replace(page, next=cursors.seal(query, offset + request.limit))


def _cell(value: Any) -> Any:
    return cut(msgspec.json.encode(value).decode()) if isinstance(value, list) else value
